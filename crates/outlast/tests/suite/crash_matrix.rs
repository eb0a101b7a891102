//! SIGKILL at every named point of the launch protocol, in every story that passes it.
//!
//! A story is told once without a kill, and writes down each point it passes; then once for each of these
//! with a kill there. Whatever was killed, the run converges, its journal is sound, and no attempt was
//! executed twice.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use crate::harness::{Home, is_alive, kill, lines, str_of, text, until};

/// Every crash point there is. `cargo xtask tidy` holds this list to the source.
const HOOKS: &[&str] = &[
    "client.call-begun",
    "client.call-made",
    "daemon.adopted",
    "daemon.after-append",
    "daemon.attempt-spec",
    "daemon.before-append",
    "daemon.before-finish",
    "daemon.child-announced",
    "daemon.child-ended",
    "daemon.chore-done",
    "daemon.create-files",
    "daemon.ending-seen",
    "daemon.epoch-taken",
    "daemon.finished",
    "daemon.fork-pinned",
    "daemon.lines-matched",
    "daemon.listening",
    "daemon.lock-taken",
    "daemon.merge-made",
    "daemon.merge-moved",
    "daemon.notice-before-send",
    "daemon.notice-marked",
    "daemon.notice-sent",
    "daemon.parent-told",
    "daemon.occurrence-kept",
    "daemon.occurrence-made",
    "daemon.raise-env",
    "daemon.run-created",
    "daemon.shim-hello",
    "daemon.shim-spawned",
    "daemon.start-sent",
    "daemon.stop-sent",
    "shim.bound",
    "shim.exited",
    "shim.forked",
    "shim.locked",
    "shim.main-exited",
    "shim.released",
    "shim.start-ordered",
    "shim.started",
    "shim.starting",
    "shim.stop-ordered",
    "shim.tree-empty",
];

/// After one of these the command may have run and its end was not observed.
const MAY_BE_LOST: &[&str] =
    &["shim.started", "shim.released", "shim.main-exited", "shim.stop-ordered"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Story {
    /// A command runs to its end.
    Completes,
    /// A command is stopped.
    IsStopped,
    /// A daemon dies, and another one finds the command alive.
    IsAdopted,
}

struct Stage {
    home: Home,
    counter: PathBuf,
    log: PathBuf,
}

impl Stage {
    fn new(crash_at: Option<&str>) -> Self {
        let home = Home::new();
        let (token, log) = (home.scratch().join("token"), home.scratch().join("passed"));
        let counter = home.scratch().join("executed");
        let home = home
            .env("COUNTER", &counter)
            .env("OUTLAST_CRASH_LOG", &log)
            .env("OUTLAST_CRASH_TOKEN", &token);
        let home = match crash_at {
            Some(hook) => {
                fs::write(token, "").expect("the scratch directory is ours");
                home.env("OUTLAST_CRASH_AT", hook)
            }
            None => home,
        };
        Self { home, counter, log }
    }

    /// As a person would: if the daemon does not answer, ask again. The key makes that one run.
    fn insist(&self, args: &[&str]) -> String {
        until("the command succeeds", || {
            let output = self.home.output(args);
            output.status.success().then(|| text(&output.stdout).trim_end().to_owned())
        })
    }

    fn start(&self, script: &str) -> String {
        let script = format!("echo $OUTLAST_TURN.$OUTLAST_ATTEMPT >> \"$COUNTER\"; {script}");
        self.insist(&["run", "-d", "--key", "the-one", "--", "sh", "-c", &script])
    }

    /// The run's state and outcome when it has ended.
    fn end(&self, id: &str) -> (String, String) {
        until("the run ends", || {
            let output = self.home.output(&["wait", id, "--timeout", "30s"]);
            output.status.code().filter(|code| ![2, 7, 124].contains(code))
        });
        let run = until("the run can be shown", || {
            let output = self.home.output(&["show", id, "--json"]);
            serde_json::from_slice::<serde_json::Value>(&output.stdout)
                .ok()
                .filter(|run| run["state"].is_string())
        });
        (str_of(&run, "state").to_owned(), run["outcome"].as_str().unwrap_or("none").to_owned())
    }

    fn passed(&self) -> BTreeSet<String> {
        fs::read_to_string(&self.log).unwrap_or_default().lines().map(str::to_owned).collect()
    }
}

impl Story {
    fn tell(self, stage: &Stage) -> (String, String) {
        match self {
            Self::Completes => {
                let id = stage.start("exit 0");
                stage.end(&id)
            }
            Self::IsStopped => {
                let id = stage.start("sleep 600");
                until("it runs or has ended", || {
                    let output = stage.home.output(&["show", &id, "--json"]);
                    let run: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
                    (run["pid"].is_u64() || run["ended_at"].is_string()).then_some(())
                });
                stage.insist(&["stop", &id, "--now"]);
                stage.end(&id)
            }
            Self::IsAdopted => {
                let gate = stage.home.scratch().join("go");
                let id =
                    stage.start(&format!("while [ ! -e {} ]; do sleep 0.02; done", gate.display()));
                until("it runs or has ended", || {
                    (lines(&stage.counter) > 0 || self.has_ended(stage, &id)).then_some(())
                });
                if let Some(daemon) = stage.home.daemon_if_up() {
                    kill(daemon, "KILL");
                    until("the daemon is dead", || (!is_alive(daemon)).then_some(()));
                }
                stage.insist(&["daemon", "start"]);
                fs::write(gate, "").expect("the scratch directory is ours");
                stage.end(&id)
            }
        }
    }

    fn has_ended(self, stage: &Stage, id: &str) -> bool {
        let output = stage.home.output(&["show", id, "--json"]);
        serde_json::from_slice::<serde_json::Value>(&output.stdout)
            .is_ok_and(|run| run["ended_at"].is_string())
    }

    fn good_end(self) -> &'static str {
        match self {
            Self::Completes | Self::IsAdopted => "completed",
            Self::IsStopped => "stopped",
        }
    }
}

