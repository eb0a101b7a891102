//! A daemon: takes its epoch, loads what is open, conducts, and makes runs for clients. All of it volatile.

use std::collections::{BTreeMap, BTreeSet};

use outlast_conduct::fenced_run::FencedRun;
use outlast_engine::{Admission, Input, Order, Run, Time, Unheard};
use outlast_store::{Append, Entry, Error, Journal};

use crate::books::Shelf;
use crate::conductor::{self, Asker, Message, Outcome, RunDriver};
use crate::family;
use crate::journal;
use crate::options::Sabotage;
use crate::truth;
use crate::world::{RunIndex, World};

pub(crate) struct Daemon {
    pub(crate) stage: Stage,
    pub(crate) epoch: u64,
    began: Time,
    conductors: BTreeMap<RunIndex, RunDriver>,
    shelf: Shelf,
    creations: Vec<Creation>,
    /// Children whose parents are being told that there is no such run: none of them is made meanwhile.
    unmaking: BTreeSet<RunIndex>,
    /// Answers that are on their way to clients.
    replies: Vec<(usize, Reply)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Started,
    EpochTaken,
    Serving,
}

/// A client's request for a run, on its way.
struct Creation {
    client: usize,
    run: RunIndex,
    at: At,
}

enum At {
    Check,
    /// Its parent was asked for room.
    Admit,
    Append,
    Conduct(Box<FencedRun>),
}

/// What a client hears.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Its run exists.
    Created,
    /// Its parent has no room for it, or its key is another run's.
    Refused,
    /// The connection broke before an answer came.
    Lost,
}

impl Daemon {
    pub(crate) fn new(began: Time) -> Self {
        Self {
            stage: Stage::Started,
            epoch: 0,
            began,
            conductors: BTreeMap::new(),
            shelf: Shelf::default(),
            creations: Vec::new(),
            unmaking: BTreeSet::new(),
            replies: Vec::new(),
        }
    }

    /// What a daemon's death leaves: closed connections, and clients without an answer.
    pub(crate) fn die(mut self, world: &mut World) -> Vec<(usize, Reply)> {
        for conductor in self.conductors.into_values() {
            conductor.let_go(world);
        }
        let unanswered = self.creations.iter().map(|creation| (creation.client, Reply::Lost));
        self.replies.extend(unanswered);
        self.replies
    }

    /// What clients were answered since this was last asked.
    pub(crate) fn take_replies(&mut self) -> Vec<(usize, Reply)> {
        std::mem::take(&mut self.replies)
    }

    /// Lets the daemon take one step, of its own or of one of its runs.
    pub(crate) fn step(&mut self, world: &mut World) -> Outcome {
        if self.stage != Stage::Serving {
            self.begin(world);
            return Outcome::GoesOn;
        }
        if !self.creations.is_empty() && world.rng.chance(300) {
            let index = world.rng.index(self.creations.len());
            return self.create(world, index);
        }
        if world.rng.chance(100) {
            self.reconcile(world);
            return Outcome::GoesOn;
        }
        let runs: Vec<RunIndex> = self.conductors.keys().copied().collect();
        let Some(run) = world.rng.pick(&runs) else { return Outcome::GoesOn };
        if world.rng.chance(500) {
            self.step_monitor(world, run);
            return Outcome::GoesOn;
        }
        self.conduct(world, run)
    }

    /// Lets the daemon take one step for each of its runs.
    pub(crate) fn round(&mut self, world: &mut World) -> Outcome {
        if self.stage != Stage::Serving {
            self.begin(world);
            return Outcome::GoesOn;
        }
        // One that waits for its parent takes another place.
        for _ in 0..self.creations.len() {
            if self.create(world, 0) == Outcome::Fenced {
                return Outcome::Fenced;
            }
        }
        self.reconcile(world);
        let runs: Vec<RunIndex> = self.conductors.keys().copied().collect();
        for run in runs {
            self.step_monitor(world, run);
            if self.conduct(world, run) == Outcome::Fenced {
                return Outcome::Fenced;
            }
        }
        Outcome::GoesOn
    }

