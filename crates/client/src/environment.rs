//! The environment that the program was started with, as a list of names and values.
//!
//! Reads nothing from the process; `main` does that once.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use outlast_home::layout::Environment;

/// The value of a variable; `None` if the variable is not set, or is empty.
pub fn lookup<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let (_, value) = env.iter().find(|(key, _)| key == name)?;
    (!value.is_empty()).then_some(value)
}

/// The variables that say where Outlast keeps its files.
pub(crate) fn directories(env: &[(OsString, OsString)]) -> Environment {
    let path = |name| lookup(env, name).map(PathBuf::from);
    // The XDG specification has relative paths ignored.
    let absolute = |name| path(name).filter(|path| path.is_absolute());
    Environment {
        outlast_home: path("OUTLAST_HOME"),
        home: absolute("HOME"),
        xdg_config_home: absolute("XDG_CONFIG_HOME"),
        xdg_state_home: absolute("XDG_STATE_HOME"),
        xdg_runtime_dir: absolute("XDG_RUNTIME_DIR"),
    }
}
