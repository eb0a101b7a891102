//! A run's events as lines for a person who watches. Kinds that are not known here are passed over.

use std::collections::BTreeMap;

use jiff::Timestamp;
use outlast_client::journal::Event;
use outlast_wire::api::RunView;
use outlast_wire::words::{StateName, WaitWord};
use outlast_workflow::duration::short;
use serde_json::Value;

use crate::output::state::spaced;
use crate::output::{self, figures, waiting};

/// In characters: a summary may be pages.
const LONGEST: usize = 300;

/// True if only a run of more than one turn has such an event.
pub(super) fn is_of_a_loop(event: &Event) -> bool {
    match event.kind.as_str() {
        "TurnStarted" => event.number("turn").is_some_and(|turn| turn > 1),
        "TurnCommitted" => event.text("status") == Some("continue"),
        _ => false,
    }
}

/// True of what is also told of a single command: that it waits, and why.
pub(super) fn is_of_a_wait(event: &Event) -> bool {
    event.kind == "StateChanged" && event.text("to") == Some(StateName::Waiting.word())
}

/// The same line without the turn, of which a single command has one.
pub(super) fn without_turn(line: &str) -> &str {
    line.strip_prefix("turn 1 ").unwrap_or(line)
}

/// Where a run stands that was there before us.
pub(super) fn standing(view: &RunView, now: Timestamp) -> String {
    let checkpoint = view.checkpoint.as_deref().unwrap_or("none yet");
    let at = match view.state == StateName::Waiting {
        // The phase of a run that waits is the word of the mechanism, such as `timer` for a budget.
        true => waiting::why(view, now).or_else(|| view.reason.clone()),
        false => view.phase.as_deref().map(spaced),
    };
    let at = at.unwrap_or_else(|| format!("turn {}", view.turn));
    format!("{}: {}; last checkpoint: {checkpoint}", view.state, output::printable(&at))
}

/// Remembers what the next event is the end of.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    /// The last attempt, while nothing has been told about its end.
    ended: Option<Ended>,
    /// What a command of the host is for, by its number.
    errands: BTreeMap<u64, String>,
}

#[derive(Debug)]
struct Ended {
    /// `turn 2 attempt 1`
    place: String,
    /// `None` if it exited well, which is not the end of its turn yet.
    how: Option<String>,
}

impl Ended {
    fn badly(self) -> Option<String> {
        Some(format!("{} {}", self.place, self.how?))
    }
}

impl Teller {
    pub(crate) fn tell(&mut self, event: &Event) -> Vec<String> {
        let line = match event.kind.as_str() {
            "TurnStarted" => return self.started(event),
            "AttemptEnded" => {
                self.ended = Some(ended(event));
                None
            }
            "TurnCommitted" => {
                self.ended = None;
                Some(committed(event))
            }
            "StateChanged" => return self.changed(event),
            "ErrandStarted" => {
                self.errands.insert(event.number("errand").unwrap_or(0), errand(event));
                None
            }
            "ErrandEnded" => self.errand_ended(event),
            "MessageReceived" => Some("message received".to_owned()),
            "StopRequested" => Some("stop requested".to_owned()),
            "LimitReached" => Some(format!("limit reached: {}", words(event, "limit"))),
            "LimitNeared" => Some(format!("near its limit: {}", words(event, "limit"))),
            "AttemptOrphaned" => Some(format!("{} is orphaned", place(event))),
            _ => None,
        };
        line.map(|line| clip(&line)).into_iter().collect()
    }

    fn started(&mut self, event: &Event) -> Vec<String> {
        let untold = self.ended.take().and_then(Ended::badly);
        let started = match event.number("attempt") {
            Some(2..) => format!("{} started", place(event)),
            _ => format!("turn {} started", event.number("turn").unwrap_or(0)),
        };
        untold.into_iter().chain([started]).collect()
    }

