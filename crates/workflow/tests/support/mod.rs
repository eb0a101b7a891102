//! A file beside nothing: what `load` makes of a text in a world of four variables.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::Path;

use outlast_workflow::{Config, Effective, Loaded, Overrides, Problem, Source, Surroundings, load};

pub(crate) fn env(name: &str) -> Option<String> {
    match name {
        "ROOM" => Some("/room".to_owned()),
        "TRACKER_KEY" => Some("secret".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    }
}

pub(crate) fn config(text: &str) -> Config {
    let parsed = Config::parse(&Source { path: Path::new("config.toml"), text });
    parsed.expect("the config of a test is fine").0
}

pub(crate) fn load_with(
    text: &str,
    config: &Config,
    overrides: &Overrides,
) -> Result<Loaded, Vec<Problem>> {
    let around = Surroundings {
        home: Some(Path::new("/people/ada")),
        env: &env,
        temp_dir: Path::new("/tmp"),
        default_root: Path::new("/state/workspaces"),
    };
    let source = Source { path: Path::new("/repo/WORKFLOW.md"), text };
    load(&source, config, overrides, &around).map_err(|refused| refused.errors)
}

pub(crate) fn loaded(text: &str) -> Loaded {
    match load_with(text, &Config::default(), &Overrides::default()) {
        Ok(loaded) => loaded,
        Err(problems) => panic!("refused: {}", told(&problems)),
    }
}

pub(crate) fn effective(text: &str) -> Effective {
    loaded(text).effective
}

pub(crate) fn refused(text: &str) -> Vec<Problem> {
    load_with(text, &Config::default(), &Overrides::default()).expect_err("it is wrong")
}

pub(crate) fn told(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// An exec agent with more front matter, and a prompt.
pub(crate) fn exec(more: &str) -> String {
    format!("---\nagent:\n  command: ./agent\n{more}---\n{{{{ task }}}}\n")
}
