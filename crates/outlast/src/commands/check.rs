//! `outlast check`: what a loop file amounts to, without running it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use outlast_client::problem::REFUSED;
use outlast_home::layout::Layout;
use outlast_wire::words::Strategy;
use outlast_workflow::template::{self, Variables};
use outlast_workflow::{Code, Effective, Explained, Loaded, Origin, Overrides, Problem, Refused};
use serde_json::{Value, json};

use crate::args::{Check, Schema};
use crate::output::errors::counted;
use crate::output::printable;
use crate::output::table::{Cell, Column, Look, Table};
use crate::world::World;
use crate::{Answer, loop_file, output};

pub(crate) fn check(world: &World, args: Check) -> Answer {
    if let Some(schema) = args.schema {
        output::print(&match schema {
            Schema::Workflow => outlast_workflow::schema_workflow(),
            Schema::Config => outlast_workflow::schema_config(),
        })?;
        return Ok(0);
    }
    let here = world.current_dir()?;
    let path = outlast_workflow::path(args.file.as_deref(), &here);
    let layout = world.client.layout()?;
    let (found, config) = loop_file::load_beside(world, layout, &path, &Overrides::default());
    let found = found.and_then(|loaded| runnable(world, &here, &path, loaded));
    let found = if args.strict { found.and_then(Loaded::strict) } else { found };
    let short = |problems: Vec<Problem>| -> Vec<Problem> {
        problems.iter().map(|problem| loop_file::shortened(problem, &here)).collect()
    };
    let found = match found {
        Ok(loaded) => Ok(Loaded { warnings: short(loaded.warnings), ..loaded }),
        Err(Refused { errors, warnings }) => {
            Err(Refused { errors: short(errors), warnings: short(warnings) })
        }
    };
    let config = Refused { errors: short(config.errors), warnings: short(config.warnings) };
    let status = if found.is_ok() && config.errors.is_empty() { 0 } else { REFUSED };
    if args.json {
        output::print_json(&as_json(&found, &config))?;
    } else {
        config.errors.iter().for_each(|problem| loop_file::tell("error", problem));
        remark(&config.warnings);
        if !config.errors.is_empty() && found.is_ok() {
            let count = counted(config.errors.len(), "problem");
            output::tell(&format!("outlast: {count} in config.toml; without it, the file is:"));
        }
        let name = path.strip_prefix(&here).unwrap_or(&path).display().to_string();
        tell(world, &args, &name, &here, (&found, config.errors.len()))?;
    }
    Ok(status)
}

/// Refuses what `run` would refuse here, and looks for the agent's program.
pub(super) fn runnable(
    world: &World,
    here: &Path,
    path: &Path,
    mut loaded: Loaded,
) -> Result<Loaded, Refused> {
    let effective = &loaded.effective;
    let file = path.display();
    let mut errors: Vec<Problem> =
        outlast_workflow::runnable(effective).err().into_iter().collect();
    if effective.strategy == Strategy::Worktree && repository(here, path).is_none() {
        let message = "a worktree needs a git repository, and this is in none";
        let hint = "workspace.strategy: dir needs none";
        let problem = Problem::new(Code::NoRepository, &file, message).key("workspace.strategy");
        errors.push(problem.hint(hint));
    }
    let layout = world.client.layout();
    let is_within = |layout: &Layout| {
        [layout.workspaces(), layout.runs()].iter().any(|root| path.starts_with(root))
    };
    if layout.is_ok_and(is_within) {
        let message = "lies in a workspace of Outlast, where an agent can change it";
        let problem = Problem::new(Code::WorkflowInWorkspace, &file, message);
        errors.push(problem.hint("use the file of your repository"));
    }
    if let Err(error) = outlast_agents::check(&effective.agent, &effective.driving) {
        errors.push(Problem::new(Code::BadCommand, &file, error).key("agent.command"));
    }
    errors.extend(unrenderable(&file.to_string(), effective));
    if !errors.is_empty() {
        return Err(Refused { errors, warnings: loaded.warnings });
    }
    let is_passed = |names: &Vec<String>| names.iter().any(|name| name == "PATH");
    let search = world.client.var("PATH").and_then(OsStr::to_str);
    let search = search.filter(|_| effective.env.as_ref().is_none_or(is_passed));
    let missing = outlast_workflow::missing_program(&loaded, here, search, &loop_file::look);
    loaded.warnings.extend(missing);
    if loaded.effective.agent.command.iter().any(|word| loop_file::is_placeholder(word)) {
        let message =
            "is the placeholder of outlast init, which does no work and asks for an agent";
        let problem = Problem::new(Code::BadCommand, &file, message).key("agent.command");
        loaded.warnings.push(problem.hint("put the command of your agent where it says agent()"));
    }
    Ok(loaded)
}

