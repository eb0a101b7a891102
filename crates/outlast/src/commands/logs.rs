//! `outlast logs`: what a run has written, byte for byte.

use std::io::IsTerminal;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_client::follow::{Output, Piece, Selection, Until, What};
use outlast_client::session::Session;

use crate::Answer;
use crate::args::{Logs, Stream};
use crate::output::bytes::{self, Target};
use crate::output::colour::Colour;
use crate::printer::{Printer, Timestamps};
use crate::world::World;

pub(crate) async fn logs(world: &World, args: Logs) -> Answer {
    let selection = Selection {
        what: if args.raw { What::Transcript } else { What::Output },
        turn: args.turn,
        attempt: args.attempt,
        stream: args.stream.map(Stream::word),
        since: args.since.map(|since| since.timestamp(&world.now_here()).to_string()),
        tail: args.tail,
        until: if args.follow { Until::RunEnds } else { Until::Now },
    };
    let mut output = Output::new(Session::new(&world.client), &args.run, selection);
    let timestamps = if args.timestamps { Timestamps::EachLine } else { Timestamps::None };
    let mut printer = Printer::new(timestamps);
    let mut borders = Borders::on(world).filter(|_| !args.raw);
    loop {
        let piece = output.next().await?;
        if piece == Piece::End {
            return Ok(0);
        }
        if let Some(border) = borders.as_mut().and_then(|it| it.before(&piece, output.place())) {
            bytes::stream(Target::Stderr, border.into_bytes()).await?;
        }
        let (target, bytes) = printer.render(piece);
        let written = bytes::stream(target, bytes).await?;
        if let Some(borders) = &mut borders {
            borders.wrote(&written);
        }
    }
}

/// Lines between the turns of a loop, for a person at a terminal. They go to standard error: the output stays as it was.
#[derive(Debug)]
struct Borders {
    zone: TimeZone,
    colours: bool,
    /// The turn and the attempt that were shown last.
    place: Option<(u32, u32)>,
    is_mid_line: bool,
}

impl Borders {
    /// Where both streams end at a terminal.
    fn on(world: &World) -> Option<Self> {
        let is_seen = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let zone = TimeZone::system();
        let colours = world.colours();
        is_seen.then_some(Self { zone, colours, place: None, is_mid_line: false })
    }

    /// What stands before a piece: nothing within an attempt, and nothing before the first attempt of a run, which may
    /// be a single command.
    fn before(&mut self, piece: &Piece, place: (u32, u32)) -> Option<String> {
        let Piece::Data { at_ms, .. } = piece else { return None };
        if self.place.replace(place) == Some(place) || place == (1, 1) {
            return None;
        }
        let attempt = if place.1 > 1 { format!(" attempt {}", place.1) } else { String::new() };
        let at = i64::try_from(*at_ms).ok().filter(|ms| *ms > 0);
        let at = at.and_then(|ms| Timestamp::from_millisecond(ms).ok());
        let at = at.map(|at| at.to_zoned(self.zone.clone()).strftime(" · %H:%M:%S").to_string());
        let line = format!("── turn {}{attempt}{} ──", place.0, at.unwrap_or_default());
        let before = if self.is_mid_line { "\n" } else { "" };
        Some(format!("{before}{}\n", Colour::Dim.paint(&line, self.colours)))
    }

    fn wrote(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.is_mid_line = *last != b'\n';
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast_wire::output::Stream as Of;

    use super::*;

    #[test]
    fn turns_are_told_apart_on_a_terminal() {
        let (zone, place) = (TimeZone::UTC, None);
        let mut borders = Borders { zone, colours: false, place, is_mid_line: false };
        let mut before = |place, mid_line: bool| {
            borders.is_mid_line = mid_line;
            let piece =
                Piece::Data { stream: Of::Stdout, at_ms: 1_790_000_000_000, bytes: vec![b'x'] };
            borders.before(&piece, place).unwrap_or_default()
        };
        assert_eq!(before((1, 1), false), "");
        assert_eq!(before((1, 2), false), "── turn 1 attempt 2 · 14:13:20 ──\n");
        assert_eq!(before((1, 2), false), "");
        assert_eq!(before((2, 1), true), "\n── turn 2 · 14:13:20 ──\n");
    }
}
