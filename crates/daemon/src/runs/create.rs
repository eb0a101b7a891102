//! Making a run: checked, its files beside it, then the journal, then the answer.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outlast_engine::{Event, Fact, Fork, RunId, RunSpec, SnapshotRules, Start, Strategy};
use outlast_home::layout::RunDir;
use outlast_store::{Entry, Error};
use outlast_wire::api::{CreateRun, Created};
use outlast_wire::codes::Code;
use outlast_wire::hook;

use super::find::resolve;
use super::spawn::{self, Admitted};
use super::spec::{self, Wanted};
use super::start::{Before, start};
use super::tell::tell;
use super::waiting;
use crate::children;
use crate::conductor;
use crate::conductor::append_to;
use crate::lanes::Lane;
use crate::lanes::{blocking, in_lane};
use crate::leaving::Leaving;
use crate::notify::Words;
use crate::occasion::Occasion;
use crate::reconciler;
use crate::refusal::Answer;
use crate::refusal::Refusal;
use crate::snapshots;
use crate::successors;
use crate::supervisor::strays::{self, Proof};
use crate::supervisor::{Claim, Supervisor};
use crate::triggers::MakeRuns;
use crate::world;
use crate::world::files::{self, Lasting};
use outlast_conduct::fenced_run::FencedRun;

/// How many ids are tried: the asked one, that of the child under the key, and one more for each time that another
/// client was quicker.
const MOST_IDS: usize = 8;

/// What a client that makes a run is told while everything is paused.
const HELD: &str =
    "everything is paused: it starts after the pause is lifted\nhint: outlast resume --all";

impl MakeRuns for Supervisor {
    fn make(
        self: Arc<Self>,
        run: CreateRun,
        occasion: Occasion,
    ) -> BoxFuture<'static, Answer<Created>> {
        make(self, run, occasion).boxed()
    }

    fn try_out(&self, run: &CreateRun, occasion: &Occasion) -> Answer<Vec<String>> {
        let id = RunId::from_random(world::random()?);
        spec::of(self, &id, run, None, occasion).map(|wanted| wanted.warnings)
    }

    fn is_paused(&self) -> bool {
        self.held_since().is_some()
    }
}

/// Makes the run that is asked for, or finds it.
pub(crate) async fn make(
    supervisor: Arc<Supervisor>,
    asked: CreateRun,
    occasion: Occasion,
) -> Answer<Created> {
    // A task of its own: a client that hangs up must not leave a run without a conductor, nor a parent without the
    // child that it has made room for.
    #[expect(
        clippy::disallowed_methods,
        reason = "ends with the append, and its answer is awaited here"
    )]
    let made = tokio::spawn(make_here(supervisor, asked, occasion)).await;
    made.map_err(|error| Refusal::new(Code::Bug, format!("making a run died: {error}")))?
}

