//! Sinks, as the operator's config names them and as an address says them at once.
//!
//! Reads no file and reaches no sink: what is told, when and how is the daemon's business.

pub mod base64;
mod read;
mod secret;

pub(crate) use read::{settings, sinks};
pub use secret::{Secret, signing_key};

use std::collections::BTreeMap;

/// The words that `kind` takes.
pub(crate) const KINDS: &[&str] =
    &["cmd", "webhook", "ntfy", "slack", "discord", "email", "desktop", "run"];
pub(crate) const LEVELS: &[&str] = &["all", "needs_me", "done", "silent"];

/// The one sink that there is without configuring any, and that nothing is delivered to.
pub const LOG: &str = "log";

const TIMEOUT_MS: u64 = 15_000;
/// No sink may take longer.
pub(crate) const LONGEST_TIMEOUT_MS: u64 = 60_000;

/// Where notices go, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sink {
    pub way: Way,
    pub level: Level,
    pub when_present: WhenPresent,
    /// Whether a storm of notices is told as one.
    pub coalesce: bool,
    /// Whether a question's notice carries links that answer it: each reader of the notice can press them.
    pub actions: bool,
    /// For all that one delivery takes.
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    Command { command: String },
    Webhook { url: Secret, secrets: Vec<Secret>, headers: BTreeMap<String, Secret> },
    Ntfy { url: Secret, topic: Option<String>, token: Option<Secret>, click: Option<String> },
    Slack { url: Secret },
    Discord { url: Secret },
    Email { command: String, to: String, from: Option<String> },
    Desktop,
    Run { run: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    All,
    /// What only a person sets right.
    NeedsMe,
    /// Ends.
    Done,
    Silent,
}

/// What a sink for people does while a person is there to see for themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenPresent {
    Mute,
    Send,
}

/// What holds for every sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// A person who is there touches it.
    pub presence_file: Option<String>,
    pub presence_max_age_ms: u64,
    /// Sinks that are told of every run.
    pub default: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { presence_file: None, presence_max_age_ms: 120_000, default: Vec::new() }
    }
}

impl Way {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Command { .. } => "cmd",
            Self::Webhook { .. } => "webhook",
            Self::Ntfy { .. } => "ntfy",
            Self::Slack { .. } => "slack",
            Self::Discord { .. } => "discord",
            Self::Email { .. } => "email",
            Self::Desktop => "desktop",
            Self::Run { .. } => "run",
        }
    }

    /// Read by people, who want to be left alone when they know already, and to be told once of many things.
    pub fn is_for_people(&self) -> bool {
        match self {
            Self::Ntfy { .. }
            | Self::Slack { .. }
            | Self::Discord { .. }
            | Self::Email { .. }
            | Self::Desktop => true,
            Self::Command { .. } | Self::Webhook { .. } | Self::Run { .. } => false,
        }
    }
}

impl Level {
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::NeedsMe => "needs_me",
            Self::Done => "done",
            Self::Silent => "silent",
        }
    }

    /// Whether a notice of this type is wanted.
    pub fn wants(self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::NeedsMe => {
                let kinds =
                    ["run.blocked", "run.asked", "run.failed", "run.exhausted", "run.warning"];
                kinds.contains(&kind)
            }
            Self::Done => {
                matches!(kind, "run.completed" | "run.failed" | "run.stopped" | "run.exhausted")
            }
            Self::Silent => false,
        }
    }
}

impl Sink {
    /// A sink of this way, with its defaults.
    pub fn new(way: Way) -> Self {
        let coalesce = way.is_for_people();
        let (level, when_present) = (Level::All, WhenPresent::Mute);
        Self { way, level, when_present, coalesce, actions: false, timeout_ms: TIMEOUT_MS }
    }

    /// The sink that an address says: `cmd:COMMAND`, `webhook:URL`, `run:RUN`, …; `None` if `text` is no address
    /// but a name. What is wrong with it otherwise.
    pub fn at(text: &str) -> Option<Result<Self, String>> {
        if text == "desktop" {
            return Some(Ok(Self::new(Way::Desktop)));
        }
        let (kind, rest) = text.split_once(':')?;
        let way = match kind {
            "cmd" => given(rest, "a command").map(|command| Way::Command { command }),
            "run" => given(rest, "a run").map(|run| Way::Run { run }),
            "webhook" => url(rest).map(|url| Way::Webhook {
                url,
                secrets: Vec::new(),
                headers: BTreeMap::new(),
            }),
            "ntfy" => url(rest).and_then(|url| topic(rest).map(|_| url)).map(|url| {
                let (topic, token, click) = (None, None, None);
                Way::Ntfy { url, topic, token, click }
            }),
            "slack" => url(rest).map(|url| Way::Slack { url }),
            "discord" => url(rest).map(|url| Way::Discord { url }),
            other => Err(format!(
                "{other:?} is not a kind of address; use cmd:COMMAND, webhook:URL, ntfy:URL, slack:URL, discord:URL, desktop or run:RUN"
            )),
        };
        Some(way.map(Self::new))
    }
}

