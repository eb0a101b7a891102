//! Loop files and the operator's config, read from disk and told about.
//!
//! What they mean is `outlast_workflow`'s business.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use outlast_client::problem;
use outlast_home::directory::broken_link;
use outlast_home::layout::Layout;
use outlast_wire::api::WorkflowFile;
use outlast_workflow::{
    Code, Config, DEFAULT_FILE, LARGEST_FILE, Loaded, Look, Overrides, Problem, Refused, Source,
    Surroundings, behind_broken_link,
};
use serde_json::{Value, json};

use crate::output::{self, printable};
use crate::world::World;

/// A loop file named from `here`, as the daemon is told it.
pub(crate) fn named(here: &Path, file: &Path) -> Result<WorkflowFile, problem::Problem> {
    let path = here.join(file);
    let path = std::path::absolute(&path).unwrap_or(path);
    let text = read(&path).map_err(|found| refusal(&found))?;
    let path = path.into_os_string().into_string().map_err(|path| {
        let message = format!("the path {} is not UTF-8", path.display());
        problem::Problem::refusal("not_utf8", message).hint("reach it through a symbolic link")
    })?;
    Ok(WorkflowFile { path, text })
}

/// What to type when neither a command nor a file was named.
pub(crate) fn hint(here: &Path) -> String {
    if here.join(DEFAULT_FILE).is_file() {
        return format!("outlast run -f {DEFAULT_FILE}");
    }
    "name a command, or a loop file with -f:\noutlast run --help".to_owned()
}

/// The text of a loop file.
pub(crate) fn read(path: &Path) -> Result<String, Problem> {
    outlast_workflow::decode(path, bytes(path))
}

/// What the operator allows, and what is odd about how it is said; a config that is not there allows everything.
pub(crate) fn config(layout: &Layout) -> Result<(Config, Vec<Problem>), Refused> {
    let path = layout.config_file();
    if let Some(link) = broken_link(&path) {
        return Err(behind_broken_link(&path, &link).into());
    }
    match bytes(&path) {
        Err(ErrorKind::NotFound) => Ok((Config::default(), Vec::new())),
        read => {
            let text = outlast_workflow::decode(&path, read)?;
            Config::parse(&Source { path: &path, text: &text })
        }
    }
}

/// Warns that the config is wrong now, so that what a command did or showed goes by older settings.
pub(crate) fn mention_wrong_config(world: &World) -> Result<(), problem::Problem> {
    let Err(Refused { errors, .. }) = config(world.client.layout()?) else { return Ok(()) };
    let Some(first) = errors.first() else { return Ok(()) };
    let more = match errors.len() {
        1 => String::new(),
        many => format!(" ({} more)", many - 1),
    };
    let first = Problem { file: "config.toml".into(), ..first.clone() };
    let line = format!("{first}{more}; the last valid settings hold\nhint: outlast config check");
    output::errors::warn(&[line]);
    Ok(())
}

/// What a loop file amounts to here, and beside it what is wrong with the config. With a config that is wrong the file
/// is looked at as if there were none.
pub(crate) fn load_beside(
    world: &World,
    layout: &Layout,
    path: &Path,
    overrides: &Overrides,
) -> (Result<Loaded, Refused>, Refused) {
    let wrong = match config(layout) {
        Ok(_) => Refused { errors: Vec::new(), warnings: Vec::new() },
        Err(wrong) => wrong,
    };
    if wrong.errors.is_empty() {
        return (load(world, layout, path, overrides), wrong);
    }
    let alone = settled(world, layout, (path, read(path)), &Config::default(), overrides);
    // Of a config that is wrong nothing is known, sinks and agents among it.
    let is_known =
        |problem: &Problem| !matches!(problem.code, Code::UnknownSink | Code::UnknownKind);
    let alone = alone.map_err(|mut refused| {
        refused.errors.retain(is_known);
        refused
    });
    (alone, wrong)
}

/// What a loop file amounts to here, for a person who says `overrides`. What is wrong with the config and with the
/// file is told together.
pub(crate) fn load(
    world: &World,
    layout: &Layout,
    path: &Path,
    overrides: &Overrides,
) -> Result<Loaded, Refused> {
    let text = read(path);
    load_text(world, layout, (path, text), overrides)
}

/// The same of a text that is at this path, or will be.
pub(crate) fn load_text(
    world: &World,
    layout: &Layout,
    (path, text): (&Path, Result<String, Problem>),
    overrides: &Overrides,
) -> Result<Loaded, Refused> {
    let (config, odd, wrong) = match config(layout) {
        Ok((config, odd)) => (config, odd, Vec::new()),
        Err(refused) => (Config::default(), refused.warnings, refused.errors),
    };
    match settled(world, layout, (path, text), &config, overrides) {
        Ok(mut loaded) => {
            loaded.warnings.extend(odd);
            if wrong.is_empty() {
                return Ok(loaded);
            }
            Err(Refused { errors: wrong, warnings: loaded.warnings })
        }
        Err(mut refused) => {
            // Of a config that is wrong nothing is known, sinks and agents among it.
            let is_known = |problem: &Problem| {
                wrong.is_empty() || !matches!(problem.code, Code::UnknownSink | Code::UnknownKind)
            };
            refused.errors.retain(is_known);
            refused.errors.extend(wrong);
            refused.warnings.extend(odd);
            Err(refused)
        }
    }
}

