//! The tables `[agents.NAME]` of the config, after their types were found right: agents that an operator has declared.
//!
//! What a table means is the business of `outlast_agents`.

use std::collections::BTreeMap;

use outlast_agents::adapter::{Declared, Unusable};

use crate::keys::{CONFIG, lookup};
use crate::node::{Entry, Node, Value};
use crate::problem::{Code, Problem};

/// An agent of the operator's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentTable {
    pub declared: Declared,
    /// The same as JSON, as it was written: what a run that is made with it keeps.
    pub json: String,
    pub line: usize,
}

/// Each run keeps its table, in its journal too.
const LARGEST_TABLE: usize = 64 << 10;
const LONGEST_NAME: usize = 100;

/// The keys of a table that is like a built-in agent.
const BESIDE_LIKE: [&str; 5] = ["like", "command", "env", "set_env", "login"];

/// What each part of a table must have.
const NEEDED: [(&str, &[&str]); 7] = [
    ("said", &["when", "text"]),
    ("tool_started", &["when", "id", "name"]),
    ("tool_ended", &["when", "id"]),
    ("usage", &["when", "scope"]),
    ("background", &["when", "each"]),
    ("trouble", &["when", "kind"]),
    ("retry", &["when"]),
];

/// The agents by their names, or everything that is wrong with them.
pub(crate) fn agents(
    file: &str,
    root: &Node,
) -> Result<BTreeMap<String, AgentTable>, Vec<Problem>> {
    let entries = root.get("agents").map_or(&[][..], Node::entries);
    let (mut agents, mut problems) = (BTreeMap::new(), Vec::new());
    for entry in entries {
        match (Table { file, entry }).read() {
            Ok(table) => drop(agents.insert(entry.key.clone(), table)),
            Err(problem) => problems.push(*problem),
        }
    }
    if problems.is_empty() { Ok(agents) } else { Err(problems) }
}

/// One `[agents.NAME]`.
struct Table<'a> {
    file: &'a str,
    entry: &'a Entry,
}

type Read<T> = Result<T, Box<Problem>>;

