//! `outlast fork`: another run from the end of a turn.

use outlast_client::ask::{Ask, run_path};
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{Created, ForkRun, RunView};

use super::run::{assignments, merged, vars};
use crate::Answer;
use crate::args::{Fork, Setting};
use crate::output::{self, errors};
use crate::world::World;

pub(crate) async fn fork(world: &World, args: Fork) -> Answer {
    let mut session = Session::new(&world.client);
    let from: RunView = session.call(&Ask::get(&run_path(&args.run, ""))).await?;
    let set = assignments(&args.env)?;
    let asked = ForkRun {
        id: Some(run_id::new()?),
        turn: args.at,
        name: args.name,
        agent: args.agent,
        task: args.task,
        env: vars(merged(&world.client.env, &set)),
        env_set: vars(set),
        ..settings(&args.set)
    };
    let ask = Ask::post(&run_path(&from.id, "/fork"), &asked);
    let created: Created = session.call(&ask).await?;
    errors::warn(&created.warnings);
    if args.json {
        output::print_json(&created)?;
    } else {
        output::print_line(&created.id)?;
    }
    Ok(0)
}

fn settings(set: &[Setting]) -> ForkRun {
    let mut asked = ForkRun::default();
    for setting in set {
        match setting {
            Setting::MaxTurns(turns) => asked.limits.max_turns = Some(*turns),
            Setting::MaxTokens(tokens) => asked.limits.max_tokens = Some(*tokens),
            Setting::MaxCost(micros) => asked.limits.max_cost_usd_micros = Some(*micros),
            Setting::TurnTimeout(ms) => asked.limits.turn_timeout_ms = Some(*ms),
            Setting::RunTimeout(ms) => asked.limits.run_timeout_ms = Some(*ms),
            Setting::Stall(ms) => asked.limits.stall_window_ms = Some(*ms),
            Setting::Model(model) => asked.driving.model = Some(model.clone()),
            Setting::Effort(effort) => asked.driving.effort = Some(effort.clone()),
        }
    }
    asked
}
