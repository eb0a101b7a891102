//! The task that sees to all triggers: lets in what is due, has polls made, looks into folders, and makes runs of
//! what has come. Sleeps until the next of these is due, and for good while there is none. It looks at a trigger
//! that has news or whose time has come, and never at all of them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use outlast_engine::Time;
use outlast_store::{Delivery, Error, Settlement, TriggerChange};
use outlast_wire::api::TriggerSource;
use outlast_wire::hook;
use outlast_wire::words::TroubleCode;

use super::agenda::Agenda;
use super::failure::{Failure, failed, is_fenced, recovered};
use super::folder;
use super::make::{Unmade, make};
use super::polls::Polls;
use super::progress::{Progress, backoff_ms};
use super::run_of::key;
use super::schedule::{Admission, MOST_CAUGHT_UP, ON_TIME_MS, Verdict, verdict};
use super::watch::Watch;
use super::{CreateBackoff, Entry, TriggerTable, Triggers, change, keep};
use crate::diary;
use crate::lanes::Lane;
use crate::lanes::in_lane;
use crate::view;
use crate::world::alarm::Alarm;

/// Runs that are made of one trigger before the next has its turn.
const BATCH: usize = 32;
/// Settlement deliveries that are remembered of each trigger, and how often it is seen to that there are no more.
const REMEMBERED: u64 = 100_000;
const FORGET_EACH: u64 = 1000;

/// Takes over the triggers that there are, and sees to them from here on.
pub(crate) fn start(triggers: Arc<Triggers>) -> Result<(), Error> {
    let agenda = triggers.table.load(&triggers.ground)?;
    let worker = Worker {
        triggers,
        agenda,
        alarm: Alarm::default(),
        watch: Watch::default(),
        polls: Polls::default(),
    };
    #[expect(clippy::disallowed_methods, reason = "the one worker, which ends with the daemon")]
    let _worker = tokio::spawn(worker.work());
    Ok(())
}

/// When a trigger that was just read is to be looked at first.
pub(super) fn first_look(entry: &Entry) -> Option<Time> {
    if entry.paused {
        return None;
    }
    let is_waiting = entry.waiting > 0;
    let listens = match &entry.brief.source {
        TriggerSource::Webhook { .. } => None,
        // What lies there has to be looked at.
        TriggerSource::Folder { .. } => Some(Time(0)),
        TriggerSource::Schedule { .. } => {
            entry.schedule.as_ref()?.next_after(entry.progress.cursor())
        }
        TriggerSource::Poll { every_ms, .. } => Some(entry.progress.cursor().plus_ms(*every_ms)),
    };
    if is_waiting { Some(Time(0)) } else { listens.max(entry.progress.retry_at()) }
}

struct Worker {
    triggers: Arc<Triggers>,
    agenda: Agenda,
    alarm: Alarm,
    watch: Watch,
    polls: Polls,
}

/// When there is something to do, if that is known.
type Step = Result<Option<Time>, Failure>;

impl Worker {
    async fn work(mut self) {
        let triggers = self.triggers.clone();
        loop {
            let wait = self.tend_due().await;
            tokio::select! {
                () = triggers.table.wake.notified() => {}
                () = self.alarm.after(wait) => {}
                names = self.watch.changed() => self.has_news(&names),
                () = self.polls.ended() => {}
            }
        }
    }

    fn table(&self) -> &TriggerTable {
        &self.triggers.table
    }

    fn has_news(&self, names: &BTreeSet<Arc<str>>) {
        names.iter().for_each(|name| self.table().look_at(name));
    }

    /// Tends the triggers that have news and those whose time has come, by turns: however many of one kind there
    /// are, the other does not wait for all of them. Says how long nothing is due then.
    async fn tend_due(&mut self) -> Option<Duration> {
        loop {
            if self.triggers.is_paused() || self.triggers.ground.leaving().borrow().is_some() {
                return None;
            }
            self.polls.start(&self.triggers);
            if let Some(names) = self.watch.changed().now_or_never() {
                self.has_news(&names);
            }
            let now = self.triggers.ground.world.now();
            let next = [self.table().take_news(), self.agenda.take_due(now)];
            if next.iter().all(Option::is_none) {
                return self.agenda.next_at().map(|at| between(now, at));
            }
            for name in next.into_iter().flatten() {
                let at = self.tend(&name).await;
                self.agenda.put(&name, at);
            }
            // All of the daemon shares this thread, and many may be due that have nothing to wait for.
            tokio::task::yield_now().await;
        }
    }

