//! What is asked of the daemon when a key was pressed, and how its answer is put in a line.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{Answer, AnswerRun, OrderRun, RunView, SendMessage, Sent, StopRun};

use super::model::{Event, Order, What};
use super::words;
use crate::output::{called, rest};
use crate::world::World;

/// Gives the order, and says what came of it.
pub(crate) async fn perform(world: &World, order: Order) -> Event {
    match give(world, order).await {
        Ok(text) => Event::Did { text },
        Err(problem) => Event::Refused { text: words(&problem) },
    }
}

/// What the run is now, as the news that it is wanted for.
pub(crate) async fn look(world: &World, run: String, as_news: fn(Box<RunView>) -> Event) -> Event {
    match Session::again(&world.client).call(&Ask::get(&run_path(&run, ""))).await {
        Ok(view) => as_news(Box::new(view)),
        Err(problem) => Event::Refused { text: words(&problem) },
    }
}

async fn give(world: &World, Order { run, what }: Order) -> Result<String, Problem> {
    let mut session = Session::again(&world.client);
    let path = |verb: &str| run_path(&run, verb);
    Ok(match what {
        What::Stop => {
            stop(&mut session, &run, StopRun { now: false, id: Some(run_id::new()?), tree: false })
                .await?
        }
        What::StopNow => {
            stop(&mut session, &run, StopRun { now: true, id: Some(run_id::new()?), tree: false })
                .await?
        }
        What::Pause => {
            let order = OrderRun { id: Some(run_id::new()?), seq: None, tree: false };
            rest::paused(&session.call(&Ask::post(&path("/pause"), &order)).await?)
        }
        What::Resume { seq } => {
            let order = OrderRun { id: Some(run_id::new()?), seq, tree: false };
            let view: RunView = session.call(&Ask::post(&path("/resume"), &order)).await?;
            format!("resumed {}", called(&view))
        }
        What::Answer { answer, seq } => {
            let said = match &answer {
                Answer::Approve => "approved",
                Answer::Deny => "denied",
                Answer::Text(_) => "answered",
            };
            let answer = AnswerRun { id: Some(run_id::new()?), seq, answer };
            let view: RunView = session.call(&Ask::post(&path("/answer"), &answer)).await?;
            format!("{said} {}", called(&view))
        }
        What::Send(text) => {
            let message = SendMessage { id: Some(run_id::new()?), text, from: None };
            let view: RunView = session.call(&Ask::get(&path(""))).await?;
            let _sent: Sent = session.call(&Ask::post(&path("/messages"), &message)).await?;
            format!("sent to {} for its next turn", called(&view))
        }
    })
}

/// Returns when the order is durable; the list shows when it has been carried out.
async fn stop(session: &mut Session<'_>, run: &str, order: StopRun) -> Result<String, Problem> {
    let view: RunView = session.call(&Ask::post(&run_path(run, "/stop"), &order)).await?;
    let run = called(&view);
    Ok(match view.state.has_ended() {
        true if view.survivors.is_empty() => format!("{run} has already ended: {}", view.state),
        true => format!("killing the leftover processes of {run}"),
        false => format!("stopping {run}"),
    })
}
