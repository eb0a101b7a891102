//! The page: what `outlast top` and `outlast report` show, in a browser on this machine.
//!
//! A process of its own and a client of the daemon's socket. Every request passes the doors first; nothing else here
//! asks who sent it. The page holds no secret, and what a run wrote reaches it as data only. Decides nothing about
//! runs: the words for their states come from the command line, and every order is the daemon's to take or refuse.

// Who may come in.
mod access;
mod doors;
mod kin;
mod names;
mod people;
mod shares;

// Where a browser and `outlast web url` knock.
pub mod desk;
mod listen;
mod tls;

// What a browser gets.
mod asked;
mod assets;
mod refusal;
mod routes;
mod state;

// One file for each kind of question.
mod live;
mod orders;
mod pages;
mod reads;
mod shared;
mod taps;
mod telling;
mod truth;
mod week;

// The terminal of a run: its screen as text, keys as bytes.
mod keys;
mod screen;
mod tty;

mod serve;

pub use listen::{DEFAULT_PORT, Place};
pub use people::{Proxy, Role};
pub use serve::Serving;
pub use shares::{MOST_SHARE_HOURS, SHARE_HOURS, Shared, Wanted};
pub use state::{Link, Teller, Told, Words};
pub use tls::Certificate;
