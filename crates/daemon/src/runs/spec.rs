//! What a run is asked to be, made out of the request, the loop file and the operator's config. Everything
//! that is wrong with these is said here, before anything starts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use outlast_agents::AnswersBy;
use outlast_engine::{
    Event, KeptInput, OutputPolicy, RunId, RunSpec, SHORTEST_HEARTBEAT_MS, Slot, SnapshotRules,
    Start, Strategy, Unreported, Window, Workspace,
};
use outlast_home::layout::RunDir;
use outlast_wire::OsText;
use outlast_wire::api::{AskedDriving, CreateRun, LARGEST_STDIN};
use outlast_wire::codes::Code;
use outlast_wire::shim::EnvVar;
use outlast_workflow::{
    self as workflow, AskedSpend, Config, Effective, Loaded, Problem, Refused, Source, Surroundings,
};

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::overrides::overrides;
use super::start::{check_queue, labels, queue};
use crate::notify;
use crate::occasion::Occasion;
use crate::refusal::{self, Answer, Refusal, bad_request};
use crate::request;
use crate::supervisor::Supervisor;
use crate::world::files;
use crate::{snapshots, watch, workspace};

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
    /// What each attempt reads.
    pub(crate) stdin: Option<OsText>,
    pub(crate) warnings: Vec<String>,
    /// What ends a loop and its turns, on one line.
    pub(crate) envelope: Option<String>,
    /// Of a fork: the events that it has of its parent, and the directory of that run.
    pub(crate) grown: Option<std::sync::Arc<(Vec<Event>, RunDir)>>,
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
    check_queue(asked)?;
    // Read once: a file that changes meanwhile does not make one run of two configs.
    let config = supervisor.config().map_err(|refused| Refusal::of_file(&refused))?;
    let loaded = load(supervisor, &config, asked)?;
    let mut warnings: Vec<String> = supervisor.ground.settings.remark().into_iter().collect();
    warnings.extend(loaded.warnings.iter().map(refusal::warning));
    warnings.extend(missing_program(asked, &loaded).iter().map(refusal::warning));
    let effective = loaded.effective;
    workflow::runnable(&effective).map_err(|problem| Refusal::of_file(&problem.into()))?;
    outlast_agents::check(&effective.agent, &effective.driving).map_err(|error| {
        Refusal::new(Code::BadCommand, error.to_string()).hint("put the command after --")
    })?;
    let env = environment(asked, effective.env.as_deref());
    check_prompt(asked, &effective)?;
    check_stdin(asked, &effective)?;
    let envelope = is_loop(asked, &effective).then(|| workflow::envelope(&effective));
    let mut spec = RunSpec { parent, ..spec(supervisor, &config, id, asked, effective)? };
    match occasion {
        Occasion::Asked => try_prompt(supervisor, id, &spec, None)?,
        Occasion::Came { origin, told, name } => {
            spec.origin = Some(origin.clone());
            // Only here: a directory of its own is named after the run's id, since names come again.
            spec.name.clone_from(name);
            try_prompt(supervisor, id, &spec, Some(told))?;
        }
        Occasion::Tried => {}
    }
    let (told, stdin) = (occasion.told().cloned(), asked.stdin.clone());
    let workflow_text = asked.workflow.as_ref().map(|file| file.text.clone());
    Ok(Wanted { spec, env, workflow_text, told, stdin, warnings, envelope, grown: None })
}

/// A command without a file has one turn, and ends with it.
fn is_loop(asked: &CreateRun, effective: &Effective) -> bool {
    asked.workflow.is_some() || outlast_agents::is_driven(&effective.agent, &effective.driving)
}

/// Of a loop: a turn that cannot start is tried again and again before the run fails.
fn missing_program(asked: &CreateRun, loaded: &Loaded) -> Option<Problem> {
    if !is_loop(asked, &loaded.effective) {
        return None;
    }
    let env = environment(asked, loaded.effective.env.as_deref());
    let (dir, path) = (Path::new(&asked.dir), variable(&env, "PATH"));
    workflow::missing_program(loaded, dir, path.as_deref(), &files::look)
}

