//! What may be a user's work: a restore does not touch it, and a snapshot does not follow a link to it.

use std::fs;
use std::os::unix::fs::symlink;

use outlast_wire::snapshot::{Head, Made, Taken, Todo};

use crate::scene::{Scene, git};

fn code(made: Made) -> String {
    let Made::Failed { code, why } = made else { panic!("{made:?}") };
    assert!(!why.is_empty());
    code
}

fn to(taken: &Taken) -> Todo {
    Todo::Restore { to: taken.commit.clone(), head: None }
}

fn head_of(taken: &Taken) -> Head {
    Head { commit: taken.head.clone().expect("a HEAD"), branch: taken.branch.clone() }
}

/// A worktree of `origin`, as a run has one.
fn linked(origin: &Scene) -> Scene {
    let scene = Scene::plain();
    let dir = scene.dir.to_str().expect("text").to_owned();
    origin.git(&["worktree", "add", "--quiet", "-B", "outlast/x", &dir]);
    scene
}

#[test]
fn a_workspace_that_became_a_link_is_neither_read_nor_put_back() {
    for mut scene in [Scene::plain(), Scene::repository(&[])] {
        scene.write("keep", "ours\n");
        let first = scene.take();
        let outside = scene.base().join("outside");
        fs::create_dir(&outside).expect("it is ours");
        fs::write(outside.join("keep"), "a user's\n").expect("it is ours");
        fs::write(outside.join("thesis"), "a user's\n").expect("it is ours");
        fs::rename(&scene.dir, scene.base().join("moved")).expect("it is ours");
        symlink(&outside, &scene.dir).expect("it is ours");
        let objects = scene.base().join("scratch");
        for todo in [Todo::Take, to(&first), Todo::Look { objects }] {
            assert_eq!(code(scene.made(todo)), "moved");
        }
        assert_eq!(fs::read_to_string(outside.join("keep")).expect("it is there"), "a user's\n");
        assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 2);
        fs::remove_file(&scene.dir).expect("it is ours");
        fs::rename(scene.base().join("moved"), &scene.dir).expect("it is ours");
        scene.write("keep", "changed\n");
        scene.restore(&first);
        assert!(scene.files()["keep"].ends_with("ours\n"));
    }
}

#[test]
fn what_the_target_left_out_is_not_taken_for_new() {
    let mut scene = Scene::repository(&[]);
    scene.max_file = 100;
    scene.write(".env", "a user's key\n");
    scene.write("big", &"x".repeat(200));
    scene.write("within/big", &"x".repeat(200));
    git(&scene.dir.join("within"), &["init", "--quiet"]);
    let first = scene.take();
    assert_eq!(scene.listed(&first), ["README"]);
    scene.git(&["add", "-f", ".env"]);
    for name in ["big", "within/big", "new"] {
        scene.write(name, "small\n");
    }
    let mut expected = scene.files();
    let restored = scene.restore(&first);
    expected.remove("new");
    assert_eq!(scene.files(), expected);
    for name in [".env", "big"] {
        assert!(restored.kept.contains(&name.to_owned()), "{restored:?}");
    }
}

#[test]
fn a_secret_that_is_tracked_no_longer_is_in_no_later_snapshot() {
    let mut scene = Scene::repository(&[]);
    scene.write(".env", "A=1\n");
    scene.git(&["add", "-f", ".env"]);
    scene.git(&["commit", "--quiet", "-m", "env"]);
    let first = scene.take();
    assert!(
        scene.listed(&first).contains(&".env".to_owned()),
        "what is tracked was meant to be kept"
    );
    scene.git(&["rm", "--quiet", "--cached", ".env"]);
    scene.git(&["commit", "--quiet", "-m", "no env"]);
    scene.write(".env", "PASSWORD=hunter2\n");
    let second = scene.take();
    assert!(!scene.listed(&second).contains(&".env".to_owned()));
    scene.restore(&first);
    assert!(scene.files()[".env"].ends_with("hunter2\n"), "what no snapshot has is left alone");
}

#[test]
fn what_was_written_after_the_wreck_was_kept_is_left_alone() {
    let mut scene = Scene::repository(&[]);
    scene.write("a", "1\n");
    scene.write("b", "1\n");
    let first = scene.take();
    scene.write("a", "wreck\n");
    scene.write("b", "wreck\n");
    scene.write("c", "wreck\n");
    scene.take();
    scene.write("a", "a user's\n");
    scene.write("d", "a user's\n");
    let made = scene.made(to(&first));
    let Made::Restored(restored) = made else { panic!("{made:?}") };
    assert_eq!(restored.kept, ["a", "d"]);
    let files = scene.files();
    assert!(files["a"].ends_with("a user's\n") && files["d"].ends_with("a user's\n"));
    assert!(files["b"].ends_with("1\n") && !files.contains_key("c"));
}

