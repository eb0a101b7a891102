//! As much of HTTP/1.1 as the agents' clients use: requests with a length, answers whole or in chunks.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// No request of an agent is as long as this.
const LONGEST_BODY: usize = 64 << 20;
const LONGEST_HEAD: u64 = 1 << 20;

pub(super) struct Incoming {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// `None` if the client has gone.
pub(super) fn read(stream: &mut BufReader<TcpStream>) -> io::Result<Option<Incoming>> {
    let mut head = stream.by_ref().take(LONGEST_HEAD);
    let mut first = String::new();
    if head.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace().map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(io::Error::other("not a request"));
    };
    let mut length = 0;
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = line.trim().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    if length > LONGEST_BODY {
        return Err(io::Error::other("the body is too long"));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some(Incoming { method, path, body }))
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        401 => "Unauthorized",
        404 => "Not Found",
        429 => "Too Many Requests",
        _ => "Internal Server Error",
    }
}

pub(super) fn answer(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &Value,
    is_head: bool,
) -> io::Result<()> {
    let body = body.to_string();
    let mut text = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        reason(status),
        body.len()
    );
    for (name, value) in headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    if !is_head {
        text.push_str(&body);
    }
    stream.write_all(text.as_bytes())
}

pub(super) fn begin_stream(stream: &mut TcpStream) -> io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes())
}

pub(super) fn event(stream: &mut TcpStream, name: Option<&str>, data: &str) -> io::Result<()> {
    let name = name.map(|name| format!("event: {name}\n")).unwrap_or_default();
    let event = format!("{name}data: {data}\n\n");
    stream.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
}

pub(super) fn end_stream(stream: &mut TcpStream) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")
}

/// Closes the connection so that the client sees it break.
pub(super) fn cut(stream: &TcpStream) -> io::Result<()> {
    rustix::net::sockopt::set_socket_linger(stream, Some(Duration::ZERO))?;
    stream.shutdown(std::net::Shutdown::Both)
}
