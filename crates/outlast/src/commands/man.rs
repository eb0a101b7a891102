//! `outlast man`: the manual pages: one per command, made from the help, and one per file, made from the tables of keys.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::roff::{Roff, bold, italic, roman};
use outlast_client::problem::Problem;
use outlast_workflow::{KeyLine, config_keys, workflow_keys};

use crate::Answer;
use crate::args::{self, Man, groups};
use crate::output;

/// Where a watched run's exit code comes from; docs/exit-codes.md has all of it.
const EXIT_STATUS: &[(&str, &str)] = &[
    ("0", "success; of a run: completed"),
    ("1", "failed"),
    ("2", "refused: a wrong command line, a wrong file, or a request that cannot be granted"),
    ("3", "blocked: the run needs a person"),
    ("4", "exhausted: the run reached a limit"),
    ("5", "stopped"),
    ("6", "outcome unknown"),
    ("7", "the daemon cannot be reached"),
    ("124", "timed out (outlast wait --timeout)"),
    ("130", "detached: the run keeps running"),
];

const ENVIRONMENT: &[(&str, &str)] = &[
    (
        "OUTLAST_HOME",
        "an absolute path: everything is kept below it, instead of in the places that FILES lists",
    ),
    ("OUTLAST_NO_AUTOSTART", "1: no command starts a daemon"),
    ("OUTLAST_RUN_ID", "set within a run: its id, also OUTLAST_TURN and OUTLAST_ATTEMPT"),
    ("OUTLAST_TRIGGER_FILE", "set within a run that a trigger started: the file with the item"),
    ("NO_COLOR", "set: no colours"),
    ("XDG_CONFIG_HOME, XDG_STATE_HOME, XDG_RUNTIME_DIR", "the directories that FILES begins with"),
];

const FILES: &[(&str, &str)] = &[
    ("WORKFLOW.md", "a loop file, see outlast-workflow(5)"),
    ("~/.config/outlast/config.toml", "the operator's settings, see outlast-config(5)"),
    ("~/.local/state/outlast", "the journal, the output of runs, workspaces and daemon.log"),
    ("$XDG_RUNTIME_DIR/outlast/daemon.sock", "the daemon's socket"),
];

pub(crate) fn man(asked: Man) -> Answer {
    match asked.dir {
        Some(dir) => write_all(&dir)?,
        None => output::print(&of_command(&args::whole()))?,
    }
    Ok(0)
}

fn write_all(dir: &Path) -> Result<(), Problem> {
    // A directory of the system's manual has one section.
    let files = match dir.file_name().is_some_and(|name| name == "man1") {
        true => dir.with_file_name("man5"),
        false => dir.to_owned(),
    };
    let mut pages: Vec<(PathBuf, String)> = Vec::new();
    commands(&args::whole(), &mut |command| {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        pages.push((dir.join(format!("{name}.1")), of_command(command)));
    });
    pages.push((files.join("outlast-workflow.5"), of_workflow()));
    pages.push((files.join("outlast-config.5"), of_config()));
    for (path, text) in &pages {
        let parent = path.parent().unwrap_or(dir);
        std::fs::create_dir_all(parent).and_then(|()| write(path, text)).map_err(|error| {
            Problem::failure(format_args!("cannot write {}: {error}", path.display()))
        })?;
    }
    let (count, dir) = (pages.len(), dir.display());
    output::print_line(&match files.file_name().is_some_and(|name| name == "man5") {
        true => format!("wrote {} pages to {dir} and 2 to {}", count - 2, files.display()),
        false => format!("wrote {count} pages to {dir}"),
    })
}

#[expect(clippy::disallowed_methods, reason = "a page is made again from the program at any time")]
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::write(path, text)
}

fn commands(at: &Command, visit: &mut dyn FnMut(&Command)) {
    visit(at);
    for verb in at.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        commands(verb, visit);
    }
}

/// The parts of what stands below the options in the help.
#[derive(Default)]
struct Below {
    examples: Vec<String>,
    prose: Vec<String>,
    exit: Vec<String>,
}

