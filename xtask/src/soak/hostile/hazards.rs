//! The adversary: one hazard after the other, at random moments. It signals, deletes and fills only
//! what this soak has made.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;

use super::Soak;
use super::ledger::Restore;
use crate::random::Random;
use crate::{interrupt, process};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Hazard {
    /// A daemon is killed
    Daemon,
    /// A shim is killed
    Shim,
    /// The waiter is killed
    Waiter,
    /// A daemon, a shim or an agent is stopped for a while
    Freeze,
    /// Files of an attempt are deleted
    Delete,
    /// A file of an attempt is cut
    Truncate,
    /// The disk is full for a while
    Disk,
    /// A daemon has few descriptors
    Descriptors,
    /// The wall clock is hours off for a while
    Clock,
    /// Clients do not read, hang up, or are killed
    Connections,
    /// Clients have no environment, and the socket's file is gone
    Environment,
    /// An older journal is put back
    Restore,
}

impl Hazard {
    /// So often out of the sum of all: what ends much is rare.
    fn weight(self) -> u64 {
        match self {
            Self::Daemon | Self::Freeze => 8,
            Self::Connections | Self::Environment | Self::Shim => 4,
            Self::Waiter | Self::Delete | Self::Truncate | Self::Clock => 3,
            Self::Disk | Self::Descriptors => 2,
            Self::Restore => 1,
        }
    }
}

/// What a process of this soak is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Daemon,
    Shim,
    Waiter,
    Agent,
}

struct Victim {
    pid: u32,
    run: Option<String>,
}

pub(super) struct Adversary<'a> {
    soak: &'a Soak<'a>,
    hazards: Vec<Hazard>,
    random: Random,
    tally: BTreeMap<Hazard, u32>,
    /// A copy of the journal, and when it was made.
    copy: Option<(PathBuf, u64)>,
}

impl<'a> Adversary<'a> {
    pub(super) fn new(soak: &'a Soak<'a>, hazards: &[Hazard], random: Random) -> Self {
        Self { soak, hazards: hazards.to_vec(), random, tally: BTreeMap::new(), copy: None }
    }

    pub(super) fn tally(&self) -> String {
        let words = self.tally.iter().map(|(hazard, times)| format!("{hazard:?} × {times}"));
        words.collect::<Vec<_>>().join(", ")
    }

    pub(super) fn go_on(&mut self) -> Result<()> {
        while !self.soak.ledger.is_over() {
            interrupt::pause(Duration::from_millis(50 + self.random.below(700)));
            let Some(hazard) = self.choose() else { return Ok(()) };
            let did = self.strike(hazard).with_context(|| format!("{hazard:?}"))?;
            *self.tally.entry(hazard).or_default() += u32::from(did);
        }
        Ok(())
    }

    /// Everything that was taken away for a while is given back.
    pub(super) fn relent(&self) -> Result<()> {
        self.set_clock(0)?;
        remove_if_there(&self.filler())?;
        for pid in process::ours(&self.soak.scratch) {
            process::signal(pid, &self.soak.scratch, Signal::CONT)?;
        }
        // One with few descriptors may be left.
        if let Ok(Some(pid)) = self.soak.outlast.daemon_pid() {
            process::kill(pid, &self.soak.scratch)?;
        }
        Ok(())
    }

    fn choose(&mut self) -> Option<Hazard> {
        let all: u64 = self.hazards.iter().map(|hazard| hazard.weight()).sum();
        let mut left = self.random.below(all.max(1));
        self.hazards.iter().copied().find(|hazard| {
            let is_it = left < hazard.weight();
            left = left.saturating_sub(hazard.weight());
            is_it
        })
    }

    fn strike(&mut self, hazard: Hazard) -> Result<bool> {
        match hazard {
            Hazard::Daemon => self.kill(Role::Daemon),
            Hazard::Shim => self.kill(Role::Shim),
            Hazard::Waiter => self.kill(Role::Waiter),
            Hazard::Freeze => self.freeze(),
            Hazard::Delete => self.delete(),
            Hazard::Truncate => self.truncate(),
            Hazard::Disk => self.fill(),
            Hazard::Descriptors => self.starve(),
            Hazard::Clock => self.leap(),
            Hazard::Connections => self.hang_up(),
            Hazard::Environment => self.strip(),
            Hazard::Restore => self.restore(),
        }
    }

    fn kill(&mut self, role: Role) -> Result<bool> {
        let Some(victim) = self.victim(role) else { return Ok(false) };
        if role == Role::Shim
            && let Some(run) = &victim.run
        {
            self.soak.ledger.harm(run, "its shim was killed");
        }
        interrupt::pause(Duration::from_millis(self.random.below(30)));
        process::kill(victim.pid, &self.soak.scratch)
    }

