//! What is run. Each agent takes a lock of its run and counts itself, so that doing something twice shows.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, bail};

use super::Soak;
use crate::interrupt;
use crate::random::Random;

/// A command that meets an adversary is given again, so many times at most.
const TRIES: usize = 150;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Short,
    Slow,
    Failing,
    Retried,
    Tree,
    Terminal,
    Stopped,
    Worker,
    Asker,
    Waiter,
    /// Of a client that was killed with its order on the way.
    Killed,
}

impl Task {
    const ALL: [Self; 10] = [
        Self::Short,
        Self::Slow,
        Self::Failing,
        Self::Retried,
        Self::Tree,
        Self::Terminal,
        Self::Stopped,
        Self::Worker,
        Self::Asker,
        Self::Waiter,
    ];

    /// How it ends, unless something was done to it.
    pub(super) fn expected(self) -> &'static str {
        match self {
            Self::Failing => "failed",
            Self::Stopped => "stopped",
            _ => "completed",
        }
    }

    fn script(self) -> &'static str {
        match self {
            Self::Short | Self::Killed => "sleep 0.05; echo done",
            Self::Slow => "for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done",
            Self::Failing => "echo no >&2; exit 3",
            Self::Retried => "test \"$OUTLAST_ATTEMPT\" -ge 3",
            Self::Tree => "(sleep 0.6 & sleep 0.2 & wait) & (sleep 0.1; echo leaf) | cat; wait",
            Self::Terminal => "for i in 1 2 3; do echo $i; sleep 0.4; done; test -t 1",
            Self::Stopped => "(sleep 300 & wait) & sleep 300",
            Self::Worker => {
                "sleep 0.1\nif [ \"$OUTLAST_TURN\" -lt 6 ]; then respond '{\"status\":\"continue\",\"summary\":\"x\",\
                 \"tool_calls\":[{\"name\":\"tell\",\"input\":{}}]}'; else say done y; fi"
            }
            Self::Asker => {
                "if [ \"$OUTLAST_TURN\" = 1 ]; then say blocked 'which?'; else sleep 0.2; say done z; fi"
            }
            Self::Waiter => {
                "if [ \"$OUTLAST_TURN\" = 1 ]; then respond \
                 '{\"status\":\"continue\",\"summary\":\"w\",\"wait\":{\"message\":true}}'; else say done m; fi"
            }
        }
    }

    fn is_loop(self) -> bool {
        matches!(self, Self::Worker | Self::Asker | Self::Waiter)
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Self::Retried => &["--retry", "9", "--backoff", "50ms"],
            Self::Terminal => &["--tty"],
            _ => &[],
        }
    }
}

pub(super) struct Tasks {
    sink: String,
}

impl Tasks {
    pub(super) fn new(soak: &Soak<'_>) -> Result<Self> {
        for task in Task::ALL {
            fs::write(script_of(soak, task), script(&soak.scratch, task))?;
            if task.is_loop() {
                fs::write(file_of(soak, task), loop_file(&script_of(soak, task)))?;
            }
        }
        Ok(Self { sink: format!("cmd:cat >>'{}'", soak.scratch.join("notices").display()) })
    }

    /// Runs that no client asks for.
    pub(super) fn schedule(&self, soak: &Soak<'_>) -> Result<()> {
        let script = script_of(soak, Task::Short).display().to_string();
        let add = ["schedule", "add", "tick", "--every", "5s", "--", "sh", &script];
        again(soak, "the schedule", || soak.outlast.ask(&add)).map(drop)
    }

    pub(super) fn start(&self, soak: &Soak<'_>, number: u64, random: &mut Random) -> Result<()> {
        let task = *random.one_of(&Task::ALL).unwrap_or(&Task::Short);
        let key = format!("hostile-{number}");
        let (script, file) = (script_of(soak, task), file_of(soak, task));
        let (script, file) = (script.display().to_string(), file.display().to_string());
        let work = soak.scratch.join("work").display().to_string();
        let mut args = vec!["run", "-d", "--key", &key, "--notify", &self.sink, "--dir", &work];
        args.extend(task.options());
        match task.is_loop() {
            true => args.extend(["-f", &file]),
            false => args.extend(["--", "sh", &script]),
        }
        let id = again(soak, &key, || soak.outlast.ask(&args))?;
        soak.ledger.acknowledge(id.clone(), task);
        if task == Task::Stopped {
            interrupt::pause(Duration::from_millis(random.below(400)));
            let stopped = again(soak, "a stop", || soak.outlast.ask(&["stop", "--now", &id]));
            match stopped {
                // A journal that has forgotten the run cannot note its stop; the audit says what became of it.
                Err(error) if !soak.ledger.restores().is_empty() => {
                    soak.ledger.harm(&id, &format!("its stop was not acknowledged: {error:#}"));
                }
                other => {
                    other?;
                    soak.ledger.stopped(&id);
                }
            }
        }
        Ok(())
    }
}

/// Gives a command until it is acknowledged.
pub(super) fn again<T>(
    soak: &Soak<'_>,
    what: &str,
    mut act: impl FnMut() -> Result<T>,
) -> Result<T> {
    let mut told = String::new();
    for _ in 0..TRIES {
        interrupt::check()?;
        {
            let _not_while_quiet = soak.ledger.quiet.read().expect("no holder panics");
            match act() {
                Ok(done) => return Ok(done),
                Err(error) => told = format!("{error:#}"),
            }
        }
        interrupt::pause(Duration::from_millis(100));
    }
    bail!("{what} was not acknowledged in {TRIES} tries: {told}")
}

fn script_of(soak: &Soak<'_>, task: Task) -> PathBuf {
    soak.scratch.join(format!("{task:?}.sh"))
}

fn file_of(soak: &Soak<'_>, task: Task) -> PathBuf {
    soak.scratch.join(format!("{task:?}.md"))
}

/// The lock is held by every process of the attempt's tree, as long as one lives.
fn script(scratch: &Path, task: Task) -> String {
    let at = scratch.display();
    format!(
        r#"exec 9>>'{at}/locks'/"$OUTLAST_RUN_ID"
flock -n 9 || echo "$OUTLAST_RUN_ID $OUTLAST_TURN.$OUTLAST_ATTEMPT" >>'{at}/twice'
echo once >>'{at}/counts'/"$OUTLAST_RUN_ID.$OUTLAST_TURN.$OUTLAST_ATTEMPT"
respond() {{ printf '%s' "$1" >"$OUTLAST_RESPONSE_FILE.part" && mv "$OUTLAST_RESPONSE_FILE.part" "$OUTLAST_RESPONSE_FILE"; }}
say() {{ respond "{{\"status\":\"$1\",\"summary\":\"$2\"}}"; }}
{}
"#,
        task.script()
    )
}

fn loop_file(script: &Path) -> String {
    format!(
        "---\nagent: {{kind: exec, command: [sh, '{}']}}\nretry: {{initial_backoff_ms: 20, max_backoff_ms: 100}}\n\
         limits: {{no_progress_turns: 0, max_attempts: 50}}\nhooks: {{before_run: 'true', after_turn: 'echo swept'}}\n\
         checks: {{done: ['true']}}\ntools:\n  - name: tell\n    command: ['sh', '-c', 'cat; echo heard']\n    \
         class: idempotent\n---\nDo it: {{{{ task }}}}\n",
        script.display()
    )
}
