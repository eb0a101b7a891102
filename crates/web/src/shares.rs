//! Read-only links: which run each is for, and until when.
//!
//! A link is good as often as it is opened, until its time is over or it is revoked. Only hashes of the secrets are
//! kept, in memory, so that every link ends with the process. Reads no clock: the time is an argument.

use std::time::Duration;

use outlast_client::problem::Problem;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::access::{Hash, hash, is_same, secret};

/// How long a link lasts unless it is said.
pub const SHARE_HOURS: u32 = 24;
/// How long a link lasts at most.
pub const MOST_SHARE_HOURS: u32 = 7 * 24;
/// Links at once. One more is refused: another person may rely on each of them.
const MOST_SHARES: usize = 64;

/// What a link is to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    pub run: String,
    pub hours: u32,
    /// What the run wrote, too.
    pub output: bool,
}

/// A link as its owner sees it in a list. Its secret is not here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shared {
    pub id: String,
    pub run: String,
    pub output: bool,
    pub left_s: u64,
}

/// What the holder of a link may look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grant {
    pub(crate) id: String,
    pub(crate) run: String,
    pub(crate) output: bool,
    pub(crate) until: Instant,
}

#[derive(Debug, Default)]
pub(crate) struct Shares {
    list: Vec<(Hash, Grant)>,
}

impl Shares {
    /// A new link's secret, and the link in the list.
    pub(crate) fn add(
        &mut self,
        wanted: Wanted,
        now: Instant,
    ) -> Result<(String, Shared), Problem> {
        if !(1..=MOST_SHARE_HOURS).contains(&wanted.hours) {
            let message = format!("a link lasts 1 to {MOST_SHARE_HOURS} hours");
            return Err(Problem::refusal("bad_request", message));
        }
        self.sweep(now);
        if self.list.len() >= MOST_SHARES {
            let message = format!("there are {MOST_SHARES} read-only links already");
            return Err(
                Problem::refusal("too_many_links", message).hint("outlast web unshare ID|RUN")
            );
        }
        let id = secret::<4>().map_err(Problem::failure)?;
        let secret = secret::<32>().map_err(Problem::failure)?;
        let until = now + Duration::from_secs(3600 * u64::from(wanted.hours));
        let grant = Grant { id, run: wanted.run, output: wanted.output, until };
        let shared = grant.shared(now);
        self.list.push((hash(&secret), grant));
        Ok((secret, shared))
    }

    /// What the link with this secret shows, while it lasts.
    pub(crate) fn grant(&self, secret: &str, now: Instant) -> Option<&Grant> {
        let wanted = hash(secret);
        let mut open = self.list.iter().filter(|(_, grant)| now < grant.until);
        open.find(|(hash, _)| is_same(hash, &wanted)).map(|(_, grant)| grant)
    }

    /// The links that last, oldest first.
    pub(crate) fn list(&mut self, now: Instant) -> Vec<Shared> {
        self.sweep(now);
        self.list.iter().map(|(_, grant)| grant.shared(now)).collect()
    }

    /// Ends the link with this id, or all links to the run with it. The links that ended.
    pub(crate) fn end(&mut self, which: &str, now: Instant) -> Vec<Shared> {
        self.sweep(now);
        let is_meant = |grant: &Grant| grant.id == which || grant.run == which;
        let ended = self.list.iter().filter(|(_, grant)| is_meant(grant));
        let ended = ended.map(|(_, grant)| grant.shared(now)).collect();
        self.list.retain(|(_, grant)| !is_meant(grant));
        ended
    }

    /// True while the link with this id lasts.
    pub(crate) fn goes_on(&self, id: &str, now: Instant) -> bool {
        self.list.iter().any(|(_, grant)| grant.id == id && now < grant.until)
    }

    fn sweep(&mut self, now: Instant) {
        self.list.retain(|(_, grant)| now < grant.until);
    }
}

impl Grant {
    fn shared(&self, now: Instant) -> Shared {
        let left_s = self.until.saturating_duration_since(now).as_secs();
        Shared { id: self.id.clone(), run: self.run.clone(), output: self.output, left_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_lasts_its_hours_and_ends_when_it_is_revoked() {
        let start = Instant::now();
        let at = |hours: u64| start + Duration::from_secs(3600 * hours);
        let mut shares = Shares::default();
        let wanted = |run: &str, hours| Wanted { run: run.to_owned(), hours, output: true };
        let (first, shared) = shares.add(wanted("k3m", 24), at(0)).unwrap();
        let (second, _) = shares.add(wanted("x7q", 168), at(0)).unwrap();
        assert_eq!((first.len(), shared.left_s, shared.id.len()), (64, 24 * 3600, 8));
        assert_eq!(shares.grant(&first, at(23)).map(|it| it.run.as_str()), Some("k3m"));
        assert_eq!(shares.grant(&first, at(23)).map(|it| it.run.as_str()), Some("k3m"), "often");
        assert_eq!(shares.grant(&shared.id, at(23)), None, "its id is no secret");
        assert_eq!(shares.grant(&first, at(24)), None, "its time is over");
        assert!(!shares.goes_on(&shared.id, at(24)));
        assert_eq!(shares.list(at(24)).len(), 1);
        assert_eq!(shares.end("k3m", at(24)), []);
        assert_eq!(shares.end("x7q", at(25)).len(), 1);
        assert_eq!(shares.grant(&second, at(25)), None, "it was revoked");
        for hours in [0, 169] {
            assert!(shares.add(wanted("k3m", hours), at(0)).is_err(), "{hours}");
        }
    }

    #[test]
    fn there_are_so_many_links_and_no_more() {
        let now = Instant::now();
        let mut shares = Shares::default();
        let wanted = Wanted { run: "k3m".to_owned(), hours: 1, output: false };
        for _ in 0..MOST_SHARES {
            shares.add(wanted.clone(), now).unwrap();
        }
        assert!(shares.add(wanted.clone(), now).is_err());
        assert!(shares.add(wanted, now + Duration::from_secs(3600)).is_ok(), "old ones are gone");
    }
}
