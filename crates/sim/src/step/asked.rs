//! The answers to what a monitor asks, by the files, sockets and processes of this world.

use outlast_conduct::records as meaning;
use outlast_conduct::steps::{
    Evidence, Greeting, Hello, Launched, Left, News, Note, Seen, Trouble, Who as Main,
};
use outlast_engine::{Answer, Custody, End, Input, NeverStarted, Report, Survivor, TreeNews};
use outlast_wire::shim;

use super::{Question, Said, StepDriver};
use crate::options::Sabotage;
use crate::record::Record;
use crate::shim as process;
use crate::tree::{self, Who};
use crate::wire::{Conn, ConnId, News as Word, Order};
use crate::world::{Durability, LaunchNote, ShimId, World};

impl StepDriver {
    pub(super) fn connect(&mut self, world: &mut World) -> Option<News> {
        self.hang_up(world);
        if !world.site(self.key).exists {
            return Some(News::Greeted(Greeting::NoDirectory));
        }
        let Some(shim) = world.listener(self.key) else {
            return Some(News::Greeted(Greeting::NotThere));
        };
        let conn = self.open_conn(world);
        world.shims.get_mut(&shim).expect("it listens").conns.push(conn);
        self.later(Question::Hello(conn))
    }

    pub(super) fn open_conn(&self, world: &mut World) -> ConnId {
        let id = world.fresh();
        let mut conn = Conn::default();
        conn.tell_shim(Order::Hello { epoch: self.epoch });
        world.conns.insert(id, conn);
        id
    }

    pub(super) fn await_hello(&mut self, world: &mut World, conn: ConnId) -> Option<News> {
        match self.hear_hello(world, conn) {
            Heard::Hello(hello) => Some(News::Greeted(Greeting::Met(hello))),
            Heard::Nothing => self.later(Question::Hello(conn)),
            Heard::End => Some(News::Greeted(Greeting::NotThere)),
        }
    }

    pub(super) fn hear_hello(&mut self, world: &mut World, id: ConnId) -> Heard {
        let Some(conn) = world.conns.get_mut(&id) else { return Heard::End };
        let word = conn.to_daemon.pop_front();
        let is_gone = conn.shim_is_gone;
        match word {
            Some(Word::Hello { records }) => {
                self.conn = Some(id);
                Heard::Hello(Hello { shim_pid: 1, records })
            }
            None if !is_gone && !world.rng.chance(30) => Heard::Nothing,
            Some(Word::Record(_) | Word::Refused) | None => {
                world.hang_up(id);
                Heard::End
            }
        }
    }

    pub(super) fn is_locked(&self, world: &mut World) -> bool {
        let holder = world.site(self.key).lock;
        holder.is_some_and(|shim| world.shims.contains_key(&shim))
    }

    pub(super) fn read_left(&mut self, world: &mut World) -> Option<News> {
        if self.is_locked(world) {
            let records = world.site(self.key).records.clone();
            return Some(News::Left(Ok(Left::Locked { records })));
        }
        if world.is_sabotaged(Sabotage::RecordsAfterLock) {
            return self.later(Question::ReadUnlocked);
        }
        let left = self.free(world);
        Some(News::Left(Ok(left)))
    }

    pub(super) fn free(&self, world: &mut World) -> Left {
        let records = world.site(self.key).records.clone();
        Left::Free { records, noted: self.noted(world) }
    }

    /// What was noted of this step beside its directory.
    pub(super) fn note(&self, world: &World) -> Note {
        match world.runs[self.key.run].launched {
            None => Note::None,
            Some(note) if note.step != self.key.step => Note::Other,
            Some(LaunchNote { main: None, .. }) => Note::Launch,
            Some(LaunchNote { main: Some(Who { pid, start }), .. }) => {
                Note::Main(Main { pid, start })
            }
        }
    }

    pub(super) fn noted(&self, world: &World) -> Option<Main> {
        match self.note(world) {
            Note::Main(main) => Some(main),
            Note::None | Note::Other | Note::Launch => None,
        }
    }

    /// True if something says that the step may have run, or that another daemon has launched it meanwhile.
    fn has_been_launched(&self, world: &mut World) -> bool {
        self.is_launched_since(world) || self.evidence(world).may_have_run()
    }

    fn is_launched_since(&self, world: &World) -> bool {
        let (step, epoch) = (self.key.step, self.epoch);
        let is_since =
            |note: LaunchNote| note.step == step && (note.main.is_some() || note.epoch > epoch);
        world.runs[self.key.run].launched.is_some_and(is_since)
    }

    pub(super) fn evidence(&self, world: &mut World) -> Evidence {
        if world.is_sabotaged(Sabotage::AbsenceIsEvidence) {
            let (has_run_dir, has_spec, has_leftovers) = (true, true, false);
            return Evidence { note: Note::Other, has_run_dir, has_spec, has_leftovers };
        }
        let note = self.note(world);
        let site = world.site(self.key);
        let has_leftovers = site.has_output || site.response != Answer::None;
        Evidence { note, has_run_dir: true, has_spec: site.has_spec, has_leftovers }
    }

