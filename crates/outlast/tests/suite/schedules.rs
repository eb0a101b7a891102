//! Schedules: each occurrence makes one run, whichever process dies and whatever is done to the clock.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::harness::{Gate, Home, is_alive, kill, lines, str_of, text, until};
use crate::triggered::{Clock, count, made, occurrences, runs, trigger};

const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// A script that writes down each occurrence that it is run for.
fn counting(home: &Home) -> String {
    format!(
        "echo $OUTLAST_TRIGGER $OUTLAST_OCCURRENCE >> '{}'",
        home.scratch().join("ran").display()
    )
}

fn ran(home: &Home) -> Vec<String> {
    let text = fs::read_to_string(home.scratch().join("ran")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn a_schedule_makes_runs_that_say_where_they_come_from() {
    let home = Home::new();
    let script = format!("{}; cp \"$OUTLAST_TRIGGER_FILE\" told", counting(&home));
    home.ok(&[
        "schedule", "add", "tick", "--every", "1s", "--label", "a=b", "--", "sh", "-c", &script,
    ]);
    made(&home, "tick", 1);
    home.ok(&["schedule", "rm", "tick"]);
    let listed = runs(&home, "tick");
    let run = listed.first().expect("there is one");
    let occurrence = str_of(&run["origin"], "occurrence");
    assert_eq!((str_of(&run["origin"], "trigger"), &run["labels"]["a"]), ("tick", &"b".into()));
    assert_eq!(str_of(run, "key"), format!("trigger/tick/{occurrence}"));
    assert_eq!(home.wait(str_of(run, "id")), 0);
    assert!(ran(&home).contains(&format!("tick {occurrence}")));
    let told: Value =
        serde_json::from_slice(&fs::read(home.scratch().join("told")).expect("it is there"))
            .expect("it is JSON");
    assert_eq!((str_of(&told, "trigger"), str_of(&told, "kind")), ("tick", "schedule"));
    assert_eq!(home.json(&["ps", "-a", "--trigger", "other", "--json"]), Value::Array(Vec::new()));
}

/// Fifty deaths in five hours of a clock that leaps: every five minutes are one run.
#[test]
fn slow_each_occurrence_makes_one_run_however_often_the_daemon_dies() {
    let clock = Clock::new();
    let home = &clock.home;
    let script = counting(home);
    home.ok(&[
        "schedule",
        "add",
        "five",
        "--every",
        "5m",
        "--missed",
        "all",
        "--overlap",
        "parallel",
        "--",
        "sh",
        "-c",
        &script,
    ]);
    for leap in 1..=50 {
        // Killed at once, and so anywhere in what it does about it.
        clock.leap(leap * 6 * MINUTE_MS);
    }
    made(home, "five", 60);
    let found = occurrences(home, "five");
    let distinct: BTreeSet<&String> = found.iter().collect();
    assert_eq!((found.len(), distinct.len()), (60, 60), "{found:?}");
    until("all have run", || (ran(home).len() >= 60).then_some(()));
    let ran = ran(home);
    assert_eq!(ran.iter().collect::<BTreeSet<_>>().len(), 60, "something ran twice: {ran:?}");
    assert_eq!(ran.len(), 60);
    // Removing its runs makes none of them again.
    let ids: Vec<String> =
        runs(home, "five").iter().map(|run| str_of(run, "id").to_owned()).collect();
    for verb in ["wait", "rm"] {
        home.ok(&[vec![verb.to_owned()], ids.clone()].concat());
    }
    clock.leap(50 * 6 * MINUTE_MS);
    assert_eq!(count(&trigger(home, "five"), "runs"), 60);
    assert!(runs(home, "five").is_empty());
}

/// One occurrence, with a death at `point` if there is one.
fn one_occurrence(point: Option<&str>) -> (Clock, Vec<String>) {
    let home = Home::new();
    let (token, log) = (home.scratch().join("token"), home.scratch().join("passed"));
    let mut home = home.env("OUTLAST_CRASH_LOG", &log).env("OUTLAST_CRASH_TOKEN", &token);
    if let Some(point) = point {
        home = home.env("OUTLAST_CRASH_AT", point);
    }
    let clock = Clock::with(home);
    let home = &clock.home;
    let script = counting(home);
    home.ok(&["schedule", "add", "five", "--every", "5m", "--", "sh", "-c", &script]);
    if point.is_some() {
        fs::write(&token, "").expect("the scratch directory is ours");
    }
    home.crash_daemon();
    clock.set(6 * MINUTE_MS);
    // It may die while it is being started, or right after.
    until("a daemon is up that has nothing to do", || {
        home.output(&["daemon", "start"]);
        let output = home.output(&["schedule", "ls", "--json"]);
        let views: Value = serde_json::from_str(&text(&output.stdout)).ok()?;
        (views[0]["runs"] == 1).then_some(())
    });
    assert!(!token.exists(), "{point:?}: no process died");
    until("it has run", || (!ran(home).is_empty()).then_some(()));
    let passed = fs::read_to_string(log).unwrap_or_default();
    let passed = passed.lines().map(str::to_owned).collect();
    (clock, passed)
}

/// Every crash point that an occurrence of a schedule passes.
pub(crate) fn points() -> BTreeSet<String> {
    one_occurrence(None).1.into_iter().collect()
}

#[test]
fn a_death_between_keeping_and_making_and_settling_makes_one_run() {
    for point in ["daemon.occurrence-kept", "daemon.run-created", "daemon.occurrence-made"] {
        let (clock, _) = one_occurrence(Some(point));
        assert_eq!(occurrences(&clock.home, "five").len(), 1, "{point}");
        assert_eq!(ran(&clock.home).len(), 1, "{point}");
    }
}

#[test]
fn overlap_skips_waits_or_goes_beside() {
    let clock = Clock::new();
    let home = &clock.home;
    let mut gate = Gate::new(home, "gate");
    for overlap in ["skip", "queue", "parallel"] {
        home.ok(&[
            "schedule",
            "add",
            overlap,
            "--every",
            "5m",
            "--missed",
            "all",
            "--overlap",
            overlap,
            "--",
            "sh",
            "-c",
            &gate.pass(),
        ]);
    }
    clock.leap(16 * MINUTE_MS);
    let settled = |name: &str, expected: [u64; 4]| {
        until(&format!("{name} is {expected:?}"), || {
            let view = trigger(home, name);
            let found = ["runs", "open", "waiting", "skipped"].map(|key| count(&view, key));
            (found == expected).then_some(())
        });
    };
    settled("skip", [1, 1, 0, 2]);
    settled("queue", [1, 1, 2, 0]);
    settled("parallel", [3, 3, 0, 0]);
    // The end of a run lets the next one in, also under another daemon.
    home.ok(&["schedule", "rm", "skip"]);
    home.ok(&["schedule", "rm", "parallel"]);
    let first = str_of(&runs(home, "queue")[0], "id").to_owned();
    home.ok(&["stop", &first, "--now"]);
    settled("queue", [2, 1, 1, 0]);
    clock.leap(16 * MINUTE_MS);
    settled("queue", [2, 1, 1, 0]);
    for _ in 0..8 {
        gate.open();
    }
    settled("queue", [3, 0, 0, 0]);
}

#[test]
fn missed_occurrences_are_passed_over_or_made_up_for() {
    let clock = Clock::new();
    let home = &clock.home;
    for missed in ["skip", "once", "all"] {
        home.ok(&[
            "schedule",
            "add",
            missed,
            "--every",
            "90m",
            "--missed",
            missed,
            "--overlap",
            "parallel",
            "--",
            "true",
        ]);
    }
    home.ok(&["daemon", "stop"]);
    // A week is 112 times 90 minutes; it is over by half an hour, so that none is on time.
    clock.set(7 * DAY_MS + 30 * MINUTE_MS);
    home.ok(&["daemon", "start"]);
    let week = 112;
    let skipped = |name: &str| count(&trigger(home, name), "skipped");
    assert_eq!(count(&made(home, "once", 1), "runs"), 1);
    assert_eq!(count(&made(home, "all", 100), "runs"), 100);
    assert_eq!((skipped("skip"), skipped("once"), skipped("all")), (week, week - 1, week - 100));
    assert_eq!(count(&trigger(home, "skip"), "runs"), 0);
    let found = occurrences(home, "all");
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 100);
}

#[test]
fn a_clock_set_back_makes_nothing_twice_and_is_gone_by() {
    let clock = Clock::new();
    let home = &clock.home;
    let script = counting(home);
    let far = ["--every", "5m", "--missed", "all", "--overlap", "parallel", "--"];
    home.ok(&[&["schedule", "add", "five"][..], &far, &["sh", "-c", &script]].concat());
    clock.leap(61 * MINUTE_MS);
    let first = made(home, "five", 12);
    // On the same boot, after others, and forward again to where it was.
    let boots = [(None, 30), (Some("another"), 3), (Some("a-third"), 0), (Some("a-fourth"), 61)];
    for (boot, minutes) in boots {
        home.crash_daemon();
        clock.set(minutes * MINUTE_MS);
        let mut start = home.outlast(&["daemon", "start"]);
        start.envs(boot.map(|boot| ("OUTLAST_FAKE_BOOT_ID", boot)));
        assert!(start.output().expect("the program starts").status.success());
        let view = trigger(home, "five");
        assert_eq!((count(&view, "runs"), count(&view, "waiting")), (12, 0), "{boot:?}");
        // It goes on where it was, by the clock on the wall.
        assert_eq!(view["next_at"], first["next_at"], "{boot:?}");
    }
    clock.leap(66 * MINUTE_MS);
    made(home, "five", 13);
    until("all have run", || (ran(home).len() >= 13).then_some(()));
    let ran = ran(home);
    assert_eq!(ran.iter().collect::<BTreeSet<_>>().len(), 13, "{ran:?}");
}

#[test]
fn a_schedule_is_paused_resumed_run_by_hand_and_removed() {
    let clock = Clock::new();
    let home = &clock.home;
    home.ok(&["schedule", "add", "five", "--every", "5m", "--", "true"]);
    assert_eq!(home.ok(&["schedule", "pause", "five"]), "paused five");
    clock.leap(11 * MINUTE_MS);
    let view = trigger(home, "five");
    assert_eq!(
        (&view["paused"], &view["next_at"], count(&view, "runs")),
        (&true.into(), &Value::Null, 0)
    );
    // By hand it still makes one.
    let id = home.ok(&["schedule", "run", "five"]);
    assert_eq!(home.wait(&id), 0);
    assert!(occurrences(home, "five")[0].starts_with("manual/"));
    assert_eq!(home.ok(&["schedule", "resume", "five"]), "resumed five");
    let view = trigger(home, "five");
    assert_eq!((count(&view, "runs"), count(&view, "waiting"), count(&view, "skipped")), (1, 0, 0));
    assert!(view["next_at"].is_string());
    assert_eq!(home.ok(&["schedule", "next", "five", "-n", "3"]).lines().count(), 3);
    assert_eq!(home.ok(&["schedule", "rm", "five"]), "removed five");
    let said = home.fails(2, &["schedule", "rm", "five"]);
    assert!(said.contains("there is no schedule \"five\"") && said.contains("hint: "), "{said}");
    assert_eq!(runs(home, "five").len(), 1);
}

fn loop_file(home: &Home, text: &str) -> String {
    let path = home.scratch().join("WORKFLOW.md");
    let part = path.with_extension("part");
    fs::write(&part, text).expect("the scratch directory is ours");
    fs::rename(part, &path).expect("the scratch directory is ours");
    path.display().to_string()
}

#[test]
fn a_loop_file_is_read_anew_and_a_broken_one_changes_nothing() {
    let clock = Clock::new();
    let home = &clock.home;
    let says = |word: &str| {
        format!("---\nagent: {{ kind: exec, command: \"echo {word} >> words\" }}\n---\nDo it.\n")
    };
    let file = loop_file(home, &says("first"));
    home.ok(&["schedule", "add", "five", "--every", "5m", "-f", &file]);
    let words = || fs::read_to_string(home.scratch().join("words")).unwrap_or_default();
    // A schedule makes no run while its last one goes on.
    let none_open =
        || home.json(&["ps", "--json"]).as_array().is_some_and(Vec::is_empty).then_some(());
    let trouble = || trigger(home, "five")["trouble"]["code"].as_str().map(str::to_owned);
    loop_file(home, &says("second"));
    clock.leap(6 * MINUTE_MS);
    made(home, "five", 1);
    until("it has run", || (words() == "second\n").then_some(()));
    until("it has ended", none_open);
    loop_file(home, "---\nagent: { kind: nonsense\n---\nDo it.\n");
    clock.leap(11 * MINUTE_MS);
    made(home, "five", 2);
    until("it has run", || (words() == "second\nsecond\n").then_some(()));
    assert_eq!(trouble().as_deref(), Some("workflow_broken"));
    until("it has ended", none_open);
    loop_file(home, &says("third"));
    clock.leap(16 * MINUTE_MS);
    made(home, "five", 3);
    until("it has run", || (words() == "second\nsecond\nthird\n").then_some(()));
    assert_eq!(trouble(), None);
}

#[test]
fn what_keeps_runs_from_being_made_is_shown_and_tried_again() {
    let clock = Clock::new();
    let home = &clock.home;
    let dir = home.scratch().join("place");
    fs::create_dir(&dir).expect("the scratch directory is ours");
    let place = dir.display().to_string();
    home.ok(&["schedule", "add", "five", "--every", "5m", "--dir", &place, "--", "true"]);
    fs::remove_dir(&dir).expect("it is ours");
    clock.leap(6 * MINUTE_MS);
    until("it is stuck", || {
        let view = trigger(home, "five");
        (view["trouble"]["code"] == "no_directory" && view["waiting"] == 1).then_some(())
    });
    fs::create_dir(&dir).expect("the scratch directory is ours");
    // Its next try is some seconds away; a person need not wait for it.
    home.ok(&["schedule", "pause", "five"]);
    home.ok(&["schedule", "resume", "five"]);
    let view = made(home, "five", 1);
    assert_eq!((&view["trouble"], &view["waiting"]), (&Value::Null, &0.into()));
}

#[test]
fn what_cannot_be_is_refused_with_a_hint() {
    let home = Home::new();
    let file =
        loop_file(&home, "---\nagent: { kind: exec, command: \"true\" }\n---\n{{ item.title }}\n");
    let cases: [(&[&str], &str); 9] = [
        (&["x", "--cron", "61 * * * *", "--", "true"], "the minute goes from 0 to 59"),
        (&["x", "--cron", "0 0 30 2 *", "--", "true"], "never happens"),
        (&["x", "--cron", "@daily", "--tz", "Mars/Base", "--", "true"], "unknown time zone"),
        (&["x", "--at", "2001-01-01T00:00", "--", "true"], "that time has passed"),
        (&["x", "--every", "10ms", "--", "true"], "at least a second"),
        (&["a/b", "--every", "1h", "--", "true"], "is not a name for a trigger"),
        (&["x", "--every", "1h"], "there is no COMMAND"),
        (&["x", "--every", "1h", "--task", "{{ nothing }}", "--", "true"], "nothing"),
        (&["x", "--every", "1h", "-f", &file], "item"),
    ];
    for (args, expected) in cases {
        let args: Vec<&str> = ["schedule", "add"].iter().chain(args).copied().collect();
        let said = home.fails(2, &args);
        assert!(said.contains(expected) && said.contains("hint: "), "{args:?}: {said}");
    }
    home.ok(&["schedule", "add", "x", "--every", "1h", "--", "true"]);
    let again = home.fails(2, &["schedule", "add", "x", "--every", "1h", "--", "true"]);
    assert!(again.contains("there is a trigger \"x\" already"), "{again}");
    let single =
        home.fails(2, &["schedule", "add", "y", "--every", "1h", "--key", "k", "--", "true"]);
    assert!(single.contains("cannot share a key"), "{single}");
    assert_eq!(home.json(&["schedule", "ls", "--json"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn the_next_times_are_told_in_the_zone_they_are_meant_in() {
    let home = Home::new();
    let args = [
        "schedule",
        "next",
        "--cron",
        "30 2 * * *",
        "--tz",
        "Europe/Berlin",
        "-n",
        "400",
        "--json",
    ];
    let next = home.json(&args);
    let times = next["next"].as_array().expect("a list");
    assert_eq!((times.len(), str_of(&next, "tz")), (400, "Europe/Berlin"));
    let local = |time: &Value| str_of(time, "local").to_owned();
    // Among 400 days there is one on which 2:30 is left out.
    let odd: Vec<String> =
        times.iter().map(local).filter(|it| !it.contains(" 02:30:00 ")).collect();
    assert_eq!(odd.len(), 1, "{odd:?}");
    assert!(odd[0].contains(" 03:00:00 +02:00"), "{odd:?}");
}

/// Secrets and the environment are not shown, and an idle daemon sleeps.
#[test]
fn a_list_says_nothing_of_the_environment() {
    let home = Home::new().env("A_SECRET", "hunter2hunter2");
    home.ok(&[
        "schedule",
        "add",
        "far",
        "--every",
        "30d",
        "--env",
        "B=hunter2hunter2",
        "--",
        "true",
    ]);
    let listed = home.ok(&["schedule", "ls", "--json"]);
    assert!(!listed.contains("hunter2") && !home.ok(&["schedule", "ls"]).contains("hunter2"));
    let daemon = home.daemon_pid();
    kill(daemon, "TERM");
    until("it is gone", || (!is_alive(daemon)).then_some(()));
    assert_eq!(lines(&home.scratch().join("ran")), 0);
}

#[test]
fn a_wall_clock_set_for_a_while_fires_no_schedule_and_one_set_for_good_is_a_time_missed() {
    let clock = Clock::new();
    let home = &clock.home;
    for missed in ["skip", "once", "all"] {
        let every = ["--every", "60m", "--missed", missed, "--overlap", "parallel", "--", "true"];
        home.ok(&[&["schedule", "add", missed][..], &every].concat());
    }
    let runs = |name: &str| count(&trigger(home, name), "runs");
    for off_ms in [3 * 60 * MINUTE_MS, -3 * 60 * MINUTE_MS] {
        clock.set_wall(off_ms, 600_000);
        let next_at = trigger(home, "all")["next_at"].clone();
        home.crash_daemon();
        home.ok(&["daemon", "start"]);
        // Whatever is due is let in before a run that is asked for by hand is made.
        let id = home.ok(&["schedule", "run", "all"]);
        assert_eq!(home.wait(&id), 0);
        assert!(occurrences(home, "all").iter().all(|it| it.starts_with("manual/")), "{off_ms}");
        assert_eq!((runs("skip"), runs("once")), (0, 0), "{off_ms}");
        assert_eq!(trigger(home, "all")["next_at"], next_at, "{off_ms}");
    }
    clock.set_wall(3 * 60 * MINUTE_MS + 30 * MINUTE_MS, 0);
    until("what was missed is made up for", || {
        (runs("once") == 1 && runs("all") == 2 + 3).then_some(())
    });
    assert_eq!(runs("skip"), 0);
    assert_eq!(count(&trigger(home, "skip"), "skipped"), 3);
}

#[test]
fn a_run_of_a_schedule_had_no_name_to_look_it_up_by() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    home.ok(&["schedule", "add", "nightly", "--cron", "@yearly", "--", "sh", "-c", &gate.pass()]);
    let said = home.fails(2, &["logs", "nightly"]);
    assert!(said.contains("nightly is a schedule that has no runs"), "{said}");
    assert!(said.contains("hint: outlast ps -a --trigger nightly"), "{said}");
    let first = home.ok(&["schedule", "run", "nightly"]);
    let second = home.ok(&["schedule", "run", "nightly"]);
    let name = |run: &str| str_of(&home.show(run), "name").to_owned();
    assert_eq!((name(&first), name(&second)), ("nightly-1".to_owned(), "nightly-2".to_owned()));
    assert_eq!(str_of(&home.show("nightly"), "id"), second);
    assert_eq!(str_of(&home.show("nightly-1"), "id"), first);
    // A person's run may have the next name, or the trigger's own.
    let taken = home.ok(&["run", "-d", "--name", "nightly-3", "--", "sh", "-c", &gate.pass()]);
    let third = home.ok(&["schedule", "run", "nightly"]);
    assert_eq!(name(&third), "nightly-4");
    let own = home.ok(&["run", "-d", "--name", "nightly", "--", "sh", "-c", &gate.pass()]);
    let fourth = home.ok(&["schedule", "run", "nightly"]);
    assert_eq!(str_of(&home.show("nightly"), "id"), own, "the name of a live run is that run");
    (0..6).for_each(|_| gate.open());
    for id in [&first, &second, &third, &fourth, &own, &taken] {
        assert_eq!(home.wait(id), 0);
    }
    assert_eq!(str_of(&home.show("nightly"), "id"), fourth);
    // Numbers go on, and begin anew only after the runs are gone.
    assert_eq!(name(&home.ok(&["schedule", "run", "nightly"])), "nightly-6");
}

#[test]
fn a_time_of_day_is_the_next_one_in_its_zone() {
    let home = Home::new();
    let at = |time: &str, zone: &str| -> (jiff::Timestamp, jiff::Zoned) {
        let said = home.json(&["schedule", "next", "--at", time, "--tz", zone, "--json"]);
        let at: jiff::Timestamp = str_of(&said["next"][0], "at").parse().expect("a time");
        (at, at.in_tz(zone).expect("a zone"))
    };
    let now = jiff::Timestamp::now();
    for zone in ["Europe/Berlin", "America/Los_Angeles", "Pacific/Kiritimati"] {
        let (next, local) = at("23:59", zone);
        let ahead = next.duration_since(now).as_hours();
        assert!((0..=25).contains(&ahead), "{next} is {ahead} hours ahead");
        assert_eq!((local.hour(), local.minute()), (23, 59), "{zone}");
    }
    home.ok(&["schedule", "add", "once", "--at", "23:59", "--tz", "Asia/Tokyo", "--", "true"]);
    let source = str_of(&trigger(&home, "once"), "source").to_owned();
    assert!(source.contains("T23:59:00 Asia/Tokyo"), "it is kept with its day: {source}");
    for no_time in ["25:00", "2359", "tonight"] {
        let said = home.fails(2, &["schedule", "add", "x", "--at", no_time, "--", "true"]);
        assert!(said.contains("is not a time") && said.contains("hint: 23:59"), "{said}");
    }
}

#[test]
fn a_schedule_is_replaced_and_shown_and_several_are_removed() {
    let home = Home::new();
    let add = |name: &str, more: &[&str]| {
        let args = [&["schedule", "add", name][..], more, &["--", "echo", name]].concat();
        home.output(&args)
    };
    assert!(add("nightly", &["--cron", "0 3 * * *", "--tz", "UTC"]).status.success());
    assert!(add("weekly", &["--cron", "@weekly"]).status.success());
    home.wait(&home.ok(&["schedule", "run", "nightly"]));
    let before = trigger(&home, "nightly");
    let taken = add("nightly", &["--cron", "0 4 * * *"]);
    assert!(text(&taken.stderr).contains("--replace"), "{taken:?}");
    home.ok(&["schedule", "pause", "nightly"]);
    let replaced = add("nightly", &["--replace", "--cron", "0 4 * * *", "--tz", "UTC"]);
    assert!(text(&replaced.stdout).starts_with("replaced nightly: cron 0 4 * * * UTC"));
    let after = trigger(&home, "nightly");
    assert_eq!((count(&after, "runs"), &after["paused"]), (1, &true.into()), "what was stays");
    assert_ne!(after["id"], before["id"], "an order for the old one is not for this one");
    home.crash_daemon();
    assert_eq!(str_of(&trigger(&home, "nightly"), "source"), "cron 0 4 * * * UTC");
    home.ok(&["schedule", "resume", "nightly"]);
    assert!(trigger(&home, "nightly")["next_at"].is_string());
    let shown = home.ok(&["schedule", "show", "nightly"]);
    for line in ["state      ok", "source     cron 0 4 * * * UTC", "command    echo nightly"] {
        assert!(shown.contains(line), "{shown}");
    }
    assert_eq!(home.json(&["schedule", "show", "nightly", "--json"])["name"], "nightly");
    let other =
        home.fails(2, &["trigger", "add", "nightly", "--replace", "--webhook", "--", "true"]);
    assert!(other.contains("nightly is a schedule and cannot be replaced by a webhook"), "{other}");
    let said = home.output(&["schedule", "rm", "nightly", "nope", "weekly"]);
    assert_eq!(said.status.code(), Some(2));
    assert_eq!(text(&said.stdout), "removed nightly\nremoved weekly\n");
    assert!(text(&said.stderr).contains("there is no schedule \"nope\""), "{said:?}");
}

#[test]
fn a_time_that_is_told_to_a_person_is_in_the_zone_of_its_schedule() {
    let home = Home::new();
    let next = ["schedule", "next", "--at", "2099-07-01T23:59", "--tz", "Europe/Berlin"];
    let said = home.ok(&next);
    assert!(said.starts_with("2099-07-01T21:59:00.000Z  Wed 2099-07-01 23:59:00 +02:00"), "{said}");
}
