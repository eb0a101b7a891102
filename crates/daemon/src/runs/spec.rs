//! What a run is asked to be, made out of the request, the loop file and the operator's config. Everything
//! that is wrong with these is said here, before anything starts.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use outlast_engine::{
    Approvals, OutputPolicy, RunId, RunSpec, SHORTEST_HEARTBEAT_MS, Slot, Strategy, Window,
    Workspace,
};
use outlast_wire::api::{AskedDriving, CreateRun};
use outlast_wire::codes::Code;
use outlast_wire::shim::EnvVar;
use outlast_workflow::{
    self as workflow, Config, Effective, Loaded, Overrides, Problem, Source, Surroundings,
};

use serde_json::Value;

use crate::notify;
use crate::occasion::Occasion;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::request;
use crate::supervisor::Supervisor;
use crate::{watch, workspace};

/// Bounds on what is written into every journal.
const LONGEST_NAME: usize = 100;
const LONGEST_KEY: usize = 1024;
const MOST_LABELS: usize = 64;
/// Of a label's key and of its value, each.
const LONGEST_LABEL: usize = 4096;
const LONGEST_TASK: usize = 256 << 10;
const MOST_WATCHES: usize = 16;
const LONGEST_PATTERN: usize = 1024;
const MOST_ALLOWED: usize = 256;
/// Of a model, an effort or a tool.
const LONGEST_WORD: usize = 256;

/// A run that can be made.
#[derive(Clone)]
pub(crate) struct Wanted {
    pub(crate) spec: RunSpec,
    /// What its commands get, whole.
    pub(crate) env: Vec<EnvVar>,
    pub(crate) workflow_text: Option<String>,
    /// Written beside a run that a trigger makes.
    pub(crate) told: Option<Value>,
    pub(crate) warnings: Vec<String>,
}

/// Blocks: reads the config and looks at directories.
pub(crate) fn of(
    supervisor: &Supervisor,
    id: &RunId,
    asked: &CreateRun,
    parent: Option<RunId>,
    occasion: &Occasion,
) -> Answer<Wanted> {
    if !id.is_well_formed() {
        return Err(bad_request(format!("{id:?} is not a run id")));
    }
    check_name(asked.name.as_deref())?;
    check_key(asked.key.as_deref())?;
    check_dir(&asked.dir)?;
    check_labels(asked)?;
    check_task(asked.task.as_deref())?;
    check_watches(asked)?;
    check_driving(&asked.driving)?;
    // Read once: a file that changes meanwhile does not make one run of two configs.
    let config = supervisor.config().map_err(|problems| refusal(&problems))?;
    let loaded = load(supervisor, &config, asked)?;
    let effective = loaded.effective;
    workflow::runnable(&effective).map_err(|problem| refusal(&[problem]))?;
    outlast_agents::check(&effective.agent, &effective.driving).map_err(|error| {
        Refusal::new(Code::BadCommand, error.to_string()).hint("put the command after `--`")
    })?;
    let env = environment(asked, effective.env.as_deref());
    check_prompt(asked, &effective)?;
    let mut spec = RunSpec { parent, ..spec(supervisor, &config, id, asked, effective)? };
    match occasion {
        Occasion::Asked => try_prompt(supervisor, id, &spec, None)?,
        Occasion::Came { origin, told } => {
            spec.origin = Some(origin.clone());
            try_prompt(supervisor, id, &spec, Some(told))?;
        }
        Occasion::Tried => {}
    }
    let told = occasion.told().cloned();
    let workflow_text = asked.workflow.as_ref().map(|file| file.text.clone());
    let warnings = loaded.warnings.iter().map(ToString::to_string).collect();
    Ok(Wanted { spec, env, workflow_text, told, warnings })
}

fn load(supervisor: &Supervisor, config: &Config, asked: &CreateRun) -> Answer<Loaded> {
    let overrides = overrides(asked)?;
    let Some(file) = &asked.workflow else {
        return workflow::plain(config, &overrides).map_err(|problems| plain_refusal(&problems));
    };
    if file.text.len() > workflow::LARGEST_FILE {
        return Err(bad_request(format!("{} is bigger than 1 MiB", file.path)));
    }
    let path = Path::new(&file.path);
    if !path.is_absolute() {
        return Err(bad_request(format!("{} is not an absolute path", file.path)));
    }
    refuse_own_file(supervisor, path)?;
    let home = variable(&asked.env, "HOME").map(PathBuf::from);
    let around = Surroundings {
        home: home.as_deref(),
        env: &|name| variable(&asked.env, name),
        temp_dir: &std::env::temp_dir(),
        default_root: &supervisor.ground.layout.workspaces(),
    };
    let source = Source { path, text: &file.text };
    workflow::load(&source, config, &overrides, &around).map_err(|problems| refusal(&problems))
}

