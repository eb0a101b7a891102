//! Hooks: each is ended with everything it started, told when it fails, and run as often as promised.

use std::path::Path;

use crate::harness::{Home, is_alive, str_of, text, until};
use crate::hosted::{becomes, begin, file, git, left, of_kind, repository, start, until_left};

#[test]
fn a_hook_that_hangs_is_ended_with_its_children_at_its_timeout() {
    let home = Home::new();
    let hook = r#"
  timeout_ms: 2000
  before_run: |
    sh -c 'sleep 600 & echo $! >>"$HOME/pids"; wait' &
    echo "$$ $!" >>"$HOME/pids"
    echo waiting for godot
    wait"#;
    let id = begin(&home, "say done x", &format!("hooks:{hook}"));
    let run = becomes(&home, &id, "failed", "before_run_failed");
    let reason = str_of(&run, "reason");
    assert_eq!(reason, "hook before_run failed: it took too long: waiting for godot");
    let pids: Vec<u32> = left(&home, "pids")
        .iter()
        .flat_map(|line| line.split_whitespace().map(|pid| pid.parse().expect("a pid")))
        .collect();
    assert_eq!(pids.len(), 3, "the hook, its child and its grandchild: {pids:?}");
    assert_eq!(pids.iter().filter(|pid| is_alive(**pid)).count(), 0, "{pids:?}");
    assert_eq!(home.count(&id, "TurnStarted"), 0);
    let ended = of_kind(&home, &id, "ErrandEnded");
    assert_eq!(str_of(&ended[0], "outcome"), "timed_out");
}

const HALF: &str = r#"
hooks:
  after_create: |
    echo "$OUTLAST_RUN_ID" >>"$HOME/created"
    touch half
    echo no network >&2
    test -e "$HOME/network" || exit 3
  after_run: touch "$HOME/after""#;

fn fails_to_create(home: &Home, file: &str) -> String {
    let id = start(home, file, &["--name", "half"]);
    let run = becomes(home, &id, "failed", "after_create_failed");
    assert_eq!(str_of(&run, "reason"), "hook after_create failed: exit code 3: no network");
    assert_eq!(home.count(&id, "TurnStarted"), 0);
    let workspace = str_of(&run, "workspace").to_owned();
    assert!(!Path::new(&workspace).exists(), "half a workspace is left in {workspace}");
    assert_eq!(of_kind(home, &id, "WorkspaceDiscarded").len(), 1);
    assert!(!home.scratch().join("after").exists());
    workspace
}

/// It is made anew, and its hook with it, once the reason is gone.
fn succeeds_later(home: &Home, file: &str, workspace: &str) {
    crate::hosted::put(&home.scratch().join("network"), "");
    let id = start(home, file, &["--name", "half"]);
    let run = becomes(home, &id, "completed", "done");
    assert_eq!(str_of(&run, "workspace"), workspace);
    assert!(Path::new(workspace).join("half").exists());
    assert_eq!(left(home, "created").len(), 2);
}

#[test]
fn a_failing_after_create_leaves_no_half_made_directory() {
    let home = Home::new();
    let file = file(&home, "loop", "say done x", &format!("workspace: {{strategy: dir}}\n{HALF}"));
    let workspace = fails_to_create(&home, &file);
    succeeds_later(&home, &file, &workspace);
}

#[test]
fn a_failing_after_create_leaves_no_half_made_worktree() {
    let home = Home::new();
    let repository = repository(&home);
    let settings = format!("workspace: {{strategy: worktree}}\n{HALF}");
    let file = file(&home, "loop", "say done x", &settings);
    let workspace = fails_to_create(&home, &file);
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
    succeeds_later(&home, &file, &workspace);
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 2);
}

#[test]
fn a_failing_before_run_is_told_and_no_turn_starts() {
    let home = Home::new();
    let hooks = r#"
hooks:
  before_run: |
    echo connecting
    echo no database >&2
    exit 4
  after_run: touch "$HOME/after""#;
    let id = begin(&home, "touch \"$HOME/ran\"; say done x", hooks);
    let run = becomes(&home, &id, "failed", "before_run_failed");
    assert_eq!(str_of(&run, "reason"), "hook before_run failed: exit code 4: no database");
    let changes = of_kind(&home, &id, "StateChanged");
    let told = changes.iter().find(|event| event["reason_code"] == "before_run_failed");
    let evidence = &told.expect("a change says why")["evidence"];
    assert_eq!(evidence[0], "errand e1 (hook before_run)", "{evidence}");
    for untouched in ["ran", "after"] {
        assert!(!home.scratch().join(untouched).exists(), "{untouched}");
    }
}

