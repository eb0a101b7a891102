//! `outlast init`: what it writes passes `check` and runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::harness::{Home, str_of, text};

/// A git repository with one commit and a Makefile whose `test` needs a file.
fn repository(home: &Home) -> PathBuf {
    let dir = home.scratch().join("repo");
    fs::create_dir(&dir).expect("ours");
    fs::write(dir.join("Makefile"), "test:\n\ttest -f made\n").expect("ours");
    let script =
        "git init -q . && git add . && git -c user.name=t -c user.email=t@t commit -qm first";
    let made = home.command("sh").args(["-c", script]).current_dir(&dir).status().expect("git");
    assert!(made.success());
    dir
}

pub(crate) fn at(home: &Home, dir: &Path, args: &[&str]) -> Output {
    home.outlast(args).current_dir(dir).output().expect("it starts")
}

#[test]
fn without_an_agent_the_file_passes_check_and_asks_for_one() {
    let home = Home::new();
    let dir = repository(&home);
    let output = at(&home, &dir, &["init", "--yes", "--agent", "script"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("done when make test passes"), "{output:?}");
    let checked = at(&home, &dir, &["check"]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let output = at(&home, &dir, &["run", "-f", "WORKFLOW.md", "--name", "work"]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let run = home.show("work");
    assert!(str_of(&run["blocked"], "question").contains("no agent is set"), "{run}");
    // The same file with an agent in it does the work, and the check that was found decides.
    let path = dir.join("WORKFLOW.md");
    let file = fs::read_to_string(&path).expect("it was written");
    let file = file.replace("return 64", "touch made");
    fs::write(&path, file).expect("ours");
    let output = at(&home, &dir, &["run", "-f", "WORKFLOW.md"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(dir.join("made").exists());
}

#[test]
fn an_installed_agent_is_found_and_works_in_a_worktree() {
    let home = Home::new();
    let dir = repository(&home);
    let bin = home.scratch().join("bin");
    fs::create_dir(&bin).expect("ours");
    let codex = bin.join("codex");
    fs::write(&codex, "#!/bin/sh\necho codex 1.0.0\n").expect("ours");
    let made = home.command("chmod").arg("+x").arg(&codex).status().expect("there is a chmod");
    assert!(made.success());
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let output = home
        .outlast(&["init", "-y"])
        .current_dir(&dir)
        .env("PATH", &path)
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    assert!(
        said.contains("agent codex, in a git worktree of its own, done when make test passes"),
        "{said}"
    );
    let checked =
        home.outlast(&["check"]).current_dir(&dir).env("PATH", &path).output().expect("it starts");
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn no_file_is_overwritten_and_no_question_is_asked_without_a_terminal() {
    let home = Home::new();
    let dir = home.scratch();
    let output = at(&home, &dir, &["init"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("hint: outlast init --yes"), "{output:?}");
    assert!(!dir.join("WORKFLOW.md").exists());
    fs::write(dir.join("WORKFLOW.md"), "mine").expect("ours");
    let output = at(&home, &dir, &["init", "--yes"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("WORKFLOW.md exists"), "{output:?}");
    assert_eq!(fs::read_to_string(dir.join("WORKFLOW.md")).expect("ours"), "mine");
    let output = at(
        &home,
        &dir,
        &["init", "--yes", "--agent", "script", "other.md", "--task", "Say {{ hi }}"],
    );
    assert!(output.status.success(), "{output:?}");
    assert!(at(&home, &dir, &["check", "other.md"]).status.success());
}
