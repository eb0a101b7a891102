//! Calls to an agent that is a server on loopback, and the events that it pushes.

use std::io::{BufRead, BufReader};
use std::sync::mpsc::SyncSender;
use std::thread;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ureq::{Agent, Body, http};

use crate::agent::{News, STACK};

/// A call that is not answered in this time has failed. Prompts are taken at once, and answered by events.
const CALL_WITHIN: Duration = Duration::from_secs(60);

/// Of an answer no more than this is read.
const LONGEST_ANSWER: u64 = 32 << 20;

/// Where the server is, and the password that only this driver and it know.
#[derive(Clone)]
pub(crate) struct Server {
    address: String,
    authorization: String,
    agent: Agent,
    send: SyncSender<News>,
}

impl Server {
    pub(crate) fn new(address: &str, user: &str, secret: &str, send: SyncSender<News>) -> Self {
        let config = Agent::config_builder().http_status_as_error(false).proxy(None).build();
        Self {
            address: address.trim_end_matches('/').to_owned(),
            authorization: format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{secret}"))),
            agent: config.new_agent(),
            send,
        }
    }

    /// The answer comes as news; one that does not come has the status 0.
    pub(crate) fn call(&self, call: u64, method: &'static str, path: &str, body: Option<String>) {
        let (server, path) = (self.clone(), path.to_owned());
        self.beside("agent-call", move || {
            let (status, body) = server
                .ask(method, &path, body)
                .unwrap_or_else(|error| (0, error.to_string().into()));
            let _loop_gone = server.send.send(News::Answer { call, status, body });
        });
    }

    fn ask(
        &self,
        method: &'static str,
        path: &str,
        body: Option<String>,
    ) -> Result<(u16, Vec<u8>), ureq::Error> {
        let mut answer = self.request(method, path, body, Some(CALL_WITHIN))?;
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_vec()?;
        Ok((status, body))
    }

    fn request(
        &self,
        method: &'static str,
        path: &str,
        body: Option<String>,
        within: Option<Duration>,
    ) -> Result<http::Response<Body>, ureq::Error> {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.address))
            .header("authorization", &self.authorization)
            .header("content-type", "application/json");
        let config = |request| self.agent.configure_request(request).timeout_global(within).build();
        match body {
            Some(body) => self.agent.run(config(request.body(body)?)),
            None => {
                let request =
                    self.agent.configure_request(request.body(())?).timeout_global(within).build();
                self.agent.run(request)
            }
        }
    }

    /// Server-sent events, until the server ends them.
    pub(crate) fn listen(&self, path: &str) {
        let (server, path) = (self.clone(), path.to_owned());
        self.beside("agent-events", move || {
            if let Ok(answer) = server.request("GET", &path, None, None) {
                let reader = BufReader::new(answer.into_body().into_reader());
                let mut data = Vec::new();
                for line in reader.split(b'\n').map_while(Result::ok) {
                    if let Some(event) = pushed(&mut data, &line)
                        && server.send.send(News::Pushed(event)).is_err()
                    {
                        return;
                    }
                }
            }
            let _loop_gone = server.send.send(News::PushedAll);
        });
    }

    fn beside(&self, name: &str, work: impl FnOnce() + Send + 'static) {
        let started =
            thread::Builder::new().name(name.to_owned()).stack_size(4 * STACK).spawn(work);
        if started.is_err() {
            let _loop_gone = self.send.send(News::PushedAll);
        }
    }
}

/// The data of an event, once its last line has come.
fn pushed(data: &mut Vec<u8>, line: &[u8]) -> Option<Vec<u8>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.is_empty() {
        return Some(std::mem::take(data)).filter(|event| !event.is_empty());
    }
    let said = line.strip_prefix(b"data:")?;
    if !data.is_empty() {
        data.push(b'\n');
    }
    data.extend_from_slice(said.strip_prefix(b" ").unwrap_or(said));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_its_lines_of_data_up_to_the_empty_one() {
        let mut data = Vec::new();
        let stream =
            b"event: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n: a comment\n\ndata:{}\n\n";
        let events: Vec<Vec<u8>> = stream
            .split(|byte| *byte == b'\n')
            .filter_map(|line| pushed(&mut data, line))
            .collect();
        assert_eq!(events, [b"{\"a\":\n1}".to_vec(), b"{}".to_vec()]);
    }
}
