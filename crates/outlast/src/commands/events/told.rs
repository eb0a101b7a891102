//! Events as a person wants to read them: `06:17:09  turn 1 committed: one line more ($0.0021, 2s)`.
//!
//! What only the engine cares about is left out; `outlast events -v` has all of it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_client::journal::Event;
use outlast_wire::api::ByView;
use outlast_wire::words::{Health, StateName, Word};
use outlast_workflow::duration::short;
use serde_json::{Map, Value};

use crate::money::Micros;
use crate::output::state::spaced;
use crate::output::{figures, one_line};
use crate::progress::news::Teller;
use crate::turns::Turns;

pub(super) struct Told {
    now: Timestamp,
    zone: TimeZone,
    /// What has been told of each run, by its id.
    runs: BTreeMap<String, Run>,
}

#[derive(Default)]
struct Run {
    teller: Teller,
    turns: Turns,
    /// As far as its events have said.
    limits: Map<String, Value>,
}

impl Told {
    pub(super) fn new(now: Timestamp, zone: TimeZone) -> Self {
        Self { now, zone, runs: BTreeMap::new() }
    }

    /// A line for each thing that the event says, each with its time; none if it says nothing to a person.
    pub(super) fn lines(&mut self, event: &Event) -> Vec<String> {
        let at = self.time(event);
        self.sentences(event).iter().map(|line| format!("{at}  {line}")).collect()
    }

    /// The same without the time.
    pub(super) fn sentences(&mut self, event: &Event) -> Vec<String> {
        let run = self.runs.entry(event.text("run").unwrap_or_default().to_owned()).or_default();
        run.turns.take(event);
        let mut lines = run.teller.tell(event);
        if event.kind == "TurnCommitted"
            && let Some(line) = lines.last_mut()
        {
            line.push_str(&cost(&run.turns, event));
        }
        if lines.is_empty() {
            lines.extend(sentence(event));
        }
        if let Some(changes) = run.take_limits(event)
            && let Some(line) = lines.last_mut()
        {
            line.push_str(&changes);
        }
        // An exhausted run can be raised, and then its limits are compared.
        let state = Word::<StateName>::of(event.text("state").unwrap_or_default());
        if event.kind == "RunEnded" && state != StateName::Exhausted {
            self.runs.remove(event.text("run").unwrap_or_default());
        }
        lines
    }