/// An agent could write there what the next run is allowed to do.
fn refuse_own_file(supervisor: &Supervisor, path: &Path) -> Answer<()> {
    let roots = [supervisor.ground.layout.workspaces(), supervisor.ground.layout.runs()];
    if !roots.iter().any(|root| path.starts_with(root)) {
        return Ok(());
    }
    let message =
        format!("{} is in a workspace of Outlast, where an agent can change it", path.display());
    Err(Refusal::new(Code::WorkflowInWorkspace, message).hint("use the file of your repository"))
}

fn try_prompt(
    supervisor: &Supervisor,
    id: &RunId,
    spec: &RunSpec,
    told: Option<&Value>,
) -> Answer<()> {
    let Some(workflow) = &spec.workflow else { return Ok(()) };
    let context = supervisor.ground.world.context(Slot::Taken);
    let run = outlast_engine::decide_new(id, spec.clone(), &context).after;
    request::try_out(&run, told, context.now).map_err(|error| {
        Refusal::new(Code::TemplateRenderError, format!("{}: {error}", workflow.path))
            .hint("what is not there in every turn is asked for first: {% if note %}…{% endif %}")
    })
}

fn overrides(asked: &CreateRun) -> Answer<Overrides> {
    let limits = &asked.limits;
    Ok(Overrides {
        agent_kind: asked.agent.clone(),
        command: Some(asked.command.clone()).filter(|command| !command.is_empty()),
        workspace: asked.workspace.as_deref().map(strategy).transpose()?,
        turn_timeout_ms: limits.turn_timeout_ms,
        stall_window_ms: limits.stall_window_ms,
        run_timeout_ms: limits.run_timeout_ms,
        max_turns: limits.max_turns,
        max_attempts: asked.retry.map(|retry| retry.saturating_add(1)),
        max_tokens: limits.max_tokens,
        max_cost_usd_micros: limits.max_cost_usd_micros,
        priority: asked.priority,
        backoff_ms: asked.backoff_ms,
        approvals: asked.driving.approvals.as_deref().map(approvals).transpose()?,
        allow: Some(asked.driving.allow.clone()).filter(|allow| !allow.is_empty()),
        model: asked.driving.model.clone(),
        effort: asked.driving.effort.clone(),
    })
}

fn approvals(word: &str) -> Answer<Approvals> {
    Approvals::of(word).ok_or_else(|| {
        let words = Approvals::ALL.map(Approvals::word).join(", ");
        Refusal::new(Code::BadRequest, format!("{word:?} is no way to treat a question"))
            .hint(format!("one of {words}"))
    })
}

fn strategy(word: &str) -> Answer<Strategy> {
    Strategy::of(word).ok_or_else(|| {
        Refusal::new(Code::BadRequest, format!("{word:?} is not a workspace strategy"))
            .hint("one of inplace, dir, worktree")
    })
}

fn variable(env: &[EnvVar], name: &str) -> Option<String> {
    let is_it = |var: &&EnvVar| os(&var.name) == OsStr::new(name);
    let value = os(&env.iter().find(is_it)?.value).to_str()?.to_owned();
    Some(value).filter(|value| !value.is_empty())
}

fn os(text: &outlast_wire::OsText) -> &OsStr {
    text.as_os_str()
}

/// What of the client's environment the run gets: all of it, or what the file names and `--env` sets; but no
/// other run's token.
fn environment(asked: &CreateRun, allowed: Option<&[String]>) -> Vec<EnvVar> {
    let mut env = wanted_environment(asked, allowed);
    env.retain(|var| os(&var.name) != "OUTLAST_TOKEN");
    env
}

fn wanted_environment(asked: &CreateRun, allowed: Option<&[String]>) -> Vec<EnvVar> {
    let Some(allowed) = allowed else { return asked.env.clone() };
    let is_allowed = |var: &&EnvVar| {
        let name = os(&var.name).to_string_lossy();
        allowed.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *pattern == name,
        })
    };
    let is_set = |var: &&EnvVar| !asked.env_set.iter().any(|set| set.name == var.name);
    let kept = asked.env.iter().filter(is_allowed).filter(is_set);
    kept.chain(&asked.env_set).cloned().collect()
}

