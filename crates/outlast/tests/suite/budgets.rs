//! Money and tokens for the unattended: counted while they are spent, shared by runs, and one word that has
//! everything rest.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::clocks::{Clock, restart};
use crate::harness::{Gate, Home, str_of, text, until};
use crate::health::{a_loop, changes, configure, is_doing};
use crate::stalls::{says, start};

const DAY_MS: i64 = 86_400_000;

/// What an agent says that has used up so much.
pub(crate) fn uses(status: &str, tokens: u64, cost_usd: f64) -> String {
    format!(
        r#"echo '{{"status":"{status}","usage":{{"input_tokens":{tokens},"output_tokens":0,"cost_usd":{cost_usd}}}}}' > "$OUTLAST_RESPONSE_FILE""#
    )
}

/// `continue` in the first turn, which uses up so much, and `done` in the second.
fn two_turns(tokens: u64, cost_usd: f64) -> String {
    format!(
        "if [ $OUTLAST_TURN -eq 1 ]; then\n{}\nelse\n{}\nfi",
        uses("continue", tokens, cost_usd),
        says("done")
    )
}

fn outlast() -> &'static str {
    env!("CARGO_BIN_EXE_outlast")
}

fn labelled(home: &Home, label: &str, file: &str) -> String {
    let path = home.scratch().join("LABELLED.md");
    std::fs::write(&path, file).expect("the scratch directory is ours");
    home.ok(&["run", "-d", "--label", label, "-f", path.to_str().expect("the path is text")])
}

fn is_at(home: &Home, id: &str, state: &str, code: &str) -> Value {
    until(code, || {
        let run = home.show(id);
        (run["state"] == state && run["reason_code"] == code).then_some(run)
    })
}

#[test]
fn an_agent_that_says_what_it_uses_is_ended_in_the_middle_of_its_turn() {
    let home = Home::new();
    let script = format!(
        "'{0}' usage --input 400 --cost 0.01\n'{0}' usage --input 399\n\
         '{0}' usage --input 1200 --output 1\nsleep 600 & wait",
        outlast()
    );
    let id = start(&home, &a_loop(&script, "max_tokens: 1000"));
    assert_eq!(home.wait(&id), 4);
    let run = home.show(&id);
    assert_eq!(str_of(&run, "reason_code"), "max_tokens");
    assert_eq!(
        (&run["usage"]["input_tokens"], &run["usage"]["output_tokens"]),
        (&json!(1200), &json!(1))
    );
    assert_eq!(run["usage"]["cost_usd"], json!(0.01), "what was said once is not taken back");
    assert_eq!(home.count(&id, "UsageReported"), 2, "less than before is no news");
    let refused = home.fails(2, &["usage", &id, "--input", "9"]);
    assert!(refused.contains("is not alive"), "{refused}");
    assert!(home.fails(2, &["usage", "--input", "9"]).contains("no run to report"));
}

/// How far off noon (UTC) is, so that no midnight comes in between.
pub(crate) fn to_noon_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    let now_ms = i64::try_from(since_epoch.as_millis()).expect("it is before the year 292 million");
    (DAY_MS / 2 - now_ms).rem_euclid(DAY_MS)
}

#[test]
fn a_day_whose_money_is_spent_is_waited_out_also_by_the_next_daemon() {
    let clock = Clock::new();
    let home = &clock.home;
    let noon = to_noon_ms();
    clock.set(noon);
    configure(home, "[budgets]\ntz = \"UTC\"\n[budgets.day]\nmax_cost_usd = 0.5\n");
    let id = start(home, &a_loop(&two_turns(10, 0.6), "max_attempts: 1"));
    let waiting = is_at(home, &id, "waiting", "budget");
    assert_eq!(str_of(&waiting, "phase"), "timer");
    assert!(str_of(&waiting, "wake_at").ends_with("T00:00:00.000Z"), "{waiting}");
    assert_eq!(is_doing(home, &id, "near_limit"), "the budget day is spent");
    assert_eq!(home.count(&id, "LimitNeared"), 1);
    let late = start(home, &a_loop(&says("done"), "max_attempts: 1"));
    is_at(home, &late, "waiting", "budget");
    restart(home);
    let still = home.show(&id);
    assert_eq!((&still["state"], &still["wake_at"]), (&json!("waiting"), &waiting["wake_at"]));
    let budget = &home.json(&["budgets", "--json"])[0];
    assert_eq!((str_of(budget, "name"), &budget["used"]["cost_usd"]), ("day", &json!(0.6)));
    assert_eq!(
        (&budget["left"]["cost_usd"], &budget["resets_at"]),
        (&json!(0.0), &waiting["wake_at"])
    );
    clock.set(noon + DAY_MS);
    restart(home);
    assert_eq!((home.wait(&id), home.wait(&late)), (0, 0));
    assert_eq!(changes(home, &id), ["near_limit", "not near_limit"]);
    assert_eq!(home.json(&["budgets", "--json"])[0]["used"]["cost_usd"], json!(0.0));
}

