//! Runs that never ran: journals as the engine writes them, made without a daemon or a process.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::mpsc;

use anyhow::{Context as _, Result};
use outlast_engine::{
    Agent, BootId, Custody, End, Event, Exit, Input, Report, Retry, Run, RunId, RunSpec, Started,
    Time, TreeNews, create,
};
use outlast_store::{Append, Journal, Sqlite};

/// When the first of them happened.
const LONG_AGO: u64 = 1_700_000_000_000;

/// Puts so many completed runs into the journal of a home that no daemon has yet.
pub(super) fn ended_runs(home: &Path, count: u32) -> Result<()> {
    let state = home.join("state");
    DirBuilder::new().recursive(true).mode(0o700).create(&state).context("the state directory")?;
    let store = Sqlite::open(&state.join("outlast.db"))?;
    let epoch = store.take_epoch()?;
    let (answers, answered) = mpsc::channel();
    for n in 0..count {
        let answers = answers.clone();
        store.append(completed(n, epoch)?, Box::new(move |answer| drop(answers.send(answer))));
    }
    drop(answers);
    answered.iter().try_for_each(|answer| answer.context("making a run that has ended"))
}

fn completed(n: u32, epoch: u64) -> Result<Append> {
    let id = RunId(format!("aaaa{n:08}"));
    let context = context(n);
    let mut events = create(&id, spec(&["true"], Retry::default()), &context);
    for _ in 0..2 {
        let run = Run::replay(&id, &events)?;
        let news = exit(&run, 0).unwrap_or(Input::Finished);
        events.extend(run.handle(&news, &context));
    }
    let row = Run::replay(&id, &events)?.row();
    Ok(Append {
        run: id,
        expected_seq: 0,
        epoch,
        events,
        row,
        outbox: Vec::new(),
        spent: outlast_store::Entry::default(),
    })
}

/// The news that the live attempt of a run has started and exited; none if there is no such attempt.
pub(super) fn exit(run: &Run, code: i32) -> Option<Input> {
    let attempt = run.live()?;
    let at = Time(LONG_AGO);
    let report = Report {
        started: Some(Started { at, pid: 41, start: 7 }),
        end: Some(End::Exited { at, exit: Exit::Code(code), cause: None }),
        tree: TreeNews::Empty,
        ..Report::of(attempt.step(), Custody::Shim)
    };
    Some(Input::Reported(Box::new(report)))
}

pub(super) fn applied(run: Run, events: &[Event]) -> Run {
    let apply = |run: Run, event| run.apply(event).expect("the engine answers legal events only");
    events.iter().fold(run, apply)
}

pub(super) fn spec(command: &[&str], retry: Retry) -> RunSpec {
    let agent = Agent {
        kind: "exec".to_owned(),
        command: command.iter().map(|word| (*word).to_owned()).collect(),
    };
    RunSpec { retry, ..RunSpec::command(agent, "/".to_owned()) }
}

/// One second later for each `n`.
pub(super) fn context(n: u32) -> outlast_engine::Context {
    outlast_engine::Context::new(
        Time(LONG_AGO + u64::from(n) * 1000),
        BootId("an earlier boot".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use outlast_store::Counts;

    use super::*;

    #[test]
    fn made_runs_have_ended_and_their_journals_hold() {
        let home = tempfile::tempdir().expect("a directory");
        ended_runs(home.path(), 30).expect("they can be made");
        let store = Sqlite::open(&home.path().join("state/outlast.db")).expect("a journal");
        assert_eq!(store.counts().expect("counts"), Counts { live: 0, resting: 0, ended: 30 });
        assert_eq!(store.check().expect("a check"), []);
    }
}
