//! How a run ended, as a file in its directory.
//!
//! The conductor writes it once the journal has decided on the end, and before it removes the run's environment. A
//! journal that is older than the end learns of it from this file, so no part of the run is done again. Decides
//! nothing: `recovery` does.

use std::fs::OpenOptions;
use std::io::{self, Write};

use outlast_engine::{BootId, FoundEnd, Reason, Run, State, Time, Verdict};
use outlast_home::layout::RunDir;
use serde::{Deserialize, Serialize};

use crate::world::World;
use crate::world::files::{self, Lasting};

/// `ended.json`
#[derive(Debug, Serialize, Deserialize)]
struct Kept {
    state: Verdict,
    #[serde(flatten)]
    why: Reason,
    at_ms: u64,
    /// The line of time that it is on.
    boot: BootId,
    booted_at_ms: i64,
}

/// Leaves in the directory how a finishing run ends, also on a disk that is full. A power cut may take the file: then
/// the directory proves less.
pub(crate) fn leave(dir: &RunDir, run: &Run, world: &World) -> io::Result<()> {
    let State::Finishing { verdict, since } = run.state else { return Ok(()) };
    let (boot, booted_at_ms) = (world.boot.clone(), world.booted_at_ms());
    let kept = Kept { state: verdict, why: run.why.clone(), at_ms: since.0, boot, booted_at_ms };
    let json = serde_json::to_vec(&kept).map_err(io::Error::other)?;
    files::write_whole(&dir.ended(), &json, Lasting::Process).or_else(|_| in_its_place(dir, &json))
}

/// Writes over the run's environment, which is needed no longer and has its room on the disk.
fn in_its_place(dir: &RunDir, json: &[u8]) -> io::Result<()> {
    let mut file = outlast_home::regular::open_with(OpenOptions::new().write(true), &dir.env())?;
    file.write_all(json)?;
    file.set_len(u64::try_from(json.len()).unwrap_or(u64::MAX))?;
    std::fs::rename(dir.env(), dir.ended())
}

/// How the run ended, by its directory; `None` if that does not say.
pub(crate) fn read(dir: &RunDir, world: &World) -> io::Result<Option<FoundEnd>> {
    let bytes = match outlast_home::regular::read(&dir.ended()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let Kept { state, why, at_ms, boot, booted_at_ms } = serde_json::from_slice(&bytes)?;
    let is_of_this_boot = boot == world.boot;
    let at = match is_of_this_boot {
        true => world.of_shim(Time(at_ms), Some(booted_at_ms)),
        false => Time(at_ms),
    };
    Ok(Some(FoundEnd { verdict: state, why, at }))
}

#[cfg(test)]
mod tests {
    use outlast_engine::Actor;

    use super::*;

    /// Found by the hostile soak: the disk had no room for how a run ended, and its environment was removed.
    #[test]
    fn on_a_full_disk_the_environment_makes_room_for_how_the_run_ended() {
        let temp = tempfile::tempdir().expect("a temporary directory");
        let dir = RunDir(temp.path().to_owned());
        std::fs::copy("/proc/self/status", dir.env()).expect("it is ours");
        let why = Reason {
            reason: "done".to_owned(),
            reason_code: outlast_engine::ReasonCode::Done.into(),
            evidence: Vec::new(),
            actor: Actor::Engine,
        };
        let world = World::look(None).expect("this machine has a boot id");
        let (boot, booted_at_ms) = (world.boot.clone(), world.booted_at_ms());
        let kept = Kept { state: Verdict::Completed, why, at_ms: 7, boot, booted_at_ms };
        let json = serde_json::to_vec(&kept).expect("plain data");
        in_its_place(&dir, &json).expect("its room is enough");
        assert!(!dir.env().exists(), "no secret is left");
        let end = read(&dir, &world).expect("it can be read").expect("it is there");
        assert_eq!((end.verdict, end.at), (Verdict::Completed, Time(7)));
    }
}