    /// Says when to look at the trigger again.
    async fn tend(&mut self, name: &Arc<str>) -> Option<Time> {
        let Some(entry) = self.table().entry(name).filter(|entry| !entry.paused) else {
            self.watch.leave(name);
            return None;
        };
        let now = self.triggers.ground.world.now();
        let came = self.hear(&entry, now).await;
        let made = self.see_to(name, now).await;
        [came, made].into_iter().flatten().min()
    }

    /// Has what has come be kept, and says when to ask again.
    async fn hear(&mut self, entry: &Entry, now: Time) -> Option<Time> {
        if let Some(at) = entry.progress.retry_at().filter(|at| *at > now) {
            return Some(at);
        }
        let name = entry.name();
        let heard = match &entry.brief.source {
            TriggerSource::Schedule { .. } => self.admit(name, entry).await,
            TriggerSource::Webhook { .. } => Ok(None),
            TriggerSource::Folder { dir, leave } => self.look(name, dir, *leave, now).await,
            // Whether it goes well is for the poll itself to say.
            TriggerSource::Poll { every_ms, .. } => return self.poll(entry, *every_ms, now),
        };
        match heard {
            Ok(next) => {
                recovered(&self.triggers, name).await;
                next
            }
            Err(failure) => failed(&self.triggers, name, failure, 0).await,
        }
    }

    /// Has runs made of what has come, and says when to go on.
    async fn see_to(&self, name: &str, now: Time) -> Option<Time> {
        let stuck = self.table().with(name, |entry| entry.stuck.clone()).flatten();
        if let Some(stuck) = stuck.as_ref().filter(|stuck| stuck.retry_at > now) {
            return Some(stuck.retry_at);
        }
        match self.make_some(name, now).await {
            Ok(next) => {
                self.table().with(name, |entry| entry.stuck = None);
                next
            }
            Err(failure) => self.stuck(name, failure, stuck.as_ref(), now),
        }
    }

    fn stuck(
        &self,
        name: &str,
        failure: Failure,
        before: Option<&CreateBackoff>,
        now: Time,
    ) -> Option<Time> {
        if is_fenced(&self.triggers, &failure) {
            return None;
        }
        let trouble = self.triggers.ground.trouble(failure.code, failure.message);
        // Since when it is so stays as it was.
        let known = before.map(|before| &before.trouble);
        let known = known.filter(|known| known.message == trouble.message);
        if known.is_none() {
            let (code, message) = (&trouble.code, &trouble.message);
            tracing::error!(trigger = name, %code, message, "cannot start a run");
        }
        let failures = before.map_or(1, |before| before.failures.saturating_add(1));
        let retry_at = now.plus_ms(backoff_ms(failures));
        let trouble = known.cloned().unwrap_or(trouble);
        let stuck = CreateBackoff { trouble, failures, retry_at };
        self.table().with(name, |entry| entry.stuck = Some(stuck))?;
        Some(retry_at)
    }

    /// Lets in what is due of a schedule. It goes by the wall's clock as far as that is believed, which may be set
    /// back: its cursor does not go back with it.
    async fn admit(&self, name: &str, entry: &Entry) -> Step {
        let Some(schedule) = &entry.schedule else { return Ok(None) };
        let now = self.triggers.ground.world.now();
        let waiting = usize::try_from(entry.waiting).unwrap_or(usize::MAX);
        let room = MOST_CAUGHT_UP.saturating_sub(waiting);
        let cursor = entry.progress.cursor();
        let found = schedule.admit(entry.missed(), cursor, now, room);
        if found.cursor != cursor {
            let skipped = entry.progress.skipped + found.skipped;
            let progress = Progress { cursor_ms: found.cursor.0, skipped, ..entry.progress };
            if let Some(entry) = missed(name, &found, now) {
                let ground = self.triggers.ground.clone();
                // Before the cursor moves: what is written twice is one entry.
                in_lane(Lane::Chores, move || {
                    ground.diary.note(entry);
                    Ok(())
                })
                .await?;
            }
            let due = found.due.into_iter().map(occurrence).collect();
            keep(&self.triggers, name, due, Some(progress)).await?;
            self.table().with(name, |entry| entry.progress = progress);
            if found.skipped > 0 {
                tracing::info!(trigger = name, skipped = found.skipped, "occurrences were missed");
            }
        }
        Ok(schedule.next_after(found.cursor.max(now)))
    }

