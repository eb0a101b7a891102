//! `@last`, and no run at all where only one can be meant.

use crate::harness::Home;

#[test]
fn at_last_is_the_newest_run() {
    let home = Home::new();
    assert!(home.fails(2, &["logs", "@last"]).contains("there are no runs"));
    home.start("echo first");
    let second = home.ok(&["run", "-d", "--name", "second", "--", "echo", "two"]);
    home.wait(&second);
    assert_eq!(home.show("@last")["id"], second.as_str());
    assert_eq!(home.ok(&["logs", "@last"]), "two");
    assert_eq!(home.ok(&["logs", "-f", "@last"]), "two");
    let third = home.start("sleep 1000");
    let child = home.ok(&["run", "-d", "--parent", "@last", "--", "sleep", "1000"]);
    assert_eq!(home.show(&child)["parent"], third.as_str());
    home.ok(&["stop", "@last"]);
    assert_eq!(home.show(&child)["state"], "stopped");
    assert!(
        home.fails(2, &["run", "-d", "--name", "@last", "--", "true"]).contains("is not a name")
    );
}

#[test]
fn without_a_name_the_only_live_run_is_meant_and_else_the_newest() {
    let home = Home::new();
    let ended = home.start("echo over");
    home.wait(&ended);
    assert_eq!(home.ok(&["logs"]), "over", "none is live: the newest");
    assert_eq!(home.output(&["wait"]).status.code(), Some(0));
    let one = home.ok(&["run", "-d", "--name", "one", "--", "sleep", "1000"]);
    home.wait(&home.start("true"));
    assert_eq!(home.json(&["show", "--json"])["id"], one.as_str(), "the only live one");
    home.ok(&["run", "-d", "--name", "two", "--", "sleep", "1000"]);
    let said = home.fails(2, &["show"]);
    assert!(said.contains("2 runs are live, name one: two, one"), "{said}");
    assert!(home.fails(2, &["stop"]).contains("needs <RUN>"), "what ends a run names it");
}
