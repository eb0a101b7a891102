//! What the pages beside the list and the run ask: each is one question of the daemon's, passed on with its bounds.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use outlast_client::ask::{Ask, run_path};
use outlast_client::session::Session;
use outlast_wire::api::RunRow;
use serde_json::{Value, json};

use crate::asked::{Asked, checked, named, number};
use crate::refusal::Refusal;
use crate::state::Web;
use crate::truth;

type Done = Result<Response, Refusal>;
type Here = State<Arc<Web>>;

pub(crate) async fn daemon(State(web): Here) -> Done {
    told(&web, Ask::get("/v1/daemon")).await
}

pub(crate) async fn budgets(State(web): Here) -> Done {
    told(&web, Ask::get("/v1/budgets")).await
}

pub(crate) async fn spend(State(web): Here, Query(asked): Asked) -> Done {
    let ask = Ask::get("/v1/spend").query_if("days", number(&asked, "days")?);
    told(&web, ask.query_if("tz", asked.get("tz"))).await
}

pub(crate) async fn sinks(State(web): Here) -> Done {
    told(&web, Ask::get("/v1/sinks")).await
}

pub(crate) async fn doctor(State(web): Here) -> Done {
    told(&web, Ask::get("/v1/doctor")).await
}

pub(crate) async fn triggers(State(web): Here) -> Done {
    told(&web, Ask::get("/v1/triggers")).await
}

/// The newest runs that a trigger made.
pub(crate) async fn trigger_runs(State(web): Here, Path(trigger): Path<String>) -> Done {
    let ask = Ask::get("/v1/runs").query("all", true).query("trigger", named(&trigger)?);
    told(&web, ask.query("limit", MOST_PAST)).await
}

/// Runs that are older than one, a page of them, as the live list has its rows.
pub(crate) async fn older(State(web): Here, Query(asked): Asked) -> Done {
    let mut ask = Ask::get("/v1/runs").query("all", true).query("limit", MOST_OLDER);
    if let Some(before) = asked.get("before") {
        ask = ask.query("before", checked(before)?);
    }
    let rows: Vec<RunRow> = Session::again(&web.world).call(&ask).await?;
    let rows: Vec<Value> = rows.iter().map(|row| row_of(&web, row)).collect();
    Ok(Json(rows).into_response())
}

/// Runs of one page of older ones.
const MOST_OLDER: u64 = 200;

/// A row, how it stands, and what is not known of it.
pub(crate) fn row_of(web: &Web, run: &RunRow) -> Value {
    let told = (web.words.row)(run);
    let told = json!({ "group": told.group, "words": told.words });
    json!({ "told": told, "truths": truth::of_row(run), "run": run })
}

/// Runs of a trigger that the schedule shows.
const MOST_PAST: u64 = 50;

pub(crate) async fn turns(State(web): Here, Path(run): Path<String>, Query(asked): Asked) -> Done {
    let mut ask = Ask::get(&run_path(checked(&run)?, "/turns"));
    for name in ["before", "limit"] {
        ask = ask.query_if(name, number(&asked, name)?);
    }
    told(&web, ask).await
}

pub(crate) async fn tree(State(web): Here, Path(run): Path<String>) -> Done {
    told(&web, Ask::get(&run_path(checked(&run)?, "/tree"))).await
}

/// Of turns, or of all that the run has done; with `patch` the diff itself.
pub(crate) async fn diff(State(web): Here, Path(run): Path<String>, Query(asked): Asked) -> Done {
    let mut ask = Ask::get(&run_path(checked(&run)?, "/diff"));
    ask = ask.query_if("turns", asked.get("turns")).query_if("paths", asked.get("paths"));
    told(&web, ask.query("patch", true)).await
}

/// Where a text is in the output; a search looks through a bounded part, and says where to go on.
pub(crate) async fn search(State(web): Here, Path(run): Path<String>, Query(asked): Asked) -> Done {
    let mut ask = Ask::get(&run_path(checked(&run)?, "/output/search"));
    ask = ask.query_if("q", asked.get("q"));
    for name in ["turn", "attempt", "from_turn", "from_attempt", "from_offset"] {
        ask = ask.query_if(name, number(&asked, name)?);
    }
    told(&web, ask).await
}

async fn told(web: &Web, ask: Ask) -> Done {
    let body = Session::again(&web.world).fetch(&ask).await?;
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}
