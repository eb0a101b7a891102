//! What every task of a daemon holds: its layout, journal, clock and settings, and whether the daemon has to go.
//!
//! A daemon makes one ground and never replaces it. The ground knows no run: the supervisor has the table of open
//! runs.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use outlast_engine::{Context, Run, RunId, Slot, Time};
use outlast_home::layout::Layout;
use outlast_store::{Error, Journal};
use outlast_wire::api::{Mode, Trouble};
use outlast_wire::shim::Revive;
use outlast_wire::words::{TroubleCode, Word};
use tokio::sync::watch;

use crate::diary::Diary;
use crate::instance;
use crate::known_secrets::KnownSecrets;
use crate::leaving::Leaving;
use crate::lineage::{Lineage, Unraised};
use crate::service::{Scopes, Service};
use crate::settings::Settings;
use crate::sync::lock;
use crate::tokens::Tokens;
use crate::view;
use crate::waiter;
use crate::world::World;

/// So many events are read at a time when a run is replayed.
const REPLAY_PAGE: usize = 10_000;

pub(crate) struct Ground {
    pub(crate) layout: Layout,
    /// The program that this daemon runs, which shims are started from.
    pub(crate) exe: PathBuf,
    pub(crate) build: &'static str,
    pub(crate) world: World,
    pub(crate) epoch: u64,
    pub(crate) lineage: Lineage,
    pub(crate) diary: Diary,
    pub(crate) started_at: String,
    /// When this daemon came to be, as a time that runs are compared with.
    pub(crate) began: Time,
    pub(crate) store: Arc<dyn Journal>,
    pub(crate) settings: Settings,
    pub(crate) mode: Mode,
    pub(crate) service: Service,
    pub(crate) scopes: Scopes,
    pub(crate) tokens: Tokens,
    pub(crate) secrets: KnownSecrets,
    /// Where clients find this daemon just now.
    socket: Mutex<PathBuf>,
    /// Set when this daemon has to go.
    leaving: watch::Sender<Option<Leaving>>,
}

/// What a ground is made of.
pub(crate) struct Parts {
    pub(crate) layout: Layout,
    pub(crate) exe: PathBuf,
    pub(crate) build: &'static str,
    pub(crate) world: World,
    pub(crate) epoch: u64,
    pub(crate) lineage: Lineage,
    pub(crate) diary: Diary,
    pub(crate) store: Arc<dyn Journal>,
    pub(crate) settings: Settings,
    pub(crate) mode: Mode,
    pub(crate) service: Service,
}

impl Ground {
    pub(crate) fn new(parts: Parts) -> Arc<Self> {
        let Parts {
            layout,
            exe,
            build,
            world,
            epoch,
            lineage,
            diary,
            store,
            settings,
            mode,
            service,
        } = parts;
        let began = world.now();
        Arc::new(Self {
            scopes: Scopes::new(service.bus()),
            socket: Mutex::new(layout.socket()),
            started_at: view::rfc3339(began),
            tokens: Tokens::new(layout.token_key()),
            secrets: KnownSecrets::default(),
            leaving: watch::Sender::new(None),
            layout,
            exe,
            build,
            world,
            epoch,
            lineage,
            diary,
            began,
            store,
            settings,
            mode,
            service,
        })
    }

    /// The run as its journal has it.
    pub(crate) fn replay(&self, id: &RunId) -> Result<Run, String> {
        let page = |after| {
            self.store.events(id, after, REPLAY_PAGE).map_err(|error| match error {
                Error::UnreadableRun { what, .. } => what,
                other => other.to_string(),
            })
        };
        let mut run = Run::replay(id, &page(0)?).map_err(|illegal| illegal.to_string())?;
        // However long the journal is, a page of it is all that is held.
        loop {
            let events = page(run.seq())?;
            for event in &events {
                run = run.apply(event).map_err(|illegal| illegal.to_string())?;
            }
            if events.len() < REPLAY_PAGE {
                return Ok(run);
            }
        }
    }

    /// The context of a decision now. If the line of time has moved, the next daemon is left that first, so that it goes on on the same.
    pub(crate) fn context(&self, slot: Slot) -> Context {
        let context = self.world.context(slot);
        if self.world.is_news()
            && let Err(error) = self.keep_clock()
        {
            tracing::error!(%error, "cannot leave the next daemon what the clock says");
        }
        context
    }

    pub(crate) fn keep_clock(&self) -> std::io::Result<()> {
        let reading = self.world.reading();
        instance::keep_clock(&self.layout, &self.world.boot, reading)?;
        self.world.kept(reading);
        Ok(())
    }

    pub(crate) fn trouble(
        &self,
        code: impl Into<TroubleCode>,
        message: impl Into<String>,
    ) -> Trouble {
        Trouble {
            code: Word::Known(code.into()),
            message: message.into(),
            since: view::rfc3339(self.world.now()),
        }
    }

    /// Has the daemon go. That it was asked to is on disk before any process can see it gone.
    pub(crate) fn leave(&self, why: Leaving) {
        if why == Leaving::Asked {
            if let Err(error) = instance::mark_stopped(&self.layout) {
                tracing::error!(%error, "cannot say that this stop was asked for; shims will start a daemon again");
            }
            // A daemon that takes our place finds the waiter, and one that does not come is started by it.
            waiter::end(&self.layout);
        }
        self.leaving
            .send_if_modified(|leaving| leaving.is_none() && leaving.replace(why).is_none());
    }

    pub(crate) fn leaving(&self) -> watch::Receiver<Option<Leaving>> {
        self.leaving.subscribe()
    }

    /// Leaves if the store will never write again.
    pub(crate) fn heed_store(&self, error: &Error) {
        if matches!(error, Error::Gone { .. }) {
            self.leave(Leaving::Parted);
        }
    }

    /// A shim has met a higher epoch than ours, although we hold the lock and the journal: greets shims with a
    /// higher one from here on.
    pub(crate) fn raise_shim_epoch(&self) -> std::io::Result<()> {
        self.lineage.raise(&self.layout, &*self.store, self.epoch).map_err(|why| match why {
            Unraised::Store(error) => {
                // Another daemon has taken the journal, and the shim is right.
                if matches!(error, Error::StaleEpoch { .. }) {
                    self.leave(Leaving::Fenced);
                }
                std::io::Error::other(error)
            }
            Unraised::File(error) => error,
        })
    }

    /// How a shim or the waiter starts a daemon again.
    pub(crate) fn revive(&self) -> Revive {
        waiter::revive(&self.layout, &self.exe)
    }

    /// Notes where clients find this daemon from now on.
    pub(crate) fn listens_at(&self, socket: PathBuf) {
        *lock(&self.socket) = socket;
    }

    pub(crate) fn socket(&self) -> PathBuf {
        lock(&self.socket).clone()
    }
}
