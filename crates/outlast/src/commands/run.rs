//! `outlast run`: start a run, and watch it unless it is to be left alone.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use outlast_client::ask::Ask;
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::OsText;
use outlast_wire::api::{
    AskedDriving, AskedLimits, AskedStart, AskedTree, CreateRun, Created, exit_status,
};
use outlast_wire::shim::{EnvVar, Window};

use super::{attach, check};
use crate::args::{Run, RunNow, Start};
use crate::attached::{self, Watched};
use crate::builds;
use crate::duration::as_ms;
use crate::output::time::both;
use crate::output::{errors, waiting};
use crate::progress::{About, Progress};
use crate::signals::Detach;
use crate::world::{self, World};
use crate::{Answer, loop_file, moment, output, stdin, terminal, tty};

/// The window of a terminal that no client looks at yet.
const ANY_WINDOW: Window = Window { rows: 24, cols: 80 };

pub(crate) async fn run(world: &World, args: RunNow) -> Answer {
    let RunNow { run: args, start: when } = args;
    refuse_nothing(world, &args)?;
    if args.json && !args.detach {
        let problem = Problem::refusal("usage", "--json has no effect on a run that is watched");
        return Err(problem.hint("leave out --json, or start the run with -d"));
    }
    if args.detach {
        return start(world, args, when).await;
    }
    if args.tty && !terminal::is_there() {
        let problem = Problem::refusal("no_terminal", "--tty needs a terminal");
        return Err(problem.hint(
            "start it without watching, and attach to it later:\noutlast run -d --tty -- COMMAND",
        ));
    }
    // Listened for before the run exists, so that no moment is left in which ctrl-c says nothing.
    let detach = Detach::listen()?;
    let has_tty = args.tty;
    let mut session = Session::new(&world.client);
    let body = begun(body(world, args)?, world, when)?;
    let created = create(world, &mut session, &body).await?;
    if let Some(status) = of_removed(&created) {
        return Ok(status);
    }
    let watched = Watched::new(&created.id, body.name.as_deref());
    if has_tty {
        return tty::attach(world, session, &watched, detach).await;
    }
    let (watched, progress) = if created.existed {
        attach::join(world, &mut session, &created.id).await?
    } else {
        (watched, Progress::new(world, &created.id, about(&body)))
    };
    attached::attach(world, session, &watched, &progress, detach).await
}

/// What a child that was removed had ended with, and what it said last. Its output is gone.
fn of_removed(created: &Created) -> Option<u8> {
    let child = created.child.as_ref().filter(|child| child.removed)?;
    if let Some(summary) = &child.summary {
        output::tell(&output::printable(summary));
    }
    exit_status(child.state.as_ref()?, child.reason_code.as_ref())
}

/// Something has to say what is run: a file, a command, or an agent that is its own program.
pub(super) fn refuse_nothing(world: &World, args: &Run) -> Result<(), Problem> {
    if let Some(file) = loop_file_as_command(world, args) {
        let problem =
            Problem::refusal("usage", format_args!("{file} is a loop file, not a command"));
        return Err(problem.hint(format_args!("outlast run -f {file}")));
    }
    refuse_without_effect(args)?;
    // Whether an agent needs a command, the daemon knows: it may be declared in the operator's config.
    if !args.command.is_empty() || args.file.is_some() || args.agent.is_some() {
        return Ok(());
    }
    let problem = Problem::refusal("usage", "there is no COMMAND to run and no loop file");
    Err(problem.hint(loop_file::hint(&world.current_dir()?)))
}

/// Of a command without a file, which is tried once: what would never be used looks as if it held.
fn refuse_without_effect(args: &Run) -> Result<(), Problem> {
    if args.file.is_some() || args.agent.is_some() {
        return Ok(());
    }
    if args.backoff.is_some() && args.retry.is_none() {
        let problem = Problem::refusal("usage", "--backoff has no effect without --retry");
        return Err(problem.hint("add --retry 3, or leave out --backoff"));
    }
    Ok(())
}

