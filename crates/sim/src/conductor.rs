//! The production [`Conductor`] of one run over this world: carries out what it wants, one step at a time.

use std::collections::VecDeque;

use outlast_conduct::conductor::{Conductor, Due, Next, Over, Taken, WorkspaceOp};
use outlast_conduct::fenced_run::FencedRun;
use outlast_engine::{Fact, Input, Report, Run, StopMode, Time};
use outlast_store::{Append, Error};

use crate::books::{Around, Shelf};
use crate::callers;
use crate::journal;
use crate::options::Sabotage;
use crate::step::{Said, StepDriver};
use crate::truth;
use crate::workspace;
use crate::world::{Key, RunIndex, World};

pub(crate) struct RunDriver {
    run: RunIndex,
    /// The daemon's epoch, and when it started.
    owner: (u64, Time),
    conductor: Conductor,
    step: Option<StepDriver>,
    /// What is done to the workspace, and whether it is still to be done.
    workspace_op: Option<WorkspaceOp>,
    has_op_to_do: bool,
    mailbox: VecDeque<Message>,
    doing: Doing,
}

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) news: Said,
    pub(crate) asker: Asker,
}

impl Message {
    pub(crate) fn new(input: Input, asker: Asker) -> Self {
        Self { news: Said::Input(input), asker }
    }
}

/// Who is told when the journal has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    Nobody,
    Client,
    /// A process of the run that makes a call under a key.
    Caller(u64),
}

enum Doing {
    Perform,
    Wait,
    Take(Message),
    Next(Message, Next),
    /// The journal has answered, and the conductor has not heard so.
    Appended(Message, Result<(), Error>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    GoesOn,
    /// Nothing is left to do for this run.
    Over,
    /// This daemon may no longer write.
    Fenced,
}

impl RunDriver {
    pub(crate) fn new(
        run: RunIndex,
        fenced: FencedRun,
        owner: (u64, Time),
        first: Option<Input>,
    ) -> Self {
        let doing = match first {
            Some(input) => Doing::Take(Message::new(input, Asker::Nobody)),
            None => Doing::Perform,
        };
        Self {
            run,
            owner,
            conductor: Conductor::new(fenced, owner.0),
            step: None,
            workspace_op: None,
            has_op_to_do: false,
            mailbox: VecDeque::new(),
            doing,
        }
    }

    pub(crate) fn run(&self) -> &Run {
        self.conductor.run()
    }

    pub(crate) fn tell(&mut self, message: Message) {
        self.mailbox.push_back(message);
    }

    pub(crate) fn has_just_ended(&mut self) -> bool {
        self.conductor.has_just_ended()
    }

    /// How its children are to be stopped, if they are.
    pub(crate) fn stops_children(&self) -> Option<StopMode> {
        self.conductor.due().stop_children
    }

    pub(crate) fn waiting(&self) -> usize {
        self.mailbox.len()
    }

    pub(crate) fn portrait(&self) -> String {
        format!("{} messages wait, {:?}", self.mailbox.len(), self.step)
    }

    pub(crate) fn let_go(self, world: &mut World) {
        if let Some(step) = self.step {
            step.let_go(world);
        }
    }

    /// The monitor and what is done to the workspace have their own pace, also while the journal cannot be written.
    pub(crate) fn step_monitor(&mut self, shelf: &mut Shelf, world: &mut World) {
        if self.has_op_to_do
            && world.rng.chance(300)
            && let Some(op) = self.workspace_op
        {
            self.has_op_to_do = false;
            let input = workspace::carry_out(op, world, self.run);
            self.mailbox.push_back(Message::new(input, Asker::Nobody));
        }
        let Some(step) = &mut self.step else { return };
        step.is_paced = shelf.restarts.is_pending(&self.conductor.run().id);
        let said = step.step(world);
        if step.has_started {
            shelf.restarts.started(&self.conductor.run().id);
        }
        for news in &said {
            world.note(|| format!("  run {}: the monitor says {}", self.run, describe(news)));
        }
        self.mailbox.extend(said.into_iter().map(|news| Message { news, asker: Asker::Nobody }));
    }

