//! Folders: a file that is put there makes one run, once it is whole.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::harness::{Home, str_of, until};
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
