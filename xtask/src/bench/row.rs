//! One figure: what was measured, against what, and whether that is good enough.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) name: &'static str,
    figure: Figure,
    /// The measurements that the figure is made of.
    how: String,
}

#[derive(Debug, Clone)]
enum Figure {
    Measured {
        value: f64,
        unit: &'static str,
        target: Target,
    },
    /// Something that it is held against is not here.
    Skipped,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

impl Row {
    pub(super) fn ratio(name: &'static str, value: f64, target: Target, how: String) -> Self {
        Self::figure(name, value, "×", target, how)
    }

    pub(super) fn figure(
        name: &'static str,
        value: f64,
        unit: &'static str,
        target: Target,
        how: String,
    ) -> Self {
        Self { name, figure: Figure::Measured { value, unit, target }, how }
    }

    pub(super) fn skipped(name: &'static str, why: String) -> Self {
        Self { name, figure: Figure::Skipped, how: why }
    }

    fn verdict(&self) -> &'static str {
        match self.figure {
            Figure::Measured { value, target, .. } if target.is_met(value) => "pass",
            Figure::Measured { .. } => "FAIL",
            Figure::Skipped => "skip",
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let (value, unit, target) = match self.figure {
            Figure::Measured { value, unit, target } => {
                (Some(value), Some(unit), Some(target.to_string()))
            }
            Figure::Skipped => (None, None, None),
        };
        let verdict = self.verdict().to_lowercase();
        json!({ "row": self.name, "verdict": verdict, "value": value, "unit": unit, "target": target, "how": self.how })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, "≥ {least}"),
            Self::AtMost(most) => write!(f, "≤ {most}"),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (value, target) = match self.figure {
            Figure::Measured { value, unit, target } => {
                (format!("{value:.2} {unit}"), target.to_string())
            }
            Figure::Skipped => ("-".to_owned(), "-".to_owned()),
        };
        write!(f, "{}  {:<15} {value:>14}  {target:>8}  {}", self.verdict(), self.name, self.how)
    }
}

pub(super) fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(super) fn timed(body: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let begin = Instant::now();
    body()?;
    Ok(begin.elapsed())
}

/// Milliseconds for the eye.
pub(super) fn shown(time: Duration) -> String {
    format!("{:.2} ms", ms(time))
}

pub(super) fn median<T: Copy + PartialOrd>(mut values: Vec<T>) -> T {
    values.sort_by(|a, b| a.partial_cmp(b).expect("measurements are numbers"));
    values[values.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_was_measured_and_whether_it_is_enough() {
        let row = Row::ratio("output", 0.5, Target::AtLeast(0.7), "1 s against 0.5 s".to_owned());
        assert_eq!(
            row.to_string(),
            "FAIL  output                  0.50 ×     ≥ 0.7  1 s against 0.5 s"
        );
        assert_eq!(row.to_json()["verdict"], "fail");
        let row = Row::figure("ps", 43.0, "ms", Target::AtMost(50.0), String::new());
        assert_eq!(row.to_json()["verdict"], "pass");
        assert_eq!(Row::skipped("add", "no pueue".to_owned()).to_json()["value"], Value::Null);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3, 1, 2]), 2);
        assert!(median(vec![0.5, 9.0, 1.0]) < 9.0);
    }
}
