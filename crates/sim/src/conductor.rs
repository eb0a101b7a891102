//! One run, conducted: the twin of the daemon's conductor, with the production [`FencedRun`] in it.

use std::collections::VecDeque;

use outlast_conduct::fenced_run::{Accepted, FencedRun, Proposal};
use outlast_engine::{Effect, Input, Report, Run, Slot, StopMode};
use outlast_store::Error;

use crate::chore::Chore;
use crate::keeper::Keeper;
use crate::options::Sabotage;
use crate::truth;
use crate::world::{Key, RunIndex, World};

pub(crate) struct Conductor {
    run: RunIndex,
    epoch: u64,
    fenced: FencedRun,
    keeper: Option<Keeper>,
    /// What is done to the workspace, and whether it is still to be done.
    chore: Option<Chore>,
    has_chore_to_do: bool,
    mailbox: VecDeque<Message>,
    doing: Doing,
    /// It may start nothing yet.
    pub(crate) is_held: bool,
    has_told_parent: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) input: Input,
    pub(crate) asker: Asker,
}

/// Who is told when the journal has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    Nobody,
    Client,
}

enum Doing {
    Perform,
    Wait,
    Propose(Message),
    Append(Message, Box<Proposal>),
    Accept(Message, Accepted),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    GoesOn,
    /// Nothing is left to do for this run.
    Over,
    /// This daemon may no longer write.
    Fenced,
}

impl Conductor {
    pub(crate) fn new(run: RunIndex, fenced: FencedRun, epoch: u64, first: Option<Input>) -> Self {
        let doing = match first {
            Some(input) => Doing::Propose(Message { input, asker: Asker::Nobody }),
            None => Doing::Perform,
        };
        Self {
            run,
            epoch,
            fenced,
            keeper: None,
            chore: None,
            has_chore_to_do: false,
            mailbox: VecDeque::new(),
            doing,
            is_held: false,
            has_told_parent: false,
        }
    }

    pub(crate) fn run(&self) -> &Run {
        self.fenced.run()
    }

    /// True if it has met the step that it was to start.
    pub(crate) fn has_met(&self) -> bool {
        self.keeper.as_ref().is_some_and(Keeper::has_met)
    }

    pub(crate) fn tell(&mut self, message: Message) {
        self.mailbox.push_back(message);
    }

    /// True once: when the run is first seen to have ended.
    pub(crate) fn has_just_ended(&mut self) -> bool {
        let has_ended = self.fenced.run().ended_at.is_some();
        has_ended && !std::mem::replace(&mut self.has_told_parent, true)
    }

    pub(crate) fn portrait(&self) -> String {
        format!("{} messages wait, {:?}", self.mailbox.len(), self.keeper)
    }

    pub(crate) fn let_go(self, world: &mut World) {
        if let Some(conn) = self.keeper.and_then(|keeper| keeper.conn()) {
            world.hang_up(conn);
        }
    }

    /// The keeper and the chores work at their own pace, also while the journal cannot be written.
    pub(crate) fn step_keeper(&mut self, world: &mut World) {
        if self.has_chore_to_do
            && world.rng.chance(300)
            && let Some(chore) = self.chore
        {
            self.has_chore_to_do = false;
            let input = chore.carry_out(world, self.run);
            self.mailbox.push_back(Message { input, asker: Asker::Nobody });
        }
        let Some(keeper) = &mut self.keeper else { return };
        keeper.is_held = self.is_held;
        let said = keeper.step(world);
        for input in &said {
            world.note(|| format!("  run {}: the keeper says {}", self.run, describe(input)));
        }
        self.mailbox.extend(said.into_iter().map(|input| Message { input, asker: Asker::Nobody }));
    }

    pub(crate) fn step(&mut self, world: &mut World) -> Outcome {
        self.doing = match std::mem::replace(&mut self.doing, Doing::Perform) {
            Doing::Perform => match self.perform(world) {
                Some(doing) => doing,
                None => return Outcome::Over,
            },
            Doing::Wait => self.next(world),
            Doing::Propose(message) => self.propose(world, message),
            Doing::Append(message, proposal) => match self.append(world, message, *proposal) {
                Some(doing) => doing,
                None => return Outcome::Fenced,
            },
            Doing::Accept(message, accepted) => {
                self.fenced.accept(accepted);
                truth::on_accept(world, self.run, self.fenced.run());
                self.answer(world, &message);
                Doing::Perform
            }
        };
        Outcome::GoesOn
    }

    /// Sees to what is due; `None` if there is nothing left to do.
    fn perform(&mut self, world: &mut World) -> Option<Doing> {
        let due = self.fenced.due();
        self.keep(world, &due);
        self.see_to_workspace(world, &due);
        if due.iter().any(|effect| matches!(effect, Effect::Finish { .. })) {
            return Some(Doing::Propose(Message { input: Input::Finished, asker: Asker::Nobody }));
        }
        self.fenced.run().is_open().then_some(Doing::Wait)
    }

