//! What an agent says of its turn: how it ends, what it used, and notes for the next attempt.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_wire::api::{NoteKind, ReportUsage, TakeNote};
use serde_json::{Value, json};

use crate::arguments::{Arguments, wrong};
use crate::owner::{Done, Owner};
use crate::processes::view_of;

pub(crate) fn done(owner: &Owner<'_>, args: &Arguments) -> Done {
    answer(owner, &json!({"status": "done", "summary": args.text("summary")?}))
}

pub(crate) fn blocked(owner: &Owner<'_>, args: &Arguments, name: &str) -> Done {
    answer(owner, &json!({"status": "blocked", "summary": args.text(name)?}))
}

/// Writes the response of the turn, whole or not at all. The last one before the turn ends counts.
fn answer(owner: &Owner<'_>, response: &Value) -> Done {
    let Some(path) = &owner.response else {
        return Err(Problem::refusal("not_in_a_run", "this attempt has no response file"));
    };
    let beside = path.with_extension("mcp");
    let written = || -> std::io::Result<()> {
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(response.to_string().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    written()
        .map_err(|error| Problem::failure(format_args!("cannot write the response: {error}")))?;
    Ok(json!({"recorded": response["status"], "next": "end your turn now"}))
}

pub(crate) async fn note(owner: &Owner<'_>, kind: NoteKind, text: String) -> Done {
    let body = TakeNote { id: Some(run_id::new()?), kind, text };
    let ask = Ask::post(&run_path(&owner.run, "/notes"), &body);
    let _taken: Value = owner.session().call(&ask).await?;
    Ok(json!({"recorded": true}))
}

pub(crate) async fn usage(owner: &Owner<'_>, args: &Arguments) -> Done {
    let report = ReportUsage {
        turn: Some(owner.turn),
        attempt: Some(owner.attempt),
        input_tokens: args.number("input_tokens")?,
        output_tokens: args.number("output_tokens")?,
        cached_tokens: args.number("cached_tokens")?,
        cost_usd: args.amount("cost_usd")?,
    };
    let is_nothing =
        report.input_tokens.or(report.output_tokens).or(report.cached_tokens).is_none()
            && report.cost_usd.is_none();
    if is_nothing {
        return Err(wrong(
            "say at least one of input_tokens, output_tokens, cached_tokens, cost_usd",
        ));
    }
    owner.session().call(&Ask::post(&run_path(&owner.run, "/usage"), &report)).await
}

pub(crate) async fn left(owner: &Owner<'_>) -> Done {
    let view = view_of(owner, &owner.run).await?;
    Ok(json!({
        "limits": view["limits"],
        "usage": view["usage"],
        "tree": view["tree"],
        "turn": owner.turn,
        "attempt": owner.attempt,
    }))
}
