//! `outlast show`: all that is known about a run.

use jiff::Timestamp;
use outlast_wire::api::{LimitView, RunView};
use outlast_wire::shim::Exit;

use crate::Answer;
use crate::args::Show;
use crate::ask::{Ask, run_path};
use crate::output::state::{Condition, spaced};
use crate::output::time::{both, ms_between, span};
use crate::output::{self, colour, figures, printable};
use crate::session::{Session, unreadable};
use crate::world::World;

pub(crate) async fn show(world: &World, args: Show) -> Answer {
    let body = Session::new(world).fetch(&Ask::get(&run_path(&args.run, ""))).await?;
    if args.json {
        output::print_line(&String::from_utf8_lossy(&body))?;
        return Ok(0);
    }
    let view: RunView = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
    output::print(&page(&view, world.now(), world.colours()))?;
    Ok(0)
}

/// Keys on the left, what is known on the right; what is not known is left out.
fn page(view: &RunView, now: Timestamp, colours: bool) -> String {
    let mut page = Page(String::new());
    page.line("run", &view.id);
    page.some("name", view.name.as_deref());
    let state = colour::of_state(&view.state).paint(&Condition::from(view).words(), colours);
    page.painted("state", &state);
    page.some("reason", view.reason.as_deref());
    page.some("key", view.key.as_deref());
    page.some("task", view.task.as_deref());
    page.line("command", &shell_words(&view.agent.command));
    page.line("directory", &view.workspace);
    if view.turn > 0 {
        page.line("turn", &format!("{}, attempt {}", view.turn, view.attempt));
    }
    times(&mut page, view, now);
    ending(&mut page, view);
    belonging(&mut page, view);
    if let Some(trouble) = &view.trouble {
        page.line("trouble", &format!("{}, since {}", trouble.message, both(&trouble.since, now)));
    }
    page.0
}

fn times(page: &mut Page, view: &RunView, now: Timestamp) {
    let entries = [
        ("created", Some(&view.created_at)),
        ("started", view.started_at.as_ref()),
        ("ended", view.ended_at.as_ref()),
        ("progress", view.last_progress_at.as_ref()),
        ("wakes", view.wake_at.as_ref()),
    ];
    for (key, at) in entries {
        page.some(key, at.map(|at| both(at, now)).as_deref());
    }
    page.some("runtime", runtime(view, now).map(span).as_deref());
}

fn runtime(view: &RunView, now: Timestamp) -> Option<u64> {
    let until = view.ended_at.as_deref().map_or(Some(now), |ended| ended.parse().ok());
    ms_between(view.started_at.as_deref()?, until?)
}

fn ending(page: &mut Page, view: &RunView) {
    page.some("exit", view.exit.map(exit_value).as_deref());
    page.some("summary", view.summary.as_deref());
    let shim = view.shim_pid.map(|pid| format!(" (shim {pid})")).unwrap_or_default();
    page.some("pid", view.pid.map(|pid| format!("{pid}{shim}")).as_deref());
    page.line("output", &figures::bytes(view.output_bytes));
    for survivor in &view.survivors {
        page.line("survivor", &format!("pid {}: {}", survivor.pid, survivor.command));
    }
    if view.restarts.crash + view.restarts.stall > 0 {
        let restarts = view.restarts;
        page.line(
            "restarts",
            &format!("{} after a crash, {} after a stall", restarts.crash, restarts.stall),
        );
    }
}

fn belonging(page: &mut Page, view: &RunView) {
    for (name, limit) in &view.limits {
        page.line("limit", &limit_words(name, *limit));
    }
    let labels: Vec<String> =
        view.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    page.some("labels", (!labels.is_empty()).then(|| labels.join(" ")).as_deref());
    page.some("parent", view.parent.as_deref());
    page.some("children", (!view.children.is_empty()).then(|| view.children.join(" ")).as_deref());
}

fn limit_words(name: &str, LimitView { used, max }: LimitView) -> String {
    match name.strip_suffix("_ms") {
        Some(name) => format!("{}: {} of {}", spaced(name), span(used), span(max)),
        None => format!("{}: {used} of {max}", spaced(name)),
    }
}

fn exit_value(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => figures::signal(signal),
    }
}

/// A command as it could be typed again.
fn shell_words(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

struct Page(String);

impl Page {
    fn line(&mut self, key: &str, value: &str) {
        self.painted(key, &printable(value));
    }

    fn some(&mut self, key: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.line(key, value);
        }
    }

    /// A value that carries colours of ours.
    fn painted(&mut self, key: &str, value: &str) {
        self.0.push_str(&format!("{key:<11}{value}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_so_that_it_can_be_typed_again() {
        let words = ["sh", "-c", "echo it's $HOME", "", "a=b"].map(str::to_owned);
        assert_eq!(shell_words(&words), r"sh -c 'echo it'\''s $HOME' '' a=b");
    }

    #[test]
    fn limits_have_units() {
        assert_eq!(
            limit_words("turn_timeout_ms", LimitView { used: 90_000, max: 300_000 }),
            "turn timeout: 1m 30s of 5m"
        );
        assert_eq!(limit_words("attempts", LimitView { used: 1, max: 4 }), "attempts: 1 of 4");
    }

    #[test]
    fn a_page_leaves_out_what_is_not_known() {
        let view: RunView = serde_json::from_value(serde_json::json!({
            "id": "k3mx7q9w2r5t", "name": null, "key": null, "state": "failed",
            "reason": "exit code 7", "reason_code": "exit_code", "outcome": "exited",
            "health": "healthy", "task": null,
            "agent": {"kind": "exec", "command": ["sh", "-c", "exit 7"]},
            "turn": 1, "attempt": 1, "turns_committed": 0,
            "created_at": "2026-11-15T11:57:00Z", "started_at": "2026-11-15T11:57:00Z",
            "ended_at": "2026-11-15T11:58:00Z", "last_progress_at": null, "wake_at": null,
            "exit": {"code": 7},
            "usage": {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": 0.0, "known": true},
            "limits": {}, "workspace": "/src", "tty": false, "parent": null, "root": "k3mx7q9w2r5t",
            "children": [], "labels": {"repo": "web"}, "pid": null, "shim_pid": null,
            "output_bytes": 2048, "restarts": {"stall": 0, "crash": 1},
            "notices": {"pending": 0, "delivered": 0}, "summary": null,
            "survivors": [{"pid": 12, "start": 1, "command": "sleep 9"}],
            "containment": "subreaper", "trouble": null, "seq": 9
        }))
        .expect("a view");
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        insta::assert_snapshot!(page(&view, now, false), @r"
        run        k3mx7q9w2r5t
        state      failed (exit 7, +1 survivor)
        reason     exit code 7
        command    sh -c 'exit 7'
        directory  /src
        turn       1, attempt 1
        created    3m ago (2026-11-15T11:57:00Z)
        started    3m ago (2026-11-15T11:57:00Z)
        ended      2m ago (2026-11-15T11:58:00Z)
        runtime    1m
        exit       code 7
        output     2.0 KiB
        survivor   pid 12: sleep 9
        restarts   1 after a crash, 0 after a stall
        labels     repo=web
        ");
    }
}
