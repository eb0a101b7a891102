//! Going back to a turn, starting again from one, and handing the work over, through the program.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::harness::{Home, str_of};
use crate::hosted::{
    becomes, file, git, of_kind, post, put, refused, repository, start, until_waiting,
};

/// Six turns; each leaves an untracked file and a line, and commits every second time.
const SIX_TURNS: &str = r#"
echo "line $OUTLAST_TURN" >>log; echo x >"t$OUTLAST_TURN"
[ -e .git ] && [ $((OUTLAST_TURN % 2)) = 0 ] && {
  git add log; git -c user.name=a -c user.email=a@localhost commit -qm "turn $OUTLAST_TURN"; }
if [ "$OUTLAST_TURN" = 6 ]; then say done x; else say continue x; fi
"#;

fn json_of(home: &Home, args: &[&str]) -> Value {
    let words: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&home.ok(&words)).expect("JSON")
}

/// The files below a directory, with their bytes, without `.git`.
fn files(dir: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(at) = left.pop() {
        for entry in fs::read_dir(&at).expect("it is there") {
            let path = entry.expect("it is there").path();
            if path.file_name().is_some_and(|name| name == ".git") {
                continue;
            }
            if path.is_dir() {
                left.push(path);
            } else {
                let name = path.strip_prefix(dir).expect("below").display().to_string();
                found.push((name, fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

fn names(dir: &Path) -> Vec<String> {
    files(dir).into_iter().map(|(name, _)| name).collect()
}

fn ended(home: &Home, settings: &str, flags: &[&str]) -> (String, PathBuf) {
    let id = start(home, &file(home, "loop", SIX_TURNS, settings), flags);
    let run = becomes(home, &id, "completed", "done");
    (id, PathBuf::from(str_of(&run, "workspace")))
}

#[test]
fn a_restore_under_a_later_run_of_the_same_name_is_refused() {
    let home = Home::new();
    repository(&home);
    let (id, dir) = ended(&home, WORKTREE, &["--name", "w"]);
    let waits = "echo later >later
respond '{\"status\":\"continue\",\"summary\":\"x\",\"wait\":{\"message\":true}}'";
    let waits = file(&home, "later", waits, WORKTREE);
    let later = start(&home, &waits, &["--name", "w"]);
    until_waiting(&home, &later, "message");
    let said = refused(&home, &["restore", &id, "--at", "0", "--json"]);
    assert_eq!(str_of(&said, "code"), "run_is_live");
    assert!(names(&dir).contains(&"later".to_owned()), "its files are as it left them");
    home.ok(&["stop", &later]);
    home.ok(&["restore", &id, "--at", "0"]);
}

const WORKTREE: &str = "workspace: {strategy: worktree}";

#[test]
fn the_workspace_of_a_run_that_has_ended_goes_back_to_a_turn_and_forth_again() {
    let home = Home::new();
    let here = repository(&home);
    let (id, dir) = ended(&home, WORKTREE, &["--name", "w"]);
    put(&dir.join("by hand"), "x\n");
    let back = json_of(&home, &["restore", "w", "--at", "3"]);
    assert_eq!(names(&dir), ["README", "log", "t1", "t2", "t3"]);
    assert_eq!(files(&dir)[1].1, "line 1\nline 2\nline 3\n");
    assert_eq!(git(&dir, &["log", "--format=%s"]), "turn 2\nfirst", "HEAD went back too");
    let listed = git(&here, &["ls-tree", "-r", "--name-only", str_of(&back, "wreck")]);
    assert!(listed.contains("by hand") && listed.contains("t6"), "it is kept: {listed}");
    assert_eq!(home.show(&id)["state"], "completed");
    home.ok(&["restore", "w", "--at", "6"]);
    assert_eq!(names(&dir).len(), 8);
    let nothing = home.ok(&["restore", "w", "--at", "0"]);
    assert!(nothing.contains("to before the first turn"), "{nothing}");
    assert_eq!(names(&dir), ["README"]);
    let missing = refused(&home, &["restore", "w", "--at", "9", "--json"]);
    assert_eq!(str_of(&missing, "code"), "no_snapshot");
    assert!(str_of(&missing, "hint").contains("0, 1, 2, 3, 4, 5, 6"), "{missing}");
}

#[test]
fn an_order_to_go_back_that_comes_again_is_the_same_order() {
    let home = Home::new();
    repository(&home);
    let (id, dir) = ended(&home, WORKTREE, &[]);
    let path = format!("/v1/runs/{id}/restore");
    let order = json!({"id": "one", "turn": 2});
    let (status, first) = post(&home, &path, &order);
    assert_eq!(status, 200, "{first}");
    put(&dir.join("later"), "x\n");
    let (_, again) = post(&home, &path, &order);
    assert_eq!(first, again);
    assert!(dir.join("later").exists(), "it was not carried out a second time");
    assert_eq!(of_kind(&home, &id, "WorkspaceRestored").len(), 1);
    let (status, other) = post(&home, &path, &json!({"id": "one", "turn": 3}));
    assert_eq!((status, str_of(&other["error"], "code")), (409, "id_conflict"), "{other}");
}

#[test]
fn a_run_that_rests_goes_on_from_the_older_files_and_is_told() {
    let home = Home::new();
    repository(&home);
    let agent = r#"
echo "$OUTLAST_TURN" >>log; echo x >"t$OUTLAST_TURN"
case $OUTLAST_TURN in 1|2) say continue x;; 3) wait_for '{"message":true}';; *) ls >"$HOME/seen"; say done x;; esac
"#;
    let agent = agent.replace(
        "wait_for '{\"message\":true}'",
        r#"printf '{"status":"continue","summary":"x","wait":{"message":true}}' >"$OUTLAST_RESPONSE_FILE""#,
    );
    let id = start(&home, &file(&home, "loop", &agent, WORKTREE), &[]);
    until_waiting(&home, &id, "message");
    home.ok(&["restore", &id, "--at", "1"]);
    home.ok(&["send", &id, "go on"]);
    let run = becomes(&home, &id, "completed", "done");
    let seen = fs::read_to_string(home.scratch().join("seen")).expect("it was left");
    assert_eq!(seen.lines().collect::<Vec<_>>(), ["README", "log", "t1", "t4"]);
    assert_eq!(run["turns_committed"], 4, "no turn is taken back");
    let note = crate::hosted::request(&home, &id, 4, 1)["note"]["text"].to_string();
    assert!(note.contains("put back to the end of turn 1"), "{note}");
}

#[test]
fn going_back_is_refused_in_place_and_at_work() {
    let home = Home::new();
    repository(&home);
    let id = start(&home, &file(&home, "place", SIX_TURNS, ""), &[]);
    becomes(&home, &id, "completed", "done");
    let inplace = refused(&home, &["restore", &id, "--at", "1", "--json"]);
    assert_eq!(str_of(&inplace, "code"), "not_restorable");
    let agent = "echo x >x; [ $OUTLAST_TURN = 1 ] && say continue x || exec sleep 1000";
    let id = start(&home, &file(&home, "busy", agent, WORKTREE), &[]);
    crate::harness::until("turn 2 runs", || (home.show(&id)["turn"] == 2).then_some(()));
    let busy = refused(&home, &["restore", &id, "--at", "1", "--json"]);
    assert_eq!(str_of(&busy, "code"), "run_is_live", "{busy}");
    home.ok(&["stop", "--now", &id]);
}

/// Everything below the directory of a run.
fn kept(home: &Home, id: &str) -> Vec<(String, String)> {
    files(&home.path().join("state/runs").join(id))
}

#[test]
fn a_fork_has_what_the_turn_left_and_its_parent_is_as_it_was() {
    let home = Home::new();
    let here = repository(&home);
    let (id, dir) = ended(&home, WORKTREE, &["--name", "parent"]);
    let before = (kept(&home, &id), files(&dir), home.events(&id), git(&here, &["show-ref"]));
    let agent = r#"seen="$HOME/seen.$OUTLAST_RUN_ID"
[ -e "$seen" ] || { ls; git log --format=%s; } >"$seen""#;
    put(
        &home.scratch().join("loop.sh"),
        &format!("{}\n{agent}\n{}", crate::hosted::WORDS, SIX_TURNS),
    );
    let fork = home.ok(&["fork", "parent", "--at", "3", "--name", "child"]);
    let run = becomes(&home, &fork, "completed", "done");
    let seen = fs::read_to_string(home.scratch().join(format!("seen.{fork}"))).expect("it is left");
    assert_eq!(
        seen.lines().take(7).collect::<Vec<_>>(),
        ["README", "log", "t1", "t2", "t3", "turn 2", "first"],
        "turn 4 begins with what turn 3 left"
    );
    assert_eq!((&run["forked_from"]["run"], &run["forked_from"]["turn"]), (&json!(id), &json!(3)));
    let own = PathBuf::from(str_of(&run, "workspace"));
    assert_ne!(own, dir);
    assert_eq!(files(&own), files(&dir), "both came to the same");
    let after = (kept(&home, &id), files(&dir), home.events(&id));
    assert_eq!((&before.0, &before.1, &before.2), (&after.0, &after.1, &after.2));
    let refs = git(&here, &["show-ref"]);
    assert!(before.3.lines().all(|line| refs.contains(line)), "{refs}");
    // The journal has the first three turns with their times, and the fork's own ones.
    let (theirs, ours) = (home.events(&id), home.events(&fork));
    let committed = |events: &[Value]| {
        let all = events.iter().filter(|event| event["kind"] == "TurnCommitted");
        all.map(|it| (it["turn"].as_u64(), str_of(it, "at").to_owned())).collect::<Vec<_>>()
    };
    assert_eq!(committed(&ours)[..3], committed(&theirs)[..3]);
    assert_eq!(committed(&ours).len(), 6);
    let note = crate::hosted::request(&home, &fork, 4, 1)["note"]["text"].to_string();
    assert!(note.contains("forked from run"), "{note}");
    assert!(home.ok(&["show", "child"]).contains(&format!("from {id} at turn 3")));
    assert_eq!(json_of(&home, &["diff", "child", "2"])["files"].as_array().map(Vec::len), Some(2));
    let doctor = json_of(&home, &["doctor"]);
    assert!(!doctor.to_string().contains("does not replay"), "{doctor:#}");
    let compared = json_of(&home, &["compare", "parent", "child"]);
    assert_eq!(compared[0]["changes"], compared[1]["changes"], "{compared:#}");
    assert!(home.ok(&["compare", "parent", "child"]).contains("forked from"));
    // The fork stands on its own.
    home.ok(&["rm", "--keep-workspace", "parent"]);
    git(&here, &["gc", "--quiet", "--prune=now"]);
    assert_eq!(json_of(&home, &["diff", "child", "2"])["files"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_directory_and_a_run_in_place_are_forked_too() {
    let home = Home::new();
    let (id, _) = ended(&home, "workspace: {strategy: dir}", &[]);
    let fork = home.ok(&["fork", &id, "--at", "2", "--set", "max-turns=1"]);
    let run = becomes(&home, &fork, "exhausted", "max_turns");
    let dir = PathBuf::from(str_of(&run, "workspace"));
    assert_eq!(names(&dir), ["log", "t1", "t2", "t3"], "one turn of its own");
    home.ok(&["rm", &id]);
    assert_eq!(json_of(&home, &["diff", &fork, "1"])["files"].as_array().map(Vec::len), Some(2));
    let here = repository(&home);
    let id = start(&home, &file(&home, "place", SIX_TURNS, ""), &[]);
    becomes(&home, &id, "completed", "done");
    let before = files(&here);
    let fork = home.ok(&["fork", &id, "--at", "1", "--task", "another"]);
    let run = becomes(&home, &fork, "completed", "done");
    assert_eq!((str_of(&run, "strategy"), str_of(&run, "task")), ("worktree", "another"));
    assert_eq!(files(&here), before, "the checkout of the person is not touched");
    assert_eq!(files(Path::new(str_of(&run, "workspace"))), before);
}

#[test]
fn a_fork_that_is_asked_for_again_is_the_same_run_and_open_work_is_refused() {
    let home = Home::new();
    repository(&home);
    let (id, _) = ended(&home, WORKTREE, &[]);
    let path = format!("/v1/runs/{id}/fork");
    let other: String = id.chars().rev().collect();
    let path_of = std::env::var("PATH").expect("there is one");
    let fork = json!({"id": other, "turn": 5, "env": [{"name": "PATH", "value": path_of}]});
    let (status, made) = post(&home, &path, &fork);
    assert_eq!(status, 201, "{made}");
    let (status, again) = post(&home, &path, &fork);
    assert_eq!((status, &again["id"]), (200, &made["id"]), "{again}");
    let missing = refused(&home, &["fork", &id, "--at", "9", "--json"]);
    assert_eq!(str_of(&missing, "code"), "no_snapshot");
}

#[test]
fn refs_without_a_run_and_runs_without_their_snapshots_are_found() {
    let home = Home::new();
    let here = repository(&home);
    let (id, _) = ended(&home, WORKTREE, &[]);
    assert!(!home.ok(&["doctor"]).contains("refs/outlast"));
    let other: String = id.chars().rev().collect();
    let orphan = format!("refs/outlast/runs/{other}/snap");
    git(&here, &["update-ref", &orphan, "HEAD"]);
    let doctor = String::from_utf8_lossy(&home.output(&["doctor"]).stdout).into_owned();
    assert!(doctor.contains(&orphan), "{doctor}");
    let swept = json_of(&home, &["gc", "--dry-run"]);
    let skipped = swept["skipped"].as_array().expect("a list");
    assert!(skipped.iter().any(|it| it["run"] == other.as_str()), "{swept:#}");
    git(&here, &["update-ref", "-d", &orphan]);
    git(&here, &["update-ref", "-d", &format!("refs/outlast/runs/{id}/snap")]);
    let doctor = String::from_utf8_lossy(&home.output(&["doctor"]).stdout).into_owned();
    assert!(doctor.contains(&format!("the snapshots of run {id} are gone")), "{doctor}");
}

/// A run on a branch of its own that has committed `log`.
const ONE_COMMIT: &str = r#"
echo done >>log; git add log
git -c user.name=a -c user.email=a@localhost commit -qm work; [ -z "$REST" ] || echo rest >rest
say done 'The log is there'
"#;

#[test]
fn what_a_run_has_committed_is_merged_without_a_checkout() {
    let home = Home::new();
    let here = repository(&home);
    git(&here, &["branch", "develop"]);
    let id = start(&home, &file(&home, "loop", ONE_COMMIT, WORKTREE), &["--name", "w"]);
    becomes(&home, &id, "completed", "done");
    let status = git(&here, &["status", "--porcelain"]);
    let typed = json_of(&home, &["merge", "w"]);
    assert_eq!((str_of(&typed, "outcome"), str_of(&typed, "into")), ("checked_out", "main"));
    let command = str_of(&typed, "command").to_owned();
    assert!(command.ends_with(" merge outlast/w"), "{command}");
    let dry = json_of(&home, &["merge", "w", "--into", "develop", "--dry-run"]);
    assert_eq!(str_of(&dry, "outcome"), "would_merge");
    assert_eq!(git(&here, &["rev-parse", "develop"]), git(&here, &["rev-parse", "main"]));
    let moved = json_of(&home, &["merge", "w", "--into", "develop"]);
    assert_eq!(str_of(&moved, "outcome"), "fast_forward");
    assert_eq!(git(&here, &["show", "develop:log"]), "done");
    let again = json_of(&home, &["merge", "w", "--into", "develop"]);
    assert_eq!(str_of(&again, "outcome"), "already_merged");
    // A branch that has moved on gets a merge of both.
    git(&here, &["branch", "other"]);
    git(&here, &["commit", "-q", "--allow-empty", "-m", "on main"]);
    git(&here, &["branch", "-f", "other", "main"]);
    let merged = json_of(&home, &["merge", "w", "--into", "other"]);
    assert_eq!(str_of(&merged, "outcome"), "merged");
    assert_eq!(git(&here, &["log", "-1", "--format=%P", "other"]).split(' ').count(), 2);
    assert_eq!(git(&here, &["status", "--porcelain"]), status, "the checkout is not touched");
    let pr = json_of(&home, &["pr", "w"]);
    assert_eq!((str_of(&pr, "title"), str_of(&pr, "base")), ("The log is there", "main"));
    let none = home.output(&["pr", "w"]);
    assert!(String::from_utf8_lossy(&none.stderr).contains("remote"), "there is none");
}

#[test]
fn conflicts_are_listed_and_work_that_is_not_committed_is_said() {
    let home = Home::new();
    let here = repository(&home);
    let id = start(&home, &file(&home, "loop", &format!("REST=1\n{ONE_COMMIT}"), WORKTREE), &[]);
    becomes(&home, &id, "completed", "done");
    git(&here, &["checkout", "-q", "-b", "develop"]);
    put(&here.join("log"), "mine\n");
    git(&here, &["add", "log"]);
    git(&here, &["commit", "-q", "-m", "mine"]);
    git(&here, &["checkout", "-q", "main"]);
    let at = git(&here, &["rev-parse", "develop"]);
    let rest = refused(&home, &["merge", &id, "--into", "develop", "--json"]);
    assert_eq!(str_of(&rest, "code"), "uncommitted");
    assert!(str_of(&rest, "message").contains("rest"), "{rest}");
    let args = ["merge", &id, "--into", "develop", "--with-uncommitted", "--json"];
    let output = home.output(&args);
    assert_eq!(output.status.code(), Some(1));
    let said: Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert_eq!(str_of(&said["error"], "code"), "merge_conflict");
    assert!(str_of(&said["error"], "message").contains("log"), "{said}");
    assert_eq!(git(&here, &["rev-parse", "develop"]), at, "nothing was moved");
    git(&here, &["branch", "free", "main"]);
    home.ok(&["merge", &id, "--into", "free", "--with-uncommitted"]);
    assert_eq!(git(&here, &["show", "free:rest"]), "rest");
    let inplace = start(&home, &file(&home, "place", SIX_TURNS, ""), &[]);
    becomes(&home, &inplace, "completed", "done");
    let none = refused(&home, &["merge", &inplace, "--json"]);
    assert_eq!(str_of(&none, "code"), "not_mergeable");
    home.ok(&["rm", "--keep-workspace", &id]);
    assert!(!git(&here, &["for-each-ref", "refs/outlast"]).contains(&id));
}

/// Every point that a fork and a merge pass when no process dies.
pub(crate) fn points() -> BTreeSet<String> {
    let home = Home::new();
    let log = home.scratch().join("passed");
    let home = home.env("OUTLAST_CRASH_LOG", &log);
    let here = repository(&home);
    git(&here, &["branch", "develop"]);
    let id = start(&home, &file(&home, "loop", ONE_COMMIT, WORKTREE), &[]);
    becomes(&home, &id, "completed", "done");
    home.ok(&["merge", &id, "--into", "develop"]);
    let fork = home.ok(&["fork", &id, "--at", "0"]);
    becomes(&home, &fork, "completed", "done");
    fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The same home with a daemon that dies once at this point.
fn deadly(home: Home, hook: &str) -> (Home, PathBuf) {
    home.ok(&["daemon", "stop"]);
    let token = home.scratch().join("token");
    put(&token, "");
    let home = home.env("OUTLAST_CRASH_TOKEN", &token).env("OUTLAST_CRASH_AT", hook);
    (home, token)
}

#[test]
fn a_daemon_that_dies_while_it_forks_leaves_one_fork() {
    let hooks = ["daemon.create-files", "daemon.fork-pinned", "daemon.before-append"];
    for hook in hooks.into_iter().chain(["daemon.after-append", "daemon.run-created"]) {
        let home = Home::new();
        let here = repository(&home);
        let (_, dir) = ended(&home, WORKTREE, &["--name", "w"]);
        let (home, token) = deadly(home, hook);
        let fork = home.ok(&["fork", "w", "--at", "3"]);
        let run = becomes(&home, &fork, "completed", "done");
        assert!(!token.exists(), "it died at {hook}");
        assert_eq!(files(Path::new(str_of(&run, "workspace"))), files(&dir), "{hook}");
        let refs = git(&here, &["for-each-ref", "--format=%(refname)", "refs/outlast"]);
        assert_eq!(refs.lines().count(), 2, "{hook}: {refs}");
    }
}

#[test]
fn a_daemon_that_dies_while_it_puts_files_back_does_it_once() {
    for hook in
        ["daemon.before-append", "daemon.after-append", "daemon.shim-spawned", "daemon.ending-seen"]
    {
        let home = Home::new();
        repository(&home);
        let (id, dir) = ended(&home, WORKTREE, &["--name", "w"]);
        let (home, token) = deadly(home, hook);
        home.ok(&["restore", "w", "--at", "2"]);
        assert!(!token.exists(), "it died at {hook}");
        assert_eq!(names(&dir), ["README", "log", "t1", "t2"], "{hook}");
        assert_eq!(of_kind(&home, &id, "RestoreRequested").len(), 1, "{hook}");
        assert_eq!(of_kind(&home, &id, "WorkspaceRestored").len(), 1, "{hook}");
    }
}

#[test]
fn a_daemon_that_dies_around_the_swap_has_merged_once() {
    for hook in ["daemon.merge-made", "daemon.merge-moved"] {
        let home = Home::new();
        let here = repository(&home);
        git(&here, &["branch", "develop"]);
        let id = start(&home, &file(&home, "loop", ONE_COMMIT, WORKTREE), &[]);
        becomes(&home, &id, "completed", "done");
        let before = home.events(&id);
        let (home, token) = deadly(home, hook);
        home.ok(&["merge", &id, "--into", "develop"]);
        assert!(!token.exists(), "it died at {hook}");
        assert_eq!(git(&here, &["show", "develop:log"]), "done", "{hook}");
        assert_eq!(home.events(&id), before, "{hook}");
    }
}

#[test]
fn a_pull_request_is_pushed_to_the_remote_of_before_the_first_turn_and_runs_nothing_of_the_repository()
 {
    let home = Home::new();
    let here = repository(&home);
    let [remote, elsewhere] = ["remote.git", "elsewhere.git"].map(|name| home.scratch().join(name));
    for bare in [&remote, &elsewhere] {
        git(&here, &["init", "-q", "--bare", &bare.display().to_string()]);
    }
    git(&here, &["remote", "add", "origin", &remote.display().to_string()]);
    // The agent leads the remote elsewhere, and plants a hook.
    let agent = format!(
        r#"common=$(git rev-parse --git-common-dir)
git remote set-url origin '{}'; git config remote.origin.pushurl '{0}'
printf '#!/bin/sh\ntouch "$HOME/hooked"\n' >"$common/hooks/pre-push"; chmod +x "$common/hooks/pre-push"
{ONE_COMMIT}"#,
        elsewhere.display()
    );
    let id = start(&home, &file(&home, "loop", &agent, WORKTREE), &["--name", "w"]);
    becomes(&home, &id, "completed", "done");
    let printed = home.ok(&["pr", "w"]);
    assert!(printed.contains(&remote.display().to_string()), "{printed}");
    assert_eq!(git(&remote, &["for-each-ref"]), "", "it was only printed");
    for _ in 0..2 {
        let pushed = home.ok(&["pr", "w", "--push"]);
        assert!(pushed.contains("pr create") || pushed.contains("mr create"), "{pushed}");
        let refs = git(&remote, &["for-each-ref", "--format=%(refname)"]);
        assert_eq!(refs, "refs/heads/outlast/w", "the branch, and no snapshot");
        assert_eq!(git(&remote, &["show", "outlast/w:log"]), "done");
    }
    assert_eq!(git(&elsewhere, &["for-each-ref"]), "");
    assert!(!home.scratch().join("hooked").exists(), "a hook of the repository ran");
    fs::remove_dir_all(&remote).expect("it is ours");
    let gone = home.output(&["pr", "w", "--push"]);
    assert!(!gone.status.success(), "{gone:?}");
}

/// A turn that touches a file, and no byte of it.
const TOUCHES: &str = "touch README; touch -d @$((OUTLAST_TURN * 1000)) README; say continue x";

#[test]
fn a_turn_that_changes_no_byte_is_no_progress_where_there_are_snapshots() {
    let home = Home::new();
    repository(&home);
    let settings = format!("{WORKTREE}\nlimits: {{no_progress_turns: 2}}");
    let id = start(&home, &file(&home, "still", TOUCHES, &settings), &[]);
    let run = becomes(&home, &id, "blocked", "no_progress");
    assert_eq!(run["turns_committed"], 2);
    // As many other bytes are another tree.
    let swaps = "printf '%s' $((OUTLAST_TURN % 2)) >a; [ $OUTLAST_TURN -lt 5 ] && say continue x || say done x";
    let id = start(&home, &file(&home, "swaps", swaps, &settings), &[]);
    becomes(&home, &id, "completed", "done");
}
