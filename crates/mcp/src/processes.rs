//! Background processes: child runs of kind exec, each under a shim of its own, so that it outlives the agent and the
//! daemon and its end is told truly.

use std::ffi::OsString;
use std::time::Duration;

use outlast_client::ask::{Ask, run_path};
use outlast_client::connection::Reply;
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::wait::{self, For};
use outlast_wire::api::{
    AskedLimits, CreateRun, Created, FRAMES, OutputFrame, PROCESS_BOUND, PROCESS_KEPT,
    PROCESS_LABEL, StopRun, TTY_UPGRADE,
};
use outlast_wire::codes::Code;
use outlast_wire::shim::{EnvVar, Frame, Order, Window};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::arguments::{Arguments, wrong};
use crate::owner::{Done, KEY_LABEL, Owner};

/// What a read returns if it is not told how much.
const USUAL_READ: u64 = 32 << 10;
const LARGEST_READ: u64 = 1 << 20;
/// Clients give a tool 60 seconds.
pub(crate) const LONGEST_WAIT: u64 = 45;
/// How long a stop waits for the end that it asked for.
const STOPPED_WITHIN: Duration = Duration::from_secs(20);
/// How often, and after which pause, the terminal of a process is looked for again.
const TERMINAL_TRIES: u32 = 50;
const TERMINAL_PAUSE: Duration = Duration::from_millis(100);
const WINDOW: Window = Window { rows: 24, cols: 80 };

/// Variables of this attempt that a process of its own must not have.
const OF_ATTEMPT: &str = "OUTLAST_";

pub(crate) async fn start(owner: &Owner<'_>, args: &Arguments) -> Done {
    let command = args.command("command")?.ok_or_else(|| wrong("command is missing"))?;
    let key = args.maybe_text("key")?.map(|key| owner.key(&format!("proc/{key}")));
    let label = if args.flag("persist")? { PROCESS_KEPT } else { PROCESS_BOUND };
    let mut labels = vec![(PROCESS_LABEL.to_owned(), label.to_owned())];
    labels.extend(key.clone().map(|key| (KEY_LABEL.to_owned(), key)));
    let limits = AskedLimits {
        run_timeout_ms: args.number("timeout_s")?.map(|seconds| seconds.saturating_mul(1000)),
        ..AskedLimits::default()
    };
    let watch = args.texts("watch")?;
    // A line that matches is a message to the run that asked.
    let notify = if watch.is_empty() { Vec::new() } else { vec![format!("run:{}", owner.run)] };
    let body = CreateRun {
        name: args.maybe_text("name")?,
        key,
        watch,
        notify,
        command,
        tty: args.flag("tty")?.then_some(WINDOW),
        labels: labels.into_iter().collect(),
        limits,
        ..child(owner, args)?
    };
    let created: Created = owner.session().call(&Ask::post("/v1/runs", &body)).await?;
    let mut told = json!({"id": created.id, "existed": created.existed, "cursor": 0});
    if let Some(child) = created.child.filter(|child| child.removed) {
        told["removed"] = true.into();
        told["state"] = json!(child.state);
        told["exit"] = json!(child.exit);
    }
    Ok(told)
}

/// A run below this one, in its workspace and with its environment.
pub(crate) fn child(owner: &Owner<'_>, args: &Arguments) -> Result<CreateRun, Problem> {
    let set: Vec<EnvVar> = args
        .pairs("env")?
        .into_iter()
        .map(|(name, value)| var(name.into(), value.into()))
        .collect();
    let inherited = owner.world.env.iter().filter(|(name, _)| {
        let is_ours = name.to_string_lossy().starts_with(OF_ATTEMPT) && name != "OUTLAST_HOME";
        !is_ours && !set.iter().any(|var| var.name.as_os_str() == name)
    });
    let mut env: Vec<EnvVar> =
        inherited.map(|(name, value)| var(name.clone(), value.clone())).collect();
    env.extend(set.iter().cloned());
    Ok(CreateRun {
        id: Some(run_id::new()?),
        parent: Some(owner.run.clone()),
        dir: directory(owner, args)?,
        env,
        env_set: set,
        ..CreateRun::default()
    })
}

fn var(name: OsString, value: OsString) -> EnvVar {
    EnvVar { name: name.into(), value: value.into() }
}

fn directory(owner: &Owner<'_>, args: &Arguments) -> Result<String, Problem> {
    let here = match &owner.workspace {
        Some(workspace) => workspace.clone(),
        None => std::env::current_dir()
            .map_err(|error| Problem::failure(format_args!("no current directory: {error}")))?,
    };
    let dir = args.maybe_text("dir")?.map_or_else(|| here.clone(), |dir| here.join(dir));
    let text = dir.into_os_string().into_string();
    text.map_err(|dir| wrong(&format!("{} is not UTF-8", dir.display())))
}

