//! Which build this is, and whether the daemon is another.

use outlast_home::holder;
use outlast_home::holder::Holder;
use outlast_wire::version;

use crate::output;
use crate::world::World;

/// Tells builds of one version apart: a hash of what this program was made from.
pub(crate) const BUILD: &str = env!("OUTLAST_BUILD");

/// What to do about a daemon of another build.
pub(crate) const RESTART: &str =
    "have this one take over; runs keep running meanwhile:\noutlast daemon restart";

/// Says on standard error that the daemon is of another build, if it is. Once for a command, and for those that
/// a person types often.
pub(crate) fn mention(world: &World) {
    let Ok(layout) = world.client.layout() else { return };
    // It has just answered, so what the lock says is said of it.
    let holder = holder::last(&layout.daemon_lock());
    if let Some(what) = holder.as_ref().and_then(difference) {
        output::tell(&format!("outlast: {what}\n{}", output::lines::hint(RESTART)));
    }
}

/// How the daemon differs from this program; `None` if it is of the same build.
pub(crate) fn difference(daemon: &Holder) -> Option<String> {
    differs(&daemon.version, daemon.build.as_deref())
}

pub(crate) fn differs(version: &str, build: Option<&str>) -> Option<String> {
    if build == Some(BUILD) && version == version::BUILD {
        return None;
    }
    let build =
        build.map_or_else(|| "an earlier build".to_owned(), |build| format!("build {build}"));
    let ours = version::BUILD;
    Some(format!("the daemon is version {version}, {build}; this program is {ours}, build {BUILD}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_of_two_builds_is_two_programs() {
        assert_eq!(differs(version::BUILD, Some(BUILD)), None);
        assert!(differs(version::BUILD, Some("0")).is_some_and(|said| said.contains("build 0;")));
        assert!(
            differs(version::BUILD, None).is_some_and(|said| said.contains("an earlier build"))
        );
        assert!(differs("9.9.9", Some(BUILD)).is_some());
    }
}
