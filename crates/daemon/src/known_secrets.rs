//! Secrets that were read from a run's environment a moment ago, so that the run's next word does not read them again.
//!
//! They are good only for the very file that they were read from: another file in its place, or a changed one, is read
//! anew. There is room for a few runs, and a run that ends takes its own away.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use outlast_engine::Step;
use outlast_secrets::Secrets;

use crate::sync::lock;

/// Of steps that say something at the same time.
const MOST: usize = 64;

/// A file as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    path: PathBuf,
    dev: u64,
    ino: u64,
    len: u64,
    changed: (i64, i64),
    modified: (i64, i64),
}

impl Stamp {
    /// `None` for what is no regular file: no such thing is read from memory.
    pub(crate) fn of(path: PathBuf) -> io::Result<Option<Self>> {
        let found = std::fs::metadata(&path)?;
        Ok(found.is_file().then(|| Self {
            path,
            dev: found.dev(),
            ino: found.ino(),
            len: found.len(),
            changed: (found.ctime(), found.ctime_nsec()),
            modified: (found.mtime(), found.mtime_nsec()),
        }))
    }
}

#[derive(Debug)]
struct Known {
    file: Stamp,
    /// The step whose token is among the secrets.
    step: Option<Step>,
    secrets: Secrets,
}

/// The last ones, newest last.
#[derive(Debug, Default)]
pub(crate) struct KnownSecrets(Mutex<Vec<Known>>);

impl KnownSecrets {
    pub(crate) fn get(&self, file: &Stamp, step: Option<Step>) -> Option<Secrets> {
        let mut all = self.all();
        let at = all.iter().rposition(|known| known.step == step && known.file == *file)?;
        let known = all.remove(at);
        let secrets = known.secrets.clone();
        all.push(known);
        Some(secrets)
    }

    /// What was last read from the file of this name.
    pub(crate) fn last(&self, path: &Path, step: Option<Step>) -> Option<Secrets> {
        let all = self.all();
        let of_it = |known: &&Known| known.step == step && known.file.path == path;
        all.iter().rfind(of_it).map(|known| known.secrets.clone())
    }

    pub(crate) fn keep(&self, file: Stamp, step: Option<Step>, secrets: Secrets) {
        let mut all = self.all();
        all.retain(|known| known.step != step || known.file.path != file.path);
        if all.len() == MOST {
            all.remove(0);
        }
        all.push(Known { file, step, secrets });
    }

    /// What came from this file is needed no longer.
    pub(crate) fn forget(&self, path: &Path) {
        self.all().retain(|known| known.file.path != path);
    }

    fn all(&self) -> MutexGuard<'_, Vec<Known>> {
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use outlast_secrets::SecretRules;

    use super::*;

    fn secrets(value: &str) -> Secrets {
        let env = [(OsStr::new("A_TOKEN"), OsStr::new(value))];
        Secrets::of(&SecretRules::default(), env, &[])
    }

    #[test]
    fn another_file_in_its_place_is_not_known() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("env.json");
        std::fs::File::create(&path).expect("it is ours");
        let look = || Stamp::of(path.clone()).expect("it is there").expect("it is a file");
        let known = KnownSecrets::default();
        let step = Some(Step::Attempt { turn: 1, attempt: 1 });
        known.keep(look(), step, secrets("s3cr3t-Xq7vT2"));
        let found = known.get(&look(), step).expect("it is the same file");
        assert_eq!(found.hide("s3cr3t-Xq7vT2"), "[A_TOKEN]");
        assert!(known.get(&look(), None).is_none(), "the token of a step is that step's");
        let other = dir.path().join("other");
        std::fs::File::create(&other).expect("it is ours");
        std::fs::rename(&other, &path).expect("it is ours");
        assert!(known.get(&look(), step).is_none(), "another file has that name now");
        assert!(known.last(&path, step).is_some() && known.last(&path, None).is_none());
        known.keep(look(), step, secrets("other"));
        known.forget(&path);
        assert!(known.get(&look(), step).is_none(), "its run has ended");
        assert!(Stamp::of(dir.path().to_owned()).expect("it is there").is_none());
    }

    #[test]
    fn there_is_room_for_a_few_and_the_oldest_goes() {
        let dir = tempfile::tempdir().expect("a directory");
        let known = KnownSecrets::default();
        let stamps: Vec<Stamp> = (0..=MOST)
            .map(|number| {
                let path = dir.path().join(number.to_string());
                std::fs::File::create(&path).expect("it is ours");
                Stamp::of(path).expect("it is there").expect("it is a file")
            })
            .collect();
        let (last, first) = stamps.split_last().expect("there are some");
        first.iter().for_each(|it| known.keep(it.clone(), None, Secrets::default()));
        assert!(known.get(&stamps[0], None).is_some());
        known.keep(last.clone(), None, Secrets::default());
        assert!(known.get(&stamps[0], None).is_some(), "it was asked for again");
        assert!(known.get(&stamps[1], None).is_none(), "the oldest");
        assert_eq!(known.all().len(), MOST);
    }
}
