//! The operator's `config.toml`: what a loop file may not go beyond.
//!
//! Reads no file. Tables that belong to later parts (retention) are known and left alone.

use std::collections::{BTreeMap, BTreeSet};

use outlast_engine::{HealthRules, SecretRules};

use crate::agents::{self, AgentTable};
use crate::budgets::{self, SharedBudget};
use crate::keys::CONFIG;
use crate::node::Node;
use crate::problem::{Code, Problem};
use crate::refused::Refused;
use crate::source::{LARGEST_FILE, Source, too_big};
use crate::verify::Unknown;
use crate::{notify, secrets, tables, times, values, verify};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// As messages name it.
    pub file: String,
    pub ceilings: Ceilings,
    pub concurrency: Concurrency,
    pub supervision: Supervision,
    pub approvals: Approvals,
    /// What a loop file may ask of the environment, as names that may end in `*`; `None` is everything.
    pub env_allow: Option<Vec<String>>,
    pub tools_deny: BTreeSet<String>,
    pub listen: Listen,
    pub web: Web,
    pub log: Log,
    /// The collector that traces go to.
    pub otlp: Option<String>,
    pub ping: Option<Ping>,
    pub sinks: BTreeMap<String, notify::Sink>,
    pub notify: notify::Settings,
    pub budgets: Vec<SharedBudget>,
    pub health: HealthRules,
    /// The agents that the operator has declared, by their names.
    pub agents: BTreeMap<String, AgentTable>,
    pub secrets: SecretRules,
    /// True if the daemon does not remove old runs by itself.
    pub keeps_old_runs: bool,
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

/// Who may answer a blocked run besides a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Approvals {
    /// A call from inside a run may answer the runs below that run.
    pub parents_may_answer: bool,
    /// The commands that the daemon runs for sinks and polls may answer.
    pub commands_may_answer: bool,
}

/// How a daemon goes on after one that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supervision {
    pub resumes_at_once: u32,
    pub resume_gap_ms: u64,
    /// `None` bears any number.
    pub storm_starts: Option<u32>,
}

impl Default for Supervision {
    fn default() -> Self {
        Self { resumes_at_once: 4, resume_gap_ms: 500, storm_starts: Some(5) }
    }
}

/// What `outlast web` goes by, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Web {
    /// Where it is reached from elsewhere, without a slash at its end.
    pub public_url: Option<String>,
    /// Both addresses of loopback when absent.
    pub listen: Option<String>,
    pub allow_remote: bool,
    /// Files, as PEM.
    pub certificate: Option<String>,
    pub key: Option<String>,
    pub proxy: WebProxy,
    pub roles: WebRoles,
}

/// A proxy that says who a person is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebProxy {
    pub user_header: Option<String>,
    pub secret_header: Option<String>,
    /// A file with what that header has to be.
    pub secret_file: Option<String>,
}

/// Names of people, by what they may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WebRoles {
    pub admin: Vec<String>,
    pub operator: Vec<String>,
    pub viewer: Vec<String>,
}

/// The listener besides the unix socket, as it is written: whether it can be had is the daemon's to say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listen {
    /// `None` is no such listener.
    pub address: Option<String>,
    pub allow_remote: bool,
    pub token: Option<String>,
}

/// How much the daemon's log may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub max_bytes: u64,
    /// Files, the current one among them; at least one.
    pub keep: u32,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { max_bytes: 10 << 20, keep: 5, level: "info".to_owned() }
    }
}

/// The sign of life that another service waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ping {
    pub url: String,
    pub every_ms: u64,
}

