//! What a poll prints: JSON objects with an `id`, as one array or one a line. All of it is taken, or nothing.

use std::time::Duration;

use outlast_engine::Time;
use outlast_store::Delivery;
use outlast_wire::api::CreateRun;
use serde_json::{Value, json};

use super::webhook::sha256;
use crate::ground::Ground;
use crate::world::command::{self, Around, Call, Ended};

const MOST_STDOUT: usize = 1024 * 1024;

/// Of one poll; a tracker that has more is asked for less.
const MOST_ITEMS: usize = 1000;
const LONGEST_ID: usize = 200;

/// What the command prints, if it succeeds within that time.
pub(crate) async fn ask(
    ground: &Ground,
    command: &str,
    run: &CreateRun,
    within: Duration,
) -> Result<Vec<u8>, String> {
    let call = Call {
        argv: vec!["sh".to_owned(), "-c".to_owned(), command.to_owned()],
        stdin: Vec::new(),
        around: Around::Given { dir: run.dir.clone(), env: run.env.clone() },
        rules: ground.settings.secret_rules(),
        most_stdout: MOST_STDOUT,
    };
    let ended = command::call(&ground.exe, call, within).await;
    match ended.map_err(|error| format!("it cannot be started: {error}"))? {
        Ended::TooSlow { after } => {
            Err(format!("it took longer than {} s and was killed", after.as_secs()))
        }
        Ended::Unseen => Err("its guard was killed, so its end is not known".to_owned()),
        Ended::Exited { status, stderr, .. } if !status.success() => {
            let last = stderr.lines().rev().map(str::trim).find(|line| !line.is_empty());
            Err(last.map_or_else(|| status.to_string(), |last| format!("{status}: {last}")))
        }
        Ended::Exited { stdout, .. } if stdout.is_cut => {
            Err(format!("it printed more than {MOST_STDOUT} bytes"))
        }
        Ended::Exited { stdout, .. } => Ok(stdout.bytes),
    }
}

pub(crate) fn items(printed: &[u8], at: Time) -> Result<Vec<Delivery>, String> {
    let text =
        std::str::from_utf8(printed).map_err(|_| "what it printed is not text".to_owned())?;
    let values: Vec<Value> = if text.trim_start().starts_with('[') {
        serde_json::from_str(text)
            .map_err(|error| format!("what it printed is not JSON: {error}"))?
    } else {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let value = |(n, line): (usize, &str)| {
            serde_json::from_str(line)
                .map_err(|error| format!("line {} is not JSON: {error}", n + 1))
        };
        lines.map(value).collect::<Result<_, _>>()?
    };
    if values.len() > MOST_ITEMS {
        return Err(format!("it printed {} items, which is more than {MOST_ITEMS}", values.len()));
    }
    values.into_iter().enumerate().map(|(n, value)| item(n + 1, value, at)).collect()
}

fn item(n: usize, value: Value, at: Time) -> Result<Delivery, String> {
    let id = match &value["id"] {
        Value::String(id) if !id.is_empty() => id.clone(),
        Value::Number(id) => id.to_string(),
        _ => return Err(format!("item {n} has no \"id\"")),
    };
    let is_plain = id.len() <= LONGEST_ID && !id.contains(char::is_control);
    let id = if is_plain { id } else { sha256(id.as_bytes()) };
    Ok(Delivery { id, at, body: json!({ "item": value }).to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(printed: &str) -> Result<Vec<String>, String> {
        let items = items(printed.as_bytes(), Time(1))?;
        Ok(items.into_iter().map(|delivery| delivery.id).collect())
    }

    #[test]
    fn an_array_or_an_object_a_line() {
        let both = Ok(vec!["a".to_owned(), "7".to_owned()]);
        assert_eq!(ids(r#"[{"id":"a","title":"x"},{"id":7}]"#), both);
        assert_eq!(ids("{\"id\":\"a\"}\n\n{\"id\":7}\n"), both);
        assert_eq!(ids(" \n"), Ok(Vec::new()));
        assert_eq!(ids("[]"), Ok(Vec::new()));
    }

    #[test]
    fn nothing_is_taken_of_what_is_not_whole() {
        for garbled in [
            r#"[{"id":"a"},{"id":"b""#,
            "{\"id\":\"a\"}\n{\"id\":",
            "{\"id\":\"a\"}\nerror: no network",
            r#"[{"id":"a"},{"title":"no id"}]"#,
            r#"[{"id":""}]"#,
            r#"["a"]"#,
            "404",
        ] {
            assert!(ids(garbled).is_err(), "{garbled}");
        }
        let many = vec!["{\"id\":1}"; 1001].join("\n");
        assert!(ids(&many).expect_err("too many").contains("more than 1000"));
    }
}
