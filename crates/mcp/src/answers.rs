//! What each request is answered with, whichever way it came. Keeps nothing but a count of the calls that are open.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use outlast_client::problem::Problem;
use outlast_wire::api::NoteKind;
use serde_json::{Value, json};

use crate::declared::{self, Asked};
use crate::era::{self, Era};
use crate::owner::Owner;
use crate::{dispatch, reports, rpc, table};

/// Calls at the same time; a client that asks for more is refused.
const MOST_CALLS: usize = 64;

/// Clients that drop a silent call after 60 seconds keep one that says so often that it goes on.
const PROGRESS: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(crate) struct Answers {
    pub(crate) owner: Rc<Owner<'static>>,
    asked: Rc<Asked>,
    open: Rc<Cell<usize>>,
}

/// What a request comes to.
pub(crate) enum Next {
    Said(Value),
    Call(Call),
}

/// A call of a tool, to be made in a task of its own.
pub(crate) struct Call {
    pub(crate) id: Value,
    era: Era,
    name: String,
    given: Value,
    /// What notifications about it are marked with, if the client wants any.
    token: Option<Value>,
    /// True if its effect cannot be taken back by a client that goes away.
    pub(crate) must_end: bool,
    _place: Place,
}

/// One of the calls that may be open; it is given back with the call.
struct Place(Rc<Cell<usize>>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

impl Answers {
    pub(crate) fn new(owner: Owner<'static>) -> Self {
        Self { owner: Rc::new(owner), asked: Rc::default(), open: Rc::default() }
    }

    pub(crate) fn next(&self, id: &Value, era: Era, method: &str, params: &Value) -> Next {
        Next::Said(match (era, method) {
            (Era::Handshake, "initialize") => rpc::result(id, era::initialized(params)),
            (Era::Handshake, "ping" | "logging/setLevel") => rpc::result(id, json!({})),
            (Era::Stateless, "server/discover") => rpc::result(id, era::discovered()),
            (_, "tools/list") => {
                let mut tools = table::listed();
                tools.extend(declared::listed(&self.owner));
                self.remember_listing();
                rpc::result(id, era.cacheable(json!({"tools": tools})))
            }
            (_, "tools/call") => match self.call(id, era, params) {
                Ok(call) => return Next::Call(call),
                Err(refusal) => refusal,
            },
            _ => {
                let why = format!("there is no method {method:?}");
                rpc::error(id, rpc::UNKNOWN_METHOD, &why)
            }
        })
    }

    fn call(&self, id: &Value, era: Era, params: &Value) -> Result<Call, Value> {
        let Some(name) = params["name"].as_str().map(str::to_owned) else {
            return Err(rpc::error(id, rpc::INVALID_PARAMS, "a call names its tool"));
        };
        if self.open.get() >= MOST_CALLS {
            let why = format!("{MOST_CALLS} calls are open");
            return Err(rpc::error(id, rpc::INVALID_REQUEST, &why));
        }
        self.open.set(self.open.get() + 1);
        Ok(Call {
            id: id.clone(),
            era,
            must_end: dispatch::must_end(&name),
            name,
            given: params["arguments"].clone(),
            token: params["_meta"].get("progressToken").cloned(),
            _place: Place(self.open.clone()),
        })
    }

    /// Makes the call, and says every ten seconds that it goes on, if the client has asked for that.
    pub(crate) async fn make(&self, call: Call, tell: impl Fn(Value)) -> Value {
        let Call { id, era, name, given, token, .. } = &call;
        let mut work =
            std::pin::pin!(dispatch::call(&self.owner, &self.asked, name, given.clone()));
        let mut told = 0_u64;
        let done = loop {
            tokio::select! {
                biased;
                done = &mut work => break done,
                () = tokio::time::sleep(PROGRESS) => {
                    told += 1;
                    if let Some(token) = token {
                        let params = json!({"progressToken": token, "progress": told, "message": "it goes on"});
                        tell(rpc::notification("notifications/progress", params));
                    }
                }
            }
        };
        answered(id, *era, name, done)
    }

    /// The journal has it that the agent was shown the tools.
    fn remember_listing(&self) {
        let owner = self.owner.clone();
        let _task = tokio::task::spawn_local(async move {
            if let Err(problem) = reports::note(&owner, NoteKind::ToolsListed, String::new()).await
            {
                complain(&problem);
            }
        });
    }
}

fn answered(id: &Value, era: Era, name: &str, done: Result<Option<Value>, Problem>) -> Value {
    let result = match done {
        Ok(Some(value)) => {
            let content = json!([{"type": "text", "text": value.to_string()}]);
            let value = if value.is_object() { value } else { json!({"result": value}) };
            json!({"content": content, "structuredContent": value, "isError": false})
        }
        Ok(None) => {
            let why = format!("there is no tool {name:?}");
            return rpc::error(id, rpc::INVALID_PARAMS, &why);
        }
        Err(problem) => {
            let text = words(&problem);
            json!({"content": [{"type": "text", "text": text}], "isError": true})
        }
    };
    rpc::result(id, era.result(result))
}

/// What is wrong, its code and what helps, for a model to read.
fn words(problem: &Problem) -> String {
    match problem {
        Problem::Told { info, .. } => {
            let hint =
                info.hint.as_ref().map_or_else(String::new, |hint| format!("\nhint: {hint}"));
            format!("{}: {}{hint}", info.code.as_str(), info.message)
        }
        Problem::OutputClosed => "the client is gone".to_owned(),
    }
}

#[expect(clippy::print_stderr, reason = "an MCP server logs to standard error")]
pub(crate) fn complain(problem: &Problem) {
    eprintln!("outlast mcp: {}", words(problem));
}
