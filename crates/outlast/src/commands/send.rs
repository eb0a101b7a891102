//! `outlast send`: a message for a run: into the turn that runs where the agent can take it, or for the next.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{Reaches, RunView, SendMessage, Sent};
use outlast_wire::codes::Code;
use outlast_wire::words::StateName;

use crate::args::Send;
use crate::output::rest::next_steps;
use crate::world::World;
use crate::{Answer, output, text};

pub(crate) async fn send(world: &World, args: Send) -> Answer {
    let id = match args.id {
        Some(id) => id,
        None => run_id::new()?,
    };
    let message =
        SendMessage { id: Some(id.clone()), text: text::given(args.text)?, from: sender(world) };
    let mut session = Session::new(&world.client);
    // By its id: a name may be another run's by the time that a lost answer is asked for again.
    let view: RunView = session.call(&Ask::get(&run_path(&args.run, ""))).await?;
    let ask = Ask::post(&run_path(&view.id, "/messages"), &message);
    let sent: Sent = session.call(&ask).await.map_err(|it| unsure(it, &id, &view.id))?;
    if args.json {
        output::print_json(&sent)?;
    } else if world.columns().is_some() {
        output::say(&format!("sent to {}", output::called(&view)))?;
        told(&view, sent.reaches);
    } else {
        // A script goes on with the id of the message.
        output::print_line(&sent.message)?;
        told(&view, sent.reaches);
    }
    Ok(0)
}

/// Where the message went, for people. A message does not release a run that is blocked.
fn told(view: &RunView, reaches: Option<Reaches>) {
    if view.state == StateName::Blocked {
        let (run, turn) = (output::called(view), view.turn.saturating_add(1));
        output::tell(&format!("left for turn {turn}; {run} is still blocked"));
        if let Some(step) = next_steps(view).iter().find(|step| !step.contains(" send ")) {
            output::tell_hint(step);
        }
    } else if let Some(reaches) = reaches {
        output::tell(reached(reaches));
    }
}

fn reached(reaches: Reaches) -> &'static str {
    match reaches {
        Reaches::ThisTurn => "delivered to the agent in its current turn",
        Reaches::NextTurn => "left for the next turn",
        Reaches::NextStep => "left for the agent's next step, or for its next turn",
    }
}

/// The message may still be written down later. Under its id it can be sent again and is there once.
fn unsure(problem: Problem, id: &str, run: &str) -> Problem {
    let is_unsure =
        problem.is(Code::DiskFull) || problem.is(Code::TimedOut) || problem.is_unreachable();
    if !is_unsure {
        return problem;
    }
    problem.hint(format_args!(
        "a message with the same id is delivered once:\noutlast send --id {id} {run} 'TEXT'"
    ))
}

/// The run that we are called from, if we are called from one.
fn sender(world: &World) -> Option<String> {
    world.client.var("OUTLAST_RUN_ID")?.to_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_who_it_is() {
        let world = |name: &str, value: &str| World::new(vec![(name.into(), value.into())]);
        assert_eq!(sender(&world("OUTLAST_RUN_ID", "k3m")), Some("k3m".to_owned()));
        assert_eq!(sender(&world("OUTLAST_RUN_ID", "")), None);
        assert_eq!(sender(&world("HOME", "/")), None);
    }
}
