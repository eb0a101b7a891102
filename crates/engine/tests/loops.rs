//! The engine told as stories: loops of many turns.

mod story;

use outlast_engine::{
    Answer, Checks, Decision, Effect, End, EndCause, Exit, Hooks, Input, Limits, NeverStarted,
    OnInterrupt, OutputPolicy, RunSpec, Strategy, Time, TreeNews, TurnOutcome, TurnStatus, Usage,
    Wait, Workspace,
};
use story::{Story, a_loop, says};

use TurnStatus::{Blocked, Continue, Done, Failed};

fn send(id: &str, text: &str) -> Input {
    let (from, by) = ("user".to_owned(), None);
    Input::Sent { message: id.to_owned(), from, text: text.to_owned(), by }
}

fn checked() -> RunSpec {
    RunSpec {
        checks: Checks { done: vec!["make test".to_owned()], ..Checks::default() },
        ..a_loop()
    }
}

fn hooked() -> RunSpec {
    let hook = |name: &str| Some(format!("echo {name}"));
    RunSpec {
        workspace: Workspace {
            strategy: Strategy::Dir,
            root: Some("/r".to_owned()),
            ..Workspace::default()
        },
        hooks: Hooks {
            after_create: hook("after_create"),
            before_run: hook("before_run"),
            after_turn: hook("after_turn"),
            after_run: hook("after_run"),
            before_remove: hook("before_remove"),
            timeout_ms: None,
        },
        checks: Checks { before_run: vec!["true".to_owned()], ..Checks::default() },
        ..a_loop()
    }
}

#[test]
fn a_turn_commits_and_the_next_one_starts_in_one_append() {
    let mut story = Story::of(a_loop());
    story.answers_in(says(Continue), "one");
    let before = story.events.len();
    story.answers_in(says(Continue), "two");
    let kinds: Vec<&str> = story.events[before..].iter().map(|event| event.fact.kind()).collect();
    assert_eq!(
        kinds,
        ["AttemptStarted", "AttemptEnded", "TurnCommitted", "Emitted", "TurnStarted"]
    );
    story.answers(says(Done)).tell(Input::Finished);
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> running (slot_free)
     3 TurnStarted t1.a1
     4 AttemptStarted
     5 AttemptEnded t1.a1 Exited { code: 0 }
     6 TurnCommitted
     7 Emitted
     8 TurnStarted t2.a1
     9 AttemptStarted
    10 AttemptEnded t2.a1 Exited { code: 0 }
    11 TurnCommitted
    12 Emitted
    13 TurnStarted t3.a1
    14 AttemptStarted
    15 AttemptEnded t3.a1 Exited { code: 0 }
    16 TurnCommitted
    17 Emitted
    18 running -> finishing (done)
    19 finishing -> completed (done)
    20 RunEnded Completed done
    ");
}

#[test]
fn a_claim_of_done_is_verified_and_a_refuted_one_tells_the_next_turn() {
    let mut story = Story::of(checked());
    story.answers(says(Done));
    assert_eq!(story.is_at(), "verifying (claimed_done), check done 1/1");
    story.report(|report| {
        report.end = Some(End::Exited { at: Time(1_000_050), exit: Exit::Code(2), cause: None });
        report.tree = TreeNews::Empty;
        report.tail = "3 tests failed".to_owned();
    });
    assert_eq!(story.is_at(), "running (check_failed), turn 2 attempt 1");
    let previous = story.run().previous.expect("a turn went before");
    assert_eq!(previous.failed_checks[0].output, "3 tests failed");
    story.answers(says(Done)).exits(0);
    assert_eq!(story.is_at(), "finishing (done), finishing");
}

#[test]
fn done_in_vain_too_often_is_blocked_and_a_person_lets_it_go_on() {
    let mut story = Story::of(checked());
    for turn in 1..=3 {
        story.answers_in(says(Done), &format!("workspace {turn}")).exits(1);
    }
    assert_eq!(story.is_at(), "blocked (done_check_failed), blocked");
    story.wakes_after(10_000_000);
    assert_eq!(story.is_at(), "blocked (done_check_failed), blocked");
    story.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "running (released), turn 4 attempt 1");
}

