//! A transient scope of its own for the shim of each step, so that stopping the service or running out of
//! memory on one side never takes the other.
//!
//! Asked of the systemd whose service we are, over the user's bus, after a shim was started and before it is
//! told to start anything. It is never needed: without it the shims stay in the service's own control group,
//! which the unit protects by `KillMode=process`. So a bus that fails is left alone for a while.

use std::time::Duration;

use futures_util::StreamExt;
use outlast_engine::{RunId, Step};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use zbus::{Connection, MatchRule, Message, MessageStream, ObjectPath, OwnedObjectPath, Variant};

use crate::world::process;

/// For one scope, the connection included.
const WITHIN: Duration = Duration::from_secs(2);
/// How long a bus that failed is not asked again.
const LEFT_ALONE: Duration = Duration::from_secs(60);
/// Signals that can wait for us; we listen for one.
const QUEUE: std::num::NonZeroUsize = std::num::NonZeroUsize::new(4).expect("4 is not 0");

/// All scopes are under this one, so that a person can limit them together.
const SLICE: &str = "app-outlast.slice";

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const OBJECT: &str = "/org/freedesktop/systemd1";
const EXISTS: &str = "org.freedesktop.systemd1.UnitExists";

pub(crate) struct Scopes {
    /// `None` without a service, and then nothing is ever asked.
    bus: Option<String>,
    /// Held while one asks for the connection, so that only one does.
    link: Mutex<Link>,
}

enum Link {
    /// No step has needed it yet.
    Unused,
    Open(Connection),
    LeftAlone {
        until: Instant,
    },
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Bus(#[from] zbus::Error),
    #[error("the job ended as {0:?}")]
    Job(String),
    #[error("the bus was closed")]
    Closed,
    #[error("no answer within {} s", WITHIN.as_secs())]
    TooSlow,
}

impl Scopes {
    pub(crate) fn new(bus: Option<&str>) -> Self {
        Self { bus: bus.map(str::to_owned), link: Mutex::new(Link::Unused) }
    }

    /// Moves a shim into a scope of that name, or leaves it where it is. Takes a bounded time, and none where
    /// there is no bus.
    pub(crate) async fn enclose(&self, name: &str, description: &str, pid: u32) {
        let Some(bus) = &self.bus else { return };
        let Some(connection) = self.connection(bus).await else { return };
        let scope = Scope { name, description, pid };
        let made = timeout(WITHIN, scope.make(&connection)).await;
        let Err(failure) = made.unwrap_or(Err(Failure::TooSlow)) else { return };
        // A shim that has gone meanwhile is no fault of the bus.
        if process::stat(pid).ok().flatten().is_some_and(|stat| !stat.is_zombie) {
            self.leave_alone(&failure).await;
        }
    }

    async fn connection(&self, bus: &str) -> Option<Connection> {
        let mut link = self.link.lock().await;
        match &*link {
            Link::Open(connection) if !connection.is_closed() => return Some(connection.clone()),
            Link::LeftAlone { until } if Instant::now() < *until => return None,
            Link::Unused | Link::Open(_) | Link::LeftAlone { .. } => {}
        }
        match timeout(WITHIN, connect(bus)).await.unwrap_or(Err(Failure::TooSlow)) {
            Ok(connection) => {
                *link = Link::Open(connection.clone());
                Some(connection)
            }
            Err(failure) => {
                *link = left_alone(&failure);
                None
            }
        }
    }

    /// The first of several that fail at once says so.
    async fn leave_alone(&self, failure: &Failure) {
        let mut link = self.link.lock().await;
        if !matches!(*link, Link::LeftAlone { .. }) {
            *link = left_alone(failure);
        }
    }
}

fn left_alone(failure: &Failure) -> Link {
    let seconds = LEFT_ALONE.as_secs();
    tracing::warn!(%failure, seconds, "no scopes: shims stay in the service's own control group for a while");
    Link::LeftAlone { until: Instant::now() + LEFT_ALONE }
}

async fn connect(bus: &str) -> Result<Connection, Failure> {
    let connection = zbus::connection::Builder::address(bus).build().await?;
    // Without a subscriber systemd says nothing about its jobs.
    call(&connection, "Subscribe", &()).await?;
    tracing::info!("each step gets a scope of its own");
    Ok(connection)
}

struct Scope<'a> {
    name: &'a str,
    description: &'a str,
    pid: u32,
}

