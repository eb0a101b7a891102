//! Snapshots: what a turn left in the workspace, and going back to it.
//!
//! A snapshot is an errand, and never part of a turn: a turn is committed before its snapshot is made, and stands if
//! the snapshot fails. One is made before the first turn, after each turn once it is settled, before a turn if the run
//! has rested since, and before a restore. The journal has the ids; what is in the repository only keeps them alive.

use serde::{Deserialize, Serialize};

use crate::advance::Facts;
use crate::{
    AskedRestore, Attempt, BlockReason, Context, Fact, OnInterrupt, Outcome, Planted, Purpose,
    ReasonCode, Report, Run, RunSpec, WentBack, reason,
};

/// Which snapshots a run has. A run without these rules has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRules {
    /// Larger files are left out, in bytes.
    pub max_file: u64,
    /// What all snapshots of the run may add, in bytes of files.
    pub max_total: u64,
    /// Patterns as in `.gitignore`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Objects go into a store of the run's own, also where there is a repository.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own_store: bool,
    /// An attempt that crashed or stalled is undone before the next.
    #[serde(default, skip_serializing_if = "is_false")]
    pub undo_failed: bool,
}

impl Default for SnapshotRules {
    fn default() -> Self {
        Self {
            max_file: 50_000_000,
            max_total: 2_000_000_000,
            exclude: Vec::new(),
            own_store: false,
            undo_failed: false,
        }
    }
}

/// What a snapshot was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Before the first turn.
    Base,
    /// What a turn has left.
    Turn,
    /// What was changed while the run rested.
    Found,
    /// What a failed attempt has left, before it is undone.
    Wreck,
}

impl Cause {
    pub fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Turn => "turn",
            Self::Found => "found",
            Self::Wreck => "wreck",
        }
    }
}

/// A snapshot, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub cause: Cause,
    pub commit: String,
    pub tree: String,
    /// Where the workspace's own checkout stood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Against the snapshot before that is no wreck.
    pub files: u64,
    pub added: u64,
    pub deleted: u64,
    /// Bytes of the files that were read for it.
    pub bytes: u64,
    #[serde(default, skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
    /// True if its objects are in a store of the run's own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub own_store: bool,
    /// Whether the turn changed anything, by its files and by what it asks for; absent where only its digest can say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<bool>,
}

/// What is in the workspace and not in a snapshot of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    pub files: u64,
    pub bytes: u64,
    /// The first of them, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

impl LeftOut {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// What an errand of this kind has made, by its own record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    Snapshot {
        snapshot: Box<Snapshot>,
        /// True if the workspace is as the last snapshot has it.
        is_same: bool,
    },
    Restored {
        written: u64,
        removed: u64,
        kept: Vec<String>,
    },
    Failed {
        code: String,
        why: String,
    },
}

/// Where an attempt can go back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    pub commit: String,
    pub tree: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

impl Snapshot {
    pub fn point(&self) -> Point {
        let Self { commit, tree, head, branch, .. } = self.clone();
        Point { commit, tree, head, branch }
    }
}

/// What a run knows of its snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Snapshots {
    /// The last one made, whatever for.
    pub tip: Option<Point>,
    /// The last that is no wreck: what changes are counted from.
    pub since: Option<Point>,
    /// What the next attempt begins with, if a snapshot has it.
    pub point: Option<Point>,
    /// The turn that the last one shows; 0 is before the first.
    pub turn: Option<u32>,
    /// Over all turns, counted turn by turn.
    pub files: u64,
    pub added: u64,
    pub deleted: u64,
    /// How many files the last one leaves out.
    pub left_out: u64,
    /// Bytes of files that all of them have read.
    pub bytes: u64,
    /// Why the last one failed, until one succeeds.
    pub failed: Option<(String, String)>,
    /// What is known of the turn that is to be judged by its snapshot.
    pub(crate) judged: Option<Judged>,
    /// True once the first was tried.
    pub(crate) has_base: bool,
    /// The last turn after which one was tried.
    pub(crate) tried: u32,
    /// True if the run has rested since the last, so that the workspace may have been changed.
    pub(crate) has_rested: bool,
    pub undo: Undo,
    /// What a person has asked for and is not done.
    pub asked: Option<AskedRestore>,
    /// The last time that a person had the workspace put back.
    pub(crate) back: Option<WentBack>,
    /// Of a fork: whether its files are there.
    pub planted: Planted,
}

