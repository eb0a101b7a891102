//! Numbers of a response, taken from their digits: money does not pass through a float.

use super::BadResponse;
use super::node::Node;

/// More than this, in tokens or in millionths of a dollar, is a mistake and no report.
const MOST: u64 = 1_000_000_000_000_000;

/// Digits of [`MOST`].
const MOST_DIGITS: usize = 16;

const TOO_LARGE: &str = "is too large to be true";

/// A number that has no fraction, however it is written.
pub(super) fn whole(node: &Node<'_>) -> Result<u64, BadResponse> {
    match read(node, 0)? {
        (units, Rest::Nothing) => Ok(units),
        (_, Rest::Something) => Err(node.bad("must be a whole number")),
    }
}

pub(super) fn floor(node: &Node<'_>) -> Result<u64, BadResponse> {
    read(node, 0).map(|(units, _)| units)
}

/// Millionths, rounded up: what was spent is never told as less.
pub(super) fn micros(node: &Node<'_>) -> Result<u64, BadResponse> {
    match read(node, 6)? {
        (units, Rest::Nothing) => Ok(units),
        (MOST.., Rest::Something) => Err(node.bad(TOO_LARGE)),
        (units, Rest::Something) => Ok(units + 1),
    }
}

/// What is left of a number below its last unit.
#[derive(Debug, PartialEq, Eq)]
enum Rest {
    Nothing,
    Something,
}

/// The number in units of a tenth to the power of `places`.
fn read(node: &Node<'_>, places: i64) -> Result<(u64, Rest), BadResponse> {
    if !node.is_number() {
        return Err(node.bad("must be a number"));
    }
    let written = node.written();
    let (is_negative, positive) = match written.strip_prefix('-') {
        Some(positive) => (true, positive),
        None => (false, written),
    };
    match units(positive, places) {
        Some((0, Rest::Nothing)) => Ok((0, Rest::Nothing)),
        _ if is_negative => Err(node.bad("must not be negative")),
        Some(found) => Ok(found),
        None => Err(node.bad(TOO_LARGE)),
    }
}

/// `None` if it is more than [`MOST`]. `written` is a number of JSON without a sign.
fn units(written: &str, places: i64) -> Option<(u64, Rest)> {
    let (mantissa, exponent) = written.split_once(['e', 'E']).unwrap_or((written, "0"));
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{before}{after}");
    let significant = digits.trim_start_matches('0').trim_end_matches('0');
    if significant.is_empty() {
        return Some((0, Rest::Nothing));
    }
    let leading = digits.len() - digits.trim_start_matches('0').len();
    // How many digits stand before the point, once it has been moved: fewer than none if zeros follow it.
    let whole = length(before).saturating_sub(length(&digits[..leading]));
    let whole = whole.saturating_add(power(exponent)).saturating_add(places);
    let Ok(whole) = usize::try_from(whole) else { return Some((0, Rest::Something)) };
    if whole > MOST_DIGITS {
        return None;
    }
    let digit =
        |at: usize| significant.as_bytes().get(at).map_or(0, |digit| u64::from(digit - b'0'));
    let value = (0..whole).fold(0_u64, |value, at| value * 10 + digit(at));
    let rest = if significant.len() > whole { Rest::Something } else { Rest::Nothing };
    (value <= MOST).then_some((value, rest))
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

/// An exponent beyond any sense is as good as the largest.
fn power(exponent: &str) -> i64 {
    let furthest = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
    exponent.parse().unwrap_or(furthest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_counted_and_not_measured() {
        let of = |written: &str, places| units(written, places);
        assert_eq!(of("0", 0), Some((0, Rest::Nothing)));
        assert_eq!(of("0.000e999", 6), Some((0, Rest::Nothing)));
        assert_eq!(of("12", 0), Some((12, Rest::Nothing)));
        assert_eq!(of("12.0", 0), Some((12, Rest::Nothing)));
        assert_eq!(of("1.2e1", 0), Some((12, Rest::Nothing)));
        assert_eq!(of("1200E-2", 0), Some((12, Rest::Nothing)));
        assert_eq!(of("0.05e+2", 0), Some((5, Rest::Nothing)));
        assert_eq!(of("12.5", 0), Some((12, Rest::Something)));
        assert_eq!(of("0.1", 6), Some((100_000, Rest::Nothing)));
        assert_eq!(of("0.0000001", 6), Some((0, Rest::Something)));
        assert_eq!(of("0.0000019", 6), Some((1, Rest::Something)));
        assert_eq!(of("1e-99999999999999999999", 6), Some((0, Rest::Something)));
    }

    #[test]
    fn the_most_is_the_last_that_passes() {
        assert_eq!(units("1000000000000000", 0), Some((MOST, Rest::Nothing)));
        assert_eq!(units("1e15", 0), Some((MOST, Rest::Nothing)));
        assert_eq!(units("1000000000", 6), Some((MOST, Rest::Nothing)));
        assert_eq!(units("1000000000000001", 0), None);
        assert_eq!(units("1e16", 0), None);
        assert_eq!(units("1e99999999999999999999", 0), None);
        assert_eq!(units("99999999999999999999999999", 6), None);
    }
}
