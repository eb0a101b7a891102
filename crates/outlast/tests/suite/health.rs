//! How runs are doing: each word is shown for a run that is made so, and a run gets well again.

use std::fs;

use serde_json::Value;

use crate::clocks::{Clock, restart};
use crate::harness::{Gate, Home, kill, str_of, until};
use crate::stalls::{says, start};

pub(crate) fn configure(home: &Home, text: &str) {
    fs::write(home.path().join("config.toml"), text).expect("the home is ours");
}

/// A loop whose agent is this script, with these limits, tried again at once.
pub(crate) fn a_loop(script: &str, limits: &str) -> String {
    let script = script.replace('\n', "\n    ");
    format!(
        "---\nagent:\n  kind: exec\n  command: |\n    {script}\n\
         limits: {{ {limits} }}\n\
         retry: {{ initial_backoff_ms: 10, max_backoff_ms: 20 }}\n---\nDo it.\n"
    )
}

/// Waits until the run is doing so, and says why; `ps` says the same.
pub(crate) fn is_doing(home: &Home, id: &str, word: &str) -> String {
    let run = until(word, || {
        let run = home.show(id);
        (run["health"] == word).then_some(run)
    });
    assert!(run["health_since"].is_string(), "{run}");
    let rows = home.json(&["ps", "--json"]);
    let row = rows.as_array().expect("a list").iter().find(|row| row["id"] == *id);
    let row = row.unwrap_or_else(|| panic!("{id} is not in {rows}"));
    assert_eq!((&row["health"], &row["health_since"]), (&run["health"], &run["health_since"]));
    run["health_why"].as_str().unwrap_or_default().to_owned()
}

/// Degradations and recoveries so far.
pub(crate) fn changes(home: &Home, id: &str) -> Vec<String> {
    let of = |event: &Value| match str_of(event, "kind") {
        "HealthDegraded" => Some(str_of(event, "health").to_owned()),
        "HealthRecovered" => Some(format!("not {}", str_of(event, "from"))),
        _ => None,
    };
    home.events(id).iter().filter_map(of).collect()
}

#[test]
fn a_run_that_says_nothing_is_silent_and_is_well_when_it_speaks() {
    let home = Home::new();
    configure(&home, "[health]\nsilent_after_ms = 700\n");
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("{0}; echo here I am; {0}", gate.pass()));
    let why = is_doing(&home, &id, "silent");
    assert!(why.starts_with("no output for "), "{why}");
    assert!(home.ok(&["show", &id]).contains("silent: no output for "));
    assert_eq!(changes(&home, &id), ["silent"], "it is said once");
    gate.open();
    until("it is well again", || (home.count(&id, "HealthRecovered") == 1).then_some(()));
    assert_eq!(changes(&home, &id)[..2], ["silent", "not silent"]);
    gate.open();
    assert_eq!(home.wait(&id), 0);
}

#[test]
fn a_run_is_as_silent_for_the_next_daemon() {
    let home = Home::new();
    configure(&home, "[health]\nsilent_after_ms = 700\n");
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("{}; echo here I am; sleep 600", gate.pass()));
    is_doing(&home, &id, "silent");
    let since = home.show(&id)["health_since"].clone();
    restart(&home);
    is_doing(&home, &id, "silent");
    assert_eq!(home.show(&id)["health_since"], since);
    assert_eq!(changes(&home, &id), ["silent"]);
    gate.open();
    until("it is well again", || (home.count(&id, "HealthRecovered") == 1).then_some(()));
    home.ok(&["stop", "--now", &id]);
}

/// The second attempt is alive by its heartbeat, and says nothing until it is let.
#[test]
fn what_was_ended_for_its_silence_is_stalled_until_it_speaks() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "[ $OUTLAST_ATTEMPT -gt 1 ] || exec sleep 600\n\
         (while :; do touch \"$OUTLAST_HEARTBEAT_FILE\"; sleep 0.1; done) &\nbeats=$!\n\
         {0}\necho here I am\n{0}\nkill $beats\n{1}",
        gate.pass(),
        says("done")
    );
    let id = start(&home, &a_loop(&script, "stall_window_ms: 5000, max_stall_restarts: 5"));
    let why = is_doing(&home, &id, "stalled");
    assert!(why.starts_with("ended for its silence"), "{why}");
    until("the next attempt runs", || (home.show(&id)["attempt"] == 2).then_some(()));
    home.pid(&id);
    assert_eq!(home.show(&id)["health"], "stalled");
    gate.open();
    is_doing(&home, &id, "healthy");
    gate.open();
    assert_eq!(home.wait(&id), 0);
    let changes = changes(&home, &id);
    assert!(changes.windows(2).any(|pair| pair == ["stalled", "not stalled"]), "{changes:?}");
}

