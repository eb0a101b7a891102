//! What makes runs by itself: schedules, webhooks, folders, polls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{CreateRun, Trouble};

/// `POST /v1/triggers`. Kept as it is by the daemon, which never lists `run` or `secret`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AddTrigger {
    /// Chosen by the client: the same id is the same order, and the trigger's own id from then on. Made by the
    /// daemon when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub name: String,
    pub source: TriggerSource,
    /// What happens to an occurrence while a run of the trigger is open; `skip` for a schedule, `parallel`
    /// for all others, when absent.
    #[serde(default)]
    pub overlap: Option<Overlap>,
    /// What happens to occurrences of a schedule at which no daemon was there; `once` when absent.
    #[serde(default)]
    pub missed: Option<Missed>,
    /// Replaces a trigger of this name and kind, if there is one. What had come to it stays; a webhook without a new
    /// secret keeps its old one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replace: bool,
    /// What each run is. Its task may speak of `item` as a loop file's prompt may.
    pub run: CreateRun,
}

/// Where occurrences come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum TriggerSource {
    Schedule {
        when: When,
        /// A name of the time zone database; of what no zone says, UTC.
        #[serde(default)]
        tz: Option<String>,
    },
    /// `POST /hooks/{name}`
    Webhook {
        /// Made by the daemon, and answered once, when absent.
        #[serde(default)]
        secret: Option<String>,
        /// `/pointer=value`, `/pointer!=value`, `/pointer~regex` or `/pointer`; all of them have to hold.
        #[serde(default)]
        filters: Vec<String>,
        /// The header that names a delivery, beside those that are known.
        #[serde(default)]
        id_header: Option<String>,
        /// Deliveries with equal bodies are different ones. Without this, what is signed by its body alone comes
        /// once, under whatever id.
        #[serde(default)]
        equal_bodies: bool,
    },
    /// Files that are put into a directory.
    Folder {
        /// An absolute path.
        dir: String,
        /// Leave the files where they are.
        #[serde(default)]
        leave: bool,
    },
    /// What a command prints: JSON objects with an `id`.
    Poll {
        command: String,
        every_ms: u64,
        /// A minute when absent.
        #[serde(default)]
        timeout_ms: Option<u64>,
    },
}

impl TriggerSource {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Schedule { .. } => "schedule",
            Self::Webhook { .. } => "webhook",
            Self::Folder { .. } => "folder",
            Self::Poll { .. } => "poll",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum When {
    /// Five fields, or `@hourly` and its like.
    Cron(String),
    EveryMs(u64),
    /// RFC 3339, or a local time in the zone; a time of day alone is the next one.
    At(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Overlap {
    Skip,
    Queue,
    Parallel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Missed {
    Skip,
    Once,
    All,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerAdded {
    pub trigger: TriggerView,
    /// Of a webhook whose secret the daemon made: this is the only time it is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// True if this order had added it before.
    #[serde(default)]
    pub existed: bool,
    /// True if a trigger of that name was there and is replaced.
    #[serde(default)]
    pub replaced: bool,
}

/// Where a webhook's deliveries are sent to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct HookAddress {
    /// The whole address; absent while the daemon listens on no TCP address.
    pub url: Option<String>,
    /// The unix socket, on which `http://localhost/hooks/NAME` always works.
    pub socket: String,
    /// Why there is no `url`.
    pub problem: Option<String>,
    /// The config file, whose `listen.address` makes one.
    pub config: String,
}

/// `POST /v1/triggers/{name}/pause` and `/resume`, whose body may be left out; the query of
/// `DELETE /v1/triggers/{name}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema, utoipa::IntoParams))]
#[cfg_attr(feature = "openapi", into_params(parameter_in = Query))]
pub struct OrderTrigger {
    /// Chosen by the client: the same id is the same order. Made by the daemon when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The `id` of the trigger that the giver saw. One that was made under the name since is left alone. Without it
    /// the order is for the trigger that the daemon finds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
}

/// One row of `GET /v1/triggers`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerView {
    /// Tells it from another that had or will have its name; absent for one that cannot be read.
    #[serde(default)]
    pub id: Option<String>,
    pub name: String,
    /// `schedule`, `webhook`, `folder` or `poll`.
    pub kind: String,
    /// When or where from, for people: `cron 0 9 * * * Europe/Berlin`, `every 15m`, `/hooks/NAME`.
    pub source: String,
    pub overlap: Overlap,
    /// Of a schedule.
    #[serde(default)]
    pub missed: Option<Missed>,
    pub paused: bool,
    pub created_at: String,
    /// When something happens next, if that is known.
    pub next_at: Option<String>,
    /// The newest occurrence that has a run.
    pub last_at: Option<String>,
    pub last_run: Option<String>,
    /// How many runs it has made.
    pub runs: u64,
    /// How many of them have not ended.
    pub open: u64,
    /// Occurrences that have come and have no run yet.
    pub waiting: u64,
    /// Those that never get one: missed, or while another run was open.
    pub skipped: u64,
    /// Those of which no run can be made.
    pub refused: u64,
    /// Deliveries that the filter turned away since the daemon started.
    #[serde(default)]
    pub filtered: u64,
    /// What is wrong now. A delivery that was refused is forgotten here once a later one has made a run.
    pub trouble: Option<Trouble>,
    /// The newest delivery of which no run can be made, also if later ones have made runs.
    #[serde(default)]
    pub refusal: Option<Trouble>,
    /// Of a webhook.
    #[serde(default)]
    pub hook: Option<HookAddress>,
    /// The command or the task, on one line.
    pub what: String,
}

/// `POST /v1/triggers/{name}/run`
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerRun {
    /// Chosen by the client, so that asking again after a lost answer makes no second run.
    #[serde(default)]
    pub occurrence: Option<String>,
    /// The `id` of the trigger that the giver saw; one that was made under the name since is not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    /// What the run is told of the occurrence.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(value_type = Object))]
    pub item: Value,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TriggerRan {
    pub occurrence: String,
    /// The run's id.
    pub run: String,
    /// The run's name, unless it was removed since.
    #[serde(default)]
    pub name: Option<String>,
    /// True if it was made before.
    #[serde(default)]
    pub existed: bool,
    /// What is odd and was done anyway.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// `GET /v1/next`: the next times of a schedule.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextTimes {
    pub tz: String,
    pub next: Vec<NextTime>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct NextTime {
    /// RFC 3339 in UTC.
    pub at: String,
    /// The same as its zone writes it.
    pub local: String,
}

/// The answer to `POST /hooks/{name}`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Received {
    pub delivery: String,
    /// It came before.
    #[serde(default)]
    pub duplicate: bool,
    /// The filter turned it away; nothing will come of it.
    #[serde(default)]
    pub filtered: bool,
}

/// What made a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OriginView {
    pub trigger: String,
    /// Which of its occurrences: a time, a delivery, a file, an item.
    pub occurrence: String,
}
