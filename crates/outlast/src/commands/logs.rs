//! `outlast logs`: what a run has written, byte for byte.

use outlast_client::follow::{Output, Piece, Selection, Until, What};
use outlast_client::session::Session;

use crate::Answer;
use crate::args::{Logs, Stream};
use crate::output::bytes;
use crate::printer::{Printer, Timestamps};
use crate::world::World;

pub(crate) async fn logs(world: &World, args: Logs) -> Answer {
    let selection = Selection {
        what: if args.raw { What::Transcript } else { What::Output },
        turn: args.turn,
        attempt: args.attempt,
        stream: args.stream.map(Stream::word),
        since: args.since.map(|since| since.timestamp(world.now()).to_string()),
        tail: args.tail,
        until: if args.follow { Until::RunEnds } else { Until::Now },
    };
    let mut output = Output::new(Session::new(&world.client), &args.run, selection);
    let timestamps = if args.timestamps { Timestamps::EachLine } else { Timestamps::None };
    let mut printer = Printer::new(timestamps);
    loop {
        let piece = output.next().await?;
        if piece == Piece::End {
            return Ok(0);
        }
        let (target, bytes) = printer.render(piece);
        bytes::stream(target, bytes).await?;
    }
}
