//! The daemon as a service: installed, watched, handed over and scoped, against stand-ins of our own making.
//!
//! No systemd and no launchd runs here, and none is ever started: `systemctl`, `loginctl` and `launchctl` are
//! scripts in the test's own directory, the bus is a private one, and only `systemd-analyze verify` is real.

mod bus;
mod install;
mod launchd;
mod notify;
mod renders;
mod scopes;
mod stand_in;
mod takes_over;
