//! What the agent of a live attempt is at, read from its `agent.jsonl` when a client looks, and at no other time.
//!
//! A look reads on from where the last one ended, up to a bound. What cannot be read, or was not, is said: nothing that
//! the attempt's directory holds makes a look wait.

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

use outlast_agents::adapter::{MOST_EVENTS, Now, Spent, Taken, last_spent};
use outlast_engine::{Run, Time};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_wire::api::{Activity, ContextNow, LimitNow, QuestionNow, RetryNow, ToolNow, Usage};
use outlast_wire::plain::plain_text;

use crate::sync::lock;
use crate::view::{rfc3339, usd};
use crate::world::{World, files};

/// So much is read at one look; of more, the end.
const MOST_AT_ONCE: u64 = 16 << 20;
/// A line that is longer is left out.
const MOST_LINE: u64 = 1 << 20;
/// Of so many attempts before this one the spend is added up.
const MOST_BEFORE: u32 = 32;
/// Where the last word on the spend of an ended attempt is looked for.
const END_OF_EVENTS: usize = 256 << 10;
/// Where the model of an ended attempt is looked for.
const START_OF_EVENTS: u64 = 64 << 10;
/// A wall clock that is no further from our line of time is right.
const RIGHT_CLOCK_MS: u64 = 1000;
/// What a list shows of a text, in characters.
const MOST_SHOWN: usize = 200;

/// What is known of one run's live attempt, for the next look.
#[derive(Debug, Default)]
pub(crate) struct AgentWatch(Mutex<Option<Followed>>);

impl AgentWatch {
    /// What the agent is at; `None` unless an attempt of a driven agent is alive. Blocks.
    pub(crate) fn look(&self, run: &Run, dir: &RunDir, world: &World) -> Option<Activity> {
        let mut followed = lock(&self.0);
        let live = run.live().filter(|_| is_driven(run));
        let Some(live) = live else {
            *followed = None;
            return None;
        };
        let step = (live.turn, live.number);
        if followed.as_ref().is_none_or(|it| it.step != step) {
            *followed = Some(Followed::new(step, earlier(dir, step), window_before(dir, step)));
        }
        let followed = followed.as_mut()?;
        let unreadable = followed.read_on(&dir.attempt(step.0, step.1)).err();
        Some(followed.activity(unreadable, world))
    }
}

pub(crate) fn is_driven(run: &Run) -> bool {
    outlast_agents::is_driven(&run.spec.agent, &run.spec.driving)
}

/// How far the events of an attempt have been read, and what they came to.
#[derive(Debug)]
struct Followed {
    step: (u32, u32),
    /// What the earlier attempts at the turn have used.
    earlier: Option<Spent>,
    /// How large the context was in the attempt before it, and of which model.
    window_before: Option<(String, u64)>,
    now: Now,
    /// Which file it is, once there was one.
    file: Option<(u64, u64)>,
    /// Every line before it has been taken.
    offset: u64,
    /// True if the offset is inside of a line that is left out.
    is_inside: bool,
    unread_bytes: u64,
}

impl Followed {
    fn new(step: (u32, u32), earlier: Option<Spent>, window_before: Option<(String, u64)>) -> Self {
        let (now, file, is_inside) = (Now::default(), None, false);
        Self { step, earlier, window_before, now, file, offset: 0, is_inside, unread_bytes: 0 }
    }

    fn read_on(&mut self, dir: &AttemptDir) -> io::Result<()> {
        let file = match files::open_regular(&dir.agent_events()) {
            // The driver makes both of its files at its start.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && self.file.is_none()
                    && !is_there(&dir.transcript()) =>
            {
                return Ok(());
            }
            opened => opened?,
        };
        let metadata = file.metadata()?;
        self.begin(&metadata);
        self.read(file, metadata.len())
    }

    /// A file that was replaced or cut is read anew.
    fn begin(&mut self, metadata: &Metadata) {
        let identity = (metadata.dev(), metadata.ino());
        let is_same = self.file.is_none_or(|known| known == identity);
        if !is_same || metadata.len() < self.offset {
            *self = Self::new(self.step, self.earlier, self.window_before.take());
        }
        self.file = Some(identity);
    }

    fn read(&mut self, mut file: File, length: u64) -> io::Result<()> {
        let last_part = length.saturating_sub(MOST_AT_ONCE);
        if last_part > self.offset {
            self.leave_out(last_part - self.offset);
            self.is_inside = true;
        }
        file.seek(SeekFrom::Start(self.offset))?;
        let mut lines = BufReader::new(file.take(length - self.offset));
        let mut line = Vec::new();
        loop {
            line.clear();
            let count = lines.by_ref().take(MOST_LINE).read_until(b'\n', &mut line)? as u64;
            match line.strip_suffix(b"\n") {
                _ if count == 0 => return Ok(()),
                Some(_) if self.is_inside => {
                    self.leave_out(count);
                    self.is_inside = false;
                }
                Some(whole) => self.take(whole, count),
                None if count == MOST_LINE || self.is_inside => {
                    self.leave_out(count);
                    self.is_inside = true;
                }
                // Its end has not been written yet.
                None => return Ok(()),
            }
        }
    }

    fn take(&mut self, line: &[u8], count: u64) {
        self.offset += count;
        match self.now.take(line) {
            Taken::Event | Taken::Unknown => {}
            Taken::Damaged => {
                self.unread_bytes += count;
                self.now.skip();
            }
        }
    }

    fn leave_out(&mut self, count: u64) {
        self.offset += count;
        self.unread_bytes += count;
        self.now.skip();
    }

