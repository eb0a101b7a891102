//! What a monitor is told, and what it has done.

use std::sync::Arc;

use outlast_engine::{
    Answer, BootId, Exit, Input, Made, RefusedCall, Report, Run, Step, StopMode, Survivor, Time,
};
use outlast_wire::codes::Code;
use outlast_wire::shim::{self, NeverStarted, Record};
use outlast_wire::words::TroubleCode;

/// Which step is monitored, of which run, and what holds for it.
#[derive(Debug, Clone)]
pub struct Task {
    /// The run as it was when the step became due.
    pub run: Arc<Run>,
    pub step: Step,
    /// The boot that the step was meant for.
    pub boot: BootId,
    /// How long the step may take, and how long it may be silent.
    pub timeout_ms: Option<u64>,
    pub stall_window_ms: Option<u64>,
}

/// The daemon that the monitor works for.
#[derive(Debug, Clone)]
pub struct Owner {
    pub epoch: u64,
    pub boot: BootId,
    /// When it started. An older run may have been launched by a daemon that took no notes.
    pub began: Time,
}

/// What a monitor looks at while it decides: clocks, and the step's last sign of life.
pub trait Surroundings {
    /// On the run's line of time.
    fn now(&self) -> Time;
    /// By the clock that nothing moves.
    fn steady(&self) -> Time;
    /// By the clock that stands while the machine sleeps.
    fn awake_ms(&self) -> u64;
    /// A time of the shim, whose daemon may have been on another line of time.
    fn of_shim(&self, at: Time, line: Option<i64>) -> Time;
    /// When the step's files were last written to.
    fn last_sign(&self) -> Option<Time>;
    /// True while the run may start nothing, because others go first after a restart.
    fn is_paced(&self) -> bool;
}

/// Which process it is, beyond its recyclable number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who {
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start: u64,
}

/// What the monitor is told.
#[derive(Debug)]
pub enum News {
    /// To [`Effect::Connect`].
    Greeted(Greeting),
    /// To [`Effect::ReadLeft`].
    Left(Result<Left, Unreadable>),
    /// To [`Effect::ReadAfterBoot`].
    AfterBoot(Result<Vec<Record>, String>),
    /// To [`Effect::GatherEvidence`].
    Evidence(Result<Evidence, Trouble>),
    /// To [`Effect::LookForProcesses`]; the error says why processes cannot be looked for.
    Seen(Result<Seen, String>),
    /// To [`Effect::Launch`].
    Launched(Launched),
    /// To [`Effect::Fence`].
    Fenced(Result<(), Trouble>),
    /// To [`Effect::LookAtEnd`].
    EndSeen(Ending),
    /// The shim says something.
    Heard(shim::News),
    /// The connection to the shim is over.
    HungUp,
    /// What [`Effect::Watch`] asked for has come true.
    Gone,
    /// The stop that is ordered now. `None` takes nothing back: no order is out, so the next one is news.
    Ordered(Option<StopMode>),
    /// A client wants to know how the step is doing.
    Asked,
    /// The run may be held back no longer.
    Released,
    /// The time that [`StepMonitor::wake_in`] named has come.
    Woke,
}

/// How a shim was found.
#[derive(Debug)]
pub enum Greeting {
    Met(Hello),
    /// A shim answered in a protocol that this daemon does not speak; the records are what can be read of it.
    Foreign {
        why: String,
        records: Vec<Record>,
    },
    /// Nothing answers on the step's socket.
    NotThere,
    /// The step has no directory, and so no shim that could answer.
    NoDirectory,
    /// The host lacks what a connection needs.
    Failed(Unreadable),
}

#[derive(Debug, Clone)]
pub struct Hello {
    pub shim_pid: u32,
    pub records: Vec<Record>,
}

/// What is behind a step whose shim does not answer.
#[derive(Debug)]
pub enum Left {
    /// A shim holds the lock; the records are what can be read meanwhile.
    Locked { records: Vec<Record> },
    /// No shim holds the lock. Read with the lock in hand, so that no shim could begin in between.
    Free {
        records: Vec<Record>,
        /// The main process, as a daemon noted it beside the step's directory.
        noted: Option<Who>,
    },
}

/// Records that cannot be read.
#[derive(Debug)]
pub struct Unreadable {
    pub kind: UnreadableKind,
    pub message: String,
    pub noted: Option<Who>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadableKind {
    /// The host lacks something for now.
    Host(Code),
    /// Damaged for good.
    Damaged,
    /// The daemon may not read them; a person may mend that.
    Denied,
    Other,
}

/// What says that a step was launched when its own records do not.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    pub note: Note,
    pub has_run_dir: bool,
    /// Written before the note is.
    pub has_spec: bool,
    /// Files that a shim makes for a command that it was told to start.
    pub has_leftovers: bool,
}

impl Evidence {
    /// True if the step may have run: it is launched no more, and no record says that it never started.
    pub fn may_have_run(&self) -> bool {
        let is_noted = match self.note {
            Note::Main(_) => true,
            // Its spec was there before the note was.
            Note::Launch => !self.has_spec,
            Note::None | Note::Other => false,
        };
        is_noted || self.has_leftovers
    }
}

