//! The runs as they change, for screens: the whole list first, then a row for each run that looks different.
//!
//! A slow reader gets the latest row of each run and none of those between. The last lines of the output are
//! asked for only while a client reads this, and only then is it looked whether a driven agent has done something.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{self, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_engine::RunId;
use outlast_store::Filter;
use outlast_wire::api::{RunRow, WatchNews};
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::Daemon;
use super::extract::Query;
use super::runs;
use crate::activity;
use crate::lanes::{Lane, blocking};
use crate::mailbox::Following;
use crate::mailbox::Handle;
use crate::refusal::{Answer, Refusal};
use crate::supervisor::Supervisor;
use crate::view;
use crate::watchers::Watcher;

/// How many ended runs are listed, unless others are asked for, and at most.
const ENDED: usize = 500;
const MOST_ENDED: usize = 5000;

/// The shortest time between two batches of rows, and between two looks at one run's output.
const PACE: Duration = Duration::from_millis(100);
const LINE_PACE: Duration = Duration::from_millis(400);

/// Between two looks at the events of one agent: as often as `top` draws by itself.
const AGENT_PACE: Duration = Duration::from_secs(1);

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct WatchQuery {
    /// How many of the ended runs are listed, the newest first.
    ended: Option<usize>,
}

/// Streams the runs as they change, for screens
///
/// The whole list first, then a row for each run that looks different.
#[utoipa::path(get, operation_id = "watch_runs", path = "/v1/watch", params(WatchQuery),
    responses((status = 200, description = "server-sent events, the data of each a `WatchNews`: `hello`, the `row` of every open run and of the newest ended ones, `listed`, and from then on a `row` whenever one has changed and `gone` when it was removed", body = WatchNews, content_type = "text/event-stream")))]
pub(crate) async fn watch(State(supervisor): Daemon, Query(query): Query<WatchQuery>) -> Response {
    let (send, receive) = mpsc::channel(16);
    // Watched before it is listed, so that nothing can come between.
    let watcher = supervisor.watchers.watch();
    let ended = query.ended.unwrap_or(ENDED).min(MOST_ENDED);
    let mut feed = Feed { supervisor, watcher, lines: Lines::default(), send };
    #[expect(clippy::disallowed_methods, reason = "ends when its client goes or the daemon does")]
    let _feeder = tokio::spawn(async move {
        if let Err(Over::Failed(refusal)) = feed.run(ended).await {
            let event = sse::Event::default().event("error").data(refusal.message);
            let _client_gone = feed.send.send(event).await;
        }
    });
    let events = stream::unfold(receive, |mut receive| async {
        receive.recv().await.map(|event| (Ok::<_, std::convert::Infallible>(event), receive))
    });
    Sse::new(events).into_response()
}

/// Why nothing more is sent.
enum Over {
    /// The client has gone, or the daemon goes.
    Gone,
    Failed(Refusal),
}

impl From<Refusal> for Over {
    fn from(error: Refusal) -> Self {
        Self::Failed(error)
    }
}

struct Feed {
    supervisor: Arc<Supervisor>,
    watcher: Arc<Watcher>,
    lines: Lines,
    send: mpsc::Sender<sse::Event>,
}

impl Feed {
    async fn run(&mut self, ended: usize) -> Result<(), Over> {
        self.say(&self.hello()).await?;
        let supervisor = self.supervisor.clone();
        let (ids, truncated) = blocking(move || listed(&supervisor, ended)).await?;
        // In pieces: the first screenful is there at once, and no more than a piece is held.
        for some in ids.chunks(64) {
            self.tell(some.to_vec()).await?;
        }
        self.say(&WatchNews::Listed { truncated }).await?;
        loop {
            let changed = self.changed().await?;
            self.tell(changed.into_iter().collect()).await?;
            self.pause().await?;
        }
    }

    fn hello(&self) -> WatchNews {
        WatchNews::Hello {
            pid: std::process::id(),
            version: outlast_wire::version::BUILD.to_owned(),
            started_at: self.supervisor.ground.started_at.clone(),
        }
    }

    /// Sends these runs as they are now, and looks at the output of those that go on.
    async fn tell(&mut self, ids: Vec<RunId>) -> Result<(), Over> {
        for id in &ids {
            let handle = self.supervisor.handle(id);
            self.lines.follow(&self.supervisor, id, handle, &self.watcher);
        }
        let supervisor = self.supervisor.clone();
        let all = blocking(move || ids.iter().map(|id| news_of(&supervisor, id)).collect());
        let all: Vec<WatchNews> = all.await?;
        for news in &all {
            self.say(news).await?;
        }
        Ok(())
    }

    async fn say(&self, news: &WatchNews) -> Result<(), Over> {
        let data = serde_json::to_string(news).expect("news are plain data");
        self.send.send(sse::Event::default().data(data)).await.map_err(|_| Over::Gone)
    }

