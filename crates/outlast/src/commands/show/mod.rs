//! `outlast show`: all that is known about a run, or about one of its turns.

mod transcript;
mod turn;

use jiff::Timestamp;
use outlast_client::ask::{Ask, run_path};
use outlast_client::follow::output_gone;
use outlast_client::problem::REFUSED;
use outlast_client::session::{Session, unreadable};
use outlast_wire::api::{LimitView, Notices, RunView, TurnView, Usage};
use outlast_wire::shim::Exit;
use outlast_workflow::duration::short;

use crate::Answer;
use crate::args::Show;
use crate::money::{self, Micros};
use crate::output::page::{Page, shell_words};
use crate::output::rest::{next_steps, question};
use crate::output::state::{Condition, spaced};
use crate::output::time::{both, ms_between};
use crate::output::{self, agent, colour, figures};
use crate::world::World;

pub(crate) async fn show(world: &World, args: Show) -> Answer {
    let rest = args.turn.map(|turn| format!("/turns/{turn}")).unwrap_or_default();
    let body = Session::new(&world.client).fetch(&Ask::get(&run_path(&args.run, &rest))).await?;
    let unreadable = |error| unreadable(&error);
    let turn: Option<TurnView> = match args.turn {
        Some(_) => Some(serde_json::from_slice(&body).map_err(unreadable)?),
        None => None,
    };
    match &turn {
        _ if args.json => output::print_line(&String::from_utf8_lossy(&body))?,
        Some(view) => output::print(&turn::page(view))?,
        None => {
            let view: RunView = serde_json::from_slice(&body).map_err(unreadable)?;
            output::print(&page(&view, world.now(), world.colours()))?;
        }
    }
    let gone = turn.as_ref().map(turn::gone).unwrap_or_default();
    match gone.is_empty() {
        true => Ok(0),
        // What is printed says so itself, and is one document.
        false if args.json => Ok(REFUSED),
        false => Err(output_gone(&gone)),
    }
}

fn page(view: &RunView, now: Timestamp, colours: bool) -> String {
    let mut page = Page::default();
    page.line("run", &view.id);
    page.some("name", view.name.as_deref());
    let state = colour::of_state(&view.state).paint(&Condition::from(view).words(), colours);
    page.painted("state", &state);
    page.some("reason", view.reason.as_deref());
    page.some("health", health_words(view, now).as_deref());
    rest(&mut page, view, now);
    page.some("key", view.key.as_deref());
    page.some("task", view.task.as_deref());
    work(&mut page, view);
    standing(&mut page, view);
    agent_now(&mut page, view, now);
    times(&mut page, view, now);
    ending(&mut page, view);
    belonging(&mut page, view);
    if let Some(recovered) = &view.recovered {
        page.line("recovered", &format!("from its directory, {}", both(&recovered.at, now)));
        recovered.missing.iter().for_each(|what| page.line("missing", what));
    }
    if let Some(trouble) = &view.trouble {
        page.line("trouble", &format!("{}, since {}", trouble.message, both(&trouble.since, now)));
    }
    page.0
}

/// `silent: no output for 6 minutes, since …`; nothing of a run that is well, or whose trouble is told below.
fn health_words(view: &RunView, now: Timestamp) -> Option<String> {
    let why = view.health_why.as_deref().filter(|_| view.trouble.is_none())?;
    let since = view.health_since.as_deref().map(|since| format!(", since {}", both(since, now)));
    Some(format!("{}: {why}{}", spaced(view.health.as_str()), since.unwrap_or_default()))
}

/// Why it rests, and what to do about it.
fn rest(page: &mut Page, view: &RunView, now: Timestamp) {
    if let Some(blocked) = &view.blocked {
        let words =
            format!("{}, {}", spaced(blocked.reason_code.as_str()), both(&blocked.since, now));
        page.line("blocked", &words);
    }
    page.some("question", question(view));
    for step in next_steps(view) {
        page.line("next", &step);
    }
}