impl Scope<'_> {
    async fn make(&self, connection: &Connection) -> Result<(), Failure> {
        match self.start(connection, self.name).await {
            // Of an earlier shim of the same step, which is gone and whose scope is about to be.
            Err(Failure::Bus(error)) if is_taken(&error) => {
                let other = self.name.replace(".scope", &format!("-{}.scope", self.pid));
                self.start(connection, &other).await
            }
            made => made,
        }
    }

    async fn start(&self, connection: &Connection, name: &str) -> Result<(), Failure> {
        let rule = MatchRule::builder()
            .msg_type(zbus::message::Type::Signal)
            .sender(SYSTEMD)
            .interface(MANAGER)
            .member("JobRemoved")
            .arg(2, name)
            .build()?;
        let mut ended = MessageStream::for_match_rule(rule, connection, Some(QUEUE)).await?;
        let none: [(&str, Vec<(&str, Variant<'_>)>); 0] = [];
        let reply =
            call(connection, "StartTransientUnit", &(name, "fail", self.properties(), &none[..]))
                .await?;
        let job: OwnedObjectPath = reply.body().deserialize()?;
        while let Some(signal) = ended.next().await {
            let body = signal?.body();
            let (_, path, _, result): (u32, ObjectPath<'_>, &str, &str) = body.deserialize()?;
            if path == *job {
                return if result == "done" {
                    Ok(())
                } else {
                    Err(Failure::Job(result.to_owned()))
                };
            }
        }
        Err(Failure::Closed)
    }

    /// No `OOMPolicy`: a systemd before 253 refuses a scope that has one. Delegation has the same effect where
    /// there is one: when memory runs out the kernel ends a process, and systemd not the shim with it.
    fn properties(&self) -> Vec<(&'static str, Variant<'_>)> {
        vec![
            ("PIDs", Variant::from(vec![self.pid])),
            ("Description", Variant::from(self.description)),
            ("CollectMode", Variant::from("inactive-or-failed")),
            ("Delegate", Variant::from(true)),
            ("Slice", Variant::from(SLICE)),
        ]
    }
}

async fn call<B>(connection: &Connection, method: &str, body: &B) -> zbus::Result<Message>
where
    B: serde::Serialize + zbus::DynamicType,
{
    connection.call_method(Some(SYSTEMD), OBJECT, Some(MANAGER), method, body).await
}

fn is_taken(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::MethodError(name, _, _) if name.as_str() == EXISTS)
}

/// What the scope of a step is called. A run's id is letters and digits.
pub(crate) fn name(run: &RunId, step: Step) -> String {
    match step {
        Step::Attempt { turn, attempt } => format!("outlast-{run}-t{turn}a{attempt}.scope"),
        Step::Errand { errand } => format!("outlast-{run}-e{errand}.scope"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_named_after_its_step() {
        let run = RunId("k3mx7q9w2r5t".to_owned());
        assert_eq!(
            name(&run, Step::Attempt { turn: 2, attempt: 3 }),
            "outlast-k3mx7q9w2r5t-t2a3.scope"
        );
        assert_eq!(name(&run, Step::Errand { errand: 4 }), "outlast-k3mx7q9w2r5t-e4.scope");
    }

    #[test]
    fn a_bus_that_failed_is_asked_again_only_after_its_time() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let now = Instant::now();
            let nobody = Scopes::new(Some("unix:path=/nonexistent/bus"));
            for (until, is_asked) in [(now + LEFT_ALONE, false), (now, true)] {
                *nobody.link.lock().await = Link::LeftAlone { until };
                nobody.enclose("outlast-k3m-t1a1.scope", "a run", std::process::id()).await;
                let Link::LeftAlone { until: then } = *nobody.link.lock().await else {
                    panic!("it is still left alone")
                };
                assert_eq!(then != until, is_asked);
                assert!(then >= now + LEFT_ALONE);
            }
        });
    }
}
