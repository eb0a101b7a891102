//! What a service manager has to know of this Outlast, whichever manager it is.

use std::path::Path;

use super::Shortfall;
use crate::world::World;

/// How the daemon is run by a service manager.
pub(super) const ARGS: [&str; 3] = ["daemon", "run", "--wait"];

/// How the page is.
pub(super) const PAGE_ARGS: [&str; 2] = ["web", "--no-link"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Description {
    /// This program, by a name that stays good.
    pub(super) exe: String,
    /// Where to find agents, and where this Outlast keeps its runs. A manager's own environment is too bare.
    pub(super) env: Vec<(&'static str, String)>,
    /// What is said before there is a log.
    pub(super) log: String,
}

impl Description {
    pub(super) fn of(world: &World) -> Result<Self, Shortfall> {
        let exe = world.client.program()?;
        let mut env = Vec::new();
        let names: &[&str] = match world.client.var("OUTLAST_HOME") {
            Some(_) => &["PATH"],
            None => &["PATH", "XDG_CONFIG_HOME", "XDG_STATE_HOME"],
        };
        for name in names.iter().copied() {
            if let Some(value) = world.client.var(name) {
                env.push((name, plain(name, Path::new(value))?));
            }
        }
        let layout = world.client.layout()?;
        if world.client.var("OUTLAST_HOME").is_some() {
            env.push(("OUTLAST_HOME", plain("OUTLAST_HOME", layout.home())?));
        }
        let log = plain("the state directory", &layout.state.join("service.log"))?;
        Ok(Self { exe: plain("the path of this program", &exe)?, env, log })
    }
}

/// Neither a unit nor a property list holds what is not text on one line.
fn plain(what: &str, value: &Path) -> Result<String, Shortfall> {
    let text = value.to_str().filter(|text| !text.contains(char::is_control));
    text.map(str::to_owned).ok_or_else(|| {
        Shortfall::new(format!("{what} cannot be written down for a service manager: {value:?}"))
            .hint("it has to be text on one line")
    })
}
