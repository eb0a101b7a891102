//! What a daemon and a shim say to each other, and leave on disk for each other.
//!
//! On disk: [`Spec`] (`spec.json`, by the daemon) and [`Record`] (one line each in `events.jsonl`, by the
//! shim). On the socket: frames of `length: u32 LE, kind: u8, payload`, where a payload is one JSON
//! message or raw terminal bytes. The golden files in `tests/golden` hold what release 0.1 wrote; a
//! later daemon must still read them.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::OsText;

pub use outlast_words::{EndCause, Exit, NeverStarted, SecretRules, Survivor, Window};

/// A frame's payload is never longer than this, in either direction.
pub const FRAME_MAX: usize = 1 << 20;

/// Everything a shim needs to know about the attempt that it owns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub proto: u32,
    pub run: String,
    pub turn: u32,
    pub attempt: u32,
    pub argv: Vec<String>,
    pub dir: PathBuf,
    /// The file that holds the run's environment, as a JSON array of [`EnvVar`].
    pub env_file: PathBuf,
    /// Set on top of what `env_file` holds.
    pub env: Vec<EnvVar>,
    pub umask: Option<u32>,
    /// Present for a terminal run: its first window.
    pub tty: Option<Window>,
    /// A regular file for the child to read as its standard input, which is empty without one. A terminal
    /// run reads its terminal instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<PathBuf>,
    /// A file that the child touches when it is alive and has nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<PathBuf>,
    pub limits: Limits,
    pub spool: Spool,
    pub revive: Revive,
    /// When the machine was started, as the daemon has it. The shim's times are this and CLOCK_BOOTTIME, so a wall
    /// clock that is set meanwhile stamps nothing wrongly. Without it they are the wall's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub booted_at_ms: Option<i64>,
    /// Which variables of the environment are secret, so that their values are kept out of the output.
    #[serde(default, skip_serializing_if = "SecretRules::is_default")]
    pub secrets: SecretRules,
    /// The daemon looked before it launched the step, and the program that the shell is to start was not there. After
    /// the end it could not be told from one that has removed itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lacks_program: bool,
}

/// Soft limits as they were before the daemon raised its own; `None` for one that was not raised.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftLimits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_files: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

impl SoftLimits {
    pub fn are_untouched(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvVar {
    pub name: OsText,
    pub value: OsText,
}

/// The turn's own limits, kept by the shim so that they hold while no daemon lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub turn_timeout_ms: Option<u64>,
    pub stall_window_ms: Option<u64>,
    /// Between TERM and KILL when a limit ends the turn.
    pub grace_ms: u64,
}

/// How much output is kept: the first `head_bytes` and at least the last `tail_bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spool {
    pub head_bytes: u64,
    pub tail_bytes: u64,
}

impl Default for Spool {
    fn default() -> Self {
        Self { head_bytes: 16 << 20, tail_bytes: 48 << 20 }
    }
}

/// How a shim or the waiter starts a daemon when its own has died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revive {
    pub exe: PathBuf,
    pub args: Vec<String>,
    /// The daemon's recorded environment (a JSON array of [`EnvVar`]); never the run's.
    pub env_file: PathBuf,
    /// Held by a living daemon.
    pub daemon_lock: PathBuf,
    /// Held by the one shim or waiter that is starting a daemon just now.
    pub revive_lock: PathBuf,
    /// Exists while the daemon is down because a person asked for that.
    pub stopped_marker: PathBuf,
    /// The shim or waiter sets these for itself, and so for its child and for a daemon that it starts.
    #[serde(default, skip_serializing_if = "SoftLimits::are_untouched")]
    pub soft_limits: SoftLimits,
}

/// What the waiter goes by, written by each daemon at its start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    pub revive: Revive,
    /// Held by the waiter for its life; names the waiter.
    pub lock: PathBuf,
    /// One byte, kept by the daemon: [`NOT_NEEDED`] while no run needs a daemon. Anything else, and a file
    /// that cannot be read, means that one is needed.
    pub needed: PathBuf,
}

pub const NEEDED: u8 = b'1';
pub const NOT_NEEDED: u8 = b'0';

/// One line of `events.jsonl`: a fact about the attempt, in the order it became true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Record {
    /// A daemon of `epoch` said Start. The child does not exist yet.
    Starting {
        at_ms: u64,
        epoch: u64,
        /// On which line of time every time of this attempt is (see [`Spec::booted_at_ms`]).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        booted_at_ms: Option<i64>,
    },
    /// The child exists and waits at the barrier; from here on it may have run.
    Started { at_ms: u64, identity: Identity },
    /// The child was never exec'd, and never will be in this attempt.
    NeverStarted { at_ms: u64, code: NeverStarted, why: String },
    /// The shim began to end the tree.
    Ending { at_ms: u64, cause: EndCause },
    /// The main process is gone. The processes that are left of its tree are listed.
    Exited { at_ms: u64, exit: Exit, output_bytes: u64, survivors: Vec<Survivor> },
    /// The tree was to be ended and could not be proven empty.
    StopIncomplete { at_ms: u64, survivors: Vec<Survivor> },
    /// No process of the tree is left.
    TreeEmpty { at_ms: u64 },
}

