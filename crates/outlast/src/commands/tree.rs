//! `outlast tree`: a run and those that belong to it.

use outlast_client::ask::{Ask, run_path};
use outlast_client::session::Session;
use outlast_wire::api::{RunRow, RunTree};

use crate::Answer;
use crate::args::Tree;
use crate::output::state::Condition;
use crate::output::{self, printable};
use crate::world::World;

pub(crate) async fn tree(world: &World, args: Tree) -> Answer {
    let ask = Ask::get(&run_path(&args.run, "/tree"));
    let tree: RunTree = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&tree)?;
    } else {
        output::print(&page(&tree))?;
    }
    Ok(0)
}

fn page(tree: &RunTree) -> String {
    let mut text = line(&tree.run) + "\n";
    branches(&tree.children, "", &mut text);
    text
}

fn branches(children: &[RunTree], before: &str, text: &mut String) {
    for (at, child) in children.iter().enumerate() {
        let is_last = at + 1 == children.len();
        let (branch, trunk) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        text.push_str(&format!("{before}{branch}{}\n", line(&child.run)));
        branches(&child.children, &format!("{before}{trunk}"), text);
    }
}

/// `k3mx7q9w2r5t  running  tests: make check`
fn line(run: &RunRow) -> String {
    let condition = Condition {
        state: &run.state,
        reason_code: run.reason_code.as_ref(),
        health: &run.health,
        exit: run.exit,
        survivors: usize::try_from(run.survivors).unwrap_or(usize::MAX),
        trouble: run.trouble.as_ref(),
    };
    let name = run.name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
    format!("{}  {}  {}", run.id, condition.words(), printable(&format!("{name}{}", run.what)))
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
        RunTree { run: serde_json::from_value(row).expect("a row"), children }
    }

    #[test]
    fn a_tree_shows_who_belongs_to_whom() {
        let leaf = run("c", "completed", None, Vec::new());
        let first = run("b", "running", Some("tests"), vec![leaf]);
        let second = run("d", "queued", None, Vec::new());
        let tree = run("a", "waiting", Some("night\nly"), vec![first, second]);
        assert_eq!(
            page(&tree),
            "a  waiting  night·ly: make\n\
             ├─ b  running  tests: make\n\
             │  └─ c  completed  make\n\
             └─ d  queued  make\n"
        );
        let json = serde_json::to_value(&tree).expect("plain data");
        assert_eq!(json["children"][0]["children"][0]["id"], "c");
    }
}
