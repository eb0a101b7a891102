//! A login that is not valid: a person is asked for it, soon.

use anyhow::Result;

use super::lab::{Lab, Plan, Setup};
use super::model::Step;
use super::vendor::Login;

pub(super) fn run(setup: &Setup<'_>) -> Result<Lab> {
    let plan = Plan {
        name: "auth",
        login: Login::Key,
        turns: vec![vec![Step::Fail { status: 401 }]],
        approvals: "{mode: allow}",
        check: "true",
    };
    Ok(Lab::start(setup, plan)?.live(|lab| {
        let view = lab.rest(60)?;
        lab.expect_state(&view, "blocked", Some("auth_expired"));
        Ok(())
    }))
}