/// Who a process is, beyond its recyclable number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The boot that the pid belongs to.
    pub boot: String,
    pub pid: u32,
    /// Start time in clock ticks since boot, field 22 of `/proc/<pid>/stat`.
    pub start: u64,
}

/// What a daemon says to a shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Order {
    /// First on every connection. A shim answers with [`News::Hello`], or with [`News::Refused`] if it
    /// has served a higher epoch, or if the peer says that it is the daemon and does not hold its lock. Said
    /// again, it is answered again.
    Hello { proto: u32, epoch: u64, role: Role },
    /// Run the command. Safe to repeat: a shim starts its child once.
    Start { turn: u32, attempt: u32, epoch: u64 },
    /// End the tree: TERM, `grace_ms`, KILL, proof. Safe to repeat; a shorter grace takes over.
    Stop { grace_ms: u64 },
    /// Answer once with [`News::Output`] when there are more than `after` bytes of output.
    WatchOutput { after: u64 },
    /// (viewer, terminal runs) Paint the screen for a window of this size, then send what comes.
    Attach { window: Window },
    /// (viewer, terminal runs) Paint the screen as it is, then send what comes. Such a viewer gives the terminal no size
    /// and answers none of its program's questions. Only with `keys` may it press any.
    Watch { keys: bool },
    /// (viewer, terminal runs)
    Resize { window: Window },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Supervises: gets every record as it is made. A newer daemon replaces an older one.
    Daemon,
    /// Carries one attached terminal.
    Viewer,
}

/// What a shim says to a daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum News {
    Hello {
        proto: u32,
        build: String,
        pid: u32,
        run: String,
        turn: u32,
        attempt: u32,
        records: Vec<Record>,
        output_bytes: u64,
        /// True if it knows [`Order::Watch`], which shims of older builds do not.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        watches: bool,
    },
    Record {
        record: Record,
    },
    /// How much output there is, gap included.
    Output {
        bytes: u64,
    },
    /// The state directory takes no writes (`problem` says why), or does again (`None`). The child lives on.
    Disk {
        problem: Option<String>,
    },
    Refused {
        code: Refusal,
        message: String,
    },
    /// The size of the screen that is painted next; only for a viewer that asked with [`Order::Watch`].
    Window {
        window: Window,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    StaleEpoch,
    OtherAttempt,
    NoTerminal,
    Protocol,
    /// The peer does not hold the daemon's lock.
    NotTheDaemon,
}

/// One frame in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame<T> {
    Message(T),
    /// Raw terminal bytes: keys towards the shim, screen towards the viewer.
    Bytes(Vec<u8>),
}

const KIND_MESSAGE: u8 = 0;
const KIND_BYTES: u8 = 1;

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("frame of {0} bytes is longer than the {FRAME_MAX} allowed")]
    TooLong(usize),
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    #[error("unreadable message: {0}")]
    Unreadable(#[from] serde_json::Error),
}

impl<T: Serialize> Frame<T> {
    /// The frame as bytes on the socket.
    pub fn encode(&self) -> Result<Vec<u8>, FrameError> {
        let (kind, payload) = match self {
            Self::Message(message) => (KIND_MESSAGE, &serde_json::to_vec(message)?),
            Self::Bytes(bytes) => (KIND_BYTES, bytes),
        };
        let length = u32::try_from(payload.len()).ok().filter(|_| payload.len() <= FRAME_MAX);
        let Some(length) = length else { return Err(FrameError::TooLong(payload.len())) };
        let mut frame = Vec::with_capacity(5 + payload.len());
        frame.extend_from_slice(&length.to_le_bytes());
        frame.push(kind);
        frame.extend_from_slice(payload);
        Ok(frame)
    }

    pub fn write_to(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.encode().map_err(io::Error::other)?)
    }
}

/// Turns bytes as they arrive into frames.
#[derive(Debug, Default)]
pub struct Decoder {
    pending: Vec<u8>,
}

impl Decoder {
    pub fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole frame, if one has arrived. After an error the connection is of no more use.
    #[expect(
        clippy::should_implement_trait,
        reason = "which message a frame holds differs from call to call"
    )]
    pub fn next<T: for<'de> Deserialize<'de>>(&mut self) -> Result<Option<Frame<T>>, FrameError> {
        let Some((header, rest)) = self.pending.split_first_chunk::<5>() else { return Ok(None) };
        let [a, b, c, d, kind] = *header;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        if length > FRAME_MAX {
            return Err(FrameError::TooLong(length));
        }
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let frame = match kind {
            KIND_MESSAGE => Frame::Message(serde_json::from_slice(payload)?),
            KIND_BYTES => Frame::Bytes(payload.to_vec()),
            other => return Err(FrameError::UnknownKind(other)),
        };
        self.pending.drain(..5 + length);
        Ok(Some(frame))
    }

    /// Reads from a blocking stream until a whole frame is there; `None` at its end.
    pub fn read<T: for<'de> Deserialize<'de>>(
        &mut self,
        from: &mut impl Read,
    ) -> io::Result<Option<Frame<T>>> {
        let mut chunk = [0; 4096];
        loop {
            if let Some(frame) = self.next().map_err(io::Error::other)? {
                return Ok(Some(frame));
            }
            match from.read(&mut chunk)? {
                0 => return Ok(None),
                count => self.feed(&chunk[..count]),
            }
        }
    }
}