/// `outlast run WORKFLOW.md`: a file of that kind that cannot be executed is meant to be read.
fn loop_file_as_command(world: &World, args: &Run) -> Option<String> {
    let [word] = args.command.as_slice() else { return None };
    let word = word.to_str().filter(|word| word.ends_with(".md"))?;
    let metadata = std::fs::metadata(world.current_dir().ok()?.join(word)).ok()?;
    let is_text = metadata.is_file() && metadata.permissions().mode() & 0o111 == 0;
    (is_text && args.file.is_none()).then(|| word.to_owned())
}

fn about(body: &CreateRun) -> About {
    let is_command =
        body.workflow.is_none() && body.agent.as_deref().is_none_or(|kind| kind == "exec");
    if is_command { About::COMMAND } else { About::LOOP }
}

async fn start(world: &World, args: Run, when: Start) -> Answer {
    let json = args.json;
    let body = begun(body(world, args)?, world, when)?;
    let created = create(world, &mut Session::new(&world.client), &body).await?;
    if let Some(line) = start_words(&body.start, world.now()).filter(|_| !created.existed) {
        output::tell(&format!("outlast: {line}"));
    }
    if json {
        output::print_json(&created)?;
    } else {
        output::print_line(&created.id)?;
    }
    Ok(0)
}

/// When a run that does not start now will start: `starts in 8h (2026-11-19 03:30:00 CET)`.
fn start_words(start: &AskedStart, now: Timestamp) -> Option<String> {
    let delayed = start
        .delay_ms
        .and_then(|ms| now.checked_add(Duration::from_millis(ms)).ok().map(|at| at.to_string()));
    let at = start.at.clone().or(delayed).map(|at| both(&at, now));
    let after = start.after.as_deref().map(output::printable);
    let ended = if start.after_any { "has ended" } else { "has completed" };
    match (after, at) {
        (Some(after), Some(at)) => {
            Some(format!("starts when run {after} {ended}, not before {at}"))
        }
        (Some(after), None) => Some(format!("starts when run {after} {ended}")),
        (None, Some(at)) => Some(format!("starts {at}")),
        (None, None) => None,
    }
}

async fn create(
    world: &World,
    session: &mut Session<'_>,
    body: &CreateRun,
) -> Result<Created, Problem> {
    let here = world.current_dir()?;
    let created = session.call(&Ask::post("/v1/runs", body)).await;
    let created: Created = created.map_err(|found| loop_file::shortened_all(found, &here))?;
    let prefix = format!("{}/", here.display());
    let warnings: Vec<String> =
        created.warnings.iter().map(|warning| warning.replace(&prefix, "")).collect();
    errors::warn(&warnings);
    if let Some(envelope) = &created.envelope {
        output::tell(&check::wrapped(&output::printable(envelope), world.columns()));
    }
    if let Some(held) = &created.waiting {
        waiting::tell(held, world)?;
    }
    if body.stdin.is_none() && body.tty.is_none() {
        stdin::mention();
    }
    builds::mention(world);
    Ok(created)
}

/// The request with what says when the run starts, and what it reads.
fn begun(body: CreateRun, world: &World, when: Start) -> Result<CreateRun, Problem> {
    let Start { stdin, after, after_any, delay, at } = when;
    let at = at.map(|at| moment::next(&at, &world.now_here())).transpose()?;
    let start = AskedStart {
        delay_ms: delay.map(as_ms),
        at,
        after_any: after_any.is_some(),
        after: after.or(after_any),
    };
    let stdin = if stdin { Some(stdin::read()?) } else { None };
    Ok(CreateRun { start, stdin, ..body })
}

