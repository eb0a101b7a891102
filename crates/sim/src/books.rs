//! What the runs of one daemon share: production's own books of slots, budgets and restarts, and the sinks that have
//! something to send.

use std::collections::BTreeSet;

use outlast_conduct::books::Books;
use outlast_conduct::conductor::Shared;
use outlast_conduct::fenced_run::Tell;
use outlast_engine::{Budget, Context, Input, Run, RunId, Slot, Time};
use outlast_store::Entry;

use crate::options::Sabotage;
use crate::restarts::Restarts;
use crate::truth;
use crate::world::World;

#[derive(Default)]
pub(crate) struct Shelf {
    pub(crate) books: Books,
    pub(crate) restarts: Restarts,
    /// Sinks that have been told to look for something to send.
    pub(crate) woken: BTreeSet<String>,
    /// Runs that have been told to look again.
    pub(crate) pokes: Vec<RunId>,
    /// The runs that this daemon conducts.
    pub(crate) conducted: BTreeSet<RunId>,
    /// The epoch of this daemon.
    pub(crate) epoch: u64,
    /// Appends that the journal has taken and whose conductors have not heard so.
    pub(crate) in_flight: usize,
}

/// The books and the world, as a conductor asks them.
pub(crate) struct Around<'a> {
    pub(crate) shelf: &'a mut Shelf,
    pub(crate) world: &'a mut World,
}

impl Shelf {
    /// Follows the config as it is now.
    pub(crate) fn follow(&mut self, world: &World) {
        self.pokes.extend(self.books.slots.follow(&world.rules.slots));
        let (rules, now) = (&world.rules.budgets, world.now());
        let poked = self.books.budgets.follow(rules, 80, now, &world.store);
        self.pokes.extend(poked.expect("memory can be read"));
    }

    /// Reads again what others may have changed: an append was made whose answer got lost.
    pub(crate) fn reload(&mut self, world: &World) {
        self.books.budgets.reload(world.now(), &world.store).expect("memory can be read");
        self.wake_all();
    }

    /// Has every sink look for something to send.
    pub(crate) fn wake_all(&mut self) {
        self.woken.extend(crate::spec::SINKS.map(str::to_owned));
    }

    pub(crate) fn wake(&mut self, world: &World, sinks: Vec<String>) {
        if !world.is_sabotaged(Sabotage::ForgetsSinks) {
            self.woken.extend(sinks);
        }
    }

    pub(crate) fn note(&mut self, world: &World, run: &Run, spent: Entry) {
        let is_paced = self.restarts.is_pending(&run.id);
        self.pokes.extend(self.books.note(run, is_paced, spent));
        self.break_reservation(world, &run.id);
        self.restarts.note(world, run);
    }

    /// Only a broken daemon does something here: it forgets what it has reserved.
    pub(crate) fn break_reservation(&self, world: &World, run: &RunId) {
        if world.is_sabotaged(Sabotage::ForgetsReservations) {
            let _woken = self.books.budgets.forget(run);
        }
    }

    pub(crate) fn forget(&mut self, run: &RunId) {
        self.pokes.extend(self.books.forget(run));
        self.restarts.forget(run);
        self.conducted.remove(run);
    }
}

impl Shared for Around<'_> {
    fn context(&mut self, run: &Run, _input: &Input, unreachable: Option<Time>) -> Context {
        let Self { shelf, world } = self;
        let is_paced = shelf.restarts.is_pending(&run.id);
        let free_mb = if world.rng.chance(world.faults.no_memory) { 0 } else { u64::MAX };
        let slot = shelf.books.slot_of(run, is_paced, || free_mb);
        if slot == Slot::Taken {
            shelf.restarts.started(&run.id);
        }
        let mut context = world.context(slot);
        context.seen.unreachable = unreachable.or(context.seen.unreachable);
        let context = shelf.books.context_of(run, context);
        shelf.break_reservation(world, &run.id);
        let is_up_to_date = shelf.in_flight == 0 && shelf.epoch == world.epoch;
        if is_up_to_date && context.budget == Budget::Room {
            truth::check_room(world, &run.id);
        }
        context
    }

    fn context_after(&mut self, run: &Run, context: &Context, spent: Entry) -> Context {
        self.shelf.books.context_after(run, context, spent)
    }

    fn lets_go(&mut self, run: &Run) -> bool {
        let Self { shelf, world } = self;
        if world.is_sabotaged(Sabotage::LetsAllGo) {
            shelf.restarts.forget_to_wait(&run.id);
            return true;
        }
        shelf.restarts.request_start(&run.id);
        let plan = shelf.restarts.plan(world, &shelf.conducted);
        shelf.pokes.extend(plan.adopt.into_iter().chain(plan.start));
        !shelf.restarts.is_pending(&run.id)
    }

    fn note(&mut self, run: &Run, spent: Entry) {
        self.shelf.note(self.world, run, spent);
    }

    fn tell(&self) -> &dyn Tell {
        &truth::Unsaid
    }
}
