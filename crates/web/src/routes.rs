//! Every route, in one table, behind the doors.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;

use crate::doors;
use crate::refusal::Refusal;
use crate::state::Web;
use crate::{assets, live, orders, pages, reads, shared, taps, tty, week};

const MOST_BODY: usize = 1024 * 1024;

/// Makes the router, and the list of what it routes, from one table.
macro_rules! routes {
    ($($method:ident $path:literal => $handler:expr;)*) => {
        /// Method and path of every route.
        #[cfg(test)]
        pub(crate) const ROUTES: &[(&str, &str)] = &[$((stringify!($method), $path)),*];

        pub(crate) fn router(web: Arc<Web>) -> Router {
            Router::new()$(.route($path, axum::routing::$method($handler)))*
                .fallback(no_such_path)
                .method_not_allowed_fallback(no_such_path)
                .layer(DefaultBodyLimit::max(MOST_BODY))
                .layer(from_fn_with_state(web.clone(), doors::pass))
                .with_state(web)
        }
    };
}

routes! {
    get "/" => assets::page;
    get "/needs-you" => assets::page;
    get "/runs" => assets::page;
    get "/runs/{run}" => assets::page;
    get "/report" => assets::page;
    get "/schedule" => assets::page;
    get "/spend" => assets::page;
    get "/sinks" => assets::page;
    get "/doctor" => assets::page;
    get "/start" => assets::page;
    get "/runs/{run}/term" => assets::terminal;
    get "/s/" => assets::link;
    get "/a/{token}" => taps::show;
    post "/a/{token}" => taps::press;
    get "/ui/{file}" => assets::file;
    post "/api/session" => reads::exchange;
    post "/api/session/end" => reads::end_session;
    post "/api/ticket" => tty::ticket;
    get "/api/tty/{run}" => tty::open;
    get "/api/live" => live::live;
    get "/api/report" => reads::report;
    get "/api/runs/{run}" => reads::view;
    get "/api/runs/{run}/turns/{turn}" => reads::turn;
    get "/api/runs/{run}/events" => reads::events;
    get "/api/runs/{run}/output" => reads::output;
    post "/api/runs/{run}/answer" => orders::answer;
    post "/api/runs/{run}/messages" => orders::send;
    post "/api/runs/{run}/pause" => orders::pause;
    post "/api/runs/{run}/resume" => orders::resume;
    post "/api/runs/{run}/stop" => orders::stop;
    post "/api/runs/{run}/raise" => orders::raise;
    get "/api/runs/{run}/turns" => pages::turns;
    get "/api/runs/{run}/tree" => pages::tree;
    get "/api/runs/{run}/diff" => pages::diff;
    get "/api/runs/{run}/output/search" => pages::search;
    get "/api/daemon" => pages::daemon;
    get "/api/budgets" => pages::budgets;
    get "/api/spend" => pages::spend;
    get "/api/sinks" => pages::sinks;
    get "/api/doctor" => pages::doctor;
    get "/api/triggers" => pages::triggers;
    get "/api/week" => week::week;
    get "/api/triggers/{trigger}/runs" => pages::trigger_runs;
    post "/api/triggers/{trigger}/run" => orders::run_trigger;
    post "/api/triggers/{trigger}/pause" => orders::pause_trigger;
    post "/api/triggers/{trigger}/resume" => orders::resume_trigger;
    post "/api/sinks/test" => orders::test_sink;
    post "/api/sinks/enable" => orders::enable_sink;
    post "/api/daemon/pause" => orders::pause_all;
    post "/api/daemon/resume" => orders::resume_all;
    get "/api/older" => pages::older;
    post "/api/runs" => orders::start;
    get "/api/s/run" => shared::view;
    get "/api/s/turns" => shared::turns;
    get "/api/s/live" => shared::live;
    get "/api/s/output" => shared::output;
    get "/api/s/output/search" => shared::search;
}

async fn no_such_path() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "unknown_path", "there is nothing at this address")
}
