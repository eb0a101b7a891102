//! A whole machine: the world, the daemons on it, and the clients and people who use them.

mod callers;
mod clients;
mod mishaps;
mod people;

use std::collections::BTreeMap;

use crate::conductor::Outcome;
use crate::daemon::{Daemon, Reply, Stage};
use crate::faults::Faults;
use crate::options::Options;
use crate::rng::Rng;
use crate::rules::Rules;
use crate::world::World;
use clients::Client;
use people::Person;

pub(crate) type DaemonId = u64;

pub(crate) struct Machine {
    pub(crate) world: World,
    pub(crate) daemons: BTreeMap<DaemonId, Daemon>,
    clients: Vec<Client>,
    /// So many come in this seed.
    most_clients: usize,
    /// The person who looks after each run, by the run's index.
    people: Vec<Person>,
}

impl Machine {
    pub(crate) fn new(seed: u64, options: &Options) -> Self {
        let mut rng = Rng::new(seed);
        let faults = Faults::draw(&mut rng);
        let most_clients = 1 + rng.index(options.clients);
        let rules = Rules::draw(&mut rng);
        let world = World::new(options, rng, faults, rules);
        let (clients, people) = (Vec::new(), Vec::new());
        Self { world, daemons: BTreeMap::new(), clients, most_clients, people }
    }

    pub(crate) fn start_daemon(&mut self) {
        let id = self.world.fresh();
        self.world.stats.daemons += 1;
        self.world.stats.overlaps += u64::from(!self.daemons.is_empty());
        self.world.note(|| format!("daemon {id} is started"));
        self.daemons.insert(id, Daemon::new(self.world.now()));
    }

    /// Lets a daemon take one step, of its own or of one of its runs.
    pub(crate) fn step_daemon(&mut self, id: DaemonId) {
        let Some(mut daemon) = self.daemons.remove(&id) else { return };
        match daemon.step(&mut self.world) {
            Outcome::GoesOn | Outcome::Over => self.keep(id, daemon),
            Outcome::Fenced => {
                self.world.note(|| format!("daemon {id} gives way"));
                self.bury(daemon);
            }
        }
    }

    /// Lets a daemon take one step for each of its runs.
    pub(crate) fn round_of_daemon(&mut self, id: DaemonId) {
        let Some(mut daemon) = self.daemons.remove(&id) else { return };
        match daemon.round(&mut self.world) {
            Outcome::GoesOn | Outcome::Over => self.keep(id, daemon),
            Outcome::Fenced => self.bury(daemon),
        }
    }

    fn keep(&mut self, id: DaemonId, mut daemon: Daemon) {
        self.deliver(daemon.take_replies());
        self.daemons.insert(id, daemon);
    }

    fn bury(&mut self, daemon: Daemon) {
        let replies = daemon.die(&mut self.world);
        self.deliver(replies);
    }

    fn deliver(&mut self, replies: Vec<(usize, Reply)>) {
        for (client, reply) in replies {
            self.clients[client].hear(reply);
        }
    }

    /// A daemon that answers on the socket: in peace the newest one, otherwise maybe one that was replaced.
    fn a_serving_daemon(&mut self) -> Option<DaemonId> {
        let World { is_quiet, epoch, rng, .. } = &mut self.world;
        let answers = |daemon: &Daemon| {
            daemon.stage == Stage::Serving && (!*is_quiet || daemon.epoch == *epoch)
        };
        let serving: Vec<DaemonId> =
            self.daemons.iter().filter(|(_, daemon)| answers(daemon)).map(|(id, _)| *id).collect();
        rng.pick(&serving)
    }
}
