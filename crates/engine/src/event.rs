//! Events: what has happened to a run, in the past tense, numbered, never changed.
//!
//! Their JSON is on disk for good. A field may be added with a default; nothing is renamed or removed.

use serde::{Deserialize, Serialize};

use crate::defaults::{first, is_default, is_false, is_first, is_zero};
use crate::reason::{Actor, Reason};
use crate::{
    Amounts, BootId, By, CallAsked, CallOutput, Cause, Charge, Decision, Exit, Health, Limit,
    Limits, Line, ModelClass, Noted, OfferedTool, Order, Outcome, Point, Purpose, ReasonCode,
    RefusedCall, Room, RunId, RunSpec, Snapshot, StateName, StopMode, Survivor, Time, ToolCall,
    TurnOutcome, TurnStatus, UnavailableTool, Verdict, Wait, WaitWord, Word,
};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// 1, 2, 3, … within the run.
    pub seq: u64,
    /// When it happened, which may be before it was written down.
    pub at: Time,
    #[serde(flatten)]
    pub fact: Fact,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum Fact {
    RunCreated {
        spec: Box<RunSpec>,
        /// The line of time that the run begins on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<Line>,
    },
    /// From here on times are on another line: the wall clock was wrong, or the machine was started again.
    ClockSet {
        #[serde(flatten)]
        line: Line,
    },
    /// The journal had forgotten the run, or stood behind it: what follows was rebuilt from the run's directory.
    RunRecovered {
        /// So many turns were committed, whether or not this journal has them.
        turns_committed: u32,
        /// The highest number of an errand that there has been.
        errands: u32,
        /// What the directory does not prove, in words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        missing: Vec<String>,
        /// True if the directory says how the run had ended.
        #[serde(default, skip_serializing_if = "is_false")]
        has_ended: bool,
    },
    /// An older journal was put back. What the run did from `known_until` to this event is not known, so the run's
    /// clock does not count that time.
    JournalRestored {
        known_until: Time,
    },
    StateChanged {
        from: StateName,
        to: StateName,
        #[serde(flatten)]
        why: Reason,
        /// What a waiting run waits for; with the reason code it is a `WaitCause`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<WaitWord>,
        /// When a waiting run goes on by itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Time>,
        /// What a finishing run will have ended as.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<Verdict>,
    },
    /// From here on another build of Outlast conducts the run: it goes on with the turn that starts next.
    Segment {
        turn: u32,
        /// The build before; absent if the journal does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<String>,
        to: String,
        reason: String,
    },
    /// The intent to run an attempt. Nothing of it exists yet.
    TurnStarted {
        turn: u32,
        attempt: u32,
        boot: BootId,
        /// The number of the last message that it is given.
        #[serde(default, skip_serializing_if = "is_zero")]
        messages: u64,
    },
    /// What the agent may ask the host for in this attempt.
    ToolsOffered {
        turn: u32,
        attempt: u32,
        model_class: ModelClass,
        allowed: Vec<OfferedTool>,
        unavailable: Vec<UnavailableTool>,
    },
    /// The command's process exists.
    AttemptStarted {
        turn: u32,
        attempt: u32,
        pid: u32,
        start: u64,
        /// The workspace as the first attempt found it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
    },
    /// A daemon found the attempt alive that another daemon had launched.
    AttemptAdopted {
        turn: u32,
        attempt: u32,
        epoch: u64,
    },
    /// The shim is gone and the command lives: its output and its exit can no longer be seen.
    AttemptOrphaned {
        turn: u32,
        attempt: u32,
    },
    AttemptEnded {
        turn: u32,
        attempt: u32,
        #[serde(flatten)]
        outcome: Outcome,
        output_bytes: u64,
        /// Processes of the tree that outlived the main one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        survivors: Vec<Survivor>,
        /// What it has used up.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        charge: Option<Charge>,
    },
    /// No process of the attempt's tree is left.
    TreeEmptied {
        turn: u32,
        attempt: u32,
    },
    /// The tree was to be ended, and these would not go.
    StopIncomplete {
        turn: u32,
        attempt: u32,
        survivors: Vec<Survivor>,
    },
    TurnCommitted {
        turn: u32,
        attempt: u32,
        status: TurnStatus,
        outcome: TurnOutcome,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        summary: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_task: Option<String>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
        /// Those of the calls that will not be made.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<RefusedCall>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait: Option<Wait>,
        /// The workspace as the turn left it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace: Option<String>,
        /// Whether the turn changed anything, as it was decided then; a journal from before lets the rule of today
        /// decide.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<bool>,
    },
    /// The workspace is there. `created` if it was made for this run.
    WorkspacePrepared {
        created: bool,
    },
    WorkspaceRefused {
        why: String,
    },
    /// A workspace that was only half made is gone again, or why it is not.
    WorkspaceDiscarded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    },
    /// The intent to run a command of the host. Nothing of it exists yet.
    ErrandStarted {
        errand: u32,
        #[serde(flatten)]
        purpose: Purpose,
        /// What is run, as it was written; the start of it if it is long.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        command: String,
        /// The turn it belongs to; 0 before the first.
        turn: u32,
        boot: BootId,
    },
    /// What is in the workspace can be had again.
    SnapshotTaken {
        turn: u32,
        #[serde(flatten)]
        snapshot: Box<Snapshot>,
    },
    /// A snapshot was not made, or the workspace was not put back. The turn stands.
    SnapshotFailed {
        turn: u32,
        /// What it was for; absent for a restore.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<Cause>,
        code: String,
        why: String,
    },
    /// A person wants the workspace as the end of a turn left it.
    RestoreRequested {
        actor: Actor,
        /// That turn; 0 is before the first.
        back_to: u32,
        #[serde(flatten)]
        point: Box<Point>,
        #[serde(flatten)]
        order: Order,
    },
    /// The run is a fork of another: what came before is that run's, what follows is its own.
    Forked {
        from_run: RunId,
        turn: u32,
    },
    /// What a failed attempt did is undone, or a person had the workspace put back.
    WorkspaceRestored {
        turn: u32,
        /// The attempt that is undone; 0 if a person asked for it, or for the files of a fork.
        attempt: u32,
        /// The turn whose end a person asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        back_to: Option<u32>,
        /// The snapshot that the workspace is as.
        to: String,
        /// The snapshot that has what was found; empty for the files of a fork, which finds nothing.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        wreck: String,
        written: u64,
        removed: u64,
        /// What was left alone.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<String>,
    },
    ErrandEnded {
        errand: u32,
        #[serde(flatten)]
        outcome: Outcome,
        output_bytes: u64,
        /// The end of what it wrote.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        tail: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        survivors: Vec<Survivor>,
    },
    /// No process of the errand's tree is left.
    ErrandEmptied {
        errand: u32,
    },
    /// The errand's tree was to be ended, and these would not go.
    ErrandIncomplete {
        errand: u32,
        survivors: Vec<Survivor>,
    },
    /// A call under a key that has completed before: the result is that one's.
    CallAnswered {
        turn: u32,
        call: u32,
        key: String,
    },
    /// The intent of a live attempt to make a call under a key. Its effect has not begun.
    CallBegun {
        turn: u32,
        attempt: u32,
        #[serde(flatten)]
        asked: Box<CallAsked>,
    },
    /// How a call under a key ended, as its caller saw it.
    CallEnded {
        key: String,
        /// The number of the `CallBegun` that this is the end of.
        begun: u64,
        /// Absent if nothing ran.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
        /// Why nothing ran; or why it was ended, if its caller did that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
        stdout: CallOutput,
        stderr: CallOutput,
    },
    /// A person says what became of a call whose end was not observed.
    CallResolved {
        key: String,
        /// True if its effect is there; or else it may be made again.
        was_made: bool,
        /// It answers the `CallBegun` whose end was not observed.
        #[serde(flatten)]
        order: Order,
    },
    /// What a live attempt notes for the next one.
    NoteTaken {
        turn: u32,
        attempt: u32,
        /// Its id.
        note: String,
        what: Noted,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        text: String,
    },
    /// What a turn has to say leaves the run.
    Emitted {
        turn: u32,
        to: Vec<String>,
        text: String,
    },
    /// A person did not want it to.
    EmissionDenied {
        turn: u32,
        actor: Actor,
        #[serde(flatten)]
        order: Order,
    },
    MessageReceived {
        /// Chosen by the sender, so that sending again is harmless.
        message: String,
        /// What the sender says of itself.
        from: String,
        text: String,
        /// Who the daemon saw bring it; absent for the daemon's own, and in journals from before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// A person may type into the terminal of a live attempt from here on, without being attached to it.
    TerminalOpened {
        turn: u32,
        attempt: u32,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<By>,
    },
    /// The agent of a live attempt asks a person, and waits.
    QuestionAsked {
        turn: u32,
        attempt: u32,
        /// The agent's own name of it.
        question: String,
        /// The tool that it wants to use; absent for a question of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// What it would do, or what it asks.
        text: String,
    },
    /// The agent of a live attempt no longer waits for an answer to this.
    QuestionWithdrawn {
        turn: u32,
        attempt: u32,
        /// The agent's own name of it.
        question: String,
    },
    /// The agent of a live attempt has taken these messages in the middle of its turn, by their numbers.
    MessagesGiven {
        turn: u32,
        attempt: u32,
        messages: Vec<u64>,
    },
    PauseRequested {
        actor: Actor,
        /// With every other run, by `pause --all`; only `resume --all` takes it back.
        #[serde(default, skip_serializing_if = "is_false")]
        all: bool,
        /// The attempt that is alive is ended for it, and made again when the run goes on.
        #[serde(default, skip_serializing_if = "is_false")]
        now: bool,
        #[serde(flatten)]
        order: Order,
    },
    /// Go on: after a pause, or although the run was blocked.
    ResumeRequested {
        actor: Actor,
        /// With every other run; takes back only the pause that was for all.
        #[serde(default, skip_serializing_if = "is_false")]
        all: bool,
        #[serde(flatten)]
        order: Order,
    },
    Answered {
        decision: Decision,
        /// What is said to an agent that waits for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        actor: Actor,
        #[serde(flatten)]
        order: Order,
    },
    /// The workspace of an ended run is to go.
    RemovalRequested {
        actor: Actor,
    },
    WorkspaceRemoved {
        bytes: u64,
    },
    WorkspaceKept {
        why: String,
    },
    StopRequested {
        mode: StopMode,
        actor: Actor,
        /// With all of its children, and with theirs.
        #[serde(default, skip_serializing_if = "is_false")]
        tree: bool,
        #[serde(flatten)]
        order: Order,
    },
    LimitReached {
        limit: Limit,
    },
    /// A person gave the run more room. A run that was exhausted is open again by it.
    LimitsRaised {
        actor: Actor,
        /// All of its limits, as they are from here on.
        limits: Limits,
        #[serde(flatten)]
        order: Order,
    },
    /// The run has ended after which this one was to start.
    PredecessorEnded {
        run: RunId,
        state: Verdict,
    },
    RunEnded {
        state: Verdict,
        reason_code: Option<Word<ReasonCode>>,
    },
    /// The intent to make another run as this one's child, and the room that is reserved for it. In journals from
    /// before there was room to reserve, the child had been made.
    ChildSpawned {
        child: RunId,
        /// Chosen by the asker; it names work below this run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Of what the child is asked to do.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// Which of the runs under its key it is.
        #[serde(default = "first", rename = "try", skip_serializing_if = "is_first")]
        try_number: u32,
        #[serde(default, skip_serializing_if = "is_default")]
        granted: Room,
    },
    /// A child has ended.
    ChildSettled {
        child: RunId,
        state: Verdict,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason_code: Option<Word<ReasonCode>>,
        /// Its place among the settlements: the order in which this run was told.
        #[serde(default, skip_serializing_if = "is_zero")]
        cursor: u64,
        /// What it is charged with; what is left of its reservation is free again.
        #[serde(default, skip_serializing_if = "is_default")]
        charged: Amounts,
        /// True if what it used is not known, so that its tokens and money are charged as they were reserved.
        #[serde(default, skip_serializing_if = "is_false")]
        spend_unknown: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit: Option<Exit>,
        /// What it said last; the start of it if it is long.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        summary: String,
    },
    /// The run is no longer as it should be, since when and why.
    HealthDegraded {
        health: Health,
        since: Time,
        why: String,
    },
    HealthRecovered {
        from: Health,
    },
    /// Most of a limit is used up. Said once for each limit; of a budget that runs share, once in each of its
    /// periods, to the run that brought it there.
    LimitNeared {
        limit: Limit,
        used: u64,
        max: u64,
        /// The name of the budget.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget: Option<String>,
    },
    /// What a live attempt has used up so far, all of it.
    UsageReported {
        turn: u32,
        attempt: u32,
        charge: Charge,
    },
    /// Lines that a watch looks for.
    OutputMatched {
        turn: u32,
        attempt: u32,
        /// Its place among the run's watches, from 0.
        watch: u32,
        lines: Vec<String>,
        /// Where in the attempt's output the last of them ends.
        offset: u64,
        /// Lines that matched since the last time and were not told.
        #[serde(default, skip_serializing_if = "is_zero")]
        suppressed: u64,
    },
    /// A watch that matched too often looks no more.
    WatchDisabled {
        watch: u32,
        why: String,
        /// Lines that matched and were not told.
        #[serde(default, skip_serializing_if = "is_zero")]
        suppressed: u64,
    },
    /// There was new output by the time at which a sink wanted to hear of it.
    HeartbeatTold {
        turn: u32,
        attempt: u32,
        output_bytes: u64,
    },
}

