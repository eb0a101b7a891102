//! The daemon: it does to the world what the engine decides.
//!
//! It appends to the journal first and acts second. It is never the parent of an agent, and no attempt ends because the
//! daemon did. Only `world` looks at clocks, processes and the environment. No module imports upward: the README of this
//! crate draws the layers, and says which tasks and channels there are.
//!
//! In reading order, one group each: the life of a daemon; what every task holds, and the way to one run; one run; one
//! step; all runs; the rules about runs and their HTTP; sinks, triggers and the operator's view; what keeps one daemon at a
//! time in its place; threads, room and the world.

mod options;
mod search;
mod serve;

mod answer_links;
mod ground;
mod leaving;
mod mailbox;
mod refusal;
mod sight;

mod children;
mod conductor;
mod ended;
mod successors;
mod view;
mod workspace;
mod workspace_op;

mod activity;
mod conversation;
mod directory;
mod output;
mod records;
mod redaction;
mod request;
mod response;
mod silence;
mod snapshots;
mod steps;
mod tail;
mod watch;

mod order_book;
mod reconciler;
mod recovery;
mod restarts;
mod retention;
mod supervisor;
mod watchers;

mod api;
mod occasion;
mod runs;

mod http;
mod notify;
mod operator;
mod tokens;
mod trace;
mod triggers;

mod custody;
mod diary;
mod door;
mod instance;
mod known_secrets;
mod lineage;
mod log;
mod service;
mod settings;
mod starts;
mod timekeeper;
mod waiter;

#[doc(hidden)]
pub mod fuzz;
mod lanes;
mod reserve;
mod sync;
mod world;

pub use options::Options;
pub use serve::run;
pub use world::limits::raise as raise_limits;
