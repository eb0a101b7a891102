//! Tools that the loop file declares: offered within the turn, and called under the same journal and classes.
//!
//! The key of a call is its tool, its input and how often the same was asked before, so that the next attempt, which
//! asks the same in the same order, gets the stored results.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use outlast_agents::tool_input;
use outlast_client::ask::{Ask, run_path};
use outlast_client::call::{Call, Input, call};
use outlast_client::problem::Problem;
use outlast_wire::api::ToolView;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::arguments::wrong;
use crate::calls::told;
use crate::owner::{Done, Owner};
use crate::table;

/// No request is longer.
const LARGEST_REQUEST: u64 = 32 << 20;

/// The tools as the request of the attempt has them, without a daemon. A tool of ours comes before one of its name.
pub(crate) fn listed(owner: &Owner<'_>) -> Vec<Value> {
    let Some(path) = &owner.request else { return Vec::new() };
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST_REQUEST).read_to_end(&mut bytes));
    let request: Option<Value> = read.ok().and_then(|_| serde_json::from_slice(&bytes).ok());
    let tools = request.and_then(|request| request["tools"].as_array().cloned());
    let view = |tool: &Value| {
        let name = tool["name"].as_str().filter(|name| !table::is_ours(name))?;
        let class = tool["class"].as_str().unwrap_or("unsafe");
        Some(table::declared(name, tool.get("input_schema"), class))
    };
    tools.unwrap_or_default().iter().filter_map(view).collect()
}

/// How often each call was asked for by this server.
#[derive(Default)]
pub(crate) struct Asked(RefCell<BTreeMap<String, u32>>);

impl Asked {
    fn next(&self, digest: &str) -> u32 {
        let mut asked = self.0.borrow_mut();
        let count = asked.entry(digest.to_owned()).or_default();
        *count += 1;
        *count
    }
}

/// Calls the tool; `None` if the loop has none of this name.
pub(crate) async fn make(
    owner: &Owner<'_>,
    asked: &Asked,
    name: &str,
    input: Value,
) -> Result<Option<Value>, Problem> {
    let path = run_path(&owner.run, "/tools");
    let tools: Vec<ToolView> = owner.session().call(&Ask::get(&path)).await?;
    let Some(tool) = tools.into_iter().find(|tool| tool.name == name) else { return Ok(None) };
    let input = if input.is_null() { Value::Object(serde_json::Map::new()) } else { input };
    let input = input.to_string();
    if let Some(schema) = &tool.input_schema {
        tool_input::check(&schema.to_string(), &input).map_err(|why| wrong(&why))?;
    }
    done(owner, asked, tool, input).await.map(Some)
}

async fn done(owner: &Owner<'_>, asked: &Asked, tool: ToolView, input: String) -> Done {
    let mut hash = Sha256::new();
    hash.update(tool.name.as_bytes());
    hash.update([0]);
    hash.update(input.as_bytes());
    let digest: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let key = owner.key(&format!("tool/{}/{digest}/{}", tool.name, asked.next(&digest)));
    let wanted = Call {
        run: owner.run.clone(),
        env: vec![
            ("OUTLAST_TOOL".into(), tool.name.into()),
            ("OUTLAST_CALL_KEY".into(), key.clone().into()),
        ],
        key,
        class: tool.class,
        command: tool.command.into_iter().map(Into::into).collect(),
        dir: owner.workspace.clone(),
        input: Input::Given(input.into_bytes()),
        retry_failed: true,
        timeout: Some(Duration::from_millis(tool.timeout_ms)),
    };
    Ok(told(&call(owner.world, &mut owner.session(), wanted).await?))
}