    /// Looks into a folder, if there is something to look at.
    async fn look(&mut self, name: &Arc<str>, dir: &str, leave: bool, now: Time) -> Step {
        let stuck = |error: std::io::Error| Failure {
            code: TroubleCode::Folder,
            message: format!("cannot look into {dir}: {error}"),
        };
        self.watch.listen(name, dir.as_ref()).map_err(stuck)?;
        let Some(closed) = self.watch.take_news(name) else { return Ok(None) };
        let path = dir.to_owned();
        let names = closed.clone();
        let found = in_lane(Lane::Folders, move || {
            Ok(folder::look(path.as_ref(), leave, names.as_ref(), now))
        })
        .await?;
        let kept = match found {
            Ok(found) => {
                let kept = match found.deliveries.is_empty() {
                    true => Ok(0),
                    false => keep(&self.triggers, name, found.deliveries, None).await,
                };
                kept.map(|_| found.look_again_at).map_err(Failure::from)
            }
            Err(error) => Err(stuck(error)),
        };
        match kept {
            Ok(Some(at)) => {
                self.watch.look_again(name);
                Ok(Some(at))
            }
            Ok(None) => Ok(None),
            Err(stuck) => {
                self.watch.look_again(name);
                Err(stuck)
            }
        }
    }

    /// Has the poll made that is due.
    fn poll(&mut self, entry: &Entry, every_ms: u64, now: Time) -> Option<Time> {
        if entry.is_polling {
            return None;
        }
        let due = entry.progress.cursor().plus_ms(every_ms);
        if due > now && entry.progress.failures == 0 {
            return Some(due);
        }
        self.polls.push(entry.name());
        None
    }

    /// Makes runs of what has come, as far as may be now.
    async fn make_some(&self, name: &str, now: Time) -> Step {
        let Some(entry) = self.table().entry(name) else { return Ok(None) };
        if entry.waiting == 0 {
            return Ok(None);
        }
        let (store, of) = (self.triggers.ground.store.clone(), name.to_owned());
        let batch = in_lane(Lane::Steps, move || Ok(store.deliveries(&of, BATCH)?)).await?;
        let count = batch.len();
        for delivery in batch {
            let Some(entry) = self.table().entry(name).filter(|entry| !entry.paused) else {
                return Ok(None);
            };
            let Some(settled) = self.settled(&entry, &delivery).await? else { return Ok(None) };
            hook!("daemon.occurrence-made");
            settle(&self.triggers, name, &delivery.id, settled).await?;
        }
        let has_more = count == BATCH;
        Ok(has_more.then_some(now))
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
            let (store, key) =
                (self.triggers.ground.store.clone(), key(entry.name(), &delivery.id));
            if let Some(run) = in_lane(Lane::Steps, move || Ok(store.run_of_key(&key)?)).await? {
                return Ok(Some(Settlement::Made { run }));
            }
        }
        match verdict {
            Verdict::Queue => Ok(None),
            Verdict::Skip => {
                let why = "a run of the trigger was not over".to_owned();
                Ok(Some(Settlement::Skipped { why }))
            }
            Verdict::Make => match make(&self.triggers, entry, delivery).await {
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
        self.table().queue(entry.name());
        let (store, name) = (self.triggers.ground.store.clone(), entry.name().clone());
        let open = in_lane(Lane::Steps, move || Ok(store.open_runs_of(&name)?)).await?;
        let verdict = verdict(overlap, open);
        if verdict != Verdict::Queue {
            self.table().let_go(entry.name());
        }
        Ok(verdict)
    }
}

fn between(now: Time, at: Time) -> Duration {
    Duration::from_millis(at.ms_since(now))
}

/// What the diary has of times that passed without being looked at; nothing if all were on time.
fn missed(name: &str, found: &Admission, now: Time) -> Option<diary::Entry> {
    let is_late = |at: &&Time| now.ms_since(**at) > ON_TIME_MS;
    let late = u64::try_from(found.due.iter().filter(is_late).count()).unwrap_or(u64::MAX);
    (found.skipped > 0 || late > 0).then(|| diary::Entry::Missed {
        at_ms: now.0,
        trigger: name.to_owned(),
        due_ms: found.last_missed.unwrap_or(found.cursor).0,
        skipped: found.skipped,
        late,
    })
}

fn occurrence(at: Time) -> Delivery {
    Delivery { id: view::rfc3339(at), at, body: "{}".to_owned() }
}

/// Writes down what became of a delivery.
pub(super) async fn settle(
    triggers: &Arc<Triggers>,
    name: &str,
    id: &str,
    settled: Settlement,
) -> Result<(), Error> {
    let order = TriggerChange::Settle { trigger: name.to_owned(), id: id.to_owned(), settled };
    change(triggers, order).await?;
    let count = triggers.table.with(name, |entry| {
        entry.waiting = entry.waiting.saturating_sub(1);
        entry.settled += 1;
        entry.settled
    });
    if count.is_some_and(|count| count.is_multiple_of(FORGET_EACH)) {
        let forget = TriggerChange::Forget { trigger: name.to_owned(), but: REMEMBERED };
        change(triggers, forget).await?;
    }
    Ok(())
}