async fn make_here(
    supervisor: Arc<Supervisor>,
    asked: CreateRun,
    occasion: Occasion,
) -> Answer<Created> {
    let mut id = match &asked.id {
        Some(id) => RunId(id.clone()),
        None => RunId::from_random(world::random()?),
    };
    let key = stored_key(&asked);
    let parent = match &asked.parent {
        Some(parent) => match resolve(&supervisor, parent).await {
            Ok(parent) => Some(parent),
            // The run that is asked for again may have outlived its parent.
            Err(_) if is_known(&supervisor, &id, key.as_deref()).await? => None,
            Err(error) => return Err(error),
        },
        None => None,
    };
    let before = match &asked.start.after {
        Some(run) => match resolve(&supervisor, run).await {
            Ok(before) => Some(before),
            Err(_) if is_known(&supervisor, &id, key.as_deref()).await? => None,
            Err(error) => return Err(error),
        },
        None => None,
    };
    let (asked, occasion) = (Arc::new(asked), Arc::new(occasion));
    for _ in 0..MOST_IDS {
        let Some(claim) = supervisor.claim(&id) else { return Err(busy(&id)) };
        let asks = Asks { id: &id, asked: &asked, before: before.clone(), occasion: &occasion };
        if asked.parent.is_none() {
            let (wanted, written) = asks.wanted_and_written(&supervisor).await?;
            let creation = Creation { supervisor, id, wanted, was_made: false, written };
            return make_or_unmake(creation, claim).await;
        }
        let mut wanted = asks.wanted(&supervisor, parent.clone()).await?;
        if parent.is_none() {
            wanted.spec.key = key.clone();
        }
        let mut was_made = false;
        if let Some(parent) = &parent {
            match spawn::admit(&supervisor, parent, spawn::ask(&id, &asked, &wanted.spec)?).await? {
                Admitted::Make { granted, try_number } => {
                    let key = asked.key.as_deref();
                    wanted.spec = spawn::bounded(wanted.spec, key, granted, try_number);
                }
                Admitted::Same(child) if child == id => was_made = true,
                Admitted::Same(child) => {
                    id = child;
                    continue;
                }
                Admitted::UsedUp => {
                    id = RunId::from_random(world::random()?);
                    continue;
                }
            }
        }
        let creation = Creation { supervisor, id, wanted, was_made, written: None };
        return make_or_unmake(creation, claim).await;
    }
    Err(busy(&id))
}

/// What a fork has of the run that it comes from.
pub(crate) struct Grown {
    pub(crate) prefix: Vec<Event>,
    pub(crate) fork: Fork,
    pub(crate) start: Start,
    pub(crate) snapshot: Option<Box<SnapshotRules>>,
    pub(crate) parent_dir: RunDir,
}

/// Makes a fork, or finds it.
pub(crate) async fn fork(
    supervisor: Arc<Supervisor>,
    asked: CreateRun,
    grown: Grown,
) -> Answer<Created> {
    #[expect(
        clippy::disallowed_methods,
        reason = "ends with the append, and its answer is awaited here"
    )]
    let made = tokio::spawn(fork_here(supervisor, asked, grown)).await;
    made.map_err(|error| Refusal::new(Code::Bug, format!("making a fork died: {error}")))?
}

async fn fork_here(supervisor: Arc<Supervisor>, asked: CreateRun, grown: Grown) -> Answer<Created> {
    let id = match &asked.id {
        Some(id) => RunId(id.clone()),
        None => RunId::from_random(world::random()?),
    };
    let Some(claim) = supervisor.claim(&id) else { return Err(busy(&id)) };
    let (asked, occasion) = (Arc::new(asked), Arc::new(Occasion::Asked));
    let asks = Asks { id: &id, asked: &asked, before: None, occasion: &occasion };
    let mut wanted = asks.wanted(&supervisor, None).await?;
    let spec = &mut wanted.spec;
    spec.start = grown.start;
    spec.workspace.snapshot = grown.snapshot;
    let is_worktree = spec.workspace.strategy == Strategy::Worktree;
    spec.workspace.base = grown.fork.point.head.clone().filter(|_| is_worktree);
    spec.fork = Some(Box::new(grown.fork));
    wanted.grown = Some(Arc::new((grown.prefix, grown.parent_dir)));
    let creation = Creation { supervisor, id, wanted, was_made: false, written: None };
    make_or_unmake(creation, claim).await
}

/// What the store knows the run's key by, as far as its parent was named by its id.
fn stored_key(asked: &CreateRun) -> Option<String> {
    let key = asked.key.as_ref()?;
    Some(match &asked.parent {
        Some(parent) => children::scoped(&RunId(parent.clone()), key, 1),
        None => key.clone(),
    })
}

/// What a run is made of.
struct Asks<'a> {
    id: &'a RunId,
    asked: &'a Arc<CreateRun>,
    before: Option<RunId>,
    occasion: &'a Arc<Occasion>,
}

