//! What Symphony's section 17.2 asks of workspaces, each under its own name.
//!
//! The hooks before and after an attempt and before a removal are run by others, and tested with them.

use std::fs;
use std::path::Path;

use outlast_engine::Strategy;
use outlast_wire::again;

use super::failure::Failure;
use super::fixture::{Fixture, check_out, in_git, write};
use super::make::Prepared;
use super::place::Escape;
use super::{discard, prepare, sanitised, settle};

const CREATED: Prepared = Prepared { created: true };
const REUSED: Prepared = Prepared { created: false };

#[test]
fn conformance_17_2_the_path_is_deterministic_per_identifier() {
    let fixture = Fixture::new();
    let dir = |identifier: &str| fixture.run(Strategy::Dir, identifier).dir;
    assert_eq!(dir("ABC-1"), dir("ABC-1"));
    assert_eq!(Path::new(&dir("ABC-1")), fixture.root().join("ABC-1"));
    assert_ne!(dir("ABC-1"), dir("ABC-2"));
}

#[test]
fn conformance_17_2_a_missing_directory_is_created() {
    use std::os::unix::fs::PermissionsExt;

    let fixture = Fixture::new();
    let spec = fixture.run(Strategy::Dir, "ABC-1");
    assert_eq!(prepare(&spec).expect("nothing is in the way"), CREATED);
    assert!(Path::new(&spec.dir).is_dir());
    let mode = fs::metadata(fixture.root()).expect("it was made").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "no other user may look into a root that we make");
}

#[test]
fn conformance_17_2_an_existing_directory_is_reused() {
    let fixture = Fixture::new();
    let spec = fixture.run(Strategy::Dir, "ABC-1");
    fs::create_dir_all(&spec.dir).expect("it is ours");
    write(&Path::new(&spec.dir).join("work"), "done");
    assert_eq!(prepare(&spec).expect("it is there"), REUSED);
    assert!(Path::new(&spec.dir).join("work").exists());
}

#[test]
fn conformance_17_2_a_path_that_is_no_directory_is_refused_and_left_as_it_is() {
    let fixture = Fixture::new();
    fixture.repository();
    fs::create_dir(fixture.root()).expect("it is ours");
    for strategy in [Strategy::Dir, Strategy::Worktree] {
        let spec = fixture.run(strategy, "ABC-1");
        write(Path::new(&spec.dir), "mine");
        let failure = prepare(&spec).expect_err("a file is in the way");
        assert!(matches!(failure, Failure::Escape(Escape::NotADirectory { .. })), "{failure}");
        assert!(failure.hint().is_some());
        assert_eq!(fs::read_to_string(&spec.dir).expect("it is still there"), "mine");
    }
}

#[test]
fn conformance_17_2_an_error_while_it_is_filled_is_told() {
    let fixture = Fixture::new();
    let spec = fixture.run(Strategy::Worktree, "ABC-1");
    let failure = prepare(&spec).expect_err("there is no repository").to_string();
    assert!(failure.contains("is no git repository that can be used"), "{failure}");
    let repository = fixture.repository();
    prepare(&spec).expect("now there is one");
    in_git(&repository, &["worktree", "add", "--quiet", "-b", "outlast/ABC-1", "../elsewhere"]);
    let told = check_out(&spec).expect_err("the branch is in use");
    assert!(told.contains("outlast/ABC-1") && told.contains("elsewhere"), "{told}");
}

#[test]
fn conformance_17_2_after_create_is_for_new_workspaces_only() {
    let fixture = Fixture::new();
    fixture.repository();
    for (strategy, name) in [(Strategy::Dir, "a"), (Strategy::Worktree, "b")] {
        let spec = fixture.run(strategy, name);
        assert_eq!(prepare(&spec).expect("it can be made"), CREATED);
        if strategy == Strategy::Worktree {
            check_out(&spec).expect("a sound repository");
        }
        assert_eq!(prepare(&spec).expect("asked by the next daemon"), CREATED, "{strategy:?}");
        settle(&spec).expect("the hook has run");
        assert_eq!(prepare(&spec).expect("it is there"), REUSED, "{strategy:?}");
    }
}

