//! The world: its clock, its disk, its processes, and who is alive in it. Plain data; nobody decides here.

use std::collections::{BTreeMap, VecDeque};

use outlast_engine::{Answer, BootId, Exit, Moment, Purpose, RunId, RunSpec, Slot, Step, Time};
use outlast_store::{Append, Error, Fault, Journal, Memory};

use crate::daemon::Daemon;
use crate::faults::Faults;
use crate::options::{Options, Sabotage};
use crate::person::Person;
use crate::record::Record;
use crate::rng::Rng;
use crate::rules::Rules;
use crate::shim::Shim;
use crate::stats::Stats;
use crate::tree::{Main, Tree, Who};
use crate::truth::{self, Known};
use crate::wire::{Conn, ConnId};
use crate::workload::Client;
use crate::workspace::Place;

/// What of the trail is kept for a failure's report.
const TRAIL: usize = 60;

pub(crate) type RunIndex = usize;
pub(crate) type ShimId = u64;
pub(crate) type DaemonId = u64;

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
    /// Somebody has said that everything is to rest.
    pub(crate) is_held: bool,
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
    pub(crate) daemons: BTreeMap<DaemonId, Daemon>,
    pub(crate) conns: BTreeMap<ConnId, Conn>,
    pub(crate) clients: Vec<Client>,
    /// So many come in this seed.
    pub(crate) most_clients: usize,
    pub(crate) runs: Vec<RunTruth>,
    pub(crate) broken: Option<(String, Option<RunIndex>)>,
    pub(crate) trail: VecDeque<String>,
    last_id: u64,
}

/// A step's directory and its processes.
#[derive(Debug)]
pub(crate) struct Site {
    /// There is a directory.
    pub(crate) exists: bool,
    pub(crate) has_spec: bool,
    /// The files that output goes to were made.
    pub(crate) has_output: bool,
    /// Files of it have vanished.
    pub(crate) has_vanished: bool,
    pub(crate) lock: Option<ShimId>,
    pub(crate) socket: Option<ShimId>,
    pub(crate) records: Vec<Record>,
    /// So many records survive the machine's death.
    pub(crate) synced: usize,
    /// A half-written line at the end, which nobody counts.
    pub(crate) is_torn: bool,
    pub(crate) tree: Tree,
    /// How often the command was really exec'd.
    pub(crate) executions: u32,
    /// What the command really returned.
    pub(crate) exit: Option<Exit>,
    pub(crate) is_endless: bool,
    /// What the agent really answered, and what is left of that on disk.
    pub(crate) said: Answer,
    pub(crate) response: Answer,
    pub(crate) is_response_synced: bool,
    /// The messages in the request.
    pub(crate) given: Vec<String>,
    /// The boot that the journal means this step for; `None` until it means it.
    pub(crate) boot: Option<BootId>,
    /// What an errand is for, and after which turn.
    pub(crate) purpose: Option<(Purpose, u32)>,
    /// The journal has said that this step has ended.
    pub(crate) has_ended: bool,
}

/// What is known of a run outside of its journal.
#[derive(Debug)]
pub(crate) struct RunTruth {
    pub(crate) id: RunId,
    pub(crate) spec: RunSpec,
    /// A client was told that it exists.
    pub(crate) is_promised: bool,
    /// A client was told that it will be stopped.
    pub(crate) is_stop_promised: bool,
    pub(crate) known: Known,
    pub(crate) person: Person,
    pub(crate) place: Place,
    /// How often an agent has changed the workspace.
    pub(crate) version: u64,
    /// What was noted of the step that was launched last.
    pub(crate) launched: Option<LaunchNote>,
}

/// Which step was launched, by the daemon of which epoch, and its main process once a daemon has heard of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchNote {
    pub(crate) step: Step,
    pub(crate) epoch: u64,
    pub(crate) main: Option<Who>,
}

