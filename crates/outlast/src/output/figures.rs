//! Numbers with their units.

use outlast_wire::api::{RunRow, Usage};

use crate::money;

/// `512 B`, `1.5 KiB`, `3.0 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    if count < 1024 {
        return format!("{count} B");
    }
    let power = (count.ilog2() / 10).min(4);
    let tenths = u128::from(count) * 10 / (1_u128 << (power * 10));
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[power as usize])
}

/// `1 survivor`, `2 survivors`.
pub(crate) fn count(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// `1 file`, `9 files`: what a snapshot counted.
pub(crate) fn files(files: u64) -> String {
    count(usize::try_from(files).unwrap_or(usize::MAX), "file")
}

/// `950 tokens`, `12k tokens`, `3.4M tokens`.
pub(crate) fn tokens(count: u64) -> String {
    let unit = if count == 1 { "token" } else { "tokens" };
    format!("{} {unit}", short(count))
}

/// A count in few characters: `950`, `12k`, `3.4M`.
pub(crate) fn short(count: u64) -> String {
    match count {
        ..1000 => count.to_string(),
        1000..1_000_000 => format!("{}k", count / 1000),
        _ => format!("{}.{}M", count / 1_000_000, count % 1_000_000 / 100_000),
    }
}

/// What was spent, and how much of that was not reported. Money that no agent reported is never shown as spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Spend {
    pub(crate) cost_usd: f64,
    pub(crate) tokens: u64,
    /// True if every attempt reported its money, and its tokens: an agent may report one without the other.
    pub(crate) money_known: bool,
    pub(crate) tokens_known: bool,
    /// The part that is held for attempts that did not report.
    pub(crate) unreported_usd: f64,
    pub(crate) unreported_tokens: u64,
    /// How many attempts did not report, of a run whose agent could.
    pub(crate) unreported_attempts: u64,
}

impl From<&Usage> for Spend {
    fn from(usage: &Usage) -> Self {
        Self {
            cost_usd: usage.cost_usd,
            tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            money_known: usage.known || usage.money_known,
            tokens_known: usage.known || usage.tokens_known,
            unreported_usd: usage.unreported_usd,
            unreported_tokens: usage.unreported_tokens,
            unreported_attempts: usage.unreported_attempts,
        }
    }
}

impl From<&RunRow> for Spend {
    fn from(row: &RunRow) -> Self {
        Self {
            cost_usd: row.cost_usd,
            tokens: row.tokens,
            money_known: row.known || row.money_known,
            tokens_known: row.known || row.tokens_known,
            unreported_usd: row.unreported_usd,
            unreported_tokens: row.unreported_tokens,
            unreported_attempts: row.unreported_attempts,
        }
    }
}

impl Spend {
    /// Both together; a run that reported nothing and has nothing held for it changes no sum.
    pub(crate) fn plus(self, other: Self) -> Self {
        let is_nothing = other.is_nothing();
        Self {
            cost_usd: self.cost_usd + other.cost_usd,
            tokens: self.tokens.saturating_add(other.tokens),
            money_known: self.money_known && (other.money_known || is_nothing),
            tokens_known: self.tokens_known && (other.tokens_known || is_nothing),
            unreported_usd: self.unreported_usd + other.unreported_usd,
            unreported_tokens: self.unreported_tokens.saturating_add(other.unreported_tokens),
            unreported_attempts: self.unreported_attempts.saturating_add(other.unreported_attempts),
        }
    }

    pub(crate) fn nothing() -> Self {
        Self { money_known: true, tokens_known: true, ..Self::default() }
    }

    /// True if no figure is there and none was due.
    fn is_nothing(&self) -> bool {
        self.cost_usd <= 0.0 && self.tokens == 0 && self.unreported_attempts == 0
    }

    /// True if an attempt did not report what it used, with or without a ceiling.
    pub(crate) fn is_unreported(&self) -> bool {
        let has_figures = self.cost_usd > 0.0 || self.tokens > 0;
        !self.is_known() && (has_figures || self.unreported_attempts > 0)
    }

    /// True if an attempt did not report its money.
    pub(crate) fn is_money_unreported(&self) -> bool {
        self.is_unreported() && !self.money_known
    }

    fn is_known(&self) -> bool {
        self.money_known && self.tokens_known
    }

    /// The money for a column: `$0.42`; `≤$5.00?` if some of it was not reported, `≥$0.42` if there may be more.
    pub(crate) fn money(&self) -> Option<String> {
        let dollars = (self.cost_usd > 0.0).then(|| money::dollars(self.cost_usd))?;
        Some(marked(&dollars, bound(self.money_known, self.unreported_usd > 0.0)))
    }

    /// The tokens for a column: `15k`, `≤15k?`, `≥15k`.
    pub(crate) fn count(&self) -> Option<String> {
        let count = (self.tokens > 0).then(|| short(self.tokens))?;
        Some(marked(&count, bound(self.tokens_known, self.unreported_tokens > 0)))
    }

