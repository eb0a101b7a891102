//! Starting a step: its directory, what it is given, its spec, its shim. Starting twice is harmless: the lock decides.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io;
use std::path::PathBuf;

use outlast_agents::is_driven;
use outlast_conduct::records as meaning;
use outlast_conduct::steps::{Launched, Say, Trouble};
use outlast_engine::{Purpose, Run, Step, WorkspaceState};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_home::lock;
use outlast_wire::again;
use outlast_wire::shim::{EnvVar, Limits, NeverStarted, Record, Spec, Spool, Window};
use outlast_wire::snapshot::{ORDERS_FILE, Orders, SNAPSHOT_VERB};
use outlast_wire::{DRIVE_VERB, hook, version};

use super::note::Noted;
use super::session::{self, Session, on_the_wire};
use super::{Driver, GRACE_MS, driving, ending, errand, program, records};
use crate::lanes::Lane;
use crate::service::scope_name;
use crate::world::files::{self, Lasting};
use crate::world::{self, host, limits, spawn};
use crate::{conversation, request, snapshots, trace, workspace};

impl Driver {
    /// Starts a shim. Whether it runs the command is for its lock, its records and our epoch to decide.
    pub(super) async fn launch(&mut self) -> Launched {
        let mut baseline = None;
        match self.stands() {
            Ok(()) => {}
            Err(workspace::Failure::Io { source, .. }) => {
                let code = host::launch_failure(&source);
                return Launched::Failed { code, why: format!("the workspace: {source}") };
            }
            Err(failure) => return Launched::Displaced(failure.to_string()),
        }
        let launched = match self.has_room() {
            Ok(()) => self.try_launch(&mut baseline).await,
            Err(error) => Err(error),
        };
        match launched {
            Ok(Started::Met(session)) => Launched::Met { hello: self.enter(*session), baseline },
            Ok(Started::NoAnswer) => Launched::NoAnswer { baseline },
            Ok(Started::Superseded) => Launched::Superseded,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Launched::BadSpec(error.to_string())
            }
            Err(error) => {
                Launched::Failed { code: host::launch_failure(&error), why: error.to_string() }
            }
        }
    }

    async fn try_launch(&mut self, baseline: &mut Option<String>) -> io::Result<Started> {
        files::private_dir(&self.dir.0)?;
        *baseline = self.look_at_start().await;
        let request = self.request().await?;
        let spec = serde_json::to_vec(&self.spec(request.as_ref())?).map_err(io::Error::other)?;
        files::write(&self.dir.spec(), &spec)?;
        if self.note_launch()? == Noted::Superseded {
            return Ok(Started::Superseded);
        }
        hook!("daemon.attempt-spec");
        let shim = spawn::shim(&self.ground.exe, &self.dir.0)?;
        hook!("daemon.shim-spawned");
        self.enclose(shim.pid).await;
        let stream = tokio::net::UnixStream::from_std(shim.stream)?;
        // What is to be stopped is not started first.
        let is_to_stop = self.stop.borrow().is_some();
        let start = (!is_to_stop).then(|| session::order(Say::Start, self.task.step, &self.ground));
        match Session::over(stream, self.ground.lineage.shim_epoch(), start).await {
            Ok(session) => Ok(Started::Met(Box::new(session))),
            Err(error) => {
                tracing::warn!(run = %self.task.run.id, %error, "a new shim did not answer");
                Ok(Started::NoAnswer)
            }
        }
    }

    /// Nothing is run in what has taken the place of a workspace. A checkout is what makes one.
    fn stands(&self) -> Result<(), workspace::Failure> {
        let run = &self.task.run;
        let purpose = run.errand.as_ref().map(|errand| &errand.purpose);
        match (self.task.step, purpose) {
            (Step::Errand { .. }, Some(Purpose::Checkout)) => Ok(()),
            _ => workspace::stands(&run.spec, &self.ground.layout.run(run.id.as_str())),
        }
    }

    /// Steps leave some descriptors to clients. One that is to be stopped may take the last.
    pub(super) fn has_room(&self) -> io::Result<()> {
        if self.stop.borrow().is_some() {
            return Ok(());
        }
        limits::keep_some_free(File::open("/dev/null")?)
    }

    /// Writes down that nothing ran, where a late shim would read it.
    pub(super) fn fence(&self, code: NeverStarted, why: String) -> Result<(), Trouble> {
        let at_ms = self.ground.world.now().0;
        tracing::error!(run = %self.task.run.id, %why, "step not launched");
        let fenced = self.has_been_launched().and_then(|has_been| match has_been {
            // What became of it is for the next look to find out.
            true => Ok(()),
            false => fence(&self.dir, at_ms, code, why),
        });
        fenced.map_err(|error| Trouble::of_file(host::failure(&error), error.to_string()))
    }

    /// Gives a new shim a scope of its own, so that nothing of the step ever lives in the daemon's.
    async fn enclose(&self, shim: Option<u32>) {
        let Some(pid) = shim else { return };
        let run = &self.task.run;
        let called = run.spec.name.as_deref().unwrap_or(run.id.as_str());
        let (name, description) =
            (scope_name(&run.id, self.task.step), format!("Outlast run {called}"));
        self.ground.scopes.enclose(&name, &description, pid).await;
    }

    /// The workspace as a loop's first attempt finds it: what there was before it.
    async fn look_at_start(&self) -> Option<String> {
        let run = self.task.run.clone();
        let is_new = run.preparation.workspace == WorkspaceState::Ready { created: true };
        let is_first = self.task.step == Step::Attempt { turn: 1, attempt: 1 };
        if !is_first || !(is_new || ending::wants_digest(&run)) {
            return None;
        }
        if is_new {
            // It is whole now: from here on it is reused, and no hook makes it again.
            let (run, id) = (run.clone(), run.id.clone());
            match Lane::Steps.run(move || workspace::settle(&run.spec)).await {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => {
                    tracing::error!(run = %id, %failure, "cannot say that the workspace is whole");
                }
                Err(error) => tracing::error!(run = %id, %error, "settling the workspace died"),
            }
        }
        ending::digest(run).await
    }

    /// What an attempt is asked; an errand is asked nothing. A template, and what is read for it, have a lane, so
    /// that a long one holds up no other run. A plain command has neither, and does not wait for a thread.
    async fn request(&self) -> io::Result<Option<request::Request>> {
        let Step::Attempt { .. } = self.task.step else { return Ok(None) };
        let (run, store) = (self.task.run.clone(), self.ground.store.clone());
        let now = self.ground.world.now();
        let run_dir = self.ground.layout.run(run.id.as_str());
        let places = request::Places { attempt: self.dir.clone(), run: run_dir };
        let is_plain = run.spec.workflow.is_none()
            && run.spec.origin.is_none()
            && run.given().next().is_none();
        let make = move || {
            let told = told(&run, &places.run)?;
            let outputs = request::Outputs::read(&*store, &run).map_err(for_now)?;
            let conversation = conversation::of(&run, &places.run)?;
            let given = request::Given {
                told: told.as_ref(),
                outputs: &outputs,
                conversation: &conversation,
                places: &places,
                now,
            };
            request::of(&run, &given).map_err(unusable)
        };
        let made = if is_plain {
            make()
        } else {
            Lane::Steps.run(make).await.map_err(io::Error::other)?
        };
        made.map(Some)
    }

    /// Writes what the step is given, and says how it is run.
    fn spec(&self, request: Option<&request::Request>) -> io::Result<Spec> {
        let run = &self.task.run;
        let (turn, attempt) = on_the_wire(self.task.step);
        let command = match request {
            Some(request) => self.attempt_command(request)?,
            None => self.errand_command()?,
        };
        let is_first = run.spec.workflow.is_some() && run.turns_committed == 0;
        let lacks_program = request.is_some()
            && is_first
            && program::absent(&run.spec, &command.env, &command.env_file).is_some();
        Ok(Spec {
            proto: version::SHIM,
            run: run.id.0.clone(),
            turn,
            attempt,
            argv: command.argv,
            dir: command.dir,
            env_file: command.env_file,
            env: command.env,
            umask: run.spec.umask,
            tty: command.tty,
            limits: Limits {
                turn_timeout_ms: self.task.timeout_ms,
                stall_window_ms: command.stall_window_ms,
                grace_ms: GRACE_MS,
            },
            spool: Spool::default(),
            stdin: command.stdin,
            heartbeat: command.heartbeat,
            revive: self.ground.revive(),
            booted_at_ms: Some(self.ground.world.booted_at_ms()),
            secrets: run.spec.secrets.clone(),
            lacks_program,
        })
    }

    fn attempt_command(&self, request: &request::Request) -> io::Result<StepCommand> {
        let run = &self.task.run;
        if let Some(messages) = &request.messages {
            files::write(&self.dir.messages(), messages)?;
        }
        // The last line of a text file ends as the others do: `while read` in a shell takes no line that does not.
        let end = if request.prompt.ends_with('\n') { "" } else { "\n" };
        files::write(&self.dir.prompt(), format!("{}{end}", request.prompt).as_bytes())?;
        files::write(&self.dir.request(), &request.json)?;
        let argv = match is_driven(&run.spec.agent, &run.spec.driving) {
            true => self.agent_driver(request)?,
            false => outlast_agents::plan(&run.spec.agent).map_err(unusable)?.argv,
        };
        Ok(StepCommand {
            argv,
            dir: run.spec.dir.clone().into(),
            env_file: self.ground.layout.run(run.id.as_str()).env(),
            env: self.attempt_env(),
            tty: run.spec.tty.map(|window| Window { rows: window.rows, cols: window.cols }),
            stall_window_ms: run.spec.limits.stall_window_ms,
            stdin: run.spec.has_stdin.then(|| self.ground.layout.run(run.id.as_str()).stdin()),
            heartbeat: Some(self.dir.heartbeat()),
        })
    }

    /// Says what the driver is to do; what runs is the driver, which is this program.
    fn agent_driver(&self, request: &request::Request) -> io::Result<Vec<String>> {
        let run = &self.task.run;
        let run_dir = self.ground.layout.run(run.id.as_str());
        let orders = driving::orders(run, request, &run_dir, &self.dir)?;
        let json = serde_json::to_vec(&orders).map_err(io::Error::other)?;
        files::write_whole(&self.dir.drive(), &json, Lasting::Process)?;
        Ok(vec![text(&self.ground.exe)?, DRIVE_VERB.to_owned(), text(&self.dir.0)?])
    }

    fn errand_command(&self) -> io::Result<StepCommand> {
        let run = &self.task.run;
        let errand = run.errand.as_ref().ok_or_else(|| io::Error::other("there is no errand"))?;
        let command = errand::command(run, &errand.purpose)?;
        let stdin = match command.input {
            Some(input) => {
                files::write_whole(&self.dir.input(), input.as_bytes(), Lasting::Process)?;
                Some(self.dir.input())
            }
            None => None,
        };
        let (argv, dir) = match snapshots::orders(run, &errand.purpose, &self.ground.layout) {
            Some(orders) => (self.snapshot_command(&orders)?, self.dir.0.clone()),
            None => (command.argv, command.dir),
        };
        let mut env = self.step_env();
        env.push(set("OUTLAST_ERRAND", errand.number.to_string()));
        env.extend(command.env);
        Ok(StepCommand {
            argv,
            dir,
            env_file: self.errand_env_file()?,
            env,
            tty: None,
            stall_window_ms: None,
            stdin,
            heartbeat: None,
        })
    }

    /// Writes the orders of a snapshot or a restore; what runs is this program.
    fn snapshot_command(&self, orders: &Orders) -> io::Result<Vec<String>> {
        let json = serde_json::to_vec(orders).map_err(io::Error::other)?;
        files::write_whole(&self.dir.0.join(ORDERS_FILE), &json, Lasting::Process)?;
        Ok(vec![text(&self.ground.exe)?, SNAPSHOT_VERB.to_owned(), text(&self.dir.0)?])
    }

    /// The run's own environment; once that is gone with the run's end, the few names that commands need.
    fn errand_env_file(&self) -> io::Result<PathBuf> {
        let of_run = self.ground.layout.run(self.task.run.id.as_str()).env();
        if !self.task.run.has_ended() {
            return Ok(of_run);
        }
        let own = self.dir.0.join("env.json");
        let env = serde_json::to_vec(&world::plain_environment()).map_err(io::Error::other)?;
        files::write_whole(&own, &env, Lasting::Process)?;
        Ok(own)
    }

    /// What every step is told about itself.
    fn step_env(&self) -> Vec<EnvVar> {
        let run = &self.task.run;
        let layout = &self.ground.layout;
        let turn = run.attempt.as_ref().map_or(0, |attempt| attempt.turn);
        let mut env = vec![
            set("OUTLAST_RUN_ID", run.id.0.clone()),
            set("OUTLAST_TURN", turn.to_string()),
            set("OUTLAST_WORKSPACE", run.spec.dir.clone()),
            set("OUTLAST_SOCKET", self.ground.socket()),
            set("OUTLAST_KEY_BASE", format!("{}/t{turn}", run.id)),
        ];
        if let Some(origin) = &run.spec.origin {
            env.extend([
                set("OUTLAST_TRIGGER", origin.trigger.clone()),
                set("OUTLAST_OCCURRENCE", origin.occurrence.clone()),
                set("OUTLAST_TRIGGER_FILE", layout.run(run.id.as_str()).trigger()),
            ]);
        }
        match self.ground.tokens.of(&run.id, self.task.step) {
            Ok(token) => env.push(set("OUTLAST_TOKEN", token)),
            // Its calls are known by the other marks.
            Err(error) => tracing::error!(run = %run.id, %error, "no token for this step"),
        }
        // So that an agent's own calls meet the same daemon.
        if run.spec.workflow.is_some() && layout.home() == layout.config {
            env.push(set("OUTLAST_HOME", layout.home()));
        }
        env
    }

    /// What an attempt is told on top.
    fn attempt_env(&self) -> Vec<EnvVar> {
        let (turn, attempt) = on_the_wire(self.task.step);
        let run = self.task.run.id.as_str();
        let mut env = self.step_env();
        env.extend([
            set("OUTLAST_ATTEMPT", attempt.to_string()),
            set("OUTLAST_PROMPT_FILE", self.dir.prompt()),
            set("OUTLAST_REQUEST_FILE", self.dir.request()),
            set("OUTLAST_RESPONSE_FILE", self.dir.response()),
            set("OUTLAST_HEARTBEAT_FILE", self.dir.heartbeat()),
            set("ACE_RUNTIME_REQUEST_FILE", self.dir.request()),
            set("ACE_RUNTIME_RESPONSE_FILE", self.dir.response()),
            set("TRACEPARENT", trace::parent(run, turn, attempt)),
        ]);
        env
    }
}