/// What decides, with its snapshot, whether a turn changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Judged {
    /// How many turns in a row before it had changed nothing.
    pub(crate) before: u32,
    pub(crate) asks_anew: bool,
}

/// How far a failed attempt is undone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Undo {
    #[default]
    Nothing,
    /// What this attempt left is in a snapshot.
    Kept { turn: u32, attempt: u32, wreck: String },
    /// It was not kept, or not undone.
    Failed { turn: u32, attempt: u32, why: String },
    /// The workspace is as the turn before left it; so many files of the wreck are not in it.
    Restored { turn: u32, attempt: u32, files: u64 },
    /// A person lets the run go on with the workspace as it is.
    Waived { turn: u32, attempt: u32 },
}

impl RunSpec {
    pub fn has_snapshots(&self) -> bool {
        self.workspace.snapshot.is_some()
    }
}

impl Run {
    /// True if the workspace was put back right before this attempt.
    pub fn is_after_restore(&self, turn: u32, attempt: u32) -> bool {
        matches!(self.snapshots.undo, Undo::Restored { turn: of, attempt: last, .. }
            if of == turn && last + 1 == attempt)
    }
}

/// The snapshot of a turn that has settled, if it was not tried.
pub(crate) fn after_turn(run: &Run, turn: u32, context: &Context) -> Option<Facts> {
    let is_due = run.spec.has_snapshots() && run.snapshots.tried < turn;
    is_due.then(|| take(run, context, Cause::Turn))
}

/// What has to be seen to before an attempt starts.
pub(crate) fn before_attempt(run: &Run, context: &Context) -> Option<Facts> {
    if !run.spec.has_snapshots() {
        return None;
    }
    let known = &run.snapshots;
    if !known.has_base {
        let cause = if run.turns_committed == 0 { Cause::Base } else { Cause::Found };
        return Some(take(run, context, cause));
    }
    let last = run.attempt.as_ref().filter(|last| last.turn > run.turns_committed);
    match last {
        Some(last) if is_to_undo(run, last) => undo(run, last, context),
        Some(_) => None,
        None => known.has_rested.then(|| take(run, context, Cause::Found)),
    }
}

fn take(run: &Run, context: &Context, cause: Cause) -> Facts {
    reason::errand(run, context, Purpose::Snapshot { cause })
}

