//! Pieces of a run's output, as they are printed.

use jiff::Timestamp;
use outlast_client::follow::Piece;
use outlast_wire::output::Stream;

use crate::output::bytes::Target;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Timestamps {
    #[default]
    None,
    EachLine,
}

/// Turns pieces of output into what is printed where.
#[derive(Debug, Default)]
pub(crate) struct Printer {
    timestamps: Timestamps,
    /// Whether standard output and standard error are in the middle of a line.
    mid_line: [bool; 2],
}

const DAMAGED: &str =
    "outlast: the index of this output is damaged; bytes without streams and times\n";

impl Printer {
    pub(crate) fn new(timestamps: Timestamps) -> Self {
        Self { timestamps, ..Self::default() }
    }

    pub(crate) fn render(&mut self, piece: Piece) -> (Target, Vec<u8>) {
        match piece {
            Piece::Data { stream, at_ms, bytes } => {
                let target = target_of(stream);
                match self.timestamps {
                    Timestamps::None => (target, bytes),
                    // When it came is not known.
                    Timestamps::EachLine if at_ms == 0 => (target, bytes),
                    Timestamps::EachLine => (target, self.stamped(target, at_ms, &bytes)),
                }
            }
            Piece::Gap { from, to } => (Target::Stderr, gap_line(from, to).into_bytes()),
            Piece::Damaged => (Target::Stderr, DAMAGED.into()),
            Piece::End => (Target::Stdout, Vec::new()),
        }
    }

    fn stamped(&mut self, target: Target, at_ms: u64, bytes: &[u8]) -> Vec<u8> {
        let stamp = format!("{} ", rfc3339(at_ms));
        let mid_line = &mut self.mid_line[usize::from(target == Target::Stderr)];
        let mut text = Vec::with_capacity(bytes.len() + stamp.len());
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if !*mid_line {
                text.extend_from_slice(stamp.as_bytes());
            }
            text.extend_from_slice(line);
            *mid_line = !line.ends_with(b"\n");
        }
        text
    }
}

fn target_of(stream: Stream) -> Target {
    match stream {
        Stream::Stdout | Stream::Tty => Target::Stdout,
        Stream::Stderr => Target::Stderr,
    }
}

fn gap_line(from: u64, to: u64) -> String {
    format!("[outlast: {} bytes not kept (offset {from} to {to})]\n", to - from)
}

/// With milliseconds always, so that lines line up.
fn rfc3339(at_ms: u64) -> String {
    let time = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    format!("{:.3}", time.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(stream: Stream, text: &str) -> Piece {
        Piece::Data { stream, at_ms: 1_790_000_000_000, bytes: text.as_bytes().to_vec() }
    }

    fn render(printer: &mut Printer, piece: Piece) -> (Target, String) {
        let (target, bytes) = printer.render(piece);
        (target, String::from_utf8(bytes).expect("text"))
    }

    #[test]
    fn output_is_unchanged_and_goes_where_it_came_from() {
        let mut printer = Printer::default();
        let odd = vec![0, 255, b'\r', b'\n'];
        let piece = Piece::Data { stream: Stream::Stderr, at_ms: 0, bytes: odd.clone() };
        assert_eq!(printer.render(piece), (Target::Stderr, odd));
        assert_eq!(render(&mut printer, data(Stream::Tty, "x")), (Target::Stdout, "x".to_owned()));
    }

    #[test]
    fn each_line_is_stamped_once_however_it_is_split() {
        let mut printer = Printer::new(Timestamps::EachLine);
        let mut out = String::new();
        for text in ["one\ntw", "o\n", "\nthree"] {
            out += &render(&mut printer, data(Stream::Stdout, text)).1;
            render(&mut printer, data(Stream::Stderr, "elsewhere"));
        }
        insta::assert_snapshot!(out, @r"
        2026-09-21T14:13:20.000Z one
        2026-09-21T14:13:20.000Z two
        2026-09-21T14:13:20.000Z 
        2026-09-21T14:13:20.000Z three
        ");
    }

    #[test]
    fn a_gap_says_exactly_what_is_missing() {
        let (target, line) = render(&mut Printer::default(), Piece::Gap { from: 100, to: 350 });
        assert_eq!(target, Target::Stderr);
        assert_eq!(line, "[outlast: 250 bytes not kept (offset 100 to 350)]\n");
    }
}
