//! Files that are put into a folder: which of them are whole, what each is called, and where it goes.
//!
//! The kernel says which file was closed or moved in; nothing is polled. What lay there before anybody
//! listened is looked at once, and again shortly after if it was being written a moment ago. Links, hidden
//! files and half-made ones are left alone.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::{DirBuilder, Metadata};
use std::future::pending;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use outlast_engine::Time;
use outlast_store::Delivery;
use serde_json::{Value, json};

use super::webhook::sha256;

/// Where files go before a run is made of them.
const TAKEN: &str = ".taken";
/// What nobody has written to for this long, and nobody was heard closing, is whole.
const SETTLED_MS: u64 = 2000;
/// Files that one look takes.
const MOST_FILES: usize = 1000;
/// How the names of files end that are being made.
const UNFINISHED: [&str; 7] = ["~", ".tmp", ".part", ".partial", ".crdownload", ".swp", ".lock"];

/// What a look at a folder found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) deliveries: Vec<Delivery>,
    /// Something may become whole without anybody being told.
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
        None => std::fs::read_dir(dir)?
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
            Err(error) => return Err(error),
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
    let mark = &sha256(id.as_bytes())[..8];
    let path = if leave { here.clone() } else { dir.join(TAKEN).join(format!("{mark}-{name}")) };
    let item = json!({
        "name": name,
        "path": path.to_string_lossy(),
        "found": here.to_string_lossy(),
        "file": identity,
        "bytes": metadata.len(),
    });
    Delivery { id, at: now, body: json!({ "item": item }).to_string() }
}

/// Why a file cannot be taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Untaken {
    /// Of this file.
    #[error("{0} is gone or was changed before a run was made of it")]
    Gone(String),
    #[error("cannot take files out of the folder: {0}")]
    Io(#[from] io::Error),
}

/// Moves the file to where its run will find it; one that is there already is fine. Blocks for a moment.
pub(crate) fn take(item: &Value) -> Result<(), Untaken> {
    let text = |key: &str| item[key].as_str().unwrap_or_default();
    let (found, path) = (Path::new(text("found")), Path::new(text("path")));
    let is_it = |at: &Path| {
        std::fs::symlink_metadata(at)
            .is_ok_and(|metadata| metadata.is_file() && identity(&metadata) == text("file"))
    };
    if is_it(path) {
        return Ok(());
    }
    if found == path || !is_it(found) {
        return Err(Untaken::Gone(text("found").to_owned()));
    }
    let taken = path.parent().ok_or_else(|| io::Error::other("it is nowhere"))?;
    match std::fs::symlink_metadata(taken) {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) => {
            return Err(io::Error::other(format!("{} is no directory", taken.display())).into());
        }
        Err(_) => DirBuilder::new().mode(0o700).create(taken)?,
    }
    Ok(std::fs::rename(found, path)?)
}

/// What the kernel says about the folders that are listened to.
#[derive(Default)]
pub(crate) struct Watch {
    #[cfg(target_os = "linux")]
    inotify: Option<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>,
    watched: BTreeMap<String, i32>,
    /// Files that were closed or moved in, by trigger; `None` if all have to be looked at.
    news: BTreeMap<String, Option<BTreeSet<OsString>>>,
}

impl Watch {
    /// What there is to look at of this trigger's folder: nothing, some names, or all of it.
    pub(crate) fn take_news(&mut self, trigger: &str) -> Option<Option<BTreeSet<OsString>>> {
        self.news.remove(trigger)
    }

    /// Has it looked at again whole.
    pub(crate) fn look_again(&mut self, trigger: &str) {
        self.news.insert(trigger.to_owned(), None);
    }

    /// Stops listening for whoever is not among these.
    pub(crate) fn keep_only(&mut self, is_wanted: impl Fn(&str) -> bool) {
        let unwanted: Vec<String> =
            self.watched.keys().filter(|name| !is_wanted(name)).cloned().collect();
        for name in unwanted {
            self.forget(&name);
        }
        if self.watched.is_empty() {
            self.close();
        }
    }
}

#[cfg(target_os = "linux")]
impl Watch {
    /// Listens to the folder, if it does not yet; all that lies in it is then news.
    pub(crate) fn listen(&mut self, trigger: &str, dir: &Path) -> io::Result<()> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

