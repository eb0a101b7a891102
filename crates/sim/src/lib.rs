//! The simulator: a whole machine in one seed.
//!
//! Runs the production engine, the production [`outlast_conduct::fenced_run::FencedRun`] and the production
//! [`outlast_store::Memory`] over a world of shims, processes, disks, clocks and clients that is made of plain data and
//! one random number generator. Daemons, shims and the machine die between any two steps; answers get lost; inputs are
//! late, repeated and out of order. After every append, after every exec and at the end the simulator compares what was
//! promised with what really happened in that world.
//!
//! Runs are single commands and loops with what a loop file can say. Their agents answer, crash, hang and call tools;
//! people send, pause, stop and answer at odd times. Once the faults are over, those people release the runs that rest,
//! and every run has to end by its own ceilings.
//!
//! The conductor of a run, the monitor of a step, the plan after a restart and the books of slots and budgets are the
//! production code of [`outlast_conduct`]; this crate only carries out what they decide. A daemon's start, the creation of
//! a run and the news of children are written again here, in production's order.
//!
//! Only the shim is a twin as a whole, of about 500 lines: `shim` and its data in `world`. The twin may stay: the loop of
//! production's shim is driven by `poll(2)` over real descriptors, which this world does not have, and the end-to-end
//! suite kills that shim at every crash point it has.
//!
//! A seed determines all randomness: the same seed gives the same trace.

// Plain data: what the machine is made of, and what a seed draws.
mod failure;
mod faults;
mod options;
mod record;
mod rng;
mod rules;
mod spec;
mod stats;
mod tree;
mod wire;
mod world;

// What reads that data and judges it.
mod truth;

// Commands and shims.
mod agent;
mod callers;
mod processes;
mod shim;

// The production conductor and step monitor over this world.
mod books;
mod conductor;
mod family;
mod journal;
mod restarts;
mod step;
mod workspace;

// Daemons, their clients, and a seed from its first step to its rest.
mod daemon;
mod machine;
mod simulation;

pub use failure::Failure;
pub use options::{Options, Sabotage};
pub use simulation::{run_range, run_seed};
pub use stats::Stats;