    fn activity(&self, unreadable: Option<io::Error>, world: &World) -> Activity {
        if let Some(error) = unreadable {
            let unreadable = Some(format!("agent.jsonl: {error}"));
            return Activity { unreadable, ..Activity::default() };
        }
        let mut now = self.now.clone();
        let is_full = self.offset > MOST_EVENTS;
        if is_full {
            now.skip();
        }
        let unreadable = is_full.then(|| {
            format!("agent.jsonl is full at {} MiB: it has no more tools", MOST_EVENTS >> 20)
        });
        Activity { unreadable, unread_bytes: self.unread_bytes, ..self.shown(&now, world) }
    }

    fn shown(&self, now: &Now, world: &World) -> Activity {
        let at = |ms: u64| rfc3339(ours(world, ms));
        let after =
            |ms: u64, delay_ms: u64| rfc3339(Time(ours(world, ms).0.saturating_add(delay_ms)));
        let limit = now.window.as_ref().and_then(|window| {
            let until = Time(window.until_ms?);
            let limit = LimitNow { why: one_line(&window.text), until: rfc3339(until) };
            (until > world.now()).then_some(limit)
        });
        let known = self.window_before.as_ref();
        let before = known.filter(|(model, _)| now.model.as_ref() == Some(model)).map(|it| it.1);
        Activity {
            model: now.model.as_deref().map(one_line),
            tool: now.tools.last().map(|tool| ToolNow {
                name: one_line(&tool.name),
                about: one_line(&tool.about),
                since: at(tool.since_ms),
            }),
            tools: u32::try_from(now.tools.len()).unwrap_or(u32::MAX),
            background: now.background,
            context: now.context.map(|(used, window)| context(used, window.or(before))),
            turn_usage: together(self.earlier, now.spent).as_ref().map(usage),
            retrying: now.retrying.as_ref().map(|it| RetryNow {
                attempt: it.attempt,
                most: it.most,
                why: one_line(&it.why),
                since: at(it.since_ms),
                until: it.delay_ms.map(|delay_ms| after(it.since_ms, delay_ms)),
            }),
            limit,
            asks: now.asked.first().map(|it| QuestionNow {
                tool: it.question.tool.as_deref().map(one_line),
                text: one_line(&it.question.text),
                since: at(it.since_ms),
            }),
            unreadable: None,
            unread_bytes: 0,
        }
    }
}

/// What earlier attempts at the same turn have used, by their last word. One that cannot be read has used more than
/// is known.
fn earlier(dir: &RunDir, (turn, attempt): (u32, u32)) -> Option<Spent> {
    let first = attempt.saturating_sub(MOST_BEFORE).max(1);
    let unknown = Spent { is_floor: true, ..Spent::default() };
    let beyond = (first > 1).then_some(unknown);
    let spent = (first..attempt).map(|number| {
        match files::read_tail(&dir.attempt(turn, number).agent_events(), END_OF_EVENTS) {
            Ok(bytes) => last_spent(&bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => Some(unknown),
        }
    });
    spent.fold(beyond, together)
}

/// The model of the attempt before this one in the run, and its window: Claude says it only at the end of a turn.
fn window_before(dir: &RunDir, step: (u32, u32)) -> Option<(String, u64)> {
    let names = files::names(&dir.0).ok()?;
    let steps = names.iter().filter_map(|name| AttemptDir::step_of(name.to_str()?));
    let (turn, attempt) = steps.filter(|it| *it < step).max()?;
    let events = dir.attempt(turn, attempt).agent_events();
    let mut start = Vec::new();
    files::open_regular(&events).ok()?.take(START_OF_EVENTS).read_to_end(&mut start).ok()?;
    let end = files::read_tail(&events, END_OF_EVENTS).ok()?;
    let mut now = Now::default();
    for line in start.split(|byte| *byte == b'\n').chain(end.split(|byte| *byte == b'\n')) {
        now.take(line);
    }
    now.model.zip(now.context.and_then(|(_, window)| window))
}

fn together(one: Option<Spent>, other: Option<Spent>) -> Option<Spent> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.and(&other)),
        (one, other) => one.or(other),
    }
}

fn usage(spent: &Spent) -> Usage {
    Usage {
        input_tokens: spent.input_tokens.unwrap_or(0),
        output_tokens: spent.output_tokens.unwrap_or(0),
        cached_tokens: spent.cached_tokens.unwrap_or(0),
        cost_usd: usd(spent.cost_usd_micros.unwrap_or(0)),
        known: !spent.is_floor && spent.cost_usd_micros.is_some(),
        money_known: !spent.is_floor && spent.cost_usd_micros.is_some(),
        tokens_known: !spent.is_floor && spent.input_tokens.is_some(),
        ..Usage::default()
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more digits than a float has")]
fn context(used: u64, window: Option<u64>) -> ContextNow {
    let window = window.filter(|window| *window > 0);
    let fill = window.map(|window| (used as f64 / window as f64).min(1.0));
    ContextNow { used, window, fill }
}

/// When something happened that the driver has dated. A wall clock that is right is taken at its word, so that each look
/// says the same.
fn ours(world: &World, at_ms: u64) -> Time {
    let ours = world.ours(Time(at_ms));
    if ours.0.abs_diff(at_ms) < RIGHT_CLOCK_MS { Time(at_ms) } else { ours }
}

/// Text of the agent's on one line, cut, and without anything that a terminal obeys.
fn one_line(text: &str) -> String {
    let plain = plain_text(text.as_bytes());
    let words = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

fn is_there(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// How long the file is and when it was written to, for a screen that shows it: another answer is news.
pub(crate) fn trace(dir: &AttemptDir) -> Option<(u64, i64, i64)> {
    let metadata = std::fs::symlink_metadata(dir.agent_events()).ok()?;
    Some((metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests;
