//! The shim as a program of its own, for this crate's tests and measurements: `shim <attempt-dir>`.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let dir = std::env::args_os().nth(1).expect("usage: shim <attempt-dir>");
    outlast_shim::main(Path::new(&dir))
}
