//! `outlast gc`: remove what the retention rules no longer keep.

use outlast_client::ask::Ask;
use outlast_client::session::Session;
use outlast_wire::api::{GcItem, GcReport};

use crate::Answer;
use crate::args::Gc;
use crate::output::{self, figures, printable};
use crate::world::World;

pub(crate) async fn gc(world: &World, args: Gc) -> Answer {
    let mut ask = Ask::post("/v1/gc", &serde_json::json!({}));
    if args.dry_run {
        ask = ask.query("dry_run", true);
    }
    let report: GcReport = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&page(&report))?;
    }
    Ok(0)
}

fn page(report: &GcReport) -> String {
    let would = if report.dry_run { "would remove" } else { "removed" };
    let mut lines: Vec<String> = report.removed.iter().map(|item| line(would, item)).collect();
    lines.extend(report.skipped.iter().filter(|item| item.overdue).map(kept));
    let freed = figures::bytes(report.freed_bytes);
    let things = figures::count(report.removed.len(), "thing");
    lines.push(format!("{would} {things}, {freed}; kept {}", report.skipped.len()));
    lines.join("\n") + "\n"
}

fn kept(item: &GcItem) -> String {
    format!("kept {}: {}", item.run, printable(&item.why))
}

fn line(would: &str, item: &GcItem) -> String {
    format!("{would} {}: {}, {}", item.run, printable(&item.why), figures::bytes(item.bytes))
}
