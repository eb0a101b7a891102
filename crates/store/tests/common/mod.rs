//! Runs to write about: real events of the engine, so that every journal in these tests is a legal one.
#![allow(dead_code, reason = "each test file uses its part")]

use outlast_engine::{
    Agent, BootId, Context, Custody, End, Event, Exit, Input, Report, Retry, Run, RunId, RunSpec,
    Started, Time, TreeNews, create,
};
use outlast_store::{Append, Entry, Error, Journal};

/// A run, as its daemon holds it.
#[derive(Clone)]
pub(crate) struct Held {
    pub(crate) run: Run,
    pub(crate) epoch: u64,
}

pub(crate) fn id(text: &str) -> RunId {
    RunId(text.to_owned())
}

pub(crate) fn spec() -> RunSpec {
    let agent =
        Agent { kind: "exec".to_owned(), command: vec!["sleep".to_owned(), "60".to_owned()] };
    let retry = Retry { max_attempts: 1000, initial_backoff_ms: 0, max_backoff_ms: 0 };
    RunSpec { retry, ..RunSpec::command(agent, "/tmp".to_owned()) }
}

pub(crate) fn named(name: &str) -> RunSpec {
    RunSpec { name: Some(name.to_owned()), ..spec() }
}

pub(crate) fn keyed(key: &str) -> RunSpec {
    RunSpec { key: Some(key.to_owned()), ..spec() }
}

pub(crate) fn labelled(labels: &[(&str, &str)]) -> RunSpec {
    let labels =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    RunSpec { labels, ..spec() }
}

pub(crate) fn context() -> Context {
    Context::new(Time(1_000_000), BootId("boot-1".to_owned()))
}

/// The append that creates a run, and the run it makes.
pub(crate) fn creation(run: &RunId, spec: RunSpec, epoch: u64) -> (Append, Held) {
    let events = create(run, spec, &context());
    let made = Run::replay(run, &events).unwrap();
    let append = Append {
        run: run.clone(),
        expected_seq: 0,
        epoch,
        row: made.row(),
        events,
        outbox: Vec::new(),
        spent: Entry::default(),
    };
    (append, Held { run: made, epoch })
}

pub(crate) fn create_run(
    journal: &impl Journal,
    text: &str,
    spec: RunSpec,
    epoch: u64,
) -> Result<Held, Error> {
    let (append, held) = creation(&id(text), spec, epoch);
    journal.append_wait(append).map(|()| held)
}

impl Held {
    pub(crate) fn id(&self) -> RunId {
        self.run.id.clone()
    }

    /// The append that one piece of news leads to. The run is as it was before.
    pub(crate) fn append_of(&self, input: &Input) -> Append {
        let events = self.run.handle(input, &context());
        let after = self.after(&events);
        Append {
            run: self.id(),
            expected_seq: self.run.seq(),
            epoch: self.epoch,
            row: after.row(),
            events,
            outbox: Vec::new(),
            spent: Entry::default(),
        }
    }

    pub(crate) fn tell(&mut self, journal: &impl Journal, input: &Input) -> Result<(), Error> {
        let append = self.append_of(input);
        self.run = self.after(&append.events);
        journal.append_wait(append)
    }

    pub(crate) fn after(&self, events: &[Event]) -> Run {
        events.iter().fold(self.run.clone(), |run, event| run.apply(event).unwrap())
    }

    pub(crate) fn started(&self) -> Input {
        Input::Reported(Box::new(self.report()))
    }

    pub(crate) fn exited(&self, code: i32) -> Input {
        let end = Some(End::Exited { at: context().now, exit: Exit::Code(code), cause: None });
        Input::Reported(Box::new(Report { end, tree: TreeNews::Empty, ..self.report() }))
    }

    /// Some news that a run in this state always has something to say to.
    pub(crate) fn next_news(&self) -> Input {
        match &self.run.attempt {
            Some(attempt) if attempt.state.end.is_none() && attempt.state.process.is_none() => {
                self.started()
            }
            Some(attempt) if attempt.state.end.is_none() => self.exited(1),
            Some(_) | None => Input::Woke,
        }
    }

    /// Lets the run end as completed.
    pub(crate) fn complete(&mut self, journal: &impl Journal) {
        self.tell(journal, &self.exited(0)).unwrap();
        self.tell(journal, &Input::Finished).unwrap();
        assert!(!self.run.is_open());
    }

    fn report(&self) -> Report {
        let attempt = self.run.attempt.as_ref().unwrap();
        Report {
            started: Some(Started { at: context().now, pid: 41, start: 7 }),
            ..Report::of(attempt.step(), Custody::Shim)
        }
    }
}
