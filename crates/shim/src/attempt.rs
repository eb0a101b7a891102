//! The one attempt that this shim owns: its state, and what follows from time and from the kernel.
//!
//! Orders are in `orders`, the launch in `launch`, the ends in `finish`. An attempt begins at the gate, lives once it was
//! started, and is over once its tree is proven empty; it leaves nothing unsaid on disk.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use outlast_home::layout::AttemptDir;
use outlast_wire::again;
use outlast_wire::hook;
use outlast_wire::shim::{NeverStarted, News, Record, Spec, Window};
use rustix::event::PollFlags;

use crate::answer;
use crate::clock::{self, earlier};
use crate::command::{Failure, is_shortage};
use crate::control::Control;
use crate::disk::Disk;
use crate::ending::Ending;
use crate::live::{Live, READ_BYTES, ROUND_BYTES};
use crate::records::Records;
use crate::revive::Reviver;
use crate::setup::{self, Inherited};
use crate::signals::Signals;
use crate::source::{Source, Waited};

/// Without a daemon, a shim that has started nothing leaves after this.
const GATE: Duration = Duration::from_secs(30);
/// How long peers may take to read the last news.
const FLUSH_WITHIN: Duration = Duration::from_secs(1);
/// How long an attempt that is over may go on looking for a daemon to notice it.
const FAREWELL: Duration = Duration::from_secs(15);
/// After a launch, or after a peer was answered, and nothing came for so long, pages are given back.
const TRIM_AFTER: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) dir: AttemptDir,
    pub(crate) spec: Spec,
    pub(crate) records: Records,
    pub(crate) stage: Stage,
    pub(crate) control: Control,
    pub(crate) disk: Disk,
    /// The terminal's size, which a viewer may set before there is a terminal; `None` without one.
    pub(crate) window: Option<Window>,
    /// The child's.
    pub(crate) umask: u32,
    pub(crate) ending: Ending,
    reviver: Reviver,
    /// Since when no daemon is connected.
    alone_since: Option<Instant>,
    /// When the pages that only the launch or a peer's frames needed are given back.
    trim_at: Option<Instant>,
    pub(crate) signals: Signals,
    pub(crate) buffer: Vec<u8>,
    /// Held for life: the kernel's word that we are alive.
    _lock: File,
}

#[derive(Debug)]
pub(crate) enum Stage {
    /// Nothing was started yet.
    Gate,
    /// An earlier shim settled this attempt: we only say what it wrote.
    Bygone,
    Live(Box<Live>),
    Over {
        since: Instant,
        output_bytes: u64,
    },
}

/// Why there is nothing to serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// Another shim has this attempt.
    Busy,
    BadFiles,
}

impl Attempt {
    pub(crate) fn open(dir: AttemptDir, inherited: Inherited) -> Result<Self, Unopened> {
        let lock = lock(&dir)?;
        hook!("shim.locked");
        let mut records = Records::open(&dir.events()).map_err(|_| Unopened::BadFiles)?;
        let spec = read_spec(&dir, &mut records)?;
        setup::restore_limits(spec.revive.soft_limits);
        clock::go_by(spec.booted_at_ms);
        let mut control =
            Control::bind(&dir, &spec.revive.daemon_lock).map_err(|_| Unopened::BadFiles)?;
        hook!("shim.bound");
        let now = clock::now();
        if let Some(stream) = inherited.connection {
            control.take(stream, now);
        }
        let mut reviver = Reviver::new(spec.revive.clone());
        reviver.daemon_gone(now);
        Ok(Self {
            stage: if records.is_settled() || has_begun(&dir) {
                Stage::Bygone
            } else {
                Stage::Gate
            },
            window: spec.tty,
            umask: spec.umask.unwrap_or(inherited.umask),
            dir,
            spec,
            records,
            control,
            disk: Disk::Fine,
            ending: Ending::NotAsked,
            reviver,
            alone_since: Some(now),
            trim_at: None,
            signals: Signals::register().map_err(|_| Unopened::BadFiles)?,
            buffer: vec![0; READ_BYTES],
            _lock: lock,
        })
    }

