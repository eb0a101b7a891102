//! The agent's process: started, written to, listened to, ended.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, SyncSender};
use std::thread;
use std::time::Duration;

use outlast_agents::adapter::Launch;
use outlast_home::regular;
use outlast_wire::api::TurnNews;
use outlast_wire::words::NeverStarted;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::lines::Lines;

/// Something has come.
#[derive(Debug)]
pub(crate) enum News {
    Line(Vec<u8>),
    /// One of its two outputs has ended.
    End,
    /// A line of its standard error, which is ours as well.
    Complaint(Vec<u8>),
    /// Its server has answered a call.
    Answer {
        call: u64,
        status: u16,
        body: Vec<u8>,
    },
    /// Its server has pushed an event.
    Pushed(Vec<u8>),
    /// Its server pushes nothing more.
    PushedAll,
    /// The daemon has answers or messages.
    FromDaemon(TurnNews),
    /// The shim or a person wants the attempt ended.
    Stop,
    /// What was to be written was not taken.
    Deaf,
}

#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    input: Option<SyncSender<Vec<u8>>>,
}

/// Why there is no agent to speak to.
#[derive(Debug)]
pub(crate) enum NotStarted {
    /// Its program could not be executed.
    Program { code: NeverStarted, why: String },
    /// It was started, and this process has no threads or pipes to speak to it.
    Threads(io::Error),
}

impl From<io::Error> for NotStarted {
    fn from(error: io::Error) -> Self {
        Self::Threads(error)
    }
}

impl NotStarted {
    /// In the words of a shim that cannot start a command.
    fn program(program: &str, error: &io::Error) -> Self {
        let short = [Errno::AGAIN, Errno::NOMEM, Errno::NFILE, Errno::MFILE];
        let (code, why) = match Errno::from_io_error(error) {
            Some(Errno::NOENT) if program.contains('/') && Path::new(program).exists() => {
                let why = format!("{program}: the interpreter that it names was not found");
                (NeverStarted::CommandNotFound, why)
            }
            Some(Errno::NOENT) => {
                (NeverStarted::CommandNotFound, format!("{program}: command not found"))
            }
            Some(Errno::TOOBIG) => (NeverStarted::TooLong, format!("{program}: {error}")),
            Some(errno) if short.contains(&errno) => {
                (NeverStarted::NoResources, format!("{program}: {error}"))
            }
            Some(_) | None => (NeverStarted::NotExecutable, format!("{program}: {error}")),
        };
        Self::Program { code, why }
    }
}

/// Writes what the agent is to read when it starts.
fn lay_out(files: &[(String, String)]) -> io::Result<()> {
    for (path, text) in files {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        regular::open_with(&mut options, Path::new(path))?.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// So many lines wait for the loop before the agent has to wait.
const WAITING: usize = 256;

impl Agent {
    /// Starts it in this process's directory and environment.
    pub(crate) fn start(
        launch: &Launch,
    ) -> Result<(Self, SyncSender<News>, mpsc::Receiver<News>), NotStarted> {
        let Some((program, args)) = launch.argv.split_first() else {
            let why = "there is no command".to_owned();
            return Err(NotStarted::Program { code: NeverStarted::BadSpec, why });
        };
        lay_out(&launch.files)?;
        #[expect(
            clippy::disallowed_methods,
            reason = "the driver's child is the agent, and it has no other"
        )]
        let mut command = Command::new(program);
        command.args(args).envs(launch.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| NotStarted::program(program, &error))?;
        let (send, receive) = mpsc::sync_channel(WAITING);
        let output = child.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
        let input = child.stdin.take().ok_or_else(|| io::Error::other("no input"))?;
        let complaints =
            child.stderr.take().ok_or_else(|| io::Error::other("no standard error"))?;
        listen(output, News::Line, send.clone())?;
        listen(complaints, News::Complaint, send.clone())?;
        let input = speak(input, send.clone())?;
        heed(send.clone())?;
        Ok((Self { child, input: Some(input) }, send, receive))
    }

    /// Never waits for the agent: it may not read while it writes.
    pub(crate) fn send(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            // Full only if the agent has stopped reading; its end tells the rest.
            let _not_taken = input.try_send(bytes);
        }
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// Asks it to end. What it has started is the shim's to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        // It is ours and not reaped yet, so the number is still its own; one that has ended needs no signal.
        let _has_ended = pid.map(|pid| rustix::process::kill_process(pid, signal));
    }

    /// How it ended, in words, if that can be told.
    pub(crate) fn reap(&mut self) -> Option<String> {
        self.child.wait().ok().map(|status| status.to_string())
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// True if it ends in this time.
    pub(crate) fn ends_within(&mut self, within: Duration) -> bool {
        if self.has_ended() {
            return true;
        }
        wait_for_end(self.child.id(), within);
        self.has_ended()
    }
}

#[cfg(target_os = "linux")]
fn wait_for_end(pid: u32, within: Duration) {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{PidfdFlags, pidfd_open};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let Some(Ok(process)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else {
        return thread::sleep(within);
    };
    let within = Timespec::try_from(within).ok();
    // An interrupted wait is a short one, and the caller looks again.
    let _ends_or_not = poll(&mut [PollFd::new(&process, PollFlags::IN)], within.as_ref());
}

#[cfg(not(target_os = "linux"))]
fn wait_for_end(_pid: u32, within: Duration) {
    thread::sleep(within);
}

fn listen(
    mut output: impl Read + Send + 'static,
    news: fn(Vec<u8>) -> News,
    send: SyncSender<News>,
) -> io::Result<()> {
    let read = move || {
        let (mut lines, mut buffer) = (Lines::default(), vec![0; 64 << 10]);
        loop {
            match output.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    for line in lines.feed(&buffer[..count]) {
                        if send.send(news(line)).is_err() {
                            return;
                        }
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let rest = lines.last().map(news);
        let _loop_gone = rest.into_iter().chain([News::End]).try_for_each(|news| send.send(news));
    };
    thread::Builder::new().name("agent-output".to_owned()).stack_size(STACK).spawn(read).map(drop)
}

fn speak(mut input: ChildStdin, send: SyncSender<News>) -> io::Result<SyncSender<Vec<u8>>> {
    let (give, take) = mpsc::sync_channel::<Vec<u8>>(WAITING);
    let write = move || {
        for bytes in take {
            if input.write_all(&bytes).and_then(|()| input.flush()).is_err() {
                let _loop_gone = send.send(News::Deaf);
                return;
            }
        }
    };
    thread::Builder::new()
        .name("agent-input".to_owned())
        .stack_size(STACK)
        .spawn(write)
        .map(|_| give)
}

fn heed(send: SyncSender<News>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let wait = move || {
        for _signal in signals.forever() {
            if send.send(News::Stop).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).stack_size(STACK).spawn(wait).map(drop)
}

/// Enough for loops that call nothing deep.
pub(crate) const STACK: usize = 128 << 10;