fn spec(
    supervisor: &Supervisor,
    config: &Config,
    id: &RunId,
    asked: &CreateRun,
    effective: Effective,
) -> Answer<RunSpec> {
    let (dir, workspace) = place(supervisor, id, asked, &effective)?;
    let store = &*supervisor.ground.store;
    let always = config.notify.default.clone();
    let notify = notify::pinned(store, config, &[asked.notify.clone(), always].concat())?;
    let emit_to = notify::pinned(store, config, &effective.output.emit_to)?;
    Ok(RunSpec {
        name: asked.name.clone(),
        key: asked.key.clone(),
        task: asked.task.clone(),
        agent: effective.agent,
        dir,
        umask: asked.umask,
        tty: asked.tty.map(|window| Window { rows: window.rows.max(1), cols: window.cols.max(1) }),
        labels: asked.labels.clone(),
        parent: None,
        limits: effective.limits,
        retry: effective.retry,
        workflow: effective.workflow,
        workspace,
        hooks: effective.hooks,
        checks: effective.checks,
        output: OutputPolicy { emit_to, ..effective.output },
        tools: effective.tools,
        model_class: effective.model_class,
        on_interrupt: effective.on_interrupt,
        queue: effective.queue,
        notify,
        watches: asked.watch.clone(),
        heartbeat_ms: asked.heartbeat_ms,
        origin: None,
        health: config.health,
        driving: effective.driving,
        secrets: config.secrets.clone(),
    })
}

/// The directory that the run works in, and how it comes to be there.
fn place(
    supervisor: &Supervisor,
    id: &RunId,
    asked: &CreateRun,
    effective: &Effective,
) -> Answer<(String, Workspace)> {
    let retain = effective.retain;
    let strategy = effective.strategy;
    if strategy == Strategy::Inplace {
        let workspace = Workspace { strategy, root: None, repository: None, retain };
        return Ok((asked.dir.clone(), workspace));
    }
    let root = effective.root.clone().unwrap_or_else(|| supervisor.ground.layout.workspaces());
    let key = workspace::sanitised(asked.name.as_deref().unwrap_or(id.as_str()));
    let dir = workspace::path(&root, &key).map_err(|escape| {
        Refusal::new(Code::WorkspaceEscapes, escape.to_string()).hint(escape.hint())
    })?;
    let text = |path: &Path| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| bad_request(format!("{} is not text", path.display())))
    };
    let repository = (strategy == Strategy::Worktree).then(|| asked.dir.clone());
    let workspace = Workspace { strategy, root: Some(text(&root)?), repository, retain };
    Ok((text(&dir)?, workspace))
}

/// Everything that is wrong, the first of it as the message and its hint.
fn refusal(problems: &[Problem]) -> Refusal {
    let code = problems.first().map_or(Code::BadRequest, |problem| problem.code);
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let mut refusal = Refusal::new(code, lines.join("\n"));
    refusal.hint = problems.iter().find_map(|problem| problem.hint.clone());
    refusal
}

/// A command without a file has no lines to point at.
fn plain_refusal(problems: &[Problem]) -> Refusal {
    match problems {
        [problem] if problem.code == Code::MissingCommand => {
            Refusal::new(Code::BadCommand, "there is no command to run")
                .hint("put the command after `--`")
        }
        problems => refusal(problems),
    }
}

fn check_labels(asked: &CreateRun) -> Answer<()> {
    if asked.labels.len() > MOST_LABELS {
        let count = asked.labels.len();
        return Err(bad_request(format!("{count} labels are more than {MOST_LABELS}")));
    }
    let too_long = asked.labels.iter().find(|(key, value)| {
        key.is_empty() || key.len() > LONGEST_LABEL || value.len() > LONGEST_LABEL
    });
    match too_long {
        Some((key, value)) => {
            let (key, value) = (key.len(), value.len());
            let message = format!("a label has a key of {key} bytes and a value of {value}");
            let hint =
                format!("a key has 1 to {LONGEST_LABEL} bytes, a value up to {LONGEST_LABEL}");
            Err(Refusal::new(Code::BadRequest, message).hint(hint))
        }
        None => Ok(()),
    }
}

fn check_task(task: Option<&str>) -> Answer<()> {
    match task.map(str::len) {
        Some(bytes) if bytes > LONGEST_TASK => {
            let message = format!("a task of {bytes} bytes is longer than {LONGEST_TASK}");
            Err(Refusal::new(Code::BadRequest, message)
                .hint("put the long part into a file, and name the file in the task"))
        }
        Some(_) | None => Ok(()),
    }
}

