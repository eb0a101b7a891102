//! Runs in groups, by what a person must do about them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use outlast_wire::api::{RunRow, RunView};
use outlast_wire::words::{ReasonCode, StateName, Word};
use outlast_workflow::duration;

use super::commands;
use super::facts::Facts;
use crate::attention::Group;
use crate::output::figures::Spend;
use crate::output::page::quoted;
use crate::output::state::{Condition, spaced};
use crate::output::{self, figures, one_line, rest};

/// What one entry of the report says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// The newest run that it is about.
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    /// How the run is named on the command line.
    pub(crate) handle: String,
    pub(crate) state: Word<StateName>,
    pub(crate) reason_code: Option<String>,
    /// `failed (exit 7)`.
    pub(crate) words: String,
    /// When it came to this.
    pub(crate) at: Option<Timestamp>,
    pub(crate) took_ms: Option<u64>,
    /// `4 turns`, `2 tries`, `$0.06`.
    pub(crate) figures: Vec<String>,
    /// Where its work is, of a run that ended.
    pub(crate) branch: Option<String>,
    /// What it asks, why it is so, or what it says of itself.
    pub(crate) note: Option<String>,
    /// How many runs of one trigger are told as one.
    pub(crate) runs: usize,
    pub(crate) trigger: Option<String>,
    pub(crate) wake_at: Option<Timestamp>,
    pub(crate) commands: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Groups {
    pub(crate) needs_you: Vec<Item>,
    pub(crate) done: Vec<Item>,
    pub(crate) not_done: Vec<Item>,
    pub(crate) waiting: Vec<Item>,
    pub(crate) running: Vec<Item>,
    pub(crate) spent: Spent,
    /// How many runs ended of which nothing knows how.
    pub(crate) lost: usize,
}

/// What the runs of the report have used up since they began.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spent {
    pub(crate) reported_usd: f64,
    /// What is held for attempts that did not report.
    pub(crate) unreported_usd: f64,
    /// How many runs did not report all that they used; of how many money is held for that; and of how many money was not
    /// reported and none is held, so that nothing bounds it.
    pub(crate) unreported_runs: usize,
    pub(crate) held_runs: usize,
    pub(crate) unbounded_runs: usize,
    pub(crate) tokens: u64,
    /// How many of the tokens are held for attempts that did not report.
    pub(crate) unreported_tokens: u64,
}

impl Groups {
    /// True if a person is needed.
    pub(crate) fn needs_person(&self, facts: &Facts) -> bool {
        !self.needs_you.is_empty() || !facts.config.is_empty()
    }
}

pub(crate) fn groups(facts: &Facts) -> Groups {
    let mut groups = Groups::default();
    for row in &facts.rows {
        let view = facts.views.get(&row.id);
        groups.spent.add(row);
        let is_lost = row.reason_code.as_ref().is_some_and(|code| *code == ReasonCode::Lost);
        groups.lost += usize::from(is_lost && row.state.has_ended());
        // Of a run that was not looked at it is not known whether its name means it.
        let handle = view.map_or(row.id.as_str(), output::handle);
        let group = Group::of(&Condition::from(row));
        let item = item(row, view, handle, group);
        match (group, row.state.known()) {
            (Group::NeedsMe, _) => &mut groups.needs_you,
            (Group::Ended, Some(StateName::Completed)) => &mut groups.done,
            (Group::Ended, _) => &mut groups.not_done,
            (Group::Waiting | Group::Queued, _) => &mut groups.waiting,
            (Group::Running, _) => &mut groups.running,
        }
        .push(item);
    }
    groups.done = folded(groups.done);
    groups.not_done = folded(groups.not_done);
    for items in [
        &mut groups.needs_you,
        &mut groups.done,
        &mut groups.not_done,
        &mut groups.waiting,
        &mut groups.running,
    ] {
        items.sort_by_key(|item| item.at);
    }
    groups
}

