//! The conductor of one open run: an input comes in, what follows from it is appended to the journal, and then what is
//! due is carried out.
//!
//! Without IO: the conductor says what it wants next ([`Next`]), and the daemon, or the simulator, does that and says
//! how it went. It takes one input at a time, so a run has one writer, and it acts on nothing that the journal does not
//! have. What follows from an input is decided by the engine.

use std::sync::Arc;

use outlast_engine::{BootId, Context, Effect, Input, Run, Step, StopMode, Time};
use outlast_store::{Append, Entry, Error};

use crate::fenced_run::{Accepted, FencedRun, Proposal, Tell};

/// Between two tries to write to a journal that takes nothing.
const FIRST_RETRY_MS: u64 = 250;
const LAST_RETRY_MS: u64 = 5_000;

/// What a run goes by beside its own journal: the clock, and what it shares with other runs.
pub trait Shared {
    /// All that an input is decided with. Takes a slot for the run, and reserves its share of the budgets, if there
    /// is room.
    fn context(&mut self, run: &Run, input: &Input, unreachable: Option<Time>) -> Context;
    /// The same context for a run that will have used up so much in it.
    fn context_after(&mut self, run: &Run, context: &Context, spent: Entry) -> Context;
    /// A run that others go before after a restart would start something now; true if it may.
    fn lets_go(&mut self, run: &Run) -> bool;
    /// Notes what a run has come to, and what it has used up by that.
    fn note(&mut self, run: &Run, spent: Entry);
    /// Puts notices into words.
    fn tell(&self) -> &dyn Tell;
}

/// What the conductor wants for the input that it has.
#[derive(Debug)]
pub enum Next {
    /// Write this, and say with [`Conductor::appended`] how that went.
    Append(Box<Append>),
    /// The journal has what this conductor does not know of: read the run back, and give it to
    /// [`Conductor::reloaded`].
    Reload,
    /// The journal takes nothing for now. Call [`Conductor::again`] after so long, or earlier.
    Suspended {
        retry_in_ms: u64,
    },
    /// The journal has all that follows from the input.
    Taken(Taken),
    Over(Over),
}

#[derive(Debug, Default)]
pub struct Taken {
    /// True if something was written.
    pub is_news: bool,
    /// The sinks that have a notice to send now.
    pub wake: Vec<String>,
}

/// Why a conductor must not go on.
#[derive(Debug, PartialEq, Eq)]
pub enum Over {
    /// Another daemon has the journal, or it is closed.
    Fenced,
    /// The journal is gone from under this daemon.
    Gone,
    /// The journal would reject this as often as it is tried: a person has to know.
    Rejected(String),
}

/// What is to be carried out for the run as the journal has it.
#[derive(Debug, Default)]
pub struct Due {
    /// The step that has to have a monitor.
    pub step: Option<(Step, BootId)>,
    /// The order that the step is under.
    pub stop: Option<StopMode>,
    pub workspace: Option<WorkspaceOp>,
    /// How the children that go on are to be stopped, with all below them.
    pub stop_children: Option<StopMode>,
    /// The run comes to its end: [`Input::Finished`] is the next input.
    pub is_finishing: bool,
}

/// What is done to a workspace itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceOp {
    Prepare,
    Discard,
    Remove,
}

#[derive(Debug)]
pub struct Conductor {
    fenced: FencedRun,
    epoch: u64,
    /// The input that is being taken.
    input: Option<Input>,
    /// What the journal is being asked to take.
    proposed: Option<Proposed>,
    retry_ms: u64,
    /// True if the journal may have taken an append of which it did not say so.
    is_unsure: bool,
    /// Since when the step's shim does not answer.
    unreachable: Option<Time>,
    /// True once its parent is being told that the run has ended.
    has_told_parent: bool,
}

#[derive(Debug)]
struct Proposed {
    accepted: Accepted,
    spent: Entry,
    wake: Vec<String>,
}

impl Conductor {
    pub fn new(fenced: FencedRun, epoch: u64) -> Self {
        Self {
            fenced,
            epoch,
            input: None,
            proposed: None,
            retry_ms: FIRST_RETRY_MS,
            is_unsure: false,
            unreachable: None,
            has_told_parent: false,
        }
    }

    pub fn run(&self) -> &Run {
        self.fenced.run()
    }

    /// The run as other tasks may look at it.
    pub fn shared(&self) -> Arc<Run> {
        self.fenced.shared()
    }

    /// When the run has something to do without an input.
    pub fn wake_at(&self) -> Option<Time> {
        self.fenced.wake_at()
    }

    /// Takes an input: the journal gets what follows from it, however long that takes.
    pub fn take(&mut self, input: Input, shared: &mut dyn Shared) -> Next {
        self.retry_ms = FIRST_RETRY_MS;
        self.input = Some(input);
        self.again(shared)
    }