    pub(crate) fn step(&mut self, shelf: &mut Shelf, world: &mut World) -> Outcome {
        self.doing = match std::mem::replace(&mut self.doing, Doing::Perform) {
            Doing::Perform => match self.perform(world) {
                Some(doing) => doing,
                None => return Outcome::Over,
            },
            Doing::Wait => self.next(shelf, world),
            Doing::Take(message) => self.take(shelf, world, message),
            Doing::Appended(message, result) => {
                shelf.in_flight -= 1;
                let is_written = result.is_ok();
                let next = self.conductor.appended(&result, &mut Around { shelf, world });
                if is_written {
                    truth::on_accept(world, self.run, self.conductor.run());
                }
                Doing::Next(message, next)
            }
            Doing::Next(message, next) => match self.follow(shelf, world, message, next) {
                Some(doing) => doing,
                None => return Outcome::Fenced,
            },
        };
        Outcome::GoesOn
    }

    fn take(&mut self, shelf: &mut Shelf, world: &mut World, message: Message) -> Doing {
        let input = match &message.news {
            Said::Input(input) => input.clone(),
            Said::Unreachable(is_unreachable) => {
                if !self.conductor.note_unreachable(*is_unreachable, world.now()) {
                    return Doing::Perform;
                }
                Input::Woke
            }
        };
        if matches!(input, Input::ResumeAsked(_) | Input::Answered { .. }) {
            // A person's word is no resume after a restart.
            shelf.restarts.release(&self.conductor.run().id);
        }
        if world.is_sabotaged(Sabotage::StopsEarly) {
            self.answer(world, &message);
        }
        let next = self.conductor.take(input, &mut Around { shelf, world });
        Doing::Next(message, next)
    }

    /// Does what the conductor wants next; `None` if it must not go on.
    fn follow(
        &mut self,
        shelf: &mut Shelf,
        world: &mut World,
        message: Message,
        next: Next,
    ) -> Option<Doing> {
        match next {
            Next::Append(append) => Some(self.append(shelf, world, message, *append)),
            Next::Reload => {
                let run = replay(world, self.run)?;
                shelf.reload(world);
                let next = self.conductor.reloaded(run, &mut Around { shelf, world });
                Some(Doing::Next(message, next))
            }
            // Time passes until then: other runs and other daemons go on.
            Next::Suspended { .. } if world.rng.chance(500) => Some(Doing::Next(message, next)),
            Next::Suspended { .. } => {
                let next = self.conductor.again(&mut Around { shelf, world });
                Some(Doing::Next(message, next))
            }
            Next::Taken(Taken { wake, .. }) => {
                shelf.wake(world, wake);
                self.answer(world, &message);
                Some(Doing::Perform)
            }
            Next::Over(Over::Fenced) if world.is_sabotaged(Sabotage::TakesEpochBack) => {
                let run = replay(world, self.run)?;
                self.owner.0 = world.epoch;
                self.conductor = Conductor::new(FencedRun::new(run, world.epoch), world.epoch);
                Some(Doing::Take(message))
            }
            Next::Over(Over::Fenced) => None,
            Next::Over(over) => {
                world.broke(Some(self.run), format!("its conductor gives up: {over:?}"));
                None
            }
        }
    }

