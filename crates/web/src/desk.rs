//! Where `outlast web url` asks for another link: a unix socket of mode 0600, beside the journal.
//!
//! Answers processes of the same user that belong to no run. One question, one line of JSON each way.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use outlast_client::problem::Problem;
use outlast_home::layout::Layout;
use outlast_home::socket;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use crate::kin;
use crate::state::{Link, Web};

const PATIENCE: Duration = Duration::from_secs(10);
const AFTER_SHORTAGE: Duration = Duration::from_millis(200);

/// Asks the `outlast web` of this home for another link.
pub fn link(layout: &Layout) -> Result<Link, Problem> {
    let path = layout.web_socket();
    let stream = socket::connect(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            Problem::refusal("no_web", "outlast web is not running here").hint("outlast web")
        }
        _ => Problem::failure(format_args!("{}: {error}", path.display())),
    })?;
    let broken = |error: std::io::Error| {
        Problem::failure(format_args!("outlast web does not answer: {error}"))
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).map_err(broken)?;
    let answer: Value = serde_json::from_str(&line).unwrap_or_default();
    if let Some(link) = answer["url"].as_str() {
        let public = answer["public_url"].as_str().map(str::to_owned);
        return Ok(Link { here: link.to_owned(), public });
    }
    let message = answer["message"].as_str().unwrap_or("outlast web gave no answer").to_owned();
    let problem = Problem::refusal(answer["code"].as_str().unwrap_or("no_web"), message);
    Err(match answer["hint"].as_str() {
        Some(hint) => problem.hint(hint),
        None => problem,
    })
}

/// The socket, bound. The caller holds the lock of `outlast web`, so a socket that is there is a dead process's.
pub(crate) fn bind(path: &Path) -> std::io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = socket::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Answers for as long as it is polled.
pub(crate) async fn serve(listener: UnixListener, web: &Web) -> std::convert::Infallible {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // A peer that does not read gets no answer; no other peer waits for long.
                let _late = timeout(PATIENCE, answer(stream, web)).await;
            }
            Err(_) => sleep(AFTER_SHORTAGE).await,
        }
    }
}

async fn answer(mut stream: UnixStream, web: &Web) {
    let line = match judge(&stream) {
        Err(why) => json!({
            "code": "inside_a_run",
            "message": format!("only a person gets a link, and {why}"),
            "hint": "ask from a terminal that belongs to no run",
        }),
        Ok(()) => match web.link() {
            Ok(link) => json!({ "url": link.here, "public_url": link.public }),
            Err(_) => json!({ "code": "failed", "message": "there is no randomness for a code" }),
        },
    };
    let _peer_gone = stream.write_all(format!("{line}\n").as_bytes()).await;
}

fn judge(stream: &UnixStream) -> Result<(), String> {
    let peer =
        stream.peer_cred().map_err(|error| format!("the kernel does not say who asks: {error}"))?;
    if peer.uid() != rustix::process::geteuid().as_raw() {
        return Err("the process that asks is another user's".to_owned());
    }
    let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
    let pid = pid.ok_or("the kernel does not say which process asks")?;
    kin::of_a_run(pid).map_or(Ok(()), Err)
}

/// A file that leads a browser to `link`. The link is not an argument of the browser, which other users could read.
pub fn opener(path: &Path, link: &str) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = outlast_home::regular::open_with(&mut options, path)?;
    writeln!(file, "<!doctype html><meta charset=\"utf-8\"><title>outlast</title>")?;
    writeln!(file, "<meta http-equiv=\"refresh\" content=\"0; url={link}\">")
}