impl Below {
    fn of(command: &Command) -> Self {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let mut below = Self::default();
        for paragraph in text.split("\n\n") {
            if let Some(examples) = paragraph.strip_prefix("Examples:\n") {
                below.examples = examples.lines().map(str::to_owned).collect();
            } else if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
                below.exit.push(codes.replace('\n', " "));
            } else if !paragraph.is_empty() {
                below.prose.push(paragraph.replace('\n', " "));
            }
        }
        below
    }
}

fn of_command(command: &Command) -> String {
    let is_program = command.get_name() == "outlast";
    let man = clap_mangen::Man::new(command.clone())
        .source(concat!("outlast ", env!("CARGO_PKG_VERSION")))
        .manual("Outlast");
    let below = Below::of(command);
    let mut page = Vec::new();
    let made = man
        .render_title(&mut page)
        .and_then(|()| man.render_name_section(&mut page))
        .and_then(|()| man.render_synopsis_section(&mut page))
        .and_then(|()| man.render_description_section(&mut page));
    made.expect("a vector takes all");
    let mut roff = Roff::default();
    for paragraph in &below.prose {
        roff.control("PP", []);
        roff.text([roman(paragraph)]);
    }
    roff.to_writer(&mut page).expect("a vector takes all");
    man.render_options_section(&mut page).expect("a vector takes all");
    let mut roff = Roff::default();
    verbs(&mut roff, command, is_program);
    examples(&mut roff, &below.examples);
    if is_program {
        terms(&mut roff, "EXIT STATUS", EXIT_STATUS);
        terms(&mut roff, "ENVIRONMENT", ENVIRONMENT);
        terms(&mut roff, "FILES", FILES);
    } else if !below.exit.is_empty() {
        roff.control("SH", ["EXIT STATUS"]);
        for codes in &below.exit {
            roff.text([roman(codes)]);
        }
    }
    let see = if is_program { "outlast-workflow(5), outlast-config(5)" } else { "outlast(1)" };
    see_also(&mut roff, see);
    roff.to_writer(&mut page).expect("a vector takes all");
    plain(&String::from_utf8_lossy(&page))
}

/// The verbs below a command; those of the program in their groups.
fn verbs(roff: &mut Roff, command: &Command, is_program: bool) {
    let list = |roff: &mut Roff, verbs: Vec<&Command>| {
        for verb in verbs {
            roff.control("TP", []);
            let name = verb.get_display_name().unwrap_or_else(|| verb.get_name());
            roff.text([bold(name), roman("(1)")]);
            roff.text([roman(verb.get_about().map(ToString::to_string).unwrap_or_default())]);
        }
    };
    if !command.has_subcommands() {
        return;
    }
    roff.control("SH", ["COMMANDS"]);
    if !is_program {
        let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        return list(roff, shown.collect());
    }
    for (title, names) in groups::GROUPS {
        let there: Vec<&Command> =
            names.iter().filter_map(|name| command.find_subcommand(name)).collect();
        if !there.is_empty() {
            roff.control("SS", [*title]);
            list(roff, there);
        }
    }
}

/// As they are typed: not filled, not adjusted.
fn examples(roff: &mut Roff, lines: &[String]) {
    if lines.is_empty() {
        return;
    }
    roff.control("SH", ["EXAMPLES"]);
    roff.control("nf", []);
    for line in lines {
        roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    roff.control("fi", []);
}

fn terms(roff: &mut Roff, title: &str, terms: &[(&str, &str)]) {
    roff.control("SH", [title]);
    for (term, about) in terms {
        roff.control("TP", []);
        roff.text([bold(*term)]);
        roff.text([roman(*about)]);
    }
}

fn see_also(roff: &mut Roff, pages: &str) {
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(pages)]);
}

