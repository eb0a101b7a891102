//! Each kind of repository and directory, and what is left out.

use std::fs;
use std::os::unix::net::UnixListener;

use outlast_wire::snapshot::{Head, Made, Todo, Where};

use crate::scene::{Scene, git};

#[test]
fn a_plain_directory_goes_back_and_forth() {
    let mut scene = Scene::plain();
    scene.write("a", "1\n");
    scene.write("deep/b", "2\n");
    let (first, then) = (scene.take(), scene.files());
    assert_eq!((first.store, first.files), (Where::Own, 0));
    scene.write("a", "one\n");
    scene.remove("deep");
    scene.write("deep", "a file now\n");
    scene.link("link", "a");
    let (second, later) = (scene.take(), scene.files());
    assert_eq!((second.files, second.added, second.deleted), (4, 3, 2));
    scene.restore(&first);
    assert_eq!(scene.files(), then);
    let restored = scene.restore(&second);
    assert_eq!((scene.files(), restored.written, restored.removed), (later, 3, 1));
    let again = scene.take();
    assert_eq!(again.tree, second.tree);
}

#[test]
fn nothing_changed_is_the_same_snapshot() {
    let mut scene = Scene::repository(&[]);
    let first = scene.take();
    let second = scene.take();
    assert!(second.is_same);
    assert_eq!(first.commit, second.commit);
    scene.git(&["commit", "--quiet", "--allow-empty", "-m", "moved"]);
    let third = scene.take();
    assert!(third.is_same && third.commit != first.commit, "its second parent is another");
    assert_eq!(third.head, Some(scene.git(&["rev-parse", "HEAD"])));
}

#[test]
fn repositories_of_every_format_take_the_ref_and_the_objects() {
    for args in [&[][..], &["--object-format=sha256"], &["--ref-format=reftable"]] {
        let mut scene = Scene::repository(args);
        let before = scene.git(&["status", "--porcelain"]);
        let first = scene.take();
        scene.write("new", "x\n");
        let second = scene.take();
        assert_eq!(
            (first.store, second.files, second.added),
            (Where::Repository, 1, 1),
            "{args:?}"
        );
        assert_eq!(scene.git(&["rev-parse", "refs/outlast/runs/run1/snap"]), second.commit);
        assert_eq!(before, "");
        assert_eq!(scene.git(&["status", "--porcelain"]), "?? new");
        scene.git(&["gc", "--quiet", "--prune=now"]);
        scene.git(&["fsck", "--strict"]);
        scene.write("new", "y\n");
        scene.restore(&second);
        assert!(scene.files()["new"].ends_with("x\n"));
        scene.restore(&first);
        assert!(!scene.files().contains_key("new"), "{args:?}");
    }
}

#[test]
fn a_ref_that_was_deleted_begins_a_new_chain_that_is_whole() {
    let mut scene = Scene::repository(&[]);
    scene.write("only in a snapshot", "x\n");
    scene.take();
    scene.git(&["update-ref", "-d", "refs/outlast/runs/run1/snap"]);
    scene.git(&["gc", "--quiet", "--prune=now"]);
    scene.write("b", "y\n");
    let later = scene.take();
    scene.git(&["fsck", "--strict"]);
    assert_eq!(scene.listed(&later), ["README", "b", "only in a snapshot"]);
}

#[test]
fn bytes_come_back_as_they_were_whatever_the_attributes_say() {
    let mut scene = Scene::repository(&[]);
    scene.write(
        ".gitattributes",
        "* text=auto eol=crlf ident\n*.u16 working-tree-encoding=UTF-16\n",
    );
    scene.write("mixed", "a\r\nb\nc\r\n$Id$\n");
    scene.write("x.u16", "not sixteen");
    scene.executable("mixed", true);
    let (first, then) = (scene.take(), scene.files());
    scene.write("mixed", "other");
    scene.executable("mixed", false);
    scene.remove("x.u16");
    scene.restore(&first);
    assert_eq!(scene.files(), then);
}

#[test]
fn what_is_left_out_is_named_and_left_alone() {
    let mut scene = Scene::repository(&[]);
    scene.max_file = 100;
    scene.write(".gitignore", "ignored\n");
    for name in [".env", "ignored", "server.key", ".env.example"] {
        scene.write(name, "x\n");
    }
    scene.write("big", &"x".repeat(200));
    scene.write("tracked.pem", "x\n");
    scene.write("forced", "x\n");
    scene.git(&["add", "-f", "tracked.pem", "ignored"]);
    let _socket = UnixListener::bind(scene.dir.join("socket")).expect("it is ours");
    let first = scene.take();
    assert_eq!(
        scene.listed(&first),
        [".env.example", ".gitignore", "README", "forced", "ignored", "tracked.pem"]
    );
    let names = first.left_out.names.join(", ");
    assert_eq!(first.left_out.files, 3, "{names}");
    for name in [".env (named like a secret)", "server.key (named", "big (larger than max_file)"] {
        assert!(names.contains(name), "{names}");
    }
    scene.write("forced", "y\n");
    let files = scene.files();
    scene.restore(&first);
    let mut expected = files;
    expected.insert("forced".to_owned(), "false x\n".to_owned());
    assert_eq!(scene.files(), expected);
}

