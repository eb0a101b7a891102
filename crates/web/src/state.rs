//! What every handler has: the way to the daemon, the words of the command line, and who has been let in.

use std::sync::{Arc, Mutex, PoisonError};

use axum::http::HeaderMap;
use outlast_client::journal::Event;
use outlast_client::problem::Problem;
use outlast_client::world::World;
use outlast_wire::api::{RunRow, RunView};
use outlast_wire::shim::EnvVar;
use serde_json::Value;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use crate::access::{Access, NoSession, Seat, SessionId, Who};
use crate::names::{Door, Names};
use crate::people::{Caller, Proxy};
use crate::refusal::Refusal;
use crate::shares::{Grant, Shared, Shares, Wanted};

/// Answers that go on, of all browsers together.
const MOST_STREAMS: usize = 48;

/// What the command line says of runs, so that the page says the same.
pub struct Words {
    pub row: fn(&RunRow) -> Told,
    pub view: fn(&RunView) -> Told,
    /// A new teller of the events of one run.
    pub teller: fn() -> Teller,
    /// The environment of this process, for a run that is started from the page.
    pub env: Box<dyn Fn() -> Vec<EnvVar> + Send + Sync>,
    /// `outlast report --json`, since a time or for such a while. May take long; called on a thread of its own.
    pub report: Box<dyn Fn(Option<String>) -> Result<Value, Problem> + Send + Sync>,
}

/// The lines that an event is told in, for a person.
pub type Teller = Box<dyn FnMut(&Event) -> Vec<String> + Send>;

/// How a run stands.
pub struct Told {
    /// `needs_you`, `running`, `waiting`, `queued` or `ended`.
    pub group: &'static str,
    /// `failed (exit 7)`
    pub words: String,
}

/// A link that opens the page once, whichever of its addresses is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// On this machine.
    pub here: String,
    /// From elsewhere, if the operator says where that is.
    pub public: Option<String>,
}

/// What every handler has.
pub(crate) struct Web {
    pub(crate) world: World,
    pub(crate) names: Names,
    pub(crate) words: Words,
    /// Whose word on who a person is counts, if any proxy's does.
    pub(crate) proxy: Option<Proxy>,
    pub(crate) streams: Arc<Semaphore>,
    access: Mutex<Access>,
    shares: Mutex<Shares>,
    /// Raised when a session or a read-only link ends.
    endings: watch::Sender<u64>,
    /// The page on this machine.
    here: String,
    /// The page from elsewhere, where that is another address.
    public_url: Option<String>,
}

impl Web {
    pub(crate) fn new(world: World, words: Words, door: Door, proxy: Option<Proxy>) -> Self {
        Self {
            world,
            names: Names::new(&door),
            words,
            proxy,
            streams: Arc::new(Semaphore::new(MOST_STREAMS)),
            access: Mutex::default(),
            shares: Mutex::default(),
            endings: watch::Sender::new(0),
            here: door.here(),
            public_url: door.public_url.filter(|_| !door.is_remote),
        }
    }

    /// The address of the page, with a code that opens it once.
    pub(crate) fn link(&self) -> Result<Link, Problem> {
        let code = self.access().code(Instant::now())?;
        let public = self.public_url.as_ref().map(|url| format!("{url}/#k={code}"));
        Ok(Link { here: format!("{}/#k={code}", self.here), public })
    }

    /// Whose session this is the secret of.
    pub(crate) fn admit(&self, secret: &str) -> Option<Who> {
        self.access().admit(secret, Instant::now())
    }

    /// The person whom the proxy names in this request, if its word counts and there is a role.
    pub(crate) fn named(&self, headers: &HeaderMap) -> Result<Option<Caller>, Refusal> {
        self.proxy.as_ref().map_or(Ok(None), |proxy| proxy.caller(headers))
    }

    /// A session for a person whom the proxy names.
    pub(crate) fn enter(&self, name: &str) -> Result<String, NoSession> {
        self.access().enter(Who::Named(name.to_owned()), Instant::now())
    }

    pub(crate) fn exchange(&self, code: &str) -> Result<String, NoSession> {
        self.access().session(code, Instant::now())
    }

    pub(crate) fn end(&self, secret: &str) {
        self.access().end(secret);
        self.endings.send_modify(|count| *count += 1);
    }

    /// A ticket for the terminal of a run, for the page that has this secret.
    pub(crate) fn ticket(
        &self,
        secret: &str,
        run: &str,
        keys: bool,
        caller: &Caller,
    ) -> Result<String, Problem> {
        let now = Instant::now();
        let mut access = self.access();
        let Some(session) = access.session_of(secret, now) else {
            return Err(Problem::refusal("no_session", "this browser has no session"));
        };
        access.ticket(Seat { run: run.to_owned(), keys, session, via: caller.via() }, now)
    }

    pub(crate) fn redeem(&self, ticket: &str, run: &str) -> Option<Seat> {
        self.access().redeem(ticket, run, Instant::now())
    }

    /// Returns once the session with this secret is over, or at once if there is none.
    pub(crate) async fn signed_out(&self, secret: &str) {
        let session = self.access().session_of(secret, Instant::now());
        if let Some(session) = session {
            self.ended(session).await;
        }
    }

    /// Returns once this session is over.
    pub(crate) async fn ended(&self, session: SessionId) {
        let mut endings = self.endings.subscribe();
        while self.access().goes_on(session) {
            if endings.changed().await.is_err() {
                return;
            }
        }
    }

    /// A read-only link to one run.
    pub(crate) fn share(&self, wanted: Wanted) -> Result<(Link, Shared), Problem> {
        let (secret, shared) = self.shares().add(wanted, Instant::now())?;
        let public = self.public_url.as_ref().map(|url| format!("{url}/s/#{secret}"));
        Ok((Link { here: format!("{}/s/#{secret}", self.here), public }, shared))
    }

    pub(crate) fn shared(&self) -> Vec<Shared> {
        self.shares().list(Instant::now())
    }

    pub(crate) fn unshare(&self, which: &str) -> Vec<Shared> {
        let ended = self.shares().end(which, Instant::now());
        self.endings.send_modify(|count| *count += 1);
        ended
    }

    /// What the read-only link with this secret shows.
    pub(crate) fn grant(&self, secret: &str) -> Option<Grant> {
        self.shares().grant(secret, Instant::now()).cloned()
    }

    /// Returns once this link is over.
    pub(crate) async fn lent(&self, grant: &Grant) {
        let mut endings = self.endings.subscribe();
        while self.shares().goes_on(&grant.id, Instant::now()) {
            tokio::select! {
                changed = endings.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(grant.until) => return,
            }
        }
    }

    fn shares(&self) -> std::sync::MutexGuard<'_, Shares> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn access(&self) -> std::sync::MutexGuard<'_, Access> {
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