#[test]
fn turns_that_change_nothing_are_no_progress() {
    let mut story = Story::of(a_loop());
    story.report(|report| report.workspace = Some("same".to_owned()));
    for _ in 0..3 {
        story.answers_in(says(Continue), "same");
    }
    assert_eq!(story.is_at(), "blocked (no_progress), blocked");
    let outcomes = story.events.iter().filter_map(|event| match &event.fact {
        outlast_engine::Fact::TurnCommitted { outcome, .. } => Some(*outcome),
        _ => None,
    });
    assert!(outcomes.eq([TurnOutcome::NoOpSuccess; 3]));
}

/// A later build may judge otherwise, and must not change what an open run has come to.
#[test]
fn what_a_turn_was_worth_is_read_from_the_journal_and_an_older_one_is_judged_anew() {
    let mut story = Story::of(a_loop());
    story.report(|report| report.workspace = Some("same".to_owned()));
    story.answers_in(says(Continue), "same").answers_in(says(Continue), "same");
    let folded = |verdict: Option<bool>| {
        let mut events = story.events.clone();
        for event in &mut events {
            if let outlast_engine::Fact::TurnCommitted { progress, .. } = &mut event.fact {
                assert_eq!(*progress, Some(false));
                *progress = verdict;
            }
        }
        let run = outlast_engine::Run::replay(&story.run().id, &events).expect("it is legal");
        run.counters.no_progress
    };
    assert_eq!((folded(Some(false)), folded(None), folded(Some(true))), (2, 2, 0));
    let json = serde_json::to_string(&story.events).expect("plain data");
    assert_eq!(json.matches(r#""progress":false"#).count(), 2);
}

#[test]
fn a_change_in_the_workspace_or_in_what_is_asked_for_is_progress() {
    let mut story = Story::of(a_loop());
    for turn in 0..6 {
        let asks = outlast_engine::Response {
            next_task: (turn % 2 == 0).then(|| format!("part {turn}")),
            ..says(Continue)
        };
        story.answers_in(asks, "same");
    }
    assert_eq!(story.is_at(), "running (slot_free), turn 7 attempt 1");
    assert_eq!(story.run().task.as_deref(), Some("part 4"));
}

#[test]
fn each_ceiling_has_a_name_of_its_own() {
    let most = |limits: Limits| RunSpec { limits, ..a_loop() };
    let mut turns = Story::of(most(Limits { max_turns: Some(2), ..Limits::default() }));
    turns.answers(says(Continue)).answers(says(Continue));
    assert_eq!(turns.is_at(), "finishing (max_turns), finishing");

    let used = outlast_engine::Response {
        usage: Some(Usage { input_tokens: Some(600), ..Usage::default() }),
        ..says(Continue)
    };
    let mut tokens = Story::of(most(Limits { max_tokens: Some(1000), ..Limits::default() }));
    tokens.answers(used.clone()).answers(used);
    assert_eq!(tokens.is_at(), "finishing (max_tokens), finishing");

    let mut money = Story::of(most(Limits { max_cost_usd_micros: Some(100), ..Limits::default() }));
    for _ in 0..20 {
        money.answers(says(Continue));
    }
    assert_eq!(money.is_at(), "finishing (max_cost_usd), finishing");
    assert!(!money.run().spend.known.is_all(), "what was not said is charged and marked");

    let mut time = Story::of(most(Limits { run_timeout_ms: Some(5_000), ..Limits::default() }));
    time.answers(says(Continue)).wakes_after(5_000);
    time.is_ended_for(EndCause::Stopped);
    assert_eq!(time.is_at(), "finishing (run_timeout), finishing");
}

#[test]
fn stalls_are_counted_apart_and_a_committed_turn_ends_the_row() {
    let mut story = Story::of(a_loop());
    for _ in 0..3 {
        story.is_ended_for(EndCause::Stalled).wakes_after(400_000);
    }
    assert_eq!(story.is_at(), "running (backoff_over), turn 1 attempt 4");
    story.answers(says(Continue));
    assert_eq!(story.run().counters.stalls, 0);
    for _ in 0..4 {
        story.is_ended_for(EndCause::Stalled).wakes_after(400_000);
    }
    assert_eq!(story.is_at(), "blocked (stall_restarts_exhausted), blocked");
    assert_eq!(story.run().counters.attempts, 0, "a stall is no failed attempt");
    story.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 5");
}

/// Its driver ran and nothing of the agent, so there is nothing to pay for, and trying again cannot help.
#[test]
fn an_agent_whose_program_is_missing_has_never_started_and_is_not_tried_again() {
    let mut story = Story::of(a_loop());
    let at = story.now;
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(1), cause: None });
        report.tree = TreeNews::Empty;
        let code = outlast_engine::NeverStarted::CommandNotFound;
        report.answer = Answer::NoProgram { code, why: "claude: command not found".to_owned() };
    });
    story.tell(Input::Finished);
    assert!(story.run().spend.known.is_all(), "nothing is left to be reported");
    insta::assert_snapshot!(story.journal(), @r#"
    1 RunCreated
    2 queued -> running (slot_free)
    3 TurnStarted t1.a1
    4 AttemptStarted
    5 AttemptEnded t1.a1 NeverStarted { code: CommandNotFound, why: "claude: command not found" }
    6 running -> finishing (never_started)
    7 finishing -> failed (never_started)
    8 RunEnded Failed never_started
    "#);
}