    /// By this machine's clock; with the date unless it is today.
    fn time(&self, event: &Event) -> String {
        let Some(at) = event.text("at").and_then(|at| at.parse::<Timestamp>().ok()) else {
            return "-".to_owned();
        };
        let at = at.to_zoned(self.zone.clone());
        let is_today = at.date() == self.now.to_zoned(self.zone.clone()).date();
        at.strftime(if is_today { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" }).to_string()
    }
}

impl Run {
    /// `: max turns 2 → 12`, if the event changes limits that were known before.
    fn take_limits(&mut self, event: &Event) -> Option<String> {
        let limits = match event.kind.as_str() {
            "RunCreated" => event.get("spec")?.get("limits"),
            "LimitsRaised" => event.get("limits"),
            _ => None,
        }?;
        let now = limits.as_object()?.clone();
        let before = std::mem::replace(&mut self.limits, now);
        let is_known = !before.is_empty();
        let changed = |(name, value): &(&String, &Value)| before.get(*name) != Some(*value);
        let change = |(name, value): (&String, &Value)| {
            let old = before.get(name).unwrap_or(&Value::Null);
            format!("{} {} → {}", limit_name(name), amount(name, old), amount(name, value))
        };
        let changes: Vec<String> = self.limits.iter().filter(changed).map(change).collect();
        (is_known && !changes.is_empty()).then(|| format!(": {}", changes.join(", ")))
    }
}

/// `max turns`, of `max_turns`; without the unit.
fn limit_name(name: &str) -> String {
    spaced(name.trim_end_matches("_ms").trim_end_matches("_usd_micros"))
}

fn amount(name: &str, value: &Value) -> String {
    match value.as_u64() {
        Some(ms) if name.ends_with("_ms") => short(ms),
        Some(micros) if name.ends_with("_usd_micros") => Micros(micros).dollars(),
        Some(number) => number.to_string(),
        None => "no limit".to_owned(),
    }
}

/// ` ($0.0021, 2s)`
fn cost(turns: &Turns, event: &Event) -> String {
    let turn = turns.newest().find(|turn| Some(turn.number) == event.number("turn"));
    let Some(turn) = turn else { return String::new() };
    let marked = turn.spend();
    let spend = match (turn.cost_usd_micros, turn.tokens) {
        _ if marked.is_unreported() => marked.words(),
        (0, 0) => None,
        (0, tokens) => Some(figures::tokens(tokens)),
        (micros, _) => Some(Micros(micros).dollars()),
    };
    let took = turn.ended_at.and_then(|at| turn.took_ms(at)).map(short);
    let parts: Vec<String> = [spend, took].into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
}

/// What is not told to a person who watches, and is worth a line afterwards.
fn sentence(event: &Event) -> Option<String> {
    let text = |key: &str| event.text(key).unwrap_or_default();
    Some(match event.kind.as_str() {
        "RunCreated" => "created".to_owned(),
        "StateChanged" => format!("{}: {}", spaced(text("to")), text("reason")),
        "RunEnded" => match text("state") {
            "" => "ended".to_owned(),
            state => format!("ended: {}", spaced(state)),
        },
        // That a person is needed is said by the question or by the state.
        "HealthDegraded" if is_for_person(text("health")) => return None,
        "HealthRecovered" if is_for_person(text("from")) => return None,
        "HealthDegraded" => format!("{}: {}", spaced(text("health")), text("why")),
        "HealthRecovered" => "healthy again".to_owned(),
        "SnapshotTaken" => {
            let number = |key: &str| event.number(key).unwrap_or(0);
            let (turn, files) = (number("turn"), number("files"));
            let (added, deleted) = (number("added"), number("deleted"));
            let lines = format!("{} +{added} -{deleted}", figures::files(files));
            match (text("cause"), files) {
                ("base", _) => "snapshot before the first turn".to_owned(),
                ("wreck", _) => format!("snapshot of what the failed attempt at turn {turn} left"),
                ("found", _) => format!("snapshot of what changed after turn {turn}: {lines}"),
                (_, 0) => format!("snapshot of turn {turn}: nothing changed"),
                _ => format!("snapshot of turn {turn}: {lines}"),
            }
        }
        "SnapshotFailed" => format!("no snapshot: {}", text("why")),
        "WorkspaceRestored" => {
            let before = event.number("turn").unwrap_or(1).saturating_sub(1);
            let turn = event.number("back_to").unwrap_or(before);
            format!("workspace put back to the end of turn {turn}")
        }
        "RestoreRequested" => {
            let turn = event.number("back_to").unwrap_or(0);
            format!("asked to go back to the end of turn {turn}")
        }
        "Forked" => {
            let turn = event.number("turn").unwrap_or(0);
            format!("forked from run {} at the end of turn {turn}", text("from_run"))
        }
        "Answered" => match (text("decision"), text("text")) {
            (_, said) if !said.is_empty() => format!("answered: {}", one_line(said)),
            ("approve", _) => "approved".to_owned(),
            ("deny", _) => "denied".to_owned(),
            _ => "answered".to_owned(),
        },
        _ => return of_steps(event).or_else(|| of_others(event)),
    })
}

/// Of attempts, workspaces, calls and questions.
fn of_steps(event: &Event) -> Option<String> {
    let text = |key: &str| event.text(key).unwrap_or_default();
    Some(match event.kind.as_str() {
        "AttemptAdopted" => {
            format!("{} kept running, and a new daemon took it over", attempt(event))
        }
        "AttemptOrphaned" => {
            format!("{} lost its shim: its output and exit cannot be seen", attempt(event))
        }
        "StopIncomplete" | "ErrandIncomplete" => {
            format!("not all processes ended: {} left", count(event, "survivors"))
        }
        "ClockSet" => "the clock was set, or the machine restarted".to_owned(),
        "RunRecovered" => "rebuilt from its directory".to_owned(),
        "JournalRestored" => "an older journal was put back".to_owned(),
        "WorkspaceRefused" => format!("workspace refused: {}", text("why")),
        "WorkspaceDiscarded" => "a half-made workspace was removed".to_owned(),
        "WorkspaceRemoved" => "workspace removed".to_owned(),
        "WorkspaceKept" => format!("workspace kept: {}", text("why")),
        "RemovalRequested" => "removal of the workspace asked for".to_owned(),
        "CallAnswered" => "a tool call was answered with the result of an earlier one".to_owned(),
        "Segment" => format!("goes on under build {}", text("to")),
        "TerminalOpened" => {
            format!("a person may type into the terminal of {}{}", attempt(event), by(event))
        }
        "NoteTaken" => match (text("what"), one_line(text("text"))) {
            ("tools_listed", _) => "the agent has listed our tools".to_owned(),
            (what, said) => format!("{}: {said}", spaced(what)),
        },
        "CallBegun" => format!("call {} begun", text("key")),
        "CallEnded" => match text("why") {
            "" => format!("call {} ended", text("key")),
            why if event.get("exit").is_some() => format!("call {} ended: {why}", text("key")),
            why => format!("call {} was not made: {why}", text("key")),
        },
        "CallResolved" => format!("a person said what became of call {}", text("key")),
        "EmissionDenied" => "the notice of this turn was denied".to_owned(),
        "QuestionAsked" => match text("tool") {
            "" => format!("asks: {}", one_line(text("text"))),
            tool => format!("asks to use {tool}: {}", one_line(text("text"))),
        },
        "QuestionWithdrawn" => "the question was withdrawn".to_owned(),
        "MessagesGiven" => format!("{} read by the agent", messages(event)),
        _ => return None,
    })
}

/// Of orders, limits, other runs and output; of a newer daemon's events, their fields.
fn of_others(event: &Event) -> Option<String> {
    let text = |key: &str| event.text(key).unwrap_or_default();
    Some(match event.kind.as_str() {
        "PauseRequested" => "pause asked for".to_owned(),
        "ResumeRequested" => "resume asked for".to_owned(),
        "StopRequested" => "stop asked for".to_owned(),
        "LimitReached" => format!("limit reached: {}", limit(event)),
        "LimitNeared" => format!("most of a limit is used: {}", limit(event)),
        "LimitsRaised" => "limits raised".to_owned(),
        "PredecessorEnded" => format!("run {} ended: {}", text("run"), text("state")),
        "ChildSpawned" => format!("started child {}", text("child")),
        "ChildSettled" => format!("child {} ended: {}", text("child"), spaced(text("state"))),
        "OutputMatched" => format!("output matched a watch: {}", count(event, "lines")),
        "WatchDisabled" => format!("a watch was switched off: {}", text("why")),
        // Parts of what the lines around them say.
        "AttemptStarted" | "AttemptEnded" | "TreeEmptied" | "ErrandStarted" | "ErrandEnded"
        | "ErrandEmptied" | "ToolsOffered" | "HeartbeatTold" | "WorkspacePrepared"
        | "UsageReported" | "Emitted" | "TurnStarted" | "TurnCommitted" | "MessageReceived" => {
            return None;
        }
        // Of a newer daemon.
        _ => {
            let rest = super::fields(event);
            format!("{}{}{rest}", event.kind, if rest.is_empty() { "" } else { " " })
        }
    })
}

fn is_for_person(health: &str) -> bool {
    Word::<Health>::of(health) == Health::WaitingHuman
}

/// `turn 2 attempt 1`
/// Who did it, as far as the daemon could tell.
fn by(event: &Event) -> String {
    let by: Option<ByView> = event.get("by").and_then(|by| serde_json::from_value(by.clone()).ok());
    by.map_or_else(String::new, |by| format!(", by {by}"))
}

fn attempt(event: &Event) -> String {
    let number = |key| event.number(key).unwrap_or_default();
    format!("turn {} attempt {}", number("turn"), number("attempt"))
}

/// The name of a limit, as the loop file has it; of a budget its name.
fn limit(event: &Event) -> String {
    match event.text("budget") {
        Some(budget) => format!("budget {budget}"),
        None => limit_name(event.text("limit").unwrap_or_default()),
    }
}

/// How many are in a list of the event: `3 lines`.
fn count(event: &Event, key: &str) -> String {
    let many = list(event, key);
    figures::count(many, key.trim_end_matches('s'))
}

fn messages(event: &Event) -> String {
    figures::count(list(event, "messages"), "message")
}

fn list(event: &Event, key: &str) -> usize {
    let json: serde_json::Value = serde_json::from_str(&event.json).unwrap_or_default();
    json[key].as_array().map_or(0, Vec::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that a new daemon took over was told as `AttemptAdopted epoch=…`.
    #[test]
    fn no_event_of_this_build_is_told_by_its_fields() {
        let mut told = Told::new("2026-11-15T12:00:00Z".parse().expect("a time"), TimeZone::UTC);
        let mut raw = Vec::new();
        for kind in outlast_engine_kinds() {
            let json = format!(
                r#"{{"seq":1,"at":"2026-11-15T06:17:00Z","run":"k3m","kind":"{kind}","turn":2,"attempt":1,"why":"w","text":"t"}}"#
            );
            let lines = told.lines(&Event::read(&json).expect("an event"));
            raw.extend(lines.into_iter().filter(|line| line.contains(kind)));
        }
        assert_eq!(raw, Vec::<String>::new());
    }

    /// The kinds of events, as the journal of this build writes them.
    fn outlast_engine_kinds() -> Vec<&'static str> {
        let source = include_str!("../../../../engine/src/event.rs");
        let kinds = source.split("pub fn kind(&self)").nth(1).expect("it is there");
        let kinds = kinds.split("\n    }\n").next().expect("it ends");
        let kinds: Vec<&str> = kinds.split('"').skip(1).step_by(2).collect();
        assert!(kinds.len() > 30, "{kinds:?}");
        kinds
    }

    #[test]
    fn the_story_of_a_loop_is_read_line_by_line() {
        let mut told = Told::new("2026-11-15T12:00:00Z".parse().expect("a time"), TimeZone::UTC);
        let (mut text, mut raised) = (String::new(), Vec::new());
        for (index, fields) in [
            r#""kind":"RunCreated","spec":{}"#,
            r#""kind":"StateChanged","from":"queued","to":"running","reason":"a slot is free""#,
            r#""kind":"TurnStarted","turn":1,"attempt":1,"boot":"b3dd88bf""#,
            r#""kind":"AttemptStarted","turn":1,"attempt":1,"pid":23951"#,
            r#""kind":"AttemptEnded","turn":1,"attempt":1,"outcome":"exited","code":0,"charge":{"input_tokens":5,"output_tokens":1,"cost_usd_micros":2100}"#,
            r#""kind":"TurnCommitted","turn":1,"attempt":1,"status":"continue","summary":"one line more""#,
            r#""kind":"TurnStarted","turn":2,"attempt":1"#,
            r#""kind":"AttemptEnded","turn":2,"attempt":1,"outcome":"exited","code":0,"charge":{"input_tokens":0,"output_tokens":0,"cost_usd_micros":250000,"known":false,"reserved":{"tokens":0,"cost_usd_micros":250000}}"#,
            r#""kind":"TurnCommitted","turn":2,"attempt":1,"status":"continue","summary":"and another""#,
            r#""kind":"HealthDegraded","health":"silent","why":"no output for 5 minutes""#,
            r#""kind":"GhostSeen","number":3"#,
            r#""kind":"RunEnded","state":"completed""#,
        ]
        .iter()
        .enumerate()
        {
            let json = format!(
                r#"{{"seq":{0},"at":"2026-11-15T06:17:{0:02}Z","run":"k3m",{fields}}}"#,
                index + 1
            );
            for line in told.lines(&Event::read(&json).expect("an event")) {
                text.push_str(&format!("{line}\n"));
            }
        }
        insta::assert_snapshot!(text, @r"
        06:17:01  created
        06:17:02  running: a slot is free
        06:17:03  turn 1 started
        06:17:06  turn 1 committed: one line more ($0.0021, 2s)
        06:17:07  turn 2 started
        06:17:09  turn 2 committed: and another (≤ $0.25, not reported, 1s)
        06:17:10  silent: no output for 5 minutes
        06:17:11  GhostSeen number=3
        06:17:12  ended: completed
        ");
        for fields in [
            r#""kind":"RunCreated","spec":{"limits":{"max_turns":2,"run_timeout_ms":null,"max_cost_usd_micros":3000000}}"#,
            r#""kind":"RunEnded","state":"exhausted""#,
            r#""kind":"LimitsRaised","limits":{"max_turns":12,"run_timeout_ms":3600000,"max_cost_usd_micros":3000000}"#,
            r#""kind":"LimitsRaised","limits":{"max_turns":12,"run_timeout_ms":3600000,"max_cost_usd_micros":4500000}"#,
        ] {
            let json = format!(r#"{{"seq":1,"at":"2026-11-15T06:17:00Z","run":"k5m",{fields}}}"#);
            text = told.lines(&Event::read(&json).expect("an event")).join("\n");
            raised.push(text);
        }
        assert_eq!(
            raised[2..],
            [
                "06:17:00  limits raised: max turns 2 → 12, run timeout no limit → 1h",
                "06:17:00  limits raised: max cost $3.00 → $4.50"
            ]
        );
        let yesterday = r#"{"seq":1,"at":"2026-11-14T06:17:00Z","run":"k4m","kind":"RunCreated"}"#;
        let lines = told.lines(&Event::read(yesterday).expect("an event"));
        assert_eq!(lines, ["2026-11-14 06:17:00  created"]);
    }
}
