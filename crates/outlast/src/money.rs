//! Money as the client takes and shows it: dollars, counted in millionths, never as a float.
//!
//! `outlast_workflow::money` reads and prints; here is what flags refuse, and the dollars of JSON bodies.

use outlast_workflow::money::{micros, shown};

/// Millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Micros(pub(crate) u64);

impl Micros {
    pub(crate) fn dollars(self) -> String {
        shown(self.0)
    }
}

/// A ceiling: more than nothing, and no finer than a millionth.
pub(crate) fn parse_limit(text: &str) -> Result<Micros, String> {
    let wanted = "write dollars such as 5, 0.50 or 0.000001";
    match micros(text) {
        Some(0) => Err(format!("a limit is more than 0; {wanted}")),
        Some(micros) => Ok(Micros(micros)),
        None => Err(format!("not an amount of money; {wanted}")),
    }
}

/// Dollars as a JSON body has them, for people.
pub(crate) fn dollars(usd: f64) -> String {
    micros(&format!("{usd:.6}")).map_or_else(|| format!("${usd:.2}"), shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_an_amount_above_nothing() {
        assert_eq!(parse_limit("0.50"), Ok(Micros(500_000)));
        for text in ["", "$5", "-1", "1e3", "0", "0.0", "0.0000001"] {
            assert!(parse_limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_same_amount_has_the_same_words_wherever_it_comes_from() {
        for (usd, micros) in [(0.0, 0), (1.5, 1_500_000), (0.0042, 4_200), (1.509_999, 1_509_999)] {
            assert_eq!(dollars(usd), Micros(micros).dollars());
        }
        assert_eq!(dollars(1e15), "$1000000000000000.00");
    }
}