#[test]
fn a_turn_that_fails_again_and_again_is_thrashing_until_it_commits() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "[ $OUTLAST_TURN -eq 1 ] && [ $OUTLAST_ATTEMPT -lt 4 ] && exit 1\n{0}\n\
         if [ $OUTLAST_TURN -eq 1 ]; then\n{1}\nelse\n{2}\nfi",
        gate.pass(),
        says("continue"),
        says("done")
    );
    let id = start(&home, &a_loop(&script, "max_attempts: 9"));
    assert_eq!(is_doing(&home, &id, "thrashing"), "3 attempts at turn 1 have failed");
    gate.open();
    is_doing(&home, &id, "healthy");
    gate.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(changes(&home, &id), ["thrashing", "not thrashing"]);
}

#[test]
fn a_blocked_run_waits_for_a_person_until_one_answers() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "if [ $OUTLAST_TURN -eq 1 ]; then\n{}\nelse\n{}\n{}\nfi",
        says("blocked"),
        gate.pass(),
        says("done")
    );
    let id = start(&home, &a_loop(&script, "max_attempts: 1"));
    assert_eq!(home.wait(&id), 3);
    assert_eq!(is_doing(&home, &id, "waiting_human"), "waits for an answer: agent_blocked");
    home.ok(&["answer", &id, "go on"]);
    is_doing(&home, &id, "healthy");
    gate.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(changes(&home, &id), ["waiting_human", "not waiting_human"]);
}

#[test]
fn an_agent_that_its_provider_sent_away_is_rate_limited_until_the_time_it_was_told() {
    let clock = Clock::new();
    let home = &clock.home;
    let wait = r#"{"status":"continue","wait":{"until":'$(( ($(date +%s) + 3600) * 1000 ))',"cause":"rate_limit"}}"#;
    let script = format!(
        "if [ $OUTLAST_TURN -eq 1 ]; then\necho '{wait}' > \"$OUTLAST_RESPONSE_FILE\"\nelse\n{}\nfi",
        says("done")
    );
    let id = start(home, &a_loop(&script, "max_attempts: 1"));
    is_doing(home, &id, "rate_limited");
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "phase")), ("waiting", "rate_limit"));
    home.ok(&["send", &id, "hurry"]);
    assert_eq!(home.show(&id)["phase"], "rate_limit", "asking again would not help");
    clock.set(75 * 60_000);
    restart(home);
    assert_eq!(home.wait(&id), 0);
    assert_eq!(changes(home, &id), ["rate_limited", "not rate_limited"]);
}

#[test]
fn most_of_a_limit_is_said_once_and_the_run_is_near_it() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let answer = |status: &str| {
        format!(
            r#"echo '{{"status":"{status}","usage":{{"input_tokens":430,"output_tokens":0,"cost_usd":0}}}}' > "$OUTLAST_RESPONSE_FILE""#
        )
    };
    let script = format!(
        "{}\nif [ $OUTLAST_TURN -lt 3 ]; then\n{}\nelse\n{}\nfi",
        gate.pass(),
        answer("continue"),
        answer("done")
    );
    let id = start(&home, &a_loop(&script, "max_tokens: 1000, no_progress_turns: 0"));
    gate.open();
    gate.open();
    assert_eq!(is_doing(&home, &id, "near_limit"), "86 % of max_tokens is used");
    restart(&home);
    is_doing(&home, &id, "near_limit");
    gate.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(
        (home.count(&id, "LimitNeared"), changes(&home, &id)),
        (1, vec!["near_limit".into()])
    );
}

#[test]
fn a_run_that_lost_its_shim_is_orphaned_until_the_next_attempt() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("{}\n{}", gate.pass(), says("done"));
    let id = start(&home, &a_loop(&script, "max_attempts: 3"));
    let (shim, pid) = (home.shim_pid(&id), home.pid(&id));
    kill(shim, "KILL");
    let why = is_doing(&home, &id, "orphaned");
    assert!(why.starts_with("its shim is gone"), "{why}");
    kill(pid, "KILL");
    is_doing(&home, &id, "healthy");
    gate.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(changes(&home, &id), ["orphaned", "not orphaned"]);
}
