//! The same for the parsers within the daemon, which take the daemon to build.

pub(crate) type Entry = fn(&[u8]);

/// By name, as in `entries`.
pub(crate) const ALL: [(&str, Entry); 2] = [("poll", poll), ("webhook", webhook)];

/// A delivery: lines of `name: value`, an empty line, the body. The line `filter: …` is the trigger's own.
pub(crate) fn webhook(bytes: &[u8]) {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (head, body) = (&bytes[..end], bytes.get(end + 2..).unwrap_or_default());
    let head = String::from_utf8_lossy(head);
    let headers: Vec<(String, String)> = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    outlast_daemon::fuzz::webhook(&headers, body);
}

/// What a poll prints.
pub(crate) fn poll(bytes: &[u8]) {
    outlast_daemon::fuzz::poll(bytes);
}
