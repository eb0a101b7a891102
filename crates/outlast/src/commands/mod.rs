//! One file for each verb.

mod agents;
mod answer;
mod attach;
mod budgets;
mod check;
mod completions;
mod daemon;
mod doctor;
mod events;
mod gc;
mod import;
mod logs;
mod man;
mod pause;
mod ps;
mod recover;
mod resume;
mod rm;
mod run;
mod send;
mod show;
mod sink;
mod stop;
mod top;
mod tree;
mod trigger;
mod usage;
mod version;
mod wait;

use std::process::ExitCode;

use outlast_client::problem::Problem;

use crate::Answer;
use crate::args::{Command, Daemon, DaemonCommand};
use crate::output::errors;
use crate::world::World;

pub(crate) fn dispatch(command: Command, world: &World) -> Result<ExitCode, Problem> {
    match command {
        // The daemon has an event loop of its own.
        Command::Daemon(Daemon { command: DaemonCommand::Run(args) }) => {
            daemon::run::run(world, &args)
        }
        other => dispatch_verb(other, world).map(ExitCode::from),
    }
}

fn dispatch_verb(command: Command, world: &World) -> Answer {
    match command {
        Command::Run(args) => block_on(run::run(world, *args)),
        Command::Ps(args) => block_on(ps::ps(world, args)),
        Command::Top(args) => block_on(top::top(world, args)),
        Command::Show(args) => block_on(show::show(world, args)),
        Command::Tree(args) => block_on(tree::tree(world, args)),
        Command::Logs(args) => block_on(logs::logs(world, args)),
        Command::Attach(args) => block_on(attach::attach(world, args)),
        Command::Wait(args) => block_on(wait::wait(world, args)),
        Command::Stop(args) => block_on(stop::stop(world, args)),
        Command::Send(args) => block_on(send::send(world, args)),
        Command::Answer(args) => block_on(answer::answer(world, args)),
        Command::Pause(args) => block_on(pause::pause(world, args)),
        Command::Resume(args) => block_on(resume::resume(world, args)),
        Command::Usage(args) => block_on(usage::usage(world, args)),
        Command::Budgets(args) => block_on(budgets::budgets(world, args)),
        Command::Events(args) => block_on(events::events(world, args)),
        Command::Rm(args) => block_on(rm::rm(world, args)),
        Command::Gc(args) => block_on(gc::gc(world, args)),
        Command::Recover(args) => block_on(recover::recover(world, args)),
        Command::Sink(args) => block_on(sink::sink(world, args.command)),
        Command::Schedule(args) => block_on(trigger::schedule(world, args.command)),
        Command::Trigger(args) => block_on(trigger::trigger(world, args.command)),
        Command::Daemon(args) => block_on(daemon::daemon(world, args.command)),
        Command::Doctor(args) => block_on(doctor::doctor(world, args)),
        Command::Agents(args) => block_on(agents::agents(world, args)),
        Command::Check(args) => check::check(world, args),
        Command::Import(args) => import::import(world, args),
        Command::Completions(args) => completions::completions(args),
        Command::Man(args) => man::man(args),
        Command::Version(args) => version::version(args),
    }
}

fn block_on(command: impl Future<Output = Answer>) -> Answer {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Problem::failure(format_args!("cannot start: {error}")))?;
    let answer = runtime.block_on(command);
    // A write that no process reads must not keep us from leaving.
    runtime.shutdown_background();
    answer
}

/// Does something for each of several runs; one that fails does not keep the others from theirs.
/// Answers with the first code that is not 0.
async fn each(
    runs: &[String],
    as_told: errors::Errors,
    mut act: impl AsyncFnMut(&str) -> Answer,
) -> Answer {
    let mut first = 0;
    for run in runs {
        let status = match act(run).await {
            Ok(status) => status,
            Err(problem) => {
                errors::report(&problem, as_told);
                problem.exit()
            }
        };
        if first == 0 {
            first = status;
        }
    }
    Ok(first)
}

fn errors_as(json: bool) -> errors::Errors {
    if json { errors::Errors::Json } else { errors::Errors::ForPeople }
}
