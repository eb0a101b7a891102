//! The service that starts the daemon by itself: what is written for a service manager, and what is asked of it.
//!
//! A manager is believed when it is asked afterwards, never for the exit code of its tool. Whatever fails is
//! told, with what to do instead: a daemon can always be started by hand, and shims bring it back.

mod description;
mod file;
mod launchd;
mod page;
mod plist;
mod systemd;
mod tool;
mod unit;

use std::path::PathBuf;
use std::time::Duration;

use outlast_client::ask::Ask;
use outlast_client::dial::try_connect;
use outlast_client::problem::Problem;
use outlast_wire::api::{DaemonStatus, ServiceStatus};
use tokio::time::{Instant, sleep};

use crate::world::World;
use description::Description;

/// The manual way, which is said whenever the other did not work.
pub(crate) const FALLBACK: &str = "start it by hand; while runs live, their shims bring it back after a crash:\noutlast daemon start";

const START_WITHIN: Duration = Duration::from_secs(10);
const LOOKS: u32 = 50;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Manager {
    Systemd,
    Launchd,
}

/// What is installed beside the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum With {
    Nothing,
    /// The page, as a service of its own.
    Page,
}

/// Whether the service is to outlive the last log-out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Linger {
    /// Look, and say how.
    Explain,
    Enable,
}

/// What an install would do.
pub(crate) struct Preview {
    pub(crate) file: PathBuf,
    pub(crate) text: String,
    pub(crate) steps: Vec<String>,
}

/// What keeps a service from being what it should be.
#[derive(Debug, PartialEq, Eq)]
struct Shortfall {
    problem: String,
    hint: Option<String>,
}

impl Shortfall {
    fn new(problem: impl Into<String>) -> Self {
        Self { problem: problem.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Problem> for Shortfall {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Told { info, .. } => Self { problem: info.message, hint: info.hint },
            Problem::OutputClosed => Self::new("standard output is closed"),
        }
    }
}

pub(crate) async fn install(
    world: &World,
    named: Option<Manager>,
    linger: Linger,
    with: With,
) -> ServiceStatus {
    let mut status = ServiceStatus::default();
    if let Err(shortfall) = try_install(world, named, (linger, with), &mut status).await {
        note(&mut status, shortfall);
    }
    if !status.installed {
        status.hints.push(FALLBACK.to_owned());
    }
    status
}

pub(crate) async fn uninstall(world: &World, named: Option<Manager>) -> ServiceStatus {
    let mut status = ServiceStatus::default();
    if let Err(shortfall) = try_uninstall(world, named, &mut status).await {
        note(&mut status, shortfall);
    }
    status
}

/// How things are. Where nothing is installed no tool is asked.
pub(crate) async fn status(world: &World, named: Option<Manager>) -> ServiceStatus {
    let mut status = ServiceStatus::default();
    if let Err(shortfall) = look(world, named, &mut status).await {
        note(&mut status, shortfall);
    }
    status
}

/// Has the manager start it, if it is the manager's to start, and waits until it answers or has had its time.
/// Nothing may have come of it.
pub(crate) async fn start(world: &World) {
    let Ok(service) = Service::of(world, None) else { return };
    if service.must_have_tool().is_err() || !matches!(service.is_there(), Ok(true)) {
        return;
    }
    let began = Instant::now();
    while began.elapsed() < START_WITHIN {
        // Told again and again, since the last one may just be ending.
        let is_told = match service.manager {
            Manager::Systemd => systemd::start(&service).await,
            Manager::Launchd => launchd::start(&service).await,
        };
        if !is_told || appears(world).await {
            return;
        }
    }
}

/// Has the manager start it anew, of the program that is installed.
pub(crate) async fn restart(world: &World) -> Result<(), Problem> {
    let cannot = |why: String| {
        Problem::unreachable(format_args!("the service cannot be restarted: {why}"))
            .hint("restart it with the service manager's own command")
    };
    let service = Service::of(world, None).map_err(|short| cannot(short.problem))?;
    service.must_have_tool().map_err(|short| cannot(short.problem))?;
    let is_told = match service.manager {
        Manager::Systemd => systemd::restart(&service).await,
        Manager::Launchd => launchd::restart(&service).await,
    };
    if is_told { Ok(()) } else { Err(cannot("its manager refused".to_owned())) }
}

async fn appears(world: &World) -> bool {
    for _ in 0..LOOKS {
        if answering(world).await.is_some() {
            return true;
        }
        sleep(BETWEEN_LOOKS).await;
    }
    false
}

pub(crate) fn preview(
    world: &World,
    named: Option<Manager>,
    with: With,
) -> Result<Preview, Problem> {
    let refused = |shortfall: Shortfall| {
        let problem = Problem::refusal("no_service", shortfall.problem);
        shortfall.hint.into_iter().fold(problem, Problem::hint)
    };
    let service = Service::of(world, named).map_err(refused)?;
    let Service { file, text, .. } = &service;
    let is_same = matches!(file::read(file), Ok(Some(known)) if known == *text);
    let write = format!("{} {}", if is_same { "keep" } else { "write" }, file.display());
    let asked = match service.manager {
        Manager::Systemd => systemd::STEPS.map(str::to_owned).to_vec(),
        Manager::Launchd => launchd::steps(&service),
    };
    let mut steps: Vec<String> = std::iter::once(write).chain(asked).collect();
    let mut text = text.clone();
    if with == With::Page {
        let (page, more) = page::described(&service).map_err(refused)?;
        steps.push(format!("write {}", page.display()));
        steps.extend(page::STEPS.map(str::to_owned));
        text = format!("{text}\n{more}");
    }
    Ok(Preview { file: file.clone(), text, steps })
}

async fn try_install(
    world: &World,
    named: Option<Manager>,
    (linger, with): (Linger, With),
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    let service = Service::of(world, named)?;
    service.begin(status);
    service.must_have_tool()?;
    if with == With::Page {
        // What cannot be had is said before anything is written.
        page::described(&service)?;
    }
    match service.manager {
        Manager::Systemd => systemd::install(&service, linger, status).await,
        Manager::Launchd => launchd::install(&service, status).await,
    }?;
    match with {
        With::Page => page::install(&service, status).await,
        With::Nothing => Ok(()),
    }
}

async fn try_uninstall(
    world: &World,
    named: Option<Manager>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    let service = Service::of(world, named)?;
    service.begin(status);
    page::uninstall(&service, status).await?;
    match service.manager {
        Manager::Systemd => systemd::uninstall(&service, status).await,
        Manager::Launchd => launchd::uninstall(&service, status).await,
    }
}

async fn look(
    world: &World,
    named: Option<Manager>,
    status: &mut ServiceStatus,
) -> Result<(), Shortfall> {
    let service = Service::of(world, named)?;
    service.begin(status);
    if !service.is_there()? {
        return Ok(());
    }
    service.must_have_tool()?;
    match service.manager {
        Manager::Systemd => systemd::look(&service, status).await,
        Manager::Launchd => launchd::look(&service, status).await,
    }
}

fn note(status: &mut ServiceStatus, shortfall: Shortfall) {
    // Nothing half installed is called installed.
    status.installed = false;
    status.problem = Some(shortfall.problem);
    status.hints.extend(shortfall.hint);
}

/// This Outlast as a service of one manager.
struct Service<'w> {
    world: &'w World,
    manager: Manager,
    /// What describes it to the manager, and where that belongs.
    text: String,
    file: PathBuf,
}

