//! What a run and those below it may have together, and what becomes of its children when it ends.
//!
//! 0 levels and 0 runs are caps like others here: no run may be below it. What a parent gives a child is lower still;
//! that is decided when the child is asked for.

use outlast_engine::{OnEnd, Room, TreeRules};

use super::Origin;
use super::sheet::Sheet;

pub(super) fn rules(sheet: &mut Sheet<'_>) -> TreeRules {
    let asked = sheet.overrides.room;
    let room = Room {
        depth: cap(sheet, "tree.depth", asked.depth),
        width: cap(sheet, "tree.width", asked.width),
        runs: cap(sheet, "tree.runs", asked.runs),
        turns: cap(sheet, "tree.turns", asked.turns),
        // Those of the tree are those of the run at its top: `limits`.
        tokens: None,
        cost_usd_micros: None,
    };
    TreeRules { room, children: children(sheet) }
}

fn cap(sheet: &mut Sheet<'_>, key: &str, flag: Option<u64>) -> Option<u64> {
    let (value, origin) = match (flag, sheet.whole(key)) {
        (Some(flag), _) => (Some(flag), Origin::CommandLine),
        (None, Some((value, line))) => (Some(value), Origin::Workflow { line }),
        (None, None) => (None, Origin::Default),
    };
    let shown = value.map_or("no limit".to_owned(), |value| value.to_string());
    sheet.note(key, shown, origin);
    value
}

fn children(sheet: &mut Sheet<'_>) -> OnEnd {
    let key = "tree.children";
    let given = sheet.text(key).and_then(|(word, line)| Some((OnEnd::of(word)?, line)));
    let (policy, origin) = match (sheet.overrides.children, given) {
        (Some(flag), _) => (flag, Origin::CommandLine),
        (None, Some((policy, line))) => (policy, Origin::Workflow { line }),
        (None, None) => (OnEnd::default(), Origin::Default),
    };
    sheet.note(key, policy.word(), origin);
    policy
}
