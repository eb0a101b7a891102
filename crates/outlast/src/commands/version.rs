//! `outlast version`: what this binary is, without asking a daemon.

use outlast_wire::version::{API, BUILD, SHIM};

use crate::Answer;
use crate::args::Version;
use crate::builds;
use crate::output;

pub(crate) fn version(args: Version) -> Answer {
    if args.json {
        let version = serde_json::json!({ "version": BUILD, "build": builds::BUILD, "api": API, "shim": SHIM });
        output::print_json(&version)?;
    } else {
        output::print_line(&format!("outlast {BUILD}"))?;
    }
    Ok(0)
}