impl Site {
    fn new() -> Self {
        Self {
            exists: false,
            has_spec: false,
            has_output: false,
            has_vanished: false,
            lock: None,
            socket: None,
            records: Vec::new(),
            synced: 0,
            is_torn: false,
            tree: Tree::default(),
            executions: 0,
            exit: None,
            is_endless: false,
            said: Answer::None,
            response: Answer::None,
            is_response_synced: false,
            given: Vec::new(),
            boot: None,
            purpose: None,
            has_ended: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Process,
    Machine,
}

impl World {
    pub(crate) fn new(seed: u64, options: &Options) -> Self {
        let mut rng = Rng::new(seed);
        let faults = Faults::draw(&mut rng);
        let most_clients = 1 + rng.index(options.clients);
        let rules = Rules::draw(&mut rng);
        Self {
            rng,
            options: options.clone(),
            faults,
            is_quiet: false,
            is_held: false,
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
            daemons: BTreeMap::new(),
            conns: BTreeMap::new(),
            clients: Vec::new(),
            most_clients,
            runs: Vec::new(),
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
    pub(crate) fn moment(&mut self, slot: Slot) -> Moment {
        let mut moment = Moment { slot, ..Moment::new(self.now(), boot_id(self.boot)) };
        self.draw_shared(&mut moment);
        moment
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

    /// Notes what happened, for the trace and for whoever looks at a failure.
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

    pub(crate) fn spawn_shim(&mut self, key: Key, conn: ConnId) {
        let id = self.fresh();
        let is_slow = self.rng.chance(self.faults.slow_shim);
        let asleep = if is_slow { self.rng.between(10, 80) } else { 0 };
        self.stats.shims += 1;
        self.stats.slow_shims += u64::from(is_slow);
        self.shims.insert(id, Shim::new(id, key, conn, asleep));
    }

    /// What a shim's death leaves: its lock is free, its socket is dead, and what it had sent can be read.
    pub(crate) fn bury_shim(&mut self, shim: &Shim) {
        for conn in &shim.conns {
            if let Some(conn) = self.conns.get_mut(conn) {
                conn.shim_is_gone = true;
                conn.to_shim.clear();
            }
        }
        let site = self.site(shim.key);
        site.lock.take_if(|holder| *holder == shim.id);
    }

    pub(crate) fn hang_up(&mut self, conn: ConnId) {
        if let Some(conn) = self.conns.get_mut(&conn) {
            conn.daemon_is_gone = true;
            conn.to_daemon.clear();
        }
    }

    /// The child passes its barrier: from here on it is the command.
    pub(crate) fn exec(&mut self, key: Key) {
        let Main::AtBarrier(who) = self.site(key).tree.main else { return };
        if self.draw_exec_failure(key) {
            return self.site(key).tree.main = Main::Dead(None);
        }
        truth::on_exec(self, key);
        self.stats.executions += 1;
        self.note(|| format!("  {key}: exec"));
        let is_endless = self.draw_endless(key);
        let others = self.draw_others();
        let site = self.site(key);
        site.executions += 1;
        site.is_endless = is_endless;
        site.tree.main = Main::Running(who);
        site.tree.others = others;
    }

    /// Appends with whatever goes wrong just now, and holds the result against the truth.
    pub(crate) fn append(&mut self, run: RunIndex, mut append: Append) -> Result<(), Error> {
        let held = append.epoch;
        if self.is_sabotaged(Sabotage::StaleEpochsWrite) {
            append.epoch = self.epoch;
        }
        let fault = self.faults.of_append(&mut self.rng);
        if let Some(fault) = fault {
            self.store.fail_next(fault.0);
        }
        let (epoch, count) = (append.epoch, append.events.len());
        let answer = self.store.append_wait(append);
        self.note(|| format!("append of {count} to run {run} by epoch {epoch}: {answer:?}"));
        if answer.is_ok() && held != self.epoch {
            let current = self.epoch;
            self.broke(
                Some(run),
                format!(
                    "a daemon of epoch {held} has written while epoch {current} holds the store"
                ),
            );
        }
        match (&answer, fault) {
            (Ok(()), _) => self.stats.appends += 1,
            (Err(Error::StaleEpoch { .. }), _) => self.stats.stale_appends_refused += 1,
            (Err(Error::Conflict { .. }), _) => self.stats.conflicts += 1,
            (Err(_), Some((Fault::RefuseFull, _))) => self.stats.full_disks += 1,
            (Err(_), Some((Fault::LoseBeforeCommit, _))) => self.stats.lost_appends += 1,
            (Err(_), Some((Fault::LoseAfterCommit, _))) => self.stats.lost_acks += 1,
            (Err(_), None) => {}
        }
        truth::on_append(self, run);
        match fault {
            // The same uncertainty, met by a daemon that lives on.
            Some((_, Surface::AsIo)) if answer == Err(Error::Closed) => {
                Err(Error::Io("simulated".to_owned()))
            }
            Some(_) | None => answer,
        }
    }
}

/// How a lost append looks to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    AsClosed,
    AsIo,
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