pub(crate) async fn list(owner: &Owner<'_>) -> Done {
    let rows = owner.below().await?;
    let is_child = |row: &&Value| row["parent"].as_str() == Some(&owner.run);
    let is_process = |row: &&Value| row["labels"][PROCESS_LABEL].is_string();
    let told: Vec<Value> = rows.iter().filter(is_child).filter(is_process).map(brief).collect();
    Ok(json!({"processes": told}))
}

/// What of a row an agent has use for.
pub(crate) fn brief(row: &Value) -> Value {
    json!({
        "id": row["id"],
        "name": row["name"],
        "key": row["labels"][KEY_LABEL],
        "command": row["what"],
        "state": row["state"],
        "exit": row["exit"],
        "reason_code": row["reason_code"],
        "started_at": row["started_at"],
        "ended_at": row["ended_at"],
        "summary": row["summary"],
        "persist": row["labels"][PROCESS_LABEL].as_str() == Some(PROCESS_KEPT),
    })
}

pub(crate) async fn read(owner: &Owner<'_>, args: &Arguments) -> Done {
    let id = owner.find(&args.text("id")?).await?;
    let cursor = args.number("cursor")?.unwrap_or(0);
    let most = args.number("max_bytes")?.unwrap_or(USUAL_READ).clamp(1, LARGEST_READ);
    let view = view_of(owner, &id).await?;
    let read = output(owner, &id, cursor, most, has_ended(&view)).await?;
    Ok(with_state(&view, read, None))
}

pub(crate) async fn wait(owner: &Owner<'_>, args: &Arguments) -> Done {
    let id = owner.find(&args.text("id")?).await?;
    let seconds = args.number("timeout_s")?.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
    let cursor = args.number("cursor")?.unwrap_or(0);
    let ask = wait::ask(&id, For::Rest, Duration::from_secs(seconds));
    let waited: Value = owner.session().call(&ask).await?;
    let view = view_of(owner, &id).await?;
    let read = output(owner, &id, cursor, USUAL_READ, has_ended(&view)).await?;
    Ok(with_state(&view, read, Some(waited["timed_out"].as_bool().unwrap_or(false))))
}

pub(crate) async fn stop(owner: &Owner<'_>, args: &Arguments) -> Done {
    let id = owner.find(&args.text("id")?).await?;
    let body = StopRun { now: args.flag("now")?, id: Some(run_id::new()?), tree: true };
    let mut session = owner.session();
    let asked: Result<Value, Problem> =
        session.call(&Ask::post(&run_path(&id, "/stop"), &body)).await;
    if let Err(problem) = asked {
        let view = view_of(owner, &id).await?;
        // One that ended by itself in this moment is what was asked for.
        return if has_ended(&view) { Ok(state(&view)) } else { Err(problem) };
    }
    let _ended: Value = session.call(&wait::ask(&id, For::Empty, STOPPED_WITHIN)).await?;
    Ok(state(&view_of(owner, &id).await?))
}

pub(crate) async fn write(owner: &Owner<'_>, args: &Arguments) -> Done {
    let id = owner.find(&args.text("id")?).await?;
    let text = args.text("text")?;
    let view = view_of(owner, &id).await?;
    if view["tty"] != true {
        return Err(Problem::refusal("no_terminal", "the process has no terminal to type into")
            .hint("proc_start with tty gives it one; what it reads can be given by `sh -c 'CMD < FILE'`"));
    }
    let ask = Ask::get(&run_path(&id, "/attach"))
        .query("rows", WINDOW.rows)
        .query("cols", WINDOW.cols)
        .upgrade(TTY_UPGRADE);
    let reply = terminal(owner, &ask).await?;
    let lost = || Problem::unreachable("its terminal was lost before all was typed");
    let mut stream = reply.upgraded().await.ok_or_else(lost)?;
    let frame: Frame<Order> = Frame::Bytes(text.clone().into_bytes());
    let bytes = frame.encode().map_err(|error| wrong(&format!("text is too long: {error}")))?;
    stream.write_all(&bytes).await.map_err(|_| lost())?;
    stream.flush().await.map_err(|_| lost())?;
    stream.shutdown().await.map_err(|_| lost())?;
    Ok(json!({"id": id, "typed_bytes": text.len()}))
}

/// The terminal of a process, which a process that was just started gets in a moment.
async fn terminal(owner: &Owner<'_>, ask: &Ask) -> Result<Reply, Problem> {
    for _ in 0..TERMINAL_TRIES {
        match owner.session().open(ask).await {
            Err(problem) if problem.is(Code::NoTerminal) => {
                tokio::time::sleep(TERMINAL_PAUSE).await;
            }
            other => return other,
        }
    }
    owner.session().open(ask).await
}