    fn changed(&mut self, event: &Event) -> Vec<String> {
        let to = event.text("to").and_then(StateName::of);
        let cause = event.text("cause");
        match (to, cause.and_then(WaitWord::of)) {
            (Some(StateName::Waiting), Some(WaitWord::Backoff)) => {
                let how = match self.ended.take() {
                    Some(Ended { place, how: Some(how) }) => format!("{place} {how}"),
                    Some(Ended { place, how: None }) => {
                        format!("{place}: {}", words(event, "reason"))
                    }
                    None => words(event, "reason"),
                };
                vec![clip(&format!("{how}, retry {}", delay(event)))]
            }
            // `run` has told of a run that waits from the beginning.
            (Some(StateName::Waiting), _) if event.seq <= 2 && is_for_budget(event) => Vec::new(),
            (Some(StateName::Waiting), _) if is_for_budget(event) => {
                let until = event.text("until").map(|_| format!(", goes on {}", delay(event)));
                let until = until.unwrap_or_default();
                vec![clip(&format!("waiting: {}{until}", words(event, "reason")))]
            }
            (Some(StateName::Waiting), Some(WaitWord::Timer)) => {
                let at = event.text("until").map(|_| format!(" ({})", delay(event)));
                let at = at.unwrap_or_default();
                vec![clip(&format!("waiting: {}{at}", words(event, "reason")))]
            }
            (Some(StateName::Waiting), _) => {
                let cause = cause.map(|cause| format!(" ({})", spaced(cause))).unwrap_or_default();
                vec![clip(&format!("waiting{cause}: {}", words(event, "reason")))]
            }
            (Some(StateName::Verifying), _) => vec!["verifying".to_owned()],
            // Why it rests, or what it ended as, is told at the end.
            (Some(StateName::Blocked | StateName::Finishing), _) => {
                self.ended.take().and_then(Ended::badly).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn errand_ended(&mut self, event: &Event) -> Option<String> {
        let known = self.errands.remove(&event.number("errand").unwrap_or(0));
        let what = known.unwrap_or_else(|| "a command".to_owned());
        let how = match (event.text("outcome"), event.get("code").and_then(Value::as_i64)) {
            (Some("exited"), Some(0)) | (None, _) => return None,
            (Some("exited"), Some(code)) => format!("exit {code}"),
            (Some("signaled"), _) => signal(event),
            (Some(other), _) => spaced(other),
        };
        let tail = event.text("tail").unwrap_or_default().lines();
        let said = tail.map(str::trim).rfind(|line| !line.is_empty());
        let said = said.map(|line| format!(": {line}")).unwrap_or_default();
        Some(format!("{what} failed ({how}){said}"))
    }
}

/// `turn 2 attempt 1`
fn place(event: &Event) -> String {
    let number = |key| event.number(key).unwrap_or(0);
    format!("turn {} attempt {}", number("turn"), number("attempt"))
}

fn ended(event: &Event) -> Ended {
    let place = place(event);
    let how = match event.text("outcome").unwrap_or("lost") {
        "exited" => match event.get("code").and_then(Value::as_i64).unwrap_or(0) {
            0 => return Ended { place, how: None },
            code => format!("exited with code {code}"),
        },
        "signaled" => format!("was killed by {}", signal(event)),
        "never_started" => format!("never started: {}", words(event, "why")),
        "stopped" => "was stopped".to_owned(),
        "interrupted" => "was interrupted".to_owned(),
        "lost" => "was lost".to_owned(),
        other => spaced(other),
    };
    Ended { place, how: Some(how) }
}

fn signal(event: &Event) -> String {
    let number = event.get("signal").and_then(Value::as_i64);
    number
        .and_then(|number| i32::try_from(number).ok())
        .map_or_else(|| "a signal".to_owned(), figures::signal)
}

fn committed(event: &Event) -> String {
    let turn = event.number("turn").unwrap_or(0);
    let nested = || event.get("response")?.get("summary")?.as_str();
    match event.text("summary").or_else(nested).map(str::trim) {
        // What it asks is told at the end.
        _ if event.text("status") == Some("blocked") => format!("turn {turn} blocked"),
        Some(summary) if !summary.is_empty() => format!("turn {turn} committed: {summary}"),
        _ => format!("turn {turn} committed ({})", words(event, "status")),
    }
}

fn is_for_budget(event: &Event) -> bool {
    event.text("reason_code") == Some("budget")
}

/// From the event's own times, so that it is the same whenever it is told.
fn delay(event: &Event) -> String {
    let time = |key| event.text(key)?.parse::<Timestamp>().ok();
    match (time("at"), time("until")) {
        (Some(at), Some(until)) => {
            let ms = until.as_millisecond() - at.as_millisecond();
            format!("in {}", short(u64::try_from(ms).unwrap_or(0)))
        }
        _ => "soon".to_owned(),
    }
}

/// ``check `make test` ``, `hook before_run`, `tool fetch`
fn errand(event: &Event) -> String {
    let field = |key| event.text(key).unwrap_or_default();
    match event.text("purpose") {
        Some("ready" | "done") => format!("check `{}`", field("command")),
        Some("hook") => format!("hook {}", field("hook")),
        Some("tool") => format!("tool {}", field("name")),
        Some(other) => spaced(other),
        None => "a command".to_owned(),
    }
}

fn words(event: &Event, key: &str) -> String {
    spaced(event.text(key).unwrap_or("unknown"))
}

fn clip(line: &str) -> String {
    match line.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(events: &[&str]) -> String {
        let mut teller = Teller::default();
        let lines = events.iter().enumerate().flat_map(|(index, fields)| {
            let json = format!(
                r#"{{"seq":{},"at":"2026-11-15T12:00:00Z","run":"k3m",{fields}}}"#,
                index + 1
            );
            teller.tell(&Event::read(&json).expect("an event"))
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn a_loop_is_told_change_by_change() {
        insta::assert_snapshot!(told(&[
            r#""kind":"RunCreated","spec":{}"#,
            r#""kind":"StateChanged","from":"queued","to":"running","reason":"a slot is free""#,
            r#""kind":"TurnStarted","turn":1,"attempt":1"#,
            r#""kind":"AttemptEnded","turn":1,"attempt":1,"outcome":"exited","code":0"#,
            r#""kind":"TurnCommitted","turn":1,"attempt":1,"status":"continue","summary":"the parser is there\n""#,
            r#""kind":"TurnStarted","turn":2,"attempt":1"#,
            r#""kind":"AttemptEnded","turn":2,"attempt":1,"outcome":"stalled","exit":null"#,
            r#""kind":"StateChanged","from":"running","to":"waiting","reason":"silent for too long","cause":"backoff","until":"2026-11-15T12:00:10Z""#,
            r#""kind":"TurnStarted","turn":2,"attempt":2"#,
            r#""kind":"AttemptEnded","turn":2,"attempt":2,"outcome":"signaled","signal":9"#,
            r#""kind":"TurnStarted","turn":2,"attempt":3"#,
            r#""kind":"AttemptEnded","turn":2,"attempt":3,"outcome":"exited","code":0"#,
            r#""kind":"TurnCommitted","turn":2,"attempt":3,"status":"done""#,
            r#""kind":"StateChanged","from":"running","to":"verifying","reason":"done is claimed""#,
            r#""kind":"ErrandStarted","errand":4,"purpose":"done","check":0"#,
            r#""kind":"ErrandEnded","errand":4,"outcome":"exited","code":0"#,
            r#""kind":"ErrandStarted","errand":5,"purpose":"done","check":1,"command":"cargo test""#,
            r#""kind":"ErrandEnded","errand":5,"outcome":"exited","code":1,"tail":"running\n3 failed\n""#,
            r#""kind":"ErrandStarted","errand":6,"purpose":"hook","hook":"after_turn""#,
            r#""kind":"ErrandEnded","errand":6,"outcome":"timed_out","exit":null"#,
            r#""kind":"ErrandStarted","errand":7,"purpose":"tool","name":"fetch","call":0,"key":"k""#,
            r#""kind":"ErrandEnded","errand":7,"outcome":"signaled","signal":9"#,
            r#""kind":"MessageReceived","text":"stop that""#,
            r#""kind":"StateChanged","from":"running","to":"waiting","reason":"asked to pause","cause":"paused""#,
            r#""kind":"GhostSeen""#,
            r#""kind":"StateChanged","from":"verifying","to":"blocked","reason":"the checks fail""#,
        ]), @r"
        turn 1 started
        turn 1 committed: the parser is there
        turn 2 started
        turn 2 attempt 1 stalled, retry in 10s
        turn 2 attempt 2 started
        turn 2 attempt 2 was killed by SIGKILL
        turn 2 attempt 3 started
        turn 2 committed (done)
        verifying
        check `cargo test` failed (exit 1): 3 failed
        hook after_turn failed (timed out)
        tool fetch failed (SIGKILL)
        message received
        waiting (paused): asked to pause
        ");
    }

    #[test]
    fn the_last_failure_is_told_before_the_run_rests() {
        insta::assert_snapshot!(told(&[
            r#""kind":"AttemptEnded","turn":4,"attempt":5,"outcome":"timed_out","exit":null"#,
            r#""kind":"TreeEmptied","turn":4,"attempt":5"#,
            r#""kind":"StateChanged","from":"running","to":"finishing","reason":"the turn's time is over""#,
        ]), @"turn 4 attempt 5 timed out");
    }

    #[test]
    fn a_response_that_cannot_be_used_is_why_it_goes_on() {
        insta::assert_snapshot!(told(&[
            r#""kind":"AttemptEnded","turn":4,"attempt":1,"outcome":"exited","code":0"#,
            r#""kind":"StateChanged","from":"running","to":"waiting","reason":"the response is not JSON","reason_code":"bad_response","cause":"backoff""#,
        ]), @"turn 4 attempt 1: the response is not JSON, retry soon");
    }

    #[test]
    fn a_wait_for_another_run_or_a_time_is_not_called_a_timer() {
        insta::assert_snapshot!(told(&[
            r#""kind":"RunCreated","spec":{}"#,
            r#""kind":"StateChanged","from":"queued","to":"waiting","reason":"starts after run a2","reason_code":"after","cause":"timer""#,
            r#""kind":"StateChanged","from":"queued","to":"waiting","reason":"starts at the time it was given","reason_code":"timer","cause":"timer","until":"2026-11-15T13:00:00Z""#,
        ]), @r"
        waiting: starts after run a2
        waiting: starts at the time it was given (in 1h)
        ");
        let mut view = crate::output::sample::running_loop();
        view.state = StateName::Waiting.into();
        view.phase = Some("timer".to_owned());
        view.reason = Some("starts after run a2".to_owned());
        view.checkpoint = Some("created".to_owned());
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        assert_eq!(standing(&view, now), "waiting: starts after run a2; last checkpoint: created");
    }

    #[test]
    fn one_turn_makes_no_loop() {
        let is = |fields: &str| {
            is_of_a_loop(&Event::read(&format!(r#"{{"seq":1,{fields}}}"#)).expect("an event"))
        };
        assert!(!is(r#""kind":"TurnStarted","turn":1,"attempt":3"#));
        assert!(!is(r#""kind":"TurnCommitted","turn":1,"status":"done""#));
        assert!(is(r#""kind":"TurnCommitted","turn":1,"status":"continue""#));
        assert!(is(r#""kind":"TurnStarted","turn":2,"attempt":1"#));
    }
}