fn text(path: &std::path::Path) -> io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| io::Error::other(format!("{} is not text", path.display())))
}

/// What became of a new shim.
enum Started {
    Met(Box<Session>),
    /// It went without a word, as one does that finds the lock taken.
    NoAnswer,
    /// It was not started: another daemon has launched the step meanwhile.
    Superseded,
}

/// What differs between the steps that a shim is given.
struct StepCommand {
    argv: Vec<String>,
    dir: PathBuf,
    env_file: PathBuf,
    env: Vec<EnvVar>,
    tty: Option<Window>,
    stall_window_ms: Option<u64>,
    stdin: Option<PathBuf>,
    heartbeat: Option<PathBuf>,
}

/// Of what a trigger says of an item: a delivery has up to 1 MiB, and JSON may write it longer.
const LARGEST_TOLD: usize = 16 << 20;

/// What the trigger that made the run has to say, if one did.
fn told(run: &Run, dir: &RunDir) -> io::Result<Option<serde_json::Value>> {
    if run.spec.origin.is_none() {
        return Ok(None);
    }
    let written = files::read_regular(&dir.trigger(), LARGEST_TOLD)?;
    serde_json::from_slice(&written).map(Some).map_err(unusable)
}

/// The journal cannot be read now. That is not the step's doing: it is tried again until it can.
fn for_now(error: outlast_store::Error) -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, error)
}

