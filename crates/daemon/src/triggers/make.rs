//! One thing that has come, made into a run that is named after its trigger.

use std::io;
use std::sync::Arc;

use outlast_engine::RunId;
use outlast_store::{Delivery, TriggerChange};
use outlast_wire::api::{AddTrigger, CreateRun, TriggerSource, Trouble, WorkflowFile};
use outlast_wire::codes::Code;
use outlast_wire::words::TroubleCode;
use outlast_workflow::{LARGEST_FILE, template};
use serde_json::{Value, json};

use super::run_of::{self, asked};
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
    let message = format!("{why}; runs use the last valid version of the file");
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

/// Tries to find a name that no other open run has; after these the run has none.
const MOST_NAMES: u64 = 8;

async fn create(triggers: &Triggers, run: CreateRun, occasion: Occasion) -> Result<RunId, Unmade> {
    let maker = triggers.maker()?;
    if let Occasion::Came { origin, told, .. } = &occasion {
        let first = next_number(triggers, &origin.trigger).await?;
        for number in first..first.saturating_add(MOST_NAMES) {
            let name = Some(run_of::name(&origin.trigger, number));
            let named = Occasion::Came { origin: origin.clone(), told: told.clone(), name };
            match maker.clone().make(run.clone(), named).await {
                // A person's run has the name, or one that was made by hand in this moment.
                Err(refusal) if refusal.code == Code::NameTaken => {}
                made => return Ok(RunId(made?.id)),
            }
        }
    }
    Ok(RunId(maker.make(run, occasion).await?.id))
}

/// One more than the trigger's newest run has.
async fn next_number(triggers: &Triggers, trigger: &str) -> Result<u64, Refusal> {
    let (store, trigger) = (triggers.ground.store.clone(), trigger.to_owned());
    in_lane(Lane::Steps, move || {
        let newest = store.newest_run_of(&trigger)?.and_then(|(_, name)| name);
        match newest.and_then(|name| run_of::number(&trigger, &name)) {
            Some(number) => Ok(number.saturating_add(1)),
            // The first, or all have been removed, or they are from before runs had such names.
            None => Ok(store.tally(&trigger)?.made.saturating_add(1)),
        }
    })
    .await
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
                tracing::warn!(
                    trigger,
                    message = note.message,
                    "its loop file is invalid; the last valid version is used"
                );
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
        tracing::error!(trigger = name, %error, "cannot save its new loop file");
    }
}

/// An item with all that the task and the loop file of this trigger name, to try it with; none if they name nothing
/// or cannot be read.
pub(crate) async fn example(triggers: &Triggers, name: &Arc<str>) -> Option<Value> {
    let spec = spec_of(triggers, name).await.ok()?;
    let file = spec.run.workflow.as_ref().map(|file| file.text.as_str());
    let item = template::example_item(spec.run.task.as_deref().into_iter().chain(file));
    Some(item).filter(|item| item.as_object().is_some_and(|item| !item.is_empty()))
}

/// What a run is told of what came by hand.
pub(crate) fn by_hand(item: Value) -> String {
    json!({ "item": item }).to_string()
}
