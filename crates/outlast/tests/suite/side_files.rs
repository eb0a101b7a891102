//! The small files beside the journal: one that is damaged, or is a directory, is set aside and stops no run.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;

use crate::harness::{Home, skip, text};

/// A user without a right of its own.
const NOBODY: u32 = 65_534;

const SIDE_FILES: [&str; 12] = [
    "journal.json",
    "starts.json",
    "token.key",
    "reserve",
    "clock.json",
    "daemon.env.json",
    "waiter.json",
    "waiter.lock",
    "revive.lock",
    "daemon.needed",
    "daemon.log",
    "daemon.stopped",
];

/// Adversary: a directory in the place of `journal.json` kept every daemon from starting.
#[test]
fn a_side_file_that_is_a_directory_empty_or_garbage_stops_no_run() {
    let home = Home::new();
    let before = home.start("true");
    assert_eq!(home.wait(&before), 0);
    for name in SIDE_FILES.into_iter().chain(["daemon.lock"]) {
        let path = home.state().join(name);
        for damage in ["directory", "empty", "garbage"] {
            home.ok(&["daemon", "stop"]);
            if path.is_dir() {
                fs::remove_dir_all(&path).expect("it is ours");
            } else if path.exists() {
                fs::remove_file(&path).expect("it is ours");
            }
            match damage {
                "directory" => {
                    fs::create_dir(&path).expect("it is ours");
                    fs::write(path.join("inside"), "x").expect("it is ours");
                }
                "empty" => fs::write(&path, "").expect("it is ours"),
                _ => fs::write(&path, [0xff; 300]).expect("it is ours"),
            }
            let id = home.start("true");
            assert_eq!(home.wait(&id), 0, "{name} {damage}");
            assert_eq!(home.ok(&["logs", &before]), "", "{name} {damage}");
        }
    }
    let kept = home.state().join("journal.json.damaged-1/inside");
    assert!(kept.exists(), "what may be a person's is kept");
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("journal.json.damaged-1"), "{doctor}");
    assert!(doctor.contains("cannot be read"), "{doctor}");
}

/// Root may open everything, so this is another user's Outlast.
#[test]
fn a_side_file_that_may_not_be_opened_stops_no_run() {
    if !rustix::process::geteuid().is_root() {
        skip("only root can become another user");
        return;
    }
    let home = Home::within(&std::env::temp_dir(), "home");
    let program = home.scratch().join("outlast");
    crate::programs::copy(&program);
    for dir in [home.scratch(), home.path()] {
        std::os::unix::fs::chown(dir, Some(NOBODY), Some(NOBODY)).expect("root may");
    }
    let act = |args: &[&str]| {
        let mut command = home.command(program.to_str().expect("our paths are text"));
        command.args(args).env("TMPDIR", std::env::temp_dir()).uid(NOBODY).gid(NOBODY);
        let output = command.output().expect("it may be executed by all");
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout).trim_end().to_owned()
    };
    act(&["run", "--", "true"]);
    for name in SIDE_FILES {
        act(&["daemon", "stop"]);
        let path = home.state().join(name);
        if path.exists() {
            fs::set_permissions(&path, Permissions::from_mode(0o000)).expect("root may");
        }
        assert_eq!(act(&["run", "--", "echo", name]), name);
    }
    act(&["daemon", "stop"]);
    assert!(home.state().join("journal.json.damaged-1").exists());
}
