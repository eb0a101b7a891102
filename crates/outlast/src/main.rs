//! `outlast`: the one shipped binary, as its users, its daemon, its shims and its guards see it.
//!
//! Reads the environment and the arguments, and turns what a command answers into an exit code.

// What the program is started as, and what it is given.
mod entry;
mod world;

// The command line.
mod args;
mod cli_errors;
mod duration;
mod money;
mod text;

// One file for each verb.
mod commands;
mod loop_file;

// Watching a run.
mod attached;
mod keys;
mod printer;
mod progress;
mod signals;
mod switch;
mod terminal;
mod tty;

// The whole screen.
mod attention;
mod tui;

// The daemon as a program: its build, and its service manager.
mod builds;
mod service;

// Everything that is printed.
mod output;

use std::ffi::OsString;
use std::process::ExitCode;

use outlast_client::problem::Problem;

use crate::world::World;

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    // A shim lives as long as its command and there may be thousands: nothing is set up before it. The waiter
    // and the guard have to be small.
    match args.next() {
        Some(verb) if verb == "__shim" => return entry::shim(args.next()),
        Some(verb) if verb == outlast_wire::DRIVE_VERB => {
            return entry::drive(args.next(), &environment());
        }
        Some(verb) if verb == "__wait" => return entry::waiter(args.next()),
        Some(verb) if verb == outlast_wire::guard::GUARD_VERB => return entry::guard(),
        Some(_) | None => {}
    }
    let world = World::new(environment());
    let cli = match args::parse() {
        Ok(cli) => cli,
        Err(usage) => return cli_errors::explain(&usage),
    };
    let errors = cli.command.errors();
    commands::dispatch(cli.command, &world).unwrap_or_else(|problem| {
        output::errors::report(&problem, errors);
        ExitCode::from(problem.exit())
    })
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// What a command answers: its exit code, or what ended it early.
type Answer = Result<u8, Problem>;
