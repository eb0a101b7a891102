//! `outlast recover`: rebuild from their directories the runs that the journal has forgotten.

use std::time::Duration;

use outlast_client::ask::Ask;
use outlast_client::session::Session;
use outlast_wire::api::{RecoverItem, RecoverReport, RecoverRuns};

use crate::Answer;
use crate::args::Recover;
use crate::output::{self, figures, printable};
use crate::world::World;

/// Many large directories take their time.
const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) async fn recover(world: &World, args: Recover) -> Answer {
    let order = RecoverRuns { runs: args.runs, dry_run: args.dry_run };
    let ask = Ask::post("/v1/recover", &order).long_poll(PATIENCE);
    let report: RecoverReport = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&page(&report))?;
    }
    Ok(u8::from(report.runs.iter().any(|item| item.result == "kept")))
}

fn page(report: &RecoverReport) -> String {
    if report.runs.is_empty() {
        return "nothing to recover: the journal knows every run on disk\n".to_owned();
    }
    report.runs.iter().map(lines).collect()
}

fn lines(item: &RecoverItem) -> String {
    let run = &item.run;
    let head = match (item.result.as_str(), item.why.as_deref()) {
        ("kept", why) => return format!("kept {run}: {}\n", printable(why.unwrap_or("no reason"))),
        ("recovered_before", _) => format!("recovered before: {run}"),
        ("would_recover", _) => format!("would recover {run}"),
        _ => format!("recovered {run}"),
    };
    let turns = figures::count(usize::try_from(item.turns_committed).unwrap_or(usize::MAX), "turn");
    let attempts = figures::count(usize::try_from(item.attempts).unwrap_or(usize::MAX), "attempt");
    let alive = if item.alive { ", alive" } else { "" };
    let missing: String =
        item.missing.iter().map(|what| format!("  missing: {}\n", printable(what))).collect();
    format!("{head}: {turns} committed, {attempts}{alive}\n{missing}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_said_below_each_run() {
        let item = |result: &str, why: Option<&str>| RecoverItem {
            run: "k3mx7q9w2r5t".to_owned(),
            result: result.to_owned(),
            alive: result == "recovered",
            turns_committed: 1,
            attempts: 2,
            missing: vec!["t1.a1: its records".to_owned()],
            why: why.map(str::to_owned),
        };
        let runs = vec![item("recovered", None), item("kept", Some("it cannot be read"))];
        insta::assert_snapshot!(page(&RecoverReport { dry_run: false, runs }), @r"
        recovered k3mx7q9w2r5t: 1 turn committed, 2 attempts, alive
          missing: t1.a1: its records
        kept k3mx7q9w2r5t: it cannot be read
        ");
    }
}
