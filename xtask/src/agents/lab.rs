//! One run of one agent against a scripted model, in a home of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::model::{Asked, Model, Step};
use super::settle::{self, Login};
use super::vendor::Vendor;
use crate::interrupt;
use crate::private::Private;
use crate::process;

/// So many of the last lines of a transcript are shown, and so much of each.
const SHOWN_LINES: usize = 12;
const SHOWN_LETTERS: usize = 260;

/// Debug builds take the boot's id from here.
const BOOT_ID: &str = "OUTLAST_FAKE_BOOT_ID";

/// What every run of one agent has in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Setup<'a> {
    pub(super) binary: &'a Path,
    pub(super) scratch: &'a Path,
    pub(super) vendor: Vendor,
    pub(super) command: &'a [String],
}

/// What one run is to be.
pub(super) struct Plan<'a> {
    /// The name of its directory.
    pub(super) name: &'a str,
    pub(super) login: Login,
    /// What the model does in each turn.
    pub(super) turns: Vec<Vec<Step>>,
    /// `approvals` of the loop file.
    pub(super) approvals: &'a str,
    /// The check of done, for a shell.
    pub(super) check: &'a str,
}

pub(super) struct Lab {
    // Dropped first: what it started asks the model no more.
    pub(super) outlast: Private,
    pub(super) model: Model,
    pub(super) project: PathBuf,
    pub(super) run: String,
    boots: u32,
    pub(super) problems: Vec<String>,
}

impl Lab {
    pub(super) fn start(setup: &Setup<'_>, plan: Plan<'_>) -> Result<Self> {
        Self::start_in(setup, plan, |_| Ok(()))
    }

    /// Starts it in a project that is made ready first.
    pub(super) fn start_in(
        setup: &Setup<'_>,
        plan: Plan<'_>,
        make_ready: fn(&Path) -> Result<()>,
    ) -> Result<Self> {
        let dir = setup.scratch.join(format!("{}-{}", setup.vendor.name(), plan.name));
        let (home, project, tmp) = (dir.join("user"), dir.join("project"), dir.join("tmp"));
        for made in [&home, &project, &tmp] {
            fs::create_dir_all(made).with_context(|| format!("making {}", made.display()))?;
        }
        make_ready(&project)?;
        let model = Model::start(plan.turns)?;
        let env = settle::settle(setup.vendor, &home, model.port(), plan.login)?;
        let names: Vec<&str> = env.iter().map(|(name, _)| *name).collect();
        let file = dir.join("loop.md");
        fs::write(&file, loop_file(setup, plan.approvals, plan.check, &names))
            .context("the loop file")?;
        let outlast = Private::new(setup.binary, dir.join("outlast"))?.with_bare_env();
        let outlast = outlast.with_env("HOME", &home).with_env("TMPDIR", &tmp);
        let outlast = outlast.with_env("PATH", Path::new("/usr/local/bin:/usr/bin:/bin"));
        let outlast = outlast.with_env("LANG", Path::new("C.UTF-8"));
        let mut outlast = outlast.with_env(BOOT_ID, Path::new("boot-1"));
        for (name, value) in &env {
            outlast = outlast.with_env(name, Path::new(value));
        }
        let (file, at) = (file.to_string_lossy(), project.to_string_lossy());
        let run = outlast.ask(&["run", "-d", "-f", &file, "--dir", &at, "--task", "work"])?;
        Ok(Self { outlast, model, project, run, boots: 1, problems: Vec::new() })
    }

    /// Everything dies at once: the CLI, its tools, the driver, the shim, the daemon, the waiter. The next daemon finds
    /// another boot.
    pub(super) fn reboot(&mut self) -> Result<()> {
        process::cut_power(self.outlast.home())?;
        self.boots += 1;
        self.outlast.set_env(BOOT_ID, Path::new(&format!("boot-{}", self.boots)));
        self.outlast.start_daemon().map(drop)
    }

    /// Goes through a story. What stops the story is noted too, so that the lab can still tell about it.
    pub(super) fn live(mut self, story: impl FnOnce(&mut Self) -> Result<()>) -> Self {
        if let Err(error) = story(&mut self) {
            self.problems.push(format!("{error:#}"));
        }
        self
    }

    /// Notes what is wrong, and goes on.
    pub(super) fn expect(&mut self, holds: bool, otherwise: impl Into<String>) {
        if !holds {
            self.problems.push(otherwise.into());
        }
    }

    /// `None` while no daemon answers.
    pub(super) fn view(&self) -> Option<Value> {
        self.outlast.show(&self.run).ok()
    }

    /// Waits for something that the run's view shows.
    pub(super) fn until<T>(
        &self,
        what: &str,
        seconds: u64,
        mut shows: impl FnMut(&Value) -> Option<T>,
    ) -> Result<T> {
        interrupt::wait_for(what, Duration::from_secs(seconds), || {
            // Each look is a process.
            interrupt::pause(Duration::from_millis(80));
            Ok(self.view().as_ref().and_then(&mut shows))
        })
    }

