//! The launch: `Starting`, fork, `Started`, release. Once in an attempt's life, whatever happens.
//!
//! Each record is down before the step after it. A child that cannot be written down is never released.

use std::time::Instant;

use outlast_secrets::Secrets;
use outlast_wire::hook;
use outlast_wire::output::Stream;
use outlast_wire::shim::{EnvVar, Record};

use crate::attempt::Attempt;
use crate::clock;
use crate::command::{self, Command, Failure};
use crate::heartbeat::Heartbeat;
use crate::limits::Limits;
use crate::live::{Live, Main};
use crate::output::Output;
use crate::reap::Tree;
use crate::spawn::{self, Stdio};
use crate::spool::Spool;
use crate::terminal::Terminal;
use crate::tree;

/// What connects the child to us: its ends, our ends, and the terminal if it has one.
struct Plumbing {
    childs: Stdio,
    ours: Vec<Output>,
    terminal: Option<Terminal>,
}

impl Attempt {
    /// A daemon of `epoch` said Start, for the first time.
    pub(crate) fn start(&mut self, epoch: u64, now: Instant) {
        hook!("shim.start-ordered");
        let starting =
            Record::Starting { at_ms: clock::wall_ms(), epoch, booted_at_ms: clock::line() };
        let launched = self.record(starting, now).map_err(bad_files).and_then(|()| {
            hook!("shim.starting");
            self.launch(now)
        });
        match launched {
            Ok(live) => self.go_live(live),
            Err(failure) => self.never_start(failure, now),
        }
    }

    fn launch(&mut self, now: Instant) -> Result<Live, Failure> {
        let env = command::environment(&self.spec)?;
        let secrets = command::secrets(&self.spec, &env);
        self.launch_with(&env, &secrets, now).map_err(|failure| failure.without(&secrets))
    }

    fn launch_with(
        &mut self,
        env: &[EnvVar],
        secrets: &Secrets,
        now: Instant,
    ) -> Result<Live, Failure> {
        let command = Command::new(&self.spec.argv, &self.spec.dir, env)?;
        let spool = Spool::create(&self.dir, self.spec.spool).map_err(bad_files)?;
        let Plumbing { childs, ours, terminal } = self.plumb(secrets)?;
        let child = spawn::fork_to_barrier(&command, &childs, self.umask)?;
        hook!("shim.forked");
        // Dropping `held` on the way out closes the barrier, and the child exits.
        let identity = tree::identity(child.pid).map_err(bad_files)?;
        let started = Record::Started { at_ms: clock::wall_ms(), identity };
        self.record(started, now).map_err(bad_files)?;
        hook!("shim.started");
        let pid = child.pid;
        let report = child.release();
        hook!("shim.released");
        let limits = Limits::new(&self.spec.limits, clock::now());
        Ok(Live {
            main: Main::Running { pid, report },
            tree: Tree::Alive,
            limits,
            heartbeat: self.spec.heartbeat.clone().map(Heartbeat::watch),
            spool,
            outputs: ours,
            terminal,
            secrets: secrets.clone(),
        })
    }

    fn plumb(&self, secrets: &Secrets) -> Result<Plumbing, Failure> {
        let Some(window) = self.window else {
            let stdin = spawn::input(self.spec.stdin.as_deref())?;
            let (stdout_in, stdout) = spawn::output_pipe()?;
            let (stderr_in, stderr) = spawn::output_pipe()?;
            let ours = vec![
                Output::new(Stream::Stdout, stdout_in, secrets),
                Output::new(Stream::Stderr, stderr_in, secrets),
            ];
            let childs = Stdio::Plain { stdin, stdout, stderr };
            return Ok(Plumbing { childs, ours, terminal: None });
        };
        let (terminal, slave) = Terminal::open(window)?;
        let ours = vec![Output::new(Stream::Tty, terminal.reader()?, secrets)];
        Ok(Plumbing { childs: Stdio::Terminal(slave), ours, terminal: Some(terminal) })
    }
}

fn bad_files(error: std::io::Error) -> Failure {
    Failure::of_files(&error, "attempt directory")
}
