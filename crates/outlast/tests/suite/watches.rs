//! Output watched for those who are not looking: lines that match, and the heartbeat.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Gate, Home, str_of, until};
use crate::loops::{Loop, assert_sound};

/// A run that is watched for this pattern, and left.
fn watch(home: &Home, pattern: &str, script: &str) -> String {
    home.ok(&["run", "-d", "--notify", "cmd:true", "--watch", pattern, "--", "sh", "-c", script])
}

fn of_kind(home: &Home, id: &str, kind: &str) -> Vec<Value> {
    home.events(id).into_iter().filter(|event| event["kind"] == kind).collect()
}

fn told(home: &Home, id: &str) -> Vec<Value> {
    of_kind(home, id, "OutputMatched")
}

/// Waits until so many tellings are in the journal.
fn until_told(home: &Home, id: &str, count: usize) -> Vec<Value> {
    until("the match is told", || Some(told(home, id)).filter(|told| told.len() >= count))
}

fn lines(event: &Value) -> Vec<&str> {
    let lines = event["lines"].as_array().expect("it has lines");
    lines.iter().map(|line| line.as_str().expect("a line is text")).collect()
}

fn suppressed(event: &Value) -> u64 {
    event["suppressed"].as_u64().unwrap_or(0)
}

fn output(home: &Home, id: &str) -> PathBuf {
    home.attempt_dir(id, 1, 1).join("output.log")
}

/// Waits until the output on disk ends like this, whichever process is alive to see it.
fn until_written(home: &Home, id: &str, end: &str) {
    until("it is written", || {
        let bytes = fs::read(output(home, id)).unwrap_or_default();
        bytes.ends_with(end.as_bytes()).then_some(())
    });
}

fn set_clock(file: &std::path::Path, offset_ms: u64) {
    let part = file.with_extension("part");
    fs::write(&part, offset_ms.to_string()).expect("the scratch directory is ours");
    fs::rename(part, file).expect("the scratch directory is ours");
}

#[test]
fn a_line_that_matches_is_told_while_the_run_goes_on() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        r"echo all is well; printf '\033[31merror\033[0m: on stdout\n'; {}; echo error: on stderr >&2",
        gate.pass()
    );
    let id = watch(&home, "^error: ", &script);
    let first = until_told(&home, &id, 1);
    assert_eq!(lines(&first[0]), ["error: on stdout"]);
    assert_eq!(
        (&first[0]["watch"], &first[0]["turn"], &first[0]["attempt"]),
        (&0.into(), &1.into(), &1.into())
    );
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    gate.open();
    assert_eq!(home.wait(&id), 0);
    let all = told(&home, &id);
    assert_eq!(
        all.iter().flat_map(lines).collect::<Vec<_>>(),
        ["error: on stdout", "error: on stderr"]
    );
    assert_sound(&home);
}

#[test]
fn what_matches_as_the_command_ends_is_told_with_the_end() {
    let home = Home::new();
    let id = watch(&home, "fatal", "echo nothing; printf 'fatal: no line ends here'; exit 3");
    assert_eq!(home.wait(&id), 1);
    assert_eq!(lines(&told(&home, &id)[0]), ["fatal: no line ends here"]);
    let kinds = home.kinds(&id);
    let at = |kind: &str| kinds.iter().position(|known| known == kind);
    assert!(at("OutputMatched") < at("AttemptEnded"), "{kinds:?}");
}

#[test]
fn a_burst_is_cut_and_what_was_left_out_is_counted() {
    let home = Home::new();
    let id =
        watch(&home, "^error", "i=0; while [ $i -lt 500 ]; do i=$((i+1)); echo error $i; done");
    assert_eq!(home.wait(&id), 0);
    let all = told(&home, &id);
    assert!(all.iter().all(|event| lines(event).len() <= 20), "{all:?}");
    let counted: u64 = all.iter().map(|event| lines(event).len() as u64 + suppressed(event)).sum();
    assert_eq!(counted, 500);
    assert_eq!(all.last().map(|event| *lines(event).last().expect("a line")), Some("error 500"));
}