pub(super) fn body(world: &World, args: Run) -> Result<CreateRun, Problem> {
    let tty = args.tty.then(|| world::window().unwrap_or(ANY_WINDOW));
    let workflow = match &args.file {
        Some(file) => Some(loop_file::named(&world.current_dir()?, file)?),
        None => None,
    };
    let limits = limits(&args);
    let set = assignments(&args.env)?;
    let driving = AskedDriving {
        approvals: args.approvals,
        allow: args.allow,
        model: args.model,
        effort: args.effort,
    };
    Ok(CreateRun {
        id: Some(run_id::new()?),
        name: args.name,
        key: args.key,
        task: args.task,
        workflow,
        agent: args.agent,
        workspace: args.workspace.map(|strategy| strategy.word().to_owned()),
        priority: args.priority,
        command: command(args.command)?,
        dir: directory(world, args.dir)?,
        env: vars(merged(&world.client.env, &set)),
        env_set: vars(set),
        umask: world::umask(),
        tty,
        labels: args.label.into_iter().collect(),
        parent: args.parent,
        limits,
        retry: args.retry,
        backoff_ms: args.backoff.map(as_ms),
        notify: args.notify,
        watch: args.watch,
        heartbeat_ms: args.heartbeat.map(as_ms),
        driving,
        start: AskedStart::default(),
        queue: args.queue,
        stdin: None,
        tree: AskedTree {
            max_turns: args.tree.tree_turns,
            max_runs: args.tree.tree_runs,
            max_depth: args.tree.tree_depth,
            max_width: args.tree.tree_width,
            children: args.tree.children,
            tries: args.tree.tries,
            lost: args.tree.lost,
        },
    })
}

fn limits(args: &Run) -> AskedLimits {
    AskedLimits {
        turn_timeout_ms: args.turn_timeout.map(as_ms),
        stall_window_ms: args.stall.map(as_ms),
        run_timeout_ms: args.run_timeout.map(as_ms),
        max_turns: args.max_turns,
        max_tokens: args.max_tokens,
        max_cost_usd_micros: args.max_cost.map(|cost| cost.0),
    }
}

fn command(words: Vec<OsString>) -> Result<Vec<String>, Problem> {
    let word = |word: OsString| {
        word.into_string().map_err(|word| {
            let message = format!("argument {} of the command is not UTF-8", word.display());
            Problem::refusal("not_utf8", message)
                .hint("put it into a script or an environment variable, which take any bytes")
        })
    };
    words.into_iter().map(word).collect()
}

pub(super) fn directory(world: &World, dir: Option<PathBuf>) -> Result<String, Problem> {
    let dir = match dir {
        Some(dir) if dir.is_absolute() => dir,
        Some(dir) => world.current_dir()?.join(dir),
        None => world.current_dir()?,
    };
    let dir = std::path::absolute(&dir).unwrap_or(dir);
    dir.into_os_string().into_string().map_err(|dir| {
        let message = format!("the directory {} is not UTF-8", dir.display());
        Problem::refusal("not_utf8", message).hint("reach it through a symbolic link")
    })
}

pub(super) type Variable = (OsString, OsString);

/// What `--env` says; the last one of a name counts.
pub(super) fn assignments(added: &[OsString]) -> Result<Vec<Variable>, Problem> {
    let added: Vec<Variable> = added.iter().map(assigned).collect::<Result<_, _>>()?;
    Ok(merged(&[], &added))
}

/// Variables, with others on top of them.
pub(super) fn merged(ours: &[Variable], added: &[Variable]) -> Vec<Variable> {
    let mut merged = ours.to_vec();
    for (name, value) in added {
        match merged.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => old.clone_from(value),
            None => merged.push((name.clone(), value.clone())),
        }
    }
    merged
}

/// Without the token of the run that we are called from, which is good for that run's own processes.
pub(super) fn vars(variables: Vec<Variable>) -> Vec<EnvVar> {
    let var = |(name, value)| EnvVar { name: OsText(name), value: OsText(value) };
    variables.into_iter().filter(|(name, _)| name != "OUTLAST_TOKEN").map(var).collect()
}

