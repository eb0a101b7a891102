//! Where `outlast web url` and `outlast web share` ask for links: a unix socket of mode 0600, beside the journal.
//!
//! Answers processes of the same user that belong to no run. One question, one line of JSON each way.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use outlast_client::problem::Problem;
use outlast_home::layout::Layout;
use outlast_home::socket;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

use crate::kin;
use crate::shares::{Shared, Wanted};
use crate::state::{Link, Web};

const PATIENCE: Duration = Duration::from_secs(10);
/// In bytes.
const LONGEST_WISH: u64 = 4096;
const AFTER_SHORTAGE: Duration = Duration::from_millis(200);

/// What a person asks for at the desk.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
enum Wish {
    Link,
    Share(Wanted),
    Shares,
    Unshare { which: String },
}

/// Asks the `outlast web` of this home for another link.
pub fn link(layout: &Layout) -> Result<Link, Problem> {
    Ok(link_of(&ask(layout, &Wish::Link)?))
}

/// A read-only link to one run.
pub fn share(layout: &Layout, wanted: Wanted) -> Result<(Link, Shared), Problem> {
    let answer = ask(layout, &Wish::Share(wanted))?;
    let shared = serde_json::from_value(answer["share"].clone()).map_err(unreadable)?;
    Ok((link_of(&answer), shared))
}

/// The read-only links that last.
pub fn shares(layout: &Layout) -> Result<Vec<Shared>, Problem> {
    let mut answer = ask(layout, &Wish::Shares)?;
    serde_json::from_value(answer["shares"].take()).map_err(unreadable)
}

/// Ends a read-only link by its id, or all that lead to one run.
pub fn unshare(layout: &Layout, which: &str) -> Result<Vec<Shared>, Problem> {
    let mut answer = ask(layout, &Wish::Unshare { which: which.to_owned() })?;
    serde_json::from_value(answer["shares"].take()).map_err(unreadable)
}

fn ask(layout: &Layout, wish: &Wish) -> Result<Value, Problem> {
    let path = layout.web_socket();
    let mut stream = socket::connect(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            Problem::refusal("no_web", "outlast web is not running here").hint("outlast web")
        }
        _ => Problem::failure(format_args!("{}: {error}", path.display())),
    })?;
    let broken = |error: std::io::Error| {
        Problem::failure(format_args!("outlast web does not answer: {error}"))
    };
    stream.set_read_timeout(Some(PATIENCE)).map_err(broken)?;
    let asked = serde_json::to_string(wish).expect("a wish is plain data");
    match writeln!(stream, "{asked}") {
        // A refusal may be on its way before the wish was read.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => return Err(broken(error)),
        Ok(()) | Err(_) => {}
    }
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).map_err(broken)?;
    let answer: Value = serde_json::from_str(&line).map_err(unreadable)?;
    let Some(message) = answer["message"].as_str() else { return Ok(answer) };
    let problem = Problem::refusal(answer["code"].as_str().unwrap_or("no_web"), message.to_owned());
    Err(match answer["hint"].as_str() {
        Some(hint) => problem.hint(hint),
        None => problem,
    })
}

fn link_of(answer: &Value) -> Link {
    let text = |name: &str| answer[name].as_str().map(str::to_owned);
    Link { here: text("url").unwrap_or_default(), public: text("public_url") }
}

fn unreadable(error: serde_json::Error) -> Problem {
    Problem::failure(format_args!("the answer of outlast web cannot be read: {error}"))
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
    let answer = match judge(&stream) {
        Err(why) => json!({
            "code": "inside_a_run",
            "message": format!("only a person gets a link, and {why}"),
            "hint": "ask from a terminal that belongs to no run",
        }),
        Ok(()) => fulfil(&mut stream, web).await.unwrap_or_else(|problem| refused(&problem)),
    };
    let _peer_gone = stream.write_all(format!("{answer}\n").as_bytes()).await;
}

async fn fulfil(stream: &mut UnixStream, web: &Web) -> Result<Value, Problem> {
    let mut line = String::new();
    let mut asked = tokio::io::BufReader::new(stream.take(LONGEST_WISH));
    asked.read_line(&mut line).await.map_err(Problem::failure)?;
    let wish: Wish = serde_json::from_str(&line)
        .map_err(|error| Problem::refusal("bad_request", error.to_string()))?;
    Ok(match wish {
        Wish::Link => said(&web.link()?),
        Wish::Share(wanted) => {
            let (link, share) = web.share(wanted)?;
            let mut said = said(&link);
            said["share"] = json!(share);
            said
        }
        Wish::Shares => json!({ "shares": web.shared() }),
        Wish::Unshare { which } => json!({ "shares": web.unshare(&which) }),
    })
}

fn said(link: &Link) -> Value {
    json!({ "url": link.here, "public_url": link.public })
}

fn refused(problem: &Problem) -> Value {
    match problem {
        Problem::Told { info, .. } => {
            json!({ "code": info.code, "message": info.message, "hint": info.hint })
        }
        Problem::OutputClosed => json!({ "code": "failed", "message": "the answer was cut short" }),
    }
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
