//! A daemon that a test plays itself: it says what the test has it say, when the test has it say it.
//!
//! For what a client makes of a loop, however long that takes and whatever comes in between.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use outlast_home::layout::Layout;
use outlast_wire::api::{OutputFrame, exit_status};
use outlast_wire::output::Stream;
use outlast_wire::words::Word;
use serde_json::{Value, json};

use crate::harness::{Home, until};

pub(crate) const RUN: &str = "k3mx7q9w2r5t";

pub(crate) struct Stage(Arc<Shared>);

/// Holds the lock and says in it where the daemon listens, as a daemon does.
pub(crate) fn hold_lock(layout: &Layout) -> File {
    std::fs::create_dir_all(&layout.state).expect("the test's directory is ours");
    let mut lock = File::create(layout.daemon_lock()).expect("the test's directory is ours");
    lock.lock().expect("it is free");
    let said = json!({
        "pid": std::process::id(), "version": "0.1.0", "build": env!("OUTLAST_BUILD"), "epoch": 1,
        "started_at": "2026-11-15T11:00:00Z", "socket": layout.socket(),
    });
    lock.write_all(said.to_string().as_bytes()).expect("the test's directory is ours");
    lock
}

struct Shared {
    script: Mutex<Script>,
    news: Condvar,
}

struct Script {
    view: Value,
    events: Vec<Value>,
    output: Vec<u8>,
    warnings: Vec<&'static str>,
    /// What was asked, and with which body.
    asked: Vec<(String, String)>,
    /// How many of the next orders get no answer.
    lost_answers: usize,
    refuses_with: Option<&'static str>,
    is_over: bool,
}

