//! `outlast man`: the manual pages, made from the help.

use std::path::Path;

use outlast_client::problem::Problem;

use crate::Answer;
use crate::args::{self, Man};
use crate::output;

pub(crate) fn man(asked: Man) -> Answer {
    match asked.dir {
        Some(dir) => write_all(&dir)?,
        None => print()?,
    }
    Ok(0)
}

fn print() -> Result<(), Problem> {
    let mut page = Vec::new();
    clap_mangen::Man::new(args::whole())
        .render(&mut page)
        .map_err(|error| Problem::failure(format_args!("cannot write the manual: {error}")))?;
    output::print(&String::from_utf8_lossy(&page))
}

fn write_all(dir: &Path) -> Result<(), Problem> {
    std::fs::create_dir_all(dir)
        .and_then(|()| clap_mangen::generate_to(args::whole(), dir))
        .map_err(|error| {
            Problem::failure(format_args!(
                "cannot write manual pages to {}: {error}",
                dir.display()
            ))
        })
}
