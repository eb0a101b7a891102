//! The step monitor, told what the world is like, and what it has done about it.

use std::cell::Cell;
use std::sync::Arc;

use outlast_conduct::steps::{
    Effect, Evidence, Greeting, Hello, Launched, Left, News, Note, Owner, Say, Seen, Signal,
    StepMonitor, Surroundings, Task,
};
use outlast_engine::{
    Agent, BootId, Context, Custody, EndCause, Limits, RunId, RunSpec, Step, StopMode, Survivor,
    Time, decide_new,
};
use outlast_wire::shim::{Identity, NeverStarted, Record};

/// A world in which only time passes.
#[derive(Default)]
struct World {
    ms: Cell<u64>,
    is_paced: Cell<bool>,
}

impl Surroundings for World {
    fn now(&self) -> Time {
        Time(self.ms.get())
    }

    fn steady(&self) -> Time {
        Time(self.ms.get())
    }

    fn awake_ms(&self) -> u64 {
        self.ms.get()
    }

    fn of_shim(&self, at: Time, _line: Option<i64>) -> Time {
        at
    }

    fn last_sign(&self) -> Option<Time> {
        None
    }

    fn is_paced(&self) -> bool {
        self.is_paced.get()
    }
}

const STEP: Step = Step::Attempt { turn: 1, attempt: 1 };
const TIMEOUT_MS: u64 = 5_000;

/// The monitor of a run's first attempt, and its first question.
fn monitor() -> (StepMonitor, World) {
    let boot = BootId("b".to_owned());
    let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
    let limits = Limits { turn_timeout_ms: Some(TIMEOUT_MS), ..Limits::default() };
    let spec = RunSpec { limits, ..RunSpec::command(agent, "/".to_owned()) };
    let id = RunId("k3v9d2m7q0xa".to_owned());
    let run = decide_new(&id, spec, &Context::new(Time(1_000), boot.clone())).after;
    let (timeout_ms, stall_window_ms) = (Some(TIMEOUT_MS), None);
    let task =
        Task { run: Arc::new(run), step: STEP, boot: boot.clone(), timeout_ms, stall_window_ms };
    let mut monitor = StepMonitor::new(task, Owner { epoch: 3, boot, began: Time(0) });
    assert!(matches!(monitor.begin(None)[..], [Effect::Connect]));
    let world = World::default();
    world.ms.set(2_000);
    (monitor, world)
}

/// Tells the monitor, and answers its effects.
fn tell(monitor: &mut StepMonitor, world: &World, news: News) -> Vec<Effect> {
    monitor.handle(news, world)
}

fn no_records() -> News {
    News::Left(Ok(Left::Free { records: Vec::new(), noted: None }))
}

fn never_launched() -> News {
    let (has_run_dir, has_spec, has_leftovers) = (true, false, false);
    News::Evidence(Ok(Evidence { note: Note::Other, has_run_dir, has_spec, has_leftovers }))
}

fn started() -> Vec<Record> {
    let identity = Identity { boot: "b".to_owned(), pid: 41, start: 7 };
    vec![
        Record::Starting { at_ms: 1_500, epoch: 3, booted_at_ms: None },
        Record::Started { at_ms: 1_500, identity },
    ]
}

fn command() -> Survivor {
    Survivor { pid: 41, start: 7, command: "true".to_owned() }
}

fn a_shim() -> Survivor {
    Survivor { pid: 40, start: 6, command: "outlast".to_owned() }
}

fn says(effects: &[Effect]) -> Vec<Say> {
    effects
        .iter()
        .filter_map(|it| if let Effect::Say(say) = it { Some(*say) } else { None })
        .collect()
}

/// Lets the time pass that the monitor wants to pass.
fn sleep(monitor: &mut StepMonitor, world: &World) -> Vec<Effect> {
    let wake_in = monitor.wake_in(world).expect("it waits for a time");
    world.ms.set(world.ms.get() + wake_in);
    tell(monitor, world, News::Woke)
}

