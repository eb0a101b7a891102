//! When a sink is told again, and when that is given up. Pure: chance and the time are arguments.

use outlast_engine::Time;

const FIRST_MS: u64 = 5_000;
const LONGEST_MS: u64 = 6 * 60 * 60 * 1000;

/// What a sink may ask us to wait.
const LONGEST_ASKED_MS: u64 = 24 * 60 * 60 * 1000;

/// For so long everything is tried, at least.
pub(super) const PATIENCE_MS: u64 = 5 * 24 * 60 * 60 * 1000;

/// More than so many wait for no sink: the oldest are given up.
pub(super) const MOST_WAITING: u64 = 20_000;

/// After so many failures in a row, which is more than an hour, it may be this notice that the sink cannot
/// take, and those of other runs are let past it. Until then what waits keeps its order.
pub(super) const FAILURES_IN_ORDER: u32 = 10;

/// The next try after so many in a row that failed; `chance` spreads it by a tenth either way.
pub(super) fn next_at(now: Time, failures: u32, asked_ms: Option<u64>, chance: u8) -> Time {
    let doubled = FIRST_MS.saturating_mul(1 << failures.saturating_sub(1).min(20));
    let delay_ms = doubled.min(LONGEST_MS);
    let spread_ms = delay_ms / 5 * u64::from(chance) / 255;
    let jittered_ms = delay_ms - delay_ms / 10 + spread_ms;
    let asked_ms = asked_ms.unwrap_or(0).min(LONGEST_ASKED_MS);
    now.plus_ms(jittered_ms.max(asked_ms))
}

/// True while a sink is left alone. A moment that we would never have chosen is one of a clock that was wrong.
pub(super) fn is_ahead(next_at: Time, now: Time) -> bool {
    next_at > now && next_at.ms_since(now) <= LONGEST_ASKED_MS + LONGEST_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_go_on_for_days_and_ever_more_seldom() {
        let delay = |failures| next_at(Time(0), failures, None, 127).0;
        assert!((4_900..5_100).contains(&delay(1)), "{}", delay(1));
        assert!((9_800..10_200).contains(&delay(2)), "{}", delay(2));
        let six_hours = LONGEST_MS / 100 * 99..=LONGEST_MS / 100 * 101;
        assert!(six_hours.contains(&delay(30)) && six_hours.contains(&delay(u32::MAX)));
        let in_order: u64 = (1..=FAILURES_IN_ORDER).map(delay).sum();
        assert!(in_order > 60 * 60 * 1000, "an hour of failures keeps the order: {in_order} ms");
    }

    #[test]
    fn chance_spreads_and_a_sink_may_ask_for_more_but_not_for_less() {
        assert_eq!(next_at(Time(0), 1, None, 0), Time(4_500));
        assert_eq!(next_at(Time(0), 1, None, 255), Time(5_500));
        assert_eq!(next_at(Time(0), 1, Some(60_000), 0), Time(60_000));
        assert_eq!(next_at(Time(0), 1, Some(1_000), 0), Time(4_500));
        assert_eq!(next_at(Time(0), 1, Some(u64::MAX), 0), Time(LONGEST_ASKED_MS));
    }

    #[test]
    fn a_moment_of_a_clock_that_was_wrong_holds_nobody_up() {
        assert!(is_ahead(Time(10), Time(9)) && !is_ahead(Time(10), Time(10)));
        assert!(!is_ahead(Time(365 * 24 * 60 * 60 * 1000), Time(0)));
    }
}
