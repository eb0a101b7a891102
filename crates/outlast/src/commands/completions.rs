//! `outlast completions`: a script that completes our arguments.

use crate::Answer;
use crate::args::{self, Completions};
use crate::output;

pub(crate) fn completions(asked: Completions) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(asked.shell, &mut args::whole(), "outlast", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(0)
}
