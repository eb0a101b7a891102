//! The one who sees to all triggers: lets in what is due, polls, looks into folders, and makes runs of what
//! has come. Sleeps until the next of these is due, and for good while there is none.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use outlast_engine::Time;
use outlast_store::{Delivery, Error, Settlement, TriggerChange};
use outlast_wire::api::TriggerSource;
use outlast_wire::hook;
use tokio::task::JoinSet;

use super::failure::{Failure, failed, is_fenced, recovered};
use super::folder::{self, Watch};
use super::make::{Unmade, key, make};
use super::progress::{Progress, backoff_ms};
use super::schedule::{MOST_CAUGHT_UP, Verdict, verdict};
use super::{Desk, Entry, Stuck, change, is_held, keep, poll};
use crate::api::runs::blocking;
use crate::supervisor::Supervisor;
use crate::view;
use crate::world::alarm::Alarm;

/// Runs that are made of one trigger before the next has its turn.
const BATCH: usize = 32;
/// Settlement deliveries that are remembered of each trigger, and how often it is seen to that there are no more.
const REMEMBERED: u64 = 100_000;
const FORGET_EACH: u64 = 1000;
const POLL_TIMEOUT_MS: u64 = 60_000;

/// Takes over the triggers that there are, and sees to them from here on.
pub(crate) fn start(supervisor: Arc<Supervisor>) -> Result<(), Error> {
    supervisor.triggers.load(&supervisor)?;
    let worker = Worker {
        supervisor,
        alarm: Alarm::default(),
        watch: Watch::default(),
        polls: JoinSet::new(),
    };
    #[expect(clippy::disallowed_methods, reason = "the one worker, which ends with the daemon")]
    let _worker = tokio::spawn(worker.work());
    Ok(())
}

struct Worker {
    supervisor: Arc<Supervisor>,
    alarm: Alarm,
    watch: Watch,
    polls: JoinSet<()>,
}

/// After how long there is something to do, if that is known.
type Step = Result<Option<Duration>, Failure>;

impl Worker {
    async fn work(mut self) {
        let supervisor = self.supervisor.clone();
        loop {
            let wait = self.tend_all().await;
            tokio::select! {
                () = supervisor.triggers.wake.notified() => {}
                () = self.alarm.after(wait) => {}
                () = self.watch.changed() => {}
                Some(_) = self.polls.join_next() => {}
            }
        }
    }

    fn desk(&self) -> &Desk {
        &self.supervisor.triggers
    }

    async fn tend_all(&mut self) -> Option<Duration> {
        if is_held(&self.supervisor) || self.supervisor.leaving().borrow().is_some() {
            return None;
        }
        self.desk().holds.store(false, Ordering::Relaxed);
        let supervisor = self.supervisor.clone();
        let listens = |entry: &mut Entry| {
            !entry.paused && matches!(entry.spec.source, TriggerSource::Folder { .. })
        };
        self.watch.keep_only(|name| supervisor.triggers.with(name, listens) == Some(true));
        let mut least: Option<Duration> = None;
        for name in self.desk().names() {
            let wait = self.tend(&name).await;
            least = [least, wait].into_iter().flatten().min();
        }
        least
    }

    async fn tend(&mut self, name: &str) -> Option<Duration> {
        let entry = self.desk().entry(name).filter(|entry| !entry.paused)?;
        let now = self.supervisor.world.now();
        let came = self.hear(name, &entry, now).await;
        let made = self.see_to(name, now).await;
        [came, made].into_iter().flatten().min()
    }

    /// Has what has come be kept, and says when to ask again.
    async fn hear(&mut self, name: &str, entry: &Entry, now: Time) -> Option<Duration> {
        if let Some(at) = entry.progress.retry_at().filter(|at| *at > now) {
            return Some(between(now, at));
        }
        let heard = match &entry.spec.source {
            TriggerSource::Schedule { .. } => self.admit(name, entry).await,
            TriggerSource::Webhook { .. } => Ok(None),
            TriggerSource::Folder { dir, leave } => self.look(name, dir, *leave, now).await,
            // Whether it goes well is for the poll itself to say.
            TriggerSource::Poll { .. } => return self.poll(name, entry, now),
        };
        match heard {
            Ok(next) => {
                recovered(&self.supervisor, name).await;
                next
            }
            Err(failure) => {
                let retry_at = failed(&self.supervisor, name, failure, 0).await?;
                Some(between(now, retry_at))
            }
        }
    }

