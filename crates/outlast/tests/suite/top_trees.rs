//! `top` on a run that has others below it: what is free, reserved and committed, live and marked where it is not known.

use crate::harness::{Home, until};
use crate::loops::Loop;
use crate::top::at_top;

/// The cells of a row of the table.
fn cells(screen: &str, name: &str) -> Vec<String> {
    let row = screen.lines().find(|line| line.split_whitespace().next() == Some(name));
    row.map(|row| row.split_whitespace().map(str::to_owned).collect()).unwrap_or_default()
}

#[test]
fn what_a_tree_has_left_is_shown_as_its_children_come_and_go() {
    let home = Home::new();
    let file = Loop::of(&home, "exec sleep 600")
        .with("limits: { max_tokens: 90000, max_cost_usd: 6 }\ntree: { runs: 5, turns: 30 }");
    let id = file.start();
    home.pid(&id);
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    tmux.shows(&id);
    tmux.press(&["Enter"]);
    let screen = tmux.until("there is a table", |screen| !cells(screen, "runs").is_empty());
    assert_eq!(cells(&screen, "tree"), ["tree", "free", "reserved", "committed", "of"], "{screen}");
    assert_eq!(cells(&screen, "runs"), ["runs", "5", "0", "0", "5"], "{screen}");
    assert_eq!(cells(&screen, "tokens"), ["tokens", "90k", "0", "0", "90k"], "{screen}");
    assert_eq!(cells(&screen, "money"), ["money", "$6.00", "$0.00", "$0.00", "$6.00"], "{screen}");

    // The loop goes on in the same turn: what changes is only what is below it.
    let loops =
        Loop::of(&home, "exec sleep 600").with("limits: { max_tokens: 30000, max_cost_usd: 2 }");
    let below = loops.start_with(&["--parent", &id]);
    tmux.until("its reservation is shown", |screen| {
        cells(screen, "tokens") == ["tokens", "60k", "30k", "0", "90k"]
    });
    home.pid(&below);
    home.ok(&["stop", "--now", &below]);
    until("its parent knows", || (home.count(&id, "ChildSettled") == 1).then_some(()));
    // It was stopped before it could report, so that what it used is not known.
    let screen = tmux.until("what it may have used is charged", |screen| {
        cells(screen, "tokens") == ["tokens", "60k", "0", "≤30k?", "90k"]
    });
    assert_eq!(
        cells(&screen, "money"),
        ["money", "$4.00", "$0.00", "≤$2.00?", "$6.00"],
        "{screen}"
    );
    assert_eq!(cells(&screen, "runs"), ["runs", "4", "0", "1", "5"], "{screen}");
    assert!(
        screen.contains("1 child did not report what it used: charged as reserved"),
        "{screen}"
    );
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "{screen}");
    tmux.press(&["q"]);
    home.ok(&["stop", "--tree", "--now", &id]);
}