/// Tells the story with a death at `hook`, and checks what must hold whatever died.
fn tell_with_a_death(story: Story, hook: &str) {
    let stage = Stage::new(Some(hook));
    let (state, outcome) = story.tell(&stage);
    assert!(!stage.home.scratch().join("token").exists(), "{story:?} at {hook}: no process died");
    let executed = fs::read_to_string(&stage.counter).unwrap_or_default();
    let attempts: BTreeSet<&str> = executed.lines().collect();
    assert_eq!(
        attempts.len(),
        executed.lines().count(),
        "{story:?} at {hook}: an attempt was executed twice: {executed}"
    );
    let is_lost = outcome == "lost" && MAY_BE_LOST.contains(&hook);
    assert!(is_lost || state == story.good_end(), "{story:?} at {hook}: {state} ({outcome})");
    if !is_lost {
        assert!(
            attempts.len() <= 1,
            "{story:?} at {hook}: committed work was done again: {executed}"
        );
    }
    assert_sound(&stage.home, &format!("{story:?} at {hook}"));
}

/// The journal is as it must be, whatever died.
pub(crate) fn assert_sound(home: &Home, when: &str) {
    let doctor: serde_json::Value =
        serde_json::from_slice(&home.output(&["doctor", "--json"]).stdout).expect("doctor answers");
    let findings = doctor["findings"].as_array().expect("it has findings");
    let journal: Vec<_> =
        findings.iter().filter(|finding| finding["subject"] == "journal").collect();
    let is_sound = !journal.is_empty() && journal.iter().all(|finding| finding["level"] == "ok");
    assert!(is_sound, "{when}: {doctor}");
}

/// Every point that the story passes when no process dies.
fn points(story: Story) -> BTreeSet<String> {
    let stage = Stage::new(None);
    let (state, _) = story.tell(&stage);
    assert_eq!(state, story.good_end());
    stage.passed()
}

fn tell_with_every_death(story: Story) {
    for hook in points(story) {
        tell_with_a_death(story, &hook);
    }
}

#[test]
fn a_command_that_completes_survives_a_death_at_every_point() {
    tell_with_every_death(Story::Completes);
}

#[test]
fn a_stop_survives_a_death_at_every_point() {
    tell_with_every_death(Story::IsStopped);
}

#[test]
fn an_adoption_survives_a_death_at_every_point() {
    tell_with_every_death(Story::IsAdopted);
}

#[test]
fn every_point_there_is_is_passed_by_some_story() {
    let passed: BTreeSet<String> = [Story::Completes, Story::IsStopped, Story::IsAdopted]
        .into_iter()
        .flat_map(points)
        .chain(crate::loop_points::points().into_keys())
        .chain(crate::notices::points().into_keys())
        .chain(crate::children::points())
        .chain(crate::schedules::points())
        .chain(crate::raise::points())
        .chain(crate::rewind::points())
        .chain(crate::keyed_calls::points())
        .collect();
    let known: BTreeSet<String> = HOOKS.iter().map(|&hook| hook.to_owned()).collect();
    assert_eq!(passed, known);
}
