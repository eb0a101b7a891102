//! One file for each verb.

mod agents;
mod answer;
mod attach;
mod bare;
mod budgets;
mod call;
mod check;
mod compare;
pub(crate) mod complete;
mod completions;
mod config;
mod daemon;
mod diff;
mod doctor;
mod events;
mod exec;
mod fork;
mod gc;
mod help;
mod import;
mod init;
mod logs;
mod man;
mod mcp;
mod merge;
mod pause;
mod pick;
mod ps;
mod raise;
mod recover;
mod report;
mod rerun;
mod restore;
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
mod web;

use std::process::ExitCode;

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::RunView;

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

/// `outlast` alone, in front of a person who has used it before.
pub(crate) fn alone(world: &World) -> Result<ExitCode, Problem> {
    block_on(bare::bare(world)).map(ExitCode::from)
}

fn dispatch_verb(mut command: Command, world: &World) -> Answer {
    name_runs(&mut command, world)?;
    match command {
        Command::Run(args) => block_on(run::run(world, *args)),
        Command::Ps(args) => block_on(ps::ps(world, args)),
        Command::Top(args) => block_on(top::top(world, args)),
        Command::Web(args) => block_on(web::web(world, args)),
        Command::Report(args) => block_on(report::report(world, args)),
        Command::Show(args) => block_on(show::show(world, args)),
        Command::Tree(args) => block_on(tree::tree(world, args)),
        Command::Diff(args) => block_on(diff::diff(world, args)),
        Command::Logs(args) => block_on(logs::logs(world, args)),
        Command::Attach(args) => block_on(attach::attach(world, args)),
        Command::Wait(args) => block_on(wait::wait(world, args)),
        Command::Stop(args) => block_on(stop::stop(world, args)),
        Command::Send(args) => block_on(send::send(world, args)),
        Command::Answer(args) => block_on(answer::answer(world, args)),
        Command::Pause(args) => block_on(pause::pause(world, args)),
        Command::Resume(args) => block_on(resume::resume(world, args)),
        Command::Raise(args) => block_on(raise::raise(world, args)),
        Command::Rerun(args) => block_on(rerun::rerun(world, args)),
        Command::Restore(args) => block_on(restore::restore(world, args)),
        Command::Fork(args) => block_on(fork::fork(world, *args)),
        Command::Compare(args) => block_on(compare::compare(world, args)),
        Command::Merge(args) => block_on(merge::merge(world, args)),
        Command::Pr(args) => block_on(merge::pr(world, args)),
        Command::Exec(args) => block_on(exec::exec(world, args)),
        Command::Path(args) => block_on(exec::path(world, args)),
        Command::Mcp(args) => block_on(mcp::mcp(world, &args)),
        Command::Call(args) => block_on(call::call(world, args)),
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
        Command::Init(args) => init::init(world, &args),
        Command::Config(args) => config::config(world, &args.command),
        Command::Check(args) => check::check(world, args),
        Command::Import(args) => import::import(world, args),
        Command::Help(args) => help::help(args),
        Command::Completions(args) => completions::completions(args),
        Command::Man(args) => man::man(args),
        Command::Version(args) => version::version(args),
    }
}

/// Replaces `@last` by the id of the run, once: a verb may ask more than once, and a newer run may come meanwhile.
fn name_runs(command: &mut Command, world: &World) -> Result<(), Problem> {
    let mut runs = command.runs();
    runs.retain(|run| run.starts_with('@'));
    if runs.is_empty() {
        return Ok(());
    }
    let named = async {
        let mut session = Session::new(&world.client);
        for run in runs {
            let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
            *run = view.id;
        }
        Ok(0)
    };
    block_on(named).map(|_| ())
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