    fn begin(&mut self, world: &mut World) {
        if self.stage == Stage::Started {
            self.epoch = world.store.take_epoch().expect("memory has room for a number");
            self.shelf.epoch = self.epoch;
            world.epoch = self.epoch;
            self.stage = Stage::EpochTaken;
            return;
        }
        self.shelf.follow(world);
        self.shelf.wake_all();
        let mut open = Vec::new();
        for id in world.store.open_runs().expect("memory can be read") {
            let run = world.index_of(&id);
            if let Some(replayed) = conductor::replay(world, run) {
                self.shelf.restarts.push(world, run, &replayed);
                // A run that was at work keeps its slot, before any other run takes one.
                let (is_paced, nothing) = (true, Entry::default());
                let _no_run_waits_yet = self.shelf.books.note(&replayed, is_paced, nothing);
                open.push((run, replayed));
            }
        }
        let plan = self.shelf.restarts.plan(world, &self.shelf.conducted);
        for id in &plan.seat {
            let at = open.iter().position(|(_, run)| run.id == *id).expect("it was wanted");
            let (run, replayed) = open.swap_remove(at);
            self.conduct_from_here(run, FencedRun::new(replayed, self.epoch), Some(Input::Woke));
        }
        self.stage = Stage::Serving;
        self.catch_up(world);
    }

    /// Tells parents what happened to their children while no daemon ran.
    fn catch_up(&mut self, world: &World) {
        self.conductors.values_mut().for_each(|conductor| tell_unheard(conductor, world));
    }

    /// Has the parent of a run hear of it, if it has one that is conducted here.
    fn tell_parent(&mut self, world: &World, run: RunIndex, unheard: Unheard) {
        let Some(parent) = world.runs[run].spec.parent.as_ref() else { return };
        let row = world.store.row(&world.runs[run].id).expect("memory can be read");
        if let Some(row) = row {
            let input = family::news(world, &row, unheard);
            let parent = world.index_of(parent);
            self.tell(parent, Message::new(input, Asker::Nobody));
        }
    }

    /// Follows the config, lets those go on whose turn it is, and has the sinks send that were told to look.
    fn reconcile(&mut self, world: &mut World) {
        self.shelf.follow(world);
        if self.shelf.restarts.has_pending() {
            let plan = self.shelf.restarts.plan(world, &self.shelf.conducted);
            self.shelf.pokes.extend(plan.adopt.into_iter().chain(plan.start));
        }
        for sink in std::mem::take(&mut self.shelf.woken) {
            world.send(&sink);
        }
        self.pass_on_pokes(world);
        if world.rng.chance(500) {
            self.unmake(world);
        }
    }

    /// Has those look again who were told to. A mailbox that is full has other news.
    fn pass_on_pokes(&mut self, world: &World) {
        for id in std::mem::take(&mut self.shelf.pokes) {
            self.tell(world.index_of(&id), Message::new(Input::Woke, Asker::Nobody));
        }
    }

    fn step_monitor(&mut self, world: &mut World, run: RunIndex) {
        let conductor = self.conductors.get_mut(&run).expect("it was listed");
        conductor.step_monitor(&mut self.shelf, world);
    }

    fn conduct_from_here(&mut self, run: RunIndex, fenced: FencedRun, first: Option<Input>) {
        self.shelf.conducted.insert(fenced.run().id.clone());
        let owner = (self.epoch, self.began);
        self.conductors.insert(run, RunDriver::new(run, fenced, owner, first));
    }

    fn conduct(&mut self, world: &mut World, run: RunIndex) -> Outcome {
        let conductor = self.conductors.get_mut(&run).expect("it was listed");
        let had_ended = conductor.run().has_ended();
        let outcome = conductor.step(&mut self.shelf, world);
        if had_ended && !conductor.run().has_ended() {
            // While it had ended it heard nothing of its children.
            tell_unheard(conductor, world);
        }
        if outcome != Outcome::Fenced && conductor.has_just_ended() {
            self.tell_parent(world, run, Unheard::Ended);
        }
        if outcome != Outcome::Fenced && world.rng.chance(200) {
            self.stop_children(world, run);
        }
        if outcome == Outcome::Over {
            let conductor = self.conductors.remove(&run).expect("it was listed");
            self.shelf.forget(&conductor.run().id);
            conductor.let_go(world);
        }
        self.pass_on_pokes(world);
        outcome
    }