    async fn changed(&self) -> Result<BTreeSet<RunId>, Over> {
        let mut leaving = self.supervisor.ground.leaving();
        tokio::select! {
            changed = self.watcher.unseen() => Ok(changed),
            () = self.send.closed() => Err(Over::Gone),
            _ = leaving.wait_for(Option::is_some) => Err(Over::Gone),
        }
    }

    /// What changes meanwhile is told together.
    async fn pause(&self) -> Result<(), Over> {
        let mut leaving = self.supervisor.ground.leaving();
        tokio::select! {
            () = tokio::time::sleep(PACE) => Ok(()),
            _ = leaving.wait_for(Option::is_some) => Err(Over::Gone),
        }
    }
}

/// Every open run and the newest ended ones, and whether there are more of those.
fn listed(supervisor: &Supervisor, ended: usize) -> Answer<(Vec<RunId>, bool)> {
    let open = supervisor.ground.store.open_runs()?;
    let most = Some(open.len() + ended + 1);
    let newest = supervisor.ground.store.rows(&Filter { all: true, most, ..Filter::default() })?;
    let closed: Vec<RunId> =
        newest.into_iter().filter(|row| !row.is_open).map(|row| row.id).collect();
    let truncated = closed.len() > ended;
    let strays = supervisor.strays.all().into_keys();
    Ok((
        strays.chain(open.into_iter().rev()).chain(closed.into_iter().take(ended)).collect(),
        truncated,
    ))
}

fn news_of(supervisor: &Supervisor, id: &RunId) -> Answer<WatchNews> {
    Ok(match row_of(supervisor, id)? {
        Some(run) => WatchNews::Row { run: Box::new(run) },
        None => WatchNews::Gone { run: id.0.clone() },
    })
}

/// From its conductor if it has one, else from the store.
fn row_of(supervisor: &Supervisor, id: &RunId) -> Answer<Option<RunRow>> {
    let row = match supervisor.handle(id) {
        Some(handle) => handle.snapshot.borrow().run.row(),
        None => match supervisor.ground.store.row(id)? {
            Some(row) => row,
            None => {
                let stray = supervisor.strays.get(id);
                return Ok(stray.map(|it| view::row(it.row, view::Doing::unknown(it.trouble))));
            }
        },
    };
    let last_line = runs::last_line(supervisor, &row);
    let doing = runs::doing(supervisor, &row).with_last_line(last_line);
    Ok(Some(view::row(row, doing)))
}

/// A task for each run whose output is looked at; all end with this.
#[derive(Default)]
struct Lines {
    tasks: JoinSet<()>,
    followed: HashMap<RunId, AbortHandle>,
}

impl Lines {
    /// Looks at the output of a run for as long as it has a conductor.
    fn follow(
        &mut self,
        supervisor: &Arc<Supervisor>,
        id: &RunId,
        handle: Option<Handle>,
        watcher: &Arc<Watcher>,
    ) {
        while self.tasks.try_join_next().is_some() {}
        match (handle, self.followed.contains_key(id)) {
            (Some(handle), false) => {
                let doings = note_doings(supervisor.clone(), handle.clone(), watcher.clone());
                let lines = note_lines(handle, id.clone(), watcher.clone());
                let task = self.tasks.spawn(async {
                    tokio::join!(lines, doings);
                });
                self.followed.insert(id.clone(), task);
            }
            (None, true) => {
                if let Some(task) = self.followed.remove(id) {
                    task.abort();
                }
            }
            (Some(_), true) | (None, false) => {}
        }
    }
}

/// Says when there is more, and asks for no more until the pace allows it.
async fn note_lines(handle: Handle, id: RunId, watcher: Arc<Watcher>) {
    let mut bytes = handle.output.bytes.subscribe();
    loop {
        let following = Following::new(handle.clone());
        if bytes.changed().await.is_err() {
            return;
        }
        drop(following);
        watcher.note(&id);
        tokio::time::sleep(LINE_PACE).await;
    }
}

/// Says when the agent of a live attempt has done something. Of a run whose agent is not driven, or that rests, nothing
/// is looked at.
async fn note_doings(supervisor: Arc<Supervisor>, mut handle: Handle, watcher: Arc<Watcher>) {
    let (id, is_driven) = {
        let run = &handle.snapshot.borrow().run;
        (run.id.clone(), activity::is_driven(run))
    };
    if !is_driven {
        return;
    }
    let mut last = None;
    loop {
        let Ok(step) = live_attempt(&mut handle).await else { return };
        let dir = supervisor.ground.layout.run(id.as_str()).attempt(step.0, step.1);
        let Ok(seen) = Lane::Clients.run(move || (step, activity::trace(&dir))).await else {
            return;
        };
        if last.replace(seen) != Some(seen) {
            watcher.note(&id);
        }
        tokio::time::sleep(AGENT_PACE).await;
    }
}

/// The attempt that is alive, once one is; fails when the conductor has gone.
async fn live_attempt(handle: &mut Handle) -> Result<(u32, u32), watch::error::RecvError> {
    let seen = handle.snapshot.wait_for(|seen| seen.run.live().is_some()).await?;
    Ok(seen.run.live().map(|live| (live.turn, live.number)).unwrap_or_default())
}
