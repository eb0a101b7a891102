//! What runs may use up together, and from when on a run is not doing well: `[budgets]` and `[health]` of
//! `config.toml`.
//!
//! Reads what the table of keys has let pass; who has spent what is not known here.

use std::collections::BTreeMap;

use outlast_engine::{Exceeded, HealthRules};

use crate::node::Node;
use crate::problem::{Code, Problem};
use crate::values;

/// One budget that runs share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedBudget {
    /// `day`, or `label team=web`.
    pub name: String,
    /// `k` or `k=v`; `None` is every run.
    pub label: Option<String>,
    pub max_tokens: Option<u64>,
    pub max_cost_usd_micros: Option<u64>,
    pub per: Period,
    pub on_exceed: Exceeded,
    /// The time zone of its days; `None` is that of the machine.
    pub tz: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// From midnight to midnight, in the budget's time zone.
    Day,
    /// For good.
    Total,
}

impl Period {
    pub fn word(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Total => "total",
        }
    }
}

impl SharedBudget {
    /// True for runs with these labels.
    pub fn covers(&self, labels: &BTreeMap<String, String>) -> bool {
        match self.label.as_deref().map(|label| label.split_once('=').ok_or(label)) {
            None => true,
            Some(Ok((key, value))) => labels.get(key).is_some_and(|its| its == value),
            Some(Err(key)) => labels.contains_key(key),
        }
    }
}

pub(crate) fn budgets(root: &Node) -> Vec<SharedBudget> {
    let day = root.get("budgets.day").map(|node| budget("day".to_owned(), None, Period::Day, node));
    let labels = root.get("budgets.labels").map_or(&[][..], Node::entries);
    let of_labels = labels.iter().map(|entry| {
        let (name, label) = (format!("label {}", entry.key), Some(entry.key.clone()));
        budget(name, label, Period::Total, &entry.node)
    });
    let usual = zone(root.get("budgets"));
    let in_zone = |budget: SharedBudget| SharedBudget { tz: budget.tz.or(usual.clone()), ..budget };
    let all = day.into_iter().chain(of_labels).filter(SharedBudget::limits_anything);
    all.map(in_zone).collect()
}

fn zone(node: Option<&Node>) -> Option<String> {
    node?.get("tz").and_then(Node::text).map(str::to_owned)
}

/// Refuses time zones that do not exist: their days would begin at another time than the operator thinks.
pub(crate) fn refuse_unknown_zones(file: &str, root: &Node) -> Result<(), Vec<Problem>> {
    let table = |key: &str| root.get(key).map(|node| (key.to_owned(), node));
    let labels = root.get("budgets.labels").map_or(&[][..], Node::entries);
    let of_labels = labels.iter().map(|it| (format!("budgets.labels.{}", it.key), &it.node));
    let tables = [table("budgets"), table("budgets.day")].into_iter().flatten().chain(of_labels);
    let wrong = tables.filter_map(|(key, node)| {
        let node = node.get("tz")?;
        let name = node.text().unwrap_or_default();
        if jiff::tz::TimeZoneDatabase::bundled().get(name).is_ok() {
            return None;
        }
        let message = format!("there is no time zone {name:?}");
        let problem = Problem::new(Code::BadTimeZone, file, message).at(node.line);
        Some(
            problem
                .key(format!("{key}.tz"))
                .hint("such as Europe/Berlin, America/Los_Angeles or UTC"),
        )
    });
    let wrong: Vec<Problem> = wrong.collect();
    if wrong.is_empty() { Ok(()) } else { Err(wrong) }
}

/// Budgets that limit nothing, which no operator writes on purpose.
pub(crate) fn remarks(file: &str, root: &Node) -> Vec<Problem> {
    let day = root.get("budgets.day").map(|node| ("budgets.day".to_owned(), node));
    let labels = root.get("budgets.labels").map_or(&[][..], Node::entries);
    let of_labels = labels.iter().map(|it| (format!("budgets.labels.{}", it.key), &it.node));
    day.into_iter()
        .chain(of_labels)
        .filter(|(_, node)| !budget(String::new(), None, Period::Day, node).limits_anything())
        .map(|(key, node)| {
            Problem::new(Code::NoEffect, file, "limits nothing")
                .at(node.line)
                .key(&key)
                .hint("give it max_tokens or max_cost_usd")
        })
        .collect()
}

impl SharedBudget {
    fn limits_anything(&self) -> bool {
        self.max_tokens.is_some() || self.max_cost_usd_micros.is_some()
    }
}