    pub(crate) fn portrait(&self, run: RunIndex) -> String {
        let conductor = self
            .conductors
            .get(&run)
            .map_or_else(|| "does not conduct it".to_owned(), RunDriver::portrait);
        format!("{:?} epoch {}: {conductor}", self.stage, self.epoch)
    }

    /// A run as its conductor here has it.
    pub(crate) fn run_of(&self, run: RunIndex) -> Option<&Run> {
        self.conductors.get(&run).map(RunDriver::run)
    }

    /// How much of what was brought to a run it has not read yet.
    pub(crate) fn waiting_for(&self, run: RunIndex) -> usize {
        self.conductors.get(&run).map_or(0, RunDriver::waiting)
    }

    pub(crate) fn conducts(&self, run: RunIndex) -> bool {
        self.conductors.contains_key(&run)
    }

    /// Brings news to a run; false if this daemon does not conduct it.
    pub(crate) fn tell(&mut self, run: RunIndex, message: Message) -> bool {
        let conductor = self.conductors.get_mut(&run);
        conductor.map(|conductor| conductor.tell(message)).is_some()
    }

    /// The workspace of an ended run is to go.
    pub(crate) fn remove(&mut self, world: &mut World, run: RunIndex) {
        self.tell_or_conduct(world, run, Input::RemovalAsked);
    }

    /// Tells a run something that has an effect after its end, too: a run without a conductor gets one for it.
    pub(crate) fn tell_or_conduct(&mut self, world: &mut World, run: RunIndex, input: Input) {
        if self.tell(run, Message::new(input.clone(), Asker::Client)) {
            return;
        }
        if let Some(replayed) = conductor::replay(world, run) {
            self.conduct_from_here(run, FencedRun::new(replayed, self.epoch), Some(input));
        }
    }

    pub(crate) fn ask_for(&mut self, client: usize, run: RunIndex) {
        self.creations.push(Creation { client, run, at: At::Check });
    }

    fn create(&mut self, world: &mut World, index: usize) -> Outcome {
        let Creation { client, run, at } = self.creations.swap_remove(index);
        if world.rng.chance(world.faults.hang_up) {
            return self.hung_up(world, client, run, at);
        }
        match at {
            At::Check => {
                if self.is_there(world, run) {
                    self.found(world, client, run);
                    return Outcome::GoesOn;
                }
                if world.is_sabotaged(Sabotage::AnswersEarly) {
                    self.answer(world, client, run);
                }
                self.ask_parent(world, client, run);
            }
            At::Admit => self.admit(world, client, run),
            At::Append => return self.append(world, client, run),
            At::Conduct(seat) => {
                self.conduct_from_here(run, *seat, None);
                self.tell_parent(world, run, Unheard::Made);
                self.answer(world, client, run);
            }
        }
        Outcome::GoesOn
    }

    /// Asks the parent of a run that is to be made for room, if it has one.
    fn ask_parent(&mut self, world: &mut World, client: usize, run: RunIndex) {
        let (id, spec) = (world.runs[run].id.clone(), world.runs[run].asked.clone());
        let at = match &spec.parent {
            Some(_) if world.is_sabotaged(Sabotage::ChildFirst) => At::Append,
            Some(parent) => {
                let ask = Input::SpawnAsked(Box::new(family::ask(&id, &spec)));
                self.tell(world.index_of(parent), Message::new(ask, Asker::Nobody));
                At::Admit
            }
            None => At::Append,
        };
        self.creations.push(Creation { client, run, at });
    }

