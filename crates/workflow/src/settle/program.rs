//! The program that the agent's command starts with: whether it is where the command looks for it.
//!
//! Touches no file: the caller looks. Says nothing about a command of which only the shell knows what it starts, and
//! nothing where a hook may still make the program.

use std::path::{Path, PathBuf};

use outlast_agents::adapter::driven;
use outlast_engine::Strategy;

use super::{Effective, Loaded, Origin};
use crate::problem::{Code, Problem};

/// What is found at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// A file that may be executed.
    Program,
    /// A file that may not.
    NotExecutable,
    Nothing,
}

/// Words that the shell knows itself.
const SHELLS_OWN: [&str; 42] = [
    ".", ":", "!", "[", "alias", "bg", "case", "cd", "command", "echo", "eval", "exit", "export",
    "false", "fg", "for", "getopts", "hash", "if", "jobs", "kill", "local", "printf", "pwd",
    "read", "readonly", "return", "set", "shift", "source", "test", "times", "trap", "true",
    "type", "ulimit", "umask", "unset", "until", "wait", "while", "exec",
];

/// How a program is absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Absent {
    NotThere,
    NotExecutable,
}

/// What a shell in `dir` did not find of the command that it was given, in words; `None` if the program is there, or if
/// that cannot be known.
pub fn absent_program(
    command: &[String],
    dir: &Path,
    path: Option<&str>,
    look: &dyn Fn(&Path) -> Look,
) -> Option<(Absent, String)> {
    let [sh, flag, line, ..] = command else { return None };
    let word = first(line).filter(|_| sh == "sh" && flag == "-c" && is_simple(line))?;
    let places = places(word, dir, path)?;
    let found: Vec<Look> = places.iter().map(|place| look(place)).collect();
    if found.contains(&Look::Program) {
        return None;
    }
    Some(match (found.contains(&Look::NotExecutable), word.contains('/')) {
        (true, _) => (Absent::NotExecutable, format!("{word} is not executable")),
        (false, true) => (Absent::NotThere, format!("there is no {word} in {}", dir.display())),
        (false, false) => (Absent::NotThere, format!("there is no {word} in PATH")),
    })
}

/// True of a line that starts one program and nothing else: of a list or a pipe another command may have failed, and a
/// redirection makes its file before the program is looked for.
fn is_simple(line: &str) -> bool {
    let is_of_list = |it: char| ";&|()`<>\n".contains(it);
    !line.trim().replace("2>&1", "").contains(is_of_list)
}

/// Where a program is looked for that a command in `dir` starts with; `None` if that is not known.
fn places(word: &str, dir: &Path, path: Option<&str>) -> Option<Vec<PathBuf>> {
    if word.contains('/') {
        // An absolute path stands for itself.
        return Some(vec![dir.join(word.trim_start_matches("./"))]);
    }
    let dirs = path?.split(':').filter(|dir| !dir.is_empty());
    Some(dirs.map(|dir| Path::new(dir).join(word)).collect())
}

/// Why the agent's program would not be found by a run in `dir` with this `PATH`; `None` if it would be, or if that
/// cannot be known.
pub fn missing_program(
    loaded: &Loaded,
    dir: &Path,
    path: Option<&str>,
    look: &dyn Fn(&Path) -> Look,
) -> Option<Problem> {
    let effective = &loaded.effective;
    let word = word(effective)?;
    let hooks = &effective.hooks;
    let may_be_made = hooks.after_create.is_some() || hooks.before_run.is_some();
    // Another directory is made for the run, and is empty until a hook fills it.
    let is_made = effective.strategy == Strategy::Dir;
    if word.contains('/') && !word.starts_with('/') && (may_be_made || is_made) {
        return None;
    }
    let places = places(word, dir, path)?;
    let found: Vec<Look> = places.iter().map(|place| look(place)).collect();
    if found.contains(&Look::Program) {
        return None;
    }
    let file = effective.workflow.as_ref().map_or("command line", |workflow| &workflow.path);
    let beside =
        Path::new(file).parent().filter(|beside| look(&beside.join(word)) == Look::Program);
    let is_there = places.iter().zip(&found).find(|(_, it)| **it == Look::NotExecutable);
    let (message, hint) = match (is_there, beside) {
        (Some((place, _)), _) => {
            (format!("{word} is not executable"), format!("chmod +x {}", quoted(place)))
        }
        (None, _) if word.starts_with('/') => {
            (format!("there is no {word}"), "name a program that is there".to_owned())
        }
        (None, Some(beside)) if word.contains('/') => (
            format!("there is no {word} in {}, where the run would work", dir.display()),
            format!("outlast run --dir {} -f {}", quoted(beside), quoted(Path::new(file))),
        ),
        (None, _) if word.contains('/') => (
            format!("there is no {word} in {}", dir.display()),
            "make it there, or name another command".to_owned(),
        ),
        (None, _) => (
            format!("there is no {word} in PATH"),
            format!("install {word}, or name it by its path"),
        ),
    };
    let row = loaded.explained.iter().find(|row| row.key == "agent.command");
    let line = row.and_then(|row| match row.origin {
        Origin::Workflow { line } => Some(line),
        Origin::Default | Origin::Config { .. } | Origin::CommandLine | Origin::Ceiling { .. } => {
            None
        }
    });
    let problem = Problem::new(Code::MissingProgram, file, message).key("agent.command").hint(hint);
    Some(Problem { line, ..problem })
}