/// A prompt that the first turn of a run could not be given.
fn unrenderable(file: &str, effective: &Effective) -> Option<Problem> {
    let prompt = &effective.workflow.as_ref()?.prompt;
    // What a trigger passes on is not known here.
    if prompt.contains("item") {
        return None;
    }
    let first = Variables {
        task: "a task".to_owned(),
        run: "k3mxq".to_owned(),
        turn: 1,
        workspace: "/workspace".to_owned(),
        ..Variables::default()
    };
    let problem = template::render(prompt, &first).err()?;
    let problem = Problem::new(problem.code, file, format!("the prompt: {}", problem.message));
    let hint =
        "test a value that the first turn lacks before you use it: {% if note %}…{% endif %}";
    Some(problem.hint(hint))
}

/// The repository that a worktree would be made of: that of this directory, or else of the file's.
fn repository(here: &Path, file: &Path) -> Option<PathBuf> {
    let places = [Some(here), file.parent()];
    let is_top = |dir: &Path| {
        let git = dir.join(".git");
        git.is_file()
            || git.join("HEAD").is_file()
            || (dir.join("HEAD").is_file() && dir.join("objects").is_dir())
    };
    let top = |dir: &Path| dir.ancestors().find(|dir| is_top(dir)).map(Path::to_owned);
    places.into_iter().flatten().find_map(top)
}

fn tell(
    world: &World,
    args: &Check,
    name: &str,
    here: &Path,
    (found, in_config): (&Result<Loaded, Refused>, usize),
) -> Result<(), outlast_client::problem::Problem> {
    let loaded = match found {
        Ok(loaded) => loaded,
        Err(Refused { errors, warnings }) => {
            errors.iter().for_each(|problem| loop_file::tell("error", problem));
            remark(warnings);
            output::tell(&format!("outlast: {}", counted(errors.len() + in_config, "problem")));
            return Ok(());
        }
    };
    remark(&loaded.warnings);
    if args.explain {
        let look = Look { columns: world.columns(), colours: world.colours() };
        return output::print(&table(&loaded.explained).render(look));
    }
    let warnings = loaded.warnings.iter().filter(|it| it.code != Code::NoEffect).count();
    let with = match warnings {
        0 => String::new(),
        warnings => format!(", with {}", counted(warnings, "warning")),
    };
    let effective = &loaded.effective;
    let agent = agent(loaded);
    let place = place(effective, here, Path::new(name));
    let first = printable(&format!("{name} is valid{with}: {agent}, {place}"));
    let is_wide = world.columns().is_some_and(|columns| first.chars().count() > columns);
    let first = match is_wide {
        true => printable(&format!("{name} is valid{with}: {agent}")) + "\n  " + &printable(&place),
        false => first,
    };
    let envelope = outlast_workflow::envelope(effective);
    output::say(&format!("{first}\n  {}", wrapped(&printable(&envelope), world.columns())))
}

fn remark(warnings: &[Problem]) {
    for problem in warnings {
        let word = if problem.code == Code::NoEffect { "note" } else { "warning" };
        loop_file::tell(word, problem);
    }
}

/// `agent file (./agent.sh)`
fn agent(loaded: &Loaded) -> String {
    let kind = &loaded.effective.agent.kind;
    let command = loaded.explained.iter().find(|row| row.key == "agent.command");
    match command
        .map(|row| row.value.trim_end())
        .filter(|_| !loaded.effective.agent.command.is_empty())
    {
        Some(script) if script.lines().nth(1).is_some() => {
            format!("agent {kind} (a script of {} lines)", script.lines().count())
        }
        Some(command) => format!("agent {kind} ({})", shown(command)),
        None => format!("agent {kind}"),
    }
}

