//! When a live attempt was last heard: its output, or its heartbeat file.
//!
//! Looks at two files, and only when the attempt would otherwise count as silent. Listens for output only while that
//! would change the run's health. Time in which the machine was suspended, or by which the clock was set, does not
//! count as silence.

use std::path::Path;
use std::time::Duration;

use outlast_engine::{Run, Seen, Step, Time};
use outlast_home::layout::AttemptDir;
use tokio::sync::watch;

use crate::mailbox::{Following, Handle};
use crate::world::World;

#[derive(Default)]
pub(crate) struct SilenceProbe {
    of: Option<Observed>,
    listening: Option<Listening>,
}

/// One live attempt.
struct Observed {
    step: Step,
    /// When it was last heard, by the clock that stands while the machine sleeps.
    heard_ms: u64,
    last: Sample,
}

/// What two files said, and when by both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample {
    now: Time,
    awake_ms: u64,
    modified: Option<Time>,
    has_output: bool,
    has_heartbeat: bool,
}

/// The shim says when there is more output, for as long as this is kept.
struct Listening {
    bytes: watch::Receiver<u64>,
    _following: Following,
}

impl SilenceProbe {
    /// Turns to the attempt that is alive, if there is one whose silence matters. True if that is another than
    /// before, and it has been silent for too long already.
    pub(crate) fn attend(&mut self, run: &Run, dir: &AttemptDir, world: &World) -> bool {
        let window_ms = run.silent_after_ms().or_else(|| wants(run));
        let Some((window_ms, live)) = window_ms.zip(run.live()) else {
            self.of = None;
            return false;
        };
        if self.of.as_ref().is_some_and(|observed| observed.step == live.step()) {
            return false;
        }
        let began = live.state.process.map_or_else(|| world.now(), |process| process.at);
        let observed = Observed::begin(live.step(), began, Sample::at(dir, world));
        self.of.insert(observed).quiet_ms(world) >= window_ms
    }

    /// What is known of the attempt that is alive; looks if it would otherwise be silent.
    pub(crate) fn hear(&mut self, run: &Run, dir: &AttemptDir, world: &World) -> Seen {
        let is_new = self.attend(run, dir, world);
        let Some(observed) = &mut self.of else { return Seen::default() };
        let window_ms = run.silent_after_ms().unwrap_or(u64::MAX);
        if !is_new && (run.wants_output() || observed.quiet_ms(world) >= window_ms) {
            observed.take(Sample::at(dir, world));
        }
        let (quiet_ms, has_spoken) = (observed.quiet_ms(world), observed.last.has_output);
        Seen { quiet_ms, has_spoken, unreachable: None }
    }

    /// The attempt has said something in another way than by output.
    pub(crate) fn heard(&mut self, world: &World) {
        if let Some(observed) = &mut self.of {
            observed.heard_ms = world.awake_ms();
        }
    }

    /// When to look again if nothing is heard. An attempt that is silent already is looked at again only if it
    /// has ever touched its heartbeat, of which there is no news.
    pub(crate) fn wait(&self, run: &Run, world: &World) -> Option<Duration> {
        let window_ms = run.silent_after_ms()?;
        let observed = self.of.as_ref()?;
        let awake_ms = world.awake_ms();
        let left_ms = match window_ms.checked_sub(observed.quiet_ms(world)) {
            Some(left_ms) if left_ms > 0 => left_ms,
            _ if observed.last.has_heartbeat => {
                window_ms.saturating_sub(awake_ms.saturating_sub(observed.last.awake_ms)).max(1)
            }
            _ => return None,
        };
        Some(Duration::from_millis(left_ms))
    }

    /// Listens while that is of use, and not otherwise.
    pub(crate) fn listen(&mut self, run: &Run, handle: &Handle, world: &World) {
        let is_silent = || {
            let window_ms = run.silent_after_ms();
            let of = self.of.as_ref();
            window_ms.zip(of).is_some_and(|(window_ms, of)| of.quiet_ms(world) >= window_ms)
        };
        if !run.wants_output() && !is_silent() {
            self.listening = None;
        } else if self.listening.is_none() {
            let mut bytes = handle.output.bytes.subscribe();
            bytes.mark_unchanged();
            self.listening = Some(Listening { bytes, _following: Following::new(handle.clone()) });
        }
    }

