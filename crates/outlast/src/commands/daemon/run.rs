//! `outlast daemon run`: be the daemon.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::ExitCode;

use outlast_client::autostart::{self, Said};
use outlast_client::problem::{Problem, UNREACHABLE};
use outlast_daemon::Options;
use outlast_home::layout::Layout;
use outlast_wire::api::{ErrorInfo, Mode};
use outlast_wire::codes::Code;
use rustix::pipe::PipeFlags;

use crate::args::DaemonRun;
use crate::builds;
use crate::entry;
use crate::output;
use crate::output::errors::{self, Errors};
use crate::world::World;

pub(crate) fn run(world: &World, args: &DaemonRun) -> Result<ExitCode, Problem> {
    let layout = world.client.layout()?.clone();
    let options = |ready| -> Result<Options, Problem> {
        let env = world.client.env.clone();
        Ok(Options {
            layout: layout.clone(),
            exe: world.client.program()?,
            build: builds::BUILD,
            replaces: args.replace,
            env,
            mode: mode(world, args),
            ready: Some(ready),
            give_back: outlast_shim::give_back,
        })
    };
    if args.detached {
        return Ok(entry::daemon(options(leave_terminal(&layout)?)?));
    }
    let (said, ready) =
        rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(|error| cannot(&error.into()))?;
    let options = options(ready)?;
    outlast_daemon::raise_limits();
    let listener = std::thread::spawn(move || tell_start(said));
    let status = entry::daemon(options);
    listener.join().expect("telling does not panic");
    Ok(status)
}

/// One that waited its turn behind another daemon would undo `daemon stop`; so only a service manager's does, to
/// which leaving would mean starting it again.
fn mode(world: &World, args: &DaemonRun) -> Mode {
    if args.detached {
        Mode::Background
    } else if args.wait || world.has_service_manager() {
        Mode::Service
    } else {
        Mode::Foreground
    }
}

/// Says on the terminal how the start went.
fn tell_start(said: OwnedFd) {
    let mut line = String::new();
    let read = BufReader::new(File::from(said)).read_line(&mut line);
    match autostart::read_line(line.trim_end()) {
        Said::Ready => output::tell("outlast: the daemon is ready"),
        Said::Error(info) => {
            errors::report(
                &Problem::Told { info: Box::new(info), exit: UNREACHABLE },
                Errors::ForPeople,
            );
        }
        Said::Nothing if read.is_ok() => {}
        Said::Nothing => output::tell("outlast: the daemon did not say how its start went"),
    }
}

/// Gives up the session, directory and output of the process that started us. What was standard output carries
/// the line that says how the start went; the log takes its place.
fn leave_terminal(layout: &Layout) -> Result<OwnedFd, Problem> {
    let stdout = rustix::stdio::stdout();
    let ready =
        rustix::io::fcntl_dupfd_cloexec(stdout, 3).map_err(|error| cannot(&error.into()))?;
    match detach(layout) {
        Ok(()) => Ok(ready),
        Err(error) => Err(told(ready, layout, &error)),
    }
}

fn detach(layout: &Layout) -> io::Result<()> {
    // The leader of a process group has its own session already, or cannot have one.
    if let Err(error) = rustix::process::setsid()
        && error != rustix::io::Errno::PERM
    {
        return Err(error.into());
    }
    std::env::set_current_dir("/")?;
    let log = open_log(layout)?;
    rustix::stdio::dup2_stdout(&log)?;
    rustix::stdio::dup2_stderr(&log)?;
    Ok(())
}

fn open_log(layout: &Layout) -> io::Result<File> {
    outlast_home::directory::private_dir(&layout.state)?;
    let log = layout.daemon_log();
    let mut options = OpenOptions::new();
    options.append(true).create(true).mode(0o600);
    match outlast_home::regular::open_with(&mut options, &log) {
        // What is in its place is set aside by the daemon, which then has a log of its own.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::IsADirectory | ErrorKind::PermissionDenied | ErrorKind::InvalidInput
            ) =>
        {
            OpenOptions::new().append(true).open("/dev/null")
        }
        opened => opened,
    }
}

/// Our standard error is not seen any more, so the reason goes where the start is awaited.
fn told(ready: OwnedFd, layout: &Layout, error: &io::Error) -> Problem {
    let message = format!("cannot use {}: {error}", layout.state.display());
    let hint = Some("check who owns it and whether the disk is full".to_owned());
    let (code, problems) = (Code::StateUnusable.into(), Vec::new());
    let info = ErrorInfo { code, message, hint, run: None, problems };
    let json = serde_json::to_string(&info).expect("an error is plain data");
    // If they are gone too, the exit code is all there is.
    drop(File::from(ready).write_all(format!("error {json}\n").as_bytes()));
    Problem::Told { info: Box::new(info), exit: UNREACHABLE }
}

fn cannot(error: &io::Error) -> Problem {
    Problem::failure(format_args!("cannot start the daemon: {error}"))
}