#[test]
fn a_branch_with_a_users_commits_stays_where_it_is() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    let first = scene.take();
    scene.git(&["checkout", "--quiet", "--detach"]);
    scene.write("wreck", "x\n");
    origin.git(&["checkout", "--quiet", "outlast/x"]);
    origin.write("work", "a user's\n");
    origin.git(&["add", "-A"]);
    origin.git(&["commit", "--quiet", "-m", "of a user"]);
    let users = origin.git(&["rev-parse", "HEAD"]);
    for told in ["is checked out in another worktree", "has commits"] {
        let restored = scene.restore_with(&first, Some(head_of(&first)));
        assert!(restored.kept.iter().any(|it| it.contains(told)), "{told}: {restored:?}");
        assert_eq!(origin.git(&["rev-parse", "outlast/x"]), users);
        assert_eq!(scene.git(&["rev-parse", "HEAD"]), first.head.clone().expect("a HEAD"));
        assert_eq!(scene.git(&["status", "--porcelain"]), "");
        origin.git(&["checkout", "--quiet", "main"]);
    }
}

#[test]
fn a_branch_goes_back_from_what_the_attempt_left() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    let first = scene.take();
    scene.write("wreck", "x\n");
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "--quiet", "-m", "wreck"]);
    let wreck = scene.git(&["rev-parse", "HEAD"]);
    let restored = scene.restore_with(&first, Some(head_of(&first)));
    assert!(restored.kept.is_empty(), "{restored:?}");
    assert_eq!(scene.git(&["symbolic-ref", "HEAD"]), "refs/heads/outlast/x");
    assert_eq!(scene.git(&["rev-parse", "HEAD"]), first.head.clone().expect("a HEAD"));
    origin.git(&["gc", "--quiet", "--prune=now"]);
    assert_eq!(origin.git(&["cat-file", "-t", &wreck]), "commit", "it is kept");
}

#[test]
fn a_branch_that_stands_for_a_users_is_not_moved() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    let first = scene.take();
    scene.git(&["commit", "--quiet", "--allow-empty", "-m", "of a user"]);
    scene.git(&["symbolic-ref", "refs/heads/outlast/x", "refs/heads/main"]);
    origin.git(&["commit", "--quiet", "--allow-empty", "-m", "another of a user"]);
    let main = origin.git(&["rev-parse", "main"]);
    scene.write("wreck", "x\n");
    let restored = scene.restore_with(&first, Some(head_of(&first)));
    assert!(restored.kept.iter().any(|it| it.contains("stands for another")), "{restored:?}");
    assert_eq!(origin.git(&["rev-parse", "main"]), main);
    assert_eq!(origin.git(&["status", "--porcelain"]), "");
}

#[test]
fn an_index_that_is_a_link_is_replaced_and_not_written_through() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    let first = scene.take();
    origin.write("staged", "a user's\n");
    origin.git(&["add", "-A"]);
    let before = origin.git(&["status", "--porcelain"]);
    let admin = std::path::PathBuf::from(scene.git(&["rev-parse", "--absolute-git-dir"]));
    fs::remove_file(admin.join("index")).expect("it is there");
    symlink(origin.dir.join(".git/index"), admin.join("index")).expect("it is ours");
    scene.restore_with(&first, Some(head_of(&first)));
    assert_eq!(origin.git(&["status", "--porcelain"]), before);
    assert_eq!(scene.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_a_user_rebases_stays_where_it_is() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    let first = scene.take();
    scene.write("work", "x\n");
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "--quiet", "-m", "work"]);
    scene.git(&["checkout", "--quiet", "-b", "wip"]);
    origin.git(&["checkout", "--quiet", "outlast/x"]);
    let editor = "sequence.editor=sed -i 1s/pick/edit/";
    origin.git(&["-c", editor, "rebase", "--quiet", "-i", "main"]);
    let tip = origin.git(&["rev-parse", "outlast/x"]);
    let restored = scene.restore_with(&first, Some(head_of(&first)));
    assert!(restored.kept.iter().any(|it| it.contains("rebased")), "{restored:?}");
    assert_eq!(origin.git(&["rev-parse", "outlast/x"]), tip);
    origin.git(&["-c", "core.editor=true", "rebase", "--continue"]);
}

#[test]
fn a_branch_that_git_does_not_move_is_found_out_before_a_file_changes() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    let first = scene.take();
    scene.write("work", "x\n");
    scene.git(&["add", "-A"]);
    scene.git(&["commit", "--quiet", "-m", "work"]);
    scene.take();
    let lock = origin.dir.join(".git/refs/heads/outlast/x.lock");
    fs::write(&lock, "").expect("it is ours");
    let (files, status) = (scene.files(), scene.git(&["status", "--porcelain"]));
    let todo = || Todo::Restore { to: first.commit.clone(), head: Some(head_of(&first)) };
    assert_eq!(code(scene.made(todo())), "io");
    assert_eq!((scene.files(), scene.git(&["status", "--porcelain"])), (files, status));
    fs::remove_file(&lock).expect("it is ours");
    let made = scene.made(todo());
    assert!(matches!(made, Made::Restored(_)), "{made:?}");
    assert!(!scene.files().contains_key("work"));
}

