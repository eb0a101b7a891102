//! The loop file and the operator's config: text in, settings out.
//!
//! Pure: the crate touches no file, clock, environment or process. Its callers pass what it needs as arguments.
//!
//! - [`decode`] and [`Source`]: a file's text,
//! - [`Config::parse`]: what the operator allows,
//! - [`load`] and [`plain`]: what holds for a run, and which file, flag or default said so,
//! - [`envelope`]: the same on one line; [`missing_program`]: whether its command can be found,
//! - [`LastGood`]: the last valid content of a file that may change,
//! - [`template`]: the prompt,
//! - [`notify`]: sinks and their addresses,
//! - [`import`]: files written for other runners,
//! - [`money`] and [`duration`]: amounts and lengths of time, read and printed,
//! - [`config_outline`]: the config without any text that a person wrote into it,
//! - [`schema_workflow`] and [`schema_config`]: the keys, for editors.
//!
//! The README of this crate has a drawing and the reading order.

mod problem;
mod refused;
mod source;

mod lines;
mod node;
mod tables;
mod times;
mod yaml;

mod keys;
mod schema;
mod values;
mod verify;

mod agents;
mod budgets;
mod config;
mod last_good;
mod outline;
mod secrets;
mod settings;
mod settle;

pub mod import;
pub mod money;
pub mod notify;
pub mod template;

pub use agents::AgentTable;
pub use budgets::{Period, SharedBudget};
pub use config::{
    Approvals, Ceiling, Ceilings, Concurrency, Config, Listen, Log, Ping, Supervision, Web,
    WebProxy, WebRoles,
};
pub use outlast_engine::duration;

pub use keys::{KeyLine, config_keys, workflow_keys};
pub use last_good::{LastGood, News, Stamp};
pub use outline::config_outline;
pub use problem::{Code, Problem};
pub use refused::Refused;
pub use schema::{schema_config, schema_workflow};
pub use settings::config_settings;
pub use settle::{
    Absent, AskedSnapshots, AskedSpend, CHECK_TIMEOUT_MS, Effective, Explained, HOOK_TIMEOUT_MS,
    Loaded, Look, Origin, Overrides, SnapshotMode, Surroundings, Tracker, absent_program, envelope,
    load, missing_program, plain, runnable,
};
pub use source::{DEFAULT_FILE, LARGEST_FILE, Source, behind_broken_link, decode, path};
