//! The listener besides the unix socket: TCP, for probes and inbound webhooks, only where the config asks for it.
//!
//! Never serves the control API. Takes one request a connection, so many at once, each within a time. An address
//! that cannot be had keeps nothing else from working: it is tried again for a while, and `doctor` says so.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use outlast_workflow::Listen;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::Tasks;

/// Connections at once; further clients wait in the kernel's queue.
const MOST_CONNECTIONS: usize = 64;

/// For one request, from the first byte to the last of its answer.
const ONE_REQUEST: Duration = Duration::from_secs(30);
const ITS_HEADER: Duration = Duration::from_secs(10);

/// Between two tries to have an address, and how many there are before only a changed config helps.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(300);
const MOST_TRIES: u32 = 12;

/// After an accept that failed, which is mostly for want of descriptors.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// How it stands with the listener, for `doctor`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListenerStatus {
    #[default]
    Off,
    On {
        address: SocketAddr,
        is_remote: bool,
    },
    /// As it is written it will never do.
    Refused {
        why: String,
        hint: &'static str,
    },
    Failing {
        address: SocketAddr,
        error: String,
        tries: u32,
    },
}

#[derive(Default)]
pub(crate) struct Listening {
    status: Mutex<ListenerStatus>,
}

impl Listening {
    pub(crate) fn status(&self) -> ListenerStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn is(&self, status: ListenerStatus) {
        match &status {
            ListenerStatus::Off => {}
            ListenerStatus::On { address, .. } => tracing::info!(%address, "listening"),
            ListenerStatus::Refused { why, .. } => tracing::error!(%why, "not listening"),
            ListenerStatus::Failing { address, error, tries } => {
                tracing::error!(%address, %error, tries, "cannot listen");
            }
        }
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

/// Listens where the config says, as long as it says so.
pub(super) async fn follow(tasks: &Arc<Tasks>) {
    // A client that is being answered is answered, also if the listener moves meanwhile.
    let mut connections = JoinSet::new();
    super::with_each(
        tasks,
        |config| config.listen.clone(),
        async |listen: Listen| {
            let listening = &tasks.operator.listening;
            match wanted(&listen) {
                Err(status) => listening.is(status),
                Ok(address) => {
                    let Some(listener) = bind(tasks, address).await else { return };
                    let address = listener.local_addr().unwrap_or(address);
                    listening
                        .is(ListenerStatus::On { address, is_remote: !address.ip().is_loopback() });
                    serve(tasks, &listener, listen.token, &mut connections).await;
                }
            }
        },
    )
    .await;
}

/// The address to listen on, or how it stands without one.
fn wanted(listen: &Listen) -> Result<SocketAddr, ListenerStatus> {
    let Some(text) = &listen.address else { return Err(ListenerStatus::Off) };
    let address: SocketAddr = text.parse().map_err(|_| ListenerStatus::Refused {
        why: format!("listen.address {text:?} is not an IP address and a port"),
        hint: "write it like 127.0.0.1:9797 or [::1]:9797",
    })?;
    if !address.ip().is_loopback() && !listen.allow_remote {
        return Err(ListenerStatus::Refused {
            why: format!("listen.address {address} can be reached from other machines"),
            hint: "use 127.0.0.1, or say listen.allow_remote = true if that is meant",
        });
    }
    Ok(address)
}

async fn bind(tasks: &Tasks, address: SocketAddr) -> Option<TcpListener> {
    let mut retry_in = FIRST_RETRY;
    for tries in 1..=MOST_TRIES {
        match TcpListener::bind(address).await {
            Ok(listener) => return Some(listener),
            Err(error) => {
                let error = error.to_string();
                tasks.operator.listening.is(ListenerStatus::Failing { address, error, tries });
            }
        }
        tokio::time::sleep(retry_in).await;
        retry_in = (retry_in * 2).min(LAST_RETRY);
    }
    None
}

/// Answers for ever.
async fn serve(
    tasks: &Arc<Tasks>,
    listener: &TcpListener,
    token: Option<String>,
    connections: &mut JoinSet<()>,
) {
    let router = (tasks.above.router)(token);
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let place = room.clone().acquire_owned().await.expect("no task closes it");
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => drop(connections.spawn(answer(stream, router.clone(), place))),
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                tokio::time::sleep(AFTER_ERROR).await;
            }
        }
    }
}

/// One request, one answer.
async fn answer(stream: TcpStream, router: axum::Router, _place: OwnedSemaphorePermit) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ITS_HEADER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    // What goes wrong on the way to a client, or takes too long, is the client's to notice.
    drop(tokio::time::timeout(ONE_REQUEST, connection).await);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listen(address: &str, allow_remote: bool) -> Result<SocketAddr, ListenerStatus> {
        wanted(&Listen { address: Some(address.to_owned()), allow_remote, token: None })
    }

    #[test]
    fn other_machines_reach_nothing_unless_that_is_said() {
        assert_eq!(wanted(&Listen::default()), Err(ListenerStatus::Off));
        for local in ["127.0.0.1:9797", "[::1]:9797", "127.8.8.8:0"] {
            assert!(listen(local, false).is_ok(), "{local}");
        }
        for remote in ["0.0.0.0:9797", "[::]:9797", "192.0.2.1:80"] {
            assert!(
                matches!(listen(remote, false), Err(ListenerStatus::Refused { .. })),
                "{remote}"
            );
            assert!(listen(remote, true).is_ok(), "{remote}");
        }
        for no_address in ["localhost:9797", "9797", "127.0.0.1", "127.0.0.1:99999"] {
            assert!(
                matches!(listen(no_address, true), Err(ListenerStatus::Refused { .. })),
                "{no_address}"
            );
        }
    }
}
