//! `outlast version`: what this binary is, without asking a daemon.

use outlast_wire::version::{API, BUILD, SHIM};

use crate::Answer;
use crate::args::Version;
use crate::output;

pub(crate) fn version(args: Version) -> Answer {
    if args.json {
        output::print_json(&serde_json::json!({ "version": BUILD, "api": API, "shim": SHIM }))?;
    } else {
        output::print_line(&format!("outlast {BUILD}"))?;
    }
    Ok(0)
}
