//! Gemini CLI, by the Agent Client Protocol: `gemini --acp`.
//!
//! It has no other channel for approvals, and asks in its mode `default`, which is set if a settings file says
//! otherwise. What holds for it alone is in `acp/`: it sends the last of a history after the answer to `session/load`,
//! it cannot be steered, and it ends a turn well without a model when it takes the prompt for a command.
//!
//! Spend: tokens only, in `_meta.quota.token_count`, and none of a turn that was cancelled. A limit is the code 429 and
//! has no time at which it ends.
//!
//! A session cannot be loaded in the minute in which it began: the next minute it can. Loading leaves an empty file of
//! the same session behind, for which the next start would delete the session itself (0.61.0). It does not with
//! `--resume`, which names the session to the process from its start.

use super::acp::{Acp, gemini_resumes};
use super::{Capabilities, Cost, Driven, Forks, Launch, Transport, Turn};

pub(super) const DRIVEN: Driven = Driven {
    name: "gemini",
    capabilities: Capabilities {
        resume: true,
        cost: Cost::Unknown,
        reset_time: false,
        steer: false,
        cancel: true,
        approvals: true,
        mcp: true,
        structured_end: false,
    },
    tested: &["0.61.0"],
    env: &["GEMINI_*", "GOOGLE_*", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "NODE_EXTRA_CA_CERTS"],
    needs_command: false,
    resumes_next_minute: true,
    forks: Forks::No,
    login: "gemini, then /auth",
    make: |turn| {
        let launch = launch(&turn);
        // The model is in its arguments.
        Box::new(Acp::new(Turn { model: None, ..turn }, launch))
    },
};

fn launch(turn: &Turn) -> Launch {
    let mut argv = match turn.command.as_slice() {
        [] => vec!["gemini".to_owned()],
        command => command.to_vec(),
    };
    argv.push("--acp".to_owned());
    argv.extend(gemini_resumes(turn));
    argv.extend(turn.model.iter().flat_map(|model| ["-m".to_owned(), model.clone()]));
    argv.extend(turn.args.iter().cloned());
    Launch { argv, env: Vec::new(), transport: Transport::Lines, ..Launch::default() }
}
