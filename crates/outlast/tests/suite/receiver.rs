//! A web server that a test plays itself: it keeps what it is told, and answers what the test has it answer.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::harness::until;

/// What it was told once.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) path: String,
    /// By their names in small letters.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Told {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().expect("a notice has an id").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap_or_else(|| panic!("no {name} in {self:?}"))
    }
}

/// How it answers, given how often it has been told something before.
type Answer = Box<dyn Fn(usize, &Told) -> String + Send>;

#[derive(Clone)]
pub(crate) struct Receiver {
    port: u16,
    told: Arc<Mutex<Vec<Told>>>,
    answer: Arc<Mutex<Answer>>,
}

/// An answer of this status, with more lines in its head.
pub(crate) fn status(code: u16, head: &str) -> String {
    format!("HTTP/1.1 {code} X\r\ncontent-length: 0\r\n{head}\r\n")
}

impl Receiver {
    /// Answers 204 until it is told otherwise.
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let fine: Answer = Box::new(|_, _| status(204, ""));
        let receiver = Self { port, told: Arc::default(), answer: Arc::new(Mutex::new(fine)) };
        let serving = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.converse(stream));
            }
        });
        receiver
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn answers(&self, answer: impl Fn(usize, &Told) -> String + Send + 'static) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(answer);
    }

    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until it has been told so often, whatever it answered.
    pub(crate) fn until_told(&self, times: usize) -> Vec<Told> {
        until("the receiver is told", || Some(self.told()).filter(|told| told.len() >= times))
    }

    /// The ids that it was told, in order; one that came twice in a row is there once.
    pub(crate) fn ids(&self) -> Vec<String> {
        let mut ids: Vec<String> = self.told().iter().map(Told::id).collect();
        ids.dedup();
        ids
    }

    fn converse(&self, stream: TcpStream) {
        let Some(told) = read(&stream) else { return };
        let before = self.told().len();
        let reply = self.answer.lock().unwrap_or_else(PoisonError::into_inner)(before, &told);
        self.told.lock().unwrap_or_else(PoisonError::into_inner).push(told);
        // No answer at all is one, too.
        if reply.is_empty() {
            std::thread::sleep(crate::harness::PATIENCE);
        }
        let mut stream = stream;
        let _gone = stream.write_all(reply.as_bytes());
    }
}

fn read(stream: &TcpStream) -> Option<Told> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length: usize = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Told { path, headers, body: String::from_utf8(body).ok()? })
}
