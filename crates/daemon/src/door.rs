//! The way in: the lock that names this daemon, and the socket that the lock names.
//!
//! Any process of this user can remove or empty either file: a session that ends removes the runtime directory, a
//! cleaner removes the lock. The kernel reports that, or a client that found the socket dead does (SIGHUP). The door
//! then makes the file again and names it in the lock. It touches no file of another daemon: it leaves a socket alone
//! that another daemon listens on, and a daemon that lost its lock to another one leaves.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_home::holder::{Holder, Left};
use outlast_home::layout::Layout;
use rustix::io::Errno;
#[cfg(target_os = "linux")]
use rustix::net::SocketFlags;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};
use tokio::net::UnixListener;
use tokio::sync::{Notify, mpsc};

use crate::ground::Ground;
use crate::instance::Instance;
use crate::leaving::Leaving;
use crate::refusal::Refusal;
use crate::world::file_watch::{FileWatch, Heed};
use crate::world::{files, limits};
use outlast_home::socket::ShortPath;

/// A removal that has begun may go on with the directory, so nothing is put back in the middle of it.
const SETTLE: Duration = Duration::from_millis(200);
/// A lock that is looked at is held for an instant, and a daemon that was just killed may still seem to listen.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

pub(crate) struct Door {
    layout: Layout,
    instance: Instance,
    holder: Holder,
    bound: Option<Bound>,
}

/// A socket that we listen on, as a file. No other file has its inode number while we listen.
#[derive(Debug)]
struct Bound {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// What came of looking at the two files.
enum Looked {
    Whole,
    Mended,
    /// Another daemon holds the lock.
    Lost,
}

impl Door {
    pub(crate) fn new(layout: &Layout, instance: Instance, holder: Holder) -> Self {
        Self { layout: layout.clone(), instance, holder, bound: None }
    }

    pub(crate) fn say_epoch(&mut self, epoch: u64) -> io::Result<()> {
        self.holder.epoch = Some(epoch);
        self.instance.say_who(&self.holder)
    }

    /// Listens: in the runtime directory, or else in the state directory. The lock names the place.
    pub(crate) async fn open(&mut self) -> io::Result<UnixListener> {
        let wanted = self.layout.socket();
        let (listener, bound) = match bind(&wanted, Rival::MayListen).await {
            Ok(opened) => opened,
            Err(error) => {
                tracing::warn!(path = %wanted.display(), %error, "cannot listen there; listening in the state directory");
                // The lock is ours, so what listens there belongs to a daemon that has lost it.
                bind(&self.layout.state_socket(), Rival::HasLost).await?
            }
        };
        self.holder.socket = Some(bound.path.clone().into_os_string().into());
        self.bound = Some(bound);
        self.instance.say_who(&self.holder)?;
        Ok(listener)
    }

    /// Where we listen.
    pub(crate) fn socket(&self) -> PathBuf {
        self.bound.as_ref().map_or_else(|| self.layout.socket(), |bound| bound.path.clone())
    }

    /// Keeps both files in place. Looks when the kernel or a client says that something happened, and at no other
    /// time.
    pub(crate) async fn keep(
        &mut self,
        ground: &Ground,
        listeners: &mpsc::Sender<UnixListener>,
        nudged: &Notify,
    ) {
        loop {
            let watch = self.watch();
            match self.look(ground, listeners).await {
                Ok(Looked::Whole) => tokio::select! {
                    () = watch.changed() => {}
                    () = nudged.notified() => {}
                },
                Ok(Looked::Mended) => {}
                Ok(Looked::Lost) => {
                    tracing::error!("the lock's file was replaced, and another daemon holds it");
                    return ground.leave(Leaving::Fenced);
                }
                Err(error) => {
                    tracing::error!(%error, "cannot put the lock or the socket back; the next client has it tried again");
                    nudged.notified().await;
                }
            }
            tokio::time::sleep(SETTLE).await;
        }
    }

    fn watch(&self) -> FileWatch {
        let lock = self.layout.daemon_lock();
        let socket = self.socket();
        let dir = socket.parent().unwrap_or(&self.layout.state);
        FileWatch::of(&[(&socket, Heed::Name), (dir, Heed::Name), (&lock, Heed::Words)])
    }

    async fn look(
        &mut self,
        ground: &Ground,
        listeners: &mpsc::Sender<UnixListener>,
    ) -> io::Result<Looked> {
        let lock = self.layout.daemon_lock();
        let mut looked = Looked::Whole;
        if !self.instance.is_at(&lock)? {
            let Some(instance) = take_anew(&lock).await? else { return Ok(Looked::Lost) };
            self.instance = instance;
            self.instance.say_who(&self.holder)?;
            tracing::warn!(path = %lock.display(), "the lock's file was removed; made anew");
            looked = Looked::Mended;
        } else if !self.instance.says(&self.holder)? {
            self.instance.say_who(&self.holder)?;
            tracing::warn!(path = %lock.display(), "the lock's file did not name this daemon; written anew");
            looked = Looked::Mended;
        }
        if !self.bound.as_ref().is_some_and(Bound::is_there) {
            let was = self.socket();
            let listener = self.open().await?;
            tracing::warn!(was = %was.display(), now = %self.socket().display(), "the socket was removed; listening anew");
            ground.listens_at(self.socket());
            // The server takes it at once; there is none only when we are leaving.
            let _leaving = listeners.send(listener).await;
            looked = Looked::Mended;
        }
        Ok(looked)
    }

