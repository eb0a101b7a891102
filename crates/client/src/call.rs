//! A call under a key: asked for, made once, and its result told.
//!
//! The daemon has the intent before the command starts and the result before this answers. If this process dies in
//! between, the call is in doubt, and the daemon decides by its class whether it is made again.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

use outlast_wire::OsText;
use outlast_wire::api::{
    BeginCall, CallAnswer, CallClass, CallResult, EndCall, LARGEST_CALL_OUTPUT,
};
use outlast_wire::hook;
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use crate::ask::{Ask, run_path};
use crate::problem::Problem;
use crate::run_id;
use crate::session::Session;
use crate::world::World;

/// So much of the command is sent for people to read.
const SHOWN: usize = 200;

/// What is called, and how.
#[derive(Debug)]
pub struct Call {
    /// The run whose live attempt makes the call.
    pub run: String,
    pub key: String,
    pub class: CallClass,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// What is added to this process's environment.
    pub env: Vec<(OsString, OsString)>,
    pub dir: Option<PathBuf>,
    pub input: Input,
    pub retry_failed: bool,
    /// After this long the command and what it started in its group are killed.
    pub timeout: Option<Duration>,
}

/// What a command reads, and where its output goes besides the result.
#[derive(Debug, PartialEq, Eq)]
pub enum Input {
    /// The streams of this process are the command's too.
    Ours,
    /// These bytes; the output goes to the result alone.
    Given(Vec<u8>),
}

/// What a call came to, and whether it was made just now.
#[derive(Debug)]
pub struct Outcome {
    pub key: String,
    pub result: CallResult,
    pub is_stored: bool,
}

/// Makes the call, unless its result is there.
pub async fn call(
    world: &World,
    session: &mut Session<'_>,
    call: Call,
) -> Result<Outcome, Problem> {
    let begin = BeginCall {
        key: call.key.clone(),
        class: call.class,
        digest: digest(&call),
        command: shown(&call.command),
        ticket: run_id::new()?,
        retry_failed: call.retry_failed,
    };
    let run = call.run.clone();
    let begun: CallAnswer = session.call(&Ask::post(&run_path(&run, "/calls"), &begin)).await?;
    if let Some(result) = begun.result {
        return Ok(Outcome { key: begun.key, result, is_stored: true });
    }
    hook!("client.call-begun");
    let result = perform(world, call).await?;
    hook!("client.call-made");
    let ended = EndCall { key: begun.key.clone(), call: begun.call, result };
    let ask = Ask::post(&run_path(&run, "/calls/result"), &ended);
    let _taken: CallAnswer = session.call(&ask).await?;
    Ok(Outcome { key: begun.key, result: ended.result, is_stored: false })
}

/// The program, its arguments and what it is given: another call under the same key has another digest.
fn digest(call: &Call) -> String {
    let mut hash = Sha256::new();
    for word in &call.command {
        hash.update(word.as_bytes());
        hash.update([0]);
    }
    if let Input::Given(bytes) = &call.input {
        hash.update(bytes);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn shown(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let whole = words.join(" ");
    whole[..whole.floor_char_boundary(SHOWN)].to_owned()
}

/// Runs the command to its end. Nothing that happens to the command is an error: it is the result.
async fn perform(world: &World, call: Call) -> Result<CallResult, Problem> {
    let (program, args) = call.command.split_first().expect("a call has a command");
    let mut command = world.command(program);
    command.args(args).envs(call.env.iter().map(|(name, value)| (name, value)));
    if let Some(dir) = &call.dir {
        command.current_dir(dir);
    }
    let echoes = call.input == Input::Ours;
    command.stdin(if echoes { Stdio::inherit() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if call.timeout.is_some() {
        command.process_group(0);
    }
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Ok(not_started(program, &error)),
    };
    let pid = child.id();
    let (done, ended) = oneshot::channel();
    let input = if let Input::Given(bytes) = call.input { bytes } else { Vec::new() };
    std::thread::spawn(move || {
        // A caller that is gone has its answer in the journal, or none.
        let _gone = done.send(watch(child, input, echoes));
    });
    let Some(timeout) = call.timeout else {
        return ended.await.map_err(|_| Problem::failure("the watch over the command ended"))?;
    };
    let mut ended = ended;
    tokio::select! {
        result = &mut ended => {
            return result.map_err(|_| Problem::failure("the watch over the command ended"))?;
        }
        () = tokio::time::sleep(timeout) => {}
    }
    let group = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group {
        // One that is gone has ended in this moment.
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let result =
        ended.await.map_err(|_| Problem::failure("the watch over the command ended"))??;
    let why = Some(format!("timed out after {} s", timeout.as_secs()));
    Ok(CallResult { why, ..result })
}

fn not_started(program: &OsStr, error: &std::io::Error) -> CallResult {
    let why = format!("cannot start {}: {error}", program.display());
    CallResult { why: Some(why), ..CallResult::default() }
}

/// Feeds the command, keeps what it writes, and waits for its end.
fn watch(mut child: Child, input: Vec<u8>, echoes: bool) -> Result<CallResult, Problem> {
    let lost = |error| Problem::failure(format_args!("cannot watch the command: {error}"));
    let feeder = child.stdin.take().map(|mut stdin| {
        // A command that does not read its input is none of ours to judge.
        std::thread::spawn(move || {
            let _unread = stdin.write_all(&input);
        })
    });
    let stderr = child.stderr.take().map(|stream| {
        std::thread::spawn(move || keep(stream, echoes.then(|| Box::new(std::io::stderr()) as _)))
    });
    let stdout = child.stdout.take().map(|stream| {
        let echo: Option<Box<dyn Write>> =
            if echoes { Some(Box::new(std::io::stdout())) } else { None };
        keep(stream, echo)
    });
    let stderr = stderr.map(|thread| thread.join().unwrap_or_default());
    let status: ExitStatus = child.wait().map_err(lost)?;
    if let Some(feeder) = feeder {
        let _ended = feeder.join();
    }
    let (stdout, stdout_left_out) = stdout.unwrap_or_default();
    let (stderr, stderr_left_out) = stderr.unwrap_or_default();
    Ok(CallResult {
        exit_code: status.code(),
        signal: status.signal(),
        why: None,
        stdout: OsText(OsString::from_vec(stdout)),
        stderr: OsText(OsString::from_vec(stderr)),
        stdout_left_out,
        stderr_left_out,
    })
}

/// The first bytes of a stream, and how many more came. All of them are passed on.
fn keep(mut from: impl Read, mut to: Option<Box<dyn Write>>) -> (Vec<u8>, u64) {
    let (mut kept, mut left_out, mut piece) = (Vec::new(), 0_u64, [0; 16 << 10]);
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return (kept, left_out),
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return (kept, left_out),
        };
        let bytes = &piece[..read];
        let room = (LARGEST_CALL_OUTPUT - kept.len()).min(read);
        kept.extend_from_slice(&bytes[..room]);
        left_out += u64::try_from(read - room).unwrap_or(u64::MAX);
        let is_broken =
            to.as_mut().is_some_and(|to| to.write_all(bytes).and_then(|()| to.flush()).is_err());
        if is_broken {
            // The reader went away; the result is kept for the next one.
            to = None;
        }
    }
}
