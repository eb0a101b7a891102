//! Files that a test makes and then executes.
//!
//! A child process writes them. If the test process wrote them itself, a process that another test forks at that moment would
//! inherit the open file, and until that process executes something else the kernel answers "Text file busy".

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An executable script.
pub(crate) fn script(path: &Path, content: &str) {
    fed("cat >\"$1\" && chmod 755 \"$1\"", &[path.as_os_str()], content.as_bytes());
}

/// A copy of the tested program.
pub(crate) fn copy(path: &Path) {
    fed("cp \"$2\" \"$1\"", &[path.as_os_str(), env!("CARGO_BIN_EXE_outlast").as_ref()], b"");
}

/// The tested program under another name: a link where both names are on one file system, otherwise a copy.
pub(crate) fn link(path: &Path) -> PathBuf {
    if std::fs::hard_link(env!("CARGO_BIN_EXE_outlast"), path).is_err() {
        copy(path);
    }
    path.to_owned()
}

/// Writes bytes into a program, in the place of those at `at`.
pub(crate) fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let at = at.to_string();
    let script = "dd of=\"$1\" bs=4096 seek=\"$2\" oflag=seek_bytes conv=notrunc status=none";
    fed(script, &[path.as_os_str(), at.as_ref()], bytes);
}

fn fed(script: &str, args: &[&std::ffi::OsStr], input: &[u8]) {
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh"]).args(args).stdin(Stdio::piped());
    let mut shell = shell.spawn().expect("there is a sh");
    shell.stdin.take().expect("it is piped").write_all(input).expect("the shell reads it");
    assert!(shell.wait().expect("it is our child").success(), "{script}: {args:?}");
}
