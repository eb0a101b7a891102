//! `outlast check`: what a loop file amounts to, without running it.

use outlast_client::problem::REFUSED;
use outlast_workflow::Code;
use outlast_workflow::{Explained, Loaded, Origin, Overrides, Problem};
use serde_json::{Value, json};

use crate::args::{Check, Schema};
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
    let found = loop_file::load(world, world.client.layout()?, &path, &Overrides::default());
    let found = found.map(with_what_cannot_run);
    let found = if args.strict { found.and_then(Loaded::strict) } else { found };
    let short = |problem: &Problem| loop_file::shortened(problem, &here);
    let found = found.map_err(|problems| problems.iter().map(short).collect());
    let found = found
        .map(|loaded| Loaded { warnings: loaded.warnings.iter().map(short).collect(), ..loaded });
    let status = if found.is_ok() { 0 } else { REFUSED };
    if args.json {
        output::print_json(&as_json(&found))?;
    } else {
        tell(world, &args, &found)?;
    }
    Ok(status)
}

/// A kind that is known and cannot be run yet is no mistake of the file's.
fn with_what_cannot_run(mut loaded: Loaded) -> Loaded {
    loaded.warnings.extend(outlast_workflow::runnable(&loaded.effective).err());
    loaded
}

fn tell(
    world: &World,
    args: &Check,
    found: &Result<Loaded, Vec<Problem>>,
) -> Result<(), outlast_client::problem::Problem> {
    let loaded = match found {
        Ok(loaded) => loaded,
        Err(problems) => {
            problems.iter().for_each(|problem| loop_file::tell("error", problem));
            output::tell(&format!("outlast: {}", counted(problems.len(), "problem")));
            return Ok(());
        }
    };
    for problem in &loaded.warnings {
        let word = if problem.code == Code::NoEffect { "note" } else { "warning" };
        loop_file::tell(word, problem);
    }
    if args.explain {
        let look = Look { columns: world.columns(), colours: world.colours() };
        return output::print(&table(&loaded.explained).render(look));
    }
    let agent = &loaded.effective.agent.kind;
    output::print_line(&match loaded.warnings.len() {
        0 => format!("fine: agent {agent}"),
        warnings => format!("fine, with {}: agent {agent}", counted(warnings, "remark")),
    })
}

fn counted(many: usize, word: &str) -> String {
    if many == 1 { format!("1 {word}") } else { format!("{many} {word}s") }
}

fn table(explained: &[Explained]) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![column("KEY", 10), column("VALUE", 10), column("FROM", 8)]);
    for row in explained {
        let from = match row.origin {
            Origin::Default => "default".to_owned(),
            Origin::Workflow { line } => format!("file, line {line}"),
            Origin::Config { line } => format!("config.toml, line {line}"),
            Origin::CommandLine => "command line".to_owned(),
            Origin::Ceiling { line } => format!("ceiling, config.toml line {line}"),
        };
        table.push(vec![Cell::new(&row.key), Cell::new(&shown(&row.value)), Cell::new(&from)]);
    }
    table
}

/// The start of a value that is a script; `--json` has all of it.
fn shown(value: &str) -> String {
    const LONGEST: usize = 60;
    let first = value.trim_end().lines().next().unwrap_or_default();
    let is_cut = first.chars().count() > LONGEST || value.trim_end().lines().nth(1).is_some();
    let start: String = first.chars().take(LONGEST).collect();
    if is_cut { format!("{start}…") } else { start }
}

fn as_json(found: &Result<Loaded, Vec<Problem>>) -> Value {
    let all = |problems: &[Problem]| problems.iter().map(loop_file::json).collect::<Value>();
    match found {
        Ok(loaded) => json!({
            "ok": true,
            "problems": [],
            "warnings": all(&loaded.warnings),
            "settings": loaded.explained.iter().map(setting).collect::<Value>(),
            "sha256": loaded.effective.workflow.as_ref().map(|workflow| &workflow.sha256),
        }),
        Err(problems) => {
            json!({ "ok": false, "problems": all(problems), "warnings": [], "settings": [] })
        }
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
    json!({ "key": row.key, "value": row.value, "from": from, "line": line })
}
