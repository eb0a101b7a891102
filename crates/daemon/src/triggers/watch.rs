//! Which folders are listened to, and what the kernel has said about each.
//!
//! Nothing is polled, and an event costs what the triggers of its folder cost, however many there are. Looks into
//! no folder itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the kernel says about the folders that are listened to.
#[derive(Default)]
pub(crate) struct Watch {
    #[cfg(target_os = "linux")]
    inotify: Option<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>>,
    /// What each trigger listens to: its folder, and the kernel's number for it.
    watched: BTreeMap<Arc<str>, (PathBuf, i32)>,
    /// The same by number: folders that are one have one.
    listeners: BTreeMap<i32, BTreeSet<Arc<str>>>,
    /// Files that were closed or moved in, by trigger; `None` if all have to be looked at.
    news: BTreeMap<Arc<str>, Option<BTreeSet<OsString>>>,
}

impl Watch {
    /// What there is to look at of this trigger's folder: nothing, some names, or all of it.
    pub(crate) fn take_news(&mut self, trigger: &str) -> Option<Option<BTreeSet<OsString>>> {
        self.news.remove(trigger)
    }

    /// Has it looked at again whole.
    pub(crate) fn look_again(&mut self, trigger: &Arc<str>) {
        self.news.insert(trigger.clone(), None);
    }

    /// Stops listening for this trigger.
    pub(crate) fn leave(&mut self, trigger: &str) {
        if self.watched.contains_key(trigger) {
            self.forget(trigger);
            if self.watched.is_empty() {
                self.close();
            }
        }
        self.news.remove(trigger);
    }

    /// The number of the trigger's folder, if no other trigger listens to it.
    fn unlisten(&mut self, trigger: &str) -> Option<i32> {
        let (_, number) = self.watched.remove(trigger)?;
        let others = self.listeners.get_mut(&number)?;
        others.remove(trigger);
        if !others.is_empty() {
            return None;
        }
        self.listeners.remove(&number);
        Some(number)
    }
}

#[cfg(target_os = "linux")]
impl Watch {
    /// Listens to the folder, if it does not yet; all that lies in it is then news.
    pub(crate) fn listen(&mut self, trigger: &Arc<str>, dir: &Path) -> io::Result<()> {
        use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};

        match self.watched.get(trigger) {
            Some((listened, _)) if listened == dir => return Ok(()),
            // A trigger of that name was removed, and another was added.
            Some(_) => self.leave(trigger),
            None => {}
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
        self.watched.insert(trigger.clone(), (dir.to_owned(), watch));
        self.listeners.entry(watch).or_default().insert(trigger.clone());
        self.look_again(trigger);
        Ok(())
    }

    /// The triggers to look at, when there is news of their folders.
    pub(crate) async fn changed(&mut self) -> BTreeSet<Arc<str>> {
        let Some(inotify) = &self.inotify else { return pending().await };
        loop {
            let Ok(mut ready) = inotify.readable().await else { return pending().await };
            let read = ready.try_io(|inotify| Ok(read(inotify.get_ref())?));
            match read {
                Ok(Ok(events)) => {
                    return events.into_iter().flat_map(|event| self.hear(&event)).collect();
                }
                Ok(Err(error)) => {
                    tracing::error!(%error, "cannot hear of folders; looking at all of them");
                    let all: BTreeSet<Arc<str>> = self.watched.keys().cloned().collect();
                    all.iter().for_each(|name| self.look_again(name));
                    return all;
                }
                Err(_would_block) => {}
            }
        }
    }

    /// The triggers that the event is news for.
    fn hear(&mut self, event: &Event) -> BTreeSet<Arc<str>> {
        let names = match event.watch {
            // Of all of them.
            -1 => self.watched.keys().cloned().collect(),
            number => self.listeners.get(&number).cloned().unwrap_or_default(),
        };
        for name in &names {
            match (
                &event.what,
                self.news.entry(name.clone()).or_insert_with(|| Some(BTreeSet::new())),
            ) {
                (What::Closed(file), Some(files)) => drop(files.insert(file.clone())),
                (What::Closed(_), None) => {}
                (What::TooMuch, news) => *news = None,
                // It is listened to anew, if it is there.
                (What::Gone, _) => self.forget(name),
            }
        }
        names
    }

    fn forget(&mut self, trigger: &str) {
        if let (Some(watch), Some(inotify)) = (self.unlisten(trigger), &self.inotify)
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
    pub(crate) fn listen(&mut self, trigger: &Arc<str>, dir: &Path) -> io::Result<()> {
        let listened = (dir.to_owned(), 0);
        if self.watched.insert(trigger.clone(), listened.clone()) != Some(listened) {
            self.look_again(trigger);
        }
        Ok(())
    }

    pub(crate) async fn changed(&mut self) -> BTreeSet<Arc<str>> {
        pending().await
    }

    fn forget(&mut self, trigger: &str) {
        self.unlisten(trigger);
        self.news.remove(trigger);
    }

    fn close(&mut self) {}
}
