//! A run's output, from the first selected byte to the last byte of the run.
//!
//! When the daemon goes away in between, `Output` continues at the exact byte at which the output broke off.

use std::time::Duration;

use hyper::body::Bytes;
use outlast_wire::api::{FRAMES, OutputFrame};
use outlast_wire::output::Stream;
use tokio::time::{Instant, sleep};

use crate::ask::{Ask, run_path};
use crate::connect::RECONNECT;
use crate::connection::Reply;
use crate::frames::Frames;
use crate::problem::Problem;
use crate::session::{self, Session};

const RETRY: Duration = Duration::from_millis(50);

/// Which part of a run's output is read.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    pub what: What,
    pub turn: Option<u32>,
    pub attempt: Option<u32>,
    pub stream: Option<&'static str>,
    pub since: Option<String>,
    pub tail: Option<u64>,
    pub until: Until,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum What {
    #[default]
    Output,
    /// The lines between Outlast and an agent that it drives, as they were.
    Transcript,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Until {
    /// Read the output that is there now.
    #[default]
    Now,
    /// Also read the output that comes until the run ends.
    RunEnds,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    Data {
        stream: Stream,
        at_ms: u64,
        bytes: Vec<u8>,
    },
    Gap {
        from: u64,
        to: u64,
    },
    /// The rest of this attempt's output has neither streams nor times.
    Damaged,
    End,
}

pub struct Output<'w> {
    session: Session<'w>,
    run: String,
    selection: Selection,
    cursor: Cursor,
    source: Option<Source>,
    /// The attempts whose output is no longer there, in words.
    gone: Vec<String>,
    /// Since when the output is broken off; `None` while a daemon answers.
    broken_since: Option<Instant>,
}

struct Source {
    reply: Reply,
    frames: Frames,
}

impl<'w> Output<'w> {
    pub fn new(session: Session<'w>, run: &str, selection: Selection) -> Self {
        let cursor = Cursor::default();
        let (source, gone, broken_since) = (None, Vec::new(), None);
        Self { session, run: run.to_owned(), selection, cursor, source, gone, broken_since }
    }

    pub async fn next(&mut self) -> Result<Piece, Problem> {
        loop {
            let source = match &mut self.source {
                Some(source) => source,
                None => {
                    let reply = self.session.open(&self.ask()).await?;
                    self.source.insert(Source { reply, frames: Frames::default() })
                }
            };
            let frame = source.frames.next().map_err(|error| session::unreadable(&error))?;
            if let Some((OutputFrame::Failed { message }, _)) = frame {
                let hint = "outlast doctor";
                return Err(Problem::refusal("output_unreadable", message).hint(hint));
            }
            if let Some((OutputFrame::Gone { bytes }, _)) = frame {
                self.cursor.gone(bytes).into_iter().for_each(|words| self.gone.push(words));
                continue;
            }
            if let Some((OutputFrame::End, _)) = frame
                && !self.gone.is_empty()
            {
                let gone = std::mem::take(&mut self.gone);
                return Err(match self.selection.what {
                    What::Output => output_gone(&gone),
                    What::Transcript => no_transcript(&gone),
                });
            }
            if let Some((frame, data)) = frame {
                if let Some(piece) = self.cursor.take(frame, data) {
                    self.broken_since = None;
                    return Ok(piece);
                }
            } else if let Some(bytes) = source.more().await {
                // A daemon has answered, if only with known bytes: the daemon was restarted, and the output is not
                // broken.
                self.broken_since = None;
                source.frames.feed(&bytes);
            } else {
                self.source = None;
                self.pause().await?;
            }
        }
    }

    /// The turn and the attempt that the last piece is of.
    pub fn place(&self) -> (u32, u32) {
        self.cursor.current
    }

    /// The pause before the output is asked for again; an error once a daemon has had the time to come back.
    async fn pause(&mut self) -> Result<(), Problem> {
        let since = *self.broken_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= RECONNECT {
            return Err(Problem::unreachable("the output breaks off again and again"));
        }
        sleep(RETRY).await;
        Ok(())
    }

