//! Where a browser knocks: a port of loopback, and each connection that comes to it.
//!
//! Another address is listened on only if the operator allows it, with a certificate and a name. Connections, and the
//! time that the head of a request may take, are bounded.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use outlast_client::problem::Problem;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::names;
use crate::people::Proxy;
use crate::tls::Certificate;

pub const DEFAULT_PORT: u16 = 7878;
/// Without a port that was asked for, so many are tried.
const PORTS: u16 = 32;
const MOST_CONNECTIONS: usize = 64;
const HEAD_WITHIN: Duration = Duration::from_secs(20);
/// After an accept that failed for want of descriptors or memory.
const AFTER_SHORTAGE: Duration = Duration::from_millis(200);

/// Where the page is to be.
#[derive(Debug, Clone, Default)]
pub struct Place {
    /// Both addresses of loopback when absent. Any other needs `allow_remote`, a certificate and a public address.
    pub address: Option<IpAddr>,
    pub allow_remote: bool,
    /// The page is served with it, over TLS only.
    pub certificate: Option<Certificate>,
    /// Where the page is reached from elsewhere: `https://NAME[:PORT]`.
    pub public_url: Option<String>,
    /// Who names people, besides this machine's user.
    pub proxy: Option<Proxy>,
    /// This port and no other; any that is free when 0.
    pub port: Option<u16>,
}

impl Place {
    /// True of another address than loopback's.
    pub(crate) fn is_remote(&self) -> bool {
        self.address.is_some_and(|address| !is_ours(address))
    }
}

pub(crate) struct Listeners {
    pub(crate) port: u16,
    first: TcpListener,
    /// IPv6, where the machine has it.
    second: Option<TcpListener>,
    tls: Option<TlsAcceptor>,
}

impl Listeners {
    pub(crate) async fn bind(place: Place) -> Result<Self, Problem> {
        refuse_remote(&place)?;
        let tls = place.certificate.as_ref().map(Certificate::acceptor).transpose()?;
        let bound = Self::bind_plain(&place).await?;
        Ok(Self { tls, ..bound })
    }

    /// True if browsers have to speak TLS.
    pub(crate) fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    async fn bind_plain(place: &Place) -> Result<Self, Problem> {
        if let Some(port) = place.port {
            return try_port(place.address, port).await.map_err(|error| taken(port, &error));
        }
        let mut last = None;
        for port in DEFAULT_PORT..DEFAULT_PORT + PORTS {
            match try_port(place.address, port).await {
                Ok(listeners) => return Ok(listeners),
                Err(error) if error.kind() == ErrorKind::AddrInUse => last = Some((port, error)),
                Err(error) => return Err(taken(port, &error)),
            }
        }
        let (port, error) = last.expect("there is a port to try");
        Err(taken(port, &error))
    }

    /// Serves connections for as long as it is polled.
    pub(crate) async fn serve(self, router: Router) -> std::convert::Infallible {
        let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let place = room.clone().acquire_owned().await.expect("the semaphore stays open");
            let Ok(stream) = self.accept().await else {
                tokio::time::sleep(AFTER_SHORTAGE).await;
                continue;
            };
            while connections.try_join_next().is_some() {}
            let (router, tls) = (router.clone(), self.tls.clone());
            connections.spawn(async move {
                match tls {
                    None => speak(stream, router).await,
                    Some(tls) => {
                        if let Ok(Ok(stream)) = timeout(HEAD_WITHIN, tls.accept(stream)).await {
                            speak(stream, router).await;
                        }
                    }
                }
                drop(place);
            });
        }
    }

    async fn accept(&self) -> io::Result<TcpStream> {
        let Some(second) = &self.second else { return Ok(self.first.accept().await?.0) };
        tokio::select! {
            accepted = self.first.accept() => Ok(accepted?.0),
            accepted = second.accept() => Ok(accepted?.0),
        }
    }
}

/// Another address than loopback's: only as the operator wants it, and never without TLS and a name.
fn refuse_remote(place: &Place) -> Result<(), Problem> {
    let url = place.public_url.as_deref();
    if let Some(url) = url.filter(|url| names::authority(url).is_none()) {
        let message = format!("web.public_url is {url:?}, and has to be https://NAME[:PORT]");
        return Err(Problem::refusal("bad_config", message).hint("outlast config check"));
    }
    let Some(address) = place.address.filter(|it| !is_ours(*it)) else { return Ok(()) };
    let message =
        format!("{address} is not 127.0.0.1 or ::1, and the page opens the way to a shell");
    let refused = |hint: &str| Err(Problem::refusal("not_loopback", message).hint(hint));
    if !place.allow_remote {
        return refused(
            "from another machine: ssh -L 7878:127.0.0.1:7878 HOST, then ssh HOST outlast web url",
        );
    }
    match (&place.certificate, url) {
        (None, _) => refused("it needs web.certificate and web.key in config.toml"),
        (Some(_), Some(url)) if url.starts_with("https://") => Ok(()),
        (Some(_), _) => refused("it needs web.public_url in config.toml: https://NAME[:PORT]"),
    }
}

fn is_ours(address: IpAddr) -> bool {
    address == IpAddr::V4(Ipv4Addr::LOCALHOST) || address == IpAddr::V6(Ipv6Addr::LOCALHOST)
}

async fn try_port(address: Option<IpAddr>, port: u16) -> io::Result<Listeners> {
    if let Some(address) = address {
        let first = TcpListener::bind(SocketAddr::from((address, port))).await?;
        return Ok(Listeners { port: first.local_addr()?.port(), first, second: None, tls: None });
    }
    let first = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
    let port = first.local_addr()?.port();
    match TcpListener::bind(SocketAddr::from((Ipv6Addr::LOCALHOST, port))).await {
        Ok(second) => Ok(Listeners { port, first, second: Some(second), tls: None }),
        // Another program there would be what `localhost` leads to.
        Err(error) if error.kind() == ErrorKind::AddrInUse => Err(error),
        // A machine may have no IPv6.
        Err(_) => Ok(Listeners { port, first, second: None, tls: None }),
    }
}

fn taken(port: u16, error: &io::Error) -> Problem {
    Problem::failure(format_args!("cannot listen on port {port} of loopback: {error}"))
        .hint("outlast web --port 0 takes any port that is free")
}

async fn speak<S>(stream: S, router: Router)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    let service = TowerToHyperService::new(router);
    // A browser that hangs up is not an error of ours.
    let _hung_up = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
}