fn load(supervisor: &Supervisor, config: &Config, asked: &CreateRun) -> Answer<Loaded> {
    let overrides = overrides(asked)?;
    let Some(file) = &asked.workflow else {
        return workflow::plain(config, &overrides).map_err(|refused| plain_refusal(&refused));
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
    workflow::load(&source, config, &overrides, &around).map_err(|wrong| Refusal::of_file(&wrong))
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
    refuse_unheard(asked, &notify)?;
    let emit_to = notify::pinned(store, config, &effective.output.emit_to)?;
    let unreported = unreported(&effective);
    Ok(RunSpec {
        name: asked.name.clone(),
        key: asked.key.clone(),
        task: asked.task.clone(),
        agent: effective.agent,
        asked_in: Some(asked.dir.clone()).filter(|asked| *asked != dir),
        dir,
        umask: asked.umask,
        tty: asked.tty.map(|window| Window { rows: window.rows.max(1), cols: window.cols.max(1) }),
        labels: labels(asked),
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
        queue: queue(asked.queue.as_ref(), effective.queue),
        notify,
        watches: asked.watch.clone(),
        heartbeat_ms: asked.heartbeat_ms,
        origin: None,
        health: config.health,
        unreported: Some(unreported),
        driving: effective.driving,
        secrets: config.secrets.clone(),
        start: Start::default(),
        has_stdin: asked.stdin.is_some(),
        stdin: asked.stdin.as_ref().map(|stdin| kept(stdin.as_os_str().as_bytes())),
        tree: effective.tree,
        build: Some(outlast_wire::version::BUILD.to_owned()),
        fork: None,
    })
}

/// What proves later that a file is still as it was.
pub(super) fn kept(bytes: &[u8]) -> KeptInput {
    let sha256 = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    KeptInput { bytes: u64::try_from(bytes.len()).unwrap_or(u64::MAX), sha256 }
}

/// A command that is started as it is, without a loop file, has no agent that could report what it used.
/// A ceiling of the operator is what a run may ask for, and not the price of its turns.
fn unreported(effective: &Effective) -> Unreported {
    let kind = outlast_agents::kind(&effective.agent.kind).and_then(|kind| kind.answers_by);
    let is_command = kind == Some(AnswersBy::ExitStatus) && effective.driving.declared.is_none();
    if is_command && effective.workflow.is_none() {
        return Unreported::Nothing;
    }
    match effective.asked {
        AskedSpend { tokens: true, money: false } => Unreported::ReservedTokens,
        AskedSpend { tokens: false, money: true } => Unreported::ReservedMoney,
        AskedSpend { tokens: true, money: true } => Unreported::Reserved,
        AskedSpend { tokens: false, money: false } => Unreported::ReservedCeilings,
    }
}

/// A watch or a heartbeat that no sink is told of has no effect. The run above a child reads the child's events.
fn refuse_unheard(asked: &CreateRun, notify: &[String]) -> Answer<()> {
    let flag = match (asked.watch.is_empty(), asked.heartbeat_ms) {
        (false, _) => "--watch",
        (true, Some(_)) => "--heartbeat",
        (true, None) => return Ok(()),
    };
    if !notify.is_empty() || asked.parent.is_some() {
        return Ok(());
    }
    let message = format!("{flag} has no effect: no sink would be told");
    Err(Refusal::new(Code::NoEffect, message)
        .hint("name one with --notify SINK, or set notify.default in config.toml"))
}

/// A terminal is its own input, and the turns of a loop are asked by files.
fn check_stdin(asked: &CreateRun, effective: &Effective) -> Answer<()> {
    let Some(stdin) = &asked.stdin else { return Ok(()) };
    let bytes = stdin.as_os_str().len();
    let refused = |message: String, hint: &str| {
        Err(Refusal::new(Code::BadRequest, message).hint(hint.to_owned()))
    };
    let is_driven = outlast_agents::is_driven(&effective.agent, &effective.driving);
    if asked.tty.is_some() {
        return refused(
            "a run with a terminal reads its terminal, and no other input".to_owned(),
            "leave out --tty, or type into it after outlast attach",
        );
    }
    if effective.workflow.is_some() || is_driven {
        return refused(
            "a loop is asked by its prompt, and reads no standard input".to_owned(),
            "put it into --task, or into a file of the workspace",
        );
    }
    if bytes > LARGEST_STDIN {
        return refused(
            format!("{bytes} bytes of standard input are more than {LARGEST_STDIN}"),
            "put it into a file, and let the command read that: sh -c 'COMMAND < FILE'",
        );
    }
    Ok(())
}

/// The environment that a run goes on with after its own is gone: what of `env` its file allows. Blocks.
pub(super) fn environment_again(supervisor: &Supervisor, asked: &CreateRun) -> Answer<Vec<EnvVar>> {
    let config = supervisor.config().map_err(|refused| Refusal::of_file(&refused))?;
    let effective = load(supervisor, &config, asked)?.effective;
    Ok(environment(asked, effective.env.as_deref()))
}

/// The directory that the run works in, and how it comes to be there.
fn place(
    supervisor: &Supervisor,
    id: &RunId,
    asked: &CreateRun,
    effective: &Effective,
) -> Answer<(String, Workspace)> {
    let (retain, strategy) = (effective.retain, effective.strategy);
    if strategy == Strategy::Inplace {
        let snapshot = snapshot_rules(supervisor, asked, effective, Path::new(&asked.dir));
        let workspace = Workspace { strategy, retain, snapshot, ..Workspace::default() };
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
    let repository = match strategy {
        Strategy::Worktree => Some(repository(asked)?),
        Strategy::Inplace | Strategy::Dir => None,
    };
    let snapshot = snapshot_rules(supervisor, asked, effective, &dir);
    let root = Some(text(&root)?);
    let workspace = Workspace { strategy, root, repository, retain, base: None, snapshot };
    Ok((text(&dir)?, workspace))
}

/// Which snapshots the run has of its workspace. Where there are none for a reason, the log says which.
fn snapshot_rules(
    supervisor: &Supervisor,
    asked: &CreateRun,
    effective: &Effective,
    dir: &Path,
) -> Option<Box<SnapshotRules>> {
    let home = variable(&asked.env, "HOME").map(PathBuf::from);
    let layout = &supervisor.ground.layout;
    let at = (dir, effective.strategy);
    let (rules, why) =
        snapshots::rules(&effective.snapshots, at, is_top_of_repository, layout, home.as_deref());
    if let Some(why) = why {
        tracing::warn!(why, "no snapshots");
    }
    rules
}

/// The repository of the directory that the run is started in, or else that of the loop file.
fn repository(asked: &CreateRun) -> Answer<String> {
    let beside = asked.workflow.as_ref().and_then(|file| Path::new(&file.path).parent());
    let places = [Some(Path::new(&asked.dir)), beside];
    let found = places.into_iter().flatten().find(|dir| is_in_repository(dir));
    if let Some(dir) = found.and_then(Path::to_str) {
        return Ok(dir.to_owned());
    }
    let message = match beside {
        Some(beside) if beside != Path::new(&asked.dir) => {
            format!("neither {} nor {} is in a git repository", asked.dir, beside.display())
        }
        _ => format!("{} is not in a git repository", asked.dir),
    };
    Err(Refusal::new(Code::NoRepository, message)
        .hint("a worktree needs one: --dir names a directory in it, --workspace dir needs none"))
}

/// Whether git would find a repository from here; what is wrong with it, git says.
fn is_in_repository(dir: &Path) -> bool {
    let is_bare = |dir: &Path| dir.join("HEAD").is_file() && dir.join("objects").is_dir();
    let is_linked = |dir: &Path| dir.join(".git").is_file();
    dir.ancestors().any(|dir| is_linked(dir) || is_bare(&dir.join(".git")) || is_bare(dir))
}

/// True of the top of a repository. No git is asked, because a creation does not wait for one; whether a directory
/// further down is ignored only git could say.
fn is_top_of_repository(dir: &Path) -> bool {
    is_in_repository(dir) && dir.join(".git").exists()
}

/// A command without a file has no lines to point at.
fn plain_refusal(refused: &Refused) -> Refusal {
    match refused.errors.as_slice() {
        [problem] if problem.code == Code::MissingCommand => {
            Refusal::new(Code::BadCommand, "there is no command to run")
                .hint("put the command after --")
        }
        _ => Refusal::of_file(refused),
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
            let every = workflow::duration::in_one_unit(ms);
            let refusal = Refusal::new(Code::BadHeartbeat, format!("{every} is no heartbeat"));
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
    if name.trim() != name
        || name.is_empty()
        || name.len() > LONGEST_NAME
        || !name.chars().all(is_plain)
        || name.starts_with(['-', '@'])
        || RunId::has_form(name)
    {
        let refusal = Refusal::new(Code::BadRequest, format!("{name:?} is not a name for a run"));
        return Err(refusal.hint(format!(
            "letters, digits, `.` `_` `-` `/` `:` `@` `#` and spaces within, up to {LONGEST_NAME} bytes, not `-` or `@` first, and not in the form of a run's id"
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