fn place(effective: &Effective, here: &Path, file: &Path) -> String {
    let root = effective.root.as_deref().unwrap_or(here).display();
    match effective.strategy {
        Strategy::Inplace => format!("in {}", here.display()),
        Strategy::Dir => format!("in a directory of its own in {root}"),
        Strategy::Worktree => match repository(here, &here.join(file)) {
            Some(repository) => format!("in a git worktree of {}", repository.display()),
            None => format!("in a git worktree in {root}"),
        },
    }
}

/// The parts of an envelope on as many lines as they need.
pub(super) fn wrapped(envelope: &str, columns: Option<usize>) -> String {
    const INDENT: &str = "  ";
    let Some(columns) = columns else { return envelope.to_owned() };
    let (mut text, mut used) = (String::new(), INDENT.len());
    for part in envelope.split_inclusive("; ") {
        let wide = part.trim_end().chars().count();
        if used > INDENT.len() && used + wide > columns {
            text.truncate(text.trim_end().len());
            text.push_str(&format!("\n{INDENT}"));
            used = INDENT.len();
        }
        text.push_str(part);
        used += part.chars().count();
    }
    text
}

fn table(explained: &[Explained]) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let widest = explained.iter().map(|row| from(row.origin).len()).max().unwrap_or(0);
    // Where a value comes from is what is asked, so the value gives way first.
    let mut table =
        Table::new(vec![column("KEY", 10), column("VALUE", 10), column("FROM", widest)]);
    for row in explained {
        let (key, value) = row.shown();
        table.push(vec![Cell::new(key), Cell::new(&shown(&value)), Cell::new(&from(row.origin))]);
    }
    table
}

fn from(origin: Origin) -> String {
    match origin {
        Origin::Default => "default".to_owned(),
        Origin::Workflow { line } => format!("file, line {line}"),
        Origin::Config { line } => format!("config.toml, line {line}"),
        Origin::CommandLine => "command line".to_owned(),
        Origin::Ceiling { line } => format!("ceiling, config.toml line {line}"),
    }
}

/// The start of a value that is a script; `--json` has all of it.
fn shown(value: &str) -> String {
    const LONGEST: usize = 60;
    let first = value.trim_end().lines().next().unwrap_or_default();
    let is_cut = first.chars().count() > LONGEST || value.trim_end().lines().nth(1).is_some();
    let start: String = first.chars().take(LONGEST).collect();
    if is_cut { format!("{start}…") } else { start }
}

fn as_json(found: &Result<Loaded, Refused>, config: &Refused) -> Value {
    let all = |problems: &[Problem], beside: &[Problem]| {
        beside.iter().chain(problems).map(loop_file::json).collect::<Value>()
    };
    match found {
        Ok(loaded) => json!({
            "ok": config.errors.is_empty(),
            "problems": all(&[], &config.errors),
            "warnings": all(&loaded.warnings, &config.warnings),
            "settings": loaded.explained.iter().map(setting).collect::<Value>(),
            "envelope": outlast_workflow::envelope(&loaded.effective),
            "sha256": loaded.effective.workflow.as_ref().map(|workflow| &workflow.sha256),
        }),
        Err(Refused { errors, warnings }) => json!({
            "ok": false,
            "problems": all(errors, &config.errors),
            "warnings": all(warnings, &config.warnings),
            "settings": [],
        }),
    }
}

fn setting(row: &Explained) -> Value {
    let (from, line) = match row.origin {
        Origin::Default => ("default", None),
        Origin::Workflow { line } => ("workflow", Some(line)),
        Origin::Config { line } => ("config", Some(line)),
        Origin::CommandLine => ("command_line", None),
        Origin::Ceiling { line } => ("ceiling", Some(line)),
    };
    let (name, shown) = row.shown();
    json!({ "key": row.key, "value": row.value, "name": name, "shown": shown, "from": from, "line": line })
}