/// What has taken the place of a run's own workspace may be a person's: that person decides.
#[test]
fn a_run_that_lost_its_own_workspace_rests_until_a_person_acts() {
    for (strategy, rests_at) in [
        (Strategy::Dir, "blocked (workspace_lost), blocked"),
        (Strategy::Inplace, "failed (never_started)"),
    ] {
        let workspace = Workspace { strategy, ..Workspace::default() };
        let mut story = Story::of(RunSpec { workspace, ..a_loop() });
        if strategy == Strategy::Dir {
            story.tell(Input::WorkspaceMade { created: false });
        }
        let at = story.now;
        story.report(|report| {
            let (code, why) = (NeverStarted::NoDirectory, "w is a symlink".to_owned());
            (report.started, report.end) = (None, Some(End::NeverStarted { at, code, why }));
            report.tree = TreeNews::Empty;
        });
        if strategy == Strategy::Inplace {
            story.tell(Input::Finished);
        }
        assert!(story.is_at().starts_with(rests_at), "{}", story.is_at());
        if strategy == Strategy::Dir {
            assert_eq!(story.run().why.reason, "w is a symlink");
            story.tell(Input::ResumeAsked(outlast_engine::Order::default()));
            assert_eq!(story.is_at(), "running (released), turn 1 attempt 2");
        }
    }
}

#[test]
fn a_timeout_a_crash_and_a_bad_response_each_say_what_they_were() {
    let mut story = Story::of(a_loop());
    story.is_ended_for(EndCause::TimedOut).wakes_after(400_000);
    story.exits(7).wakes_after(400_000);
    let at = story.now;
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(0), cause: None });
        report.tree = TreeNews::Empty;
        report.answer = Answer::Bad { why: "the response is a symlink".to_owned() };
    });
    story.wakes_after(400_000).answers(says(Failed)).tell(Input::Finished);
    insta::assert_snapshot!(story.journal(), @r#"
     1 RunCreated
     2 queued -> running (slot_free)
     3 TurnStarted t1.a1
     4 AttemptStarted
     5 AttemptEnded t1.a1 TimedOut { exit: Some(Signal(15)) }
     6 running -> waiting (turn_timeout)
     7 waiting -> running (backoff_over)
     8 TurnStarted t1.a2
     9 AttemptStarted
    10 AttemptEnded t1.a2 Exited { code: 7 }
    11 running -> waiting (exit_code)
    12 waiting -> running (backoff_over)
    13 TurnStarted t1.a3
    14 AttemptStarted
    15 AttemptEnded t1.a3 BadResponse { exit: Some(Code(0)), why: "the response is a symlink" }
    16 running -> waiting (bad_response)
    17 HealthDegraded thrashing
    18 waiting -> running (backoff_over)
    19 TurnStarted t1.a4
    20 AttemptStarted
    21 AttemptEnded t1.a4 Exited { code: 0 }
    22 TurnCommitted
    23 Emitted
    24 running -> finishing (agent_failed)
    25 finishing -> failed (agent_failed)
    26 RunEnded Failed agent_failed
    "#);
}

