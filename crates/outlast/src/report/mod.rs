//! The morning after: what needs a person, what was done, what was not, what goes on, what it cost.
//!
//! `facts` asks the daemon, `sort` puts runs into groups, `page` and `json` show them. Only `facts` does IO. What the daemon
//! did not observe is not said.

mod commands;
mod facts;
mod json;
mod looked;
mod night;
mod page;
mod sort;
#[cfg(test)]
mod tests;
mod when;

pub(crate) use facts::{Facts, gather};
pub(crate) use json::json;
pub(crate) use looked::{Looked, remember};
pub(crate) use page::{Paper, page};
pub(crate) use sort::{Groups, groups};