impl Table<'_> {
    fn read(&self) -> Read<AgentTable> {
        self.check_name()?;
        self.check_like()?;
        self.check_needed()?;
        let json = self.entry.node.json();
        let text = json.to_string();
        if text.len() > LARGEST_TABLE {
            let message = format!("a table of {} bytes is larger than {LARGEST_TABLE}", text.len());
            return Err(Box::new(self.wrong("", message)));
        }
        let declared: Declared = serde_json::from_value(json)
            .map_err(|error| Box::new(self.wrong("", error.to_string())))?;
        declared.check().map_err(|why| self.unusable(&why))?;
        Ok(AgentTable { declared, json: text, line: self.entry.node.line })
    }

    fn check_name(&self) -> Read<()> {
        let name = &self.entry.key;
        let is_plain = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
        let is_taken = outlast_agents::kind(name).is_some();
        let is_name = (1..=LONGEST_NAME).contains(&name.len())
            && name.chars().all(is_plain)
            && !name.starts_with('-');
        if is_name && !is_taken {
            return Ok(());
        }
        let (why, hint) = match is_taken {
            true => ("is a kind that is built in", "choose another name, and say what it is like"),
            false => ("is not a name for an agent", "letters, digits, `-` and `_`, up to 100"),
        };
        let problem = Problem::new(Code::BadValue, self.file, format!("{name:?} {why}"));
        Err(Box::new(problem.at(self.entry.node.line).key("agents").hint(hint)))
    }

    fn check_like(&self) -> Read<()> {
        let Some(kind) = self.entry.node.get("like").and_then(Node::text) else { return Ok(()) };
        let known = self.entry.node.entries().iter().map(|entry| entry.key.as_str());
        match known.into_iter().find(|key| !BESIDE_LIKE.contains(key)) {
            Some(key) => {
                let hint = format!("with `like`, a table has {}", BESIDE_LIKE.join(", "));
                let message = format!("is known: it is like {kind}");
                Err(Box::new(self.wrong(key, message).hint(hint)))
            }
            None => Ok(()),
        }
    }

    fn check_needed(&self) -> Read<()> {
        for (part, needed) in NEEDED {
            let Some(node) = self.entry.node.get(part) else { continue };
            match &node.value {
                Value::List(items) => {
                    for (at, item) in items.iter().enumerate() {
                        let (shown, row) = (format!("{part}[{at}]"), format!("{part}[]"));
                        self.check_part(item, &shown, &row, needed)?;
                    }
                }
                _ => self.check_part(node, part, part, needed)?,
            }
        }
        Ok(())
    }

    fn check_part(&self, node: &Node, shown: &str, row: &str, needed: &[&str]) -> Read<()> {
        let Some(key) = needed.iter().find(|key| node.get(key).is_none()) else { return Ok(()) };
        let about = lookup(CONFIG, &format!("agents.*.{row}.{key}")).map_or("", |row| row.about);
        let problem = self.wrong(&format!("{shown}.{key}"), format!("is missing: {about}"));
        Err(Box::new(problem.at(node.line)))
    }

    fn unusable(&self, why: &Unusable) -> Box<Problem> {
        let problem = self.wrong(why.key().unwrap_or_default(), why.to_string());
        Box::new(match why {
            Unusable::NoCommand => problem.hint("a list, such as command = [\"mycli\", \"--json\"]"),
            Unusable::NoResult => problem.hint(
                "name what the last line has, such as result.completed = [{ type = \"done\" }]; or say what it is `like`",
            ),
            Unusable::NoVariable { .. } => problem.hint("letters, digits and underscores; in `env` with a * at most at the end"),
            _ => problem,
        })
    }

    /// Without a key it is about the whole table.
    fn wrong(&self, key: &str, message: String) -> Problem {
        let Entry { key: name, node } = self.entry;
        let line = node.get(key).map_or(node.line, |node| node.line);
        let key =
            if key.is_empty() { format!("agents.{name}") } else { format!("agents.{name}.{key}") };
        Problem::new(Code::BadValue, self.file, message).at(line).key(key)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use outlast_agents::adapter::{DRIVEN_NAMES, Declared};
    use serde_json::json;

    use crate::keys::{CONFIG, TROUBLES, names};
    use crate::{Config, Source};

    fn parse(text: &str) -> Result<Config, String> {
        match Config::parse(&Source { path: Path::new("config.toml"), text }) {
            Ok((config, warnings)) => {
                assert_eq!(warnings, []);
                Ok(config)
            }
            Err(refused) => {
                let said = refused.errors.iter().map(ToString::to_string);
                Err(said.collect::<Vec<_>>().join("\n"))
            }
        }
    }

    const SMALL: &str = "[agents.x]\ncommand = [\"x\"]\nresult.completed = [{ type = \"done\" }]\n";

    #[test]
    fn tables_of_real_agents_are_read_as_they_are() {
        for text in [
            include_str!("../../agents/tests/declared/claude.toml"),
            include_str!("../../agents/tests/declared/codex.toml"),
            include_str!("../../agents/tests/declared/gemini.toml"),
        ] {
            let below = |line: &str| match (line.strip_prefix("[["), line.strip_prefix('[')) {
                (Some(name), _) => format!("[[agents.x.{name}\n"),
                (None, Some(name)) => format!("[agents.x.{name}\n"),
                (None, None) => format!("{line}\n"),
            };
            let prefixed: String = text.lines().map(below).collect();
            let config = parse(&format!("[agents.x]\n{prefixed}")).expect(text);
            let table = &config.agents["x"];
            let expected: Declared = toml::from_str(text).expect("a table");
            assert_eq!(table.declared, expected);
            let kept: Declared = serde_json::from_str(&table.json).expect("what a run keeps");
            assert_eq!(kept, expected);
        }
    }

    #[test]
    fn the_tables_of_the_page_about_agents_are_right() {
        let page = include_str!("../../../docs/agents.md");
        let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        let blocks: Vec<&str> = blocks.collect();
        let agents = |block: &&str| parse(block).expect(block).agents.len();
        assert_eq!(blocks.iter().map(agents).collect::<Vec<_>>(), [1, 2]);
        assert_eq!(blocks[0].lines().count(), 10);
    }

    #[test]
    fn every_key_of_the_table_is_known_and_no_other() {
        let fields = serde_json::to_value(Declared::default()).expect("a table");
        let mut fields: Vec<&str> =
            fields.as_object().expect("a map").keys().map(String::as_str).collect();
        let mut keys = names(CONFIG, "agents.*");
        keys.sort_unstable();
        keys.dedup();
        fields.sort_unstable();
        assert_eq!(keys, fields);
    }

    #[test]
    fn every_word_is_one_that_the_table_takes() {
        let takes = |table: serde_json::Value| serde_json::from_value::<Declared>(table).is_ok();
        for kind in TROUBLES {
            assert!(takes(json!({ "trouble": [{ "when": {}, "kind": kind }] })), "{kind}");
        }
        for scope in ["message", "turn", "session"] {
            assert!(takes(json!({ "usage": [{ "when": {}, "scope": scope }] })), "{scope}");
        }
        for unit in ["s", "ms", "rfc3339"] {
            let trouble = json!({ "when": {}, "kind": "quota", "unit": unit });
            assert!(takes(json!({ "trouble": [trouble] })), "{unit}");
        }
        for prompt in ["stdin", "arg", "file"] {
            assert!(takes(json!({ "prompt": prompt })), "{prompt}");
        }
        for kind in DRIVEN_NAMES {
            assert!(parse(&format!("[agents.x]\nlike = \"{kind}\"\ncommand = [\"x\"]")).is_ok());
        }
    }

    #[test]
    fn what_is_wrong_with_a_table_is_said_with_its_line() {
        let wrong = [
            ("[agents.x]\n", "config.toml:1: agents.x.command: is empty: which program is it?"),
            (
                "[agents.x]\ncommand = \"x\"\n",
                "config.toml:2: agents.x.command: must be a list of texts, got \"x\"",
            ),
            (
                "[agents.x]\ncommand = [\"x\"]\n",
                "config.toml:1: agents.x.result.completed: is empty: no line could say that a turn has ended well",
            ),
            (
                "[agents.codex]\nlike = \"claude\"\n",
                "config.toml:1: agents: \"codex\" is a kind that is built in",
            ),
            (
                "[agents.exec]\nlike = \"claude\"\n",
                "config.toml:1: agents: \"exec\" is a kind that is built in",
            ),
            (
                "[agents.\"a b\"]\nlike = \"claude\"\n",
                "config.toml:1: agents: \"a b\" is not a name for an agent",
            ),
            (
                "[agents.-a]\nlike = \"claude\"\n",
                "config.toml:1: agents: \"-a\" is not a name for an agent",
            ),
            (
                "[agents.x]\nlike = \"acp\"\n",
                "config.toml:1: agents.x.command: is empty: which program is it?",
            ),
            (
                "[agents.x]\nlike = \"pi\"\nresume = [\"{session}\"]\n",
                "config.toml:3: agents.x.resume: is known: it is like pi",
            ),
            ("[agents]\nx = 1\n", "config.toml:2: agents.x: must be a map, got 1"),
        ];
        for (text, expected) in wrong {
            assert_eq!(parse(text).unwrap_err(), expected, "{text}");
        }
        let lines = [
            ("comand = 1", "agents.x.comand: unknown key"),
            (
                "said = [{ when.a = 1, txt = \"b\", text = \"c\" }]",
                "agents.x.said[0].txt: unknown key",
            ),
            ("said = [{ when.a = 1 }]", "agents.x.said[0].text: is missing: where the text is"),
            ("said = { when.a = 1 }", "agents.x.said: must be a list, got a map"),
            (
                "said = [{ when.a = 1.5, text = \"b\" }]",
                "agents.x.said[0].when: must be a match such as { type = \"result\" }, with texts, whole numbers, true or false, got a map",
            ),
            (
                "said = [{ when = {}, text = \"b\" }]",
                "agents.x.said: a match is empty and would fit each line",
            ),
            (
                "session = \"a..b\"",
                "agents.x.session: must be a path such as \"message.text\", or a list of paths, got \"a..b\"",
            ),
            (
                "background.each = \"a\"",
                "agents.x.background.when: is missing: lines that list work beside the turn",
            ),
            (
                "resume = [\"-c\"]",
                "agents.x.resume: does not have {session}, the place of the conversation's id",
            ),
            (
                "ignore = [1]",
                "agents.x.ignore: must be a list of matches such as [{ type = \"result\" }], got a list",
            ),
            ("env = [\"A B\"]", "agents.x.env: \"A B\" is not the name of a variable"),
            ("set_env = { A = 1 }", "agents.x.set_env.A: must be text, got 1"),
            (
                "trouble = [{ when.a = 1, kind = \"bad\" }]",
                "agents.x.trouble[0].kind: must be one of quota, throttle, overload, auth, context_full, refusal, no_model, silent, cannot_resume, session_busy, own_cap, cancelled, other, got \"bad\"",
            ),
        ];
        for (line, expected) in lines {
            let said = parse(&format!("{SMALL}{line}\n")).unwrap_err();
            assert_eq!(said, format!("config.toml:4: {expected}"), "{line}");
        }
        let like = parse("[agents.x]\nlike = \"cloude\"\n").unwrap_err();
        let known = DRIVEN_NAMES.join(", ");
        let place = "config.toml:2: agents.x.like";
        assert_eq!(like, format!("{place}: must be one of {known}, got \"cloude\""));
        assert!(parse(&format!("{SMALL}said = []\nusage = []\n")).is_ok());
        let much = "y".repeat(super::LARGEST_TABLE);
        let said = parse(&format!("{SMALL}login = \"{much}\"\n")).unwrap_err();
        assert!(said.starts_with("config.toml:1: agents.x: a table of"), "{said}");
    }
}