impl Config {
    /// The config and what is odd about it, or what is wrong with it.
    pub fn parse(source: &Source<'_>) -> Result<(Self, Vec<Problem>), Refused> {
        let file = source.file();
        if source.text.len() > LARGEST_FILE {
            return Err(too_big(&file).into());
        }
        let text = source.text.strip_prefix('\u{feff}').unwrap_or(source.text);
        let written = tables::parse(text).map_err(|found| {
            Problem::new(Code::ConfigParseError, &file, found.message).at(found.line)
        })?;
        let found = verify::verify(&file, &written, CONFIG, unknown);
        let root = times::in_ms(&written, CONFIG);
        let mut parts = Parts { file: &file, root: &root, errors: found.errors };
        let sinks = parts.read("sinks", notify::sinks);
        let notify = parts.read("notify", |file, root| match &sinks {
            Some(sinks) => notify::settings(file, root, sinks),
            // Which sinks there are is not known.
            None => Ok(notify::Settings::default()),
        });
        let agents = parts.read("agents", agents::agents);
        let secrets = parts.read("secrets", secrets::rules);
        parts.read("budgets", budgets::refuse_unknown_zones);
        let errors = parts.errors;
        let mut warnings = found.warnings;
        warnings.extend(budgets::remarks(&file, &root));
        match (sinks, notify, agents, secrets) {
            (Some(sinks), Some(notify), Some(agents), Some(secrets)) if errors.is_empty() => {
                Ok((Self { sinks, notify, agents, secrets, ..Self::read(file, &root) }, warnings))
            }
            _ => {
                let as_written = |problem| times::as_written(problem, &written);
                Err(Refused::new(errors.into_iter().map(as_written).collect(), warnings))
            }
        }
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
            supervision: supervision(root),
            approvals: approvals(root),
            env_allow: texts("env.allow"),
            tools_deny: texts("tools.deny").unwrap_or_default().into_iter().collect(),
            listen: listen(root),
            web: web(root),
            log: log(root),
            otlp: word(root, "otlp.endpoint"),
            ping: ping(root),
            budgets: budgets::budgets(root),
            health: budgets::health(root),
            keeps_old_runs: root.get("gc.auto").and_then(Node::flag) == Some(false),
            ..Self::default()
        }
    }
}

/// The parts of a config while they are read: what is wrong with one does not hide what is wrong with another.
struct Parts<'a> {
    file: &'a str,
    root: &'a Node,
    errors: Vec<Problem>,
}

impl Parts<'_> {
    /// A table whose types are wrong is not read further: what follows from that is no news.
    fn read<T>(
        &mut self,
        table: &str,
        read: impl FnOnce(&str, &Node) -> Result<T, Vec<Problem>>,
    ) -> Option<T> {
        let is_in = |problem: &Problem| {
            let key = problem.key.as_deref().unwrap_or_default();
            key == table || key.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'))
        };
        if self.errors.iter().any(is_in) {
            return None;
        }
        read(self.file, self.root).map_err(|wrong| self.errors.extend(wrong)).ok()
    }
}

