//! The way to a sink, by its kind.

use std::time::Duration;

use outlast_wire::codes::Code;
use outlast_workflow::notify::{Sink, Way};

use super::body::Telling;
use super::sink_workers::SinkWorkers;
use super::{Outcome, command, desktop, discord, email, ntfy, other_run, slack, webhook};
use crate::refusal::Refusal;
use crate::world;

/// Tells one thing, within the sink's time. `dir` is where a command runs.
pub(super) async fn send(
    workers: &SinkWorkers,
    sink: &Sink,
    telling: &Telling,
    dir: &str,
) -> Outcome {
    let within = Duration::from_millis(sink.timeout_ms);
    let time = (workers.ground.world.now(), within);
    match &sink.way {
        Way::Command { command } => {
            command::send(&workers.ground, (command, dir), telling, within).await
        }
        Way::Webhook { url, secrets, headers } => {
            webhook::send(&webhook::To { url, secrets, headers }, telling, time).await
        }
        Way::Ntfy { url, topic, token, click } => {
            let to = ntfy::To { url, topic: topic.as_deref(), token: token.as_ref() };
            ntfy::send(&to, click.as_deref(), telling, time).await
        }
        Way::Slack { url } => slack::send(url, telling, time).await,
        Way::Discord { url } => discord::send(url, telling, time).await,
        Way::Email { command, to, from } => {
            let letter =
                email::Letter { to, from: from.as_deref(), now: workers.ground.world.now() };
            email::send(&workers.ground, (command, dir), &letter, telling, within).await
        }
        Way::Desktop => desktop::send(&workers.ground, telling, within).await,
        Way::Run { run } => other_run::send(workers, run, telling, within).await,
    }
}

/// Sends a test to a sink, and says under which id.
pub(super) async fn test(
    workers: &SinkWorkers,
    sink: &Sink,
    dir: &str,
) -> Result<(String, Outcome), Refusal> {
    let bytes: [u8; 6] = world::random()
        .map_err(|error| Refusal::new(Code::Io, format!("there is no randomness: {error}")))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let telling = Telling::test(&format!("test/{digits}"), workers.ground.world.now());
    let outcome = send(workers, sink, &telling, dir).await;
    Ok((telling.id, outcome))
}
