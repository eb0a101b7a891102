//! Which boot of the machine this is: a pid means nothing after another boot.

use std::io;

/// The boot's id. A debug build takes another from `OUTLAST_FAKE_BOOT_ID`, so that a test can play a reboot; a release
/// build has no such door.
pub fn id() -> io::Result<String> {
    match pretended() {
        Some(id) => Ok(id),
        None => of_kernel(),
    }
}

fn pretended() -> Option<String> {
    if !cfg!(debug_assertions) {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "a test plays a reboot; not in a release build")]
    std::env::var("OUTLAST_FAKE_BOOT_ID").ok()
}

#[cfg(target_os = "linux")]
fn of_kernel() -> io::Result<String> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Untested here: the boot session of macOS.
#[cfg(not(target_os = "linux"))]
fn of_kernel() -> io::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "macOS says its boot session in no file")]
    let output =
        std::process::Command::new("sysctl").args(["-n", "kern.bootsessionuuid"]).output()?;
    match String::from_utf8_lossy(&output.stdout).trim() {
        "" => Err(io::Error::other("sysctl does not know kern.bootsessionuuid")),
        id => Ok(id.to_owned()),
    }
}