    /// Has runs made of what has come, and says when to go on.
    async fn see_to(&self, name: &str, now: Time) -> Option<Duration> {
        let stuck = self.desk().with(name, |entry| entry.stuck.clone()).flatten();
        if let Some(stuck) = stuck.as_ref().filter(|stuck| stuck.retry_at > now) {
            return Some(between(now, stuck.retry_at));
        }
        match self.make_some(name).await {
            Ok(next) => {
                self.desk().with(name, |entry| entry.stuck = None);
                next
            }
            Err(failure) => self.stuck(name, failure, stuck.as_ref(), now),
        }
    }

    fn stuck(
        &self,
        name: &str,
        failure: Failure,
        before: Option<&Stuck>,
        now: Time,
    ) -> Option<Duration> {
        if is_fenced(&self.supervisor, &failure) {
            return None;
        }
        let trouble = self.supervisor.trouble(&failure.code, failure.message);
        // Since when it is so stays as it was.
        let known = before.map(|before| &before.trouble);
        let known = known.filter(|known| known.message == trouble.message);
        if known.is_none() {
            let (code, message) = (&trouble.code, &trouble.message);
            tracing::error!(trigger = name, code, message, "no run can be made");
        }
        let failures = before.map_or(1, |before| before.failures.saturating_add(1));
        let retry_at = now.plus_ms(backoff_ms(failures));
        let trouble = known.cloned().unwrap_or(trouble);
        let stuck = Stuck { trouble, failures, retry_at };
        self.desk().with(name, |entry| entry.stuck = Some(stuck))?;
        Some(between(now, retry_at))
    }

    /// Lets in what is due of a schedule. It goes by the wall's clock, which may be set back: its cursor does
    /// not go back with it.
    async fn admit(&self, name: &str, entry: &Entry) -> Step {
        let Some(schedule) = &entry.schedule else { return Ok(None) };
        let now = self.supervisor.world.wall();
        let waiting = usize::try_from(entry.waiting).unwrap_or(usize::MAX);
        let room = MOST_CAUGHT_UP.saturating_sub(waiting);
        let cursor = entry.progress.cursor();
        let found = schedule.admit(entry.missed(), cursor, now, room);
        if found.cursor != cursor {
            let skipped = entry.progress.skipped + found.skipped;
            let progress = Progress { cursor_ms: found.cursor.0, skipped, ..entry.progress };
            let due = found.due.into_iter().map(occurrence).collect();
            keep(&self.supervisor, name, due, Some(progress)).await?;
            self.desk().with(name, |entry| entry.progress = progress);
            if found.skipped > 0 {
                tracing::info!(trigger = name, skipped = found.skipped, "occurrences were missed");
            }
        }
        Ok(schedule.next_after(found.cursor.max(now)).map(|at| between(now, at)))
    }

    /// Looks into a folder, if there is something to look at.
    async fn look(&mut self, name: &str, dir: &str, leave: bool, now: Time) -> Step {
        let stuck = |error: std::io::Error| Failure {
            code: "folder".to_owned(),
            message: format!("cannot look into {dir}: {error}"),
        };
        self.watch.listen(name, dir.as_ref()).map_err(stuck)?;
        let Some(closed) = self.watch.take_news(name) else { return Ok(None) };
        let path = dir.to_owned();
        let names = closed.clone();
        let found =
            blocking(move || Ok(folder::look(path.as_ref(), leave, names.as_ref(), now))).await?;
        let kept = match found {
            Ok(found) => {
                let kept = match found.deliveries.is_empty() {
                    true => Ok(0),
                    false => keep(&self.supervisor, name, found.deliveries, None).await,
                };
                kept.map(|_| found.look_again_at).map_err(Failure::from)
            }
            Err(error) => Err(stuck(error)),
        };
        match kept {
            Ok(Some(at)) => {
                self.watch.look_again(name);
                Ok(Some(between(now, at)))
            }
            Ok(None) => Ok(None),
            Err(stuck) => {
                self.watch.look_again(name);
                Err(stuck)
            }
        }
    }

    /// Starts the poll that is due.
    fn poll(&mut self, name: &str, entry: &Entry, now: Time) -> Option<Duration> {
        let TriggerSource::Poll { every_ms, .. } = &entry.spec.source else { return None };
        if entry.is_polling {
            return None;
        }
        let due = entry.progress.cursor().plus_ms(*every_ms);
        if due > now && entry.progress.failures == 0 {
            return Some(between(now, due));
        }
        self.desk().with(name, |entry| entry.is_polling = true);
        self.polls.spawn(poll_once(self.supervisor.clone(), name.to_owned(), entry.clone(), now));
        None
    }

