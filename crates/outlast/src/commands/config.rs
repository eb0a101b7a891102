//! `outlast config`: which file is used, whether it is valid, what holds. `edit` opens it and checks it afterwards.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use outlast_client::problem::{Problem, REFUSED};
use outlast_home::directory::broken_link;
use outlast_wire::api::ConfigStatus;
use outlast_workflow::{Explained, Origin, config_settings, duration};
use serde_json::{Value, json};

use crate::args::ConfigCommand;
use crate::output::table::{Cell, Column, Look, Table};
use crate::world::World;
use crate::{Answer, loop_file, output};

/// What a new file says.
const NEW: &str = "\
# Outlast's settings. What holds now, and the defaults:
#   outlast config show
# Every key and what it does, as a JSON schema:
#   outlast check --schema config
# Is this file valid?
#   outlast config check
";

pub(crate) fn config(world: &World, command: &ConfigCommand) -> Answer {
    let path = world.client.layout()?.config_file();
    match command {
        ConfigCommand::Path => output::print_line(&path.display().to_string()).map(|()| 0),
        ConfigCommand::Edit => edit(world, &path),
        ConfigCommand::Check { json } => check(world, &path, *json),
        ConfigCommand::Show { json } => show(world, &path, *json),
    }
}

/// What `daemon status` says of the file.
pub(crate) fn state(world: &World) -> Result<String, Problem> {
    let layout = world.client.layout()?;
    let path = layout.config_file();
    let shown = path.display();
    Ok(match loop_file::config(layout) {
        _ if !exists(&path) => format!("{shown} (does not exist, defaults hold)"),
        Ok((_, odd)) if odd.is_empty() => format!("{shown} (valid)"),
        Ok((_, odd)) => format!("{shown} (valid, {} warnings)", odd.len()),
        Err(_) => format!("{shown} (NOT VALID: outlast config check)"),
    })
}

/// The same for scripts.
pub(crate) fn status(world: &World) -> Result<ConfigStatus, Problem> {
    let layout = world.client.layout()?;
    let path = layout.config_file();
    Ok(ConfigStatus {
        exists: exists(&path),
        valid: loop_file::config(layout).is_ok(),
        path: path.display().to_string(),
    })
}

/// A link that leads nowhere stands for a file that is lost, not for one that was never written.
fn exists(path: &Path) -> bool {
    broken_link(path).is_some() || !matches!(path.try_exists(), Ok(false))
}

fn check(world: &World, path: &Path, json: bool) -> Answer {
    let shown = path.display();
    let exists = exists(path);
    let (wrong, odd) = match loop_file::config(world.client.layout()?) {
        Ok((_, odd)) => (Vec::new(), odd),
        Err(refused) => (refused.errors, refused.warnings),
    };
    if json {
        let all = |problems: &[outlast_workflow::Problem]| {
            problems.iter().map(loop_file::json).collect::<Value>()
        };
        output::print_json(&json!({
            "ok": wrong.is_empty(),
            "file": shown.to_string(),
            "exists": exists,
            "problems": all(&wrong),
            "warnings": all(&odd),
        }))?;
    } else {
        wrong.iter().for_each(|problem| loop_file::tell("error", problem));
        odd.iter().for_each(|problem| loop_file::tell("warning", problem));
        if !wrong.is_empty() {
            output::tell(&format!(
                "outlast: {shown} is not valid; the daemon keeps the last valid settings"
            ));
            output::tell_hint("outlast config edit");
        } else if exists {
            output::print_line(&format!("{shown} is valid"))?;
        } else {
            output::print_line(&format!("{shown} does not exist; defaults hold"))?;
        }
    }
    Ok(if wrong.is_empty() { 0 } else { REFUSED })
}

