//! Numbers with their units.

use outlast_wire::api::Usage;

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

/// What was spent, in the one unit that says most; nothing if nothing was.
pub(crate) fn spend(usage: &Usage) -> Option<String> {
    spent(usage.cost_usd, usage.input_tokens.saturating_add(usage.output_tokens))
}

pub(crate) fn spent(cost_usd: f64, count: u64) -> Option<String> {
    if cost_usd > 0.0 {
        return Some(money::dollars(cost_usd));
    }
    (count > 0).then(|| tokens(count))
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
        let usage = |cost_usd, input_tokens| Usage { cost_usd, input_tokens, ..Usage::default() };
        assert_eq!(spend(&usage(0.0, 0)), None);
        assert_eq!(spend(&usage(0.0, 1)), Some("1 token".to_owned()));
        assert_eq!(spend(&usage(0.0, 999)), Some("999 tokens".to_owned()));
        assert_eq!(spend(&usage(0.0, 12_345)), Some("12k tokens".to_owned()));
        assert_eq!(spend(&usage(0.0, 3_450_000)), Some("3.4M tokens".to_owned()));
        assert_eq!(spend(&usage(1.25, 3_450_000)), Some("$1.25".to_owned()));
    }
}
