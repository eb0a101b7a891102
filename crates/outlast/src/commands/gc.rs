//! `outlast gc`: remove what the retention rules no longer keep.

use std::collections::{BTreeMap, BTreeSet};

use outlast_client::ask::Ask;
use outlast_client::session::Session;
use outlast_wire::api::{GcItem, GcReport};

use crate::Answer;
use crate::args::Gc;
use crate::duration::as_ms;
use crate::output::bytes::{self, Target};
use crate::output::{self, figures, lines, printable, time};
use crate::world::World;

pub(crate) async fn gc(world: &World, args: Gc) -> Answer {
    let mut ask = Ask::post("/v1/gc", &serde_json::json!({}));
    if let Some(age) = args.older_than {
        ask = ask.query("older_than_ms", as_ms(age));
    }
    if args.dry_run {
        ask = ask.query("dry_run", true);
    }
    let report: GcReport = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&lines::fitting(&page(&report), bytes::columns(Target::Stdout)))?;
    }
    Ok(0)
}

/// Each thing by its run's name, then the sum: runs and their workspaces, and the space that they took.
fn page(report: &GcReport) -> String {
    let would = if report.dry_run { "would remove" } else { "removed" };
    let mut lines: Vec<String> = report.removed.iter().map(|item| line(would, item)).collect();
    lines.extend(report.skipped.iter().filter(|item| item.overdue).map(kept));
    let (dirs, runs): (Vec<&GcItem>, Vec<&GcItem>) =
        report.removed.iter().partition(|item| item.why.starts_with(WORKSPACE));
    let removed: Vec<String> = [(runs.len(), "run"), (dirs.len(), "workspace")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| figures::count(count, what))
        .collect();
    let removed = if removed.is_empty() { "nothing".to_owned() } else { removed.join(" and ") };
    let size = match report.freed_bytes {
        0 => String::new(),
        bytes => format!(" ({})", figures::bytes(bytes)),
    };
    // A run and its workspace are two items.
    let kept: BTreeSet<&str> = report.skipped.iter().map(|item| item.run.as_str()).collect();
    let kept = figures::count(kept.len(), "run");
    let keeps = if report.dry_run { "keep" } else { "kept" };
    lines.push(format!("{would} {removed}{size}, {keeps} {kept}"));
    lines.extend(reasons(report).into_iter().map(|(why, count)| format!("  {count}: {why}")));
    lines.join("\n") + "\n"
}

/// Why runs are kept, the commonest reason first. Those of workspaces name a directory each, and have lines of their own
/// where a person has to act.
fn reasons(report: &GcReport) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for item in report.skipped.iter().filter(|item| !item.why.starts_with(WORKSPACE)) {
        *counts.entry(said(item)).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// What the reason of a workspace begins with.
const WORKSPACE: &str = "workspace ";

fn kept(item: &GcItem) -> String {
    format!("kept {}: {}", called(item), said(item))
}

fn line(would: &str, item: &GcItem) -> String {
    format!("{would} {}: {}, {}", called(item), said(item), figures::bytes(item.bytes))
}

fn called(item: &GcItem) -> String {
    printable(item.name.as_deref().unwrap_or(&item.run))
}

fn said(item: &GcItem) -> String {
    printable(&time::localised(&item.why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_is_named_and_counted_by_what_it_is() {
        let item = |name: Option<&str>, why: &str, overdue| GcItem {
            run: "k3mx7q9w2r5t".to_owned(),
            name: name.map(str::to_owned),
            why: why.to_owned(),
            bytes: 2048,
            overdue,
        };
        let mut report = GcReport {
            removed: vec![
                item(Some("port"), "completed 31d ago", false),
                item(Some("port"), "workspace /w/port", false),
            ],
            skipped: vec![item(None, "workspace /w/x: has changes", true)],
            freed_bytes: 4096,
            ..GcReport::default()
        };
        insta::assert_snapshot!(page(&report), @r"
        removed port: completed 31d ago, 2.0 KiB
        removed port: workspace /w/port, 2.0 KiB
        kept k3mx7q9w2r5t: workspace /w/x: has changes
        removed 1 run and 1 workspace (4.0 KiB), kept 1 run
        ");
        let young = "completed less than 7 days ago";
        report.skipped = vec![
            item(None, "is running", false),
            item(None, young, false),
            item(None, young, false),
        ];
        report.skipped[0].run = "k3mx7q9w2r5u".to_owned();
        report.skipped[1].run = "k3mx7q9w2r5v".to_owned();
        (report.removed, report.freed_bytes) = (Vec::new(), 0);
        insta::assert_snapshot!(page(&report), @r"
        removed nothing, kept 3 runs
          2: completed less than 7 days ago
          1: is running
        ");
        (report.removed, report.skipped, report.freed_bytes) = (Vec::new(), Vec::new(), 0);
        report.dry_run = true;
        insta::assert_snapshot!(page(&report), @"would remove nothing, keep 0 runs");
    }
}
