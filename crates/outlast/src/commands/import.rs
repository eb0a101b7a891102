//! `outlast import`: a file written for another runner, as a loop file of ours.

use std::io::{ErrorKind, Write};
use std::path::Path;

use outlast_client::problem::{Problem, REFUSED};
use outlast_workflow::Source;
use outlast_workflow::import::{self, Imported, Unmapped};
use serde_json::{Value, json};

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
    if args.json {
        output::print_json(&as_json(&imported, args.output.as_deref()))?;
        return Ok(0);
    }
    if args.output.is_none() {
        output::print(&imported.text)?;
    }
    imported.unmapped.iter().for_each(|unmapped| tell(&args.file, unmapped));
    Ok(0)
}

fn refused(problems: &[outlast_workflow::Problem], json: bool) -> Answer {
    if let ([problem], true) = (problems, json) {
        return Err(loop_file::refusal(problem));
    }
    problems.iter().for_each(|problem| loop_file::tell("error", problem));
    Ok(REFUSED)
}

fn tell(file: &Path, unmapped: &Unmapped) {
    let Unmapped { key, line, why } = unmapped;
    output::tell(&printable(&format!("left out: {}:{line}: {key}: {why}", file.display())));
}

fn as_json(imported: &Imported, output: Option<&Path>) -> Value {
    let left_out = |unmapped: &Unmapped| json!({ "key": unmapped.key, "line": unmapped.line, "why": unmapped.why });
    json!({
        "text": imported.text,
        "output": output.map(|path| path.display().to_string()),
        "unmapped": imported.unmapped.iter().map(left_out).collect::<Value>(),
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