fn of_workflow() -> String {
    let about = "A loop file is Markdown with YAML front matter. The front matter holds the keys below; the rest is the \
                 prompt of every turn, a template that knows the variables task, turn, item and others. A key a.b is \
                 written as b below a. outlast check reads a file without running it, outlast check --explain \
                 prints every setting and where it comes from.";
    let example = [
        "---",
        "agent:",
        "  kind: file",
        "  command: ./agent.sh",
        "limits:",
        "  max_cost_usd: 5",
        "checks:",
        "  done:",
        "    - command: cargo test",
        "---",
        "Make the tests pass.",
    ];
    of_file(
        "outlast-workflow",
        "loop files of Outlast (WORKFLOW.md)",
        about,
        workflow_keys(),
        &example,
    )
}

fn of_config() -> String {
    let about = "config.toml holds the operator's settings: ceilings for what a run may ask for, budgets that runs share, \
                 sinks for notices, and how the daemon works. A key a.b.c is written as c in the table [a.b]; NAME \
                 or * stands for a name of your choice. outlast check reads the file, and outlast doctor says \
                 whether the daemon could.";
    let example = [
        "[budgets.day]",
        "per = \"day\"",
        "max_cost_usd = 50",
        "",
        "[sinks.phone]",
        "url = \"ntfy:my-topic\"",
    ];
    of_file(
        "outlast-config",
        "the operator's settings of Outlast (config.toml)",
        about,
        config_keys(),
        &example,
    )
}

fn of_file(
    name: &str,
    title: &str,
    about: &str,
    keys: impl Iterator<Item = KeyLine>,
    example: &[&str],
) -> String {
    let mut roff = Roff::default();
    let source = concat!("outlast ", env!("CARGO_PKG_VERSION"));
    roff.control("TH", [name, "5", "", source, "Outlast"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("{name} - {title}"))]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(about)]);
    roff.control("SH", ["KEYS"]);
    let mut section = "";
    for KeyLine { path, default, about, words } in keys {
        let first = path.split(['.', '[']).next().unwrap_or(path);
        if first != section {
            roff.control("SS", [first]);
            section = first;
        }
        roff.control("TP", []);
        roff.text([bold(path)]);
        let mut said = vec![roman(about)];
        if !words.is_empty() {
            said.push(roman(format!("; one of {}", words.join(", "))));
        }
        if !default.is_empty() {
            said.extend([roman("; default: "), italic(default)]);
        }
        roff.text(said);
    }
    examples(&mut roff, &example.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
    roff.control("SH", ["FILES"]);
    roff.control("TP", []);
    let (file, about) = if name == "outlast-config" { FILES[1] } else { FILES[0] };
    roff.text([bold(file)]);
    roff.text([roman(about)]);
    see_also(&mut roff, "outlast(1), outlast-check(1)");
    plain(&roff.to_roff())
}

/// Without letters that some formatters do not know.
fn plain(page: &str) -> String {
    page.replace('…', "...").replace('–', "-").replace(['’', '‘'], "'").replace('·', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_not_filled_and_every_page_is_ascii() {
        let whole = args::whole();
        let run = of_command(whole.find_subcommand("run").expect("a verb"));
        let examples = run.split(".SH EXAMPLES\n.nf\n").nth(1).expect("a section of examples");
        assert!(examples.starts_with("# start and watch"), "{examples}");
        assert!(!run.contains("EXTRA") && run.contains(".SH \"EXIT STATUS\""), "{run}");
        commands(&whole, &mut |command| {
            let page = of_command(command);
            assert!(page.is_ascii(), "{}: {page}", command.get_name());
        });
        for page in [of_workflow(), of_config()] {
            assert!(page.is_ascii() && page.contains(".SH KEYS"), "{page}");
        }
    }

    #[test]
    fn the_programs_page_has_the_sections_that_readers_look_for() {
        let page = of_command(&args::whole());
        for title in ["\"EXIT STATUS\"", "ENVIRONMENT", "FILES", "EXAMPLES", "\"SEE ALSO\""] {
            assert!(page.contains(&format!(".SH {title}\n")), "{title}: {page}");
        }
    }
}