fn assigned(assignment: &OsString) -> Result<(OsString, OsString), Problem> {
    let bytes = assignment.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at @ 1..) => {
            let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Ok((part(&bytes[..at]), part(&bytes[at + 1..])))
        }
        _ => {
            let message = format!("--env {} is not NAME=VALUE", assignment.display());
            let hint = "the current environment is passed on by itself; --env adds to it";
            Err(Problem::refusal("bad_env", message).hint(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    fn environment(added: &[&str]) -> Result<String, Problem> {
        let ours = [("PATH", "/bin"), ("A", "1")].map(|(name, value)| (name.into(), value.into()));
        let added: Vec<OsString> = added.iter().map(Into::into).collect();
        let lines = vars(merged(&ours, &assignments(&added)?))
            .iter()
            .map(|var| format!("{}={}", var.name.0.display(), var.value.0.display()))
            .collect::<Vec<_>>();
        Ok(lines.join(" "))
    }

    #[test]
    fn env_comes_on_top_and_the_last_one_counts() {
        assert_eq!(environment(&[]), Ok("PATH=/bin A=1".to_owned()));
        assert_eq!(
            environment(&["A=2", "B=x=y", "A=3", "C="]),
            Ok("PATH=/bin A=3 B=x=y C=".to_owned())
        );
    }

    #[test]
    fn env_without_a_name_or_a_value_is_refused() {
        assert!(environment(&["A"]).is_err());
        assert!(environment(&["=1"]).is_err());
    }

    #[test]
    fn a_loop_file_and_what_stands_beside_it_are_sent() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("WORKFLOW.md");
        std::fs::File::create(&file).expect("a file");
        let line = format!(
            "outlast run -f {} --agent claude --workspace worktree --max-turns 9 --max-tokens 1000 \
             --max-cost 0.25 --priority -2 --env A=1 --env A=2",
            file.display()
        );
        let Command::Run(args) =
            Cli::try_parse_from(line.split(' ')).expect("a good command line").command
        else {
            panic!("run")
        };
        let sent = body(&World::new(Vec::new()), args.run).expect("it can be sent");
        assert_eq!(sent.workflow.map(|file| file.path), Some(file.display().to_string()));
        assert_eq!(
            (sent.agent.as_deref(), sent.workspace.as_deref()),
            (Some("claude"), Some("worktree"))
        );
        assert_eq!((sent.priority, sent.retry), (Some(-2), None));
        let AskedLimits { max_turns, max_tokens, max_cost_usd_micros, .. } = sent.limits;
        assert_eq!(
            (max_turns, max_tokens, max_cost_usd_micros),
            (Some(9), Some(1000), Some(250_000))
        );
        assert_eq!((sent.env_set.len(), sent.env.len()), (1, 1));
    }

    #[test]
    fn a_run_that_starts_later_says_when() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        let words = |start: AskedStart| start_words(&start, now);
        assert_eq!(words(AskedStart::default()), None);
        let delayed = AskedStart { delay_ms: Some(3_600_000), ..AskedStart::default() };
        assert_eq!(words(delayed).as_deref(), Some("starts in 1h (2026-11-15 13:00:00 UTC)"));
        let after = AskedStart { after: Some("build".to_owned()), ..AskedStart::default() };
        assert_eq!(words(after).as_deref(), Some("starts when run build has completed"));
    }

    #[test]
    fn an_argument_that_is_not_utf8_is_refused() {
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        assert_eq!(command(vec!["sh".into(), odd]).map_err(|problem| problem.exit()), Err(2));
    }

    #[test]
    fn a_directory_becomes_absolute() {
        let world = World::new(Vec::new());
        let here = world.current_dir().expect("tests run somewhere");
        let expected = here.join("sub").display().to_string();
        assert_eq!(directory(&world, Some("./sub".into())), Ok(expected));
        assert_eq!(directory(&world, Some("/x".into())), Ok("/x".to_owned()));
    }
}
