//! The API, described for machines. Tests hold it to the routes there are, and to the rules of OpenAPI.
//!
//! A handler describes what is its own; `complete` adds what holds for all of them.

mod complete;

use axum::Json;
use outlast_wire::api::{ErrorBody, RunRow, RunView};
use serde_json::Value;
use utoipa::OpenApi;

use super::{
    at_turn, attach, budgets, calls, control, creation, daemon, diff, doctor, events, gc, hooks,
    inside, links, orders, output, pause_all, probes, recover, report, rewind, runs, search, sinks,
    transcript, tree, triggers, turns, watch,
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
        daemon::restart,
        pause_all::pause_all,
        pause_all::resume_all,
        pause_all::list,
        budgets::list,
        budgets::spend,
        doctor::examine,
        report::night,
        gc::collect,
        recover::recover,
        sinks::list,
        sinks::test,
        sinks::enable,
        document,
        runs::list,
        watch::watch,
        events::list_all,
        creation::create,
        creation::rerun,
        runs::show,
        runs::remove,
        orders::stop,
        control::send,
        orders::answer,
        orders::pause,
        orders::resume,
        orders::raise,
        control::usage,
        at_turn::at_turn,
        inside::note,
        inside::tools,
        calls::list,
        calls::begin,
        calls::end,
        calls::resolve,
        turns::list,
        turns::show,
        tree::tree,
        tree::children,
        diff::diff,
        rewind::restore,
        rewind::fork,
        rewind::merge,
        rewind::pull_request,
        runs::wait,
        events::list,
        output::read,
        search::search,
        transcript::read,
        attach::attach,
        links::show,
        links::press,
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

/// Returns this document
///
/// It is made from the routes that the daemon serves.
#[utoipa::path(get, operation_id = "show_openapi", path = "/v1/openapi.json", responses((status = 200, description = "this document", body = Object)))]
pub(crate) async fn document() -> Json<Value> {
    Json(whole())
}

fn whole() -> Value {
    let mut document = serde_json::to_value(Document::openapi()).expect("it is plain data");
    complete::complete(&mut document);
    document
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Each operation with its method and path.
    fn operations() -> Vec<(String, String, Value)> {
        let document = whole();
        let paths = document["paths"].as_object().expect("it has paths");
        let of = |path: &String, methods: &Value| {
            let methods = methods.as_object().expect("a path has methods").clone();
            let path = path.clone();
            methods.into_iter().map(move |(method, operation)| (method, path.clone(), operation))
        };
        paths.iter().flat_map(|(path, methods)| of(path, methods)).collect()
    }

    #[test]
    fn the_document_lists_exactly_the_routes_there_are() {
        let mut documented: Vec<(String, String)> =
            operations().into_iter().map(|(method, path, _)| (method, path)).collect();
        let mut routed: Vec<(String, String)> = super::super::ROUTES
            .iter()
            .map(|(method, path)| ((*method).to_owned(), (*path).to_owned()))
            .collect();
        documented.sort();
        routed.sort();
        assert_eq!(documented, routed);
    }

    #[test]
    fn every_operation_has_an_id_of_its_own_and_says_what_it_does() {
        let mut ids = BTreeSet::new();
        for (method, path, operation) in operations() {
            let word = |key: &str| operation[key].as_str().unwrap_or_default().to_owned();
            assert!(ids.insert(word("operationId")), "{method} {path}: its operation_id is taken");
            assert!(!word("summary").is_empty(), "{method} {path} has no summary");
            assert!(!word("description").is_empty(), "{method} {path} has no description");
        }
    }

    #[test]
    fn every_answer_and_every_parameter_is_described() {
        for (method, path, operation) in operations() {
            for (status, response) in operation["responses"].as_object().expect("it has answers") {
                let is_described =
                    response["description"].as_str().is_some_and(|it| !it.is_empty());
                assert!(is_described || response["$ref"].is_string(), "{method} {path} {status}");
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let is_described =
                    parameter["description"].as_str().is_some_and(|it| !it.is_empty());
                assert!(is_described, "{method} {path}: {}", parameter["name"]);
            }
        }
    }

    #[test]
    fn a_parameter_is_in_the_path_if_the_path_names_it() {
        for (method, path, operation) in operations() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().expect("a parameter has a name");
                let place = if path.contains(&format!("{{{name}}}")) { "path" } else { "query" };
                assert_eq!(parameter["in"], place, "{method} {path}: {name}");
            }
        }
    }
}
