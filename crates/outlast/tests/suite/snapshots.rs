//! Snapshots through the program: what is made when, what `diff` says, and what an interruption leaves.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Home, str_of};
use crate::hosted::{
    becomes, file, git, of_kind, put, refused, repository, start, until_left, work,
};

const THREE_TURNS: &str = r#"
echo "line $OUTLAST_TURN" >>log; echo x >"t$OUTLAST_TURN"
[ "$OUTLAST_TURN" = 2 ] && git mv README READ.me
if [ "$OUTLAST_TURN" = 3 ]; then rm t1; say done x; else say continue x; fi
"#;

fn names(diff: &Value) -> Vec<(String, String)> {
    let files = diff["files"].as_array().expect("a list");
    let one = |file: &Value| (str_of(file, "path").to_owned(), str_of(file, "change").to_owned());
    files.iter().map(one).collect()
}

fn diff(home: &Home, args: &[&str]) -> Value {
    let words: Vec<&str> = ["diff"].iter().chain(args).chain(&["--json"]).copied().collect();
    serde_json::from_str(&home.ok(&words)).expect("JSON")
}

#[test]
fn each_turn_of_a_loop_in_a_repository_can_be_looked_at_afterwards() {
    let home = Home::new();
    let here = repository(&home);
    let before = git(&here, &["status", "--porcelain"]);
    let id = start(&home, &file(&home, "loop", THREE_TURNS, ""), &[]);
    let run = becomes(&home, &id, "completed", "done");
    let taken = of_kind(&home, &id, "SnapshotTaken");
    let told: Vec<_> = taken.iter().map(|it| (it["turn"].as_u64(), str_of(it, "cause"))).collect();
    assert_eq!(told, [(Some(0), "base"), (Some(1), "turn"), (Some(2), "turn"), (Some(3), "turn")]);
    let of = |path: &str, change: &str| (path.to_owned(), change.to_owned());
    assert_eq!(names(&diff(&home, &[&id, "1"])), [of("log", "added"), of("t1", "added")]);
    assert_eq!(
        names(&diff(&home, &[&id, "2"])),
        [of("READ.me", "renamed"), of("log", "modified"), of("t2", "added")]
    );
    let third = diff(&home, &[&id, "3"]);
    assert_eq!(
        (third["added"].as_u64(), third["deleted"].as_u64()),
        (Some(1), Some(0)),
        "{third:#}"
    );
    let all = diff(&home, &[&id]);
    assert_eq!(
        names(&all),
        [of("READ.me", "renamed"), of("log", "added"), of("t2", "added"), of("t3", "added")]
    );
    assert_eq!(run["snapshots"]["turn"], 3);
    // Three turns changed `log`, which is one file.
    let (added, deleted) = (&all["added"], &all["deleted"]);
    let changes = format!("4 files, +{added} -{deleted} by turn 3: outlast diff {id}");
    let shown = home.ok(&["show", &id]);
    assert!(shown.contains(&changes), "{changes} in {shown}");
    put(&here.join("by hand"), "x\n");
    assert_eq!(names(&diff(&home, &[&id, "now"])), [of("by hand", "added")]);
    assert_eq!(home.ok(&["diff", &id, "1..2", "--name-only", "--", "log"]), "log");
    assert!(home.ok(&["diff", &id, "1"]).contains("+line 1"));
    let missing = refused(&home, &["diff", &id, "9", "--json"]);
    assert_eq!(str_of(&missing, "code"), "no_snapshot");
    // The user's own sees one ref more, and nothing else.
    assert_eq!(before, "");
    let name = format!("refs/outlast/runs/{id}/snap");
    assert_eq!(git(&here, &["rev-parse", &name]), str_of(&taken[3], "commit"));
    git(&here, &["gc", "--quiet", "--prune=now"]);
    assert_eq!(names(&diff(&home, &[&id])).len(), 4);
    home.ok(&["rm", &id]);
    assert_eq!(git(&here, &["for-each-ref", "refs/outlast"]), "");
}

