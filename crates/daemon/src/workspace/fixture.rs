//! A root, a repository and runs to make workspaces for.
//!
//! Only for tests. Git has to be there: without it these tests fail, and say so.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_engine::{Agent, RunSpec, Strategy, Workspace};

use super::{checkout, path, prepare, sanitised};
use crate::world::git::git;

pub(super) struct Fixture {
    base: tempfile::TempDir,
}

impl Fixture {
    pub(super) fn new() -> Self {
        Self { base: tempfile::tempdir().expect("a scratch directory") }
    }

    pub(super) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(super) fn root(&self) -> PathBuf {
        self.base().join("root")
    }

    /// A run for a piece of work, as the identifier names it.
    pub(super) fn run(&self, strategy: Strategy, identifier: &str) -> RunSpec {
        let dir = path(&self.root(), &sanitised(identifier)).expect("a key is a name");
        self.run_in(strategy, &dir)
    }

    pub(super) fn run_in(&self, strategy: Strategy, dir: &Path) -> RunSpec {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let text = |path: &Path| path.to_str().expect("a plain path").to_owned();
        let workspace = Workspace {
            strategy,
            root: Some(text(&self.root())),
            repository: Some(text(&self.base().join("repository"))),
            ..Workspace::default()
        };
        RunSpec { workspace, ..RunSpec::command(agent, text(dir)) }
    }

    /// A repository with one commit.
    pub(super) fn repository(&self) -> PathBuf {
        let repository = self.base().join("repository");
        fs::create_dir(&repository).expect("it is ours");
        in_git(&repository, &["init", "--quiet"]);
        write(&repository.join("README"), "hello\n");
        commit(&repository, "first");
        repository
    }

    /// A worktree that is checked out; what follows on creation is still to be done.
    pub(super) fn worktree(&self, identifier: &str) -> RunSpec {
        let spec = self.run(Strategy::Worktree, identifier);
        assert!(prepare(&spec).expect("nothing is in the way").created);
        check_out(&spec).expect("a sound repository");
        spec
    }
}

/// Runs the checkout as a host would; what it said if it failed.
pub(super) fn check_out(spec: &RunSpec) -> Result<(), String> {
    let output = check_out_command(spec).output().expect("there is a shell");
    if output.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&output.stderr).into_owned())
}

/// In a process group of its own, as the host has it.
pub(super) fn check_out_command(spec: &RunSpec) -> Command {
    let argv = checkout(spec).expect("a worktree has one");
    let root = spec.workspace.root.as_deref().expect("it has one");
    #[expect(clippy::disallowed_methods, reason = "a test is the host of its checkout")]
    let mut command = Command::new(&argv[0]);
    // A host's environment may be about another repository.
    command.args(&argv[1..]).current_dir(root).env("GIT_DIR", "/nonexistent").process_group(0);
    command
}

pub(super) fn commit(dir: &Path, message: &str) {
    in_git(dir, &["add", "--all"]);
    let identity = ["-c", "user.name=Test", "-c", "user.email=test@example.org"];
    let rest = ["-c", "commit.gpgsign=false", "commit", "--quiet", "--allow-empty", "-m", message];
    in_git(dir, &[&identity[..], &rest[..]].concat());
}

pub(super) fn in_git(dir: &Path, args: &[&str]) -> String {
    match git(dir, args) {
        Ok(output) => output.text().trim().to_owned(),
        Err(error) => panic!("this test needs a working git: {args:?}: {error}"),
    }
}

pub(super) fn write(path: &Path, content: &str) {
    let mut file = File::create(path).expect("it is ours");
    file.write_all(content.as_bytes()).expect("it is ours");
}
