//! The tables `[sinks.NAME]` and `[notify]` of the config, after their types were found right.

use std::collections::BTreeMap;

use super::{
    LOG, LONGEST_TIMEOUT_MS, Level, Secret, Settings, Sink, Way, WhenPresent, check_url,
    signing_key, topic,
};
use crate::node::{Entry, Node};
use crate::problem::{Code, Problem};

/// The sinks by their names, or everything that is wrong with them.
pub(crate) fn sinks(file: &str, root: &Node) -> Result<BTreeMap<String, Sink>, Vec<Problem>> {
    let entries = root.get("sinks").map_or(&[][..], Node::entries);
    let (mut sinks, mut problems) = (BTreeMap::new(), Vec::new());
    for entry in entries {
        match (Table { file, entry }).sink() {
            Ok(sink) => drop(sinks.insert(entry.key.clone(), sink)),
            Err(problem) => problems.push(*problem),
        }
    }
    if problems.is_empty() { Ok(sinks) } else { Err(problems) }
}

/// What holds for every sink; `sinks` are those that there are.
pub(crate) fn settings(
    file: &str,
    root: &Node,
    sinks: &BTreeMap<String, Sink>,
) -> Result<Settings, Vec<Problem>> {
    let usual = Settings::default();
    let default = root.get("notify.default").map(Node::texts).unwrap_or_default();
    let line = root.get("notify.default").map_or(1, |node| node.line);
    let wrong = |name: &String| {
        let why = match Sink::at(name) {
            _ if sinks.contains_key(name) => return None,
            Some(Ok(_)) => return None,
            Some(Err(why)) => why,
            None => format!("there is no sink {name:?}"),
        };
        let problem = Problem::new(Code::UnknownSink, file, why).at(line).key("notify.default");
        Some(problem.hint("each is the name of a [sinks.NAME] of this file, or an address"))
    };
    let mut problems: Vec<Problem> = default.iter().filter_map(wrong).collect();
    let presence = root.get("notify.presence_file");
    if let Some(node) = presence.filter(|node| !node.text().is_some_and(|it| it.starts_with('/'))) {
        let problem = Problem::new(Code::BadValue, file, "must be an absolute path");
        problems.push(problem.at(node.line).key("notify.presence_file"));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let age = root.get("notify.presence_max_age_ms").and_then(Node::whole);
    Ok(Settings {
        presence_file: presence.and_then(Node::text).map(str::to_owned),
        presence_max_age_ms: age
            .and_then(|ms| u64::try_from(ms).ok())
            .unwrap_or(usual.presence_max_age_ms),
        default,
    })
}

/// One `[sinks.NAME]`.
struct Table<'a> {
    file: &'a str,
    entry: &'a Entry,
}

type Read<T> = Result<T, Box<Problem>>;