#[test]
fn after_run_runs_once_whatever_the_outcome() {
    let home = Home::new();
    let agents = [
        ("completed", "say done x", ""),
        ("failed", "say failed x", ""),
        ("exhausted", "say continue x", "limits: {no_progress_turns: 0}"),
        ("stopped", "exec sleep 600", ""),
    ];
    for (outcome, agent, settings) in agents {
        let hook = "after_run: echo \"$OUTLAST_OUTCOME $OUTLAST_RUN_NAME\" >>\"$HOME/after\"";
        let settings = format!("hooks:\n  {hook}\n{settings}");
        let file = file(&home, outcome, agent, &settings);
        let id = start(&home, &file, &["--name", outcome, "--max-turns", "2"]);
        if outcome == "stopped" {
            home.pid(&id);
            home.ok(&["stop", &id]);
        }
        home.wait(&id);
        assert_eq!(str_of(&home.show(&id), "state"), outcome);
        let line = format!("{outcome} {outcome}");
        let times = left(&home, "after").iter().filter(|known| **known == line).count();
        assert_eq!(times, 1, "{outcome}: {:?}", left(&home, "after"));
    }
    assert_eq!(left(&home, "after").len(), agents.len());
}

#[test]
fn a_run_that_is_stopped_in_before_run_has_no_after_run() {
    let home = Home::new();
    let hooks = "hooks:\n  before_run: 'echo $$ >\"$HOME/pid\"; exec sleep 600'\n  after_run: touch \"$HOME/after\"";
    let id = begin(&home, "say done x", hooks);
    let pid: u32 = until_left(&home, "pid")[0].parse().expect("a pid");
    home.ok(&["stop", &id]);
    becomes(&home, &id, "stopped", "stopped");
    until("the hook is gone", || (!is_alive(pid)).then_some(()));
    assert!(!home.scratch().join("after").exists());
    assert_eq!(home.count(&id, "TurnStarted"), 0);
}

#[test]
fn hooks_are_told_what_they_work_for() {
    let home = Home::new();
    let told = |hook: &str| format!("{hook}: env | sort >\"$HOME/{hook}\"");
    let hooks: Vec<String> =
        ["after_create", "before_run", "after_turn", "after_run"].map(told).to_vec();
    let settings = format!("workspace: {{strategy: dir}}\nhooks:\n  {}", hooks.join("\n  "));
    let file = file(&home, "loop", "say done x", &settings);
    let id = start(&home, &file, &["--name", "told"]);
    let run = becomes(&home, &id, "completed", "done");
    let path = home.path();
    for (hook, turn, outcome) in [
        ("after_create", "0", None),
        ("before_run", "0", None),
        ("after_turn", "1", None),
        ("after_run", "1", Some("completed")),
    ] {
        let env = left(&home, hook);
        let value = |name: &str| {
            let start = format!("{name}=");
            env.iter().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
        };
        let expected = [
            ("OUTLAST_RUN_ID", Some(id.as_str())),
            ("OUTLAST_RUN_NAME", Some("told")),
            ("OUTLAST_TURN", Some(turn)),
            ("OUTLAST_WORKSPACE", run["workspace"].as_str()),
            ("OUTLAST_PURPOSE", Some(&*format!("hook {hook}"))),
            ("OUTLAST_HOME", path.to_str()),
            ("OUTLAST_OUTCOME", outcome),
            ("PWD", run["workspace"].as_str()),
        ];
        for (name, wanted) in expected {
            assert_eq!(value(name).as_deref(), wanted, "{hook}: {name}");
        }
    }
}

#[test]
fn a_failing_after_turn_is_told_and_ignored() {
    let home = Home::new();
    let agent = "if [ \"$OUTLAST_TURN\" = 1 ]; then say continue first; else say done second; fi";
    let file = file(&home, "loop", agent, "hooks:\n  after_turn: 'echo no disk; exit 9'");
    let watched = home.output(&["run", "--name", "watched", "-f", &file]);
    assert_eq!(watched.status.code(), Some(0));
    let told = text(&watched.stderr);
    assert_eq!(told.matches("hook after_turn failed (exit 9): no disk\n").count(), 2, "{told}");
    let id = str_of(&home.show("watched"), "id").to_owned();
    let turn = home.json(&["show", &id, "--turn", "1", "--json"]);
    let errand = &turn["errands"][0];
    assert_eq!(str_of(errand, "purpose"), "hook after_turn");
    assert_eq!(errand["exit"], serde_json::json!({"code": 9}), "{errand}");
    assert_eq!(str_of(errand, "output_tail").trim_end(), "no disk");
    let page = home.ok(&["show", &id, "--turn", "1"]);
    assert!(page.contains("hook after_turn") && page.contains("no disk"), "{page}");
    assert_eq!(home.count(&id, "TurnCommitted"), 2);
}
