//! `outlast sink`: where notices go.

use std::time::Duration;

use jiff::Timestamp;
use outlast_client::ask::Ask;
use outlast_client::session::Session;
use outlast_wire::api::{NamedSink, SinkRow, SinkTested};

use super::run;
use crate::Answer;
use crate::args::SinkCommand;
use crate::output::page::quoted;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::time::ago;
use crate::output::{self, printable};
use crate::world::World;

/// No sink may take longer.
const LONGEST_TEST: Duration = Duration::from_secs(60);

pub(crate) async fn sink(world: &World, command: SinkCommand) -> Answer {
    let mut session = Session::new(&world.client);
    match command {
        SinkCommand::Ls { json } => {
            let rows: Vec<SinkRow> = session.call(&Ask::get("/v1/sinks")).await?;
            if json {
                output::print_json(&rows)?;
            } else {
                let look = Look { columns: world.columns(), colours: world.colours() };
                output::print(&table(&rows, world.now()).render(look))?;
                rows.iter().filter(|row| is_failing(row)).for_each(tell_failing);
            }
            Ok(0)
        }
        SinkCommand::Test { sink, json } => {
            // A command that is tested by its address runs here, as one of `run --notify` does.
            let dir = run::directory(world, None).ok();
            let ask = Ask::post("/v1/sinks/test", &NamedSink { sink, dir }).long_poll(LONGEST_TEST);
            let tested: SinkTested = session.call(&ask).await?;
            if json {
                output::print_json(&tested)?;
            } else {
                output::say(&words(&tested))?;
            }
            Ok(if tested.delivered { 0 } else { 1 })
        }
        SinkCommand::Enable { sink, json } => {
            let ask = Ask::post("/v1/sinks/enable", &NamedSink { sink, dir: None });
            let row: SinkRow = session.call(&ask).await?;
            if json {
                output::print_json(&row)?;
            } else {
                output::print_line(&format!("enabled {}, {} waiting", row.name, row.pending))?;
            }
            Ok(0)
        }
    }
}

fn is_failing(row: &SinkRow) -> bool {
    row.disabled_at.is_some() || row.failing_since.is_some()
}

/// The whole of what is wrong, and what a person can do about it.
fn tell_failing(row: &SinkRow) {
    let name = quoted(&row.name);
    let problem = printable(row.problem.as_deref().unwrap_or("no reason given"));
    output::tell(&format!("warning: {name}: {problem}"));
    output::tell_hint(&match (&row.kind, row.is_address()) {
        (None, _) => format!(
            "{name} is not in config.toml: its notices wait until it is there again:\noutlast config edit"
        ),
        (Some(_), true) => format!(
            "runs were started with this address; their notices are tried for 5 days, also if the runs are removed:\noutlast sink test {name}"
        ),
        (Some(_), false) => format!(
            "try it; to drop it, take [sinks.{name}] out of config.toml:\noutlast sink test {name}\noutlast config edit"
        ),
    });
}

fn words(tested: &SinkTested) -> String {
    let done = if tested.delivered { "delivered" } else { "not delivered" };
    let (sink, detail) = (printable(&tested.sink), printable(&tested.detail));
    format!("{done} to {sink}: {detail}")
}

fn table(rows: &[SinkRow], now: Timestamp) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![
        column("NAME", 12),
        column("KIND", 8),
        column("LEVEL", 8),
        column("PENDING", 7),
        column("HEALTH", 20),
    ])
    .dropping(&["LEVEL", "KIND", "PENDING"]);
    for row in rows {
        table.push(vec![
            Cell::new(&row.name),
            Cell::new(row.kind.as_deref().unwrap_or("not in config")),
            Cell::new(row.level.as_deref().unwrap_or("-")),
            Cell::new(&row.pending.to_string()),
            Cell::new(&health(row, now)),
        ]);
    }
    table
}

fn health(row: &SinkRow, now: Timestamp) -> String {
    let problem = row.problem.as_deref().unwrap_or_default();
    match (&row.disabled_at, &row.failing_since) {
        (Some(at), _) => format!("disabled {}: {problem}", ago(at, now)),
        (None, Some(since)) => format!("failing since {}: {problem}", ago(since, now)),
        (None, None) if row.given_up > 0 => format!("{} given up", row.given_up),
        (None, None) => "ok".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::fitting;

    fn row() -> SinkRow {
        serde_json::from_value(serde_json::json!({
            "name": "phone", "kind": "ntfy", "level": "all", "pending": 3, "delivered": 1, "given_up": 0,
            "oldest_pending_at": null, "failing_since": null, "next_try_at": null, "problem": null,
            "disabled_at": null,
        }))
        .expect("a row")
    }

    #[test]
    fn a_sink_says_how_it_is() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        assert_eq!(health(&row(), now), "ok");
        let at = Some("2026-11-15T11:00:00Z".to_owned());
        let failing =
            SinkRow { failing_since: at.clone(), problem: Some("no route".to_owned()), ..row() };
        assert!(health(&failing, now).starts_with("failing since "), "{}", health(&failing, now));
        let gone = SinkRow { disabled_at: at, ..failing };
        assert!(health(&gone, now).starts_with("disabled "), "{}", health(&gone, now));
        let look = Look { columns: None, colours: false };
        assert!(table(&[row()], now).render(look).contains("phone"));
    }

    #[test]
    fn the_table_fits_80_and_120_columns() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let at = Some("2026-11-15T11:00:00Z".to_owned());
        let why = "it answered 500: an error of the server that goes on and on and on and on";
        let failing = SinkRow { failing_since: at, problem: Some(why.to_owned()), ..row() };
        let table = table(
            &[row(), SinkRow { name: "a-webhook-of-some-length".to_owned(), ..failing }],
            now,
        );
        let shown = |columns| fitting(&table, columns);
        insta::assert_snapshot!(shown(80), @r"
        NAME                      KIND  LEVEL  PENDING  HEALTH
        phone                     ntfy  all    3        ok
        a-webhook-of-some-length  ntfy  all    3        failing since 1h ago: it answer…
        ");
        insta::assert_snapshot!(shown(120), @r"
        NAME                      KIND  LEVEL  PENDING  HEALTH
        phone                     ntfy  all    3        ok
        a-webhook-of-some-length  ntfy  all    3        failing since 1h ago: it answered 500: an error of the server that goes…
        ");
    }
}