    fn ask(&self) -> Ask {
        let Selection { what, turn, attempt, stream, since, tail, until } = &self.selection;
        let noun = match what {
            What::Output => "/output",
            What::Transcript => "/transcript",
        };
        let mut ask = Ask::get(&run_path(&self.run, noun))
            .accept(FRAMES)
            .query_if("turn", *turn)
            .query_if("attempt", *attempt)
            .query_if("stream", *stream)
            .query_if("offset", self.cursor.offset_in_first());
        if *until == Until::RunEnds {
            ask = ask.query("follow", true);
        }
        // `since` and `tail` select the start, so they are sent only until a byte has come.
        if self.cursor.is_start() {
            ask = ask.query_if("since", since.as_ref()).query_if("tail", *tail);
        }
        ask
    }
}

impl Source {
    /// More bytes; `None` if the stream broke off. A whole stream ends with an `End` frame, so a stream that runs out
    /// without that frame broke off too.
    async fn more(&mut self) -> Option<Bytes> {
        self.reply.more().await?.ok()
    }
}

/// That no output is there does not prove that the attempt printed nothing.
pub fn output_gone(attempts: &[String]) -> Problem {
    let message = format!("the output is gone from the disk: {}", attempts.join(", "));
    Problem::refusal("output_gone", message)
        .hint("the journal is whole, and has what is known of the run:\noutlast events RUN")
}

/// An attempt that has started and has no transcript has lost it, or its driver never began.
fn no_transcript(attempts: &[String]) -> Problem {
    let message = format!("there is no transcript on the disk: {}", attempts.join(", "));
    Problem::refusal("output_gone", message)
        .hint("for what else is known of the attempt:\noutlast show RUN --turn N")
}

/// How far the output has been read. The cursor recognises the bytes that come again after a reconnect.
#[derive(Debug, Default)]
struct Cursor {
    /// Turn, attempt and the offset after the last byte seen, once something was seen.
    seen: Option<(u32, u32, u64)>,
    /// Turn and attempt of the frames that come now.
    current: (u32, u32),
    /// The last attempt whose index was said to be damaged.
    damaged: Option<(u32, u32)>,
    /// The last attempt whose output was said to be gone.
    gone: Option<(u32, u32)>,
}

impl Cursor {
    fn is_start(&self) -> bool {
        self.seen.is_none()
    }

    /// The offset to continue at, if the cursor is in the first attempt. The API takes no offset in a later attempt;
    /// there the cursor skips the bytes that the daemon sends again.
    fn offset_in_first(&self) -> Option<u64> {
        match self.seen {
            Some((1, 1, offset)) => Some(offset),
            _ => None,
        }
    }

    /// What is new in a frame.
    fn take(&mut self, frame: OutputFrame, data: Vec<u8>) -> Option<Piece> {
        match frame {
            OutputFrame::Attempt { turn, attempt } => {
                self.current = (turn, attempt);
                None
            }
            OutputFrame::Data { offset, .. } if data.is_empty() => {
                self.enter(offset);
                None
            }
            OutputFrame::Data { offset, stream, at_ms } => {
                let from = self.advance(offset, offset + data.len() as u64)?;
                let known = usize::try_from(from - offset).expect("within the data");
                let bytes = if known == 0 { data } else { data[known..].to_vec() };
                Some(Piece::Data { stream, at_ms, bytes })
            }
            OutputFrame::Gap { from, to } => {
                let from = self.advance(from, to)?;
                Some(Piece::Gap { from, to })
            }
            // After a reconnect the daemon sends the frame again.
            OutputFrame::Damaged => {
                let is_known = self.damaged.replace(self.current) == Some(self.current);
                (!is_known).then_some(Piece::Damaged)
            }
            OutputFrame::Failed { .. } | OutputFrame::Gone { .. } => None,
            OutputFrame::End => Some(Piece::End),
        }
    }

    /// The words for an attempt whose output is gone; `None` if the words were given before, or the output was read
    /// before it went.
    fn gone(&mut self, bytes: Option<u64>) -> Option<String> {
        let (turn, attempt) = self.current;
        let is_said = self.gone.is_some_and(|said| said >= self.current);
        // The whole output may have been read before it went.
        let is_seen = self.seen.is_some_and(|(turn, attempt, offset)| {
            (turn, attempt) > self.current
                || (turn, attempt) == self.current && bytes.is_none_or(|bytes| offset >= bytes)
        });
        if is_said || is_seen {
            return None;
        }
        self.gone = Some(self.current);
        self.enter(0);
        Some(match bytes {
            Some(bytes) => format!("t{turn}.a{attempt} ({bytes} bytes)"),
            None => format!("t{turn}.a{attempt}"),
        })
    }

