//! Which file a daemon is started from, so that the next one is of the version that is installed then.
//!
//! A program's own path is the wrong answer after an upgrade: the kernel has resolved every link in it, and the
//! directory of the old version may be gone. The name under which the program was found stays.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::environment::lookup;

/// The running program itself, also if its file has no name any more.
pub const OWN: &str = "/proc/self/exe";

/// This program, as it was found when it was started.
#[derive(Debug, Clone)]
pub struct Program {
    /// The name on PATH, or the path that was typed, with its links, if that led here.
    name: Option<PathBuf>,
    /// Where the file is or was.
    exe: Option<PathBuf>,
    path: OsString,
}

impl Program {
    /// Finds the program. A client asks early: later the name may lead to another version.
    pub fn find(env: &[(OsString, OsString)], typed: Option<OsString>) -> Self {
        let exe = std::env::current_exe().ok().map(without_mark);
        let path = lookup(env, "PATH").unwrap_or_default().to_owned();
        let own = identity(Path::new(OWN)).or_else(|| identity(exe.as_deref()?));
        let is_us = |name: &PathBuf| own.is_some() && identity(name) == own;
        let typed =
            typed.map(PathBuf::from).filter(|typed| typed.as_os_str().as_bytes().contains(&b'/'));
        let typed = typed.and_then(|typed| std::path::absolute(typed).ok());
        let name = named_on(&path).find(is_us).or_else(|| typed.filter(is_us));
        Self { name, exe, path }
    }

    /// The name to write down: it leads to the installed version also after an upgrade.
    pub fn lasting(&self) -> Option<&Path> {
        self.name.as_deref().or(self.exe.as_deref())
    }

    /// The files to start a daemon from; the first that can be executed is taken. The name comes first, so that an
    /// upgrade takes effect. Any `outlast` on PATH comes after this program's own path, since this program may have
    /// been built to be tried beside an installed one. The running file comes last, also if it has no name any more.
    pub fn candidates(&self) -> Vec<PathBuf> {
        let mut candidates: Vec<PathBuf> = Vec::new();
        let found = named_on(&self.path).find(|name| name.is_file());
        let known = [self.name.clone(), self.exe.clone(), found, Some(PathBuf::from(OWN))];
        for candidate in known.into_iter().flatten() {
            if !candidates.contains(&candidate) {
                candidates.push(candidate);
            }
        }
        candidates
    }
}

/// True if another program may do: this one is gone, is being replaced, or is not whole.
pub fn is_missing(error: &io::Error) -> bool {
    /// `ENOEXEC`: not a program, or not one yet.
    const NOT_A_PROGRAM: i32 = 8;
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::PermissionDenied
            | io::ErrorKind::ExecutableFileBusy
    ) || error.raw_os_error() == Some(NOT_A_PROGRAM)
}

fn named_on(path: &OsStr) -> impl Iterator<Item = PathBuf> + '_ {
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).map(|dir| dir.join("outlast"))
}

/// The kernel marks the path of a program whose file was removed or replaced.
fn without_mark(exe: PathBuf) -> PathBuf {
    match exe.as_os_str().as_bytes().strip_suffix(b" (deleted)") {
        Some(path) => PathBuf::from(OsString::from_vec(path.to_vec())),
        None => exe,
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_leads_here_is_the_name_and_stays_it_when_it_is_moved() {
        let dir = tempfile::tempdir().expect("a directory");
        let link = dir.path().join("outlast");
        let us = std::env::current_exe().expect("we are a program");
        std::os::unix::fs::symlink(&us, &link).expect("a link");
        let env = [("PATH".into(), dir.path().as_os_str().to_owned())];
        let program = Program::find(&env, None);
        assert_eq!(program.lasting(), Some(link.as_path()));
        std::fs::remove_file(&link).expect("it is ours");
        let candidates = program.candidates();
        assert_eq!(candidates, [link, us, PathBuf::from(OWN)]);
    }

    #[test]
    fn what_was_typed_counts_if_it_led_here_and_nothing_else_of_that_name_does() {
        let dir = tempfile::tempdir().expect("a directory");
        let us = std::env::current_exe().expect("we are a program");
        let (link, other) = (dir.path().join("typed"), dir.path().join("outlast"));
        std::os::unix::fs::symlink(&us, &link).expect("a link");
        std::fs::File::create(&other).expect("a file");
        let env = [("PATH".into(), dir.path().as_os_str().to_owned())];
        let program = Program::find(&env, Some(link.clone().into_os_string()));
        assert_eq!(program.candidates(), [link, us.clone(), other.clone(), PathBuf::from(OWN)]);
        let program = Program::find(&env, Some(other.clone().into_os_string()));
        assert_eq!(program.candidates(), [us, other, PathBuf::from(OWN)]);
    }

    #[test]
    fn a_file_that_was_replaced_is_known_by_its_path() {
        assert_eq!(without_mark("/a/outlast (deleted)".into()), PathBuf::from("/a/outlast"));
        assert_eq!(without_mark("/a/outlast".into()), PathBuf::from("/a/outlast"));
    }
}
