//! A command that is told on its standard input, and says by its exit whether it has understood.

use std::time::Duration;

use super::body::Telling;
use super::{Outcome, text};
use crate::ground::Ground;
use crate::world::command::{self, Around, Call, Ended};

/// What is told of what a command says.
const MOST_TOLD: usize = 200;

pub(super) async fn send(
    ground: &Ground,
    (line, dir): (&str, &str),
    telling: &Telling,
    within: Duration,
) -> Outcome {
    let call = Call {
        argv: vec!["sh".to_owned(), "-c".to_owned(), line.to_owned()],
        stdin: format!("{}\n", telling.body).into_bytes(),
        around: named(telling, dir),
        rules: ground.settings.secret_rules(),
        most_stdout: 0,
    };
    outcome(command::call(&ground.exe, call, within).await)
}

/// Where a command runs, and what it finds in its environment.
pub(super) fn named(telling: &Telling, dir: &str) -> Around {
    let env = vec![
        ("OUTLAST_NOTICE_ID", telling.id.clone()),
        ("OUTLAST_NOTICE_TYPE", telling.kind.clone()),
        ("OUTLAST_NOTICE_RUN", telling.run.clone()),
    ];
    Around::Daemon { dir: dir.to_owned(), env }
}

pub(super) fn outcome(ended: std::io::Result<Ended>) -> Outcome {
    match ended {
        Ok(Ended::Exited { status, .. }) if status.success() => {
            Outcome::Delivered { said: "exit code 0".to_owned() }
        }
        Ok(Ended::Exited { status, stderr, .. }) => {
            let said = text::one_line(&text::clipped(stderr.trim(), MOST_TOLD));
            let colon = if said.is_empty() { "" } else { ": " };
            let how = match status.code() {
                Some(code) => format!("exit code {code}"),
                None => status.to_string(),
            };
            Outcome::failed(format!("{how}{colon}{said}"))
        }
        Ok(Ended::TooSlow { after }) => {
            Outcome::failed(format!("it took longer than {} ms and was killed", after.as_millis()))
        }
        Ok(Ended::Unseen) => Outcome::failed("its guard was killed, so its end is not known"),
        Err(error) => Outcome::failed(format!("it cannot be started: {error}")),
    }
}
