//! One step, kept: the twin of the daemon's keeper, one step at a time.
//!
//! Believes in the same order: the shim's socket, its lock, its records, and only then processes.

mod ending;
mod orphan;

use outlast_engine::{
    Answer, BootId, Custody, End, Input, NeverStarted, Report, Run, StopMode, Survivor, TreeNews,
};

use crate::options::Sabotage;
use crate::record::{self, Record};
use crate::tree::Who;
use crate::wire::{Conn, ConnId, News, Order};
use crate::world::{Durability, Key, World, boot_id};
use ending::Ending;
use orphan::Ended;

/// After this many launches in vain the step is given up. Fewer than in production, to get there.
const PATIENCE: u32 = 2;

#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) key: Key,
    boot: BootId,
    epoch: u64,
    stop: Option<StopMode>,
    /// The order about the stop has changed since it was last looked at.
    is_stop_news: bool,
    tries: u32,
    /// This daemon has talked with the step's shim before.
    has_met: bool,
    /// What the step's shim has told of its records, which may outlast their file.
    told: Vec<Record>,
    /// The run as it was when this keeper began.
    run: Box<Run>,
    /// What was found when the main process had ended.
    ending: Option<Ending>,
    /// The workspace as a loop's first attempt finds it.
    baseline: Option<String>,
    /// The run may start nothing yet.
    pub(crate) is_held: bool,
    at: At,
}

#[derive(Debug)]
enum At {
    Look,
    AwaitHello(ConnId),
    AskLock,
    /// Only a broken keeper comes here: the lock was free some time ago.
    ReadRecords,
    WriteSpec,
    SpawnShim,
    AwaitFirstHello(ConnId),
    Met(Session),
    FirstReport(Session),
    FirstOrder(Session),
    Talk(Session),
    Left(Vec<Record>),
    OrphanLook {
        records: Vec<Record>,
        ended: Ended,
    },
    OrphanReport {
        records: Vec<Record>,
        left: Vec<Survivor>,
        ended: Ended,
    },
    OrphanEnd {
        records: Vec<Record>,
        ended: Ended,
        rounds: u8,
    },
    OrphanWait {
        records: Vec<Record>,
        left: Vec<Survivor>,
        ended: Ended,
    },
    Done,
}

#[derive(Debug)]
struct Session {
    conn: ConnId,
    records: Vec<Record>,
    is_ours: bool,
    stops_before: usize,
}

impl Keeper {
    pub(crate) fn new(key: Key, boot: BootId, epoch: u64, run: Run) -> Self {
        Self {
            key,
            boot,
            epoch,
            stop: None,
            is_stop_news: false,
            tries: 0,
            has_met: false,
            told: Vec::new(),
            run: Box::new(run),
            ending: None,
            baseline: None,
            is_held: false,
            at: At::Look,
        }
    }

    pub(crate) fn has_met(&self) -> bool {
        self.has_met
    }

    pub(crate) fn order_stop(&mut self, mode: Option<StopMode>) {
        self.is_stop_news |= self.stop != mode;
        self.stop = mode;
    }

    /// The connection that it would leave behind.
    pub(crate) fn conn(&self) -> Option<ConnId> {
        match &self.at {
            At::AwaitHello(conn) | At::AwaitFirstHello(conn) => Some(*conn),
            At::Met(session)
            | At::FirstReport(session)
            | At::FirstOrder(session)
            | At::Talk(session) => Some(session.conn),
            _ => None,
        }
    }