    /// Waits for the end of the run, or for a person that it waits for.
    pub(super) fn rest(&self, seconds: u64) -> Result<Value> {
        self.until("the run rests", seconds, |view| rests(view).then(|| view.clone()))
    }

    pub(super) fn expect_state(&mut self, view: &Value, state: &str, reason: Option<&str>) {
        let (came, why) = (&view["state"], &view["reason_code"]);
        let holds = came == state && reason.is_none_or(|reason| why == reason);
        let meant = reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
        let told = format!("the run is {came} ({why}: {}), not {state}{meant}", view["reason"]);
        self.expect(holds, told);
    }

    /// The requests that are no side calls.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.model.asked().into_iter().filter(|asked| asked.turn.is_some()).collect()
    }

    pub(super) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.project.join(name)).unwrap_or_default()
    }

    /// The directory of the run in Outlast's state.
    pub(super) fn run_dir(&self) -> PathBuf {
        self.outlast.home().join("state/runs").join(&self.run)
    }

    /// All that helps to understand what went wrong.
    pub(super) fn report(&self) -> String {
        let mut text = String::new();
        let view = self.view().unwrap_or_default();
        text.push_str(&format!(
            "  run {}: {} {} {}, usage {}\n",
            self.run, view["state"], view["reason_code"], view["reason"], view["usage"]
        ));
        text.push_str("  its events:\n");
        for event in self.outlast.events(&self.run).unwrap_or_default() {
            text.push_str(&format!("    {}\n", brief(&short(event))));
        }
        text.push_str("  what the model was asked:\n");
        let all = self.model.asked();
        let begin = all.first().map(|asked| asked.at);
        for (number, asked) in all.iter().enumerate() {
            let seconds = begin.map(|begin| asked.at.duration_since(begin).as_secs_f64());
            text.push_str(&format!(
                "    {number} at {:.1} s: turn {:?}, {} messages, {:?}: {}\n",
                seconds.unwrap_or_default(),
                asked.turn,
                asked.messages,
                asked.fate,
                brief(&asked.last_user)
            ));
        }
        for (attempt, lines) in self.transcripts() {
            text.push_str(&format!("  the end of {attempt}/transcript.jsonl:\n"));
            lines.iter().for_each(|line| text.push_str(&format!("    {}\n", brief(line))));
        }
        text
    }

    /// The last lines of the last two transcripts.
    fn transcripts(&self) -> Vec<(String, Vec<String>)> {
        let entries = fs::read_dir(self.run_dir()).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries
            .filter_map(|entry| {
                let path = entry.path().join("transcript.jsonl");
                let written = path.metadata().and_then(|it| it.modified()).ok()?;
                Some((written, entry.file_name().to_string_lossy().into_owned(), path))
            })
            .collect();
        found.sort();
        let last = found.split_off(found.len().saturating_sub(2));
        let lines = |path: &Path| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let all: Vec<String> = text.lines().map(str::to_owned).collect();
            all[all.len().saturating_sub(SHOWN_LINES)..].to_vec()
        };
        last.iter().map(|(_, name, path)| (name.clone(), lines(path))).collect()
    }
}

/// An event without what is the same in all of them.
fn short(mut event: Value) -> String {
    let kind = event["kind"].take();
    if let Some(fields) = event.as_object_mut() {
        let known = ["at", "run", "kind", "boot", "start", "evidence", "actor", "line", "spec"];
        fields.retain(|name, _| !known.contains(&name.as_str()));
    }
    format!("{} {event}", kind.as_str().unwrap_or_default())
}

fn brief(text: &str) -> String {
    let line: String = text.replace('\n', " ").chars().take(SHOWN_LETTERS).collect();
    line
}

pub(super) fn rests(view: &Value) -> bool {
    ["completed", "failed", "stopped", "exhausted", "blocked"]
        .iter()
        .any(|state| view["state"] == *state)
}

pub(super) fn waits_for_provider(view: &Value) -> bool {
    view["state"] == "waiting" && view["reason_code"] == "rate_limit"
}

fn loop_file(setup: &Setup<'_>, approvals: &str, check: &str, env: &[&str]) -> String {
    let command = serde_json::to_string(setup.command).expect("words are JSON");
    let check = serde_json::to_string(check).expect("a line is JSON");
    let (kind, own) = (setup.vendor.kind(), setup.vendor.settings());
    let env = env.join(", ");
    format!(
        "---\nagent:\n  kind: {kind}\n  command: {command}\n{own}  max_turns: 40\n  \
         env: [PATH, HOME, LANG, TMPDIR, {env}]\n\
         approvals: {approvals}\nchecks:\n  done: [{check}]\n\
         limits: {{max_attempts: 8, no_progress_turns: 0}}\n\
         retry: {{initial_backoff_ms: 300, max_backoff_ms: 1000}}\n---\n\
         Turn {{{{ turn }}}} of the work.\n"
    )
}
