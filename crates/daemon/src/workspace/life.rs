//! Worktrees and directories through their whole life, and through every death on the way.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outlast_engine::{RunSpec, Strategy};
use outlast_wire::again;
use rustix::process::{Pid, Signal, kill_process_group};

use super::failure::Failure;
use super::fixture::{Fixture, check_out, check_out_command, commit, in_git, write};
use super::kept::WhyNot;
use super::marks::Marks;
use super::{may_remove, prepare, remove, settle};

fn dir(spec: &RunSpec) -> &Path {
    Path::new(&spec.dir)
}

fn why_not(spec: &RunSpec) -> String {
    may_remove(spec).map_or_else(|why| why.to_string(), |()| "may go".to_owned())
}

fn listed(repository: &Path) -> usize {
    in_git(repository, &["worktree", "list"]).lines().count()
}

#[test]
fn a_worktree_is_checked_out_on_its_branch_and_removed_without_it() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let spec = fixture.worktree("ABC-1");
    assert_eq!(in_git(dir(&spec), &["branch", "--show-current"]), "outlast/ABC-1");
    settle(&spec).expect("it is ours");
    write(&dir(&spec).join("work"), "done");
    commit(dir(&spec), "work");
    assert!(remove(&spec).expect("all is committed").bytes > 0);
    assert!(!dir(&spec).exists());
    assert_eq!(listed(&repository), 1);
    let log = in_git(&repository, &["log", "--format=%s", "outlast/ABC-1"]);
    assert_eq!(log, "work\nfirst");
    assert_eq!(again::read_dir(fixture.root()).expect("the root stays").count(), 0);
    assert_eq!(remove(&spec).expect("gone already is fine").bytes, 0);
}

#[test]
fn a_branch_that_is_there_is_gone_on_with() {
    let fixture = Fixture::new();
    fixture.repository();
    let spec = fixture.worktree("ABC-1");
    write(&dir(&spec).join("work"), "done");
    commit(dir(&spec), "work");
    remove(&spec).expect("all is committed");
    let again = fixture.worktree("ABC-1");
    assert!(dir(&again).join("work").exists());
}

#[test]
fn names_that_git_forbids_for_branches_work_all_the_same() {
    let fixture = Fixture::new();
    fixture.repository();
    for identifier in ["a..b", "a.lock", "a.", "x/y z"] {
        let spec = fixture.worktree(identifier);
        let branch = in_git(dir(&spec), &["branch", "--show-current"]);
        assert!(branch.starts_with("outlast/"), "{branch}");
    }
}

#[test]
fn a_path_is_never_read_as_shell() {
    let fixture = Fixture::new();
    fixture.repository();
    let odd = fixture.root().join("a'b \"$(touch oops)\" `x`;\n#");
    let spec = fixture.run_in(Strategy::Worktree, &odd);
    assert!(prepare(&spec).expect("it is a name").created);
    check_out(&spec).expect("it is a name");
    assert!(odd.join("README").exists());
    assert!(!fixture.root().join("oops").exists());
}

#[test]
fn what_is_not_committed_is_not_removed() {
    let fixture = Fixture::new();
    fixture.repository();
    let spec = fixture.worktree("ABC-1");
    assert_eq!(why_not(&spec), "may go");
    write(&dir(&spec).join("README"), "changed\n");
    write(&dir(&spec).join("new"), "");
    write(&dir(&spec).join("newer"), "");
    let expected = "it has changes that are not committed: 1 changed, 2 untracked";
    assert_eq!(why_not(&spec), expected);
    let failure = remove(&spec).expect_err("it would be lost");
    assert!(matches!(failure, Failure::Kept(WhyNot::Dirty { .. })), "{failure}");
    assert!(dir(&spec).join("newer").exists());
}

#[test]
fn what_is_locked_or_has_commits_that_are_nowhere_else_is_not_removed() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let spec = fixture.worktree("ABC-1");
    in_git(&repository, &["worktree", "lock", "--reason", "mine", &spec.dir]);
    assert_eq!(why_not(&spec), "it is locked: mine");
    in_git(&repository, &["worktree", "unlock", &spec.dir]);
    let admin = PathBuf::from(in_git(dir(&spec), &["rev-parse", "--absolute-git-dir"]));
    fs::create_dir_all(admin.join("modules/library")).expect("it is ours");
    assert_eq!(why_not(&spec), "it has submodules, whose commits may be nowhere else");
    fs::remove_dir_all(admin.join("modules")).expect("it is ours");
    in_git(dir(&spec), &["checkout", "--quiet", "--detach"]);
    assert_eq!(why_not(&spec), "may go");
    commit(dir(&spec), "adrift");
    assert_eq!(why_not(&spec), "it has commits that are on no branch");
    in_git(dir(&spec), &["branch", "kept"]);
    assert_eq!(why_not(&spec), "may go");
}