impl Spent {
    fn add(&mut self, row: &RunRow) {
        self.tokens = self.tokens.saturating_add(row.tokens);
        self.unreported_tokens = self.unreported_tokens.saturating_add(row.unreported_tokens);
        let spend = Spend::from(row);
        self.unreported_runs += usize::from(spend.is_unreported());
        let is_held = row.unreported_usd > 0.0;
        self.held_runs += usize::from(spend.is_money_unreported() && is_held);
        self.unbounded_runs += usize::from(spend.is_money_unreported() && !is_held);
        self.reported_usd += (row.cost_usd - row.unreported_usd).max(0.0);
        self.unreported_usd += row.unreported_usd;
    }
}

fn item(row: &RunRow, view: Option<&RunView>, handle: &str, group: Group) -> Item {
    let time = |text: Option<&str>| text.and_then(|text| text.parse::<Timestamp>().ok());
    let started = time(row.started_at.as_deref());
    let ended = time(row.ended_at.as_deref());
    let passed = || {
        let (from, until) = started.zip(ended)?;
        u64::try_from(until.as_millisecond() - from.as_millisecond()).ok()
    };
    // Its rests are no work.
    let took_ms = row.worked_ms.filter(|_| ended.is_some()).or_else(passed);
    let since = view.and_then(|view| view.blocked.as_ref()).map(|blocked| blocked.since.as_str());
    let at = match group {
        Group::NeedsMe => {
            time(since).or_else(|| time(row.health_since.as_deref())).or(ended).or(started)
        }
        Group::Ended => ended,
        Group::Waiting | Group::Queued | Group::Running => {
            started.or_else(|| time(Some(&row.created_at)))
        }
    };
    let commands = match group {
        Group::NeedsMe => commands::for_run(row, view, &quoted(handle)),
        Group::Ended if row.state != StateName::Completed => {
            commands::for_ended(row, view, &quoted(handle))
        }
        Group::Ended => Vec::new(),
        Group::Waiting | Group::Queued => waiting_commands(row, &quoted(handle)),
        Group::Running => Vec::new(),
    };
    Item {
        id: row.id.clone(),
        name: row.name.clone(),
        handle: handle.to_owned(),
        state: row.state.clone(),
        reason_code: row.reason_code.as_ref().map(ToString::to_string),
        words: words(row, group),
        at,
        took_ms,
        figures: figures_of(row, view),
        branch: view.filter(|_| group == Group::Ended).and_then(|view| view.branch.clone()),
        note: note(row, view, group),
        runs: 1,
        trigger: row.trigger.clone(),
        wake_at: time(view.and_then(|view| view.wake_at.as_deref())),
        commands,
    }
}

/// The state in a few words. What a blocked run wants is told in its note.
fn words(row: &RunRow, group: Group) -> String {
    match (group, row.state.known()) {
        (Group::NeedsMe, Some(StateName::Blocked)) => "blocked".to_owned(),
        (Group::Waiting | Group::Queued, _) if is_paused_besides(row) => match &row.reason_code {
            Some(code) => format!("paused, and waiting for {}", wait_words(code)),
            None => "paused, and queued for a slot".to_owned(),
        },
        (Group::Waiting, _) => match &row.reason_code {
            Some(code) => format!("waiting for {}", wait_words(code)),
            None => "waiting".to_owned(),
        },
        (Group::Queued, _) => "queued for a slot".to_owned(),
        _ => Condition::from(row).words(),
    }
}

/// True of a paused run that also waits for something else.
fn is_paused_besides(row: &RunRow) -> bool {
    row.paused && row.reason_code.as_ref().is_none_or(|code| *code != ReasonCode::Paused)
}

fn wait_words(code: &Word<ReasonCode>) -> String {
    let words = match code.known() {
        Some(ReasonCode::Budget) => "a budget",
        Some(ReasonCode::Slot) => "a slot",
        Some(ReasonCode::Message) => "a message",
        Some(ReasonCode::Timer) => "its time",
        Some(ReasonCode::RateLimit) => "a rate limit",
        Some(ReasonCode::Paused) => "a resume",
        Some(ReasonCode::ResumeHeld) => "its turn after a restart",
        Some(ReasonCode::Children) => "its children",
        Some(ReasonCode::After) => "another run",
        // A delay before the next attempt has the reason of the failed one.
        _ => return format!("a retry ({})", spaced(code.as_str())),
    };
    words.to_owned()
}

