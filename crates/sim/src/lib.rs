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
//! The parts that do IO in production (the conductor, the keeper, the shim) are mirrored here step by step, in the same
//! order of belief; the plan after a restart and its books are the production [`outlast_conduct`]. A seed determines all
//! randomness: the same seed gives the same trace.

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