    /// What to wait for in this state.
    pub(crate) fn waited_for(&self) -> Vec<Waited<'_>> {
        let mut waited = vec![
            (Source::ChildSignal, self.signals.child.as_fd(), PollFlags::IN),
            (Source::Continued, self.signals.continued.as_fd(), PollFlags::IN),
            (Source::Listener, self.control.listener(), PollFlags::IN),
        ];
        for connection in self.control.connections() {
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, connection.is_reading());
            flags.set(PollFlags::OUT, connection.has_queued());
            waited.push((Source::Connection(connection.id), connection.as_fd(), flags));
        }
        if let Stage::Live(live) = &self.stage {
            // While the disk takes nothing, output waits where it is.
            let outputs = live.outputs.iter().filter(|_| self.disk.is_fine());
            waited.extend(
                outputs.map(|output| {
                    (Source::Output(output.stream), output.fd.as_fd(), PollFlags::IN)
                }),
            );
            let terminal = live.terminal.iter().filter(|terminal| terminal.has_keys());
            waited
                .extend(terminal.map(|terminal| (Source::Keys, terminal.as_fd(), PollFlags::OUT)));
        }
        waited
    }

    pub(crate) fn wake_at(&self, now: Instant) -> Option<Instant> {
        let stage = match &self.stage {
            Stage::Gate | Stage::Bygone => self.alone_since.map(|since| since + GATE),
            Stage::Live(live) => {
                let limits = earlier(self.ending.wake_at(), self.limits_wake_at(live));
                // While the disk takes nothing, what is held back cannot leave.
                earlier(limits, live.flush_at().filter(|_| self.disk.is_fine()))
            }
            // Until the last record is saved, only the disk's next try matters.
            Stage::Over { .. } if !self.records.is_saved() => None,
            Stage::Over { since, .. } if now < *since + FLUSH_WITHIN => Some(*since + FLUSH_WITHIN),
            Stage::Over { since, .. } => Some(*since + FAREWELL),
        };
        let others =
            [self.disk.wake_at(), self.control.wake_at(), self.reviver.wake_at(), self.trim_at];
        others.into_iter().fold(stage, earlier)
    }

    /// A wait of `asked` took `took`: time in which the shim did not listen is not the child's silence.
    pub(crate) fn waited(&mut self, asked: Duration, took: Duration, now: Instant) {
        if let Stage::Live(live) = &mut self.stage {
            live.limits.waited(asked, took, now);
        }
    }

    pub(crate) fn handle(&mut self, source: Source, now: Instant) {
        match source {
            Source::ChildSignal => self.reap(),
            Source::Continued => self.continued(now),
            Source::Listener => self.control.accept(now),
            Source::Connection(id) => {
                for frame in self.control.receive(id) {
                    self.obey(id, frame, now);
                }
                // An answer touches pages that are not needed until the next one.
                if matches!(self.stage, Stage::Live(_)) {
                    self.trim_at = Some(now + TRIM_AFTER);
                }
            }
            Source::Output(stream) => {
                // The disk may have failed earlier in this round.
                if let Stage::Live(live) = &mut self.stage
                    && self.disk.is_fine()
                {
                    let pumped =
                        live.pump(stream, ROUND_BYTES, &mut self.buffer, &mut self.control, now);
                    self.noted(pumped, now);
                }
            }
            Source::Keys => {
                if let Stage::Live(live) = &mut self.stage
                    && let Some(terminal) = &mut live.terminal
                {
                    terminal.flush_keys();
                }
            }
        }
    }

    /// Does what is due by now.
    pub(crate) fn tick(&mut self, now: Instant) {
        self.retry_disk(now);
        self.keep_limits(now);
        self.go_on_ending(now);
        self.settle_output(now);
        self.conclude(now);
        self.control.tick(now);
        self.paint(now);
        self.mind_the_daemon(now);
        if self.trim_at.take_if(|at| now >= *at).is_some() {
            outlast_home::trim::give_back();
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        let now = clock::now();
        match &self.stage {
            Stage::Gate | Stage::Bygone => {
                self.alone_since.is_some_and(|since| now >= since + GATE)
            }
            Stage::Live(_) => false,
            Stage::Over { since, .. } => {
                let is_told = self.control.is_flushed() || now >= *since + FLUSH_WITHIN;
                self.records.is_saved() && is_told && self.is_noticed(*since, now)
            }
        }
    }

    pub(crate) fn output_bytes(&self) -> u64 {
        match &self.stage {
            Stage::Live(live) => live.spool.total(),
            Stage::Over { output_bytes, .. } => *output_bytes,
            Stage::Gate | Stage::Bygone => self.recorded_bytes(),
        }
    }

    /// Writes a fact down and tells it, in this order; it is told also if the disk takes no writes.
    pub(crate) fn record(&mut self, record: Record, now: Instant) -> io::Result<()> {
        let news = News::Record { record: record.clone() };
        let saved = self.records.append(record);
        self.control.tell_daemons(&news);
        if let Err(error) = &saved {
            self.disk_failed(error, now);
        }
        saved
    }

    pub(crate) fn go_live(&mut self, live: Live) {
        self.stage = Stage::Live(Box::new(live));
        self.trim_at = Some(clock::now() + TRIM_AFTER);
    }

    pub(crate) fn never_start(&mut self, failure: Failure, now: Instant) {
        let Failure { code, why } = failure;
        self.fact(Record::NeverStarted { at_ms: clock::wall_ms(), code, why }, now);
        self.sync_end(now);
        self.go_over(now);
    }

    pub(crate) fn daemon_came(&mut self, now: Instant) {
        self.alone_since = None;
        self.reviver.daemon_came();
        if matches!(self.stage, Stage::Bygone) {
            self.go_over(now);
        }
    }

    pub(crate) fn go_over(&mut self, now: Instant) {
        self.stage = Stage::Over { since: now, output_bytes: self.output_bytes() };
        self.reviver.look_soon(now);
    }

    /// A record that nothing waits for: a failing disk is retried elsewhere.
    pub(crate) fn fact(&mut self, record: Record, now: Instant) {
        crate::tolerate(self.record(record, now));
    }

    /// Makes an end survive the machine, and before it the answer and the output. Connected peers are told first. A daemon
    /// writes the end to a journal of its own, so if there is one and nothing was printed, nothing is left to do.
    pub(crate) fn sync_end(&mut self, now: Instant) {
        self.control.tick(now);
        if self.control.has_daemon() && self.output_bytes() == 0 {
            return;
        }
        answer::sync(&self.dir.response());
        let spooled = match &mut self.stage {
            Stage::Live(live) => live.spool.sync(),
            Stage::Gate | Stage::Bygone | Stage::Over { .. } => Ok(()),
        };
        let synced = spooled.and_then(|()| self.records.save());
        self.noted(synced, now);
    }

    pub(crate) fn noted(&mut self, written: io::Result<()>, now: Instant) {
        if let Err(error) = written {
            self.disk_failed(&error, now);
        }
    }

    fn disk_failed(&mut self, error: &io::Error, now: Instant) {
        if self.disk.fail(error, now) {
            self.control.tell_daemons(&News::Disk { problem: Some(error.to_string()) });
        }
    }

    fn retry_disk(&mut self, now: Instant) {
        if self.disk.wake_at().is_none_or(|at| now < at) {
            return;
        }
        let spooled = match &mut self.stage {
            Stage::Live(live) => live.spool.retry(),
            Stage::Gate | Stage::Bygone | Stage::Over { .. } => Ok(()),
        };
        match spooled.and_then(|()| self.records.save()) {
            Ok(()) => {
                self.disk = Disk::Fine;
                self.control.tell_daemons(&News::Disk { problem: None });
            }
            Err(error) => self.disk_failed(&error, now),
        }
    }

    fn settle_output(&mut self, now: Instant) {
        let Stage::Live(live) = &mut self.stage else { return };
        if !self.disk.is_fine() {
            return;
        }
        let flushed = live.flush_due(&mut self.control, now);
        let settled = flushed.and_then(|()| live.spool.settle());
        if settled.is_ok() {
            self.control.tell_output(live.spool.total());
        }
        self.noted(settled, now);
    }

    /// Paints each viewer that has taken everything else by now, and sends that too.
    fn paint(&mut self, now: Instant) {
        let Stage::Live(live) = &mut self.stage else { return };
        let Some(terminal) = &mut live.terminal else { return };
        self.control.paint_ready(|| terminal.repaint());
        self.control.tick(now);
    }

    fn mind_the_daemon(&mut self, now: Instant) {
        if self.control.has_daemon() {
            self.alone_since = None;
        } else if self.alone_since.is_none() {
            self.alone_since = Some(now);
            self.reviver.daemon_gone(now);
        }
        self.reviver.tick(now);
    }

    /// True if a daemon will read what was written down. A daemon that holds the lock will; a daemon that is connected
    /// without the lock is believed if it stays so for a moment: it may be dying just now.
    fn is_noticed(&self, over_since: Instant, now: Instant) -> bool {
        let has_stayed = self.control.has_daemon() && now >= over_since + FLUSH_WITHIN;
        self.reviver.is_cared_for() || has_stayed || now >= over_since + FAREWELL
    }

    fn recorded_bytes(&self) -> u64 {
        let exited = self.records.all().iter().rev().find_map(|record| match record {
            Record::Exited { output_bytes, .. } => Some(*output_bytes),
            _ => None,
        });
        exited.unwrap_or(0)
    }
}

