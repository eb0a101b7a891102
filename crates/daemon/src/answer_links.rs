//! What a link in a notice says, and the proof that it was made here.
//!
//! A link names one question and one decision, so it is good once without a table of used links: the journal takes one
//! answer to each question. It holds no secret but its own proof.

use std::io;

use outlast_engine::{Decision, RunId};

use crate::tokens::Tokens;

/// A link is good for so long after its notice.
pub(crate) const LASTS_MS: u64 = 24 * 3600 * 1000;

/// The first part of every link, so that no other signed text is taken for one.
const KIND: &str = "al1";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AnswerLink {
    pub(crate) run: RunId,
    pub(crate) seq: u64,
    pub(crate) decision: Decision,
    pub(crate) until_ms: u64,
    /// The sink whose notice has it.
    pub(crate) sink: String,
}

impl AnswerLink {
    /// `al1.RUN.SEQ.yes.UNTIL.SINK.MAC`; the sink in hexadecimal, so that an address may hold it.
    pub(crate) fn signed(&self, tokens: &Tokens) -> io::Result<String> {
        let decision = match self.decision {
            Decision::Approve => "yes",
            Decision::Deny | Decision::Reply => "no",
        };
        let sink: String = self.sink.bytes().take(32).map(|byte| format!("{byte:02x}")).collect();
        let Self { run, seq, until_ms, .. } = self;
        tokens.signed(&format!("{KIND}.{run}.{seq}.{decision}.{until_ms}.{sink}"))
    }

    /// `None` if it was not made by us.
    pub(crate) fn read(token: &str, tokens: &Tokens) -> io::Result<Option<Self>> {
        Ok(tokens.claim_of(token)?.and_then(Self::claimed))
    }

    fn claimed(claim: &str) -> Option<Self> {
        let mut parts = claim.split('.');
        if parts.next() != Some(KIND) {
            return None;
        }
        let run = RunId(parts.next()?.to_owned());
        let seq = parts.next()?.parse().ok()?;
        let decision = match parts.next()? {
            "yes" => Decision::Approve,
            "no" => Decision::Deny,
            _ => return None,
        };
        let until_ms = parts.next()?.parse().ok()?;
        let hex = parts.next()?;
        let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let sink: Option<Vec<u8>> = (0..hex.len()).step_by(2).map(byte).collect();
        let sink = String::from_utf8_lossy(&sink?).into_owned();
        parts.next().is_none().then_some(Self { run, seq, decision, until_ms, sink })
    }

    /// By which way an answer came that was given with it.
    pub(crate) fn via(&self) -> String {
        let is_plain = self.sink.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if is_plain && !self.sink.is_empty() {
            format!("link:{}", self.sink)
        } else {
            "link".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_read_back_and_a_changed_one_is_not_ours() {
        let home = tempfile::tempdir().unwrap();
        let tokens = Tokens::new(home.path().join("key"));
        let link = AnswerLink {
            run: RunId("k3m".to_owned()),
            seq: 7,
            decision: Decision::Approve,
            until_ms: 9,
            sink: "my phone".to_owned(),
        };
        let signed = link.signed(&tokens).unwrap();
        assert_eq!(AnswerLink::read(&signed, &tokens).unwrap(), Some(link.clone()));
        for changed in [
            signed.replace(".7.", ".8."),
            signed.replace(".yes.", ".no."),
            signed.replace(".9.", ".99."),
            signed[..signed.len() - 2].to_owned(),
            format!("{signed}00"),
            String::new(),
        ] {
            assert_eq!(AnswerLink::read(&changed, &tokens).unwrap(), None, "{changed}");
        }
        let other = tokens.signed("xx1.k3m.7.yes.9.6d").unwrap();
        assert_eq!(AnswerLink::read(&other, &tokens).unwrap(), None, "another kind");
        assert_eq!(link.via(), "link");
        assert_eq!(AnswerLink { sink: "phone".to_owned(), ..link }.via(), "link:phone");
    }
}
