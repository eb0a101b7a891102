//! Workspaces: where they are, who shares one, how long they stay, and what is never removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::harness::{Gate, Home, lines, str_of};
use crate::hosted::{
    becomes, file, git, left, of_kind, put, refused, repository, rested, start, until_left, work,
};

const HERE: &str = "pwd >>\"$HOME/pwd\"; say done x";

#[test]
fn the_file_says_where_the_turns_work_and_the_command_line_goes_before_it() {
    let home = Home::new();
    let here = repository(&home);
    for (said, flag, expected) in [
        ("", None, "inplace"),
        ("workspace: {strategy: dir}", None, "dir"),
        ("workspace: {root: ./runs}", None, "dir"),
        ("workspace: {strategy: worktree}", None, "worktree"),
        ("workspace: {strategy: worktree}", Some("inplace"), "inplace"),
        ("", Some("dir"), "dir"),
        ("workspace: {strategy: dir}", Some("worktree"), "worktree"),
    ] {
        let file = file(&home, "loop", HERE, said);
        let flags: Vec<&str> = flag.iter().flat_map(|flag| ["--workspace", *flag]).collect();
        let id = start(&home, &file, &flags);
        let run = becomes(&home, &id, "completed", "done");
        assert_eq!(str_of(&run, "strategy"), expected, "{said} {flag:?}");
        let workspace = Path::new(str_of(&run, "workspace"));
        assert_eq!(left(&home, "pwd").last().map(Path::new), Some(workspace));
        let is_here = workspace == here;
        assert_eq!(is_here, expected == "inplace", "{said} {flag:?}: {}", workspace.display());
        assert_eq!(workspace.join("README").exists(), expected != "dir");
    }
    assert!(home.scratch().join("runs").exists(), "a root is relative to its file");
}

#[test]
fn a_name_is_made_safe_before_it_is_a_directory() {
    let home = Home::new();
    let file = file(&home, "loop", HERE, "workspace: {strategy: dir, root: ./runs}");
    let mut seen = Vec::new();
    for name in ["fix/a b#1", "../../up", "..", "a:b", "a@b"] {
        let id = start(&home, &file, &["--name", name]);
        let run = becomes(&home, &id, "completed", "done");
        let workspace = PathBuf::from(str_of(&run, "workspace"));
        assert_eq!(workspace.parent(), Some(&*home.scratch().join("runs")), "{name}");
        let key = workspace.file_name().expect("a name").to_string_lossy().into_owned();
        let is_safe = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
        assert!(key.chars().all(is_safe) && !key.starts_with('.'), "{name}: {key}");
        assert!(!seen.contains(&key), "{name} shares {key} with another name");
        seen.push(key);
    }
}

#[test]
fn a_link_that_leads_out_of_the_root_is_refused() {
    let home = Home::new();
    let elsewhere = home.scratch().join("elsewhere");
    fs::create_dir_all(&elsewhere).expect("the scratch directory is ours");
    fs::create_dir_all(home.scratch().join("runs")).expect("the scratch directory is ours");
    symlink(&elsewhere, home.scratch().join("runs/out")).expect("a link");
    let file = file(&home, "loop", "touch ran; say done x", "workspace: {root: ./runs}");
    let id = start(&home, &file, &["--name", "out"]);
    let run = becomes(&home, &id, "failed", "workspace_failed");
    let reason = str_of(&run, "reason");
    assert!(reason.contains("symbolic link") || reason.contains("symlink"), "{reason}");
    assert_eq!(fs::read_dir(&elsewhere).map_or(1, Iterator::count), 0);
    assert_eq!(home.count(&id, "TurnStarted"), 0);
}

#[test]
fn a_workspace_is_found_again_by_its_name() {
    let home = Home::new();
    let settings =
        "workspace: {strategy: dir}\nhooks: {after_create: 'echo made >>\"$HOME/made\"'}";
    let file = file(&home, "loop", "echo \"$OUTLAST_RUN_ID\" >>seen; say done x", settings);
    let first = start(&home, &file, &["--name", "same"]);
    becomes(&home, &first, "completed", "done");
    let second = start(&home, &file, &["--name", "same"]);
    let run = becomes(&home, &second, "completed", "done");
    let seen = Path::new(str_of(&run, "workspace")).join("seen");
    assert_eq!(fs::read_to_string(seen).expect("it is kept"), format!("{first}\n{second}\n"));
    assert_eq!(left(&home, "made").len(), 1, "it was made once");
    let prepared = of_kind(&home, &second, "WorkspacePrepared");
    assert_eq!(prepared[0]["created"], false);
    let other = start(&home, &file, &[]);
    let run = becomes(&home, &other, "completed", "done");
    assert_eq!(lines(&Path::new(str_of(&run, "workspace")).join("seen")), 1);
}

