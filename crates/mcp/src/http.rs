//! The same server over HTTP on loopback, for clients that cannot start a server by its standard streams.
//!
//! One message in each POST, with the token of the run. There is no session and nothing to reconnect to. The server ends
//! with the attempt that it was started in, also if the process that started it has ended before.

mod doors;
mod exchange;
mod life;
mod reply;

use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use outlast_client::problem::Problem;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

use crate::answers::Answers;
use crate::owner::Owner;
use doors::Doors;

/// Connections at the same time; others wait to be accepted.
const MOST_CONNECTIONS: usize = 64;
/// The head of a request has to be there within this time, also the next one of an idle connection.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// After the machine had no descriptor for another connection.
const AFTER_SHORTAGE: Duration = Duration::from_millis(100);

/// A server that listens, and does not answer yet.
pub struct Http {
    answers: Answers,
    doors: Rc<Doors>,
    listener: TcpListener,
    port: u16,
}

impl Http {
    /// Listens on a port of loopback; 0 is any that is free.
    pub async fn bind(owner: Owner<'static>, port: u16) -> Result<Self, Problem> {
        let token = owner.token().ok_or_else(|| {
            Problem::refusal(
                "not_in_a_run",
                "OUTLAST_TOKEN is not set, so no client could be told from another",
            )
            .hint("start it inside the attempt of a run, with the environment of the attempt")
        })?;
        let bound = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await;
        let bound = bound.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        let (port, listener) = bound.map_err(|error| {
            Problem::failure(format_args!("cannot listen on port {port} of loopback: {error}"))
                .hint("without --port any port that is free is taken")
        })?;
        let doors = Rc::new(Doors::new(port, &token));
        Ok(Self { answers: Answers::new(owner), doors, listener, port })
    }

    /// What a client is given, beside the token.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}{}", self.port, doors::PATH)
    }

    /// Serves until the attempt is over.
    pub async fn serve(self) -> Result<(), Problem> {
        let owner = self.answers.owner.clone();
        let serving = async {
            tokio::select! {
                over = life::over(&owner) => over,
                never = self.accept() => match never {},
            }
        };
        LocalSet::new().run_until(serving).await
    }

    async fn accept(&self) -> std::convert::Infallible {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        loop {
            let place = room.clone().acquire_owned().await.expect("the semaphore stays open");
            let Ok((stream, _)) = self.listener.accept().await else {
                tokio::time::sleep(AFTER_SHORTAGE).await;
                continue;
            };
            let (answers, doors) = (self.answers.clone(), self.doors.clone());
            let _task = tokio::task::spawn_local(async move {
                speak(stream, answers, doors).await;
                drop(place);
            });
        }
    }
}

async fn speak(stream: TcpStream, answers: Answers, doors: Rc<Doors>) {
    let service = service_fn(|request| {
        let (answers, doors) = (answers.clone(), doors.clone());
        async move {
            Ok::<_, std::convert::Infallible>(exchange::answer(request, &doors, &answers).await)
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    // A client that hangs up is not an error of ours.
    let _hung_up = http.serve_connection(TokioIo::new(stream), service).await;
}
