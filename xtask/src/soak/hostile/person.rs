//! A person who comes by, answers what is asked, says a word to what waits for one, and sees to what an older
//! journal has forgotten.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::Soak;
use crate::interrupt;

/// What was answered: how many journals had been put back by then, the run, and the last event that was seen. An
/// older journal asks again what was answered, under the same numbers.
pub(super) type Said = BTreeSet<(usize, String, u64)>;

pub(super) fn go_on(soak: &Soak<'_>) -> Result<()> {
    let mut said = Said::new();
    while !soak.ledger.is_over() {
        interrupt::pause(Duration::from_millis(300));
        come_by(soak, &mut said);
    }
    Ok(())
}

/// One look at everything. An order that fails is given at the next look.
pub(super) fn come_by(soak: &Soak<'_>, said: &mut Said) {
    let _not_while_quiet = soak.ledger.quiet.read().expect("no holder panics");
    let Ok(listed) = soak.outlast.ask_json(&["ps", "--json"]) else { return };
    let restores = soak.ledger.restores().len();
    for row in listed.as_array().into_iter().flatten() {
        let Some(id) = row["id"].as_str() else { continue };
        let Ok(view) = soak.outlast.show(id) else { continue };
        let Some(wanted) = wanted(soak, id, &view) else { continue };
        let seq = view["seq"].as_u64().unwrap_or(0);
        // What was asked once is answered once.
        if !said.insert((restores, id.to_owned(), seq)) {
            continue;
        }
        if !give(soak, id, seq, wanted) {
            said.remove(&(restores, id.to_owned(), seq));
        }
    }
}

enum Wanted {
    /// A text, by this verb.
    Word(&'static str),
    /// No more than this verb.
    Deed(&'static [&'static str]),
    StopAgain,
}

fn wanted(soak: &Soak<'_>, id: &str, view: &Value) -> Option<Wanted> {
    if let Some("journal_behind" | "not_in_journal") = view["trouble"]["code"].as_str() {
        return Some(Wanted::Deed(&["recover"]));
    }
    if soak.ledger.has_lost_stop(id) {
        return Some(Wanted::StopAgain);
    }
    match (view["state"].as_str(), view["reason_code"].as_str(), view["phase"].as_str()) {
        (Some("blocked"), Some("agent_blocked"), _) => Some(Wanted::Word("answer")),
        (Some("waiting"), _, Some("message")) => Some(Wanted::Word("send")),
        (Some("blocked"), Some("recovered"), _) => Some(Wanted::Deed(&["resume"])),
        _ => None,
    }
}

/// True if it was acknowledged.
fn give(soak: &Soak<'_>, id: &str, seq: u64, wanted: Wanted) -> bool {
    match wanted {
        Wanted::Word(verb) => {
            let text = format!("the word of {id} at {seq}");
            let is_taken = soak.outlast.ask(&[verb, id, &text]).is_ok();
            if is_taken {
                soak.ledger.ordered(id, &text);
            }
            is_taken
        }
        Wanted::Deed(verb) => soak.outlast.ask(&[verb, &[id]].concat()).is_ok(),
        Wanted::StopAgain => {
            let is_taken = soak.outlast.ask(&["stop", "--now", id]).is_ok();
            if is_taken {
                soak.ledger.stopped(id);
            }
            is_taken
        }
    }
}
