//! Server-sent events: bytes as they arrive, into the data of whole events.

use crate::connection::Reply;

/// An open stream of events.
pub struct Stream {
    reply: Reply,
    events: Events,
}

impl Stream {
    pub fn new(reply: Reply) -> Self {
        Self { reply, events: Events::default() }
    }

    /// The next event when it has arrived; `None` once the stream has ended or the connection broke.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.next() {
                return Some(event);
            }
            let bytes = self.reply.more().await?.ok()?;
            self.events.feed(&bytes);
        }
    }
}

#[derive(Debug, Default)]
struct Events {
    pending: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    Data(String),
    /// Why no more will come.
    Error(String),
}

impl Events {
    fn feed(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
    }

    /// The next whole event. Comments, which only keep a connection alive, are none.
    fn next(&mut self) -> Option<Event> {
        loop {
            let end = self.pending.windows(2).position(|two| two == b"\n\n")?;
            let event: Vec<u8> = self.pending.drain(..end + 2).collect();
            if let Some(event) = read(&String::from_utf8_lossy(&event)) {
                return Some(event);
            }
        }
    }
}

fn read(text: &str) -> Option<Event> {
    let data: Vec<&str> = values(text, "data:").collect();
    if data.is_empty() {
        return None;
    }
    let data = data.join("\n");
    let is_error = values(text, "event:").any(|name| name == "error");
    Some(if is_error { Event::Error(data) } else { Event::Data(data) })
}

fn values<'a>(text: &'a str, field: &'static str) -> impl Iterator<Item = &'a str> {
    let values = text.lines().filter_map(move |line| line.strip_prefix(field));
    values.map(|value| value.strip_prefix(' ').unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_whole_however_they_arrive() {
        let stream = b": hello\n\nid: 1\ndata: {\"seq\":1}\n\nid: 2\ndata:{\"seq\":2}\n\nevent: error\ndata: no\n\n";
        for split in 0..=stream.len() {
            let mut events = Events::default();
            let mut seen = Vec::new();
            for part in [&stream[..split], &stream[split..]] {
                events.feed(part);
                seen.extend(std::iter::from_fn(|| events.next()));
            }
            let data = |json: &str| Event::Data(json.to_owned());
            let error = Event::Error("no".to_owned());
            assert_eq!(
                seen,
                [data(r#"{"seq":1}"#), data(r#"{"seq":2}"#), error],
                "split at {split}"
            );
        }
    }
}
