//! The simulator: a whole machine in one seed.
//!
//! Runs the production engine, the production [`outlast_conduct::fenced_run::FencedRun`] and the production
//! [`outlast_store::Memory`] over a world of shims, processes, disks, clocks and clients that is made of
//! plain data and one random number generator. Daemons, shims and the machine die between any two steps;
//! answers get lost; news is late, repeated and out of order. After every append, every exec and at the end
//! the promise is checked against what really happened in that world.
//!
//! Runs are single commands and loops with everything a loop file can say; their agents answer, crash, hang
//! and call tools; people send, pause, stop and answer at odd times. Once the faults are over, those people see
//! to what rests, and every run has to come to its end by its own ceilings.
//!
//! The books of restarts and the plan over them are production's too (`outlast_conduct`). What does IO in production
//! (the conductor, the keeper, the shim) is mirrored here step by step, in the same order of belief. A seed is the whole of a run's randomness: the
//! same seed gives the same trace.

mod agent;
mod chore;
mod conductor;
mod daemon;
mod failure;
mod family;
mod faults;
mod keeper;
mod options;
mod person;
mod record;
mod restarts;
mod rng;
mod shim;
mod simulation;
mod spec;
mod stats;
mod tree;
mod truth;
mod wire;
mod workload;
mod world;

pub use failure::Failure;
pub use options::{Options, Sabotage};
pub use simulation::{run_range, run_seed};
pub use stats::Stats;