/// True if there is output, which is made only for a command that is started: an earlier shim has, and its records
/// are gone. What cannot be looked at may be there.
fn has_begun(dir: &AttemptDir) -> bool {
    [dir.output(), dir.index()].iter().any(|left| left.try_exists().unwrap_or(true))
}

fn lock(dir: &AttemptDir) -> Result<File, Unopened> {
    let file = outlast_home::lock::open(&dir.lock()).map_err(|_| Unopened::BadFiles)?;
    match again::try_lock(&file) {
        Ok(()) => Ok(file),
        Err(_) => Err(Unopened::Busy),
    }
}

/// A spec that cannot be read is an attempt that never starts, and that is written down.
fn read_spec(dir: &AttemptDir, records: &mut Records) -> Result<Spec, Unopened> {
    let read = match outlast_home::regular::read(&dir.spec()) {
        Ok(bytes) => Ok(bytes),
        // Nothing is said of an attempt that the next shim may well start.
        Err(error) if is_shortage(&error) => return Err(Unopened::BadFiles),
        Err(error) => Err(error.to_string()),
    };
    let parsed =
        read.and_then(|bytes| serde_json::from_slice(&bytes).map_err(|error| error.to_string()));
    parsed.map_err(|why| {
        if !records.is_settled() {
            let code = NeverStarted::BadSpec;
            let record = Record::NeverStarted {
                at_ms: clock::wall_ms(),
                code,
                why: format!("spec.json: {why}"),
            };
            // If it cannot be written, nothing says that this attempt began, which is as true.
            crate::tolerate(records.append(record));
        }
        Unopened::BadFiles
    })
}