/// True if what an attempt has done is not to be gone on with.
fn is_to_undo(run: &Run, last: &Attempt) -> bool {
    let Some((outcome, _)) = &last.state.end else { return false };
    let undoes_failed = run.spec.workspace.snapshot.as_ref().is_some_and(|rules| rules.undo_failed);
    match outcome {
        Outcome::Interrupted { .. } | Outcome::Lost => {
            undoes_failed || run.spec.on_interrupt == OnInterrupt::Restore
        }
        Outcome::Exited { .. }
        | Outcome::Signaled { .. }
        | Outcome::BadResponse { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Stalled { .. } => undoes_failed,
        // Nothing ran, or the agent itself goes on where it was.
        Outcome::NeverStarted { .. } | Outcome::Impeded { .. } | Outcome::Stopped { .. } => false,
    }
}

fn undo(run: &Run, last: &Attempt, context: &Context) -> Option<Facts> {
    let Some(point) = &run.snapshots.point else {
        let is_waived = run.snapshots.undo.is_waived(last);
        let why = match &run.snapshots.failed {
            Some((_, why)) => format!("there is no snapshot to go back to: {why}"),
            None => "there is no snapshot to go back to".to_owned(),
        };
        let why = reason::block(&why, BlockReason::NoSnapshot);
        return (!is_waived).then(|| reason::blocked(run, context, why));
    };
    match &run.snapshots.undo {
        undo if !undo.is_of(last) => Some(take(run, context, Cause::Wreck)),
        Undo::Kept { .. } => {
            let purpose = Purpose::Restore { to: point.commit.clone() };
            Some(reason::errand(run, context, purpose))
        }
        Undo::Failed { why, .. } => {
            let why = format!("the workspace was not put back: {why}");
            let why = reason::block(&why, BlockReason::RestoreFailed);
            Some(reason::blocked(run, context, why))
        }
        Undo::Nothing | Undo::Restored { .. } | Undo::Waived { .. } => None,
    }
}

impl Undo {
    fn is_of(&self, last: &Attempt) -> bool {
        match self {
            Self::Nothing => false,
            Self::Kept { turn, attempt, .. }
            | Self::Failed { turn, attempt, .. }
            | Self::Restored { turn, attempt, .. }
            | Self::Waived { turn, attempt } => last.is(*turn, *attempt),
        }
    }

    fn is_waived(&self, last: &Attempt) -> bool {
        matches!(self, Self::Waived { .. }) && self.is_of(last)
    }
}

/// What the end of such an errand is worth. None of it once its end is to be looked for again.
pub(crate) fn made(run: &Run, purpose: &Purpose, report: &Report) -> Option<Fact> {
    let turn = run.attempt.as_ref().map_or(0, |last| last.turn);
    let failed = |cause, code: &str, why: &str| Fact::SnapshotFailed {
        turn,
        cause,
        code: code.to_owned(),
        why: why.to_owned(),
    };
    let outcome = run.errand.as_ref().and_then(|last| last.state.end.as_ref());
    let is_over_time = matches!(outcome, Some((Outcome::TimedOut { .. }, _)));
    let unmade = match outcome {
        Some((Outcome::NeverStarted { why, .. }, _)) => Some(why.as_str()),
        _ => None,
    };
    match purpose {
        Purpose::Snapshot { cause } => match &report.made {
            Some(Made::Snapshot { is_same: true, .. }) if *cause == Cause::Found => None,
            Some(Made::Snapshot { snapshot, .. }) => {
                let progress = (*cause == Cause::Turn).then(|| progress(run, snapshot)).flatten();
                let snapshot =
                    Box::new(Snapshot { cause: *cause, progress, ..(**snapshot).clone() });
                Some(Fact::SnapshotTaken { turn: of(run, *cause), snapshot })
            }
            Some(Made::Failed { code, why }) => Some(failed(Some(*cause), code, why)),
            Some(Made::Restored { .. }) | None if is_over_time => {
                Some(failed(Some(*cause), "too_slow", "it took too long"))
            }
            Some(Made::Restored { .. }) | None => {
                Some(failed(Some(*cause), "io", unmade.unwrap_or("it ended without a result")))
            }
        },
        Purpose::Restore { to } => match &report.made {
            Some(Made::Restored { written, removed, kept }) => {
                let Restoring { turn, attempt, back_to, wreck } = restoring(run)?;
                let (to, kept, written, removed) = (to.clone(), kept.clone(), *written, *removed);
                Some(Fact::WorkspaceRestored {
                    turn,
                    attempt,
                    back_to,
                    to,
                    wreck,
                    written,
                    removed,
                    kept,
                })
            }
            Some(Made::Failed { code, why }) => Some(failed(None, code, why)),
            Some(Made::Snapshot { .. }) | None => {
                Some(failed(None, "io", unmade.unwrap_or("the restore ended without a result")))
            }
        },
        Purpose::Checkout
        | Purpose::Hook { .. }
        | Purpose::Ready { .. }
        | Purpose::Done { .. }
        | Purpose::Tool { .. } => None,
    }
}

/// Whether a turn changed anything: by content, where there is a snapshot to compare with.
fn progress(run: &Run, snapshot: &Snapshot) -> Option<bool> {
    let (judged, since) = (run.snapshots.judged?, run.snapshots.since.as_ref()?);
    Some(since.tree != snapshot.tree || judged.asks_anew)
}

/// What a restore that has come to its end was for.
struct Restoring {
    turn: u32,
    attempt: u32,
    back_to: Option<u32>,
    wreck: String,
}

fn restoring(run: &Run) -> Option<Restoring> {
    let turn = run.attempt.as_ref().map_or(0, |last| last.turn);
    let known = &run.snapshots;
    if let (Planted::Due, Some(fork)) = (&known.planted, &run.spec.fork) {
        let (attempt, back_to, wreck) = (0, Some(fork.turn), String::new());
        return Some(Restoring { turn, attempt, back_to, wreck });
    }
    if let Some(asked) = &known.asked {
        let (attempt, back_to, wreck) = (0, Some(asked.back_to), asked.wreck.clone()?);
        return Some(Restoring { turn, attempt, back_to, wreck });
    }
    let Undo::Kept { wreck, .. } = &known.undo else { return None };
    let attempt = run.attempt.as_ref().map_or(0, |last| last.number);
    Some(Restoring { turn, attempt, back_to: None, wreck: wreck.clone() })
}

/// The turn that a snapshot shows.
fn of(run: &Run, cause: Cause) -> u32 {
    match cause {
        Cause::Base => 0,
        Cause::Turn | Cause::Found => run.turns_committed,
        Cause::Wreck => run.attempt.as_ref().map_or(0, |last| last.turn),
    }
}

impl Run {
    /// An errand for a snapshot has come to an end that is not looked for again.
    pub(crate) fn conclude_snapshot(&mut self, cause: Cause) {
        self.snapshots.has_base = true;
        match cause {
            Cause::Base | Cause::Found => self.snapshots.has_rested = false,
            Cause::Turn => {
                self.snapshots.has_rested = false;
                self.snapshots.tried = self.turns_committed;
            }
            Cause::Wreck => {}
        }
    }

    pub(crate) fn snapshot_taken(&mut self, turn: u32, snapshot: &Snapshot) {
        let point = snapshot.point();
        self.snapshots.bytes += snapshot.bytes;
        self.snapshots.failed = None;
        self.snapshots.tip = Some(point.clone());
        if let (Some(is_progress), Some(judged)) = (snapshot.progress, self.snapshots.judged.take())
        {
            self.counters.no_progress = if is_progress { 0 } else { judged.before + 1 };
        }
        if snapshot.cause == Cause::Turn {
            self.snapshots.files += snapshot.files;
            self.snapshots.added += snapshot.added;
            self.snapshots.deleted += snapshot.deleted;
        }
        match snapshot.cause {
            Cause::Wreck => {
                if let Some(asked) = &mut self.snapshots.asked {
                    asked.wreck = Some(point.commit);
                } else if let Some(last) = &self.attempt {
                    let (turn, attempt) = (last.turn, last.number);
                    self.snapshots.undo = Undo::Kept { turn, attempt, wreck: point.commit };
                }
            }
            Cause::Base | Cause::Turn | Cause::Found => {
                self.snapshots.turn = Some(turn);
                self.snapshots.left_out = snapshot.left_out.files;
                self.snapshots.point = Some(point.clone());
                self.snapshots.since = Some(point);
            }
        }
    }

    pub(crate) fn snapshot_failed(&mut self, cause: Option<Cause>, code: &str, why: &str) {
        self.snapshots.failed = Some((code.to_owned(), why.to_owned()));
        match cause {
            Some(Cause::Base | Cause::Turn | Cause::Found) => self.snapshots.point = None,
            Some(Cause::Wreck) | None => {
                if self.snapshots.planted == Planted::Due {
                    self.snapshots.planted = Planted::Failed { why: why.to_owned() };
                } else if self.snapshots.asked.take().is_none()
                    && let Some(last) = &self.attempt
                {
                    let (turn, attempt) = (last.turn, last.number);
                    self.snapshots.undo = Undo::Failed { turn, attempt, why: why.to_owned() };
                }
            }
        }
    }

    pub(crate) fn workspace_restored(&mut self, written: u64, removed: u64) {
        if self.snapshots.planted == Planted::Due {
            self.snapshots.planted = Planted::Done;
            return;
        }
        if let Some(asked) = self.snapshots.asked.take() {
            return self.go_back(asked, written + removed);
        }
        if let Some(last) = &self.attempt {
            let (turn, attempt, files) = (last.turn, last.number, written + removed);
            self.snapshots.undo = Undo::Restored { turn, attempt, files };
        }
    }

    /// A person lets a run go on that was not put back.
    pub(crate) fn waive_undo(&mut self) {
        let code = &self.why.reason_code;
        let is_for_that = *code == ReasonCode::NoSnapshot || *code == ReasonCode::RestoreFailed;
        if let Some(last) = self.attempt.as_ref().filter(|_| is_for_that) {
            let (turn, attempt) = (last.turn, last.number);
            self.snapshots.undo = Undo::Waived { turn, attempt };
        }
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}
