//! The operator's `config.toml`: its last valid content.
//!
//! The file is read again when it has changed, before it is used. A run that goes on keeps what it was made with. An
//! invalid file changes nothing, and `doctor` shows why; with a file that was never valid no run starts.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::SecretRules;
use outlast_home::directory::broken_link;
use outlast_workflow::{
    Config, LastGood, News, Problem, Refused, Source, Stamp, behind_broken_link,
};
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
    /// When the file was written whose settings hold; `None` if none was there.
    written_at: Option<Stamp>,
}

impl Settings {
    /// No file is an empty one.
    pub(crate) fn read(path: PathBuf) -> Self {
        let config = LastGood::new(&path);
        let loaded = Loaded { config, warnings: Vec::new(), written_at: None };
        Self { path, loaded: Mutex::new(loaded), changes: watch::Sender::new(0) }
    }

    /// Where the file is, or would be.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What holds for whatever starts now; what is wrong with the file if it never was right, because what an
    /// operator forbids there must not be allowed for a slip of the pen.
    pub(crate) fn current(&self) -> Result<Arc<Config>, Refused> {
        let mut loaded = self.lock();
        let stamp = stamp(&self.path);
        if loaded.config.is_news(stamp.as_ref().ok()) {
            self.reload(&mut loaded, stamp);
        }
        loaded.config.good().cloned().ok_or_else(|| Refused {
            errors: loaded.config.problems().to_vec(),
            warnings: loaded.warnings.clone(),
        })
    }

    /// Which variables are secret now; the rule that is built in while no config was valid.
    pub(crate) fn secret_rules(&self) -> SecretRules {
        self.current().map(|config| config.secrets.clone()).unwrap_or_default()
    }

    fn reload(&self, loaded: &mut Loaded, stamp: io::Result<Stamp>) {
        if let Some(link) = broken_link(&self.path) {
            let problem = behind_broken_link(&self.path, &link);
            if loaded.config.refuse(stamp.ok(), problem.clone()) == News::Refused {
                tracing::error!(%problem, "config refused");
            }
            return;
        }
        let read = match &stamp {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            _ => files::read_regular(&self.path, LARGEST_CONFIG).map_err(|error| error.kind()),
        };
        let Loaded { config, warnings, written_at } = loaded;
        let path = &self.path;
        let mut noted = Vec::new();
        let stamp = stamp.ok();
        let news = config.reload(stamp, read, |text| match Config::parse(&Source { path, text }) {
            Ok((config, warned)) => {
                noted = warned;
                Ok(Arc::new(config))
            }
            Err(refused) => {
                noted = refused.warnings;
                Err(refused.errors)
            }
        });
        match news {
            News::None => {}
            News::Changed => {
                tracing::info!(path = %path.display(), "config read");
                *warnings = noted;
                *written_at = stamp;
                self.changes.send_modify(|count| *count += 1);
            }
            News::Refused => {
                *warnings = noted;
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

    /// One line for a client that starts something while the file is wrong and older settings hold.
    pub(crate) fn remark(&self) -> Option<String> {
        let problems = self.problems();
        let first = problems.first()?;
        let name = self.path.file_name().map_or_else(Default::default, OsStr::to_string_lossy);
        let first = Problem { file: name.into(), ..first.clone() };
        let more = match problems.len() {
            1 => String::new(),
            many => format!(" ({} more)", many - 1),
        };
        let holding = match self.lock().written_at.and_then(|stamp| written(&stamp)) {
            Some(at) => format!("the settings of {at} still hold"),
            None => "none of its settings hold".to_owned(),
        };
        Some(format!("{first}{more}; {holding}\nhint: outlast doctor"))
    }

    pub(crate) fn warnings(&self) -> Vec<Problem> {
        self.lock().warnings.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Loaded> {
        // Nothing panics while it holds this.
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a version of the file was written, in local time.
fn written(stamp: &Stamp) -> Option<String> {
    let seconds = i64::try_from(stamp.modified_ns / 1_000_000_000).ok()?;
    let at = jiff::Timestamp::from_second(seconds).ok()?;
    Some(at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M").to_string())
}

fn stamp(path: &Path) -> io::Result<Stamp> {
    let metadata = std::fs::metadata(path).or_else(|error| match broken_link(path) {
        // Otherwise a file that was never there and one that is lost would look the same.
        Some(link) => std::fs::symlink_metadata(link),
        None => Err(error),
    })?;
    Ok(Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        bytes: metadata.len(),
        modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
            + i128::from(metadata.mtime_nsec()),
    })
}
