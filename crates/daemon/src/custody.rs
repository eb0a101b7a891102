//! Keeps the journal's files in place while the daemon lives.
//!
//! The store checks the files with every commit, before it acknowledges one. This task covers a daemon that has
//! nothing to commit: the kernel reports that a file was moved or removed, and the store puts it back while its
//! content is still open. The task looks at no other time. When the store has lost its files for good, the daemon
//! leaves, and the next daemon serves what is in their place.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use outlast_home::layout::Layout;
use outlast_store::{Depth, Error};
use outlast_wire::codes::Code;

use crate::ground::Ground;
use crate::lanes::Lane;
use crate::refusal::Refusal;
use crate::world::file_watch::{FileWatch, Heed};
use crate::world::files;

/// Between two tries to save what is open, for which there was no room perhaps.
const RETRY: Duration = Duration::from_secs(5);
/// A hand that removes one of the files may be about to remove the others, too.
const SETTLE: Duration = Duration::from_millis(50);

/// Sees to the files for the daemon's life.
pub(crate) async fn keep(ground: &Ground) -> Infallible {
    let mut said = 0;
    let mut depth = Depth::Names;
    loop {
        let (database, log) = (ground.layout.database(), log(&ground.layout));
        let database = FileWatch::of(&[(&database, Heed::Writers)]);
        let log = FileWatch::of(&[(&log, Heed::Writers), (&ground.layout.state, Heed::Name)]);
        let seen = look(ground, depth).await;
        let mended = ground.store.mended();
        for words in mended.iter().skip(said) {
            tracing::error!(%words, "the journal was taken away");
        }
        said = mended.len();
        depth = match seen {
            Ok(()) => tokio::select! {
                () = database.changed() => Depth::Pages,
                () = log.changed() => Depth::Names,
            },
            Err(error) => {
                ground.heed_store(&error);
                tracing::error!(%error, "nothing is acknowledged until the journal is in its place");
                tokio::time::sleep(RETRY).await;
                Depth::Names
            }
        };
        tokio::time::sleep(SETTLE).await;
    }
}

async fn look(ground: &Ground, depth: Depth) -> Result<(), Error> {
    let store = ground.store.clone();
    let looked = Lane::Steps.run(move || store.see_to_files(depth)).await;
    looked.unwrap_or_else(|error| Err(Error::Io(format!("cannot look at the journal: {error}"))))
}

fn log(layout: &Layout) -> PathBuf {
    // The log is beside the file that a link leads to.
    let database = layout.database();
    let mut log = database.canonicalize().unwrap_or(database).into_os_string();
    log.push("-wal");
    log.into()
}

/// A journal that cannot be read may have been put in the place of one that was saved.
pub(crate) fn name_rescued(layout: &Layout, refusal: Refusal) -> Refusal {
    let (Some(copy), Code::DatabaseCorrupt | Code::DatabaseUnusable) =
        (rescued(layout).pop(), refusal.code)
    else {
        return refusal;
    };
    refusal.hint(format!(
        "the file was left as it is; what the last daemon had open is saved in {}: move outlast.db and its -wal away, and the copy to outlast.db",
        copy.display()
    ))
}

/// The copies that daemons have saved beside the journal.
pub(crate) fn rescued(layout: &Layout) -> Vec<PathBuf> {
    let mut start: OsString = layout.database().file_name().unwrap_or_default().to_owned();
    start.push(".rescued-");
    let start = start.to_string_lossy().into_owned();
    let is_copy = |name: &OsString| {
        name.to_str()
            .and_then(|name| name.strip_prefix(&start))
            .is_some_and(|number| number.parse::<u32>().is_ok())
    };
    // A state directory that cannot be read is said by those who need it.
    let mut found: Vec<PathBuf> = files::names(&layout.state)
        .unwrap_or_default()
        .into_iter()
        .filter(is_copy)
        .map(|name| layout.state.join(name))
        .collect();
    found.sort();
    found
}