#[test]
fn a_step_that_never_ran_is_launched_once_and_one_that_is_held_back_is_not() {
    let (mut monitor, world) = monitor();
    world.is_paced.set(true);
    assert!(matches!(
        tell(&mut monitor, &world, News::Greeted(Greeting::NotThere))[..],
        [Effect::ReadLeft]
    ));
    assert!(matches!(tell(&mut monitor, &world, no_records())[..], [Effect::GatherEvidence]));
    assert!(tell(&mut monitor, &world, never_launched()).is_empty());
    assert!(monitor.is_paced());
    assert!(tell(&mut monitor, &world, News::Released).is_empty(), "the books say otherwise");
    world.is_paced.set(false);
    assert!(matches!(tell(&mut monitor, &world, News::Released)[..], [Effect::Connect]));
    tell(&mut monitor, &world, News::Greeted(Greeting::NotThere));
    tell(&mut monitor, &world, no_records());
    assert!(matches!(tell(&mut monitor, &world, never_launched())[..], [Effect::Launch]));
}

#[test]
fn a_lock_that_is_held_is_never_launched_over() {
    let (mut monitor, world) = monitor();
    for _ in 0..20 {
        tell(&mut monitor, &world, News::Greeted(Greeting::NotThere));
        let effects =
            tell(&mut monitor, &world, News::Left(Ok(Left::Locked { records: Vec::new() })));
        assert!(!effects.iter().any(Effect::is_question), "{effects:?}");
        assert!(matches!(sleep(&mut monitor, &world)[..], [Effect::Connect]));
    }
}

#[test]
fn what_was_left_of_a_launch_is_looked_at_again_before_it_is_called_an_orphan() {
    let (mut monitor, world) = monitor();
    tell(&mut monitor, &world, News::Greeted(Greeting::NotThere));
    tell(&mut monitor, &world, no_records());
    let (has_run_dir, has_spec, has_leftovers) = (true, true, true);
    let evidence = Evidence { note: Note::Launch, has_run_dir, has_spec, has_leftovers };
    let again = tell(&mut monitor, &world, News::Evidence(Ok(evidence)));
    assert!(matches!(again[..], [Effect::Connect]), "its shim may have taken the lock since");
    tell(&mut monitor, &world, News::Greeted(Greeting::NotThere));
    let effects = tell(&mut monitor, &world, no_records());
    assert!(matches!(effects.last(), Some(Effect::LookForProcesses { .. })), "{effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Launch)));
}

#[test]
fn a_process_without_a_record_has_its_time_from_when_it_was_found() {
    let (mut monitor, world) = monitor();
    tell(&mut monitor, &world, News::Greeted(Greeting::NoDirectory));
    let (has_run_dir, has_spec, has_leftovers) = (true, false, false);
    let evidence = Evidence { note: Note::Launch, has_run_dir, has_spec, has_leftovers };
    tell(&mut monitor, &world, News::Evidence(Ok(evidence)));
    tell(&mut monitor, &world, News::Greeted(Greeting::NoDirectory));
    let seen = || News::Seen(Ok(Seen { tree: vec![command()], ..Seen::default() }));
    let effects = tell(&mut monitor, &world, seen());
    assert!(matches!(effects.last(), Some(Effect::Watch { all: false, .. })), "{effects:?}");
    assert_eq!(monitor.wake_in(&world), Some(TIMEOUT_MS));
    assert!(matches!(sleep(&mut monitor, &world)[..], [Effect::LookForProcesses { .. }]));
    tell(&mut monitor, &world, seen());
    let effects = tell(&mut monitor, &world, seen());
    let signals = |effect: &Effect| matches!(effect, Effect::Signal { signal: Signal::Term, .. });
    assert!(effects.iter().any(signals), "{effects:?}");
}

#[test]
fn a_shim_that_does_not_answer_is_woken_and_then_done_without() {
    let (mut monitor, world) = monitor();
    let hello = Hello { shim_pid: 40, records: started() };
    let effects = tell(&mut monitor, &world, News::Greeted(Greeting::Met(hello)));
    assert_eq!(says(&effects), [], "it was started before");
    let effects = tell(&mut monitor, &world, News::Ordered(Some(StopMode::Gracefully)));
    assert_eq!(says(&effects), [Say::Stop { grace_ms: 10_000 }, Say::Hello]);
    let effects = sleep(&mut monitor, &world);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::WakeShim)), "{effects:?}");
    let effects = sleep(&mut monitor, &world);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::TakeOver)), "{effects:?}");
    // The main process has gone, and the shim that may have seen how is being ended: nothing is called lost yet.
    let left = Survivor { pid: 42, start: 8, command: "left".to_owned() };
    let seen = Seen { tree: vec![left], shims: vec![a_shim()], ..Seen::default() };
    let effects = tell(&mut monitor, &world, News::Seen(Ok(seen)));
    let custody = effects.iter().find_map(|effect| match effect {
        Effect::Report { report, .. } => Some(report.custody),
        _ => None,
    });
    assert_eq!(custody, Some(Custody::Orphan));
}

