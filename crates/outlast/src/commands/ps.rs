//! `outlast ps`: the runs there are.

use std::borrow::Cow;

use jiff::Timestamp;
use outlast_client::ask::Ask;
use outlast_client::problem::Problem;
use outlast_client::rows;
use outlast_client::session::{Session, unreadable};
use outlast_wire::api::{AgentRow, FORGOTTEN_HEADER, HELD_HEADER, LINES, Trouble};
use outlast_wire::shim::Exit;
use outlast_wire::words::{Health, ReasonCode, StateName, Word};
use outlast_workflow::duration;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Answer;
use crate::args::{Ps, Sort};
use crate::attention::Group;
use crate::builds;
use crate::output::state::Condition;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, agent, colour, errors, figures, time};
use crate::world::World;

pub(crate) async fn ps(world: &World, args: Ps) -> Answer {
    let answer = list(world, args).await;
    builds::mention(world);
    answer
}

async fn list(world: &World, args: Ps) -> Answer {
    if args.json {
        let body = Session::new(&world.client).fetch(&ask(&args)).await?;
        let text = String::from_utf8_lossy(&body);
        // Scripts get the order that they always got, unless they ask for another.
        output::print_line(&match args.sort {
            None | Some(Sort::Newest) => text,
            Some(Sort::NeedsMe) => sorted(&text)?.into(),
        })?;
        return Ok(0);
    }
    let now = world.now();
    let mut list = List::new(args.sort.unwrap_or(Sort::NeedsMe));
    each_row(world, &ask(&args), |row| list.push(row, now)).await?;
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&list.table().render(look))?;
    Ok(0)
}

/// The table as it grows. What runs have spent is worth a column once one of them has spent anything, and so is the
/// context of agents.
struct List {
    sort: Sort,
    /// In the order they came, the newest first.
    rows: Vec<(Group, Vec<Cell>)>,
    has_spend: bool,
    has_context: bool,
}

/// How full the contexts of agents are.
const CONTEXT: &str = "CONTEXT";

impl List {
    fn new(sort: Sort) -> Self {
        Self { sort, rows: Vec::new(), has_spend: false, has_context: false }
    }

    fn push(&mut self, row: &Listed<'_>, now: Timestamp) {
        self.has_spend |= figures::spent(row.cost_usd, row.tokens).is_some();
        self.has_context |= row.fill().is_some();
        self.rows.push((Group::of(&row.condition()), cells(row, now)));
    }

    fn table(mut self) -> Table {
        if self.sort == Sort::NeedsMe {
            self.rows.sort_by_key(|(group, _)| *group);
        }
        let mut table = empty_table();
        self.rows.into_iter().for_each(|(_, cells)| table.push(cells));
        let table = if self.has_spend { table } else { table.without("SPEND") };
        if self.has_context { table } else { table.without(CONTEXT) }
    }
}

/// The same objects, those first that need a person.
fn sorted(json: &str) -> Result<String, Problem> {
    let unreadable = |error| unreadable(&error);
    let rows: Vec<&RawValue> = serde_json::from_str(json).map_err(unreadable)?;
    let mut ranked = Vec::with_capacity(rows.len());
    for row in rows {
        let listed: Listed<'_> = serde_json::from_str(row.get()).map_err(unreadable)?;
        ranked.push((Group::of(&listed.condition()), row));
    }
    ranked.sort_by_key(|(group, _)| *group);
    let rows: Vec<&str> = ranked.iter().map(|(_, row)| row.get()).collect();
    Ok(format!("[{}]", rows.join(",")))
}

/// What of a [`outlast_wire::api::RunRow`] stands in the table, borrowed from the line that it came in.
#[derive(Debug, Deserialize)]
struct Listed<'a> {
    id: &'a str,
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    state: Word<StateName>,
    reason_code: Option<Word<ReasonCode>>,
    health: Word<Health>,
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
    #[serde(default)]
    agent: Option<AgentRow>,
}