#[test]
fn a_file_that_grew_too_large_is_named_and_no_old_bytes_stand_for_it() {
    let mut scene = Scene::plain();
    scene.max_file = 100;
    scene.write("a", "small");
    let first = scene.take();
    scene.write("a", &"x".repeat(200));
    let second = scene.take();
    assert_eq!((scene.listed(&first).len(), scene.listed(&second).len()), (1, 0));
    assert_eq!(second.left_out.names, ["a (larger than max_file)"]);
    let restored = scene.restore(&first);
    assert_eq!(restored.kept, ["a"], "what no snapshot has is not overwritten");
    assert_eq!(scene.files()["a"].len(), "false ".len() + 200);
}

#[test]
fn repositories_within_are_kept_as_files_and_go_back_as_files() {
    let mut scene = Scene::repository(&[]);
    fs::create_dir(scene.dir.join("empty")).expect("it is ours");
    git(&scene.dir.join("empty"), &["init", "--quiet"]);
    scene.write("empty/file", "1\n");
    scene.write("with/file", "1\n");
    let with = scene.dir.join("with");
    git(&with, &["init", "--quiet"]);
    git(&with, &["add", "-A"]);
    git(&with, &["commit", "--quiet", "-m", "within"]);
    scene.write("with/deeper/x", "1\n");
    git(&scene.dir.join("with/deeper"), &["init", "--quiet"]);
    let (first, then) = (scene.take(), scene.files());
    assert_eq!(scene.listed(&first), ["README", "empty/file", "with/deeper/x", "with/file"]);
    assert!(scene.take().is_same);
    scene.write("empty/file", "2\n");
    scene.write("with/new", "2\n");
    scene.remove("with/deeper/x");
    let second = scene.take();
    assert_eq!((second.files, scene.listed(&second).len()), (3, 4));
    let later = scene.files();
    scene.restore(&first);
    assert_eq!(scene.files(), then);
    assert_eq!(git(&with, &["log", "--format=%s"]), "within");
    scene.restore(&second);
    assert_eq!(scene.files(), later);
}

#[test]
fn a_submodule_is_kept_as_files() {
    let mut scene = Scene::repository(&[]);
    let other = Scene::repository(&[]);
    scene.git(&["submodule", "--quiet", "add", other.dir.to_str().expect("text"), "sub"]);
    scene.git(&["commit", "--quiet", "-m", "with a submodule"]);
    let (first, then) = (scene.take(), scene.files());
    assert_eq!(scene.listed(&first), [".gitmodules", "README", "sub/README"]);
    scene.write("sub/README", "changed\n");
    scene.restore(&first);
    assert_eq!(scene.files(), then);
}

#[test]
fn a_shallow_a_sparse_and_a_linked_checkout_have_snapshots() {
    let origin = Scene::repository(&[]);
    origin.write("dir/a", "1\n");
    origin.write("other/b", "1\n");
    origin.git(&["add", "-A"]);
    origin.git(&["commit", "--quiet", "-m", "second"]);
    for kind in ["shallow", "sparse", "linked"] {
        let mut scene = Scene::plain();
        let url = format!("file://{}", origin.dir.display());
        let dir = scene.dir.to_str().expect("text").to_owned();
        match kind {
            "shallow" => drop(scene.git(&["clone", "--quiet", "--depth=1", &url, "."])),
            "sparse" => {
                scene.git(&["clone", "--quiet", "--sparse", &url, "."]);
                scene.git(&["sparse-checkout", "set", "dir"]);
            }
            _ => drop(origin.git(&["worktree", "add", "--quiet", "-B", "outlast/x", &dir])),
        }
        let (first, then) = (scene.take(), scene.files());
        scene.write("dir/a", "2\n");
        scene.write("new/c", "3\n");
        scene.git(&["add", "-A", "--sparse"]);
        scene.git(&["commit", "--quiet", "-m", "of the attempt"]);
        let second = scene.take();
        assert_eq!((second.files, second.added, second.deleted), (2, 2, 1), "{kind}");
        scene.git(&["gc", "--quiet", "--prune=now"]);
        let head =
            Head { commit: first.head.clone().expect("a HEAD"), branch: first.branch.clone() };
        fs::write(admin(&scene).join("index.lock"), "").expect("it is ours");
        scene.restore_with(&first, Some(head));
        assert_eq!(scene.files(), then, "{kind}");
        if kind == "linked" {
            assert_eq!(scene.git(&["rev-parse", "HEAD"]), first.head.expect("a HEAD"));
            assert_eq!(scene.git(&["status", "--porcelain"]), "");
            assert_eq!(scene.git(&["symbolic-ref", "HEAD"]), "refs/heads/outlast/x");
        } else {
            assert!(admin(&scene).join("index.lock").exists(), "a user's lock is a user's");
        }
    }
}

