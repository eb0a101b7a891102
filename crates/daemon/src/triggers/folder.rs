//! Files that are put into a folder: which of them are whole, what each is called, and where it goes.
//!
//! The kernel says which file was closed or moved in; nothing is polled. What lay there before the trigger
//! listened is looked at once, and again shortly after if it was being written a moment ago. Links, hidden
//! files and half-made ones are left alone.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use outlast_engine::Time;
use outlast_store::Delivery;
use outlast_wire::again;
use rustix::fs::{Access, access};
use serde_json::{Value, json};

use super::webhook::sha256;

/// Where files go before a run is made of them.
const TAKEN: &str = ".taken";
/// A file that no process has written to for this long is whole, also if no close was heard.
const SETTLED_MS: u64 = 2000;
/// No name on the file systems that we meet is longer, in bytes.
const LONGEST_NAME: usize = 255;
const LONGEST_EXTENSION: usize = 16;
/// Files that one look takes.
const MOST_FILES: usize = 1000;
/// How the names of files end that are being made.
const UNFINISHED: [&str; 7] = ["~", ".tmp", ".part", ".partial", ".crdownload", ".swp", ".lock"];

/// What a look at a folder found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) deliveries: Vec<Delivery>,
    /// A file may become whole without an event.
    pub(crate) look_again_at: Option<Time>,
}

/// All files of the folder that are whole, or those of these names, which are. Blocks.
pub(crate) fn look(
    dir: &Path,
    leave: bool,
    closed: Option<&BTreeSet<OsString>>,
    now: Time,
) -> io::Result<Found> {
    let mut found = Found::default();
    let mut names: Vec<OsString> = match closed {
        Some(names) => names.iter().cloned().collect(),
        None => again::read_dir(dir)?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect::<io::Result<_>>()?,
    };
    names.sort();
    for name in names {
        let Some(name) = name.to_str().filter(|name| is_wanted(name)) else { continue };
        let metadata = match std::fs::symlink_metadata(dir.join(name)) {
            Ok(metadata) if metadata.is_file() => metadata,
            Ok(_) => continue,
            // It went away again.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            // Of this file alone: it is refused where the others are taken, and another when it can be looked at.
            Err(error) => {
                found.deliveries.push(unusable(name, &error, now));
                continue;
            }
        };
        let modified = modified_ms(&metadata);
        let age_ms = now.0.checked_sub(modified);
        if closed.is_none() && age_ms.is_some_and(|age| age < SETTLED_MS) {
            found.look_again_at = Some(now.plus_ms(SETTLED_MS));
            continue;
        }
        if found.deliveries.len() == MOST_FILES {
            found.look_again_at = Some(now);
            break;
        }
        found.deliveries.push(delivery(dir, name, &metadata, leave, now));
    }
    Ok(found)
}

fn is_wanted(name: &str) -> bool {
    !name.starts_with('.') && !UNFINISHED.iter().any(|end| name.ends_with(end))
}

fn modified_ms(metadata: &Metadata) -> u64 {
    u64::try_from(metadata.mtime() * 1000 + metadata.mtime_nsec() / 1_000_000).unwrap_or(0)
}

/// The same file is the same delivery, and a changed one is another.
fn identity(metadata: &Metadata) -> String {
    let (seconds, ns) = (metadata.mtime(), metadata.mtime_nsec());
    format!("{}-{seconds}.{ns:09}-{}", metadata.ino(), metadata.len())
}

fn delivery(dir: &Path, name: &str, metadata: &Metadata, leave: bool, now: Time) -> Delivery {
    let identity = identity(metadata);
    let id = format!("{name}@{identity}");
    let here = dir.join(name);
    let path = if leave { here.clone() } else { dir.join(TAKEN).join(taken_name(name, &id)) };
    let item = json!({
        "name": name,
        "path": path.to_string_lossy(),
        "found": here.to_string_lossy(),
        "file": identity,
        "bytes": metadata.len(),
    });
    Delivery { id, at: now, body: json!({ "item": item }).to_string() }
}

/// What a file is called once it is taken: by its own name, or by its hash if the two would be too long together.
fn taken_name(name: &str, id: &str) -> String {
    let hash = sha256(id.as_bytes());
    let whole = format!("{}-{name}", &hash[..8]);
    if whole.len() <= LONGEST_NAME {
        return whole;
    }
    let extension = Path::new(name).extension().and_then(|it| it.to_str());
    match extension.filter(|it| it.len() <= LONGEST_EXTENSION) {
        Some(extension) => format!("{hash}.{extension}"),
        None => hash,
    }
}

/// A file that cannot even be looked at.
fn unusable(name: &str, error: &io::Error, now: Time) -> Delivery {
    let item = json!({ "name": name, "unusable": error.to_string() });
    Delivery { id: format!("{name}@unusable"), at: now, body: json!({ "item": item }).to_string() }
}

/// Why a file cannot be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untaken {
    /// Of this file.
    #[error("{0} is gone or was changed before its run started")]
    Gone(String),
    /// Of this file, too; the others are not held up by it.
    #[error("{name} cannot be taken: {error}")]
    Unusable { name: String, error: String },
    /// Of the folder.
    #[error("cannot take files out of the folder: {0}")]
    Io(#[from] io::Error),
}