fn waiting_commands(row: &RunRow, handle: &str) -> Vec<String> {
    if row.paused {
        return vec![format!("outlast resume {handle}")];
    }
    match row.reason_code.as_ref().and_then(Word::known) {
        Some(ReasonCode::Budget) => vec!["outlast budgets".to_owned()],
        Some(ReasonCode::Paused) => vec![format!("outlast resume {handle}")],
        Some(ReasonCode::Message) => vec![format!("outlast send {handle} 'TEXT'")],
        _ => Vec::new(),
    }
}

fn figures_of(row: &RunRow, view: Option<&RunView>) -> Vec<String> {
    let turns = view.map_or(0, |view| view.turns_committed) as usize;
    let is_loop = row.max_turns.is_some() || turns > 1;
    let mut figures = Vec::new();
    if is_loop && turns > 0 {
        figures.push(figures::count(turns, "turn"));
    } else if row.attempt > 1 {
        figures.push(format!("{} tries", row.attempt));
    }
    let spend = Spend::from(row);
    let words = if spend.is_unreported() { spend.words() } else { spend.column() };
    figures.extend(words);
    if let Some(known) = view.and_then(|view| view.snapshots.as_ref())
        && known.files > 0
    {
        let files = figures::files(known.files);
        let lines = format!("+{} -{}", known.added, known.deleted);
        // The sum over several turns counts a file once for each turn that changed it.
        let is_exact = known.turn.is_some_and(|turn| turn <= 1);
        figures.push(if is_exact { format!("{files} {lines}") } else { format!("{lines} lines") });
    }
    figures
}

fn note(row: &RunRow, view: Option<&RunView>, group: Group) -> Option<String> {
    let last_line = || view.and_then(|view| view.last_line.clone());
    let summary = || view.and_then(|view| view.summary.clone());
    let reason = || view.and_then(|view| view.reason.clone());
    let note = match (group, row.state.known()) {
        (Group::NeedsMe, _) => {
            let asks = view.and_then(rest::question).map(|question| format!("asks: {question}"));
            asks.or_else(|| row.trouble.as_ref().map(|trouble| trouble.message.clone()))
                .or_else(reason)
                .or_else(|| row.health_why.clone())
        }
        (Group::Ended, Some(StateName::Completed)) => summary().or_else(|| named(row)),
        (Group::Ended, Some(StateName::Failed)) => {
            last_line().or_else(reason).or_else(|| named(row))
        }
        (Group::Ended, Some(StateName::Stopped)) => named(row),
        (Group::Ended, _) => reason(),
        (Group::Running, _) => last_line().map(|line| format!("last line: {line}")),
        (Group::Waiting | Group::Queued, _) => reason(),
    };
    note.map(|note| one_line(&note)).filter(|note| !note.is_empty())
}

/// What it is, for a run that no name says that of.
fn named(row: &RunRow) -> Option<String> {
    row.name.is_none().then(|| row.what.clone())
}

/// Runs of one trigger that came to the same are told as one, with the newest of them.
fn folded(items: Vec<Item>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::new();
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for item in items {
        let Some(trigger) = item.trigger.clone() else {
            kept.push(item);
            continue;
        };
        match places.get(&(trigger.clone(), item.words.clone())) {
            Some(place) => kept[*place].runs += 1,
            None => {
                places.insert((trigger, item.words.clone()), kept.len());
                kept.push(item);
            }
        }
    }
    kept
}

/// `31m`, or nothing for what took no time worth a word.
pub(super) fn took(item: &Item) -> Option<String> {
    item.took_ms.filter(|ms| *ms >= 1000 && item.runs == 1).map(duration::short)
}