impl Fact {
    /// The word that stands under `kind`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunCreated { .. } => "RunCreated",
            Self::ClockSet { .. } => "ClockSet",
            Self::RunRecovered { .. } => "RunRecovered",
            Self::JournalRestored { .. } => "JournalRestored",
            Self::StateChanged { .. } => "StateChanged",
            Self::Segment { .. } => "Segment",
            Self::TurnStarted { .. } => "TurnStarted",
            Self::AttemptStarted { .. } => "AttemptStarted",
            Self::AttemptAdopted { .. } => "AttemptAdopted",
            Self::AttemptOrphaned { .. } => "AttemptOrphaned",
            Self::AttemptEnded { .. } => "AttemptEnded",
            Self::TreeEmptied { .. } => "TreeEmptied",
            Self::StopIncomplete { .. } => "StopIncomplete",
            Self::TurnCommitted { .. } => "TurnCommitted",
            Self::ToolsOffered { .. } => "ToolsOffered",
            Self::WorkspacePrepared { .. } => "WorkspacePrepared",
            Self::WorkspaceRefused { .. } => "WorkspaceRefused",
            Self::WorkspaceDiscarded { .. } => "WorkspaceDiscarded",
            Self::ErrandStarted { .. } => "ErrandStarted",
            Self::SnapshotTaken { .. } => "SnapshotTaken",
            Self::SnapshotFailed { .. } => "SnapshotFailed",
            Self::RestoreRequested { .. } => "RestoreRequested",
            Self::Forked { .. } => "Forked",
            Self::WorkspaceRestored { .. } => "WorkspaceRestored",
            Self::ErrandEnded { .. } => "ErrandEnded",
            Self::ErrandEmptied { .. } => "ErrandEmptied",
            Self::ErrandIncomplete { .. } => "ErrandIncomplete",
            Self::CallAnswered { .. } => "CallAnswered",
            Self::CallBegun { .. } => "CallBegun",
            Self::CallEnded { .. } => "CallEnded",
            Self::CallResolved { .. } => "CallResolved",
            Self::NoteTaken { .. } => "NoteTaken",
            Self::Emitted { .. } => "Emitted",
            Self::EmissionDenied { .. } => "EmissionDenied",
            Self::MessageReceived { .. } => "MessageReceived",
            Self::TerminalOpened { .. } => "TerminalOpened",
            Self::QuestionAsked { .. } => "QuestionAsked",
            Self::QuestionWithdrawn { .. } => "QuestionWithdrawn",
            Self::MessagesGiven { .. } => "MessagesGiven",
            Self::PauseRequested { .. } => "PauseRequested",
            Self::ResumeRequested { .. } => "ResumeRequested",
            Self::Answered { .. } => "Answered",
            Self::RemovalRequested { .. } => "RemovalRequested",
            Self::WorkspaceRemoved { .. } => "WorkspaceRemoved",
            Self::WorkspaceKept { .. } => "WorkspaceKept",
            Self::StopRequested { .. } => "StopRequested",
            Self::LimitReached { .. } => "LimitReached",
            Self::LimitsRaised { .. } => "LimitsRaised",
            Self::PredecessorEnded { .. } => "PredecessorEnded",
            Self::RunEnded { .. } => "RunEnded",
            Self::ChildSpawned { .. } => "ChildSpawned",
            Self::ChildSettled { .. } => "ChildSettled",
            Self::HealthDegraded { .. } => "HealthDegraded",
            Self::HealthRecovered { .. } => "HealthRecovered",
            Self::LimitNeared { .. } => "LimitNeared",
            Self::UsageReported { .. } => "UsageReported",
            Self::OutputMatched { .. } => "OutputMatched",
            Self::WatchDisabled { .. } => "WatchDisabled",
            Self::HeartbeatTold { .. } => "HeartbeatTold",
        }
    }
}
