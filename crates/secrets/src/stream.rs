//! Secrets in bytes that come in pieces.
//!
//! Only what may become a secret is held back. How the bytes are cut changes nothing in what leaves. If what is held back has
//! to leave, it is remembered: when the rest comes, the rest is hidden.

use std::sync::Arc;

use crate::search::{Before, Passed, Search, Text};

#[derive(Debug)]
pub struct Redactor {
    search: Option<Arc<Search>>,
    /// What came last and may become a secret.
    begun: Vec<u8>,
    /// What has left of that.
    before: Before,
    passed: Vec<u8>,
}

impl Redactor {
    pub(crate) fn new(search: Option<Arc<Search>>) -> Self {
        Self { search, begun: Vec::new(), before: Before::default(), passed: Vec::new() }
    }

    /// What can leave now that these bytes have come. They are not copied unless there is a secret in them, or the start of
    /// one before them.
    pub fn feed<'b>(&'b mut self, bytes: &'b [u8]) -> &'b [u8] {
        let Some(search) = &self.search else { return bytes };
        let Self { begun, before, passed, .. } = self;
        passed.clear();
        if begun.is_empty() {
            let Passed { replaced, settled, .. } =
                search.pass(bytes, Text::GoesOn, *before, passed);
            begun.extend_from_slice(&bytes[settled..]);
            return if replaced == 0 { &bytes[..settled] } else { passed };
        }
        begun.extend_from_slice(bytes);
        let Passed { replaced, settled, .. } = search.pass(begun, Text::GoesOn, *before, passed);
        if replaced == 0 && before.left == 0 {
            passed.extend_from_slice(&begun[..settled]);
        }
        begun.drain(..settled);
        before.left = before.left.saturating_sub(settled);
        before.ends_in_name &= before.left > 0;
        passed
    }

    /// What is held back, because nothing more comes or it has taken too long. If more than half of a secret would have left
    /// then, its name leaves.
    pub fn flush(&mut self) -> &[u8] {
        if self.held() == 0 {
            return &[];
        }
        let Some(search) = &self.search else { return &[] };
        let Self { begun, before, passed, .. } = self;
        passed.clear();
        let Passed { replaced, ends_in_name, .. } = search.pass(begun, Text::Ends, *before, passed);
        if replaced == 0 && before.left == 0 {
            passed.extend_from_slice(begun);
        }
        *before = Before { left: begun.len(), ends_in_name };
        passed
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        self.begun.len() - self.before.left
    }

    /// How many bytes of what may become a secret have come, also if some of them have left.
    pub fn begun(&self) -> usize {
        self.begun.len()
    }
}
