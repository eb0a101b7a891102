//! The server on standard streams: lines in, lines out, and each call of a tool in a task of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufRead, Read, Write};
use std::rc::Rc;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, LocalSet};

use crate::answers::{Answers, Call, Next};
use crate::era::{Era, Unsupported};
use crate::owner::Owner;
use crate::rpc::{self, LONGEST_LINE, Said};

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
    answers: Answers,
    open: Rc<RefCell<BTreeMap<String, Open>>>,
}

/// A call that is not answered yet.
struct Open {
    task: JoinHandle<()>,
    must_end: bool,
}

impl Server {
    fn new(owner: Owner<'static>) -> Self {
        Self { answers: Answers::new(owner), open: Rc::default() }
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
        if method == "tools/call" && self.open.borrow().contains_key(&id.to_string()) {
            return say(&rpc::error(id, rpc::INVALID_REQUEST, "this id is in use"));
        }
        match self.answers.next(id, era, method, params) {
            Next::Said(answer) => say(&answer),
            Next::Call(call) => self.call(call),
        }
    }

    fn call(&self, call: Call) {
        let (key, must_end) = (call.id.to_string(), call.must_end);
        let (answers, open, slot) = (self.answers.clone(), self.open.clone(), key.clone());
        let task = tokio::task::spawn_local(async move {
            let answer = answers.make(call, |progress| say(&progress)).await;
            open.borrow_mut().remove(&slot);
            say(&answer);
        });
        self.open.borrow_mut().insert(key, Open { task, must_end });
    }
}

/// A client that does not read is gone; its end of standard input says so too.
fn say(message: &Value) {
    let mut line = message.to_string();
    line.push('\n');
    let mut output = std::io::stdout().lock();
    let _gone = output.write_all(line.as_bytes()).and_then(|()| output.flush());
}