/// What is meant by a key that is spelt wrong does not hold; a table of another name may be a later version's.
fn unknown(_: &Node, path: &str, meant: Option<&str>) -> Unknown {
    // A ceiling that stands outside of its table would not hold, and no person reads the warning of a daemon.
    match path.contains('.') || meant.is_some() {
        true => Unknown::Error,
        false => Unknown::Warning,
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

fn approvals(root: &Node) -> Approvals {
    let flag = |path| root.get(path).and_then(Node::flag).unwrap_or(false);
    Approvals {
        parents_may_answer: flag("approvals.parents_may_answer"),
        commands_may_answer: flag("approvals.commands_may_answer"),
    }
}

fn web(root: &Node) -> Web {
    let names = |path| root.get(path).map(Node::texts).unwrap_or_default();
    Web {
        public_url: word(root, "web.public_url").map(|url| url.trim_end_matches('/').to_owned()),
        listen: word(root, "web.listen"),
        allow_remote: root.get("web.allow_remote").and_then(Node::flag).unwrap_or(false),
        certificate: word(root, "web.certificate"),
        key: word(root, "web.key"),
        proxy: WebProxy {
            user_header: word(root, "web.proxy.user_header"),
            secret_header: word(root, "web.proxy.secret_header"),
            secret_file: word(root, "web.proxy.secret_file"),
        },
        roles: WebRoles {
            admin: names("web.roles.admin"),
            operator: names("web.roles.operator"),
            viewer: names("web.roles.viewer"),
        },
    }
}

fn listen(root: &Node) -> Listen {
    Listen {
        address: word(root, "listen.address"),
        allow_remote: root.get("listen.allow_remote").and_then(Node::flag).unwrap_or(false),
        token: word(root, "listen.token"),
    }
}

/// A size or a number of 0 is the default: a log that keeps nothing is none.
fn log(root: &Node) -> Log {
    let usual = Log::default();
    Log {
        max_bytes: number(root, "log.max_mb")
            .map_or(usual.max_bytes, |mb| mb.saturating_mul(1 << 20)),
        keep: count(root, "log.keep").unwrap_or(usual.keep),
        level: word(root, "log.level").unwrap_or(usual.level),
    }
}

/// Asked for more often than once in this, a URL learns nothing more.
const SHORTEST_PING_MS: u64 = 1000;
const USUAL_PING_MS: u64 = 60_000;

fn ping(root: &Node) -> Option<Ping> {
    let every_ms = root.get("ping.every").and_then(values::span).flatten();
    let every_ms = every_ms.unwrap_or(USUAL_PING_MS).max(SHORTEST_PING_MS);
    Some(Ping { url: word(root, "ping.url")?, every_ms })
}

/// A text that says something.
fn word(root: &Node, path: &str) -> Option<String> {
    root.get(path)?.text().filter(|text| !text.trim().is_empty()).map(str::to_owned)
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

fn supervision(root: &Node) -> Supervision {
    let said = |path| root.get(path).and_then(Node::whole);
    let otherwise = Supervision::default();
    Supervision {
        resumes_at_once: count(root, "supervision.resumes_at_once")
            .unwrap_or(otherwise.resumes_at_once),
        resume_gap_ms: said("supervision.resume_gap_ms")
            .and_then(|ms| u64::try_from(ms).ok())
            .unwrap_or(otherwise.resume_gap_ms),
        storm_starts: match said("supervision.storm_starts") {
            Some(starts) => u32::try_from(starts).ok().filter(|starts| *starts > 0),
            None => otherwise.storm_starts,
        },
    }
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
        let parsed = Config::parse(&Source { path: Path::new("config.toml"), text });
        parsed.map_err(|refused| refused.errors)
    }

    #[test]
    fn a_typo_beside_an_error_and_an_error_in_each_table_are_told_together() {
        let problems = parse(
            "[ceilings]\nmax_turn = 3\nmax_tokens = \"few\"\n[sinks.a]\nkind = \"webhook\"\n\
             [secrets]\nnames = [\"*\"]\n[agents.x]\n",
        )
        .unwrap_err();
        let lines: Vec<_> = problems.iter().filter_map(|problem| problem.line).collect();
        assert_eq!(lines, [2, 3, 4, 7, 8]);
        assert_eq!(problems[0].hint.as_deref(), Some("did you mean ceilings.max_turns?"));
    }

    #[test]
    fn a_ceiling_outside_of_its_table_was_a_warning_and_did_not_hold() {
        let problems = parse("max_cost_usd = 1\nmax_turns = 3\n").unwrap_err();
        let lines: Vec<_> = problems.iter().filter_map(|problem| problem.line).collect();
        assert_eq!(lines, [1, 2]);
        assert!(parse("[of_a_later_version]\nx = 1\n").is_ok());
    }

    #[test]
    fn a_ceiling_is_a_length_of_time_with_its_unit() {
        let (config, warnings) = parse(
            "[ceilings]\nrun_timeout = \"12h\"\n[ping]\nurl = \"http://x\"\nevery = \"5m\"\n",
        )
        .unwrap();
        assert_eq!(warnings, []);
        assert_eq!(
            config.ceilings.get("run_timeout_ms"),
            Some(Ceiling { most: 43_200_000, line: 2 })
        );
        let problems =
            parse("[ceilings]\nrun_timeout = \"12h\"\nrun_timeout_ms = 5\n").unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            "config.toml:3: ceilings.run_timeout: is given twice: also as run_timeout_ms, first on line 2"
        );
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
    fn a_restart_can_be_made_slower_and_the_breaker_be_turned_off() {
        let (config, _) = parse("").unwrap();
        assert_eq!(config.supervision, Supervision::default());
        let text = "[supervision]\nresumes_at_once = 1\nresume_gap_ms = 0\nstorm_starts = 0\n";
        let (config, warnings) = parse(text).unwrap();
        assert_eq!(warnings, []);
        let Supervision { resumes_at_once, resume_gap_ms, storm_starts } = config.supervision;
        assert_eq!((resumes_at_once, resume_gap_ms, storm_starts), (1, 0, None));
    }

    #[test]
    fn what_the_operator_sees_has_its_defaults() {
        let (config, warnings) = parse("[listen]\naddress = \"\"\n[log]\nkeep = 0\n").unwrap();
        assert_eq!(warnings, []);
        assert_eq!(config.listen, Listen::default());
        assert_eq!(config.log, Log { max_bytes: 10 << 20, keep: 5, level: "info".to_owned() });
        assert_eq!((config.otlp, config.ping), (None, None));
        let (config, _) = parse(
            "[listen]\naddress = \"[::1]:9\"\ntoken = \"t\"\n[log]\nmax_mb = 1\nkeep = 2\nlevel = \"debug\"\n\
             [ping]\nurl = \"http://x/\"\nevery = \"0\"\n[otlp]\nendpoint = \"http://c\"\n",
        )
        .unwrap();
        assert_eq!(config.listen.address.as_deref(), Some("[::1]:9"));
        assert_eq!(config.log, Log { max_bytes: 1 << 20, keep: 2, level: "debug".to_owned() });
        assert_eq!(config.ping, Some(Ping { url: "http://x/".to_owned(), every_ms: 1000 }));
        assert_eq!(config.otlp.as_deref(), Some("http://c"));
        assert!(parse("[log]\nlevel = \"loud\"\n").is_err());
    }

    #[test]
    fn a_whole_number_of_dollars_is_dollars() {
        let (config, _) = parse("[ceilings]\nmax_cost_usd = 3\n").unwrap();
        assert_eq!(config.ceilings.get("max_cost_usd").unwrap().most, 3_000_000);
    }

    #[test]
    fn tables_of_later_parts_never_warn_of_unknown_keys() {
        let text = "[retention]\nc = 3\n";
        let (_, warnings) = parse(text).unwrap();
        assert!(warnings.iter().all(|warning| warning.code.word() == "no_effect"), "{warnings:?}");
    }

    #[test]
    fn a_bad_value_and_an_unknown_key_say_where() {
        let problems = parse("[ceilings]\nmax_turns = \"many\"\n").unwrap_err();
        assert_eq!(
            problems[0].to_string(),
            "config.toml:2: ceilings.max_turns: must be a whole number, got \"many\""
        );
        let problems = parse("[ceiling]\nmax_turns = 1\n").unwrap_err();
        assert_eq!(
            (problems[0].line, problems[0].hint.as_deref()),
            (Some(1), Some("did you mean ceilings?"))
        );
        let (_, warnings) = parse("[weather]\nrain = 1\n").unwrap();
        assert_eq!((warnings[0].line, warnings[0].code.word()), (Some(1), "unknown_key"));
        assert_eq!(parse("[ceilings\n").unwrap_err()[0].code.word(), "config_parse_error");
    }
}
