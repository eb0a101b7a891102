//! Tokens: they tell which run a call from inside a run comes from.
//!
//! Each step gets one in its environment. It is a MAC under a key that only this user can read, so no run can make
//! another run's token. A token gives no right that a person has: it only narrows what its bearer may do.

use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use outlast_engine::{RunId, Step};
use sha2::Sha256;

use crate::world::files::{self, Lasting};
use crate::world::{self, host};

const KEY_BYTES: usize = 32;

/// So much of a digest is kept.
const DIGEST_BYTES: usize = 16;

/// The first part of every token, so that another kind can be told from it.
const KIND: &str = "ot1";

pub(crate) struct Tokens {
    path: PathBuf,
    /// Read, or made, when it is first needed.
    key: OnceLock<[u8; KEY_BYTES]>,
}

impl Tokens {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, key: OnceLock::new() }
    }

    /// The token of a step: `ot1.RUN.STEP.MAC`.
    pub(crate) fn of(&self, run: &RunId, step: Step) -> io::Result<String> {
        let claim = claim(run, step);
        let mac = mac(&self.key()?, &claim).finalize().into_bytes();
        let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{claim}.{hex}"))
    }

    /// The attempt that a token was made for; `None` if it was not made by us, or for an errand.
    pub(crate) fn attempt_of(&self, token: &str) -> io::Result<Option<(RunId, u32, u32)>> {
        let Some(run) = self.run_of(token)? else { return Ok(None) };
        let numbers = || {
            let step = token.split('.').nth(2)?.strip_prefix('t')?;
            let (turn, attempt) = step.split_once('a')?;
            Some((turn.parse().ok()?, attempt.parse().ok()?))
        };
        Ok(numbers().map(|(turn, attempt)| (run, turn, attempt)))
    }

    /// The run that a token was made for; `None` if it was not made by us.
    pub(crate) fn run_of(&self, token: &str) -> io::Result<Option<RunId>> {
        let Some((claim, hex)) = token.rsplit_once('.') else { return Ok(None) };
        let Some(run) = claim.strip_prefix(KIND).and_then(|rest| rest.strip_prefix('.')) else {
            return Ok(None);
        };
        let (Some((run, _step)), Some(bytes)) = (run.split_once('.'), bytes(hex)) else {
            return Ok(None);
        };
        let is_ours = mac(&self.key()?, claim).verify_slice(&bytes).is_ok();
        Ok(is_ours.then(|| RunId(run.to_owned())))
    }

    /// A claim that only we can have made, with what proves it: `CLAIM.MAC`.
    pub(crate) fn signed(&self, claim: &str) -> io::Result<String> {
        Ok(format!("{claim}.{}", self.digest(claim)?))
    }

    /// The claim of what [`Tokens::signed`] made; `None` if it is not ours.
    pub(crate) fn claim_of<'t>(&self, signed: &'t str) -> io::Result<Option<&'t str>> {
        let Some((claim, hex)) = signed.rsplit_once('.') else { return Ok(None) };
        let Some(bytes) = bytes(hex).filter(|bytes| bytes.len() == DIGEST_BYTES) else {
            return Ok(None);
        };
        let is_ours = mac(&self.key()?, claim).verify_truncated_left(&bytes).is_ok();
        Ok(is_ours.then_some(claim))
    }

    /// A digest under the same key: it says whether two texts are the same, and nothing of what is in them.
    pub(crate) fn digest(&self, text: &str) -> io::Result<String> {
        let mac = mac(&self.key()?, text).finalize().into_bytes();
        Ok(mac.iter().take(DIGEST_BYTES).map(|byte| format!("{byte:02x}")).collect())
    }

    fn key(&self) -> io::Result<[u8; KEY_BYTES]> {
        if let Some(key) = self.key.get() {
            return Ok(*key);
        }
        let key = match files::read_regular(&self.path, KEY_BYTES) {
            Ok(bytes) => <[u8; KEY_BYTES]>::try_from(bytes)
                .map_err(|bytes| format!("it has {} bytes", bytes.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(self.new_key()?),
            // The host lacks descriptors or memory: the key itself is as it was.
            Err(error) if host::failure(&error).is_some() => return Err(error),
            Err(error) => Err(error.to_string()),
        };
        let key = match key {
            Ok(key) => key,
            Err(why) => {
                // The tokens that were made with the old key are lost. Their bearers are known by other marks.
                tracing::error!(path = %self.path.display(), why, "the key of tokens is damaged; made a new one");
                files::set_aside(&self.path)?;
                self.new_key()?
            }
        };
        Ok(*self.key.get_or_init(|| key))
    }

    fn new_key(&self) -> io::Result<[u8; KEY_BYTES]> {
        let key = world::random::<KEY_BYTES>()?;
        files::write_whole(&self.path, &key, Lasting::Power)?;
        Ok(key)
    }
}

fn claim(run: &RunId, step: Step) -> String {
    match step {
        Step::Attempt { turn, attempt } => format!("{KIND}.{run}.t{turn}a{attempt}"),
        Step::Errand { errand } => format!("{KIND}.{run}.e{errand}"),
    }
}

fn mac(key: &[u8], claim: &str) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a MAC takes a key of any length");
    mac.update(claim.as_bytes());
    mac
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    hex.len().is_multiple_of(2).then(|| (0..hex.len()).step_by(2).map(pair).collect())?
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn run(id: &str) -> RunId {
        RunId(id.to_owned())
    }

    #[test]
    fn a_token_is_good_for_its_own_run_also_for_the_next_daemon() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token.key");
        let step = Step::Attempt { turn: 2, attempt: 1 };
        let token = Tokens::new(path.clone()).of(&run("k3m"), step).expect("a token");
        let mode = std::fs::metadata(&path).expect("it was made").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let next = Tokens::new(path);
        assert_eq!(next.run_of(&token).expect("a key"), Some(run("k3m")));
        let other = token.replace("k3m", "k3n");
        let later = token.replace("t2a1", "t3a1");
        for forged in [&other, &later, &token[..token.len() - 2], "ot1.k3m.t2a1.", "ot1", ""] {
            assert_eq!(next.run_of(forged).expect("a key"), None, "{forged}");
        }
    }

    #[test]
    fn another_key_makes_other_tokens() {
        let dir = tempfile::tempdir().expect("a directory");
        let step = Step::Errand { errand: 1 };
        let [a, b] = ["a", "b"].map(|name| Tokens::new(dir.path().join(name)));
        let token = a.of(&run("k3m"), step).expect("a token");
        assert_ne!(token, b.of(&run("k3m"), step).expect("a token"));
        assert_eq!(b.run_of(&token).expect("a key"), None);
    }

    #[test]
    fn a_damaged_key_is_set_aside_and_holds_no_step_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token.key");
        files::write(&path, b"short").expect("it is ours");
        let tokens = Tokens::new(path.clone());
        let token = tokens.of(&run("k3m"), Step::Errand { errand: 1 }).expect("a token");
        assert_eq!(tokens.run_of(&token).expect("a key"), Some(run("k3m")));
        let kept = std::fs::read(dir.path().join("token.key.damaged-1")).expect("it is kept");
        assert_eq!(kept, b"short");
    }

    #[test]
    fn a_directory_in_the_place_of_the_key_holds_no_step_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("token.key");
        std::fs::create_dir(&path).expect("it is ours");
        let tokens = Tokens::new(path.clone());
        tokens.of(&run("k3m"), Step::Errand { errand: 1 }).expect("a token");
        assert!(path.is_file() && dir.path().join("token.key.damaged-1").is_dir());
    }
}