#[test]
fn what_git_cannot_tell_about_is_not_removed() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let spec = fixture.worktree("ABC-1");
    let aside = fixture.base().join("aside");
    fs::rename(dir(&spec).join(".git"), &aside).expect("it is ours");
    assert!(why_not(&spec).starts_with("it cannot be told what is in it: it is no worktree"));
    fs::rename(&aside, dir(&spec).join(".git")).expect("it is ours");
    fs::rename(&repository, &aside).expect("it is ours");
    assert!(why_not(&spec).starts_with("it cannot be told what is in it"));
    assert!(remove(&spec).is_err() && dir(&spec).exists());
}

#[test]
fn a_directory_within_the_repository_or_a_worktree_is_not_taken_for_a_worktree() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let around = fixture.worktree("around");
    for root in [repository.join("runs"), dir(&around).join("runs")] {
        let mut spec = fixture.run_in(Strategy::Worktree, &root.join("ABC-1"));
        spec.workspace.root = root.to_str().map(str::to_owned);
        fs::create_dir_all(dir(&spec)).expect("it is ours");
        write(&dir(&spec).join("work"), "mine");
        let failure = prepare(&spec).expect_err("it is only a directory");
        assert!(matches!(failure, Failure::Occupied { .. }), "{failure}");
        assert!(failure.hint().is_some());
        assert!(why_not(&spec).starts_with("it cannot be told"));
    }
}

#[test]
fn neither_the_repository_itself_nor_another_ones_worktree_is_taken() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let mut spec = fixture.run_in(Strategy::Worktree, &repository);
    spec.workspace.root = fixture.base().to_str().map(str::to_owned);
    assert!(matches!(prepare(&spec), Err(Failure::Occupied { .. })));
    assert!(remove(&spec).is_err() && repository.join("README").exists());

    let other = Fixture::new();
    other.repository();
    let mut spec = fixture.worktree("ABC-1");
    spec.workspace.repository = other.run(Strategy::Dir, "x").workspace.repository;
    assert!(matches!(prepare(&spec), Err(Failure::Occupied { .. })));
}

#[test]
fn an_empty_directory_is_filled_and_a_repository_without_a_commit_is_refused() {
    let fixture = Fixture::new();
    let repository = fixture.base().join("repository");
    fs::create_dir(&repository).expect("it is ours");
    in_git(&repository, &["init", "--quiet"]);
    let spec = fixture.run(Strategy::Worktree, "ABC-1");
    fs::create_dir_all(dir(&spec)).expect("it is ours");
    assert!(matches!(prepare(&spec), Err(Failure::NoCommit { .. })));
    commit(&repository, "first");
    assert!(prepare(&spec).expect("it is empty").created);
    check_out(&spec).expect("it is empty");
    assert!(dir(&spec).join(".git").exists());
}

/// Where a checkout may have been killed: what it has left is put there by hand.
fn half_made(fixture: &Fixture, identifier: &str) -> (RunSpec, PathBuf) {
    let spec = fixture.worktree(identifier);
    fs::create_dir_all(Marks::of(dir(&spec)).checkout).expect("it is ours");
    let admin = PathBuf::from(in_git(dir(&spec), &["rev-parse", "--absolute-git-dir"]));
    write(&admin.join("locked"), "initializing");
    fs::remove_file(dir(&spec).join("README")).expect("it is ours");
    (spec, admin)
}

#[test]
fn a_checkout_that_was_killed_is_made_anew_wherever_it_was() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    type Damage = fn(&Path, &Path);
    let damages: [(&str, Damage); 5] = [
        ("files", |_, _| {}),
        ("head", |_, admin| fs::remove_file(admin.join("HEAD")).expect("it is ours")),
        ("link", |dir, _| fs::remove_file(dir.join(".git")).expect("it is ours")),
        ("dir", |dir, _| fs::remove_dir_all(dir).expect("it is ours")),
        ("list", |_, admin| fs::remove_dir_all(admin).expect("it is ours")),
    ];
    for (name, damage) in damages {
        let (spec, admin) = half_made(&fixture, name);
        damage(dir(&spec), &admin);
        assert!(prepare(&spec).expect("it is half made").created, "{name}");
        check_out(&spec).unwrap_or_else(|told| panic!("{name}: {told}"));
        assert!(dir(&spec).join("README").exists(), "{name}");
        assert_eq!(why_not(&spec), "may go", "{name}");
        remove(&spec).expect("nothing is in it");
        assert_eq!(listed(&repository), 1, "{name}");
    }
}

