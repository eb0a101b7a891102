//! Each step's shim in a scope of its own, and runs that go on where that cannot be had.

use std::os::unix::net::UnixListener;

use super::bus::{Bus, Manners};
use super::notify::{Listener, service};
use crate::harness::{Background, Home, skip, text, until};

const NO_BUS: &str = "there is no dbus-daemon; Debian has it in the package dbus";

fn daemon(home: &Home, bus: &str) -> Background {
    let listener = Listener::new(home);
    let daemon = service(home, &listener, &[("DBUS_SESSION_BUS_ADDRESS", bus)]);
    until("the daemon answers", || home.daemon_if_up());
    daemon
}

fn log(home: &Home) -> String {
    text(&std::fs::read(home.state().join("daemon.log")).unwrap_or_default())
}

#[test]
fn a_shim_is_moved_to_its_own_scope_before_it_starts_anything() {
    let home = Home::new();
    let Some(bus) = Bus::new(&home, Manners::Answers) else { return skip(NO_BUS) };
    let _daemon = daemon(&home, &bus.address);
    assert_eq!(bus.subscribers(), 0, "no client is connected before there is a step");
    let id = home.start("exit 3");
    assert_eq!(home.wait(&id), 1);
    let again = home.start("exec sleep 1000");
    let shim = home.shim_pid(&again);
    let asked = bus.asked();
    let names: Vec<&str> = asked.iter().map(|asked| asked.name.as_str()).collect();
    assert_eq!(names, [format!("outlast-{id}-t1a1.scope"), format!("outlast-{again}-t1a1.scope")]);
    assert!(asked.iter().all(|asked| asked.mode == "fail" && !asked.had_begun), "{asked:?}");
    assert!(
        asked.iter().all(|asked| !asked.properties.contains(&"OOMPolicy".to_owned())),
        "{asked:?}"
    );
    assert_eq!(asked[0].properties, ["PIDs", "Description", "CollectMode", "Delegate", "Slice"]);
    assert_eq!(asked[1].pid, shim);
    assert_eq!(bus.subscribers(), 1, "there is one connection");
    assert_eq!(
        home.show(&again)["scope"],
        serde_json::Value::Null,
        "the stand-in has moved no process"
    );
}

#[test]
fn a_scope_that_is_still_there_gets_a_neighbour() {
    let home = Home::new();
    let Some(bus) = Bus::new(&home, Manners::HasOne) else { return skip(NO_BUS) };
    let _daemon = daemon(&home, &bus.address);
    let id = home.start("exit 0");
    assert_eq!(home.wait(&id), 0);
    let asked = bus.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert_eq!(asked[1].name, format!("outlast-{id}-t1a1-{}.scope", asked[1].pid));
    assert!(!log(&home).contains("no scopes"));
}

#[test]
fn a_manager_that_refuses_or_hangs_holds_no_run_up_for_long_and_is_left_alone() {
    for manners in [Manners::Refuses, Manners::Hangs] {
        let home = Home::new();
        let Some(bus) = Bus::new(&home, manners) else { return skip(NO_BUS) };
        let _daemon = daemon(&home, &bus.address);
        for _ in 0..3 {
            let id = home.start("exit 0");
            assert_eq!(home.wait(&id), 0, "{manners:?}");
        }
        // It would answer now, and is not asked for a while.
        bus.behave(Manners::Answers);
        let id = home.start("exit 0");
        assert_eq!(home.wait(&id), 0);
        assert_eq!(bus.asked().len(), 1, "{manners:?}");
        assert_eq!(log(&home).matches("no scopes").count(), 1, "{manners:?}: said once");
    }
}

#[test]
fn a_bus_that_says_nothing_is_tried_by_one_for_all() {
    let home = Home::new();
    let socket = home.scratch().join("deaf");
    let listener = UnixListener::bind(&socket).expect("no other process listens there");
    let _daemon = daemon(&home, &format!("unix:path={}", socket.display()));
    let ids: Vec<String> = (0..4).map(|_| home.start("exit 0")).collect();
    assert!(ids.iter().all(|id| home.wait(id) == 0));
    listener.set_nonblocking(true).expect("it is a socket");
    assert_eq!(listener.incoming().map_while(Result::ok).count(), 1);
    assert_eq!(log(&home).matches("no scopes").count(), 1);
}

#[test]
fn without_a_bus_runs_go_on() {
    let home = Home::new();
    let nowhere = format!("unix:path={}", home.scratch().join("no-bus").display());
    let _daemon = daemon(&home, &nowhere);
    let id = home.start("exit 0");
    assert_eq!(home.wait(&id), 0);
    assert_eq!(log(&home).matches("no scopes").count(), 1);
}

#[test]
fn a_daemon_that_is_no_service_asks_for_no_scope() {
    let home = Home::new();
    let Some(bus) = Bus::new(&home, Manners::Answers) else { return skip(NO_BUS) };
    let home = home.env("DBUS_SESSION_BUS_ADDRESS", &bus.address).env("INVOCATION_ID", "0123");
    let id = home.start("exit 0");
    assert_eq!(home.wait(&id), 0);
    assert_eq!((bus.asked().len(), bus.subscribers()), (0, 0));
}
