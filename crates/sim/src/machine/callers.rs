//! Processes inside attempts that make calls under keys: they ask, make the effect, tell the result, and die anywhere
//! in between.

use outlast_engine::{
    By, CallAsked, CallOutput, CallResultSaid, CallVerdict, Exit, Input, KeyedCall, Order, Step,
    ToolClass,
};

use super::Machine;
use crate::callers;
use crate::conductor::{Asker, Message};
use crate::options::Sabotage;
use crate::processes;
use crate::tree::Main;
use crate::truth;
use crate::world::{Caller, Calling, Key, RunIndex};

const CLASSES: [ToolClass; 4] =
    [ToolClass::Unsafe, ToolClass::Keyed, ToolClass::Idempotent, ToolClass::Read];

/// Messages of a run that wait to be read before callers wait, too.
const MOST_WAITING: usize = 64;

impl Machine {
    /// Time passes for the calls of one attempt: its script makes one after the other.
    pub(crate) fn step_calls(&mut self, at: Key) {
        let Step::Attempt { turn, .. } = at.step else { return };
        let Some(site) = self.world.sites.get(&at) else { return };
        let Main::Running(main) = site.tree.main else { return };
        let (left, made) = site.calls;
        let of_it = self.world.callers.iter().filter(|(_, caller)| caller.at == at);
        let busy = of_it.filter(|(_, caller)| caller.stage != Calling::Over).map(|(id, _)| *id);
        let busy: Vec<u64> = busy.filter(|id| callers::is_alive(&self.world, *id)).collect();
        if let Some(id) = busy.first() {
            return self.step_caller(*id);
        }
        if left == 0 {
            return;
        }
        self.world.site(at).calls = (left - 1, made + 1);
        let asked = self.a_call(at.run, turn, made);
        let Some(asked) = asked else { return };
        let who = processes::fresh(&mut self.world);
        let performer = self.world.rng.chance(800);
        let performer =
            performer.then_some(outlast_engine::Performer { pid: who.pid, start: who.start });
        let asked = CallAsked { performer, ..asked };
        let id = self.world.fresh();
        let (gone, stage) = (None, Calling::Asks);
        self.world.callers.insert(id, Caller { at, main, who, asked, gone, stage });
    }

    /// The next call of a script. The same one in each attempt, but for a script that was changed.
    fn a_call(&mut self, run: RunIndex, turn: u32, made: u32) -> Option<CallAsked> {
        let known = self.world.runs[run].known.run()?;
        let base = if made == 2 { format!("{}/", known.id) } else { known.key_base(turn) };
        let at = (run + usize::try_from(made).ok()?) % CLASSES.len();
        let digest = if self.world.rng.chance(30) { "other" } else { "same" };
        Some(CallAsked {
            key: format!("{base}c{made}"),
            class: CLASSES[at],
            digest: digest.to_owned(),
            command: "simulated".to_owned(),
            ticket: format!("ticket-{}", self.world.fresh()),
            performer: None,
            retries_failed: self.world.rng.chance(300),
        })
    }

    fn step_caller(&mut self, id: u64) {
        if self.world.rng.chance(self.world.faults.caller_kill) {
            return self.kill_caller(id);
        }
        match self.world.callers[&id].stage {
            Calling::Asks => self.ask_to_call(id),
            Calling::Makes(begun) => self.make_call(id, begun),
            Calling::Made(begun, exit) => self.tell_result(id, begun, exit),
            Calling::Over => {}
        }
    }

    /// The process dies, before or after its effect, and its script may ask for the same once more.
    fn kill_caller(&mut self, id: u64) {
        self.world.stats.callers_killed += 1;
        let Some(caller) = self.world.callers.remove(&id) else { return };
        self.world.note(|| format!("a caller of {} is killed in {:?}", caller.at, caller.stage));
        let asks_again = self.world.rng.chance(500);
        let (left, made) = self.world.site(caller.at).calls;
        if asks_again && made > 0 {
            self.world.site(caller.at).calls = (left + 1, made - 1);
        }
    }