    fn freeze(&mut self) -> Result<bool> {
        let roles = [Role::Daemon, Role::Shim, Role::Agent];
        let role = *self.random.one_of(&roles).unwrap_or(&Role::Daemon);
        let Some(victim) = self.victim(role) else { return Ok(false) };
        // One that does not answer may be ended as an orphan would be.
        if let (Role::Shim, Some(run)) = (role, &victim.run) {
            self.soak.ledger.harm(run, "its shim was frozen");
        }
        let did = process::signal(victim.pid, &self.soak.scratch, Signal::STOP)?;
        interrupt::pause(Duration::from_millis(200 + self.random.below(3000)));
        process::signal(victim.pid, &self.soak.scratch, Signal::CONT)?;
        Ok(did)
    }

    fn delete(&mut self) -> Result<bool> {
        let Some((run, path)) = self.file_of_an_attempt() else { return Ok(false) };
        self.soak.ledger.harm(&run, &format!("{} was deleted", name(&path)));
        let whole = self.random.below(4) == 0;
        let attempt = path.parent().context("a file is in a directory")?;
        let done = if whole { fs::remove_dir_all(attempt) } else { fs::remove_file(&path) };
        Ok(done.is_ok())
    }

    fn truncate(&mut self) -> Result<bool> {
        let Some((run, path)) = self.file_of_an_attempt() else { return Ok(false) };
        let Ok(length) = fs::metadata(&path).map(|metadata| metadata.len()) else {
            return Ok(false);
        };
        self.soak.ledger.harm(&run, &format!("{} was cut", name(&path)));
        let cut = File::options().write(true).open(&path);
        Ok(cut.and_then(|file| file.set_len(self.random.below(length + 1))).is_ok())
    }

    fn fill(&mut self) -> Result<bool> {
        let mut filler = File::create(self.filler())?;
        let block = vec![0; 1 << 16];
        while filler.write(&block).is_ok() && !self.soak.ledger.is_over() {}
        interrupt::pause(Duration::from_millis(500 + self.random.below(2500)));
        remove_if_there(&self.filler())?;
        Ok(true)
    }

