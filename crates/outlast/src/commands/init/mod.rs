//! `outlast init`: writes a loop file that passes `check` and runs. Never overwrites a file.

mod detect;
mod file;

use std::fs::OpenOptions;
use std::io::{BufRead, ErrorKind, Write};
use std::path::Path;

use outlast_agents::adapter::DRIVEN;
use outlast_client::problem::{Problem, REFUSED};
use outlast_workflow::{DEFAULT_FILE, Overrides};

use self::detect::Found;
use self::file::{Choice, SCRIPT};
use crate::args::Init;
use crate::commands::check::runnable;
use crate::output::bytes::{Target, write_all};
use crate::output::page::shell_words;
use crate::world::World;
use crate::{Answer, loop_file, output, terminal};

pub(crate) fn init(world: &World, args: &Init) -> Answer {
    let here = world.current_dir()?;
    let name = args.file.as_deref().unwrap_or(Path::new(DEFAULT_FILE));
    let path = here.join(name);
    if path.symlink_metadata().is_ok() {
        return Err(exists(name));
    }
    if !args.yes && !terminal::is_there() {
        return Err(Problem::refusal(
            "no_terminal",
            "init asks questions, and there is no terminal",
        )
        .hint("outlast init --yes"));
    }
    let found = detect::look(world, &here);
    let choice = choose(args, &found)?;
    write(&path, name, &file::text(&choice))?;
    output::say(&wrote(name, &choice))?;
    let status = verify(world, &path, &here)?;
    if let Some(first) = before_it_runs(name, &choice, &found) {
        output::tell(&first);
    }
    let shown = shell_words(&[name.display().to_string()]);
    output::tell("next:");
    output::tell(&format!("  outlast check {shown}"));
    output::tell(&format!("  outlast run -d -f {shown} --name work"));
    output::tell("  outlast report");
    Ok(status)
}

fn choose(args: &Init, found: &Found) -> Result<Choice, Problem> {
    let asks = !args.yes;
    let agent = match &args.agent {
        Some(agent) if is_known(agent) => agent.clone(),
        Some(agent) => return Err(unknown(agent)),
        None => ask_agent(asks, found)?,
    };
    let checks = if args.check.is_empty() {
        let usual = found.check.as_deref().unwrap_or_default();
        let check = answer(asks, "Command that says whether it is done (- for none)", usual)?;
        Some(check).filter(|it| !it.is_empty() && it != "-").into_iter().collect()
    } else {
        args.check.clone()
    };
    let usual = match checks.first() {
        Some(check) => format!("Make `{check}` pass."),
        None => "Say in NOTES.md what this directory is for.".to_owned(),
    };
    let task = match &args.task {
        Some(task) => task.clone(),
        None => answer(asks, "Task", &usual)?,
    };
    // A script that was never an agent changes nothing, so it needs no worktree to be tried in.
    let in_worktree = found.repository.is_some() && agent != SCRIPT;
    Ok(Choice { agent, in_worktree, checks, task })
}

fn kinds() -> impl Iterator<Item = &'static str> {
    DRIVEN.iter().filter(|kind| !kind.needs_command).map(|kind| kind.name)
}

fn is_known(agent: &str) -> bool {
    agent == SCRIPT || kinds().any(|kind| kind == agent)
}

fn unknown(agent: &str) -> Problem {
    let message = format!("{agent:?} is no agent that init writes a file for");
    let known: Vec<&str> = kinds().collect();
    let hint = format!("write one of {}, {SCRIPT}", known.join(", "));
    Problem::refusal("unknown_kind", message).hint(hint)
}

/// Asks until the answer is an agent that there is. All of them are listed, also those that are not installed.
fn ask_agent(asks: bool, found: &Found) -> Result<String, Problem> {
    let usual = found.agents.first().copied().unwrap_or(SCRIPT);
    if asks {
        output::tell("agents:");
        for kind in kinds() {
            let is_here = found.agents.contains(&kind);
            output::tell(&format!(
                "  {kind:<10} {}",
                if is_here { "installed" } else { "not installed" }
            ));
        }
        output::tell(&format!("  {SCRIPT:<10} a shell script that you put your own agent into"));
    }
    loop {
        let agent = answer(asks, "Agent", usual)?;
        if is_known(&agent) {
            return Ok(agent);
        }
        if !asks {
            return Err(unknown(&agent));
        }
        output::tell(&format!("{agent:?} is none of these"));
    }
}

/// What has to be done before the file can run, if anything has.
fn before_it_runs(name: &Path, choice: &Choice, found: &Found) -> Option<String> {
    let (file, agent) = (name.display(), &choice.agent);
    if agent == SCRIPT {
        return Some(format!(
            "note: {file} is a placeholder: it runs your task only after you have put the command \
             of your agent where it says agent()"
        ));
    }
    let is_here = found.agents.iter().any(|kind| kind == agent);
    (!is_here)
        .then(|| format!("note: {file} runs only after {agent} is installed and on your PATH"))
}

/// One question; enter takes what is proposed.
fn answer(asks: bool, question: &str, usual: &str) -> Result<String, Problem> {
    if !asks {
        return Ok(usual.to_owned());
    }
    let proposed = if usual.is_empty() { String::new() } else { format!(" [{usual}]") };
    let said = write_all(Target::Stderr, format!("{question}{proposed}: ").as_bytes());
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    match (said, read) {
        (Ok(()), Ok(read)) if read > 0 => {
            let line = line.trim();
            Ok(if line.is_empty() { usual.to_owned() } else { line.to_owned() })
        }
        _ => Err(Problem::refusal("no_answer", "the terminal was closed; nothing was written")
            .hint("outlast init --yes")),
    }
}

fn write(path: &Path, name: &Path, text: &str) -> Result<(), Problem> {
    let cannot = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => exists(name),
        _ => Problem::failure(format_args!("cannot write {}: {error}", name.display())),
    };
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)
}

fn exists(name: &Path) -> Problem {
    let shown = name.display();
    Problem::refusal("file_exists", format_args!("{shown} exists; init overwrites no file"))
        .hint(format_args!("outlast check {}", shell_words(&[shown.to_string()])))
}

fn wrote(name: &Path, choice: &Choice) -> String {
    let place =
        if choice.in_worktree { "in a git worktree of its own" } else { "in this directory" };
    let done = match choice.checks.as_slice() {
        [] => "no check decides whether it is done".to_owned(),
        checks => format!("done when {} passes", checks.join(" and ")),
    };
    format!("wrote {}: agent {}, {place}, {done}", name.display(), choice.agent)
}

/// What `check` would say: a file of ours that is wrong here, because the operator's config forbids something.
fn verify(world: &World, path: &Path, here: &Path) -> Answer {
    let layout = world.client.layout()?;
    let found = loop_file::load(world, layout, path, &Overrides::default());
    match found.and_then(|loaded| runnable(world, here, path, loaded)) {
        Ok(loaded) => {
            // What is wrong with the agent is said in the note below.
            let is_of_agent =
                |it: &&outlast_workflow::Problem| it.key.as_deref() == Some("agent.command");
            for warning in loaded.warnings.iter().filter(|it| !is_of_agent(it)) {
                loop_file::tell("warning", &loop_file::shortened(warning, here));
            }
            Ok(0)
        }
        Err(refused) => {
            for problem in &refused.errors {
                loop_file::tell("error", &loop_file::shortened(problem, here));
            }
            Ok(REFUSED)
        }
    }
}
