//! `outlast ps`: the runs there are.

use std::borrow::Cow;

use http_body_util::BodyExt;
use jiff::Timestamp;
use outlast_wire::api::{LINES, Trouble};
use outlast_wire::shim::Exit;
use serde::Deserialize;
use tokio::time::timeout;

use crate::Answer;
use crate::args::{Ps, State};
use crate::ask::Ask;
use crate::output::state::{Condition, spaced};
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, colour, figures, time};
use crate::problem::Problem;
use crate::session::{Session, unreadable};
use crate::world::World;

pub(crate) async fn ps(world: &World, args: Ps) -> Answer {
    if args.json {
        let body = Session::new(world).fetch(&ask(&args)).await?;
        output::print_line(&String::from_utf8_lossy(&body))?;
        return Ok(0);
    }
    let now = world.now();
    let mut list = List::new();
    each_row(world, &ask(&args), |row| list.push(row, now)).await?;
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&list.table().render(look))?;
    Ok(0)
}

/// The table as it grows. What runs have spent is worth a column once one of them has spent anything.
struct List {
    table: Table,
    has_spend: bool,
}

impl List {
    fn new() -> Self {
        Self { table: empty_table(), has_spend: false }
    }

    fn push(&mut self, row: &Listed<'_>, now: Timestamp) {
        self.has_spend |= figures::spent(row.cost_usd, row.tokens).is_some();
        self.table.push(cells(row, now));
    }

    fn table(self) -> Table {
        if self.has_spend { self.table } else { self.table.without("SPEND") }
    }
}

/// What of a [`outlast_wire::api::RunRow`] stands in the table, borrowed from the line that it came in.
#[derive(Debug, Deserialize)]
struct Listed<'a> {
    id: &'a str,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    state: &'a str,
    reason_code: Option<&'a str>,
    health: &'a str,
    #[serde(borrow)]
    what: Cow<'a, str>,
    turn: u32,
    attempt: u32,
    created_at: &'a str,
    started_at: Option<&'a str>,
    ended_at: Option<&'a str>,
    exit: Option<Exit>,
    survivors: u32,
    trouble: Option<Trouble>,
    #[serde(borrow, default)]
    phase: Option<Cow<'a, str>>,
    #[serde(default)]
    max_turns: Option<u32>,
    #[serde(default)]
    cost_usd: f64,
    #[serde(default)]
    tokens: u64,
}

impl Listed<'_> {
    fn condition(&self) -> Condition<'_> {
        Condition {
            state: self.state,
            reason_code: self.reason_code,
            health: self.health,
            exit: self.exit,
            survivors: self.survivors as usize,
            trouble: self.trouble.as_ref(),
        }
    }
}

/// Reads rows while the daemon is still writing them.
async fn each_row(
    world: &World,
    ask: &Ask,
    mut take: impl FnMut(&Listed<'_>),
) -> Result<(), Problem> {
    let mut session = Session::new(world);
    let (_connection, response) = session.open(&ask.clone().accept(LINES)).await?;
    let mut body = response.into_body();
    let mut pending: Vec<u8> = Vec::new();
    let cut_short = || Problem::unreachable("the list was cut short");
    while let Some(frame) = timeout(ask.patience, body.frame()).await.map_err(|_| cut_short())? {
        let frame = frame.map_err(|_| cut_short())?;
        pending.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        let whole = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in pending[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            take(&serde_json::from_slice(line).map_err(|error| unreadable(&error))?);
        }
        pending.drain(..whole);
    }
    Ok(())
}

fn ask(args: &Ps) -> Ask {
    let mut ask = Ask::get("/v1/runs")
        .query_if("state", args.state.map(State::word))
        .query_if("trigger", args.trigger.as_ref());
    // Runs in a state that ends them are not among those that have not ended.
    if args.all || args.state.is_some_and(State::is_terminal) {
        ask = ask.query("all", true);
    }
    for (key, value) in &args.label {
        ask = ask.query("label", format_args!("{key}={value}"));
    }
    ask
}

fn empty_table() -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    Table::new(vec![
        column("ID", 12),
        column("NAME", 8),
        column("STATE", 18),
        column("AGE", 4),
        column("RUNTIME", 7),
        column("TURN", 7),
        column("SPEND", 10),
        column("COMMAND", 12),
    ])
}

fn cells(row: &Listed<'_>, now: Timestamp) -> Vec<Cell> {
    let age = time::ms_between(row.created_at, now).map(time::age).unwrap_or_default();
    vec![
        Cell::new(row.id),
        Cell::new(row.name.as_deref().unwrap_or_default()),
        Cell::coloured(&state(row), colour::of_state(row.state)),
        Cell::new(&age),
        Cell::new(&runtime(row, now)),
        Cell::new(&turn(row)),
        Cell::new(&figures::spent(row.cost_usd, row.tokens).unwrap_or_default()),
        Cell::new(&row.what),
    ]
}

fn runtime(row: &Listed<'_>, now: Timestamp) -> String {
    let Some(started) = row.started_at else { return "-".to_owned() };
    let until = row.ended_at.map_or(Some(now), |ended| ended.parse().ok());
    let ms = until.and_then(|until| time::ms_between(started, until));
    ms.map_or_else(|| "-".to_owned(), time::span)
}

/// The state, and what a loop is at if the state alone leaves that open.
fn state(row: &Listed<'_>) -> String {
    let words = row.condition().words();
    match &row.phase {
        // The turn has a column of its own.
        Some(phase) if words == row.state && !phase.starts_with("turn ") => {
            format!("{words}: {}", spaced(phase))
        }
        _ => words,
    }
}

