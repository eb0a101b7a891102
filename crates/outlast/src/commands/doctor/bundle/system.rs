//! Facts about this system that explain what a daemon meets on it.

use std::path::Path;

use outlast_home::layout::Layout;
use outlast_wire::again;
use serde_json::{Value, json};

pub(super) fn facts(layout: &Layout) -> Value {
    let name = rustix::system::uname();
    let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    json!({
        "kernel": text(name.release()),
        "machine": text(name.machine()),
        "system": os_release(),
        "cpus": std::thread::available_parallelism().map_or(0, std::num::NonZero::get),
        "memory_kib": memory_kib(),
        "state_directory": disk(&layout.state),
        "runtime_directory": disk(&layout.runtime),
        "socket_path_bytes": outlast_home::address::socket(layout).unwrap_or_else(|| layout.socket()).as_os_str().len(),
        "cgroup": cgroup(),
        "systemd": systemd(),
        "container": Path::new("/.dockerenv").exists() || Path::new("/run/.containerenv").exists(),
    })
}

fn os_release() -> Option<String> {
    let text = std::fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn memory_kib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn disk(path: &Path) -> Value {
    let Some(existing) = path.ancestors().find(|path| path.exists()) else { return Value::Null };
    let (Ok(space), Ok(kind)) = (rustix::fs::statvfs(existing), rustix::fs::statfs(existing))
    else {
        return Value::Null;
    };
    json!({
        "file_system": file_system(i128::from(kind.f_type)),
        "free_bytes": space.f_bavail.saturating_mul(space.f_frsize),
        "total_bytes": space.f_blocks.saturating_mul(space.f_frsize),
        "free_inodes": space.f_favail,
        "read_only": space.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY),
    })
}

/// By the number that the kernel has for it.
fn file_system(number: i128) -> String {
    let known = [
        (0xef53, "ext4"),
        (0x0102_1994, "tmpfs"),
        (0x9123_683e, "btrfs"),
        (0x5846_5342, "xfs"),
        (0x794c_7630, "overlay"),
        (0x6969, "nfs"),
        (0x2fc1_2fc1, "zfs"),
        (0x6573_5546, "fuse"),
        (0xff53_4d42, "cifs"),
        (0x0102_1997, "9p"),
    ];
    let found = known.iter().find(|(known, _)| *known == number & 0xffff_ffff);
    found.map_or_else(|| format!("{number:#x}"), |(_, name)| (*name).to_owned())
}

fn cgroup() -> &'static str {
    if Path::new("/sys/fs/cgroup/cgroup.controllers").exists() {
        "v2"
    } else if Path::new("/sys/fs/cgroup").exists() {
        "v1"
    } else {
        "none"
    }
}

/// Told by its library's name, so that nothing has to be started.
fn systemd() -> Value {
    let places = [
        "/usr/lib/systemd",
        "/lib/systemd",
        "/usr/lib/x86_64-linux-gnu/systemd",
        "/usr/lib/aarch64-linux-gnu/systemd",
        "/usr/lib64/systemd",
    ];
    let version =
        places.iter().filter_map(|place| again::read_dir(place).ok()).find_map(|entries| {
            entries.flatten().find_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some(name.strip_prefix("libsystemd-shared-")?.strip_suffix(".so")?.to_owned())
            })
        });
    json!({ "version": version, "booted": Path::new("/run/systemd/system").exists() })
}
