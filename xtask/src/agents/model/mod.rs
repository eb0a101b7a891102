//! A model on loopback that does what a script says, in the protocols of four vendors.
//!
//! A request of a turn takes the next step of that turn. One beside it (a title, a probe) gets a short answer that costs
//! nothing. Every request is kept in memory with how it ended.

mod http;
mod refusal;
mod reply;
mod request;
mod script;

use std::io::{self, BufReader};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use self::refusal::Reset;
use self::reply::Reply;
use self::request::{Dialect, Request};
pub(crate) use self::request::{attempt_of, turn_of};
use self::script::{Part, Script};
pub(crate) use self::script::{Step, Tokens, Told, Tool};

pub(crate) struct Model {
    port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Script>,
    asked: Mutex<Vec<Asked>>,
    is_over: AtomicBool,
}

/// A request, and what became of it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) at: Instant,
    /// The turn that it belongs to; `None` for a side call.
    pub(crate) turn: Option<usize>,
    pub(crate) messages: usize,
    pub(crate) last_user: String,
    /// All prompts of turns that are in it, the last of them last.
    pub(crate) prompts: Vec<String>,
    /// All of it, as it came.
    pub(crate) body: String,
    pub(crate) fate: Fate,
    pub(crate) tokens: Tokens,
}

impl Asked {
    /// Which attempt at its turn it is of.
    pub(crate) fn attempt(&self) -> u64 {
        self.prompts.last().map_or(1, |prompt| attempt_of(prompt))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Open,
    /// The whole answer was sent.
    Whole,
    /// The model cut the connection.
    Cut,
    /// The client went away.
    Gone,
    Refused {
        status: u16,
    },
    /// The script has no such turn.
    TooMany,
}

impl Model {
    /// `turns` says what it does in each turn.
    pub(crate) fn start(turns: Vec<Vec<Step>>) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("a port for the model")?;
        let port = listener.local_addr().context("the model's port")?.port();
        let shared = Arc::new(Shared {
            script: Mutex::new(Script::new(turns)),
            asked: Mutex::default(),
            is_over: AtomicBool::new(false),
        });
        let listening = Arc::clone(&shared);
        thread::spawn(move || listening.listen(&listener));
        Ok(Self { port, shared })
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// All requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.shared.asked().clone()
    }

