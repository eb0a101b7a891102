//! How a run ended, on standard error: said only when it did not complete.

use outlast_wire::api::RunView;
use outlast_wire::shim::Exit;

use crate::output::state::spaced;
use crate::output::{figures, printable, tell};

/// Tells how a run came to its end or its rest.
pub(crate) fn report(view: &RunView) {
    for line in lines(view) {
        tell(&line);
    }
}

fn lines(view: &RunView) -> Vec<String> {
    let mut lines = match (view.state.as_str(), view.outcome.as_deref()) {
        ("completed", _) => Vec::new(),
        ("failed", Some("never_started")) => never_started(view),
        _ => vec![format!("outlast: run {} {}{}", view.id, view.state, because(view))],
    };
    if view.state == "blocked" {
        lines.push(format!("hint: outlast show {}", view.id));
    }
    if !view.survivors.is_empty() {
        let left = figures::count(view.survivors.len(), "survivor");
        lines.push(format!("outlast: run {} has {left}", view.id));
        lines.push(format!("hint: outlast stop {} ends what is left", view.id));
    }
    lines
}

fn because(view: &RunView) -> String {
    match (view.outcome.as_deref(), view.exit) {
        (Some("exited"), Some(Exit::Code(code))) => format!(": exit code {code}"),
        (Some("signaled"), Some(Exit::Signal(signal))) => {
            format!(": killed by {}", figures::signal(signal))
        }
        (Some("stopped"), _) => String::new(),
        _ => match (&view.reason, &view.reason_code) {
            (Some(reason), _) => format!(": {}", printable(reason)),
            (None, Some(code)) => format!(": {}", spaced(code)),
            (None, None) => String::new(),
        },
    }
}

/// A command that could not even be started is most often a slip, so it is told as a shell would.
fn never_started(view: &RunView) -> Vec<String> {
    let reason = view.reason.as_deref().unwrap_or("never started");
    let why = printable(reason.strip_prefix("never started: ").unwrap_or(reason));
    let mut lines = vec![format!("outlast: {why}")];
    if why.ends_with("not found") {
        lines
            .push("hint: check the spelling, and the PATH that `outlast run` was given".to_owned());
    } else {
        lines.push(format!("hint: nothing was run; see outlast show {}", view.id));
    }
    lines
}
