//! Stop, wherever a loop is: in a hook, a check, a call or a turn, or at rest.
//!
//! Each part of the loop can be made to hang. Stopped there, nothing of it is alive, it is cleaned up after
//! if it had begun, and an order that a dying daemon has taken is carried out by the next one.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::crash_matrix::assert_sound;
use crate::harness::{Home, is_alive, kill, lines, str_of, until};
use crate::stalls::start;

/// Every part of a loop that runs a command, under the name of its phase.
const PARTS: &[&str] = &[
    "hook after_create",
    "check before_run 1/1",
    "hook before_run",
    "turn 1 attempt 1",
    "tool look",
    "hook after_turn",
    "check done 1/1",
];

/// A loop of two turns, a call in the first. `@N` is the command of the part of that number.
const LOOP: &str = r#"---
agent:
  kind: exec
  command: |
    @3
    echo $OUTLAST_TURN > turn; status=done; calls='[]'
    [ $OUTLAST_TURN -gt 1 ] || { status=continue; calls='[{"name":"look","input":{}}]'; }
    echo '{"status":"'$status'","tool_calls":'$calls'}' > "$OUTLAST_RESPONSE_FILE"
workspace: { strategy: dir, root: '@W/workspaces' }
hooks:
  after_create: "@0"
  before_run: "@2"
  after_turn: "@5"
  after_run: "echo $OUTLAST_OUTCOME >> '@W/cleaned'; @7"
  timeout_ms: @T
checks: { before_run: ["@1"], done: ["@6"] }
tools: [ { name: look, command: [sh, -c, "@4"], class: read } ]
retry: { initial_backoff_ms: 3600000, max_backoff_ms: 3600000 }
---
Do it.
"#;

/// After the run.
const AFTER_RUN: usize = 7;

struct Stage {
    home: Home,
    pids: PathBuf,
}

impl Stage {
    fn new() -> Self {
        Self::on(Home::new())
    }

    fn on(home: Home) -> Self {
        let pids = home.scratch().join("pids");
        Self { home, pids }
    }

    /// A daemon that dies at `point`, and clients that start none.
    fn dying_at(point: &str) -> Self {
        let home = Home::new();
        let token = home.scratch().join("token");
        fs::write(&token, "").expect("the scratch directory is ours");
        let home = home.env("OUTLAST_CRASH_AT", point).env("OUTLAST_CRASH_TOKEN", &token);
        Self::on(home.env("OUTLAST_NO_AUTOSTART", "1"))
    }

    /// The loop, with these commands for these parts.
    fn file(&self, parts: &[(usize, &str)], timeout_ms: u64) -> String {
        let scratch = self.home.scratch().display().to_string();
        let file = LOOP.replace("@W", &scratch).replace("@T", &timeout_ms.to_string());
        (0..=AFTER_RUN).fold(file, |file, part| {
            let given = parts.iter().find(|(at, _)| *at == part).map_or("true", |(_, it)| it);
            file.replace(&format!("@{part}"), given)
        })
    }

    /// Starts the loop with a part that hangs, and returns once it does.
    fn hangs_in(&self, part: usize, timeout_ms: u64) -> String {
        let hang = format!("echo $$ >> '{}'; exec sleep 600", self.pids.display());
        let id = start(&self.home, &self.file(&[(part, &hang)], timeout_ms));
        until("it hangs", || (lines(&self.pids) > 0).then_some(()));
        id
    }

    fn is_in(&self, id: &str, phase: &str) -> Value {
        until("the phase is reached", || {
            let run = self.home.show(id);
            (run["phase"] == phase).then_some(run)
        })
    }

    fn assert_gone(&self, when: &str) {
        let pids = fs::read_to_string(&self.pids).unwrap_or_default();
        let alive: Vec<&str> = pids.lines().filter(|pid| pid.parse().is_ok_and(is_alive)).collect();
        assert_eq!(alive, Vec::<&str>::new(), "{when}: alive after stop");
    }

    fn assert_stopped(&self, id: &str, when: &str) {
        let run = self.home.show(id);
        let events = self.home.ok(&["events", id]);
        assert_eq!(str_of(&run, "state"), "stopped", "{when}: {events}");
        self.assert_gone(when);
        assert_eq!(self.home.count(id, "RunEnded"), 1, "{when}: {events}");
        assert_sound(&self.home, when);
    }

    fn cleaned(&self) -> String {
        fs::read_to_string(self.home.scratch().join("cleaned")).unwrap_or_default()
    }
}

#[test]
fn a_loop_is_stopped_in_whatever_it_runs() {
    for (part, phase) in PARTS.iter().enumerate() {
        let stage = Stage::new();
        let id = stage.hangs_in(part, 600_000);
        stage.is_in(&id, phase);
        assert_eq!(stage.home.ok(&["stop", &id]), format!("stopped {id}"), "{phase}");
        stage.assert_stopped(&id, phase);
        // The hook after the run goes with the one before it.
        let cleaned = if part > 2 { "stopped\n" } else { "" };
        assert_eq!(stage.cleaned(), cleaned, "{phase}");
        let workspaces = fs::read_dir(stage.home.scratch().join("workspaces"));
        let left = workspaces.map_or(0, |entries| {
            entries
                .flatten()
                .filter(|it| !it.file_name().as_encoded_bytes().starts_with(b"."))
                .count()
        });
        assert_eq!(
            left,
            usize::from(part > 0),
            "{phase}: a workspace is kept if it was made whole"
        );
    }
}

