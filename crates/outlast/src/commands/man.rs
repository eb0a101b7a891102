//! `outlast man`: the manual pages, made from the help.

use std::path::Path;

use clap::CommandFactory;

use crate::Answer;
use crate::args::{Cli, Man};
use crate::output;
use crate::problem::Problem;

pub(crate) fn man(args: Man) -> Answer {
    match args.dir {
        Some(dir) => write_all(&dir)?,
        None => print()?,
    }
    Ok(0)
}

fn print() -> Result<(), Problem> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command())
        .render(&mut page)
        .map_err(|error| Problem::failure(format_args!("cannot write the manual: {error}")))?;
    output::print(&String::from_utf8_lossy(&page))
}

fn write_all(dir: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), dir))
        .map_err(|error| {
            Problem::failure(format_args!(
                "cannot write manual pages to {}: {error}",
                dir.display()
            ))
        })
}