#[test]
fn a_loop_goes_on_after_a_lost_attempt_and_knows_of_it() {
    let mut story = Story::of(a_loop());
    story.report(|_| {}).is_lost().wakes_after(400_000);
    assert_eq!(story.is_at(), "running (backoff_over), turn 1 attempt 2");
    let after = story.run().attempt.and_then(|attempt| attempt.after);
    assert_eq!(after, Some(outlast_engine::Outcome::Lost));
    let mut wary = Story::of(RunSpec { on_interrupt: OnInterrupt::Block, ..a_loop() });
    wary.report(|_| {}).is_lost();
    assert_eq!(wary.is_at(), "blocked (interrupted), blocked");
}

#[test]
fn a_workspace_its_hooks_and_its_checks_come_in_order() {
    let mut story = Story::of(hooked());
    assert_eq!(story.run().due(), [Effect::PrepareWorkspace]);
    story.tell(Input::WorkspaceMade { created: true });
    story.exits(0).exits(0).exits(0);
    story.answers(says(Continue)).exits(0).answers(says(Done)).exits(1).exits(0);
    assert_eq!(story.run().due().len(), 1);
    story.tell(Input::Finished);
    story.tell(Input::RemovalAsked).exits(3);
    assert_eq!(story.run().due(), [Effect::RemoveWorkspace]);
    story.tell(Input::WorkspaceRemoved { bytes: 5 });
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> preparing (slot_free)
     3 WorkspacePrepared
     4 ErrandStarted e1 hook after_create
     5 ErrandEnded e1 Exited { code: 0 }
     6 ErrandStarted e2 check before_run 1
     7 ErrandEnded e2 Exited { code: 0 }
     8 ErrandStarted e3 hook before_run
     9 ErrandEnded e3 Exited { code: 0 }
    10 preparing -> running (ready)
    11 TurnStarted t1.a1
    12 AttemptStarted
    13 AttemptEnded t1.a1 Exited { code: 0 }
    14 TurnCommitted
    15 ErrandStarted e4 hook after_turn
    16 ErrandEnded e4 Exited { code: 0 }
    17 Emitted
    18 TurnStarted t2.a1
    19 AttemptStarted
    20 AttemptEnded t2.a1 Exited { code: 0 }
    21 TurnCommitted
    22 ErrandStarted e5 hook after_turn
    23 ErrandEnded e5 Exited { code: 1 }
    24 Emitted
    25 running -> finishing (done)
    26 ErrandStarted e6 hook after_run
    27 ErrandEnded e6 Exited { code: 0 }
    28 finishing -> completed (done)
    29 RunEnded Completed done
    30 RemovalRequested
    31 ErrandStarted e7 hook before_remove
    32 ErrandEnded e7 Exited { code: 3 }
    33 WorkspaceRemoved
    ");
    assert!(!story.run().is_open());
}

#[test]
fn a_hook_that_fails_ends_the_run_where_it_stands() {
    let mut made = Story::of(hooked());
    made.tell(Input::WorkspaceMade { created: true }).exits(1);
    assert_eq!(made.is_at(), "finishing (after_create_failed), finishing");
    assert_eq!(made.run().due(), [Effect::DiscardWorkspace]);
    made.tell(Input::Finished);
    assert_eq!(made.run().due(), [Effect::DiscardWorkspace], "not before it is gone");
    made.tell(Input::WorkspaceDiscarded { problem: None }).tell(Input::Finished);
    assert_eq!(made.is_at(), "failed (after_create_failed), ended");

    let mut before = Story::of(hooked());
    before.tell(Input::WorkspaceMade { created: false }).exits(0).exits(9);
    assert_eq!(before.is_at(), "finishing (before_run_failed), finishing");
    before.tell(Input::Finished);
    assert!(!before.journal().contains("after_run"), "{}", before.journal());
}

