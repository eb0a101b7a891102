//! `outlast call`: a command that is run once under its key, and whose result is stored.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use outlast_client::ask::{Ask, run_path};
use outlast_client::call::{Call, Input, Outcome};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{CallClass, CallResult, CallRow, CallState, ResolveCall, RunView};

use crate::args::{self, Class, Resolve};
use crate::world::World;
use crate::{Answer, output};

/// What a shell says of a command that it cannot start.
const NOT_STARTED: u8 = 127;
/// What a shell adds to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

pub(crate) async fn call(world: &World, args: args::Call) -> Answer {
    let mut session = Session::new(&world.client);
    let own = world.client.var("OUTLAST_RUN_ID").and_then(|id| id.to_str()).map(str::to_owned);
    let run = match (&args.run, &own) {
        (Some(run), _) | (None, Some(run)) => run.clone(),
        (None, None) => return Err(not_in_run(&args)),
    };
    match (args.key.clone(), args.resolve) {
        (None, _) => list(&mut session, &run, args.json).await,
        (Some(key), Some(what)) => resolve(&mut session, &run, key, what, args.json).await,
        (Some(key), None) => make(world, &mut session, run, key, args).await,
    }
}

fn not_in_run(args: &args::Call) -> Problem {
    if args.command.is_empty() {
        return Problem::refusal("usage", "there is no run to look at")
            .hint("outlast call --run RUN --list");
    }
    Problem::refusal(
        "not_in_a_run",
        "a call belongs to the run that it is made in, and this is none",
    )
    .hint("start the script with: outlast run -- SCRIPT")
}

async fn make(
    world: &World,
    session: &mut Session<'_>,
    run: String,
    key: String,
    args: args::Call,
) -> Answer {
    let base = world.client.var("OUTLAST_KEY_BASE").map(|it| it.to_string_lossy().into_owned());
    let whole = match base {
        Some(base) if !key.starts_with(&format!("{run}/")) => format!("{base}/{key}"),
        Some(_) | None => key.clone(),
    };
    let call = Call {
        run,
        key,
        class: class(args.class),
        command: args.command,
        env: vec![("OUTLAST_CALL_KEY".into(), OsString::from(whole))],
        dir: None,
        input: Input::Ours,
        retry_failed: args.retry_failed,
        timeout: None,
    };
    let Outcome { result, is_stored, .. } =
        outlast_client::call::call(&world.client, session, call).await?;
    if is_stored {
        print_stored(&result)?;
    }
    if result.exit_code.is_none() && result.signal.is_none() {
        let why = result.why.unwrap_or_else(|| "it did not start".to_owned());
        return Err(Problem::new(NOT_STARTED, "bad_command", why));
    }
    Ok(exit_of(&result))
}

fn print_stored(result: &CallResult) -> Result<(), Problem> {
    let failed = |error| Problem::failure(format_args!("cannot print the stored output: {error}"));
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(result.stdout.0.as_bytes()).map_err(failed)?;
    stdout.flush().map_err(failed)?;
    std::io::stderr().write_all(result.stderr.0.as_bytes()).map_err(failed)?;
    let left_out = result.stdout_left_out.saturating_add(result.stderr_left_out);
    if left_out > 0 {
        output::tell(&format!(
            "warning: the stored output lacks the last {left_out} bytes that the command wrote"
        ));
    }
    Ok(())
}

fn exit_of(result: &CallResult) -> u8 {
    let code = match (result.exit_code, result.signal) {
        (Some(code), _) => code,
        (None, Some(signal)) => BY_SIGNAL + signal,
        (None, None) => i32::from(NOT_STARTED),
    };
    u8::try_from(code & 255).unwrap_or(1)
}

async fn list(session: &mut Session<'_>, run: &str, json: bool) -> Answer {
    let rows: Vec<CallRow> = session.call(&Ask::get(&run_path(run, "/calls"))).await?;
    if json {
        output::print_json(&rows)?;
        return Ok(0);
    }
    for row in &rows {
        output::print_line(&line(row))?;
    }
    if rows.is_empty() {
        output::tell("no calls under keys in the turn that is at work");
    }
    Ok(0)
}

fn line(row: &CallRow) -> String {
    let state = match (row.state, row.exit_code, row.signal) {
        (CallState::Open, ..) => "open".to_owned(),
        (CallState::Unknown, ..) => "unknown".to_owned(),
        (CallState::Done, ..) => "done".to_owned(),
        (CallState::Failed, Some(code), _) => format!("exit {code}"),
        (CallState::Failed, None, Some(signal)) => format!("signal {signal}"),
        (CallState::Failed, None, None) => "failed".to_owned(),
    };
    let class = match row.class {
        CallClass::Read => "read",
        CallClass::Idempotent => "idempotent",
        CallClass::Keyed => "keyed",
        CallClass::Unsafe => "unsafe",
    };
    format!("{state:<10} {class:<10} {}  {}", row.key, row.command)
}

async fn resolve(
    session: &mut Session<'_>,
    run: &str,
    key: String,
    what: Resolve,
    json: bool,
) -> Answer {
    // A name may pass to another run, and a key to another call.
    let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
    let rows: Vec<CallRow> = session.call(&Ask::get(&run_path(&view.id, "/calls"))).await?;
    let ends_with = format!("/{key}");
    let is_named = |row: &&CallRow| row.key == key || row.key.ends_with(&ends_with);
    let named: Vec<&CallRow> = rows.iter().filter(is_named).collect();
    let doubted = named.iter().find(|row| row.state == CallState::Unknown);
    let seq = doubted.or(named.first()).map(|row| row.seq).filter(|seq| *seq > 0);
    let body = ResolveCall { id: Some(run_id::new()?), seq, key, was_made: what == Resolve::Made };
    let row: CallRow =
        session.call(&Ask::post(&run_path(&view.id, "/calls/resolve"), &body)).await?;
    if json {
        output::print_json(&row)?;
    } else {
        output::print_line(&row.key)?;
        output::tell(&format!("hint: outlast resume {run}"));
    }
    Ok(0)
}

fn class(class: Class) -> CallClass {
    match class {
        Class::Read => CallClass::Read,
        Class::Idempotent => CallClass::Idempotent,
        Class::Keyed => CallClass::Keyed,
        Class::Unsafe => CallClass::Unsafe,
    }
}