    /// Makes runs of what has come, as far as may be now.
    async fn make_some(&self, name: &str) -> Step {
        let Some(entry) = self.desk().entry(name) else { return Ok(None) };
        if entry.waiting == 0 {
            return Ok(None);
        }
        let (store, of) = (self.supervisor.store.clone(), name.to_owned());
        let batch = blocking(move || Ok(store.deliveries(&of, BATCH)?)).await?;
        let count = batch.len();
        for delivery in batch {
            let Some(entry) = self.desk().entry(name).filter(|entry| !entry.paused) else {
                return Ok(None);
            };
            let Some(settled) = self.settled(&entry, &delivery).await? else { return Ok(None) };
            hook!("daemon.occurrence-made");
            settle(&self.supervisor, name, &delivery.id, settled).await?;
        }
        let has_more = count == BATCH;
        Ok(has_more.then_some(Duration::ZERO))
    }

    /// What becomes of a delivery now; `None` if it has to wait.
    async fn settled(
        &self,
        entry: &Entry,
        delivery: &Delivery,
    ) -> Result<Option<Settlement>, Failure> {
        let verdict = self.verdict(entry).await?;
        if verdict != Verdict::Make {
            // What is open may be the run that was made of this very delivery, by a daemon that died then.
            let (store, key) = (self.supervisor.store.clone(), key(&entry.spec.name, &delivery.id));
            if let Some(run) = blocking(move || Ok(store.run_of_key(&key)?)).await? {
                return Ok(Some(Settlement::Made { run }));
            }
        }
        match verdict {
            Verdict::Hold => Ok(None),
            Verdict::Skip => {
                let why = "a run of the trigger was still open".to_owned();
                Ok(Some(Settlement::Skipped { why }))
            }
            Verdict::Make => match make(&self.supervisor, entry, delivery).await {
                Ok(run) => Ok(Some(Settlement::Made { run })),
                Err(Unmade::Never(why)) => Ok(Some(Settlement::Refused { why })),
                Err(Unmade::NotNow { code, message }) => Err(Failure { code, message }),
            },
        }
    }

    async fn verdict(&self, entry: &Entry) -> Result<Verdict, Failure> {
        let overlap = entry.overlap();
        if verdict(overlap, 1) == Verdict::Make {
            return Ok(Verdict::Make);
        }
        // Before it is asked, so that no end goes unheard.
        self.desk().holds.store(true, Ordering::Relaxed);
        let (store, name) = (self.supervisor.store.clone(), entry.spec.name.clone());
        let open = blocking(move || Ok(store.open_runs_of(&name)?)).await?;
        Ok(verdict(overlap, open))
    }
}

fn between(now: Time, at: Time) -> Duration {
    Duration::from_millis(at.ms_since(now))
}

fn occurrence(at: Time) -> Delivery {
    Delivery { id: view::rfc3339(at), at, body: "{}".to_owned() }
}

/// Writes down what became of a delivery.
pub(super) async fn settle(
    supervisor: &Arc<Supervisor>,
    name: &str,
    id: &str,
    settled: Settlement,
) -> Result<(), Error> {
    let order = TriggerChange::Settle { trigger: name.to_owned(), id: id.to_owned(), settled };
    change(supervisor, order).await?;
    let count = supervisor.triggers.with(name, |entry| {
        entry.waiting = entry.waiting.saturating_sub(1);
        entry.settled += 1;
        entry.settled
    });
    if count.is_some_and(|count| count.is_multiple_of(FORGET_EACH)) {
        let forget = TriggerChange::Forget { trigger: name.to_owned(), but: REMEMBERED };
        change(supervisor, forget).await?;
    }
    Ok(())
}

/// Asks the trigger's command once, and keeps what it says.
async fn poll_once(supervisor: Arc<Supervisor>, name: String, entry: Entry, now: Time) {
    let TriggerSource::Poll { command, every_ms, timeout_ms } = &entry.spec.source else { return };
    let within = Duration::from_millis(timeout_ms.unwrap_or(POLL_TIMEOUT_MS));
    let run = &entry.spec.run;
    let printed = poll::ask(command, run, within).await;
    let kept = match printed.and_then(|printed| poll::items(&printed, now)) {
        Ok(items) => {
            let progress = Progress { cursor_ms: now.0, ..entry.progress }.succeeded();
            let kept = keep(&supervisor, &name, items, Some(progress)).await;
            kept.map(|_| progress).map_err(Failure::from)
        }
        Err(message) => Err(Failure { code: "poll_failed".to_owned(), message }),
    };
    match kept {
        Ok(progress) => {
            supervisor.triggers.with(&name, |entry| {
                entry.progress = progress;
                entry.trouble = None;
            });
        }
        Err(failure) => drop(failed(&supervisor, &name, failure, *every_ms).await),
    }
    supervisor.triggers.with(&name, |entry| entry.is_polling = false);
}
