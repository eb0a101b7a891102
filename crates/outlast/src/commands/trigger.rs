//! `outlast schedule …` and `outlast trigger …`: what makes runs by itself.

use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_wire::api::{
    AddTrigger, CreateRun, Missed, NextTimes, Overlap, TriggerAdded, TriggerRan, TriggerRun,
    TriggerSource, TriggerView, When,
};
use serde_json::Value;

use super::run;
use crate::Answer;
use crate::args::{
    self, Run, ScheduleAdd, ScheduleCommand, ScheduleNext, TriggerAdd, TriggerCommand, TriggerName,
    TriggerNow,
};
use crate::ask::{Ask, trigger_path};
use crate::duration::as_ms;
use crate::output::errors;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, colour::Colour, time};
use crate::problem::Problem;
use crate::session::Session;
use crate::world::{World, lookup};
use crate::{loop_file, run_id};

/// How often a tracker is asked unless somebody says otherwise.
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
        name: args.trigger,
        source,
        overlap: Some(overlap(args.overlap)),
        missed: Some(missed(args.missed)),
        run: template(world, args.run)?,
    };
    add(world, asked, json).await
}

async fn add_trigger(world: &World, args: TriggerAdd) -> Answer {
    let json = args.run.json;
    let source = source(world, &args)?;
    let asked = AddTrigger {
        name: args.trigger,
        source,
        overlap: Some(overlap(args.overlap)),
        missed: None,
        run: template(world, args.run)?,
    };
    add(world, asked, json).await
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
    Ok(TriggerSource::Webhook {
        secret: args.secret.as_deref().map(|secret| found(world, secret)).transpose()?,
        filters: args.filter.clone(),
        id_header: args.id_header.clone(),
    })
}

/// A secret as it is given, or from where it stands: a command line is no secret.
fn found(world: &World, secret: &str) -> Result<String, Problem> {
    let Some(name) = secret.strip_prefix("env:") else { return Ok(secret.to_owned()) };
    let value = lookup(&world.env, name).and_then(|value| value.to_str());
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
    if args.command.is_empty() && args.file.is_none() {
        let problem = Problem::refusal("usage", "there is no COMMAND to run and no loop file");
        return Err(problem.hint(loop_file::hint(&world.current_dir()?)));
    }
    Ok(CreateRun { id: None, ..run::body(world, args)? })
}

async fn add(world: &World, asked: AddTrigger, json: bool) -> Answer {
    let mut session = Session::new(world);
    let answer = session.call(&Ask::post("/v1/triggers", &asked)).await;
    let added: TriggerAdded = match answer {
        // Its answer got lost the first time, and with it a secret that was made.
        Err(problem) if session.was_repeated() && problem.has_code("trigger_taken") => {
            let trigger = session.call(&Ask::get(&trigger_path(&asked.name, ""))).await?;
            TriggerAdded { trigger, secret: None, warnings: Vec::new() }
        }
        other => other?,
    };
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

async fn order(world: &World, args: TriggerName, verb: &str) -> Answer {
    let path = trigger_path(&args.trigger, &format!("/{verb}"));
    let view: TriggerView = Session::new(world).call(&Ask::order(&path)).await?;
    if args.json {
        output::print_json(&view)?;
    } else {
        output::print_line(&format!("{verb}d {}", view.name))?;
    }
    Ok(0)
}

async fn remove(world: &World, args: TriggerName) -> Answer {
    let mut session = Session::new(world);
    match session.fetch(&Ask::delete(&trigger_path(&args.trigger, ""))).await {
        Err(problem) if session.was_repeated() && problem.has_code("unknown_trigger") => {}
        other => drop(other?),
    }
    output::print_line(&format!("removed {}", args.trigger))?;
    Ok(0)
}

async fn run_now(world: &World, args: TriggerNow) -> Answer {
    let item: Value = match &args.item {
        Some(text) => serde_json::from_str(text)
            .map_err(|error| Problem::refusal("usage", format_args!("--item: {error}")))?,
        None => Value::Null,
    };
    let asked = TriggerRun { occurrence: Some(run_id::new()?), item };
    let path = trigger_path(&args.trigger, "/run");
    let ran: TriggerRan = Session::new(world).call(&Ask::post(&path, &asked)).await?;
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
    let times: NextTimes = Session::new(world).call(&ask).await?;
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

async fn list(world: &World, json: bool, which: Which) -> Answer {
    let mut views: Vec<TriggerView> = Session::new(world).call(&Ask::get("/v1/triggers")).await?;
    views.retain(|view| which == Which::All || view.kind == "schedule");
    if json {
        output::print_json(&views)?;
        return Ok(0);
    }
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
