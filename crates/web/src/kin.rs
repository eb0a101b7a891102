//! Whether a process belongs to a run: then it is no person, and gets no link.
//!
//! Goes by what the kernel says of the process and of those above it: their environment, their command line, their
//! control group. A process of a run that has shed all of these is the same user's, against whom there is no door.

use outlast_home::process;
use outlast_wire::environment::GUARD_NAME;
use outlast_wire::guard::GUARD_VERB;

/// No line of parents is followed further up; a deeper one counts as a run's.
const DEEPEST: usize = 512;

/// What shows that a process is no person's, if something does. A process that cannot be looked at may be a run's.
pub(crate) fn of_a_run(pid: u32) -> Option<String> {
    let mut next = pid;
    for _ in 0..DEEPEST {
        let looked = match process::stat(next) {
            Ok(looked) => looked,
            Err(error) => return Some(format!("process {next} cannot be looked at: {error}")),
        };
        let Some(stat) = looked else { return Some(format!("process {next} is gone")) };
        let read = |name: &str| process::read(next, name).ok().flatten().unwrap_or_default();
        if let Some(mark) = mark(&read("environ"), &read("cmdline"), &read("cgroup")) {
            return Some(format!("process {next} {mark}"));
        }
        if stat.parent == 0 {
            return None;
        }
        next = stat.parent;
    }
    Some(format!("process {pid} has more parents than can be followed"))
}

fn mark(environment: &[u8], command_line: &[u8], groups: &[u8]) -> Option<&'static str> {
    let mut names = environment.split(|byte| *byte == 0);
    let is_named = names.any(|it| {
        let name = it.split(|byte| *byte == b'=').next().unwrap_or_default();
        name == b"OUTLAST_RUN_ID" || name == GUARD_NAME.as_bytes()
    });
    if is_named {
        return Some("belongs to a run or to a command of the daemon");
    }
    let verb = command_line.split(|byte| *byte == 0).nth(1).unwrap_or_default();
    if verb == b"__shim" || verb == GUARD_VERB.as_bytes() {
        return Some("is the shim of a run or the guard of a command");
    }
    let mut groups = groups.split(|byte| matches!(byte, b'/' | b'\n'));
    let is_ours = groups.any(|it| it.starts_with(b"outlast-") && it.ends_with(b".scope"));
    is_ours.then_some("lives in the scope of a run")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_by_its_environment_its_shim_and_its_scope() {
        let plain = (&b"PATH=/bin\0X=OUTLAST_RUN_ID=1\0"[..], &b"sh\0-c\0__shim\0"[..]);
        assert_eq!(mark(plain.0, plain.1, b"0::/user.slice/session-2.scope\n"), None);
        assert!(mark(b"A=1\0OUTLAST_RUN_ID=k3m\0", b"", b"").is_some());
        assert!(mark(b"OUTLAST_GUARD=1\0", b"", b"").is_some());
        assert!(mark(b"", b"/bin/outlast\0__shim\0/s/runs/k3m/t1.a1\0", b"").is_some());
        assert!(mark(b"", b"/bin/outlast\0__guard\0", b"").is_some());
        assert!(mark(b"", b"", b"0::/app.slice/outlast-k3m-t1a1.scope/x\n").is_some());
    }

    #[test]
    fn a_process_that_is_gone_gets_no_link() {
        assert!(of_a_run(u32::MAX / 2).is_some());
    }
}