    fn starve(&mut self) -> Result<bool> {
        if let Some(victim) = self.victim(Role::Daemon) {
            process::kill(victim.pid, &self.soak.scratch)?;
        }
        let script = "ulimit -n 80; exec \"$0\" daemon start";
        let mut few = self.soak.outlast.command(&["daemon", "start"]);
        let envs: Vec<_> =
            few.get_envs().map(|(k, v)| (k.to_owned(), v.map(ToOwned::to_owned))).collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(few.get_program()).stdin(Stdio::null());
        for (name, value) in envs {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        few = shell;
        let started = few.output()?.status.success();
        interrupt::pause(Duration::from_millis(500 + self.random.below(2500)));
        self.kill(Role::Daemon)?;
        Ok(started)
    }

    fn leap(&mut self) -> Result<bool> {
        let hours = 1 + i64::try_from(self.random.below(5)).unwrap_or(0);
        let sign = if self.random.below(2) == 0 { 1 } else { -1 };
        self.set_clock(sign * hours * 3_600_000)?;
        if self.random.below(2) == 0 {
            self.kill(Role::Daemon)?;
        }
        interrupt::pause(Duration::from_millis(500 + self.random.below(2500)));
        self.set_clock(0)?;
        Ok(true)
    }

    /// Clients that ask for everything and read nothing, say half a sentence, or die with an order on its way.
    fn hang_up(&mut self) -> Result<bool> {
        let socket = self.soak.outlast.home().join("run/daemon.sock");
        let mut idle = Vec::new();
        for number in 0..8 {
            let Ok(mut stream) = UnixStream::connect(&socket) else { break };
            let asked: &[u8] = if number % 2 == 0 {
                b"GET /v1/runs?all=true HTTP/1.1\r\nHost: outlast\r\n\r\n"
            } else {
                b"POST /v1/runs HTTP/1.1\r\nHost: outlast\r\nContent-Length: 100\r\n\r\n{\"ag"
            };
            let _hung_up_on_is_fine = stream.write_all(asked);
            idle.push(stream);
        }
        let key = format!("killed-{}", self.random.next());
        let order = ["run", "-d", "--key", &key, "--", "sleep", "0.1"];
        let ids = {
            let _not_while_quiet = self.soak.ledger.quiet.read().expect("no holder panics");
            let mut client = self.soak.outlast.open(&order)?;
            interrupt::pause(Duration::from_millis(self.random.below(40)));
            client.kill()?;
            client.wait()?;
            [self.soak.outlast.ask(&order), self.soak.outlast.ask(&order)]
        };
        interrupt::pause(Duration::from_millis(self.random.below(1500)));
        drop(idle);
        if let [Ok(one), Ok(two)] = &ids {
            anyhow::ensure!(one == two, "one key has made two runs: {one} and {two}");
            self.soak.ledger.acknowledge(one.clone(), super::tasks::Task::Killed);
        }
        Ok(true)
    }

    /// A client with nothing but a home, while the socket's file is gone.
    fn strip(&mut self) -> Result<bool> {
        if self.random.below(2) == 0 {
            remove_if_there(&self.soak.outlast.home().join("run/daemon.sock"))?;
        }
        let _not_while_quiet = self.soak.ledger.quiet.read().expect("no holder panics");
        let mut client = Command::new(self.soak.outlast.binary());
        client.arg("ps").env_clear().env("OUTLAST_HOME", self.soak.outlast.home());
        client.env("OUTLAST_FAKE_CLOCK_FILE", self.clock()).stdin(Stdio::null());
        client.output().map(|_| true).context("a client without an environment")
    }

    /// First a copy is made, later it is put back, each with no daemon there.
    fn restore(&mut self) -> Result<bool> {
        let _quiet = self.soak.ledger.quiet.write().expect("no holder panics");
        if !self.soak.outlast.output(&["daemon", "stop"])?.status.success() {
            return Ok(false);
        }
        let state = self.soak.outlast.home().join("state");
        let Some((copy, copied_at)) = self.copy.take() else {
            let copy = self.soak.scratch.join("old");
            copy_journal(&state, &copy).context("copying the journal")?;
            self.copy = Some((copy, self.soak.ledger.tick()));
            return Ok(false);
        };
        copy_journal(&copy, &state).context("putting the journal back")?;
        self.soak.ledger.restored(Restore { copied_at, restored_at: self.soak.ledger.tick() });
        // As the person would who has put it back; what it says is in the audit.
        self.soak.outlast.output(&["recover"]).map(|_| true)
    }

    fn set_clock(&self, offset_ms: i64) -> Result<()> {
        let part = self.clock().with_extension("part");
        // The first number would let time pass on the boot clock too, which no setting of the wall does.
        fs::write(&part, format!("0 {offset_ms}"))?;
        fs::rename(part, self.clock()).context("setting the clock")
    }

    fn clock(&self) -> PathBuf {
        self.soak.scratch.join("clock")
    }

    fn filler(&self) -> PathBuf {
        self.soak.outlast.home().join("filler")
    }

    fn victim(&mut self, role: Role) -> Option<Victim> {
        let ours = process::ours(&self.soak.scratch);
        let victims: Vec<u32> =
            ours.into_iter().filter(|pid| self.role_of(*pid) == Some(role)).collect();
        let pid = *self.random.one_of(&victims)?;
        Some(Victim { pid, run: run_of(pid) })
    }

    fn role_of(&self, pid: u32) -> Option<Role> {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        let is_program = fs::read_link(format!("/proc/{pid}/exe"))
            .is_ok_and(|exe| exe.file_name() == self.soak.outlast.binary().file_name());
        match words.get(1).filter(|_| is_program) {
            Some(&b"__shim") => Some(Role::Shim),
            Some(&b"__wait") => Some(Role::Waiter),
            Some(&b"daemon") if words.get(2) == Some(&&b"run"[..]) => Some(Role::Daemon),
            Some(_) => None,
            None => Some(Role::Agent).filter(|_| run_of(pid).is_some()),
        }
    }

    /// Some file that a live or an ended attempt has.
    fn file_of_an_attempt(&mut self) -> Option<(String, PathBuf)> {
        let runs = self.soak.outlast.home().join("state/runs");
        let run = self.one_in(&runs)?;
        let attempts = entries(&runs.join(&run)).into_iter().filter(|name| name.starts_with('t'));
        let attempt = self.random.one_of(&attempts.collect::<Vec<_>>())?.clone();
        let dir = runs.join(&run).join(attempt);
        let file = self.one_in(&dir)?;
        Some((run, dir.join(file)))
    }

    fn one_in(&mut self, dir: &Path) -> Option<String> {
        let names = entries(dir);
        self.random.one_of(&names).cloned()
    }
}

fn entries(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The run that a process belongs to, as its environment or its arguments say.
fn run_of(pid: u32) -> Option<String> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let named = environment.split(|byte| *byte == 0).find_map(|variable| {
        variable.strip_prefix(b"OUTLAST_RUN_ID=").map(|id| String::from_utf8_lossy(id).into_owned())
    });
    named.or_else(|| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let (_, rest) = line.split_once("/runs/")?;
        rest.split('/').next().map(str::to_owned)
    })
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// All that a journal is: a daemon that was killed leaves its last events in the second file.
fn copy_journal(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for name in ["outlast.db", "outlast.db-wal", "outlast.db-shm"] {
        remove_if_there(&to.join(name))?;
        if from.join(name).exists() {
            fs::copy(from.join(name), to.join(name))?;
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