/// What can be read is shown, also of a file with settings that are not valid.
fn show(world: &World, path: &Path, json: bool) -> Answer {
    let wrong = loop_file::config(world.client.layout()?).err();
    let wrong = wrong.map(|refused| refused.errors).unwrap_or_default();
    let text = match loop_file::read(path) {
        Ok(text) => text,
        Err(_) if !exists(path) => String::new(),
        // Why it cannot be read is known better than from the reader of loop files.
        Err(found) => return Err(loop_file::refusal(wrong.first().unwrap_or(&found))),
    };
    // A file with a mistake in its form has no settings, and the defaults do not hold in its place.
    if let Some(first) = wrong.iter().find(|problem| problem.key.is_none()) {
        return Err(loop_file::refusal(first));
    }
    let settings = config_settings(&text);
    if json {
        output::print_json(&settings.iter().map(object).collect::<Value>())?;
        return wrong.first().map_or(Ok(0), |first| Err(loop_file::refusal(first)));
    }
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&table(&settings, &wrong).render(look))?;
    if wrong.is_empty() {
        output::tell(&format!("file: {}", state(world)?));
        return Ok(0);
    }
    check(world, path, json)
}

fn from(origin: Origin) -> (&'static str, Option<usize>) {
    match origin {
        Origin::Config { line } | Origin::Ceiling { line } | Origin::Workflow { line } => {
            ("config", Some(line))
        }
        Origin::Default | Origin::CommandLine => ("default", None),
    }
}

fn object(setting: &Explained) -> Value {
    let (from, line) = from(setting.origin);
    json!({ "key": setting.key, "value": setting.value, "from": from, "line": line })
}

fn table(settings: &[Explained], wrong: &[outlast_workflow::Problem]) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![column("KEY", 10), column("VALUE", 10), column("FROM", 17)]);
    for setting in settings {
        let is_wrong = wrong.iter().any(|it| it.key.as_deref() == Some(setting.key.as_str()));
        let from = match from(setting.origin) {
            (_, Some(line)) if is_wrong => format!("line {line}, invalid"),
            (_, Some(line)) => format!("line {line}"),
            (word, None) => word.to_owned(),
        };
        let (key, value) = for_people(setting);
        table.push(vec![Cell::new(key), Cell::new(&value), Cell::new(&from)]);
    }
    table
}

/// A time with its unit, under the name that takes it so: `supervision.resume_gap 500ms`. What a file says stays under
/// the name that the file has.
fn for_people(setting: &Explained) -> (&str, String) {
    let ms = setting.value.parse::<u64>().ok().filter(|ms| *ms > 0);
    let is_default = matches!(from(setting.origin), (_, None));
    match (setting.key.strip_suffix("_ms"), ms) {
        (Some(key), Some(ms)) if is_default => (key, duration::in_one_unit(ms)),
        (Some(_), Some(ms)) => (&setting.key, duration::in_one_unit(ms)),
        _ => (&setting.key, setting.value.clone()),
    }
}

fn edit(world: &World, path: &Path) -> Answer {
    let editor = world.client.var("VISUAL").or_else(|| world.client.var("EDITOR"));
    let editor = editor.map_or_else(|| "vi".into(), ToOwned::to_owned);
    make(path)?;
    // An editor may come with options, so a shell reads it, as for git and crontab.
    let mut command = world.tool("sh");
    let mut line = editor.clone();
    line.push(" \"$1\"");
    command.arg("-c").arg(line).arg("sh").arg(path);
    let ended = command.status().map_err(|error| {
        Problem::failure(format_args!("cannot start {}: {error}", editor.display()))
    })?;
    if !ended.success() {
        let message = format!("{} ended with {ended}", editor.display());
        return Err(
            Problem::refusal("editor_failed", message).hint("EDITOR=vi outlast config edit")
        );
    }
    check(world, path, false)
}

/// A file to open, if there is none.
fn make(path: &Path) -> Result<(), Problem> {
    let cannot = |error: std::io::Error| {
        Problem::failure(format_args!("cannot make {}: {error}", path.display()))
    };
    let dir = path.parent().map(PathBuf::from).unwrap_or_default();
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(cannot)?;
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => file.write_all(NEW.as_bytes()).map_err(cannot),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(cannot(error)),
    }
}
