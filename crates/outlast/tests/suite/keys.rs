//! One run for a key and one daemon for a home, whichever client asks, however often and however many at once.

use std::fs;
use std::io::Read;
use std::process::Child;

use serde_json::{Value, json};

use crate::harness::{Background, Home, kill, lines, until};

/// Rounds of the race for the lock. `OUTLAST_RACE_ROUNDS=200` is how the claim was proven.
const ROUNDS: usize = 30;

/// A command line that counts how often it is executed, in a file of the test's own.
fn keyed(home: &Home, key: &str) -> Vec<String> {
    let script = format!("echo once >> '{}'", home.scratch().join("counter").display());
    ["run", "-d", "--key", key, "--", "sh", "-c", &script].map(str::to_owned).to_vec()
}

fn executed(home: &Home) -> usize {
    lines(&home.scratch().join("counter"))
}

fn runs(home: &Home) -> Vec<Value> {
    home.json(&["ps", "-a", "--json"]).as_array().expect("ps prints an array").clone()
}

fn run_directories(home: &Home) -> usize {
    fs::read_dir(home.state().join("runs")).expect("there were runs").count()
}

/// Everything a program that was left in the background has printed, once it has ended.
fn printed(mut background: Background) -> String {
    let mut printed = String::new();
    let mut stdout = background.0.stdout.take().expect("it is piped");
    stdout.read_to_string(&mut printed).expect("it prints text");
    let mut stderr = background.0.stderr.take().expect("it is piped");
    stderr.read_to_string(&mut printed).expect("it prints text");
    assert!(background.0.wait().expect("it is our child").success(), "{printed}");
    printed
}

#[test]
fn asking_again_with_a_key_makes_no_second_run() {
    let home = Home::new();
    let args = keyed(&home, "build-42");
    let id = home.ok(&args);
    assert_eq!(home.ok(&args), id);
    assert_eq!(home.wait(&id), 0);
    // A run that has ended still has its key.
    let again = home.json(&[&args[..2], &["--json".to_owned()], &args[2..]].concat());
    assert_eq!(again, json!({"id": id, "existed": true}));
    assert_eq!((executed(&home), runs(&home).len(), home.count(&id, "RunCreated")), (1, 1, 1));
    // Another key is another run of the same command.
    let other = home.ok(&keyed(&home, "build-43"));
    assert_ne!(other, id);
    assert_eq!(home.wait(&other), 0);
    assert_eq!(executed(&home), 2);
}

#[test]
fn a_key_is_free_again_once_its_run_is_removed() {
    let home = Home::new();
    let first = home.ok(&keyed(&home, "k"));
    assert_eq!(home.wait(&first), 0);
    home.ok(&["rm", &first]);
    let second = home.ok(&keyed(&home, "k"));
    assert_ne!(second, first);
    assert_eq!(home.wait(&second), 0);
}

/// None of them finds a daemon, so they race for that as well.
#[test]
fn fifty_clients_with_one_key_make_one_run() {
    let home = Home::new();
    let args = keyed(&home, "build-42");
    let clients: Vec<Background> = (0..50).map(|_| home.spawn(&args)).collect();
    let mut ids: Vec<String> = clients.into_iter().map(printed).collect();
    assert_eq!(ids.len(), 50);
    ids.dedup();
    let [id] = ids.as_slice() else { panic!("more than one id was printed: {ids:?}") };
    let id = id.trim_end();
    assert_eq!(home.wait(id), 0);
    assert_eq!((executed(&home), runs(&home).len(), home.count(id, "RunCreated")), (1, 1, 1));
    assert_eq!(run_directories(&home), 1, "the loser has left files behind");
    assert_eq!(home.json(&["daemon", "status", "--json"])["epoch"], 1, "a second daemon has been");
}

#[test]
fn a_key_does_not_stand_for_another_command() {
    let home = Home::new();
    let args = keyed(&home, "build-42");
    let id = home.ok(&args);
    assert_eq!(home.wait(&id), 0);
    let elsewhere = home.path().display().to_string();
    let others: [&[&str]; 3] = [
        &["run", "-d", "--key", "build-42", "--", "true"],
        &["run", "--key", "build-42", "--", "true"],
        &[
            &["run", "-d", "--dir", &elsewhere][..],
            &args[2..].iter().map(String::as_str).collect::<Vec<_>>(),
        ]
        .concat(),
    ];
    for other in others {
        let said = home.fails(2, other);
        assert!(said.starts_with(&format!("outlast: run {id} has key \"build-42\"")), "{said}");
        let hint =
            format!("\nhint: use another --key, or look at that run:\n  outlast show {id}\n");
        assert!(said.ends_with(&hint), "{said}");
    }
    let output = home.output(&["run", "-d", "--json", "--key", "build-42", "--", "true"]);
    let answer: Value = serde_json::from_slice(&output.stderr).expect("an error is JSON");
    assert_eq!((output.status.code(), &answer["error"]["code"]), (Some(2), &json!("key_conflict")));
    assert_eq!((executed(&home), runs(&home).len(), run_directories(&home)), (1, 1, 1));
}

#[test]
fn a_key_survives_a_daemon_that_is_killed() {
    let home = Home::new();
    let command = ["run", "-d", "--key", "the one", "--", "sleep", "600"];
    let id = home.ok(&command);
    let pid = home.pid(&id);
    home.crash_daemon();
    assert_eq!(home.ok(&command), id);
    assert_eq!(
        (home.pid(&id), home.count(&id, "RunCreated"), home.count(&id, "TurnStarted")),
        (pid, 1, 1)
    );
    assert_eq!(runs(&home).len(), 1);
}

#[test]
fn of_two_daemons_one_wins_and_the_other_names_it() {
    let home = Home::new();
    for round in 0..rounds() {
        race(&home, round);
    }
}

fn rounds() -> usize {
    let asked = std::env::var("OUTLAST_RACE_ROUNDS");
    asked.map_or(ROUNDS, |rounds| rounds.parse().expect("a number of rounds"))
}

fn race(home: &Home, round: usize) {
    let mut racers = [home.spawn(&["daemon", "run"]), home.spawn(&["daemon", "run"])];
    let loser =
        until("one of them leaves", || racers.iter_mut().position(|racer| has_ended(&mut racer.0)));
    let [first, second] = racers;
    let (mut winner, loser) = if loser == 0 { (second, first) } else { (first, second) };
    let pid = winner.0.id();
    until("the other answers", || (home.daemon_if_up() == Some(pid)).then_some(()));
    assert!(!has_ended(&mut winner.0), "both have left in round {round}");
    let said = said_by_loser(loser);
    assert!(said.starts_with("outlast: a daemon already holds "), "round {round}: {said}");
    assert!(said.contains(&format!("(pid {pid},")), "round {round}, pid {pid}: {said}");
    assert!(said.lines().nth(1).is_some_and(|line| line.starts_with("hint: ")), "{said}");
    // The next round meets what a crash leaves, or what an orderly end does.
    kill(pid, if round.is_multiple_of(2) { "KILL" } else { "TERM" });
    winner.0.wait().expect("it is our child");
}

fn has_ended(child: &mut Child) -> bool {
    child.try_wait().expect("it is our child").is_some()
}

fn said_by_loser(mut loser: Background) -> String {
    let mut said = String::new();
    loser.0.stderr.take().expect("it is piped").read_to_string(&mut said).expect("it says text");
    assert_eq!(loser.code(), 2, "{said}");
    said
}