/// What it was asked to do, and where.
fn work(page: &mut Page, view: &RunView) {
    if view.agent.kind != "exec" {
        page.line("agent", &view.agent.kind);
    }
    if !view.agent.command.is_empty() {
        page.line("command", &command(view));
    }
    if let Some(workflow) = &view.workflow {
        let sha = workflow.sha256.get(..12).unwrap_or(&workflow.sha256);
        page.line("workflow", &format!("{} (sha256 {sha}…)", workflow.path));
    }
    match view.strategy.as_str() {
        "" | "inplace" => page.line("directory", &view.workspace),
        strategy => page.line("directory", &format!("{} ({strategy})", view.workspace)),
    }
    if view.priority != 0 {
        page.line("priority", &view.priority.to_string());
    }
}

/// How far it has come.
fn standing(page: &mut Page, view: &RunView) {
    let most = view.limits.get("max_turns").map(|limit| format!(" of {}", limit.max));
    if view.turn > 0 {
        let most = most.unwrap_or_default();
        page.line("turn", &format!("{}{most}, attempt {}", view.turn, view.attempt));
    }
    page.some("phase", view.phase.as_deref());
    page.some("checkpoint", view.checkpoint.as_deref());
    page.some("spend", spend_words(&view.usage).as_deref());
    if view.inbox.unread > 0 {
        page.line("messages", &format!("{} unread", view.inbox.unread));
    }
    page.some("last line", view.last_line.as_deref());
    page.some("notices", notice_words(&view.notices).as_deref());
}

/// What a driven agent is at.
fn agent_now(page: &mut Page, view: &RunView, now: Timestamp) {
    let activity = &view.agent.activity;
    page.some("model", activity.model.as_deref());
    page.some("tool", agent::tool(activity, now).as_deref());
    if activity.background > 0 {
        page.line("background", &format!("{} at work beside the turn", activity.background));
    }
    page.some("context", agent::context(activity).as_deref());
    page.some("this turn", activity.turn_usage.as_ref().and_then(spend_words).as_deref());
    if let Some(asks) = &activity.asks {
        page.line("asks", &format!("{}, {}", asks.text, both(&asks.since, now)));
    }
    if let Some(retrying) = &activity.retrying {
        page.line("retries", &agent::retry(retrying, now));
    }
    if let Some(limit) = &activity.limit {
        page.line("limited", &format!("{}, until {}", limit.why, limit.until));
    }
    page.some("unreadable", activity.unreadable.as_deref());
    if activity.unread_bytes > 0 {
        let bytes = figures::bytes(activity.unread_bytes);
        page.line("not read", &format!("{bytes} of agent.jsonl, damaged or too much at once"));
    }
}