impl<'w> Service<'w> {
    /// The service of this system's manager, or of the one that a test names.
    fn of(world: &'w World, named: Option<Manager>) -> Result<Self, Shortfall> {
        let manager = named.unwrap_or(Manager::of_this_system());
        let description = Description::of(world)?;
        let text = match manager {
            Manager::Systemd => unit::render(&description)?,
            Manager::Launchd => plist::render(&description),
        };
        Ok(Self { world, manager, text, file: manager.file(world)? })
    }

    fn begin(&self, status: &mut ServiceStatus) {
        status.manager = self.must_have_tool().is_ok().then(|| self.manager.name().to_owned());
        status.unit = Some(self.file.display().to_string());
    }

    /// True if the file is there and describes this Outlast.
    fn is_there(&self) -> Result<bool, Shortfall> {
        let known = file::read(&self.file)?;
        Ok(known.is_some_and(|text| file::is_ours(&text) && file::is_same_place(&text, &self.text)))
    }

    fn must_have_tool(&self) -> Result<(), Shortfall> {
        let tool = self.manager.tool();
        if is_on_path(self.world, tool) {
            return Ok(());
        }
        Err(Shortfall::new(format!("there is no {tool} on PATH, so nothing here starts services")))
    }

    /// True if the file does not say yet what it should, and is ours to write.
    fn is_to_be_written(&self) -> Result<bool, Shortfall> {
        match file::read(&self.file)? {
            None => Ok(true),
            Some(known) if known == self.text => Ok(false),
            Some(known) => file::refuse_strangers(&self.file, &known, &self.text).map(|()| true),
        }
    }

    /// Makes the file say what it should. True if it was written.
    fn settle_file(&self, status: &mut ServiceStatus) -> Result<bool, Shortfall> {
        if !self.is_to_be_written()? {
            return Ok(false);
        }
        file::write(&self.file, &self.text)?;
        status.done.push(format!("wrote {}", self.file.display()));
        Ok(true)
    }

    /// True if the file is there, and ours to remove.
    fn is_to_be_removed(&self) -> Result<bool, Shortfall> {
        match file::read(&self.file)? {
            None => Ok(false),
            Some(known) => file::refuse_strangers(&self.file, &known, &self.text).map(|()| true),
        }
    }
}

impl Manager {
    fn of_this_system() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
        }
    }

    fn tool(self) -> &'static str {
        match self {
            Self::Systemd => "systemctl",
            Self::Launchd => "launchctl",
        }
    }

    fn file(self, world: &World) -> Result<PathBuf, Shortfall> {
        let absolute =
            |name| world.client.var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME").ok_or_else(|| {
            Shortfall::new("there is no home directory to install a service in")
                .hint("set HOME to an absolute path")
        })?;
        Ok(match self {
            Self::Systemd => {
                let config = absolute("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
                config.join("systemd/user").join(systemd::UNIT)
            }
            Self::Launchd => {
                home.join("Library/LaunchAgents").join(format!("{}.plist", launchd::LABEL))
            }
        })
    }
}

fn is_on_path(world: &World, program: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;

    let is_program = |path: PathBuf| {
        std::fs::metadata(path)
            .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let path = world.client.var("PATH").unwrap_or_default();
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .any(|dir| is_program(dir.join(program)))
}

/// The daemon that answers here, if one does.
async fn answering(world: &World) -> Option<DaemonStatus> {
    let mut connection = try_connect(world.client.layout().ok()?).await.ok()??;
    let body = connection.fetch(&Ask::get("/v1/daemon")).await.ok()?;
    serde_json::from_slice(&body).ok()
}
