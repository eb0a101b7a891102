//! What an attempt is asked: `request.json` for machines and `prompt.md` for models.
//!
//! Both are made from the journal, and for a driven agent from the conversation that it goes on with, so every daemon would
//! ask the same. Each kind of text has a budget of bytes:
//! what does not fit is cut and marked, with the place where the whole text is.

mod calls;
mod cut;
mod note;
mod prompt;

use std::collections::BTreeMap;
use std::path::PathBuf;

use outlast_engine::{CallOutcome, CallResult, Fact, Previous, Run, Time, unavailable};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_store::Journal;
use outlast_workflow::template::LIMIT_ALIASES;
use serde_json::{Value, json};

use crate::conversation::Conversation;
use cut::Keep;

pub(crate) use note::Note;
pub(crate) use prompt::Unrenderable;

/// All messages in a request.
const MOST_OF_MESSAGES: usize = 1 << 20;
/// All outputs of tools in a request.
const MOST_OF_RESULTS: usize = 2 << 20;

/// What is written beside an attempt before it starts.
pub(crate) struct Request {
    pub(crate) prompt: String,
    pub(crate) json: Vec<u8>,
    /// All messages in whole, one JSON object a line, if one of them was cut.
    pub(crate) messages: Option<Vec<u8>>,
    /// The one that the prompt was made for.
    pub(crate) conversation: Conversation,
    /// The prompt for a new conversation, if that one is a copy that cannot be had.
    pub(crate) prompt_afresh: Option<String>,
}

/// What an attempt's request is made of, beside its run.
pub(crate) struct Given<'a> {
    /// What the trigger that made the run has to say.
    pub(crate) told: Option<&'a Value>,
    pub(crate) outputs: &'a Outputs,
    pub(crate) conversation: &'a Conversation,
    pub(crate) places: &'a Places,
    pub(crate) now: Time,
}

/// Where a reader finds in whole what was cut.
pub(crate) struct Places {
    pub(crate) attempt: AttemptDir,
    pub(crate) run: RunDir,
}

impl Places {
    pub(crate) fn messages(&self) -> PathBuf {
        self.attempt.messages()
    }

    fn output(&self, result: &CallResult) -> Option<PathBuf> {
        result.made.map(|made| self.run.errand(made.errand).output())
    }
}

/// The ends of what the calls of the last turn wrote, by the number of the event that has each.
#[derive(Debug, Default)]
pub(crate) struct Outputs(BTreeMap<u64, String>);

impl Outputs {
    /// As the journal has them. Blocks.
    pub(crate) fn read(store: &dyn Journal, run: &Run) -> Result<Self, outlast_store::Error> {
        let results = run.previous.iter().flat_map(|previous| previous.results.iter().flatten());
        let mut outputs = BTreeMap::new();
        for made in results.filter_map(|result| result.made) {
            let found = store.events(&run.id, made.seq.saturating_sub(1), 1)?;
            if let Some(Fact::ErrandEnded { errand, tail, .. }) = found.first().map(|it| &it.fact)
                && *errand == made.errand
            {
                outputs.insert(made.seq, tail.clone());
            }
        }
        Ok(Self(outputs))
    }

    fn of(&self, result: &CallResult) -> &str {
        let made = result.made.and_then(|made| self.0.get(&made.seq));
        made.map(String::as_str).unwrap_or_default()
    }
}

/// The request for the current attempt of `run`.
pub(crate) fn of(run: &Run, given: &Given<'_>) -> Result<Request, Unrenderable> {
    let note = note::of(run);
    let left = Left::of(run, given.now);
    let prompt = prompt::render(run, note.as_ref(), &left, given)?;
    let afresh = given.conversation.afresh();
    let prompt_afresh = afresh.as_ref().map(|conversation| {
        prompt::render(run, note.as_ref(), &left, &Given { conversation, ..*given })
    });
    let messages = messages(run, given.places);
    let is_cut = prompt::cuts_messages(run) || messages.iter().any(|it| it["whole"].is_string());
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
        "messages": messages,
        "calls": calls::json(run),
        "notes": calls::notes(run),
        "previous": run.previous.as_ref().map(|it| previous(it, given)),
        "limits_left": left.json(),
        "tools": tools(run),
    });
    if let Some(told) = given.told {
        request["trigger"] = told.clone();
    }
    let json = serde_json::to_vec_pretty(&request).expect("a request is plain data");
    let lines = || run.given().map(|it| format!("{}\n", message(it))).collect::<String>();
    let messages = is_cut.then(|| lines().into_bytes());
    let (conversation, prompt_afresh) = (given.conversation.clone(), prompt_afresh.transpose()?);
    Ok(Request { prompt, json, messages, conversation, prompt_afresh })
}

/// Says what is wrong with a run's prompt before the run is made.
pub(crate) fn try_out(run: &Run, told: Option<&Value>, now: Time) -> Result<(), Unrenderable> {
    prompt::try_out(run, &Left::of(run, now), told)
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

/// The messages that the attempt is given, within what a request has for them.
fn messages(run: &Run, places: &Places) -> Vec<Value> {
    let most = cut::level(run.given().map(|it| it.text.len()), MOST_OF_MESSAGES);
    let within = |it: &outlast_engine::Message| {
        let (text, left_out) = cut::part(&it.text, most, Keep::Beginning);
        let mut value = message(it);
        if left_out > 0 {
            value["text"] = text.into();
            value["bytes_left_out"] = left_out.into();
            value["whole"] = places.messages().display().to_string().into();
        }
        value
    };
    run.given().map(within).collect()
}

fn previous(previous: &Previous, given: &Given<'_>) -> Value {
    let results: Vec<&CallResult> = previous.results.iter().flatten().collect();
    let lengths = results.iter().map(|it| given.outputs.of(it).len());
    let most = cut::level(lengths, MOST_OF_RESULTS);
    let check = |it: &outlast_engine::FailedCheck| json!({ "command": it.command, "why": it.why, "output": it.output });
    json!({
        "turn": previous.turn,
        "status": previous.status.word(),
        "summary": previous.summary,
        "tool_results": results.iter().map(|it| result(it, most, given)).collect::<Vec<_>>(),
        "failed_checks": previous.failed_checks.iter().map(check).collect::<Vec<_>>(),
    })
}

fn result(result: &CallResult, most: usize, given: &Given<'_>) -> Value {
    let (status, why) = status(&result.outcome);
    let (output, left_out) = cut::part(given.outputs.of(result), most, Keep::End);
    let mut value = json!({
        "name": result.name,
        "key": result.key,
        "status": status,
        "output": output,
    });
    if left_out > 0 {
        value["bytes_left_out"] = left_out.into();
        value["whole"] = given.places.output(result).map(|it| it.display().to_string()).into();
    }
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
            ("unknown", Some("its end was not observed; check before you repeat it".to_owned()))
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
            turns: less(turns, u64::from(run.own_turns())),
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
        for (name, alias) in LIMIT_ALIASES {
            if let Some(value) = left.get(name).cloned() {
                left.insert(alias.to_owned(), value);
            }
        }
        left.into()
    }
}