/// What `gc` did, or would do, by run.
fn collected(report: &Value, list: &str, id: &str) -> Vec<String> {
    let items = report[list].as_array().expect("a list");
    let its = items.iter().filter(|item| item["run"] == id);
    its.map(|item| str_of(item, "why").to_owned()).collect()
}

#[test]
fn how_it_ended_decides_how_long_a_workspace_stays() {
    let home = Home::new();
    let retain = "workspace: {strategy: dir, retain: {completed: 0, stopped: 1d}}";
    let done = start(&home, &file(&home, "done", "say done x", retain), &[]);
    let failed = start(&home, &file(&home, "failed", "say failed x", retain), &[]);
    let stopped = start(&home, &file(&home, "stopped", "exec sleep 600", retain), &[]);
    let asks = start(&home, &file(&home, "asks", "say blocked x", retain), &[]);
    home.pid(&stopped);
    home.ok(&["stop", "--now", &stopped]);
    let all = [&done, &failed, &stopped, &asks].map(|id| {
        let run = rested(&home, id);
        PathBuf::from(str_of(&run, "workspace"))
    });
    let dry = home.json(&["gc", "--dry-run", "--json"]);
    assert_eq!(collected(&dry, "removed", &done).len(), 1, "{dry:#}");
    assert!(all.iter().all(|workspace| workspace.exists()), "a dry run removes nothing");
    let swept = home.json(&["gc", "--json"]);
    assert_eq!(collected(&swept, "removed", &done), collected(&dry, "removed", &done));
    assert_eq!(swept["removed"].as_array().map(Vec::len), Some(1), "{swept:#}");
    assert!(collected(&swept, "skipped", &failed)[0].contains("for ever"), "{swept:#}");
    assert!(collected(&swept, "skipped", &stopped)[0].contains("is kept until 20"), "{swept:#}");
    assert_eq!(all.map(|workspace| workspace.exists()), [false, true, true, true]);
    assert_eq!(str_of(&home.show(&done), "state"), "completed", "the run itself stays");
    assert_eq!(of_kind(&home, &done, "WorkspaceRemoved").len(), 1);
    let again = home.json(&["gc", "--json"]);
    assert_eq!(again["removed"].as_array().map(Vec::len), Some(0), "{again:#}");
}

const WORKTREE: &str = "workspace: {strategy: worktree, retain: {completed: 0}}";

#[test]
fn work_that_is_nowhere_else_is_never_collected() {
    let home = Home::new();
    let repository = repository(&home);
    let dirty = file(&home, "dirty", "echo more >>README; touch new; say done x", WORKTREE);
    let dirty = start(&home, &dirty, &["--name", "dirty"]);
    let clean = start(&home, &file(&home, "clean", "say done x", WORKTREE), &["--name", "clean"]);
    let kept = becomes(&home, &dirty, "completed", "done");
    let gone = becomes(&home, &clean, "completed", "done");
    let said = home.ok(&["gc", "--dry-run"]);
    assert!(said.contains("would remove clean: workspace "), "{said}");
    let said = home.ok(&["gc"]);
    let why = "it has changes that are not committed: 1 changed, 1 untracked";
    let line = said.lines().find(|line| line.starts_with("kept dirty: workspace "));
    assert!(line.is_some_and(|line| line.contains(why)), "{said}");
    assert!(!said.contains("kept clean"), "{said}");
    let report = home.json(&["gc", "--json"]);
    assert!(collected(&report, "skipped", &dirty)[0].ends_with(why), "{report:#}");
    assert!(Path::new(str_of(&kept, "workspace")).join("new").exists());
    assert!(!Path::new(str_of(&gone, "workspace")).exists());
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 2);
    let branches = git(&repository, &["branch", "--list"]);
    assert_eq!(branches.lines().count(), 3, "a branch stays: {branches}");
}

