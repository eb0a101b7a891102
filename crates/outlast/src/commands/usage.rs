//! `outlast usage`: what a live attempt has used up so far, said by itself.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::{ReportUsage, RunView, Usage as Used};

use crate::args::Usage;
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn usage(world: &World, args: Usage) -> Answer {
    let run = args.run.clone().or_else(|| variable(world, "OUTLAST_RUN_ID"));
    let Some(run) = run else {
        let problem = Problem::refusal("usage", "there is no run to report usage of");
        return Err(problem.hint("name one, or ask from within an attempt"));
    };
    let mut session = Session::new(&world.client);
    let is_ours = variable(world, "OUTLAST_RUN_ID").as_deref() == Some(run.as_str());
    let number = |name: &str| variable(world, name).filter(|_| is_ours)?.parse().ok();
    // An attempt is named, so that a report that comes again is not counted for the next one.
    let (run, turn, attempt) = match (number("OUTLAST_TURN"), number("OUTLAST_ATTEMPT")) {
        (Some(turn), Some(attempt)) => (run, turn, attempt),
        _ => {
            let view: RunView = session.call(&Ask::get(&run_path(&run, ""))).await?;
            (view.id, view.turn, view.attempt)
        }
    };
    let report = ReportUsage {
        turn: Some(turn),
        attempt: Some(attempt),
        input_tokens: args.input,
        output_tokens: args.output,
        cached_tokens: args.cached,
        cost_usd: args.cost,
    };
    let ask = Ask::post(&run_path(&run, "/usage"), &report);
    let used: Used = session.call(&ask).await?;
    if args.json {
        output::print_json(&used)?;
    }
    Ok(0)
}

fn variable(world: &World, name: &str) -> Option<String> {
    world.client.var(name)?.to_str().map(str::to_owned)
}
