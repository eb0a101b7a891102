//! `file`: any command that writes its answer into the response file. Its exit status alone answers nothing.

pub const KIND: &str = "file";
