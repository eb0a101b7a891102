//! Snapshots told as stories: when one is made, what its failure means, and going back.

mod story;

use outlast_engine::{
    Cause, End, Exit, Input, LeftOut, Limits, Made, OnInterrupt, Order, RunSpec, Snapshot,
    SnapshotRules, Strategy, TreeNews, TurnStatus, Undo, Workspace,
};
use story::{Story, a_loop, says};

use TurnStatus::{Continue, Done};

fn with_snapshots(on_interrupt: OnInterrupt) -> RunSpec {
    let workspace = Workspace {
        strategy: Strategy::Inplace,
        snapshot: Some(Box::default()),
        ..Workspace::default()
    };
    RunSpec { workspace, on_interrupt, ..a_loop() }
}

fn snapshot(commit: &str, tree: &str) -> Snapshot {
    Snapshot {
        cause: Cause::Base,
        commit: commit.to_owned(),
        tree: tree.to_owned(),
        head: None,
        branch: None,
        files: 1,
        added: 2,
        deleted: 0,
        bytes: 10,
        left_out: LeftOut::default(),
        own_store: false,
        progress: None,
    }
}

/// The current errand ends with this record.
fn makes(story: &mut Story, made: Made) {
    let at = story.now.plus_ms(3);
    let code = i32::from(matches!(made, Made::Failed { .. }));
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(code), cause: None });
        report.tree = TreeNews::Empty;
        report.made = Some(made);
    });
}

fn takes(story: &mut Story, commit: &str, tree: &str) {
    let snapshot = Box::new(snapshot(commit, tree));
    makes(story, Made::Snapshot { snapshot, is_same: false });
}

fn fails(story: &mut Story) {
    makes(story, Made::Failed { code: "disk_full".to_owned(), why: "no room".to_owned() });
}

#[test]
fn a_snapshot_before_the_first_turn_and_after_each_and_no_commit_waits_for_it() {
    let mut story = Story::of(with_snapshots(OnInterrupt::Resume));
    assert_eq!(story.is_at(), "running (slot_free), snapshot base");
    takes(&mut story, "c0", "t0");
    story.answers(says(Continue));
    assert_eq!(story.run().turns_committed, 1, "the turn is committed before its snapshot");
    assert_eq!(story.is_at(), "running (slot_free), snapshot turn");
    takes(&mut story, "c1", "t1");
    story.answers(says(Done));
    takes(&mut story, "c2", "t2");
    story.tell(Input::Finished);
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> running (slot_free)
     3 ErrandStarted e1 snapshot base
     4 ErrandEnded e1 Exited { code: 0 }
     5 SnapshotTaken
     6 TurnStarted t1.a1
     7 AttemptStarted
     8 AttemptEnded t1.a1 Exited { code: 0 }
     9 TurnCommitted
    10 ErrandStarted e2 snapshot turn
    11 ErrandEnded e2 Exited { code: 0 }
    12 SnapshotTaken
    13 Emitted
    14 TurnStarted t2.a1
    15 AttemptStarted
    16 AttemptEnded t2.a1 Exited { code: 0 }
    17 TurnCommitted
    18 ErrandStarted e3 snapshot turn
    19 ErrandEnded e3 Exited { code: 0 }
    20 SnapshotTaken
    21 Emitted
    22 running -> finishing (done)
    23 finishing -> completed (done)
    24 RunEnded Completed done
    ");
    let known = story.run().snapshots;
    assert_eq!((known.files, known.added, known.turn), (2, 4, Some(2)));
}

#[test]
fn a_snapshot_that_fails_is_said_and_the_run_goes_on() {
    let mut story = Story::of(with_snapshots(OnInterrupt::Resume));
    fails(&mut story);
    assert_eq!(story.is_at(), "running (slot_free), turn 1 attempt 1");
    story.answers(says(Continue));
    fails(&mut story);
    assert_eq!(story.is_at(), "running (slot_free), turn 2 attempt 1");
    let failed = story.run().snapshots.failed;
    assert_eq!(failed.map(|(code, _)| code).as_deref(), Some("disk_full"));
}

#[test]
fn an_interrupted_attempt_is_kept_and_then_undone_before_the_next() {
    let mut story = Story::of(with_snapshots(OnInterrupt::Restore));
    takes(&mut story, "c0", "t0");
    story.answers(says(Continue));
    takes(&mut story, "c1", "t1");
    story.is_lost().wakes_after(600_000);
    assert_eq!(story.is_at(), "running (backoff_over), snapshot wreck");
    takes(&mut story, "w", "tw");
    assert_eq!(story.is_at(), "running (backoff_over), restore");
    // A restore whose end was not observed is made again.
    story.is_lost();
    assert_eq!(story.is_at(), "running (backoff_over), restore");
    makes(&mut story, Made::Restored { written: 2, removed: 1, kept: Vec::new() });
    assert_eq!(story.is_at(), "running (backoff_over), turn 2 attempt 2");
    let run = story.run();
    assert!(run.is_after_restore(2, 2) && !run.is_after_restore(2, 1));
    story.answers(says(Continue));
    takes(&mut story, "c2", "t2");
    assert!(!story.run().is_after_restore(3, 1));
}

