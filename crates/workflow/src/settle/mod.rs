//! Settling: of the file, the flags, the defaults and the operator's ceilings, what holds, and why.
//!
//! Reads no file and no environment; both arrive as arguments. Starts and changes nothing.

mod agent;
mod defaults;
mod driving;
mod envelope;
mod limits;
mod output;
mod paths;
mod program;
mod sheet;
mod snapshots;
pub(crate) mod symphony;
mod tools;
mod tree;
mod workspace;

use std::path::{Path, PathBuf};

use outlast_engine::{
    Agent, Approvals, Checks, Driving, Hooks, Limits, ModelClass, OnEnd, OnInterrupt, OutputPolicy,
    Queue, Retain, Retry, Room, Strategy, Tool, TreeRules, Workflow,
};
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::keys::{Key, WORKFLOW, lookup};
use crate::node::{Node, Value};
use crate::problem::{Code, Problem};
use crate::refused::Refused;
use crate::source::{self, Document, FRONT_LINE, Source};
use crate::verify::Unknown;
use crate::{template, times, verify, yaml};
use defaults::Defaults;
use sheet::Sheet;

pub use defaults::{CHECK_TIMEOUT_MS, HOOK_TIMEOUT_MS};
pub use envelope::envelope;
pub use program::{Absent, Look, absent_program, missing_program};
pub use snapshots::{AskedSnapshots, SnapshotMode};
pub use symphony::Tracker;

/// What the command line asked for; `None` leaves it to the file. 0 is off, as in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    pub agent_kind: Option<String>,
    pub command: Option<Vec<String>>,
    pub workspace: Option<Strategy>,
    pub turn_timeout_ms: Option<u64>,
    pub stall_window_ms: Option<u64>,
    pub run_timeout_ms: Option<u64>,
    pub max_turns: Option<u32>,
    /// Tries at one turn: one more than `--retry`.
    pub max_attempts: Option<u32>,
    pub max_tokens: Option<u64>,
    pub max_cost_usd_micros: Option<u64>,
    pub priority: Option<i32>,
    pub backoff_ms: Option<u64>,
    /// For an agent that is driven.
    pub approvals: Option<Approvals>,
    pub allow: Option<Vec<String>>,
    pub model: Option<String>,
    pub effort: Option<String>,
    /// Levels, children at once, runs and turns; the tokens and the money of a tree are the limits above.
    pub room: Room,
    pub children: Option<OnEnd>,
}

/// What of the world a file may refer to.
pub struct Surroundings<'a> {
    pub home: Option<&'a Path>,
    pub env: &'a dyn Fn(&str) -> Option<String>,
    pub temp_dir: &'a Path,
    /// Where workspaces are made if the file names no place.
    pub default_root: &'a Path,
}

/// What holds for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effective {
    pub agent: Agent,
    /// What the agent gets of the environment, as names that may end in `*`; `None` is everything.
    pub env: Option<Vec<String>>,
    pub model_class: ModelClass,
    pub driving: Driving,
    pub strategy: Strategy,
    /// Absolute; `None` for `inplace`.
    pub root: Option<PathBuf>,
    pub retain: Retain,
    pub snapshots: AskedSnapshots,
    pub hooks: Hooks,
    pub checks: Checks,
    pub limits: Limits,
    /// Which of the limits of spend the file or a flag asked for; the others are the operator's ceilings.
    pub asked: AskedSpend,
    pub retry: Retry,
    pub output: OutputPolicy,
    pub tools: Vec<Tool>,
    pub on_interrupt: OnInterrupt,
    pub queue: Queue,
    pub tree: TreeRules,
    /// The file and its prompt; `None` for a plain command.
    pub workflow: Option<Workflow>,
    /// Kept for readers of trackers; nothing follows from it here.
    pub tracker: Option<Tracker>,
}

/// Which limits of spend were asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AskedSpend {
    pub tokens: bool,
    pub money: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub effective: Effective,
    pub warnings: Vec<Problem>,
    pub explained: Vec<Explained>,
}

/// One setting: what it is, and who said so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    pub key: String,
    pub value: String,
    pub origin: Origin,
}

