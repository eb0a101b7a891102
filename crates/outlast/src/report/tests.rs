//! A night as people read it.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use outlast_wire::api::{
    BlockedView, BudgetView, DaemonStart, MissedTimes, NightView, Predecessor, RunRow, RunView,
    SinkRow, TriggerView, Usage,
};
use outlast_wire::words::Word;
use serde_json::{Value, json};

use super::{Facts, Paper, groups, json as report_json, page};
use crate::output::sample;

fn row(id: &str, name: Option<&str>, state: &str, more: Value) -> RunRow {
    let mut row = json!({
        "id": id, "name": name, "state": state, "reason_code": null, "health": "healthy",
        "what": "sh -c 'make -j8'", "turn": 1, "attempt": 1, "created_at": "2026-11-15T19:00:00Z",
        "started_at": "2026-11-15T19:00:01Z", "ended_at": null, "exit": null, "labels": {}, "survivors": 0,
        "trouble": null,
    });
    let (Value::Object(fields), Value::Object(more)) = (&mut row, more) else { panic!("objects") };
    fields.extend(more);
    serde_json::from_value(row).expect("a row")
}

fn view(row: &RunRow, change: impl FnOnce(&mut RunView)) -> (String, RunView) {
    let known = row.cost_usd == 0.0;
    let mut view = RunView {
        id: row.id.clone(),
        name: row.name.clone(),
        state: row.state.clone(),
        reason_code: row.reason_code.clone(),
        turns_committed: row.turn,
        summary: None,
        usage: Usage { cost_usd: row.cost_usd, known, ..Usage::default() },
        ..sample::running_loop()
    };
    change(&mut view);
    (row.id.clone(), view)
}

fn quiet() -> Facts {
    Facts {
        now: "2026-11-16T07:00:00Z".parse().expect("a time"),
        since: "2026-11-15T18:40:00Z".parse().expect("a time"),
        night: NightView::default(),
        rows: Vec::new(),
        views: BTreeMap::new(),
        budgets: Vec::new(),
        sinks: Vec::new(),
        triggers: Vec::new(),
        held_since: None,
        config: Vec::new(),
    }
}

fn blocked(view: &mut RunView, code: &str, since: &str, question: Option<&str>) {
    view.blocked = Some(BlockedView {
        reason_code: Word::of(code),
        question: question.map(str::to_owned),
        since: since.to_owned(),
    });
}

