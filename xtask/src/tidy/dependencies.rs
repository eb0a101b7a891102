//! Who may depend on whom, what stays out of where, and that each dependency says what it is for.

use super::Finding;
use super::manifest::{Section, dependencies};
use super::tree::File;

/// Our crates, and those of ours that each may be built upon.
const ALLOWED: [(&str, &[&str]); 19] = [
    (
        "outlast",
        &[
            "agents", "wire", "home", "program", "client", "daemon", "drive", "mcp", "shim",
            "snapshot", "web", "workflow",
        ],
    ),
    ("mcp", &["agents", "client", "wire"]),
    ("web", &["wire", "home", "client"]),
    ("client", &["wire", "home"]),
    (
        "daemon",
        &[
            "conduct", "engine", "store", "agents", "wire", "home", "program", "secrets",
            "snapshot", "workflow",
        ],
    ),
    ("conduct", &["engine", "store", "wire", "workflow"]),
    ("workflow", &["engine", "agents"]),
    ("store", &["engine"]),
    ("agents", &["engine"]),
    ("drive", &["agents", "wire", "home", "secrets"]),
    ("shim", &["wire", "home", "secrets"]),
    ("sim", &["conduct", "engine", "store", "wire", "workflow"]),
    ("snapshot", &["wire"]),
    ("program", &[]),
    ("home", &["wire"]),
    ("engine", &["words"]),
    ("wire", &["words"]),
    ("secrets", &["words"]),
    ("words", &[]),
];

/// What a shim or a driver must not carry around, a thousand times over. A shim is built upon `home` and `wire`.
const NOT_IN_SHIM: [&str; 2] = ["tokio", "rusqlite"];

const ONLY_IN_ENGINE: [&str; 3] = ["outlast-words", "serde", "thiserror"];

/// Every process and every reader of a journal is built with the words.
const ONLY_IN_WORDS: [&str; 1] = ["serde"];

pub(super) fn between_our_crates(files: &[File]) -> Vec<Finding> {
    manifests(files).flat_map(|(name, file)| between(name, file)).collect()
}

fn between(name: &str, file: &File) -> Vec<Finding> {
    let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
        return vec![Finding::failure(
            &file.path,
            1,
            format!("crate {name} is not in tidy's dependency table"),
        )];
    };
    let ours = normal(file)
        .filter_map(|(line, used)| Some((line, used.strip_prefix("outlast-")?.to_owned())));
    ours.filter(|(_, used)| !allowed.contains(&used.as_str()))
        .map(|(line, used)| {
            Finding::failure(&file.path, line, format!("{name} may not depend on {used}"))
        })
        .collect()
}

pub(super) fn kept_out(files: &[File]) -> Vec<Finding> {
    let is_kept_out = |name: &str, used: &str| match name {
        "shim" | "drive" | "home" | "wire" | "secrets" => NOT_IN_SHIM.contains(&used),
        "engine" => !ONLY_IN_ENGINE.contains(&used),
        "words" => !ONLY_IN_WORDS.contains(&used),
        "conduct" => !used.starts_with("outlast-"),
        _ => false,
    };
    let found = manifests(files)
        .flat_map(|(name, file)| normal(file).map(move |(line, used)| (name, file, line, used)));
    found
        .filter(|(name, _, _, used)| is_kept_out(name, used))
        .map(|(name, file, line, used)| {
            Finding::failure(&file.path, line, format!("{name} does without {used}"))
        })
        .collect()
}

pub(super) fn have_a_purpose(files: &[File]) -> Vec<Finding> {
    let Some(root) = files.iter().find(|file| file.path == "Cargo.toml") else { return Vec::new() };
    dependencies(root)
        .into_iter()
        .filter(|used| {
            used.section == Section::Workspace
                && !used.has_comment
                && !used.name.starts_with("outlast-")
        })
        .map(|used| {
            Finding::failure(
                &root.path,
                used.line,
                format!("{} has no comment of purpose", used.name),
            )
        })
        .collect()
}

/// The manifest of each of our crates, by the crate's folder.
fn manifests(files: &[File]) -> impl Iterator<Item = (&str, &File)> {
    files.iter().filter_map(|file| {
        let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        (!name.contains('/')).then_some((name, file))
    })
}

fn normal(file: &File) -> impl Iterator<Item = (usize, String)> + use<> {
    let used = dependencies(file).into_iter().filter(|used| used.section == Section::Normal);
    used.map(|used| (used.line, used.name))
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    fn told(rule: super::super::Rule, path: &str, text: &str) -> Vec<String> {
        rule(&files(&[(path, text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_crate_may_not_reach_where_the_table_does_not() {
        let text =
            "[dependencies]\noutlast-engine.workspace = true\noutlast-store.workspace = true\n";
        let found = told(between_our_crates, "crates/agents/Cargo.toml", text);
        assert_eq!(found, ["crates/agents/Cargo.toml:3: agents may not depend on store"]);
        let dev = "[dev-dependencies]\noutlast-engine.workspace = true\n";
        assert!(told(between_our_crates, "crates/outlast/Cargo.toml", dev).is_empty());
    }

    #[test]
    fn a_new_crate_has_to_be_put_into_the_table() {
        let found = told(between_our_crates, "crates/common/Cargo.toml", "");
        assert_eq!(
            found,
            ["crates/common/Cargo.toml:1: crate common is not in tidy's dependency table"]
        );
    }

    #[test]
    fn the_shim_the_engine_and_the_words_stay_small() {
        let shim = told(
            kept_out,
            "crates/shim/Cargo.toml",
            "[dependencies]\nlibc = \"0\"\ntokio = \"1\"\n",
        );
        assert_eq!(shim, ["crates/shim/Cargo.toml:3: shim does without tokio"]);
        let engine = told(
            kept_out,
            "crates/engine/Cargo.toml",
            "[dependencies]\nserde = \"1\"\njiff = \"0\"\n",
        );
        assert_eq!(engine, ["crates/engine/Cargo.toml:3: engine does without jiff"]);
        let words = told(kept_out, "crates/words/Cargo.toml", "[dependencies]\nutoipa = \"6\"\n");
        assert_eq!(words, ["crates/words/Cargo.toml:2: words does without utoipa"]);
    }

    #[test]
    fn a_dependency_says_what_it_is_for() {
        let text = "[workspace.dependencies]\noutlast-wire = { path = \"w\" }\na = \"1\" # for a\nb = \"1\"\n";
        assert_eq!(
            told(have_a_purpose, "Cargo.toml", text),
            ["Cargo.toml:4: b has no comment of purpose"]
        );
    }
}