/// The file under this config.
fn settled(
    world: &World,
    layout: &Layout,
    (path, text): (&Path, Result<String, Problem>),
    config: &Config,
    overrides: &Overrides,
) -> Result<Loaded, Refused> {
    let text = text.map_err(|problem| Refused { errors: vec![problem], warnings: Vec::new() })?;
    let env = |name: &str| world.client.var(name)?.to_str().map(str::to_owned);
    let home = world.client.var("HOME").map(PathBuf::from);
    let temp_dir = world.client.var("TMPDIR").map_or(Path::new("/tmp"), Path::new);
    let around = Surroundings {
        home: home.as_deref(),
        env: &env,
        temp_dir,
        default_root: &layout.state.join("workspaces"),
    };
    outlast_workflow::load(&Source { path, text: &text }, config, overrides, &around)
}

/// True of the script that `init` writes, before a person has put an agent into it.
pub(crate) fn is_placeholder(script: &str) -> bool {
    let says = "no agent is set: put its command into WORKFLOW.md, where it says agent()";
    script.contains(says) && script.contains("return 64\n")
}

/// What is at a path that a program is looked for at.
pub(crate) fn look(path: &Path) -> Look {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Look::Nothing,
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Look::NotExecutable,
        Ok(_) => Look::Program,
        Err(_) => Look::Nothing,
    }
}

/// No more than a file may have, and only of a file: anything else might never end.
fn bytes(path: &Path) -> Result<Vec<u8>, ErrorKind> {
    let kind = |error: std::io::Error| error.kind();
    let metadata = std::fs::metadata(path).map_err(kind)?;
    if metadata.is_dir() {
        return Err(ErrorKind::IsADirectory);
    }
    if !metadata.is_file() {
        return Err(ErrorKind::InvalidInput);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(kind)?;
    file.take(LARGEST_FILE as u64 + 1).read_to_end(&mut bytes).map_err(kind)?;
    Ok(bytes)
}

/// Files below the current directory go by their short names.
pub(crate) fn shortened(problem: &Problem, here: &Path) -> Problem {
    let short = Path::new(&*problem.file).strip_prefix(here).ok();
    let file = match short {
        Some(short) if short.as_os_str().is_empty() => ".".into(),
        Some(short) => short.display().to_string().into(),
        None => problem.file.clone(),
    };
    Problem { file, ..problem.clone() }
}

/// The same of everything that the daemon says about a file.
pub(crate) fn shortened_all(found: problem::Problem, here: &Path) -> problem::Problem {
    let problem::Problem::Told { mut info, exit } = found else { return found };
    if info.problems.is_empty() {
        return problem::Problem::Told { info, exit };
    }
    let prefix = format!("{}/", here.display());
    info.message = info.message.replace(&prefix, "");
    for row in &mut info.problems {
        row.file = row.file.replace(&prefix, "");
    }
    problem::Problem::Told { info, exit }
}

pub(crate) fn json(problem: &Problem) -> Value {
    json!({
        "code": problem.code.word(),
        "file": problem.file,
        "line": problem.line,
        "key": problem.key,
        "message": problem.message,
        "hint": problem.hint,
    })
}

/// Says one of many problems, under a word for how bad it is.
pub(crate) fn tell(word: &str, problem: &Problem) {
    output::tell(&format!("{word}: {}", printable(&problem.to_string())));
    if let Some(hint) = &problem.hint {
        output::tell_hint(hint);
    }
}

/// A command that a single problem ends.
pub(crate) fn refusal(found: &Problem) -> problem::Problem {
    let refusal = problem::Problem::refusal(found.code.word(), found);
    match &found.hint {
        Some(hint) => refusal.hint(hint),
        None => refusal,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(dir: &Path, name: &str, bytes: &[u8]) {
        File::create(dir.join(name)).and_then(|mut file| file.write_all(bytes)).expect("a file");
    }

    fn code(read: Result<WorkflowFile, problem::Problem>) -> String {
        match read {
            Err(problem::Problem::Told { info, exit: 2 }) => info.code.to_string(),
            other => panic!("not a refusal: {other:?}"),
        }
    }

    #[test]
    fn a_file_is_named_from_where_we_are() {
        let dir = tempfile::tempdir().expect("a directory");
        file(dir.path(), DEFAULT_FILE, b"---\nagent: {}\n---\nDo it\n");
        let read = named(dir.path(), Path::new("./WORKFLOW.md")).expect("it is there");
        assert_eq!(read.path, dir.path().join(DEFAULT_FILE).display().to_string());
        assert_eq!(read.text, "---\nagent: {}\n---\nDo it\n");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_refused_with_its_path() {
        let dir = tempfile::tempdir().expect("a directory");
        file(dir.path(), "large", &vec![b'a'; (1 << 20) + 1]);
        file(dir.path(), "largest", &vec![b'a'; 1 << 20]);
        file(dir.path(), "binary", &[0xff, 0xfe]);
        let read = |name: &str| named(dir.path(), Path::new(name));
        assert_eq!(code(read("none")), "missing_workflow_file");
        assert_eq!(code(read("binary/none")), "missing_workflow_file");
        assert_eq!(code(read("large")), "file_too_big");
        assert_eq!(code(read("binary")), "not_utf8");
        assert_eq!(code(read(".")), "unreadable_file");
        assert!(read("largest").is_ok());
        let Err(problem::Problem::Told { info, .. }) = read("none") else {
            panic!("it is refused")
        };
        assert!(info.message.contains(&dir.path().join("none").display().to_string()));
    }

    #[test]
    fn a_file_that_lies_about_is_pointed_at() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(hint(dir.path()).contains("--help"));
        file(dir.path(), DEFAULT_FILE, b"");
        assert_eq!(hint(dir.path()), "outlast run -f WORKFLOW.md");
    }
}
