//! A line between the built program and its daemon that loses answers: what was asked has happened, and the
//! client asks again because it does not know that.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use outlast_home::layout::Layout;

use crate::harness::{Home, text};
use crate::stage::hold_lock;

/// What the built program says when the first `lost` answers to this order never reach it.
pub(crate) fn through_a_bad_line(
    home: &Home,
    verb: &str,
    lost: usize,
    args: &[&str],
) -> std::process::Output {
    interrupted(home, verb, lost, args, &|| {})
}

/// The same, and what `meanwhile` does happens after each lost answer and before the program asks again.
pub(crate) fn interrupted(
    home: &Home,
    verb: &str,
    lost: usize,
    args: &[&str],
    meanwhile: &(dyn Fn() + Sync),
) -> std::process::Output {
    let other = Home::new();
    let layout = Layout::under(&other.path());
    std::fs::create_dir_all(&layout.runtime).expect("the test's directory is ours");
    let _lock = hold_lock(&layout);
    let proxy = Proxy {
        daemon: home.path().join("run/daemon.sock"),
        listener: UnixListener::bind(layout.socket()).expect("no other process listens there"),
        verb,
        loses: AtomicUsize::new(lost),
        meanwhile,
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| proxy.serve(&is_over));
        let output = home.outlast(args).env("OUTLAST_HOME", other.path()).output();
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(proxy.loses.load(Ordering::SeqCst), 0, "the proxy was asked");
        output.expect("the program starts")
    })
}

/// Stands between a client and the daemon, and loses the first answers to `verb`.
struct Proxy<'a> {
    daemon: std::path::PathBuf,
    listener: UnixListener,
    verb: &'a str,
    loses: AtomicUsize,
    /// What happens after an answer was lost and before the client can ask again.
    meanwhile: &'a (dyn Fn() + Sync),
}

impl Proxy<'_> {
    /// Serves connections until the client has its last answer.
    fn serve(&self, is_over: &AtomicBool) {
        self.listener.set_nonblocking(true).expect("a listener can");
        while !is_over.load(Ordering::SeqCst) {
            match self.listener.accept() {
                Ok((client, _)) => {
                    client.set_nonblocking(false).expect("a stream can");
                    // One that is cut off says so by itself.
                    let _lost = self.pass(client);
                }
                Err(_) => crate::harness::nap(),
            }
        }
    }

    fn pass(&self, mut client: UnixStream) -> std::io::Result<()> {
        let mut daemon = UnixStream::connect(&self.daemon)?;
        loop {
            let request = whole(&mut client)?;
            daemon.write_all(&request)?;
            let answer = whole(&mut daemon)?;
            let line = text(&request).lines().next().unwrap_or_default().to_owned();
            let is_order = !line.starts_with("GET") && line.contains(self.verb);
            let left = self.loses.load(Ordering::SeqCst);
            if is_order && left > 0 {
                (self.meanwhile)();
                self.loses.store(left - 1, Ordering::SeqCst);
                return Ok(());
            }
            client.write_all(&answer)?;
        }
    }
}

/// A head and the body that it announces.
pub(crate) fn whole(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        bytes.push(byte[0]);
    }
    let head = text(&bytes).to_ascii_lowercase();
    let length = head.split("content-length:").nth(1).and_then(|rest| rest.lines().next());
    let mut body = vec![0; length.map_or(0, |it| it.trim().parse().expect("a length"))];
    stream.read_exact(&mut body)?;
    bytes.extend(body);
    Ok(bytes)
}
