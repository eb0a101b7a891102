//! A file that cannot be used: everything that is wrong with it, and what is odd about it besides.

use crate::problem::{Code, Problem};

/// Never without an error. Both lists are in the order in which a person reads them: causes before what follows
/// from them, then by line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

impl Refused {
    pub(crate) fn new(mut errors: Vec<Problem>, mut warnings: Vec<Problem>) -> Self {
        sort(&mut errors);
        sort(&mut warnings);
        Self { errors, warnings }
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self { errors: vec![problem], warnings: Vec::new() }
    }
}

pub(crate) fn sort(problems: &mut [Problem]) {
    // A command that is missing is often one under a key that is spelt wrong.
    problems.sort_by_key(|problem| (problem.code == Code::MissingCommand, problem.line));
}
