//! `outlast ps`: the runs there are.

use jiff::Timestamp;
use outlast_wire::api::RunRow;

use crate::Answer;
use crate::args::{Ps, State};
use crate::ask::Ask;
use crate::output::state::Condition;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, colour, time};
use crate::session::{Session, unreadable};
use crate::world::World;

pub(crate) async fn ps(world: &World, args: Ps) -> Answer {
    let body = Session::new(world).fetch(&ask(&args)).await?;
    if args.json {
        output::print_line(&String::from_utf8_lossy(&body))?;
        return Ok(0);
    }
    let rows: Vec<RunRow> = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&table(&rows, world.now()).render(look))?;
    Ok(0)
}

fn ask(args: &Ps) -> Ask {
    let mut ask = Ask::get("/v1/runs").query_if("state", args.state.map(State::word));
    // Runs in a state that ends them are not among those that have not ended.
    if args.all || args.state.is_some_and(State::is_terminal) {
        ask = ask.query("all", true);
    }
    for (key, value) in &args.label {
        ask = ask.query("label", format_args!("{key}={value}"));
    }
    ask
}

fn table(rows: &[RunRow], now: Timestamp) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![
        column("ID", 12),
        column("NAME", 8),
        column("STATE", 18),
        column("AGE", 4),
        column("RUNTIME", 7),
        column("TURN", 4),
        column("COMMAND", 12),
    ]);
    for row in rows {
        table.push(cells(row, now));
    }
    table
}

fn cells(row: &RunRow, now: Timestamp) -> Vec<Cell> {
    let age = time::ms_between(&row.created_at, now).map(time::age).unwrap_or_default();
    vec![
        Cell::new(&row.id),
        Cell::new(row.name.as_deref().unwrap_or_default()),
        Cell::coloured(&Condition::from(row).words(), colour::of_state(&row.state)),
        Cell::new(&age),
        Cell::new(&runtime(row, now)),
        Cell::new(&turn(row)),
        Cell::new(&row.what),
    ]
}

fn runtime(row: &RunRow, now: Timestamp) -> String {
    let Some(started) = &row.started_at else { return "-".to_owned() };
    let until = row.ended_at.as_deref().map_or(Some(now), |ended| ended.parse().ok());
    let ms = until.and_then(|until| time::ms_between(started, until));
    ms.map_or_else(|| "-".to_owned(), time::span)
}

/// `2`, or `2.3` for the third attempt at the second turn.
fn turn(row: &RunRow) -> String {
    match (row.turn, row.attempt) {
        (0, _) => "-".to_owned(),
        (turn, 0 | 1) => turn.to_string(),
        (turn, attempt) => format!("{turn}.{attempt}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use outlast_wire::shim::Exit;

    use super::*;

    fn row(id: &str, state: &str) -> RunRow {
        RunRow {
            id: id.to_owned(),
            name: None,
            state: state.to_owned(),
            reason_code: None,
            health: "healthy".to_owned(),
            what: "sleep 100".to_owned(),
            turn: 1,
            attempt: 1,
            created_at: "2026-11-15T11:55:00Z".to_owned(),
            started_at: Some("2026-11-15T11:55:01Z".to_owned()),
            ended_at: None,
            exit: None,
            labels: BTreeMap::new(),
            survivors: 0,
            trouble: None,
        }
    }

    fn rows() -> Vec<RunRow> {
        let mut orphan = row("k3mx7q9w2r5t", "running");
        orphan.health = "orphaned".to_owned();
        orphan.attempt = 3;
        orphan.what = "sh -c 'while true; do make -j8 check; done'".to_owned();
        let mut failed = row("0a1b2c3d4e5f", "failed");
        failed.name = Some("nightly-build".to_owned());
        failed.reason_code = Some("exit_code".to_owned());
        failed.exit = Some(Exit::Code(7));
        failed.ended_at = Some("2026-11-15T11:55:03.5Z".to_owned());
        let mut queued = row("zzzzzzzzzzzz", "queued");
        queued.turn = 0;
        queued.attempt = 0;
        queued.started_at = None;
        vec![orphan, failed, queued]
    }

    fn render(columns: Option<usize>) -> String {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        table(&rows(), now).render(Look { columns, colours: false })
    }

    #[test]
    fn into_a_pipe_nothing_is_cut() {
        insta::assert_snapshot!(render(None), @r"
        ID            NAME           STATE               AGE  RUNTIME  TURN  COMMAND
        k3mx7q9w2r5t                 running (orphaned)  5m   4m 59s   1.3   sh -c 'while true; do make -j8 check; done'
        0a1b2c3d4e5f  nightly-build  failed (exit 7)     5m   2s       1     sleep 100
        zzzzzzzzzzzz                 queued              5m   -        -     sleep 100
        ");
    }

    #[test]
    fn on_80_columns_commands_give_way() {
        insta::assert_snapshot!(render(Some(80)), @r"
        ID            NAME          STATE               AGE  RUNTIME  TURN  COMMAND
        k3mx7q9w2r5t                running (orphaned)  5m   4m 59s   1.3   sh -c 'whil…
        0a1b2c3d4e5f  nightly-bui…  failed (exit 7)     5m   2s       1     sleep 100
        zzzzzzzzzzzz                queued              5m   -        -     sleep 100
        ");
    }

    #[test]
    fn on_72_columns_names_give_way_too() {
        insta::assert_snapshot!(render(Some(72)), @r"
        ID            NAME      STATE               AGE  RUNTIME  TURN  COMMAND
        k3mx7q9w2r5t            running (orphaned)  5m   4m 59s   1.3   sh -c 'whil…
        0a1b2c3d4e5f  nightly…  failed (exit 7)     5m   2s       1     sleep 100
        zzzzzzzzzzzz            queued              5m   -        -     sleep 100
        ");
    }

    #[test]
    fn a_terminal_state_looks_among_all_runs() {
        let args =
            |state| Ps { all: false, state, label: vec![("a".into(), "b".into())], json: false };
        assert_eq!(
            ask(&args(Some(State::Failed))).target,
            "/v1/runs?state=failed&all=true&label=a%3Db"
        );
        assert_eq!(ask(&args(None)).target, "/v1/runs?label=a%3Db");
    }
}
