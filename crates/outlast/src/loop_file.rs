//! Loop files and the operator's config, read from disk and told about.
//!
//! What they mean is `outlast_workflow`'s business.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use outlast_client::problem;
use outlast_home::layout::Layout;
use outlast_wire::api::WorkflowFile;
use outlast_workflow::{
    Config, DEFAULT_FILE, LARGEST_FILE, Loaded, Overrides, Problem, Source, Surroundings,
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
    "put the command after --, or name a loop file with -f; see outlast run --help".to_owned()
}

/// The text of a loop file.
pub(crate) fn read(path: &Path) -> Result<String, Problem> {
    outlast_workflow::decode(path, bytes(path))
}

/// What the operator allows, and what is odd about how it is said; a config that is not there allows everything.
pub(crate) fn config(layout: &Layout) -> Result<(Config, Vec<Problem>), Vec<Problem>> {
    let path = layout.config.join("config.toml");
    match bytes(&path) {
        Err(ErrorKind::NotFound) => Ok((Config::default(), Vec::new())),
        read => {
            let text = outlast_workflow::decode(&path, read).map_err(|problem| vec![problem])?;
            Config::parse(&Source { path: &path, text: &text })
        }
    }
}

/// What a loop file amounts to here, for a person who says `overrides`.
pub(crate) fn load(
    world: &World,
    layout: &Layout,
    path: &Path,
    overrides: &Overrides,
) -> Result<Loaded, Vec<Problem>> {
    let (config, odd) = config(layout)?;
    let text = read(path).map_err(|problem| vec![problem])?;
    let env = |name: &str| world.client.var(name)?.to_str().map(str::to_owned);
    let home = world.client.var("HOME").map(PathBuf::from);
    let temp_dir = world.client.var("TMPDIR").map_or(Path::new("/tmp"), Path::new);
    let around = Surroundings {
        home: home.as_deref(),
        env: &env,
        temp_dir,
        default_root: &layout.state.join("workspaces"),
    };
    let source = Source { path, text: &text };
    let mut loaded = outlast_workflow::load(&source, &config, overrides, &around)?;
    loaded.warnings.extend(odd);
    Ok(loaded)
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
    let file =
        short.map_or_else(|| problem.file.clone(), |short| short.display().to_string().into());
    Problem { file, ..problem.clone() }
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
        output::tell(&format!("hint: {}", printable(hint)));
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