    /// The output of this attempt will begin at `offset`.
    fn enter(&mut self, offset: u64) {
        let (turn, attempt) = self.current;
        if self
            .seen
            .is_none_or(|(seen_turn, seen_attempt, _)| (seen_turn, seen_attempt) < self.current)
        {
            self.seen = Some((turn, attempt, offset));
        }
    }

    /// Where in `from..to` the unseen part begins; `None` if there is none.
    fn advance(&mut self, from: u64, to: u64) -> Option<u64> {
        let (turn, attempt) = self.current;
        let known_to = match self.seen {
            Some((seen_turn, seen_attempt, _)) if (seen_turn, seen_attempt) > self.current => {
                return None;
            }
            Some((seen_turn, seen_attempt, offset))
                if (seen_turn, seen_attempt) == self.current =>
            {
                offset
            }
            _ => 0,
        };
        if to <= known_to {
            return None;
        }
        self.seen = Some((turn, attempt, to));
        Some(from.max(known_to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(turn: u32, attempt: u32) -> (OutputFrame, Vec<u8>) {
        (OutputFrame::Attempt { turn, attempt }, Vec::new())
    }

    fn data(offset: u64, text: &str) -> (OutputFrame, Vec<u8>) {
        let frame = OutputFrame::Data { offset, stream: Stream::Stdout, at_ms: 0 };
        (frame, text.as_bytes().to_vec())
    }

    fn read(cursor: &mut Cursor, frames: Vec<(OutputFrame, Vec<u8>)>) -> String {
        let pieces = frames.into_iter().filter_map(|(frame, data)| cursor.take(frame, data));
        pieces
            .map(|piece| match piece {
                Piece::Data { bytes, .. } => String::from_utf8(bytes).expect("text"),
                Piece::Gap { from, to } => format!("[{from}..{to}]"),
                Piece::Damaged => "!".to_owned(),
                Piece::End => "$".to_owned(),
            })
            .collect()
    }

    #[test]
    fn after_a_reconnect_nothing_is_missing_and_nothing_comes_twice() {
        let whole =
            || vec![attempt(1, 1), data(0, "abc"), data(3, "def"), attempt(1, 2), data(0, "ghi")];
        for broken_after in 0..=5 {
            let mut cursor = Cursor::default();
            let mut text = read(&mut cursor, whole().into_iter().take(broken_after).collect());
            text += &read(&mut cursor, whole());
            assert_eq!(text, "abcdefghi", "broken after {broken_after} frames");
        }
    }

    #[test]
    fn a_frame_that_is_cut_elsewhere_the_second_time_is_joined_at_the_byte() {
        let mut cursor = Cursor::default();
        let first = read(&mut cursor, vec![attempt(1, 1), data(0, "abcd")]);
        let second = read(&mut cursor, vec![attempt(1, 1), data(0, "abcdef"), data(6, "g")]);
        assert_eq!(first + &second, "abcdefg");
    }

    #[test]
    fn who_asked_for_the_last_lines_and_lost_the_daemon_before_any_came_goes_on_from_there() {
        let mut cursor = Cursor::default();
        assert_eq!(read(&mut cursor, vec![attempt(1, 1), data(5, "")]), "");
        assert!(!cursor.is_start(), "the last lines are others by now");
        assert_eq!(cursor.offset_in_first(), Some(5));
        assert_eq!(read(&mut cursor, vec![attempt(1, 1), data(5, "fgh")]), "fgh");
        assert_eq!(read(&mut cursor, vec![attempt(1, 2), data(0, ""), data(0, "i")]), "i");
    }

    #[test]
    fn what_is_gone_meanwhile_is_said_from_where_we_were() {
        let mut cursor = Cursor::default();
        read(&mut cursor, vec![attempt(1, 1), data(0, "abcd")]);
        let gap = (OutputFrame::Gap { from: 2, to: 9 }, Vec::new());
        let second = read(&mut cursor, vec![attempt(1, 1), data(0, "ab"), gap, data(9, "j")]);
        assert_eq!(second, "[4..9]j");
    }
}
