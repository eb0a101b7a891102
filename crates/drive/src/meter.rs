//! Tells the daemon what the attempt has used up so far: lists, shared budgets and limits then know it within the turn.
//!
//! As well as it can: without a daemon the same figures are in the attempt's files, and count when the attempt has ended.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use outlast_agents::adapter::Spent;

use crate::agent::STACK;
use crate::daemon::Daemon;

/// A daemon that takes longer is busy, and is told again with the next figure.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// An agent that counts often is not reported more often than this.
const BETWEEN: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Meter {
    last: Arc<Mutex<Option<Spent>>>,
    teller: Thread,
}

impl Meter {
    /// `None` if no thread is to be had.
    pub(crate) fn start(daemon: Daemon) -> Option<Self> {
        let last: Arc<Mutex<Option<Spent>>> = Arc::default();
        let waiting = last.clone();
        let tell = move || {
            loop {
                let spent = waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
                match spent {
                    Some(spent) => {
                        let _counts_at_the_end = tell(&daemon, &spent);
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

fn tell(daemon: &Daemon, spent: &Spent) -> io::Result<()> {
    let cost = spent.cost_usd_micros.filter(|_| !spent.is_floor);
    let (turn, attempt) = daemon.attempt();
    let body = serde_json::json!({
        "turn": turn, "attempt": attempt,
        "input_tokens": spent.input_tokens, "output_tokens": spent.output_tokens,
        "cached_tokens": spent.cached_tokens, "cost_usd": cost.map(|micros| micros as f64 / 1e6),
    })
    .to_string();
    daemon.post("usage", &body, ANSWER_WITHIN, |_| ()).map(drop)
}
