//! The daemon that a step may talk to, as the step's environment names it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use outlast_home::socket;

/// No answer is longer: a message has at most 64 KiB, and an inbox at most 256 of them.
const LARGEST: u64 = 32 << 20;

/// Where it listens, and which attempt this is.
#[derive(Debug, Clone)]
pub(crate) struct Daemon {
    socket: PathBuf,
    run: String,
    turn: u32,
    attempt: u32,
    token: String,
}

impl Daemon {
    /// `None` where no daemon is named.
    pub(crate) fn of(env: &[(OsString, OsString)]) -> Option<Self> {
        let var = |name: &str| -> Option<&OsStr> {
            env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
        };
        let text = |name: &str| var(name)?.to_str().map(str::to_owned);
        Some(Self {
            socket: var("OUTLAST_SOCKET")?.into(),
            run: text("OUTLAST_RUN_ID")?,
            turn: text("OUTLAST_TURN")?.parse().ok()?,
            attempt: text("OUTLAST_ATTEMPT")?.parse().ok()?,
            token: text("OUTLAST_TOKEN").unwrap_or_default(),
        })
    }

    pub(crate) fn run(&self) -> &str {
        &self.run
    }

    /// The turn and the attempt at it that this is.
    pub(crate) fn attempt(&self) -> (u32, u32) {
        (self.turn, self.attempt)
    }

    /// Posts to the run's own place in the API; answers with the body of a call that went well.
    pub(crate) fn post(
        &self,
        path: &str,
        body: &str,
        within: Duration,
        connected: impl FnOnce(&UnixStream),
    ) -> io::Result<Vec<u8>> {
        let head = format!(
            "POST /v1/runs/{}/{path} HTTP/1.1\r\nhost: outlast\r\noutlast-token: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.run,
            self.token,
            body.len()
        );
        let mut daemon = socket::connect(&self.socket)?;
        daemon.set_read_timeout(Some(within))?;
        daemon.set_write_timeout(Some(within))?;
        connected(&daemon);
        daemon.write_all(format!("{head}{body}").as_bytes())?;
        let mut answer = Vec::new();
        daemon.take(LARGEST).read_to_end(&mut answer)?;
        body_of(&answer).ok_or_else(|| io::Error::other("no answer")).map(<[u8]>::to_vec)
    }
}

/// The body of an answer that went well. The daemon sends each with its length, and closes.
fn body_of(answer: &[u8]) -> Option<&[u8]> {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(&answer[..end]).ok()?, &answer[end + 4..]);
    let status = head.split(' ').nth(1)?;
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let is_whole = length.is_none_or(|length| length == body.len());
    (status.starts_with('2') && is_whole).then_some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_that_went_well_has_a_body() {
        let of = |text: &str| body_of(text.as_bytes()).map(<[u8]>::to_vec);
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
        assert_eq!(of(whole), Some(b"{}".to_vec()));
        assert_eq!(of(&whole[..whole.len() - 1]), None);
        assert_eq!(of("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"), None);
        assert_eq!(of("HTTP/1.1 200 OK\r\n"), None);
        assert_eq!(of(""), None);
    }
}