impl Asks<'_> {
    /// The run as it is asked for. It looks at a directory of the user's, and may try out a prompt.
    async fn wanted(self, supervisor: &Arc<Supervisor>, parent: Option<RunId>) -> Answer<Wanted> {
        blocking(self.settle(supervisor, parent)).await
    }

    /// The same of a run without a parent, which is asked for nothing more before its files are written. One job,
    /// because each is a wait for a thread.
    async fn wanted_and_written(
        self,
        supervisor: &Arc<Supervisor>,
    ) -> Answer<(Wanted, Option<Written>)> {
        let (writer, id) = (supervisor.clone(), self.id.clone());
        let settle = self.settle(supervisor, None);
        blocking(move || {
            let wanted = settle()?;
            let written = write(&writer, &id, &wanted, false)?;
            Ok((wanted, Some(written)))
        })
        .await
    }

    fn settle(
        self,
        supervisor: &Arc<Supervisor>,
        parent: Option<RunId>,
    ) -> impl FnOnce() -> Answer<Wanted> + Send + 'static {
        let (asker, id, before) = (supervisor.clone(), self.id.clone(), self.before);
        let (asked, occasion) = (self.asked.clone(), self.occasion.clone());
        move || {
            let mut wanted = spec::of(&asker, &id, &asked, parent, &occasion)?;
            let now = asker.ground.world.now();
            let before = match before {
                Some(run) => {
                    let name = asker.ground.store.row(&run)?.and_then(|row| row.name);
                    Some(Before { run, name })
                }
                None => None,
            };
            wanted.spec.start = start(&asked.start, before, now)?;
            Ok(wanted)
        }
    }
}

/// A run that is being made.
struct Creation {
    supervisor: Arc<Supervisor>,
    id: RunId,
    wanted: Wanted,
    /// True of a child that its parent knows to have been made: it is found or has been removed, and never made again.
    was_made: bool,
    /// Whose files they are, once they are written.
    written: Option<Written>,
}

/// Makes the run. A parent that has made room for it is told if it is not made. The claim is kept until the journal has
/// the run, or its files are gone.
async fn make_or_unmake(creation: Creation, claim: Claim) -> Answer<Created> {
    let (supervisor, id) = (creation.supervisor.clone(), creation.id.clone());
    let parent = creation.wanted.spec.parent.clone();
    let made = creation.make().await;
    match (made, parent) {
        (Ok(Some(mut created)), parent) => {
            drop(claim);
            let id = RunId(created.id.clone());
            created.child = spawn::child_view(&supervisor, parent.as_ref(), &id).await;
            Ok(created)
        }
        (Ok(None), parent) => spawn::removed(&supervisor, parent.as_ref(), &id).await,
        (Err(error), Some(parent)) => {
            if (400..500).contains(&error.code.status()) {
                children::unmake_claimed(&supervisor, &parent, &id).await;
            } else {
                // Whether it was made is not known yet.
                children::look_for_unmade(&supervisor, &parent, vec![id]);
            }
            drop(claim);
            Err(error)
        }
        (Err(error), None) => Err(error),
    }
}

impl Creation {
    /// Nothing is the answer for a child that was made and has been removed.
    async fn make(mut self) -> Answer<Option<Created>> {
        let dir = self.supervisor.ground.layout.run(self.id.as_str());
        let written = match self.written.take() {
            Some(written) => written,
            None => self.write().await?,
        };
        match written {
            Written::Now => self.make_new(&dir).await.map(Some),
            Written::Before(id) => self.same_as(&id).await.map(Some),
            Written::Removed => Ok(None),
        }
    }

