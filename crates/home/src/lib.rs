//! The directory that client, daemon and shim share: its files, its locks, its sockets, and the processes that hold them.
//!
//! Each rule about that directory has one place here, so that the three processes cannot disagree about it. The crate
//! starts no process on Linux, keeps no state and decides no policy: how long to wait, and what to do about an answer,
//! is for the caller. It stays small because every shim carries it.

// Where things are.
pub mod directory;
pub mod layout;
pub mod regular;
pub mod socket;
pub mod trim;

// Which process: of which boot, and whether it still lives.
pub mod boot;
pub mod process;

// Which process holds what.
pub mod address;
pub mod holder;
pub mod lock;
pub mod waiter;
