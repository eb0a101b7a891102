//! `daemon install`, `uninstall` and `status` with systemd.

use std::fs;

use serde_json::Value;

use super::stand_in::Stage;
use crate::harness::{Home, is_alive, kill, str_of, text, until};

fn install(stage: &Stage) -> Value {
    status_of(&stage.home.output(&["daemon", "install", "--json"]))
}

/// What is printed, whatever the exit code: an install that fell short exits with 1.
pub(super) fn status_of(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn hints(status: &Value) -> String {
    let hints = status["hints"].as_array().expect("hints are a list");
    hints.iter().map(|hint| hint.as_str().expect("text").to_owned() + "\n").collect()
}

/// It is not called installed, says why, and says what to do instead.
fn assert_shortfall(status: &Value, why: &str) {
    assert_eq!(status["installed"], false, "{status}");
    assert!(str_of(status, "problem").contains(why), "{status}");
    assert!(hints(status).contains("outlast daemon start"), "{status}");
}

#[test]
fn an_installed_service_runs_the_daemon_and_is_asked_whether_it_does() {
    let stage = Stage::new();
    let status = install(&stage);
    assert_eq!(
        (&status["installed"], &status["enabled"], &status["active"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!(status["problem"], Value::Null, "{status}");
    assert_eq!(
        stage.orders(),
        [
            "--user daemon-reload",
            "--user enable outlast.service",
            "--user --no-block start outlast.service"
        ]
    );
    let daemon = stage.home.json(&["daemon", "status", "--json"]);
    assert_eq!((&daemon["mode"], &daemon["pid"]), (&"service".into(), &status["pid"]));
    let service = &daemon["service"];
    assert_eq!(
        (str_of(service, "manager"), str_of(service, "state")),
        ("systemd", "active (running)")
    );
    assert_eq!((&service["installed"], &service["linger"]), (&true.into(), &true.into()));
    assert_eq!(str_of(service, "unit"), stage.unit().to_str().expect("a plain path"));
    let page = stage.home.ok(&["daemon", "status"]);
    assert!(page.contains("service    systemd: installed, active (running)"), "{page}");
}

#[test]
fn installing_again_changes_nothing_and_restarts_nothing() {
    let stage = Stage::new();
    let first = install(&stage);
    let unit = fs::read(stage.unit()).expect("it was written");
    let written =
        fs::metadata(stage.unit()).and_then(|file| file.modified()).expect("it was written");
    stage.calls();
    let second = install(&stage);
    assert_eq!(stage.orders(), [""; 0], "{second}");
    assert_eq!((&second["pid"], &second["done"]), (&first["pid"], &serde_json::json!([])));
    assert_eq!(fs::read(stage.unit()).expect("it is still there"), unit);
    let now =
        fs::metadata(stage.unit()).and_then(|file| file.modified()).expect("it is still there");
    assert_eq!(now, written);
    assert!(stage.home.ok(&["daemon", "install"]).starts_with("already installed"));
}

#[test]
fn a_unit_that_has_changed_is_read_again_and_the_daemon_restarted() {
    let stage = Stage::new();
    let first = install(&stage);
    let unit = fs::read_to_string(stage.unit()).expect("it was written");
    fs::write(stage.unit(), unit.replace("WatchdogSec=120", "WatchdogSec=1")).expect("it is ours");
    stage.calls();
    let second = install(&stage);
    assert_eq!(
        stage.orders(),
        ["--user daemon-reload", "--user --no-block restart outlast.service"]
    );
    assert_eq!(fs::read_to_string(stage.unit()).expect("it was written"), unit);
    assert_ne!(second["pid"], first["pid"]);
    assert_eq!(second["installed"], true);
}

#[test]
fn uninstalling_leaves_nothing_but_the_runs() {
    let stage = Stage::new();
    install(&stage);
    let id = stage.home.start("exec sleep 1000");
    let pid = stage.home.pid(&id);
    let daemon = stage.home.daemon_pid();
    stage.calls();
    let said = stage.home.ok(&["daemon", "uninstall"]);
    assert!(said.starts_with("uninstalled"), "{said}");
    assert_eq!(
        stage.orders(),
        ["--user disable outlast.service", "--user stop outlast.service", "--user daemon-reload"]
    );
    assert!(!stage.unit().exists() && !is_alive(daemon) && is_alive(pid));
    assert_eq!(stage.home.show(&id)["state"], "running");
    let status = stage.home.json(&["daemon", "status", "--json"]);
    assert_eq!(
        (&status["mode"], &status["service"]["installed"]),
        (&"background".into(), &false.into())
    );
}

#[test]
fn uninstalling_what_is_not_installed_is_fine() {
    let stage = Stage::new();
    assert_eq!(stage.home.ok(&["daemon", "uninstall"]), "not installed");
    let status = stage.home.json(&["daemon", "uninstall", "--json"]);
    assert_eq!((&status["installed"], &status["problem"]), (&false.into(), &Value::Null));
    assert_eq!(stage.orders(), [""; 0]);
}

#[test]
fn a_unit_that_outlived_its_manager_is_removed_by_hand() {
    let stage = Stage::new();
    install(&stage);
    stage.home.ok(&["daemon", "stop"]);
    stage.manners("no-bus");
    let status = stage.home.json(&["daemon", "uninstall", "--json"]);
    assert_eq!(status["problem"], Value::Null, "{status}");
    assert!(hints(&status).contains("removed by hand"), "{status}");
    let link = stage.unit().with_file_name("default.target.wants").join("outlast.service");
    assert!(!stage.unit().exists() && link.symlink_metadata().is_err());
}

#[test]
fn a_tool_that_says_it_did_and_did_not_is_not_believed() {
    let lies = [
        ("lies:daemon-reload", "has not read"),
        ("lies:enable", "enabled"),
        ("lies:start", "no daemon answers"),
    ];
    for (manners, why) in lies {
        let stage = Stage::new();
        stage.manners(manners);
        assert_shortfall(&install(&stage), why);
        // The same command finishes what was begun, once the tool does as it says.
        stage.manners("");
        assert_eq!(install(&stage)["installed"], true, "{manners}");
    }
}

#[test]
fn a_tool_that_fails_is_told_of_and_is_not_fatal() {
    for verb in ["daemon-reload", "enable", "start"] {
        let stage = Stage::new();
        stage.manners(&format!("fails:{verb}"));
        let output = stage.home.output(&["daemon", "install"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.starts_with("outlast: the service is not installed: systemctl --user"),
            "{said}"
        );
        assert!(said.contains(&format!("the stand-in does not {verb}")), "{said}");
        assert!(said.contains("\n  outlast daemon start"), "{said}");
        assert_eq!(text(&output.stdout), "");
        stage.home.fails(1, &["daemon", "install", "--strict"]);
    }
}

#[test]
fn a_tool_that_hangs_is_not_waited_for() {
    let stage = Stage::new();
    stage.manners("hangs:show");
    assert_shortfall(&install(&stage), "did not answer within 5 s");
    assert!(!stage.unit().exists(), "nothing is written for a manager that does not answer");
    let left = until("what hung is gone", || {
        let sleeps = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"sleep\0"))
        };
        let left: Vec<u32> = stage.home.processes().into_iter().filter(sleeps).collect();
        left.is_empty().then_some(left)
    });
    assert!(left.is_empty());
}

#[test]
fn without_a_user_manager_nothing_is_written_and_the_other_way_is_said() {
    let stage = Stage::new();
    stage.manners("no-bus");
    let status = install(&stage);
    assert_shortfall(&status, "no systemd user manager answers: Failed to connect to bus");
    assert!(!stage.unit().exists());
    assert_eq!(stage.orders(), [""; 0]);
}

#[test]
fn without_a_service_manager_at_all_the_other_way_is_said() {
    let home = Home::new();
    let nothing = home.scratch().join("nothing");
    let home = home.env("PATH", nothing);
    let status = status_of(&home.output(&["daemon", "install", "--json"]));
    assert_shortfall(&status, "there is no systemctl on PATH");
    assert_eq!(status["manager"], Value::Null);
    assert!(hints(&status).contains("their shims bring it back"), "{status}");
    assert_eq!(home.ok(&["daemon", "uninstall"]), "not installed");
}

#[test]
fn a_service_that_ends_with_the_last_log_out_is_explained_and_can_be_changed() {
    let stage = Stage::new();
    stage.linger("no");
    let status = install(&stage);
    assert_eq!((&status["installed"], &status["linger"]), (&true.into(), &false.into()));
    assert!(hints(&status).contains("loginctl enable-linger robin"), "{status}");
    // Said, and not done.
    stage.manners("lies:enable-linger");
    let status = stage.home.json(&["daemon", "install", "--linger", "--json"]);
    assert_eq!(status["linger"], false, "{status}");
    assert!(hints(&status).contains("loginctl enable-linger robin"), "{status}");
    stage.manners("");
    let status = stage.home.json(&["daemon", "install", "--linger", "--json"]);
    assert_eq!((&status["linger"], hints(&status).as_str()), (&true.into(), ""), "{status}");
}

#[test]
fn a_systemd_that_may_not_linger_as_it_says_is_pointed_out() {
    let stage = Stage::new();
    stage.version("255.4-1ubuntu8");
    assert!(hints(&install(&stage)).contains("systemd 255 has a fault"));
    stage.version("257.2");
    assert_eq!(hints(&install(&stage)), "");
}

#[test]
fn a_unit_that_is_not_ours_is_left_alone() {
    let stage = Stage::new();
    let theirs = "[Service]\nExecStart=/opt/outlast daemon run\n";
    fs::create_dir_all(stage.unit().parent().expect("a directory")).expect("it is ours");
    fs::write(stage.unit(), theirs).expect("it is ours");
    assert_shortfall(&install(&stage), "was not written by outlast");
    let output = stage.home.output(&["daemon", "uninstall", "--json"]);
    assert_eq!(output.status.code(), Some(1), "what was not done is no success");
    let status: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert!(str_of(&status, "problem").contains("was not written by outlast"), "{status}");
    assert_eq!(fs::read_to_string(stage.unit()).expect("it is still there"), theirs);
    assert_eq!(stage.orders(), [""; 0]);
}

#[test]
fn the_service_of_another_outlast_is_left_alone() {
    let stage = Stage::new();
    install(&stage);
    let unit = fs::read(stage.unit()).expect("it was written");
    stage.calls();
    let other = stage.home.scratch().join("other");
    for verb in ["install", "uninstall"] {
        let mut command = stage.home.outlast(&["daemon", verb, "--json"]);
        let output = command.env("OUTLAST_HOME", &other).output().expect("the program starts");
        let status: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        assert!(str_of(&status, "problem").contains("another OUTLAST_HOME"), "{status}");
    }
    assert_eq!(fs::read(stage.unit()).expect("it is still there"), unit);
    assert_eq!(stage.orders(), [""; 0]);
    let mut command = stage.home.outlast(&["daemon", "status", "--json"]);
    let output = command.env("OUTLAST_HOME", &other).output().expect("the program starts");
    let status: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(status["service"]["installed"], false, "{status}");
}

#[test]
fn a_service_that_was_stopped_stays_down_and_is_started_as_the_service_again() {
    let stage = Stage::new();
    let service = install(&stage);
    stage.home.ok(&["daemon", "stop"]);
    until("the manager has seen it go", || {
        let output = stage.home.output(&["daemon", "status", "--json"]);
        let status: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        (status["running"] == false && status["service"]["active"] == false).then_some(())
    });
    stage.calls();
    stage.home.ok(&["daemon", "start"]);
    let mut orders = stage.orders();
    orders.dedup();
    assert_eq!(orders, ["--user --no-block start outlast.service"]);
    let status = stage.home.json(&["daemon", "status", "--json"]);
    assert_eq!(status["mode"], "service", "{status}");
    assert_ne!(status["pid"], service["pid"]);
}

#[test]
fn a_start_that_the_manager_does_not_carry_out_is_ours() {
    let stage = Stage::new();
    install(&stage);
    stage.home.ok(&["daemon", "stop"]);
    stage.manners("fails:start");
    stage.home.ok(&["daemon", "start"]);
    assert_eq!(stage.home.json(&["daemon", "status", "--json"])["mode"], "background");
}

#[test]
fn a_dry_run_does_nothing() {
    let stage = Stage::new();
    let steps = stage.home.ok(&["daemon", "install", "--dry-run"]);
    assert!(steps.starts_with("write ") && steps.contains("enable outlast.service"), "{steps}");
    let preview = stage.home.json(&["daemon", "install", "--dry-run", "--json"]);
    assert_eq!(str_of(&preview, "text"), stage.home.ok(&["daemon", "install", "--print"]) + "\n");
    assert!(!stage.unit().exists());
    assert_eq!(stage.calls(), [""; 0]);
}

#[test]
fn a_daemon_that_is_not_there_is_told_of_in_a_friendly_way() {
    let home = Home::new();
    let output = home.output(&["daemon", "status"]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(7), "not running\n"));
    assert_eq!(home.ok(&["daemon", "stop"]), "not running");
}

#[test]
fn a_terminated_daemon_lets_go_of_its_lock_and_socket_and_of_no_run() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    let (pid, daemon) = (home.pid(&id), home.daemon_pid());
    kill(daemon, "TERM");
    until("the daemon has gone", || (!is_alive(daemon)).then_some(()));
    let lock = fs::File::open(home.state().join("daemon.lock")).expect("a lock is never unlinked");
    assert!(lock.try_lock().is_ok(), "no process holds it");
    assert!(!home.path().join("run/daemon.sock").exists());
    assert!(is_alive(pid));
}

#[test]
fn the_page_is_a_second_service_that_prints_no_link_and_goes_with_the_first() {
    let stage = Stage::new();
    let web = stage.unit().with_file_name("outlast-web.service");
    install(&stage);
    assert!(!web.exists(), "only who asks for it has it");
    stage.calls();
    let said = stage.home.ok(&["daemon", "install", "--web"]);
    assert!(said.starts_with("installed"), "{said}");
    let unit = std::fs::read_to_string(&web).expect("it is written");
    assert!(
        unit.contains(" web --no-link\n") && unit.contains("WantedBy=default.target"),
        "{unit}"
    );
    let orders = [
        "--user daemon-reload",
        "--user enable outlast-web.service",
        "--user --no-block restart outlast-web.service",
    ];
    assert_eq!(stage.orders(), orders);
    stage.calls();
    stage.home.ok(&["daemon", "install", "--web"]);
    assert_eq!(stage.orders(), ["--user --no-block start outlast-web.service"], "nothing is new");
    stage.home.ok(&["daemon", "uninstall"]);
    assert!(!web.exists() && !stage.unit().exists());
}