#[test]
fn a_stop_that_comes_during_a_launch_is_passed_on_with_the_answer() {
    let (mut monitor, world) = monitor();
    tell(&mut monitor, &world, News::Greeted(Greeting::NotThere));
    tell(&mut monitor, &world, no_records());
    tell(&mut monitor, &world, never_launched());
    assert!(tell(&mut monitor, &world, News::Ordered(Some(StopMode::Now))).is_empty());
    let hello = Hello { shim_pid: 40, records: Vec::new() };
    let met = News::Launched(Launched::Met { hello, baseline: None });
    assert_eq!(says(&tell(&mut monitor, &world, met)), [Say::Stop { grace_ms: 0 }, Say::Hello]);
    // And a launch that fails is not tried again for a step that is to be stopped.
    let (mut monitor, world) = self::monitor();
    tell(&mut monitor, &world, News::Greeted(Greeting::NotThere));
    tell(&mut monitor, &world, no_records());
    tell(&mut monitor, &world, never_launched());
    tell(&mut monitor, &world, News::Ordered(Some(StopMode::Now)));
    let failed = News::Launched(Launched::Failed { code: None, why: "no memory".to_owned() });
    let effects = tell(&mut monitor, &world, failed);
    assert!(
        matches!(effects[..], [Effect::Fence { code: NeverStarted::Stopped, .. }]),
        "{effects:?}"
    );
}

#[test]
fn a_limit_that_a_shim_did_not_keep_ends_the_tree_for_that() {
    let (mut monitor, world) = monitor();
    let hello = Hello { shim_pid: 40, records: started() };
    tell(&mut monitor, &world, News::Greeted(Greeting::Met(hello)));
    let mut effects = Vec::new();
    while !effects.iter().any(|effect| matches!(effect, Effect::TakeOver)) {
        effects = sleep(&mut monitor, &world);
    }
    assert!(world.ms.get() > 1_500 + TIMEOUT_MS);
    let alive = || Seen { tree: vec![command()], is_main_alive: true, ..Seen::default() };
    tell(&mut monitor, &world, News::Seen(Ok(alive())));
    tell(&mut monitor, &world, News::Seen(Ok(alive())));
    tell(&mut monitor, &world, News::Gone);
    tell(&mut monitor, &world, News::Seen(Ok(Seen::default())));
    let effects = tell(&mut monitor, &world, News::Seen(Ok(Seen::default())));
    let ended_for = effects.iter().find_map(|effect| match effect {
        Effect::Report { report, .. } => Some(report.ended_for),
        _ => None,
    });
    assert_eq!(ended_for, Some(Some(EndCause::TimedOut)), "{effects:?}");
    assert!(monitor.is_done());
}

#[test]
fn a_step_that_has_run_is_not_started_by_the_shim_that_another_daemon_launched_in_its_place() {
    let (mut monitor, world) = monitor();
    let hello = Hello { shim_pid: 40, records: started() };
    tell(&mut monitor, &world, News::Greeted(Greeting::Met(hello)));
    tell(&mut monitor, &world, News::HungUp);
    sleep(&mut monitor, &world);
    let hello = Hello { shim_pid: 50, records: Vec::new() };
    let effects = tell(&mut monitor, &world, News::Greeted(Greeting::Met(hello)));
    assert_eq!(says(&effects), [], "{effects:?}");
    assert!(effects.iter().any(|it| matches!(it, Effect::HangUp)), "{effects:?}");
    let looks = effects.iter().any(|it| matches!(it, Effect::LookForProcesses { .. }));
    assert!(looks, "who is left of it is looked for by identity: {effects:?}");
}

