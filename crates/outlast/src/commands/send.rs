//! `outlast send`: a message for a run's next turn.

use outlast_wire::api::{SendMessage, Sent};

use crate::args::Send;
use crate::ask::{Ask, run_path};
use crate::session::Session;
use crate::world::{World, lookup};
use crate::{Answer, output, run_id, text};

pub(crate) async fn send(world: &World, args: Send) -> Answer {
    let message = SendMessage {
        id: Some(run_id::new()?),
        text: text::given(args.text)?,
        from: sender(world),
    };
    let ask = Ask::post(&run_path(&args.run, "/messages"), &message);
    let sent: Sent = Session::new(world).call(&ask).await?;
    if args.json {
        output::print_json(&sent)?;
    } else {
        output::print_line(&sent.message)?;
    }
    Ok(0)
}

/// The run that we are called from, if we are called from one.
fn sender(world: &World) -> Option<String> {
    lookup(&world.env, "OUTLAST_RUN_ID")?.to_str().map(str::to_owned)
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