impl Listed<'_> {
    fn fill(&self) -> Option<String> {
        agent::fill(&self.agent.as_ref()?.activity)
    }

    fn condition(&self) -> Condition<'_> {
        Condition {
            state: &self.state,
            reason_code: self.reason_code.as_ref(),
            health: &self.health,
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
    let mut session = Session::new(&world.client);
    let reply = session.open(&ask.clone().accept(LINES)).await?;
    if reply.has_header(HELD_HEADER) {
        errors::warn(&["everything is paused; outlast resume --all lets it go on".to_owned()]);
    }
    if reply.has_header(FORGOTTEN_HEADER) {
        errors::warn(&[forgotten(reply.header(FORGOTTEN_HEADER).unwrap_or("some"))]);
    }
    rows::each(ask, reply, |line| {
        take(&serde_json::from_slice(line).map_err(|error| unreadable(&error))?);
        Ok(())
    })
    .await
}

fn forgotten(count: &str) -> String {
    match count {
        "0" => "the journal was replaced or restored; outlast doctor says more".to_owned(),
        "1" => "1 run on disk is not in the journal; outlast recover --dry-run".to_owned(),
        some => format!("{some} runs on disk are not in the journal; outlast recover --dry-run"),
    }
}

fn ask(args: &Ps) -> Ask {
    let mut ask = Ask::get("/v1/runs")
        .query_if("state", args.state.map(StateName::word))
        .query_if("trigger", args.trigger.as_ref());
    // Runs in a state that ends them are not among those that have not ended.
    if args.all || args.state.is_some_and(|state| state.verdict().is_some()) {
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
        column(CONTEXT, 7),
        column("SPEND", 10),
        column("COMMAND", 12),
    ])
}

fn cells(row: &Listed<'_>, now: Timestamp) -> Vec<Cell> {
    let age = time::ms_between(row.created_at, now).map(duration::column).unwrap_or_default();
    vec![
        Cell::new(row.id),
        Cell::new(row.name.as_deref().unwrap_or_default()),
        Cell::coloured(
            &row.condition().words_at(row.phase.as_deref(), row.agent.as_ref()),
            colour::of_state(&row.state),
        ),
        Cell::new(&age),
        Cell::new(&runtime(row, now)),
        Cell::new(&figures::turn(row.turn, row.attempt, row.max_turns)),
        Cell::new(&row.fill().unwrap_or_default()),
        Cell::new(&figures::spent(row.cost_usd, row.tokens).unwrap_or_default()),
        Cell::new(&row.what),
    ]
}

