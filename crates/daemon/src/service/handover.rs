//! One daemon takes the place of another: a service manager's of one in the background, and that of another build
//! of the one before it.
//!
//! A service manager's daemon waits for the lock, however long that takes: if it left, the manager would start it
//! again, for ever. One that replaces shows first that it can do the work, and leaves if the other one stays. A
//! daemon in the background asks for no place otherwise, so two never displace each other.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use outlast_home::address::Address;
use outlast_home::layout::Layout;
use outlast_home::{holder, socket};
use outlast_store::Sqlite;
use outlast_wire::api::ErrorBody;
use outlast_wire::codes::Code;

use super::Service;
use crate::instance::{self, Instance};
use crate::refusal::Refusal;
use crate::settings::Settings;

/// A daemon that has the lock may not listen yet; it is asked this often before it is only waited for.
const ASKS: u32 = 150;
const BETWEEN_ASKS: Duration = Duration::from_millis(200);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A daemon that has said that it leaves has done so after this many looks at the lock.
const LOOKS: u32 = 300;
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);
const LONGEST_ANSWER: u64 = 64 << 10;

/// The lock, and what is known of the daemon that had it before.
pub(crate) struct Takeover {
    pub(crate) instance: Instance,
    pub(crate) before: Before,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// It left because we asked it to, which is no death.
    HandedOver,
    Unknown,
}

impl Takeover {
    pub(crate) fn free(instance: Instance) -> Self {
        Self { instance, before: Before::Unknown }
    }
}

/// Has the lock in the end, however long that takes; `None` if `daemon stop` has ended the daemon that it waited for.
pub(crate) fn take_over(layout: &Layout, service: &Service) -> Result<Option<Takeover>, Refusal> {
    let lock = layout.daemon_lock();
    for _ in 0..ASKS {
        if let Some(instance) = Instance::try_take(&lock)? {
            return Ok(Some(Takeover::free(instance)));
        }
        service.say_waiting();
        match ask(layout) {
            Ok(Answer::Leaves { pid }) => {
                let queue = Queue::join(&lock);
                let instance = match queue.claim(layout, pid) {
                    Claimed::Lock(instance) => instance?,
                    Claimed::Refused(_) | Claimed::Nothing => queue.wait()?,
                };
                let takeover = Takeover { instance, before: Before::HandedOver };
                return Ok(Some(takeover).filter(|_| !instance::is_to_stay_down(layout)));
            }
            Ok(Answer::Stays(_)) => break,
            Err(_not_listening) => std::thread::sleep(BETWEEN_ASKS),
        }
    }
    let waited = Takeover::free(Instance::wait(&lock)?);
    Ok(Some(waited).filter(|_| !instance::is_to_stay_down(layout)))
}

/// Takes the place of the daemon that runs, or says why not; that one then stays.
pub(crate) fn replace(layout: &Layout) -> Result<Takeover, Refusal> {
    must_be_able(layout)?;
    let lock = layout.daemon_lock();
    for _ in 0..ASKS {
        if let Some(instance) = Instance::try_take(&lock)? {
            return Ok(Takeover::free(instance));
        }
        match ask(layout) {
            Ok(Answer::Leaves { pid }) => {
                let instance = match Queue::join(&lock).claim(layout, pid) {
                    Claimed::Lock(instance) => instance?,
                    Claimed::Refused(why) => return Err(Refusal::new(Code::MakesNoRoom, why)),
                    Claimed::Nothing => break,
                };
                return Ok(Takeover { instance, before: Before::HandedOver });
            }
            Ok(Answer::Stays(why)) => return Err(Refusal::new(Code::MakesNoRoom, why)),
            Err(_not_listening) => std::thread::sleep(BETWEEN_ASKS),
        }
    }
    Err(Refusal::new(Code::DaemonSilent, "the daemon that runs does not make room")
        .hint("end it, also if it hangs:\noutlast daemon stop"))
}