/// What a daemon noted before it launched something, outside of the step's own directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Note {
    None,
    /// Of another step.
    Other,
    /// This step was about to be launched.
    Launch,
    /// This step has run, as this process.
    Main(Who),
}

/// Who is alive of a step. The records are read after the processes were looked for.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// The command and what it has started, but no shim.
    pub tree: Vec<Survivor>,
    pub shims: Vec<Survivor>,
    /// The oldest process of the tree that leads a session: the main process, where nothing else names it.
    pub leader: Option<Who>,
    pub is_main_alive: bool,
    pub records: Vec<Record>,
    pub noted: Option<Who>,
}

/// What became of a launch.
#[derive(Debug)]
pub enum Launched {
    Met {
        hello: Hello,
        /// The workspace as a loop's first attempt finds it.
        baseline: Option<String>,
    },
    /// The shim went without a word, as one does that finds the lock taken.
    NoAnswer {
        baseline: Option<String>,
    },
    /// Another daemon has launched the step meanwhile.
    Superseded,
    /// What the step is given cannot be made, and will not be next time either.
    BadSpec(String),
    /// The workspace is not the directory any more that was prepared.
    Displaced(String),
    Failed {
        code: Option<Code>,
        why: String,
    },
}

/// What is found when the main process of a step has ended.
#[derive(Debug, Clone)]
pub struct Ending {
    pub answer: Answer,
    pub refused: Vec<RefusedCall>,
    pub workspace: Option<String>,
    pub tail: String,
    /// What an errand made of the workspace, by its own record.
    pub made: Option<Made>,
}

/// What keeps the monitor from its work for now. Shown to people; ends by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub code: TroubleCode,
    pub message: String,
    /// True if the host lacks something: waiting helps.
    pub is_shortage: bool,
}

impl Trouble {
    /// Of a failure for which the host is to blame, or of a file that cannot be read.
    pub fn of_file(shortage: Option<Code>, message: String) -> Self {
        let code = shortage.unwrap_or(Code::Unreadable).into();
        Self { code, message, is_shortage: shortage.is_some() }
    }
}

/// What the monitor has done.
#[derive(Debug)]
pub enum Effect {
    /// Greet the shim on the step's socket. A connection that is made is kept.
    Connect,
    /// Read the records with the shim's lock in hand, or say that a shim has it.
    ReadLeft,
    /// Read the records of a step of another boot.
    ReadAfterBoot,
    GatherEvidence,
    /// Look for processes with the step's marks, and for the main process if it is known.
    LookForProcesses {
        main: Option<Who>,
    },
    /// Start a shim, and have it start the command unless a stop is ordered by then.
    Launch,
    /// Write down, under the lock, that the step never started, unless it has.
    Fence {
        code: NeverStarted,
        why: String,
    },
    /// Look at what the step has left. The main process has ended with this.
    LookAtEnd {
        exit: Exit,
    },

    Say(Say),
    HangUp,
    /// The shim does not answer, and its tree is ended without it.
    TakeOver,
    /// Send CONT to the step's shim: it may be stopped by a signal.
    WakeShim,
    Signal {
        to: Vec<Survivor>,
        signal: Signal,
    },
    /// Say [`News::Gone`] when these have died: any of them, or all.
    Watch {
        these: Vec<Survivor>,
        all: bool,
    },
    /// Note the main process beside the step's directory.
    NoteMain(Who),
    /// The run that was let go after a restart has come to what it was let go for.
    HasStarted,

    Tell(Input),
    /// News of the step for the run; its times are on this line.
    Report {
        report: Box<Report>,
        line: Option<i64>,
    },
    /// The shim that the step has now.
    Shim(Option<u32>),
    Trouble(Option<Trouble>),
}

impl Effect {
    /// True if the monitor waits for an answer to it.
    pub fn is_question(&self) -> bool {
        match self {
            Self::Connect
            | Self::ReadLeft
            | Self::ReadAfterBoot
            | Self::GatherEvidence
            | Self::LookForProcesses { .. }
            | Self::Launch
            | Self::Fence { .. }
            | Self::LookAtEnd { .. } => true,
            Self::Say(_)
            | Self::HangUp
            | Self::TakeOver
            | Self::WakeShim
            | Self::Signal { .. }
            | Self::Watch { .. }
            | Self::NoteMain(_)
            | Self::HasStarted
            | Self::Tell(_)
            | Self::Report { .. }
            | Self::Shim(_)
            | Self::Trouble(_) => false,
        }
    }
}

/// What the shim is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Say {
    /// Asks whether it is there: a shim answers each Hello.
    Hello,
    Start,
    Stop {
        grace_ms: u64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Term,
    Cont,
    Kill,
}

impl Seen {
    /// True if nothing of the step is alive, as far as can be seen.
    pub fn is_over(&self) -> bool {
        self.tree.is_empty() && self.shims.is_empty() && !self.is_main_alive
    }

    /// True if the tree is empty, as far as can be seen, and only the shim is left.
    pub(super) fn is_shim_alone(&self) -> bool {
        self.tree.is_empty() && !self.is_main_alive && !self.shims.is_empty()
    }

    /// Who has to be gone next: the tree, and then its shim.
    pub(super) fn left(&self) -> &[Survivor] {
        if self.is_shim_alone() { &self.shims } else { &self.tree }
    }
}
