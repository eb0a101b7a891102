//! The operator's `config.toml`: its last valid content.
//!
//! The file is read again when it has changed, before it is used. A run that goes on keeps what it was made with. An
//! invalid file changes nothing, and `doctor` shows why; with a file that was never valid no run starts.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::SecretRules;
use outlast_workflow::{Config, LastGood, News, Problem, Source, Stamp};
use tokio::sync::watch;

use crate::world::files;

/// More than this is not even read; what is wrong with less is said when it is.
const LARGEST_CONFIG: usize = 16 << 20;

pub(crate) struct Settings {
    path: PathBuf,
    loaded: Mutex<Loaded>,
    /// How often another config than the one before has been taken.
    changes: watch::Sender<u64>,
}

struct Loaded {
    /// Shared with whatever goes by it: ten thousand sinks are not copied for each run.
    config: LastGood<Arc<Config>>,
    warnings: Vec<Problem>,
}

impl Settings {
    /// No file is an empty one.
    pub(crate) fn read(path: PathBuf) -> Self {
        let loaded = Loaded { config: LastGood::new(&path), warnings: Vec::new() };
        Self { path, loaded: Mutex::new(loaded), changes: watch::Sender::new(0) }
    }

    /// What holds for whatever starts now; what is wrong with the file if it never was right, because what an
    /// operator forbids there must not be allowed for a slip of the pen.
    pub(crate) fn current(&self) -> Result<Arc<Config>, Vec<Problem>> {
        let mut loaded = self.lock();
        let stamp = stamp(&self.path);
        if loaded.config.is_news(stamp.as_ref().ok()) {
            self.reload(&mut loaded, stamp);
        }
        loaded.config.good().cloned().ok_or_else(|| loaded.config.problems().to_vec())
    }

    /// Which variables are secret now; the rule that is built in while no config was valid.
    pub(crate) fn secret_rules(&self) -> SecretRules {
        self.current().map(|config| config.secrets.clone()).unwrap_or_default()
    }

    fn reload(&self, loaded: &mut Loaded, stamp: io::Result<Stamp>) {
        let read = match &stamp {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            _ => files::read_regular(&self.path, LARGEST_CONFIG).map_err(|error| error.kind()),
        };
        let Loaded { config, warnings } = loaded;
        let path = &self.path;
        let mut noted = Vec::new();
        let news = config.reload(stamp.ok(), read, |text| {
            let (config, warned) = Config::parse(&Source { path, text })?;
            noted = warned;
            Ok(Arc::new(config))
        });
        match news {
            News::None => {}
            News::Changed => {
                tracing::info!(path = %path.display(), "config read");
                *warnings = noted;
                self.changes.send_modify(|count| *count += 1);
            }
            News::Refused => {
                for problem in config.problems() {
                    tracing::error!(%problem, "config refused");
                }
            }
        }
    }

    /// Wakes the tasks that follow the config when another one has been taken.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// What is wrong with the file as it is now; the last good one holds meanwhile.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        let _reloaded = self.current();
        self.lock().config.problems().to_vec()
    }

    pub(crate) fn warnings(&self) -> Vec<Problem> {
        self.lock().warnings.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        // Nothing panics while it holds this.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = std::fs::metadata(path)?;
    Ok(Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
            + i128::from(metadata.mtime_nsec()),
    })
}
