//! Limits and retries, each held against the operator's ceiling.

use outlast_engine::{Limits, Retry};

use super::defaults::{Defaults, INITIAL_BACKOFF_MS, MAX_BACKOFF_MS};
use super::sheet::Sheet;
use super::{AskedSpend, Origin, symphony};
use crate::config::Ceiling;
use crate::money;
use crate::problem::{Code, Problem};
use crate::{times, values};

pub(super) fn limits(sheet: &mut Sheet<'_>, defaults: &Defaults) -> Limits {
    let flags = sheet.overrides;
    Limits {
        turn_timeout_ms: Ask::new("limits.turn_timeout_ms", flags.turn_timeout_ms)
            .or(defaults.turn_timeout_ms)
            .settle(sheet),
        stall_window_ms: stall_window_ms(sheet, defaults),
        run_timeout_ms: Ask::new("limits.run_timeout_ms", flags.run_timeout_ms)
            .or(defaults.run_timeout_ms)
            .settle(sheet),
        max_turns: Ask::new("agent.max_turns", flags.max_turns.map(u64::from))
            .or(defaults.max_turns)
            .count(sheet),
        max_stall_restarts: Ask::new("limits.max_stall_restarts", None)
            .or(defaults.max_stall_restarts)
            .count(sheet),
        max_tokens: Ask::new("limits.max_tokens", flags.max_tokens).settle(sheet),
        max_cost_usd_micros: max_cost_usd_micros(sheet),
        no_progress_turns: Ask::new("limits.no_progress_turns", None)
            .or(defaults.no_progress_turns)
            .count(sheet),
    }
}

pub(super) fn asked(sheet: &Sheet<'_>) -> AskedSpend {
    let flags = sheet.overrides;
    AskedSpend {
        tokens: flags.max_tokens.is_some() || sheet.given("limits.max_tokens").is_some(),
        money: flags.max_cost_usd_micros.is_some() || sheet.given("limits.max_cost_usd").is_some(),
    }
}

/// Symphony has two windows of silence under names of its own.
fn stall_window_ms(sheet: &mut Sheet<'_>, defaults: &Defaults) -> Option<u64> {
    let ask = Ask::new("limits.stall_window_ms", sheet.overrides.stall_window_ms);
    let ask = ask.or(defaults.stall_window_ms);
    match symphony::stall_window(sheet) {
        Some((key, window)) => Ask { said_as: key, ..ask }.bound(sheet, Some(window)),
        None => ask.settle(sheet),
    }
}

fn max_cost_usd_micros(sheet: &mut Sheet<'_>) -> Option<u64> {
    let ask = Ask::new("limits.max_cost_usd", sheet.overrides.max_cost_usd_micros);
    let given = sheet.given("limits.max_cost_usd");
    let given = given.and_then(|node| Some((values::money(node).ok()?, node.line)));
    Ask { unit: Unit::Dollars, ..ask }.bound(sheet, given)
}

pub(super) fn retry(sheet: &mut Sheet<'_>, defaults: &Defaults) -> Retry {
    let flag = sheet.overrides.max_attempts.map(u64::from);
    let max_attempts = Ask::new("limits.max_attempts", flag).or(defaults.max_attempts).count(sheet);
    let initial_backoff_ms = initial_backoff_ms(sheet);
    let max_backoff_ms = max_backoff_ms(sheet, initial_backoff_ms);
    // No limit is more tries than a run has time for.
    Retry { max_attempts: max_attempts.unwrap_or(u32::MAX), initial_backoff_ms, max_backoff_ms }
}

fn initial_backoff_ms(sheet: &mut Sheet<'_>) -> u64 {
    let key = "retry.initial_backoff_ms";
    let (value, origin) = match (sheet.overrides.backoff_ms, sheet.whole(key)) {
        (Some(flag), _) => (flag, Origin::CommandLine),
        (None, Some((value, line))) => (value, Origin::Workflow { line }),
        (None, None) => (INITIAL_BACKOFF_MS, Origin::Default),
    };
    sheet.note(key, value, origin);
    value
}

