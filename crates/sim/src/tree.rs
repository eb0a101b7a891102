//! The real processes of one attempt, as only the world knows them.

use outlast_engine::{Exit, Survivor};

use crate::rng::Rng;

#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) main: Main,
    pub(crate) others: Vec<Other>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Main {
    #[default]
    Absent,
    /// Forked, and waiting to be released.
    AtBarrier(Who),
    Running(Who),
    /// `None` if it never was the command.
    Dead(Option<Exit>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Who {
    pub(crate) pid: u32,
    pub(crate) start: u64,
}

/// A descendant that may outlive the main process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) who: Who,
    /// KILLs that it withstands; `None` if it withstands them all.
    pub(crate) kills: Option<u8>,
    pub(crate) leaves_by_itself: bool,
    /// It was told to die, and will unless it withstands all.
    pub(crate) is_killed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Term,
    Kill,
}

impl Tree {
    pub(crate) fn is_main_alive(&self) -> bool {
        matches!(self.main, Main::AtBarrier(_) | Main::Running(_))
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_main_alive() && self.others.is_empty()
    }

    /// The processes of the command; a child at its barrier is not one yet.
    pub(crate) fn command(&self) -> Vec<Survivor> {
        let main = match self.main {
            Main::Running(who) => Some(survivor(who)),
            Main::AtBarrier(_) | Main::Absent | Main::Dead(_) => None,
        };
        main.into_iter().chain(self.survivors()).collect()
    }

    /// The child that waits at its barrier, which still looks like its shim.
    pub(crate) fn at_barrier(&self) -> Option<Survivor> {
        match self.main {
            Main::AtBarrier(who) => Some(survivor(who)),
            Main::Running(_) | Main::Absent | Main::Dead(_) => None,
        }
    }

    /// True while this process is the main one and lives.
    pub(crate) fn is_main(&self, of: Who) -> bool {
        matches!(self.main, Main::AtBarrier(who) | Main::Running(who) if who == of)
    }

    /// True while a process that runs the command, or was started by it, is alive.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.main, Main::Running(_)) || !self.others.is_empty()
    }

    /// Every live process but the main one.
    pub(crate) fn survivors(&self) -> Vec<Survivor> {
        self.others.iter().map(|other| survivor(other.who)).collect()
    }

    /// Every live process.
    pub(crate) fn members(&self) -> Vec<Survivor> {
        let main = match self.main {
            Main::AtBarrier(who) | Main::Running(who) => Some(survivor(who)),
            Main::Absent | Main::Dead(_) => None,
        };
        main.into_iter().chain(self.survivors()).collect()
    }

    pub(crate) fn signal(&mut self, signal: Signal, rng: &mut Rng) {
        match (self.main, signal) {
            (Main::Running(_), Signal::Kill) => self.main = Main::Dead(Some(Exit::Signal(9))),
            (Main::Running(_), Signal::Term) if rng.chance(600) => {
                let exits = [Exit::Signal(15), Exit::Code(143), Exit::Code(0)];
                self.main = Main::Dead(rng.pick(&exits));
            }
            (Main::AtBarrier(_), _) => self.main = Main::Dead(None),
            (Main::Running(_) | Main::Absent | Main::Dead(_), _) => {}
        }
        self.others.retain_mut(|other| match (signal, &mut other.kills) {
            (Signal::Term, Some(0)) => rng.chance(500),
            (Signal::Kill, Some(0)) => false,
            (Signal::Kill, Some(left)) => {
                *left -= 1;
                other.is_killed = true;
                true
            }
            (Signal::Term, Some(_)) | (_, None) => true,
        });
    }

    pub(crate) fn vanish(&mut self) {
        if self.is_main_alive() {
            self.main = Main::Dead(None);
        }
        self.others.clear();
    }
}

fn survivor(who: Who) -> Survivor {
    Survivor { pid: who.pid, start: who.start, command: "simulated".to_owned() }
}
