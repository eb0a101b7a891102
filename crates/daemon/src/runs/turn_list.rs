//! The turns of a run as a list: one reading of its journal, and of the files no more than their sizes.

use std::collections::BTreeMap;

use outlast_engine::{Cause, Event, Fact, RunId};
use outlast_home::layout::RunDir;
use outlast_wire::api::{AttemptRow, ChangedView, ErrandRow, GapView, TurnRow};

use super::turns::{outcome_word, usage};
use crate::output::Reader;
use crate::refusal::Answer;
use crate::supervisor::Supervisor;
use crate::view::rfc3339;

/// How many events are held at a time.
const PAGE: usize = 1000;

/// Turns of one answer, unless fewer are asked for, and at most.
const TURNS: u64 = 100;
const MOST_TURNS: u64 = 1000;

/// Characters of a summary that a list has.
const MOST_SUMMARY: usize = 500;

/// The newest turns below `before`. Blocks.
pub(crate) fn list(
    supervisor: &Supervisor,
    id: &RunId,
    before: Option<u32>,
    limit: Option<u64>,
) -> Answer<Vec<TurnRow>> {
    let most = usize::try_from(limit.unwrap_or(TURNS).min(MOST_TURNS)).unwrap_or(usize::MAX);
    let mut folded = Folded { before: before.unwrap_or(u32::MAX), most, ..Folded::default() };
    let mut after = 0;
    loop {
        let page = supervisor.ground.store.events(id, after, PAGE)?;
        page.iter().for_each(|event| folded.see(event));
        match page.last() {
            Some(last) if page.len() == PAGE => after = last.seq,
            _ => break,
        }
    }
    let dir = supervisor.ground.layout.run(id.as_str());
    let mut rows: Vec<TurnRow> = folded.turns.into_values().rev().collect();
    rows.iter_mut().for_each(|row| measure(row, &dir));
    Ok(rows)
}

/// How much output each attempt has by now. A log that cannot be read has what the journal says.
fn measure(row: &mut TurnRow, dir: &RunDir) {
    for attempt in &mut row.attempts {
        let Ok(Some(reader)) = Reader::open(&dir.attempt(row.turn, attempt.attempt)) else {
            continue;
        };
        if let Ok(length) = reader.length() {
            attempt.output_bytes = attempt.output_bytes.max(length);
        }
        attempt.output_gap = reader.gap().map(|(from, to)| GapView { from, to });
    }
}

/// The newest turns below a number, as far as the journal has been read.
#[derive(Default)]
struct Folded {
    before: u32,
    most: usize,
    turns: BTreeMap<u32, TurnRow>,
}

impl Folded {
    fn see(&mut self, event: &Event) {
        let at = || rfc3339(event.at);
        match &event.fact {
            Fact::TurnStarted { turn, attempt, .. } => {
                let row = AttemptRow { attempt: *attempt, ..AttemptRow::default() };
                if let Some(known) = self.begin(*turn) {
                    known.attempts.push(row);
                }
            }
            Fact::AttemptStarted { turn, attempt, .. } => {
                self.attempt(*turn, *attempt, |row| row.started_at = Some(at()));
            }
            Fact::AttemptAdopted { turn, attempt, .. } => {
                self.attempt(*turn, *attempt, |row| row.adopted_at.push(at()));
            }
            Fact::AttemptOrphaned { turn, attempt } => {
                self.attempt(*turn, *attempt, |row| row.orphaned_at = Some(at()));
            }
            Fact::AttemptEnded { turn, attempt, outcome, output_bytes, charge, .. } => {
                self.attempt(*turn, *attempt, |row| {
                    row.ended_at = Some(at());
                    row.outcome = Some(outcome.word().to_owned());
                    row.exit = outcome.exit();
                    row.output_bytes = *output_bytes;
                    row.usage = charge.as_ref().map(usage);
                });
            }
            Fact::TurnCommitted { turn, status, outcome, summary, .. } => {
                if let Some(row) = self.turns.get_mut(turn) {
                    row.committed_at = Some(at());
                    row.status = Some(status.word().to_owned());
                    row.outcome = Some(outcome_word(*outcome).to_owned());
                    let summary: String = summary.chars().take(MOST_SUMMARY).collect();
                    row.summary = Some(summary).filter(|it| !it.is_empty());
                }
            }
            Fact::ErrandStarted { errand, purpose, turn, .. } => {
                if let Some(row) = self.begin(*turn) {
                    let (purpose, started_at) = (purpose.label(), at());
                    let number = *errand;
                    row.errands.push(ErrandRow {
                        number,
                        purpose,
                        started_at,
                        ..ErrandRow::default()
                    });
                }
            }
            Fact::ErrandEnded { errand, outcome, .. } => {
                let all = self.turns.values_mut().flat_map(|row| &mut row.errands);
                if let Some(known) = all.filter(|known| known.number == *errand).last() {
                    known.ended_at = Some(at());
                    known.outcome = Some(outcome.word().to_owned());
                }
            }
            Fact::SnapshotTaken { turn, snapshot } if snapshot.cause == Cause::Turn => {
                let (files, added, deleted) = (snapshot.files, snapshot.added, snapshot.deleted);
                if let Some(row) = self.turns.get_mut(turn) {
                    row.changed = Some(ChangedView { files, added, deleted });
                }
            }
            _ => {}
        }
    }

    /// The turn of this number, if it is wanted. No more turns are kept than are wanted.
    fn begin(&mut self, turn: u32) -> Option<&mut TurnRow> {
        if turn >= self.before {
            return None;
        }
        let empty = || TurnRow { turn, ..TurnRow::default() };
        self.turns.entry(turn).or_insert_with(empty);
        if self.turns.len() > self.most {
            self.turns.pop_first();
        }
        self.turns.get_mut(&turn)
    }

    fn attempt(&mut self, turn: u32, attempt: u32, change: impl FnOnce(&mut AttemptRow)) {
        let row = self.turns.get_mut(&turn);
        let known = row.and_then(|row| row.attempts.iter_mut().find(|it| it.attempt == attempt));
        if let Some(known) = known {
            change(known);
        }
    }
}