    /// Takes one step; answers what it has to say to its conductor.
    pub(crate) fn step(&mut self, world: &mut World) -> Vec<Input> {
        let mut said = Vec::new();
        self.at = match std::mem::replace(&mut self.at, At::Done) {
            At::Look if self.boot != boot_id(world.boot) => {
                said.push(self.rebooted(world));
                At::Done
            }
            At::Look => self.connect(world),
            At::AwaitHello(conn) => self.await_hello(world, conn),
            At::AskLock => self.ask_lock(world),
            At::ReadRecords if world.rng.chance(900) => At::ReadRecords,
            At::ReadRecords => self.read(world),
            // One that is to be stopped is seen to at once.
            At::WriteSpec if self.is_held && self.stop.is_none() => At::Look,
            At::WriteSpec => self.write_spec(world, &mut said),
            At::SpawnShim => self.spawn(world),
            At::AwaitFirstHello(conn) => self.await_first_hello(world, conn, &mut said),
            At::Met(session) => self.meet(world, session, &mut said),
            At::FirstReport(session) => {
                said.push(self.report(
                    world,
                    Custody::Shim,
                    &session.records,
                    session.stops_before,
                ));
                At::FirstOrder(session)
            }
            At::FirstOrder(session) => self.order(world, session),
            At::Talk(session) => self.talk(world, session, &mut said),
            At::Left(records) => self.left(world, records, &mut said),
            At::OrphanLook { records, ended } => {
                let left = self.alive(world);
                At::OrphanReport { records, left, ended }
            }
            At::OrphanReport { records, left, ended } => {
                self.orphan_report(world, records, left, ended, &mut said)
            }
            At::OrphanEnd { records, ended, rounds } => {
                self.orphan_end(world, records, ended, rounds)
            }
            At::OrphanWait { records, left, ended } => {
                self.orphan_wait(world, records, left, ended)
            }
            At::Done => At::Done,
        };
        said
    }

    /// Another boot: what was written is all there is, and no process is looked for.
    fn rebooted(&mut self, world: &mut World) -> Input {
        let records = world.site(self.key).records.clone();
        self.report(world, Custody::Rebooted, &records, 0)
    }

    fn connect(&mut self, world: &mut World) -> At {
        let Some(shim) = world.listener(self.key) else { return At::AskLock };
        let conn = self.open_conn(world);
        world.shims.get_mut(&shim).expect("it listens").conns.push(conn);
        At::AwaitHello(conn)
    }

    fn open_conn(&self, world: &mut World) -> ConnId {
        let id = world.fresh();
        let mut conn = Conn::default();
        conn.tell_shim(Order::Hello { epoch: self.epoch });
        world.conns.insert(id, conn);
        id
    }

    fn await_hello(&mut self, world: &mut World, conn: ConnId) -> At {
        match self.hear_hello(world, conn) {
            Heard::Session(session) => At::Met(session),
            Heard::Nothing => At::AwaitHello(conn),
            Heard::End => At::AskLock,
        }
    }

    fn hear_hello(&self, world: &mut World, id: ConnId) -> Heard {
        let Some(conn) = world.conns.get_mut(&id) else { return Heard::End };
        let news = conn.to_daemon.pop_front();
        let is_gone = conn.shim_is_gone;
        match news {
            Some(News::Hello { records }) => {
                // Without an order of ours, what the shim tried in vain by itself is news.
                let is_ordered = self.stop.is_some();
                let stops_before = if is_ordered { record::failed_stops(&records) } else { 0 };
                Heard::Session(Session { conn: id, records, is_ours: false, stops_before })
            }
            None if !is_gone && !world.rng.chance(30) => Heard::Nothing,
            Some(News::Record(_) | News::Refused) | None => {
                world.hang_up(id);
                Heard::End
            }
        }
    }

    /// A lock that is held means: never launch, only ask.
    fn ask_lock(&mut self, world: &mut World) -> At {
        let holder = world.site(self.key).lock;
        if holder.is_some_and(|shim| world.shims.contains_key(&shim)) {
            return At::Look;
        }
        if world.is_sabotaged(Sabotage::RecordsAfterLock) {
            At::ReadRecords
        } else {
            self.read(world)
        }
    }

    fn read(&mut self, world: &mut World) -> At {
        let records = world.site(self.key).records.clone();
        let is_blind = world.is_sabotaged(Sabotage::AbsenceIsEvidence);
        if records.len() < self.told.len() && !is_blind {
            return At::Left(self.told.clone());
        }
        if record::is_begun(&records) {
            return At::Left(records);
        }
        match self.past(world) {
            Past::Ran if !is_blind => At::Left(records),
            Past::Launching if !is_blind => At::Look,
            Past::Ran | Past::Launching | Past::Unlaunched => At::WriteSpec,
        }
    }

