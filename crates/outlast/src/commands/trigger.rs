//! `outlast schedule …` and `outlast trigger …`: what starts runs without a person.

mod hook;

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_client::ask::{Ask, run_path, trigger_path};
use outlast_client::connection::Reply;
use outlast_client::problem::Problem;
use outlast_client::session::{Session, unreadable};
use outlast_client::{rows, run_id};
use outlast_wire::api::{
    AddTrigger, CreateRun, HookAddress, LINES, Missed, NextTimes, OrderTrigger, Overlap, RunView,
    TriggerAdded, TriggerRan, TriggerRun, TriggerSource, TriggerView, When,
};
use outlast_wire::codes::Code;
use outlast_workflow::notify::base64;
use serde_json::{Value, json};

use super::{each, errors_as, run};
use crate::Answer;
use crate::args::{
    self, Run, ScheduleAdd, ScheduleCommand, ScheduleNext, TriggerAdd, TriggerCommand, TriggerName,
    TriggerNames, TriggerNow,
};
use crate::duration::as_ms;
use crate::output::errors;
use crate::output::page::Page;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, colour::Colour, time};
use crate::world::World;
use hook::Secret;

/// How often a tracker is asked by default.
const POLL_EACH: Duration = Duration::from_secs(300);

pub(crate) async fn schedule(world: &World, command: ScheduleCommand) -> Answer {
    match command {
        ScheduleCommand::Add(args) => add_schedule(world, *args).await,
        ScheduleCommand::Ls(args) => list(world, args.json, Which::Schedules).await,
        ScheduleCommand::Show(args) => show(world, args).await.map_err(as_schedule),
        ScheduleCommand::Next(args) => next(world, args).await.map_err(as_schedule),
        ScheduleCommand::Run(args) => run_now(world, args).await.map_err(as_schedule),
        ScheduleCommand::Pause(args) => order(world, args, Noun::Schedule, "pause").await,
        ScheduleCommand::Resume(args) => order(world, args, Noun::Schedule, "resume").await,
        ScheduleCommand::Rm(args) => remove(world, args, Noun::Schedule).await,
    }
}

/// What the person calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Noun {
    Schedule,
    Trigger,
}

impl Noun {
    fn of(self, problem: Problem) -> Problem {
        match self {
            Self::Schedule => as_schedule(problem),
            Self::Trigger => problem,
        }
    }
}

/// The daemon knows triggers, of which a schedule is one.
fn as_schedule(problem: Problem) -> Problem {
    let Problem::Told { mut info, exit } = problem else { return problem };
    if info.code == Code::UnknownTrigger {
        info.message = info.message.replace("no trigger", "no schedule");
        info.hint = Some("outlast schedule ls".to_owned());
    }
    Problem::Told { info, exit }
}

pub(crate) async fn trigger(world: &World, command: TriggerCommand) -> Answer {
    match command {
        TriggerCommand::Add(args) => add_trigger(world, *args).await,
        TriggerCommand::Ls(args) => list(world, args.json, Which::All).await,
        TriggerCommand::Show(args) => show(world, args).await,
        TriggerCommand::Run(args) => run_now(world, args).await,
        TriggerCommand::Pause(args) => order(world, args, Noun::Trigger, "pause").await,
        TriggerCommand::Resume(args) => order(world, args, Noun::Trigger, "resume").await,
        TriggerCommand::Rm(args) => remove(world, args, Noun::Trigger).await,
    }
}

async fn add_schedule(world: &World, args: ScheduleAdd) -> Answer {
    let args::When { cron, every, at } = args.when;
    let when = when(cron, every, at)
        .ok_or_else(|| Problem::refusal("usage", "one of --cron, --every and --at is needed"))?;
    let source = TriggerSource::Schedule { when, tz: Some(zone(args.tz)) };
    let json = args.run.json;
    let asked = AddTrigger {
        id: Some(run_id::new()?),
        name: args.trigger,
        source,
        overlap: Some(overlap(args.overlap)),
        missed: Some(missed(args.missed)),
        replace: args.replace,
        run: run_template(world, args.run)?,
    };
    let added = add(world, &asked).await?;
    if json {
        output::print_json(&added)?;
        return Ok(0);
    }
    let TriggerView { name, source, next_at, .. } = &added.trigger;
    let next = next_at.as_deref().map(|at| format!(", next {}", time::both(at, world.now())));
    let line = format!("{} {name}: {source}{}", done(&added), next.unwrap_or_default());
    output::say(&line)?;
    Ok(0)
}

