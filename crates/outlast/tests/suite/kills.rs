//! The daemon is killed at random moments, while runs are being started.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::harness::{Home, kill, lines, text, until};
use crate::hosted::{BEARS_ALL, configure};

/// How many kills; `OUTLAST_TEST_KILLS` asks for more.
fn kills() -> u32 {
    std::env::var("OUTLAST_TEST_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(20)
}

#[test]
fn every_acknowledged_run_exists_and_was_executed_at_most_once_an_attempt() {
    let home = Home::new();
    configure(&home, BEARS_ALL);
    let executed = home.scratch().join("executed");
    fs::create_dir(&executed).expect("the scratch directory is ours");
    home.ok(&["daemon", "start"]);
    let is_over = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let starter = scope.spawn(|| start_runs(&home, &executed, &is_over));
        kill_daemons(&home, kills());
        is_over.store(true, Ordering::Release);
        starter.join().expect("the starter does not panic")
    });
    assert!(acknowledged.len() > 1);
    for id in &acknowledged {
        let code = home.wait(id);
        assert_eq!(code, 0, "run {id}: {}", home.ok(&["events", id]));
    }
    for entry in fs::read_dir(&executed).expect("the directory is ours").flatten() {
        assert_eq!(lines(&entry.path()), 1, "{:?} was executed more than once", entry.file_name());
    }
}

/// Starts runs one after another until told to end; returns the ids that were acknowledged.
fn start_runs(home: &Home, executed: &std::path::Path, is_over: &AtomicBool) -> BTreeSet<String> {
    let script = format!("echo x >> {}/$OUTLAST_RUN_ID.$OUTLAST_ATTEMPT", executed.display());
    let mut acknowledged = BTreeSet::new();
    while !is_over.load(Ordering::Acquire) {
        let output = home.output(&["run", "-d", "--", "sh", "-c", &script]);
        if output.status.success() {
            acknowledged.insert(text(&output.stdout).trim_end().to_owned());
        }
    }
    acknowledged
}

/// Kills the process that holds the daemon's lock, at pseudo-random moments.
fn kill_daemons(home: &Home, count: u32) {
    let lock = home.state().join("daemon.lock");
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut last = None;
    for _ in 0..count {
        let pid = until("another daemon says who it is", || {
            let holder: serde_json::Value =
                serde_json::from_str(&fs::read_to_string(&lock).ok()?).ok()?;
            let pid = u32::try_from(holder["pid"].as_u64()?).ok()?;
            (Some(pid) != last).then_some(pid)
        });
        chance =
            chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The moment is what is random here, so this is the one place that lets time pass.
        std::thread::sleep(std::time::Duration::from_micros((chance >> 33) % 40_000));
        kill(pid, "KILL");
        last = Some(pid);
    }
    drop(home.outlast(&["daemon", "start"]).stdout(Stdio::null()).status());
}