        if self.watched.contains_key(trigger) {
            return Ok(());
        }
        if self.inotify.is_none() {
            let inotify = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            self.inotify = Some(crate::world::readable(inotify)?);
        }
        let inotify = self.inotify.as_ref().expect("it was just made");
        let flags = WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        let watch = add_watch(inotify.get_ref(), dir, flags)?;
        self.watched.insert(trigger.to_owned(), watch);
        self.look_again(trigger);
        Ok(())
    }

    /// Returns when there is news of a folder.
    pub(crate) async fn changed(&mut self) {
        let Some(inotify) = &self.inotify else { return pending().await };
        loop {
            let Ok(mut ready) = inotify.readable().await else { return pending().await };
            let read = ready.try_io(|inotify| Ok(read(inotify.get_ref())?));
            match read {
                Ok(Ok(events)) => {
                    events.into_iter().for_each(|event| self.hear(event));
                    return;
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "cannot hear of folders; looking at all of them");
                    let names: Vec<String> = self.watched.keys().cloned().collect();
                    names.iter().for_each(|name| self.look_again(name));
                    return;
                }
                Err(_would_block) => {}
            }
        }
    }

    fn hear(&mut self, event: Event) {
        let of_watch = |watch: &i32| event.watch == -1 || *watch == event.watch;
        let names: Vec<String> = self
            .watched
            .iter()
            .filter(|(_, it)| of_watch(it))
            .map(|(name, _)| name.clone())
            .collect();
        for name in names {
            match (
                &event.what,
                self.news.entry(name.clone()).or_insert_with(|| Some(BTreeSet::new())),
            ) {
                (What::Closed(file), Some(files)) => drop(files.insert(file.clone())),
                (What::Closed(_), None) => {}
                (What::TooMuch, news) => *news = None,
                // It is listened to anew, if it is there.
                (What::Gone, _) => self.forget(&name),
            }
        }
    }

    fn forget(&mut self, trigger: &str) {
        if let (Some(watch), Some(inotify)) = (self.watched.remove(trigger), &self.inotify)
            && !self.watched.values().any(|other| *other == watch)
            && let Err(error) = rustix::fs::inotify::remove_watch(inotify.get_ref(), watch)
        {
            tracing::debug!(trigger, %error, "the folder was not listened to any more");
        }
        self.news.remove(trigger);
    }

    fn close(&mut self) {
        self.inotify = None;
    }
}

#[cfg(target_os = "linux")]
struct Event {
    watch: i32,
    what: What,
}

#[cfg(target_os = "linux")]
enum What {
    Closed(OsString),
    TooMuch,
    Gone,
}

/// Everything that can be read now, or that nothing can.
#[cfg(target_os = "linux")]
fn read(inotify: &std::os::fd::OwnedFd) -> rustix::io::Result<Vec<Event>> {
    use rustix::fs::inotify::{ReadFlags, Reader};
    use rustix::io::Errno;

    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut reader = Reader::new(inotify, &mut buffer);
    let mut events = Vec::new();
    loop {
        let event = match reader.next() {
            Ok(event) => event,
            Err(Errno::WOULDBLOCK) if !events.is_empty() => return Ok(events),
            Err(error) => return Err(error),
        };
        let what = match event.file_name() {
            _ if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => What::TooMuch,
            Some(name) => What::Closed(OsString::from_vec(name.to_bytes().to_vec())),
            None => What::Gone,
        };
        events.push(Event { watch: event.wd(), what });
    }
}

/// Untested here: without the kernel's word, a folder is looked at when the daemon starts.
#[cfg(not(target_os = "linux"))]
impl Watch {
    pub(crate) fn listen(&mut self, trigger: &str, _: &Path) -> io::Result<()> {
        if self.watched.insert(trigger.to_owned(), 0).is_none() {
            self.look_again(trigger);
        }
        Ok(())
    }

    pub(crate) async fn changed(&mut self) {
        pending().await
    }

    fn forget(&mut self, trigger: &str) {
        self.watched.remove(trigger);
        self.news.remove(trigger);
    }

    fn close(&mut self) {}
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