#[test]
fn a_failed_preflight_blocks_and_is_asked_again_on_resume() {
    let mut story = Story::of(hooked());
    story.tell(Input::WorkspaceMade { created: false }).exits(1);
    assert_eq!(story.is_at(), "blocked (preflight_failed), blocked");
    story.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "preparing (released), check before_run 1/1");
    story.exits(0).exits(0);
    assert_eq!(story.is_at(), "running (ready), turn 1 attempt 1");
}

#[test]
fn a_stop_reaches_a_hook_and_the_hook_after_the_run_is_not_stopped_by_it() {
    let mut story = Story::of(hooked());
    story.tell(Input::WorkspaceMade { created: false }).exits(0).exits(0);
    story.answers(says(Continue));
    assert_eq!(story.is_at(), "running (ready), hook after_turn");
    story.tell(Input::StopAsked {
        mode: outlast_engine::StopMode::Gracefully,
        order: outlast_engine::Order::default(),
    });
    assert!(matches!(story.run().due()[..], [Effect::Ensure { .. }, Effect::Stop { .. }]));
    story.is_ended_for(EndCause::Stopped);
    assert_eq!(story.is_at(), "finishing (stopped), hook after_run");
    assert!(matches!(story.run().due()[..], [Effect::Ensure { .. }]));
    story.tell(Input::StopAsked {
        mode: outlast_engine::StopMode::Now,
        order: outlast_engine::Order::default(),
    });
    assert!(matches!(story.run().due()[..], [Effect::Ensure { .. }, Effect::Stop { .. }]));
    story.is_ended_for(EndCause::Stopped).tell(Input::Finished);
    assert_eq!(story.is_at(), "stopped (stopped), ended");
}

#[test]
fn a_hook_that_the_host_has_no_resources_for_is_tried_until_it_has() {
    let mut story = Story::of(hooked());
    story.tell(Input::WorkspaceMade { created: false }).exits(0);
    for _ in 0..20 {
        assert_eq!(story.is_at(), "preparing (slot_free), hook before_run");
        story.finds_no_resources();
    }
    story.exits(0);
    assert_eq!(story.is_at(), "running (ready), turn 1 attempt 1");
}

#[test]
fn a_hook_nobody_saw_the_end_of_is_run_again_but_the_last_one_is_not() {
    let mut story = Story::of(hooked());
    story.tell(Input::WorkspaceMade { created: false }).exits(0);
    assert_eq!(story.is_at(), "preparing (slot_free), hook before_run");
    story.is_lost();
    assert_eq!(story.is_at(), "preparing (slot_free), hook before_run");
    story.is_lost().is_lost().is_lost();
    assert_eq!(story.is_at(), "finishing (before_run_failed), finishing");

    let mut last = Story::of(hooked());
    last.tell(Input::WorkspaceMade { created: false }).exits(0).exits(0);
    last.answers(says(Done)).exits(0);
    assert_eq!(last.is_at(), "finishing (done), hook after_run");
    last.is_lost().tell(Input::Finished);
    assert_eq!(last.is_at(), "completed (done), ended");
}

#[test]
fn messages_given_to_an_attempt_that_died_are_unread() {
    let mut story = Story::of(a_loop());
    story.tell(send("m1", "look at the tests")).tell(send("m1", "look at the tests"));
    story.exits(1).wakes_after(400_000);
    let unread = story.run().inbox.unread.len();
    assert_eq!(unread, 1);
    story.exits(1).wakes_after(400_000).answers(says(Continue));
    assert!(story.run().inbox.unread.is_empty(), "a committed turn has taken it");
    story.tell(send("m1", "look at the tests"));
    assert!(story.run().inbox.unread.is_empty(), "and it is known when it comes again");
}

#[test]
fn a_turn_that_says_nothing_waits_once() {
    let mut story = Story::of(a_loop());
    let until = story.now.plus_ms(60_000);
    let silent = outlast_engine::Response {
        summary: String::new(),
        wait: Some(Wait::Until(until)),
        ..says(Continue)
    };
    story.answers(silent);
    assert_eq!(story.is_at(), "waiting (timer), timer");
    story.wakes_after(60_000);
    assert_eq!(story.is_at(), "running (timer), turn 2 attempt 1");
}

