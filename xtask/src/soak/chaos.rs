//! The killer: a daemon often, a shim now and then, at random moments.

use std::time::Duration;

use anyhow::Result;

use super::Shared;
use crate::private::Private;
use crate::random::Random;
use crate::{interrupt, process};

pub(super) struct Chaos<'a> {
    outlast: &'a Private,
    shared: &'a Shared,
    random: Random,
    daemons: u32,
    shims: u32,
}

impl<'a> Chaos<'a> {
    pub(super) fn new(outlast: &'a Private, shared: &'a Shared, random: Random) -> Self {
        Self { outlast, shared, random, daemons: 0, shims: 0 }
    }

    pub(super) fn tally(&self) -> String {
        format!("{} daemons and {} shims killed", self.daemons, self.shims)
    }

    pub(super) fn go_on(&mut self) -> Result<()> {
        while !self.shared.is_over() {
            interrupt::pause(Duration::from_millis(20 + self.random.below(900)));
            if self.random.below(4) == 0 { self.kill_shim()? } else { self.kill_daemon()? }
        }
        Ok(())
    }

    fn kill_daemon(&mut self) -> Result<()> {
        if let Some(pid) = self.outlast.daemon_pid()? {
            // Some way into whatever it does next.
            interrupt::pause(Duration::from_millis(self.random.below(30)));
            self.daemons += u32::from(process::kill(pid, self.outlast.home())?);
        }
        Ok(())
    }

    fn kill_shim(&mut self) -> Result<()> {
        // No daemon answers while it is down, and then there is nothing to choose from.
        let Ok(live) = self.outlast.ask_json(&["ps", "--state", "running", "--json"]) else {
            return Ok(());
        };
        let live: Vec<&str> =
            live.as_array().into_iter().flatten().filter_map(|row| row["id"].as_str()).collect();
        let Some(id) = self.random.one_of(&live) else { return Ok(()) };
        let Ok(view) = self.outlast.show(id) else { return Ok(()) };
        let Some(pid) = view["shim_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()) else {
            return Ok(());
        };
        // Noted before the kill, so that no auditor sees the loss without its cause.
        self.shared
            .runs()
            .iter_mut()
            .filter(|run| run.id == **id)
            .for_each(|run| run.lost_shim = true);
        self.shims += u32::from(process::kill(pid, self.outlast.home())?);
        Ok(())
    }
}
