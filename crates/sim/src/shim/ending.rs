//! The end of a command: by itself, at a limit, or by order, with TERM first and KILL after.

use outlast_engine::{Exit, Step, Survivor};
use outlast_wire::shim;

use crate::options::Sabotage;
use crate::processes;
use crate::record::{self, EndCause, NeverStarted, Record};
use crate::tree::{Main, Signal};
use crate::world::{Durability, Ending, Shim, Stage, World};

/// Steps between TERM and KILL, and rounds of KILL before survivors are admitted.
pub(super) const GRACE: u8 = 3;
const KILLS: u8 = 3;

impl Shim {
    /// Begins to end the tree, or hurries an end that has begun.
    pub(super) fn end(&mut self, world: &mut World, cause: EndCause, grace: u8) {
        self.ending = match self.ending {
            Ending::NotAsked => {
                let at_ms = world.now;
                self.record(world, Record::Ending { at_ms, cause }, Durability::Machine);
                Ending::Asked { grace }
            }
            Ending::Asked { grace: asked } => Ending::Asked { grace: asked.min(grace) },
            Ending::Grace { left } => Ending::Grace { left: left.min(grace) },
            Ending::Killing { .. } | Ending::Incomplete => Ending::Killing { left: KILLS },
        };
    }

    pub(super) fn tick_live(&mut self, world: &mut World) {
        let tree = &world.site(self.key).tree;
        let (main, is_empty) = (tree.main, tree.is_empty());
        let has_exited = record::has_exited(&self.records);
        match main {
            Main::Dead(None) => self.never_start(world, NeverStarted::CommandNotFound),
            Main::Dead(Some(exit)) if !has_exited => {
                let (at_ms, exit) = (world.now, on_disk(exit));
                let survivors = listed(world.site(self.key).tree.survivors());
                let forgets = world.is_sabotaged(Sabotage::ForgetsResponse);
                world.site(self.key).is_response_synced |= !forgets;
                let exited = Record::Exited { at_ms, exit, output_bytes: 0, survivors };
                self.record(world, exited, Durability::Machine);
            }
            Main::Dead(Some(_)) if is_empty => {
                let at_ms = world.now;
                self.record(world, Record::TreeEmpty { at_ms }, Durability::Machine);
                self.stage = Stage::Over;
            }
            Main::Running(_) if self.ending == Ending::NotAsked => self.keep_limits(world),
            Main::Absent | Main::AtBarrier(_) | Main::Running(_) | Main::Dead(Some(_)) => {
                self.go_on_ending(world);
            }
        }
    }

    fn keep_limits(&mut self, world: &mut World) {
        let limits = world.runs[self.key.run].spec.limits;
        let is_endless = world.site(self.key).is_endless;
        let is_reached = world.rng.chance(match (is_endless, world.is_quiet) {
            (true, true) => 200,
            (true, false) => 60,
            (false, _) => 15,
        });
        let (is_timed, is_watched) = match self.key.step {
            Step::Attempt { .. } => {
                (limits.turn_timeout_ms.is_some(), limits.stall_window_ms.is_some())
            }
            Step::Errand { .. } => (true, false),
        };
        if !is_reached {
            return;
        }
        if is_watched && (!is_timed || world.rng.chance(500)) {
            self.end(world, EndCause::Stalled, GRACE);
        } else if is_timed {
            self.end(world, EndCause::TimedOut, GRACE);
        }
    }

    fn go_on_ending(&mut self, world: &mut World) {
        self.ending = match self.ending {
            Ending::NotAsked => return,
            Ending::Asked { grace } => {
                processes::signal(world, self.key, Signal::Term);
                Ending::Grace { left: grace }
            }
            Ending::Grace { left: 0 } => {
                processes::signal(world, self.key, Signal::Kill);
                Ending::Killing { left: KILLS }
            }
            Ending::Grace { left } => Ending::Grace { left: left - 1 },
            Ending::Killing { left: 0 } => {
                processes::signal(world, self.key, Signal::Kill);
                self.admit(world);
                Ending::Incomplete
            }
            Ending::Killing { left } => {
                processes::signal(world, self.key, Signal::Kill);
                Ending::Killing { left: left - 1 }
            }
            Ending::Incomplete => {
                processes::signal(world, self.key, Signal::Kill);
                Ending::Incomplete
            }
        };
    }

    fn admit(&mut self, world: &mut World) {
        let survivors = listed(world.site(self.key).tree.members());
        let admitted = self.records.iter().rev().find_map(|record| match record {
            Record::StopIncomplete { survivors, .. } => Some(survivors.clone()),
            _ => None,
        });
        let is_news =
            admitted != Some(survivors.clone()) || !world.is_sabotaged(Sabotage::AdmitsOnce);
        if !survivors.is_empty() && is_news {
            let at_ms = world.now;
            self.record(world, Record::StopIncomplete { at_ms, survivors }, Durability::Machine);
        }
    }
}

fn on_disk(exit: Exit) -> shim::Exit {
    match exit {
        Exit::Code(code) => shim::Exit::Code(code),
        Exit::Signal(signal) => shim::Exit::Signal(signal),
    }
}

fn listed(survivors: Vec<Survivor>) -> Vec<shim::Survivor> {
    let listed = |Survivor { pid, start, command }| shim::Survivor { pid, start, command };
    survivors.into_iter().map(listed).collect()
}
