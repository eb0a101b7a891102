//! How an attempt comes to its end: by a limit, by an order or by itself, in two steps that are two facts.
//!
//! The main process's end and the tree's are written down separately, each once it is true and all
//! output that came before it is in the spool.

use std::time::{Duration, Instant};

use outlast_home::process::Who;
use outlast_secrets::Secrets;
use outlast_wire::hook;
use outlast_wire::shim::{EndCause, News, Record, Survivor};
use rustix::process::Signal;

use crate::attempt::{Attempt, Stage};
use crate::clock;
use crate::ending::{Due, Ending};
use crate::live::{Live, Main};
use crate::reap::{self, Tree};
use crate::tree;

impl Attempt {
    /// Begins to end the tree, or hurries an end that has begun. The first cause is the one that counts.
    pub(crate) fn end(&mut self, cause: EndCause, grace: Duration, now: Instant) {
        if !self.ending.ask(now, grace) {
            return;
        }
        self.fact(Record::Ending { at_ms: clock::wall_ms(), cause }, now);
        hook!("shim.stop-ordered");
        tree::signal(&tree::descendants(), &[Signal::TERM, Signal::CONT]);
    }

    /// A turn that has ended, or is being ended, has no limits to reach.
    pub(crate) fn limits_wake_at(&self, live: &Live) -> Option<Instant> {
        let counts = live.is_running() && self.ending == Ending::NotAsked;
        live.limits.wake_at().filter(|_| counts)
    }

    pub(crate) fn keep_limits(&mut self, now: Instant) {
        let Stage::Live(live) = &mut self.stage else { return };
        if !self.disk.is_fine() {
            live.limits.heard(now);
        }
        if !live.is_running() || self.ending != Ending::NotAsked {
            return;
        }
        if let Some(cause) = self.limit_reached(now) {
            self.end(cause, Duration::from_millis(self.spec.limits.grace_ms), now);
        }
    }

    /// We were stopped until now: that was not the child's silence, whether or not it was stopped too.
    pub(crate) fn continued(&mut self, now: Instant) {
        if self.signals.continued.take()
            && let Stage::Live(live) = &mut self.stage
        {
            live.limits.heard(now);
        }
    }

    /// Before a child is called silent, every other sign of its life is looked for.
    fn limit_reached(&mut self, now: Instant) -> Option<EndCause> {
        let Stage::Live(live) = &mut self.stage else { return None };
        if live.limits.reached(now)? == EndCause::Stalled {
            live.look_for_a_beat(now);
            // A wait that this very signal interrupts does not name it.
            self.continued(now);
        }
        let Stage::Live(live) = &self.stage else { return None };
        live.limits.reached(now)
    }

    pub(crate) fn go_on_ending(&mut self, now: Instant) {
        if !matches!(self.stage, Stage::Live(_)) {
            return;
        }
        let Some(due) = self.ending.due(now) else { return };
        tree::signal(&tree::descendants(), &[Signal::KILL]);
        if due == Due::KillAndAdmit {
            self.admit_survivors(now);
        }
    }

    fn admit_survivors(&mut self, now: Instant) {
        let survivors = self.survivors(&tree::descendants());
        if survivors.is_empty() {
            return;
        }
        let admitted = self.records.all().iter().rev().find_map(|record| match record {
            Record::StopIncomplete { survivors, .. } => Some(survivors),
            _ => None,
        });
        let is_known = admitted == Some(&survivors);
        let record = Record::StopIncomplete { at_ms: clock::wall_ms(), survivors };
        if is_known {
            // The answer to another order, and no news to write down: records would grow without a bound.
            self.control.tell_daemons(&News::Record { record });
        } else {
            self.fact(record, now);
        }
    }

    fn survivors(&self, left: &[Who]) -> Vec<Survivor> {
        let survivors = tree::survivors(left);
        match &self.stage {
            Stage::Live(live) => without_secrets(survivors, &live.secrets),
            Stage::Gate | Stage::Bygone | Stage::Over { .. } => survivors,
        }
    }

    pub(crate) fn reap(&mut self) {
        self.signals.child.take();
        let Stage::Live(live) = &mut self.stage else { return };
        let reaped = reap::reap(live.main_pid());
        live.reaped(reaped.main, reaped.tree);
    }

    /// Writes down the two ends, the main process's and the tree's, once they are true.
    pub(crate) fn conclude(&mut self, now: Instant) {
        let has_exited = self.conclude_main(now);
        let is_empty = self.conclude_tree(now);
        if has_exited {
            self.sync_end(now);
        }
        if is_empty {
            self.go_over(now);
        }
    }

    /// Waits for the disk: how much output there is must be the truth. True if the end was written down.
    fn conclude_main(&mut self, now: Instant) -> bool {
        let Stage::Live(live) = &mut self.stage else { return false };
        let Main::Ended { exit, report } = &live.main else { return false };
        if !self.disk.is_fine() {
            return false;
        }
        if let Some(failure) = report.failure(&self.spec.argv[0]) {
            let failure = failure.without(&live.secrets);
            self.never_start(failure, now);
            return false;
        }
        hook!("shim.main-exited");
        let exit = *exit;
        if let Some(terminal) = &mut live.terminal {
            terminal.let_go();
        }
        let drained = live.drain(&mut self.buffer, &mut self.control, now);
        if drained.is_err() {
            self.noted(drained, now);
            return false;
        }
        live.main = Main::Gone;
        let output_bytes = live.spool.total();
        let left = if live.tree == Tree::Alive { tree::descendants() } else { Vec::new() };
        let survivors = tree::survivors_of(&self.spec.argv, &left);
        let survivors = without_secrets(survivors, &live.secrets);
        self.fact(Record::Exited { at_ms: clock::wall_ms(), exit, output_bytes, survivors }, now);
        self.control.tell_output(output_bytes);
        hook!("shim.exited");
        true
    }

    /// True if the tree's end was written down.
    fn conclude_tree(&mut self, now: Instant) -> bool {
        let Stage::Live(live) = &mut self.stage else { return false };
        if live.tree == Tree::Alive || !self.disk.is_fine() {
            return false;
        }
        assert!(
            matches!(live.main, Main::Gone),
            "a tree is empty only after its main process has ended"
        );
        let drained = live.drain(&mut self.buffer, &mut self.control, now);
        if drained.is_err() {
            self.noted(drained, now);
            return false;
        }
        self.control.tell_output(live.spool.total());
        if let Some(terminal) = &mut live.terminal {
            self.control.paint_behind(|| terminal.repaint());
        }
        self.fact(Record::TreeEmpty { at_ms: clock::wall_ms() }, now);
        hook!("shim.tree-empty");
        true
    }
}

/// Command lines may have secrets in them.
fn without_secrets(mut survivors: Vec<Survivor>, secrets: &Secrets) -> Vec<Survivor> {
    survivors.iter_mut().for_each(|survivor| secrets.hide_in(&mut survivor.command));
    survivors
}