/// The night of the field notes.
fn night() -> Facts {
    let ask = row("aaaaaaaaaaa1", Some("ask"), "blocked", json!({"reason_code": "agent_blocked"}));
    let green = row(
        "aaaaaaaaaaa2",
        Some("green"),
        "blocked",
        json!({"reason_code": "done_check_failed", "turn": 3, "max_turns": 20, "cost_usd": 0.15}),
    );
    let bug = row(
        "aaaaaaaaaaa3",
        Some("bug-42"),
        "completed",
        json!({"ended_at": "2026-11-15T21:31:00Z", "started_at": "2026-11-15T21:00:00Z", "turn": 4, "max_turns": 20, "cost_usd": 0.06}),
    );
    let build = |id: &str, at: &str| {
        row(id, None, "completed", json!({"ended_at": at, "started_at": at, "trigger": "nightly"}))
    };
    let port = row(
        "aaaaaaaaaaa6",
        Some("port"),
        "exhausted",
        json!({"reason_code": "max_turns", "ended_at": "2026-11-16T00:41:00Z", "turn": 3, "max_turns": 3, "cost_usd": 0.41, "unreported_usd": 0.41, "known": false}),
    );
    let train = row(
        "aaaaaaaaaaa7",
        None,
        "failed",
        json!({"reason_code": "exit_code", "exit": {"code": 137}, "ended_at": "2026-11-15T22:12:00Z", "attempt": 2}),
    );
    let serve = row("aaaaaaaaaaa8", Some("serve"), "running", json!({}));
    let later = row("aaaaaaaaaaa9", Some("later"), "waiting", json!({"reason_code": "budget"}));
    let views = BTreeMap::from([
        view(&ask, |it| {
            let question = "left or right? A rather long question that a person has to think about before breakfast, and after it, too, with some more words";
            blocked(it, "agent_blocked", "2026-11-16T01:14:00Z", Some(question));
        }),
        view(&green, |it| {
            it.turn = 3;
            it.reason = Some("said done 3 times; `cargo test` fails: 3 tests failed".to_owned());
            it.usage.known = true;
            blocked(it, "done_check_failed", "2026-11-16T02:02:00Z", None);
        }),
        view(&bug, |it| {
            it.summary = Some("fixed div, committed".to_owned());
            it.usage.known = true;
        }),
        view(&port, |it| {
            it.reason = Some("all 3 turns are used".to_owned());
            it.more_room = Some("--max-turns +10".to_owned());
        }),
        view(&train, |it| it.last_line = Some("CUDA out of memory".to_owned())),
        view(&serve, |it| it.last_line = Some("GET / 200".to_owned())),
        view(&later, |it| {
            it.reason = Some("the budget day is spent".to_owned());
            it.wake_at = Some("2026-11-16T23:00:00Z".to_owned());
        }),
    ]);
    let rows = vec![
        later,
        serve,
        train,
        port,
        build("aaaaaaaaaaa5", "2026-11-16T02:04:00Z"),
        build("aaaaaaaaaaa4", "2026-11-16T01:04:00Z"),
        bug,
        green,
        ask,
    ];
    let sink: SinkRow = serde_json::from_value(json!({
        "name": "bad", "kind": "webhook", "level": "all", "pending": 1, "delivered": 0, "given_up": 0,
        "oldest_pending_at": null, "failing_since": "2026-11-16T05:30:00Z", "next_try_at": null,
        "problem": "it answered 500", "disabled_at": null,
    }))
    .expect("a sink");
    let budget: BudgetView = serde_json::from_value(json!({
        "name": "day", "label": null, "period": "day", "on_exceed": "wait", "used": {"cost_usd": 1.03},
        "reserved": {}, "max": {"cost_usd": 50.0}, "left": {}, "resets_at": "2026-11-16T23:00:00Z",
    }))
    .expect("a budget");
    let trigger: TriggerView = serde_json::from_value(json!({
        "name": "nightly", "kind": "schedule", "source": "cron 0 3 * * *", "overlap": "skip", "paused": false,
        "created_at": "2026-11-01T00:00:00Z", "next_at": "2026-11-17T02:00:00Z", "last_at": null, "last_run": null,
        "runs": 2, "open": 0, "waiting": 0, "skipped": 0, "refused": 0, "trouble": null, "what": "make",
    }))
    .expect("a trigger");
    let night = NightView {
        starts: vec![DaemonStart {
            at: "2026-11-16T01:58:03Z".to_owned(),
            before: Predecessor::Died,
            rebooted: true,
            last_sign_at: Some("2026-11-16T01:40:00Z".to_owned()),
            stay_stopped_at: None,
        }],
        missed: vec![MissedTimes {
            trigger: "hourly".to_owned(),
            at: "2026-11-16T01:58:04Z".to_owned(),
            due_at: "2026-11-16T01:50:00Z".to_owned(),
            skipped: 1,
            late: 0,
        }],
        ..NightView::default()
    };
    Facts {
        night,
        rows,
        views,
        sinks: vec![sink],
        budgets: vec![budget],
        triggers: vec![trigger],
        ..quiet()
    }
}

fn shown(facts: &Facts, columns: usize) -> String {
    let tz = TimeZone::get("Europe/Berlin").expect("a zone");
    let text = page(facts, &groups(facts), &Paper { columns, colours: false, tz });
    for line in text.lines().filter(|line| !line.contains("outlast ")) {
        assert!(unicode_width::UnicodeWidthStr::width(line) <= columns, "too wide: {line}");
    }
    text
}

#[test]
fn a_night_is_one_screen_at_80_columns() {
    insta::assert_snapshot!(shown(&night(), 80));
}

#[test]
fn a_night_is_one_screen_at_120_columns() {
    insta::assert_snapshot!(shown(&night(), 120));
}

#[test]
fn a_night_without_anything_says_nothing_for_each() {
    let facts = quiet();
    insta::assert_snapshot!(shown(&facts, 80));
    assert!(!groups(&facts).needs_person(&facts));
}

#[test]
fn a_config_that_is_wrong_needs_a_person() {
    let facts =
        Facts { config: vec!["config.toml:3: budget.day: unknown key".to_owned()], ..quiet() };
    let text = shown(&facts, 80);
    assert!(text.contains("NEEDS YOU (1)\n  config"), "{text}");
    assert!(groups(&facts).needs_person(&facts));
}

