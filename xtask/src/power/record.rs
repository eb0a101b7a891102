//! Has the workload done under strace, and reads what was recorded.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::disk::Disk;
use super::trace::Reader;
use super::{Args, Fault, work};

/// Everything that can change a file or a name, or make a change last.
const CALLS: &str = "trace=open,creat,openat,openat2,write,writev,pwrite64,pwritev,pwritev2,lseek,truncate,ftruncate,\
    fallocate,fsync,fdatasync,sync,syncfs,rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,\
    rmdir,mkdir,mkdirat,copy_file_range,sendfile,splice";

/// `None`, and a word to the person, where there is no strace.
pub(super) fn is_possible() -> bool {
    let asked = Command::new("strace").arg("--version").stdout(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

/// strace counts the calls of each thread on its own. A daemon has synced less than this when it has started.
const EIO: [&str; 2] = ["-e", "inject=fsync,fdatasync:error=EIO:when=20+7"];
/// From a count on, so that the loader, which does not expect it, is through.
const EINTR: [&str; 2] = [
    "-e",
    "inject=poll,ppoll,epoll_wait,epoll_pwait,flock,wait4,waitid,openat,ftruncate,fsync,fdatasync:error=EINTR:when=60+7",
];

pub(super) fn record(binary: &Path, scratch: &Path, args: &Args) -> Result<Disk> {
    let home = scratch.join("home");
    fs::create_dir_all(&home)?;
    fs::write(home.join("config.toml"), "[supervision]\nstorm_starts = 0\n")?;
    let mut disk = Disk::new(&home, work::told_in(scratch))?;
    let log = scratch.join("strace");
    let status = Command::new("strace")
        .args(["-f", "--seccomp-bpf", "-qq", "-y", "-xx", "-s", "16777216", "-e", "signal=none"])
        .args(["-e", CALLS])
        .args(args.fault.map_or([].as_slice(), |fault| match fault {
            Fault::Eio => &EIO,
            Fault::Eintr => &EINTR,
        }))
        .arg("-o")
        .arg(&log)
        .arg(std::env::current_exe().context("our own program")?)
        .arg("__power-work")
        .args([binary, scratch])
        .arg(args.rounds.to_string())
        .args(args.fault.map(|_| "--faulty"))
        .status()
        .context("starting strace")?;
    ensure!(status.success(), "the recorded work ended with {status}");
    let mut reader = Reader::default();
    for line in BufReader::new(File::open(&log)?).lines() {
        if let Some(call) = reader.line(&line?)? {
            disk.take(&call)?;
        }
    }
    disk.verify().context("the recording is not what happened")?;
    fs::remove_file(&log)?;
    Ok(disk)
}
