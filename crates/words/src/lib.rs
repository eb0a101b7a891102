//! The words that scripts, journals and other builds of Outlast depend on: one enum for each set of them.
//!
//! Plain data and serde. Decides nothing, knows no run, and does no IO. A word that is here stays as it is: it is in
//! journals, in shims' records and in scripts. `vocabulary` says how a set is declared and what becomes of a word that
//! this build does not know.

#![forbid(unsafe_code)]

mod vocabulary;

mod state;

mod reason;

mod room;

mod health;

mod trouble;

pub mod codes;

mod process;

mod secrets;

mod workspace;

mod ids;

pub use codes::Code;
pub use health::Health;
pub use ids::{BootId, RunId, Time};
pub use process::{EndCause, Exit, NeverStarted, Survivor, Window};
pub use reason::{BlockReason, Impediment, Limit, ReasonCode, Wants};
pub use room::{Room, Unit};
pub use secrets::SecretRules;
pub use state::{StateName, Verdict, WaitCause, WaitWord};
pub use trouble::TroubleCode;
pub use vocabulary::{Vocabulary, Word};
pub use workspace::Strategy;
