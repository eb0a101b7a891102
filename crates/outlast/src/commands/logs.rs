//! `outlast logs`: what a run has written, byte for byte.

use crate::Answer;
use crate::args::{Logs, Stream};
use crate::attached::{self, Pulse};
use crate::follow::{Output, Selection, Until};
use crate::printer::{Printer, Timestamps};
use crate::session::Session;
use crate::world::World;

pub(crate) async fn logs(world: &World, args: Logs) -> Answer {
    let selection = Selection {
        turn: args.turn,
        attempt: args.attempt,
        stream: args.stream.map(Stream::word),
        since: args.since.map(|since| since.timestamp(world.now()).to_string()),
        tail: args.tail,
        until: if args.follow { Until::RunEnds } else { Until::Now },
    };
    let mut output = Output::new(Session::new(world), &args.run, selection);
    let timestamps = if args.timestamps { Timestamps::EachLine } else { Timestamps::None };
    let mut printer = Printer::new(timestamps);
    attached::show(&mut output, &mut printer, &Pulse::default()).await?;
    Ok(0)
}
