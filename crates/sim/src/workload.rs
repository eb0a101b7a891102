//! Clients: who asks for runs, and asks again when no answer comes.

use outlast_engine::{RunId, RunSpec};
use outlast_store::Journal;

use crate::daemon::{Daemon, Stage};
use crate::person::Person;
use crate::spec;
use crate::truth::Known;
use crate::workspace::Place;
use crate::world::{DaemonId, RunIndex, RunTruth, World};

#[derive(Debug)]
pub(crate) struct Client {
    key: Option<String>,
    spec: RunSpec,
    /// The id it asks with; one that uses a key may ask with another each time.
    run: RunIndex,
    state: Waiting,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Waiting {
    ForAnswer,
    /// It has no answer, and asks again.
    ToAsk,
    Done,
}

impl Client {
    pub(crate) fn answer_is_lost(&mut self) {
        if self.state == Waiting::ForAnswer {
            self.state = Waiting::ToAsk;
        }
    }

    pub(crate) fn is_answered(&mut self) {
        self.state = Waiting::Done;
    }
}

impl World {
    pub(crate) fn step_user(&mut self) {
        match self.rng.below(10) {
            0..=3 if self.clients.len() < self.most_clients => self.new_client(),
            0..=6 => self.ask_again(),
            _ => {
                let runs: Vec<RunIndex> = (0..self.runs.len()).collect();
                if self.rng.chance(400)
                    && let Some(run) = self.rng.pick(&runs)
                {
                    self.meddle(run);
                }
            }
        }
    }

    /// Nobody waits for an answer any more.
    pub(crate) fn is_everybody_answered(&self) -> bool {
        self.clients.iter().all(|client| client.state == Waiting::Done)
    }

    fn new_client(&mut self) {
        let key = self.rng.chance(400).then(|| format!("key-{}", self.rng.below(3)));
        let mut spec = spec::draw(key.clone(), &mut self.rng);
        if !self.rules.budgets.is_empty() && self.rng.chance(700) {
            // Only a run with a ceiling of its own reserves something.
            spec.limits.max_tokens = Some(self.rng.between(100, 1_000));
        }
        if self.rng.chance(600) {
            spec.parent = self.a_parent();
        }
        let run = self.new_id(&spec);
        self.clients.push(Client { key, spec, run, state: Waiting::ToAsk });
    }

    /// Somebody who goes on, as far as clients can tell.
    fn a_parent(&mut self) -> Option<RunId> {
        let goes_on = |run: &&RunTruth| run.known.run().is_some_and(|known| !known.has_ended());
        let parents: Vec<RunIndex> = (0..self.runs.len())
            .filter(|run| self.runs.get(*run).as_ref().is_some_and(goes_on))
            .collect();
        self.rng.pick(&parents).map(|parent| self.runs[parent].id.clone())
    }

    fn new_id(&mut self, spec: &RunSpec) -> RunIndex {
        let mut random = [0; RunId::LENGTH];
        random.fill_with(|| u8::try_from(self.rng.below(256)).expect("a byte"));
        let id = RunId::from_random(random);
        self.runs.push(RunTruth {
            id,
            spec: spec.clone(),
            is_promised: false,
            is_stop_promised: false,
            known: Known::default(),
            person: Person::draw(&mut self.rng),
            place: if self.rng.chance(200) { Place::Whole } else { Place::Absent },
            version: 0,
            launched: None,
        });
        self.runs.len() - 1
    }

    pub(crate) fn ask_again(&mut self) {
        let waiting: Vec<usize> = (0..self.clients.len())
            .filter(|at| self.clients[*at].state == Waiting::ToAsk)
            .collect();
        let (Some(client), Some(daemon)) = (self.rng.pick(&waiting), self.a_serving_daemon())
        else {
            return;
        };
        self.stats.client_retries += 1;
        if self.clients[client].key.is_some() && self.rng.chance(500) {
            let spec = self.clients[client].spec.clone();
            self.clients[client].run = self.new_id(&spec);
        }
        self.clients[client].state = Waiting::ForAnswer;
        let run = self.clients[client].run;
        self.daemons.get_mut(&daemon).expect("it serves").ask_for(client, run);
    }

    /// Whoever answers on the socket: in peace the newest daemon, otherwise maybe one that was replaced.
    pub(crate) fn a_serving_daemon(&mut self) -> Option<DaemonId> {
        let answers = |daemon: &Daemon| {
            daemon.stage == Stage::Serving && (!self.is_quiet || daemon.epoch == self.epoch)
        };
        let serving: Vec<DaemonId> =
            self.daemons.iter().filter(|(_, daemon)| answers(daemon)).map(|(id, _)| *id).collect();
        self.rng.pick(&serving)
    }

    /// Every run that the journal knows.
    pub(crate) fn existing(&self) -> Vec<RunIndex> {
        let exists = |run: &RunIndex| {
            self.store.row(&self.runs[*run].id).expect("memory can be read").is_some()
        };
        (0..self.runs.len()).filter(exists).collect()
    }
}