    /// Looks at what the parent's journal says of a run that is to be made.
    fn admit(&mut self, world: &mut World, client: usize, run: RunIndex) {
        let (id, spec) = (world.runs[run].id.clone(), world.runs[run].asked.clone());
        let above = spec.parent.as_ref().map(|parent| world.index_of(parent));
        let above = above.expect("only a child is admitted");
        let Some(parent) = world.runs[above].known.run().cloned() else {
            self.replies.push((client, Reply::Lost));
            return;
        };
        let is_unmaking = self.unmaking.contains(&run);
        match parent.children.get(&id) {
            Some(child) if child.end.is_none() && !is_unmaking => {
                world.runs[run].spec = family::bounded(spec, child);
                self.creations.push(Creation { client, run, at: At::Append });
            }
            Some(child) if child.end.is_none() => {
                self.creations.push(Creation { client, run, at: At::Admit });
            }
            // It was said that there is no such run: its client asks with another id.
            Some(_) => self.replies.push((client, Reply::Refused)),
            None => match parent.admit(&family::ask(&id, &spec)) {
                Ok(Admission::Same(other)) if !self.is_there(world, world.index_of(&other)) => {
                    let (run, at) = (world.index_of(&other), At::Check);
                    self.creations.push(Creation { client, run, at });
                }
                Ok(Admission::Same(other)) => {
                    world.stats.keys_met_again += 1;
                    self.found(world, client, world.index_of(&other));
                }
                Ok(Admission::New { .. }) if self.conducts(above) => {
                    self.creations.push(Creation { client, run, at: At::Admit });
                }
                Ok(Admission::New { .. }) => self.replies.push((client, Reply::Lost)),
                Err(_) => {
                    world.stats.children_refused += 1;
                    self.replies.push((client, Reply::Refused));
                }
            },
        }
    }

    /// Has parents hear of children that were meant to be made and that no client asks for any more.
    fn unmake(&mut self, world: &World) {
        let mut unmade = Vec::new();
        // A run that has ended hears nothing; one that is opened again hears it then.
        for (above, conductor) in self.conductors.iter().filter(|(_, it)| !it.run().has_ended()) {
            unmade
                .extend(family::unmade(world, conductor.run()).into_iter().map(|it| (*above, it)));
        }
        self.unmaking.retain(|run| unmade.iter().any(|(_, it)| it == run));
        for (above, run) in unmade {
            let is_asked_for = self.creations.iter().any(|creation| creation.run == run);
            if !is_asked_for && self.unmaking.insert(run) {
                let child = world.runs[run].id.clone();
                self.tell(above, Message::new(Input::ChildUnmade { child }, Asker::Nobody));
            }
        }
    }

    /// Has the children of a run stopped that comes to its end.
    fn stop_children(&mut self, world: &World, run: RunIndex) {
        let Some(conductor) = self.conductors.get(&run) else { return };
        let Some(mode) = conductor.stops_children() else { return };
        let id = format!("with:{}", conductor.run().id);
        let order = Order { id: Some(id.clone()), ..Order::default() };
        let live: Vec<RunIndex> =
            conductor.run().live_child_ids().map(|id| world.index_of(id)).collect();
        for child in live {
            let is_asked =
                world.runs[child].known.run().is_some_and(|run| run.orders.get(&id).is_some());
            if !is_asked {
                let input = Input::StopTreeAsked { mode, order: order.clone() };
                self.tell(child, Message::new(input, Asker::Nobody));
            }
        }
    }

    fn append(&mut self, world: &mut World, client: usize, run: RunIndex) -> Outcome {
        let (id, spec) = (world.runs[run].id.clone(), world.runs[run].spec.clone());
        let free_mb = if world.rng.chance(world.faults.no_memory) { 0 } else { u64::MAX };
        let slot = self.shelf.books.slots.take(&id, &spec, world.now(), || free_mb);
        let context = world.context(slot);
        let context = self.shelf.books.context_for_new(&id, &spec, context);
        self.shelf.break_reservation(world, &id);
        let (append, seat): (Append, FencedRun) =
            FencedRun::create(&id, spec, &context, self.epoch, &truth::Unsaid);
        let appended = journal::append(world, run, append);
        let is_made = appended.is_ok();
        let outcome = self.settle(world, client, run, (appended, seat));
        // An append whose fate was not known may have been made, and another request may have made the run at the same
        // time: then the run keeps what it was given.
        if !is_made && !self.conducts(run) && !self.is_open(world, run) {
            self.shelf.pokes.extend(self.shelf.books.forget(&id));
        }
        outcome
    }

