//! The daemon's look at the output has found something: lines that match, or that there is more.
//!
//! What comes too early is not kept here; it is brought again.

use crate::handle::Draft;
use crate::watch::Matched;
use crate::{Context, Fact, Run, Time};

/// The longest part of a pattern that is said again.
const LONGEST_PATTERN: usize = 200;

pub(super) fn lines(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    matched: &Matched,
    context: &Context,
) {
    let run = draft.run();
    let is_live = run.live().is_some_and(|live| live.is(turn, attempt));
    let is_time = run.looking(matched.watch).is_some_and(|it| it.wait_ms(context.now) == 0);
    if is_live && is_time {
        tell(draft, (turn, attempt), matched, context.now);
    }
}

/// The attempt is about to end: what was held back is told now or never.
pub(super) fn at_end(draft: &mut Draft, step: (u32, u32), matched: &[Matched], at: Time) {
    for one in matched {
        tell(draft, step, one, at);
    }
}

fn tell(draft: &mut Draft, (turn, attempt): (u32, u32), matched: &Matched, at: Time) {
    if !is_news(draft.run(), matched) {
        return;
    }
    let watch = matched.watch;
    let told = Fact::OutputMatched {
        turn,
        attempt,
        watch,
        lines: matched.lines().to_vec(),
        offset: matched.offset(),
        suppressed: matched.suppressed(),
    };
    draft.push(at, told);
    if let Some(disabled) = enough(draft.run(), watch) {
        draft.push(at, disabled);
    }
}

fn is_news(run: &Run, matched: &Matched) -> bool {
    let is_new = run.looking(matched.watch).is_some_and(|it| matched.offset() > it.offset());
    is_new && !matched.is_empty()
}

/// The end of a watch that has told enough, with one summary of all that it left out.
fn enough(run: &Run, watch: u32) -> Option<Fact> {
    let known = run.looking(watch)?;
    let why = known.has_enough()?;
    let pattern = run.spec.watches.get(usize::try_from(watch).ok()?)?;
    let pattern: String = pattern.chars().take(LONGEST_PATTERN).collect();
    let suppressed = known.suppressed;
    let left_out = match suppressed {
        0 => String::new(),
        1 => "; 1 line that matched was not told".to_owned(),
        many => format!("; {many} lines that matched were not told"),
    };
    let why = format!("the watch for {pattern:?} looks no more: {why}{left_out}");
    Some(Fact::WatchDisabled { watch, why, suppressed })
}

/// There is so much output, by the time at which a sink wants to hear of it.
pub(super) fn heartbeat(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    output_bytes: u64,
    context: &Context,
) {
    let run = draft.run();
    let is_live = run.live().is_some_and(|live| live.is(turn, attempt));
    if is_live && run.heartbeat_in_ms(output_bytes, context.now) == Some(0) {
        draft.push(context.now, Fact::HeartbeatTold { turn, attempt, output_bytes });
    }
}