impl Table<'_> {
    fn sink(&self) -> Read<Sink> {
        self.check_name()?;
        let kind = self.needs("kind", "how notices are delivered")?;
        self.check_files()?;
        let way = self.way(kind)?;
        self.check_unused(kind)?;
        let usual = Sink::new(way);
        Ok(Sink {
            level: match self.text("level") {
                Some("needs_me") => Level::NeedsMe,
                Some("done") => Level::Done,
                Some("silent") => Level::Silent,
                _ => Level::All,
            },
            when_present: match self.text("when_present") {
                Some("send") => WhenPresent::Send,
                _ => WhenPresent::Mute,
            },
            coalesce: self.get("coalesce").and_then(Node::flag).unwrap_or(usual.coalesce),
            actions: self.get("actions").and_then(Node::flag).unwrap_or(usual.actions),
            timeout_ms: self.timeout_ms(usual.timeout_ms)?,
            way: usual.way,
        })
    }

    fn check_name(&self) -> Read<()> {
        let name = &self.entry.key;
        let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        let is_taken = name == LOG || name == "desktop";
        if !name.is_empty() && name.chars().all(is_plain) && !is_taken {
            return Ok(());
        }
        let why = if is_taken { "is a name of Outlast" } else { "is not a name for a sink" };
        let problem = Problem::new(Code::BadValue, self.file, format!("{name:?} {why}"));
        let problem = problem.at(self.entry.node.line).key("sinks");
        Err(Box::new(problem.hint("letters, digits, `-` and `_`")))
    }

    /// The daemon that reads them is in no directory in particular.
    fn check_files(&self) -> Read<()> {
        let one = ["url", "secret", "token"].map(|key| (key, self.get(key)));
        let lists = ["secrets"].map(|key| (key, self.get(key).map_or(&[][..], Node::items)));
        let headers = self.get("headers").map_or(&[][..], Node::entries);
        let texts = one.into_iter().filter_map(|(key, node)| Some((key, node?.text()?)));
        let texts = texts.chain(lists.into_iter().flat_map(|(key, items)| {
            items.iter().filter_map(move |item| Some((key, item.text()?)))
        }));
        let texts =
            texts.chain(headers.iter().filter_map(|entry| Some(("headers", entry.node.text()?))));
        for (key, text) in texts {
            if text.strip_prefix("file:").is_some_and(|path| !path.starts_with('/')) {
                return Err(self.wrong(key, "file: needs an absolute path".to_owned()));
            }
        }
        Ok(())
    }

    fn way(&self, kind: &str) -> Read<Way> {
        let secret = |key: &str| self.text(key).map(Secret::read);
        let owned = |key: &str| self.text(key).map(str::to_owned);
        Ok(match kind {
            "cmd" => Way::Command { command: self.needs("command", "the command")?.to_owned() },
            "webhook" => Way::Webhook {
                url: self.url()?,
                secrets: self.signing()?,
                headers: self.headers()?,
            },
            "ntfy" => Way::Ntfy {
                url: self.published_at()?,
                topic: owned("topic"),
                token: secret("token"),
                click: self.click()?,
            },
            "slack" => Way::Slack { url: self.url()? },
            "discord" => Way::Discord { url: self.url()? },
            "email" => Way::Email {
                command: self.needs("command", "what sends it, such as sendmail -t")?.to_owned(),
                to: self.mailbox("to")?.ok_or_else(|| self.missing("to", "who gets it"))?,
                from: self.mailbox("from")?,
            },
            "desktop" => Way::Desktop,
            _ => Way::Run { run: self.needs("run", "the run that gets a message")?.to_owned() },
        })
    }

    fn url(&self) -> Read<Secret> {
        let secret = Secret::read(self.needs("url", "where to deliver")?);
        if let Secret::Given(url) = &secret {
            check_url(url).map_err(|why| self.wrong("url", why))?;
        }
        Ok(secret)
    }

    /// Where a message is published, which needs a topic.
    fn published_at(&self) -> Read<Secret> {
        let secret = self.url()?;
        if let (Secret::Given(url), None) = (&secret, self.text("topic")) {
            topic(url).map_err(|why| self.wrong("url", why))?;
        }
        Ok(secret)
    }

    fn click(&self) -> Read<Option<String>> {
        let Some(click) = self.text("click") else { return Ok(None) };
        check_url(&click.replace("{run}", "run")).map_err(|why| self.wrong("click", why))?;
        Ok(Some(click.to_owned()))
    }

    fn signing(&self) -> Read<Vec<Secret>> {
        let one = self.text("secret").map(|text| ("secret", vec![text.to_owned()]));
        let many = self.get("secrets").map(|node| ("secrets", node.texts()));
        let Some((key, texts)) = many.or(one) else { return Ok(Vec::new()) };
        let secrets: Vec<Secret> = texts.iter().map(|text| Secret::read(text)).collect();
        for secret in &secrets {
            if let Secret::Given(text) = secret {
                signing_key(text).map_err(|why| self.wrong(key, why))?;
            }
        }
        Ok(secrets)
    }

    fn headers(&self) -> Read<BTreeMap<String, Secret>> {
        let entries = self.get("headers").map_or(&[][..], Node::entries);
        let is_name = |char: char| char.is_ascii_alphanumeric() || matches!(char, '-' | '_');
        let mut headers = BTreeMap::new();
        for entry in entries {
            let (name, value) = (&entry.key, entry.node.text().unwrap_or_default());
            if name.is_empty() || !name.chars().all(is_name) {
                return Err(self.wrong("headers", format!("{name:?} is not the name of a header")));
            }
            if value.chars().any(char::is_control) {
                return Err(self.wrong("headers", format!("the value of {name} is not one line")));
            }
            headers.insert(name.clone(), Secret::read(value));
        }
        Ok(headers)
    }

    /// An address of a person, which must not bring further lines into the head of a message.
    fn mailbox(&self, key: &str) -> Read<Option<String>> {
        let Some(text) = self.text(key) else { return Ok(None) };
        let is_plain = text.is_ascii() && !text.chars().any(char::is_control) && text.contains('@');
        if !is_plain {
            return Err(self.wrong(key, "must be like me@example.org, on one line".to_owned()));
        }
        Ok(Some(text.to_owned()))
    }

    fn timeout_ms(&self, usual: u64) -> Read<u64> {
        let Some(ms) = self.get("timeout_ms").and_then(Node::whole) else { return Ok(usual) };
        match u64::try_from(ms) {
            Ok(ms) if ms <= LONGEST_TIMEOUT_MS => Ok(ms),
            _ => Err(self.wrong(
                "timeout_ms",
                format!("must be at most {LONGEST_TIMEOUT_MS} (1m), got {ms}"),
            )),
        }
    }

    /// A key that another kind has and this one does nothing with is a mistake of an operator who relies on it.
    fn check_unused(&self, kind: &str) -> Read<()> {
        let used: &[&str] = match kind {
            "cmd" => &["command"],
            "webhook" => &["url", "secret", "secrets", "headers"],
            "ntfy" => &["url", "topic", "token", "click"],
            "slack" | "discord" => &["url"],
            "email" => &["command", "to", "from"],
            "desktop" => &[],
            _ => &["run"],
        };
        let some = [
            "command", "url", "secret", "secrets", "headers", "topic", "token", "click", "to",
            "from", "run",
        ];
        let unused = some.iter().find(|key| !used.contains(key) && self.get(key).is_some());
        match unused {
            Some(key) => Err(self.wrong(key, format!("a sink of kind {kind} has no such key"))),
            None => Ok(()),
        }
    }

    fn get(&self, key: &str) -> Option<&Node> {
        self.entry.node.get(key)
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Node::text)
    }

    fn needs(&self, key: &str, what: &str) -> Read<&str> {
        let given = self.text(key).filter(|text| !text.trim().is_empty());
        given.ok_or_else(|| self.missing(key, what))
    }

    fn missing(&self, key: &str, what: &str) -> Box<Problem> {
        self.wrong(key, format!("is missing: {what}"))
    }

    /// The value is not quoted, since it may be a secret.
    fn wrong(&self, key: &str, message: String) -> Box<Problem> {
        let line = self.get(key).map_or(self.entry.node.line, |node| node.line);
        let problem = Problem::new(Code::BadValue, self.file, message).at(line);
        Box::new(problem.key(format_args!("sinks.{}.{key}", self.entry.key)))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Way;
    use crate::{Config, Source};

    fn parse(text: &str) -> Result<Config, String> {
        let parsed = Config::parse(&Source { path: Path::new("config.toml"), text });
        let problems = match parsed {
            Ok((config, warnings)) if warnings.is_empty() => return Ok(config),
            Ok((_, warnings)) => warnings,
            Err(refused) => refused.errors,
        };
        Err(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn every_kind_of_sink_is_read() {
        let key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let config = parse(&format!(
            "[notify]\npresence_file = \"/run/here\"\npresence_max_age_ms = 5000\ndefault = [\"hook\", \"desktop\"]\n\
             [sinks.hook]\nkind = \"webhook\"\nurl = \"https://example.org/x\"\nsecrets = [\"{key}\", \"env:OLD\"]\nheaders = {{ X-Team = \"a\" }}\n\
             [sinks.phone]\nkind = \"ntfy\"\nurl = \"https://ntfy.example/alerts\"\ntoken = \"file:/run/token\"\nlevel = \"needs_me\"\n\
             click = \"https://example.org/{{run}}\"\nwhen_present = \"send\"\ncoalesce = false\ntimeout_ms = 5000\n\
             [sinks.chat]\nkind = \"slack\"\nurl = \"env:CHAT\"\n[sinks.other]\nkind = \"discord\"\nurl = \"https://d.example/x\"\n\
             [sinks.mail]\nkind = \"email\"\ncommand = \"sendmail -t\"\nto = \"me@example.org\"\n\
             [sinks.script]\nkind = \"cmd\"\ncommand = \"cat\"\ncoalesce = true\n[sinks.screen]\nkind = \"desktop\"\n\
             [sinks.boss]\nkind = \"run\"\nrun = \"boss\"\n",
        ))
        .unwrap();
        assert_eq!(config.sinks.len(), 8);
        let Way::Webhook { secrets, headers, .. } = &config.sinks["hook"].way else {
            panic!("hook")
        };
        assert_eq!((secrets.len(), headers.len()), (2, 1));
        let phone = &config.sinks["phone"];
        assert_eq!(
            (phone.level.word(), phone.timeout_ms, phone.coalesce),
            ("needs_me", 5000, false)
        );
        assert!(config.sinks["script"].coalesce && config.sinks["chat"].coalesce);
        assert!(!config.sinks["hook"].coalesce);
        assert_eq!(config.notify.default, ["hook", "desktop"]);
        assert_eq!(config.notify.presence_max_age_ms, 5000);
        assert!(!format!("{config:?}").contains("MfKQ9r8"), "a secret in a debug print");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_without_the_secret() {
        let wrong = [
            (
                "[sinks.a]\nlevel = \"all\"\n",
                "config.toml:1: sinks.a.kind: is missing: how notices are delivered",
            ),
            (
                "[sinks.a]\nkind = \"webhook\"\n",
                "config.toml:1: sinks.a.url: is missing: where to deliver",
            ),
            (
                "[sinks.a]\nkind = \"webhook\"\nurl = \"s3cret\"\n",
                "config.toml:3: sinks.a.url: a URL begins with https:// or http://",
            ),
            (
                "[sinks.a]\nkind = \"webhook\"\nurl = \"http://a\"\nsecret = \"s3cret\"\n",
                "config.toml:4: sinks.a.secret: a signing secret begins with whsec_",
            ),
            (
                "[sinks.a]\nkind = \"email\"\ncommand = \"x\"\nto = \"a@b\\nBcc: c@d\"\n",
                "config.toml:4: sinks.a.to: must be like me@example.org, on one line",
            ),
            (
                "[sinks.a]\nkind = \"desktop\"\nurl = \"http://a\"\n",
                "config.toml:3: sinks.a.url: a sink of kind desktop has no such key",
            ),
            (
                "[sinks.log]\nkind = \"desktop\"\n",
                "config.toml:1: sinks: \"log\" is a name of Outlast",
            ),
            (
                "[sinks.a]\nkind = \"desktop\"\nlevel = \"loud\"\n",
                "config.toml:3: sinks.a.level: must be one of all, needs_me, done, silent, got \"loud\"",
            ),
            (
                "[sinks.a]\nkind = \"desktop\"\nurgent = 1\n",
                "config.toml:3: sinks.a.urgent: unknown key",
            ),
            (
                "[sinks.a]\nkind = \"cmd\"\ncommand = \"x\"\ntimeout_ms = 99999999\n",
                "config.toml:4: sinks.a.timeout_ms: must be at most 60000 (1m), got 99999999",
            ),
            (
                "[sinks.a]\nkind = \"slack\"\nurl = \"file:url\"\n",
                "config.toml:3: sinks.a.url: file: needs an absolute path",
            ),
            (
                "[notify]\npresence_file = \"here\"\n",
                "config.toml:2: notify.presence_file: must be an absolute path",
            ),
            (
                "[notify]\ndefault = [\"phone\"]\n",
                "config.toml:2: notify.default: there is no sink \"phone\"",
            ),
        ];
        for (text, expected) in wrong {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
    }
}