/// What keeps a daemon of this build from doing its work here, found out before another one leaves for it.
fn must_be_able(layout: &Layout) -> Result<(), Refusal> {
    Sqlite::look(&layout.database()).map_err(Refusal::of_database)?;
    let config = Settings::read(layout.config_file());
    config.current().map(drop).map_err(|problems| {
        let first = problems.errors.first().map(ToString::to_string).unwrap_or_default();
        Refusal::new(Code::BadConfig, format!("the config is not right for this version: {first}"))
            .hint("the running daemon keeps the settings that it has read:\noutlast config check")
    })
}

/// A place in the kernel's queue for the lock. The wait cannot be broken off, so it has a thread of its own, which
/// is left behind if it takes too long.
struct Queue {
    waited: mpsc::Receiver<Result<Instance, Refusal>>,
}

/// What came of waiting for a daemon that said that it leaves.
enum Claimed {
    Lock(Result<Instance, Refusal>),
    /// Another daemon was quicker, and stays.
    Refused(String),
    Nothing,
}

impl Queue {
    fn join(lock: &Path) -> Self {
        let (done, waited) = mpsc::channel();
        let path = lock.to_owned();
        std::thread::spawn(move || drop(done.send(Instance::wait(&path))));
        Self { waited }
    }

    /// Waits for the daemon `asked` to leave. One that was just being started, after a crash, may get the lock before
    /// us: the queue favours no process that is awake. It is asked as well.
    fn claim(&self, layout: &Layout, mut asked: u32) -> Claimed {
        for _ in 0..LOOKS {
            if let Ok(instance) = self.waited.recv_timeout(BETWEEN_LOOKS) {
                return Claimed::Lock(instance);
            }
            let holder = holder::last(&layout.daemon_lock()).map(|holder| holder.pid);
            if holder.is_none_or(|holder| holder == asked) {
                continue;
            }
            match ask(layout) {
                Ok(Answer::Leaves { pid }) => asked = pid,
                Ok(Answer::Stays(why)) => return Claimed::Refused(why),
                Err(_not_listening) => {}
            }
        }
        Claimed::Nothing
    }

    fn wait(&self) -> Result<Instance, Refusal> {
        self.waited.recv().expect("the thread sends before it ends")
    }
}

/// What the daemon that runs says to being asked to make room.
enum Answer {
    Leaves { pid: u32 },
    Stays(String),
}

fn ask(layout: &Layout) -> io::Result<Answer> {
    let holder = holder::last(&layout.daemon_lock()).ok_or(io::ErrorKind::NotFound)?;
    let address = Address::of(&holder, layout).ok_or(io::ErrorKind::NotFound)?;
    let mut stream = socket::connect(&address.socket)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(
        b"POST /v1/daemon/handover HTTP/1.1\r\nhost: outlast\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    )?;
    let mut answer = Vec::new();
    stream.take(LONGEST_ANSWER).read_to_end(&mut answer)?;
    read(&String::from_utf8_lossy(&answer), holder.pid)
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

fn read(answer: &str, pid: u32) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    if status.starts_with('2') {
        return Some(Answer::Leaves { pid });
    }
    let said = serde_json::from_str::<ErrorBody>(body).map(|body| body.error.message);
    Some(Answer::Stays(said.unwrap_or_else(|_| format!("the daemon answered {status}"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_good_answer_means_that_the_other_leaves() {
        assert!(matches!(
            read("HTTP/1.1 202 Accepted\r\n\r\n", 7),
            Some(Answer::Leaves { pid: 7 })
        ));
        let refused = "HTTP/1.1 409 Conflict\r\na: b\r\n\r\n{\"error\":{\"code\":\"c\",\"message\":\"no room\",\"hint\":null}}";
        assert!(matches!(read(refused, 7), Some(Answer::Stays(why)) if why == "no room"));
        assert!(matches!(read("HTTP/1.1 503 Gone\r\n\r\n", 7), Some(Answer::Stays(_))));
        assert!(read("HTTP/1.1 202", 7).is_none() && read("", 7).is_none());
    }
}