#[test]
fn without_a_snapshot_of_the_last_turn_a_person_decides_and_no_older_one_is_taken() {
    let mut story = Story::of(with_snapshots(OnInterrupt::Restore));
    takes(&mut story, "c0", "t0");
    story.answers(says(Continue));
    fails(&mut story);
    story.is_lost().wakes_after(600_000);
    assert_eq!(story.is_at(), "blocked (no_snapshot), blocked");
    story.tell(Input::ResumeAsked(Order::default()));
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 2");
}

#[test]
fn what_was_found_is_not_removed_if_it_cannot_be_kept() {
    let mut story = Story::of(with_snapshots(OnInterrupt::Restore));
    takes(&mut story, "c0", "t0");
    story.is_lost().wakes_after(600_000);
    fails(&mut story);
    assert_eq!(story.is_at(), "blocked (restore_failed), blocked");
    assert!(matches!(story.run().snapshots.undo, Undo::Failed { .. }));
}

#[test]
fn what_changes_while_a_run_rests_is_in_a_snapshot_before_its_next_turn() {
    let mut story = Story::of(with_snapshots(OnInterrupt::Restore));
    takes(&mut story, "c0", "t0");
    story.answers(says(TurnStatus::Blocked));
    takes(&mut story, "c1", "t1");
    assert_eq!(story.is_at(), "blocked (agent_blocked), blocked");
    story.tell(Input::ResumeAsked(Order::default()));
    assert_eq!(story.is_at(), "running (released), snapshot found");
    takes(&mut story, "f", "tf");
    story.is_lost().wakes_after(600_000);
    takes(&mut story, "w", "tw");
    let run = story.run();
    let label = run.live_errand().map(|errand| errand.purpose.clone());
    assert_eq!(label, Some(outlast_engine::Purpose::Restore { to: "f".to_owned() }));
}

#[test]
fn an_attempt_that_crashed_is_undone_only_where_that_is_asked_for() {
    for undo_failed in [false, true] {
        let mut spec = with_snapshots(OnInterrupt::Resume);
        spec.workspace.snapshot =
            Some(Box::new(SnapshotRules { undo_failed, ..SnapshotRules::default() }));
        let mut story = Story::of(spec);
        takes(&mut story, "c0", "t0");
        story.exits(1).wakes_after(600_000);
        let expected = if undo_failed { "snapshot wreck" } else { "turn 1 attempt 2" };
        assert_eq!(story.is_at(), format!("running (backoff_over), {expected}"));
    }
}

#[test]
fn events_are_written_as_they_will_be_read_for_good() {
    let mut story = Story::of(with_snapshots(OnInterrupt::Restore));
    takes(&mut story, "c0", "t0");
    let event = story.events.iter().find(|event| event.fact.kind() == "SnapshotTaken");
    let json = serde_json::to_value(event.expect("it was taken")).expect("plain data");
    let at = &json["at"];
    assert_eq!(
        json.to_string(),
        format!(
            r#"{{"added":2,"at":{at},"bytes":10,"cause":"base","commit":"c0","deleted":0,"files":1,"kind":"SnapshotTaken","seq":5,"tree":"t0","turn":0}}"#
        )
    );
}

#[test]
fn where_there_are_snapshots_their_trees_say_whether_a_turn_changed_anything() {
    let limits = Limits { no_progress_turns: Some(2), ..a_loop().limits };
    let mut story = Story::of(RunSpec { limits, ..with_snapshots(OnInterrupt::Resume) });
    takes(&mut story, "c0", "t0");
    // Of these turns no digest is known, which by itself counts as a change.
    story.answers(says(Continue));
    takes(&mut story, "c1", "t0");
    assert_eq!(story.run().counters.no_progress, 1, "the files are those of before");
    story.answers(says(Continue));
    takes(&mut story, "c2", "t2");
    assert_eq!(story.run().counters.no_progress, 0);
    story.answers(says(Continue));
    takes(&mut story, "c3", "t2");
    story.answers(says(Continue));
    fails(&mut story);
    assert_eq!(story.run().counters.no_progress, 0, "what cannot be told is not held against it");
    story.answers(says(Continue));
    takes(&mut story, "c5", "t2");
    story.answers(says(Continue));
    takes(&mut story, "c6", "t2");
    assert_eq!(story.is_at(), "blocked (no_progress), blocked");
}