#[test]
fn the_hook_before_a_removal_and_the_removal_are_told_apart() {
    let home = Home::new();
    let settings = "workspace: {strategy: dir, retain: {completed: 0}}\nhooks:\n  before_remove: 'pwd >\"$HOME/before\"; echo cannot archive; exit 6'";
    let id = start(&home, &file(&home, "loop", "say done x", settings), &[]);
    let run = becomes(&home, &id, "completed", "done");
    home.ok(&["gc"]);
    assert_eq!(left(&home, "before"), [str_of(&run, "workspace")]);
    let after: Vec<Value> = home
        .events(&id)
        .into_iter()
        .skip_while(|event| event["kind"] != "RemovalRequested")
        .collect();
    let kinds: Vec<&str> = after.iter().map(|event| str_of(event, "kind")).collect();
    let expected =
        ["RemovalRequested", "ErrandStarted", "ErrandEnded", "ErrandEmptied", "WorkspaceRemoved"];
    let known: Vec<&str> = kinds.iter().copied().filter(|kind| expected.contains(kind)).collect();
    assert!(known == expected || known == [&expected[..3], &expected[4..]].concat(), "{kinds:?}");
    let hook = after.iter().find(|event| event["kind"] == "ErrandEnded").expect("it ended");
    assert_eq!((&hook["code"], str_of(hook, "tail").trim_end()), (&6.into(), "cannot archive"));
    assert!(!Path::new(str_of(&run, "workspace")).exists(), "its failure keeps nothing");
    assert_eq!(str_of(&home.show(&id), "state"), "completed");
}

#[test]
fn a_run_whose_work_is_nowhere_else_is_removed_only_without_it() {
    let home = Home::new();
    repository(&home);
    let file = file(&home, "loop", "touch new; say done x", WORKTREE);
    let id = start(&home, &file, &["--name", "dirty"]);
    let run = becomes(&home, &id, "completed", "done");
    let workspace = PathBuf::from(str_of(&run, "workspace"));
    let error = refused(&home, &["rm", "--json", &id]);
    assert_eq!(str_of(&error, "code"), "workspace_kept");
    assert!(str_of(&error, "message").contains("1 untracked"), "{error}");
    assert!(str_of(&error, "hint").contains("--keep-workspace"), "{error}");
    assert_eq!(str_of(&home.show(&id), "state"), "completed", "it is still there");
    home.ok(&["rm", "--keep-workspace", &id]);
    assert_eq!(home.json(&["ps", "-a", "--json"]), serde_json::json!([]));
    assert!(workspace.join("new").exists());
}

