//! `run -d` held against pueue's `add`, which promises less: it does not sync.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::context::Context;
use super::lists::ENDED;
use super::made;
use super::row::{Row, Target, shown};
use crate::interrupt;

/// Directories of other programs, as in `PATH`.
pub(super) const PEERS: &str = "OUTLAST_PEERS";

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let empty = add(context, 0)?;
    let full = add(context, ENDED)?;
    let Some(pueue) = Pueue::start(context)? else {
        let why =
            |ours| format!("{} for us; pueue is neither on PATH nor in ${PEERS}", shown(ours));
        return Ok(vec![Row::skipped("add", why(empty)), Row::skipped("add-10k", why(full))]);
    };
    let theirs = context.median_time(|| pueue.add())?;
    let row = |name, ours: Duration, list: &str| {
        let how = format!("{} {list}, pueue add {} with an empty list", shown(ours), shown(theirs));
        Row::ratio(name, ours.as_secs_f64() / theirs.as_secs_f64(), Target::AtMost(1.5), how)
    };
    let full_list = format!("with {ENDED} ended runs in the list");
    Ok(vec![row("add", empty, "with an empty list"), row("add-10k", full, &full_list)])
}

/// `run -d` until the id is printed, with the daemon up.
fn add(context: &Context, ended: u32) -> Result<Duration> {
    let outlast = context.outlast()?;
    made::ended_runs(outlast.home(), ended)?;
    outlast.start_daemon()?;
    context.median_time(|| outlast.start_run(&["true"]).map(drop))
}

/// A daemon of pueue's with a directory of its own.
struct Pueue {
    client: PathBuf,
    config: PathBuf,
    daemon: Child,
}

impl Pueue {
    fn start(context: &Context) -> Result<Option<Self>> {
        let (Some(client), Some(server)) = (find("pueue"), find("pueued")) else { return Ok(None) };
        let directory = context.scratch.join("pueue");
        fs::create_dir(&directory)?;
        let config = directory.join("pueue.yml");
        fs::write(&config, configuration(&directory))?;
        let mut command = Command::new(server);
        // Not that it reads this: it marks the process as ours, should we die before it.
        command.env("OUTLAST_HOME", &directory);
        command
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let pueue = Self { client, config, daemon: command.spawn().context("starting pueued")? };
        interrupt::wait_for("pueued", Duration::from_secs(10), || Ok(pueue.add().ok()))?;
        Ok(Some(pueue))
    }

    fn add(&self) -> Result<()> {
        let mut command = Command::new(&self.client);
        command.arg("-c").arg(&self.config).args(["add", "--", "true"]).stdin(Stdio::null());
        let output = command.output().context("starting pueue")?;
        ensure!(output.status.success(), "pueue add: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }
}

impl Drop for Pueue {
    fn drop(&mut self) {
        if let Err(error) = self.daemon.kill().and_then(|()| self.daemon.wait()) {
            eprintln!("xtask: ending pueued: {error}");
        }
    }
}

fn configuration(directory: &Path) -> String {
    let directory = directory.display();
    format!(
        "shared:\n  pueue_directory: {directory}\n  runtime_directory: {directory}\n  use_unix_socket: true\n  \
         unix_socket_path: {directory}/s\nclient: {{}}\ndaemon: {{}}\n"
    )
}

pub(super) fn find(program: &str) -> Option<PathBuf> {
    let lists = [PEERS, "PATH"].into_iter().filter_map(std::env::var_os);
    let directories: Vec<_> =
        lists.flat_map(|list| std::env::split_paths(&list).collect::<Vec<_>>()).collect();
    directories.into_iter().map(|directory| directory.join(program)).find(|path| path.is_file())
}
