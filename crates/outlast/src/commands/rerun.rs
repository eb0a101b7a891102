//! `outlast rerun`: start the same run again, as another one.

use std::io::Write;
use std::path::Path;

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{Created, RerunRun, RunView, WorkflowFile};
use outlast_wire::codes::Code;

use super::attach;
use super::run::{assignments, merged, vars};
use crate::args::Rerun;
use crate::output::{called, errors};
use crate::signals::Detach;
use crate::world::World;
use crate::{Answer, attached, loop_file, output, shell, terminal, tty};

pub(crate) async fn rerun(world: &World, args: Rerun) -> Answer {
    let mut session = Session::new(&world.client);
    let view: RunView = session.call(&Ask::get(&run_path(&args.run, ""))).await?;
    if view.tty && !args.detach && !terminal::is_there() {
        let problem = Problem::refusal("no_terminal", "run has a terminal, and there is none here");
        return Err(problem.hint(format_args!("outlast rerun -d {}", args.run)));
    }
    let (command, task) = if args.edit { edited(world, &view)? } else { (None, None) };
    let set = assignments(&args.env)?;
    let asked = RerunRun {
        id: Some(run_id::new()?),
        env: vars(merged(&world.client.env, &set)),
        env_set: vars(set),
        command,
        task,
        workflow: fresh_file(world, &args, &view)?,
    };
    let detach = (!args.detach).then(Detach::listen).transpose()?;
    let ask = Ask::post(&run_path(&view.id, "/rerun"), &asked);
    let created: Created = session.call(&ask).await.map_err(|problem| held(problem, &view))?;
    errors::warn(&created.warnings);
    let Some(detach) = detach else {
        if args.json {
            output::print_json(&created)?;
        } else {
            output::print_line(&created.id)?;
        }
        return Ok(0);
    };
    let (watched, progress) = attach::join(world, &mut session, &created.id).await?;
    if view.tty {
        return tty::attach(world, session, &watched, detach).await;
    }
    attached::attach(world, session, &watched, &progress, detach).await
}

/// The loop file as it is now, if that is wanted.
fn fresh_file(
    world: &World,
    args: &Rerun,
    view: &RunView,
) -> Result<Option<WorkflowFile>, Problem> {
    if !args.fresh_file {
        return Ok(None);
    }
    let Some(file) = &view.workflow else {
        let message = format!("run {} was made of no loop file", called(view));
        return Err(
            Problem::refusal("no_effect", message).hint(format_args!("outlast rerun {}", args.run))
        );
    };
    loop_file::named(&world.current_dir()?, Path::new(&file.path)).map(Some)
}

/// The name is free once the run has ended, and a run that rests does not end by itself.
fn held(problem: Problem, view: &RunView) -> Problem {
    if !problem.is(Code::NameTaken) || view.state.has_ended() {
        return problem;
    }
    let called = output::called(view);
    problem.hint(format_args!("stop it first, then run it again:\noutlast stop {called}"))
}

type Edited = (Option<Vec<String>>, Option<String>);

/// What the person makes of the task, or of the command of a run without one.
fn edited(world: &World, view: &RunView) -> Result<Edited, Problem> {
    let (text, is_task) = match &view.task {
        Some(task) => (task.clone(), true),
        None if view.workflow.is_some() => {
            let message =
                format!("run {} has no task to edit: its file says all of it", called(view));
            return Err(Problem::refusal("no_effect", message).hint(format_args!(
                "edit the file, then:\noutlast rerun --fresh-file {}",
                called(view)
            )));
        }
        None => (shell::quoted(&view.agent.command), false),
    };
    let text = in_editor(world, &text)?;
    if text.trim().is_empty() {
        let message = "the text is empty, so nothing was started";
        return Err(Problem::refusal("empty_text", message));
    }
    if is_task {
        return Ok((None, Some(text.trim_end().to_owned())));
    }
    let words = shell::split(text.trim()).ok_or_else(|| {
        Problem::refusal("bad_command", "a quote in the command is not closed")
            .hint("quote words as a shell does; for more than words: sh -c '…'")
    })?;
    Ok((Some(words), None))
}

fn in_editor(world: &World, text: &str) -> Result<String, Problem> {
    let failed = |error: std::io::Error| {
        Problem::failure(format_args!("cannot edit in a temporary file: {error}"))
    };
    let dir = world.temp_dir();
    let path = dir.join(format!("outlast-rerun-{}.txt", run_id::new()?));
    let mut options = std::fs::OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.write(true).create_new(true).open(&path).map_err(failed)?;
    file.write_all(format!("{text}\n").as_bytes()).map_err(failed)?;
    drop(file);
    let edited = world.edit(&path).and_then(|()| std::fs::read_to_string(&path).map_err(failed));
    drop(std::fs::remove_file(&path));
    edited
}
