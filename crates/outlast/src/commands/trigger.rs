//! `outlast schedule …` and `outlast trigger …`: what makes runs by itself.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_client::ask::{Ask, trigger_path};
use outlast_client::connection::Reply;
use outlast_client::problem::Problem;
use outlast_client::session::{Session, unreadable};
use outlast_client::{rows, run_id};
use outlast_wire::api::{
    AddTrigger, CreateRun, LINES, Missed, NextTimes, OrderTrigger, Overlap, TriggerAdded,
    TriggerRan, TriggerRun, TriggerSource, TriggerView, When,
};
use outlast_workflow::notify::base64;
use serde_json::Value;

use super::run;
use crate::Answer;
use crate::args::{
    self, Run, ScheduleAdd, ScheduleCommand, ScheduleNext, TriggerAdd, TriggerCommand, TriggerName,
    TriggerNow,
};
use crate::duration::as_ms;
use crate::output::errors;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, colour::Colour, time};
use crate::world::World;

/// How often a tracker is asked by default.
const POLL_EACH: Duration = Duration::from_secs(300);

pub(crate) async fn schedule(world: &World, command: ScheduleCommand) -> Answer {
    match command {
        ScheduleCommand::Add(args) => add_schedule(world, *args).await,
        ScheduleCommand::Ls(args) => list(world, args.json, Which::Schedules).await,
        ScheduleCommand::Next(args) => next(world, args).await,
        ScheduleCommand::Run(args) => run_now(world, args).await,
        ScheduleCommand::Pause(args) => order(world, args, "pause").await,
        ScheduleCommand::Resume(args) => order(world, args, "resume").await,
        ScheduleCommand::Rm(args) => remove(world, args).await,
    }
}

pub(crate) async fn trigger(world: &World, command: TriggerCommand) -> Answer {
    match command {
        TriggerCommand::Add(args) => add_trigger(world, *args).await,
        TriggerCommand::Ls(args) => list(world, args.json, Which::All).await,
        TriggerCommand::Run(args) => run_now(world, args).await,
        TriggerCommand::Pause(args) => order(world, args, "pause").await,
        TriggerCommand::Resume(args) => order(world, args, "resume").await,
        TriggerCommand::Rm(args) => remove(world, args).await,
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
        run: template(world, args.run)?,
    };
    add(world, asked, None, json).await
}

async fn add_trigger(world: &World, args: TriggerAdd) -> Answer {
    let json = args.run.json;
    let source = source(world, &args)?;
    let chosen = match &source {
        TriggerSource::Webhook { secret, .. } if args.secret.is_none() => secret.clone(),
        _ => None,
    };
    let asked = AddTrigger {
        id: Some(run_id::new()?),
        name: args.trigger,
        source,
        overlap: Some(overlap(args.overlap)),
        missed: None,
        run: template(world, args.run)?,
    };
    add(world, asked, chosen, json).await
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
        Some(secret) => found(world, secret)?,
        None => new_secret()?,
    };
    Ok(TriggerSource::Webhook {
        secret: Some(secret),
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
fn template(world: &World, args: Run) -> Result<CreateRun, Problem> {
    run::refuse_nothing(world, &args)?;
    Ok(CreateRun { id: None, ..run::body(world, args)? })
}

/// `chosen` is a secret that was made for it here, and that is shown once.
async fn add(world: &World, asked: AddTrigger, chosen: Option<String>, json: bool) -> Answer {
    let ask = Ask::post("/v1/triggers", &asked);
    let mut added: TriggerAdded = Session::new(&world.client).call(&ask).await?;
    added.secret = added.secret.or(chosen);
    errors::warn(&added.warnings);
    if json {
        output::print_json(&added)?;
        return Ok(0);
    }
    let TriggerView { name, source, next_at, .. } = &added.trigger;
    let next = next_at.as_deref().map(|at| format!(", next {}", time::both(at, world.now())));
    output::print_line(&format!("added {name}: {source}{}", next.unwrap_or_default()))?;
    if let Some(secret) = &added.secret {
        output::print_line(&format!("secret {secret}"))?;
        output::tell("the secret is not shown again");
    }
    Ok(0)
}

/// The id of the trigger that has this name now: an order is for that one, and for none that is made under the name
/// later. Absent for a trigger that cannot be read.
async fn seen(session: &mut Session<'_>, name: &str) -> Result<Option<String>, Problem> {
    let view: TriggerView = session.call(&Ask::get(&trigger_path(name, ""))).await?;
    Ok(view.id)
}

async fn order(world: &World, args: TriggerName, verb: &str) -> Answer {
    let mut session = Session::new(&world.client);
    let trigger_id = seen(&mut session, &args.trigger).await?;
    let order = OrderTrigger { id: Some(run_id::new()?), trigger_id };
    let path = trigger_path(&args.trigger, &format!("/{verb}"));
    let view: TriggerView = session.call(&Ask::post(&path, &order)).await?;
    // Another client may have been quicker than a lost answer.
    let since = match (view.paused, verb) {
        (true, "resume") => "; it was paused since",
        (false, "pause") => "; it was resumed since",
        _ => "",
    };
    if args.json {
        output::print_json(&view)?;
    } else {
        output::print_line(&format!("{verb}d {}{since}", view.name))?;
    }
    Ok(0)
}

async fn remove(world: &World, args: TriggerName) -> Answer {
    let mut session = Session::new(&world.client);
    let trigger_id = seen(&mut session, &args.trigger).await?;
    let ask = Ask::delete(&trigger_path(&args.trigger, "")).query("id", run_id::new()?);
    drop(session.fetch(&ask.query_if("trigger_id", trigger_id)).await?);
    output::print_line(&format!("removed {}", args.trigger))?;
    Ok(0)
}

async fn run_now(world: &World, args: TriggerNow) -> Answer {
    let item: Value = match &args.item {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Problem::refusal("usage", format_args!("--item: {error}")))?,
        None => Value::Null,
    };
    let mut session = Session::new(&world.client);
    let trigger_id = seen(&mut session, &args.trigger).await?;
    let asked = TriggerRun { occurrence: Some(run_id::new()?), trigger_id, item };
    let path = trigger_path(&args.trigger, "/run");
    let ran: TriggerRan = session.call(&Ask::post(&path, &asked)).await?;
    if args.json {
        output::print_json(&ran)?;
    } else {
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
            let message = output::printable(&trouble.message);
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

fn table(views: &[TriggerView], now: Timestamp) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![
        column("NAME", 8),
        column("KIND", 8),
        column("SOURCE", 12),
        column("NEXT", 7),
        column("LAST", 7),
        column("RUNS", 4),
        column("OPEN", 4),
        column("WAITING", 7),
        column("STATE", 7),
        column("COMMAND", 12),
    ]);
    for view in views {
        let when = |at: &Option<String>| {
            let at = at.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
            at.map_or_else(|| "-".to_owned(), |at| time::relative(at, now))
        };
        let (state, colour) = match (&view.trouble, view.paused) {
            (_, true) => ("paused", Colour::Plain),
            (Some(_), false) => ("trouble", Colour::Red),
            (None, false) => ("ok", Colour::Plain),
        };
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