fn done(added: &TriggerAdded) -> &'static str {
    if added.replaced { "replaced" } else { "added" }
}

async fn add_trigger(world: &World, args: TriggerAdd) -> Answer {
    let json = args.run.json;
    let source = source(world, &args)?;
    let secret = match (&args.secret, &source) {
        (Some(given), _) => Secret::of(given),
        (None, TriggerSource::Webhook { secret: Some(chosen), .. }) => {
            Secret::Chosen(chosen.clone())
        }
        (None, _) => Secret::Unknown,
    };
    let asked = AddTrigger {
        id: Some(run_id::new()?),
        name: args.trigger,
        source,
        overlap: Some(overlap(args.overlap)),
        missed: None,
        replace: args.replace,
        run: run_template(world, args.run)?,
    };
    let mut added = add(world, &asked).await?;
    let secret = match (secret, &added.secret) {
        (Secret::Unknown, Some(chosen)) => Secret::Chosen(chosen.clone()),
        (secret, _) => secret,
    };
    if let Secret::Chosen(chosen) = &secret {
        added.secret = Some(chosen.clone());
    }
    if json {
        output::print_json(&added)?;
        return Ok(0);
    }
    let TriggerView { name, source, hook: address, .. } = &added.trigger;
    match address {
        Some(address) => {
            output::print_line(&format!("{} {name}", done(&added)))?;
            hook::print(&asked, address, &secret)?;
        }
        None => output::print_line(&format!("{} {name}: {source}", done(&added)))?,
    }
    Ok(0)
}

fn source(world: &World, args: &TriggerAdd) -> Result<TriggerSource, Problem> {
    let args::Source { webhook: _, folder, poll } = &args.source;
    if let Some(dir) = folder {
        let dir = run::directory(world, Some(dir.clone()))?;
        return Ok(TriggerSource::Folder { dir, leave: args.leave });
    }
    if let Some(command) = poll {
        return Ok(TriggerSource::Poll {
            command: command.clone(),
            every_ms: as_ms(args.every.unwrap_or(POLL_EACH)),
            timeout_ms: args.poll_timeout.map(as_ms),
        });
    }
    let secret = match args.secret.as_deref() {
        Some(secret) => Some(found(world, secret)?),
        // The one that is replaced has a secret already, which its senders know.
        None if args.replace => None,
        None => Some(new_secret()?),
    };
    Ok(TriggerSource::Webhook {
        secret,
        filters: args.filter.clone(),
        id_header: args.id_header.clone(),
        equal_bodies: args.equal_bodies,
    })
}

/// Chosen here, so that it is not lost with the daemon's answer.
fn new_secret() -> Result<String, Problem> {
    let mut chance = [0; 32];
    rustix::rand::getrandom(&mut chance, rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Problem::failure(format_args!("cannot choose a secret: {error}")))?;
    Ok(format!("whsec_{}", base64::encode(&chance)))
}

/// A secret as it is given, or from where it stands: a command line is no secret.
fn found(world: &World, secret: &str) -> Result<String, Problem> {
    let Some(name) = secret.strip_prefix("env:") else { return Ok(secret.to_owned()) };
    let value = world.client.var(name).and_then(|value| value.to_str());
    value.map(str::to_owned).ok_or_else(|| {
        Problem::refusal("no_secret", format_args!("there is no {name} in the environment"))
    })
}

fn when(cron: Option<String>, every: Option<Duration>, at: Option<String>) -> Option<When> {
    cron.map(When::Cron)
        .or_else(|| every.map(|every| When::EveryMs(as_ms(every))))
        .or_else(|| at.map(When::At))
}

/// What was named, or this machine's: the daemon is told which, and does not guess.
fn zone(tz: Option<String>) -> String {
    let here = || TimeZone::try_system().ok()?.iana_name().map(str::to_owned);
    tz.or_else(here).unwrap_or_else(|| "UTC".to_owned())
}

