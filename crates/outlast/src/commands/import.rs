//! `outlast import`: a file written for another runner, as a loop file of ours.

use std::io::{ErrorKind, Write};
use std::path::Path;

use outlast_client::problem::{Problem, REFUSED};
use outlast_workflow::import::{self, Imported, Unmapped};
use outlast_workflow::{Code, Overrides, Source};
use serde_json::{Value, json};

use super::check;
use crate::args::{Import, ImportFrom};
use crate::output::{self, printable};
use crate::world::World;
use crate::{Answer, loop_file};

pub(crate) fn import(world: &World, args: Import) -> Answer {
    let path = world.current_dir()?.join(&args.file);
    let text = loop_file::read(&path).map_err(|problem| loop_file::refusal(&problem))?;
    let source = Source { path: &args.file, text: &text };
    let imported = match args.from {
        ImportFrom::Symphony => import::symphony(&source),
        ImportFrom::Ace => import::ace(&source),
    };
    let imported = match imported {
        Ok(imported) => imported,
        Err(problems) => return refused(&problems, args.json),
    };
    if let Some(output) = &args.output {
        write_new(output, &imported.text)?;
    }
    let named = args.output.as_deref().unwrap_or(&args.file);
    let problems = unusable(world, named, &imported.text)?;
    if args.json {
        output::print_json(&as_json(&imported, args.output.as_deref(), &problems))?;
        return Ok(0);
    }
    match &args.output {
        Some(output) => output::tell(&printable(&format!("wrote {}", output.display()))),
        None => output::print(&imported.text)?,
    }
    tell(&args.file, &imported.unmapped);
    problems.iter().for_each(|problem| loop_file::tell("cannot run here", problem));
    Ok(0)
}

/// Why the new file could not be run on this machine as it is.
fn unusable(
    world: &World,
    path: &Path,
    text: &str,
) -> Result<Vec<outlast_workflow::Problem>, Problem> {
    let here = world.current_dir()?;
    let path = here.join(path);
    let (layout, none) = (world.client.layout()?, Overrides::default());
    let loaded = loop_file::load_text(world, layout, (&path, Ok(text.to_owned())), &none);
    let problems = match loaded.and_then(|loaded| check::runnable(world, &here, &path, loaded)) {
        Ok(loaded) => loaded.warnings,
        Err(refused) => refused.errors,
    };
    let stops = |problem: &outlast_workflow::Problem| problem.code != Code::NoEffect;
    let problems = problems.iter().filter(|problem| stops(problem));
    Ok(problems.map(|problem| loop_file::shortened(problem, &here)).collect())
}

fn refused(problems: &[outlast_workflow::Problem], json: bool) -> Answer {
    if let ([problem], true) = (problems, json) {
        return Err(loop_file::refusal(problem));
    }
    problems.iter().for_each(|problem| loop_file::tell("error", problem));
    Ok(REFUSED)
}

/// What was left out, with each reason once.
fn tell(file: &Path, unmapped: &[Unmapped]) {
    let mut told: Vec<&str> = Vec::new();
    for Unmapped { why, .. } in unmapped {
        if told.contains(&why.as_str()) {
            continue;
        }
        told.push(why);
        let same = unmapped.iter().filter(|other| other.why == *why);
        let keys: Vec<String> =
            same.map(|Unmapped { key, line, .. }| format!("{key} (line {line})")).collect();
        let keys = keys.join(", ");
        output::tell(&printable(&format!("left out of {}: {keys}: {why}", file.display())));
    }
}

fn as_json(
    imported: &Imported,
    output: Option<&Path>,
    problems: &[outlast_workflow::Problem],
) -> Value {
    let left_out = |unmapped: &Unmapped| json!({ "key": unmapped.key, "line": unmapped.line, "why": unmapped.why });
    json!({
        "text": imported.text,
        "output": output.map(|path| path.display().to_string()),
        "unmapped": imported.unmapped.iter().map(left_out).collect::<Value>(),
        "problems": problems.iter().map(loop_file::json).collect::<Value>(),
    })
}

/// Never over a file that is there.
fn write_new(path: &Path, text: &str) -> Result<(), Problem> {
    let written = std::fs::File::create_new(path).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Problem::refusal("file_exists", format_args!("{} exists", path.display()))
                .hint("name another file, or move this one out of the way")
        }
        _ => Problem::failure(format_args!("cannot write {}: {error}", path.display())),
    })
}
