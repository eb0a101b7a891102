//! A daemon's side of the protocol, for tests: starts a real shim, speaks to it, and leaves nothing behind.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use outlast_home::layout::AttemptDir;
use outlast_wire::output::{Chunk, HEADER_BYTES, Header, Stream};
use outlast_wire::shim::{
    Decoder, EnvVar, Exit, Frame, Limits, NeverStarted, News, Order, Record, Revive, Role,
    SecretRules, SoftLimits, Spec, Spool,
};

/// Longer than anything here takes; a test that meets it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const EPOCH: u64 = 7;

/// One attempt's directory, and the specification in it.
pub(crate) struct Attempt {
    pub(crate) temp: tempfile::TempDir,
    pub(crate) dir: AttemptDir,
    pub(crate) spec: Spec,
    pub(crate) vars: Vec<(&'static str, String)>,
    lock: std::cell::OnceCell<std::fs::File>,
}

impl Attempt {
    pub(crate) fn of(argv: &[&str]) -> Self {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir(temp.path().join("t1.a1"));
        Self::at(temp, dir, argv)
    }

    pub(crate) fn sh(script: &str) -> Self {
        Self::of(&["sh", "-c", script])
    }

    pub(crate) fn at(temp: tempfile::TempDir, dir: AttemptDir, argv: &[&str]) -> Self {
        std::fs::create_dir_all(&dir.0).expect("creates");
        let under = |name: &str| temp.path().join(name);
        let path = EnvVar { name: "PATH".into(), value: "/usr/local/bin:/usr/bin:/bin".into() };
        put(&under("env.json"), &serde_json::to_vec(&[path]).expect("serializes"));
        // As after `daemon stop`, so that no test starts a daemon unless it wants to.
        put(&under("stopped"), b"");
        let spec = Spec {
            proto: 1,
            run: "r".into(),
            turn: 1,
            attempt: 1,
            argv: argv.iter().map(|arg| (*arg).to_owned()).collect(),
            dir: temp.path().to_owned(),
            env_file: under("env.json"),
            env: vec![EnvVar {
                name: "T".into(),
                value: temp.path().as_os_str().to_owned().into(),
            }],
            umask: Some(0o022),
            tty: None,
            stdin: None,
            heartbeat: None,
            limits: Limits { turn_timeout_ms: None, stall_window_ms: None, grace_ms: 100 },
            spool: Spool::default(),
            revive: Revive {
                exe: "/bin/sh".into(),
                args: Vec::new(),
                env_file: under("env.json"),
                daemon_lock: under("daemon.lock"),
                revive_lock: under("revive.lock"),
                stopped_marker: under("stopped"),
                soft_limits: SoftLimits::default(),
            },
            booted_at_ms: None,
            secrets: SecretRules::default(),
            lacks_program: false,
        };
        Self { temp, dir, spec, vars: Vec::new(), lock: std::cell::OnceCell::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Writes the specification and starts a shim for it.
    pub(crate) fn shim(&self) -> Shim {
        put(&self.dir.spec(), &serde_json::to_vec(&self.spec).expect("serializes"));
        let (ours, shims) = UnixStream::pair().expect("a pair");
        let child =
            self.command().stdin(OwnedFd::from(shims)).spawn().expect("the example is built");
        Shim { process: Guard(child), peer: Peer::new(ours) }
    }

    #[expect(clippy::disallowed_methods, reason = "a test starts the program it tests")]
    pub(crate) fn command(&self) -> Command {
        let test = std::env::current_exe().expect("a test has a path");
        let built = test.ancestors().nth(2).expect("target/<profile>/deps").join("examples/shim");
        let mut command = Command::new(built);
        command.arg(&self.dir.0).stdin(Stdio::null()).envs(self.vars.iter().cloned());
        command
    }

    /// Dies for real when it passes the crash point `name`.
    pub(crate) fn crashing_at(mut self, name: &str) -> Self {
        put(&self.path("token"), b"");
        self.vars.push(("OUTLAST_CRASH_AT", name.into()));
        self.vars.push(("OUTLAST_CRASH_TOKEN", self.path("token").display().to_string()));
        self
    }

    /// A shim after one that died, once the lock is free, and what it found written down.
    pub(crate) fn next_shim(&self) -> (Shim, Vec<Record>) {
        eventually(|| {
            let mut shim = self.shim();
            match shim.peer.try_hello(EPOCH + 1)? {
                News::Hello { records, .. } => Some((shim, records)),
                other => panic!("{other:?}"),
            }
        })
    }

    /// A pipe with a name, at which the command and the test meet.
    pub(crate) fn fifo(&self) -> PathBuf {
        let path = self.path("fifo");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).expect("a fifo");
        path
    }

    /// Starts a shim, says Hello and Start.
    pub(crate) fn start(&self) -> Shim {
        let mut shim = self.shim();
        shim.peer.hello(EPOCH, Role::Daemon);
        shim.peer.say(Order::Start { turn: 1, attempt: 1, epoch: EPOCH });
        shim
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self) -> Vec<Record> {
        let mut shim = self.start();
        let records = shim.peer.until_over();
        assert!(shim.process.wait().success());
        assert_eq!(self.records().len(), records.len(), "what was told is what is on disk");
        records
    }

    /// A connection of the process that holds the daemon's lock, which the test does from here on.
    pub(crate) fn connect_as_daemon(&self) -> Peer {
        self.lock.get_or_init(|| {
            let lock = std::fs::File::create(&self.spec.revive.daemon_lock).expect("creates");
            outlast_wire::again::try_lock(&lock).expect("no other daemon has it");
            lock
        });
        self.connect()
    }

    pub(crate) fn connect(&self) -> Peer {
        Peer::new(UnixStream::connect(self.dir.socket()).expect("the shim listens"))
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        let text = std::fs::read_to_string(self.dir.events()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
    }

    pub(crate) fn output(&self) -> Vec<u8> {
        std::fs::read(self.dir.output()).expect("there is output")
    }

    pub(crate) fn header(&self) -> Header {
        let index = std::fs::read(self.dir.index()).expect("there is an index");
        Header::decode(index.first_chunk().expect("long enough")).expect("a header")
    }

    pub(crate) fn chunks(&self) -> Vec<Chunk> {
        let index = std::fs::read(self.dir.index()).expect("there is an index");
        let (chunks, rest) = index[HEADER_BYTES..].as_chunks();
        assert!(rest.is_empty());
        chunks.iter().map(|bytes| Chunk::decode(bytes).expect("a whole chunk")).collect()
    }

    /// The bytes of one stream, by the index.
    pub(crate) fn stream(&self, stream: Stream) -> Vec<u8> {
        let output = self.output();
        let at = |offset: u64| usize::try_from(offset).expect("small");
        let chunks = self.chunks().into_iter().filter(|chunk| chunk.stream == stream);
        chunks.flat_map(|chunk| output[at(chunk.offset)..at(chunk.end())].to_vec()).collect()
    }
}

pub(crate) struct Shim {
    pub(crate) process: Guard,
    pub(crate) peer: Peer,
}

/// Kills what it started, by its own handle, and never waits for ever.
pub(crate) struct Guard(pub(crate) Child);

impl Guard {
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.0.wait().expect("it is our child")
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// One end of a control connection.
pub(crate) struct Peer {
    stream: UnixStream,
    decoder: Decoder,
}

impl Peer {
    fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("sets");
        Self { stream, decoder: Decoder::default() }
    }

    pub(crate) fn say(&mut self, order: Order) {
        Frame::Message(order).write_to(&mut self.stream).expect("the shim listens");
    }

    pub(crate) fn press(&mut self, keys: &[u8]) {
        Frame::<Order>::Bytes(keys.to_vec()).write_to(&mut self.stream).expect("the shim listens");
    }

    /// `None` at the end of the connection.
    pub(crate) fn hear(&mut self) -> Option<Frame<News>> {
        self.decoder.read(&mut self.stream).expect("frames, in time")
    }

    pub(crate) fn hear_news(&mut self) -> News {
        loop {
            match self.hear().expect("the connection lasts") {
                Frame::Message(news) => return news,
                Frame::Bytes(_) => {}
            }
        }
    }

    pub(crate) fn hello(&mut self, epoch: u64, role: Role) -> News {
        self.say(Order::Hello { proto: 1, epoch, role });
        self.hear_news()
    }

    /// As [`Peer::hello`], of a shim that may have left before it could hear.
    pub(crate) fn try_hello(&mut self, epoch: u64) -> Option<News> {
        let hello = Frame::Message(Order::Hello { proto: 1, epoch, role: Role::Daemon });
        hello.write_to(&mut self.stream).ok()?;
        match self.decoder.read(&mut self.stream).ok()?? {
            Frame::Message(news) => Some(news),
            Frame::Bytes(_) => None,
        }
    }

    pub(crate) fn until(&mut self, is_it: impl Fn(&Record) -> bool) -> Record {
        loop {
            if let News::Record { record } = self.hear_news()
                && is_it(&record)
            {
                return record;
            }
        }
    }

    pub(crate) fn until_started(&mut self) -> u32 {
        match self.until(|record| matches!(record, Record::Started { .. })) {
            Record::Started { identity, .. } => identity.pid,
            other => unreachable!("{other:?}"),
        }
    }

    /// Everything up to the last record, which ends the connection.
    pub(crate) fn until_over(&mut self) -> Vec<Record> {
        let mut records = Vec::new();
        while let Some(frame) = self.hear() {
            if let Frame::Message(News::Record { record }) = frame {
                records.push(record);
            }
        }
        records
    }

    /// Screen bytes until a terminal that shows them `is_right`.
    pub(crate) fn until_screen(
        &mut self,
        rows: u16,
        cols: u16,
        is_right: impl Fn(&vt100::Screen) -> bool,
    ) {
        let side = |cells| std::num::NonZeroU16::new(cells).expect("not zero");
        let mut terminal = vt100::Parser::new(side(rows), side(cols), 0);
        while !is_right(terminal.screen()) {
            match self.hear() {
                Some(Frame::Bytes(bytes)) => terminal.process(&bytes),
                Some(Frame::Message(_)) => {}
                None => {
                    panic!("the end came before that screen:\n{}", terminal.screen().contents())
                }
            }
        }
    }

    pub(crate) fn until_output(&mut self, after: u64) -> u64 {
        self.say(Order::WatchOutput { after });
        loop {
            if let News::Output { bytes } = self.hear_news() {
                return bytes;
            }
        }
    }
}

pub(crate) fn exit_of(records: &[Record]) -> Option<Exit> {
    records.iter().find_map(|record| match record {
        Record::Exited { exit, .. } => Some(*exit),
        _ => None,
    })
}

pub(crate) fn never_started(records: &[Record]) -> Option<(NeverStarted, String)> {
    records.iter().find_map(|record| match record {
        Record::NeverStarted { code, why, .. } => Some((*code, why.clone())),
        _ => None,
    })
}

pub(crate) fn is_alive(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

pub(crate) fn put(path: &Path, bytes: &[u8]) {
    File::create(path).and_then(|mut file| file.write_all(bytes)).expect("writes");
}

/// Asks until there is an answer, where there is no event to wait for. Panics when patience ends.
#[expect(clippy::disallowed_methods, reason = "a test's patience is measured on a real clock")]
pub(crate) fn eventually<T>(ask: impl Fn() -> Option<T>) -> T {
    let end = std::time::Instant::now() + PATIENCE;
    while std::time::Instant::now() < end {
        match ask() {
            Some(answer) => return answer,
            None => std::thread::yield_now(),
        }
    }
    panic!("it did not come to be");
}

/// Ends a process that the shim started, by its pid.
pub(crate) struct KillOnDrop(pub(crate) u32);

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        let pid =
            i32::try_from(self.0).ok().and_then(rustix::process::Pid::from_raw).expect("a pid");
        // It may have ended on its own.
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap_or_default();
    }
}
