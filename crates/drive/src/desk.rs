//! The driver's way to the daemon while the turn goes on: questions out, answers and messages in.
//!
//! One thread holds one call open. It says everything that the driver has (the open questions, the messages that were
//! taken), and the daemon answers when there is news. A call that fails is made again, so a daemon that dies loses
//! nothing; without one the turn goes on.

use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use outlast_wire::api::{AgentAsks, AtTurn, TurnNews};

use crate::agent::{News, STACK};
use crate::daemon::Daemon;

/// Far longer than the daemon holds a call without news.
const ANSWER_WITHIN: Duration = Duration::from_secs(600);
/// The last word before the driver leaves.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) struct Desk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    daemon: Daemon,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    at: AtTurn,
    /// Counts what the driver has changed in it.
    version: u64,
    /// The version that the daemon has answered.
    told: u64,
    /// The call that is held open.
    call: Option<UnixStream>,
    is_closed: bool,
}

impl Desk {
    /// `None` if no thread is to be had.
    pub(crate) fn open(daemon: Daemon, news: SyncSender<News>) -> Option<Self> {
        let (turn, attempt) = daemon.attempt();
        let at = AtTurn { turn, attempt, ..AtTurn::default() };
        let state = Mutex::new(State { at, version: 1, ..State::default() });
        let shared = Arc::new(Shared { daemon, state, changed: Condvar::new() });
        let caller = shared.clone();
        let call = move || caller.run(&news);
        thread::Builder::new().name("desk".to_owned()).stack_size(STACK).spawn(call).ok()?;
        Some(Self(shared))
    }

    pub(crate) fn run(&self) -> &str {
        self.0.daemon.run()
    }

    /// Has the daemon told at once what is open now, if it is not what it was; `None` leaves the questions as they were.
    /// Answers with the questions that are new.
    pub(crate) fn tell(
        &self,
        questions: Option<Vec<AgentAsks>>,
        taken: Vec<u64>,
        left: Vec<u64>,
    ) -> Vec<AgentAsks> {
        let before = self.0.state().at.clone();
        let questions = questions.unwrap_or_else(|| before.questions.clone());
        let now = AtTurn { questions, taken, left, ..before.clone() };
        if now == before {
            return Vec::new();
        }
        let is_new = |asks: &&AgentAsks| !before.questions.contains(asks);
        let asked = now.questions.iter().filter(is_new).cloned().collect();
        self.change(|state| state.at = now);
        asked
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.0.state();
        change(&mut state);
        state.version += 1;
        if let Some(call) = state.call.take() {
            // A call that has ended by itself needs no end.
            let _ended = call.shutdown(Shutdown::Both);
        }
        self.0.changed.notify_all();
    }

    /// What the daemon knows just now, if it answers.
    pub(crate) fn look(&self) -> Option<TurnNews> {
        let at = AtTurn { is_last: true, ..self.0.state().at.clone() };
        self.0.call(&at, FLUSH_WITHIN, |_| ()).ok()
    }

    /// Tells the daemon what it does not know yet, once, before the driver leaves.
    pub(crate) fn flush(&self) {
        let at = {
            let state = self.0.state();
            (state.told < state.version && !state.at.taken.is_empty()).then(|| state.at.clone())
        };
        if let Some(at) = at {
            let at = AtTurn { is_last: true, ..at };
            // What it does not hear now, the next turn is given once more.
            let _given_again = self.0.call(&at, FLUSH_WITHIN, |_| ());
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, news: &SyncSender<News>) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (at, version) = {
                let state = self.state();
                if state.is_closed {
                    return;
                }
                (state.at.clone(), state.version)
            };
            let answer = self.call(&at, ANSWER_WITHIN, |call| self.hold(call, version));
            let mut state = self.state();
            state.call = None;
            let wait = match answer {
                Ok(TurnNews { over: true, .. }) => return,
                Ok(told) => {
                    pause = FIRST_PAUSE;
                    state.told = version;
                    let is_news = told != TurnNews::default();
                    drop(state);
                    if is_news && news.send(News::FromDaemon(told)).is_err() {
                        return;
                    }
                    state = self.state();
                    // The driver changes what it has by what it heard.
                    is_news.then_some(LONGEST_PAUSE)
                }
                Err(_ended_or_no_daemon) => {
                    let wait = pause;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    Some(wait)
                }
            };
            if let Some(wait) = wait {
                let is_same = |state: &mut State| state.version == version;
                let waited = self.changed.wait_timeout_while(state, wait, is_same);
                drop(waited.unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    fn call(
        &self,
        at: &AtTurn,
        within: Duration,
        connected: impl FnOnce(&UnixStream),
    ) -> io::Result<TurnNews> {
        let body = serde_json::to_string(at)?;
        let answer = self.daemon.post("turn", &body, within, connected)?;
        Ok(serde_json::from_slice(&answer)?)
    }

    /// Notes the call, so that a change ends it; ends it at once if there was one meanwhile.
    fn hold(&self, call: &UnixStream, version: u64) {
        let mut state = self.state();
        if state.version == version {
            state.call = call.try_clone().ok();
        } else {
            let _ended = call.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        self.change(|state| state.is_closed = true);
    }
}
