//! What is run: each command counts its own executions, so that doing something twice shows.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::interrupt;
use crate::private::Private;
use crate::random::Random;

/// A command that meets a dying daemon is given again, so many times at most.
const TRIES: usize = 40;

/// How often each attempt, `run.turn.attempt`, was executed.
pub(super) type Executions = BTreeMap<String, usize>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Short,
    Slow,
    Failing,
    Retried,
    Loud,
    Tree,
    Stopped { now: bool },
}

impl Kind {
    pub(super) fn any(random: &mut Random) -> Self {
        match random.below(12) {
            0..2 => Self::Short,
            2..4 => Self::Slow,
            4..6 => Self::Failing,
            6..8 => Self::Retried,
            8 => Self::Loud,
            9 => Self::Tree,
            other => Self::Stopped { now: other == 10 },
        }
    }

    fn script(self) -> &'static str {
        match self {
            Self::Short => "sleep 0.05; echo done",
            Self::Slow => "for i in 1 2 3 4; do echo $i; sleep 0.4; done",
            Self::Failing => "echo no >&2; exit 3",
            Self::Retried => "test \"$OUTLAST_ATTEMPT\" -ge 3",
            Self::Loud => "yes outlast | head -c 8000000",
            Self::Tree => "(sleep 0.4 & sleep 0.2 & wait) & (sleep 0.1; echo leaf) | cat; wait",
            Self::Stopped { .. } => "(sleep 120 & wait) & sleep 120",
        }
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Retried => &["--retry", "4", "--backoff", "30ms"],
            Self::Short
            | Self::Slow
            | Self::Failing
            | Self::Loud
            | Self::Tree
            | Self::Stopped { .. } => &[],
        }
    }

    /// How it ends, whatever becomes of the daemon meanwhile.
    pub(super) fn expected_state(self) -> &'static str {
        match self {
            Self::Short | Self::Slow | Self::Retried | Self::Loud | Self::Tree => "completed",
            Self::Failing => "failed",
            Self::Stopped { .. } => "stopped",
        }
    }

    pub(super) fn expected_code(self) -> Option<u64> {
        match self {
            Self::Short | Self::Slow | Self::Retried | Self::Loud | Self::Tree => Some(0),
            Self::Failing => Some(3),
            Self::Stopped { .. } => None,
        }
    }
}

pub(crate) struct Workload<'a> {
    outlast: &'a Private,
    seed: u64,
    counts: PathBuf,
}

impl<'a> Workload<'a> {
    pub(super) fn new(outlast: &'a Private, seed: u64) -> Result<Self> {
        let counts = outlast.home().join("counts");
        fs::create_dir_all(&counts).context("a place to count in")?;
        Ok(Self { outlast, seed, counts })
    }

    /// Starts one run, asking again under the same key until a daemon acknowledges it.
    pub(super) fn start(&self, number: u64, kind: Kind) -> Result<String> {
        let key = format!("soak-{}-{number}", self.seed);
        let count = r#"echo once >> "$COUNTS/$OUTLAST_RUN_ID.$OUTLAST_TURN.$OUTLAST_ATTEMPT"; "#;
        let script = format!("{count}{}", kind.script());
        let counts = format!("COUNTS={}", self.counts.display());
        let mut args = vec!["run", "-d", "--key", &key, "--env", &counts];
        args.extend(kind.options());
        args.extend(["--", "sh", "-c", &script]);
        let mut told = String::new();
        for _ in 0..TRIES {
            interrupt::check()?;
            match self.outlast.ask(&args) {
                Ok(id) => return Ok(id),
                Err(error) => told = format!("{error:#}"),
            }
            interrupt::pause(Duration::from_millis(50));
        }
        bail!("run {number} was not acknowledged in {TRIES} tries: {told}")
    }

    pub(super) fn stop(&self, id: &str, now: bool) -> Result<()> {
        let args: &[&str] = if now { &["stop", id, "--now"] } else { &["stop", id] };
        for _ in 0..TRIES {
            interrupt::check()?;
            if self.outlast.output(args)?.status.success() {
                return Ok(());
            }
            interrupt::pause(Duration::from_millis(50));
        }
        bail!("{id} could not be stopped in {TRIES} tries")
    }

    /// Waits for the end of a run, though not for ever: the audit says what is wrong with one that stays.
    pub(super) fn await_end(&self, id: &str) -> Result<()> {
        for _ in 0..TRIES {
            interrupt::check()?;
            let status = self.outlast.output(&["wait", id, "--timeout", "20s"])?.status;
            if matches!(status.code(), Some(0 | 1 | 3 | 4 | 5 | 6 | 124)) {
                return Ok(());
            }
            interrupt::pause(Duration::from_millis(50));
        }
        bail!("no daemon answered about {id} in {TRIES} tries")
    }

    pub(super) fn executions(&self) -> Result<Executions> {
        let entries = fs::read_dir(&self.counts).context("reading the counts")?;
        let count = |entry: std::io::Result<fs::DirEntry>| {
            let entry = entry?;
            let lines = fs::read_to_string(entry.path())?.lines().count();
            Ok((entry.file_name().to_string_lossy().into_owned(), lines))
        };
        entries.map(count).collect()
    }
}
