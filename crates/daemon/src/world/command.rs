//! Running the command of a sink. Besides shims and git, nothing else is started by the daemon.
//!
//! Bounded in time and in what is read; in a process group of its own, which dies whole when the time is over
//! or nobody waits for it any more. It works in `/`, with the daemon's own environment.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::FutureExt;
use outlast_wire::shim::ATTEMPT_NAMES;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin};

/// What is read of what a command says.
const MOST_STDERR: usize = 4 << 10;

pub(crate) struct Call {
    pub(crate) argv: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) env: Vec<(&'static str, String)>,
}

#[derive(Debug)]
pub(crate) enum Ended {
    Exited { status: ExitStatus, stderr: String },
    TooSlow { after: Duration },
}

/// Runs a command to its end.
pub(crate) async fn call(call: Call, within: Duration) -> io::Result<Ended> {
    let mut group = Group::start(&call)?;
    let (stdin, stderr) = (group.child.stdin.take(), group.child.stderr.take());
    match tokio::time::timeout(within, group.attend(stdin, call.stdin, stderr)).await {
        Ok(ended) => ended,
        Err(_elapsed) => Ok(Ended::TooSlow { after: within }),
    }
}

/// A command that runs, and whatever it started. While it has not ended by itself it does not outlive this.
struct Group {
    child: Child,
    pid: Option<Pid>,
}

impl Group {
    fn start(call: &Call) -> io::Result<Self> {
        let [program, args @ ..] = call.argv.as_slice() else {
            return Err(io::Error::other("there is no command"));
        };
        #[expect(clippy::disallowed_methods, reason = "world is where the daemon starts processes")]
        let mut command = tokio::process::Command::new(program);
        command.args(args).current_dir("/").process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        for name in ATTEMPT_NAMES {
            command.env_remove(name);
        }
        command.envs(call.env.iter().map(|(name, value)| (name, value)));
        let child = command.spawn()?;
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(Self { child, pid })
    }

    async fn attend(
        &mut self,
        stdin: Option<ChildStdin>,
        told: Vec<u8>,
        stderr: Option<ChildStderr>,
    ) -> io::Result<Ended> {
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A command need not listen.
                let _not_read = stdin.write_all(&told).await;
            }
        };
        let mut said = Said { stderr, bytes: Vec::new() };
        let mut exit = std::pin::pin!(self.child.wait());
        let mut feed = std::pin::pin!(feed.fuse());
        let status = loop {
            tokio::select! {
                status = &mut exit => break status?,
                () = &mut feed => {}
                () = said.hear() => {}
            }
        };
        // What it had said before it ended; whoever else holds the pipe is not waited for.
        while said.stderr.is_some() && said.hear().now_or_never().is_some() {}
        let stderr = String::from_utf8_lossy(&said.bytes).into_owned();
        Ok(Ended::Exited { status, stderr })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Until it is reaped, its leader keeps the group's number from anybody else.
        let is_ours = self.child.id().is_some();
        if let Some(pid) = self.pid.filter(|_| is_ours)
            && let Err(error) = kill_process_group(pid, Signal::KILL)
        {
            tracing::warn!(%error, "cannot end the command of a sink");
        }
    }
}

struct Said {
    /// `None` once everything was heard.
    stderr: Option<ChildStderr>,
    bytes: Vec<u8>,
}

impl Said {
    /// Hears the next of it; waits for ever if there is nothing more.
    async fn hear(&mut self) {
        let Some(stderr) = &mut self.stderr else { return std::future::pending().await };
        let mut some = [0; 1024];
        match stderr.read(&mut some).await {
            Ok(0) | Err(_) => self.stderr = None,
            // The rest is read too, so that nobody waits for us, and forgotten.
            Ok(read) => {
                let room = MOST_STDERR.saturating_sub(self.bytes.len());
                self.bytes.extend_from_slice(&some[..read.min(room)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Call {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        Call { argv, stdin: b"told\n".to_vec(), env: vec![("NAMED", "so".to_owned())] }
    }

    async fn exited(script: &str) -> (Option<i32>, String) {
        match call(sh(script), Duration::from_secs(60)).await.expect("it starts") {
            Ended::Exited { status, stderr } => (status.code(), stderr),
            Ended::TooSlow { .. } => panic!("{script} is not slow"),
        }
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_command_is_told_and_says_how_it_went() {
        let script = "read -r line; echo \"$line $NAMED $PWD\" >&2; exit 3";
        assert_eq!(exited(script).await, (Some(3), "told so /\n".to_owned()));
        assert_eq!(exited("exit 0").await, (Some(0), String::new()), "nobody has to listen");
        let (code, said) = exited("head -c 100000 /dev/zero | tr '\\0' x >&2").await;
        assert_eq!((code, said.len()), (Some(0), MOST_STDERR));
        let missing = Call { argv: vec!["no-such-program".to_owned()], ..sh("") };
        assert!(call(missing, Duration::from_secs(60)).await.is_err());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn whoever_holds_its_pipe_is_not_waited_for() {
        let (code, said) = exited("sleep 600 & echo $! >&2").await;
        assert_eq!(code, Some(0));
        let pid: i32 = said.trim().parse().expect("a pid");
        let left = Pid::from_raw(pid).expect("a pid");
        rustix::process::kill_process(left, Signal::KILL).expect("it was left alone");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_command_that_takes_too_long_dies_with_all_that_it_started() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("pid");
        let script =
            format!("sleep 600 & echo $! > '{0}.part'; mv '{0}.part' '{0}'; wait", file.display());
        let mut within = Duration::from_millis(100);
        // A slow machine has not come so far yet.
        while !file.exists() {
            let ended = call(sh(&script), within).await.expect("it starts");
            assert!(matches!(ended, Ended::TooSlow { .. }), "{ended:?}");
            within *= 2;
        }
        let pid = std::fs::read_to_string(file).expect("it was just there");
        let stat = format!("/proc/{}/stat", pid.trim());
        let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
        while !is_gone() {
            tokio::task::yield_now().await;
        }
    }
}
