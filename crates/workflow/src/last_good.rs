//! The last good value of a file that may change under us.
//!
//! Reads no file: the caller hands over what reading gave. New runs get the value; what already runs has
//! its own.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::problem::Problem;
use crate::source;

/// What tells one version of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub device: u64,
    pub inode: u64,
    pub bytes: u64,
    pub modified_ns: i128,
}

#[derive(Debug, Clone)]
pub struct LastGood<T> {
    path: PathBuf,
    stamp: Option<Stamp>,
    content: Option<Result<Vec<u8>, ErrorKind>>,
    good: Option<T>,
    problems: Vec<Problem>,
}

/// What a reload came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// The same content as before.
    None,
    /// There is a new value.
    Changed,
    /// It is wrong now; the last good value stays, and the problems stay visible.
    Refused,
}

impl<T> LastGood<T> {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), stamp: None, content: None, good: None, problems: Vec::new() }
    }

    /// Whether the file has to be read again. A stamp of `None` is a file that is not there.
    pub fn is_news(&self, stamp: Option<&Stamp>) -> bool {
        self.content.is_none() || self.stamp.as_ref() != stamp
    }

    /// Takes what reading the file gave.
    pub fn reload(
        &mut self,
        stamp: Option<Stamp>,
        read: Result<Vec<u8>, ErrorKind>,
        parse: impl FnOnce(&str) -> Result<T, Vec<Problem>>,
    ) -> News {
        self.stamp = stamp;
        if self.content.as_ref() == Some(&read) {
            return News::None;
        }
        self.content = Some(read.clone());
        let text = source::decode(&self.path, read).map_err(|problem| vec![problem]);
        match text.and_then(|text| parse(&text)) {
            Ok(good) => {
                self.good = Some(good);
                self.problems.clear();
                News::Changed
            }
            Err(problems) => {
                self.problems = problems;
                News::Refused
            }
        }
    }

    /// Takes that the file cannot be read, for a reason that the caller names.
    pub fn refuse(&mut self, stamp: Option<Stamp>, problem: Problem) -> News {
        self.stamp = stamp;
        self.content = Some(Err(ErrorKind::Other));
        let is_news = self.problems.first() != Some(&problem);
        self.problems = vec![problem];
        if is_news { News::Refused } else { News::None }
    }

    pub fn good(&self) -> Option<&T> {
        self.good.as_ref()
    }

    /// Why the value is not that of the file as it is now; empty if it is.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}
