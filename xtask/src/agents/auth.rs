//! A login that is not valid: a person is asked for it, soon.

use anyhow::Result;

use super::lab::{Lab, Plan, Setup};
use super::model::Step;
use super::settle::Login;
use super::vendor::Vendor;

pub(super) fn run(setup: &Setup<'_>) -> Result<Lab> {
    // With a key, the adapter of Claude tries for three minutes without a word.
    let login = if setup.vendor == Vendor::AcpClaude { Login::Subscriber } else { Login::Key };
    let plan = Plan {
        name: "auth",
        login,
        turns: vec![vec![Step::Fail { status: 401 }]],
        approvals: "{mode: allow}",
        check: "true",
    };
    Ok(Lab::start(setup, plan)?.live(|lab| {
        let view = lab.rest(120)?;
        // Its errors have no type: the tries end, and the reason has its words.
        let is_typed = setup.vendor != Vendor::AcpOpencode;
        if is_typed {
            lab.expect_state(&view, "blocked", Some("auth_expired"));
        } else {
            lab.expect_state(&view, "failed", Some("bad_response"));
            let reason = view["reason"].as_str().unwrap_or_default().to_owned();
            lab.expect(reason.contains("scripted 401"), format!("the reason is {reason:?}"));
        }
        Ok(())
    }))
}