#[test]
fn a_message_that_comes_before_a_late_launch_is_the_next_turns() {
    let mut story = Story::of(a_loop());
    story.tell(send("late", "hurry"));
    assert_eq!(story.run().given().count(), 0, "the first turn was meant before it came");
    story.answers(says(Continue));
    let given: Vec<String> = story.run().given().map(|message| message.id.clone()).collect();
    assert_eq!(given, ["late"]);
}

#[test]
fn who_is_left_of_a_failed_attempt_does_not_keep_the_hook_after_the_run_waiting() {
    let spec = RunSpec {
        hooks: Hooks { after_run: Some("echo bye".to_owned()), ..Hooks::default() },
        retry: outlast_engine::Retry { max_attempts: 1, ..outlast_engine::Retry::default() },
        ..a_loop()
    };
    let mut story = Story::of(spec);
    story.tell(Input::WorkspaceMade { created: false });
    let left = vec![outlast_engine::Survivor { pid: 5, start: 5, command: "x".to_owned() }];
    story.report(|report| {
        report.end = Some(End::Exited { at: Time(1_000_050), exit: Exit::Code(1), cause: None });
        report.tree = TreeNews::Left { survivors: left, stop_failed: false };
    });
    assert_eq!(story.is_at(), "running (ready), turn 1 attempt 1");
    let stops = story.run().due().into_iter().any(|it| matches!(it, Effect::Stop { .. }));
    assert!(stops, "nothing else would end them, and the hook waits for it");
    story.report(|report| report.tree = TreeNews::Empty);
    assert_eq!(story.is_at(), "finishing (exit_code), hook after_run");
}

#[test]
fn whom_the_hook_after_a_stopped_run_left_behind_can_be_stopped_too() {
    let hooks = Hooks { after_run: Some("echo bye".to_owned()), ..Hooks::default() };
    let mut story = Story::of(RunSpec { hooks, ..a_loop() });
    story.tell(Input::WorkspaceMade { created: false });
    let now = || Input::StopAsked {
        mode: outlast_engine::StopMode::Now,
        order: outlast_engine::Order::default(),
    };
    story.tell(now()).is_ended_for(EndCause::Stopped);
    let left = vec![outlast_engine::Survivor { pid: 5, start: 5, command: "x".to_owned() }];
    story.report(|report| {
        report.end = Some(End::Exited { at: Time(1_000_090), exit: Exit::Code(0), cause: None });
        report.tree = TreeNews::Left { survivors: left, stop_failed: false };
    });
    story.tell(Input::Finished);
    assert_eq!(story.is_at(), "stopped (stopped), ended");
    let stops =
        |story: &Story| story.run().due().into_iter().any(|it| matches!(it, Effect::Stop { .. }));
    assert!(!stops(&story), "a run may leave processes behind");
    story.tell(now());
    assert!(stops(&story), "the stop before this did not reach them");
}

#[test]
fn an_agent_waits_for_a_time_or_a_message_and_a_message_ends_both() {
    let wait = |wait| outlast_engine::Response { wait: Some(wait), ..says(Continue) };
    let mut story = Story::of(a_loop());
    let until = story.now.plus_ms(60_000);
    story.answers(wait(Wait::Until(until)));
    assert_eq!(story.is_at(), "waiting (timer), timer");
    assert_eq!(story.run().wake_at(), Some(until));
    story.wakes_after(60_000).answers(wait(Wait::Message));
    assert_eq!(story.is_at(), "waiting (message), message");
    story.wakes_after(1_000_000).tell(send("m", "go"));
    assert_eq!(story.is_at(), "running (message), turn 3 attempt 1");
    story.answers(wait(Wait::Until(Time(u64::MAX)))).tell(send("n", "go on"));
    assert_eq!(story.is_at(), "running (message), turn 4 attempt 1");
    assert_eq!(story.run().counters.no_progress, 0, "who waits is not going nowhere");
}

