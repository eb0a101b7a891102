//! A snapshot that is killed before or after each of its calls of git comes to the same when it is made again.

use std::fs;
use std::process::Command;

use outlast_wire::snapshot::{MADE_FILE, Made, ORDERS_FILE, Todo};

use crate::scene::{Scene, script};

/// A git that counts its calls, and at the n-th kills the process that made it.
fn deadly_git(scene: &Scene, at: usize, when: &str) -> std::ffi::OsString {
    let bin = scene.base().join("bin");
    fs::create_dir_all(&bin).expect("it is ours");
    let real = Command::new("sh").args(["-c", "command -v git"]).output().expect("a shell").stdout;
    let real = String::from_utf8(real).expect("a path");
    let (real, count) = (real.trim(), bin.join("count").display().to_string());
    let kill = |now: &str| {
        if now == when {
            format!("[ $n -ne {at} ] || {{ kill -9 $PPID; exit 1; }}\n")
        } else {
            String::new()
        }
    };
    let content = format!(
        "#!/bin/sh\nn=$(cat '{count}' 2>/dev/null || echo 0); n=$((n+1)); echo $n > '{count}'\n{}'{real}' \"$@\"; rc=$?\n{}exit $rc\n",
        kill("before"),
        kill("after"),
    );
    let path = bin.join("git");
    script(&path, &content);
    drop(fs::remove_file(bin.join("count")));
    let mut whole = bin.into_os_string();
    whole.push(":");
    whole.push(&scene.path);
    whole
}

/// Carries the orders out in a process of its own. True if it was killed.
fn run(scene: &Scene, todo: Todo, path: &std::ffi::OsStr) -> (bool, Option<Made>) {
    let step = scene.base().join("step");
    drop(fs::remove_dir_all(&step));
    fs::create_dir_all(&step).expect("it is ours");
    let orders = serde_json::to_vec(&scene.orders(todo)).expect("plain data");
    fs::write(step.join(ORDERS_FILE), orders).expect("it is ours");
    let me = std::env::current_exe().expect("there is one");
    let status = Command::new(me)
        .args(["--exact", "deaths::as_a_process", "--ignored", "--quiet"])
        .env("SNAPSHOT_STEP", &step)
        .env("PATH", path)
        .env("HOME", scene.base().join("home"))
        .output()
        .expect("it can be run")
        .status;
    let made = fs::read(step.join(MADE_FILE)).ok();
    (status.code().is_none(), made.map(|made| serde_json::from_slice(&made).expect("whole")))
}

#[test]
#[ignore = "the process that the others kill"]
fn as_a_process() {
    let step = std::env::var_os("SNAPSHOT_STEP").expect("asked by another test");
    let env: Vec<_> = std::env::vars_os().collect();
    outlast_snapshot::main(step.as_ref(), &env);
}

fn scene(turn: usize) -> Scene {
    let mut scene = Scene::repository(&[]);
    scene.write("nested/x", "1\n");
    crate::scene::git(&scene.dir.join("nested"), &["init", "--quiet"]);
    scene.git(&["config", "user.name", "t"]);
    if turn > 0 {
        scene.take();
        scene.write("a", "1\n");
        scene.write("nested/y", "1\n");
        scene.remove("README");
        scene.write("README/now", "a directory\n");
    }
    scene
}

/// Kills at each call, before it and after it, until one is not reached any more.
fn at_each_call(mut check: impl FnMut(usize, &str) -> bool) -> usize {
    let mut kills = 0;
    for when in ["before", "after"] {
        for at in 1..200 {
            if !check(at, when) {
                break;
            }
            kills += 1;
        }
    }
    kills
}

#[test]
fn a_snapshot_that_is_killed_anywhere_is_the_same_when_it_is_made_again() {
    for turn in [0, 1] {
        let kills = at_each_call(|at, when| {
            let mut scene = scene(turn);
            let files = scene.files();
            let deadly = deadly_git(&scene, at, when);
            let (was_killed, made) = run(&scene, Todo::Take, &deadly);
            if !was_killed {
                assert!(matches!(made, Some(Made::Taken(_))), "{made:?}");
                return false;
            }
            assert_eq!(made, None, "{at} {when}");
            // The user cleans up between the two.
            if at % 3 == 0 {
                scene.git(&["gc", "--quiet", "--prune=now"]);
            }
            let taken = scene.take();
            assert_eq!(scene.files(), files);
            scene.git(&["gc", "--quiet", "--prune=now"]);
            scene.git(&["fsck", "--strict"]);
            assert_eq!(scene.git(&["rev-parse", "refs/outlast/runs/run1/snap"]), taken.commit);
            scene.write("a", "later\n");
            scene.restore(&taken);
            assert_eq!(scene.files(), files, "{at} {when}");
            true
        });
        assert!(kills > 20, "{kills}");
    }
}

#[test]
fn a_restore_that_is_killed_anywhere_ends_in_the_same_files() {
    let kills = at_each_call(|at, when| {
        let mut scene = scene(0);
        scene.write(".gitignore", "cache\n");
        scene.write("cache", "1\n");
        let (first, then) = (scene.take(), scene.files());
        scene.write("a", "1\n");
        scene.write("nested/y", "1\n");
        scene.write(".gitignore", "");
        scene.remove("README");
        scene.write("README/now", "a directory\n");
        scene.take();
        let todo = || Todo::Restore { to: first.commit.clone(), head: None };
        let deadly = deadly_git(&scene, at, when);
        let (was_killed, made) = run(&scene, todo(), &deadly);
        if was_killed {
            let made = scene.made(todo());
            assert!(matches!(made, Made::Restored(_)), "{at} {when}: {made:?}");
        } else {
            assert!(matches!(made, Some(Made::Restored(_))), "{made:?}");
        }
        assert_eq!(scene.files(), then, "{at} {when}");
        was_killed
    });
    assert!(kills > 20, "{kills}");
}
