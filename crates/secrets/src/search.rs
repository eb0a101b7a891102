//! Finds secret values in bytes: the leftmost one, and of those that begin there the longest.
//!
//! All forms are searched for at once by their first bytes, which takes little memory and about as long as a copy. Only where
//! those stand is the rest compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use aho_corasick::packed;
use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, Span};

/// So many first bytes of each form are searched for, if all forms have as many.
const HEAD: usize = 8;

/// A start of so many bytes is no accident: at the end of a text it is hidden if it is more than half of its secret.
pub const TELLING: usize = 8;

#[derive(Default)]
pub(crate) struct Search {
    /// What is shown for each form.
    forms: BTreeMap<Vec<u8>, String>,
    /// Bytes in each head.
    head: usize,
    /// The forms that begin with each head, longest first.
    groups: Vec<Vec<Form>>,
    finder: Option<Finder>,
}

#[derive(Debug)]
struct Form {
    value: Vec<u8>,
    shown: String,
}

/// For a few dozen heads the packed searcher is fast whatever the text is; it is not there for more, nor on every processor.
enum Finder {
    Packed(packed::Searcher),
    Any(AhoCorasick),
}

/// What is next in a text.
enum Next<'s> {
    /// A whole secret, and what is shown for it.
    Secret {
        at: usize,
        end: usize,
        shown: &'s str,
    },
    /// What may become a secret with more bytes.
    Start {
        at: usize,
    },
    Nothing,
}

/// Whether more bytes may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Text {
    GoesOn,
    Ends,
}

impl Search {
    pub(crate) fn add(&mut self, name: &str, forms: BTreeSet<Vec<u8>>) {
        for form in forms {
            self.forms.entry(form).or_insert_with(|| format!("[{name}]"));
        }
    }

    /// `None` if there is nothing to search for.
    pub(crate) fn ready(mut self) -> Option<Self> {
        self.head = self.forms.keys().map(Vec::len).min()?.min(HEAD);
        let mut groups: BTreeMap<Vec<u8>, Vec<Form>> = BTreeMap::new();
        for (value, shown) in std::mem::take(&mut self.forms) {
            groups.entry(value[..self.head].to_vec()).or_default().push(Form { value, shown });
        }
        for group in groups.values_mut() {
            group.sort_by_key(|form| std::cmp::Reverse(form.value.len()));
        }
        self.finder = Some(Finder::new(groups.keys())?);
        self.groups = groups.into_values().collect();
        Some(self)
    }

    /// Appends the text to `to`, with what is shown in the place of secrets. Says how many were replaced; if none was, `to`
    /// is left as it is.
    pub(crate) fn pass_all(&self, text: &[u8], to: &mut Vec<u8>) -> usize {
        self.pass(text, Text::Ends, Before::default(), to).replaced
    }

    /// The same of bytes of which some have left before.
    pub(crate) fn pass(&self, text: &[u8], kind: Text, before: Before, to: &mut Vec<u8>) -> Passed {
        let (mut replaced, mut from) = (0, 0);
        let new = |from: usize, end: usize| &text[from.max(before.left).min(end)..end];
        let settled = loop {
            match self.next(text, from, kind) {
                Next::Secret { at, end, shown } => {
                    to.extend_from_slice(new(from, at));
                    // Without a name in their place, hidden bytes would join what has left with what leaves next, and
                    // the two may make up a secret.
                    if end > before.left && !(before.ends_in_name && at < before.left) {
                        to.extend_from_slice(shown.as_bytes());
                    }
                    (replaced, from) = (replaced + 1, end);
                }
                Next::Start { at } => break at,
                Next::Nothing => break text.len(),
            }
        };
        if replaced > 0 || before.left > 0 {
            to.extend_from_slice(new(from.min(settled), settled));
        }
        Passed { replaced, settled, ends_in_name: replaced > 0 && from == text.len() }
    }

    fn next(&self, text: &[u8], from: usize, kind: Text) -> Next<'_> {
        let mut from = from;
        while let Some((at, group)) = self.find(text, from) {
            let rest = &text[at..];
            let is_begun =
                |form: &&Form| form.value.len() > rest.len() && form.value.starts_with(rest);
            if kind == Text::GoesOn && group.iter().any(|form| is_begun(&form)) {
                return Next::Start { at };
            }
            let whole = group.iter().find(|form| rest.starts_with(&form.value));
            let begun = || group.iter().rev().find(|form| is_begun(form) && is_telling(rest, form));
            if let Some(form) =
                whole.filter(|form| form.value.len() == rest.len()).or_else(begun).or(whole)
            {
                let end = text.len().min(at + form.value.len());
                return Next::Secret { at, end, shown: &form.shown };
            }
            from = at + 1;
        }
        // What is left is shorter than a head.
        let short = from.max((text.len() + 1).saturating_sub(self.head));
        let begins =
            |at: &usize| self.groups.iter().any(|group| group[0].value.starts_with(&text[*at..]));
        match (short..text.len()).find(begins).filter(|_| kind == Text::GoesOn) {
            Some(at) => Next::Start { at },
            None => Next::Nothing,
        }
    }

    /// Where the next head stands, and the forms that begin with it.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, &[Form])> {
        let finder = self.finder.as_ref().expect("it is there once the search is ready");
        let (at, group) = finder.find(text, from)?;
        Some((at, &self.groups[group]))
    }
}

/// What has left of a text before: so many bytes of it, and whether a secret's name left last.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Before {
    pub(crate) left: usize,
    pub(crate) ends_in_name: bool,
}

/// What has become of a text: how many secrets were replaced in it, up to where it has been passed on, and whether its last
/// bytes are one of the secrets.
pub(crate) struct Passed {
    pub(crate) replaced: usize,
    pub(crate) settled: usize,
    pub(crate) ends_in_name: bool,
}

fn is_telling(start: &[u8], form: &Form) -> bool {
    start.len() >= TELLING && start.len() * 2 > form.value.len()
}

impl Finder {
    fn new<'h>(heads: impl Iterator<Item = &'h Vec<u8>> + Clone) -> Option<Self> {
        let packed = packed::Config::new().builder().extend(heads.clone()).build();
        if let Some(searcher) = packed {
            return Some(Self::Packed(searcher));
        }
        let built = AhoCorasick::builder().kind(Some(AhoCorasickKind::ContiguousNFA)).build(heads);
        built.ok().map(Self::Any)
    }

    fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let span = Span::from(from..text.len());
        let found = match self {
            Self::Packed(searcher) => searcher.find_in(text, span)?,
            Self::Any(searcher) => searcher.find(Input::new(text).span(span))?,
        };
        Some((found.start(), found.pattern().as_usize()))
    }
}

/// Says how much there is, and never what.
impl fmt::Debug for Search {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} heads", self.groups.len())
    }
}
