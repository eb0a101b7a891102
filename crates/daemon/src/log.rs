//! The daemon's own log: one file, bounded, with one older file beside it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::Level;
use tracing_subscriber::fmt::MakeWriter;

/// The log is turned over at this size, so the two files never take more than twice that.
const MOST_BYTES: u64 = 8 << 20;

pub(crate) struct Log {
    path: PathBuf,
    open: Mutex<Open>,
}

struct Open {
    file: File,
    bytes: u64,
}

/// Sends what the daemon has to say to the file at `path`.
pub(crate) fn start(path: &Path) -> io::Result<()> {
    let log = Log { path: path.to_owned(), open: Mutex::new(open(path)?) };
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(Level::INFO)
        .with_ansi(false)
        .with_target(false)
        .with_writer(log)
        .finish();
    tracing::subscriber::set_global_default(subscriber).map_err(io::Error::other)
}

fn open(path: &Path) -> io::Result<Open> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let bytes = file.metadata()?.len();
    Ok(Open { file, bytes })
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { log: self }
    }
}

pub(crate) struct Line<'a> {
    log: &'a Log,
}

impl Write for Line<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut open = self.log.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.bytes >= MOST_BYTES {
            std::fs::rename(&self.log.path, self.log.path.with_extension("log.1"))?;
            *open = self::open(&self.log.path)?;
        }
        open.file.write_all(text)?;
        open.bytes += text.len() as u64;
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
