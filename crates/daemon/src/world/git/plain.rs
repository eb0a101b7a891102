//! A worktree looked at without the settings of its repository.
//!
//! An agent may write to a repository's settings, and by them git runs commands: `filter.x.clean` is run by a mere
//! `git status`. So a status is asked with a git directory of our own, which has the worktree's head, index and
//! objects and none of its settings but a few that are plain words. A filter that attributes name is then no
//! filter. What git cannot tell this way it tells as a change, or not at all; never the other way round.

use std::ffi::{OsStr, OsString};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::{GitError, Output, Settings, git, run_with};
use crate::world::{files, variable};

/// Settings that say how files are compared, and run nothing.
const HARMLESS: &str = "^core\\.(filemode|symlinks|ignorecase|autocrlf|eol|precomposeunicode)$";
/// Of a list of what is ignored.
const LONGEST_EXCLUDE: usize = 1 << 20;

/// Where a worktree has its own files, and what it shares with others.
pub(crate) struct Worktree<'a> {
    pub(crate) dir: &'a Path,
    pub(crate) admin: &'a Path,
    pub(crate) common: &'a Path,
}

/// What `git status --porcelain` says of a worktree, with none of its repository's commands run. Files of
/// submodules are not looked at; [`has_submodules`] says whether there are any.
pub(crate) fn status(worktree: &Worktree<'_>) -> Result<Output, GitError> {
    let own = Own::make()?;
    own.fill(worktree)?;
    let excludes = excludes_file(worktree.dir)?;
    let mut args: Vec<OsString> = Vec::new();
    if let Some(excludes) = excludes {
        let mut setting = OsString::from("core.excludesFile=");
        setting.push(excludes);
        args.extend([OsString::from("-c"), setting]);
    }
    let asked =
        ["status", "--porcelain=v1", "--untracked-files=normal", "--ignore-submodules=dirty"];
    args.extend(asked.map(OsString::from));
    let settings = Settings::Own {
        git_dir: &own.0,
        objects: &worktree.common.join("objects"),
        index: &worktree.admin.join("index"),
    };
    run_with("git", worktree.dir, &args, settings)
}

/// True if the index has a repository within the repository.
pub(crate) fn has_submodules(dir: &Path) -> Result<bool, GitError> {
    let modes = match git(dir, &["ls-files", "--format=%(objectmode)"]) {
        // An older git.
        Err(GitError::Refused { .. }) => git(dir, &["ls-files", "--stage"])?,
        modes => modes?,
    };
    Ok(modes.stdout.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"160000")))
}

/// A git directory of our own, for one question.
struct Own(PathBuf);

impl Own {
    fn make() -> io::Result<Self> {
        let name: String =
            crate::world::random::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let dir = std::env::temp_dir().join(format!("outlast-git-{name}"));
        // It has to be new: in a directory for all, another user's would be another user's settings.
        files::only_private_dir(&dir)?;
        Ok(Self(dir))
    }

    fn fill(&self, worktree: &Worktree<'_>) -> Result<(), GitError> {
        for name in ["refs", "objects", "info"] {
            files::only_private_dir(&self.0.join(name))?;
        }
        let head = match git(worktree.dir, &["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]) {
            Ok(commit) => commit.stdout,
            // There is no commit yet.
            Err(GitError::Refused { .. }) => b"ref: refs/heads/unborn\n".to_vec(),
            Err(error) => return Err(error),
        };
        self.write("HEAD", &head)?;
        self.write("config", settings(worktree.dir)?.as_bytes())?;
        let exclude = read_bounded(&worktree.common.join("info").join("exclude"))?;
        Ok(self.write("info/exclude", &exclude)?)
    }

    fn write(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let path = self.0.join(name);
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(content)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, "cannot remove the git directory of one question");
        }
    }
}

/// The settings that are carried over: plain words, and how objects are named.
fn settings(dir: &Path) -> Result<String, GitError> {
    let format = match git(dir, &["rev-parse", "--show-object-format"]) {
        Ok(format) => format.text().trim().to_owned(),
        Err(GitError::Refused { .. }) => "sha1".to_owned(),
        Err(error) => return Err(error),
    };
    let mut text = match format.as_str() {
        "sha1" => "[core]\nrepositoryformatversion = 0\nbare = false\n".to_owned(),
        format if is_plain(format) => format!(
            "[extensions]\nobjectformat = {format}\n[core]\nrepositoryformatversion = 1\nbare = false\n"
        ),
        _ => return Err(io::Error::other("its objects have a format that is not known").into()),
    };
    let harmless = match git(dir, &["config", "--get-regexp", HARMLESS]) {
        Ok(harmless) => harmless.text(),
        // There is none.
        Err(GitError::Refused { .. }) => String::new(),
        Err(error) => return Err(error),
    };
    for line in harmless.lines() {
        if let Some((key, value)) = line.split_once(' ')
            && let Some(key) = key.strip_prefix("core.")
            && is_plain(key)
            && is_plain(value)
        {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    Ok(text)
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// What the person who owns all this has git ignore everywhere. A list, which runs nothing.
fn excludes_file(dir: &Path) -> Result<Option<PathBuf>, GitError> {
    let asked = ["config", "--type=path", "--get", "core.excludesFile"].map(OsString::from);
    match run_with("git", dir, &asked, Settings::OfUser) {
        Ok(output) => {
            let line = output.stdout.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let path = PathBuf::from(OsString::from_vec(line.to_vec()));
            Ok(Some(path).filter(|path| path.as_os_str() != OsStr::from_bytes(b"")))
        }
        Err(GitError::Refused { .. }) => Ok(usual_excludes()),
        Err(error) => Err(error),
    }
}

/// Where git looks if no setting says otherwise.
fn usual_excludes() -> Option<PathBuf> {
    let set = |name: &str| variable(name).map(PathBuf::from);
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("git").join("ignore")).filter(|path| path.is_file())
}

/// A small regular file; one that is not there is empty.
fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    match files::read_regular(path, LONGEST_EXCLUDE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    }
}