fn given(text: &str, what: &str) -> Result<String, String> {
    if text.trim().is_empty() {
        return Err(format!("{what} is missing after the colon"));
    }
    if text.contains('\0') {
        return Err("there is a NUL byte in it".to_owned());
    }
    Ok(text.to_owned())
}

fn url(text: &str) -> Result<Secret, String> {
    check_url(text)?;
    Ok(Secret::Given(text.to_owned()))
}

/// The last part of the path of such a URL, which is where a message is published.
pub fn topic(url: &str) -> Result<&str, String> {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    match path.trim_end_matches('/').split_once('/') {
        Some((_, path)) => Ok(path.rsplit('/').next().unwrap_or(path)),
        None => Err("the URL names no topic: https://ntfy.example/TOPIC".to_owned()),
    }
}

/// Why not, if this is not the URL of a web server.
pub fn check_url(text: &str) -> Result<(), String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .ok_or("a URL begins with https:// or http://")?;
    let host = host_of(rest);
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    if name.is_empty() || name == "[" {
        return Err("the URL has no host".to_owned());
    }
    if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a URL has no spaces, and other signs are written as %XX".to_owned());
    }
    Ok(())
}

/// The host and port of what follows the scheme.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// A sink's name, or its address without what may be secret in it, for logs and for lists.
pub fn shown(sink: &str) -> String {
    match sink.split_once(':') {
        Some(("cmd", command)) => {
            let first = command.split_whitespace().next().unwrap_or_default();
            if first == command { sink.to_owned() } else { format!("cmd:{first} …") }
        }
        Some((kind @ ("webhook" | "ntfy" | "slack" | "discord"), url)) => {
            format!("{kind}:{}", shown_url(url))
        }
        _ => sink.to_owned(),
    }
}

/// A URL down to its host.
pub fn shown_url(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => format!("{scheme}://{}/…", host_of(rest)),
        None => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_names() {
        let way = |text| Sink::at(text).unwrap().unwrap().way;
        assert_eq!(way("cmd:cat > x:y"), Way::Command { command: "cat > x:y".to_owned() });
        assert_eq!(way("run:k3m"), Way::Run { run: "k3m".to_owned() });
        assert_eq!(way("desktop"), Way::Desktop);
        assert_eq!(way("webhook:http://127.0.0.1:80/a?b=c").kind(), "webhook");
        assert_eq!(way("ntfy:https://ntfy.example/alerts").kind(), "ntfy");
        assert!(Sink::at("phone").is_none());
        let bad = [
            "cmd:",
            "cmd:  ",
            "run:",
            "webhook:ftp://x",
            "webhook:https://",
            "telex:x",
            "webhook:x",
        ];
        for text in bad.into_iter().chain(["webhook:https://a b", "ntfy:https://ntfy.example/"]) {
            assert!(Sink::at(text).unwrap().is_err(), "{text}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_shown() {
        let shows = [
            ("phone", "phone"),
            ("cmd:./told.sh", "cmd:./told.sh"),
            ("cmd:curl -H 'x: secret' https://a", "cmd:curl …"),
            (
                "webhook:https://me:pass@example.org:8/hooks/T0K?k=v",
                "webhook:https://example.org:8/…",
            ),
            ("slack:https://hooks.example/T/B/x", "slack:https://hooks.example/…"),
            ("run:k3mabc", "run:k3mabc"),
        ];
        for (sink, expected) in shows {
            assert_eq!(shown(sink), expected);
        }
    }

    #[test]
    fn a_level_lets_through_what_it_says() {
        let through = |level: Level| {
            let kinds = [
                "completed",
                "failed",
                "stopped",
                "exhausted",
                "blocked",
                "asked",
                "warning",
                "emitted",
            ];
            kinds.into_iter().filter(|kind| level.wants(&format!("run.{kind}"))).collect::<Vec<_>>()
        };
        assert_eq!(through(Level::NeedsMe), ["failed", "exhausted", "blocked", "asked", "warning"]);
        assert_eq!(through(Level::Done), ["completed", "failed", "stopped", "exhausted"]);
        assert_eq!((through(Level::All).len(), through(Level::Silent).len()), (8, 0));
    }

    #[test]
    fn a_topic_is_the_last_part_of_the_path() {
        assert_eq!(topic("https://ntfy.example/alerts").unwrap(), "alerts");
        assert_eq!(topic("https://ntfy.example/a/b/?x=1").unwrap(), "b");
        assert!(topic("https://ntfy.example").is_err());
    }
}
