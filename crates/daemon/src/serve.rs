//! The life of a daemon: take the lock, load the open runs, listen, leave.
//!
//! The daemon takes the lock before it opens the journal, and releases it after the journal is closed.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{RunId, Time};
use outlast_home::holder::Holder;
use outlast_home::layout::Layout;
use outlast_store::Sqlite;
use outlast_wire::api::{ErrorInfo, Mode};
use outlast_wire::codes::Code;
use outlast_wire::{hook, version};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc};

use crate::diary::Diary;
use crate::door::Door;
use crate::ground::{Ground, Parts};
use crate::instance::{self, Instance};
use crate::lanes::Lane;
use crate::leaving::Leaving;
use crate::lineage::{Lineage, Taken};
use crate::options::Options;
use crate::refusal::Refusal;
use crate::service::{self, Before, Service, Takeover};
use crate::settings::Settings;
use crate::starts::Ended;
use crate::supervisor::{Storm, Supervisor};
use crate::world::{self, World, files, host, limits, process};
use crate::{
    api, custody, diary, log, operator, reconciler, reserve, retention, starts, timekeeper, view,
    waiter,
};

/// How long clients that are being answered may keep a leaving daemon.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);
/// A start is over by then, on most machines.
const STARTED_WITHIN: Duration = Duration::from_secs(1);

/// Runs the daemon until it is asked to go.
pub fn run(mut options: Options) -> ExitCode {
    let ready = options.ready.take();
    match start(&options) {
        Ok(Some(daemon)) => daemon.live(ready),
        // `daemon stop` was meant for this one, too, which only waited.
        Ok(None) => ExitCode::SUCCESS,
        Err(refusal) => {
            tell(ready, &error_line(&refusal.info()));
            ExitCode::from(2)
        }
    }
}

struct Daemon {
    supervisor: Arc<Supervisor>,
    give_back: fn(),
    // Held for life, and let go last.
    door: Door,
}

fn start(options: &Options) -> Result<Option<Daemon>, Refusal> {
    let layout = &options.layout;
    limits::raise();
    // Everything this process makes is its user's alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    for dir in [&layout.state, &layout.runs()] {
        files::private_dir(dir).map_err(|error| unusable(dir, &error))?;
    }
    let lock = layout.daemon_lock();
    let service = Service::of(&options.env, std::process::id(), options.mode);
    let Takeover { mut instance, before } = match options.mode {
        Mode::Service => match service::take_over(layout, &service)? {
            Some(takeover) => takeover,
            None => return Ok(None),
        },
        Mode::Background if options.replaces => service::replace(layout)?,
        Mode::Background | Mode::Foreground => Takeover::free(Instance::take(&lock)?),
    };
    hook!("daemon.lock-taken");
    // Looked at before this daemon leaves signs of its own.
    let traces = diary::Traces::of(layout);
    let world = World::look(instance::kept_clock(layout)).map_err(|error| {
        Refusal::new(Code::NoBootId, format!("cannot read the boot id: {error}"))
    })?;
    let holder = this_daemon(options, &world);
    // Until then the lock names the daemon that held it last.
    with_room(layout, || instance.say_who(&holder).map_err(|error| unusable(&lock, &error)))?;
    let mut door = Door::new(layout, instance, holder);
    for side in [
        layout.daemon_log(),
        layout.revive_lock(),
        layout.waiter_lock(),
        layout.needed(),
        layout.reserve(),
    ] {
        files::set_aside_unless_usable(&side).map_err(|error| unusable(&side, &error))?;
    }
    with_room(layout, || {
        log::start(layout).map_err(|error| unusable(&layout.daemon_log(), &error))
    })?;
    let (store, epoch, lineage) = with_room(layout, || open_store(layout, world.now()))?;
    hook!("daemon.epoch-taken");
    let settings = Settings::read(layout.config_file());
    let noted = with_room(layout, || {
        note_start(layout, &settings, before, world.now())
            .map_err(|error| unusable(&layout.starts(), &error))
    });
    let storm = unless_full(noted)?.flatten();
    let diary = Diary::read(layout.diary(), traces.has_predecessor(), world.now());
    diary.note(traces.started(before, &world));
    let parts = Parts {
        layout: layout.clone(),
        exe: options.exe.clone(),
        build: options.build,
        world,
        epoch,
        lineage,
        diary,
        store: Arc::new(store),
        settings,
        mode: options.mode,
        service,
    };
    let supervisor = Supervisor::new(Ground::new(parts), storm);
    with_room(layout, || door.say_epoch(epoch).map_err(|error| unusable(&lock, &error)))?;
    let kept = with_room(layout, || {
        let marked = instance::mark_running(layout, &options.env);
        let kept = marked.and_then(|()| supervisor.ground.keep_clock());
        kept.map_err(|error| unusable(&layout.state, &error))
    });
    unless_full(kept)?;
    Ok(Some(Daemon { supervisor, give_back: options.give_back, door }))
}

