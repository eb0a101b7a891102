//! What clients talk to: HTTP and JSON on a unix socket, one file a noun.
//!
//! Answers are read from the run's conductor while it has one and from the store otherwise. Nothing here
//! changes a run: it brings news to the conductor and waits until the journal has it.

mod attach;
mod budgets;
mod control;
pub(crate) mod creation;
mod daemon;
mod doctor;
pub(crate) mod error;
mod events;
pub(crate) mod gc;
mod hooks;
mod openapi;
mod output;
mod probes;
pub(crate) mod public;
pub(crate) mod runs;
mod sinks;
pub(crate) mod spec;
mod tree;
mod triggers;
mod turns;
mod watch;

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::serve::Listener;
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};

use crate::supervisor::Supervisor;

type Daemon = State<Arc<Supervisor>>;

/// Answers until `leave` is over and everybody has their answer.
pub(crate) async fn serve(
    listener: UnixListener,
    supervisor: Arc<Supervisor>,
    leave: impl Future<Output = ()> + Send + 'static,
) {
    let own_uid = rustix::process::geteuid().as_raw();
    let served = axum::serve(OwnUser { listener, own_uid }, router(supervisor))
        .with_graceful_shutdown(leave)
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "the API stopped");
    }
}

/// Makes the router, and the list of what it routes, from one table.
macro_rules! routes {
    ($($method:ident $path:literal => $handler:expr;)*) => {
        #[cfg(test)]
        pub(crate) const ROUTES: &[(&str, &str)] = &[$((stringify!($method), $path)),*];

        fn router(supervisor: Arc<Supervisor>) -> Router {
            Router::new()$(.route($path, axum::routing::$method($handler)))*.fallback(error::no_such_path).with_state(supervisor)
        }
    };
}

routes! {
    get "/healthz" => probes::healthz;
    get "/readyz" => probes::readyz;
    get "/metrics" => probes::metrics;
    get "/v1/version" => daemon::version;
    get "/v1/daemon" => daemon::status;
    post "/v1/daemon/stop" => daemon::stop;
    post "/v1/daemon/handover" => daemon::handover;
    post "/v1/daemon/pause" => budgets::pause_all;
    post "/v1/daemon/resume" => budgets::resume_all;
    get "/v1/budgets" => budgets::list;
    get "/v1/doctor" => doctor::examine;
    post "/v1/gc" => gc::collect;
    get "/v1/sinks" => sinks::list;
    post "/v1/sinks/test" => sinks::test;
    post "/v1/sinks/enable" => sinks::enable;
    get "/v1/openapi.json" => openapi::document;
    get "/v1/runs" => runs::list;
    get "/v1/watch" => watch::watch;
    post "/v1/runs" => creation::create;
    get "/v1/runs/{run}" => runs::show;
    delete "/v1/runs/{run}" => runs::remove;
    post "/v1/runs/{run}/stop" => runs::stop;
    post "/v1/runs/{run}/messages" => control::send;
    post "/v1/runs/{run}/answer" => control::answer;
    post "/v1/runs/{run}/pause" => control::pause;
    post "/v1/runs/{run}/resume" => control::resume;
    post "/v1/runs/{run}/usage" => control::usage;
    get "/v1/runs/{run}/turns/{turn}" => turns::show;
    get "/v1/runs/{run}/tree" => tree::tree;
    get "/v1/runs/{run}/wait" => runs::wait;
    get "/v1/runs/{run}/events" => events::list;
    get "/v1/runs/{run}/output" => output::read;
    get "/v1/runs/{run}/attach" => attach::attach;
    get "/v1/triggers" => triggers::list;
    post "/v1/triggers" => triggers::add;
    get "/v1/triggers/{trigger}" => triggers::show;
    delete "/v1/triggers/{trigger}" => triggers::remove;
    post "/v1/triggers/{trigger}/run" => triggers::run;
    post "/v1/triggers/{trigger}/pause" => triggers::pause;
    post "/v1/triggers/{trigger}/resume" => triggers::resume;
    get "/v1/next" => triggers::next;
    post "/hooks/{trigger}" => hooks::receive;
}

/// Accepts connections of our own user and drops all others.
struct OwnUser {
    listener: UnixListener,
    own_uid: u32,
}

impl Listener for OwnUser {
    type Io = UnixStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.own_uid => return (stream, address),
                Ok(peer) => tracing::warn!(uid = peer.uid(), "another user was turned away"),
                Err(error) => {
                    tracing::warn!(%error, "somebody without credentials was turned away");
                }
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
