//! The HTTP status of an error says who has to act: the client, the run's owner or the operator of the daemon.

use serde_json::{Value, json};

use crate::harness::{Home, str_of, text, until};
use crate::hosted::{configure, post};
use crate::metrics::limit_files;

fn refused(home: &Home, path: &str, body: &Value) -> (u16, String) {
    let (status, answer) = post(home, path, body);
    (status, str_of(&answer["error"], "code").to_owned())
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn an_order_that_the_state_of_a_run_forbids_is_a_conflict() {
    let home = Home::new();
    let id = home.start("true");
    assert_eq!(home.wait(&id), 0);
    let usage = format!("/v1/runs/{id}/usage");
    assert_eq!(refused(&home, &usage, &json!({"input_tokens": 1})), is(409, "not_live"));
    assert_eq!(refused(&home, &usage, &json!({})), is(400, "bad_request"));
    let recover = json!({"runs": [id]});
    assert_eq!(refused(&home, "/v1/recover", &recover), is(409, "nothing_to_recover"));
    home.fails(2, &["recover", &id]);
}

#[test]
fn a_config_that_was_never_right_is_no_mistake_of_the_client() {
    let home = Home::new();
    configure(&home, "concurrency = \n");
    home.ok(&["daemon", "start"]);
    let sink = json!({"sink": "desktop"});
    assert_eq!(refused(&home, "/v1/sinks/test", &sink), is(500, "config_unusable"));
    home.fails(2, &["sink", "test", "desktop"]);
}

/// A limit on the size of files stands for a journal that takes nothing for another reason than a full disk.
#[test]
fn slow_an_order_that_the_journal_does_not_take_in_time_is_not_said_to_wait_for_space() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    home.pid(&id);
    let daemon = home.daemon_pid();
    limit_files(daemon, Some(0));
    let (status, answer) = std::thread::scope(|scope| {
        let posted = scope.spawn(|| post(&home, &format!("/v1/runs/{id}/stop"), &json!({})));
        // The client does not ask again: its order is with the run.
        let said = home.output(&["stop", &id]);
        let words = text(&said.stderr);
        assert_eq!(said.status.code(), Some(2), "{words}");
        assert!(words.contains("within 10 s") && !words.contains("space"), "{words}");
        posted.join().expect("it is answered")
    });
    assert_eq!((status, str_of(&answer["error"], "code")), (503, "timed_out"), "{answer}");
    assert_eq!(str_of(&home.show(&id)["trouble"], "code"), "journal_unwritable");
    limit_files(daemon, None);
    until("the order is written", || (home.count(&id, "StopRequested") > 0).then_some(()));
    assert_eq!(home.wait(&id), 5);
}