#[test]
fn an_older_run_of_the_same_name_goes_by_its_id() {
    let rows = [
        row("bbbbbbbbbbb2", Some("nightly"), "running", json!({})),
        row("bbbbbbbbbbb1", Some("nightly"), "failed", json!({})),
    ];
    let views = BTreeMap::from([
        view(&rows[0], |it| it.called = Some("nightly".to_owned())),
        view(&rows[1], |it| it.called = Some("bbbbbbbbbbb1".to_owned())),
    ]);
    let groups = groups(&Facts { rows: rows.to_vec(), views, ..quiet() });
    assert_eq!(groups.running[0].handle, "nightly");
    assert_eq!(groups.not_done[0].handle, "bbbbbbbbbbb1");
    assert_eq!(groups.not_done[0].commands, ["outlast logs bbbbbbbbbbb1 --tail 20"]);
}

#[test]
fn what_the_diary_does_not_know_is_not_called_none() {
    let night = NightView {
        unknown_before: Some("2026-11-15T22:00:00Z".to_owned()),
        problem: Some("the diary was lost".to_owned()),
        ..NightView::default()
    };
    let text = shown(&Facts { night, ..quiet() }, 120);
    for said in [
        "not known before",
        "the diary was lost",
        "no reboot seen since",
        "none missed since",
        "not known before",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!text.contains("none missed\n") && !text.contains("no reboot seen\n"), "{text}");
}

#[test]
fn an_order_to_stay_stopped_after_a_death_is_no_stop() {
    let start = DaemonStart {
        at: "2026-11-16T03:20:00Z".to_owned(),
        before: Predecessor::Died,
        rebooted: false,
        last_sign_at: Some("2026-11-16T02:57:00Z".to_owned()),
        stay_stopped_at: Some("2026-11-16T03:10:00Z".to_owned()),
    };
    let night = NightView { starts: vec![start], ..NightView::default() };
    let text = shown(&Facts { night, ..quiet() }, 120);
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("died and was restarted: last seen"), "{text}");
    assert!(words.contains("ordered to stay stopped"), "{text}");
    assert!(!words.contains("stopped by an order"), "{text}");
}

#[test]
fn rows_of_the_json_have_the_same_keys() {
    let facts = night();
    let report = report_json(&facts, &groups(&facts));
    let keys =
        |item: &Value| item.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    let lists = ["needs_you", "done", "not_done", "waiting", "running"];
    let items: Vec<&Value> =
        lists.iter().flat_map(|list| report[list].as_array().expect("a list")).collect();
    assert!(items.windows(2).all(|two| keys(two[0]) == keys(two[1])));
    assert_eq!(report["needs_person"], true);
    assert_eq!(report["spent"]["unreported_runs"], 1);
}

#[test]
fn many_runs_are_cut_to_the_latest() {
    let rows: Vec<RunRow> = (10..40)
        .map(|n| {
            let ended = format!("2026-11-16T02:{n}:00Z");
            row(&format!("cccccccccc{n}"), None, "completed", json!({"ended_at": ended}))
        })
        .collect();
    let text = shown(&Facts { rows, ..quiet() }, 80);
    assert!(text.contains("DONE (30)\n  20 earlier ones: outlast ps -a\n"), "{text}");
}

/// Exhausted after 3 seconds, and raised 20 minutes later: the time between is not time worked.
#[test]
fn the_time_that_a_run_was_exhausted_is_not_counted() {
    let times = json!({
        "started_at": "2026-11-16T02:00:00Z", "ended_at": "2026-11-16T02:20:42Z", "worked_ms": 3000,
    });
    let rows = vec![row("dddddddddd10", Some("raised"), "completed", times)];
    let facts = Facts { rows, ..quiet() };
    let text = shown(&facts, 80);
    assert!(text.contains(" · 3s\n"), "{text}");
    assert_eq!(report_json(&facts, &groups(&facts))["done"][0]["took_ms"], 3000);
}

#[test]
fn no_bound_is_said_of_a_run_for_which_nothing_is_held() {
    let held =
        json!({"cost_usd": 0.25, "unreported_usd": 0.25, "unreported_attempts": 1, "known": false});
    let unbounded = json!({"unreported_attempts": 1, "known": false});
    let facts = Facts {
        rows: vec![
            row("aaaaaaaaaaa1", None, "completed", held),
            row("aaaaaaaaaaa2", None, "completed", unbounded),
        ],
        ..quiet()
    };
    let spent = groups(&facts).spent;
    assert_eq!((spent.held_runs, spent.unbounded_runs, spent.unreported_runs), (1, 1, 2));
}