fn overlap(overlap: args::Overlap) -> Overlap {
    match overlap {
        args::Overlap::Skip => Overlap::Skip,
        args::Overlap::Queue => Overlap::Queue,
        args::Overlap::Parallel => Overlap::Parallel,
    }
}

fn missed(missed: args::Missed) -> Missed {
    match missed {
        args::Missed::Skip => Missed::Skip,
        args::Missed::Once => Missed::Once,
        args::Missed::All => Missed::All,
    }
}

/// What each run will be; this environment is kept for all of them.
fn run_template(world: &World, args: Run) -> Result<CreateRun, Problem> {
    run::refuse_nothing(world, &args)?;
    Ok(CreateRun { id: None, ..run::body(world, args)? })
}

async fn add(world: &World, asked: &AddTrigger) -> Result<TriggerAdded, Problem> {
    let ask = Ask::post("/v1/triggers", asked);
    let added: TriggerAdded = Session::new(&world.client).call(&ask).await?;
    errors::warn(&added.warnings);
    Ok(added)
}

/// The id of the trigger that has this name now: an order is for that one, and for none that is made under the name
/// later. Absent for a trigger that cannot be read.
async fn seen(session: &mut Session<'_>, name: &str) -> Result<Option<String>, Problem> {
    let view: TriggerView = session.call(&Ask::get(&trigger_path(name, ""))).await?;
    Ok(view.id)
}

async fn order(world: &World, args: TriggerNames, noun: Noun, verb: &str) -> Answer {
    let mut session = Session::new(&world.client);
    each(&args.triggers, errors_as(args.json), async |name| {
        let trigger_id = seen(&mut session, name).await.map_err(|it| noun.of(it))?;
        let order = OrderTrigger { id: Some(run_id::new()?), trigger_id };
        let path = trigger_path(name, &format!("/{verb}"));
        let view: TriggerView = session.call(&Ask::post(&path, &order)).await?;
        // Another client may have been quicker than a lost answer.
        let since = match (view.paused, verb) {
            (true, "resume") => "; another client has paused it since",
            (false, "pause") => "; another client has resumed it since",
            _ => "",
        };
        if args.json {
            output::print_json(&view)?;
        } else {
            output::print_line(&format!("{verb}d {}{since}", view.name))?;
        }
        Ok(0)
    })
    .await
}

async fn remove(world: &World, args: TriggerNames, noun: Noun) -> Answer {
    let mut session = Session::new(&world.client);
    each(&args.triggers, errors_as(args.json), async |name| {
        let trigger_id = seen(&mut session, name).await.map_err(|it| noun.of(it))?;
        let ask = Ask::delete(&trigger_path(name, "")).query("id", run_id::new()?);
        drop(session.fetch(&ask.query_if("trigger_id", trigger_id)).await?);
        if args.json {
            output::print_json(&json!({ "removed": name }))?;
        } else {
            output::print_line(&format!("removed {name}"))?;
        }
        Ok(0)
    })
    .await
}

async fn show(world: &World, args: TriggerName) -> Answer {
    let mut session = Session::new(&world.client);
    let mut view: TriggerView = session.call(&Ask::get(&trigger_path(&args.trigger, ""))).await?;
    if args.json {
        output::print_json(&view)?;
    } else {
        view.last_run = match view.last_run {
            Some(id) => Some(name_of(&mut session, id).await),
            None => None,
        };
        output::print(&page(&view, world.now(), world.columns()).text)?;
        view.hook.iter().for_each(hook::tell_problem);
    }
    Ok(0)
}

/// The name of a run, or its id if it has none or was removed.
async fn name_of(session: &mut Session<'_>, id: String) -> String {
    let run: Result<RunView, Problem> = session.call(&Ask::get(&run_path(&id, ""))).await;
    run.ok().and_then(|run| run.name).unwrap_or(id)
}

