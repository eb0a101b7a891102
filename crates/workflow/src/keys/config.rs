//! The keys of the operator's `config.toml`.

use super::{Key, Kind, idle, key};

const EXCEEDED: Kind = Kind::Word(&["wait", "end"]);
const PERIOD: Kind = Kind::Word(&["day", "total"]);

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
        "env.allow",
        Kind::Texts,
        "everything",
        "environment variables that a loop file may ask for; a name may end in *",
    ),
    key("tools.deny", Kind::Texts, "", "tools that no run may use"),
    key(
        "health.silent_after_ms",
        Kind::Millis,
        "300000",
        "a live attempt of which nothing was heard for so long is silent; 0 is never",
    ),
    key(
        "health.thrash_attempts",
        Kind::Count,
        "3",
        "so many failed attempts at one turn are thrashing; 0 is never",
    ),
    key(
        "health.near_limit_percent",
        Kind::Count,
        "80",
        "so much of a limit or budget is worth a warning; 0 is never",
    ),
    key("budgets.day.max_tokens", Kind::Millis, "no limit", "tokens of all runs in a day, UTC"),
    key("budgets.day.max_cost_usd", Kind::Money, "no limit", "money of all runs in a day, UTC"),
    key("budgets.day.on_exceed", EXCEEDED, "wait", "what becomes of runs when it is spent"),
    key("budgets.labels.*.max_tokens", Kind::Millis, "no limit", "tokens of its runs together"),
    key("budgets.labels.*.max_cost_usd", Kind::Money, "no limit", "money of its runs together"),
    key("budgets.labels.*.per", PERIOD, "total", "counted by the day (UTC), or for good"),
    key(
        "budgets.labels.*.on_exceed",
        EXCEEDED,
        "wait by the day, end for good",
        "what becomes of its runs when it is spent",
    ),
    idle("sinks.*", Kind::Map, "", "where notices go"),
    idle("agents.*", Kind::Map, "", "settings of an agent kind"),
    idle("secrets", Kind::Map, "", "values that are kept out of every output"),
    idle("retention", Kind::Map, "", "how long ended runs are kept"),
];
