//! The directory that client, daemon and shim share: its files, its locks, its sockets, and the processes that hold them.

pub use outlast_wire::{holder, layout};