    /// Asks anew what follows from the input: time has passed since the last try.
    pub fn again(&mut self, shared: &mut dyn Shared) -> Next {
        // An append may have been made that was not acknowledged: nothing is decided on the run as it was before.
        if std::mem::take(&mut self.is_unsure) {
            return Next::Reload;
        }
        let Some(input) = &self.input else { return Next::Taken(Taken::default()) };
        let run = self.fenced.run();
        let proposal = loop {
            let context = shared.context(run, input, self.unreachable);
            let proposal = propose(&self.fenced, input, &context, shared);
            let is_paced = proposal.as_ref().is_some_and(|proposal| proposal.is_paced);
            if !(is_paced && shared.lets_go(run)) {
                break proposal;
            }
        };
        let Some(Proposal { append, accepted, .. }) = proposal else {
            shared.note(run, Entry::default());
            self.input = None;
            return Next::Taken(Taken::default());
        };
        let wake = append.outbox.iter().map(|notice| notice.sink.clone()).collect();
        self.proposed = Some(Proposed { accepted, spent: append.spent, wake });
        Next::Append(Box::new(append))
    }

    /// The journal has answered.
    pub fn appended(&mut self, result: &Result<(), Error>, shared: &mut dyn Shared) -> Next {
        let Some(Proposed { accepted, spent, wake }) = self.proposed.take() else {
            return Next::Taken(Taken::default());
        };
        match result {
            Ok(()) => {
                self.fenced.accept(accepted);
                shared.note(self.fenced.run(), spent);
                self.input = None;
                Next::Taken(Taken { is_news: true, wake })
            }
            // An append was made whose answer got lost.
            Err(Error::Conflict { .. }) => Next::Reload,
            Err(Error::StaleEpoch { .. } | Error::Closed) => Next::Over(Over::Fenced),
            Err(Error::Gone { .. }) => Next::Over(Over::Gone),
            Err(Error::Rejected(why)) => Next::Over(Over::Rejected(why.clone())),
            Err(error) => {
                self.is_unsure |= is_fate_unknown(error);
                let retry_in_ms = self.retry_ms;
                self.retry_ms = (retry_in_ms * 2).min(LAST_RETRY_MS);
                Next::Suspended { retry_in_ms }
            }
        }
    }

    /// The run as the journal has it.
    pub fn reloaded(&mut self, run: Run, shared: &mut dyn Shared) -> Next {
        self.fenced = FencedRun::new(run, self.epoch);
        self.again(shared)
    }

    /// What is to be carried out now.
    pub fn due(&self) -> Due {
        let mut due = Due::default();
        for effect in self.fenced.due() {
            match effect {
                Effect::Ensure { step, boot } => due.step = Some((step, boot)),
                Effect::Stop { mode, .. } => due.stop = Some(mode),
                Effect::PrepareWorkspace => due.workspace = Some(WorkspaceOp::Prepare),
                Effect::DiscardWorkspace => due.workspace = Some(WorkspaceOp::Discard),
                Effect::RemoveWorkspace => due.workspace = Some(WorkspaceOp::Remove),
                Effect::StopChildren { mode } => due.stop_children = Some(mode),
                Effect::Finish { .. } => due.is_finishing = true,
            }
        }
        due
    }

    /// Notes whether the step's shim answers; true if that has changed, and the run has to look at it.
    pub fn note_unreachable(&mut self, is_unreachable: bool, now: Time) -> bool {
        let is_change = is_unreachable != self.unreachable.is_some();
        if is_change {
            self.unreachable = is_unreachable.then_some(now);
        }
        is_change
    }

    /// True once: when the run is first seen to have ended. Its parent has to hear of that, and makes nothing of it if
    /// it has heard already.
    pub fn has_just_ended(&mut self) -> bool {
        let has_ended = self.fenced.run().ended_at.is_some();
        // One that was exhausted may have been opened again.
        let had_ended = std::mem::replace(&mut self.has_told_parent, has_ended);
        has_ended && !had_ended
    }
}

/// True if an append that failed with this may have been made.
fn is_fate_unknown(error: &Error) -> bool {
    matches!(error, Error::Io(_) | Error::Unsaved { .. })
}

/// What has to be remembered, given also what the run will have used up by it.
fn propose(
    fenced: &FencedRun,
    input: &Input,
    context: &Context,
    shared: &mut dyn Shared,
) -> Option<Proposal> {
    let proposal = fenced.propose(input, context, shared.tell())?;
    let spent = proposal.append.spent;
    if spent.used.amount.is_nothing() {
        return Some(proposal);
    }
    let after = shared.context_after(fenced.run(), context, spent);
    if after == *context { Some(proposal) } else { fenced.propose(input, &after, shared.tell()) }
}