fn page(view: &TriggerView, now: Timestamp, columns: Option<usize>) -> Page {
    let mut page = Page::fitting(columns);
    let when = |at: &Option<String>| at.as_deref().map(|at| time::both(at, now));
    page.line("name", &view.name);
    page.line("kind", &view.kind);
    let (state, _) = state(view);
    page.line("state", state);
    if let Some(trouble) = &view.trouble {
        page.line("why", &trouble.message);
    }
    match &view.hook {
        Some(HookAddress { url: Some(url), .. }) => page.line("address", url),
        Some(_) => page.line("address", &format!("http://localhost{}", view.source)),
        None => page.line("source", &view.source),
    }
    page.line("command", &view.what);
    page.some("next", when(&view.next_at).as_deref());
    if let (Some(at), Some(run)) = (when(&view.last_at), &view.last_run) {
        page.line("last", &format!("{at}, run {run}"));
    }
    let waiting =
        if view.waiting > 0 { format!(", {} waiting", view.waiting) } else { String::new() };
    page.line("runs", &format!("{} started, {} not over{waiting}", view.runs, view.open));
    if view.skipped + view.refused + view.filtered > 0 {
        let TriggerView { skipped, refused, filtered, .. } = view;
        page.line(
            "no run for",
            &format!("{skipped} skipped, {refused} refused, {filtered} filtered out"),
        );
    }
    if let Some(refusal) = view.refusal.as_ref().filter(|_| view.trouble.is_none()) {
        page.line("refused", &format!("{}: {}", time::both(&refusal.since, now), refusal.message));
    }
    page.line("overlap", &word(&view.overlap));
    page.some("missed", view.missed.as_ref().map(word).as_deref());
    page.line("added", &time::both(&view.created_at, now));
    page.command("see", &format!("outlast ps -a --trigger {}", view.name));
    page
}

/// A word of the API.
fn word(value: &impl serde::Serialize) -> String {
    let value = serde_json::to_value(value).ok();
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// JSON as it is given, or what a file has; `@-` is standard input.
fn item(text: &str) -> Result<Value, Problem> {
    let unreadable = |path: &str, error: std::io::Error| {
        Problem::refusal("usage", format_args!("--item: cannot read {path}: {error}"))
    };
    let json = match text.strip_prefix('@') {
        Some("-") => std::io::read_to_string(std::io::stdin())
            .map_err(|error| unreadable("standard input", error))?,
        Some(path) => std::fs::read_to_string(path).map_err(|error| unreadable(path, error))?,
        None => text.to_owned(),
    };
    serde_json::from_str(&json).map_err(|error| {
        Problem::refusal("usage", format_args!("--item is not JSON: {error}"))
            .hint("--item '{\"title\":\"try it\"}' or --item @FILE")
    })
}

async fn run_now(world: &World, args: TriggerNow) -> Answer {
    let item = args.item.as_deref().map_or(Ok(Value::Null), item)?;
    let mut session = Session::new(&world.client);
    let trigger_id = seen(&mut session, &args.trigger).await?;
    let asked = TriggerRun { occurrence: Some(run_id::new()?), trigger_id, item };
    let path = trigger_path(&args.trigger, "/run");
    let ran: TriggerRan = session.call(&Ask::post(&path, &asked)).await?;
    errors::warn(&ran.warnings);
    if args.json {
        output::print_json(&ran)?;
    } else if world.columns().is_some() {
        output::say(&format!("started {}", name_of(&mut session, ran.run).await))?;
    } else {
        // A script goes on with the id.
        output::print_line(&ran.run)?;
    }
    Ok(0)
}

async fn next(world: &World, args: ScheduleNext) -> Answer {
    let mut ask = Ask::get("/v1/next").query("n", args.count);
    ask = match &args.trigger {
        Some(name) => ask.query("trigger", name),
        None => ask
            .query_if("cron", args.cron.as_ref())
            .query_if("every_ms", args.every.map(as_ms))
            .query_if("at", args.at.as_ref())
            .query("tz", zone(args.tz)),
    };
    let times: NextTimes = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&times)?;
        return Ok(0);
    }
    for next in &times.next {
        let relative = next.at.parse().map(|at| time::relative(at, world.now()));
        let relative = relative.unwrap_or_default();
        output::print_line(&format!("{}  {}  {relative}", next.at, next.local))?;
    }
    Ok(0)
}

/// Which triggers are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Schedules,
    All,
}

impl Which {
    fn has(self, kind: &str) -> bool {
        self == Self::All || kind == "schedule"
    }
}