/// `1 pending, 2 delivered: what went wrong`; nothing if there are no notices.
fn notice_words(notices: &Notices) -> Option<String> {
    let Notices { pending, delivered, muted, given_up, problem } = notices;
    let counts =
        [(pending, "pending"), (delivered, "delivered"), (muted, "muted"), (given_up, "given up")];
    let some: Vec<String> = counts
        .iter()
        .filter(|(count, _)| **count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let problem = problem.as_ref().map(|problem| format!(": {problem}")).unwrap_or_default();
    (!some.is_empty()).then(|| format!("{}{problem}", some.join(", ")))
}

/// `$0.42, 15k tokens (12k tokens in, 3k out, 8k cached)`, and that there may be more where an attempt did not report.
pub(super) fn spend_words(usage: &Usage) -> Option<String> {
    let total = usage.input_tokens.saturating_add(usage.output_tokens);
    let cost = (usage.cost_usd > 0.0).then(|| money::dollars(usage.cost_usd));
    let tokens = (total > 0).then(|| {
        let Usage { input_tokens, output_tokens, cached_tokens, .. } = usage;
        format!("{total} tokens ({input_tokens} in, {output_tokens} out, {cached_tokens} cached)")
    });
    let is_any = cost.is_some() || tokens.is_some();
    let unknown = (is_any && !usage.known).then(|| "some of it unknown".to_owned());
    let parts: Vec<String> = [cost, tokens, unknown].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
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
    page.some("runtime", runtime(view, now).map(short).as_deref());
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
    page.some("scope", view.scope.as_deref());
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
    if let Some(origin) = &view.origin {
        page.line("trigger", &format!("{}, {}", origin.trigger, origin.occurrence));
    }
    page.some("children", (!view.children.is_empty()).then(|| view.children.join(" ")).as_deref());
}

fn limit_words(name: &str, LimitView { used, max }: LimitView) -> String {
    if let Some(name) = name.strip_suffix("_ms") {
        return format!("{}: {} of {}", spaced(name), short(used), short(max));
    }
    if let Some(name) = name.strip_suffix("_usd_micros") {
        let (used, max) = (Micros(used).dollars(), Micros(max).dollars());
        return format!("{}: {used} of {max}", spaced(name));
    }
    format!("{}: {used} of {max}", spaced(name))
}

pub(super) fn exit_value(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("code {code}"),
        Exit::Signal(signal) => figures::signal(signal),
    }
}

/// The command; of a loop's script only what it begins with.
fn command(view: &RunView) -> String {
    match (view.workflow.as_ref(), view.agent.command.as_slice()) {
        (Some(_), [_, _, script]) if script.trim_end().contains('\n') => {
            let lines = script.trim_end().lines().count();
            let first = script.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("{} … ({lines} lines of sh, as in the file)", first.trim())
        }
        (_, command) => shell_words(command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn limits_have_units() {
        assert_eq!(
            limit_words("turn_timeout_ms", LimitView { used: 90_000, max: 300_000 }),
            "turn timeout: 1m 30s of 5m"
        );
        assert_eq!(
            limit_words("max_cost_usd_micros", LimitView { used: 420_000, max: 5_000_000 }),
            "max cost: $0.42 of $5.00"
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

    #[test]
    fn a_loop_says_where_it_stands() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        insta::assert_snapshot!(page(&sample::running_loop(), now, false), @r"
        run        k3mx7q9w2r5t
        name       port
        state      running
        task       port the parser
        agent      claude
        workflow   /src/WORKFLOW.md (sha256 9f86d081884c…)
        directory  /src/.wt/port (worktree)
        priority   5
        turn       3 of 20, attempt 1
        phase      turn 3 attempt 1
        checkpoint turn 2 committed
        spend      $0.42, 15400 tokens (12000 in, 3400 out, 8000 cached)
        messages   2 unread
        created    3m ago (2026-11-15T11:57:00Z)
        started    2m 30s ago (2026-11-15T11:57:30Z)
        progress   1m ago (2026-11-15T11:59:00Z)
        runtime    2m 30s
        summary    the lexer is there
        pid        41 (shim 40)
        output     2.0 KiB
        restarts   0 after a crash, 1 after a stall
        limit      max cost: $0.42 of $5.00
        limit      max turns: 2 of 20
        limit      run timeout: 3m of 2h
        ");
    }

    #[test]
    fn a_run_that_rests_says_what_to_do() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let view = sample::blocked("needs_input", Some("which database?"));
        let page = page(&view, now, false);
        let above: String = page.lines().take(9).map(|line| format!("{line}\n")).collect();
        insta::assert_snapshot!(above, @r"
        run        k3mx7q9w2r5t
        name       port
        state      blocked (needs input)
        reason     it needs a person
        blocked    needs input, 1m ago (2026-11-15T11:59:00Z)
        question   which database?
        next       outlast answer k3mx7q9w2r5t TEXT  answers it
        next       outlast answer k3mx7q9w2r5t --approve  allows what it asks for; --deny does not
        task       port the parser
        ");
    }
}
