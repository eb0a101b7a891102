//! Work that Claude leaves in the background: its turn is over when that is.

use anyhow::Result;

use super::lab::{Lab, Plan, Setup};
use super::model::{Step, Tokens, Tool};
use super::settle::Login;

pub(super) fn run(setup: &Setup<'_>) -> Result<Lab> {
    let costs = Tokens { input: 100, output: 10, cached: 0 };
    let line = "sleep 3; echo late >> late.txt".to_owned();
    let first = vec![
        Step::uses("I start it.", Tool::Background(line)).costs(costs),
        Step::says("It is started.").costs(costs),
    ];
    let plan = Plan {
        name: "background",
        login: Login::Key,
        turns: vec![first],
        approvals: "{mode: allow}",
        check: "test -s late.txt",
    };
    Ok(Lab::start(setup, plan)?.live(|lab| {
        let view = lab.rest(90)?;
        lab.expect_state(&view, "completed", None);
        let committed = view["turns_committed"].as_u64();
        lab.expect(
            committed == Some(1),
            format!("{committed:?} turns: the first was over before its background work"),
        );
        let late = lab.file("late.txt");
        lab.expect(late == "late\n", format!("the background work has left {late:?}"));
        Ok(())
    }))
}
