//! Making a run: checked, its files beside it, then the journal, then the answer.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outlast_engine::{Fact, RunId, RunSpec, Strategy};
use outlast_home::layout::RunDir;
use outlast_store::{Entry, Error};
use outlast_wire::api::{CreateRun, Created};
use outlast_wire::codes::Code;
use outlast_wire::hook;

use super::find::resolve;
use super::spec::{self, Wanted};
use super::tell::tell;
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
use crate::supervisor::strays::{self, Proof};
use crate::supervisor::{Claim, Supervisor};
use crate::triggers::MakeRuns;
use crate::world;
use crate::world::files::{self, Lasting};
use outlast_conduct::fenced_run::FencedRun;

/// What a client that makes a run is told while everything is paused.
const HELD: &str = "everything is paused: it starts after `outlast resume --all`";

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
    let id = match &asked.id {
        Some(id) => RunId(id.clone()),
        None => RunId::from_random(world::random()?),
    };
    let parent = match &asked.parent {
        Some(parent) => match resolve(&supervisor, parent).await {
            Ok(parent) => Some(parent),
            // The run that is asked for again may have outlived its parent.
            Err(_) if is_known(&supervisor, &id, asked.key.as_deref()).await? => None,
            Err(error) => return Err(error),
        },
        None => None,
    };
    // It looks at a directory of the user's, and may try out a prompt.
    let wanted = {
        let (asker, id, asked) = (supervisor.clone(), id.clone(), Box::new(asked));
        blocking(move || spec::of(&asker, &id, &asked, parent, &occasion)).await?
    };
    let Some(claim) = supervisor.claim(&id) else { return Err(busy(&id)) };
    let creation = Creation { supervisor, id, wanted, _claim: claim };
    // A task of its own: a client that hangs up must not leave a run without a conductor.
    #[expect(
        clippy::disallowed_methods,
        reason = "ends with the append, and its answer is awaited here"
    )]
    let made = tokio::spawn(creation.make()).await;
    made.map_err(|error| Refusal::new(Code::Bug, format!("making a run died: {error}")))?
}

/// A run that is being made.
struct Creation {
    supervisor: Arc<Supervisor>,
    id: RunId,
    wanted: Wanted,
    /// Kept until the journal has the run, or its files are gone.
    _claim: Claim,
}

impl Creation {
    async fn make(self) -> Answer<Created> {
        let dir = self.supervisor.ground.layout.run(self.id.as_str());
        match self.write(&dir).await? {
            Written::Now => {}
            Written::Before(id) => return self.same_as(&id).await,
        }
        hook!("daemon.create-files");
        let spec = &self.wanted.spec;
        let slot = self.supervisor.take_slot(&self.id, spec, self.supervisor.ground.world.now());
        let epoch = self.supervisor.ground.epoch;
        let context = self.supervisor.context_for_new(&self.id, spec, slot);
        let words = Words { layout: &self.supervisor.ground.layout };
        let (append, seat) = FencedRun::create(&self.id, spec.clone(), &context, epoch, &words);
        if seat.run().live().is_none() && lasting(spec) == Lasting::Process {
            // It may still wait when the machine goes down, and then needs what it was given.
            if let Err(error) = self.sync(&dir).await {
                self.supervisor.give_back(&self.id);
                discard(&dir);
                return Err(error);
            }
        }
        let told: Vec<String> = append.outbox.iter().map(|notice| notice.sink.clone()).collect();
        match append_to(&self.supervisor, append).await {
            Ok(()) => {
                hook!("daemon.run-created");
                strays::acknowledge(&dir);
                self.supervisor.notices.wake(told.iter().map(String::as_str));
                let made = seat.run().clone();
                // Before its conductor starts: what that notes is newer.
                self.supervisor.note(&made, Entry::default());
                conductor::start(&self.supervisor, seat, None);
                self.announce(&self.id, &made.spec).await?;
                let mut warnings = self.wanted.warnings;
                warnings.extend(made.is_paused_with_all.then(|| HELD.to_owned()));
                Ok(Created { id: self.id.0, existed: false, warnings })
            }
            Err(error) => {
                let (supervisor, id) = (self.supervisor.clone(), self.id.clone());
                let settled = self.settle(&dir, error).await;
                // An append whose fate was not known may have been made: then the run keeps what it was given.
                if supervisor.handle(&id).is_none() {
                    supervisor.give_back(&id);
                }
                settled
            }
        }
    }

    /// The parent's journal has the run before any client is told of it. If this daemon dies first, the next one
    /// finds the run and does the same.
    async fn announce(&self, id: &RunId, spec: &RunSpec) -> Answer<()> {
        let Some(parent) = &spec.parent else { return Ok(()) };
        tell(&self.supervisor, parent, children::made(id, spec.key.as_ref())).await?;
        hook!("daemon.child-announced");
        Ok(())
    }

    /// The same of a run that was there before, and that may have outlived its parent.
    async fn announce_again(&self, id: &RunId, spec: &RunSpec) -> Answer<()> {
        let Some(parent) = spec.parent.clone() else { return Ok(()) };
        let store = self.supervisor.ground.store.clone();
        let is_there = in_lane(Lane::Steps, move || Ok(store.row(&parent)?.is_some())).await?;
        if is_there { self.announce(id, spec).await } else { Ok(()) }
    }

    /// Writes the run's files, unless the journal has the run. One job, because each is a wait for a thread.
    async fn write(&self, dir: &RunDir) -> Answer<Written> {
        let (supervisor, id) = (self.supervisor.clone(), self.id.clone());
        let (dir, wanted) = (dir.clone(), self.wanted.clone());
        in_lane(Lane::Steps, move || {
            if let Some(known) = known(&supervisor, &id, wanted.spec.key.as_deref())? {
                return Ok(Written::Before(known));
            }
            refuse_stray(&supervisor, &id, &wanted.spec)?;
            if let Some(parent) = &wanted.spec.parent {
                children::refuse_parent(&supervisor, parent)?;
            }
            write_new(&id, &dir, &wanted).map_err(|error| {
                let runs = supervisor.ground.layout.runs();
                error.about(&format!("cannot write the files of a new run to {}", runs.display()))
            })?;
            Ok(Written::Now)
        })
        .await
    }

    async fn sync(&self, dir: &RunDir) -> Answer<()> {
        let files = [dir.unacknowledged_spec(), dir.env(), dir.trigger()];
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
            return Ok(Created { id: id.0.clone(), existed: true, warnings: Vec::new() });
        }
        let key = self.wanted.spec.key.as_deref().unwrap_or_default();
        let message = format!("run {id} has key {key:?} and is a different command or directory");
        let hint = format!("use another --key, or look at it with `outlast show {id}`");
        Err(Refusal::new(Code::KeyConflict, message).hint(hint))
    }
}

/// Whose files they are that a run has.
enum Written {
    Now,
    /// The journal has had this run for longer, by its id or by its key.
    Before(RunId),
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
    theirs.agent == ours.agent
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
