//! A run and the right to write to it: news in, an append out, and what is due after it.
//!
//! Synchronous and without access to the world, so the simulator drives exactly this code. A `FencedRun` changes only
//! after the journal has taken the append.

use std::sync::Arc;

use outlast_engine::{
    Context, Decided, Effect, Event, Illegal, Input, Notice, Run, RunId, RunSpec, Time,
    decide_fork, decide_new,
};
use outlast_store::{Append, Entry, Outgoing, Used, slot};

/// Puts a notice into the words that leave the daemon: JSON, the same for every sink.
pub trait Tell {
    fn body(&self, run: &Run, notice: &Notice) -> String;
}

/// One for each sink, written with the events. Each is about the run as its own event left it: what a turn
/// says belongs to that turn, also when the next one starts with it.
fn outbox(notices: &[(Notice, Run)], tell: &dyn Tell) -> Vec<Outgoing> {
    let mut outgoing: Vec<Outgoing> = Vec::new();
    for (notice, run) in notices {
        put(&mut outgoing, notice, tell.body(run, notice));
    }
    outgoing
}

fn put(outgoing: &mut Vec<Outgoing>, notice: &Notice, body: String) {
    for sink in &notice.to {
        if outgoing.iter().any(|other| other.id == notice.id && other.sink == *sink) {
            continue;
        }
        outgoing.push(Outgoing {
            id: notice.id.clone(),
            sink: sink.clone(),
            kind: notice.kind.word().to_owned(),
            at: notice.at,
            body: body.clone(),
        });
    }
}

/// What a run has used up from the one to the other.
fn spent(before: &Run, after: &Run, context: &Context) -> Entry {
    Entry { slot: slot(context.now), used: Used::by(after).minus(Used::by(before)) }
}

/// A run, and the right to write to it: the epoch that the store checks.
#[derive(Debug, Clone)]
pub struct FencedRun {
    run: Arc<Run>,
    epoch: u64,
}

/// What has to be remembered, and what follows once it is.
#[derive(Debug)]
pub struct Proposal {
    pub append: Append,
    /// The run would have started something, and rests because others are started first after a restart.
    pub is_paced: bool,
    pub accepted: Accepted,
}

/// A run as it is once its append is durable.
#[derive(Debug)]
pub struct Accepted(Arc<Run>);

impl FencedRun {
    pub fn new(run: Run, epoch: u64) -> Self {
        Self { run: Arc::new(run), epoch }
    }

    /// The append that creates a run, and the run to go on with once it is durable.
    pub fn create(
        id: &RunId,
        spec: RunSpec,
        context: &Context,
        epoch: u64,
        tell: &dyn Tell,
    ) -> (Append, Self) {
        Self::begin(id, decide_new(id, spec, context), epoch, tell)
    }

    /// The append that makes a fork, of the events that it has of another run.
    pub fn fork(
        id: &RunId,
        spec: RunSpec,
        prefix: &[Event],
        context: &Context,
        epoch: u64,
        tell: &dyn Tell,
    ) -> Result<(Append, Self), Illegal> {
        Ok(Self::begin(id, decide_fork(id, spec, prefix, context)?, epoch, tell))
    }

    fn begin(id: &RunId, decided: Decided, epoch: u64, tell: &dyn Tell) -> (Append, Self) {
        let Decided { events, after, notices, .. } = decided;
        let append = Append {
            run: id.clone(),
            expected_seq: 0,
            epoch,
            row: after.row(),
            outbox: outbox(&notices, tell),
            spent: Entry::default(),
            events,
        };
        (append, Self::new(after, epoch))
    }

    /// What has to be remembered because of `input`; `None` if it is old news.
    pub fn propose(&self, input: &Input, context: &Context, tell: &dyn Tell) -> Option<Proposal> {
        let Decided { events, after, notices, is_paced } = self.run.decide(input, context);
        if events.is_empty() {
            return None;
        }
        let append = Append {
            run: self.run.id.clone(),
            expected_seq: self.run.seq(),
            epoch: self.epoch,
            row: after.row(),
            spent: spent(&self.run, &after, context),
            outbox: outbox(&notices, tell),
            events,
        };
        Some(Proposal { append, is_paced, accepted: Accepted(Arc::new(after)) })
    }

    /// Takes over what the journal has taken.
    pub fn accept(&mut self, Accepted(run): Accepted) {
        self.run = run;
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run as other tasks may look at it.
    pub fn shared(&self) -> Arc<Run> {
        self.run.clone()
    }

    pub fn due(&self) -> Vec<Effect> {
        self.run.due()
    }

    pub fn wake_at(&self) -> Option<Time> {
        self.run.wake_at()
    }
}
