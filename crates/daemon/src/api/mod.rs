//! The API for clients: HTTP and JSON on a unix socket, one file per noun.
//!
//! An answer comes from the run's conductor while it has one, and from the store otherwise. The rules are in `runs`.
//! Nothing here changes a run: a handler sends an input to the conductor and waits until the journal has it.

mod at_turn;
mod attach;
mod budgets;
mod callers;
mod calls;
mod client;
mod control;
pub(crate) mod creation;
mod daemon;
mod diff;
mod doctor;
pub(crate) mod error;
mod events;
mod extract;
pub(crate) mod gc;
mod hooks;
mod inside;
mod links;
mod openapi;
mod orders;
mod output;
mod pages;
mod pause_all;
mod probes;
pub(crate) mod public;
mod recover;
mod report;
mod rewind;
pub(crate) mod runs;
mod search;
mod sinks;
mod transcript;
mod tree;
mod triggers;
mod turns;
mod watch;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::serve::Listener;
use outlast_wire::codes::Code;
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};

use self::client::{Client, READS_WITHIN};
use crate::refusal::Answer;
use crate::refusal::Refusal;
use crate::supervisor::Supervisor;
use crate::world::limits;

type Daemon = State<Arc<Supervisor>>;

/// Answers until `leave` is over and every client has its answer. `replaced` brings the listener to go on with
/// when the socket had to be bound anew.
pub(crate) async fn serve(
    listener: UnixListener,
    replaced: mpsc::Receiver<UnixListener>,
    supervisor: Arc<Supervisor>,
    leave: impl Future<Output = ()> + Send + 'static,
) {
    let own_uid = rustix::process::geteuid().as_raw();
    let room = Arc::new(Semaphore::new(most_clients()));
    let service = router(supervisor).into_make_service_with_connect_info::<callers::Connecting>();
    let served = axum::serve(OwnUser { listener, replaced, own_uid, room }, service)
        .with_graceful_shutdown(leave)
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "the API stopped");
    }
}

/// In a task of its own: a client that hangs up must not leave what is written and not known, or half done.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Answer<T>> + Send + 'static,
) -> Answer<T> {
    #[expect(clippy::disallowed_methods, reason = "ends with a few writes, and is awaited here")]
    let done = tokio::spawn(work).await;
    done.map_err(|error| Refusal::new(Code::Bug, format!("an order died: {error}")))?
}

/// Makes the router, and the list of what it routes, from one table.
macro_rules! routes {
    ($($method:ident $path:literal => $handler:expr;)*) => {
        #[cfg(test)]
        pub(crate) const ROUTES: &[(&str, &str)] = &[$((stringify!($method), $path)),*];

        fn router(supervisor: Arc<Supervisor>) -> Router {
            Router::new()$(.route($path, axum::routing::$method($handler)))*.layer(creation::body_limit()).fallback(error::no_such_path).method_not_allowed_fallback(error::wrong_method).layer(axum::middleware::from_fn_with_state(supervisor.clone(), error::by_name)).with_state(supervisor)
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
    post "/v1/daemon/restart" => daemon::restart;
    post "/v1/daemon/handover" => daemon::handover;
    post "/v1/daemon/pause" => pause_all::pause_all;
    post "/v1/daemon/resume" => pause_all::resume_all;
    get "/v1/orders" => pause_all::list;
    get "/v1/budgets" => budgets::list;
    get "/v1/spend" => budgets::spend;
    get "/v1/doctor" => doctor::examine;
    get "/v1/report" => report::night;
    post "/v1/gc" => gc::collect;
    post "/v1/recover" => recover::recover;
    get "/v1/sinks" => sinks::list;
    post "/v1/sinks/test" => sinks::test;
    post "/v1/sinks/enable" => sinks::enable;
    get "/v1/openapi.json" => openapi::document;
    get "/v1/runs" => runs::list;
    get "/v1/watch" => watch::watch;
    get "/v1/events" => events::list_all;
    post "/v1/runs" => creation::create;
    get "/v1/runs/{run}" => runs::show;
    delete "/v1/runs/{run}" => runs::remove;
    post "/v1/runs/{run}/stop" => orders::stop;
    post "/v1/runs/{run}/messages" => control::send;
    post "/v1/runs/{run}/answer" => orders::answer;
    post "/v1/runs/{run}/pause" => orders::pause;
    post "/v1/runs/{run}/resume" => orders::resume;
    post "/v1/runs/{run}/raise" => orders::raise;
    post "/v1/runs/{run}/rerun" => creation::rerun;
    post "/v1/runs/{run}/restore" => rewind::restore;
    post "/v1/runs/{run}/fork" => rewind::fork;
    post "/v1/runs/{run}/merge" => rewind::merge;
    get "/v1/runs/{run}/pr" => rewind::pull_request;
    post "/v1/runs/{run}/usage" => control::usage;
    post "/v1/runs/{run}/turn" => at_turn::at_turn;
    post "/v1/runs/{run}/notes" => inside::note;
    get "/v1/runs/{run}/tools" => inside::tools;
    get "/v1/runs/{run}/calls" => calls::list;
    post "/v1/runs/{run}/calls" => calls::begin;
    post "/v1/runs/{run}/calls/result" => calls::end;
    post "/v1/runs/{run}/calls/resolve" => calls::resolve;
    get "/v1/runs/{run}/turns" => turns::list;
    get "/v1/runs/{run}/turns/{turn}" => turns::show;
    get "/v1/runs/{run}/tree" => tree::tree;
    get "/v1/runs/{run}/diff" => diff::diff;
    get "/v1/runs/{run}/children" => tree::children;
    get "/v1/runs/{run}/wait" => runs::wait;
    get "/v1/runs/{run}/events" => events::list;
    get "/v1/runs/{run}/output" => output::read;
    get "/v1/runs/{run}/output/search" => search::search;
    get "/v1/runs/{run}/transcript" => transcript::read;
    get "/v1/runs/{run}/attach" => attach::attach;
    get "/v1/links/{token}" => links::show;
    post "/v1/links/{token}" => links::press;
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

/// Connections at once, far above what people and scripts open, and never all descriptors that there are.
/// Clients that come then wait in the kernel's queue.
fn most_clients() -> usize {
    usize::try_from(limits::open_files() / 2).unwrap_or(usize::MAX).clamp(8, 4096)
}

/// After an accept that failed for want of descriptors or memory.
const AFTER_SHORTAGE: Duration = Duration::from_millis(200);

/// Accepts connections of our own user and drops all others.
struct OwnUser {
    listener: UnixListener,
    /// Brings the listener of a socket that was bound anew.
    replaced: mpsc::Receiver<UnixListener>,
    own_uid: u32,
    room: Arc<Semaphore>,
}

impl Listener for OwnUser {
    type Io = Client<UnixStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let place = self.room.clone().acquire_owned().await.expect("no client closes it");
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                Some(listener) = self.replaced.recv() => {
                    self.listener = listener;
                    continue;
                }
            };
            let (stream, address) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "a connection was not accepted");
                    tokio::time::sleep(AFTER_SHORTAGE).await;
                    continue;
                }
            };
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == self.own_uid => {
                    return (Client::new(stream, READS_WITHIN, place), address);
                }
                Ok(peer) => tracing::warn!(uid = peer.uid(), "another user was turned away"),
                Err(error) => {
                    tracing::warn!(%error, "refused a connection without credentials");
                }
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}
