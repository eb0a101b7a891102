//! Old runs that the daemon removes by itself, once a day, and what it leaves.

use std::fs;
use std::path::Path;

use crate::harness::{Home, until};

const DAY_MS: u64 = 86_400_000;

fn set_clock(file: &Path, days: u64) {
    let part = file.with_extension("part");
    fs::write(&part, (days * DAY_MS).to_string()).expect("the scratch directory is ours");
    fs::rename(part, file).expect("the scratch directory is ours");
}

fn ids(home: &Home) -> Vec<String> {
    let rows = home.json(&["ps", "-a", "--json"]);
    let rows = rows.as_array().expect("a list");
    rows.iter().map(|row| row["id"].as_str().expect("an id").to_owned()).collect()
}

/// Another daemon, so many days after the first.
fn later(home: &Home, clock: &Path, days: u64) {
    home.ok(&["daemon", "stop"]);
    set_clock(clock, days);
    home.ok(&["daemon", "start"]);
}

#[test]
fn old_runs_go_by_themselves_and_what_they_worked_in_does_not() {
    let home = Home::new();
    let clock = home.scratch().join("clock");
    set_clock(&clock, 0);
    let home = home.env("OUTLAST_FAKE_CLOCK_FILE", &clock);
    let [done, failed] = ["exit 0", "exit 1"].map(|script| home.start(script));
    let kept = home.ok(&["run", "-d", "--workspace", "dir", "--", "sh", "-c", "echo work >file"]);
    assert_eq!([&done, &failed, &kept].map(|id| home.wait(id)), [0, 1, 0]);
    later(&home, &clock, 8);
    until("the completed run goes", || (!ids(&home).contains(&done)).then_some(()));
    assert_eq!(ids(&home), [kept.clone(), failed.clone()]);
    let work = home.ok(&["path", &kept]);
    assert!(Path::new(&work).join("file").exists(), "no person has asked for that");
    fs::write(home.path().join("config.toml"), "[gc]\nauto = false\n").expect("it is ours");
    later(&home, &clock, 60);
    let young = home.start("exit 0");
    assert_eq!(home.wait(&young), 0);
    assert!(ids(&home).contains(&failed), "it is turned off");
    let gone = home.ok(&["gc"]);
    assert!(gone.contains(&format!("removed {failed}")) && !Path::new(&work).exists(), "{gone}");
}