/// Who we are; where we listen is said once we do.
fn this_daemon(options: &Options, world: &World) -> Holder {
    let pid = std::process::id();
    Holder {
        pid,
        version: version::BUILD.to_owned(),
        epoch: None,
        started_at: view::rfc3339(world.now()),
        build: Some(options.build.to_owned()),
        socket: None,
        boot: Some(world.boot.0.clone()),
        start: process::stat(pid).ok().flatten().map(|stat| stat.start),
        program: Some(options.exe.clone().into_os_string().into()),
        left: None,
    }
}

fn open_store(layout: &Layout, now: Time) -> Result<(Sqlite, u64, Lineage), Refusal> {
    let store = Sqlite::open(&layout.database())
        .map_err(|error| custody::name_rescued(layout, Refusal::of_database(error)))?;
    let (epoch, lineage) = Lineage::take(layout, &store, journal_id, now)
        .map_err(|taken| lineage_refusal(layout, taken))?;
    Ok((store, epoch, lineage))
}

/// Does this again with the room of the reserve, if the disk is too full for it.
fn with_room<T>(
    layout: &Layout,
    mut step: impl FnMut() -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    match step() {
        Err(refusal) if refusal.code == Code::DiskFull && reserve::spend(layout) => step(),
        done => done,
    }
}

/// What a daemon can do without on a full disk: what the last one had written stays as it is.
fn unless_full<T>(done: Result<T, Refusal>) -> Result<Option<T>, Refusal> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(refusal) if refusal.code == Code::DiskFull => {
            tracing::error!(message = refusal.message, "started without it");
            Ok(None)
        }
        Err(refusal) => Err(refusal),
    }
}

/// Notes that a daemon has started; says whether too many have had to.
fn note_start(
    layout: &Layout,
    settings: &Settings,
    before: Before,
    now: Time,
) -> io::Result<Option<Storm>> {
    // A config that is wrong is said elsewhere; what it would say here has a default.
    let rules = settings.current().map(|config| config.supervision).unwrap_or_default();
    let most = rules.storm_starts.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    let ended = match before {
        Before::HandedOver => Ended::Asked,
        Before::Unknown => instance::last_end(layout),
    };
    let known = starts::read(&layout.starts());
    if let starts::Known::Unreadable(why) = &known {
        tracing::error!(%why, path = %layout.starts().display(), "cannot read how often daemons were started");
    }
    let starts = known.and_now(ended, most, now);
    starts::write(&layout.starts(), &starts)?;
    Ok(starts.backoff().map(|backoff| {
        let storm = Storm { until: Time(backoff.until_ms), deaths: starts.count() };
        tracing::warn!(
            deaths = storm.deaths,
            until = view::rfc3339(storm.until),
            "daemons end unexpectedly too often; live runs are adopted, and no other run is resumed until then"
        );
        storm
    }))
}

