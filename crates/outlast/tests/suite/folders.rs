//! Folders: a file that is put there makes one run, once it is whole.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::harness::{Gate, Home, skip, str_of, text, until};
use crate::triggered::{count, made, occurrences, runs, trigger};

struct Inbox {
    home: Home,
    dir: PathBuf,
}

impl Inbox {
    fn new() -> Self {
        let home = Home::new();
        let dir = home.scratch().join("inbox");
        fs::create_dir(&dir).expect("the scratch directory is ours");
        Self { home, dir }
    }

    fn add(&self, args: &[&str]) {
        let dir = self.dir.display().to_string();
        let start = ["trigger", "add", "inbox", "--folder", &dir];
        let args: Vec<&str> = start.iter().chain(args).copied().collect();
        self.home.ok(&args);
    }

    fn put(&self, name: &str, text: &str) {
        fs::write(self.dir.join(name), text).expect("the scratch directory is ours");
    }

    /// The names of the files that runs were made of.
    fn taken(&self) -> Vec<String> {
        let name = |id: &String| id.split('@').next().unwrap_or_default().to_owned();
        let mut names: Vec<String> = occurrences(&self.home, "inbox").iter().map(name).collect();
        names.sort();
        names
    }
}

/// A script that appends the file it is run for to `all`.
const GATHER: &str =
    "sed -n 's/^ *\"path\": \"\\(.*\\)\".*/\\1/p' \"$OUTLAST_TRIGGER_FILE\" | xargs cat >> all";

fn all(home: &Home) -> String {
    fs::read_to_string(home.scratch().join("all")).unwrap_or_default()
}

#[test]
fn a_file_makes_one_run_and_is_taken() {
    let inbox = Inbox::new();
    inbox.add(&["--overlap", "queue", "--", "sh", "-c", GATHER]);
    inbox.put("one", "1\n");
    // Made elsewhere and moved in.
    fs::write(inbox.home.scratch().join("two"), "2\n").expect("the scratch directory is ours");
    fs::rename(inbox.home.scratch().join("two"), inbox.dir.join("two")).expect("it is ours");
    for ignored in [".hidden", "half.tmp", "backup~", "download.part"] {
        inbox.put(ignored, "no\n");
    }
    symlink(inbox.home.scratch().join("clock"), inbox.dir.join("link")).expect("it is ours");
    made(&inbox.home, "inbox", 2);
    until("both have run", || (all(&inbox.home).lines().count() == 2).then_some(()));
    // A half-made file is whole once it has its name.
    fs::rename(inbox.dir.join("half.tmp"), inbox.dir.join("half")).expect("it is ours");
    made(&inbox.home, "inbox", 3);
    assert_eq!(inbox.taken(), ["half", "one", "two"]);
    assert!(!inbox.dir.join("one").exists() && inbox.dir.join(".hidden").exists());
    assert_eq!(fs::read_dir(inbox.dir.join(".taken")).map(Iterator::count).ok(), Some(3));
    let run = &runs(&inbox.home, "inbox")[0];
    assert!(str_of(&run["origin"], "occurrence").contains('@'), "{run}");
}

#[test]
fn what_lay_there_before_is_found_and_what_stays_is_not_found_again() {
    let inbox = Inbox::new();
    inbox.put("early", "1\n");
    inbox.add(&["--leave", "--", "true"]);
    inbox.put("late", "2\n");
    made(&inbox.home, "inbox", 2);
    inbox.home.crash_daemon();
    inbox.put("meanwhile", "3\n");
    inbox.home.ok(&["daemon", "start"]);
    made(&inbox.home, "inbox", 3);
    assert_eq!(inbox.taken(), ["early", "late", "meanwhile"]);
    assert!(inbox.dir.join("early").exists());
    // One that is written anew is another.
    inbox.put("late", "22\n");
    made(&inbox.home, "inbox", 4);
    assert_eq!(inbox.taken(), ["early", "late", "late", "meanwhile"]);
}

#[test]
fn a_death_between_finding_and_taking_and_making_makes_one_run() {
    for point in ["daemon.occurrence-kept", "daemon.create-files", "daemon.occurrence-made"] {
        let mut inbox = Inbox::new();
        let token = inbox.home.scratch().join("token");
        let log = inbox.home.scratch().join("passed");
        inbox.home = inbox
            .home
            .env("OUTLAST_CRASH_AT", point)
            .env("OUTLAST_CRASH_LOG", log)
            .env("OUTLAST_CRASH_TOKEN", &token);
        inbox.add(&["--", "sh", "-c", GATHER]);
        fs::write(&token, "").expect("the scratch directory is ours");
        inbox.put("one", "1\n");
        until("it died", || (!token.exists()).then_some(()));
        inbox.home.ok(&["daemon", "start"]);
        made(&inbox.home, "inbox", 1);
        until("it has run", || (all(&inbox.home) == "1\n").then_some(()));
        assert_eq!(inbox.taken(), ["one"], "{point}");
    }
}