#[test]
fn a_plain_directory_has_snapshots_only_when_they_are_asked_for() {
    let home = Home::new();
    for (settings, count) in
        [("", 0), ("workspace: {snapshot: on}", 4), ("workspace: {snapshot: off}", 0)]
    {
        let agent = THREE_TURNS.replace("git mv README READ.me", "true");
        let id = start(&home, &file(&home, "loop", &agent, settings), &[]);
        becomes(&home, &id, "completed", "done");
        assert_eq!(of_kind(&home, &id, "SnapshotTaken").len(), count, "{settings}");
        assert!(of_kind(&home, &id, "SnapshotFailed").is_empty());
    }
    assert!(!work(&home).join(".git").exists());
}

#[test]
fn a_snapshot_that_cannot_be_made_is_an_event_and_the_turns_stand() {
    let home = Home::new();
    let agent = "rm -rf \"$HOME\"/work/.git; say done x";
    repository(&home);
    let id = start(&home, &file(&home, "loop", agent, ""), &[]);
    becomes(&home, &id, "completed", "done");
    let failed = of_kind(&home, &id, "SnapshotFailed");
    assert_eq!((failed.len(), str_of(&failed[0], "cause")), (1, "turn"), "{failed:?}");
    assert_eq!(of_kind(&home, &id, "TurnCommitted").len(), 1);
}

const WRECKED: &str = r#"
echo "$OUTLAST_TURN.$OUTLAST_ATTEMPT" >>log
if [ "$OUTLAST_TURN.$OUTLAST_ATTEMPT" = 2.1 ]; then
  rm README; echo wreck >wreck; echo kept >cache; git add -A; git -c user.name=a -c user.email=a@localhost commit -qm wreck
  touch "$(git rev-parse --git-dir)/index.lock"
  echo here >"$HOME/reached"; exec sleep 1000
fi
if [ "$OUTLAST_TURN.$OUTLAST_ATTEMPT" = 2.2 ]; then ls >"$HOME/seen"; git log --format=%s >>"$HOME/seen"; git add log; fi
if [ "$OUTLAST_TURN" = 3 ]; then say done x; else say continue x; fi
"#;

#[test]
fn after_an_interruption_the_next_attempt_finds_what_the_last_turn_left() {
    let home = Home::new();
    let here = repository(&home);
    put(&here.join(".gitignore"), "cache\n");
    git(&here, &["add", "-A"]);
    git(&here, &["commit", "--quiet", "-m", "ignores"]);
    let settings = "workspace: {strategy: worktree}\non_interrupt: restore";
    let id = start(&home, &file(&home, "loop", WRECKED, settings), &["--name", "w"]);
    until_left(&home, "reached");
    kill_attempt(&home, &id);
    let run = becomes(&home, &id, "completed", "done");
    let workspace = Path::new(str_of(&run, "workspace"));
    let seen = fs::read_to_string(home.scratch().join("seen")).expect("it was left");
    assert_eq!(seen.lines().collect::<Vec<_>>(), ["README", "cache", "log", "ignores", "first"]);
    let log = fs::read_to_string(workspace.join("log")).expect("it is there");
    assert_eq!(log, "1.1\n2.2\n3.1\n", "what the interrupted attempt wrote is undone");
    let restored = of_kind(&home, &id, "WorkspaceRestored");
    let [restored] = &restored[..] else { panic!("{restored:?}") };
    let wreck = str_of(restored, "wreck");
    let listed = git(&here, &["ls-tree", "-r", "--name-only", wreck]);
    assert!(listed.contains("wreck") && !listed.contains("README"), "it is kept: {listed}");
    let note = crate::hosted::request(&home, &id, 2, 2)["note"]["text"].to_string();
    assert!(note.contains("put back to the end of turn 1"), "{note}");
}

