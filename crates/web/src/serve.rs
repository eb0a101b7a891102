//! `outlast web` itself: one process for a home, until it is told to go.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use outlast_client::ask::Ask;
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_client::world::World;
use outlast_home::lock;
use outlast_wire::api::DaemonStatus;
use tokio::net::UnixListener;

use crate::listen::{Listeners, Place};
use crate::names::Door;
use crate::state::{Link, Web, Words};
use crate::{desk, routes};

/// A page that is ready, and not yet served.
pub struct Serving {
    web: Arc<Web>,
    listeners: Listeners,
    desk: UnixListener,
    /// Held for as long as the page is served.
    _lock: File,
}

impl Serving {
    /// Binds everything, and meets the daemon once: what is wrong is said before a link is.
    pub async fn prepare(world: World, words: Words, place: Place) -> Result<Self, Problem> {
        if world.is_in_run() {
            return Err(Problem::refusal(
                "inside_a_run",
                "outlast web lets a person steer runs, and this is inside a run",
            )
            .hint("start it from a terminal that belongs to no run"));
        }
        let _status: DaemonStatus = Session::new(&world).call(&Ask::get("/v1/daemon")).await?;
        world.find_program();
        let layout = world.layout()?.clone();
        let cannot = |path: PathBuf| {
            move |error: std::io::Error| {
                Problem::failure(format_args!("{}: {error}", path.display()))
            }
        };
        let taken = lock::try_take(&layout.web_lock()).map_err(cannot(layout.web_lock()))?;
        let lock = taken.ok_or_else(|| {
            Problem::refusal("web_runs", "outlast web is running here already")
                .hint("outlast web url prints a link to it")
        })?;
        let (public_url, is_remote) = (place.public_url.clone(), place.is_remote());
        let proxy = place.proxy.clone();
        let listeners = Listeners::bind(place).await?;
        let desk = desk::bind(&layout.web_socket()).map_err(cannot(layout.web_socket()))?;
        let door = Door { port: listeners.port, is_tls: listeners.is_tls(), is_remote, public_url };
        let web = Arc::new(Web::new(world, words, door, proxy));
        Ok(Self { web, listeners, desk, _lock: lock })
    }

    /// The address of the page, with a code that opens it once.
    pub fn link(&self) -> Result<Link, Problem> {
        self.web.link()
    }

    pub fn port(&self) -> u16 {
        self.listeners.port
    }

    /// Serves the page until `leave` is over. Every session ends with it.
    pub async fn until(self, leave: impl Future<Output = ()>) {
        let router = routes::router(self.web.clone());
        tokio::select! {
            never = self.listeners.serve(router) => match never {},
            never = desk::serve(self.desk, &self.web) => match never {},
            () = leave => {}
        }
        if let Ok(layout) = self.web.world.layout() {
            // Both are of no use without this process; what stays behind is replaced by the next.
            let _gone = std::fs::remove_file(layout.web_socket());
            let _gone = std::fs::remove_file(layout.web_opener());
        }
    }
}
