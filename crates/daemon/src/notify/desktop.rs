//! A notice on this machine's screen, by the program that the system has for it.

use std::time::Duration;

use super::body::Telling;
use super::{Outcome, command, text};
use crate::ground::Ground;
use crate::world::command::{Call, call};

const LONGEST: usize = 500;

pub(super) async fn send(ground: &Ground, telling: &Telling, within: Duration) -> Outcome {
    let argv = argv(telling);
    let program = argv[0].clone();
    let (around, rules) = (command::named(telling, "/"), ground.settings.secret_rules());
    let asked = Call { argv, stdin: Vec::new(), around, rules, most_stdout: 0 };
    match call(&ground.exe, asked, within).await {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Outcome::failed(format!(
            "there is no {program} on the daemon's PATH, which shows notices on a desktop"
        )),
        ended => command::outcome(ended),
    }
}

#[cfg(not(target_os = "macos"))]
fn argv(telling: &Telling) -> Vec<String> {
    let urgency = match telling.kind.as_str() {
        "run.blocked" | "run.failed" | "run.exhausted" | "run.warning" => "critical",
        _ => "normal",
    };
    // The body may be taken for markup.
    let body = text::clipped(&telling.message(), LONGEST)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let urgency = format!("--urgency={urgency}");
    let words = ["notify-send", "--app-name=outlast", &urgency, "--", &telling.title(), &body];
    words.map(str::to_owned).to_vec()
}

/// Untested here. The words are arguments of the script and never part of it.
#[cfg(target_os = "macos")]
fn argv(telling: &Telling) -> Vec<String> {
    let script =
        "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";
    let body = text::clipped(&telling.message(), LONGEST);
    ["osascript", "-e", script, &telling.title(), &body].map(str::to_owned).to_vec()
}
