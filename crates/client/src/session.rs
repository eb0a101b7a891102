//! A conversation that outlives the daemon: a question without an answer is asked again.
//!
//! Every question is safe to repeat. The client chooses the id of a run that it creates and of an order that it gives,
//! so the daemon recognises a question that comes twice.

use std::time::Duration;

use hyper::body::Bytes;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::ask::Ask;
use crate::connect::{self, RECONNECT};
use crate::connection::{Connection, Failed, Reply};
use crate::problem::Problem;
use crate::world::World;

const RETRY: Duration = Duration::from_millis(50);

pub struct Session<'w> {
    world: &'w World,
    link: Link,
    was_repeated: bool,
}

enum Link {
    /// Nothing has been asked yet, so the daemon may be started.
    New,
    Open(Connection),
    /// The connection broke, or became the caller's with an open answer.
    Gone,
}

impl<'w> Session<'w> {
    pub fn new(world: &'w World) -> Self {
        Self { world, link: Link::New, was_repeated: false }
    }

    /// For a client that has met the daemon before: a daemon that was stopped since stays stopped.
    pub fn again(world: &'w World) -> Self {
        Self { link: Link::Gone, ..Self::new(world) }
    }

    /// The answer, read as JSON.
    pub async fn call<T: DeserializeOwned>(&mut self, ask: &Ask) -> Result<T, Problem> {
        let body = self.fetch(ask).await?;
        serde_json::from_slice(&body).map_err(|error| unreadable(&error))
    }

    /// True if the last question was asked more than once, because an answer was lost. The daemon may have acted on
    /// the first one.
    pub fn was_repeated(&self) -> bool {
        self.was_repeated
    }

    /// The body of the answer, unchanged.
    pub async fn fetch(&mut self, ask: &Ask) -> Result<Bytes, Problem> {
        let ask = &ask.clone().token(self.world.token());
        let mut patience = Patience::default();
        self.was_repeated = false;
        loop {
            let mut connection = self.take(patience.deadline()).await?;
            match connection.fetch(ask).await {
                Ok(body) => {
                    self.link = Link::Open(connection);
                    return Ok(body);
                }
                Err(Failed::Answered(problem)) => {
                    self.link = Link::Open(connection);
                    return Err(problem);
                }
                Err(Failed::Lost(why)) => {
                    self.was_repeated = true;
                    patience.pause(&why).await?;
                }
            }
        }
    }

    /// An answer whose body is a stream.
    pub async fn open(&mut self, ask: &Ask) -> Result<Reply, Problem> {
        let ask = &ask.clone().token(self.world.token());
        let mut patience = Patience::default();
        self.world.find_program();
        loop {
            let mut connection = self.take(patience.deadline()).await?;
            match connection.send(ask).await {
                Ok(response) => return Ok(Reply::new(connection, response)),
                Err(Failed::Answered(problem)) => {
                    self.link = Link::Open(connection);
                    return Err(problem);
                }
                Err(Failed::Lost(why)) => patience.pause(&why).await?,
            }
        }
    }

    async fn take(&mut self, deadline: Instant) -> Result<Connection, Problem> {
        match std::mem::replace(&mut self.link, Link::Gone) {
            Link::New => connect::connect(self.world).await,
            // A second question: this client may outlive the program's name.
            Link::Open(connection) => {
                self.world.find_program();
                Ok(connection)
            }
            Link::Gone => connect::reconnect(self.world, deadline).await,
        }
    }
}

/// How long a session looks for a daemon that went away. The time counts from when the session missed the daemon, not
/// from the question.
#[derive(Debug, Default)]
struct Patience {
    until: Option<Instant>,
}

impl Patience {
    fn deadline(&self) -> Instant {
        self.until.unwrap_or_else(|| Instant::now() + RECONNECT)
    }

    /// The pause before the question is asked again; an error once the time is up.
    async fn pause(&mut self, why: &str) -> Result<(), Problem> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + RECONNECT);
        if Instant::now() >= until {
            return Err(Problem::unreachable(why));
        }
        sleep(RETRY).await;
        Ok(())
    }
}

pub fn unreadable(error: &serde_json::Error) -> Problem {
    Problem::unreachable(format_args!("its answer cannot be read: {error}"))
        .hint("the daemon may be of another version:\noutlast version\noutlast daemon status")
}