impl Daemon {
    fn live(mut self, ready: Option<OwnedFd>) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(Lane::threads())
            .thread_keep_alive(Duration::from_secs(2))
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let refusal = Refusal::new(Code::NoRuntime, format!("cannot start: {error}"));
                tell(ready, &error_line(&refusal.info()));
                return ExitCode::from(1);
            }
        };
        let code = runtime.block_on(self.serve(ready));
        // Tasks hold the store. Once they are gone it is closed, and only then is the lock let go. A thread that
        // hangs is left to end with the process.
        runtime.shutdown_timeout(LEAVE_WITHIN);
        code
    }

    async fn serve(&mut self, ready: Option<OwnedFd>) -> ExitCode {
        let Self { supervisor, door, give_back } = self;
        // Before the lock says where we listen, from when on clients may send us a signal.
        let listening = match Signals::new() {
            Ok(signals) => door.open().await.map(|listener| (listener, signals)),
            Err(error) => Err(error),
        };
        let (listener, signals) = match listening {
            Ok(listening) => listening,
            Err(error) => {
                tell(
                    ready,
                    &error_line(&unusable(&supervisor.ground.layout.socket(), &error).info()),
                );
                return ExitCode::from(2);
            }
        };
        supervisor.ground.listens_at(door.socket());
        let loaded = reconciler::load(supervisor);
        let started = |open| crate::triggers::start(supervisor.triggers.clone()).map(|()| open);
        let open = match loaded.and_then(started) {
            Ok(open) => open,
            Err(error) => {
                tell(ready, &error_line(&Refusal::of_database(error).info()));
                return ExitCode::from(2);
            }
        };
        supervisor.needs.loaded(&supervisor.ground.layout);
        tracing::info!(open, epoch = supervisor.ground.epoch, pid = std::process::id(), "ready");
        supervisor.operator.readiness.loaded();
        hook!("daemon.listening");
        tell(ready, "ready\n");
        supervisor.ground.service.say_ready(open);
        sweep(supervisor.clone());
        let ground = &supervisor.ground;
        let daemon = waiter::Daemon {
            layout: &ground.layout,
            exe: &ground.exe,
            mode: ground.mode,
            leaving: ground.leaving(),
        };
        let left = tokio::select! {
            left = answer(supervisor, door, listener, signals) => left,
            never = reconciler::run(supervisor) => match never {},
            never = waiter::keep(daemon) => match never {},
            never = custody::keep(&supervisor.ground) => match never {},
            never = timekeeper::keep(supervisor) => match never {},
            never = retention::keep(supervisor) => match never {},
            never = slim_down(*give_back) => match never {},
        };
        tracing::info!(?left, "leaving");
        match left {
            Leaving::Asked | Leaving::Replaced => ExitCode::SUCCESS,
            Leaving::Fenced | Leaving::Parted => ExitCode::from(1),
        }
    }
}

/// Gives back once what only the start needed. The tasks that begin beside this one are part of it.
async fn slim_down(give_back: fn()) -> Infallible {
    tokio::time::sleep(STARTED_WITHIN).await;
    give_back();
    std::future::pending().await
}

/// What the operator's tasks ask of the runs and of the API.
fn above(supervisor: &Arc<Supervisor>) -> operator::Above {
    let (runs, served) = (supervisor.clone(), supervisor.clone());
    operator::Above {
        obstacles: Box::new(move || runs.obstacles()),
        router: Box::new(move |token| api::public::router(served.clone(), token)),
    }
}