#[test]
fn runs_of_a_label_share_what_it_has_and_the_others_do_not() {
    let home = Home::new();
    configure(&home, "[budgets.labels.\"team=web\"]\nmax_tokens = 1000\n");
    let mut gate = Gate::new(&home, "gate");
    let report = format!("'{}' usage --input 1100\n{}", outlast(), gate.pass());
    let live = labelled(&home, "team=web", &a_loop("sleep 600 & wait", "max_attempts: 1"));
    home.pid(&live);
    let other = labelled(&home, "team=api", &a_loop("sleep 600 & wait", "max_attempts: 1"));
    home.pid(&other);
    let spender = labelled(&home, "team=web", &a_loop(&report, "max_attempts: 1"));
    for id in [&live, &spender] {
        assert_eq!(home.wait(id), 4);
        assert_eq!(str_of(&home.show(id), "reason_code"), "budget");
    }
    assert_eq!(home.show(&other)["state"], "running");
    home.ok(&["rm", &spender]);
    let late = labelled(&home, "team=web", &a_loop(&says("done"), "max_attempts: 1"));
    assert_eq!(home.wait(&late), 4);
    let late = home.show(&late);
    assert_eq!(
        (str_of(&late, "reason"), &late["attempt"]),
        ("the budget label team=web is spent", &json!(0))
    );
    gate.open();
    home.ok(&["stop", "--now", &other]);
}

#[test]
fn a_budget_that_is_raised_lets_go_on_who_waits_for_it() {
    let home = Home::new();
    let rule = |most: u64| {
        format!("[budgets.labels.nightly]\nmax_tokens = {most}\non_exceed = \"wait\"\n")
    };
    configure(&home, &rule(100));
    let id = labelled(&home, "nightly=1", &a_loop(&two_turns(150, 0.0), "max_attempts: 1"));
    let waiting = is_at(&home, &id, "waiting", "budget");
    assert_eq!(waiting["wake_at"], Value::Null);
    configure(&home, &rule(1000));
    assert!(home.ok(&["budgets"]).contains("label nightly"));
    assert_eq!(home.wait(&id), 0);
}

#[test]
fn without_budgets_there_is_nothing_to_list_and_nothing_in_the_way() {
    let home = Home::new();
    assert_eq!(home.json(&["budgets", "--json"]), json!([]));
    assert!(home.ok(&["budgets"]).contains("no budgets set"));
    let id = start(&home, &a_loop(&two_turns(1_000_000, 900.0), "max_attempts: 1"));
    assert_eq!(home.wait(&id), 0);
}

#[test]
fn pause_all_holds_through_the_death_of_the_daemon_until_it_is_taken_back() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "{}\nif [ $OUTLAST_TURN -eq 1 ]; then\n{}\nelse\n{}\nfi",
        gate.pass(),
        says("continue"),
        says("done")
    );
    let going = start(&home, &a_loop(&script, "max_attempts: 1"));
    let mine = start(&home, &a_loop(&script, "max_attempts: 1"));
    home.pid(&going);
    home.pid(&mine);
    home.ok(&["pause", &mine]);
    home.ok(&["pause", "--all"]);
    let again = home.json(&["pause", "--all", "--json"]);
    let since = str_of(&again, "held_since").to_owned();
    home.crash_daemon();
    let made = home.output(&["run", "-d", "--", "true"]);
    let new = text(&made.stdout).trim().to_owned();
    assert!(text(&made.stderr).contains("everything is paused"), "{}", text(&made.stderr));
    let status = home.json(&["daemon", "status", "--json"]);
    assert_eq!(str_of(&status, "held_since"), since);
    assert!(text(&home.output(&["ps"]).stderr).contains("everything is paused"));
    assert!(text(&home.output(&["doctor"]).stdout).contains("everything is paused since"));
    gate.open();
    gate.open();
    for id in [&going, &mine, &new] {
        is_at(&home, id, "waiting", "paused");
    }
    assert_eq!(home.show(&going)["turns_committed"], 1, "what runs goes on to its end");
    let refused = home.fails(2, &["resume", &going]);
    assert!(refused.contains("resume --all"), "{refused}");
    assert_eq!(home.ok(&["resume", "--all"]), "resumed all");
    // It said that what was paused goes on, with nothing paused.
    let said = home.ok(&["resume", "--all"]);
    assert_eq!(said, "nothing to resume: pause --all is not in effect");
    assert_eq!(home.wait(&new), 0);
    until("the second turn runs", || (home.show(&going)["turn"] == 2).then_some(()));
    assert_eq!(home.show(&mine)["reason_code"], "paused", "a person paused this one");
    assert_eq!(home.json(&["daemon", "status", "--json"])["held_since"], Value::Null);
    gate.open();
    assert_eq!(home.wait(&going), 0);
    home.ok(&["resume", &mine]);
    gate.open();
    assert_eq!(home.wait(&mine), 0);
}

/// A loop's turn is cut short and made again; a command is not, since it is never made again unasked.
#[test]
fn pause_all_now_ends_the_turns_of_loops_and_costs_them_no_try() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("{}\n{}", gate.pass(), says("done"));
    let id = start(&home, &a_loop(&script, "max_attempts: 1"));
    let once = home.start("sleep 600");
    let (pid, command) = (home.pid(&id), home.pid(&once));
    home.ok(&["pause", "--all", "--now"]);
    is_at(&home, &id, "waiting", "paused");
    assert!(!crate::harness::is_alive(pid));
    let ended = home.events(&id).into_iter().find(|event| event["kind"] == "AttemptEnded");
    let ended = ended.expect("its attempt has ended");
    assert_eq!((str_of(&ended, "outcome"), str_of(&ended, "by")), ("interrupted", "pause"));
    assert!(crate::harness::is_alive(command));
    home.ok(&["resume", "--all"]);
    until("it is tried again", || (home.show(&id)["attempt"] == 2).then_some(()));
    gate.open();
    assert_eq!(home.wait(&id), 0);
    home.ok(&["stop", "--now", &once]);
}