    /// For a column, in the one unit that says most; `?` for what was due and not reported, nothing if nothing was spent.
    pub(crate) fn column(&self) -> Option<String> {
        let tokens = || {
            let bound = bound(self.tokens_known, self.unreported_tokens > 0);
            (self.tokens > 0).then(|| marked(&tokens(self.tokens), bound))
        };
        let unknown = || (self.unreported_attempts > 0).then(|| "?".to_owned());
        self.money().or_else(tokens).or_else(unknown)
    }

    /// In words: `$0.42`; `≤ $5.00, not reported`; `≤ $5.30, $5.00 of it not reported`.
    pub(crate) fn words(&self) -> Option<String> {
        let money = (self.cost_usd > 0.0).then(|| money::dollars(self.cost_usd));
        let is_money_held = self.unreported_usd > 0.0;
        let money = money.map(|it| if is_money_held { format!("≤ {it}") } else { it });
        let count = (self.tokens > 0).then(|| tokens(self.tokens));
        let count = count.map(|it| if self.unreported_tokens > 0 { format!("≤ {it}") } else { it });
        let figures: Vec<String> = [money, count].into_iter().flatten().collect();
        if figures.is_empty() {
            return (self.unreported_attempts > 0).then(|| "spend not reported".to_owned());
        }
        Some({
            let mark = self.mark().map(|mark| format!(", {mark}")).unwrap_or_default();
            format!("{}{mark}", figures.join(", "))
        })
    }

    /// What has to be said beside the figures; nothing if they are known.
    pub(crate) fn mark(&self) -> Option<String> {
        // To the millionth, as amounts are counted.
        let is_money_unreported = self.unreported_usd + 5e-7 >= self.cost_usd;
        let is_all = is_money_unreported && self.unreported_tokens >= self.tokens;
        let money_held = (self.unreported_usd > 0.0)
            .then(|| format!("{} of it not reported", money::dollars(self.unreported_usd)));
        let tokens_held = (self.unreported_tokens > 0)
            .then(|| format!("{} of it not reported", tokens(self.unreported_tokens)));
        match (self.money_known, self.tokens_known) {
            (true, true) => None,
            (true, false) if self.tokens > 0 => {
                Some(tokens_held.unwrap_or_else(|| "not all tokens reported".to_owned()))
            }
            (true, false) => Some("tokens not reported".to_owned()),
            (false, true) if self.cost_usd > 0.0 => {
                Some(money_held.unwrap_or_else(|| "not all money reported".to_owned()))
            }
            (false, true) => Some("money not reported".to_owned()),
            (false, false) if is_all => Some("not reported".to_owned()),
            (false, false) => {
                let held = money_held.or(tokens_held);
                Some(held.unwrap_or_else(|| "not all of it reported".to_owned()))
            }
        }
    }
}

fn bound(is_known: bool, is_held: bool) -> Bound {
    match (is_known, is_held) {
        (true, _) => Bound::Exact,
        (false, true) => Bound::AtMost,
        (false, false) => Bound::AtLeast,
    }
}

/// How sure a figure is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    Exact,
    AtMost,
    AtLeast,
}

/// A figure with its mark: `≤$5.00?` if some of it was not reported, `≥$0.42` if there may be more.
pub(crate) fn marked(figure: &str, bound: Bound) -> String {
    match bound {
        Bound::Exact => figure.to_owned(),
        Bound::AtMost => format!("≤{figure}?"),
        Bound::AtLeast => format!("≥{figure}"),
    }
}

/// What was spent, for a line; nothing if nothing was.
pub(crate) fn spend(usage: &Usage) -> Option<String> {
    let spend = Spend::from(usage);
    let has_figures = spend.cost_usd > 0.0 || spend.tokens > 0;
    if has_figures { spend.column() } else { spend.words() }
}

/// `2`, or `2.3` for the third attempt at the second turn; `2/20` where there is a most.
pub(crate) fn turn(turn: u32, attempt: u32, most: Option<u32>) -> String {
    let most = most.map(|most| format!("/{most}")).unwrap_or_default();
    match (turn, attempt) {
        (0, _) => "-".to_owned(),
        (turn, 0 | 1) => format!("{turn}{most}"),
        (turn, attempt) => format!("{turn}.{attempt}{most}"),
    }
}

/// `SIGKILL` for 9, and `signal 40` for what has no name.
pub(crate) fn signal(number: i32) -> String {
    match rustix::process::Signal::from_named_raw(number) {
        Some(signal) => {
            signal_name(signal).map_or_else(|| format!("signal {number}"), str::to_owned)
        }
        None => format!("signal {number}"),
    }
}

