//! The server itself: lines in, lines out, and each call of a tool in a task of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::rc::Rc;
use std::time::Duration;

use outlast_client::problem::Problem;
use outlast_wire::api::NoteKind;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, LocalSet};

use crate::declared::{self, Asked};
use crate::era::{self, Era, Unsupported};
use crate::owner::Owner;
use crate::rpc::{self, LONGEST_LINE, Said};
use crate::{dispatch, reports, table};

/// Calls at the same time; a client that asks for more is refused.
const MOST_CALLS: usize = 64;

/// Clients that drop a silent call after 60 seconds keep one that says so often that it goes on.
const PROGRESS: Duration = Duration::from_secs(10);

/// Lines that wait to be handled.
const LINES: usize = 16;

/// Serves until the client closes its end, or goes away.
pub async fn serve(owner: Owner<'static>) {
    let tasks = LocalSet::new();
    tasks.run_until(Server::new(owner).run(lines())).await;
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// The lines of standard input, read by a thread: a read of a pipe cannot be waited for otherwise.
fn lines() -> mpsc::Receiver<Line> {
    let (send, receive) = mpsc::channel(LINES);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        loop {
            let mut line = Vec::new();
            let most = u64::try_from(LONGEST_LINE).unwrap_or(u64::MAX);
            let read = input.by_ref().take(most + 1).read_until(b'\n', &mut line);
            let is_too_long = line.len() > LONGEST_LINE && line.last() != Some(&b'\n');
            if is_too_long && skip_line(&mut input).is_err() {
                return;
            }
            let said = if is_too_long { Line::TooLong } else { Line::Whole(line) };
            match read {
                Ok(0) | Err(_) => return,
                Ok(_) => {
                    if send.blocking_send(said).is_err() {
                        return;
                    }
                }
            }
        }
    });
    receive
}

fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    loop {
        let (used, is_end) = {
            let bytes = input.fill_buf()?;
            match bytes.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (bytes.len(), bytes.is_empty()),
            }
        };
        input.consume(used);
        if is_end {
            return Ok(());
        }
    }
}

struct Server {
    owner: Rc<Owner<'static>>,
    asked: Rc<Asked>,
    open: Rc<RefCell<BTreeMap<String, Open>>>,
}

/// A call that is not answered yet.
struct Open {
    task: JoinHandle<()>,
    must_end: bool,
}

impl Server {
    fn new(owner: Owner<'static>) -> Self {
        Self { owner: Rc::new(owner), asked: Rc::default(), open: Rc::default() }
    }

    async fn run(self, mut lines: mpsc::Receiver<Line>) {
        while let Some(line) = lines.recv().await {
            match line {
                Line::TooLong => {
                    let why = "a message has at most 4 MiB";
                    say(&rpc::error(&Value::Null, rpc::INVALID_REQUEST, why));
                }
                Line::Whole(line) if line.trim_ascii().is_empty() => {}
                Line::Whole(line) => self.hear(rpc::read(line.trim_ascii())),
            }
        }
        self.leave().await;
    }

    /// The client is gone. What has an effect is brought to its end, so that its result is on record.
    async fn leave(self) {
        let open = std::mem::take(&mut *self.open.borrow_mut());
        for (_, call) in open {
            if call.must_end {
                // A task that panicked has said so on standard error.
                let _ended = call.task.await;
            } else {
                call.task.abort();
            }
        }
    }

    fn hear(&self, said: Said) {
        match said {
            Said::Wrong(answer) => say(&answer),
            Said::Response => {}
            Said::Notification { method, params } if method == "notifications/cancelled" => {
                self.cancel(&params["requestId"]);
            }
            Said::Notification { .. } => {}
            Said::Request { id, method, params } => self.answer(&id, &method, &params),
        }
    }

    /// A call whose effect cannot be taken back goes on; its result is on record.
    fn cancel(&self, id: &Value) {
        let mut open = self.open.borrow_mut();
        if open.get(&id.to_string()).is_some_and(|call| !call.must_end)
            && let Some(call) = open.remove(&id.to_string())
        {
            call.task.abort();
        }
    }