/// Each round is written while no daemon lives, so that it is found at once.
#[test]
fn three_windows_of_too_much_end_a_watch_and_the_run_goes_on() {
    let home = Home::new();
    let clock = home.scratch().join("clock");
    set_clock(&clock, 0);
    let home = home.env("OUTLAST_FAKE_CLOCK_FILE", &clock);
    let mut gate = Gate::new(&home, "gate");
    let round = "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo error $n.$i; done";
    let script = format!("for n in 1 2 3 4; do {}; {round}; done; {}", gate.pass(), gate.pass());
    let id = watch(&home, "error", &script);
    home.pid(&id);
    for round in 1..=4 {
        home.ok(&["daemon", "stop"]);
        gate.open();
        until_written(&home, &id, &format!("error {round}.30\n"));
        set_clock(&clock, round * 20_000);
        home.ok(&["daemon", "start"]);
        if round <= 3 {
            until_told(&home, &id, usize::try_from(round).expect("it is small"));
        }
    }
    gate.open();
    assert_eq!(home.wait(&id), 0);
    let all = told(&home, &id);
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(all.iter().all(|event| (lines(event).len(), suppressed(event)) == (20, 10)), "{all:?}");
    let disabled = of_kind(&home, &id, "WatchDisabled");
    assert_eq!((disabled.len(), suppressed(&disabled[0])), (1, 30));
    assert!(str_of(&disabled[0], "why").contains("3 times in a row"), "{disabled:?}");
}

#[test]
fn the_last_telling_is_followed_by_the_summary() {
    let home = Home::new();
    let script = "echo error in turn $OUTLAST_TURN\n\
        [ $OUTLAST_TURN -lt 10 ] || { say done ok; exit; }\n\
        answer \"{\\\"status\\\":\\\"continue\\\",\\\"next_task\\\":\\\"$OUTLAST_TURN\\\"}\"";
    let id = Loop::of(&home, script).start_with(&["--notify", "cmd:true", "--watch", "^error"]);
    assert_eq!(home.wait(&id), 0);
    let found: Vec<Value> = home
        .events(&id)
        .into_iter()
        .filter(|event| ["OutputMatched", "WatchDisabled"].contains(&str_of(event, "kind")))
        .collect();
    assert_eq!(found.len(), 9, "{found:?}");
    assert_eq!(lines(&found[7]), ["error in turn 8"]);
    assert!(str_of(&found[8], "why").contains("it has told 8 times"), "{found:?}");
}

#[test]
fn what_was_held_back_is_told_when_the_window_is_over() {
    let home = Home::new();
    let (mut first, mut last) = (Gate::new(&home, "first"), Gate::new(&home, "last"));
    let script = format!("echo error 1; {}; echo error 2; {}", first.pass(), last.pass());
    let id = watch(&home, "error", &script);
    until_told(&home, &id, 1);
    first.open();
    let all = until_told(&home, &id, 2);
    assert_eq!(lines(&all[1]), ["error 2"]);
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    last.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(told(&home, &id).len(), 2);
}

#[test]
fn a_watch_that_was_set_before_a_crash_fires_after_it() {
    let home = Home::new();
    let (mut gate, mut last) = (Gate::new(&home, "gate"), Gate::new(&home, "last"));
    let script = format!("{}; echo error: at last; {}", gate.pass(), last.pass());
    let id = watch(&home, "error", &script);
    home.pid(&id);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    gate.open();
    assert_eq!(lines(&until_told(&home, &id, 1)[0]), ["error: at last"]);
    // Nor is it told again by the next daemon.
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    last.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(told(&home, &id).len(), 1);
    assert_sound(&home);
}

#[test]
fn lines_that_were_written_while_no_daemon_lived_are_found() {
    let home = Home::new();
    let (mut gate, mut last) = (Gate::new(&home, "gate"), Gate::new(&home, "last"));
    let script = format!("{}; echo error: unseen; {}", gate.pass(), last.pass());
    let live = watch(&home, "error", &script);
    let mut end = Gate::new(&home, "end");
    let ending = watch(&home, "error", &format!("{}; echo error: the last; exit 4", end.pass()));
    home.pid(&live);
    let pid = home.pid(&ending);
    home.ok(&["daemon", "stop"]);
    gate.open();
    end.open();
    until_written(&home, &live, "error: unseen\n");
    until("it has ended", || (!crate::harness::is_alive(pid)).then_some(()));
    home.ok(&["daemon", "start"]);
    assert_eq!(lines(&until_told(&home, &live, 1)[0]), ["error: unseen"]);
    assert_eq!(home.wait(&ending), 1);
    assert_eq!(lines(&told(&home, &ending)[0]), ["error: the last"]);
    last.open();
    assert_eq!(home.wait(&live), 0);
    assert_eq!(told(&home, &live).len(), 1);
}

