//! How often daemons had to be started lately. A daemon that dies as soon as it resumes a run must not resume that
//! run as often as it can be started.
//!
//! Each daemon leaves this file for the next. A file that cannot be read counts as a crash loop that has just begun.

use std::io;
use std::path::Path;

use outlast_engine::Time;
use serde::{Deserialize, Serialize};

use crate::world::files::{self, Lasting};

/// So long a start after an unasked end is remembered.
pub(crate) const WINDOW_MS: u64 = 120_000;
const FIRST_BACKOFF_MS: u64 = 30_000;
const LONGEST_BACKOFF_MS: u64 = 600_000;
/// The most starts that are remembered; far more than make a storm.
const MOST: usize = 64;

/// Nothing that we wrote is as long as this.
const MOST_BYTES: usize = 64 << 10;

/// What one daemon leaves for the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Starts {
    /// Starts after an unasked end, the latest last.
    unclean_ms: Vec<u64>,
    #[serde(rename = "hold")]
    backoff: Option<Backoff>,
}

/// Nothing is started by itself before this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Backoff {
    pub(crate) until_ms: u64,
    pub(crate) delay_ms: u64,
}

/// How the daemon before this one ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By an order, or there was none.
    Asked,
    Unasked,
}

#[derive(Debug)]
pub(crate) enum Known {
    Starts(Starts),
    /// What is there cannot be read, and why.
    Unreadable(String),
}

pub(crate) fn read(path: &Path) -> Known {
    let bytes = match files::read_regular(path, MOST_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Known::Starts(Starts::default());
        }
        Err(error) => return Known::Unreadable(error.to_string()),
    };
    match serde_json::from_slice(&bytes) {
        Ok(starts) => Known::Starts(starts),
        Err(error) => Known::Unreadable(error.to_string()),
    }
}

pub(crate) fn write(path: &Path, starts: &Starts) -> io::Result<()> {
    let json = serde_json::to_vec(starts).map_err(io::Error::other)?;
    files::write_whole(path, &json, Lasting::Power)
}

impl Known {
    /// What is known once another daemon has started. `most` unclean starts are borne; `None` is any number.
    pub(crate) fn and_now(self, ended: Ended, most: Option<usize>, now: Time) -> Starts {
        match (self, ended) {
            (Self::Starts(starts), _) => starts.and_now(ended, most, now),
            (Self::Unreadable(_), Ended::Asked) => Starts::default(),
            (Self::Unreadable(_), Ended::Unasked) => Starts {
                unclean_ms: vec![now.0],
                backoff: most.map(|_| Backoff::from(now, FIRST_BACKOFF_MS)),
            },
        }
    }
}

impl Starts {
    fn and_now(mut self, ended: Ended, most: Option<usize>, now: Time) -> Self {
        if ended == Ended::Asked {
            return Self::default();
        }
        // One from the future was stamped by a clock that has been set back since.
        self.unclean_ms.iter_mut().for_each(|at| *at = (*at).min(now.0));
        self.unclean_ms.retain(|at| now.0 - at < WINDOW_MS);
        self.unclean_ms.push(now.0);
        let surplus = self.unclean_ms.len().saturating_sub(MOST);
        self.unclean_ms.drain(..surplus);
        let last = self.backoff.filter(|backoff| backoff.goes_on(now));
        self.backoff = match (last, most) {
            (_, None) => None,
            (Some(last), Some(_)) => {
                Some(Backoff::from(now, last.delay_ms.saturating_mul(2).min(LONGEST_BACKOFF_MS)))
            }
            (None, Some(most)) if self.unclean_ms.len() > most => {
                Some(Backoff::from(now, FIRST_BACKOFF_MS))
            }
            (None, Some(_)) => None,
        };
        self
    }

    pub(crate) fn backoff(&self) -> Option<Backoff> {
        self.backoff
    }

    /// How many daemons have died lately.
    pub(crate) fn count(&self) -> usize {
        self.unclean_ms.len()
    }
}

