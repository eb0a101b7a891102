//! Running a poll's command. It is short, bounded in time and in what it may print, and dies whole.
//!
//! Nothing here knows what the output means. An agent, a hook or a check is never run here: these outlive us.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use outlast_wire::shim::{ATTEMPT_NAMES, EnvVar};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};

pub(crate) const MOST_STDOUT: usize = 1024 * 1024;
const MOST_STDERR: usize = 16 * 1024;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("it could not be run: {0}")]
    Io(#[from] io::Error),
    #[error("it took longer than {} s and was killed", .0.as_secs())]
    TooSlow(Duration),
    #[error("it printed more than {MOST_STDOUT} bytes")]
    TooMuch,
    #[error("{0}")]
    Failed(String),
}

/// What `sh -c text` prints, if it succeeds within that time.
pub(crate) async fn output(
    text: &str,
    dir: &str,
    env: &[EnvVar],
    within: Duration,
) -> Result<Vec<u8>, CommandError> {
    let mut child = Group(command(text, dir, env).spawn()?);
    let stdout = child.0.stdout.take().ok_or_else(|| io::Error::other("no pipe"))?;
    let stderr = child.0.stderr.take().ok_or_else(|| io::Error::other("no pipe"))?;
    let whole = async {
        let (printed, said, status) =
            tokio::join!(gather(stdout, MOST_STDOUT), gather(stderr, MOST_STDERR), child.0.wait());
        Ok::<_, io::Error>((printed?, said?, status?))
    };
    let ended = tokio::time::timeout(within, whole).await;
    let ((printed, is_too_much), (said, _), status) =
        ended.map_err(|_| CommandError::TooSlow(within))??;
    if !status.success() {
        return Err(CommandError::Failed(why(&said, status)));
    }
    if is_too_much {
        return Err(CommandError::TooMuch);
    }
    Ok(printed)
}

fn command(text: &str, dir: &str, env: &[EnvVar]) -> Command {
    #[expect(clippy::disallowed_methods, reason = "world is where the daemon starts processes")]
    let mut command = Command::new("sh");
    command.arg("-c").arg(text).current_dir(dir).env_clear();
    command.envs(env.iter().map(|var| (&var.name.0, &var.value.0)));
    for name in ATTEMPT_NAMES {
        command.env_remove(name);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0);
    command
}

/// All that a pipe gives, up to a bound; what is beyond it is read and dropped, and said.
async fn gather(mut pipe: impl AsyncRead + Unpin, most: usize) -> io::Result<(Vec<u8>, bool)> {
    let (mut bytes, mut is_too_much) = (Vec::new(), false);
    let mut piece = vec![0; 16 * 1024];
    loop {
        let read = pipe.read(&mut piece).await?;
        if read == 0 {
            return Ok((bytes, is_too_much));
        }
        let room = most - bytes.len();
        is_too_much |= read > room;
        bytes.extend_from_slice(&piece[..read.min(room)]);
    }
}

/// The last thing that it said.
fn why(said: &[u8], status: ExitStatus) -> String {
    let text = String::from_utf8_lossy(said);
    let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
    last.map_or_else(|| status.to_string(), |last| format!("{status}: {last}"))
}

/// A command that runs. One that is given up dies whole, with what it started.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // One that was waited for has no number any more, and nobody else can have got it meanwhile.
        let pid = self.0.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        if let Some(pid) = pid
            && let Err(error) = kill_process_group(pid, Signal::KILL)
        {
            tracing::debug!(%error, "a poll's process group was not killed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(text: &str, within: Duration) -> Result<String, String> {
        let path = EnvVar {
            name: std::ffi::OsString::from("PATH").into(),
            value: std::ffi::OsString::from("/usr/bin:/bin").into(),
        };
        let printed = output(text, "/", &[path], within).await;
        printed
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|it| it.to_string())
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn what_it_prints_is_given_only_if_it_succeeds() {
        assert_eq!(run("echo one; echo two >&2", PATIENCE).await, Ok("one\n".to_owned()));
        let failed = run("echo half; echo no such thing >&2; exit 3", PATIENCE).await;
        assert_eq!(failed, Err("exit status: 3: no such thing".to_owned()));
    }

    #[tokio::test]
    async fn what_it_may_print_and_how_long_it_may_take_is_bounded() {
        let much = run("head -c 2000000 /dev/zero", PATIENCE).await;
        assert_eq!(much, Err("it printed more than 1048576 bytes".to_owned()));
        let slow = run("sleep 1000 & sleep 1000", Duration::from_millis(50)).await;
        assert_eq!(slow, Err("it took longer than 0 s and was killed".to_owned()));
    }
}
