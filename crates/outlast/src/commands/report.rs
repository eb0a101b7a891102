//! `outlast report`: the morning after, on one screen.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::Path;

use jiff::tz::TimeZone;
use outlast_client::problem::Problem;
use serde_json::json;

use crate::Answer;
use crate::args::Report;
use crate::duration::Since;
use crate::output;
use crate::report::{self, Facts, Groups, Looked, Paper};
use crate::world::World;

/// Where no terminal says how wide it is.
const COLUMNS: usize = 80;

pub(crate) async fn report(world: &World, args: Report) -> Answer {
    let since = args.since.map(|since| since.past(&world.now_here())).transpose()?;
    let (facts, groups) = look(world, since).await?;
    let needs_person = groups.needs_person(&facts);
    if args.json {
        output::print_json(&report::json(&facts, &groups))?;
    } else if args.notice {
        give_notice(world, &report::page(&facts, &groups, &plain()))?;
        return Ok(0);
    } else {
        show(world, &facts, &groups)?;
    }
    Ok(u8::from(needs_person))
}

/// What there is to say, since the last look unless another time is asked for.
pub(crate) async fn look(world: &World, since: Option<Since>) -> Result<(Facts, Groups), Problem> {
    let layout = world.client.layout()?;
    let mut facts = report::gather(world, since).await?;
    // When it was looked at last is by the daemon's clock, so the daemon has to say its time first.
    if since.is_none()
        && let Some(begin) = Looked::read(layout).begin(facts.now)
        && begin != facts.since
    {
        facts = report::gather(world, Some(Since::At(begin))).await?;
    }
    let groups = report::groups(&facts);
    Ok((facts, groups))
}

/// Prints it. On a terminal it counts as looked at.
pub(crate) fn show(world: &World, facts: &Facts, groups: &Groups) -> Result<(), Problem> {
    let columns = world.columns().unwrap_or(COLUMNS);
    let paper = Paper { columns, colours: world.colours(), tz: TimeZone::system() };
    output::print(&report::page(facts, groups, &paper))?;
    if std::io::stdout().is_terminal() {
        report::remember(world.client.layout()?, facts.since, facts.now);
    }
    Ok(())
}

fn plain() -> Paper {
    Paper { columns: COLUMNS, colours: false, tz: TimeZone::system() }
}

/// Inside a run the report becomes the run's summary, which its notice carries whole. Elsewhere it is printed.
fn give_notice(world: &World, page: &str) -> Result<(), Problem> {
    let Some(path) = world.client.var("OUTLAST_RESPONSE_FILE") else {
        return output::print(page);
    };
    let path = Path::new(path);
    let body = json!({ "status": "done", "summary": page }).to_string();
    let beside = path.with_extension("part");
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(body.as_bytes()))
        .and_then(|()| std::fs::rename(&beside, path));
    written
        .map_err(|error| Problem::failure(format_args!("cannot write {}: {error}", path.display())))
}
