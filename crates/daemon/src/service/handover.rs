//! The service's daemon takes the place of one that a client or a shim has started, and waits for any other.
//!
//! Leaving instead would be started again by the manager, for ever. The other way round nobody takes anything:
//! a daemon in the background leaves the lock to whoever has it, so two never displace each other.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use outlast_wire::layout::Layout;

use super::Service;
use crate::instance::Instance;
use crate::refusal::Refusal;
use crate::socket::ShortPath;

/// A daemon that has the lock may not listen yet; it is asked this often before it is only waited for.
const ASKS: u32 = 150;
const BETWEEN_ASKS: Duration = Duration::from_millis(200);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Has the lock in the end, however long that takes.
pub(crate) fn take_over(layout: &Layout, service: &Service) -> Result<Instance, Refusal> {
    let lock = layout.daemon_lock();
    for _ in 0..ASKS {
        if let Some(instance) = Instance::try_take(&lock)? {
            return Ok(instance);
        }
        service.say_waiting();
        match ask(layout) {
            // It leaves, or it has said that it stays.
            Ok(()) => break,
            Err(_not_listening) => std::thread::sleep(BETWEEN_ASKS),
        }
    }
    Instance::wait(&lock)
}

/// Asks whoever listens to make room, and hears some answer.
fn ask(layout: &Layout) -> io::Result<()> {
    let socket = layout.socket();
    let short = ShortPath::of(&socket)?;
    let mut stream = UnixStream::connect(short.path())?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(
        b"POST /v1/daemon/handover HTTP/1.1\r\nhost: outlast\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
    )?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line)?;
    if line.starts_with("HTTP/1.") { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
