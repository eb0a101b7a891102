//! Running the commands of sinks and of polls. Besides shims and git, nothing else is started by the daemon.
//!
//! Bounded in time and in what is read; in a process group of its own, which dies whole when the time is over
//! or nobody waits for it any more. An agent, a hook or a check is never run here: these outlive us.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures_util::FutureExt;
use outlast_wire::shim::{EnvVar, not_inherited};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// What is read of what a command complains of.
const MOST_STDERR: usize = 4 << 10;

pub(crate) struct Call {
    pub(crate) argv: Vec<String>,
    pub(crate) stdin: Vec<u8>,
    pub(crate) around: Around,
    /// How much of what it prints is wanted, if any.
    pub(crate) most_stdout: usize,
}

/// Where a command runs and what it finds there.
pub(crate) enum Around {
    /// In `/`, with the daemon's own environment and these.
    Daemon { env: Vec<(&'static str, String)> },
    /// As a client had it.
    Given { dir: String, env: Vec<EnvVar> },
}

#[derive(Debug)]
pub(crate) enum Ended {
    Exited { status: ExitStatus, stdout: Printed, stderr: String },
    TooSlow { after: Duration },
}

#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) bytes: Vec<u8>,
    /// There was more than was wanted.
    pub(crate) is_cut: bool,
}

/// Runs a command to its end.
pub(crate) async fn call(call: Call, within: Duration) -> io::Result<Ended> {
    let mut group = Group::start(&call)?;
    match tokio::time::timeout(within, group.attend(call)).await {
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
        let mut command = Command::new(program);
        command.args(args).process_group(0).kill_on_drop(true);
        let stdout = if call.most_stdout > 0 { Stdio::piped() } else { Stdio::null() };
        command.stdin(Stdio::piped()).stdout(stdout).stderr(Stdio::piped());
        call.around.apply(&mut command);
        let child = command.spawn()?;
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        Ok(Self { child, pid })
    }

    async fn attend(&mut self, call: Call) -> io::Result<Ended> {
        let (stdin, told) = (self.child.stdin.take(), call.stdin);
        let feed = async move {
            if let Some(mut stdin) = stdin {
                // A command need not listen.
                let _not_read = stdin.write_all(&told).await;
            }
        };
        let mut printed = Heard::new(self.child.stdout.take(), call.most_stdout);
        let mut said = Heard::new(self.child.stderr.take(), MOST_STDERR);
        let mut exit = std::pin::pin!(self.child.wait());
        let mut feed = std::pin::pin!(feed.fuse());
        let status = loop {
            tokio::select! {
                status = &mut exit => break status?,
                () = &mut feed => {}
                () = printed.hear() => {}
                () = said.hear() => {}
            }
        };
        // What it had said before it ended; whoever else holds the pipe is not waited for.
        printed.drain();
        said.drain();
        let stderr = String::from_utf8_lossy(&said.heard.bytes).into_owned();
        Ok(Ended::Exited { status, stdout: printed.heard, stderr })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Until it is reaped, its leader keeps the group's number from anybody else.
        let is_ours = self.child.id().is_some();
        if let Some(pid) = self.pid.filter(|_| is_ours)
            && let Err(error) = kill_process_group(pid, Signal::KILL)
        {
            tracing::warn!(%error, "cannot end a command that took too long");
        }
    }
}

impl Around {
    fn apply(&self, command: &mut Command) {
        match self {
            Self::Daemon { .. } => {
                command.current_dir("/");
            }
            Self::Given { dir, env } => {
                command.current_dir(dir).env_clear();
                command.envs(env.iter().map(|var| (&var.name.0, &var.value.0)));
            }
        }
        for name in not_inherited() {
            command.env_remove(name);
        }
        if let Self::Daemon { env } = self {
            command.envs(env.iter().map(|(name, value)| (name, value)));
        }
    }
}

/// One of its pipes, and what came through it.
struct Heard<R> {
    /// `None` once everything was heard.
    pipe: Option<R>,
    most: usize,
    heard: Printed,
}

impl<R: AsyncRead + Unpin> Heard<R> {
    fn new(pipe: Option<R>, most: usize) -> Self {
        Self { pipe, most, heard: Printed::default() }
    }

    /// Hears the next of it; waits for ever if there is nothing more.
    async fn hear(&mut self) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let mut some = [0; 4096];
        match pipe.read(&mut some).await {
            Ok(0) | Err(_) => self.pipe = None,
            // The rest is read too, so that nobody waits for us, and forgotten.
            Ok(read) => {
                let room = self.most.saturating_sub(self.heard.bytes.len());
                self.heard.is_cut |= read > room;
                self.heard.bytes.extend_from_slice(&some[..read.min(room)]);
            }
        }
    }

    /// What is there already.
    fn drain(&mut self) {
        while self.pipe.is_some() && self.hear().now_or_never().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(60);

    fn sh(script: &str) -> Call {
        let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
        let around = Around::Daemon { env: vec![("NAMED", "so".to_owned())] };
        Call { argv, stdin: b"told\n".to_vec(), around, most_stdout: 0 }
    }

    async fn exited(script: &str) -> (Option<i32>, String) {
        match call(sh(script), SOON).await.expect("it starts") {
            Ended::Exited { status, stderr, .. } => (status.code(), stderr),
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
        assert!(call(missing, SOON).await.is_err());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn what_it_prints_is_heard_up_to_a_bound_and_where_it_was_asked_to_be() {
        let path = EnvVar {
            name: std::ffi::OsString::from("PATH").into(),
            value: std::ffi::OsString::from("/usr/bin:/bin").into(),
        };
        let printed = async |script: &str, most| {
            let around = Around::Given { dir: "/usr".to_owned(), env: vec![path.clone()] };
            let call = super::call(Call { around, most_stdout: most, ..sh(script) }, SOON).await;
            match call.expect("it starts") {
                Ended::Exited { stdout, .. } => (String::from_utf8(stdout.bytes), stdout.is_cut),
                Ended::TooSlow { .. } => panic!("{script} is not slow"),
            }
        };
        let script = "echo $PWD; echo ${NAMED-none}";
        assert_eq!(printed(script, 1000).await, (Ok("/usr\nnone\n".to_owned()), false));
        let (text, is_cut) = printed("head -c 100000 /dev/zero | tr '\\0' x", 99_999).await;
        assert_eq!((text.map(|text| text.len()), is_cut), (Ok(99_999), true));
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
