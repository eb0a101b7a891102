//! The keys of the operator's `config.toml`.

use super::{Key, Kind, idle, key};

/// From the least to the most that is said.
const LOG_LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

pub(crate) const CONFIG: &[Key] = &[
    key(
        "ceilings.turn_timeout_ms",
        Kind::Millis,
        "",
        "the most that limits.turn_timeout_ms may be",
    ),
    key(
        "ceilings.stall_window_ms",
        Kind::Millis,
        "",
        "the most that limits.stall_window_ms may be",
    ),
    key("ceilings.run_timeout_ms", Kind::Millis, "", "the most that limits.run_timeout_ms may be"),
    key("ceilings.max_turns", Kind::Count, "", "the most that agent.max_turns may be"),
    key("ceilings.max_attempts", Kind::Count, "", "the most that limits.max_attempts may be"),
    key(
        "ceilings.max_stall_restarts",
        Kind::Count,
        "",
        "the most that limits.max_stall_restarts may be",
    ),
    key("ceilings.max_tokens", Kind::Millis, "", "the most that limits.max_tokens may be"),
    key("ceilings.max_cost_usd", Kind::Money, "", "the most that limits.max_cost_usd may be"),
    key(
        "ceilings.no_progress_turns",
        Kind::Count,
        "",
        "the most that limits.no_progress_turns may be",
    ),
    key("ceilings.hooks_timeout_ms", Kind::Timeout, "", "the most that hooks.timeout_ms may be"),
    key("concurrency.max_runs", Kind::Count, "no limit", "runs at once; 0 is no limit"),
    key(
        "concurrency.min_free_memory_mb",
        Kind::Millis,
        "off",
        "no run starts while less memory is free",
    ),
    key(
        "concurrency.per_label.*",
        Kind::Count,
        "no limit",
        "runs at once that have this label, `k` or `k=v`",
    ),
    key(
        "supervision.resumes_at_once",
        Kind::Count,
        "4",
        "runs that go on at once after the daemon was restarted",
    ),
    key(
        "supervision.resume_gap_ms",
        Kind::Millis,
        "500",
        "between two times that runs go on after a restart",
    ),
    key(
        "supervision.storm_starts",
        Kind::Count,
        "5",
        "deaths of the daemon in two minutes that are borne; after more it holds back what it resumes; 0 is any number",
    ),
    key(
        "env.allow",
        Kind::Texts,
        "everything",
        "environment variables that a loop file may ask for; a name may end in *",
    ),
    key("tools.deny", Kind::Texts, "", "tools that no run may use"),
    key(
        "listen.address",
        Kind::Text,
        "off",
        "where probes and inbound webhooks may ask over TCP, like 127.0.0.1:9797",
    ),
    key(
        "listen.allow_remote",
        Kind::Flag,
        "false",
        "whether listen.address may be reached from other machines",
    ),
    key("listen.token", Kind::Text, "none", "what /metrics wants as a bearer token over TCP"),
    key("log.max_mb", Kind::Count, "10", "the size at which the daemon's log is turned over"),
    key(
        "log.keep",
        Kind::Count,
        "5",
        "how many files the daemon's log may have, the current one among them",
    ),
    key("log.level", Kind::Word(&LOG_LEVELS), "info", "the least that the daemon's log takes"),
    key(
        "otlp.endpoint",
        Kind::Text,
        "off",
        "the collector that traces go to, like http://127.0.0.1:4318",
    ),
    key(
        "ping.url",
        Kind::Text,
        "off",
        "asked for regularly while the daemon is well, so that its silence is noticed",
    ),
    key("ping.every", Kind::Span, "1m", "how often"),
    idle("sinks.*", Kind::Map, "", "where notices go"),
    idle("agents.*", Kind::Map, "", "settings of an agent kind"),
    idle("secrets", Kind::Map, "", "values that are kept out of every output"),
    idle("retention", Kind::Map, "", "how long ended runs are kept"),
];