    /// Goes on with what the journal has answered.
    fn settle(
        &mut self,
        world: &mut World,
        client: usize,
        run: RunIndex,
        (appended, seat): (Result<(), Error>, FencedRun),
    ) -> Outcome {
        match appended {
            Ok(()) => {
                self.shelf.wake_all();
                self.shelf.note(world, seat.run(), Entry::default());
                self.creations.push(Creation { client, run, at: At::Conduct(Box::new(seat)) });
            }
            Err(Error::KeyTaken { by, .. }) => {
                world.stats.keys_met_again += 1;
                self.found(world, client, world.index_of(&by));
            }
            Err(Error::Conflict { .. }) => self.found(world, client, run),
            Err(Error::StaleEpoch { .. } | Error::Closed) => {
                self.replies.push((client, Reply::Lost));
                return Outcome::Fenced;
            }
            // The append may have been written: the daemon looks for the run before it answers the client.
            Err(_) if !world.is_sabotaged(Sabotage::HangUpForgets) && self.is_there(world, run) => {
                self.found(world, client, run);
            }
            Err(_) => self.replies.push((client, Reply::Lost)),
        }
        Outcome::GoesOn
    }

    /// Tells a client that its run exists.
    fn answer(&mut self, world: &mut World, client: usize, run: RunIndex) {
        self.replies.push((client, Reply::Created));
        truth::on_created(world, run);
    }

    fn is_there(&self, world: &World, run: RunIndex) -> bool {
        world.store.row(&world.runs[run].id).expect("memory can be read").is_some()
    }

    fn is_open(&self, world: &World, run: RunIndex) -> bool {
        let row = world.store.row(&world.runs[run].id).expect("memory can be read");
        row.is_some_and(|row| row.is_open)
    }

    /// The run is there already. The daemon that made it may have died before it conducted it.
    fn found(&mut self, world: &mut World, client: usize, run: RunIndex) {
        if !world.is_sabotaged(Sabotage::HangUpForgets) {
            self.take_up(world, run);
        }
        self.answer(world, client, run);
    }

    fn take_up(&mut self, world: &mut World, run: RunIndex) {
        if self.conducts(run) || self.creations.iter().any(|creation| creation.run == run) {
            return;
        }
        if let Some(replayed) = conductor::replay(world, run).filter(Run::is_open) {
            self.conduct_from_here(run, FencedRun::new(replayed, self.epoch), Some(Input::Woke));
        }
    }

    /// The client has hung up before it was answered. A run that was appended is conducted nevertheless.
    fn hung_up(&mut self, world: &mut World, client: usize, run: RunIndex, at: At) -> Outcome {
        world.stats.hang_ups += 1;
        world.note(|| format!("client {client} hangs up"));
        self.replies.push((client, Reply::Lost));
        match at {
            At::Conduct(seat) if !world.is_sabotaged(Sabotage::HangUpForgets) => {
                self.conduct_from_here(run, *seat, None);
            }
            At::Conduct(_) | At::Check | At::Admit | At::Append => {}
        }
        Outcome::GoesOn
    }
}

/// Tells a run what it has not heard of its children.
fn tell_unheard(conductor: &mut RunDriver, world: &World) {
    for input in family::unheard(world, conductor.run()) {
        let is_end = matches!(input, Input::ChildEnded(_));
        if is_end && world.is_sabotaged(Sabotage::ForgetsChildren) {
            continue;
        }
        conductor.tell(Message::new(input, Asker::Nobody));
    }
}