#[test]
fn a_run_that_is_removed_takes_its_workspace_along_and_leaves_what_was_there() {
    let home = Home::new();
    let repository = repository(&home);
    for strategy in ["inplace", "dir", "worktree"] {
        let id = start(&home, &file(&home, "loop", HERE, ""), &["--workspace", strategy]);
        let run = becomes(&home, &id, "completed", "done");
        home.ok(&["rm", &id]);
        let is_left = Path::new(str_of(&run, "workspace")).exists();
        assert_eq!(is_left, strategy == "inplace", "{strategy}");
        assert!(!home.state().join("runs").join(&id).exists(), "{strategy}");
    }
    assert!(work(&home).join("README").exists());
    assert_eq!(git(&repository, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_workspace_that_another_run_works_in_is_not_taken_from_it() {
    let home = Home::new();
    let settings = "workspace: {strategy: dir, retain: {completed: 0, stopped: 0}}";
    let file = file(&home, "loop", "test -e go && exec sleep 600; touch go; say done x", settings);
    let first = start(&home, &file, &["--name", "same"]);
    let run = becomes(&home, &first, "completed", "done");
    let workspace = PathBuf::from(str_of(&run, "workspace"));
    let second = start(&home, &file, &["--name", "same"]);
    home.pid(&second);
    let report = home.json(&["gc", "--json"]);
    assert_eq!(collected(&report, "removed", &first), Vec::<String>::new(), "{report:#}");
    assert!(workspace.join("go").exists(), "gc took it away");
    home.ok(&["rm", &first]);
    assert!(workspace.join("go").exists(), "rm took it away");
    home.ok(&["stop", "--now", &second]);
    let third = start(&home, &file, &["--name", "same"]);
    home.pid(&third);
    home.ok(&["stop", "--now", &third]);
    home.ok(&["rm", &second]);
    assert!(workspace.exists(), "it is the third's now");
    let report = home.json(&["gc", "--json"]);
    assert_eq!(collected(&report, "removed", &third).len(), 1, "{report:#}");
    assert!(!workspace.exists());
}

#[test]
fn a_removal_that_was_begun_is_ended_after_the_daemon_died() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let hook =
        format!("hooks:\n  before_remove: |\n    echo x >>\"$HOME/hook\"\n    {}", gate.pass());
    let settings = format!("workspace: {{strategy: dir}}\n{hook}");
    let id = start(&home, &file(&home, "loop", HERE, &settings), &[]);
    let run = becomes(&home, &id, "completed", "done");
    let client = home.spawn(&["rm", &id]);
    until_left(&home, "hook");
    home.crash_daemon();
    home.ok(&["ps"]);
    gate.open();
    assert_eq!(client.code(), 0);
    assert!(!Path::new(str_of(&run, "workspace")).exists());
    assert_eq!(home.json(&["ps", "-a", "--json"]), serde_json::json!([]));
    assert_eq!(left(&home, "hook").len(), 1);
}

#[test]
fn a_worktree_needs_a_repository() {
    let home = Home::new();
    put(&work(&home).join("file"), "");
    let file = file(&home, "loop", HERE, "workspace: {strategy: worktree}");
    let id = start(&home, &file, &[]);
    let run = becomes(&home, &id, "failed", "workspace_failed");
    let reason = str_of(&run, "reason");
    assert!(reason.contains("is no git repository"), "{reason}");
    assert!(reason.contains("--workspace dir"), "it says what to do: {reason}");
}

/// The agent puts a link in the place of its workspace at the end of the first turn.
const SWAPPED: &str = r#"
if [ "$OUTLAST_TURN" = 1 ]; then
  echo ours >keep; cd ..; mv "$OUTLAST_WORKSPACE" "$HOME/moved"; ln -s "$HOME/outside" "$OUTLAST_WORKSPACE"; say continue x
else
  pwd -P >"$HOME/where"; say done x
fi
"#;

#[test]
fn no_turn_runs_behind_a_link_that_took_the_place_of_its_workspace() {
    for strategy in ["dir", "worktree"] {
        let home = Home::new();
        let here = repository(&home);
        let outside = home.scratch().join("outside");
        fs::create_dir(&outside).expect("the scratch directory is ours");
        put(&outside.join("private"), "a user's");
        let settings = format!("workspace: {{strategy: {strategy}}}");
        let id = start(&home, &file(&home, "loop", SWAPPED, &settings), &["--name", "w"]);
        let run = becomes(&home, &id, "blocked", "workspace_lost");
        assert!(str_of(&run, "reason").contains("symlink"), "{run:#}");
        let failed = of_kind(&home, &id, "SnapshotFailed");
        assert_eq!(failed.len(), 1, "{failed:?}");
        let workspace = PathBuf::from(str_of(&run, "workspace"));
        assert!(!home.scratch().join("where").exists(), "{strategy}");
        assert_eq!(fs::read_dir(&outside).map_or(0, Iterator::count), 1, "{strategy}");
        let name = format!("refs/outlast/runs/{id}/snap");
        if strategy == "worktree" {
            let kept = git(&here, &["ls-tree", "-r", "--name-only", &name]);
            assert!(!kept.contains("private"), "{kept}");
        }
        fs::remove_file(&workspace).expect("the link");
        fs::rename(home.scratch().join("moved"), &workspace).expect("it is ours");
        home.ok(&["resume", &id]);
        becomes(&home, &id, "completed", "done");
        let seen = left(&home, "where");
        assert_eq!(seen.last().map(Path::new), Some(workspace.as_path()));
        assert!(workspace.join("keep").exists());
    }
}

#[test]
fn gc_removes_nothing_in_a_place_that_its_root_became_a_link_to() {
    let home = Home::new();
    let settings = "workspace: {root: ./runs, retain: {completed: 0}}";
    let id = start(&home, &file(&home, "loop", HERE, settings), &["--name", "w"]);
    becomes(&home, &id, "completed", "done");
    let (runs, outside) = (home.scratch().join("runs"), home.scratch().join("outside"));
    fs::create_dir_all(outside.join("w")).expect("the scratch directory is ours");
    put(&outside.join("w/work"), "a user's");
    fs::rename(&runs, home.scratch().join("moved")).expect("it is ours");
    symlink(&outside, &runs).expect("a link");
    let swept: Value =
        serde_json::from_str(&home.ok(&["gc", "--older-than", "0s", "--json"])).expect("JSON");
    assert!(swept.to_string().contains("was prepared at"), "{swept:#}");
    refused(&home, &["rm", &id, "--json"]);
    assert!(outside.join("w/work").exists());
    fs::remove_file(&runs).expect("the link");
    fs::rename(home.scratch().join("moved"), &runs).expect("it is ours");
    home.ok(&["rm", &id]);
    assert!(!runs.join("w").exists());
}