/// A maximum of 0 is none.
fn budget(name: String, label: Option<String>, usual: Period, node: &Node) -> SharedBudget {
    let some = |amount: Option<u64>| amount.filter(|amount| *amount > 0);
    let tokens = node.get("max_tokens").and_then(Node::whole).map(u64::try_from);
    let cost = node.get("max_cost_usd").and_then(|node| values::money(node).ok());
    let per = match node.get("per").and_then(Node::text) {
        Some("day") => Period::Day,
        Some("total") => Period::Total,
        _ => usual,
    };
    let on_exceed = match (node.get("on_exceed").and_then(Node::text), per) {
        (Some("wait"), _) => Exceeded::Wait,
        (Some("end"), _) => Exceeded::End,
        (_, Period::Day) => Exceeded::Wait,
        (_, Period::Total) => Exceeded::End,
    };
    SharedBudget {
        name,
        label,
        max_tokens: some(tokens.and_then(Result::ok)),
        max_cost_usd_micros: some(cost),
        per,
        on_exceed,
        tz: zone(Some(node)),
    }
}

pub(crate) fn health(root: &Node) -> HealthRules {
    let usual = HealthRules::default();
    let number = |path: &str| root.get(path).and_then(Node::whole);
    let silent = number("health.silent_after_ms").and_then(|ms| u64::try_from(ms).ok());
    let thrash = number("health.thrash_attempts").and_then(|count| u32::try_from(count).ok());
    let near = number("health.near_limit_percent").and_then(|count| u32::try_from(count).ok());
    HealthRules {
        silent_after_ms: silent.unwrap_or(usual.silent_after_ms),
        thrash_attempts: thrash.unwrap_or(usual.thrash_attempts),
        near_limit_percent: near.map_or(usual.near_limit_percent, |percent| percent.min(100)),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Config, Source};

    fn parse(text: &str) -> (Config, Vec<Problem>) {
        Config::parse(&Source { path: Path::new("config.toml"), text }).unwrap()
    }

    #[test]
    fn a_day_waits_and_a_label_ends_unless_they_say_otherwise() {
        let (config, warnings) = parse(
            "[budgets.day]\nmax_cost_usd = 20.5\n\
             [budgets.labels.\"team=web\"]\nmax_tokens = 1_000\n\
             [budgets.labels.\"v1.2\"]\nmax_tokens = 5\nper = \"day\"\non_exceed = \"end\"\n",
        );
        assert_eq!(warnings, []);
        let told: Vec<_> = config
            .budgets
            .iter()
            .map(|it| {
                (it.name.as_str(), it.max_tokens, it.max_cost_usd_micros, it.per, it.on_exceed)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("day", None, Some(20_500_000), Period::Day, Exceeded::Wait),
                ("label team=web", Some(1000), None, Period::Total, Exceeded::End),
                ("label v1.2", Some(5), None, Period::Day, Exceeded::End),
            ]
        );
        let web = BTreeMap::from([("team".to_owned(), "web".to_owned())]);
        let covers: Vec<bool> = config.budgets.iter().map(|it| it.covers(&web)).collect();
        assert_eq!(covers, [true, true, false]);
    }

    #[test]
    fn a_budget_that_limits_nothing_and_a_bad_word_are_said() {
        let (config, warnings) = parse("[budgets.day]\non_exceed = \"wait\"\n");
        assert_eq!(config.budgets, []);
        assert_eq!(warnings[0].to_string(), "config.toml:1: budgets.day: limits nothing");
        let source = "[budgets.labels.x]\nper = \"week\"\n";
        let problems =
            Config::parse(&Source { path: Path::new("config.toml"), text: source }).unwrap_err();
        assert_eq!(
            problems.errors[0].to_string(),
            "config.toml:2: budgets.labels.x.per: must be one of day, total, got \"week\""
        );
    }

    #[test]
    fn days_have_a_time_zone_and_one_that_does_not_exist_is_refused() {
        let (config, warnings) = parse(
            "[budgets]\ntz = \"Europe/Berlin\"\n[budgets.day]\nmax_tokens = 5\n\
             [budgets.labels.web]\nmax_tokens = 5\nper = \"day\"\ntz = \"Asia/Kathmandu\"\n",
        );
        assert_eq!(warnings, []);
        let zones: Vec<_> = config.budgets.iter().map(|it| it.tz.as_deref()).collect();
        assert_eq!(zones, [Some("Europe/Berlin"), Some("Asia/Kathmandu")]);
        let (config, _) = parse("[budgets.day]\nmax_tokens = 5\n");
        assert_eq!(config.budgets[0].tz, None, "the machine's");
        let text = "[budgets]\ntz = \"Mars/Base\"\n[budgets.day]\nmax_tokens = 5\n";
        let problems = Config::parse(&Source { path: Path::new("config.toml"), text }).unwrap_err();
        assert_eq!(
            problems.errors[0].to_string(),
            "config.toml:2: budgets.tz: there is no time zone \"Mars/Base\""
        );
    }

    #[test]
    fn rules_of_health_have_their_defaults() {
        let (config, _) = parse("[health]\nsilent_after_ms = 1000\nnear_limit_percent = 500\n");
        let rules = HealthRules {
            silent_after_ms: 1000,
            near_limit_percent: 100,
            ..HealthRules::default()
        };
        assert_eq!(config.health, rules);
    }
}
