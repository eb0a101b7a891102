//! An input that is accepted is folded once: its events go through the run when they are decided, and never again.

use outlast_conduct::fenced_run::{FencedRun, Proposal, Tell};
use outlast_engine::{
    Agent, BootId, Context, Custody, End, Exit, Input, Notice, Report, Run, RunId, RunSpec,
    Started, Step, Time, TreeNews, folded,
};

struct Words;

impl Tell for Words {
    fn body(&self, run: &Run, notice: &Notice) -> String {
        format!("{} {}", run.id, notice.id)
    }
}

fn exited(code: i32) -> Input {
    let at = Time(2_000);
    Input::Reported(Box::new(Report {
        started: Some(Started { at, pid: 41, start: 7 }),
        end: Some(End::Exited { at, exit: Exit::Code(code), cause: None }),
        tree: TreeNews::Empty,
        ..Report::of(Step::Attempt { turn: 1, attempt: 1 }, Custody::Shim)
    }))
}

#[test]
fn an_accepted_input_is_folded_once_also_if_it_is_told() {
    let context = Context::new(Time(1_000), BootId("b".to_owned()));
    let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
    let mut spec = RunSpec::command(agent, "/".to_owned());
    spec.notify = vec!["sink".to_owned()];
    let before = folded();
    let id = RunId("k3v9d2m7q0xa".to_owned());
    let (append, mut run) = FencedRun::create(&id, spec, &context, 1, &Words);
    // The first event makes the run; the others are folded into it.
    assert_eq!(folded() - before, append.events.len() as u64 - 1);
    let mut has_told = false;
    for input in [exited(0), Input::Finished] {
        let before = folded();
        let Some(Proposal { append, accepted, .. }) = run.propose(&input, &context, &Words) else {
            panic!("{input:?} is news")
        };
        run.accept(accepted);
        assert_eq!(folded() - before, append.events.len() as u64);
        has_told |= !append.outbox.is_empty();
    }
    assert!(has_told && run.run().has_ended());
}
