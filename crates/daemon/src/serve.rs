//! A daemon's life: alone, loaded, listening, leaving.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Time;
use outlast_store::{Error, Journal, Sqlite};
use outlast_wire::api::{ErrorInfo, Mode};
use outlast_wire::layout::Layout;
use outlast_wire::{hook, version};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::instance::{self, Holder, Instance};
use crate::options::Options;
use crate::refusal::Refusal;
use crate::service::{self, Service};
use crate::settings::Settings;
use crate::socket::ShortPath;
use crate::supervisor::{Leaving, Parts, Storm, Supervisor};
use crate::world::{World, files};
use crate::{api, log, operator, reconciler, starts, view};

/// How long clients that are being answered may keep a leaving daemon.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// Threads that read files and the store for clients.
const READERS: usize = 4;

/// Runs the daemon until it is asked to go.
pub fn run(mut options: Options) -> ExitCode {
    let ready = options.ready.take();
    match start(&options) {
        Ok(daemon) => daemon.live(ready),
        Err(refusal) => {
            tell(ready, &error_line(&refusal.info()));
            ExitCode::from(2)
        }
    }
}

struct Daemon {
    supervisor: Arc<Supervisor>,
    give_back: fn(),
    // Held for life.
    _instance: Instance,
}

fn start(options: &Options) -> Result<Daemon, Refusal> {
    let layout = &options.layout;
    // Everything this process makes is its user's alone.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    for dir in [&layout.state, &layout.runs(), &layout.runtime] {
        files::private_dir(dir).map_err(|error| unusable(dir, &error))?;
    }
    let lock = layout.daemon_lock();
    let service = Service::of(&options.env, std::process::id(), options.mode);
    let mut instance = match options.mode {
        Mode::Service => service::take_over(layout, &service)?,
        Mode::Background | Mode::Foreground => Instance::take(&lock)?,
    };
    hook!("daemon.lock-taken");
    let world = World::look(instance::kept_clock(layout))
        .map_err(|error| Refusal::new("no_boot_id", format!("cannot read the boot id: {error}")))?;
    let mut holder = Holder {
        pid: std::process::id(),
        version: version::BUILD.to_owned(),
        epoch: None,
        started_at: view::rfc3339(world.now()),
    };
    // Until then the lock names whoever held it last.
    instance.say_who(&holder).map_err(|error| unusable(&lock, &error))?;
    log::start(layout).map_err(|error| unusable(&layout.daemon_log(), &error))?;
    let store = Sqlite::open(&layout.database()).map_err(database_refusal)?;
    let epoch = store.take_epoch().map_err(database_refusal)?;
    hook!("daemon.epoch-taken");
    let settings = Settings::read(layout.config_file());
    let storm = note_start(layout, &settings, world.now())
        .map_err(|error| unusable(&layout.starts(), &error))?;
    let parts = Parts {
        layout: layout.clone(),
        exe: options.exe.clone(),
        world,
        epoch,
        store: Arc::new(store),
        settings,
        storm,
        mode: options.mode,
        service,
    };
    let supervisor = Supervisor::new(parts);
    holder.epoch = Some(epoch);
    let said = instance
        .say_who(&holder)
        .and_then(|()| instance::mark_running(layout, &options.env))
        .and_then(|()| supervisor.keep_clock());
    said.map_err(|error| unusable(&layout.state, &error))?;
    Ok(Daemon { supervisor, give_back: options.give_back, _instance: instance })
}

/// Notes that a daemon has started; says whether too many have had to.
fn note_start(layout: &Layout, settings: &Settings, now: Time) -> io::Result<Option<Storm>> {
    // A config that is wrong is said elsewhere; what it would say here has a default.
    let rules = settings.current().map(|config| config.supervision).unwrap_or_default();
    let most = rules.storm_starts.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    let ended = instance::last_end(layout);
    let known = starts::read(&layout.starts());
    if let starts::Known::Unreadable(why) = &known {
        tracing::error!(%why, path = %layout.starts().display(), "cannot read how often daemons were started");
    }
    let starts = known.and_now(ended, most, now);
    starts::write(&layout.starts(), &starts)?;
    Ok(starts.hold().map(|hold| {
        let storm = Storm { until: Time(hold.until_ms), deaths: starts.count() };
        tracing::warn!(
            deaths = storm.deaths,
            until = view::rfc3339(storm.until),
            "daemons end unasked too often; what lives is adopted, and nothing else is started until then"
        );
        storm
    }))
}

