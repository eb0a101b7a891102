//! A workspace, a git directory of ours, and what a person would look at.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_snapshot::{Around, carry_out};
use outlast_wire::snapshot::{Head, Last, Made, Orders, Restored, Taken, Todo, Where};

pub(crate) struct Scene {
    base: tempfile::TempDir,
    pub(crate) dir: PathBuf,
    pub(crate) store: Where,
    pub(crate) last: Option<Last>,
    pub(crate) max_file: u64,
    pub(crate) path: OsString,
    count: u64,
}

/// What is on disk: bytes, mode and links by path; no `.git`.
pub(crate) type Files = BTreeMap<String, String>;

impl Scene {
    pub(crate) fn plain() -> Self {
        let base = tempfile::tempdir().expect("a scratch directory");
        let dir = base.path().join("work");
        fs::create_dir(&dir).expect("it is ours");
        let path = std::env::var_os("PATH").expect("there is a PATH");
        Self {
            base,
            dir,
            store: Where::Repository,
            last: None,
            max_file: 50_000_000,
            path,
            count: 0,
        }
    }

    pub(crate) fn repository(args: &[&str]) -> Self {
        let scene = Self::plain();
        let init: Vec<&str> =
            ["init", "--quiet", "-b", "main"].iter().chain(args).copied().collect();
        scene.git(&init);
        scene.write("README", "hello\n");
        scene.git(&["add", "-A"]);
        scene.git(&["commit", "--quiet", "-m", "first"]);
        scene
    }

    pub(crate) fn base(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn git_dir(&self) -> PathBuf {
        self.base().join("run/snap.git")
    }

    pub(crate) fn git(&self, args: &[&str]) -> String {
        git(&self.dir, args)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.dir.join(name);
        fs::create_dir_all(path.parent().expect("below the workspace")).expect("it is ours");
        fs::write(path, text).expect("it is ours");
    }

    pub(crate) fn link(&self, name: &str, to: &str) {
        symlink(to, self.dir.join(name)).expect("it is ours");
    }

    pub(crate) fn remove(&self, name: &str) {
        let path = self.dir.join(name);
        let gone = if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
        gone.expect("it is ours");
    }

    pub(crate) fn executable(&self, name: &str, is: bool) {
        let mode = if is { 0o755 } else { 0o644 };
        fs::set_permissions(self.dir.join(name), fs::Permissions::from_mode(mode))
            .expect("it is ours");
    }

    pub(crate) fn around(&self) -> Around {
        Around { path: self.path.clone(), home: Some(self.base().join("home")), config_home: None }
    }

    pub(crate) fn orders(&self, todo: Todo) -> Orders {
        Orders {
            run: "run1".to_owned(),
            git_dir: self.git_dir(),
            dir: self.dir.clone(),
            store: self.store,
            max_file: self.max_file,
            bytes_left: 2_000_000_000,
            exclude: Vec::new(),
            state: vec![self.base().join("run")],
            last: self.last.clone(),
            since: self.last.as_ref().map(|last| last.tree.clone()),
            date_s: 1_700_000_000 + self.count,
            message: format!("turn {}", self.count),
            todo,
        }
    }

    pub(crate) fn made(&self, todo: Todo) -> Made {
        carry_out(&self.orders(todo), &self.around())
    }

    pub(crate) fn take(&mut self) -> Taken {
        let made = self.made(Todo::Take);
        let Made::Taken(taken) = made else { panic!("{made:?}") };
        self.remember(&taken);
        *taken
    }

    pub(crate) fn remember(&mut self, taken: &Taken) {
        let (commit, tree, head) = (taken.commit.clone(), taken.tree.clone(), taken.head.clone());
        self.last = Some(Last { commit, tree, head });
        self.count += 1;
    }

    pub(crate) fn restore(&mut self, to: &Taken) -> Restored {
        self.restore_with(to, None)
    }

    pub(crate) fn restore_with(&mut self, to: &Taken, head: Option<Head>) -> Restored {
        self.take();
        let made = self.made(Todo::Restore { to: to.commit.clone(), head });
        let Made::Restored(restored) = made else { panic!("{made:?}") };
        restored
    }

    /// What a snapshot has, by plain git.
    pub(crate) fn listed(&self, taken: &Taken) -> Vec<String> {
        let objects = match taken.store {
            Where::Repository => {
                return lines(&self.git(&[
                    "ls-tree",
                    "-r",
                    "--name-only",
                    "--full-tree",
                    &taken.commit,
                ]));
            }
            Where::Own => self.git_dir(),
        };
        lines(&git(&objects, &["ls-tree", "-r", "--name-only", "--full-tree", &taken.commit]))
    }

    pub(crate) fn files(&self) -> Files {
        let mut files = Files::new();
        walk(&self.dir, &self.dir, &mut files);
        files
    }
}

pub(crate) fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn walk(top: &Path, dir: &Path, files: &mut Files) {
    for entry in fs::read_dir(dir).expect("it is ours") {
        let path = entry.expect("it is ours").path();
        let name = path.strip_prefix(top).expect("below").to_string_lossy().into_owned();
        let found = fs::symlink_metadata(&path).expect("it is there");
        if path.file_name().is_some_and(|name| name == ".git") {
            continue;
        }
        if found.is_symlink() {
            files.insert(name, format!("-> {}", fs::read_link(&path).expect("a link").display()));
        } else if found.is_dir() {
            walk(top, &path, files);
        } else if found.is_file() {
            let is_executable = found.permissions().mode() & 0o100 != 0;
            let bytes = fs::read(&path).expect("it is ours");
            files.insert(name, format!("{is_executable} {}", String::from_utf8_lossy(&bytes)));
        } else {
            files.insert(name, "special".to_owned());
        }
    }
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@localhost",
            "-c",
            "protocol.file.allow=always",
        ])
        .arg("-C")
        .arg(dir)
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("there is a git");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {args:?}: {said}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// An executable script. A child process writes it: a process that another test forks meanwhile must not inherit the open
/// file, because the kernel executes no file that is open for writing.
pub(crate) fn script(path: &Path, content: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$2\" >\"$1\" && chmod 755 \"$1\"", "sh"]).arg(path).arg(content);
    assert!(shell.status().expect("there is a sh").success(), "{}", path.display());
}