    async fn make_new(self, dir: &RunDir) -> Answer<Created> {
        hook!("daemon.create-files");
        let spec = &self.wanted.spec;
        let slot = self.supervisor.take_slot(&self.id, spec, self.supervisor.ground.world.now());
        let epoch = self.supervisor.ground.epoch;
        let context = self.supervisor.context_for_new(&self.id, spec, slot);
        let words = Words { layout: &self.supervisor.ground.layout };
        let begun = match &self.wanted.grown {
            None => Ok(FencedRun::create(&self.id, spec.clone(), &context, epoch, &words)),
            Some(grown) => {
                FencedRun::fork(&self.id, spec.clone(), &grown.0, &context, epoch, &words)
            }
        };
        let (append, seat) = match begun {
            Ok(begun) => begun,
            Err(illegal) => {
                self.supervisor.give_back(&self.id);
                discard(dir);
                let message = format!("its first turns do not fit what is asked of it: {illegal}");
                return Err(Refusal::new(Code::NotForkable, message));
            }
        };
        if seat.run().live().is_none() && lasting(spec) == Lasting::Process {
            // It may still wait when the machine goes down, and then needs what it was given.
            if let Err(error) = self.sync(dir).await {
                self.supervisor.give_back(&self.id);
                discard(dir);
                return Err(error);
            }
        }
        let told: Vec<String> = append.outbox.iter().map(|notice| notice.sink.clone()).collect();
        match append_to(&self.supervisor, append).await {
            Ok(()) => {
                hook!("daemon.run-created");
                strays::acknowledge(dir);
                self.supervisor.notices.wake(told.iter().map(String::as_str));
                let made = seat.run().clone();
                // Before its conductor starts: what that notes is newer.
                self.supervisor.note(&made, Entry::default());
                conductor::start(&self.supervisor, seat, None);
                // The run before it may have ended while this one was made.
                successors::look(&self.supervisor, &made);
                let mut warnings = self.wanted.warnings;
                warnings.extend(made.is_paused_with_all.then(|| HELD.to_owned()));
                let waiting = waiting::of(&self.supervisor, &made);
                let envelope = self.wanted.envelope;
                Ok(Created {
                    id: self.id.0,
                    existed: false,
                    warnings,
                    envelope,
                    waiting,
                    child: None,
                })
            }
            Err(error) => {
                let (supervisor, id) = (self.supervisor.clone(), self.id.clone());
                let settled = self.settle(dir, error).await;
                // An append whose fate was not known may have been made, and another request may have made the run at
                // the same time and not started its conductor yet: then the run keeps what it was given.
                if supervisor.handle(&id).is_none() && !is_open(&supervisor, &id).await {
                    supervisor.give_back(&id);
                }
                settled
            }
        }
    }

    /// The parent of a run from before room was reserved for children hears of it before any client is told.
    async fn announce(&self, id: &RunId, spec: &RunSpec) -> Answer<()> {
        let Some(parent) = &spec.parent else { return Ok(()) };
        tell(&self.supervisor, parent, children::made(id, spec)).await?;
        Ok(())
    }

    /// The same of a run that was there before, and that may have outlived its parent.
    async fn announce_again(&self, id: &RunId, spec: &RunSpec) -> Answer<()> {
        let Some(parent) = spec.parent.clone() else { return Ok(()) };
        let store = self.supervisor.ground.store.clone();
        let is_there = in_lane(Lane::Steps, move || Ok(store.row(&parent)?.is_some())).await?;
        if is_there { self.announce(id, spec).await } else { Ok(()) }
    }

    async fn write(&self) -> Answer<Written> {
        let (supervisor, id) = (self.supervisor.clone(), self.id.clone());
        let (wanted, was_made) = (self.wanted.clone(), self.was_made);
        in_lane(Lane::Steps, move || write(&supervisor, &id, &wanted, was_made)).await
    }

    async fn sync(&self, dir: &RunDir) -> Answer<()> {
        let files = [dir.unacknowledged_spec(), dir.env(), dir.trigger(), dir.stdin()];
        in_lane(Lane::Steps, move || Ok(files::sync(&files)?)).await
    }

    /// The journal did not take it. It may be because the run, or one with its key, is there already.
    async fn settle(&self, dir: &RunDir, error: Error) -> Answer<Created> {
        match &error {
            Error::KeyTaken { by, .. } => {
                discard(dir);
                self.same_as(by).await
            }
            Error::Conflict { .. } => self.same_as(&self.id).await,
            Error::StaleEpoch { .. } => {
                // The directory may be another daemon's by now.
                self.supervisor.ground.leave(Leaving::Fenced);
                Err(error.into())
            }
            Error::Gone { .. } => {
                self.supervisor.ground.heed_store(&error);
                Err(error.into())
            }
            refused if refused.is_refusal() => {
                discard(dir);
                Err(error.into())
            }
            // The store does not say whether the run was written. A run that was written needs a conductor; the
            // files of one that was not are cleared away by the next daemon.
            _ => {
                reconciler::take_over_if_open(&self.supervisor, &self.id);
                Err(error.into())
            }
        }
    }

