//! `outlast agents`: the coding agents that can be driven; which are here, and whether one works.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_agents::adapter::{Capabilities, Cost, DRIVEN, Declared, Driven, driven};
use outlast_client::ask::Ask;
use outlast_client::environment::lookup;
use outlast_client::problem::{Problem, REFUSED};
use outlast_client::session::Session;
use outlast_program::{Beyond, Ended, Limits};
use outlast_wire::api::RunView;
use outlast_wire::codes::Code;
use serde_json::{Value, json};

use crate::args::{Agents, AgentsCommand, TestAgent};
use crate::money;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, figures};
use crate::world::World;
use crate::{Answer, loop_file};

/// An agent that takes longer to say its version is shown without one.
const VERSION: Limits = Limits {
    within: Duration::from_secs(10),
    most_stdout: 4 << 10,
    most_stderr: 4 << 10,
    beyond: Beyond::Dropped,
};

const TASK: &str =
    "This is a test of your connection. Use no tool. Answer with the one word: ready";

pub(crate) async fn agents(world: &World, args: Agents) -> Answer {
    match args.command {
        Some(AgentsCommand::Test(test_args)) => test(world, &test_args).await,
        None => list(world, args.json).await,
    }
}

/// What is known of one kind on this machine.
struct Here {
    kind: String,
    capabilities: Capabilities,
    tested: &'static [&'static str],
    login: Option<String>,
    needs_command: bool,
    /// By whom the kind is described.
    from: From,
    program: Option<PathBuf>,
    version: Option<String>,
}

enum From {
    BuiltIn,
    /// The operator, in `config.toml`; and which built-in kind it is like.
    Config {
        like: Option<String>,
    },
}

async fn list(world: &World, json: bool) -> Answer {
    let mut found = Vec::new();
    for kind in DRIVEN {
        found.push(built_in(world, kind).await);
    }
    // A config that is wrong hides no agent that is built in.
    let config = loop_file::config(world.client.layout()?);
    let (agents, wrong) = match config {
        Ok((config, _)) => (config.agents, Vec::new()),
        Err(refused) => (BTreeMap::new(), refused.errors),
    };
    for (name, table) in &agents {
        found.push(declared(world, name, &table.declared).await);
    }
    if json {
        output::print_json(&Value::Array(found.iter().map(object).collect()))?;
    } else {
        let look = Look { columns: world.columns(), colours: world.colours() };
        output::print(&table(&found).render(look))?;
    }
    wrong.iter().for_each(|problem| loop_file::tell("error", problem));
    Ok(if wrong.is_empty() { 0 } else { REFUSED })
}

async fn built_in(world: &World, kind: &Driven) -> Here {
    let program = if kind.needs_command { None } else { on_path(world, kind.name) };
    Here {
        kind: kind.name.to_owned(),
        capabilities: kind.capabilities,
        tested: kind.tested,
        login: Some(kind.login.to_owned()),
        needs_command: kind.needs_command,
        from: From::BuiltIn,
        version: version(world, program.as_deref()).await,
        program,
    }
}

async fn declared(world: &World, name: &str, table: &Declared) -> Here {
    let own = table.command.first();
    let program = own.or(table.like.as_ref()).and_then(|program| on_path(world, program));
    // What a program of the operator's does with `--version` is not known: it may be a shell or an interpreter.
    let asked = if own.is_none() { program.as_deref() } else { None };
    Here {
        kind: name.to_owned(),
        capabilities: table.capabilities(),
        tested: &[],
        login: table.login().map(str::to_owned),
        needs_command: false,
        from: From::Config { like: table.like.clone() },
        version: version(world, asked).await,
        program,
    }
}

fn object(here: &Here) -> Value {
    let can = here.capabilities;
    let (is_declared, like) = match &here.from {
        From::BuiltIn => (false, None),
        From::Config { like } => (true, like.as_ref()),
    };
    json!({
        "kind": here.kind,
        "program": here.program.as_ref().map(|path| path.display().to_string()),
        "version": here.version,
        "tested": here.tested,
        "login": here.login,
        "declared": is_declared,
        "like": like,
        "capabilities": {
            "resume": can.resume, "cost": can.cost == Cost::Reported, "reset_time": can.reset_time,
            "steer": can.steer, "cancel": can.cancel, "approvals": can.approvals, "mcp": can.mcp,
            "structured_end": can.structured_end,
        },
    })
}