#[test]
fn a_checkout_that_is_killed_in_the_middle_is_made_anew() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    write(&repository.join(".gitattributes"), "README filter=slow\n");
    commit(&repository, "with a filter");
    let spec = fixture.run(Strategy::Worktree, "ABC-1");
    prepare(&spec).expect("nothing is in the way");
    in_git(&repository, &["config", "filter.slow.smudge", "echo reached >&2; exec sleep 1000"]);
    kill_when_reached(check_out_command(&spec));
    assert!(dir(&spec).join(".git").exists() && !dir(&spec).join("README").exists());
    in_git(&repository, &["config", "filter.slow.smudge", "cat"]);
    assert!(matches!(settle(&spec), Err(Failure::HalfMade { .. })));
    assert!(prepare(&spec).expect("it is half made").created);
    check_out(&spec).expect("it is made anew");
    assert!(dir(&spec).join("README").exists());
    assert_eq!((why_not(&spec).as_str(), listed(&repository)), ("may go", 2));
}

fn kill_when_reached(mut command: Command) {
    let mut child = command.stderr(Stdio::piped()).spawn().expect("there is a shell");
    let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut lines = stderr.lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line == "reached"), "it ended before it was killed");
    kill_process_group(Pid::from_child(&child), Signal::KILL).expect("it is ours");
    child.wait().expect("it is ours");
    // The process that held the pipe is dead when it ends.
    assert_eq!(lines.count(), 0);
}

#[test]
fn a_checkout_that_is_asked_for_twice_changes_nothing() {
    let fixture = Fixture::new();
    fixture.repository();
    let spec = fixture.worktree("ABC-1");
    write(&dir(&spec).join("README"), "changed\n");
    check_out(&spec).expect("it is there");
    let text = fs::read_to_string(dir(&spec).join("README")).expect("it is there");
    assert_eq!(text, "changed\n");
}

#[test]
fn a_worktree_removed_by_hand_does_not_block_the_next() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let spec = fixture.worktree("ABC-1");
    settle(&spec).expect("it is ours");
    let other = fixture.worktree("ABC-2");
    fs::remove_dir_all(dir(&spec)).expect("it is ours");
    fs::remove_dir_all(dir(&other)).expect("it is ours");
    assert!(prepare(&spec).expect("it is gone").created);
    check_out(&spec).expect("git had still listed it");
    assert!(dir(&spec).join("README").exists());
    assert_eq!(listed(&repository), 3, "what is not ours to forget is still listed");
}

#[test]
fn a_root_behind_a_symlink_works_throughout() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    fs::create_dir(fixture.base().join("real")).expect("it is ours");
    symlink(fixture.base().join("real"), fixture.root()).expect("it is ours");
    let (spec, _) = half_made(&fixture, "ABC-1");
    check_out(&spec).expect("it is made anew");
    settle(&spec).expect("it is ours");
    assert!(!prepare(&spec).expect("it is there").created);
    remove(&spec).expect("nothing is in it");
    assert_eq!(listed(&repository), 1);
}

#[test]
fn a_removal_that_died_is_ended_by_the_next() {
    let fixture = Fixture::new();
    let repository = fixture.repository();
    let spec = fixture.worktree("ABC-1");
    fs::rename(dir(&spec), Marks::of(dir(&spec)).removing).expect("it is ours");
    assert!(remove(&spec).expect("it had begun").bytes > 0);
    assert_eq!(listed(&repository), 1);
    assert_eq!(again::read_dir(fixture.root()).expect("the root stays").count(), 0);
}

#[test]
fn a_directory_is_removed_and_what_its_symlinks_lead_to_is_not() {
    let fixture = Fixture::new();
    let spec = fixture.run(Strategy::Dir, "ABC-1");
    prepare(&spec).expect("nothing is in the way");
    let outside = fixture.base().join("outside");
    fs::create_dir(&outside).expect("it is ours");
    write(&outside.join("mine"), "");
    symlink(&outside, dir(&spec).join("link")).expect("it is ours");
    remove(&spec).expect("it is ours");
    assert!(!dir(&spec).exists() && outside.join("mine").exists());

    symlink(&outside, dir(&spec)).expect("it is ours");
    let failure = remove(&spec).expect_err("a link is no workspace");
    assert!(matches!(failure, Failure::Kept(WhyNot::Escape(_))), "{failure}");
    assert!(outside.join("mine").exists());
}

#[test]
fn what_was_there_before_the_run_is_never_removed() {
    let fixture = Fixture::new();
    let spec = fixture.run_in(Strategy::Inplace, fixture.base());
    assert_eq!(why_not(&spec), "it was there before the run");
    assert!(remove(&spec).is_err() && fixture.base().exists());
}

#[test]
fn what_has_no_root_any_more_is_gone() {
    let fixture = Fixture::new();
    let spec = fixture.run(Strategy::Dir, "ABC-1");
    assert_eq!(remove(&spec).expect("gone already is fine").bytes, 0);
}
