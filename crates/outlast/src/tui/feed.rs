//! The list of runs as the daemon tells it, across the deaths of daemons.

use std::convert::Infallible;
use std::time::Duration;

use outlast_client::ask::Ask;
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_client::sse;
use outlast_wire::api::WatchNews;
use outlast_wire::codes::Code;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::model::Event;
use super::words;
use crate::world::World;

/// Between two tries to find a daemon that was stopped, or cannot be started.
const RETRY: Duration = Duration::from_secs(1);

/// Asks for the list; starts a daemon first where that is allowed.
pub(crate) async fn open(mut session: Session<'_>) -> Result<sse::Stream, Problem> {
    let ask = Ask::get("/v1/watch").accept("text/event-stream");
    match session.open(&ask).await {
        Ok(reply) => Ok(sse::Stream::new(reply)),
        Err(problem) if problem.is(Code::UnknownPath) => {
            Err(problem.hint("the daemon is older than this outlast:\noutlast daemon restart"))
        }
        Err(problem) => Err(problem),
    }
}

/// Tells what happens for as long as it is polled.
pub(crate) async fn follow(
    world: &World,
    mut source: sse::Stream,
    send: mpsc::Sender<Event>,
) -> Infallible {
    loop {
        let why = tell(&mut source, &send).await;
        say(&send, Event::Lost { why }).await;
        source = again(world, &send).await;
    }
}

/// Until there is no more, and says why.
async fn tell(source: &mut sse::Stream, send: &mpsc::Sender<Event>) -> String {
    while let Some(event) = source.next().await {
        let data = match event {
            sse::Event::Data(data) => data,
            sse::Event::Error(why) => return why,
        };
        match serde_json::from_str(&data) {
            Ok(news) => {
                if let Some(event) = as_event(news) {
                    say(send, event).await;
                }
            }
            Err(error) => return format!("what it says cannot be read: {error}"),
        }
    }
    "it went away".to_owned()
}

/// A daemon that was stopped is not started again; a daemon that died is.
async fn again(world: &World, send: &mpsc::Sender<Event>) -> sse::Stream {
    loop {
        match open(Session::again(&world.client)).await {
            Ok(source) => return source,
            Err(problem) => say(send, Event::Lost { why: words(&problem) }).await,
        }
        sleep(RETRY).await;
    }
}

fn as_event(news: WatchNews) -> Option<Event> {
    Some(match news {
        WatchNews::Hello { started_at, .. } => Event::Hello { since: started_at },
        WatchNews::Row { run } => Event::Row(run),
        WatchNews::Listed { truncated } => Event::Listed { is_cut: truncated },
        WatchNews::Gone { run } => Event::Gone { run },
        WatchNews::Other => return None,
    })
}

async fn say(send: &mpsc::Sender<Event>, event: Event) {
    // The screen ends this task when it leaves.
    let _left = send.send(event).await;
}