/// Answers clients until it is time to go.
async fn answer(
    supervisor: &Arc<Supervisor>,
    door: &mut Door,
    listener: UnixListener,
    signals: Signals,
) -> Leaving {
    let (nudged, mut leaving, mut gone) =
        (Notify::new(), supervisor.ground.leaving(), supervisor.ground.leaving());
    let asked = async {
        tokio::select! {
            () = signals.heed(supervisor, &nudged) => supervisor.ground.leave(Leaving::Asked),
            _ = leaving.wait_for(Option::is_some) => {}
        }
    };
    let (listeners, replaced) = mpsc::channel(1);
    let serving = api::serve(listener, replaced, supervisor.clone(), async move {
        let _sender_outlives_us = gone.wait_for(Option::is_some).await;
    });
    let left = async {
        asked.await;
        supervisor.ground.service.say_stopping();
        tokio::time::sleep(LEAVE_WITHIN).await;
    };
    let keeping = async {
        door.keep(&supervisor.ground, &listeners, &nudged).await;
        std::future::pending::<()>().await;
    };
    let tasks = Arc::new(operator::Tasks {
        ground: supervisor.ground.clone(),
        operator: supervisor.operator.clone(),
        above: above(supervisor),
    });
    // The server ends by itself once it was told to and no client is being answered; or the time is over.
    tokio::select! {
        () = serving => {}
        () = operator::follow(tasks) => {}
        () = left => {}
        () = keeping => {}
        () = supervisor.ground.service.stay_alive() => {}
    }
    if let Err(error) = supervisor.ground.keep_clock() {
        tracing::error!(%error, "cannot leave the next daemon what the clock says");
    }
    let left = supervisor.ground.leaving().borrow().unwrap_or(Leaving::Asked);
    door.close(left);
    left
}

struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
    hup: tokio::signal::unix::Signal,
    /// Caught so that a limit on the size of files is met as a write that fails. What is caught and not ignored, the
    /// programs that the daemon starts do not inherit.
    _file_too_large: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            _file_too_large: signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?,
        })
    }

    /// Returns when it is time to go. A hang-up has the config read again, as with other daemons, and the door
    /// looked at; a terminal that was closed means no harm either.
    async fn heed(mut self, supervisor: &Supervisor, nudged: &Notify) {
        loop {
            tokio::select! {
                _ = self.term.recv() => return,
                _ = self.int.recv() => return,
                _ = self.hup.recv() => {
                    supervisor.reload();
                    nudged.notify_one();
                }
            }
        }
    }
}

/// Removes what a daemon left behind that died while it was making a run of which no client was told.
fn sweep(supervisor: Arc<Supervisor>) {
    let sweeping = Lane::Chores.run(move || {
        reserve::make(&supervisor.ground.layout);
        if let Err(error) = supervisor.sweep_strays() {
            tracing::error!(%error, "cannot look for directories that belong to no run");
        }
    });
    #[expect(clippy::disallowed_methods, reason = "ends once every directory was looked at")]
    let _sweeper = tokio::spawn(sweeping);
}

fn tell(ready: Option<OwnedFd>, line: &str) {
    let Some(ready) = ready else { return };
    if let Err(error) = File::from(ready).write_all(line.as_bytes()) {
        tracing::warn!(%error, "no process waits for this daemon to be ready");
    }
}

fn error_line(info: &ErrorInfo) -> String {
    tracing::error!(code = %info.code, message = info.message, "not started");
    format!("error {}\n", serde_json::to_string(info).expect("an error is plain data"))
}

fn unusable(path: &std::path::Path, error: &io::Error) -> Refusal {
    let code = if host::is_full(error) { Code::DiskFull } else { Code::StateUnusable };
    Refusal::new(code, format!("cannot use {}: {error}", path.display()))
        .hint("look at it, or name another place with OUTLAST_HOME:\noutlast doctor")
}

fn journal_id() -> io::Result<String> {
    Ok(RunId::from_random(world::random()?).0)
}

fn lineage_refusal(layout: &Layout, taken: Taken) -> Refusal {
    match taken {
        Taken::Store(error) => Refusal::of_database(error),
        Taken::File(error) => unusable(&layout.journal(), &error),
    }
}