impl Stage {
    /// Listens where the daemon of this home would.
    pub(crate) fn new(home: &Home) -> Self {
        let layout = Layout::under(&home.path());
        std::fs::create_dir_all(&layout.runtime).expect("the test's directory is ours");
        let listener = UnixListener::bind(layout.socket()).expect("no other process listens there");
        let lock = hold_lock(&layout);
        let first = OutputFrame::Attempt { turn: 1, attempt: 1 }.encode(&[]);
        let script = Script {
            view: view(),
            events: Vec::new(),
            output: first,
            warnings: Vec::new(),
            asked: Vec::new(),
            lost_answers: 0,
            refuses_with: None,
            is_over: false,
        };
        let shared = Arc::new(Shared { script: Mutex::new(script), news: Condvar::new() });
        let stage = Self(Arc::clone(&shared));
        std::thread::spawn(move || {
            // For as long as the test's process lives, as the listener.
            let _lock = lock;
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.converse(stream));
            }
        });
        stage
    }

    fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.0.script());
        self.0.news.notify_all();
    }

    pub(crate) fn warn(&self, warning: &'static str) {
        self.change(|script| script.warnings.push(warning));
    }

    pub(crate) fn lose_answers(&self, count: usize) {
        self.change(|script| script.lost_answers = count);
    }

    /// What every answer and every resumption is refused with.
    pub(crate) fn refuse_with(&self, code: &'static str) {
        self.change(|script| script.refuses_with = Some(code));
    }

    /// Something happens to the run.
    pub(crate) fn happens(&self, kind: &str, fields: Value) {
        self.change(|script| {
            let seq = script.events.len() + 1;
            let mut event =
                json!({"seq": seq, "at": "2026-11-15T12:00:00Z", "run": RUN, "kind": kind});
            merge(&mut event, fields);
            script.events.push(event);
            script.view["seq"] = seq.into();
        });
    }

    /// What the run is seen as from now on.
    pub(crate) fn is(&self, fields: Value) {
        self.change(|script| merge(&mut script.view, fields));
    }

    pub(crate) fn prints(&self, text: &str) {
        self.change(|script| {
            let offset = script.output.len() as u64;
            let frame = OutputFrame::Data { offset, stream: Stream::Stdout, at_ms: 0 };
            script.output.extend(frame.encode(text.as_bytes()));
        });
    }

    /// The bodies of what was asked under this path.
    pub(crate) fn asked(&self, path: &str) -> Vec<String> {
        let script = self.0.script();
        let asked = script.asked.iter().filter(|(target, _)| target.contains(path));
        asked.map(|(_, body)| body.clone()).collect()
    }

    pub(crate) fn until_asked(&self, path: &str) {
        until("the client asks", || (!self.asked(path).is_empty()).then_some(()));
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.change(|script| script.is_over = true);
    }
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers until the client has no more to ask, or was sent a stream.
    fn converse(&self, stream: UnixStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a descriptor is free"));
        while let Some((target, body)) = request(&mut reader) {
            self.script().asked.push((target.clone(), body));
            let path = target.split('?').next().unwrap_or_default();
            match path.rsplit('/').next().unwrap_or_default() {
                "events" => return self.stream(stream, Script::events_after),
                "output" => return self.stream(stream, Script::output_after),
                "messages" | "answer" | "resume" | "pause" if self.loses_answer() => return,
                last => {
                    let (status, answer) = self.answer(last);
                    let answer = answer.to_string();
                    let head =
                        format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", answer.len());
                    if write!(&stream, "{head}{answer}").is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn loses_answer(&self) -> bool {
        let mut script = self.script();
        let loses = script.lost_answers > 0;
        script.lost_answers = script.lost_answers.saturating_sub(1);
        loses
    }

    fn answer(&self, last: &str) -> (&'static str, Value) {
        if let ("answer" | "resume", Some(code)) = (last, self.script().refuses_with) {
            return (
                "409 Conflict",
                json!({"error": {"code": code, "message": "no", "hint": null}}),
            );
        }
        let body = match last {
            "runs" => {
                json!({"id": RUN, "existed": false, "warnings": self.script().warnings.clone()})
            }
            "messages" => json!({"message": "m1", "existed": false}),
            "wait" => {
                let waited = self.news.wait_timeout_while(
                    self.script(),
                    Duration::from_millis(100),
                    |script| !script.is_at_rest(),
                );
                let (script, _) = waited.unwrap_or_else(PoisonError::into_inner);
                json!({"timed_out": !script.is_at_rest(), "run": script.view})
            }
            _ => self.script().view.clone(),
        };
        ("200 OK", body)
    }

    /// Sends what there is and what comes; its end is that of the connection.
    fn stream(&self, mut stream: UnixStream, more: impl Fn(&Script, usize) -> (Vec<u8>, bool)) {
        let mut sent = 0;
        let mut chunk = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec();
        let mut is_last = false;
        while stream.write_all(&chunk).is_ok() && !is_last {
            let mut script = self.script();
            loop {
                (chunk, is_last) = more(&script, sent);
                if !chunk.is_empty() || is_last || script.is_over {
                    break;
                }
                script = self.news.wait(script).unwrap_or_else(PoisonError::into_inner);
            }
            is_last |= script.is_over;
            sent += chunk.len();
        }
    }
}

impl Script {
    fn is_at_rest(&self) -> bool {
        let code = self.view["reason_code"].as_str().map(Word::of);
        exit_status(&Word::of(self.state()), code.as_ref()).is_some()
    }

    fn has_ended(&self) -> bool {
        self.is_at_rest() && self.state() != "blocked"
    }

    fn state(&self) -> &str {
        self.view["state"].as_str().unwrap_or_default()
    }

    fn events_after(&self, sent: usize) -> (Vec<u8>, bool) {
        let all: String = self.events.iter().map(|event| format!("data: {event}\n\n")).collect();
        (all.as_bytes()[sent..].to_vec(), self.has_ended())
    }

    fn output_after(&self, sent: usize) -> (Vec<u8>, bool) {
        let mut all = self.output.clone();
        if self.has_ended() {
            all.extend(OutputFrame::End.encode(&[]));
        }
        (all[sent..].to_vec(), self.has_ended())
    }
}

/// The target and the body of the next request.
fn request(reader: &mut impl BufRead) -> Option<(String, String)> {
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|length| *length > 0)?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let target = first.split(' ').nth(1)?.to_owned();
    Some((target, String::from_utf8(body).ok()?))
}

fn merge(value: &mut Value, fields: Value) {
    let (Value::Object(value), Value::Object(fields)) = (value, fields) else {
        panic!("both are objects")
    };
    value.extend(fields);
}

fn view() -> Value {
    let known = r#"{
        "id": "k3mx7q9w2r5t", "name": null, "key": null, "state": "running", "reason": null,
        "reason_code": null, "outcome": null, "health": "healthy", "task": "port the parser",
        "agent": {"kind": "exec", "command": ["true"]}, "turn": 1, "attempt": 1, "turns_committed": 0,
        "created_at": "2026-11-15T11:57:00Z", "started_at": "2026-11-15T11:57:30Z", "ended_at": null,
        "last_progress_at": null, "wake_at": null, "exit": null,
        "usage": {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": 0.0, "known": true},
        "limits": {"max_turns": {"used": 0, "max": 20}}, "workspace": "/src", "tty": false,
        "parent": null, "root": "k3mx7q9w2r5t", "children": [], "labels": {}, "pid": null,
        "shim_pid": null, "output_bytes": 0, "restarts": {"stall": 0, "crash": 0},
        "notices": {"pending": 0, "delivered": 0}, "summary": null, "survivors": [],
        "containment": "subreaper", "trouble": null, "seq": 0
    }"#;
    serde_json::from_str(known).expect("a view")
}
