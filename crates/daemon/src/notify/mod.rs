//! Telling those who are not looking: the words of a notice, and the way to each kind of sink.

mod body;

pub(crate) use body::Words;