#[test]
fn a_file_that_cannot_be_taken_holds_up_no_other() {
    let inbox = Inbox::new();
    inbox.add(&["--", "sh", "-c", GATHER]);
    inbox.home.ok(&["trigger", "pause", "inbox"]);
    // At its longest a name has no room for more; a fifo is no file; one is gone when its turn comes.
    let long = format!("{}.txt", "n".repeat(251));
    inbox.put(&long, "long\n");
    let fifo = Command::new("mkfifo").arg(inbox.dir.join("fifo")).status();
    assert!(fifo.expect("there is a mkfifo").success());
    inbox.home.ok(&["trigger", "resume", "inbox"]);
    made(&inbox.home, "inbox", 1);
    let taken = fs::read_dir(inbox.dir.join(".taken")).expect("it was taken").flatten().next();
    let name = taken.expect("one").file_name().into_string().expect("it is plain");
    assert!(name.len() < 100 && name.ends_with(".txt"), "by its hash: {name}");
    // A run of the first is open, so the others wait, and one of them goes away.
    for name in ["a", "b", "c"] {
        inbox.put(name, &format!("{name}\n"));
    }
    made(&inbox.home, "inbox", 4);
    until("all have run", || (all(&inbox.home).lines().count() == 4).then_some(()));
    assert_eq!(inbox.taken(), ["a", "b", "c", &long]);
    let view = trigger(&inbox.home, "inbox");
    assert_eq!((count(&view, "waiting"), &view["trouble"]), (0, &Value::Null));
}

#[test]
fn a_file_that_went_away_is_refused_and_shown_and_the_others_run() {
    let inbox = Inbox::new();
    let mut gate = Gate::new(&inbox.home, "gate");
    inbox.add(&["--overlap", "queue", "--", "sh", "-c", &gate.pass()]);
    for name in ["a", "b", "c"] {
        inbox.put(name, "x\n");
    }
    until("all were found", || {
        let view = trigger(&inbox.home, "inbox");
        (count(&view, "runs") == 1 && count(&view, "waiting") == 2).then_some(())
    });
    fs::remove_file(inbox.dir.join("b")).expect("it is ours");
    gate.open();
    gate.open();
    let view = made(&inbox.home, "inbox", 2);
    assert_eq!(inbox.taken(), ["a", "c"]);
    assert_eq!((count(&view, "refused"), str_of(&view["refusal"], "code")), (1, "refused"));
    assert!(str_of(&view["refusal"], "message").contains("/b is gone"), "{view}");
}

const NOBODY: u32 = 65_534;

/// An Outlast of another user, who is not root.
struct Nobodys {
    home: Home,
    program: PathBuf,
}

impl Nobodys {
    /// `None` for a test that cannot become another user.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("only root can become another user");
            return None;
        }
        let home = Home::within(&std::env::temp_dir(), "home");
        for dir in [home.scratch(), home.path()] {
            chown(dir, Some(NOBODY), Some(NOBODY)).expect("root may");
        }
        let program = crate::programs::link(&home.scratch().join("outlast"));
        Some(Self { home, program })
    }

    fn outlast(&self, args: &[&str]) -> String {
        let mut command = self.home.command(self.program.to_str().expect("our paths are text"));
        let output = command.args(args).uid(NOBODY).gid(NOBODY).output().expect("it starts");
        assert!(output.status.success(), "{args:?}: {output:?}");
        text(&output.stdout)
    }
}

#[test]
fn a_file_of_another_user_is_refused_and_the_others_run() {
    let Some(nobodys) = Nobodys::new() else { return };
    // As /tmp is: all may put files there, and only their owner may take them away.
    let shared = nobodys.home.scratch().join("shared");
    fs::create_dir(&shared).expect("root may");
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("it is ours");
    let dir = shared.display().to_string();
    nobodys.outlast(&["trigger", "add", "shared", "--folder", &dir, "--", "true"]);
    let put = |name: &str, mode: u32, owner: u32| {
        let part = shared.join(format!("{name}.part"));
        fs::write(&part, name).expect("root may");
        fs::set_permissions(&part, Permissions::from_mode(mode)).expect("it is ours");
        chown(&part, Some(owner), Some(owner)).expect("root may");
        fs::rename(part, shared.join(name)).expect("root may");
    };
    put("closed", 0o000, 0);
    put("theirs", 0o644, 0);
    put("ours", 0o644, NOBODY);
    let view = until("one has run, two were refused", || {
        let all: Value =
            serde_json::from_str(&nobodys.outlast(&["trigger", "ls", "--json"])).ok()?;
        let view = all[0].clone();
        (count(&view, "runs") == 1 && count(&view, "refused") == 2).then_some(view)
    });
    assert_eq!((count(&view, "waiting"), str_of(&view["refusal"], "code")), (0, "refused"));
    assert!(str_of(&view["refusal"], "message").contains("cannot be taken"), "{view}");
    assert!(shared.join("theirs").exists() && shared.join("closed").exists());
    assert!(!shared.join("ours").exists());
}

#[test]
fn a_folder_that_goes_away_is_shown_and_one_that_is_none_is_refused() {
    let inbox = Inbox::new();
    inbox.add(&["--", "true"]);
    fs::remove_dir(&inbox.dir).expect("it is empty");
    let view = until("it is shown", || {
        Some(trigger(&inbox.home, "inbox")).filter(|view| view["trouble"]["code"] == "folder")
    });
    assert_eq!(count(&view, "runs"), 0);
    fs::create_dir(&inbox.dir).expect("the scratch directory is ours");
    inbox.put("one", "1\n");
    // A person need not wait for the next try.
    inbox.home.ok(&["trigger", "pause", "inbox"]);
    inbox.home.ok(&["trigger", "resume", "inbox"]);
    made(&inbox.home, "inbox", 1);
    let missing = |dir: &Path| {
        let dir = dir.display().to_string();
        inbox.home.fails(2, &["trigger", "add", "x", "--folder", &dir, "--", "true"])
    };
    let said = missing(&inbox.dir.join("nothing"));
    assert!(said.contains("is not a directory") && said.contains("hint: "), "{said}");
    assert!(missing(&inbox.home.state()).contains("belongs to Outlast"));
}