/// The daemon dies with the order in its journal; the next one is not asked again.
#[test]
fn a_stop_that_a_dying_daemon_took_is_carried_out_by_the_next() {
    for (part, phase) in PARTS.iter().enumerate() {
        let stage = Stage::dying_at("daemon.stop-sent");
        stage.home.ok(&["daemon", "start"]);
        let id = stage.hangs_in(part, 600_000);
        dies_while_stopping(&stage, &id);
        assert_eq!(stage.home.wait(&id), 5, "{phase}");
        stage.assert_stopped(&id, phase);
        assert_eq!(stage.home.count(&id, "StopRequested"), 1, "{phase}");
    }
}

/// Asks for a stop, and is gone before the daemon could be asked again; another daemon starts.
fn dies_while_stopping(stage: &Stage, id: &str) {
    let daemon = stage.home.daemon_pid();
    let stopping = stage.home.spawn(&["stop", id, "--now"]);
    until("the daemon dies", || (!is_alive(daemon)).then_some(()));
    kill(stopping.0.id(), "KILL");
    assert!(!stage.home.scratch().join("token").exists(), "it did not die of the order");
    until("another daemon runs", || {
        let output = stage.home.output(&["daemon", "start"]);
        output.status.success().then_some(())
    });
}

/// Starts a loop that comes to rest.
type Rest = fn(&Stage) -> String;

/// Each way in which a loop rests, by its phase.
fn at_rest() -> [(&'static str, Rest); 4] {
    [
        ("backoff", |stage| start(&stage.home, &stage.file(&[(3, "exit 1")], 600_000))),
        ("paused", |stage| {
            let go = stage.home.scratch().join("go");
            let wait = format!("while [ ! -e '{}' ]; do sleep 0.02; done", go.display());
            let id = start(&stage.home, &stage.file(&[(3, &wait)], 600_000));
            stage.is_in(&id, "turn 1 attempt 1");
            stage.home.ok(&["pause", &id]);
            fs::write(go, "").expect("the scratch directory is ours");
            id
        }),
        ("blocked", |stage| {
            let says = r#"echo '{"status":"blocked"}' > "$OUTLAST_RESPONSE_FILE"; exit 0"#;
            start(&stage.home, &stage.file(&[(3, says)], 600_000))
        }),
        ("queue", |stage| {
            let config = stage.home.path().join("config.toml");
            fs::write(config, "[concurrency]\nmax_runs = 1\n").expect("the home is ours");
            stage.home.start("sleep 600");
            start(&stage.home, &stage.file(&[], 600_000))
        }),
    ]
}

#[test]
fn a_loop_is_stopped_at_rest() {
    for (phase, rest) in at_rest() {
        let stage = Stage::new();
        let id = rest(&stage);
        stage.is_in(&id, phase);
        assert_eq!(stage.home.ok(&["stop", &id]), format!("stopped {id}"), "{phase}");
        stage.assert_stopped(&id, phase);
        let cleaned = if phase == "queue" { "" } else { "stopped\n" };
        assert_eq!(stage.cleaned(), cleaned, "{phase}");
    }
}

#[test]
fn a_stop_at_rest_that_a_dying_daemon_took_is_carried_out_by_the_next() {
    for (phase, rest) in at_rest() {
        let stage = Stage::dying_at("daemon.before-finish");
        stage.home.ok(&["daemon", "start"]);
        let id = rest(&stage);
        stage.is_in(&id, phase);
        dies_while_stopping(&stage, &id);
        assert_eq!(stage.home.wait(&id), 5, "{phase}");
        stage.assert_stopped(&id, phase);
    }
}

#[test]
fn a_hook_after_the_run_that_hangs_is_ended_at_its_time() {
    let stage = Stage::new();
    let id = stage.hangs_in(AFTER_RUN, 1000);
    assert_eq!(stage.home.wait(&id), 0);
    stage.assert_gone("after_run");
    assert_eq!((stage.cleaned().as_str(), stage.home.count(&id, "RunEnded")), ("completed\n", 1));
    assert_eq!(str_of(&stage.home.show(&id), "state"), "completed");
    assert_sound(&stage.home, "after_run");
}

/// What a run has come to is not taken back by a stop while it is cleaned up after.
#[test]
fn a_stop_ends_a_hook_after_the_run_and_not_what_the_run_has_come_to() {
    let stage = Stage::new();
    let id = stage.hangs_in(AFTER_RUN, 600_000);
    let said = stage.home.ok(&["stop", &id]);
    assert_eq!(said, format!("{id} ended before the stop: completed"));
    stage.assert_gone("after_run");
    assert_eq!((stage.cleaned().as_str(), stage.home.wait(&id)), ("completed\n", 0));
}
