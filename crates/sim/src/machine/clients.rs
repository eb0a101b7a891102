//! Clients: who asks for runs, and asks again when no answer comes.

use outlast_engine::{RunId, RunSpec};

use super::Machine;
use super::people::Person;
use crate::daemon::Reply;
use crate::spec;
use crate::world::{Known, RunIndex, RunTruth, WorkspaceFiles};

#[derive(Debug)]
pub(super) struct Client {
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
    pub(super) fn hear(&mut self, reply: Reply) {
        self.state = match (reply, self.state) {
            (Reply::Created | Reply::Refused, _) => Waiting::Done,
            (Reply::Lost, Waiting::ForAnswer) => Waiting::ToAsk,
            (Reply::Lost, Waiting::ToAsk | Waiting::Done) => self.state,
        };
    }
}

impl Machine {
    pub(crate) fn step_user(&mut self) {
        match self.world.rng.below(10) {
            0..=3 if self.clients.len() < self.most_clients => self.new_client(),
            0..=6 => self.ask_again(),
            _ => {
                let runs: Vec<RunIndex> = (0..self.world.runs.len()).collect();
                if self.world.rng.chance(400)
                    && let Some(run) = self.world.rng.pick(&runs)
                {
                    self.meddle(run);
                }
            }
        }
    }

    /// True if no client waits for an answer.
    pub(crate) fn are_clients_answered(&self) -> bool {
        self.clients.iter().all(|client| client.state == Waiting::Done)
    }

    fn new_client(&mut self) {
        let key = self.world.rng.chance(400).then(|| format!("key-{}", self.world.rng.below(3)));
        let mut spec = spec::draw(key.clone(), &mut self.world.rng);
        if !self.world.rules.budgets.is_empty() && self.world.rng.chance(700) {
            // Only a run with a ceiling of its own reserves something.
            spec.limits.max_tokens = Some(self.world.rng.between(100, 1_000));
        }
        if self.world.rng.chance(600) {
            spec.parent = self.a_parent();
        }
        spec.tree = spec::tree(&mut self.world.rng);
        let run = self.new_id(&spec);
        self.clients.push(Client { key, spec, run, state: Waiting::ToAsk });
    }

    /// A run that goes on, as far as clients can tell.
    fn a_parent(&mut self) -> Option<RunId> {
        let goes_on = |run: &&RunTruth| run.known.run().is_some_and(|known| !known.has_ended());
        let parents: Vec<RunIndex> = (0..self.world.runs.len())
            .filter(|run| self.world.runs.get(*run).as_ref().is_some_and(goes_on))
            .collect();
        self.world.rng.pick(&parents).map(|parent| self.world.runs[parent].id.clone())
    }

    fn new_id(&mut self, spec: &RunSpec) -> RunIndex {
        let mut random = [0; RunId::LENGTH];
        random.fill_with(|| u8::try_from(self.world.rng.below(256)).expect("a byte"));
        let id = RunId::from_random(random);
        self.people.push(Person::draw(&mut self.world.rng));
        let is_whole = self.world.rng.chance(200);
        self.world.runs.push(RunTruth {
            id,
            asked: spec.clone(),
            spec: spec.clone(),
            is_promised: false,
            is_stop_promised: false,
            known: Known::default(),
            workspace: if is_whole { WorkspaceFiles::Whole } else { WorkspaceFiles::Absent },
            version: 0,
            launched: None,
        });
        self.world.runs.len() - 1
    }

    pub(crate) fn ask_again(&mut self) {
        let waiting: Vec<usize> = (0..self.clients.len())
            .filter(|at| self.clients[*at].state == Waiting::ToAsk)
            .collect();
        let (Some(client), Some(daemon)) = (self.world.rng.pick(&waiting), self.a_serving_daemon())
        else {
            return;
        };
        self.world.stats.client_retries += 1;
        if self.clients[client].key.is_some() && self.world.rng.chance(500) {
            let spec = self.clients[client].spec.clone();
            self.clients[client].run = self.new_id(&spec);
        }
        self.clients[client].state = Waiting::ForAnswer;
        let run = self.clients[client].run;
        self.daemons.get_mut(&daemon).expect("it serves").ask_for(client, run);
    }
}
