//! `daemon install`, `uninstall` and `status` with launchd, as far as a stand-in goes.

use std::fs;

use serde_json::Value;

use super::stand_in::Stage;
use crate::harness::{is_alive, str_of};

fn ask(stage: &Stage, verb: &str) -> Value {
    let output = stage.home.output(&["daemon", verb, "--json", "--manager", "launchd"]);
    super::install::status_of(&output)
}

fn without_user(orders: &[String]) -> Vec<&str> {
    orders
        .iter()
        .map(|order| order.split_whitespace().next().expect("an order has a verb"))
        .collect()
}

#[test]
fn an_agent_is_loaded_once_and_seen_to_run() {
    let stage = Stage::new();
    let status = ask(&stage, "install");
    assert_eq!((&status["installed"], &status["active"]), (&true.into(), &true.into()), "{status}");
    assert_eq!(status["pid"], stage.home.daemon_pid());
    assert_eq!(without_user(&stage.orders()), ["enable", "bootstrap"]);
    let plist = fs::read(stage.plist()).expect("it was written");
    let again = ask(&stage, "install");
    assert_eq!(without_user(&stage.orders()), [""; 0], "{again}");
    assert_eq!((&again["pid"], &again["installed"]), (&status["pid"], &true.into()));
    assert_eq!(fs::read(stage.plist()).expect("it is still there"), plist);
    let service = &ask(&stage, "status")["service"];
    assert_eq!((str_of(service, "manager"), str_of(service, "state")), ("launchd", "running"));
}

#[test]
fn what_is_loaded_goes_before_the_file_changes() {
    let stage = Stage::new();
    ask(&stage, "install");
    let plist = fs::read_to_string(stage.plist()).expect("it was written");
    fs::write(stage.plist(), plist.replace(">10<", ">60<")).expect("it is ours");
    stage.calls();
    let status = ask(&stage, "install");
    assert_eq!(without_user(&stage.orders()), ["bootout", "enable", "bootstrap"], "{status}");
    assert_eq!(fs::read_to_string(stage.plist()).expect("it was written"), plist);
    assert_eq!(status["installed"], true);
}

#[test]
fn one_that_was_stopped_is_started_and_not_loaded_again() {
    let stage = Stage::new();
    ask(&stage, "install");
    stage.home.ok(&["daemon", "stop"]);
    stage.calls();
    assert_eq!(ask(&stage, "install")["installed"], true);
    assert_eq!(without_user(&stage.orders()), ["kickstart"]);
}

#[test]
fn uninstalling_unloads_it_and_twice_is_fine() {
    let stage = Stage::new();
    ask(&stage, "install");
    let daemon = stage.home.daemon_pid();
    stage.calls();
    assert_eq!(ask(&stage, "uninstall")["problem"], Value::Null);
    assert_eq!(without_user(&stage.orders()), ["bootout"]);
    assert!(!stage.plist().exists() && !is_alive(daemon));
    let again = ask(&stage, "uninstall");
    assert_eq!((&again["problem"], &again["done"]), (&Value::Null, &serde_json::json!([])));
    assert_eq!(without_user(&stage.orders()), [""; 0]);
}

#[test]
fn a_tool_that_lies_or_fails_is_told_of() {
    let cases = [
        ("fails:bootstrap", "the stand-in does not bootstrap"),
        ("lies:bootstrap", "as not loaded"),
        ("hangs:print", "did not answer within 5 s"),
    ];
    for (manners, why) in cases {
        let stage = Stage::new();
        stage.manners(manners);
        let status = ask(&stage, "install");
        assert_eq!(status["installed"], false, "{status}");
        assert!(str_of(&status, "problem").contains(why), "{status}");
        assert!(status["hints"].to_string().contains("outlast daemon start"), "{status}");
    }
}

#[test]
fn without_a_session_at_the_screen_nothing_is_written() {
    let stage = Stage::new();
    stage.set("no-session", "");
    let status = ask(&stage, "install");
    assert!(str_of(&status, "problem").contains("no session of yours"), "{status}");
    assert!(!stage.plist().exists());
}