    fn append(
        &mut self,
        shelf: &mut Shelf,
        world: &mut World,
        message: Message,
        append: Append,
    ) -> Doing {
        let starts = |fact: &Fact| matches!(fact, Fact::TurnStarted { .. });
        let id = &self.conductor.run().id;
        if shelf.restarts.has_to_wait(id) && append.events.iter().any(|event| starts(&event.fact)) {
            world.broke(Some(self.run), "started before its turn came after a restart".to_owned());
        }
        let again = world.is_sabotaged(Sabotage::AppendsAgain).then(|| append.clone());
        let mut result = journal::append(world, self.run, append);
        let is_unknown = matches!(result, Err(Error::Io(_)));
        if let Some(mut again) = again.filter(|_| is_unknown) {
            again.expected_seq = world.runs[self.run].known.seq();
            let mut seq = again.expected_seq;
            for event in &mut again.events {
                seq += 1;
                event.seq = seq;
            }
            result = journal::append(world, self.run, again);
        }
        if world.is_sabotaged(Sabotage::TrustsLostAppends) && is_unknown {
            result = Ok(());
        }
        shelf.in_flight += 1;
        Doing::Appended(message, result)
    }

    /// Sees to what is due; `None` if there is nothing left to do.
    fn perform(&mut self, world: &mut World) -> Option<Doing> {
        let due = self.conductor.due();
        self.see_to_step(world, &due);
        self.see_to_workspace(world, &due);
        if due.is_finishing {
            return Some(Doing::Take(Message::new(Input::Finished, Asker::Nobody)));
        }
        self.conductor.run().is_open().then_some(Doing::Wait)
    }

    fn see_to_workspace(&mut self, world: &mut World, due: &Due) {
        if self.workspace_op == due.workspace {
            return;
        }
        if let Some(op) = self.workspace_op.filter(|_| self.has_op_to_do)
            && world.rng.chance(500)
        {
            // What was begun cannot be taken back, and the run hears nothing of it.
            drop(workspace::carry_out(op, world, self.run));
        }
        self.workspace_op = due.workspace;
        self.has_op_to_do = due.workspace.is_some();
    }

    fn see_to_step(&mut self, world: &mut World, due: &Due) {
        let wanted = due.step.as_ref().map(|(step, _)| Key { run: self.run, step: *step });
        if self.step.as_ref().map(|step| step.key) != wanted
            && let Some(step) = self.step.take()
        {
            step.let_go(world);
        }
        let (Some(key), Some((_, boot))) = (wanted, &due.step) else { return };
        match &mut self.step {
            Some(step) => step.order_stop(due.stop),
            None => {
                let run = self.conductor.shared();
                let step = StepDriver::new(world, key, run, boot.clone(), due.stop, self.owner);
                self.step = Some(step);
            }
        }
    }

    /// The next piece of news, or that it is time.
    fn next(&mut self, shelf: &Shelf, world: &mut World) -> Doing {
        let run = self.conductor.run();
        let is_time = self.conductor.wake_at().is_some_and(|at| world.now() >= at)
            || (run.wants_slot() && shelf.books.slots.waits_for_memory())
            || run.is_paused_with_all != world.is_all_paused;
        if world.rng.chance(if is_time { 500 } else { 2 }) {
            return Doing::Take(Message::new(Input::Woke, Asker::Nobody));
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
        Doing::Take(message)
    }

    fn answer(&self, world: &mut World, message: &Message) {
        match (message.asker, &message.news) {
            (Asker::Client, Said::Input(input)) => truth::on_answered(world, self.run, input),
            (Asker::Caller(id), _) => callers::hear(world, id, self.conductor.run()),
            (Asker::Client | Asker::Nobody, _) => {}
        }
    }
}

/// A piece of news on one line.
fn describe(news: &Said) -> String {
    match news {
        Said::Input(Input::Reported(report)) => {
            let Report { step, custody, started, end, tree, .. } = &**report;
            format!(
                "{step:?} {custody:?} started: {} end: {end:?} tree: {tree:?}",
                started.is_some()
            )
        }
        news => format!("{news:?}"),
    }
}

pub(crate) fn replay(world: &mut World, run: RunIndex) -> Option<Run> {
    let events = truth::journal(world, run);
    let replayed = Run::replay(&world.runs[run].id, &events);
    if let Err(illegal) = &replayed {
        world.broke(Some(run), format!("cannot be read back: {illegal}"));
    }
    replayed.ok()
}