fn admin(scene: &Scene) -> std::path::PathBuf {
    scene.git(&["rev-parse", "--absolute-git-dir"]).into()
}

#[test]
fn a_run_in_a_sub_directory_has_snapshots_of_that_alone() {
    let mut scene = Scene::repository(&[]);
    scene.write(".gitignore", "*.log\n");
    scene.write("sub/a", "1\n");
    scene.write("sub/x.log", "1\n");
    scene.write("beside/b", "1\n");
    scene.dir = scene.dir.join("sub");
    let first = scene.take();
    assert_eq!(scene.listed(&first), ["sub/a"]);
    scene.write("a", "2\n");
    scene.write("../beside/b", "2\n");
    assert_eq!(scene.take().files, 1);
    scene.restore(&first);
    assert!(scene.files()["a"].ends_with("1\n"));
    assert_eq!(fs::read_to_string(scene.dir.join("../beside/b")).expect("there"), "2\n");
    assert!(scene.files().contains_key("x.log"));
}

#[test]
fn a_file_that_either_tree_ignores_is_neither_captured_nor_removed_by_a_restore() {
    let mut scene = Scene::repository(&[]);
    scene.write(".gitignore", "cache\n");
    scene.write("cache", "precious\n");
    let first = scene.take();
    scene.write(".gitignore", "nothing\n");
    let second = scene.take();
    assert!(scene.listed(&second).contains(&"cache".to_owned()));
    let restored = scene.restore(&first);
    assert_eq!(restored.kept, ["cache"]);
    assert!(scene.files()["cache"].ends_with("precious\n"));
    scene.restore(&second);
    assert!(scene.files()["cache"].ends_with("precious\n"));
}

#[test]
fn a_home_a_root_and_a_place_of_our_state_have_none() {
    let mut scene = Scene::plain();
    scene.dir = scene.base().to_owned();
    let Made::Failed { code, why } = scene.made(Todo::Take) else { panic!("it has our state") };
    assert_eq!((code.as_str(), why.contains("state")), ("never", true));
    scene.dir = "/".into();
    assert!(matches!(scene.made(Todo::Take), Made::Failed { code, .. } if code == "never"));
    fs::create_dir(scene.base().join("home")).expect("it is ours");
    scene.dir = scene.base().join("home");
    assert!(matches!(scene.made(Todo::Take), Made::Failed { why, .. } if why.contains("home")));
}

#[test]
fn more_than_max_total_is_a_failure_and_no_snapshot() {
    let mut scene = Scene::plain();
    scene.write("a", "x");
    scene.take();
    scene.write("a", &"x".repeat(1000));
    let mut orders = scene.orders(Todo::Take);
    orders.bytes_left = 10;
    let made = outlast_snapshot::carry_out(&orders, &scene.around());
    assert!(matches!(made, Made::Failed { code, .. } if code == "too_big"));
    assert_eq!(scene.take().files, 1);
}

#[test]
fn what_is_there_now_is_read_without_a_trace() {
    let mut scene = Scene::repository(&[]);
    let first = scene.take();
    scene.write("new", "x\n");
    let count = scene.git(&["count-objects"]);
    let objects = scene.base().join("scratch");
    let Made::Looked { tree } = scene.made(Todo::Look { objects }) else { panic!("it is there") };
    assert_ne!(tree, first.tree);
    assert_eq!(scene.git(&["count-objects"]), count);
    assert_eq!(scene.take().tree, tree);
}

/// What Git LFS leaves in a checkout: files whose filter turns them into pointers, which only its own program can do.
#[test]
fn a_repository_with_large_file_storage_keeps_the_bytes_that_are_there() {
    let mut scene = Scene::repository(&[]);
    let ran = scene.base().join("filter-ran");
    let filter = format!("touch '{}'; cat", ran.display());
    for (key, value) in [
        ("filter.lfs.clean", filter.as_str()),
        ("filter.lfs.smudge", filter.as_str()),
        ("filter.lfs.required", "true"),
    ] {
        scene.git(&["config", key, value]);
    }
    scene.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n";
    scene.write("missing.bin", pointer);
    scene.write("there.bin", "the bytes\r\n");
    let (first, then) = (scene.take(), scene.files());
    scene.write("there.bin", "other bytes\n");
    scene.remove("missing.bin");
    scene.take();
    scene.restore(&first);
    assert_eq!(scene.files(), then, "bytes and pointers come back as they were");
    assert!(!ran.exists(), "no filter was run");
}
