//! `outlast raise`: higher limits for a run; an exhausted one goes on where it was.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{self, RaiseRun, RunView};
use outlast_workflow::duration::short;

use super::run::{assignments, merged, vars};
use crate::args::{More, Raise};
use crate::money::Micros;
use crate::output::rest::is_plain_command;
use crate::output::waiting;
use crate::world::World;
use crate::{Answer, loop_file, output};

pub(crate) async fn raise(world: &World, args: Raise) -> Answer {
    let mut session = Session::new(&world.client);
    // By its id: a name may be another run's by the time that a lost answer is asked for again.
    let before: RunView = session.call(&Ask::get(&run_path(&args.run, ""))).await?;
    let order = body(world, &args, before.state.has_ended())?;
    let ask = Ask::post(&run_path(&before.id, "/raise"), &order);
    let after: RunView = session.call(&ask).await?;
    loop_file::mention_wrong_config(world)?;
    if args.json {
        output::print_json(&after)?;
    } else {
        output::print_line(&line(&before, &after))?;
        waiting::tell_if(&after, world)?;
    }
    Ok(0)
}

fn body(world: &World, args: &Raise, has_ended: bool) -> Result<RaiseRun, Problem> {
    let set = assignments(&args.env)?;
    // A run that goes on has its environment, and secrets are not sent where they are not needed.
    let (env, env_set) = match has_ended {
        true => (vars(merged(&world.client.env, &set)), vars(set)),
        false if set.is_empty() => (Vec::new(), Vec::new()),
        false => {
            let message =
                "--env has no effect on a run that goes on: it keeps the environment it has";
            return Err(Problem::refusal("no_effect", message).hint("leave out --env"));
        }
    };
    Ok(RaiseRun {
        id: Some(run_id::new()?),
        max_turns: args.max_turns.map(more),
        max_tokens: args.max_tokens.map(more),
        max_cost_usd_micros: args.max_cost.map(more),
        run_timeout_ms: args.run_timeout.map(more),
        turn_timeout_ms: args.turn_timeout.map(more),
        env,
        env_set,
    })
}

fn more(more: More) -> api::More {
    match more {
        More::To(to) => api::More::To(to),
        More::By(by) => api::More::By(by),
    }
}

/// `raised the limits of bug-42: max turns 30; it was exhausted and runs again`
fn line(before: &RunView, after: &RunView) -> String {
    let called = output::called(after);
    let changed: Vec<String> = after
        .limits
        .iter()
        .filter(|(name, limit)| before.limits.get(*name).is_none_or(|was| was.max != limit.max))
        .map(|(name, limit)| words(name, limit.max))
        .collect();
    let goes_on = match (before.state.has_ended(), after.state.has_ended()) {
        (true, false) if is_plain_command(after) => {
            "; it was exhausted, and its command starts again as a new attempt"
        }
        (true, false) => "; it was exhausted and runs again",
        _ => "",
    };
    format!("raised the limits of {called}: {}{goes_on}", changed.join(", "))
}

/// `max turns 30`, `max cost $10.00`, `run timeout 4h`
fn words(name: &str, max: u64) -> String {
    let spaced = |name: &str| name.replace('_', " ");
    if let Some(name) = name.strip_suffix("_ms") {
        return format!("{} {}", spaced(name), short(max));
    }
    match name.strip_suffix("_usd_micros") {
        Some(name) => format!("{} {}", spaced(name), Micros(max).dollars()),
        None => format!("{} {max}", spaced(name)),
    }
}
