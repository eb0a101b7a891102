//! What is set in a session before its prompt: the model, the effort, and last the mode.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::agent::Agent;
use crate::adapter::Turn;
use crate::adapter::event::{Trouble, TroubleKind};
use crate::adapter::json::{at, list, text};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Setting {
    Mode(String),
    Model(String),
    /// An option of the session; what it is about decides what its failure is.
    Option {
        is_model: bool,
        id: String,
        value: String,
    },
}

impl Setting {
    pub(super) fn request(&self, session: &str) -> (&'static str, Value) {
        match self {
            Self::Mode(mode) => {
                ("session/set_mode", json!({ "sessionId": session, "modeId": mode }))
            }
            Self::Model(model) => {
                ("session/set_model", json!({ "sessionId": session, "modelId": model }))
            }
            Self::Option { id, value, .. } => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": id, "value": value }),
            ),
        }
    }

    /// What it is if the agent refuses, and does not say why.
    pub(super) fn trouble(&self) -> TroubleKind {
        match self {
            Self::Model(_) | Self::Option { is_model: true, .. } => TroubleKind::NoModel,
            Self::Mode(_) | Self::Option { is_model: false, .. } => TroubleKind::Other,
        }
    }
}

/// Which model the session has, if it has a name.
pub(super) fn model_of(opened: &Value) -> Option<String> {
    let current = text(opened, "models.currentModelId");
    let current = current.or_else(|| text(option(opened, "model")?, "currentValue"));
    current.filter(|name| *name != "default").map(str::to_owned)
}

/// What is to be set, by the answer that opened the session.
pub(super) fn of(turn: &Turn, agent: &Agent, opened: &Value) -> Result<VecDeque<Setting>, Trouble> {
    let model = turn.model.as_deref().map(|model| model_setting(opened, model)).transpose()?;
    let effort = turn.effort.as_deref().map(|effort| effort_setting(opened, effort)).transpose()?;
    let mode = turn.permission_mode.as_deref().or_else(|| agent.asks_in());
    let mode = mode.map(|mode| mode_setting(opened, mode)).transpose()?;
    Ok([model, effort, mode.flatten()].into_iter().flatten().collect())
}

/// An option that lists the model, else the older list of models, where Codex has each with its effort.
fn model_setting(opened: &Value, model: &str) -> Result<Setting, Trouble> {
    let option = option(opened, "model");
    let lists =
        |it: &Value| list(it, "options").iter().any(|value| text(value, "value") == Some(model));
    match option.filter(|it| lists(it) || at(opened, "models").is_none()) {
        Some(option) => Ok(Setting::Option {
            is_model: true,
            id: text(option, "id").unwrap_or("model").to_owned(),
            value: model.to_owned(),
        }),
        None if at(opened, "models").is_some() => Ok(Setting::Model(model.to_owned())),
        None => Err(Trouble::new(TroubleKind::NoModel, "the agent has no choice of models")),
    }
}

fn effort_setting(opened: &Value, effort: &str) -> Result<Setting, Trouble> {
    let option = option(opened, "thought_level").and_then(|it| text(it, "id"));
    let id = option
        .ok_or_else(|| Trouble::new(TroubleKind::Other, "the agent has no choice of efforts"))?;
    Ok(Setting::Option { is_model: false, id: id.to_owned(), value: effort.to_owned() })
}

/// Nothing if the session is in that mode.
fn mode_setting(opened: &Value, mode: &str) -> Result<Option<Setting>, Trouble> {
    let option = option(opened, "mode");
    let current = text(opened, "modes.currentModeId")
        .or_else(|| option.and_then(|it| text(it, "currentValue")));
    let is_there = at(opened, "modes").is_some_and(|it| !it.is_null());
    match option.and_then(|it| text(it, "id")) {
        _ if current == Some(mode) => Ok(None),
        _ if is_there => Ok(Some(Setting::Mode(mode.to_owned()))),
        Some(id) => {
            Ok(Some(Setting::Option { is_model: false, id: id.to_owned(), value: mode.to_owned() }))
        }
        None => Err(Trouble::new(
            TroubleKind::Other,
            format!("the agent has no modes, and so none that is {mode:?}"),
        )),
    }
}

fn option<'v>(opened: &'v Value, category: &str) -> Option<&'v Value> {
    list(opened, "configOptions").iter().find(|it| text(it, "category") == Some(category))
}