impl Explained {
    /// The key and the value for people: a length of time under the name that takes its unit.
    pub fn shown(&self) -> (&str, String) {
        let is_time = lookup(WORKFLOW, &self.key).is_some_and(Key::is_time);
        match (self.key.strip_suffix("_ms"), self.value.parse()) {
            (Some(name), Ok(ms)) if is_time => (name, times::shown(ms)),
            (Some(name), Err(_)) if is_time => (name, self.value.clone()),
            _ => (&self.key, self.value.clone()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Default,
    Workflow {
        line: usize,
    },
    Config {
        line: usize,
    },
    CommandLine,
    /// Neither file nor flag asked for less, so the operator's ceiling holds.
    Ceiling {
        line: usize,
    },
}

impl Loaded {
    /// The same, unless a key is unknown.
    pub fn strict(self) -> Result<Self, Refused> {
        let is_error = |problem: &Problem| problem.code == Code::UnknownKey;
        if !self.warnings.iter().any(is_error) {
            return Ok(self);
        }
        let (errors, warnings) = self.warnings.into_iter().partition(is_error);
        Err(Refused::new(errors, warnings))
    }
}

/// What a loop file amounts to. Its path has to be absolute if it names a relative root.
pub fn load(
    workflow: &Source<'_>,
    config: &Config,
    overrides: &Overrides,
    around: &Surroundings<'_>,
) -> Result<Loaded, Refused> {
    let file = workflow.file();
    let document = source::split(workflow)?;
    let written = front_matter(&file, &document)?;
    let found = verify::verify(&file, &written, WORKFLOW, unknown);
    let front = times::in_ms(&written, WORKFLOW);
    let mut sheet = Sheet::new(&file, (&front, &written), config, overrides, found);
    for problem in template::problems(document.prompt) {
        sheet.errors.push(in_file(problem, &file, document.prompt_line));
    }
    let kind = agent::kind(&mut sheet);
    let mut defaults = Defaults::of_loop(agent::stall_window_ms(&sheet, &kind));
    if symphony::is_symphony(&sheet) {
        defaults.max_turns = Some(symphony::MAX_TURNS.into());
    }
    let (strategy, root) = workspace::place(&mut sheet, workflow.path, around);
    let effective = Effective {
        env: Some(agent::env(&mut sheet, &kind)),
        strategy,
        root,
        workflow: Some(pinned(workflow, &document)),
        tracker: symphony::tracker(&mut sheet, around),
        ..settled(&mut sheet, kind, &defaults)
    };
    snapshots::check(&mut sheet, &effective.snapshots, strategy, effective.on_interrupt);
    sheet.finish(effective)
}

/// What a command without a file amounts to. The root of a workspace other than `inplace` is the caller's.
pub fn plain(config: &Config, overrides: &Overrides) -> Result<Loaded, Refused> {
    let nothing = Node::empty_map();
    let found = verify::Findings::default();
    let mut sheet = Sheet::new("command line", (&nothing, &nothing), config, overrides, found);
    let kind = agent::kind(&mut sheet);
    // An agent that speaks a protocol goes on with its conversation; a command may have done its work.
    let is_driven = agent::is_driven(&sheet, &kind);
    let defaults = match is_driven {
        true => Defaults::of_loop(agent::stall_window_ms(&sheet, &kind)),
        false => Defaults::plain(),
    };
    let mut effective = settled(&mut sheet, kind, &defaults);
    effective.strategy = overrides.workspace.unwrap_or_default();
    // A single command has one turn, and nothing to go back to.
    effective.snapshots.mode = SnapshotMode::Off;
    if !is_driven {
        effective.on_interrupt = OnInterrupt::Fail;
    }
    sheet.finish(effective)
}

/// The sections that are ours. Files for Symphony have the first three, too.
pub(crate) const OURS: [&str; 11] = [
    "agent",
    "workspace",
    "hooks",
    "limits",
    "checks",
    "tools",
    "output",
    "retry",
    "approvals",
    "queue",
    "tree",
];

/// A key that is spelt wrong in a section of ours would leave a run without a limit or a check. Other programs may
/// have keys of their own elsewhere, and Symphony in the sections that it shares with us.
fn unknown(root: &Node, path: &str, meant: Option<&str>) -> Unknown {
    let section = |path: &str| {
        let name = path.split(['.', '[']).next().unwrap_or(path);
        OURS.iter().position(|ours| *ours == name)
    };
    let is_error = match (section(path), meant) {
        (Some(0..3), None) => !symphony::is_written_for_it(root),
        (Some(_), _) => true,
        (None, Some(_)) if path.contains('.') => false,
        (None, Some(meant)) if !meant.contains('.') => {
            section(meant).is_some() || meant == "on_interrupt"
        }
        // A limit or a check that stands outside of its section, or a key that was joined to the name of its section.
        (None, Some(meant)) => {
            ["limits.", "checks.", "agent.max_turns"].iter().any(|it| meant.starts_with(it))
                || (section(meant).is_some() && path.replace('-', "_") == meant.replace('.', "_"))
        }
        (None, None) => false,
    };
    if is_error { Unknown::Error } else { Unknown::Warning }
}

/// What does not depend on where the file is.
fn settled(sheet: &mut Sheet<'_>, kind: String, defaults: &Defaults) -> Effective {
    let driving = driving::driving(sheet, &kind);
    Effective {
        driving,
        agent: agent::agent(sheet, kind),
        env: None,
        model_class: agent::model_class(sheet),
        strategy: Strategy::default(),
        root: None,
        retain: workspace::retain(sheet),
        snapshots: snapshots::snapshots(sheet),
        hooks: workspace::hooks(sheet),
        checks: workspace::checks(sheet),
        limits: limits::limits(sheet, defaults),
        asked: limits::asked(sheet),
        retry: limits::retry(sheet, defaults),
        output: output::policy(sheet),
        tools: tools::tools(sheet),
        on_interrupt: output::on_interrupt(sheet),
        queue: output::queue(sheet),
        tree: tree::rules(sheet),
        workflow: None,
        tracker: None,
    }
}

/// Refuses what this version cannot execute, though it knows the word.
pub fn runnable(effective: &Effective) -> Result<(), Problem> {
    let kind = effective.agent.kind.as_str();
    if effective.driving.declared.is_some() || agent::is_runnable(kind) {
        return Ok(());
    }
    let file = effective.workflow.as_ref().map_or("command line", |workflow| &workflow.path);
    let message = format!("this version cannot run agents of kind {kind}");
    Err(Problem::new(Code::UnsupportedKind, file, message)
        .key("agent.kind")
        .hint("run it as a command: --agent exec -- COMMAND"))
}

pub(crate) fn front_matter(file: &str, document: &Document<'_>) -> Result<Node, Problem> {
    let Some(text) = document.front else { return Ok(Node::empty_map()) };
    let node = yaml::parse_below(FRONT_LINE - 1, text).map_err(|found| {
        let message = format_args!("the front matter is not YAML: {}", found.message);
        let problem = Problem::new(Code::WorkflowParseError, file, message).at(found.line);
        let line = text.lines().nth(found.line.saturating_sub(FRONT_LINE)).unwrap_or_default();
        match line.trim_start_matches(' ').starts_with('\t') {
            true => problem.hint("indent with spaces: YAML takes no tabs"),
            false => problem,
        }
    })?;
    match node.value {
        Value::Null => Ok(Node::empty_map()),
        Value::Map(_) => Ok(node),
        _ => Err(Problem::new(
            Code::WorkflowFrontMatterNotAMap,
            file,
            format_args!("the front matter must be a map of keys, got {}", node.quoted()),
        )
        .at(node.line)
        .hint("write it as `key: value` lines")),
    }
}

/// A problem of the prompt, told as one of the file that it stands in.
fn in_file(problem: Problem, file: &str, prompt_line: usize) -> Problem {
    let line = problem.line.map(|line| line + prompt_line - 1);
    Problem { file: file.into(), line: line.or(Some(prompt_line)), ..problem }
}

fn pinned(source: &Source<'_>, document: &Document<'_>) -> Workflow {
    let prompt = if document.prompt.is_empty() { template::DEFAULT } else { document.prompt };
    Workflow { path: source.file(), sha256: sha256(source.text), prompt: prompt.to_owned() }
}

fn sha256(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
