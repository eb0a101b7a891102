//! The HTTP status of an error says who has to act: the client, the run's owner or the operator of the daemon.

use serde_json::{Value, json};

use crate::harness::{Home, str_of};
use crate::hosted::{configure, post};

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