#[test]
fn what_was_staged_is_staged_again_and_not_lost() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    scene.write("half", "staged\n");
    scene.write("README", "staged\n");
    scene.git(&["add", "-A"]);
    scene.git(&["rm", "--quiet", "--cached", "README"]);
    scene.write("half", "staged\nand more\n");
    let first = scene.take();
    let staged = || (scene.git(&["status", "--porcelain"]), scene.git(&["show", ":half"]));
    let then = staged();
    assert_eq!(then.1, "staged");
    scene.git(&["add", "-A"]);
    let second = scene.take();
    assert_eq!((&second.tree, second.is_same), (&first.tree, true));
    assert_ne!(second.commit, first.commit, "the index alone has changed");
    let again = scene.take();
    assert_eq!(again.commit, second.commit, "nothing has changed");
    scene.git(&["commit", "--quiet", "-m", "wreck"]);
    scene.restore_with(&first, Some(head_of(&first)));
    origin.git(&["gc", "--quiet", "--prune=now"]);
    let staged = || (scene.git(&["status", "--porcelain"]), scene.git(&["show", ":half"]));
    assert_eq!(staged(), then);
    scene.restore_with(&second, Some(head_of(&second)));
    assert_eq!(scene.git(&["show", ":half"]), "staged\nand more");
}

#[test]
fn an_index_with_conflicts_is_named_and_the_files_are_kept() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    for (branch, text) in [("theirs", "theirs\n"), ("ours", "ours\n")] {
        scene.git(&["checkout", "--quiet", "-B", branch, "main"]);
        scene.write("README", text);
        scene.git(&["commit", "--quiet", "-am", branch]);
    }
    let failed = std::process::Command::new("git")
        .args(["merge", "--quiet", "theirs"])
        .current_dir(&scene.dir)
        .output();
    assert!(!failed.expect("there is a git").status.success(), "a conflict");
    let taken = scene.take();
    let named = |name: &String| name.starts_with("what is staged (");
    assert!(taken.left_out.names.iter().any(named), "{taken:?}");
    let then = scene.files();
    scene.write("README", "wreck\n");
    scene.restore_with(&taken, Some(head_of(&taken)));
    assert_eq!(scene.files(), then);
}

#[test]
fn a_lock_that_a_live_process_holds_is_not_removed() {
    let origin = Scene::repository(&[]);
    let mut scene = linked(&origin);
    let first = scene.take();
    scene.write("wreck", "x\n");
    scene.take();
    let lock = std::path::PathBuf::from(scene.git(&["rev-parse", "--absolute-git-dir"]))
        .join("index.lock");
    let held = fs::File::create(&lock).expect("it is ours");
    let todo = || Todo::Restore { to: first.commit.clone(), head: Some(head_of(&first)) };
    assert_eq!(code(scene.made(todo())), "busy");
    assert!(lock.exists() && scene.files().contains_key("wreck"), "nothing was begun");
    drop(held);
    assert!(matches!(scene.made(todo()), Made::Restored(_)));
    assert!(!lock.exists() && !scene.files().contains_key("wreck"));
}

#[test]
fn a_directory_that_became_a_link_to_one_like_it_ends_no_snapshots() {
    for target in ["v1", "/nonexistent"] {
        let mut scene = Scene::repository(&[]);
        for dir in ["v1", "current"] {
            scene.write(&format!("{dir}/deep/f"), "same\n");
        }
        let (first, then) = (scene.take(), scene.files());
        scene.remove("current");
        scene.link("current", target);
        let second = scene.take();
        assert_eq!(scene.listed(&second), ["README", "current", "v1/deep/f"]);
        let later = scene.files();
        scene.write("new", "x\n");
        scene.take();
        scene.restore(&first);
        assert_eq!(scene.files(), then);
        scene.restore(&second);
        assert_eq!(scene.files(), later);
    }
}

#[test]
fn modes_and_links_come_back_whatever_the_repository_says_of_them() {
    let mut scene = Scene::repository(&[]);
    scene.git(&["config", "core.filemode", "false"]);
    scene.git(&["config", "core.symlinks", "false"]);
    scene.write("tool", "#!/bin/sh\n");
    scene.executable("tool", true);
    scene.link("link", "README");
    let (first, then) = (scene.take(), scene.files());
    scene.remove("tool");
    scene.remove("link");
    scene.restore(&first);
    assert_eq!(scene.files(), then);
}
