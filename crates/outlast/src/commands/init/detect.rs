//! What is here: a git repository, a test command, agents that are installed.
//!
//! Looks at files and starts nothing but git.

use std::path::{Path, PathBuf};

use outlast_agents::adapter::DRIVEN;

use crate::commands::agents::on_path;
use crate::world::World;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// The root of the repository, if it has a commit to make worktrees of.
    pub(super) repository: Option<PathBuf>,
    pub(super) check: Option<String>,
    /// Agents that Outlast drives and that are on the PATH, the best known first.
    pub(super) agents: Vec<&'static str>,
}

pub(super) fn look(world: &World, here: &Path) -> Found {
    Found {
        repository: repository(world, here),
        check: test_command(here),
        agents: DRIVEN
            .iter()
            .filter(|kind| !kind.needs_command && on_path(world, kind.name).is_some())
            .map(|kind| kind.name)
            .collect(),
    }
}

fn repository(world: &World, here: &Path) -> Option<PathBuf> {
    let git = |args: &[&str]| {
        let output = world.tool("git").args(args).current_dir(here).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        output.status.success().then_some(text)
    };
    git(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
    git(&["rev-parse", "--show-toplevel"]).filter(|root| !root.is_empty()).map(PathBuf::from)
}

/// The command that people of such a project type to test it.
pub(super) fn test_command(dir: &Path) -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).ok();
    let has = |name: &str| dir.join(name).is_file();
    let target =
        |text: &str, name: &str| text.lines().any(|line| line.starts_with(&format!("{name}:")));
    if has("Cargo.toml") {
        return Some("cargo test".to_owned());
    }
    if has("go.mod") {
        return Some("go test ./...".to_owned());
    }
    if read("package.json").is_some_and(|text| has_script(&text, "test")) {
        return Some("npm test".to_owned());
    }
    let makefile = ["Makefile", "makefile", "GNUmakefile"].iter().find_map(|name| read(name));
    if let Some(text) = makefile
        && let Some(name) = ["test", "check"].iter().find(|name| target(&text, name))
    {
        return Some(format!("make {name}"));
    }
    let names_pytest =
        ["pyproject.toml", "setup.cfg", "tox.ini", "requirements-dev.txt", "requirements.txt"]
            .iter()
            .any(|name| read(name).is_some_and(|text| text.contains("pytest")));
    if has("pytest.ini") || has("conftest.py") || names_pytest {
        return Some("python3 -m pytest -q".to_owned());
    }
    if has("mix.exs") {
        return Some("mix test".to_owned());
    }
    if has("gradlew") {
        return Some("./gradlew test".to_owned());
    }
    has("pom.xml").then(|| "mvn -q test".to_owned())
}

fn has_script(package: &str, name: &str) -> bool {
    let json: serde_json::Value = serde_json::from_str(package).unwrap_or_default();
    let script = json["scripts"][name].as_str();
    // What `npm init` writes is no test.
    script.is_some_and(|script| !script.contains("no test specified"))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn each_kind_of_project_has_its_test_command() {
        type Case = (&'static [(&'static str, &'static str)], Option<&'static str>);
        let cases: [Case; 9] = [
            (&[], None),
            (&[("Cargo.toml", ""), ("Makefile", "test:\n")], Some("cargo test")),
            (&[("go.mod", "")], Some("go test ./...")),
            (&[("package.json", r#"{"scripts":{"test":"vitest"}}"#)], Some("npm test")),
            (
                &[("package.json", r#"{"scripts":{"test":"echo \"Error: no test specified\""}}"#)],
                None,
            ),
            (&[("Makefile", "all:\ncheck: all\n")], Some("make check")),
            (&[("pyproject.toml", "[tool.pytest.ini_options]")], Some("python3 -m pytest -q")),
            (&[("conftest.py", "")], Some("python3 -m pytest -q")),
            (&[("pom.xml", "")], Some("mvn -q test")),
        ];
        for (files, expected) in cases {
            let dir = tempfile::tempdir().expect("a directory");
            for (name, text) in files {
                let mut file = std::fs::File::create(dir.path().join(name)).expect("a file");
                file.write_all(text.as_bytes()).expect("written");
            }
            assert_eq!(test_command(dir.path()).as_deref(), expected, "{files:?}");
        }
    }
}