    /// What all answers that were sent whole have cost.
    pub(crate) fn finished(&self) -> Tokens {
        let asked = self.shared.asked();
        let whole = asked.iter().filter(|it| it.fate == Fate::Whole).map(|it| it.tokens);
        whole.fold(Tokens::default(), Tokens::and)
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // The listener looks at the flag at its next connection.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

impl Shared {
    fn asked(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.asked.lock().expect("no holder of the log panics")
    }

    fn listen(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming().flatten() {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let shared = Arc::clone(self);
            // A client that goes away in the middle is what the tests are about.
            thread::spawn(move || drop(shared.serve(stream)));
        }
    }

    fn serve(&self, stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let mut stream = stream;
        while let Some(incoming) = http::read(&mut reader)? {
            let dialect = Dialect::of(&incoming.path).filter(|_| incoming.method == "POST");
            match dialect {
                Some(dialect) => {
                    if !self.answer(&mut stream, dialect, &incoming)? {
                        return Ok(());
                    }
                }
                None => beside(&mut stream, &incoming)?,
            }
        }
        Ok(())
    }

    /// False if the connection is no longer of use.
    fn answer(
        &self,
        stream: &mut TcpStream,
        dialect: Dialect,
        incoming: &http::Incoming,
    ) -> io::Result<bool> {
        let body: Value = serde_json::from_slice(&incoming.body).map_err(io::Error::other)?;
        let request = Request::read(dialect, &incoming.path, &body);
        let now = Instant::now();
        let (part, turn) = match request.is_side_call() {
            true => (Part::Step(Step::says("ok")), None),
            false => {
                let mut script = self.script.lock().expect("no holder of the script panics");
                let (part, turn) =
                    script.take(request.prompts.last().and_then(|it| turn_of(it)), now);
                (part, Some(turn))
            }
        };
        let number = self.note(Asked {
            at: now,
            turn,
            messages: request.messages,
            last_user: request.last_user.clone(),
            prompts: request.prompts.clone(),
            body: body.to_string(),
            fate: Fate::Open,
            tokens: Tokens::default(),
        });
        let answer = match &part {
            Part::Step(step @ Step::Answer { .. }) => Some(step.clone()),
            _ => None,
        };
        let is_hidden = matches!(&answer, Some(Step::Answer { tool: Some(tool), .. }) if reply::is_hidden(tool, &request.tools));
        let played = play(stream, number, &request, part);
        // A tool that has to be looked for first is used with the next request.
        let is_to_come = played.is_err() || is_hidden;
        if let (true, Some(turn), Some(answer)) = (is_to_come, turn, answer) {
            let mut script = self.script.lock().expect("no holder of the script panics");
            script.give_back(turn, answer);
        }
        let (fate, tokens) = *played.as_ref().unwrap_or(&(Fate::Gone, Tokens::default()));
        let asked = &mut self.asked()[number];
        (asked.fate, asked.tokens) = (fate, tokens);
        played.map(|_| !matches!(fate, Fate::Cut))
    }

    /// Keeps a request and numbers it.
    fn note(&self, asked: Asked) -> usize {
        let mut all = self.asked();
        all.push(asked);
        all.len() - 1
    }
}

fn play(
    stream: &mut TcpStream,
    number: usize,
    request: &Request,
    part: Part,
) -> io::Result<(Fate, Tokens)> {
    let nothing = Tokens::default();
    let mut refuse = |status: u16, left: Option<Duration>, told: Told| {
        // Whole seconds, both rounded up: a client that waits until then never comes too early.
        let (now, in_s) = (since_1970().as_secs() + 1, left.map(|left| left.as_secs() + 1));
        let reset = match told {
            Told::Nothing => None,
            Told::AnHour => Some(Reset::new(now, None, 3600)),
            Told::OneWindow => in_s.map(|in_s| Reset::new(now, None, in_s)),
            Told::TwoWindows => in_s.map(|in_s| Reset::new(now, Some(in_s / 3), in_s)),
        };
        let is_quota = left.is_some();
        let refusal = refusal::refusal(request.dialect, status, is_quota, reset);
        http::answer(stream, refusal.status, &refusal.headers, &refusal.body, false)
    };
    match part {
        Part::Over => {
            refuse(500, None, Told::Nothing)?;
            Ok((Fate::TooMany, nothing))
        }
        Part::Refused { left, told } => {
            refuse(429, Some(left), told)?;
            Ok((Fate::Refused { status: 429 }, nothing))
        }
        Part::Down { status } | Part::Step(Step::Fail { status } | Step::Outage { status, .. }) => {
            refuse(status, None, Told::Nothing)?;
            Ok((Fate::Refused { status }, nothing))
        }
        Part::Step(Step::Quota { for_s, told }) => {
            refuse(429, Some(Duration::from_secs(for_s)), told)?;
            Ok((Fate::Refused { status: 429 }, nothing))
        }
        Part::Step(Step::Drop { text }) => {
            let reply = Reply { number, request, text: &text, call: None, tokens: nothing };
            http::begin_stream(stream)?;
            let events = reply.events();
            let first_piece = events.iter().position(|event| event.is_text).unwrap_or(0);
            for event in &events[..=first_piece] {
                http::event(stream, event.name, &event.data)?;
            }
            http::cut(stream)?;
            Ok((Fate::Cut, nothing))
        }
        Part::Step(Step::Answer { text, tool, tokens, after }) => {
            thread::sleep(after);
            let call = tool.map(|tool| reply::call(&tool, &request.tools));
            let reply = Reply { number, request, text: &text, call, tokens };
            if request.is_streamed {
                http::begin_stream(stream)?;
                for event in reply.events() {
                    http::event(stream, event.name, &event.data)?;
                }
                http::end_stream(stream)?;
            } else {
                http::answer(stream, 200, &[], &reply.whole(), false)?;
            }
            Ok((Fate::Whole, tokens))
        }
    }
}

/// What agents ask besides: which models there are, how many tokens a text has.
fn beside(stream: &mut TcpStream, incoming: &http::Incoming) -> io::Result<()> {
    let path = incoming.path.split('?').next().unwrap_or_default();
    let is_head = incoming.method == "HEAD";
    let (status, body) = if path.ends_with("/count_tokens") {
        (200, json!({ "input_tokens": 100 }))
    } else if path.ends_with(":countTokens") {
        (200, json!({ "totalTokens": 100 }))
    } else if path.ends_with("/models") {
        (200, json!({ "object": "list", "data": [], "models": [] }))
    } else {
        let error = json!({ "type": "not_found_error", "message": path });
        (if is_head { 200 } else { 404 }, json!({ "type": "error", "error": error }))
    };
    http::answer(stream, status, &[], &body, is_head)
}

fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    fn post(port: u16, path: &str, body: &Value) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("the model listens");
        let body = body.to_string();
        let head = format!("POST {path} HTTP/1.1\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).expect("it reads");
        stream.shutdown(std::net::Shutdown::Write).expect("no more is sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    #[test]
    fn a_side_call_takes_no_step_and_a_refusal_has_its_reset() {
        let costs = Tokens { input: 9, output: 2, cached: 1 };
        let turns = vec![vec![Step::says("Hello there.").costs(costs)], vec![Step::quota(60)]];
        let model = Model::start(turns).expect("a port");
        let user = |turn: usize| json!([{ "role": "user", "content": format!("Turn {turn} of the work.") }]);
        let tools = json!([{ "name": "Bash", "input_schema": {} }]);
        let ask = |turn: usize| json!({ "stream": true, "messages": user(turn), "tools": tools });

        let title = post(model.port(), "/v1/messages", &json!({ "messages": user(1) }));
        assert!(title.contains("\"text\":\"ok\""), "{title}");
        let answer = post(model.port(), "/v1/messages", &ask(1));
        assert!(answer.contains("Hello there.") && answer.contains("message_stop"), "{answer}");
        let refusal = post(model.port(), "/v1/messages", &ask(2));
        assert!(refusal.starts_with("HTTP/1.1 429"), "{refusal}");
        assert!(refusal.contains("anthropic-ratelimit-unified-reset: "), "{refusal}");

        let asked = model.asked();
        assert_eq!(asked.iter().map(|it| it.turn).collect::<Vec<_>>(), [None, Some(1), Some(2)]);
        assert_eq!(asked[2].fate, Fate::Refused { status: 429 });
        assert_eq!(model.finished(), costs);
    }
}
