//! `outlast`: the one shipped binary, as its users, its daemon, its shims and its guards see it.
//!
//! Reads the environment and the arguments, and turns what a command answers into an exit code.

// What the program is started as, and what it is given.
mod entry;
mod world;

// The command line.
mod args;
mod cli_errors;
mod completion;
mod duration;
mod moment;
mod money;
mod shell;
mod stdin;
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

// All runs at once.
mod attention;
mod qr;
mod report;
mod tui;
mod turns;

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
        Some(verb) if verb == outlast_wire::snapshot::SNAPSHOT_VERB => {
            return entry::snapshot(args.next(), &environment());
        }
        Some(verb) if verb == "__wait" => return entry::waiter(args.next()),
        Some(verb) if verb == outlast_wire::guard::GUARD_VERB => return entry::guard(),
        Some(verb) if verb == "__complete" => {
            let answer = commands::complete::complete(environment(), args.collect());
            return ExitCode::from(answer.unwrap_or_else(|problem| problem.exit()));
        }
        // There is one beside each agent: it does without the command line, whose tables would be half of its memory.
        Some(verb) if verb == "mcp" && args.len() == 0 => {
            let world = World::new(environment());
            let command = args::Command::Mcp(args::Mcp::default());
            return answered(command, &world);
        }
        Some(_) | None => {}
    }
    let world = World::new(environment());
    let typed = args::aliases::expand(std::env::args_os().collect());
    if typed.len() < 2 && is_for_a_person(&world) {
        return commands::alone(&world).unwrap_or_else(|problem| {
            output::errors::report(&problem, output::errors::Errors::ForPeople);
            ExitCode::from(problem.exit())
        });
    }
    let cli = match args::read(&typed) {
        Ok(cli) => cli,
        Err(usage) => return ExitCode::from(cli_errors::explain(&usage, &typed)),
    };
    answered(cli.command, &world)
}

fn answered(command: args::Command, world: &World) -> ExitCode {
    let errors = command.errors();
    commands::dispatch(command, world).unwrap_or_else(|problem| {
        output::errors::report(&problem, errors);
        ExitCode::from(problem.exit())
    })
}

/// True on a terminal, once there is something to show. In a pipe, and before the first run, `outlast` alone is help.
fn is_for_a_person(world: &World) -> bool {
    let has_runs = world.client.layout().is_ok_and(|layout| layout.database().exists());
    has_runs && terminal::is_there()
}

#[expect(clippy::disallowed_methods, reason = "this is where the environment is read")]
fn environment() -> Vec<(OsString, OsString)> {
    std::env::vars_os().collect()
}

/// What a command answers: its exit code, or what ended it early.
type Answer = Result<u8, Problem>;