#[test]
fn a_pause_lets_the_turn_end_and_keeps_what_is_left_of_a_delay() {
    let mut story = Story::of(a_loop());
    story
        .tell(Input::PauseAsked(outlast_engine::Order::default()))
        .tell(Input::PauseAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "running (slot_free), turn 1 attempt 1");
    story.answers(says(Continue));
    assert_eq!(story.is_at(), "waiting (paused), paused");
    story
        .tell(Input::ResumeAsked(outlast_engine::Order::default()))
        .tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "running (resumed), turn 2 attempt 1");
    story.exits(1).tell(Input::PauseAsked(outlast_engine::Order::default()));
    let due = story.run().wake_at();
    assert_eq!(due, None, "a paused run is woken by a person only");
    story.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "waiting (exit_code), backoff");
    story.wakes_after(20_000);
    assert_eq!(story.is_at(), "running (backoff_over), turn 2 attempt 2");
}

#[test]
fn an_agent_that_is_blocked_rests_until_it_is_answered() {
    let mut story = Story::of(a_loop());
    story.answers(says(Blocked));
    assert_eq!(story.is_at(), "blocked (agent_blocked), blocked");
    story.tell(send("m", "a message alone does not release it")).wakes_after(9_999_999);
    assert_eq!(story.is_at(), "blocked (agent_blocked), blocked");
    let reply = Some(("a1".to_owned(), "use the other key".to_owned()));
    story.tell(Input::Answered {
        decision: Decision::Reply,
        message: reply,
        order: outlast_engine::Order::default(),
    });
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 1");
    assert_eq!(story.run().inbox.unread.len(), 2);
}

#[test]
fn what_needs_approval_is_emitted_only_when_it_is_given() {
    let output = OutputPolicy { require_approval_before_emit: true, ..OutputPolicy::default() };
    let answer = |decision| Input::Answered {
        decision,
        message: None,
        order: outlast_engine::Order::default(),
    };
    let mut story = Story::of(RunSpec { output, ..a_loop() });
    story.answers(says(Continue));
    assert_eq!(story.is_at(), "blocked (needs_approval), blocked");
    story.tell(Input::ResumeAsked(outlast_engine::Order::default())).tell(answer(Decision::Reply));
    assert_eq!(story.is_at(), "blocked (needs_approval), blocked", "it wants a yes or a no");
    story.tell(answer(Decision::Approve));
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 1");
    story.answers(says(Done)).tell(answer(Decision::Deny));
    assert_eq!(story.is_at(), "finishing (done), finishing");
    let emitted = story.journal().matches("Emitted").count();
    assert_eq!(emitted, 1, "{}", story.journal());
}

#[test]
fn silent_unless_blocked_emits_only_what_is_an_escalation() {
    let output = OutputPolicy { silent_unless_blocked: true, ..OutputPolicy::default() };
    let mut story = Story::of(RunSpec { output, ..a_loop() });
    story.answers_in(says(Continue), "1");
    assert!(!story.journal().contains("Emitted"));
    story.answers_in(says(Blocked), "2");
    assert!(story.journal().contains("Emitted"));
    let mut mute = Story::of(RunSpec {
        output: OutputPolicy { emit_to: Vec::new(), ..OutputPolicy::default() },
        ..a_loop()
    });
    mute.answers(says(Blocked));
    assert!(!mute.journal().contains("Emitted"));
}

#[test]
fn a_turn_with_nothing_to_say_is_settled_all_the_same() {
    let mute = |spec: RunSpec| {
        Story::of(RunSpec {
            output: OutputPolicy { silent_unless_blocked: true, ..OutputPolicy::default() },
            ..spec
        })
    };
    let mut refuted = mute(checked());
    refuted.answers(says(Done)).exits(1);
    assert_eq!(refuted.is_at(), "running (check_failed), turn 2 attempt 1");
    let mut waited = mute(a_loop());
    let wait = Some(Wait::Until(waited.now));
    waited.answers(outlast_engine::Response { wait, ..says(Continue) });
    assert_eq!(waited.is_at(), "running (timer), turn 2 attempt 1");
    let mut asked = Story::of(a_loop());
    asked.answers(outlast_engine::Response { summary: String::new(), ..says(Blocked) });
    assert_eq!(asked.is_at(), "blocked (agent_blocked), blocked");
    asked.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(asked.is_at(), "running (released), turn 2 attempt 1");
}
