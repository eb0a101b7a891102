//! A fork at turn 3 of 6, made while the parent is in its sixth turn: the copy of the conversation ends with turn 3, so do the
//! files, and nothing of the parent changes. Then both go on.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::lab::{Lab, Plan, Setup, rests};
use super::model::{Asked, Step, Tool};
use super::settle::Login;
use super::vendor::Vendor;

/// What the model says at the end of each turn.
const WORDS: [&str; 6] = ["quince", "medlar", "damson", "loquat", "feijoa", "tamarillo"];

/// The turn that is forked.
const AT: usize = 3;

/// So many looks in a row find the same.
const SAME_LOOKS: usize = 6;

/// The agents that copy a conversation.
pub(super) fn copies(vendor: Vendor) -> bool {
    matches!(vendor, Vendor::Claude | Vendor::Codex)
}

pub(super) fn run(setup: &Setup<'_>) -> Result<Lab> {
    let turn = |number: usize| {
        let write = match number {
            6 => "touch begun; until test -e go; do sleep 0.1; done; echo x >t6".to_owned(),
            _ => format!("echo x >t{number}"),
        };
        let says = Step::says(format!("The fruit is a {}.", WORDS[number - 1]));
        vec![Step::uses("I write.", Tool::Shell(write)), says]
    };
    let plan = Plan {
        name: "fork",
        login: Login::Key,
        turns: (1..=WORDS.len()).map(turn).collect(),
        approvals: "{mode: allow}",
        check: "test -e t6",
    };
    Ok(Lab::start_in(setup, plan, repository)?.live(|lab| {
        lab.until("the tool of the sixth turn runs", 120, |view| {
            (rests(view) || lab.project.join("begun").exists()).then_some(())
        })?;
        let (before, known) = (at_rest(lab)?, lab.asked().len());
        let set = ["--set", "max-turns=2", "--name", "other"];
        let asked = ["fork", lab.run.as_str(), "--at", "3"].into_iter().chain(set);
        let fork = lab.outlast.ask(&asked.collect::<Vec<_>>())?;
        let view =
            lab.until("the fork rests", 90, |_| lab.outlast.show(&fork).ok().filter(rests))?;
        lab.expect_state(&view, "exhausted", Some("max_turns"));
        copied(lab, &view, known);
        said(lab, &view)?;
        let changed = before.differs(&parent(lab)?);
        lab.expect(changed.is_empty(), format!("of the parent there changed: {changed:?}"));
        fs::write(lab.project.join("go"), "")?;
        let view = lab.rest(60)?;
        lab.expect_state(&view, "completed", None);
        Ok(())
    }))
}

/// A repository with one commit.
fn repository(dir: &Path) -> Result<()> {
    fs::write(dir.join("README"), "fruit\n")?;
    let git = |words: &[&str]| -> Result<()> {
        let name = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        let mut git = Command::new("git");
        let output = git.args(name).args(words).current_dir(dir).output().context("git")?;
        ensure!(output.status.success(), "git {words:?}: {output:?}");
        Ok(())
    };
    git(&["init", "-q", "-b", "main"])?;
    git(&["add", "README"])?;
    git(&["commit", "-qm", "first"])
}

/// What must stay as it is.
struct Parent {
    events: Vec<Value>,
    /// The workspace and the agent's own files of the conversation, with their bytes.
    files: BTreeMap<String, Vec<u8>>,
}

impl Parent {
    fn differs(&self, other: &Self) -> Vec<String> {
        let names = self.files.keys().chain(other.files.keys());
        let changed = names.filter(|name| self.files.get(*name) != other.files.get(*name));
        let journal = (self.events != other.events).then(|| "its journal".to_owned());
        changed.cloned().chain(journal).collect()
    }
}

/// The parent once its agent has written what it writes about a tool that has begun.
fn at_rest(lab: &Lab) -> Result<Parent> {
    let mut looks: Vec<Parent> = Vec::new();
    lab.until("nothing of the parent changes", 30, |_| {
        let now = parent(lab).ok()?;
        if looks.first().is_some_and(|first| !first.differs(&now).is_empty()) {
            looks.clear();
        }
        looks.push(now);
        if looks.len() < SAME_LOOKS { None } else { looks.pop() }
    })
}

fn parent(lab: &Lab) -> Result<Parent> {
    let session: Value = serde_json::from_slice(&fs::read(lab.run_dir().join("session.json"))?)?;
    let id = session["id"].as_str().context("the conversation has no name")?.to_owned();
    let mut files = BTreeMap::new();
    read(&lab.project, &|path| !path.contains("/.git/"), &mut files)?;
    let home = lab.project.parent().context("a scratch directory")?.join("user");
    let conversations = files.len();
    read(&home, &|path| path.ends_with(&format!("{id}.jsonl")), &mut files)?;
    ensure!(files.len() == conversations + 1, "the agent has no file of the conversation");
    Ok(Parent { events: lab.outlast.events(&lab.run)?, files })
}

fn read(
    dir: &Path,
    is_wanted: &dyn Fn(&str) -> bool,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.to_string_lossy().into_owned();
        if path.is_dir() {
            read(&path, is_wanted, files)?;
        } else if is_wanted(&name) {
            files.insert(name, fs::read(&path)?);
        }
    }
    Ok(())
}

/// The fork's first request has turns 1 to 3, and nothing later; its second turn goes on with the same conversation.
fn copied(lab: &mut Lab, view: &Value, known: usize) {
    let asked: Vec<Asked> = lab.asked().split_off(known);
    let turns: Vec<_> = asked.iter().filter_map(|it| it.turn).collect();
    lab.expect(turns == [4, 5], format!("the fork asked in turns {turns:?}, not 4 and 5"));
    let Some(first) = asked.first() else { return };
    for (index, word) in WORDS.iter().enumerate() {
        let (turn, is_before) = (index + 1, index < AT);
        let says = first.body.matches(word).count();
        lab.expect(
            says == usize::from(is_before),
            format!("the words of turn {turn} are {says} times in the fork's first request"),
        );
        let prompt = format!("Turn {turn} of the work");
        let has_prompt = first.body.contains(&prompt);
        lab.expect(
            has_prompt == (turn <= AT + 1),
            format!("{prompt:?} in the fork's first request: {has_prompt}"),
        );
    }
    let is_told = first.last_user.contains("was forked from run");
    lab.expect(is_told, "the fork's first prompt does not say what it is");
    if let Some(second) = asked.get(1) {
        let goes_on = ["quince", "damson", "loquat", "was forked from run"];
        let missing: Vec<_> = goes_on.iter().filter(|it| !second.body.contains(**it)).collect();
        lab.expect(missing.is_empty(), format!("the fork's second turn lacks {missing:?}"));
    }
    let dir = Path::new(view["workspace"].as_str().unwrap_or_default()).to_owned();
    let names = fs::read_dir(&dir).into_iter().flatten().flatten();
    let mut names: Vec<_> = names.map(|it| it.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let expected = [".git", "README", "t1", "t2", "t3"];
    lab.expect(names == expected, format!("the fork's workspace has {names:?}"));
}

fn said(lab: &mut Lab, view: &Value) -> Result<()> {
    let from = &view["forked_from"];
    lab.expect(
        from["session"] == "forked" && from["why_fresh"].is_null(),
        format!("forked_from is {from}"),
    );
    let page = lab.outlast.ask(&["show", view["id"].as_str().unwrap_or_default()])?;
    let line = page.lines().find(|line| line.contains("forked at turn 3"));
    lab.expect(line.is_some_and(|it| it.contains("session")), format!("show says:\n{page}"));
    Ok(())
}