/// The first wait is never cut by a longest one that is only a default.
fn max_backoff_ms(sheet: &mut Sheet<'_>, initial_ms: u64) -> u64 {
    let key = "retry.max_backoff_ms";
    let given = sheet.whole(key).or_else(|| sheet.whole("agent.max_retry_backoff_ms"));
    let (value, origin) = match given {
        Some((value, line)) => (value, Origin::Workflow { line }),
        None => (MAX_BACKOFF_MS.max(initial_ms), Origin::Default),
    };
    sheet.note(key, value, origin);
    value
}

/// One limit while it is settled; 0 is off.
struct Ask<'a> {
    key: &'a str,
    /// The key that the file used for it.
    said_as: &'a str,
    flag: Option<u64>,
    default: Option<u64>,
    unit: Unit,
}

#[derive(Clone, Copy)]
enum Unit {
    Plain,
    Millis,
    Dollars,
}

impl Unit {
    /// As a file in the units of this program has it.
    fn noted(self, value: Option<u64>) -> String {
        match (value, self) {
            (None | Some(0), _) => "off".to_owned(),
            (Some(value), Self::Plain | Self::Millis) => value.to_string(),
            (Some(value), Self::Dollars) => money::exact(value),
        }
    }

    /// As people read it.
    fn shown(self, value: u64) -> String {
        match self {
            Self::Plain => value.to_string(),
            Self::Millis => times::shown(value),
            Self::Dollars => money::shown(value),
        }
    }
}

impl<'a> Ask<'a> {
    fn new(key: &'a str, flag: Option<u64>) -> Self {
        let unit = if key.ends_with("_ms") { Unit::Millis } else { Unit::Plain };
        Self { key, said_as: key, flag, default: None, unit }
    }

    fn or(self, default: Option<u64>) -> Self {
        Self { default, ..self }
    }

    fn settle(self, sheet: &mut Sheet<'_>) -> Option<u64> {
        let given = sheet.whole(self.key);
        self.bound(sheet, given)
    }

    /// Flags come as `u32` and files were checked, so nothing is cut.
    fn count(self, sheet: &mut Sheet<'_>) -> Option<u32> {
        self.settle(sheet).map(|value| u32::try_from(value).unwrap_or(u32::MAX))
    }

    fn bound(self, sheet: &mut Sheet<'_>, file: Option<(u64, usize)>) -> Option<u64> {
        let asked = match (self.flag, file) {
            (Some(flag), _) => Some((flag, Origin::CommandLine)),
            (None, Some((value, line))) => Some((value, Origin::Workflow { line })),
            (None, None) => None,
        };
        let name = self.key.rsplit('.').next().unwrap_or(self.key);
        let ceiling = sheet.config.ceilings.get(name);
        let (value, origin) = match (asked, ceiling) {
            (Some((value, origin)), Some(ceiling)) if value == 0 || value > ceiling.most => {
                let problem = self.too_high(sheet, value, origin, ceiling);
                sheet.errors.push(problem);
                (None, origin)
            }
            (Some((value, origin)), _) => (Some(value).filter(|value| *value > 0), origin),
            (None, Some(Ceiling { most, line }))
                if self.default.is_none_or(|value| value > most) =>
            {
                (Some(most), Origin::Ceiling { line })
            }
            (None, _) => (self.default, Origin::Default),
        };
        sheet.note(self.key, self.unit.noted(value), origin);
        value
    }

    fn too_high(&self, sheet: &Sheet<'_>, value: u64, origin: Origin, ceiling: Ceiling) -> Problem {
        let asked = match value {
            0 => "is switched off, and".to_owned(),
            value => format!("{} is too much:", self.unit.shown(value)),
        };
        let most = self.unit.shown(ceiling.most);
        let message = format!(
            "{asked} the operator's ceiling is {most} ({}:{})",
            sheet.config.file, ceiling.line
        );
        let hint = format!("ask for at most {most}, or leave it out to get that");
        let (file, line) = match origin {
            Origin::Workflow { line } => (sheet.file, Some(line)),
            _ => ("command line", None),
        };
        let problem =
            Problem::new(Code::CeilingExceeded, file, message).key(self.said_as).hint(hint);
        Problem { line, ..problem }
    }
}
