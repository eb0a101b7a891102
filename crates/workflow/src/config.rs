//! The operator's `config.toml`: what a loop file may not go beyond.
//!
//! Reads no file. Tables that belong to later parts (sinks, agents, secrets, retention) are known and left alone.

use std::collections::{BTreeMap, BTreeSet};

use outlast_engine::HealthRules;

use crate::budgets::{self, SharedBudget};
use crate::keys::CONFIG;
use crate::node::Node;
use crate::problem::{Problem, code};
use crate::source::{LARGEST_FILE, Source, too_big};
use crate::{tables, values, verify};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// As messages name it.
    pub file: String,
    pub ceilings: Ceilings,
    pub concurrency: Concurrency,
    /// What a loop file may ask of the environment, as names that may end in `*`; `None` is everything.
    pub env_allow: Option<Vec<String>>,
    pub tools_deny: BTreeSet<String>,
    pub sinks: BTreeSet<String>,
    pub budgets: Vec<SharedBudget>,
    pub health: HealthRules,
}

/// The most that each limit may be, by the limit's own name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ceilings(BTreeMap<String, Ceiling>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ceiling {
    /// In the limit's unit: milliseconds, a count, or millionths of a dollar.
    pub most: u64,
    pub line: usize,
}

impl Ceilings {
    pub fn get(&self, name: &str) -> Option<Ceiling> {
        self.0.get(name).copied()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Concurrency {
    /// `None` is no limit.
    pub max_runs: Option<u32>,
    /// By `k` or `k=v`.
    pub per_label: BTreeMap<String, u32>,
    pub min_free_memory_mb: Option<u64>,
}

impl Config {
    /// The config and what is odd about it, or what is wrong with it.
    pub fn parse(source: &Source<'_>) -> Result<(Self, Vec<Problem>), Vec<Problem>> {
        let file = source.file();
        if source.text.len() > LARGEST_FILE {
            return Err(vec![too_big(&file)]);
        }
        let text = source.text.strip_prefix('\u{feff}').unwrap_or(source.text);
        let root = tables::parse(text).map_err(|found| {
            vec![Problem::new(code::CONFIG_PARSE, &file, found.message).at(found.line)]
        })?;
        let found = verify::verify(&file, &root, CONFIG);
        if !found.errors.is_empty() {
            return Err(found.errors);
        }
        let mut warnings = found.warnings;
        warnings.extend(budgets::remarks(&file, &root));
        Ok((Self::read(file, &root), warnings))
    }

    fn read(file: String, root: &Node) -> Self {
        let texts = |path| root.get(path).map(Node::texts);
        Self {
            file,
            ceilings: ceilings(root),
            concurrency: Concurrency {
                max_runs: count(root, "concurrency.max_runs"),
                per_label: per_label(root),
                min_free_memory_mb: number(root, "concurrency.min_free_memory_mb"),
            },
            env_allow: texts("env.allow"),
            tools_deny: texts("tools.deny").unwrap_or_default().into_iter().collect(),
            sinks: names(root, "sinks"),
            budgets: budgets::budgets(root),
            health: budgets::health(root),
        }
    }
}

/// A ceiling of 0 is none.
fn ceilings(root: &Node) -> Ceilings {
    let entries = root.get("ceilings").map_or(&[][..], Node::entries);
    let most = |node: &Node| match node.whole() {
        Some(number) => u64::try_from(number).ok(),
        None => values::money(node).ok(),
    };
    let in_unit = |name: &str, node: &Node| match name {
        "max_cost_usd" => values::money(node).ok(),
        _ => most(node),
    };
    let kept = entries.iter().filter_map(|entry| {
        let most = in_unit(&entry.key, &entry.node).filter(|most| *most > 0)?;
        Some((entry.key.clone(), Ceiling { most, line: entry.node.line }))
    });
    Ceilings(kept.collect())
}

fn per_label(root: &Node) -> BTreeMap<String, u32> {
    let entries = root.get("concurrency.per_label").map_or(&[][..], Node::entries);
    let whole = |node: &Node| node.whole().and_then(|number| u32::try_from(number).ok());
    let kept = entries.iter().filter_map(|entry| {
        let most = whole(&entry.node).filter(|most| *most > 0)?;
        Some((entry.key.clone(), most))
    });
    kept.collect()
}

fn names(root: &Node, path: &str) -> BTreeSet<String> {
    let entries = root.get(path).map_or(&[][..], Node::entries);
    entries.iter().map(|entry| entry.key.clone()).collect()
}

fn number(root: &Node, path: &str) -> Option<u64> {
    let number = root.get(path)?.whole()?;
    u64::try_from(number).ok().filter(|number| *number > 0)
}

fn count(root: &Node, path: &str) -> Option<u32> {
    number(root, path).and_then(|number| u32::try_from(number).ok())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str) -> Result<(Config, Vec<Problem>), Vec<Problem>> {
        Config::parse(&Source { path: Path::new("config.toml"), text })
    }

    #[test]
    fn the_known_tables_are_read() {
        let (config, warnings) = parse(
            "[ceilings]\nmax_turns = 10\nmax_cost_usd = 2.5\nmax_tokens = 0\n\
             [concurrency]\nmax_runs = 4\nmin_free_memory_mb = 512\n\
             [concurrency.per_label]\n\"team=a\" = 2\nnightly = 1\n\
             [env]\nallow = [\"PATH\", \"LC_*\"]\n[tools]\ndeny = [\"deploy\"]\n",
        )
        .unwrap();
        assert_eq!(warnings, []);
        assert_eq!(config.ceilings.get("max_turns"), Some(Ceiling { most: 10, line: 2 }));
        assert_eq!(config.ceilings.get("max_cost_usd").unwrap().most, 2_500_000);
        assert_eq!(config.ceilings.get("max_tokens"), None);
        assert_eq!(config.concurrency.max_runs, Some(4));
        assert_eq!(config.concurrency.per_label["team=a"], 2);
        assert_eq!(config.concurrency.min_free_memory_mb, Some(512));
        assert_eq!(config.env_allow.unwrap(), ["PATH", "LC_*"]);
        assert!(config.tools_deny.contains("deploy"));
    }

    #[test]
    fn a_whole_number_of_dollars_is_dollars() {
        let (config, _) = parse("[ceilings]\nmax_cost_usd = 3\n").unwrap();
        assert_eq!(config.ceilings.get("max_cost_usd").unwrap().most, 3_000_000);
    }

    #[test]
    fn tables_of_later_parts_never_warn_of_unknown_keys() {
        let text = "[sinks.phone]\nkind = \"ntfy\"\nanything = 1\n[agents.x]\na = 1\n[secrets]\nb = 2\n[retention]\nc = 3\n";
        let (config, warnings) = parse(text).unwrap();
        assert!(config.sinks.contains("phone"));
        assert!(warnings.iter().all(|warning| warning.code == "no_effect"), "{warnings:?}");
    }

    #[test]
    fn a_bad_value_and_an_unknown_key_say_where() {
        let problems = parse("[ceilings]\nmax_turns = \"many\"\n").unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            "config.toml:2: ceilings.max_turns: must be a whole number, got \"many\""
        );
        let (_, warnings) = parse("[ceiling]\nmax_turns = 1\n").unwrap();
        assert_eq!(
            (warnings[0].line, warnings[0].hint.as_deref()),
            (Some(1), Some("did you mean ceilings?"))
        );
        assert_eq!(parse("[ceilings\n").unwrap_err()[0].code, "config_parse_error");
    }
}
