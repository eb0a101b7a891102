//! What an attempt is asked: `request.json` for machines and `prompt.md` for models, both made from the
//! journal alone, so that every daemon would ask the same.

mod note;
mod prompt;

use outlast_engine::{CallOutcome, CallResult, Previous, Run, Time, unavailable};
use serde_json::{Value, json};

pub(crate) use note::Note;
pub(crate) use prompt::Unrenderable;

/// What is written beside an attempt before it starts.
pub(crate) struct Request {
    pub(crate) prompt: String,
    pub(crate) json: Vec<u8>,
}

/// The request for the current attempt of `run`; `told` is what the trigger that made it has to say.
pub(crate) fn of(run: &Run, told: Option<&Value>, now: Time) -> Result<Request, Unrenderable> {
    let note = note::of(run);
    let left = Left::of(run, now);
    let prompt = prompt::render(run, note.as_ref(), &left, &item(told))?;
    let attempt = run.attempt.as_ref();
    let mut request = json!({
        "schema": "outlast/request@1",
        "run": run.id.0,
        "name": run.spec.name,
        "turn": attempt.map_or(0, |it| it.turn),
        "attempt": attempt.map_or(0, |it| it.number),
        "task": run.task,
        "prompt": prompt,
        "workspace": run.spec.dir,
        "note": note.as_ref().map(|note| note.json(run)),
        "messages": run.given().map(message).collect::<Vec<_>>(),
        "previous": run.previous.as_ref().map(previous),
        "limits_left": left.json(),
        "tools": tools(run),
    });
    if let Some(told) = told {
        request["trigger"] = told.clone();
    }
    let json = serde_json::to_vec_pretty(&request).expect("a request is plain data");
    Ok(Request { prompt, json })
}

/// Says what is wrong with a run's prompt before the run is made.
pub(crate) fn try_out(run: &Run, told: Option<&Value>, now: Time) -> Result<(), Unrenderable> {
    prompt::try_out(run, &Left::of(run, now), &item(told))
}

/// What the run was made of.
fn item(told: Option<&Value>) -> Value {
    told.map_or(Value::Null, |told| told["item"].clone())
}

fn message(message: &outlast_engine::Message) -> Value {
    json!({
        "id": message.id,
        "from": message.from,
        "text": message.text,
        "at": crate::view::rfc3339(message.at),
    })
}

fn previous(previous: &Previous) -> Value {
    let check = |it: &outlast_engine::FailedCheck| json!({ "command": it.command, "why": it.why, "output": it.output });
    json!({
        "turn": previous.turn,
        "status": previous.status.word(),
        "summary": previous.summary,
        "tool_results": previous.results.iter().flatten().map(result).collect::<Vec<_>>(),
        "failed_checks": previous.failed_checks.iter().map(check).collect::<Vec<_>>(),
    })
}

fn result(result: &CallResult) -> Value {
    let (status, why) = status(&result.outcome);
    let mut value = json!({
        "name": result.name,
        "key": result.key,
        "status": status,
        "output": result.output,
    });
    if let Some(why) = why {
        value["why"] = why.into();
    }
    if let CallOutcome::Refused { reason_code, .. } = &result.outcome {
        value["reason_code"] = reason_code.clone().into();
    }
    value
}

fn status(outcome: &CallOutcome) -> (&'static str, Option<String>) {
    match outcome {
        CallOutcome::Ok => ("ok", None),
        CallOutcome::Failed { why } => ("failed", Some(why.clone())),
        CallOutcome::Unknown => {
            ("unknown", Some("nobody saw how it ended; check before you repeat it".to_owned()))
        }
        CallOutcome::Refused { why, .. } => ("refused", Some(why.clone())),
    }
}

fn tools(run: &Run) -> Vec<Value> {
    let offered = |tool: &&outlast_engine::Tool| unavailable(tool, run.spec.model_class).is_none();
    let schema = |text: &String| serde_json::from_str(text).unwrap_or(Value::Null);
    let tool = |tool: &outlast_engine::Tool| {
        json!({
            "name": tool.name,
            "input_schema": tool.input_schema.as_ref().map(schema),
            "class": tool.class,
            "cost": tool.cost,
        })
    };
    run.spec.tools.iter().filter(offered).map(tool).collect()
}

/// What is left of each ceiling that there is.
pub(crate) struct Left {
    turns: Option<u64>,
    attempts: u64,
    run_ms: Option<u64>,
    tokens: Option<u64>,
    cost_usd_micros: Option<u64>,
}

impl Left {
    fn of(run: &Run, now: Time) -> Self {
        let limits = &run.spec.limits;
        let less = |most: Option<u64>, used: u64| most.map(|most| most.saturating_sub(used));
        let turns = limits.max_turns.map(u64::from);
        let attempts = run.spec.retry.max_attempts.saturating_sub(run.counters.attempts);
        Self {
            turns: less(turns, u64::from(run.turns_committed)),
            attempts: u64::from(attempts),
            run_ms: less(limits.run_timeout_ms, run.clock.used_ms(now)),
            tokens: less(limits.max_tokens, run.spend.tokens()),
            cost_usd_micros: less(limits.max_cost_usd_micros, run.spend.cost_usd_micros),
        }
    }

    fn json(&self) -> Value {
        let mut left = serde_json::Map::new();
        let numbers = [
            ("turns", self.turns),
            ("attempts", Some(self.attempts)),
            ("run_ms", self.run_ms),
            ("tokens", self.tokens),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                left.insert(name.to_owned(), value.into());
            }
        }
        if let Some(micros) = self.cost_usd_micros {
            left.insert("cost_usd".to_owned(), crate::view::usd(micros).into());
        }
        left.into()
    }
}