/// Trying again makes the same of it.
fn unusable(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

fn set(name: &str, value: impl Into<OsString>) -> EnvVar {
    EnvVar { name: OsString::from(name).into(), value: value.into().into() }
}

/// What a shim that is gone has left; `None` while one lives. Read with the lock in hand, so that no shim can
/// begin in between; one that starts in that instant leaves, and the next look launches again.
pub(super) fn left(dir: &AttemptDir) -> Result<Option<Vec<Record>>, records::Unreadable> {
    match lock::try_take(&dir.lock()) {
        Ok(Some(_lock)) => records::read(&dir.events()).map(Some),
        Ok(None) => Ok(None),
        // Not even a directory. What that means is for the journal and the kernel to say.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Vec::new())),
        Err(error) => {
            Err(records::Unreadable::Io { path: dir.lock().display().to_string(), error })
        }
    }
}

/// True while a shim holds the lock. A lock that cannot be looked at may be held; looking starts no process.
pub(super) fn is_locked(dir: &AttemptDir) -> bool {
    let lock = match lock::open_to_look(&dir.lock()) {
        Ok(lock) => lock,
        Err(error) => return error.kind() != io::ErrorKind::NotFound,
    };
    matches!(again::try_lock_shared(&lock), Err(TryLockError::WouldBlock))
}

/// Writes down that the attempt never started, unless it has or a shim lives that may.
fn fence(dir: &AttemptDir, at_ms: u64, code: NeverStarted, why: String) -> io::Result<()> {
    files::private_dir(&dir.0)?;
    let Some(_lock) = lock::try_take(&dir.lock())? else { return Ok(()) };
    let known = records::read(&dir.events()).map_err(io::Error::other)?;
    if meaning::is_begun(&known) {
        return Ok(());
    }
    let record = Record::NeverStarted { at_ms, code, why };
    let mut line = serde_json::to_vec(&record).map_err(io::Error::other)?;
    line.push(b'\n');
    // Whole, because a part of a line that a shim left is not said, and would spoil ours.
    files::write_whole(&dir.events(), &line, Lasting::Process)
}