/// Moves the file to where its run will find it; one that is there already is fine. Blocks for a moment.
pub(crate) fn take(item: &Value) -> Result<(), Untaken> {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    let unusable = |error: &dyn std::fmt::Display| Untaken::Unusable {
        name: text("name").to_owned(),
        error: error.to_string(),
    };
    if let Some(error) = item["unusable"].as_str() {
        return Err(unusable(&error));
    }
    let (found, path) = (Path::new(text("found")), Path::new(text("path")));
    let is_it = |at: &Path| {
        std::fs::symlink_metadata(at)
            .is_ok_and(|metadata| metadata.is_file() && identity(&metadata) == text("file"))
    };
    if found != path && is_it(path) {
        return Ok(());
    }
    if !is_it(found) {
        return Err(Untaken::Gone(text("found").to_owned()));
    }
    // What we cannot read, no run of ours can.
    access(found, Access::READ_OK).map_err(|error| unusable(&io::Error::from(error)))?;
    if found == path {
        return Ok(());
    }
    let taken = path.parent().ok_or_else(|| io::Error::other("it has no directory"))?;
    match std::fs::symlink_metadata(taken) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            return Err(io::Error::other(format!("{} is not a directory", taken.display())).into());
        }
        Err(_) => outlast_home::directory::only_private_dir(taken)?,
    }
    match std::fs::rename(found, path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Untaken::Gone(text("found").to_owned()))
        }
        Err(error) if is_of_folder(&error, taken) => Err(error.into()),
        Err(error) => Err(unusable(&error)),
    }
}

/// True if no file can be taken just now: there is no room, or no right to write into the folder. In a folder
/// that is shared, one file of another user may not be moved while the others may.
fn is_of_folder(error: &io::Error, taken: &Path) -> bool {
    use io::ErrorKind as Kind;

    match error.kind() {
        Kind::PermissionDenied => {
            let may = Access::WRITE_OK | Access::EXEC_OK;
            let folder = taken.parent().unwrap_or(taken);
            access(folder, may).is_err() || access(taken, may).is_err()
        }
        Kind::StorageFull
        | Kind::QuotaExceeded
        | Kind::ReadOnlyFilesystem
        | Kind::OutOfMemory
        | Kind::Interrupted
        | Kind::StaleNetworkFileHandle => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(dir: &Path, name: &str) {
        File::create(dir.join(name)).expect("the directory is ours");
    }

    fn ids(found: &Found) -> Vec<String> {
        let name =
            |delivery: &Delivery| delivery.id.split('@').next().unwrap_or_default().to_owned();
        found.deliveries.iter().map(name).collect()
    }

    const LATER: Time = Time(u64::MAX / 2);

    #[test]
    fn only_whole_files_of_its_own_are_found() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["a", "b.txt", ".hidden", "c.tmp", "d~", "e.part"] {
            put(dir.path(), name);
        }
        symlink("a", dir.path().join("link")).expect("the directory is ours");
        std::fs::create_dir(dir.path().join("folder")).expect("the directory is ours");
        let found = look(dir.path(), false, None, LATER).expect("it can be read");
        assert_eq!(
            (ids(&found), found.look_again_at),
            (vec!["a".to_owned(), "b.txt".to_owned()], None)
        );
    }

    #[test]
    fn what_was_just_written_and_not_heard_of_is_looked_at_again() {
        let dir = tempfile::tempdir().expect("a directory");
        put(dir.path(), "a");
        let metadata = std::fs::metadata(dir.path().join("a")).expect("it is there");
        let now = Time(modified_ms(&metadata) + 100);
        let found = look(dir.path(), false, None, now).expect("it can be read");
        assert_eq!(found, Found { deliveries: Vec::new(), look_again_at: Some(now.plus_ms(2000)) });
        let closed = BTreeSet::from(["a".into(), "gone".into()]);
        let found = look(dir.path(), false, Some(&closed), now).expect("it can be read");
        assert_eq!(ids(&found), ["a"]);
    }

    #[test]
    fn a_file_is_taken_once_and_a_changed_one_is_another() {
        let dir = tempfile::tempdir().expect("a directory");
        put(dir.path(), "a");
        let one = |found: &Found| -> Value {
            let body: Value = serde_json::from_str(&found.deliveries[0].body).expect("it is JSON");
            body["item"].clone()
        };
        let found = look(dir.path(), false, None, LATER).expect("it can be read");
        let item = one(&found);
        take(&item).expect("it is there");
        take(&item).expect("it was taken already");
        assert!(!dir.path().join("a").exists());
        assert!(Path::new(item["path"].as_str().expect("a path")).is_file());
        put(dir.path(), "a");
        let again = look(dir.path(), false, None, LATER).expect("it can be read");
        assert_ne!(found.deliveries[0].id, again.deliveries[0].id);
        std::fs::remove_file(dir.path().join("a")).expect("it is ours");
        assert!(matches!(take(&one(&again)), Err(Untaken::Gone(_))));
    }

    #[test]
    fn a_name_at_its_longest_is_taken_under_another() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["x".repeat(255), format!("{}.json", "é".repeat(125)), "y".repeat(246)] {
            put(dir.path(), &name);
            let found = look(dir.path(), false, None, LATER).expect("it can be read");
            let body: Value = serde_json::from_str(&found.deliveries[0].body).expect("it is JSON");
            take(&body["item"]).expect("it has a name that fits");
            take(&body["item"]).expect("and is known by it");
            let taken = body["item"]["path"].as_str().expect("a path");
            assert!(Path::new(taken).is_file(), "{taken}");
            assert_eq!(Path::new(taken).extension(), Path::new(&name).extension());
        }
    }

    #[test]
    fn where_files_go_cannot_be_led_elsewhere() {
        let (dir, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        put(dir.path(), "a");
        symlink(other.path(), dir.path().join(TAKEN)).expect("the directory is ours");
        let found = look(dir.path(), false, None, LATER).expect("it can be read");
        let body: Value = serde_json::from_str(&found.deliveries[0].body).expect("it is JSON");
        assert!(matches!(take(&body["item"]), Err(Untaken::Io(_))));
        assert!(dir.path().join("a").exists());
    }
}
