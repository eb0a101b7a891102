//! Typical mistakes: each is told with its cause, its place, a hint and an exit code, and what the hint says works.
//!
//! A row is one mistake. To add one: the files that a person has, the command that the person types, what is said and
//! what the hint is good for.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Home, text};
use crate::hosted::{git, put};
use crate::programs;

pub(crate) struct Mistake {
    pub(crate) what: &'static str,
    /// Their paths are relative to the directory that the command is typed in; `config.toml` is the operator's.
    files: &'static [(&'static str, &'static str)],
    /// After `outlast`, as a shell has it.
    pub(crate) typed: &'static str,
    exit: i32,
    /// Lines of standard error, in this order; others may stand between them.
    says: &'static [&'static str],
    then: Then,
}

/// What the hint is good for.
pub(crate) enum Then {
    /// The hint is a line for the shell, to the letter; pasted, it ends with one of these codes.
    Paste(&'static str, &'static [i32]),
    /// With this in the place of that in a file, as the hint says, the same command ends with 0.
    Change(&'static str, &'static str, &'static str),
    /// It says what a person has to find out.
    Read,
}

use Then::{Change, Paste, Read};

/// The usual loop file; each row spoils it in its own way.
macro_rules! loop_file {
    ($front:literal) => {
        ("WORKFLOW.md", concat!("---\n", $front, "---\nDo {{ task }}\n"))
    };
}

pub(crate) const MISTAKES: &[Mistake] = &[
    Mistake {
        what: "the key of the command is spelt wrong",
        files: &[loop_file!("agent:\n  kind: file\n  comand: 'true'\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:4: agent.comand: unknown key",
            "hint: did you mean agent.command?",
            "error: WORKFLOW.md:3: agent.command: an agent of kind file needs a command",
            "outlast: 2 problems",
        ],
        then: Change("WORKFLOW.md", "comand", "command"),
    },
    Mistake {
        what: "check for checks, so that done would be believed",
        files: &[loop_file!("agent: { command: 'true' }\ncheck: { done: ['true'] }\n")],
        typed: "run -d -f WORKFLOW.md",
        exit: 2,
        says: &["outlast: WORKFLOW.md:3: check: unknown key", "hint: did you mean checks?"],
        then: Change("WORKFLOW.md", "check:", "checks:"),
    },
    Mistake {
        what: "the limit of money is spelt wrong, so that there would be none",
        files: &[loop_file!("agent: { command: 'true' }\nlimits: { max_cost_usdd: 5 }\n")],
        typed: "run -d -f WORKFLOW.md",
        exit: 2,
        says: &[
            "outlast: WORKFLOW.md:3: limits.max_cost_usdd: unknown key",
            "hint: did you mean limits.max_cost_usd?",
        ],
        then: Change("WORKFLOW.md", "usdd", "usd"),
    },
    Mistake {
        what: "a limit that stands outside of its section",
        files: &[loop_file!("agent: { command: 'true' }\nmax_turns: 5\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:3: max_turns: unknown key",
            "hint: did you mean agent.max_turns?",
        ],
        then: Change("WORKFLOW.md", "'true' }\nmax_turns: 5", "'true', max_turns: 5 }"),
    },
    Mistake {
        what: "a length of time under the name in milliseconds",
        files: &[loop_file!("agent: { command: 'true' }\nlimits:\n  run_timeout_ms: 8h\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:4: limits.run_timeout_ms: must be a whole number, got \"8h\"",
            "hint: run_timeout: 8h",
        ],
        then: Change("WORKFLOW.md", "run_timeout_ms: 8h", "run_timeout: 8h"),
    },
    Mistake {
        what: "a length of time without its unit",
        files: &[loop_file!("agent: { command: 'true' }\nlimits:\n  stall_window: 10\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:4: limits.stall_window: has no unit, got 10",
            "hint: 10s, 10m or 10h",
        ],
        then: Change("WORKFLOW.md", "stall_window: 10", "stall_window: 10m"),
    },
    Mistake {
        what: "a length of time that is none",
        files: &[loop_file!("agent: { command: 'true' }\nlimits:\n  turn_timeout: soon\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:4: limits.turn_timeout: must be like 90s, 10m, 8h, 7d or off, got \"soon\"",
            "hint: the whole of one attempt; 0 is off; the default is 1h",
        ],
        then: Change("WORKFLOW.md", "soon", "1h"),
    },
    Mistake {
        what: "one limit under both of its names",
        files: &[loop_file!(
            "agent: { command: 'true' }\nlimits:\n  stall_window_ms: 5000\n  stall_window: 10m\n"
        )],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:5: limits.stall_window: is given twice: also as stall_window_ms, first on line 4",
            "hint: keep stall_window",
        ],
        then: Change("WORKFLOW.md", "  stall_window_ms: 5000\n", ""),
    },
    Mistake {
        what: "a section that is given twice",
        files: &[loop_file!("agent: { command: 'true' }\nlimits: {}\nagent: { max_turns: 5 }\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:4: the front matter is not YAML: \"agent\" is given twice, first on line 2",
        ],
        then: Read,
    },
    Mistake {
        what: "front matter without an end",
        files: &[("WORKFLOW.md", "---\nagent: { command: 'true' }\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:1: the front matter that starts here has no end",
            "hint: end it with a line that is only ---",
        ],
        then: Change("WORKFLOW.md", "'true' }\n", "'true' }\n---\n"),
    },
    Mistake {
        what: "a tab in YAML",
        files: &[loop_file!("agent:\n\tcommand: 'true'\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:3: the front matter is not YAML: ",
            "hint: indent with spaces: YAML takes no tabs",
        ],
        then: Change("WORKFLOW.md", "\t", "  "),
    },
    Mistake {
        what: "several names that there are not, on one line of the prompt",
        files: &[(
            "WORKFLOW.md",
            "---\nagent: { command: 'true' }\n---\nDo {{ tsk }} {{ task | shout }}\n",
        )],
        typed: "run -d -f WORKFLOW.md",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:4: there is no variable tsk",
            "hint: did you mean task?",
            "error: WORKFLOW.md:4: there is no filter shout",
            "hint: filters are ",
            "outlast: 2 problems",
        ],
        then: Change("WORKFLOW.md", "{{ tsk }} {{ task | shout }}", "{{ task | upcase }}"),
    },
    Mistake {
        what: "a block of the prompt that is never closed",
        files: &[("WORKFLOW.md", "---\nagent: { command: 'true' }\n---\n{% if task %}Do it\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:4: {% if %} is never closed",
            "hint: close it with {% endif %}",
        ],
        then: Change("WORKFLOW.md", "Do it", "Do it{% endif %}"),
    },
    Mistake {
        what: "a prompt that speaks of what the first turn has not",
        files: &[("WORKFLOW.md", "---\nagent: { command: 'true' }\n---\nGo on: {{ note.text }}\n")],
        typed: "check",
        exit: 2,
        says: &[
            "hint: test a value that the first turn lacks before you use it: {% if note %}…{% endif %}",
        ],
        then: Change("WORKFLOW.md", "{{ note.text }}", "{% if note %}{{ note.text }}{% endif %}"),
    },
    Mistake {
        what: "a kind that there is not",
        files: &[loop_file!("agent: { kind: exce, command: 'true' }\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:2: agent.kind: there is no kind \"exce\"",
            "hint: one of exec, file, ",
        ],
        then: Change("WORKFLOW.md", "exce", "exec"),
    },
    Mistake {
        what: "a kind on the command line that there is not",
        files: &[],
        typed: "run --agent claud --task hi",
        exit: 2,
        says: &[
            "outlast: command line: agent.kind: there is no kind \"claud\"",
            "hint: one of exec, file, ",
        ],
        then: Read,
    },
    Mistake {
        what: "an agent without its command",
        files: &[],
        typed: "run -d --agent file",
        exit: 2,
        says: &["outlast: there is no command to run", "hint: "],
        then: Read,
    },
    Mistake {
        what: "a script that is not executable",
        files: &[loop_file!("agent:\n  command: ./agent.sh\n"), ("agent.sh", "#!/bin/sh\n")],
        typed: "check",
        exit: 0,
        says: &["warning: WORKFLOW.md:3: agent.command: ./agent.sh is not executable"],
        then: Paste("chmod +x HERE/agent.sh", &[0]),
    },
    Mistake {
        what: "a script that is not there",
        files: &[loop_file!("agent:\n  command: ./agent.sh --fast\nlimits: { max_attempts: 1 }\n")],
        typed: "run -d -f WORKFLOW.md",
        exit: 0,
        says: &[
            "warning: WORKFLOW.md:3: agent.command: there is no ./agent.sh in HERE",
            "hint: make it there, or name another command",
        ],
        then: Read,
    },
    Mistake {
        what: "a script that is beside the file and not where the run works",
        files: &[
            ("repo/WORKFLOW.md", "---\nagent:\n  command: ./agent.sh\n---\nhi\n"),
            ("repo/agent.sh", "#!/bin/sh\n"),
        ],
        typed: "check repo/WORKFLOW.md",
        exit: 0,
        says: &[
            "warning: repo/WORKFLOW.md:3: agent.command: there is no ./agent.sh in HERE, where the run would work",
        ],
        then: Paste("outlast run --dir HERE/repo -f HERE/repo/WORKFLOW.md", &[0]),
    },
    Mistake {
        what: "a program that is not installed",
        files: &[loop_file!("agent:\n  command: no-such-agent-here --fast\n")],
        typed: "check",
        exit: 0,
        says: &[
            "warning: WORKFLOW.md:3: agent.command: there is no no-such-agent-here in PATH",
            "hint: install no-such-agent-here",
        ],
        then: Change("WORKFLOW.md", "no-such-agent-here", "sh"),
    },
    Mistake {
        what: "a check that is no list",
        files: &[loop_file!("agent: { command: 'true' }\nchecks: { done: cargo test }\n")],
        typed: "check",
        exit: 2,
        says: &["error: WORKFLOW.md:3: checks.done: must be a list of texts, got \"cargo test\""],
        then: Change("WORKFLOW.md", "done: cargo test", "done: [cargo test]"),
    },
    Mistake {
        what: "a sink that there is not",
        files: &[loop_file!("agent: { command: 'true' }\noutput: { emit_to: [phone] }\n")],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:3: output.emit_to: there is no sink \"phone\"",
            "hint: log, or an address such as ",
        ],
        then: Change("WORKFLOW.md", "phone", "log"),
    },
    Mistake {
        what: "a file that is not there",
        files: &[],
        typed: "check nowhere.md",
        exit: 2,
        says: &[
            "error: nowhere.md: there is no such file",
            "hint: name a file that is there; ./WORKFLOW.md is the default",
        ],
        then: Read,
    },
    Mistake {
        what: "nothing to run beside a loop file",
        files: &[loop_file!("agent: { command: 'true' }\n")],
        typed: "run",
        exit: 2,
        says: &["outlast: there is no COMMAND to run and no loop file"],
        then: Paste("outlast run -f WORKFLOW.md", &[0]),
    },
    Mistake {
        what: "more than the operator allows",
        files: &[
            loop_file!("agent: { command: 'true' }\nlimits: { run_timeout: 8h }\n"),
            ("config.toml", "[ceilings]\nrun_timeout = \"4h\"\n"),
        ],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:3: limits.run_timeout: 8h is too much: the operator's ceiling is 4h (",
            "hint: ask for at most 4h, or leave it out to get that",
        ],
        then: Change("WORKFLOW.md", "8h", "4h"),
    },
    Mistake {
        what: "a typo beside an error in the config",
        files: &[
            loop_file!("agent: { command: 'true' }\n"),
            ("config.toml", "[ceilings]\nmax_turn = 3\nmax_cost_usd = \"five\"\n"),
        ],
        typed: "check",
        exit: 2,
        says: &[
            "config.toml:2: ceilings.max_turn: unknown key",
            "hint: did you mean ceilings.max_turns?",
            "config.toml:3: ceilings.max_cost_usd: must be an amount in US dollars, got \"five\"",
        ],
        then: Change("config.toml", "max_turn = 3\nmax_cost_usd = \"five\"", "max_turns = 3"),
    },
    Mistake {
        what: "a variable without its value",
        files: &[],
        typed: "run --env NAME -- true",
        exit: 2,
        says: &["outlast: --env NAME is not NAME=VALUE", "hint: "],
        then: Read,
    },
    Mistake {
        what: "a model for a command that is no agent",
        files: &[],
        typed: "run --model big -- true",
        exit: 2,
        says: &["--model is for an agent that is driven", "hint: --agent KIND names one of "],
        then: Read,
    },
    Mistake {
        what: "an import over a file that is there",
        files: &[("theirs.md", "---\ntracker: { kind: linear }\n---\nhi\n"), ("mine.md", "hi\n")],
        typed: "import symphony theirs.md -o mine.md",
        exit: 2,
        says: &[
            "outlast: mine.md exists",
            "hint: name another file, or move this one out of the way",
        ],
        then: Read,
    },
    Mistake {
        what: "half of the name of an option",
        files: &[],
        typed: "run --turns 5 -- true",
        exit: 2,
        says: &["outlast: unknown option '--turns'", "hint: did you mean --max-turns"],
        then: Read,
    },
    Mistake {
        what: "a verb of another tool",
        files: &[],
        typed: "prune",
        exit: 2,
        says: &["outlast: unknown command 'prune'", "hint: did you mean:", "  outlast gc"],
        then: Paste("outlast gc", &[0]),
    },
    Mistake {
        what: "a verb that no tool here has",
        files: &[],
        typed: "rename a b",
        exit: 2,
        says: &["outlast: unknown command 'rename'", "  outlast run --name NAME COMMAND"],
        then: Paste("outlast run --name NAME COMMAND", &[1]),
    },
    Mistake {
        what: "a schedule that there is not",
        files: &[],
        typed: "schedule run nope",
        exit: 2,
        says: &["outlast: there is no schedule \"nope\""],
        then: Paste("outlast schedule ls", &[0]),
    },
    Mistake {
        what: "a run that there is not",
        files: &[],
        typed: "show nope",
        exit: 2,
        says: &["outlast: there is no run nope"],
        then: Paste("outlast ps -a", &[0]),
    },
    Mistake {
        what: "a tool whose time never ends",
        files: &[loop_file!(
            "agent: { command: 'true' }\ntools: [{ name: look, command: ls, timeout: off }]\n"
        )],
        typed: "check",
        exit: 2,
        says: &[
            "error: WORKFLOW.md:3: tools[0].timeout: must be more than 0: this limit cannot be turned off",
            "hint: of each call; the default is 1m",
        ],
        then: Change("WORKFLOW.md", "timeout: off", "timeout: 2m"),
    },
    Mistake {
        what: "a word of another tool for what happened",
        files: &[],
        typed: "history",
        exit: 2,
        says: &["outlast: unknown command 'history'", "  outlast events @last"],
        // There is no run yet.
        then: Paste("outlast events @last", &[0, 2]),
    },
    Mistake {
        what: "an upgrade before anything is installed",
        files: &[],
        typed: "upgrade",
        exit: 2,
        says: &["outlast: unknown command 'upgrade'", "hint: install the new version first, then:"],
        then: Paste("outlast daemon restart", &[0, 2]),
    },
    Mistake {
        what: "problems of the config and of the file, counted together",
        files: &[
            ("config.toml", "[ceilings]\nmax_turnss = 5\nmax_cost_usd = 'five'\n"),
            loop_file!("agent: { command: 'true' }\nlimits:\n  turn_timeout: soon\n"),
        ],
        typed: "check",
        exit: 2,
        says: &["config.toml:2", "config.toml:3", "error: WORKFLOW.md:4", "outlast: 3 problems"],
        then: Read,
    },
    Mistake {
        what: "no newest runs at all",
        files: &[],
        typed: "ps -n -1",
        exit: 2,
        says: &["outlast: invalid value '-1' for --last <N>: must be 1 or more"],
        then: Read,
    },
    Mistake {
        what: "a delay into the past",
        files: &[],
        typed: "run -d --delay -5m -- true",
        exit: 2,
        says: &["outlast: invalid value '-5m' for --delay <DURATION>: must be more than 0"],
        then: Read,
    },
    Mistake {
        what: "tries of no key",
        files: &[],
        typed: "run -d --tries 3 -- true",
        exit: 2,
        says: &["outlast: --tries needs --parent <RUN> and --key <KEY>"],
        then: Read,
    },
    Mistake {
        what: "a report of the future",
        files: &[],
        typed: "report --since 2130-01-01T00:00:00Z",
        exit: 2,
        says: &[
            "outlast: --since 2130-01-01 ",
            " is in the future",
            "hint: write a time that has passed, or 10m for ten minutes ago",
        ],
        then: Read,
    },
    Mistake {
        what: "JSON of a run that is watched",
        files: &[],
        typed: "run --json -- true",
        exit: 2,
        says: &["--json has no effect on a run that is watched"],
        then: Read,
    },
    Mistake {
        what: "a wait between tries of which there is one",
        files: &[],
        typed: "run -d --backoff 10s -- true",
        exit: 2,
        says: &[
            "outlast: --backoff has no effect without --retry",
            "hint: add --retry 3, or leave out --backoff",
        ],
        then: Read,
    },
];

#[test]
fn typical_mistakes_are_told_and_their_hints_work() {
    assert!(MISTAKES.len() >= 25);
    // Each in a thread of its own: a row that fails does not hide the others.
    let told = MISTAKES.iter().map(|row| (row.what, std::thread::spawn(|| row.is_told())));
    let told: Vec<_> = told.collect();
    let wrong = told.into_iter().filter_map(|(what, row)| row.join().is_err().then_some(what));
    assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&str>::new());
}

impl Mistake {
    /// Makes the files that the person has.
    pub(crate) fn set_up(&self, home: &Home) {
        fs::create_dir(home.scratch().join("repo")).expect("it is ours");
        for (path, content) in self.files {
            let place = self.place(home, path);
            // A script is executable unless that is the mistake.
            if *path == "repo/agent.sh" {
                programs::script(&place, content);
            } else {
                put(&place, content);
            }
        }
    }

    fn is_told(&self) {
        let home = Home::new();
        self.set_up(&home);
        let said = self.run(&home, self.typed, &[self.exit]);
        let mut rest = said.as_str();
        for line in self.says {
            let line = line.replace("HERE", &home.scratch().display().to_string());
            let at = rest.find(&line);
            let at = at.unwrap_or_else(|| panic!("{}: no {line:?} in\n{said}", self.what));
            rest = &rest[at + line.len()..];
        }
        match self.then {
            Paste(line, codes) => {
                let line = line.replace("HERE", &home.scratch().display().to_string());
                let is_told = said.lines().any(|told| command_of(told) == Some(&line));
                assert!(is_told, "{}: {said}", self.what);
                self.shell(&home, &line, codes);
            }
            Change(file, from, to) => {
                let path = self.place(&home, file);
                let content = fs::read_to_string(&path).expect("it was written");
                assert!(content.contains(from), "{}: {content}", self.what);
                put(&path, &content.replacen(from, to, 1));
                let said = self.run(&home, self.typed, &[0]);
                assert!(!said.contains("error: "), "{}: {said}", self.what);
            }
            Read => {}
        }
        assert!(
            !matches!(self.then, Read | Change(..)) || !is_pasteable(&said),
            "{}: {said}",
            self.what
        );
    }

    fn place(&self, home: &Home, path: &str) -> std::path::PathBuf {
        if path == "config.toml" { home.path().join(path) } else { home.scratch().join(path) }
    }

    fn run(&self, home: &Home, typed: &str, codes: &[i32]) -> String {
        self.shell(home, &format!("outlast {typed}"), codes)
    }

    /// What a shell says on standard error to a line in which `outlast` is the program under test.
    fn shell(&self, home: &Home, line: &str, codes: &[i32]) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_outlast"));
        let path = format!(
            "{}:{}",
            program.parent().expect("a directory").display(),
            std::env::var("PATH").unwrap_or_default()
        );
        let mut shell: Command = home.command("sh");
        shell.args(["-c", line]).env("PATH", path).current_dir(home.scratch());
        let output = shell.output().expect("a shell");
        let said = text(&output.stderr);
        let code = output.status.code().unwrap_or(-1);
        assert!(codes.contains(&code), "{}: `{line}` ended with {code}: {said}", self.what);
        said
    }
}

/// A hint that is a command has to be tried.
fn is_pasteable(said: &str) -> bool {
    let starts = ["outlast ", "chmod ", "export "];
    said.lines()
        .filter_map(command_of)
        .any(|hint| starts.iter().any(|start| hint.starts_with(start)) && !hint.ends_with("--help"))
}

/// A line of a hint: behind `hint:`, or below what the command is for.
fn command_of(line: &str) -> Option<&str> {
    line.strip_prefix("hint: ").or_else(|| line.strip_prefix("  "))
}

#[test]
fn a_relative_outlast_home_is_refused_at_once_and_the_hint_is_right() {
    let home = Home::new();
    for verb in [&["ps"][..], &["check"], &["daemon", "status"], &["run", "--", "true"]] {
        let output = home.outlast(verb).env("OUTLAST_HOME", "there").output().expect("it runs");
        let said = text(&output.stderr);
        assert_eq!(
            (output.status.code(), said.as_str()),
            (
                Some(2),
                "outlast: OUTLAST_HOME is there, which is not an absolute path\n\
                 hint: export OUTLAST_HOME=\"$PWD/there\"\n"
            )
        );
    }
    assert!(!home.scratch().join("there").exists());
}

#[test]
fn a_config_that_became_wrong_was_ignored_in_silence_by_what_starts_a_run() {
    let home = Home::new();
    let config = home.path().join("config.toml");
    put(&config, "[ceilings]\nmax_turns = 5\n");
    home.ok(&["run", "-d", "--", "true"]);
    put(&config, "[ceilings]\nmax_turns = 5\nmax_cost_usd = \"five\"\n");
    for verb in [&["run", "-d", "--", "true"][..], &["run", "--", "true"]] {
        let output = home.output(verb);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let start = "warning: config.toml:3: ceilings.max_cost_usd: must be an amount in US dollars, got \"five\"; the settings of ";
        assert!(
            said.contains(start) && said.contains(" still hold\nhint: outlast doctor\n"),
            "{said}"
        );
    }
    assert!(text(&home.output(&["doctor"]).stdout).contains("config.toml:3"));
}

#[test]
fn a_config_that_became_wrong_is_told_by_what_goes_by_it() {
    let home = Home::new();
    let config = home.path().join("config.toml");
    put(&config, "[budgets.day]\nmax_cost_usd = 5\n");
    let id =
        home.ok(&["run", "-d", "--name", "live", "--run-timeout", "1h", "--", "sleep", "1000"]);
    put(&config, "[budgets.day]\nmax_cost_usd = 'five'\n");
    for verb in [&["budgets"][..], &["raise", "live", "--run-timeout", "+1h"], &["resume", "--all"]]
    {
        let output = home.output(verb);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        assert!(said.starts_with("warning: config.toml:2: budgets.day.max_cost_usd: "), "{said}");
        let end = "; the last valid settings hold\nhint: outlast config check\n";
        assert!(said.ends_with(end), "{said}");
    }
    home.ok(&["stop", &id]);
}

#[test]
fn a_config_behind_a_broken_link_counted_as_one_that_was_never_written() {
    let home = Home::new();
    let config = home.path().join("config.toml");
    home.ok(&["run", "-d", "--", "true"]);
    std::os::unix::fs::symlink(home.scratch().join("nowhere"), &config).expect("it is ours");
    let wrong = "config.toml: cannot be read: is a symbolic link that leads nowhere";
    for verb in [&["config", "check"][..], &["config", "show"]] {
        assert!(home.fails(2, verb).contains(wrong), "{verb:?}");
    }
    assert!(home.ok(&["daemon", "status"]).contains("NOT VALID"));
    let output = home.output(&["run", "-d", "--", "true"]);
    assert!(text(&output.stderr).contains(wrong), "the settings that were read still hold");
    home.ok(&["daemon", "stop"]);
    assert!(home.fails(2, &["run", "-d", "--", "true"]).contains(wrong), "nothing was ever read");
    put(&home.scratch().join("nowhere"), "[ceilings]\nmax_turns = 5\n");
    home.ok(&["run", "-d", "--", "true"]);
    fs::remove_file(&config).expect("it is ours");
    fs::create_dir(&config).expect("it is ours");
    for verb in [&["config", "check"][..], &["run", "-d", "--", "true"]] {
        let said = text(&home.output(verb).stderr);
        assert!(said.contains("config.toml: cannot be read: is a directory"), "{verb:?}: {said}");
    }
}

#[test]
fn outlast_alone_in_a_pipe_prints_its_help_where_a_pipe_reads_it() {
    let home = Home::new();
    let output = home.output::<&str>(&[]);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    assert_eq!(text(&output.stdout), text(&home.output(&["--help"]).stdout));
}

#[test]
fn a_worktree_run_failed_for_the_directory_that_its_person_was_in() {
    let home = Home::within(&std::env::temp_dir(), "home");
    let repository = home.scratch().join("repo");
    fs::create_dir(&repository).expect("it is ours");
    git(&repository, &["init", "--quiet"]);
    put(
        &repository.join("WORKFLOW.md"),
        "---\nagent: { command: 'test -e WORKFLOW.md' }\nworkspace: { strategy: worktree }\n---\nhi\n",
    );
    git(&repository, &["add", "."]);
    git(
        &repository,
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first"],
    );
    let id = home.ok(&["run", "-d", "-f", "repo/WORKFLOW.md"]);
    assert_eq!(home.wait(&id), 0);
    put(
        &home.scratch().join("alone.md"),
        "---\nagent: { command: 'true' }\nworkspace: { strategy: worktree }\n---\nhi\n",
    );
    let here = home.scratch().display().to_string();
    let said = home.fails(2, &["run", "-d", "-f", "alone.md"]);
    assert!(
        said.starts_with(&format!("outlast: {here} is not in a git repository\nhint: ")),
        "{said}"
    );
    assert!(home.fails(2, &["check", "alone.md"]).contains("a worktree needs a git repository"));
    assert_eq!(home.json(&["ps", "-a", "--json"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn an_imported_file_says_that_it_cannot_run_here_and_keeps_its_hooks_readable() {
    let home = Home::new();
    let theirs = "---\ntracker: { kind: linear, project_slug: p }\npolling: { interval_ms: 5 }\n\
                  hooks:\n  after_create: |\n    git clone \"$REPO\" .\ncodex: { command: no-such-codex app-server }\n---\nhi\n";
    put(&home.scratch().join("theirs.md"), theirs);
    let output = home.output(&["import", "symphony", "theirs.md", "-o", "mine.md"]);
    let said = text(&output.stderr);
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "wrote mine.md",
            "left out of theirs.md: tracker.kind (line 2), tracker.project_slug (line 2), polling.interval_ms (line 3): \
             runs are started by a person or a trigger; trackers are not read in this version",
            "cannot run here: mine.md:5: agent.command: there is no no-such-codex in PATH",
            "hint: install no-such-codex, or name it by its path",
        ]
    );
    let mine = fs::read_to_string(home.scratch().join("mine.md")).expect("it was written");
    assert!(mine.contains("  after_create: |\n    git clone \"$REPO\" .\n"), "{mine}");
}
