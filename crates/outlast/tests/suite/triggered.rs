//! What the tests of schedules, webhooks, folders and polls share.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Home, PATIENCE, str_of, until};

/// A home whose wall clock the test sets. A daemon notices when it starts.
pub(crate) struct Clock {
    pub(crate) home: Home,
    file: PathBuf,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self::with(Home::new())
    }

    pub(crate) fn with(home: Home) -> Self {
        let file = home.scratch().join("clock");
        let clock = Self { home: home.env("OUTLAST_FAKE_CLOCK_FILE", &file), file };
        clock.set(0);
        clock
    }

    /// Has so much time passed since the test began, on every clock.
    pub(crate) fn set(&self, offset_ms: i64) {
        let part = self.file.with_extension("part");
        fs::write(&part, offset_ms.to_string()).expect("the scratch directory is ours");
        fs::rename(part, &self.file).expect("the scratch directory is ours");
    }

    /// Sets the wall clock so far off, and nothing else; it is believed after so long.
    pub(crate) fn set_wall(&self, off_ms: i64, patience_ms: u64) {
        let part = self.file.with_extension("part");
        fs::write(&part, format!("0 {off_ms} {patience_ms}"))
            .expect("the scratch directory is ours");
        fs::rename(part, &self.file).expect("the scratch directory is ours");
    }

    /// Another daemon, by another clock; the one before dies.
    pub(crate) fn leap(&self, offset_ms: i64) {
        self.home.crash_daemon();
        self.set(offset_ms);
        self.home.ok(&["daemon", "start"]);
    }
}

/// What is known of a trigger.
pub(crate) fn trigger(home: &Home, name: &str) -> Value {
    let all = home.json(&["trigger", "ls", "--json"]);
    let all = all.as_array().expect("a list");
    all.iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("no {name}: {all:?}")).clone()
}

pub(crate) fn count(view: &Value, key: &str) -> u64 {
    view[key].as_u64().unwrap_or_else(|| panic!("no {key} in {view}"))
}

/// Waits until so many runs were made of it.
pub(crate) fn made(home: &Home, name: &str, runs: u64) -> Value {
    until(&format!("{name} has made {runs} runs"), || {
        let view = trigger(home, name);
        (count(&view, "runs") >= runs).then_some(view)
    })
}

/// The runs of a trigger, the oldest first.
pub(crate) fn runs(home: &Home, name: &str) -> Vec<Value> {
    let listed = home.json(&["ps", "-a", "--trigger", name, "--json"]);
    let ids =
        listed.as_array().expect("a list").iter().rev().map(|run| str_of(run, "id").to_owned());
    ids.map(|id| home.show(&id)).collect()
}

pub(crate) fn occurrences(home: &Home, name: &str) -> Vec<String> {
    let occurrence = |run: &Value| str_of(&run["origin"], "occurrence").to_owned();
    runs(home, name).iter().map(occurrence).collect()
}

/// One connection to the daemon, kept open.
pub(crate) struct Http(UnixStream);

impl Http {
    pub(crate) fn open(home: &Home) -> std::io::Result<Self> {
        let stream = UnixStream::connect(home.path().join("run/daemon.sock"))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(stream))
    }

    /// Sends one request, and reads the status and the body of its answer.
    pub(crate) fn post(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<(u16, Value)> {
        let mut head =
            format!("POST {path} HTTP/1.1\r\nHost: outlast\r\nContent-Length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        // A server that knows the answer before the body has come may hang up on the rest of it.
        match self.0.write_all(&[head.as_bytes(), body].concat()) {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
            Ok(()) | Err(_) => self.answer(),
        }
    }

    pub(crate) fn answer(&mut self) -> std::io::Result<(u16, Value)> {
        let cut = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.0.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let head = String::from_utf8_lossy(&head).to_lowercase();
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).ok_or_else(cut)?;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|it| it.trim().parse().ok()).ok_or_else(cut)?;
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        Ok((status, serde_json::from_slice(&body).unwrap_or(Value::Null)))
    }

    pub(crate) fn stream(&mut self) -> &mut UnixStream {
        &mut self.0
    }
}

pub(crate) fn post(home: &Home, path: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, Value) {
    let mut http = Http::open(home).expect("a daemon listens");
    http.post(path, headers, body).expect("it answers")
}