fn table(found: &[Here]) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![
        column("KIND", 8),
        column("VERSION", 8),
        column("TESTED WITH", 8),
        column("RESUMES", 7),
        column("ASKS", 4),
        column("PRICE", 5),
        column(
            "PROGRAM",
            found.iter().map(|here| program(here).chars().count()).max().unwrap_or(0),
        ),
    ])
    .dropping(&["TESTED WITH", "PRICE", "ASKS", "RESUMES"]);
    for here in found {
        let can = here.capabilities;
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let tested = match &here.from {
            From::BuiltIn => here.tested.join(", "),
            From::Config { like: Some(kind) } => format!("config.toml, like {kind}"),
            From::Config { like: None } => "config.toml".to_owned(),
        };
        let words = [
            here.kind.clone(),
            here.version.clone().unwrap_or_else(|| "-".to_owned()),
            tested,
            yes(can.resume),
            yes(can.approvals),
            yes(can.cost == Cost::Reported),
            program(here),
        ];
        table.push(words.iter().map(|word| Cell::new(word)).collect());
    }
    table
}

/// Where the program is. The end of a long path says more than its start.
fn program(here: &Here) -> String {
    const LONGEST: usize = 40;
    let path = match &here.program {
        Some(path) => path.display().to_string(),
        None if here.needs_command => return "agent.command names it".to_owned(),
        None => return "not installed".to_owned(),
    };
    let cut = path.chars().count().saturating_sub(LONGEST - 1);
    if cut <= 1 { path } else { format!("…{}", path.chars().skip(cut).collect::<String>()) }
}

/// The program as the shell would find it; a name with a slash is a path.
pub(super) fn on_path(world: &World, name: &str) -> Option<PathBuf> {
    let path = lookup(&world.client.env, "PATH").unwrap_or(OsStr::new("/usr/bin:/bin"));
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(is_program);
    }
    std::env::split_paths(path).map(|dir| dir.join(name)).find(is_program)
}

async fn version(world: &World, program: Option<&Path>) -> Option<String> {
    let mut command = world.tool(program?.to_str()?);
    command.arg("--version");
    let Ok(Ended::Exited { stdout, .. }) = outlast_program::run(command, VERSION).await else {
        return None;
    };
    let text = stdout.text();
    let is_version =
        |word: &&str| word.starts_with(|it: char| it.is_ascii_digit()) && word.contains('.');
    text.split_whitespace().find(is_version).map(str::to_owned)
}

async fn test(world: &World, args: &TestAgent) -> Answer {
    let kind = testable(world, &args.kind)?;
    let name = format!("agents-test-{kind}-{}", std::process::id());
    let temporary = lookup(&world.client.env, "TMPDIR").unwrap_or(OsStr::new("/tmp"));
    let dir = PathBuf::from(temporary).join(&name);
    std::fs::create_dir(&dir).map_err(|error| {
        Problem::failure(format_args!("cannot make {}: {error}", dir.display()))
    })?;
    let shown = dir.display().to_string();
    let run = [
        "run",
        "--agent",
        kind,
        "--task",
        TASK,
        "--dir",
        &shown,
        "--name",
        &name,
        "--max-turns",
        "1",
    ];
    let ended = world.run_verb(&run)?.wait();
    // Whatever the agent made there is of no further use.
    let _left = std::fs::remove_dir_all(&dir);
    let code = ended.ok().and_then(|status| status.code()).unwrap_or(1);
    let view: RunView =
        Session::new(&world.client).call(&Ask::get(&format!("/v1/runs/{name}"))).await?;
    let usage = &view.usage;
    let tokens = figures::tokens(usage.input_tokens.saturating_add(usage.output_tokens));
    let cost = money::dollars(usage.cost_usd);
    let spend = if view.turns_committed == 0 && usage.cost_usd == 0.0 {
        "nothing reported".to_owned()
    } else if usage.known {
        format!("{tokens}, {cost}")
    } else {
        format!("at least {tokens}; its price is not known")
    };
    let word = if code == 0 { "works" } else { "does not work" };
    output::print_line(&format!("{kind} {word}: one turn, {spend}"))?;
    Ok(u8::try_from(code).unwrap_or(1))
}

/// The kind, if its program is known: a built-in one, or one of the config.
fn testable<'k>(world: &World, kind: &'k str) -> Result<&'k str, Problem> {
    if driven(kind).is_some_and(|kind| !kind.needs_command) {
        return Ok(kind);
    }
    let (config, _) = loop_file::config(world.client.layout()?)
        .map_err(|refused| refused.errors.first().map_or_else(no_config, loop_file::refusal))?;
    if config.agents.contains_key(kind) {
        return Ok(kind);
    }
    let built_in = DRIVEN.iter().filter(|it| !it.needs_command).map(|it| it.name);
    let names: Vec<&str> = built_in.chain(config.agents.keys().map(String::as_str)).collect();
    let message = format!("there is no agent {kind:?} to test");
    let problem = Problem::new(REFUSED, Code::UnknownKind.word(), message);
    Err(problem.hint(format_args!("one of {}", names.join(", "))))
}

fn no_config() -> Problem {
    Problem::failure("config.toml cannot be used")
}