    pub(super) fn look(&self, world: &mut World, main: Option<Main>) -> Seen {
        let shims = self.shims(world).into_iter().map(named);
        let tree = &world.site(self.key).tree;
        let leader = match tree.main {
            tree::Main::Running(Who { pid, start }) => Some(Main { pid, start }),
            tree::Main::Absent | tree::Main::AtBarrier(_) | tree::Main::Dead(_) => None,
        };
        Seen {
            tree: tree.command(),
            shims: shims.chain(tree.at_barrier()).collect(),
            leader,
            is_main_alive: main
                .is_some_and(|main| tree.is_main(Who { pid: main.pid, start: main.start })),
            ..Seen::default()
        }
    }

    pub(super) fn are_gone(&self, world: &mut World, these: &[Survivor], all: bool) -> bool {
        let seen = self.look(world, None);
        let is_alive = |one: &Survivor| seen.tree.contains(one) || seen.shims.contains(one);
        if all { !these.iter().any(is_alive) } else { !these.iter().all(is_alive) }
    }

    pub(super) fn shims(&self, world: &World) -> Vec<ShimId> {
        world.shims.values().filter(|shim| shim.key == self.key).map(|shim| shim.id).collect()
    }

    pub(super) fn write_spec(&mut self, world: &mut World) -> Option<News> {
        let is_to_give_up = world.is_sabotaged(Sabotage::GivesUpUnfenced) && world.rng.chance(300);
        if is_to_give_up || world.rng.chance(world.faults.launch) && world.rng.chance(600) {
            let why = "simulated".to_owned();
            let launched = if world.rng.chance(500) {
                Launched::BadSpec(why)
            } else {
                Launched::Failed { code: None, why }
            };
            return Some(News::Launched(launched));
        }
        let (step, epoch) = (self.key.step, self.epoch);
        let is_started = self.is_launched_since(world);
        if is_started && !world.is_sabotaged(Sabotage::AbsenceIsEvidence) {
            let why = "it has been started meanwhile".to_owned();
            return Some(News::Launched(Launched::Failed { code: None, why }));
        }
        let baseline = self.write_request(world);
        let site = world.site(self.key);
        (site.exists, site.has_spec) = (true, true);
        world.runs[self.key.run].launched = Some(LaunchNote { step, epoch, main: None });
        self.later(Question::Spawn(baseline))
    }

    pub(super) fn spawn(&self, world: &mut World) -> ConnId {
        let conn = self.open_conn(world);
        let starts_anyway = world.is_sabotaged(Sabotage::StartsToStop);
        if self.stop.is_some() && starts_anyway {
            let what = format!("{}: started although it was to be stopped", self.key);
            world.broke(Some(self.key.run), what);
        }
        if self.stop.is_none() || starts_anyway {
            let epoch = self.epoch;
            world.conns.get_mut(&conn).expect("just opened").tell_shim(Order::Start { epoch });
        }
        if world.rng.chance(world.faults.launch) {
            // It died before it did anything.
            world.conns.get_mut(&conn).expect("just opened").shim_is_gone = true;
        } else {
            process::spawn(world, self.key, conn);
        }
        conn
    }

    pub(super) fn await_first_hello(
        &mut self,
        world: &mut World,
        conn: ConnId,
        baseline: Option<String>,
    ) -> Option<News> {
        match self.hear_hello(world, conn) {
            Heard::Hello(hello) => Some(News::Launched(Launched::Met { hello, baseline })),
            Heard::Nothing => self.later(Question::FirstHello(conn, baseline)),
            Heard::End => Some(News::Launched(Launched::NoAnswer { baseline })),
        }
    }

    /// Writes down, under the lock, that the step never started. A broken driver says so without that, and lets the
    /// step go, or goes on with it.
    pub(super) fn fence(
        &mut self,
        world: &mut World,
        code: shim::NeverStarted,
        why: String,
        said: &mut Vec<Said>,
    ) -> Option<News> {
        world.stats.launches_given_up += 1;
        let at_ms = world.now;
        let goes_on = world.is_sabotaged(Sabotage::GivesUpAndGoesOn);
        if goes_on || world.is_sabotaged(Sabotage::GivesUpUnfenced) {
            let (at, code) = (world.now(), NeverStarted::NoShim);
            let end = Some(End::NeverStarted { at, code, why });
            let tree = TreeNews::Empty;
            let report = Report { end, tree, ..Report::of(self.key.step, Custody::NeverHeld) };
            said.push(Said::Input(Input::Reported(Box::new(report))));
            self.is_let_go = !goes_on;
            return Some(News::Fenced(Ok(())));
        }
        let is_begun = meaning::is_begun(&world.site(self.key).records);
        if self.is_locked(world) || is_begun || self.has_been_launched(world) {
            return Some(News::Fenced(Ok(())));
        }
        if world.rng.chance(world.faults.launch) {
            let trouble = Trouble::of_file(None, "simulated".to_owned());
            return Some(News::Fenced(Err(trouble)));
        }
        world.site(self.key).exists = true;
        world.record(self.key, Record::NeverStarted { at_ms, code, why }, Durability::Machine);
        Some(News::Fenced(Ok(())))
    }
}

pub(super) enum Heard {
    Hello(Hello),
    Nothing,
    End,
}

pub(super) fn named(id: ShimId) -> Survivor {
    Survivor { pid: 1, start: id, command: "a shim".to_owned() }
}
