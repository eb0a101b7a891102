//! A question to the daemon: one HTTP request, as data, which can be sent again unchanged.

use std::fmt::{Display, Write};
use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use serde::Serialize;

/// How long the daemon may take for an answer that waits for no event.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone)]
pub struct Ask {
    pub(crate) method: Method,
    /// The path and the query, encoded.
    pub target: String,
    pub(crate) accept: &'static str,
    pub(crate) upgrade: Option<&'static str>,
    /// The token of the run that called this program.
    pub(crate) token: Option<String>,
    /// By which way the person came that this is asked for.
    pub(crate) via: Option<String>,
    pub(crate) body: Bytes,
    /// After this long without an answer the daemon counts as unreachable.
    pub(crate) patience: Duration,
}

impl Ask {
    fn new(method: Method, path: &str) -> Self {
        Self {
            method,
            target: path.to_owned(),
            accept: "application/json",
            upgrade: None,
            token: None,
            via: None,
            body: Bytes::new(),
            patience: PATIENCE,
        }
    }

    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub fn post(path: &str, body: &impl Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("what we send is plain data").into();
        Self { body, ..Self::new(Method::POST, path) }
    }

    pub fn query(mut self, name: &str, value: impl Display) -> Self {
        self.target.push(if self.target.contains('?') { '&' } else { '?' });
        self.target.push_str(name);
        self.target.push('=');
        self.target.push_str(&encode(&value.to_string()));
        self
    }

    pub fn query_if(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    pub fn accept(self, accept: &'static str) -> Self {
        Self { accept, ..self }
    }

    pub fn upgrade(self, protocol: &'static str) -> Self {
        Self { upgrade: Some(protocol), ..self }
    }

    pub(crate) fn token(self, token: Option<String>) -> Self {
        Self { token, ..self }
    }

    /// Says by which way the person came: printable ASCII, at most 64 bytes; anything else is left out.
    pub fn via(self, via: &str) -> Self {
        let is_plain = via.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        Self { via: Some(via.to_owned()).filter(|_| is_plain), ..self }
    }

    /// For questions that the daemon answers when something has happened, or after `wait`.
    pub fn long_poll(self, wait: Duration) -> Self {
        Self { patience: wait + PATIENCE, ..self }
    }
}

/// `/v1/runs/{run}` and what belongs to it.
pub fn run_path(run: &str, rest: &str) -> String {
    // An empty name would ask for the list of runs.
    let run = if run.is_empty() { "\"\"" } else { run };
    format!("/v1/runs/{}{rest}", encode(run))
}

/// `/v1/triggers/{trigger}` and what belongs to it.
pub fn trigger_path(trigger: &str, rest: &str) -> String {
    format!("/v1/triggers/{}{rest}", encode(trigger))
}

fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => write!(encoded, "%{other:02X}").expect("a string takes any text"),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_cannot_change_the_question() {
        let ask = Ask::get(&run_path("a/b?c", "/output"))
            .query("since", "2026-01-01T00:00:00+02:00")
            .query_if("turn", None::<u32>)
            .query("label", "k=v&x");
        let expected =
            "/v1/runs/a%2Fb%3Fc/output?since=2026-01-01T00%3A00%3A00%2B02%3A00&label=k%3Dv%26x";
        assert_eq!(ask.target, expected);
    }
}