    fn see_to_workspace(&mut self, world: &mut World, due: &[Effect]) {
        let wanted = Chore::due(due);
        if self.chore == wanted {
            return;
        }
        if let Some(chore) = self.chore.filter(|_| self.has_chore_to_do)
            && world.rng.chance(500)
        {
            // Nobody can take back what was begun, and nobody hears of it.
            drop(chore.carry_out(world, self.run));
        }
        self.chore = wanted;
        self.has_chore_to_do = wanted.is_some();
    }

    fn keep(&mut self, world: &mut World, due: &[Effect]) {
        let wanted = due.iter().find_map(|effect| match effect {
            Effect::Ensure { step, boot } => {
                Some((Key { run: self.run, step: *step }, boot.clone()))
            }
            _ => None,
        });
        let is_wanted =
            |keeper: &Keeper| wanted.as_ref().is_some_and(|(key, _)| keeper.key == *key);
        if !self.keeper.as_ref().is_some_and(is_wanted)
            && let Some(conn) = self.keeper.take().and_then(|keeper| keeper.conn())
        {
            world.hang_up(conn);
        }
        let Some((key, boot)) = wanted else { return };
        let epoch = self.epoch;
        let run = self.fenced.run();
        self.keeper
            .get_or_insert_with(|| Keeper::new(key, boot, epoch, run.clone()))
            .order_stop(stop_mode(due));
    }

    /// The next piece of news, or that it is time.
    fn next(&mut self, world: &mut World) -> Doing {
        let is_time = self.fenced.wake_at().is_some_and(|at| world.now() >= at)
            || self.fenced.run().wants_slot()
            || self.fenced.run().is_held != world.is_held;
        if world.rng.chance(if is_time { 500 } else { 10 }) {
            return Doing::Propose(Message { input: Input::Woke, asker: Asker::Nobody });
        }
        if self.mailbox.is_empty() {
            return Doing::Wait;
        }
        let mut index = 0;
        if world.rng.chance(world.faults.news) {
            index = world.rng.index(self.mailbox.len());
            world.stats.late_news += u64::from(index > 0);
        }
        let message = self.mailbox.remove(index).expect("it is within the mailbox");
        if message.asker == Asker::Nobody && world.rng.chance(world.faults.news) {
            world.stats.repeated_news += 1;
            self.mailbox.push_back(message.clone());
        }
        Doing::Propose(message)
    }

    fn propose(&mut self, world: &mut World, message: Message) -> Doing {
        if world.is_sabotaged(Sabotage::StopsEarly) {
            self.answer(world, &message);
        }
        let mut moment = world.moment();
        if self.is_held {
            moment.slot = Slot::Held;
        } else if self.fenced.run().holds_slot() {
            moment.slot = Slot::Free;
        }
        match self.fenced.propose(&message.input, &moment, &truth::Unsaid) {
            Some(proposal) => Doing::Append(message, Box::new(proposal)),
            None => {
                self.answer(world, &message);
                Doing::Perform
            }
        }
    }

    fn append(&mut self, world: &mut World, message: Message, proposal: Proposal) -> Option<Doing> {
        let Proposal { append, accepted, .. } = proposal;
        match world.append(self.run, append) {
            Ok(()) => Some(Doing::Accept(message, accepted)),
            Err(Error::Conflict { .. }) => {
                let run = replay(world, self.run)?;
                self.fenced = FencedRun::new(run, self.epoch);
                Some(Doing::Propose(message))
            }
            Err(Error::StaleEpoch { .. } | Error::Closed) => None,
            Err(_) => Some(Doing::Propose(message)),
        }
    }

    fn answer(&self, world: &mut World, message: &Message) {
        if message.asker == Asker::Client {
            truth::on_answered(world, self.run, &message.input);
        }
    }
}

/// A piece of news on one line.
fn describe(input: &Input) -> String {
    match input {
        Input::Reported(report) => {
            let Report { step, custody, started, end, tree, .. } = &**report;
            format!(
                "{step:?} {custody:?} started: {} end: {end:?} tree: {tree:?}",
                started.is_some()
            )
        }
        _ => format!("{input:?}"),
    }
}

fn stop_mode(due: &[Effect]) -> Option<StopMode> {
    due.iter().find_map(|effect| match effect {
        Effect::Stop { mode, .. } => Some(*mode),
        _ => None,
    })
}

pub(crate) fn replay(world: &mut World, run: RunIndex) -> Option<Run> {
    let events = truth::journal(world, run);
    let replayed = Run::replay(&world.runs[run].id, &events);
    if let Err(illegal) = &replayed {
        world.broke(Some(run), format!("cannot be read back: {illegal}"));
    }
    replayed.ok()
}
