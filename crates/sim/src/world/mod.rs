//! The world: its clock, its disk, its processes, its connections, and what is true of each run.
//!
//! Plain data at the bottom of the simulator. It knows neither daemons nor clients, and it judges nothing.

mod caller;
mod known;
mod shim;
mod site;

use std::collections::{BTreeMap, VecDeque};

use outlast_engine::{BootId, Context, Order, PauseAll, RunId, Seen, Slot, Step, Time};
use outlast_store::{Journal, Memory};

use crate::faults::Faults;
use crate::options::{Options, Sabotage};
use crate::record::Record;
use crate::rng::Rng;
use crate::rules::Rules;
use crate::stats::Stats;
use crate::wire::{Conn, ConnId};

pub(crate) use caller::{Caller, Calling, Effect};
pub(crate) use known::Known;
pub(crate) use shim::{Ending, Shim, Stage};
pub(crate) use site::{Durability, LaunchNote, RunTruth, Site, WorkspaceFiles};

/// What of the trail is kept for a failure's report.
const TRAIL: usize = 60;

pub(crate) type RunIndex = usize;
pub(crate) type ShimId = u64;

/// One step of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) run: RunIndex,
    pub(crate) step: Step,
}

pub(crate) struct World {
    pub(crate) rng: Rng,
    pub(crate) options: Options,
    pub(crate) faults: Faults,
    /// Nothing goes wrong any more, and what is due comes soon.
    pub(crate) is_quiet: bool,
    /// An operator has put every run on hold.
    pub(crate) is_all_paused: bool,
    pub(crate) stats: Stats,
    pub(crate) now: u64,
    /// The clock that no jump moves.
    pub(crate) awake_ms: u64,
    /// What the operator's config says.
    pub(crate) rules: Rules,
    /// How many notices of each run each sink has been sent.
    pub(crate) sent: BTreeMap<(RunIndex, String), usize>,
    /// The latest moment that any clock has shown.
    pub(crate) latest: u64,
    pub(crate) boot: u64,
    pub(crate) store: Memory,
    pub(crate) epoch: u64,
    pub(crate) sites: BTreeMap<Key, Site>,
    pub(crate) shims: BTreeMap<ShimId, Shim>,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) runs: Vec<RunTruth>,
    /// Processes that make calls under keys.
    pub(crate) callers: BTreeMap<u64, Caller>,
    /// What calls really did, by run and key.
    pub(crate) effects: BTreeMap<(RunIndex, String), Vec<Effect>>,
    pub(crate) broken: Option<(String, Option<RunIndex>)>,
    pub(crate) trail: VecDeque<String>,
    last_id: u64,
}

impl World {
    pub(crate) fn new(options: &Options, rng: Rng, faults: Faults, rules: Rules) -> Self {
        Self {
            rng,
            options: options.clone(),
            faults,
            is_quiet: false,
            is_all_paused: false,
            stats: Stats { seeds: 1, trace: 0xcbf2_9ce4_8422_2325, ..Stats::default() },
            now: 1_700_000_000_000,
            awake_ms: 0,
            rules,
            sent: BTreeMap::new(),
            latest: 0,
            boot: 1,
            store: Memory::new(),
            epoch: 0,
            sites: BTreeMap::new(),
            shims: BTreeMap::new(),
            conns: BTreeMap::new(),
            runs: Vec::new(),
            callers: BTreeMap::new(),
            effects: BTreeMap::new(),
            broken: None,
            trail: VecDeque::new(),
            last_id: 0,
        }
    }

    pub(crate) fn fresh(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub(crate) fn now(&self) -> Time {
        Time(self.now)
    }

    /// Just now, for a run that may start something or not.
    pub(crate) fn context(&mut self, slot: Slot) -> Context {
        let mut context = Context { slot, ..Context::new(self.now(), boot_id(self.boot)) };
        self.draw_shared(&mut context);
        context
    }

    /// What runs share, and when the live attempt was last heard of.
    fn draw_shared(&mut self, context: &mut Context) {
        context.pause_all = if self.is_all_paused { PauseAll::On } else { PauseAll::Off };
        // A client that counts its orders uses the same id for an order to all and to one run.
        let word = Order { id: Some("o1".to_owned()), by: None, ..Order::default() };
        context.word = Some(std::sync::Arc::new(word));
        if self.rng.chance(self.faults.silence) {
            context.seen = Seen {
                quiet_ms: self.rng.below(1_000_000),
                has_spoken: self.rng.chance(500),
                unreachable: self.rng.chance(100).then_some(context.now),
            };
        }
    }

    /// Time passes, by every clock.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.now += ms;
        self.awake_ms += ms.saturating_mul(5);
    }

    /// A sink sends every notice that it has not sent yet.
    pub(crate) fn send(&mut self, sink: &str) {
        for run in 0..self.runs.len() {
            let told = self.store.told(&self.runs[run].id);
            let count = told.iter().filter(|(_, to)| to == sink).count();
            if count > 0 {
                let before = self.sent.insert((run, sink.to_owned()), count).unwrap_or(0);
                self.stats.notices_sent += u64::try_from(count - before).expect("few");
            }
        }
    }

    pub(crate) fn is_sabotaged(&self, how: Sabotage) -> bool {
        self.options.sabotage == Some(how)
    }

    /// A promise was broken. The first time is the one that counts.
    pub(crate) fn broke(&mut self, run: Option<RunIndex>, reason: String) {
        self.broken.get_or_insert((reason, run));
    }

    /// Notes what happened, for the trace and for the report of a failure.
    pub(crate) fn note(&mut self, what: impl FnOnce() -> String) {
        let what = what();
        let hashed = what.bytes().fold(self.stats.trace, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        self.stats.trace = hashed;
        if self.trail.len() == TRAIL {
            self.trail.pop_front();
        }
        self.trail.push_back(what);
    }

    pub(crate) fn index_of(&self, id: &RunId) -> RunIndex {
        self.runs.iter().position(|known| known.id == *id).expect("a client asked for it")
    }

    /// Every run that the journal knows.
    pub(crate) fn existing(&self) -> Vec<RunIndex> {
        let exists = |run: &RunIndex| {
            self.store.row(&self.runs[*run].id).expect("memory can be read").is_some()
        };
        (0..self.runs.len()).filter(exists).collect()
    }

    pub(crate) fn site(&mut self, key: Key) -> &mut Site {
        self.sites.entry(key).or_insert_with(Site::new)
    }

    pub(crate) fn record(&mut self, key: Key, record: Record, durability: Durability) {
        self.note(|| format!("  {key}: record {record:?}"));
        let site = self.site(key);
        site.is_torn = false;
        site.records.push(record);
        if durability == Durability::Machine {
            site.synced = site.records.len();
        }
    }

    /// The shim that answers on the step's socket.
    pub(crate) fn listener(&self, key: Key) -> Option<ShimId> {
        self.sites
            .get(&key)
            .and_then(|site| site.socket)
            .filter(|shim| self.shims.contains_key(shim))
    }

    pub(crate) fn hang_up(&mut self, conn: ConnId) {
        if let Some(conn) = self.conns.get_mut(&conn) {
            conn.daemon_is_gone = true;
            conn.to_daemon.clear();
        }
    }
}

pub(crate) fn boot_id(boot: u64) -> BootId {
    BootId(format!("boot-{boot}"))
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.step {
            Step::Attempt { turn, attempt } => write!(f, "run {} t{turn}.a{attempt}", self.run),
            Step::Errand { errand } => write!(f, "run {} e{errand}", self.run),
        }
    }
}
