//! The run that is to be made of what came to a trigger.

use outlast_engine::Origin;
use outlast_store::Delivery;
use outlast_wire::api::{AddTrigger, CreateRun};
use outlast_workflow::template;
use serde_json::{Map, Value};

use crate::occasion::Occasion;
use crate::view;

/// The run that is to be made of a delivery, and what it is told of it; or why there can be none.
pub(crate) fn asked(
    trigger: &AddTrigger,
    delivery: &Delivery,
) -> Result<(CreateRun, Occasion), String> {
    let came: Value = serde_json::from_str(&delivery.body).map_err(|error| error.to_string())?;
    let mut told = Map::new();
    told.insert("trigger".to_owned(), trigger.name.clone().into());
    told.insert("kind".to_owned(), trigger.source.kind().into());
    told.insert("occurrence".to_owned(), delivery.id.clone().into());
    told.insert("at".to_owned(), view::rfc3339(delivery.at).into());
    told.insert("item".to_owned(), came["item"].clone());
    if let Some(headers) = came.get("headers") {
        told.insert("headers".to_owned(), headers.clone());
    }
    let mut run = trigger.run.clone();
    run.key = Some(key(&trigger.name, &delivery.id));
    run.task = match &run.task {
        Some(text) => Some(task(text, &came["item"])?),
        None => None,
    };
    let origin = Origin { trigger: trigger.name.clone(), occurrence: delivery.id.clone() };
    Ok((run, Occasion::Came { origin, told: told.into(), name: None }))
}

/// One occurrence has one run.
pub(crate) fn key(trigger: &str, occurrence: &str) -> String {
    format!("trigger/{trigger}/{occurrence}")
}

/// The number of a run that is named after its trigger: 17 of `nightly-17`.
pub(crate) fn number(trigger: &str, name: &str) -> Option<u64> {
    name.strip_prefix(trigger)?.strip_prefix('-')?.parse().ok()
}

/// What the run with this number is called.
pub(crate) fn name(trigger: &str, number: u64) -> String {
    format!("{trigger}-{number}")
}

/// A task that names nothing is taken as it is.
fn task(text: &str, item: &Value) -> Result<String, String> {
    if !text.contains("{{") && !text.contains("{%") {
        return Ok(text.to_owned());
    }
    let variables = template::Variables { item: item.clone(), ..template::Variables::default() };
    let rendered = template::render(text, &variables);
    rendered.map_err(|problem| format!("the task cannot be rendered: {}", problem.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_numbered_after_their_trigger() {
        assert_eq!(number("nightly", &name("nightly", 17)), Some(17));
        for other in ["nightly", "nightly-", "nightly-x", "nightly-2-3", "other-2"] {
            assert_eq!(number("nightly", other), None, "{other}");
        }
    }
}