#[test]
fn conformance_17_2_a_failed_after_create_leaves_nothing_half_made() {
    let fixture = Fixture::new();
    fixture.repository();
    for (strategy, name) in [(Strategy::Dir, "a"), (Strategy::Worktree, "b")] {
        let spec = fixture.run(strategy, name);
        prepare(&spec).expect("it can be made");
        if strategy == Strategy::Worktree {
            check_out(&spec).expect("a sound repository");
        }
        write(&Path::new(&spec.dir).join("half"), "");
        for _ in 0..2 {
            discard(&spec).expect("it is ours, and then it is gone");
            assert!(!Path::new(&spec.dir).exists(), "{strategy:?}");
        }
        let left: Vec<_> = again::read_dir(fixture.root()).expect("it is there").collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(prepare(&spec).expect("it can be made anew"), CREATED);
        discard(&spec).expect("it is ours");
    }
}

#[test]
fn conformance_17_2_only_what_is_half_made_is_discarded() {
    let fixture = Fixture::new();
    let spec = fixture.run(Strategy::Dir, "ABC-1");
    prepare(&spec).expect("it can be made");
    settle(&spec).expect("it is ours");
    discard(&spec).expect("there is nothing to do");
    let inplace = fixture.run_in(Strategy::Inplace, fixture.base());
    discard(&inplace).expect("there is nothing to do");
    assert!(Path::new(&spec.dir).is_dir());
}

#[test]
fn conformance_17_2_an_identifier_never_leaves_the_root() {
    let fixture = Fixture::new();
    for identifier in ["../x", "..", ".", "", "/etc", "a/../../b", "-rf", "a\0b", "a\nb"] {
        let spec = fixture.run(Strategy::Dir, identifier);
        assert_eq!(Path::new(&spec.dir).parent(), Some(fixture.root().as_path()));
        assert_eq!(prepare(&spec).expect("nothing is in the way"), CREATED, "{identifier:?}");
    }
    assert_eq!(again::read_dir(fixture.base()).expect("it is ours").count(), 1);
}

#[test]
fn conformance_17_2_identifiers_that_look_alike_get_workspaces_of_their_own() {
    let names: std::collections::BTreeSet<_> =
        ["a/b", "a_b", "a:b", "a b", "a-b"].map(sanitised).into();
    assert_eq!(names.len(), 5, "{names:?}");
}

#[test]
fn conformance_17_2_a_directory_out_of_the_root_is_rejected() {
    let fixture = Fixture::new();
    fixture.repository();
    fs::create_dir(fixture.base().join("elsewhere")).expect("it is ours");
    for strategy in [Strategy::Dir, Strategy::Worktree] {
        for dir in ["elsewhere", "root/../elsewhere", "root"] {
            let spec = fixture.run_in(strategy, &fixture.base().join(dir));
            let failure = prepare(&spec).expect_err("it is outside");
            assert!(matches!(failure, Failure::Escape(Escape::Outside { .. })), "{failure}");
        }
    }
}

#[test]
fn conformance_17_2_a_symlink_out_of_the_root_is_rejected() {
    let fixture = Fixture::new();
    fixture.repository();
    let elsewhere = fixture.base().join("elsewhere");
    fs::create_dir(&elsewhere).expect("it is ours");
    fs::create_dir(fixture.root()).expect("it is ours");
    std::os::unix::fs::symlink(&elsewhere, fixture.root().join("ABC-1")).expect("it is ours");
    for strategy in [Strategy::Dir, Strategy::Worktree] {
        let failure = prepare(&fixture.run(strategy, "ABC-1")).expect_err("a link is in the way");
        assert!(matches!(failure, Failure::Escape(Escape::Symlink { .. })), "{failure}");
    }
}

#[test]
fn conformance_17_2_a_run_in_place_needs_its_directory_and_makes_none() {
    let fixture = Fixture::new();
    let dir = fixture.base().join("here");
    let spec = fixture.run_in(Strategy::Inplace, &dir);
    let failure = prepare(&spec).expect_err("there is none");
    assert!(matches!(failure, Failure::Gone { .. }), "{failure}");
    assert!(!dir.exists());
    fs::create_dir(&dir).expect("it is ours");
    assert_eq!(prepare(&spec).expect("it is there"), REUSED);
}
