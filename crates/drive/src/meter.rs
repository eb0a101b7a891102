//! Tells the daemon what the attempt has used up so far: lists, shared budgets and limits then know it within the turn.
//!
//! As well as it can: without a daemon the same figures are in the attempt's files, and count when the attempt has ended.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use outlast_agents::adapter::Spent;
use outlast_home::socket;

use crate::agent::STACK;

/// A daemon that takes longer is busy, and is told again with the next figure.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// An agent that counts often is not reported more often than this.
const BETWEEN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Meter {
    last: Arc<Mutex<Option<Spent>>>,
    teller: Thread,
}

/// Which attempt this is, and where its daemon listens.
#[derive(Debug)]
struct Place {
    socket: PathBuf,
    run: String,
    turn: u32,
    attempt: u32,
    token: String,
}

impl Meter {
    /// `None` where no daemon is named, or no thread is to be had.
    pub(crate) fn start(env: &[(OsString, OsString)]) -> Option<Self> {
        let place = Place::of(env)?;
        let last: Arc<Mutex<Option<Spent>>> = Arc::default();
        let waiting = last.clone();
        let tell = move || {
            loop {
                let spent = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
                match spent {
                    Some(spent) => {
                        let _counts_at_the_end = place.tell(&spent);
                        thread::sleep(BETWEEN);
                    }
                    None => thread::park(),
                }
            }
        };
        let teller =
            thread::Builder::new().name("meter".to_owned()).stack_size(STACK).spawn(tell).ok()?;
        Some(Self { last, teller: teller.thread().clone() })
    }

    pub(crate) fn note(&self, spent: Spent) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(spent);
        self.teller.unpark();
    }
}

impl Place {
    fn of(env: &[(OsString, OsString)]) -> Option<Self> {
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

    fn tell(&self, spent: &Spent) -> std::io::Result<()> {
        let cost = spent.cost_usd_micros.filter(|_| !spent.is_floor);
        let body = serde_json::json!({
            "turn": self.turn, "attempt": self.attempt,
            "input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens,
            "cached_tokens": spent.cached_tokens, "cost_usd": cost.map(|micros| micros as f64 / 1e6),
        })
        .to_string();
        let head = format!(
            "POST /v1/runs/{}/usage HTTP/1.1\r\nhost: outlast\r\noutlast-token: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            self.run,
            self.token,
            body.len()
        );
        let mut daemon = socket::connect(&self.socket)?;
        daemon.set_read_timeout(Some(ANSWER_WITHIN))?;
        daemon.set_write_timeout(Some(ANSWER_WITHIN))?;
        daemon.write_all(format!("{head}{body}").as_bytes())?;
        daemon.take(64 << 10).read_to_end(&mut Vec::new()).map(drop)
    }
}