impl Daemon {
    fn live(self, ready: Option<OwnedFd>) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(READERS)
            .thread_keep_alive(Duration::from_secs(2))
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let refusal = Refusal::new("no_runtime", format!("cannot start: {error}"));
                tell(ready, &error_line(&refusal.info()));
                return ExitCode::from(1);
            }
        };
        let code = runtime.block_on(self.serve(ready));
        // Tasks hold the store. Once they are gone it is closed, and only then is the lock let go.
        drop(runtime);
        code
    }

    async fn serve(&self, ready: Option<OwnedFd>) -> ExitCode {
        let supervisor = &self.supervisor;
        let listening =
            listen(&supervisor.layout).and_then(|listener| Ok((listener, Signals::new()?)));
        let (listener, signals) = match listening {
            Ok(listening) => listening,
            Err(error) => {
                tell(ready, &error_line(&unusable(&supervisor.layout.socket(), &error).info()));
                return ExitCode::from(2);
            }
        };
        let loaded = supervisor.load();
        let started = |open| crate::triggers::start(supervisor.clone()).map(|()| open);
        let open = match loaded.and_then(started) {
            Ok(open) => open,
            Err(error) => {
                tell(ready, &error_line(&database_refusal(error).info()));
                return ExitCode::from(2);
            }
        };
        tracing::info!(open, epoch = supervisor.epoch, pid = std::process::id(), "ready");
        supervisor.operator.readiness.loaded();
        hook!("daemon.listening");
        tell(ready, "ready\n");
        supervisor.service.say_ready(open);
        sweep(supervisor.clone());
        (self.give_back)();
        let left = tokio::select! {
            left = self.answer(listener, signals) => left,
            never = reconciler::run(supervisor) => match never {},
        };
        tracing::info!(?left, "leaving");
        match left {
            Leaving::Asked | Leaving::Replaced => ExitCode::SUCCESS,
            Leaving::Fenced => ExitCode::from(1),
        }
    }

    /// Answers clients until it is time to go.
    async fn answer(&self, listener: UnixListener, signals: Signals) -> Leaving {
        let supervisor = self.supervisor.clone();
        let mut leaving = supervisor.leaving();
        let asked = async {
            tokio::select! {
                () = signals.heed(&self.supervisor) => self.supervisor.leave(Leaving::Asked),
                _ = leaving.wait_for(Option::is_some) => {}
            }
        };
        let mut gone = supervisor.leaving();
        let serving = api::serve(listener, supervisor.clone(), async move {
            let _sender_outlives_us = gone.wait_for(Option::is_some).await;
        });
        let left = async {
            asked.await;
            self.supervisor.service.say_stopping();
            tokio::time::sleep(LEAVE_WITHIN).await;
        };
        // The server ends by itself once it was told to and nobody is being answered; or the time is over.
        tokio::select! {
            () = serving => {}
            () = operator::follow(supervisor.clone()) => {}
            () = left => {}
            () = self.supervisor.service.stay_alive() => {}
        }
        if let Err(error) = self.supervisor.keep_clock() {
            tracing::error!(%error, "cannot leave the next daemon what the clock says");
        }
        if let Err(error) = files::remove(&self.supervisor.layout.socket()) {
            tracing::error!(%error, "cannot remove the socket");
        }
        self.supervisor.leaving().borrow().unwrap_or(Leaving::Asked)
    }
}

struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
    hup: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Returns when it is time to go. A hang-up has the config read again, as with other daemons; a terminal
    /// that was closed means no harm either.
    async fn heed(mut self, supervisor: &Supervisor) {
        loop {
            tokio::select! {
                _ = self.term.recv() => return,
                _ = self.int.recv() => return,
                _ = self.hup.recv() => supervisor.reload(),
            }
        }
    }
}

fn listen(layout: &Layout) -> io::Result<UnixListener> {
    let socket = layout.socket();
    // We hold the lock, so whatever is there is a dead daemon's.
    files::remove(&socket)?;
    let short = ShortPath::of(&socket)?;
    let listener = UnixListener::bind(short.path())?;
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o600))?;
    Ok(listener)
}

/// Removes what a daemon left behind that died while it was making a run nobody was promised.
fn sweep(supervisor: Arc<Supervisor>) {
    drop(tokio::task::spawn_blocking(move || {
        for run in api::gc::unclaimed(&supervisor) {
            match api::gc::remove_unclaimed(&supervisor, &run) {
                Ok(0) => {}
                Ok(_) => tracing::info!(%run, "removed a directory that belongs to no run"),
                Err(error) => {
                    tracing::error!(%run, %error, "cannot remove a directory that belongs to no run");
                }
            }
        }
    }));
}

fn tell(ready: Option<OwnedFd>, line: &str) {
    let Some(ready) = ready else { return };
    if let Err(error) = File::from(ready).write_all(line.as_bytes()) {
        tracing::warn!(%error, "nobody waits for us to be ready");
    }
}

fn error_line(info: &ErrorInfo) -> String {
    tracing::error!(code = info.code, message = info.message, "not started");
    format!("error {}\n", serde_json::to_string(info).expect("an error is plain data"))
}

fn unusable(path: &std::path::Path, error: &io::Error) -> Refusal {
    let code =
        if error.kind() == io::ErrorKind::StorageFull { "disk_full" } else { "state_unusable" };
    Refusal::new(code, format!("cannot use {}: {error}", path.display()))
        .hint("OUTLAST_HOME names another place; `outlast doctor` looks at this one")
}

fn database_refusal(error: Error) -> Refusal {
    let message = error.to_string();
    match error {
        Error::Corrupt { .. } => Refusal::new("database_corrupt", message).hint(
            "the file was left as it is; restore it from a backup, or move it away to start empty",
        ),
        Error::Newer { .. } => Refusal::new("database_newer", message)
            .hint("a newer outlast wrote it; use that one, the file was left as it is"),
        Error::ReadOnly(_) => {
            Refusal::new("database_read_only", message).hint("make it writable for you")
        }
        Error::Full(_) => Refusal::new("disk_full", message)
            .hint("free some space in the state directory's file system"),
        _ => Refusal::new("database_unusable", message)
            .hint("`outlast doctor` looks at the state directory"),
    }
}