    /// The run that is there already, unless it is another one than was asked for.
    async fn same_as(&self, id: &RunId) -> Answer<Created> {
        let (store, wanted) = (self.supervisor.ground.store.clone(), id.clone());
        let first = in_lane(Lane::Steps, move || Ok(store.events(&wanted, 0, 1)?)).await?;
        let theirs = first.into_iter().find_map(|event| match event.fact {
            Fact::RunCreated { spec, .. } => Some(spec),
            _ => None,
        });
        if let Some(theirs) = theirs.filter(|theirs| is_same_work(theirs, &self.wanted.spec)) {
            reconciler::take_over_if_open(&self.supervisor, id);
            strays::acknowledge(&self.supervisor.ground.layout.run(id.as_str()));
            self.announce_again(id, &theirs).await?;
            let (id, warnings) = (id.0.clone(), Vec::new());
            let (envelope, waiting, child) = (None, None, None);
            return Ok(Created { id, existed: true, warnings, envelope, waiting, child });
        }
        let key = self.wanted.spec.key.as_deref().unwrap_or_default();
        let message = format!("run {id} has key {key:?} and is a different command or directory");
        let hint = format!("use another --key, or look at that run:\noutlast show {id}");
        Err(Refusal::new(Code::KeyConflict, message).hint(hint))
    }
}

/// Whose files they are that a run has.
enum Written {
    Now,
    /// The journal has had this run for longer, by its id or by its key.
    Before(RunId),
    /// It is a child that was made, and it has been removed.
    Removed,
}

/// Writes the run's files, unless the journal has the run. Blocks.
fn write(supervisor: &Supervisor, id: &RunId, wanted: &Wanted, was_made: bool) -> Answer<Written> {
    if let Some(known) = known(supervisor, id, wanted.spec.key.as_deref())? {
        return Ok(Written::Before(known));
    }
    refuse_stray(supervisor, id, &wanted.spec)?;
    if was_made {
        return Ok(Written::Removed);
    }
    let dir = supervisor.ground.layout.run(id.as_str());
    write_new(id, &dir, wanted).map_err(|error| {
        let runs = supervisor.ground.layout.runs();
        error.about(&format!("cannot write the files of a new run to {}", runs.display()))
    })?;
    if let (Some(grown), Some(fork)) = (&wanted.grown, &wanted.spec.fork) {
        snapshots::pin(&grown.1, &dir, id, &fork.point.commit).inspect_err(|_| discard(&dir))?;
        hook!("daemon.fork-pinned");
    }
    Ok(Written::Now)
}

/// The run of this id or key that the journal has. Blocks.
fn known(supervisor: &Supervisor, id: &RunId, key: Option<&str>) -> Result<Option<RunId>, Error> {
    if supervisor.ground.store.row(id)?.is_some() {
        return Ok(Some(id.clone()));
    }
    key.map_or(Ok(None), |key| supervisor.ground.store.run_of_key(key))
}

async fn is_known(supervisor: &Arc<Supervisor>, id: &RunId, key: Option<&str>) -> Answer<bool> {
    let (supervisor, id, key) = (supervisor.clone(), id.clone(), key.map(str::to_owned));
    blocking(move || Ok(known(&supervisor, &id, key.as_deref())?.is_some())).await
}

/// The journal has forgotten a run of this id or key, and its directory has not.
fn refuse_stray(supervisor: &Supervisor, id: &RunId, spec: &RunSpec) -> Answer<()> {
    let strays = &supervisor.strays;
    let by_key = spec.key.as_deref().and_then(|key| strays.of_key(key));
    let known = strays.get(id).map(|_| id.clone()).or(by_key);
    known.map_or(Ok(()), |id| Err(strays::refusal(&id)))
}

