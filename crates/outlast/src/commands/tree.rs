//! `outlast tree`: a run and those that belong to it.

use jiff::Timestamp;
use outlast_client::ask::{Ask, run_path};
use outlast_client::session::Session;
use outlast_wire::api::RunTree;

use crate::Answer;
use crate::args::Tree;
use crate::output::figures::Spend;
use crate::output::state::Condition;
use crate::output::table::clipped;
use crate::output::{self, pots, printable};
use crate::world::World;

pub(crate) async fn tree(world: &World, args: Tree) -> Answer {
    let ask = Ask::get(&run_path(&args.run, "/tree"));
    let tree: RunTree = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&tree)?;
    } else {
        output::print(&page(&tree, world.now(), world.columns()))?;
    }
    Ok(0)
}

fn page(tree: &RunTree, now: Timestamp, columns: Option<usize>) -> String {
    let mut lines = vec![line(tree, now)];
    branches(&tree.children, "", now, &mut lines);
    let fitting = |line: &String| match columns {
        Some(columns) => format!("{}\n", clipped(line, columns)),
        None => format!("{line}\n"),
    };
    lines.iter().map(fitting).collect()
}

fn branches(children: &[RunTree], before: &str, now: Timestamp, lines: &mut Vec<String>) {
    for (at, child) in children.iter().enumerate() {
        let is_last = at + 1 == children.len();
        let (branch, trunk) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        lines.push(format!("{before}{branch}{}", line(child, now)));
        branches(&child.children, &format!("{before}{trunk}"), now, lines);
    }
}

/// `k3mx7q9w2r5t  tests  running, turn 3  $0.42  15k tokens  of $5.00, $2.00 reserved  make check`
fn line(tree: &RunTree, now: Timestamp) -> String {
    let run = &tree.run;
    let state = Condition::from(run).at(now).words();
    let turn = (run.turn > 1).then(|| format!("turn {}", run.turn));
    let spend = Spend::from(run);
    let tokens = spend.count().map(|count| format!("{count} tokens"));
    let budget = tree.budget.as_ref().and_then(pots::line);
    let name = run.name.as_deref().map(printable);
    let what = Some(printable(&run.what));
    let parts = [name, Some(state), turn, spend.money(), tokens, budget, what];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}  {}", run.id, parts.join("  "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, state: &str, name: Option<&str>, children: Vec<RunTree>) -> RunTree {
        let row = serde_json::json!({
            "id": id, "name": name, "state": state, "reason_code": null, "health": "healthy",
            "what": "make", "turn": 1, "attempt": 1, "created_at": "2026-11-15T11:57:00Z",
            "started_at": null, "ended_at": null, "exit": null, "labels": {}, "survivors": 0,
            "trouble": null,
        });
        RunTree { run: serde_json::from_value(row).expect("a row"), budget: None, children }
    }

    #[test]
    fn a_tree_shows_who_belongs_to_whom() {
        let leaf = run("c", "completed", None, Vec::new());
        let first = run("b", "running", Some("tests"), vec![leaf]);
        let second = run("d", "queued", None, Vec::new());
        let tree = run("a", "waiting", Some("night\nly"), vec![first, second]);
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        assert_eq!(
            page(&tree, now, None),
            "a  night·ly  waiting  make\n\
             ├─ b  tests  running  make\n\
             │  └─ c  completed  make\n\
             └─ d  queued  make\n"
        );
        assert_eq!(page(&tree, now, Some(12)).lines().nth(2), Some("│  └─ c  co…"));
        let json = serde_json::to_value(&tree).expect("plain data");
        assert_eq!(json["children"][0]["children"][0]["id"], "c");
    }
}
