//! Any agent that takes a prompt, prints lines of JSON and exits, by a table that an operator writes. A table that is
//! `like` a built-in agent has the adapter of that agent instead.
//!
//! One process a turn, and one direction: it cannot be steered, asks nothing, and is cancelled by its end. So what it may
//! do is what the table's command lets it do. `allow_args` are for runs that allow everything; the command without them
//! is to be one that neither writes nor runs unasked.
//!
//! The turn is over at a line that the table's `result` recognises, once the table's `background` finds no work. The end of
//! the output before that is an interruption. Whether spend is of a message, of the process or of the conversation is
//! said by the table, because no line says it.

mod find;
mod ledger;
mod table;

use serde_json::Value;

use self::find::{Paths, find};
use self::ledger::Ledger;
pub use self::table::{Declared, Unusable};
use self::table::{Prompt, Retry, ToolEnded, ToolStarted, TroubleLine, Unit};
use super::event::{End, Event, Spent, Trouble, TroubleKind};
use super::json::{brief, object};
use super::{Act, Adapter, ApprovalMode, Decision, Heard, Launch, Transport, Turn};

const MOST_ABOUT: usize = 200;

/// How many bytes of pieces are kept.
const MOST_SAID: usize = 1 << 20;

impl Declared {
    pub fn adapter(&self, turn: Turn) -> Result<Box<dyn Adapter>, Unusable> {
        self.check()?;
        let command = self.command_of(&turn);
        let turn = Turn { command, ..turn };
        if let Some(base) = self.base()? {
            return Ok(base.adapter(turn));
        }
        self.check_turn(&turn)?;
        Ok(Box::new(Lines::new(self.clone(), self.resumable(turn))))
    }

    /// A table that does not say how to resume begins a conversation in each attempt.
    fn resumable(&self, turn: Turn) -> Turn {
        if self.resume.is_empty() {
            return Turn { session: None, spent_before: None, ..turn };
        }
        turn
    }
}

struct Lines {
    table: Declared,
    ledger: Ledger,
    turn: Turn,
    session: Option<String>,
    model: Option<String>,
    /// What was told last.
    spent: Spent,
    /// The pieces of what is being said.
    pieces: String,
    /// What was said last.
    said: String,
    /// The trouble of a line before the last.
    noticed: Option<Trouble>,
    background: u32,
    retries: u32,
    is_over: bool,
    not_understood: u64,
}

impl Lines {
    fn new(table: Declared, turn: Turn) -> Self {
        Self {
            ledger: Ledger::new(&turn),
            table,
            turn,
            session: None,
            model: None,
            spent: Spent::default(),
            pieces: String::new(),
            said: String::new(),
            noticed: None,
            background: 0,
            retries: 0,
            is_over: false,
            not_understood: 0,
        }
    }

    fn line(&mut self, bytes: &[u8]) -> Vec<Act> {
        let Some(line) = object(bytes) else { return self.not_understood() };
        let mut acts = self.names(&line);
        let is_named = !acts.is_empty();
        if !self.table.said.iter().any(|it| it.pieces && it.when.fits(&line)) {
            acts.extend(self.whole());
        }
        // Each that knows the line says so.
        let known = [
            self.say(&line),
            self.tools(&line),
            self.count(&line),
            self.work(&line),
            self.trouble(&line),
            self.end(&line),
        ];
        // A line that first names the conversation or the model has said that.
        let is_known = is_named
            || known.iter().any(Option::is_some)
            || self.table.ignore.iter().any(|when| when.fits(&line));
        acts.extend(known.into_iter().flatten().flatten());
        if !is_known {
            acts.extend(self.not_understood());
        }
        acts
    }

    fn not_understood(&mut self) -> Vec<Act> {
        self.not_understood += 1;
        vec![Act::Tell(Event::NotUnderstood { lines: self.not_understood })]
    }

    fn names(&mut self, line: &Value) -> Vec<Act> {
        let mut acts = Vec::new();
        // It becomes an argument, and must not be a flag.
        let id = self.table.session.text(line).filter(|id| !id.starts_with('-'));
        if let Some(id) = id.filter(|id| self.session.as_ref() != Some(id)) {
            self.session = Some(id.clone());
            acts.push(Act::Tell(Event::Session { id }));
        }
        if let Some(name) = self.table.model.text(line).filter(|it| self.model.as_ref() != Some(it))
        {
            self.model = Some(name.clone());
            acts.push(Act::Tell(Event::Model { name }));
        }
        acts
    }

    fn say(&mut self, line: &Value) -> Option<Vec<Act>> {
        let rule = self.table.said.iter().find(|it| it.when.fits(line))?;
        let texts = rule.text.all(line).into_iter().filter_map(Value::as_str);
        if rule.pieces {
            let left = MOST_SAID.saturating_sub(self.pieces.len());
            self.pieces.extend(texts.filter(|text| text.len() <= left));
            return Some(Vec::new());
        }
        let texts: Vec<String> = texts.map(str::to_owned).collect();
        if let Some(last) = texts.last() {
            self.said.clone_from(last);
        }
        Some(texts.into_iter().map(|text| Act::Tell(Event::Said { text })).collect())
    }

