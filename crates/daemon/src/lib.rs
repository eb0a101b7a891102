//! The supervising daemon: what the engine decides, done to the world.
//!
//! In the order data flows: `instance` makes this the only daemon, `supervisor` holds one conductor for
//! each run that is open, a conductor asks the `driver` what follows from each piece of news and orders
//! what is due, a `keeper` sees to one attempt and reports on it, and `api` is what clients talk to.
//! Only `world` looks at clocks, processes and the environment. The daemon is never an agent's parent,
//! and an attempt never ends because the daemon did.

mod api;
mod children;
mod chore;
mod conductor;
mod custody;
mod directory;
mod door;
mod ear;
mod ended;
#[doc(hidden)]
pub mod fuzz;
mod ground;
mod http;
mod instance;
mod keeper;
mod lanes;
mod leaving;
mod lineage;
mod log;
mod mailbox;
mod notify;
mod occasion;
mod operator;
mod options;
mod order_book;
mod output;
mod reconciler;
mod records;
mod recovery;
mod refusal;
mod request;
mod reserve;
mod response;
mod restarts;
mod runs;
mod serve;
mod service;
mod settings;
mod socket;
mod starts;
mod supervisor;
mod sync;
mod tail;
mod timekeeper;
mod tokens;
mod trace;
mod triggers;
mod view;
mod waiter;
mod watch;
mod watchers;
mod workspace;
mod world;

pub use options::Options;
pub use serve::run;
pub use world::limits::raise as raise_limits;