impl Backoff {
    fn from(now: Time, delay_ms: u64) -> Self {
        Self { until_ms: now.0.saturating_add(delay_ms), delay_ms }
    }

    /// A daemon that dies as soon as it may start something again is the same storm.
    fn goes_on(self, now: Time) -> bool {
        now.0 < self.until_ms.saturating_add(WINDOW_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST_BORNE: Option<usize> = Some(5);

    /// One daemon after the other, each so long after the last; the delays they were held for.
    fn delays(starts: &mut Starts, pauses_s: &[u64], now: &mut u64) -> Vec<u64> {
        let mut delays = Vec::new();
        for pause in pauses_s {
            *now += pause * 1000;
            let known = Known::Starts(std::mem::take(starts));
            *starts = known.and_now(Ended::Unasked, MOST_BORNE, Time(*now));
            delays.push(starts.backoff.map_or(0, |backoff| backoff.delay_ms / 1000));
        }
        delays
    }

    #[test]
    fn more_than_five_deaths_in_two_minutes_hold_for_longer_and_longer() {
        let (mut starts, mut now) = (Starts::default(), 1_000_000);
        let seen = delays(&mut starts, &[1; 12], &mut now);
        assert_eq!(seen, [0, 0, 0, 0, 0, 30, 60, 120, 240, 480, 600, 600]);
        assert_eq!(starts.backoff.unwrap().until_ms, now + 600_000);
    }

    #[test]
    fn a_daemon_that_dies_as_soon_as_the_hold_is_over_does_not_begin_anew() {
        let (mut starts, mut now) = (Starts::default(), 1_000_000);
        delays(&mut starts, &[1; 6], &mut now);
        assert_eq!(delays(&mut starts, &[31, 61, 121, 241], &mut now), [60, 120, 240, 480]);
        assert_eq!(delays(&mut starts, &[480 + 119], &mut now), [600]);
    }

    #[test]
    fn a_daemon_that_lives_on_ends_the_storm_and_so_does_a_person() {
        let (mut starts, mut now) = (Starts::default(), 1_000_000);
        delays(&mut starts, &[1; 7], &mut now);
        assert_eq!(delays(&mut starts.clone(), &[60 + 120], &mut now.clone()), [0]);
        let asked = Known::Starts(starts).and_now(Ended::Asked, MOST_BORNE, Time(now));
        assert_eq!(asked, Starts::default());
    }

    #[test]
    fn a_clock_that_is_set_back_forgets_no_death() {
        let (mut starts, mut now) = (Starts::default(), 9_000_000);
        delays(&mut starts, &[1; 5], &mut now);
        now = 1_000_000;
        assert_eq!(delays(&mut starts, &[0, 1], &mut now), [30, 60]);
    }

    #[test]
    fn what_cannot_be_read_is_a_storm_that_has_just_begun() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("starts.json");
        let backoff = |ended| read(&path).and_now(ended, MOST_BORNE, Time(7)).backoff;
        assert_eq!(backoff(Ended::Unasked), None, "there is nothing to read");
        #[expect(clippy::disallowed_methods, reason = "a test damages its own file")]
        std::fs::write(&path, b"{\"unclean_ms\":[1").unwrap();
        assert_eq!(backoff(Ended::Unasked), Some(Backoff { until_ms: 30_007, delay_ms: 30_000 }));
        assert_eq!(backoff(Ended::Asked), None, "a person has seen to it");
        let (starts, mut now) = (Starts::default(), 5);
        let mut starts = starts;
        delays(&mut starts, &[1; 7], &mut now);
        write(&path, &starts).unwrap();
        let Known::Starts(again) = read(&path) else { panic!("it was just written") };
        assert_eq!(again, starts);
    }

    #[test]
    fn an_operator_who_bears_any_number_is_never_held() {
        let mut starts = Starts::default();
        for now in 0..50 {
            starts = Known::Starts(starts).and_now(Ended::Unasked, None, Time(now));
        }
        assert_eq!((starts.backoff, starts.count()), (None, 50));
    }
}
