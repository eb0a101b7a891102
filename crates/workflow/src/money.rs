//! US dollars as text: one parser, and a named function for each of the two forms in which they are printed.
//!
//! Amounts are counted in millionths and never pass through a float. A file, a prompt and `check --explain` have
//! [`exact`]; people read [`shown`], which has a dollar sign and no more decimals than they want to see.

const MICROS: u64 = 1_000_000;

/// `2.50` in millionths; `None` for what is no amount, and for what is finer than a millionth.
pub fn micros(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text).replace('_', "");
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_digits(whole)
        || !is_digits(fraction)
        || fraction.len() > 6
        || (whole.is_empty() && fraction.is_empty())
    {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    whole.checked_mul(MICROS)?.checked_add(fraction)
}

/// As a file has it, to the millionth: `0.10`, `2.505`.
pub fn exact(micros: u64) -> String {
    let fraction = format!("{:06}", micros % MICROS);
    let fraction = fraction.trim_end_matches('0');
    format!("{}.{fraction:0<2}", micros / MICROS)
}

/// For people, rounded to the cent: `$1.50`; and `$0.0042` where cents would show nothing.
pub fn shown(micros: u64) -> String {
    if (1..MICROS / 100).contains(&micros) {
        return format!("${}", exact(micros));
    }
    let cents = micros.saturating_add(5_000) / 10_000;
    format!("${}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_does_not_drift() {
        let amounts = [
            ("0.1", 100_000),
            ("2.50", 2_500_000),
            ("3", 3_000_000),
            (".000001", 1),
            ("1_000.5", 1_000_500_000),
            ("12.3456780", 12_345_678),
            ("18446744073709.551615", u64::MAX),
        ];
        for (text, expected) in amounts {
            assert_eq!(micros(text), Some(expected), "{text}");
        }
        let too_much = ["18446744073709.551616", "99999999999999999999"];
        let wrong = ["", ".", "1e3", "0.0000001", "1.2.3", "-1", "$5", "1,5", "٣"];
        for text in wrong.into_iter().chain(too_much) {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn an_amount_is_exact_in_a_file_and_rounded_for_people() {
        for (micros, in_file, to_people) in [
            (0, "0.00", "$0.00"),
            (1, "0.000001", "$0.000001"),
            (4_200, "0.0042", "$0.0042"),
            (100_000, "0.10", "$0.10"),
            (1_504_999, "1.504999", "$1.50"),
            (1_509_999, "1.509999", "$1.51"),
            (3_000_000, "3.00", "$3.00"),
        ] {
            assert_eq!((exact(micros).as_str(), shown(micros).as_str()), (in_file, to_people));
        }
    }
}
