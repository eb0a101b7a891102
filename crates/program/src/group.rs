//! A program in a process group of its own, which is killed whole.
//!
//! For programs of the system that are asked something (git, systemctl). A process that leaves the group is not
//! reached; a command that a user or an agent names runs below a guard instead.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

use crate::{Ended, Limits, Tree, attend};

/// For a killed program to be gone.
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// Runs the command to its end with an empty standard input.
pub async fn run(mut command: Command, limits: Limits) -> io::Result<Ended<ExitStatus>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut group = Group { child: tokio::process::Command::from(command).spawn()? };
    let (stdout, stderr) = (group.child.stdout.take(), group.child.stderr.take());
    attend(group, stdout, stderr, limits).await
}

/// The same on a thread that may block. It has a runtime of its own: the caller's may be about to end.
pub fn run_blocking(command: Command, limits: Limits) -> io::Result<Ended<ExitStatus>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(command, limits))
}

struct Group {
    child: Child,
}

impl Group {
    /// The leader is not collected yet, so its number is not given out again. `None` once it is.
    fn kill(&self) -> Option<io::Result<()>> {
        let leader = Pid::from_raw(i32::try_from(self.child.id()?).ok()?)?;
        Some(kill_process_group(leader, Signal::KILL).map_err(io::Error::from))
    }
}

impl Tree for Group {
    type Status = ExitStatus;

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    async fn end(&mut self) -> io::Result<()> {
        self.kill().unwrap_or(Ok(()))?;
        let gone = tokio::time::timeout(GONE_WITHIN, self.child.wait()).await;
        gone.map_err(|_elapsed| io::Error::from(io::ErrorKind::TimedOut))?.map(drop)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // If the group is gone already, there is nothing to do.
        let _gone = self.kill();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::read_to_string;
    use std::path::Path;

    use super::*;
    use crate::{Beyond, Bound};

    const LIMITS: Limits = Limits {
        within: Duration::from_secs(60),
        most_stdout: 1000,
        most_stderr: 10,
        beyond: Beyond::Dropped,
    };

    #[expect(clippy::disallowed_methods, reason = "a test starts its program")]
    fn sh(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        command
    }

    fn exited(ended: Ended<ExitStatus>) -> (Option<i32>, String, String) {
        match ended {
            Ended::Exited { status, stdout, stderr } => {
                (status.code(), stdout.text(), stderr.text())
            }
            Ended::Stopped { .. } => panic!("{ended:?}"),
        }
    }

    fn stopped(ended: Ended<ExitStatus>) -> Bound {
        match ended {
            Ended::Stopped { bound, trouble: None } => bound,
            Ended::Stopped { .. } | Ended::Exited { .. } => panic!("{ended:?}"),
        }
    }

    /// Waits until the process whose number is in the file is gone or a zombie.
    fn until_dead(file: &Path) {
        let pid = read_to_string(file).expect("it was written first");
        let stat = format!("/proc/{}/stat", pid.trim());
        for _ in 0..3000 {
            match read_to_string(&stat) {
                Ok(stat) if !stat.contains(") Z ") => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Ok(_) | Err(_) => return,
            }
        }
        panic!("process {pid} lives");
    }

    #[test]
    fn what_is_printed_and_how_it_ended_are_told() {
        let ended = run_blocking(sh("cat; echo out; echo err >&2; exit 3"), LIMITS);
        let told = (Some(3), "out\n".to_owned(), "err\n".to_owned());
        assert_eq!(exited(ended.expect("there is a sh")), told);
    }

    #[test]
    fn an_output_beyond_its_bound_is_read_and_dropped() {
        let script =
            "i=0; while [ $i -lt 20000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo fine";
        let told = (Some(0), "fine\n".to_owned(), "0123456789".to_owned());
        assert_eq!(exited(run_blocking(sh(script), LIMITS).expect("there is a sh")), told);
    }

    #[test]
    fn a_program_that_prints_too_much_is_ended_with_its_group() {
        let dir = tempfile::tempdir().expect("a directory");
        let child = dir.path().join("child");
        let mut command = sh("sleep 1000 & echo $! > \"$FILE\"; while :; do echo 0123456789; done");
        command.env("FILE", &child);
        let limits = Limits { beyond: Beyond::Ended, ..LIMITS };
        assert_eq!(stopped(run_blocking(command, limits).expect("there is a sh")), Bound::Output);
        until_dead(&child);
    }

    #[test]
    fn a_program_that_ends_after_printing_too_much_has_printed_too_much() {
        let limits = Limits { most_stdout: 3, beyond: Beyond::Ended, ..LIMITS };
        let ended = run_blocking(sh("echo 0123456789"), limits).expect("there is a sh");
        assert_eq!(stopped(ended), Bound::Output);
    }

    #[test]
    fn a_program_that_hangs_is_ended_in_time() {
        let limits = Limits { within: Duration::from_millis(1), ..LIMITS };
        let ended = run_blocking(sh("exec sleep 1000"), limits).expect("there is a sh");
        assert_eq!(stopped(ended), Bound::Time);
    }

    #[test]
    fn a_process_left_behind_with_the_pipes_is_not_waited_for_and_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("child");
        let mut command = sh("sleep 1000 & echo $! > \"$FILE\"; echo done");
        command.env("FILE", &file);
        let told = exited(run_blocking(command, LIMITS).expect("there is a sh"));
        assert_eq!(told, (Some(0), "done\n".to_owned(), String::new()));
        let child = read_to_string(file).expect("it was written");
        let child = Pid::from_raw(child.trim().parse().expect("a pid")).expect("a pid");
        rustix::process::kill_process(child, Signal::KILL).expect("it still sleeps");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_program_that_is_no_longer_waited_for_ends_with_its_group() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("child");
        let mut command =
            sh("sleep 1000 & echo $! > \"$FILE.new\"; mv \"$FILE.new\" \"$FILE\"; wait");
        command.env("FILE", &file);
        let written = async {
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            ended = run(command, LIMITS) => panic!("{ended:?}"),
            () = written => {}
        }
        until_dead(&file);
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_found() {
        #[expect(clippy::disallowed_methods, reason = "a test starts its program")]
        let command = Command::new("/nonexistent/program");
        let error = run_blocking(command, LIMITS).expect_err("there is no such program");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
