//! What files written for Symphony say in words of their own.
//!
//! Such a file names no `agent.kind`, and has a `codex:` or a `tracker:` section.

use std::collections::BTreeMap;

use super::Surroundings;
use super::sheet::Sheet;
use crate::node::Node;
use crate::problem::Code;

pub(super) const KIND: &str = "codex";
pub(super) const COMMAND: &str = "codex app-server";
pub(super) const WORKSPACES: &str = "symphony_workspaces";
/// What Symphony lets a run have if its file names no limit of turns.
pub(crate) const MAX_TURNS: u32 = 20;
const STALL_TIMEOUT_MS: i64 = 300_000;

/// Where issues come from, for readers of trackers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracker {
    pub kind: Option<String>,
    /// The whole section as JSON, unknown keys and `$NAME`s as they were written.
    pub settings: String,
    pub polling_interval_ms: u64,
    /// By the state's name in lower case; entries that make no sense are left out, as Symphony does.
    pub most_at_once_by_state: BTreeMap<String, u32>,
}

pub(super) fn is_symphony(sheet: &Sheet<'_>) -> bool {
    let has = |key| sheet.given(key).is_some();
    !has("agent.kind") && (has("codex") || has("tracker"))
}

/// The same of a whole front matter.
pub(super) fn is_written_for_it(root: &Node) -> bool {
    let has = |key| root.get(key).is_some();
    !has("agent.kind") && (has("codex") || has("tracker"))
}

/// The smaller of Symphony's two windows of silence, with the key that it stands under; 0 is off.
/// `limits.stall_window_ms` goes before both.
pub(super) fn stall_window(sheet: &mut Sheet<'_>) -> Option<(&'static str, (u64, usize))> {
    if sheet.given("limits.stall_window_ms").is_some() {
        return None;
    }
    let window = |key: &'static str| {
        let node = sheet.given(key)?;
        Some((key, node.whole()?, node.line))
    };
    let stall = window("codex.stall_timeout_ms");
    let turn = window("codex.turn_timeout_ms");
    if let Some((key, _, line)) = turn {
        let message = "is a window of silence, not a limit of the whole turn: the smaller of it and codex.stall_timeout_ms holds";
        let note = sheet.problem(Code::NoEffect, key, message).at(line);
        sheet.warnings.push(note.hint("limits.turn_timeout_ms bounds the whole turn"));
    }
    let (key, millis, line) = smaller(stall, turn)?;
    Some((key, (u64::try_from(millis).unwrap_or(0), line)))
}

type Window = (&'static str, i64, usize);

fn smaller(stall: Option<Window>, turn: Option<Window>) -> Option<Window> {
    let is_on = |window: &Window| window.1 > 0;
    match (stall, turn.filter(is_on)) {
        (None, Some(turn)) => (turn.1 < STALL_TIMEOUT_MS).then_some(turn),
        (Some(stall), Some(turn)) if !is_on(&stall) || turn.1 < stall.1 => Some(turn),
        (stall, _) => stall,
    }
}

pub(super) fn tracker(sheet: &mut Sheet<'_>, around: &Surroundings<'_>) -> Option<Tracker> {
    let section = sheet.given("tracker")?;
    for key in ["tracker.api_key", "tracker.provider.api_key"] {
        secret(sheet, key, around);
    }
    Some(Tracker {
        kind: sheet.text("tracker.kind").map(|(kind, _)| kind.to_owned()),
        settings: section.json().to_string(),
        polling_interval_ms: sheet.whole("polling.interval_ms").map_or(30_000, |(ms, _)| ms),
        most_at_once_by_state: by_state(sheet.given("agent.max_concurrent_agents_by_state")),
    })
}

/// A secret that is named but not there counts as missing; its value is never looked at further.
fn secret(sheet: &mut Sheet<'_>, key: &'static str, around: &Surroundings<'_>) {
    let Some((text, line)) = sheet.text(key) else { return };
    let missing = match text.strip_prefix('$') {
        Some(name) => (around.env)(name).is_none_or(|value| value.is_empty()),
        None => text.is_empty(),
    };
    if !missing {
        return;
    }
    let warning = sheet.problem(Code::MissingSecret, key, "is missing: it is empty or not set");
    sheet.warnings.push(warning.at(line).hint(match text {
        "" => "name the variable that holds it, as $NAME".to_owned(),
        name => format!("set {name} where outlast is started"),
    }));
}

fn by_state(map: Option<&Node>) -> BTreeMap<String, u32> {
    let entries = map.map_or(&[][..], Node::entries);
    let kept = entries.iter().filter_map(|entry| {
        let most = u32::try_from(entry.node.whole()?).ok().filter(|most| *most > 0)?;
        Some((entry.key.trim().to_lowercase(), most))
    });
    kept.collect()
}