/// The shim first, so that no end is seen.
fn kill_attempt(home: &Home, id: &str) {
    let run = home.show(id);
    for key in ["shim_pid", "pid"] {
        let pid = run[key].as_i64().and_then(|pid| i32::try_from(pid).ok()).expect("it is alive");
        let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
    }
}

#[test]
fn restore_is_refused_where_a_person_works_too() {
    let home = Home::new();
    for settings in [
        "on_interrupt: restore",
        "on_interrupt: restore\nworkspace: {strategy: dir, snapshot: off}",
    ] {
        let path = file(&home, "loop", "say done x", settings);
        let said = home.output(&["check", &path, "--json"]);
        let told = [said.stdout, said.stderr].concat();
        let told = String::from_utf8_lossy(&told);
        assert!(!said.status.success() && told.contains("needs_snapshots"), "{told}");
    }
}

const SWAPPED: &str = r#"
echo "$OUTLAST_TURN.$OUTLAST_ATTEMPT" >>"$HOME/tries"
if [ "$OUTLAST_TURN.$OUTLAST_ATTEMPT" = 2.1 ]; then
  cd ..; mv "$OUTLAST_WORKSPACE" "$HOME/moved"; ln -s "$HOME/outside" "$OUTLAST_WORKSPACE"
  echo here >"$HOME/reached"; exec sleep 1000
fi
echo ours >keep
if [ "$OUTLAST_TURN" = 2 ]; then say done x; else say continue x; fi
"#;

#[test]
fn nothing_is_put_back_behind_a_link_that_took_the_place_of_the_workspace() {
    for strategy in ["dir", "worktree"] {
        let home = Home::new();
        repository(&home);
        let outside = home.scratch().join("outside");
        fs::create_dir(&outside).expect("the scratch directory is ours");
        put(&outside.join("keep"), "a user's\n");
        put(&outside.join("thesis"), "a user's\n");
        let settings = format!("workspace: {{strategy: {strategy}}}\non_interrupt: restore");
        let id = start(&home, &file(&home, "loop", SWAPPED, &settings), &["--name", "w"]);
        until_left(&home, "reached");
        kill_attempt(&home, &id);
        let run = becomes(&home, &id, "blocked", "restore_failed");
        assert!(str_of(&run, "reason").contains("symlink"), "{run:#}");
        let text = |name: &str| fs::read_to_string(outside.join(name)).expect("it is there");
        assert_eq!((text("keep"), text("thesis")), ("a user's\n".into(), "a user's\n".into()));
        // A person who lets it go on without a look does not let it run there either.
        home.ok(&["resume", &id]);
        becomes(&home, &id, "blocked", "workspace_lost");
        assert_eq!(crate::hosted::left(&home, "tries"), ["1.1", "2.1"]);
        assert_eq!(fs::read_dir(&outside).map_or(0, Iterator::count), 2, "{strategy}");
    }
}

#[test]
fn a_diff_of_the_whole_run_says_which_turns_it_cannot_show() {
    let home = Home::new();
    let here = repository(&home);
    let agent = r#"
echo x >"t$OUTLAST_TURN"; [ "$OUTLAST_TURN" = 2 ] && mv .git "$HOME/moved.git"
if [ "$OUTLAST_TURN" = 3 ]; then say done x; else say continue x; fi
"#;
    let id = start(&home, &file(&home, "loop", agent, ""), &[]);
    becomes(&home, &id, "completed", "done");
    fs::rename(home.scratch().join("moved.git"), here.join(".git")).expect("it is ours");
    let all = diff(&home, &[&id]);
    assert_eq!((str_of(&all, "to"), all["unshown_until"].as_u64()), ("turn 1", Some(3)), "{all:#}");
    let said = home.output(&["diff", &id, "--stat"]);
    let told = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(told.contains("turns 2 to 3 have no snapshot"), "{told}");
    assert!(diff(&home, &[&id, "1"])["unshown_until"].is_null());
}
