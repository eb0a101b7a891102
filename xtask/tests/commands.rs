//! The commands as they are typed.

#![expect(clippy::disallowed_methods, reason = "a test starts the program that it tests")]

use std::process::{Command, Output};

fn xtask(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(args).output().expect("xtask can be started")
}

#[test]
fn a_stamp_is_a_moment_of_the_clock_that_everyone_reads() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("stamp");
    let stamp = || {
        assert!(xtask(&["__stamp", file.to_str().unwrap()]).status.success());
        std::fs::read_to_string(&file).unwrap().parse::<u64>().unwrap()
    };
    let (first, second) = (stamp(), stamp());
    assert!(first < second, "{first} then {second}");
}

#[test]
fn a_row_that_is_not_there_is_refused_with_those_that_are() {
    let output = xtask(&["bench", "--only", "nonsense", "--binary", "true"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("journal-one"), "{told}");
}

#[test]
fn every_command_is_in_the_help() {
    let help = String::from_utf8(xtask(&["--help"]).stdout).unwrap();
    for command in ["ci", "tidy", "sim", "soak", "agents", "bench"] {
        assert!(help.contains(&format!("  {command} ")), "{command} is not in\n{help}");
    }
}
