//! One step of a run: an input in, an append out, and the effects that are due after it.
//!
//! Synchronous and without access to the world, so the simulator drives exactly this code. A `Seat` changes only
//! after the journal has taken the append.

use outlast_engine::{Effect, Event, Input, Moment, Notice, Run, RunId, RunSpec, Time, create};
use outlast_store::{Amount, Append, Entry, Outgoing, day};

/// Puts a notice into the words that leave the daemon: JSON, the same for every sink.
pub trait Tell {
    fn body(&self, run: &Run, notice: &Notice) -> String;
}

/// One for each sink, written with the events. Each is about the run as its own event left it: what a turn
/// says belongs to that turn, also when the next one starts with it.
fn outbox(before: &Run, after: &Run, events: &[Event], tell: &dyn Tell) -> Vec<Outgoing> {
    let mut outgoing: Vec<Outgoing> = Vec::new();
    // Most events are nobody's business, and what is one stays one: then there is nothing to go through again.
    if after.notices(events).is_empty() {
        return outgoing;
    }
    let mut run = before.clone();
    for event in events {
        run = run.apply(event).expect("the engine answers legal events");
        for notice in run.notices(std::slice::from_ref(event)) {
            put(&mut outgoing, &notice, tell.body(&run, &notice));
        }
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
fn spent(before: &Run, after: &Run, moment: &Moment) -> Entry {
    let amount = |run: &Run| Amount {
        tokens: run.spend.tokens(),
        cost_usd_micros: run.spend.cost_usd_micros,
    };
    Entry { day: day(moment.now), amount: amount(after).minus(amount(before)) }
}

/// A run, and the right to write to it.
#[derive(Debug, Clone)]
pub struct Seat {
    run: Run,
    epoch: u64,
}

impl Seat {
    pub fn new(run: Run, epoch: u64) -> Self {
        Self { run, epoch }
    }

    /// The append that creates a run, and the seat to take once it is durable.
    pub fn create(
        id: &RunId,
        spec: RunSpec,
        moment: &Moment,
        epoch: u64,
        tell: &dyn Tell,
    ) -> (Append, Self) {
        let events = create(id, spec, moment);
        let run = Run::replay(id, &events).expect("the engine creates legal runs");
        let first = Run::replay(id, &events[..1]).expect("the engine creates legal runs");
        let outbox = outbox(&first, &run, &events[1..], tell);
        let (row, run_id) = (run.row(), id.clone());
        let spent = Entry::default();
        let append = Append { run: run_id, expected_seq: 0, epoch, row, events, outbox, spent };
        (append, Self { run, epoch })
    }

    /// What has to be remembered because of `input`; `None` if it is old news.
    pub fn propose(&self, input: &Input, moment: &Moment, tell: &dyn Tell) -> Option<Append> {
        let events = self.run.handle(input, moment);
        if events.is_empty() {
            return None;
        }
        let after = self.after(&events);
        let outbox = outbox(&self.run, &after, &events, tell);
        Some(Append {
            run: self.run.id.clone(),
            expected_seq: self.run.seq(),
            epoch: self.epoch,
            row: after.row(),
            spent: spent(&self.run, &after, moment),
            outbox,
            events,
        })
    }

    /// Takes over what the journal has taken.
    pub fn accept(&mut self, events: &[Event]) {
        self.run = self.after(events);
    }

    fn after(&self, events: &[Event]) -> Run {
        events.iter().fold(self.run.clone(), |run, event| {
            run.apply(event).expect("the engine answers legal events")
        })
    }

    pub fn run(&self) -> &Run {
        &self.run
    }

    pub fn due(&self) -> Vec<Effect> {
        self.run.due()
    }

    pub fn wake_at(&self) -> Option<Time> {
        self.run.wake_at()
    }
}
