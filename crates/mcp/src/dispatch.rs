//! Which tool a call is for.

use outlast_client::problem::Problem;
use outlast_wire::api::NoteKind;
use serde_json::Value;

use crate::arguments::Arguments;
use crate::declared::{self, Asked};
use crate::owner::Owner;
use crate::{calls, processes, reports, runs, table};

/// True of a tool whose effect cannot be taken back by a client that goes away.
pub(crate) fn must_end(name: &str) -> bool {
    name == "call" || !table::is_ours(name)
}

/// What the tool answers; `None` if there is no such tool.
pub(crate) async fn call(
    owner: &Owner<'_>,
    asked: &Asked,
    name: &str,
    given: Value,
) -> Result<Option<Value>, Problem> {
    if !table::is_ours(name) {
        return declared::make(owner, asked, name, given).await;
    }
    let args = Arguments::new(given)?;
    args.refuse_unknown(&table::takes(name))?;
    let args = &args;
    let done = match name {
        "proc_start" => processes::start(owner, args).await,
        "proc_list" => processes::list(owner).await,
        "proc_read" => processes::read(owner, args).await,
        "proc_write" => processes::write(owner, args).await,
        "proc_wait" => processes::wait(owner, args).await,
        "proc_stop" | "run_stop" => processes::stop(owner, args).await,
        "run_spawn" => runs::spawn(owner, args).await,
        "run_status" => runs::status(owner, args).await,
        "run_result" => runs::result(owner, args).await,
        "run_wait" => runs::wait(owner, args).await,
        "call" => calls::make(owner, args).await,
        "checkpoint" => reports::note(owner, NoteKind::Checkpoint, args.text("text")?).await,
        "note" => reports::note(owner, NoteKind::Note, args.text("text")?).await,
        "report_done" => reports::done(owner, args),
        "report_blocked" => reports::blocked(owner, args, "reason"),
        "ask_human" => reports::blocked(owner, args, "question"),
        "report_usage" => reports::usage(owner, args).await,
        "budget_left" => reports::left(owner).await,
        _ => return Ok(None),
    };
    done.map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::listed;

    #[test]
    fn each_tool_of_the_table_is_dispatched() {
        let source = include_str!("dispatch.rs");
        for tool in listed() {
            let name = tool["name"].as_str().expect("a name").to_owned();
            assert!(source.contains(&format!("\"{name}\"")), "{name}");
            assert!(must_end(&name) == (name == "call"));
        }
    }
}