    /// What is behind a step without a record.
    fn past(&self, world: &mut World) -> Past {
        let is_noted = self.note(world).is_some();
        let is_known = self.known_process(world).is_some();
        let is_alive = !self.alive(world).is_empty();
        let site = world.site(self.key);
        let is_left = site.has_output || site.response != Answer::None;
        if is_known || is_left || (is_noted && (!site.has_spec || !site.tree.is_empty())) {
            Past::Ran
        } else if is_noted && is_alive {
            Past::Launching
        } else {
            Past::Unlaunched
        }
    }

    /// What was noted of this step beside its directory.
    fn note(&self, world: &World) -> Option<Option<Who>> {
        let launched = world.runs[self.key.run].launched;
        launched.filter(|(step, _)| *step == self.key.step).map(|(_, main)| main)
    }

    fn known_process(&self, world: &World) -> Option<Who> {
        let journalled = self.run.held(self.key.step).and_then(|held| held.process);
        journalled
            .map(|process| Who { pid: process.pid, start: process.start })
            .or_else(|| self.note(world).flatten())
    }

    /// Keeps what the shim has told, and notes its main process beside the step's directory.
    fn remember(&mut self, world: &mut World, records: &[Record]) {
        self.told = records.to_vec();
        if let Some(started) = record::started(records) {
            let main = Some(Who { pid: started.pid, start: started.start });
            world.runs[self.key.run].launched = Some((self.key.step, main));
        }
    }

    fn write_spec(&mut self, world: &mut World, said: &mut Vec<Input>) -> At {
        if world.rng.chance(world.faults.launch) && world.rng.chance(300) {
            return self.give_up(world, said);
        }
        if self.note(world).flatten().is_some() && !world.is_sabotaged(Sabotage::AbsenceIsEvidence)
        {
            // Another daemon's shim has started it meanwhile.
            return At::Look;
        }
        self.write_request(world);
        let site = world.site(self.key);
        (site.exists, site.has_spec) = (true, true);
        world.runs[self.key.run].launched = Some((self.key.step, None));
        At::SpawnShim
    }

    fn spawn(&mut self, world: &mut World) -> At {
        let conn = self.open_conn(world);
        if world.rng.chance(world.faults.launch) {
            // It died before it did anything.
            world.conns.get_mut(&conn).expect("just opened").shim_is_gone = true;
        } else {
            world.spawn_shim(self.key, conn);
        }
        At::AwaitFirstHello(conn)
    }

    fn await_first_hello(&mut self, world: &mut World, conn: ConnId, said: &mut Vec<Input>) -> At {
        match self.hear_hello(world, conn) {
            Heard::Session(session) => At::Met(Session { is_ours: true, ..session }),
            Heard::Nothing => At::AwaitFirstHello(conn),
            Heard::End if self.tries >= PATIENCE => self.give_up(world, said),
            Heard::End => {
                self.tries += 1;
                At::Look
            }
        }
    }

    /// Says that no shim could be started, once none can be: it is written down under the lock, so that a
    /// shim that comes late, or one of a daemon that was replaced, finds it settled.
    fn give_up(&mut self, world: &mut World, said: &mut Vec<Input>) -> At {
        let goes_on = world.is_sabotaged(Sabotage::GivesUpAndGoesOn);
        let is_fenced = !goes_on && !world.is_sabotaged(Sabotage::GivesUpUnfenced);
        let holder = world.site(self.key).lock;
        let is_held = holder.is_some_and(|shim| world.shims.contains_key(&shim));
        if is_fenced && (is_held || record::is_begun(&world.site(self.key).records)) {
            return At::Look;
        }
        world.stats.launches_given_up += 1;
        let (at, code) = (world.now(), NeverStarted::NoShim);
        if is_fenced {
            world.site(self.key).exists = true;
            world.record(self.key, Record::NeverStarted { at, code }, Durability::Machine);
        }
        let end = Some(End::NeverStarted { at, code, why: "cannot start a shim".to_owned() });
        let tree = TreeNews::Empty;
        let report = Report { end, tree, ..Report::of(self.key.step, Custody::NeverHeld) };
        said.push(Input::Reported(Box::new(report)));
        if goes_on { At::Look } else { At::Done }
    }

