//! `outlast completions`: a script that completes our arguments.

use clap::CommandFactory;

use crate::Answer;
use crate::args::{Cli, Completions};
use crate::output;

pub(crate) fn completions(args: Completions) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "outlast", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
