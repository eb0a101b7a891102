//! `outlast help`: the help of the program or of a verb, as `--help` prints it.

use std::ffi::OsString;

use crate::args::{self, Help};
use crate::{Answer, cli_errors};

pub(crate) fn help(asked: Help) -> Answer {
    let words = std::iter::once("outlast".to_owned()).chain(asked.verbs);
    let mut words = args::aliases::expand(words.map(OsString::from).collect());
    words.push("--help".into());
    match args::whole().try_get_matches_from(&words) {
        Err(shown) => Ok(cli_errors::explain(&shown, &words)),
        Ok(_) => unreachable!("--help is always answered with help"),
    }
}
