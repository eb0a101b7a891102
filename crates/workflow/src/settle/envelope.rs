//! The envelope of a run on one line: what ends it, what one turn may take, and who says that it is done.

use super::Effective;
use crate::money;
use crate::times;

/// Longer commands are cut.
const LONGEST: usize = 40;

/// `ends at 30 turns, $5.00 or 8h; a turn: 1h; silence: 10m; 5 tries; done by cargo test`. Its parts are joined
/// with `; `.
pub fn envelope(effective: &Effective) -> String {
    let limits = &effective.limits;
    let time = |ms: Option<u64>| ms.map_or("no limit".to_owned(), times::shown);
    let tries = match effective.retry.max_attempts {
        u32::MAX => "any number of tries".to_owned(),
        1 => "1 try".to_owned(),
        tries => format!("{tries} tries"),
    };
    let silence = match limits.stall_window_ms {
        Some(ms) => format!("silence: {}", times::shown(ms)),
        None => "silence: no limit".to_owned(),
    };
    [
        ends(effective),
        format!("a turn: {}", time(limits.turn_timeout_ms)),
        silence,
        tries,
        done(effective),
    ]
    .join("; ")
}

fn ends(effective: &Effective) -> String {
    let limits = &effective.limits;
    let bounds = [
        limits.max_turns.map(|turns| counted(turns, "turn")),
        effective.tree.room.turns.map(|turns| format!("{turns} turns with those below it")),
        limits.max_cost_usd_micros.map(money::shown),
        limits.max_tokens.map(|tokens| format!("{tokens} tokens")),
        limits.run_timeout_ms.map(times::shown),
    ];
    let bounds: Vec<String> = bounds.into_iter().flatten().collect();
    let idle = limits.no_progress_turns.map(|turns| counted(turns, "turn"));
    let bounds = match bounds.as_slice() {
        [] => "no limit of turns, money or time".to_owned(),
        [one] => format!("ends at {one}"),
        [most @ .., last] => format!("ends at {} or {last}", most.join(", ")),
    };
    match idle {
        Some(turns) => format!("{bounds}; blocks after {turns} without progress"),
        None => bounds,
    }
}

fn counted(many: u32, word: &str) -> String {
    if many == 1 { format!("1 {word}") } else { format!("{many} {word}s") }
}

fn done(effective: &Effective) -> String {
    let claim = if effective.agent.kind == "exec" { "exit code 0" } else { "the agent's word" };
    match effective.checks.done.as_slice() {
        [] => format!("done by {claim} (no checks)"),
        [one] => format!("done by {}", cut(one)),
        [first, more @ ..] => format!("done by {} and {} more", cut(first), more.len()),
    }
}

fn cut(command: &str) -> String {
    let mut lines = command.trim().lines();
    let line = lines.next().unwrap_or_default();
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None if lines.next().is_some() => format!("{line}…"),
        None => line.to_owned(),
    }
}