    /// What was said in pieces, whole. A line that is no piece ends it.
    fn whole(&mut self) -> Option<Act> {
        let text = Some(std::mem::take(&mut self.pieces)).filter(|text| !text.is_empty())?;
        self.said.clone_from(&text);
        Some(Act::Tell(Event::Said { text }))
    }

    fn tools(&self, line: &Value) -> Option<Vec<Act>> {
        let started = self.table.tool_started.iter().filter(|it| it.when.fits(line));
        let ended = self.table.tool_ended.iter().filter(|it| it.when.fits(line));
        let is_known = started.clone().next().is_some() || ended.clone().next().is_some();
        let started = started.flat_map(|rule| started_by(rule, line));
        let acts = started.chain(ended.flat_map(|rule| ended_by(rule, line)));
        is_known.then(|| acts.map(Act::Tell).collect())
    }

    fn count(&mut self, line: &Value) -> Option<Vec<Act>> {
        let rules = self.table.usage.iter().enumerate().filter(|(_, it)| it.when.fits(line));
        let mut is_known = false;
        for (at, usage) in rules {
            self.ledger.count(at, usage, line);
            is_known = true;
        }
        let is_last = self.background == 0 && self.is_result(line);
        // What failed may have used up more than it says.
        let is_all = is_last && !self.is_failure(line);
        (is_known || is_last).then(|| self.spent(is_all).into_iter().collect())
    }

    fn spent(&mut self, is_all: bool) -> Option<Act> {
        let spent = self.ledger.total(&self.table.usage, is_all);
        let is_something = Spent { is_floor: false, ..spent } != Spent::default();
        let is_new = is_something && spent != self.spent;
        self.spent = spent;
        is_new.then_some(Act::Tell(Event::Spent(spent)))
    }

    fn work(&mut self, line: &Value) -> Option<Vec<Act>> {
        let rule = self.table.background.as_ref().filter(|it| it.when.fits(line))?;
        self.background = u32::try_from(rule.each.all(line).len()).unwrap_or(u32::MAX);
        Some(vec![Act::Tell(Event::Background { live: self.background })])
    }

    fn trouble(&mut self, line: &Value) -> Option<Vec<Act>> {
        if self.is_result(line) {
            return None;
        }
        let trouble = self.table.trouble.iter().find(|it| it.when.fits(line));
        let trouble = trouble.map(|rule| trouble_of(rule, line));
        if let Some(rule) = self.table.retry.iter().find(|it| it.when.fits(line)) {
            self.retries = self.retries.saturating_add(1);
            return Some(vec![Act::Tell(retries(rule, line, self.retries, trouble))]);
        }
        let trouble = trouble?;
        self.noticed = Some(trouble.clone());
        let is_window = is_limit(&trouble);
        Some(is_window.then_some(Act::Tell(Event::Window { trouble })).into_iter().collect())
    }

    fn is_result(&self, line: &Value) -> bool {
        self.table.result.completed.iter().any(|when| when.fits(line)) || self.is_failure(line)
    }

    fn is_failure(&self, line: &Value) -> bool {
        self.table.result.failed.iter().any(|when| when.fits(line))
    }

    fn end(&mut self, line: &Value) -> Option<Vec<Act>> {
        if !self.is_result(line) {
            return None;
        }
        // With work in the background it is not the last.
        if self.background > 0 {
            return Some(Vec::new());
        }
        self.is_over = true;
        let end = match self.is_failure(line) {
            true => End::Failed { trouble: self.failure(line) },
            false => {
                let text = self.table.result.text.text(line);
                End::Completed { text: text.unwrap_or_else(|| std::mem::take(&mut self.said)) }
            }
        };
        Some(vec![Act::Tell(Event::Ended(end))])
    }

    fn failure(&self, line: &Value) -> Trouble {
        let rule = self.table.trouble.iter().find(|it| it.when.fits(line));
        let last = rule.map(|rule| trouble_of(rule, line));
        let words = self.table.result.error.text(line);
        let trouble = match (last, self.noticed.clone()) {
            // The line before knows which limit it is, and when it ends.
            (Some(last), Some(noticed)) if is_limit(&last) && is_limit(&noticed) => noticed,
            (Some(last), _) => last,
            (None, Some(noticed)) => noticed,
            (None, None) => Trouble::new(TroubleKind::Other, ""),
        };
        match words {
            Some(words) => Trouble { text: brief(&words, 2000), ..trouble },
            None => trouble,
        }
    }
}

