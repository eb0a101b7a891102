//! Watches and the heartbeat: which of the lines that match are told and when, and how often new output is.
//!
//! Decides by what has been told before and by the time. Looks at no output: the daemon does, and brings what it has
//! found, and is told how long to hold it back.

use crate::{Run, Time};

/// A watch tells at most once in this time.
pub const WINDOW_MS: u64 = 15_000;

/// After so many tellings in a row that left lines out, a watch looks no more.
pub const STRIKES: u32 = 3;

/// And after so many tellings in all.
pub const TELLINGS: u32 = 8;

/// One telling has so many lines at most, and all of them together so many characters.
pub const MOST_LINES: usize = 20;
pub const MOST_CHARS: usize = 2000;

/// A heartbeat is not told more often than this.
pub const SHORTEST_HEARTBEAT_MS: u64 = 1000;

/// What has been told of one watch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    pub(crate) tellings: u32,
    /// Tellings in a row that left lines out.
    pub(crate) strikes: u32,
    pub(crate) told_at: Option<Time>,
    pub(crate) offset: u64,
    pub(crate) suppressed: u64,
    /// True once it looks no more.
    pub is_disabled: bool,
}

impl Watch {
    /// Up to where in the current attempt's output everything has been told.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How long what matches now has to be held back.
    pub fn wait_ms(&self, now: Time) -> u64 {
        self.told_at.map_or(0, |at| left_ms(at, WINDOW_MS, now))
    }

    pub(crate) fn tell(&mut self, at: Time, offset: u64, suppressed: u64) {
        self.tellings += 1;
        self.strikes = if suppressed > 0 { self.strikes + 1 } else { 0 };
        self.told_at = Some(at);
        self.offset = offset;
        self.suppressed += suppressed;
    }

    /// Why it has told enough, if it has.
    pub(crate) fn has_enough(&self) -> Option<String> {
        if self.is_disabled {
            None
        } else if self.strikes >= STRIKES {
            Some(format!("{STRIKES} times in a row more lines matched than can be told"))
        } else if self.tellings >= TELLINGS {
            Some(format!("it has told {TELLINGS} times"))
        } else {
            None
        }
    }
}

/// Lines that a watch has found and no sink has been told of; never more than one telling takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// The watch's place among the run's, from 0.
    pub watch: u32,
    lines: Vec<String>,
    offset: u64,
    suppressed: u64,
}

impl Matched {
    pub fn new(watch: u32) -> Self {
        Self { watch, lines: Vec::new(), offset: 0, suppressed: 0 }
    }

    /// One more, which ends at this byte of the output. The oldest give way to the newest.
    pub fn add(&mut self, line: &str, offset: u64) {
        self.lines.push(cut(line));
        self.offset = self.offset.max(offset);
        while self.lines.len() > MOST_LINES || self.chars() > MOST_CHARS {
            self.lines.remove(0);
            self.suppressed += 1;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Where the last of them ends.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// How many there were that found no room.
    pub fn suppressed(&self) -> u64 {
        self.suppressed
    }

    fn chars(&self) -> usize {
        self.lines.iter().map(|line| line.chars().count()).sum()
    }
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(MOST_CHARS) {
        Some(_) => line.chars().take(MOST_CHARS - 1).chain(['…']).collect(),
        None => line.to_owned(),
    }
}

/// What has been told of new output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Heartbeat {
    pub(crate) told_at: Option<Time>,
    /// Of the current attempt.
    pub(crate) bytes: u64,
}

impl Run {
    /// How long until it is told that the live attempt has written so much; `None` if no sink wants to hear
    /// of it, or has heard of it already.
    pub fn heartbeat_in_ms(&self, output_bytes: u64, now: Time) -> Option<u64> {
        let every_ms = self.spec.heartbeat_ms?;
        self.live()?;
        let last = self.heartbeat.told_at.or(self.started_at).unwrap_or(self.since);
        (output_bytes > self.heartbeat.bytes).then(|| left_ms(last, every_ms, now))
    }

    /// The watch, if it is there and still looks.
    pub(crate) fn looking(&self, watch: u32) -> Option<&Watch> {
        let watch = self.watches.get(usize::try_from(watch).ok()?)?;
        (!watch.is_disabled).then_some(watch)
    }

    pub(crate) fn watch_mut(&mut self, watch: u32) -> Option<&mut Watch> {
        self.watches.get_mut(usize::try_from(watch).ok()?)
    }

    /// True if the daemon looks at the output of this run's attempts.
    pub fn is_watched(&self) -> bool {
        self.spec.heartbeat_ms.is_some() || self.watches.iter().any(|watch| !watch.is_disabled)
    }
}

/// What is left of a time that began then. A clock that was set back does not make it longer.
fn left_ms(since: Time, length_ms: u64, now: Time) -> u64 {
    if now < since { 0 } else { length_ms.saturating_sub(now.ms_since(since)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_are_told_and_the_others_counted() {
        let mut matched = Matched::new(0);
        for number in 1..=25 {
            matched.add(&format!("line {number}"), number * 10);
        }
        assert_eq!((matched.lines().len(), matched.suppressed()), (MOST_LINES, 5));
        assert_eq!((matched.lines()[0].as_str(), matched.offset()), ("line 6", 250));
    }

    #[test]
    fn long_lines_leave_less_room_and_one_that_is_too_long_is_cut() {
        let mut matched = Matched::new(0);
        matched.add(&"a".repeat(900), 900);
        matched.add(&"ö".repeat(900), 2700);
        assert_eq!((matched.lines().len(), matched.suppressed()), (2, 0));
        matched.add(&"c".repeat(900), 3600);
        assert_eq!((matched.lines().len(), matched.suppressed()), (2, 1));
        matched.add(&"d".repeat(5000), 8600);
        assert_eq!((matched.lines().len(), matched.suppressed()), (1, 3));
        assert_eq!(matched.lines()[0].chars().count(), MOST_CHARS);
        assert!(matched.lines()[0].ends_with('…'));
    }

    #[test]
    fn a_clock_that_was_set_back_holds_nothing_back_for_longer() {
        let watch = Watch { told_at: Some(Time(100_000)), ..Watch::default() };
        assert_eq!(watch.wait_ms(Time(100_000)), WINDOW_MS);
        assert_eq!(watch.wait_ms(Time(101_000)), WINDOW_MS - 1000);
        assert_eq!(watch.wait_ms(Time(115_000)), 0);
        assert_eq!(watch.wait_ms(Time(5000)), 0);
    }
}
