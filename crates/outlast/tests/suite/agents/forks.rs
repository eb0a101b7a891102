//! The conversation of a fork, and of a run that went back: a copy that ends with the turn that the files are as, or a new one.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ALLOW, Scripted};
use crate::harness::{Home, str_of};
use crate::loops::rests;

/// Keeps its conversation as Claude Code does, and leaves beside itself what it knew.
const TURN: &str = "
import re
kept = os.path.join(os.environ['HOME'], '.claude', 'projects', re.sub('[^a-zA-Z0-9]', '-', os.getcwd()))
os.makedirs(kept, exist_ok=True)
path = lambda name: os.path.join(kept, name + '.jsonl')
known = open(path(resumed)).read() if resumed else ''
open(os.path.join(here, 'known.%d' % n), 'w').write(known)
if resumed and resumed != session:
    open(path(session), 'w').write(known)
open(path(session), 'a').write('process %d\\n' % n)
open('f%d' % n, 'w').close()
result('word of process %d' % n)";

/// Has no such conversation.
const REFUSES: &str = "result('No conversation found with session ID', is_error=True)";

const FOUR: &str = "workspace: {strategy: dir}
checks: {done: [\"test $(ls f* | wc -l) -ge 4\"]}
limits: {no_progress_turns: 9}";

fn known(agent: &Scripted<'_>, process: u32) -> Vec<String> {
    let text = fs::read_to_string(agent.dir.join(format!("known.{process}"))).expect("it ran");
    text.lines().map(str::to_owned).collect()
}

fn prompt(agent: &Scripted<'_>, process: usize) -> String {
    str_of(&agent.processes()[process - 1], "prompt").to_owned()
}

/// The conversations that the agent keeps for the directory of a run.
fn conversations(home: &Home, run: &Value) -> Vec<PathBuf> {
    let name: String = str_of(run, "workspace")
        .chars()
        .map(|it| if it.is_ascii_alphanumeric() { it } else { '-' })
        .collect();
    let dir = home.scratch().join(".claude/projects").join(name);
    let mut found: Vec<PathBuf> =
        fs::read_dir(dir).expect("it is there").map(|it| it.expect("it is there").path()).collect();
    found.sort();
    found
}

fn ends_with(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|it| it == name)
}

#[test]
fn a_fork_knows_the_turns_up_to_its_own_and_the_parents_conversation_stays_as_it_is() {
    let home = Home::new();
    let agent = Scripted::new(&home, &[TURN]);
    let id = agent.start(&format!("{ALLOW}\n{FOUR}"));
    let parent = rests(&home, &id, "completed", "done");
    let own = conversations(&home, &parent);
    let before = fs::read(&own[0]).expect("it is there");
    let fork = home.ok(&["fork", &id, "--at", "2"]);
    let run = rests(&home, &fork, "completed", "done");
    assert_eq!(known(&agent, 5), ["process 1", "process 2"]);
    assert_eq!(known(&agent, 6), ["process 1", "process 2", "process 5"], "it is gone on with");
    let first = prompt(&agent, 5);
    assert!(first.contains("was forked from run"), "{first}");
    assert!(!first.contains("A new conversation"), "{first}");
    assert_eq!(fs::read(&own[0]).expect("it is there"), before);
    assert_eq!(conversations(&home, &parent), own);
    let copies = conversations(&home, &run);
    assert!(copies.len() == 1 && ends_with(&copies[0], "session-5.jsonl"), "{copies:?}");
    assert_eq!(str_of(&run["forked_from"], "session"), "forked");
    let page = home.ok(&["show", &fork]);
    let line = page.lines().find(|line| line.starts_with("session")).expect("it is said");
    assert!(line.ends_with("forked at turn 2"), "{page}");
    // A fork of the fork, at a turn that it has of its parent and at one of its own.
    for (at, knows) in
        [("1", vec!["process 1"]), ("3", vec!["process 1", "process 2", "process 5"])]
    {
        let process = u32::try_from(agent.processes().len()).expect("few") + 1;
        let other = home.ok(&["fork", &fork, "--at", at]);
        rests(&home, &other, "completed", "done");
        assert_eq!(known(&agent, process), knows, "at turn {at}");
    }
}

#[test]
fn a_fork_whose_conversation_cannot_be_copied_begins_a_new_one_with_the_note_and_says_why() {
    let home = Home::new();
    let agent = Scripted::new(&home, &[TURN, TURN, TURN, TURN, REFUSES, TURN]);
    let id = agent.start(&format!("{ALLOW}\n{FOUR}"));
    let parent = rests(&home, &id, "completed", "done");
    let fresh = |why: &str, process: usize| {
        let fork = home.ok(&["fork", &id, "--at", "3"]);
        let run = rests(&home, &fork, "completed", "done");
        assert_eq!(str_of(&run["forked_from"], "session"), "fresh");
        assert!(str_of(&run["forked_from"], "why_fresh").contains(why), "{run:#}");
        let page = home.ok(&["show", &fork]);
        let line = page.lines().find(|line| line.starts_with("session")).expect("it is said");
        assert!(line.contains(&format!("fresh ({why}")), "{page}");
        let prompt = prompt(&agent, process);
        for part in ["## A new conversation", "word of process 3", "was forked from run"] {
            assert!(prompt.contains(part), "{part} is missing in {prompt}");
        }
        let events = home.attempt_dir(&fork, 4, 1).join("agent.jsonl");
        let events = fs::read_to_string(events).expect("it was driven");
        assert!(events.contains("new_conversation"), "{events}");
    };
    fresh("No conversation found", 6);
    assert_eq!(known(&agent, 6), [""; 0]);
    fs::remove_file(&conversations(&home, &parent)[0]).expect("it is there");
    fresh("the agent's file of the conversation is gone", 7);
    let other = home.ok(&["fork", &id, "--at", "3", "--agent", "codex", "--set", "max-turns=1"]);
    let why = home.show(&other)["forked_from"]["why_fresh"].clone();
    assert_eq!(why, "another agent goes on");
    home.ok(&["stop", "--now", &other]);
}

#[test]
fn a_conversation_goes_back_with_the_workspace() {
    let home = Home::new();
    let agent = Scripted::new(&home, &[TURN]);
    let settings = "workspace: {strategy: dir}
checks: {done: ['test -e \"$HOME/ok\"']}
limits: {no_progress_turns: 3}";
    let id = agent.start(&format!("{ALLOW}\n{settings}"));
    rests(&home, &id, "blocked", "done_check_failed");
    home.ok(&["restore", &id, "--at", "1"]);
    fs::write(home.scratch().join("ok"), "").expect("the scratch directory is ours");
    home.ok(&["resume", &id]);
    rests(&home, &id, "completed", "done");
    assert_eq!(known(&agent, 4), ["process 1"], "what was undone is not in it");
    let prompt = prompt(&agent, 4);
    assert!(prompt.contains("put back to the end of turn 1"), "{prompt}");
    assert!(!prompt.contains("A new conversation"), "{prompt}");
}