fn is_same_work(theirs: &RunSpec, ours: &RunSpec) -> bool {
    // One occurrence is one run, also if the trigger's loop file has changed since.
    if ours.origin.is_some() {
        return theirs.origin == ours.origin;
    }
    let hash = |spec: &RunSpec| spec.workflow.as_ref().map(|workflow| workflow.sha256.clone());
    // A directory of its own is named after the run.
    let is_same_place = ours.workspace.strategy != Strategy::Inplace || theirs.dir == ours.dir;
    let from = |spec: &RunSpec| spec.fork.as_ref().map(|fork| (fork.run.clone(), fork.turn));
    theirs.agent == ours.agent
        && from(theirs) == from(ours)
        && is_same_place
        && theirs.task == ours.task
        && hash(theirs) == hash(ours)
}

/// The same request is being answered already, or what a dead daemon had made of it is being cleared away.
fn busy(id: &RunId) -> Refusal {
    Refusal::new(Code::Busy, format!("run {id} is being made just now")).hint("ask again")
}

/// A new directory. One that is there already is another run's, unless its creation did not finish.
fn make_dir(id: &RunId, dir: &RunDir) -> Answer<()> {
    match files::new_private_dir(&dir.0) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if strays::proof_of(dir)? != Proof::Unfinished {
                return Err(strays::refusal(id));
            }
            strays::clear_unfinished(dir)?;
            Ok(files::new_private_dir(&dir.0)?)
        }
        made => Ok(made?),
    }
}

fn write_new(id: &RunId, dir: &RunDir, wanted: &Wanted) -> Answer<()> {
    make_dir(id, dir)?;
    Ok(write_files(dir, wanted).inspect_err(|_| discard(dir))?)
}

fn write_files(dir: &RunDir, wanted: &Wanted) -> std::io::Result<()> {
    let lasting = lasting(&wanted.spec);
    let written = serde_json::to_vec_pretty(&wanted.spec).map_err(std::io::Error::other)?;
    // First, and under this name: until it is renamed the directory proves that no client was told of the run.
    files::write(&dir.unacknowledged_spec(), &written)?;
    if let Some(text) = &wanted.workflow_text {
        files::write_whole(&dir.workflow(), text.as_bytes(), lasting)?;
    }
    if let Some(told) = &wanted.told {
        let told = serde_json::to_vec_pretty(told).map_err(std::io::Error::other)?;
        files::write_whole(&dir.trigger(), &told, lasting)?;
    }
    if let Some(stdin) = &wanted.stdin {
        files::write_whole(&dir.stdin(), stdin.as_os_str().as_bytes(), lasting)?;
    }
    let env = serde_json::to_vec(&wanted.env).map_err(std::io::Error::other)?;
    files::write_whole(&dir.env(), &env, lasting)
}

/// A command that is tried once is tried on this boot; only what may go on after the machine was down needs
/// its files to have lasted.
fn lasting(spec: &RunSpec) -> Lasting {
    let may_go_on = spec.retry.max_attempts > 1 || spec.workflow.is_some();
    if may_go_on { Lasting::Power } else { Lasting::Process }
}

/// No client was told of this run. Removes only what this creation has written.
fn discard(dir: &RunDir) {
    if let Err(error) = strays::clear_unfinished(dir) {
        tracing::warn!(dir = %dir.0.display(), %error, "cannot remove the files of a run that was not made");
    }
}

/// False also if the journal cannot be read: a slot that is free too early is better than one that is lost.
async fn is_open(supervisor: &Arc<Supervisor>, id: &RunId) -> bool {
    let (store, id) = (supervisor.ground.store.clone(), id.clone());
    let row = in_lane(Lane::Steps, move || Ok(store.row(&id)?)).await;
    row.is_ok_and(|row| row.is_some_and(|row| row.is_open))
}
