//! One thing that has come, made into a run.

use std::io;
use std::sync::Arc;

use outlast_engine::RunId;
use outlast_store::{Delivery, TriggerChange};
use outlast_wire::api::{AddTrigger, CreateRun, TriggerSource, Trouble, WorkflowFile};
use outlast_wire::codes::Code;
use outlast_wire::words::TroubleCode;
use outlast_workflow::LARGEST_FILE;
use serde_json::{Value, json};

use super::run_of::asked;
use super::{Entry, Triggers, add, folder};
use crate::lanes::Lane;
use crate::lanes::in_lane;
use crate::occasion::Occasion;
use crate::refusal::Refusal;
use crate::world::files;

/// Why there is no run.
#[derive(Debug)]
pub(crate) enum Unmade {
    /// No run can ever be made of this.
    Never(String),
    /// There may be one later.
    NotNow { code: TroubleCode, message: String },
}

impl From<Refusal> for Unmade {
    fn from(refusal: Refusal) -> Self {
        // The delivery lacks a value that the prompt names.
        if refusal.code == Code::TemplateRenderError {
            return Self::Never(refusal.message);
        }
        Self::NotNow { code: refusal.code.into(), message: refusal.message }
    }
}

/// Makes the run, or finds the one that was made of this before.
pub(crate) async fn make(
    triggers: &Arc<Triggers>,
    entry: &Entry,
    delivery: &Delivery,
) -> Result<RunId, Unmade> {
    let spec = spec_of(triggers, entry.name()).await?;
    let (mut run, occasion) = asked(&spec, delivery).map_err(Unmade::Never)?;
    if let TriggerSource::Folder { .. } = spec.source
        && let Occasion::Came { told, .. } = &occasion
    {
        take(told["item"].clone()).await?;
    }
    let Some(known) = &spec.run.workflow else { return create(triggers, run, occasion).await };
    // The file as it is now; if that is wrong, as it was when it was last right.
    let why = match read(known.path.clone()).await {
        Ok(text) if text == known.text => {
            note(triggers, &spec.name, None);
            return create(triggers, run, occasion).await;
        }
        Ok(text) => {
            let file = WorkflowFile { path: known.path.clone(), text };
            run.workflow = Some(file.clone());
            match create(triggers, run.clone(), occasion.clone()).await {
                Ok(id) => {
                    note(triggers, &spec.name, None);
                    remember(triggers, &spec, file).await;
                    return Ok(id);
                }
                Err(Unmade::Never(why) | Unmade::NotNow { message: why, .. }) => why,
            }
        }
        Err(error) => format!("{}: {error}", known.path),
    };
    run.workflow = Some(known.clone());
    let id = create(triggers, run, occasion).await?;
    let message = format!("{why}; runs are made with the file as it was last right");
    note(triggers, &spec.name, Some(triggers.ground.trouble(TroubleCode::WorkflowBroken, message)));
    Ok(id)
}

/// What the trigger's runs are, as the store has it.
pub(super) async fn spec_of(triggers: &Triggers, name: &Arc<str>) -> Result<AddTrigger, Refusal> {
    let (store, name) = (triggers.ground.store.clone(), name.clone());
    in_lane(Lane::Steps, move || {
        let Some(trigger) = store.trigger(&name)? else {
            return Err(Refusal::unknown_trigger(format!("there is no trigger {name:?}")));
        };
        add::spec(&trigger).map_err(|what| Refusal::new(Code::Unreadable, what))
    })
    .await
}

async fn create(triggers: &Triggers, run: CreateRun, occasion: Occasion) -> Result<RunId, Unmade> {
    let created = triggers.maker()?.make(run, occasion).await?;
    Ok(RunId(created.id))
}

async fn take(item: Value) -> Result<(), Unmade> {
    let taken = in_lane(Lane::Folders, move || Ok(folder::take(&item))).await?;
    taken.map_err(|why| match why {
        folder::Untaken::Gone(_) | folder::Untaken::Unusable { .. } => {
            Unmade::Never(why.to_string())
        }
        folder::Untaken::Io(_) => {
            Unmade::NotNow { code: TroubleCode::Folder, message: why.to_string() }
        }
    })
}

async fn read(path: String) -> Result<String, String> {
    let read = in_lane(Lane::Folders, move || {
        let read = files::read_regular(path.as_ref(), LARGEST_FILE);
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
        Ok(text.map_err(|error| error.to_string()))
    });
    read.await.unwrap_or_else(|error| Err(error.message))
}

/// Says what is odd about the trigger, or that nothing is any more.
fn note(triggers: &Triggers, trigger: &str, note: Option<Trouble>) {
    triggers.table.with(trigger, |entry| {
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
async fn remember(triggers: &Triggers, spec: &AddTrigger, file: WorkflowFile) {
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
    if let Err(error) = super::change(triggers, change).await {
        tracing::error!(trigger = name, %error, "cannot keep its new loop file");
    }
}

/// What a run is told of what came by hand.
pub(crate) fn by_hand(item: Value) -> String {
    json!({ "item": item }).to_string()
}