    /// Comes back when there is new output; never if no task listens.
    pub(crate) async fn output(&mut self) {
        match &mut self.listening {
            Some(listening) => {
                if listening.bytes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            None => std::future::pending().await,
        }
    }
}

/// A run that had stalled is looked at whether or not silence is called anything.
fn wants(run: &Run) -> Option<u64> {
    run.wants_output().then_some(u64::MAX)
}

impl Observed {
    /// Begins with what the files say: another daemon may have listened before.
    fn begin(step: Step, began: Time, sample: Sample) -> Self {
        let heard_at = sample.modified.unwrap_or(began).max(began).min(sample.now);
        let age_ms = sample.now.ms_since(heard_at);
        Self { step, heard_ms: sample.awake_ms.saturating_sub(age_ms), last: sample }
    }

    fn quiet_ms(&self, world: &World) -> u64 {
        world.awake_ms().saturating_sub(self.heard_ms)
    }

    fn take(&mut self, sample: Sample) {
        let before = std::mem::replace(&mut self.last, sample);
        if let Some(age_ms) = sample.age_ms(&before) {
            self.heard_ms = self.heard_ms.max(sample.awake_ms.saturating_sub(age_ms));
        }
    }
}

impl Sample {
    fn at(dir: &AttemptDir, world: &World) -> Self {
        let output = touched(&dir.output()).filter(|(_, bytes)| *bytes > 0).map(|(at, _)| at);
        let heartbeat = touched(&dir.heartbeat()).map(|(at, _)| at);
        let modified = output.max(heartbeat).map(|at| world.ours(at));
        let (now, awake_ms) = (world.now(), world.awake_ms());
        let (has_output, has_heartbeat) = (output.is_some(), heartbeat.is_some());
        Self { now, awake_ms, modified, has_output, has_heartbeat }
    }

    /// How old the last sign of life is, if there was one since the look before. The wall clock runs ahead
    /// while the machine is suspended, or is set; that is no age.
    fn age_ms(&self, before: &Self) -> Option<u64> {
        let modified = self.modified.filter(|_| self.modified != before.modified)?;
        let awake_ms = self.awake_ms.saturating_sub(before.awake_ms);
        let ahead_ms = self.now.ms_since(before.now).saturating_sub(awake_ms);
        Some(self.now.ms_since(modified).saturating_sub(ahead_ms))
    }
}

/// When the attempt was last heard of, as far as its files tell.
pub(crate) fn last_sign(dir: &AttemptDir, world: &World) -> Option<Time> {
    Sample::at(dir, world).modified
}

/// When a file was last written to, and how long it is. Where a link leads is not the agent's to say.
fn touched(path: &Path) -> Option<(Time, u64)> {
    let file = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let since = file.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((Time(u64::try_from(since.as_millis()).ok()?), file.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Step = Step::Attempt { turn: 1, attempt: 1 };

    fn look(now: u64, awake_ms: u64, modified: Option<u64>) -> Sample {
        let modified = modified.map(Time);
        Sample { now: Time(now), awake_ms, modified, has_output: true, has_heartbeat: false }
    }

    #[test]
    fn silence_counts_from_the_last_sign_of_life() {
        let mut observed = Observed::begin(STEP, Time(900_000), look(1_000_000, 50_000, None));
        assert_eq!(observed.heard_ms, 0, "a hundred seconds ago, and fifty since boot");
        observed.take(look(1_060_000, 110_000, Some(1_040_000)));
        assert_eq!(observed.heard_ms, 90_000, "twenty seconds ago");
        observed.take(look(1_120_000, 170_000, Some(1_040_000)));
        assert_eq!(observed.heard_ms, 90_000, "nothing new");
    }

    #[test]
    fn a_machine_that_slept_was_not_an_attempt_that_was_silent() {
        let mut observed = Observed::begin(STEP, Time(1_000_000), look(1_000_000, 50_000, None));
        let eight_hours = 8 * 3_600_000;
        observed.take(look(1_060_000 + eight_hours, 110_000, None));
        assert_eq!(110_000 - observed.heard_ms, 60_000, "only what it was awake for");
        observed.take(look(1_120_000 + 2 * eight_hours, 170_000, Some(1_070_000 + eight_hours)));
        assert_eq!(170_000 - observed.heard_ms, 50_000, "before its sleep, and ten of sixty after");
    }
}
