//! `outlast completions`: a script that completes our arguments.
//!
//! The scripts for bash, zsh and fish are ours and ask `__complete`; those for other shells are made from the
//! arguments alone and know no run.

use clap_complete::Shell;

use crate::args::{self, Completions};
use crate::{Answer, completion, output};

pub(crate) fn completions(asked: Completions) -> Answer {
    let script = match asked.shell {
        Shell::Bash => completion::BASH.to_owned(),
        Shell::Zsh => completion::ZSH.to_owned(),
        Shell::Fish => completion::FISH.to_owned(),
        other => {
            let mut script = Vec::new();
            clap_complete::generate(other, &mut args::whole(), "outlast", &mut script);
            String::from_utf8_lossy(&script).into_owned()
        }
    };
    output::print(&script)?;
    Ok(0)
}