    fn ask_to_call(&mut self, id: u64) {
        let (run, key) = {
            let caller = &self.world.callers[&id];
            (caller.at.run, caller.asked.key.clone())
        };
        let Some(daemon) = self.a_serving_daemon() else { return };
        let Some(seated) = self.daemons[&daemon].run_of(run).cloned() else { return };
        let gone = callers::performer_gone(&self.world, &seated, &key);
        self.world.callers.get_mut(&id).expect("it asks").gone = gone;
        let is_lost = self.world.rng.chance(self.world.faults.hang_up);
        match callers::weigh(&self.world, id, &seated) {
            Some(CallVerdict::Make) if self.world.is_sabotaged(Sabotage::CallsUnwritten) => {
                callers::set(&mut self.world, id, Calling::Makes(seated.seq() + 1));
            }
            Some(CallVerdict::Make) => {
                let caller = &self.world.callers[&id];
                let Step::Attempt { turn, attempt } = caller.at.step else { return };
                let asked = Box::new(caller.asked.clone());
                let input = Input::CallBegan { turn, attempt, asked, gone };
                self.post(daemon, run, input, (id, is_lost));
            }
            Some(_) if !is_lost => callers::hear(&mut self.world, id, &seated),
            Some(_) | None => self.world.stats.hang_ups += 1,
        }
    }

    fn make_call(&mut self, id: u64, begun: u64) {
        if self.world.rng.chance(100) {
            return callers::set(&mut self.world, id, Calling::Made(begun, None));
        }
        let exits = [Exit::Code(0), Exit::Code(0), Exit::Code(0), Exit::Code(1), Exit::Signal(9)];
        let exit = self.world.rng.pick(&exits).expect("it is a list");
        truth::on_effect(&mut self.world, id, begun, exit);
        callers::set(&mut self.world, id, Calling::Made(begun, Some(exit)));
    }

    fn tell_result(&mut self, id: u64, begun: u64, exit: Option<Exit>) {
        let caller = &self.world.callers[&id];
        let (run, key) = (caller.at.run, caller.asked.key.clone());
        let Some(daemon) = self.a_serving_daemon() else { return };
        let Some(seated) = self.daemons[&daemon].run_of(run).cloned() else { return };
        if callers::has_result(seated.keyed.get(&key), begun) || seated.has_ended() {
            return callers::set(&mut self.world, id, Calling::Over);
        }
        let (stdout, stderr, why) = (CallOutput::default(), CallOutput::default(), None);
        let said = CallResultSaid { key, begun, exit, why, stdout, stderr };
        let is_lost = self.world.rng.chance(self.world.faults.hang_up);
        self.post(daemon, run, Input::CallEnded(Box::new(said)), (id, is_lost));
    }

    /// Brings something to a run for a caller, whose answer may get lost. While much waits to be read, a caller says
    /// nothing new: a client waits for its answer.
    fn post(&mut self, daemon: u64, run: RunIndex, input: Input, (id, is_lost): (u64, bool)) {
        if self.daemons[&daemon].waiting_for(run) >= MOST_WAITING {
            return;
        }
        let asker = if is_lost { Asker::Nobody } else { Asker::Caller(id) };
        self.world.stats.hang_ups += u64::from(is_lost);
        self.daemons.get_mut(&daemon).expect("it serves").tell(run, Message::new(input, asker));
    }

    /// What a person says who has looked whether a call of unknown outcome was made.
    pub(super) fn a_resolution(&mut self, run: RunIndex) -> Option<Input> {
        let known = self.world.runs[run].known.run()?;
        let is_unknown = |(_, call): &(&str, &KeyedCall)| call.is_unknown(known);
        let found = known.keyed.iter().find(is_unknown);
        let (key, begun) = found.map(|(key, call)| (key.to_owned(), call.begun))?;
        let was_made = truth::was_made(&self.world, run, &key);
        let by = Some(By::User { uid: 0, via: None });
        let order = Order { by, answers: Some(begun), ..Order::default() };
        Some(Input::CallResolved { key, was_made, order })
    }
}
