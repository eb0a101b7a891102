//! The API, described for machines. A test holds it to the routes there are.

use axum::Json;
use outlast_wire::api::{ErrorBody, RunRow, RunView};
use utoipa::OpenApi;

use super::{
    at_turn, attach, budgets, control, creation, daemon, doctor, events, gc, hooks, orders, output,
    pause_all, probes, recover, runs, sinks, transcript, tree, triggers, turns, watch,
};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Outlast",
        description = "A durable, unattended runner for agent loops. Served on a unix socket."
    ),
    paths(
        probes::healthz,
        probes::readyz,
        probes::metrics,
        daemon::version,
        daemon::status,
        daemon::stop,
        daemon::handover,
        pause_all::pause_all,
        pause_all::resume_all,
        pause_all::list,
        budgets::list,
        doctor::examine,
        gc::collect,
        recover::recover,
        sinks::list,
        sinks::test,
        sinks::enable,
        document,
        runs::list,
        watch::watch,
        creation::create,
        runs::show,
        runs::remove,
        orders::stop,
        control::send,
        orders::answer,
        orders::pause,
        orders::resume,
        control::usage,
        at_turn::at_turn,
        turns::show,
        tree::tree,
        runs::wait,
        events::list,
        output::read,
        transcript::read,
        attach::attach,
        triggers::list,
        triggers::add,
        triggers::show,
        triggers::remove,
        triggers::run,
        triggers::pause,
        triggers::resume,
        triggers::next,
        hooks::receive,
    ),
    components(schemas(ErrorBody, RunRow, RunView))
)]
struct Document;

#[utoipa::path(get, path = "/v1/openapi.json", responses((status = 200, description = "this document")))]
pub(crate) async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_exactly_the_routes_there_are() {
        let document =
            serde_json::to_value(Document::openapi()).expect("the document is plain data");
        let paths = document["paths"].as_object().expect("it has paths");
        let mut documented: Vec<(String, String)> = paths
            .iter()
            .flat_map(|(path, methods)| {
                methods
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(move |(method, _)| (method.clone(), path.clone()))
            })
            .collect();
        let mut routed: Vec<(String, String)> = super::super::ROUTES
            .iter()
            .map(|(method, path)| ((*method).to_owned(), (*path).to_owned()))
            .collect();
        documented.sort();
        routed.sort();
        assert_eq!(documented, routed);
    }
}