/// What is found of a step whose launch was noted.
fn noted_launch(has_spec: bool) -> News {
    let (note, has_run_dir, has_leftovers) = (Note::Launch, true, false);
    News::Evidence(Ok(Evidence { note, has_run_dir, has_spec, has_leftovers }))
}

/// The monitor of a step whose shim was slow to answer, at the question of who is alive of it.
fn slow_shim() -> (StepMonitor, World) {
    let (mut monitor, world) = monitor();
    tell(&mut monitor, &world, News::Greeted(Greeting::NoDirectory));
    assert!(matches!(tell(&mut monitor, &world, never_launched())[..], [Effect::Launch]));
    // Start is in the pipe of the shim, which has not come to its lock yet.
    tell(&mut monitor, &world, News::Launched(Launched::NoAnswer { baseline: None }));
    sleep(&mut monitor, &world);
    tell(&mut monitor, &world, News::Greeted(Greeting::NotThere));
    tell(&mut monitor, &world, no_records());
    let effects = tell(&mut monitor, &world, noted_launch(true));
    assert!(matches!(effects[..], [Effect::LookForProcesses { main: None }]), "{effects:?}");
    (monitor, world)
}

#[test]
fn a_step_that_ran_and_vanished_while_its_evidence_was_weighed_is_not_launched_again() {
    let (mut monitor, world) = slow_shim();
    // The shim wakes, runs the command, loses its directory and is killed: all before processes are looked for.
    let mut effects = tell(&mut monitor, &world, News::Seen(Ok(Seen::default())));
    assert!(matches!(effects[..], [Effect::GatherEvidence]), "{effects:?}");
    effects = tell(&mut monitor, &world, noted_launch(false));
    assert!(matches!(effects[..], [Effect::Connect]), "{effects:?}");
    effects = tell(&mut monitor, &world, News::Greeted(Greeting::NoDirectory));
    assert!(matches!(effects.last(), Some(Effect::LookForProcesses { .. })), "{effects:?}");
    effects = tell(&mut monitor, &world, News::Seen(Ok(Seen::default())));
    let report = effects.iter().find_map(|effect| match effect {
        Effect::Report { report, .. } => Some((report.custody, report.end.clone())),
        _ => None,
    });
    assert_eq!(report, Some((Custody::Nobody, None)), "how it ended is not known: {effects:?}");
    assert!(monitor.is_done());
}

#[test]
fn a_step_whose_shim_was_killed_before_it_did_anything_is_launched_again() {
    let (mut monitor, world) = slow_shim();
    tell(&mut monitor, &world, News::Seen(Ok(Seen::default())));
    assert!(matches!(tell(&mut monitor, &world, noted_launch(true))[..], [Effect::Launch]));
    // What was seen before that launch says nothing of the shim that came of it.
    tell(&mut monitor, &world, News::Launched(Launched::NoAnswer { baseline: None }));
    sleep(&mut monitor, &world);
    tell(&mut monitor, &world, News::Greeted(Greeting::NotThere));
    tell(&mut monitor, &world, no_records());
    let effects = tell(&mut monitor, &world, noted_launch(true));
    assert!(matches!(effects[..], [Effect::LookForProcesses { main: None }]), "{effects:?}");
}

#[test]
fn a_launch_that_was_noted_and_has_no_spec_may_have_run_and_one_with_its_spec_has_not() {
    let (has_run_dir, has_leftovers) = (true, false);
    let evidence = |note, has_spec| Evidence { note, has_run_dir, has_spec, has_leftovers };
    assert!(evidence(Note::Launch, false).may_have_run());
    assert!(!evidence(Note::Launch, true).may_have_run());
    assert!(!evidence(Note::Other, false).may_have_run(), "it was not launched yet");
    assert!(!evidence(Note::None, false).may_have_run(), "it was not launched yet");
    assert!(Evidence { has_leftovers: true, ..evidence(Note::Launch, true) }.may_have_run());
}
