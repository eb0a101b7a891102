//! A repository that wants to have its own commands run.

use std::fs;

use outlast_wire::snapshot::Todo;

use crate::scene::{Scene, git, script};

fn plant(scene: &Scene) -> std::path::PathBuf {
    let mark = scene.base().join("it ran");
    let command = format!("touch '{}'; cat", mark.display());
    for key in [
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "core.fsmonitor",
        "diff.evil.textconv",
        "diff.external",
        "core.sshCommand",
        "core.pager",
        "gpg.program",
    ] {
        scene.git(&["config", key, &command]);
    }
    scene.git(&["config", "commit.gpgSign", "true"]);
    scene.git(&["config", "filter.evil.required", "true"]);
    for hook in [
        "post-index-change",
        "reference-transaction",
        "post-checkout",
        "pre-commit",
        "post-rewrite",
        "pre-auto-gc",
    ] {
        let path = scene.dir.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().expect("hooks")).expect("it is ours");
        script(&path, &format!("#!/bin/sh\n{command}\n"));
    }
    scene.write(".gitattributes", "* filter=evil diff=evil\n");
    mark
}

#[test]
fn no_command_of_the_repository_runs_and_nothing_of_the_users_changes() {
    let mut scene = Scene::repository(&[]);
    scene.write("stashed", "x\n");
    scene.git(&["add", "stashed"]);
    scene.git(&["stash", "--quiet"]);
    scene.write("staged", "x\n");
    scene.git(&["add", "staged"]);
    let mark = plant(&scene);
    fs::write(scene.dir.join(".git/index.lock"), "").expect("it is ours");
    let watched = [
        "HEAD",
        "index",
        "packed-refs",
        "config",
        "refs/heads/main",
        "refs/stash",
        "logs/HEAD",
        "index.lock",
    ];
    let state =
        |scene: &Scene| watched.map(|name| fs::read(scene.dir.join(".git").join(name)).ok());
    let before = state(&scene);
    let (first, then) = (scene.take(), scene.files());
    scene.write("staged", "y\n");
    scene.write("new", "z\n");
    scene.take();
    scene.restore(&first);
    assert_eq!(scene.files(), then);
    assert_eq!(state(&scene), before);
    assert!(!mark.exists(), "a command of the repository ran");
}

#[test]
fn a_rewritten_dot_git_leads_nowhere() {
    let mut scene = Scene::repository(&[]);
    scene.take();
    let other = Scene::repository(&[]);
    let mark = plant(&other);
    fs::rename(scene.dir.join(".git"), scene.base().join("aside.git")).expect("it is ours");
    fs::write(scene.dir.join(".git"), format!("gitdir: {}\n", other.dir.join(".git").display()))
        .expect("it is ours");
    scene.write("new", "x\n");
    let made = scene.made(Todo::Take);
    // Its repository is gone: that is said, and nothing is written elsewhere.
    assert!(matches!(made, outlast_wire::snapshot::Made::Failed { .. }), "{made:?}");
    assert_eq!(git(&other.dir, &["for-each-ref", "refs/outlast"]), "");
    assert!(!mark.exists());
}

#[test]
fn odd_names_are_kept_to_the_letter() {
    let mut scene = Scene::plain();
    for name in ["-rf", "a\nb", "tab\there", "*", ":(top)x", "q\"uote", "\u{1b}[31m", " ", "ü/é"]
    {
        scene.write(name, name);
    }
    let (first, then) = (scene.take(), scene.files());
    for name in then.keys() {
        scene.remove(name);
    }
    scene.restore(&first);
    assert_eq!(scene.files(), then);
}