/// An agent that is driven has a prompt: that of its file, or its task.
fn check_prompt(asked: &CreateRun, effective: &Effective) -> Answer<()> {
    let is_driven = outlast_agents::is_driven(&effective.agent, &effective.driving);
    let has_task = asked.task.as_ref().is_some_and(|task| !task.trim().is_empty());
    if !is_driven || effective.workflow.is_some() || has_task {
        return Ok(());
    }
    let message = format!("an agent of kind {} needs a task", effective.agent.kind);
    Err(Refusal::new(Code::BadRequest, message).hint("--task TEXT, or a loop file with -f"))
}

fn check_watches(asked: &CreateRun) -> Answer<()> {
    if asked.watch.len() > MOST_WATCHES {
        let count = asked.watch.len();
        return Err(bad_request(format!("{count} watches are more than {MOST_WATCHES}")));
    }
    for text in &asked.watch {
        if text.is_empty() || text.len() > LONGEST_PATTERN {
            let refusal = Refusal::new(Code::BadWatch, "a watch has a pattern of 1 to 1024 bytes");
            return Err(refusal.hint("a regular expression, such as '^(error|warning):'"));
        }
        if let Err(why) = watch::pattern(text) {
            let message = format!("{text:?} is not a regular expression to watch for");
            return Err(Refusal::new(Code::BadWatch, message).hint(why));
        }
    }
    match asked.heartbeat_ms {
        Some(ms) if ms < SHORTEST_HEARTBEAT_MS => {
            let refusal = Refusal::new(Code::BadHeartbeat, format!("{ms} ms is no heartbeat"));
            Err(refusal.hint("at least 1s"))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_driving(asked: &AskedDriving) -> Answer<()> {
    let AskedDriving { approvals: _, allow, model, effort } = asked;
    if allow.len() > MOST_ALLOWED {
        let count = allow.len();
        return Err(bad_request(format!("{count} allowed tools are more than {MOST_ALLOWED}")));
    }
    let words = allow.iter().map(|word| ("tool", word));
    let words = words.chain(model.iter().map(|word| ("model", word)));
    for (what, word) in words.chain(effort.iter().map(|word| ("effort", word))) {
        if word.trim().is_empty() || word.len() > LONGEST_WORD {
            let bytes = word.len();
            let refusal =
                Refusal::new(Code::BadRequest, format!("the name of a {what} has {bytes} bytes"));
            return Err(
                refusal.hint(format!("the vendor's own word, of 1 to {LONGEST_WORD} bytes"))
            );
        }
    }
    Ok(())
}

fn check_name(name: Option<&str>) -> Answer<()> {
    let Some(name) = name else { return Ok(()) };
    let is_plain = |char: char| {
        char.is_alphanumeric() || matches!(char, '.' | '_' | '-' | ' ' | '/' | ':' | '@' | '#')
    };
    if name.is_empty()
        || name.len() > LONGEST_NAME
        || !name.chars().all(is_plain)
        || name.starts_with('-')
    {
        let refusal = Refusal::new(Code::BadRequest, format!("{name:?} is not a name for a run"));
        return Err(refusal.hint(format!(
            "letters, digits, `.` `_` `-` `/` `:` `@` `#` and spaces, up to {LONGEST_NAME} bytes"
        )));
    }
    Ok(())
}

fn check_key(key: Option<&str>) -> Answer<()> {
    match key {
        Some(key) if key.is_empty() || key.len() > LONGEST_KEY => {
            let message = format!("a key has 1 to {LONGEST_KEY} bytes, and this one {}", key.len());
            let refusal = Refusal::new(Code::BadRequest, message);
            Err(refusal.hint("any text that names the work, such as build-42"))
        }
        Some(_) | None => Ok(()),
    }
}

fn check_dir(dir: &str) -> Answer<()> {
    let path = Path::new(dir);
    if !path.is_absolute() {
        return Err(bad_request(format!("{dir:?} is not an absolute path")));
    }
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Refusal::new(Code::NoDirectory, format!("{dir} is not a directory"))
            .hint("--dir names the directory to run in")),
        Err(error) => Err(Refusal::new(Code::NoDirectory, format!("cannot run in {dir}: {error}"))
            .hint("--dir names the directory to run in")),
    }
}
