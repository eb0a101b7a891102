//! `outlast agents`: the coding agents that can be driven; which are here, and whether one works.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

use outlast_agents::adapter::{Cost, DRIVEN, Driven, driven};
use outlast_client::ask::Ask;
use outlast_client::environment::lookup;
use outlast_client::problem::{Problem, REFUSED};
use outlast_client::session::Session;
use outlast_program::{Beyond, Ended, Limits};
use outlast_wire::api::RunView;
use outlast_wire::codes::Code;
use serde_json::{Value, json};

use crate::Answer;
use crate::args::{Agents, AgentsCommand, TestAgent};
use crate::money;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, figures};
use crate::world::World;

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
    kind: &'static Driven,
    program: Option<PathBuf>,
    version: Option<String>,
}

async fn list(world: &World, json: bool) -> Answer {
    let mut found = Vec::new();
    for kind in &DRIVEN {
        let program = if kind.needs_command { None } else { on_path(world, kind.name) };
        let version = match &program {
            Some(program) => version(world, program).await,
            None => None,
        };
        found.push(Here { kind, program, version });
    }
    if json {
        output::print_json(&Value::Array(found.iter().map(object).collect()))?;
        return Ok(0);
    }
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&table(&found).render(look))?;
    Ok(0)
}

fn object(here: &Here) -> Value {
    let can = here.kind.capabilities;
    json!({
        "kind": here.kind.name,
        "program": here.program.as_ref().map(|path| path.display().to_string()),
        "version": here.version,
        "tested": here.kind.tested,
        "login": here.kind.login,
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
        column("PROGRAM", 10),
    ]);
    for here in found {
        let can = here.kind.capabilities;
        let yes = |is: bool| if is { "yes" } else { "no" }.to_owned();
        let program = match &here.program {
            Some(path) => path.display().to_string(),
            None if here.kind.needs_command => "agent.command names it".to_owned(),
            None => "not on PATH".to_owned(),
        };
        let words = [
            here.kind.name.to_owned(),
            here.version.clone().unwrap_or_else(|| "-".to_owned()),
            here.kind.tested.join(", "),
            yes(can.resume),
            yes(can.approvals),
            yes(can.cost == Cost::Reported),
            program,
        ];
        table.push(words.iter().map(|word| Cell::new(word)).collect());
    }
    table
}

/// The program as the shell would find it.
fn on_path(world: &World, name: &str) -> Option<PathBuf> {
    let path = lookup(&world.client.env, "PATH").unwrap_or(OsStr::new("/usr/bin:/bin"));
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    std::env::split_paths(path).map(|dir| dir.join(name)).find(is_program)
}

async fn version(world: &World, program: &std::path::Path) -> Option<String> {
    let mut command = world.tool(program.to_str()?);
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
    let known = driven(&args.kind).filter(|kind| !kind.needs_command);
    let Some(kind) = known else {
        let names: Vec<&str> =
            DRIVEN.iter().filter(|it| !it.needs_command).map(|it| it.name).collect();
        let message = format!("there is no agent {:?} to test", args.kind);
        return Err(Problem::new(REFUSED, Code::UnknownKind.word(), message)
            .hint(format_args!("one of {}", names.join(", "))));
    };
    let name = format!("agents-test-{}-{}", kind.name, std::process::id());
    let temporary = lookup(&world.client.env, "TMPDIR").unwrap_or(OsStr::new("/tmp"));
    let dir = PathBuf::from(temporary).join(&name);
    std::fs::create_dir(&dir).map_err(|error| {
        Problem::failure(format_args!("cannot make {}: {error}", dir.display()))
    })?;
    let shown = dir.display().to_string();
    let run = [
        "run",
        "--agent",
        kind.name,
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
    let spend = if usage.known {
        format!("{tokens}, {cost}")
    } else {
        format!("at least {tokens}; its price is not known")
    };
    let word = if code == 0 { "works" } else { "does not work" };
    output::print_line(&format!("{} {word}: one turn, {spend}", kind.name))?;
    Ok(u8::try_from(code).unwrap_or(1))
}