fn signal_name(signal: rustix::process::Signal) -> Option<&'static str> {
    use rustix::process::Signal;
    let names = [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::ILL, "SIGILL"),
        (Signal::TRAP, "SIGTRAP"),
        (Signal::ABORT, "SIGABRT"),
        (Signal::BUS, "SIGBUS"),
        (Signal::FPE, "SIGFPE"),
        (Signal::KILL, "SIGKILL"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::SEGV, "SIGSEGV"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::PIPE, "SIGPIPE"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::TERM, "SIGTERM"),
        (Signal::XCPU, "SIGXCPU"),
        (Signal::XFSZ, "SIGXFSZ"),
        (Signal::SYS, "SIGSYS"),
    ];
    names.iter().find(|(known, _)| *known == signal).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1536, "1.5 KiB"),
            (5 << 20, "5.0 MiB"),
            (3 << 30, "3.0 GiB"),
            (u64::MAX, "16777215.9 TiB"),
        ];
        for (count, text) in cases {
            assert_eq!(bytes(count), text);
        }
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal(9), "SIGKILL");
        assert_eq!(signal(15), "SIGTERM");
        assert_eq!(signal(63), "signal 63");
    }

    #[test]
    fn spend_is_told_in_one_unit() {
        let known = true;
        let usage =
            |cost_usd, input_tokens| Usage { cost_usd, input_tokens, known, ..Usage::default() };
        assert_eq!(spend(&usage(0.0, 0)), None);
        assert_eq!(spend(&usage(0.0, 1)), Some("1 token".to_owned()));
        assert_eq!(spend(&usage(0.0, 999)), Some("999 tokens".to_owned()));
        assert_eq!(spend(&usage(0.0, 12_345)), Some("12k tokens".to_owned()));
        assert_eq!(spend(&usage(0.0, 3_450_000)), Some("3.4M tokens".to_owned()));
        assert_eq!(spend(&usage(1.25, 3_450_000)), Some("$1.25".to_owned()));
    }

    #[test]
    fn money_that_was_not_reported_is_never_shown_as_spent() {
        let held = |cost_usd, tokens, unreported_usd, unreported_tokens| Spend {
            cost_usd,
            tokens,
            money_known: false,
            tokens_known: false,
            unreported_usd,
            unreported_tokens,
            unreported_attempts: 0,
        };
        let shown: Vec<(String, String)> = [
            held(5.000_001, 0, 5.000_001, 0),
            held(5.3, 12_345, 5.0, 0),
            held(0.0, 750_000, 0.0, 250_000),
            held(0.42, 15_000, 0.0, 0),
            Spend { money_known: true, tokens_known: true, ..held(0.42, 15_000, 0.0, 0) },
        ]
        .iter()
        .map(|it| (it.column().unwrap_or_default(), it.words().unwrap_or_default()))
        .collect();
        let expected = [
            ("≤$5.00?", "≤ $5.00, not reported"),
            ("≤$5.30?", "≤ $5.30, 12k tokens, $5.00 of it not reported"),
            ("≤750k tokens?", "≤ 750k tokens, 250k tokens of it not reported"),
            ("≥$0.42", "$0.42, 15k tokens, not all of it reported"),
            ("$0.42", "$0.42, 15k tokens"),
        ];
        assert_eq!(shown, expected.map(|(column, words)| (column.to_owned(), words.to_owned())));
        assert_eq!(held(0.0, 0, 0.0, 0).column(), None, "a command that has nothing to report");
        let silent = Spend { unreported_attempts: 2, ..held(0.0, 0, 0.0, 0) };
        assert_eq!(
            (silent.column().as_deref(), silent.words().as_deref()),
            (Some("?"), Some("spend not reported")),
            "an agent that could have reported, without a ceiling"
        );
        assert!(!Spend::nothing().plus(silent).is_known());
        let sum = Spend::nothing().plus(held(0.0, 0, 0.0, 0));
        assert!(sum.is_known(), "what nothing is known of changes no sum");
    }

    #[test]
    fn money_that_was_reported_was_called_incomplete_because_tokens_were_missing() {
        let told =
            |spend: Spend| (spend.column().unwrap_or_default(), spend.words().unwrap_or_default());
        let paid =
            Spend { money_known: true, cost_usd: 0.42, unreported_attempts: 1, ..Spend::default() };
        assert_eq!(told(paid), ("$0.42".to_owned(), "$0.42, tokens not reported".to_owned()));
        let some = Spend { tokens: 15_000, ..paid };
        assert_eq!(told(some).1, "$0.42, 15k tokens, not all tokens reported");
        assert!(some.is_unreported() && !some.is_money_unreported());
        let unpaid = Spend { tokens_known: true, tokens: 15_000, ..Spend::default() };
        assert_eq!(
            told(unpaid),
            ("15k tokens".to_owned(), "15k tokens, money not reported".to_owned())
        );
        // A daemon of before says only that something is missing.
        let old = Usage { cost_usd: 0.42, ..Usage::default() };
        assert_eq!(spend(&old).as_deref(), Some("≥$0.42"));
    }
}