    /// Has the lock say how we leave, and removes the socket if it is still ours. A fenced daemon does neither.
    pub(crate) fn close(&mut self, left: Leaving) {
        self.holder.left = match left {
            Leaving::Fenced => return,
            Leaving::Asked => Some(Left::Stopped),
            Leaving::Replaced => Some(Left::Replaced),
            // As a daemon that has died: it was not asked to be down, so another one is started.
            Leaving::Parted => None,
        };
        if let Err(error) = self.instance.say_who(&self.holder) {
            tracing::warn!(%error, "cannot say in the lock how this daemon leaves");
        }
        let Some(bound) = self.bound.as_ref().filter(|bound| bound.is_there()) else { return };
        if let Err(error) = files::remove(&bound.path) {
            tracing::error!(%error, "cannot remove the socket");
        }
    }
}

impl Bound {
    fn at(path: &Path) -> io::Result<Self> {
        let file = std::fs::symlink_metadata(path)?;
        Ok(Self { path: path.to_owned(), device: file.dev(), inode: file.ino() })
    }

    fn is_there(&self) -> bool {
        std::fs::symlink_metadata(&self.path)
            .is_ok_and(|file| (file.dev(), file.ino()) == (self.device, self.inode))
    }
}

/// What may be listening where we want to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rival {
    /// A daemon of another state directory, which is left alone.
    MayListen,
    /// Only a daemon that has lost our lock.
    HasLost,
}

async fn bind(socket: &Path, rival: Rival) -> io::Result<(UnixListener, Bound)> {
    let dir = socket.parent().ok_or(io::ErrorKind::InvalidInput)?;
    if rival == Rival::MayListen {
        own_dir(dir)?;
    }
    let short = ShortPath::of(socket)?;
    if rival == Rival::MayListen && is_served(short.path()).await? {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another daemon listens there"));
    }
    match std::fs::symlink_metadata(socket) {
        Ok(file) if file.file_type().is_socket() => files::remove(socket)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is not a socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = limits::closed_first(net::UnixListener::bind(short.path())?);
    std::fs::set_permissions(socket, PermissionsExt::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok((UnixListener::from_std(listener)?, Bound::at(socket)?))
}

/// Makes the directory, but none above it: a runtime directory is its session's to make. Others must not be able
/// to put their own socket in the place of ours.
fn own_dir(dir: &Path) -> io::Result<()> {
    match files::only_private_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let metadata = std::fs::metadata(dir)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if is_ours && metadata.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "others may write to its directory"))
}

/// True if something takes connections there, also after a moment.
async fn is_served(socket: &Path) -> io::Result<bool> {
    for _ in 0..LOOKS {
        if !takes_connections(socket)? {
            return Ok(false);
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(true)
}

fn takes_connections(socket: &Path) -> io::Result<bool> {
    let probe = probe()?;
    match rustix::net::connect(&probe, &SocketAddrUnix::new(socket)?) {
        // A full queue of those that wait to be accepted.
        Ok(()) | Err(Errno::AGAIN) => Ok(true),
        Err(Errno::NOENT | Errno::CONNREFUSED) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// A socket that waits for nothing.
#[cfg(target_os = "linux")]
fn probe() -> io::Result<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

#[cfg(not(target_os = "linux"))]
fn probe() -> io::Result<OwnedFd> {
    let probe = rustix::net::socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&probe, rustix::io::FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&probe, true)?;
    Ok(probe)
}

/// The lock, or `None` if another daemon has it.
async fn take_anew(path: &Path) -> io::Result<Option<Instance>> {
    for _ in 0..LOOKS {
        if let Some(instance) = Instance::try_take(path).map_err(other)? {
            return Ok(Some(instance));
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
    }
    Ok(None)
}

fn other(refusal: Refusal) -> io::Error {
    io::Error::other(refusal.info().message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn a_dead_socket_is_replaced_and_a_served_one_and_a_file_are_left_alone() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("run");
        let socket = dir.join("daemon.sock");
        runtime().block_on(async {
            let (first, bound) = bind(&socket, Rival::MayListen).await.expect("nothing is there");
            let served = bind(&socket, Rival::MayListen).await.expect_err("it is served");
            assert_eq!(served.kind(), io::ErrorKind::AddrInUse);
            assert!(bound.is_there());
            drop(first);
            let (second, bound) = bind(&socket, Rival::MayListen).await.expect("it is dead");
            assert!(bound.is_there());
            let (_third, other) =
                bind(&socket, Rival::HasLost).await.expect("it has lost the lock");
            assert!(!bound.is_there() && other.is_there());
            drop(second);
            std::fs::remove_file(&socket).expect("it is ours");
            std::fs::File::create(&socket).expect("a file");
            assert!(bind(&socket, Rival::HasLost).await.is_err());
            assert!(socket.exists());
        });
    }

    #[test]
    fn a_directory_that_others_write_to_is_not_used_nor_are_those_above_made() {
        let home = tempfile::tempdir().expect("a directory");
        let dir = home.path().join("run");
        assert!(own_dir(&dir.join("outlast")).is_err());
        own_dir(&dir).expect("one level is made");
        std::fs::set_permissions(&dir, PermissionsExt::from_mode(0o777)).expect("it is ours");
        assert!(own_dir(&dir).is_err());
    }
}