    fn meet(&mut self, world: &mut World, session: Session, said: &mut Vec<Input>) -> At {
        self.tries = 0;
        let (step, epoch) = (self.key.step, self.epoch);
        if !record::is_begun(&session.records) {
            let starts_anyway = world.is_sabotaged(Sabotage::StartsToStop);
            if self.stop.is_none() || starts_anyway {
                self.say(world, &session, Order::Start { epoch });
            }
            if self.stop.is_some() && starts_anyway {
                world.broke(
                    Some(self.key.run),
                    format!("{}: started although it was to be stopped", self.key),
                );
            }
        } else if !session.is_ours && !self.has_met {
            said.push(Input::Adopted { step, epoch });
        }
        self.has_met = true;
        self.remember(world, &session.records);
        At::FirstReport(session)
    }

    fn say(&self, world: &mut World, session: &Session, order: Order) {
        world.note(|| format!("  {}: the keeper of epoch {} says {order:?}", self.key, self.epoch));
        if let Some(conn) = world.conns.get_mut(&session.conn) {
            conn.tell_shim(order);
        }
    }

    /// Passes on the stop that is ordered, if one is.
    fn order(&mut self, world: &mut World, mut session: Session) -> At {
        self.is_stop_news = false;
        if let Some(mode) = self.stop {
            session.stops_before = record::failed_stops(&session.records);
            self.say(world, &session, Order::Stop { is_graceful: mode == StopMode::Gracefully });
        }
        At::Talk(session)
    }

    fn talk(&mut self, world: &mut World, mut session: Session, said: &mut Vec<Input>) -> At {
        if self.is_stop_news && world.rng.chance(700) {
            return self.order(world, session);
        }
        let Some(conn) = world.conns.get_mut(&session.conn) else { return At::Look };
        let is_gone = conn.shim_is_gone;
        match conn.to_daemon.pop_front() {
            Some(News::Record(record)) => {
                session.records.push(record);
                self.remember(world, &session.records);
                said.push(self.report(
                    world,
                    Custody::Shim,
                    &session.records,
                    session.stops_before,
                ));
                At::Talk(session)
            }
            Some(News::Hello { .. }) => At::Talk(session),
            None if !is_gone => At::Talk(session),
            Some(News::Refused) | None => {
                world.hang_up(session.conn);
                At::Look
            }
        }
    }

    /// The shim is gone and these are its records.
    fn left(&mut self, world: &mut World, records: Vec<Record>, said: &mut Vec<Input>) -> At {
        if record::is_over(&records) {
            said.push(self.report(world, Custody::Nobody, &records, 0));
            return At::Done;
        }
        let is_held_at_barrier = record::is_begun(&records)
            && record::started(&records).is_none()
            && self.known_process(world).is_none()
            && self.alive(world).is_empty();
        if is_held_at_barrier {
            said.push(self.report(world, Custody::NeverHeld, &records, 0));
            return At::Done;
        }
        At::OrphanLook { records, ended: Ended::NotTried }
    }

    fn report(
        &mut self,
        world: &mut World,
        custody: Custody,
        records: &[Record],
        stops_before: usize,
    ) -> Input {
        let mut report = record::report(self.key.step, custody, records, stops_before);
        self.look_at_end(world, &mut report);
        Input::Reported(Box::new(report))
    }
}

/// What is behind a step that has no record.
enum Past {
    Unlaunched,
    Launching,
    Ran,
}

enum Heard {
    Session(Session),
    Nothing,
    End,
}