#[test]
fn a_death_between_the_match_and_the_journal_tells_it_once() {
    let home = Home::new();
    let token = home.scratch().join("token");
    fs::write(&token, "").expect("the scratch directory is ours");
    let home =
        home.env("OUTLAST_CRASH_AT", "daemon.lines-matched").env("OUTLAST_CRASH_TOKEN", &token);
    let mut gate = Gate::new(&home, "gate");
    let id = watch(&home, "error", &format!("echo error: once; {}", gate.pass()));
    until("the daemon has died", || (!token.exists()).then_some(()));
    assert_eq!(lines(&until_told(&home, &id, 1)[0]), ["error: once"]);
    gate.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(told(&home, &id).len(), 1);
}

#[test]
fn a_match_is_found_across_whatever_its_line_was_cut_by() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    // In the middle of a character, with a line of the other stream in between.
    let script = format!(
        r"printf 'immer gr\303'; {pass}; echo kleiner >&2; {pass}; printf '\266\303\237er\n'; {pass}",
        pass = gate.pass()
    );
    let id = watch(&home, "^immer größer$|^kleiner$", &script);
    until_written_bytes(&home, &id, b"immer gr\xc3");
    gate.open();
    assert_eq!(lines(&until_told(&home, &id, 1)[0]), ["kleiner"]);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    gate.open();
    until_written(&home, &id, "ßer\n");
    gate.open();
    assert_eq!(home.wait(&id), 0);
    let all = told(&home, &id);
    assert_eq!(all.iter().flat_map(lines).collect::<Vec<_>>(), ["kleiner", "immer größer"]);
}

fn until_written_bytes(home: &Home, id: &str, bytes: &[u8]) {
    until("it is written", || {
        let written = fs::read(output(home, id)).unwrap_or_default();
        (written == bytes).then_some(())
    });
}

#[test]
fn a_heartbeat_is_told_only_when_there_is_new_output() {
    let home = Home::new();
    let clock = home.scratch().join("clock");
    set_clock(&clock, 0);
    let home = home.env("OUTLAST_FAKE_CLOCK_FILE", &clock);
    let mut gate = Gate::new(&home, "gate");
    let script = format!("echo one; {pass}; echo two; {pass}", pass = gate.pass());
    let id = home.ok(&[
        "run",
        "-d",
        "--notify",
        "cmd:true",
        "--heartbeat",
        "1s",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    let beats = || of_kind(&home, &id, "HeartbeatTold");
    until("the first is told", || (beats().len() == 1).then_some(()));
    // An hour in which nothing is written.
    home.ok(&["daemon", "stop"]);
    set_clock(&clock, 3_600_000);
    home.ok(&["daemon", "start"]);
    until("it is met again", || (home.count(&id, "AttemptAdopted") == 1).then_some(()));
    gate.open();
    let all = until("the second is told", || Some(beats()).filter(|beats| beats.len() > 1));
    let bytes: Vec<u64> = all.iter().filter_map(|beat| beat["output_bytes"].as_u64()).collect();
    assert_eq!(bytes, [4, 8]);
    gate.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(beats().len(), 2);
}

#[test]
fn what_cannot_be_watched_for_is_refused_before_anything_starts() {
    let home = Home::new();
    let refused = |flags: &[&str]| {
        let args = [&["run", "-d"], flags, &["--", "true"]].concat();
        home.fails(2, &args)
    };
    let said = refused(&["--watch", "(error"]);
    assert!(said.contains("\"(error\" is not a regular expression"), "{said}");
    assert!(said.contains("hint: unclosed group"), "{said}");
    let said = refused(&["--watch", ""]);
    assert!(said.contains("1 to 1024 bytes"), "{said}");
    let said = refused(&["--heartbeat", "500ms"]);
    assert!(said.contains("hint: at least 1s"), "{said}");
    assert_eq!(home.ok(&["ps", "-a", "--json"]), "[]");
}
