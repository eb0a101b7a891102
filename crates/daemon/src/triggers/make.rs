//! One thing that has come, made into a run.

use std::io;
use std::sync::Arc;

use outlast_engine::{Origin, RunId};
use outlast_store::{Delivery, TriggerChange};
use outlast_wire::api::{AddTrigger, CreateRun, TriggerSource, Trouble, WorkflowFile};
use outlast_workflow::{LARGEST_FILE, template};
use serde_json::{Map, Value, json};

use super::{Entry, add, folder};
use crate::api::creation;
use crate::api::error::{ApiError, unknown_trigger};
use crate::api::runs::in_lane;
use crate::api::spec::Occasion;
use crate::lanes::Lane;
use crate::refusal::Refusal;
use crate::supervisor::Supervisor;
use crate::view;
use crate::world::files;

/// Why there is no run.
#[derive(Debug)]
pub(crate) enum Unmade {
    /// Of this there can be none, whoever tries.
    Never(String),
    /// There may be one later.
    NotNow { code: String, message: String },
}

impl From<ApiError> for Unmade {
    fn from(ApiError(refusal): ApiError) -> Self {
        match refusal.code {
            // What came does not have what the prompt speaks of.
            "template_render_error" => Self::Never(refusal.message),
            code => Self::NotNow { code: code.to_owned(), message: refusal.message },
        }
    }
}

/// Makes the run, or finds the one that was made of this before.
pub(crate) async fn make(
    supervisor: &Arc<Supervisor>,
    entry: &Entry,
    delivery: &Delivery,
) -> Result<RunId, Unmade> {
    let spec = spec_of(supervisor, entry.name()).await?;
    let (mut run, occasion) = asked(&spec, delivery).map_err(Unmade::Never)?;
    if let TriggerSource::Folder { .. } = spec.source
        && let Occasion::Came { told, .. } = &occasion
    {
        take(told["item"].clone()).await?;
    }
    let Some(known) = &spec.run.workflow else { return create(supervisor, run, occasion).await };
    // The file as it is now; if that is wrong, as it was when it was last right.
    let why = match read(known.path.clone()).await {
        Ok(text) if text == known.text => {
            note(supervisor, &spec.name, None);
            return create(supervisor, run, occasion).await;
        }
        Ok(text) => {
            let file = WorkflowFile { path: known.path.clone(), text };
            run.workflow = Some(file.clone());
            match create(supervisor, run.clone(), occasion.clone()).await {
                Ok(id) => {
                    note(supervisor, &spec.name, None);
                    remember(supervisor, &spec, file).await;
                    return Ok(id);
                }
                Err(Unmade::Never(why) | Unmade::NotNow { message: why, .. }) => why,
            }
        }
        Err(error) => format!("{}: {error}", known.path),
    };
    run.workflow = Some(known.clone());
    let id = create(supervisor, run, occasion).await?;
    let message = format!("{why}; runs are made with the file as it was last right");
    note(supervisor, &spec.name, Some(supervisor.trouble("workflow_broken", message)));
    Ok(id)
}

/// What the trigger's runs are, as the store has it.
pub(super) async fn spec_of(
    supervisor: &Supervisor,
    name: &Arc<str>,
) -> Result<AddTrigger, ApiError> {
    let (store, name) = (supervisor.store.clone(), name.clone());
    in_lane(Lane::Steps, move || {
        let Some(trigger) = store.trigger(&name)? else {
            return Err(unknown_trigger(format!("there is no trigger {name:?}")).into());
        };
        Ok(add::spec(&trigger).map_err(|what| Refusal::new("unreadable", what))?)
    })
    .await
}

async fn create(
    supervisor: &Arc<Supervisor>,
    run: CreateRun,
    occasion: Occasion,
) -> Result<RunId, Unmade> {
    let created = creation::make(supervisor.clone(), run, occasion).await?;
    Ok(RunId(created.id))
}

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
    Ok((run, Occasion::Came { origin, told: told.into() }))
}

/// One occurrence has one run.
pub(crate) fn key(trigger: &str, occurrence: &str) -> String {
    format!("trigger/{trigger}/{occurrence}")
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

async fn take(item: Value) -> Result<(), Unmade> {
    let taken = in_lane(Lane::Folders, move || Ok(folder::take(&item))).await?;
    taken.map_err(|why| match why {
        folder::Untaken::Gone(_) | folder::Untaken::Unusable { .. } => {
            Unmade::Never(why.to_string())
        }
        folder::Untaken::Io(_) => {
            Unmade::NotNow { code: "folder".to_owned(), message: why.to_string() }
        }
    })
}

async fn read(path: String) -> Result<String, String> {
    let read = in_lane(Lane::Folders, move || {
        let read = files::read_regular(path.as_ref(), LARGEST_FILE);
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        Ok(text.map_err(|error| error.to_string()))
    });
    read.await.unwrap_or_else(|error| Err(error.0.message))
}

/// Says what is odd about the trigger, or that nothing is any more.
fn note(supervisor: &Supervisor, trigger: &str, note: Option<Trouble>) {
    supervisor.triggers.with(trigger, |entry| {
        // Since when it is so stays as it was.
        let is_news =
            note.as_ref().map(|it| &it.message) != entry.note.as_ref().map(|it| &it.message);
        if is_news {
            if let Some(note) = &note {
                tracing::warn!(trigger, message = note.message, "its loop file is not right");
            }
            entry.note = note;
        }
    });
}

/// The next daemon falls back to this file, and not to that of long ago.
async fn remember(supervisor: &Supervisor, spec: &AddTrigger, file: WorkflowFile) {
    let mut spec = spec.clone();
    spec.run.workflow = Some(file);
    let Ok(json) = serde_json::to_string(&spec) else { return };
    let name = spec.name.clone();
    let change = TriggerChange::Update {
        trigger: name.clone(),
        spec: Some(json),
        state: None,
        paused: None,
    };
    if let Err(error) = super::change(supervisor, change).await {
        tracing::error!(trigger = name, %error, "cannot keep its new loop file");
    }
}

/// What a run is told of what came by hand.
pub(crate) fn by_hand(item: Value) -> String {
    json!({ "item": item }).to_string()
}