impl Adapter for Lines {
    fn launch(&self) -> Launch {
        let (table, turn) = (&self.table, &self.turn);
        let mut argv = turn.command.clone();
        let mut flag = |name: &Option<String>, value: &Option<String>| {
            argv.extend(name.iter().zip(value).flat_map(|(name, it)| [name.clone(), it.clone()]));
        };
        flag(&table.model_flag, &turn.model);
        flag(&table.effort_flag, &turn.effort);
        flag(&table.permission_flag, &turn.permission_mode);
        if turn.approvals.mode == ApprovalMode::Allow {
            argv.extend_from_slice(&table.allow_args);
        }
        if let Some(session) = &turn.session {
            argv.extend(table.resume.iter().map(|arg| arg.replace("{session}", session)));
        }
        argv.extend_from_slice(&turn.args);
        argv.extend(table.prompt_flag.clone());
        match table.prompt {
            Prompt::Stdin => {}
            Prompt::Arg => argv.push(turn.prompt.clone()),
            Prompt::File => argv.extend(turn.prompt_file.clone()),
        }
        Launch { argv, env: Vec::new(), transport: Transport::Lines, ..Launch::default() }
    }

    fn begin(&mut self) -> Vec<Act> {
        let prompt = Act::Send(self.turn.prompt.clone().into_bytes());
        let is_sent = self.table.prompt == Prompt::Stdin;
        is_sent.then_some(prompt).into_iter().chain([Act::CloseInput]).collect()
    }

    fn hear(&mut self, heard: Heard<'_>) -> Vec<Act> {
        match heard {
            _ if self.is_over => Vec::new(),
            Heard::Line(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => Vec::new(),
            Heard::Line(bytes) => self.line(bytes),
            Heard::End => {
                self.is_over = true;
                let end = Act::Tell(Event::Ended(End::Interrupted));
                self.whole().into_iter().chain([end]).collect()
            }
            Heard::Answer { .. } | Heard::Pushed(_) => Vec::new(),
        }
    }

    fn hear_stderr(&mut self, line: &[u8]) -> Vec<Act> {
        let words = String::from_utf8_lossy(line);
        let is_unknown = self.table.cannot_resume.iter().any(|part| words.contains(part));
        if self.is_over || self.turn.session.is_none() || !is_unknown {
            return Vec::new();
        }
        self.is_over = true;
        let trouble = Trouble::new(TroubleKind::CannotResume, brief(&words, 2000));
        vec![Act::Tell(Event::Ended(End::Failed { trouble }))]
    }

    fn decide(&mut self, _question: &str, _decision: &Decision) -> Vec<Act> {
        Vec::new()
    }
}

fn parts<'v>(line: &'v Value, each: Option<&String>) -> Vec<&'v Value> {
    each.map_or_else(|| vec![line], |path| find(line, path))
}

fn started_by(rule: &ToolStarted, line: &Value) -> Vec<Event> {
    let parts = parts(line, rule.each.as_ref()).into_iter().filter(|part| rule.is.fits(part));
    let started = |part: &Value| {
        let about = rule.about.all(part).first().map(|it| words(it)).unwrap_or_default();
        let (id, name) = (rule.id.text(part)?, rule.name.text(part)?);
        Some(Event::ToolStarted { id, name, about: brief(&about, MOST_ABOUT) })
    };
    parts.filter_map(started).collect()
}

fn ended_by(rule: &ToolEnded, line: &Value) -> Vec<Event> {
    let parts = parts(line, rule.each.as_ref()).into_iter().filter(|part| rule.is.fits(part));
    let ended = |part: &Value| {
        let is_error = !rule.failed.is_empty() && rule.failed.fits(part);
        Some(Event::ToolEnded { id: rule.id.text(part)?, is_error })
    };
    parts.filter_map(ended).collect()
}

fn words(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn is_limit(trouble: &Trouble) -> bool {
    matches!(trouble.kind, TroubleKind::Quota | TroubleKind::Throttle)
}

fn trouble_of(rule: &TroubleLine, line: &Value) -> Trouble {
    let until_ms = rule.until.all(line).into_iter().filter_map(|it| instant(it, rule.unit)).max();
    let text = rule.text.text(line).unwrap_or_default();
    Trouble { kind: rule.kind, until_ms, text: brief(&text, 2000) }
}

fn instant(value: &Value, unit: Unit) -> Option<u64> {
    match unit {
        Unit::S => value.as_u64().map(|seconds| seconds.saturating_mul(1000)),
        Unit::Ms => value.as_u64(),
        Unit::Rfc3339 => {
            let timestamp: jiff::Timestamp = value.as_str()?.parse().ok()?;
            u64::try_from(timestamp.as_millisecond()).ok()
        }
    }
}

fn retries(rule: &Retry, line: &Value, counted: u32, trouble: Option<Trouble>) -> Event {
    let number = |paths: &Paths| paths.all(line).into_iter().find_map(Value::as_u64);
    let small = |paths: &Paths| number(paths).and_then(|it| u32::try_from(it).ok());
    let mut trouble = trouble.unwrap_or_else(|| Trouble::new(TroubleKind::Other, ""));
    if let Some(words) = rule.text.text(line) {
        trouble.text = brief(&words, 2000);
    }
    Event::Retries {
        attempt: small(&rule.attempt).unwrap_or(counted),
        most: small(&rule.most),
        delay_ms: number(&rule.delay_ms),
        trouble,
    }
}
