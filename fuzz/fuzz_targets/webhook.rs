#![no_main]

#[path = "../daemon_entries.rs"]
#[allow(dead_code, reason = "each target uses its function")]
mod daemon_entries;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| daemon_entries::webhook(bytes));
