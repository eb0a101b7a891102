//! `outlast compare`: what several runs have come to, side by side.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::{DiffView, RunView};
use outlast_wire::codes::Code;
use outlast_workflow::duration::short;
use serde_json::{Value, json};

use crate::Answer;
use crate::args::Compare;
use crate::output::{self, figures, printable};
use crate::world::World;

pub(crate) async fn compare(world: &World, args: Compare) -> Answer {
    let mut session = Session::new(&world.client);
    let mut compared = Vec::new();
    for run in &args.runs {
        let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
        let ask = Ask::get(&run_path(&view.id, "/diff")).query("patch", false);
        let diff: Result<DiffView, Problem> = session.call(&ask).await;
        let diff = match diff {
            Ok(diff) => Some(diff),
            Err(problem) if problem.is(Code::NoSnapshot) => None,
            Err(problem) => return Err(problem),
        };
        compared.push(Compared { view, diff });
    }
    if args.json {
        output::print_json(&compared.iter().map(Compared::json).collect::<Vec<_>>())?;
    } else {
        output::print(&page(&compared))?;
    }
    Ok(0)
}

struct Compared {
    view: RunView,
    diff: Option<DiffView>,
}

impl Compared {
    fn json(&self) -> Value {
        let view = &self.view;
        let changes = self.diff.as_ref().map(
            |diff| json!({"files": diff.files.len(), "added": diff.added, "deleted": diff.deleted}),
        );
        json!({
            "id": view.id,
            "name": view.name,
            "state": view.state,
            "reason_code": view.reason_code,
            "agent": view.agent.kind,
            "task": view.task,
            "turns": view.turns_committed,
            "tokens": view.usage.input_tokens + view.usage.output_tokens,
            "cost_usd": view.usage.cost_usd,
            "usage_known": view.usage.known,
            "worked_ms": view.worked_ms,
            "changes": changes,
            "summary": view.summary,
            "forked_from": view.forked_from,
        })
    }

    /// What is shown of it, row by row, as `ROWS` names them.
    fn cells(&self) -> Vec<String> {
        let view = &self.view;
        let reason = view.reason_code.as_ref().map(|code| format!(" ({code})"));
        let spend = figures::spend(&view.usage).unwrap_or_else(|| "none reported".to_owned());
        let changes = match &self.diff {
            Some(diff) => {
                let files = figures::count(diff.files.len(), "file");
                format!("{files} +{} -{}", diff.added, diff.deleted)
            }
            None => "no snapshots".to_owned(),
        };
        let from = view.forked_from.as_ref();
        let from = from.map(|from| format!("{} at turn {}", from.run, from.turn));
        vec![
            output::called(view).to_string(),
            format!("{}{}", view.state, reason.unwrap_or_default()),
            view.agent.kind.clone(),
            view.turns_committed.to_string(),
            spend,
            view.worked_ms.map_or_else(|| "-".to_owned(), short),
            changes,
            from.unwrap_or_else(|| "-".to_owned()),
        ]
    }
}

const ROWS: [&str; 8] =
    ["run", "outcome", "agent", "turns", "spend", "time", "changes", "forked from"];

fn page(compared: &[Compared]) -> String {
    let columns: Vec<Vec<String>> = compared
        .iter()
        .map(|one| one.cells().iter().map(|cell| printable(cell)).collect())
        .collect();
    let width = |column: &[String]| column.iter().map(|it| it.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(|column| width(column)).collect();
    let line = |at: usize| {
        let cells = columns.iter().zip(&widths).map(|(column, width)| {
            let cell = &column[at];
            format!("{cell:<width$}")
        });
        let cells: Vec<String> = cells.collect();
        format!("{:<12} {}", ROWS[at], cells.join("  ")).trim_end().to_owned() + "\n"
    };
    (0..ROWS.len()).map(line).collect()
}
