//! `outlast show`: what a person wants to know about a run, on one screen; or all about one of its turns.

mod changes;
mod kin;
mod transcript;
mod turn;
mod turns;

use jiff::Timestamp;
use outlast_client::ask::{Ask, run_path};
use outlast_client::follow::output_gone;
use outlast_client::journal::Event;
use outlast_client::problem::{Problem, REFUSED};
use outlast_client::session::{Session, unreadable};
use outlast_wire::api::{LimitView, Notices, RunView, TurnView, Usage};
use outlast_wire::shim::Exit;
use outlast_wire::words::{Health, ReasonCode, StateName, Word};
use outlast_workflow::duration::{short, typed};
use serde_json::value::RawValue;

use self::changes::{changes_of, forked, session_of};
use crate::Answer;
use crate::args::Show;
use crate::money::{self, Micros};
use crate::output::figures::Spend;
use crate::output::page::{Page, shell_words};
use crate::output::rest::{next_steps, question};
use crate::output::state::{Condition, exit_words, spaced};
use crate::output::table::Look;
use crate::output::time::{both, ms_between, relative};
use crate::output::{self, agent, called, colour, figures, waiting};
use crate::turns::Turns;
use crate::world::World;

pub(crate) async fn show(world: &World, args: Show) -> Answer {
    let rest = args.turn.map(|turn| format!("/turns/{turn}")).unwrap_or_default();
    let mut session = Session::new(&world.client);
    let body = session.fetch(&Ask::get(&run_path(&args.run, &rest))).await?;
    let unreadable = |error| unreadable(&error);
    let turn: Option<TurnView> = match args.turn {
        Some(_) => Some(serde_json::from_slice(&body).map_err(unreadable)?),
        None => None,
    };
    match &turn {
        _ if args.json => output::print_line(&String::from_utf8_lossy(&body))?,
        Some(view) => output::print(&turn::page(view, &args.run, world.columns()))?,
        None => {
            let view: RunView = serde_json::from_slice(&body).map_err(unreadable)?;
            let view = kin::named(&mut session, view).await;
            let look = Look { columns: world.columns(), colours: world.colours() };
            let now = world.now();
            let text = match args.limits {
                true => limits_page(&view, now, look),
                false => {
                    let changes = changes_of(&mut session, &view).await;
                    let turns = turns_of(&mut session, &view).await?;
                    page(&view, &turns, changes.as_deref(), now, look)
                }
            };
            output::print(&text)?;
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

/// The turns of a loop, from its events. A run that cannot be read has none to show.
async fn turns_of(session: &mut Session<'_>, view: &RunView) -> Result<Turns, Problem> {
    let mut turns = Turns::default();
    if !is_loop(view) || view.trouble.is_some() {
        return Ok(turns);
    }
    let ask = Ask::get(&run_path(&view.id, "/events"));
    let events: Vec<Box<RawValue>> = session.call(&ask).await?;
    for event in events {
        turns.take(&Event::read(event.get())?);
    }
    Ok(turns)
}

/// A single command has one turn, of which nothing is said.
fn is_loop(view: &RunView) -> bool {
    view.workflow.is_some() || view.agent.kind != "exec" || view.turn > 1
}

fn page(
    view: &RunView,
    turns: &Turns,
    changes: Option<&str>,
    now: Timestamp,
    look: Look,
) -> String {
    let mut page = Page::fitting(look.columns);
    head(&mut page, view, now, look);
    why(&mut page, view, now);
    steps(&mut page, view);
    work(&mut page, view);
    page.some("changes", changes);
    used(&mut page, view, now);
    agent_now(&mut page, view, now);
    page.some("last line", view.last_line.as_deref());
    if view.inbox.unread > 0 {
        page.line("messages", &format!("{} unread", view.inbox.unread));
    }
    page.some("notices", notice_words(&view.notices).as_deref());
    belonging(&mut page, view, now);
    if let Some(table) = turns::table(turns, now) {
        let table = table.render(look);
        let earlier = turns::earlier(turns).map(|words| format!("{words}\n")).unwrap_or_default();
        page.block(&format!("{earlier}{table}"));
    }
    more(&mut page, view);
    page.text
}

/// What it is called, and how it is.
fn head(page: &mut Page, view: &RunView, now: Timestamp, look: Look) {
    let id = view.name.as_ref().map(|_| format!(" ({})", view.id)).unwrap_or_default();
    page.line("run", &format!("{}{id}", called(view)));
    let words = Condition::from(view).at(now).words();
    let state = colour::of_state(&view.state).paint(&words, look.colours);
    page.painted("state", &format!("{state}{}", since(view, now)));
}

/// `, 4m ago`; of a run that goes on, when it started.
fn since(view: &RunView, now: Timestamp) -> String {
    let blocked = view.blocked.as_ref().map(|blocked| &blocked.since);
    let (word, at) = match (&view.ended_at, blocked, &view.started_at) {
        (Some(ended), _, _) => ("", ended),
        (None, Some(since), _) => ("", since),
        (None, None, Some(started)) => ("started ", started),
        (None, None, None) => ("created ", &view.created_at),
    };
    let at = at.parse().map(|at| relative(at, now)).unwrap_or_default();
    format!(", {word}{at}")
}

/// Why it is so: each thing once.
fn why(page: &mut Page, view: &RunView, now: Timestamp) {
    if let Some(trouble) = &view.trouble {
        page.line("trouble", &format!("{}, since {}", trouble.message, both(&trouble.since, now)));
    }
    let question = question(view).filter(|question| !question.is_empty());
    let reason = view.reason.as_deref().map(str::trim);
    match waiting::why(view, now) {
        Some(why) => page.line("why", &why),
        None if reason != question && !is_said_by_state(view) => page.some("why", reason),
        None => {}
    }
    page.some("health", health_words(view, now).as_deref());
    page.some("asks", question.map(|it| cut(it, view)).as_deref());
    if let Some(recovered) = &view.recovered {
        page.line("recovered", &format!("from its directory, {}", both(&recovered.at, now)));
        recovered.missing.iter().for_each(|what| page.line("missing", what));
    }
}

/// The reasons that the state has in itself: `failed (exit 7)`, `paused`, `completed`.
fn is_said_by_state(view: &RunView) -> bool {
    let code = view.reason_code.as_ref().and_then(Word::known);
    // The number alone does not say that a command was not found.
    if matches!(view.exit, Some(Exit::Code(126 | 127))) && code == Some(ReasonCode::ExitCode) {
        return false;
    }
    matches!(view.state.known(), Some(StateName::Completed | StateName::Stopped))
        || matches!(
            code,
            Some(ReasonCode::ExitCode | ReasonCode::Signaled | ReasonCode::Paused) | None
        )
}

/// `silent: no output for 6 minutes, since …`; nothing of a run that is well, or whose state says it.
fn health_words(view: &RunView, now: Timestamp) -> Option<String> {
    let is_said = view.blocked.is_some() && view.health == Health::WaitingHuman;
    let why = view.health_why.as_deref().filter(|_| view.trouble.is_none() && !is_said)?;
    let since = view.health_since.as_deref().and_then(|since| since.parse().ok());
    let since = since.map(|since| format!(", since {}", relative(since, now)));
    let health = match view.health.known() {
        Some(Health::WaitingHuman) => "needs you".to_owned(),
        _ => spaced(view.health.as_str()),
    };
    Some(format!("{health}: {why}{}", since.unwrap_or_default()))
}

/// Commands to paste.
fn steps(page: &mut Page, view: &RunView) {
    let mut steps = Vec::new();
    for survivor in &view.survivors {
        page.line("left", &format!("pid {}: {}", survivor.pid, survivor.command));
    }
    if !view.survivors.is_empty() {
        steps.push(format!("kill what is left:\noutlast stop {}", called(view)));
    }
    steps.extend(next_steps(view));
    steps.iter().for_each(|step| page.command("do", step));
}

/// What it was asked to do, and where.
fn work(page: &mut Page, view: &RunView) {
    page.some("task", view.task.as_deref().map(output::one_line).as_deref());
    let command = (!view.agent.command.is_empty()).then(|| command(view));
    match (view.agent.kind.as_str(), command) {
        ("exec", command) => page.some("command", command.as_deref()),
        (kind, Some(command)) => page.line("agent", &format!("{kind}: {command}")),
        (kind, None) => page.line("agent", kind),
    }
    page.some("workflow", view.workflow.as_ref().map(|file| file.path.as_str()));
    let branch = view.branch.as_ref().map(|branch| format!(", branch {branch}"));
    let dir = match view.strategy.as_str() {
        "" | "inplace" | "worktree" => view.workspace.clone(),
        strategy => format!("{} ({strategy})", view.workspace),
    };
    page.line("directory", &format!("{dir}{}", branch.unwrap_or_default()));
    page.some("forked", view.forked_from.as_ref().map(forked).as_deref());
    page.some("session", view.forked_from.as_ref().and_then(session_of).as_deref());
}

/// `$0.03 of $1.00 · 3k tokens · turn 2/10 · 7s of 2h`; of a command, how long it ran and what it left.
fn used(page: &mut Page, view: &RunView, now: Timestamp) {
    let limit = |name: &str| view.limits.get(name).copied();
    let most = limit("max_cost_usd_micros").map(|limit| Micros(limit.max).dollars());
    let spend = spend_of(view, most.as_deref());
    let turn = (is_loop(view) && view.turn > 0).then(|| {
        let most = limit("max_turns").and_then(|limit| u32::try_from(limit.max).ok());
        format!("turn {}", figures::turn(view.turn, view.attempt, most))
    });
    let tried = (!is_loop(view) && view.attempt > 1).then(|| format!("try {}", view.attempt));
    let worked = match limit("run_timeout_ms") {
        Some(LimitView { used, max }) => Some(format!("{} of {}", short(used), typed(max))),
        None => runtime(view, now).map(short),
    };
    let exit = view.exit.filter(|_| !is_loop(view)).map(exit_words);
    let output = (view.output_bytes > 0 && !is_loop(view))
        .then(|| format!("{} of output", figures::bytes(view.output_bytes)));
    let parts = [spend, turn, tried, worked, exit, output];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    page.some("used", (!parts.is_empty()).then(|| parts.join(" · ")).as_deref());
    if view.restarts.crash + view.restarts.stall > 0 {
        let restarts = view.restarts;
        page.line(
            "restarts",
            &format!("{} after a crash, {} after a stall", restarts.crash, restarts.stall),
        );
    }
}

/// `$0.03 of $1.00 · 3k tokens`; `≤ $5.00 of $5.00, not reported`.
fn spend_of(view: &RunView, most: Option<&str>) -> Option<String> {
    let spend = Spend::from(&view.usage);
    let at_most = |is_held: bool| if is_held { "≤ " } else { "" };
    let money = (spend.cost_usd > 0.0).then(|| {
        let of = most.map(|most| format!(" of {most}")).unwrap_or_default();
        let at_most = at_most(spend.unreported_usd > 0.0);
        format!("{at_most}{}{of}", money::dollars(spend.cost_usd))
    });
    let tokens = (spend.tokens > 0).then(|| {
        format!("{}{}", at_most(spend.unreported_tokens > 0), figures::tokens(spend.tokens))
    });
    let figures: Vec<String> = [money, tokens].into_iter().flatten().collect();
    // Of a plain command, which has nothing to report, nothing is said.
    let is_over =
        view.ended_at.is_some() || view.turns_committed > 0 || spend.unreported_attempts > 0;
    match (figures.is_empty(), spend.mark()) {
        (true, Some(_)) if is_loop(view) && is_over => Some("spend not reported".to_owned()),
        (true, _) => None,
        (false, Some(mark)) => Some(format!("{}, {mark}", figures.join(" · "))),
        (false, None) => Some(figures.join(" · ")),
    }
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
        page.line("limited", &format!("{}, until {}", limit.why, both(&limit.until, now)));
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
    let spend = Spend::from(usage);
    let at_most =
        |is_held: bool, figure: String| if is_held { format!("≤ {figure}") } else { figure };
    let cost = (usage.cost_usd > 0.0).then(|| money::dollars(usage.cost_usd));
    let cost = cost.map(|cost| at_most(usage.unreported_usd > 0.0, cost));
    let tokens = (spend.tokens > 0).then(|| {
        let Usage { input_tokens, output_tokens, cached_tokens, .. } = usage;
        let total = spend.tokens;
        // What is held was not reported, so which tokens they were is not known either.
        if usage.unreported_tokens > 0 {
            return format!("{total} tokens");
        }
        format!("{total} tokens ({input_tokens} in, {output_tokens} out, {cached_tokens} cached)")
    });
    let tokens = tokens.map(|tokens| at_most(usage.unreported_tokens > 0, tokens));
    let is_any = cost.is_some() || tokens.is_some();
    let mark = spend.mark().filter(|_| is_any);
    let parts: Vec<String> = [cost, tokens, mark].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// How long it worked: time at rest is not counted.
fn runtime(view: &RunView, now: Timestamp) -> Option<u64> {
    if let Some(worked) = view.worked_ms {
        return Some(worked);
    }
    let until = view.ended_at.as_deref().map_or(Some(now), |ended| ended.parse().ok());
    ms_between(view.started_at.as_deref()?, until?)
}

/// A paused run has a time too: that at which its own time is over.
fn goes_on_by_itself(view: &RunView) -> bool {
    view.state == StateName::Waiting && !view.paused
}

fn belonging(page: &mut Page, view: &RunView, now: Timestamp) {
    let labels: Vec<String> =
        view.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    page.some("labels", (!labels.is_empty()).then(|| labels.join(" ")).as_deref());
    page.some("key", view.key.as_deref());
    if view.priority != 0 {
        page.line("priority", &view.priority.to_string());
    }
    page.some("parent", view.parent.as_deref());
    page.some("children", (!view.children.is_empty()).then(|| view.children.join(", ")).as_deref());
    if let Some(origin) = &view.origin {
        page.line("trigger", &format!("{}, {}", origin.trigger, origin.occurrence));
    }
    if let Some(at) = view.wake_at.as_deref().filter(|_| goes_on_by_itself(view)) {
        page.line("continues", &both(at, now));
    }
    let shim = view.shim_pid.map(|pid| format!(" (shim {pid})")).unwrap_or_default();
    page.some("pid", view.pid.map(|pid| format!("{pid}{shim}")).as_deref());
    page.some("scope", view.scope.as_deref());
}

/// Where there is more of it.
fn more(page: &mut Page, view: &RunView) {
    let run = called(view);
    let turn = (is_loop(view) && view.turn > 0).then(|| format!("--turn {} · ", view.turn));
    let turn = turn.unwrap_or_default();
    page.line("more", &format!("outlast show {run} {turn}--limits · --json · logs"));
}

/// `outlast show --limits`: what a run may use and has used, and every time that is known.
fn limits_page(view: &RunView, now: Timestamp, look: Look) -> String {
    let mut page = Page::fitting(look.columns);
    head(&mut page, view, now, look);
    for (name, limit) in view.limits.iter().filter(|(name, _)| is_loop(view) || !is_of_turns(name))
    {
        page.line("limit", &limit_words(name, *limit, &view.usage));
    }
    page.some("spend", spend_words(&view.usage).as_deref());
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
    if is_loop(view) {
        page.some("phase", view.phase.as_deref());
        page.some("checkpoint", view.checkpoint.as_deref());
    }
    page.line("output", &figures::bytes(view.output_bytes));
    if let Some(workflow) = &view.workflow {
        let sha = workflow.sha256.get(..12).unwrap_or(&workflow.sha256);
        page.line("workflow", &format!("{} (sha256 {sha}…)", workflow.path));
    }
    page.text
}

/// The limits that a single command has and never reaches.
fn is_of_turns(limit: &str) -> bool {
    matches!(limit, "max_turns" | "no_progress_turns" | "max_stall_restarts")
}

/// What of a limit is used, and that it was not reported where that is so.
fn limit_words(name: &str, LimitView { used, max }: LimitView, usage: &Usage) -> String {
    let words = spaced(name.trim_end_matches("_ms").trim_end_matches("_usd_micros"));
    let held =
        |is_held: bool| if is_held { ("≤ ", ", not all of it reported") } else { ("", "") };
    match name {
        // A limit is shown as it was given.
        name if name.ends_with("_ms") => format!("{words}: {} of {}", short(used), typed(max)),
        name if name.ends_with("_usd_micros") => {
            let (at_most, mark) = held(usage.unreported_usd > 0.0);
            let (used, max) = (Micros(used).dollars(), Micros(max).dollars());
            format!("{words}: {at_most}{used} of {max}{mark}")
        }
        "max_tokens" => {
            let (at_most, mark) = held(usage.unreported_tokens > 0);
            format!("{words}: {at_most}{used} of {max}{mark}")
        }
        _ => format!("{words}: {used} of {max}"),
    }
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
        (_, command) => cut(&shell_words(command), view),
    }
}

/// In characters: more than this of one text hides the rest of the page.
const LONGEST: usize = 2000;

/// The beginning of a text that is too long for a page, and where all of it is.
fn cut(text: &str, view: &RunView) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => {
            let size = figures::bytes(text.len() as u64);
            format!("{}… ({size}; all of it: outlast show {} --json)", &text[..end], called(view))
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    const WIDE: Look = Look { columns: None, colours: false };

    #[test]
    fn limits_have_units() {
        assert_eq!(
            limit("turn_timeout_ms", 90_000, 300_000, &Usage::default()),
            "turn timeout: 1m 30s of 5m"
        );
        assert_eq!(
            limit("stall_window_ms", 0, 1500, &Usage::default()),
            "stall window: 0ms of 1s500ms"
        );
        let held = Usage { unreported_usd: 0.4, ..Usage::default() };
        for (used, usage, expected) in [
            (420_000, &Usage::default(), "max cost: $0.42 of $5.00"),
            (25_000, &Usage::default(), "max cost: $0.03 of $5.00"),
            (420_000, &held, "max cost: ≤ $0.42 of $5.00, not all of it reported"),
        ] {
            assert_eq!(limit("max_cost_usd_micros", used, 5_000_000, usage), expected);
        }
        assert_eq!(limit("attempts", 1, 4, &Usage::default()), "attempts: 1 of 4");
    }

    fn limit(name: &str, used: u64, max: u64, usage: &Usage) -> String {
        limit_words(name, LimitView { used, max }, usage)
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
        insta::assert_snapshot!(page(&view, &Turns::default(), None, now, WIDE), @r"
        run        k3mx7q9w2r5t
        state      failed (exit 7, +1 survivor), 2m ago
        left       pid 12: sleep 9
        do         kill what is left:
                   outlast stop k3mx7q9w2r5t
        do         outlast rerun k3mx7q9w2r5t
        command    sh -c 'exit 7'
        directory  /src
        used       1m · exit 7 · 2.0 KiB of output
        restarts   1 after a crash, 0 after a stall
        labels     repo=web
        more       outlast show k3mx7q9w2r5t --limits · --json · logs
        ");
    }

    #[test]
    fn a_text_of_pages_is_cut_and_says_where_the_rest_is() {
        let view = sample::running_loop();
        let shown = cut(&"é".repeat(60_000), &view);
        assert!(shown.starts_with("éé") && shown.chars().count() < LONGEST + 80, "{}", shown.len());
        assert!(shown.ends_with("é… (117.1 KiB; all of it: outlast show port --json)"), "{shown}");
        assert_eq!(cut("true", &view), "true");
    }

    #[test]
    fn a_loop_says_where_it_stands() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        insta::assert_snapshot!(page(&sample::running_loop(), &Turns::default(), None, now, WIDE), @r"
        run        port (k3mx7q9w2r5t)
        state      running, started 2m 30s ago
        task       port the parser
        agent      claude
        workflow   /src/WORKFLOW.md
        directory  /src/.wt/port
        used       $0.42 of $5.00 · 15k tokens · turn 3/20 · 3m of 2h
        restarts   0 after a crash, 1 after a stall
        messages   2 unread
        priority   5
        pid        41 (shim 40)
        more       outlast show port --turn 3 · --limits · --json · logs
        ");
    }

    #[test]
    fn a_run_that_rests_says_what_to_do() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let view = sample::blocked("needs_input", Some("which database?"));
        let page = page(&view, &Turns::default(), None, now, WIDE);
        let above: String = page.lines().take(6).map(|line| format!("{line}\n")).collect();
        insta::assert_snapshot!(above, @r"
        run        port (k3mx7q9w2r5t)
        state      blocked: asks you, 1m ago
        why        it needs a person
        asks       which database?
        do         outlast answer port 'TEXT'
        do         outlast answer port --approve
        ");
    }
}