pub(crate) async fn view_of(owner: &Owner<'_>, id: &str) -> Done {
    owner.session().call(&Ask::get(&run_path(id, ""))).await
}

pub(crate) fn has_ended(view: &Value) -> bool {
    view["ended_at"].is_string()
}

pub(crate) fn state(view: &Value) -> Value {
    json!({
        "id": view["id"],
        "name": view["name"],
        "state": view["state"],
        "exit": view["exit"],
        "reason": view["reason"],
        "reason_code": view["reason_code"],
        "summary": view["summary"],
        "turns_committed": view["turns_committed"],
        "output_bytes": view["output_bytes"],
    })
}

fn with_state(view: &Value, read: Read, timed_out: Option<bool>) -> Value {
    let mut told = state(view);
    told["text"] = read.text.into();
    told["cursor"] = read.cursor.into();
    told["more"] = read.has_more.into();
    if read.lost > 0 {
        told["bytes_lost"] = read.lost.into();
    }
    if let Some(timed_out) = timed_out {
        told["timed_out"] = timed_out.into();
    }
    told
}

/// Output from a byte on.
pub(crate) struct Read {
    pub(crate) text: String,
    /// The first byte that was not read.
    cursor: u64,
    has_more: bool,
    /// Bytes that are no longer kept.
    lost: u64,
}

/// What the process has written from this byte on, at most so much.
pub(crate) async fn output(
    owner: &Owner<'_>,
    id: &str,
    cursor: u64,
    most: u64,
    has_ended: bool,
) -> Result<Read, Problem> {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let mut read = Read { text: String::new(), cursor, has_more: false, lost: 0 };
    let ask = Ask::get(&run_path(id, "/output"))
        .query("turn", 1)
        .query("attempt", 1)
        .query("offset", cursor)
        .accept(FRAMES);
    let mut reply = match owner.session().open(&ask).await {
        Ok(reply) => reply,
        // It has not started.
        Err(problem) if problem.is(Code::UnknownAttempt) => return Ok(read),
        Err(problem) => return Err(problem),
    };
    let (mut bytes, mut buffer) = (Vec::new(), Vec::new());
    let broken = |why: &dyn std::fmt::Display| {
        Problem::unreachable(format_args!("its output broke off: {why}"))
    };
    'reading: while let Some(chunk) = reply.more().await {
        buffer.extend_from_slice(&chunk.map_err(|error| broken(&error))?);
        loop {
            let decoded = OutputFrame::decode(&buffer).map_err(|error| broken(&error))?;
            let Some((frame, data, taken)) = decoded else { break };
            let data = data.to_vec();
            buffer.drain(..taken);
            match frame {
                OutputFrame::Data { offset, .. } => {
                    if bytes.is_empty() {
                        read.cursor = offset;
                    }
                    let room = most.saturating_sub(bytes.len()).min(data.len());
                    bytes.extend_from_slice(&data[..room]);
                    if room < data.len() {
                        read.has_more = true;
                        break 'reading;
                    }
                }
                OutputFrame::Gap { from, to } => {
                    if !bytes.is_empty() {
                        read.has_more = true;
                        break 'reading;
                    }
                    read.lost += to.saturating_sub(from);
                    read.cursor = to;
                }
                OutputFrame::Gone { bytes } => read.lost += bytes.unwrap_or(0),
                OutputFrame::Failed { message } => {
                    return Err(Problem::refusal("output_unreadable", message));
                }
                OutputFrame::Attempt { .. } | OutputFrame::Damaged => {}
                OutputFrame::End => break 'reading,
            }
        }
    }
    // A character that is not whole yet is left for the next read.
    let whole = whole_characters(&bytes);
    let kept = if has_ended && !read.has_more { bytes.len() } else { whole };
    read.cursor += u64::try_from(kept).unwrap_or(u64::MAX);
    read.text = String::from_utf8_lossy(&bytes[..kept]).into_owned();
    Ok(read)
}

/// How many bytes there are without the beginning of a character at the end.
fn whole_characters(bytes: &[u8]) -> usize {
    let from = bytes.len().saturating_sub(3);
    let start = (from..bytes.len()).rev().find(|at| bytes[*at] & 0xC0 != 0x80);
    match start {
        Some(at) if std::str::from_utf8(&bytes[at..]).is_err_and(|it| it.error_len().is_none()) => {
            at
        }
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_is_not_cut_in_two() {
        let text = "aä€😀".as_bytes();
        let whole: Vec<usize> =
            (0..=text.len()).map(|end| whole_characters(&text[..end])).collect();
        assert_eq!(whole, [0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10]);
        assert_eq!(whole_characters(b"\xff\xff"), 2, "what is no text is not held back");
    }
}
