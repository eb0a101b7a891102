//! Money as people type it and read it: dollars, counted in millionths, never as a float.

/// Millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Micros(pub(crate) u64);

const DIGITS: usize = 6;

impl Micros {
    /// `$1.50`, and `$0.0042` where cents would show nothing.
    pub(crate) fn dollars(self) -> String {
        let (whole, fraction) = (self.0 / 1_000_000, self.0 % 1_000_000);
        if whole == 0 && (1..10_000).contains(&fraction) {
            let text = format!("$0.{fraction:06}");
            return text.trim_end_matches('0').to_owned();
        }
        format!("${whole}.{:02}", fraction / 10_000)
    }
}

/// A ceiling: more than nothing, and no finer than a millionth.
pub(crate) fn parse_limit(text: &str) -> Result<Micros, String> {
    let wanted = "write dollars such as 5, 0.50 or 0.000001";
    match parse(text) {
        Some(Micros(0)) => Err(format!("a limit is more than 0; {wanted}")),
        Some(micros) => Ok(micros),
        None => Err(format!("not an amount of money; {wanted}")),
    }
}

fn parse(text: &str) -> Option<Micros> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    // Zeroes beyond the millionths say nothing; other digits would be lost.
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > DIGITS {
        return None;
    }
    let micros: u64 = format!("{fraction:0<DIGITS$}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(micros).map(Micros)
}

/// `$1.50`, and `$0.0042` where cents would show nothing.
pub(crate) fn dollars(usd: f64) -> String {
    if usd != 0.0 && usd.abs() < 0.01 {
        let text = format!("${usd:.6}");
        return text.trim_end_matches('0').to_owned();
    }
    format!("${usd:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_to_the_millionth() {
        let cases = [
            ("5", 5_000_000),
            ("0.5", 500_000),
            ("0.50", 500_000),
            ("12.345678", 12_345_678),
            ("12.3456780", 12_345_678),
            ("0.000001", 1),
            ("0.1", 100_000),
            ("18446744073709.551615", u64::MAX),
        ];
        for (text, micros) in cases {
            assert_eq!(parse_limit(text), Ok(Micros(micros)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let cases =
            ["", ".", "5.", ".5", "-1", "+1", "1e3", "$5", "1,5", "0", "0.0", "0.0000001", "٣"];
        for text in cases.into_iter().chain(["18446744073709.551616", "99999999999999999999"]) {
            assert!(parse_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn small_amounts_still_show() {
        assert_eq!(dollars(0.0), "$0.00");
        assert_eq!(dollars(1.5), "$1.50");
        assert_eq!(dollars(0.0042), "$0.0042");
        assert_eq!(Micros(0).dollars(), "$0.00");
        assert_eq!(Micros(4_200).dollars(), "$0.0042");
        assert_eq!(Micros(1_509_999).dollars(), "$1.50");
    }
}