async fn list(world: &World, json: bool, which: Which) -> Answer {
    let ask = Ask::get("/v1/triggers").accept(LINES);
    let mut session = Session::new(&world.client);
    let reply = session.open(&ask).await?;
    if json {
        return print_rows(&ask, reply, which).await;
    }
    let mut views: Vec<TriggerView> = Vec::new();
    rows::each(&ask, reply, |line| {
        let view: TriggerView = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        if which.has(&view.kind) {
            views.push(view);
        }
        Ok(())
    })
    .await?;
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&table(&views, world.now()).render(look))?;
    for view in &views {
        if let Some(trouble) = &view.trouble {
            let message = output::printable(&time::localised(&trouble.message));
            output::tell(&format!("{}: {}: {message}", view.name, trouble.code));
        }
    }
    Ok(0)
}

/// One array of what the daemon says, as it says it.
async fn print_rows(ask: &Ask, reply: Reply, which: Which) -> Answer {
    let mut printed = "[".to_owned();
    rows::each(ask, reply, |line| {
        let view: TriggerView = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        if which.has(&view.kind) {
            let before = if printed.len() > 1 { "," } else { "" };
            printed.push_str(before);
            printed.push_str(&String::from_utf8_lossy(line));
        }
        Ok(())
    })
    .await?;
    output::print_line(&format!("{printed}]"))?;
    Ok(0)
}

fn state(view: &TriggerView) -> (&'static str, Colour) {
    match (&view.trouble, view.paused) {
        (_, true) => ("paused", Colour::Plain),
        (Some(_), false) => ("trouble", Colour::Red),
        (None, false) => ("ok", Colour::Plain),
    }
}

fn table(views: &[TriggerView], now: Timestamp) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![
        column("NAME", 8),
        column("KIND", 8),
        column("SOURCE", 12),
        column("NEXT", 12),
        column("LAST", 12),
        column("RUNS", 4),
        column("OPEN", 4),
        column("WAITING", 7),
        column("STATE", 7),
        column("COMMAND", 12),
    ])
    .dropping(&["WAITING", "OPEN", "KIND", "RUNS", "COMMAND", "LAST", "SOURCE"]);
    for view in views {
        let when = |at: &Option<String>| {
            let at = at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
            at.map_or_else(|| "-".to_owned(), |at| time::relative(at, now))
        };
        let (state, colour) = state(view);
        table.push(vec![
            Cell::new(&view.name),
            Cell::new(&view.kind),
            Cell::new(&view.source),
            Cell::new(&when(&view.next_at)),
            Cell::new(&when(&view.last_at)),
            Cell::new(&view.runs.to_string()),
            Cell::new(&view.open.to_string()),
            Cell::new(&view.waiting.to_string()),
            Cell::coloured(state, colour),
            Cell::new(&view.what),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::fitting;

    #[test]
    fn the_table_fits_80_and_120_columns() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let trigger = serde_json::json!({
            "name": "nightly-build-of-all", "kind": "schedule", "source": "0 3 * * 1-5 (Europe/Berlin)",
            "overlap": "skip", "missed": "once", "paused": false, "created_at": "2026-11-01T00:00:00Z",
            "next_at": "2026-11-16T02:00:00Z", "last_at": "2026-11-15T02:00:00Z", "last_run": "k3mx7q9w2r5t",
            "runs": 14, "open": 1, "waiting": 0, "skipped": 0, "refused": 0, "trouble": null,
            "what": "sh -c 'make -j8 check && make publish'",
        });
        let table = table(&[serde_json::from_value(trigger).expect("a trigger")], now);
        insta::assert_snapshot!(fitting(&table, 80), @r"
        NAME          KIND      SOURCE        NEXT    LAST     RUNS  STATE  COMMAND
        nightly-bui…  schedule  0 3 * * 1-5…  in 14h  10h ago  14    ok     sh -c 'make…
        ");
        insta::assert_snapshot!(fitting(&table, 120), @r"
        NAME                  KIND      SOURCE                       NEXT    LAST     RUNS  OPEN  WAITING  STATE  COMMAND
        nightly-build-of-all  schedule  0 3 * * 1-5 (Europe/Berlin)  in 14h  10h ago  14    1     0        ok     sh -c 'make -…
        ");
    }
}