    fn answer(&self, id: &Value, method: &str, params: &Value) {
        let era = match Era::of(params) {
            Ok(era) => era,
            Err(Unsupported(error)) => return say(&rpc::refusal(id, &error)),
        };
        match (era, method) {
            (Era::Handshake, "initialize") => say(&rpc::result(id, era::initialized(params))),
            (Era::Handshake, "ping" | "logging/setLevel") => say(&rpc::result(id, json!({}))),
            (Era::Stateless, "server/discover") => say(&rpc::result(id, era::discovered())),
            (_, "tools/list") => {
                let mut tools = table::listed();
                tools.extend(declared::listed(&self.owner));
                say(&rpc::result(id, era.cacheable(json!({"tools": tools}))));
                self.remember_listing();
            }
            (_, "tools/call") => self.call(id.clone(), era, params),
            _ => {
                let why = format!("there is no method {method:?}");
                say(&rpc::error(id, rpc::UNKNOWN_METHOD, &why));
            }
        }
    }

    /// The journal has it that the agent was shown the tools.
    fn remember_listing(&self) {
        let owner = self.owner.clone();
        let _task = tokio::task::spawn_local(async move {
            if let Err(problem) = reports::note(&owner, NoteKind::ToolsListed, String::new()).await
            {
                complain(&problem);
            }
        });
    }

    fn call(&self, id: Value, era: Era, params: &Value) {
        let Some(name) = params["name"].as_str().map(str::to_owned) else {
            return say(&rpc::error(&id, rpc::INVALID_PARAMS, "a call names its tool"));
        };
        let key = id.to_string();
        if self.open.borrow().contains_key(&key) {
            return say(&rpc::error(&id, rpc::INVALID_REQUEST, "this id is in use"));
        }
        if self.open.borrow().len() >= MOST_CALLS {
            let why = format!("{MOST_CALLS} calls are open");
            return say(&rpc::error(&id, rpc::INVALID_REQUEST, &why));
        }
        let (owner, asked, open) = (self.owner.clone(), self.asked.clone(), self.open.clone());
        let (given, token) =
            (params["arguments"].clone(), params["_meta"].get("progressToken").cloned());
        let must_end = dispatch::must_end(&name);
        let slot = key.clone();
        let task = tokio::task::spawn_local(async move {
            let called = dispatch::call(&owner, &asked, &name, given);
            let done = with_progress(called, token).await;
            open.borrow_mut().remove(&slot);
            say(&answered(&id, era, &name, done));
        });
        self.open.borrow_mut().insert(key, Open { task, must_end });
    }
}

/// Says every ten seconds that a call goes on, if the client has asked for that.
async fn with_progress<T>(work: impl Future<Output = T>, token: Option<Value>) -> T {
    let mut work = std::pin::pin!(work);
    let mut told = 0_u64;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(PROGRESS) => {
                told += 1;
                if let Some(token) = &token {
                    let params = json!({"progressToken": token, "progress": told, "message": "it goes on"});
                    say(&rpc::notification("notifications/progress", params));
                }
            }
        }
    }
}

fn answered(id: &Value, era: Era, name: &str, done: Result<Option<Value>, Problem>) -> Value {
    let result = match done {
        Ok(Some(value)) => {
            let content = json!([{"type": "text", "text": value.to_string()}]);
            let value = if value.is_object() { value } else { json!({"result": value}) };
            json!({"content": content, "structuredContent": value, "isError": false})
        }
        Ok(None) => {
            let why = format!("there is no tool {name:?}");
            return rpc::error(id, rpc::INVALID_PARAMS, &why);
        }
        Err(problem) => {
            let text = words(&problem);
            json!({"content": [{"type": "text", "text": text}], "isError": true})
        }
    };
    rpc::result(id, era.result(result))
}

/// What is wrong, its code and what helps, for a model to read.
fn words(problem: &Problem) -> String {
    match problem {
        Problem::Told { info, .. } => {
            let hint =
                info.hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
            format!("{}: {}{hint}", info.code.as_str(), info.message)
        }
        Problem::OutputClosed => "the client is gone".to_owned(),
    }
}

#[expect(clippy::print_stderr, reason = "an MCP server logs to standard error")]
fn complain(problem: &Problem) {
    eprintln!("outlast mcp: {}", words(problem));
}

/// A client that does not read is gone; its end of standard input says so too.
fn say(message: &Value) {
    let mut line = message.to_string();
    line.push('\n');
    let mut output = std::io::stdout().lock();
    let _gone = output.write_all(line.as_bytes()).and_then(|()| output.flush());
}
