//! What every client of the daemon needs: to find the daemon, start it, ask it and follow what it does.
//!
//! The crate promises that each question survives the daemon: a question without an answer is asked again, and output
//! and events continue at the exact byte and number at which they broke off. The crate prints nothing, reads no
//! arguments and never opens the store. Each failure is a [`problem::Problem`], which has the words for a person and
//! the exit code for a script.

// What a client is given, and what it gives back when it cannot go on.
pub mod environment;
pub mod problem;
pub mod program;
pub mod world;

// Find: which daemon lives, from the files that it holds.
pub mod absence;
pub mod nudge;

// Start: a connection, with a daemon behind it.
pub mod ask;
pub mod autostart;
pub mod connect;
pub mod connection;
pub mod dial;

// Ask: questions that outlive the daemon.
pub mod call;
pub mod run_id;
pub mod session;

// Follow: answers that go on.
pub mod follow;
mod frames;
pub mod journal;
pub mod rows;
pub mod sse;
pub mod wait;
