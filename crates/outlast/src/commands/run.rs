//! `outlast run`: start a run, and watch it unless it is to be left alone.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use outlast_client::ask::Ask;
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::OsText;
use outlast_wire::api::{AskedDriving, AskedLimits, CreateRun, Created};
use outlast_wire::shim::{EnvVar, Window};

use super::attach;
use crate::args::Run;
use crate::builds;
use crate::duration::as_ms;
use crate::output::errors;
use crate::progress::{About, Progress};
use crate::signals::Detach;
use crate::world::{self, World};
use crate::{Answer, attached, loop_file, output, terminal, tty};

/// The window of a terminal that no client looks at yet.
const ANY_WINDOW: Window = Window { rows: 24, cols: 80 };

pub(crate) async fn run(world: &World, args: Run) -> Answer {
    refuse_nothing(world, &args)?;
    if args.detach {
        return start(world, args).await;
    }
    if args.tty && !terminal::is_there() {
        let problem =
            Problem::refusal("no_terminal", "--tty needs a terminal here to show the run's");
        return Err(problem.hint("start it with -d and attach from a terminal"));
    }
    // Listened for before the run exists, so that no moment is left in which ctrl-c says nothing.
    let detach = Detach::listen()?;
    let has_tty = args.tty;
    let mut session = Session::new(&world.client);
    let body = body(world, args)?;
    let created = create(world, &mut session, &body).await?;
    if has_tty {
        return tty::attach(world, session, &created.id, detach).await;
    }
    let progress = if created.existed {
        attach::join(world, &mut session, &created.id).await?
    } else {
        Progress::new(world, &created.id, about(&body))
    };
    attached::attach(world, session, &created.id, &progress, detach).await
}

/// Something has to say what is run: a file, a command, or an agent that is its own program.
pub(super) fn refuse_nothing(world: &World, args: &Run) -> Result<(), Problem> {
    // Whether an agent needs a command, the daemon knows: it may be declared in the operator's config.
    if !args.command.is_empty() || args.file.is_some() || args.agent.is_some() {
        return Ok(());
    }
    let problem = Problem::refusal("usage", "there is no COMMAND to run and no loop file");
    Err(problem.hint(loop_file::hint(&world.current_dir()?)))
}

fn about(body: &CreateRun) -> About {
    let is_command =
        body.workflow.is_none() && body.agent.as_deref().is_none_or(|kind| kind == "exec");
    if is_command { About::COMMAND } else { About::LOOP }
}

async fn start(world: &World, args: Run) -> Answer {
    let json = args.json;
    let created = create(world, &mut Session::new(&world.client), &body(world, args)?).await?;
    if json {
        output::print_json(&created)?;
    } else {
        output::print_line(&created.id)?;
    }
    Ok(0)
}

async fn create(
    world: &World,
    session: &mut Session<'_>,
    body: &CreateRun,
) -> Result<Created, Problem> {
    let created: Created = session.call(&Ask::post("/v1/runs", body)).await?;
    errors::warn(&created.warnings);
    builds::mention(world);
    Ok(created)
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

type Variable = (OsString, OsString);

/// What `--env` says; the last one of a name counts.
fn assignments(added: &[OsString]) -> Result<Vec<Variable>, Problem> {
    let added: Vec<Variable> = added.iter().map(assigned).collect::<Result<_, _>>()?;
    Ok(merged(&[], &added))
}

/// Variables, with others on top of them.
fn merged(ours: &[Variable], added: &[Variable]) -> Vec<Variable> {
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
fn vars(variables: Vec<Variable>) -> Vec<EnvVar> {
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
        let sent = body(&World::new(Vec::new()), *args).expect("it can be sent");
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
