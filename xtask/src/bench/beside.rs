//! `--beside DIR`: this build and another one, measured by turns in one run.
//!
//! `DIR` holds the other commit's `outlast` and `xtask`, both release builds: each xtask measures its own
//! program, because lists and journals are made with the store that the program reads. A machine that is
//! slow for a minute is slow for both, so the ratio says what the change did.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::Args;
use super::row::median;
use crate::{interrupt, root};

/// A row may be worse by this much before it is called worse.
const TOLERATED: f64 = 1.05;

/// The figures of one row, of each build.
#[derive(Debug, Default, PartialEq)]
struct Pair {
    now: Vec<f64>,
    before: Vec<f64>,
    unit: String,
    /// True where the target is a minimum.
    is_more_better: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Better,
    Same,
    Worse,
}

pub(super) fn run(args: &Args, before: &Path) -> Result<()> {
    let now = root::build(&["outlast", "xtask"], root::Profile::Dist)?;
    let mut pairs: BTreeMap<String, Pair> = BTreeMap::new();
    let turns = args.turns;
    for turn in 0..turns {
        // Each goes first in turn: the second finds the disk as the first left it.
        let is_now_first = turn % 2 == 0;
        for is_now in [is_now_first, !is_now_first] {
            interrupt::check()?;
            let build = if is_now { now.as_path() } else { before };
            eprintln!("bench: round {} of {turns}, {}", turn + 1, build.display());
            // Both work in the same directory: a disk is not equally fast everywhere.
            super::in_scratch(|scratch| {
                let rows = measure(args, build, scratch)?;
                rows.iter().for_each(|row| note(&mut pairs, row, is_now));
                Ok(())
            })?;
        }
    }
    let told: Vec<_> =
        pairs.iter().filter_map(|(name, pair)| Some((name, pair, pair.ratio()?))).collect();
    ensure!(!told.is_empty(), "neither build has measured such a row");
    for (name, pair, ratio) in &told {
        println!("{}  {name:<15}  {ratio:.2} × before  {pair}", Verdict::of(*ratio));
    }
    let worse = told.iter().filter(|(_, _, ratio)| Verdict::of(*ratio) == Verdict::Worse).count();
    println!(
        "{} rows, {worse} worse by more than {:.0} %; medians of {turns}",
        told.len(),
        (TOLERATED - 1.0) * 100.0
    );
    Ok(())
}

/// The whole table, or the rows that were asked for, as one build's xtask measures them.
fn measure(args: &Args, build: &Path, scratch: &Path) -> Result<Vec<Value>> {
    let xtask = build.join("xtask");
    let mut command = Command::new(&xtask);
    command.args(["bench", "--json", "--binary"]).arg(build.join("outlast"));
    command.arg("--scratch").arg(scratch);
    command.args(args.quick.then_some("--quick"));
    command.args(args.only.iter().flat_map(|only| ["--only", only.as_str()]));
    command.stderr(Stdio::inherit()).env_remove("RUST_BACKTRACE");
    let output = command.output().with_context(|| format!("starting {}", xtask.display()))?;
    ensure!(output.status.success(), "{} ended with {}", xtask.display(), output.status);
    let said = String::from_utf8(output.stdout).context("what an xtask printed")?;
    let line = said.lines().last().context("an xtask printed nothing")?;
    serde_json::from_str(line).context("what an xtask measured")
}

fn note(pairs: &mut BTreeMap<String, Pair>, row: &Value, is_now: bool) {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    // A row without a value was skipped, which its own table says.
    let Some(value) = row["value"].as_f64() else { return };
    let pair = pairs.entry(text("row").to_owned()).or_default();
    text("unit").clone_into(&mut pair.unit);
    pair.is_more_better = text("target").starts_with('≥');
    if is_now { pair.now.push(value) } else { pair.before.push(value) }
}

impl Pair {
    /// How many times worse this build is; `None` if a row was measured of one build only. A row that counts
    /// and that both have at zero is as good as it was.
    fn ratio(&self) -> Option<f64> {
        if self.now.is_empty() || self.before.is_empty() {
            return None;
        }
        let (now, before) = (median(self.now.clone()), median(self.before.clone()));
        let (worse, better) = if self.is_more_better { (before, now) } else { (now, before) };
        Some(if worse == better { 1.0 } else { worse / better })
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |values: &[f64]| {
            values.iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(" ")
        };
        write!(
            f,
            "now {} {unit}, before {} {unit}",
            list(&self.now),
            list(&self.before),
            unit = self.unit
        )
    }
}

impl Verdict {
    fn of(ratio: f64) -> Self {
        if ratio > TOLERATED {
            Self::Worse
        } else if ratio < 1.0 / TOLERATED {
            Self::Better
        } else {
            Self::Same
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Better => "better",
            Self::Same => "same  ",
            Self::Worse => "WORSE ",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(now: &[f64], before: &[f64], is_more_better: bool) -> Pair {
        Pair { now: now.to_vec(), before: before.to_vec(), unit: "ms".to_owned(), is_more_better }
    }

    #[test]
    fn more_is_worse_where_the_target_is_a_maximum_and_better_where_it_is_a_minimum() {
        let verdict = |pair: Pair| Verdict::of(pair.ratio().expect("both were measured"));
        assert_eq!(verdict(pair(&[1.2, 1.1, 9.0], &[1.0, 1.0, 1.0], false)), Verdict::Worse);
        assert_eq!(verdict(pair(&[1.2, 1.1, 9.0], &[1.0, 1.0, 1.0], true)), Verdict::Better);
        assert_eq!(verdict(pair(&[1.04], &[1.0], false)), Verdict::Same);
        assert_eq!(verdict(pair(&[0.0], &[0.0], false)), Verdict::Same);
        assert_eq!(verdict(pair(&[3.0], &[0.0], false)), Verdict::Worse);
    }

    #[test]
    fn a_row_of_one_build_only_is_not_compared() {
        assert_eq!(pair(&[1.0], &[], false).ratio(), None);
    }
}