/// `2`, or `2.3` for the third attempt at the second turn; `2/20` where there is a most.
fn turn(row: &Listed<'_>) -> String {
    let most = row.max_turns.map(|most| format!("/{most}")).unwrap_or_default();
    match (row.turn, row.attempt) {
        (0, _) => "-".to_owned(),
        (turn, 0 | 1) => format!("{turn}{most}"),
        (turn, attempt) => format!("{turn}.{attempt}{most}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORPHAN: &str = r#"{"id":"k3mx7q9w2r5t","name":null,"state":"running","reason_code":null,"health":"orphaned","what":"sh -c 'while true; do make -j8 check; done'","turn":1,"attempt":3,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null}"#;
    const FAILED: &str = r#"{"id":"0a1b2c3d4e5f","name":"nightly-build","state":"failed","reason_code":"exit_code","health":"healthy","what":"sleep 100","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":"2026-11-15T11:55:03.5Z","exit":{"code":7},"labels":{"a":"b"},"survivors":0,"trouble":null}"#;
    const QUEUED: &str = r#"{"id":"zzzzzzzzzzzz","name":null,"state":"queued","reason_code":null,"health":"healthy","what":"sleep 100","turn":0,"attempt":0,"created_at":"2026-11-15T11:55:00Z","started_at":null,"ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null}"#;

    const LOOP: &str = r#"{"id":"0a1b2c3d4e5g","name":"port","state":"verifying","reason_code":null,"health":"healthy","what":"port the parser","turn":3,"attempt":2,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"phase":"check done 2/3","last_line":"ok","max_turns":20,"cost_usd":0.42,"tokens":15400}"#;
    const TURN: &str = r#"{"id":"0a1b2c3d4e5h","name":"docs","state":"running","reason_code":null,"health":"healthy","what":"write the docs","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"phase":"turn 1 attempt 1","tokens":900}"#;
    const COMMANDS: [&str; 3] = [ORPHAN, FAILED, QUEUED];

    fn render(lines: &[&str], columns: Option<usize>) -> String {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let mut list = List::new();
        for line in lines {
            list.push(&serde_json::from_str(line).expect("a row"), now);
        }
        list.table().render(Look { columns, colours: false })
    }

    #[test]
    fn into_a_pipe_nothing_is_cut() {
        insta::assert_snapshot!(render(&COMMANDS, None), @r"
        ID            NAME           STATE               AGE  RUNTIME  TURN  COMMAND
        k3mx7q9w2r5t                 running (orphaned)  5m   4m 59s   1.3   sh -c 'while true; do make -j8 check; done'
        0a1b2c3d4e5f  nightly-build  failed (exit 7)     5m   2s       1     sleep 100
        zzzzzzzzzzzz                 queued              5m   -        -     sleep 100
        ");
    }

    #[test]
    fn on_80_columns_commands_give_way() {
        insta::assert_snapshot!(render(&COMMANDS, Some(80)), @r"
        ID            NAME          STATE               AGE  RUNTIME  TURN  COMMAND
        k3mx7q9w2r5t                running (orphaned)  5m   4m 59s   1.3   sh -c 'whil…
        0a1b2c3d4e5f  nightly-bui…  failed (exit 7)     5m   2s       1     sleep 100
        zzzzzzzzzzzz                queued              5m   -        -     sleep 100
        ");
    }

    #[test]
    fn on_72_columns_names_give_way_too() {
        insta::assert_snapshot!(render(&COMMANDS, Some(72)), @r"
        ID            NAME      STATE               AGE  RUNTIME  TURN  COMMAND
        k3mx7q9w2r5t            running (orphaned)  5m   4m 59s   1.3   sh -c 'whil…
        0a1b2c3d4e5f  nightly…  failed (exit 7)     5m   2s       1     sleep 100
        zzzzzzzzzzzz            queued              5m   -        -     sleep 100
        ");
    }

    #[test]
    fn a_loop_shows_what_it_is_at_and_what_it_has_spent() {
        insta::assert_snapshot!(render(&[LOOP, TURN, QUEUED], None), @r"
        ID            NAME  STATE                      AGE  RUNTIME  TURN    SPEND       COMMAND
        0a1b2c3d4e5g  port  verifying: check done 2/3  5m   4m 59s   3.2/20  $0.42       port the parser
        0a1b2c3d4e5h  docs  running                    5m   4m 59s   1       900 tokens  write the docs
        zzzzzzzzzzzz        queued                     5m   -        -                   sleep 100
        ");
        insta::assert_snapshot!(render(&[LOOP, TURN, QUEUED], Some(84)), @r"
        ID            NAME  STATE               AGE  RUNTIME  TURN    SPEND       COMMAND
        0a1b2c3d4e5g  port  verifying: check …  5m   4m 59s   3.2/20  $0.42       port the pa…
        0a1b2c3d4e5h  docs  running             5m   4m 59s   1       900 tokens  write the d…
        zzzzzzzzzzzz        queued              5m   -        -                   sleep 100
        ");
    }

    #[test]
    fn a_terminal_state_looks_among_all_runs() {
        let args = |state| Ps {
            all: false,
            state,
            label: vec![("a".into(), "b".into())],
            trigger: None,
            json: false,
        };
        assert_eq!(
            ask(&args(Some(State::Failed))).target,
            "/v1/runs?state=failed&all=true&label=a%3Db"
        );
        assert_eq!(ask(&args(None)).target, "/v1/runs?label=a%3Db");
    }
}