fn runtime(row: &Listed<'_>, now: Timestamp) -> String {
    let Some(started) = row.started_at else { return "-".to_owned() };
    let until = row.ended_at.map_or(Some(now), |ended| ended.parse().ok());
    let ms = until.and_then(|until| time::ms_between(started, until));
    ms.map_or_else(|| "-".to_owned(), duration::short)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORPHAN: &str = r#"{"id":"k3mx7q9w2r5t","name":null,"state":"running","reason_code":null,"health":"orphaned","what":"sh -c 'while true; do make -j8 check; done'","turn":1,"attempt":3,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null}"#;
    const FAILED: &str = r#"{"id":"0a1b2c3d4e5f","name":"nightly-build","state":"failed","reason_code":"exit_code","health":"healthy","what":"sleep 100","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":"2026-11-15T11:55:03.5Z","exit":{"code":7},"labels":{"a":"b"},"survivors":0,"trouble":null}"#;
    const QUEUED: &str = r#"{"id":"zzzzzzzzzzzz","name":null,"state":"queued","reason_code":null,"health":"healthy","what":"sleep 100","turn":0,"attempt":0,"created_at":"2026-11-15T11:55:00Z","started_at":null,"ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null}"#;

    const LOOP: &str = r#"{"id":"0a1b2c3d4e5g","name":"port","state":"verifying","reason_code":null,"health":"healthy","what":"port the parser","turn":3,"attempt":2,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"phase":"check done 2/3","last_line":"ok","max_turns":20,"cost_usd":0.42,"tokens":15400}"#;
    const TURN: &str = r#"{"id":"0a1b2c3d4e5h","name":"docs","state":"running","reason_code":null,"health":"healthy","what":"write the docs","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"phase":"turn 1 attempt 1","tokens":900}"#;
    const AGENT: &str = r#"{"id":"0a1b2c3d4e5k","name":"fix","state":"running","reason_code":null,"health":"healthy","what":"fix it","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"phase":"turn 1 attempt 1","tokens":900,"agent":{"kind":"claude","tool":{"name":"Bash","about":"cargo test","since":"2026-11-15T11:59:00Z"},"tools":1,"context":{"used":90000,"window":200000,"fill":0.45}}}"#;
    const COMMANDS: [&str; 3] = [ORPHAN, FAILED, QUEUED];

    fn render(lines: &[&str], columns: Option<usize>) -> String {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let mut list = List::new(Sort::NeedsMe);
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
        zzzzzzzzzzzz                 queued              5m   -        -     sleep 100
        0a1b2c3d4e5f  nightly-build  failed (exit 7)     5m   2s       1     sleep 100
        ");
    }

    #[test]
    fn on_80_columns_commands_give_way() {
        insta::assert_snapshot!(render(&COMMANDS, Some(80)), @r"
        ID            NAME          STATE               AGE  RUNTIME  TURN  COMMAND
        k3mx7q9w2r5t                running (orphaned)  5m   4m 59s   1.3   sh -c 'whil…
        zzzzzzzzzzzz                queued              5m   -        -     sleep 100
        0a1b2c3d4e5f  nightly-bui…  failed (exit 7)     5m   2s       1     sleep 100
        ");
    }

    #[test]
    fn on_72_columns_names_give_way_too() {
        insta::assert_snapshot!(render(&COMMANDS, Some(72)), @r"
        ID            NAME      STATE               AGE  RUNTIME  TURN  COMMAND
        k3mx7q9w2r5t            running (orphaned)  5m   4m 59s   1.3   sh -c 'whil…
        zzzzzzzzzzzz            queued              5m   -        -     sleep 100
        0a1b2c3d4e5f  nightly…  failed (exit 7)     5m   2s       1     sleep 100
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
    fn an_agent_shows_its_tool_and_its_context() {
        insta::assert_snapshot!(render(&[AGENT, QUEUED], None), @r"
        ID            NAME  STATE          AGE  RUNTIME  TURN  CONTEXT  SPEND       COMMAND
        0a1b2c3d4e5k  fix   running: Bash  5m   4m 59s   1     45%      900 tokens  fix it
        zzzzzzzzzzzz        queued         5m   -        -                          sleep 100
        ");
        insta::assert_snapshot!(render(&[AGENT, QUEUED], Some(72)), @r"
        ID            NAME  STATE          AGE  RUNTIME  TURN  CONTEXT  SPEND       COMMAND
        0a1b2c3d4e5k  fix   running: Bash  5m   4m 59s   1     45%      900 tokens  fix it
        zzzzzzzzzzzz        queued         5m   -        -                          sleep 100
        ");
    }

    #[test]
    fn what_needs_a_person_comes_first_then_what_goes_on() {
        let order = |text: &str| {
            let ids = [ORPHAN, FAILED, QUEUED, LOOP, TURN].map(|row| row[7..19].to_owned());
            ids.iter().map(|id| text.find(id.as_str()).expect("it is listed")).collect::<Vec<_>>()
        };
        let all = [FAILED, QUEUED, LOOP, ORPHAN, TURN];
        let [orphan, failed, queued, a_loop, turn] = order(&render(&all, None))[..] else {
            panic!("five")
        };
        assert!(orphan < a_loop && a_loop < turn && turn < queued && queued < failed);
        let json = format!("[{}]", all.join(","));
        let sorted = sorted(&json).expect("rows");
        assert!(
            order(&sorted).iter().zip([0, 4, 3, 1, 2]).all(|(at, place)| {
                order(&sorted).iter().filter(|other| *other < at).count() == place
            }),
            "{sorted}"
        );
        let unchanged: Vec<serde_json::Value> = serde_json::from_str(&sorted).expect("an array");
        assert_eq!(unchanged.len(), all.len());
    }

    #[test]
    fn a_terminal_state_looks_among_all_runs() {
        let args = |state| Ps {
            all: false,
            state,
            label: vec![("a".into(), "b".into())],
            sort: None,
            trigger: None,
            json: false,
        };
        assert_eq!(
            ask(&args(Some(StateName::Failed))).target,
            "/v1/runs?state=failed&all=true&label=a%3Db"
        );
        assert_eq!(ask(&args(None)).target, "/v1/runs?label=a%3Db");
    }
}