/// The first word of the command, if it is the program's name to the letter.
fn word(effective: &Effective) -> Option<&str> {
    let agent = &effective.agent;
    let word = match agent.command.as_slice() {
        [] => return own(effective),
        [sh, flag, line, ..] if sh == "sh" && flag == "-c" => first(line)?,
        [word, ..] => word,
    };
    (!word.is_empty()).then_some(word)
}

/// The program of a kind that knows its own.
fn own(effective: &Effective) -> Option<&str> {
    if effective.driving.declared.is_some() {
        return None;
    }
    driven(&effective.agent.kind).filter(|kind| !kind.needs_command).map(|kind| kind.name)
}

fn first(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let word = match words.next()? {
        "exec" => words.next()?,
        word => word,
    };
    let is_plain = |any: char| any.is_alphanumeric() || "_-./+@%,:".contains(any);
    (word.chars().all(is_plain) && !SHELLS_OWN.contains(&word)).then_some(word)
}

fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |any: char| any.is_alphanumeric() || "_-./+@%,:".contains(any);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_a_shell_did_not_find_is_told_from_a_command_of_its_script() {
        let look = |path: &Path| match path.to_str() {
            Some("/w/there.sh" | "/bin/node") => Look::Program,
            Some("/w/plain.sh") => Look::NotExecutable,
            _ => Look::Nothing,
        };
        let absent = |command: &[&str]| {
            let command: Vec<String> = command.iter().map(|&word| word.to_owned()).collect();
            absent_program(&command, Path::new("/w"), Some("/usr/bin:/bin"), &look)
        };
        let shell = |line: &str| absent(&["sh", "-c", line]);
        let not_there = |why: &str| Some((Absent::NotThere, why.to_owned()));
        assert_eq!(shell("./gone.sh --fast"), not_there("there is no ./gone.sh in /w"));
        assert_eq!(shell("nosuch"), not_there("there is no nosuch in PATH"));
        let plain = (Absent::NotExecutable, "./plain.sh is not executable".to_owned());
        assert_eq!(shell("exec ./plain.sh"), Some(plain));
        assert_eq!(shell("./gone.sh 2>&1"), not_there("there is no ./gone.sh in /w"));
        assert_eq!(shell("./gone.sh >log 2>&1"), None, "the shell has made a file by then");
        for line in ["./there.sh", "cd sub && ./gone.sh", "A=1 ./gone.sh", "./gone.sh\n./there.sh"]
        {
            assert_eq!(shell(line), None, "{line}");
        }
        assert_eq!(absent(&["./gone.sh"]), None, "without a shell the shim says so itself");
    }

    #[test]
    fn only_a_plain_first_word_is_a_program() {
        for (line, expected) in [
            ("./agent.sh --fast", Some("./agent.sh")),
            ("exec node agent.js", Some("node")),
            ("cd sub && ./agent.sh", None),
            ("A=1 ./agent.sh", None),
            ("\"$HOME\"/agent", None),
            ("~/agent", None),
            ("if true; then ./agent; fi", None),
            ("(./a; ./b)", None),
            ("  ", None),
        ] {
            assert_eq!(first(line), expected, "{line}");
        }
    }
}
