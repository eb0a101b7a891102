//! The keys that the two files may have: one table each, from which everything else about keys follows.
//!
//! Unknown keys, types, defaults, `--explain` and the JSON schemas all read these tables; no key is named a
//! second time as known.

mod config;
mod find;
mod workflow;

pub(crate) use config::CONFIG;
#[cfg(test)]
pub(crate) use config::TROUBLES;
pub(crate) use find::{
    alike, below, below_any, is_section, join, lookup, names, nearest, parent, time,
};
pub(crate) use workflow::WORKFLOW;

pub(crate) struct Key {
    /// Dotted; `[]` stands for each item of a list, `*` for any name.
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    /// In words; empty where there is none.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
    pub(crate) effect: Effect,
}

impl Key {
    /// True for a length of time that has a second name, without `_ms`, which takes `10m`.
    pub(crate) fn is_time(&self) -> bool {
        self.path.ends_with("_ms")
            && matches!(self.kind, Kind::Millis | Kind::Timeout)
            && self.effect == Effect::Acts
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Acts,
    /// Known, so that a file that has it is not wrong; nothing follows from it in this version.
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A whole number from 0 to 4,294,967,295.
    Count,
    /// A whole number of milliseconds; 0 is off.
    Millis,
    /// A whole number of milliseconds that may not be 0: what it bounds has to end.
    Timeout,
    /// Milliseconds, where 0 and less is off.
    Window,
    /// US dollars with at most six decimals.
    Money,
    /// A whole number that may be negative.
    Priority,
    Flag,
    Text,
    /// One of a few words.
    Word(&'static [&'static str]),
    /// One of a few words, or a map with the keys below it, which stand after it in the table.
    WordOrMap(&'static [&'static str]),
    /// A whole number from 1 to 4,294,967,295.
    Positive,
    /// A part of a whole: more than 0 and at most 1, with at most six decimals.
    Share,
    Texts,
    /// A line for the shell, or a list of arguments.
    Command,
    /// `7d`, `12h`, `30m`, `45s`, `0` or `forever`.
    Span,
    /// May start with `~` or a `$NAME`.
    Path,
    /// A map that belongs to another program.
    Map,
    /// Where something is in a line of JSON, such as `message.usage`; or a list of such.
    Paths,
    /// What a line of JSON has where, such as `{ type = "result", ok = true }`.
    Match,
    Matches,
    Any,
}

/// A key as a manual lists it.
#[derive(Debug, Clone, Copy)]
pub struct KeyLine {
    pub path: &'static str,
    /// In words; empty where there is none.
    pub default: &'static str,
    pub about: &'static str,
    /// The words that it may be; empty if it may be more.
    pub words: &'static [&'static str],
}

/// The keys of a loop file that have an effect.
pub fn workflow_keys() -> impl Iterator<Item = KeyLine> {
    WORKFLOW.iter().filter(|key| key.effect == Effect::Acts).map(KeyLine::of)
}

/// The keys of the operator's config.toml that have an effect.
pub fn config_keys() -> impl Iterator<Item = KeyLine> {
    CONFIG.iter().filter(|key| key.effect == Effect::Acts).map(KeyLine::of)
}

impl KeyLine {
    fn of(key: &Key) -> Self {
        let words = match key.kind {
            Kind::Word(words) | Kind::WordOrMap(words) => words,
            _ => &[],
        };
        Self { path: key.path, default: key.default, about: key.about, words }
    }
}

const fn key(path: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { path, kind, default, about, effect: Effect::Acts }
}

const fn idle(path: &'static str, kind: Kind, default: &'static str, about: &'static str) -> Key {
    Key { path, kind, default, about, effect: Effect::None }
}
