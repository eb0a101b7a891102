//! `outlast ps`: the runs there are.

mod format;

use std::borrow::Cow;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
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

use self::format::Format;
use crate::Answer;
use crate::args::{Ps, Sort};
use crate::attention::Group;
use crate::builds;
use crate::output::figures::Spend;
use crate::output::state::{Condition, Pace};
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::{self, agent, colour, errors, figures, time};
use crate::world::World;

pub(crate) async fn ps(world: &World, args: Ps) -> Answer {
    let answer = list(world, args).await;
    builds::mention(world);
    answer
}

async fn list(world: &World, args: Ps) -> Answer {
    let now = world.now();
    let here = world.now_here();
    let since = args.since.map(|since| since.past(&here)).transpose()?;
    let since = since.map(|since| since.timestamp(&here));
    let format = args.format.as_deref().map(Format::parse).transpose()?;
    if args.json || matches!(format, Some(Format::Json)) {
        let body = Session::new(&world.client).fetch(&ask(&args)).await?;
        let text = String::from_utf8_lossy(&body);
        output::print_line(&chosen(&text, args.sort, since)?)?;
        return Ok(0);
    }
    let mut list = List::new(args.sort.unwrap_or(Sort::NeedsMe));
    each_row(world, &ask(&args), |line| {
        let row: Listed<'_> = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        if !row.is_since(since) {
            return Ok(());
        }
        match &format {
            _ if args.quiet => list.text(&row, row.id.to_owned()),
            Some(Format::Template(template)) => list.text(&row, template.fill(line, &row, now)?),
            Some(Format::Columns(_) | Format::Json) | None => list.push(&row, now),
        }
        Ok(())
    })
    .await?;
    let look = Look { columns: world.columns(), colours: world.colours() };
    match format {
        Some(Format::Template(_)) => output::print(&list.lines())?,
        _ if args.quiet => output::print(&list.lines())?,
        Some(Format::Columns(titles)) => output::print(&list.table().only(&titles).render(look))?,
        // A script that reads a table finds its head, and a person a sentence.
        _ if list.rows.is_empty() && look.columns.is_some() => {
            output::print_line(&nothing(world, &args, now).await?)?;
        }
        _ => output::print(&list.table().render(look))?,
    }
    Ok(0)
}

/// What an empty list says. The runs that have ended are looked for as far as this many.
const LOOK_BACK: u64 = 1000;

async fn nothing(world: &World, args: &Ps, now: Timestamp) -> Result<String, Problem> {
    let Ps { all, state, label, trigger, since, last, .. } = args;
    let is_filtered = state.is_some() || !label.is_empty() || trigger.is_some();
    if is_filtered {
        let more = if *all { "" } else { "; ended ones are shown by -a" };
        return Ok(format!("no run matches{more}"));
    }
    let (mut ended, mut recent) = (0_u64, 0_u64);
    let yesterday = yesterday(now, TimeZone::system());
    let every = Ask::get("/v1/runs").query("all", true).query("most", LOOK_BACK);
    each_row(world, &every, |line| {
        let row: Listed<'_> = serde_json::from_slice(line).map_err(|error| unreadable(&error))?;
        ended += u64::from(row.ended_at.is_some());
        recent += u64::from(row.ended_at.is_some() && row.is_since(Some(yesterday)));
        Ok(())
    })
    .await?;
    let more = |count| if count >= LOOK_BACK { "+" } else { "" };
    Ok(match (ended, recent) {
        (0, _) if *all || since.is_some() || last.is_some() || ended == 0 => {
            "no runs yet; start one: outlast run -- COMMAND".to_owned()
        }
        (_, 0) => format!("nothing is running · {ended}{} ended: outlast ps -a", more(ended)),
        (_, recent) => {
            let more = more(recent);
            format!("nothing is running · {recent}{more} ended since yesterday: outlast ps -a")
        }
    })
}

/// When the day before this one began.
fn yesterday(now: Timestamp, zone: TimeZone) -> Timestamp {
    let here = now.to_zoned(zone);
    let midnight = here.start_of_day().ok();
    let day_before = midnight.and_then(|it| it.checked_sub(SignedDuration::from_hours(24)).ok());
    day_before.map_or(now, |it| it.timestamp())
}

/// The list as it grows. What runs have spent is worth a column once one of them has spent anything; so is the context of
/// agents, and the turn once a run has more than one, or more than one try.
struct List {
    sort: Sort,
    /// In the order they came, the newest first.
    rows: Vec<(Group, Entry)>,
    has_spend: bool,
    has_context: bool,
    has_turns: bool,
}

/// A row of a table, or a line of text.
enum Entry {
    Cells(Vec<Cell>),
    Text(String),
}

/// How full the contexts of agents are.
const CONTEXT: &str = "CONTEXT";

impl List {
    fn new(sort: Sort) -> Self {
        Self { sort, rows: Vec::new(), has_spend: false, has_context: false, has_turns: false }
    }

    fn push(&mut self, row: &Listed<'_>, now: Timestamp) {
        self.has_spend |= row.spend().column().is_some();
        self.has_context |= row.fill().is_some();
        self.has_turns |= row.turn > 1 || row.attempt > 1 || row.max_turns.is_some();
        self.rows.push((Group::of(&row.condition()), Entry::Cells(cells(row, now))));
    }

    fn text(&mut self, row: &Listed<'_>, text: String) {
        self.rows.push((Group::of(&row.condition()), Entry::Text(text)));
    }

    fn sorted(mut self) -> impl Iterator<Item = Entry> {
        if self.sort == Sort::NeedsMe {
            self.rows.sort_by_key(|(group, _)| *group);
        }
        self.rows.into_iter().map(|(_, entry)| entry)
    }

    fn lines(self) -> String {
        let line = |entry| match entry {
            Entry::Text(text) => Some(format!("{text}\n")),
            Entry::Cells(_) => None,
        };
        self.sorted().filter_map(line).collect()
    }

    fn table(self) -> Table {
        let Self { has_spend, has_context, has_turns, .. } = self;
        let mut table = empty_table();
        for entry in self.sorted() {
            if let Entry::Cells(cells) = entry {
                table.push(cells);
            }
        }
        let table = if has_spend { table } else { table.without("SPEND") };
        let table = if has_turns { table } else { table.without("TURN") };
        if has_context { table } else { table.without(CONTEXT) }
    }
}

/// The same objects, those that are wanted, in the order that is wanted. Scripts get the order that they always got,
/// unless they ask for another.
fn chosen(
    json: &str,
    sort: Option<Sort>,
    since: Option<Timestamp>,
) -> Result<Cow<'_, str>, Problem> {
    let is_sorted = sort == Some(Sort::NeedsMe);
    if !is_sorted && since.is_none() {
        return Ok(json.into());
    }
    let unreadable = |error| unreadable(&error);
    let rows: Vec<&RawValue> = serde_json::from_str(json).map_err(unreadable)?;
    let mut ranked = Vec::with_capacity(rows.len());
    for row in rows {
        let listed: Listed<'_> = serde_json::from_str(row.get()).map_err(unreadable)?;
        if listed.is_since(since) {
            ranked.push((Group::of(&listed.condition()), row));
        }
    }
    if is_sorted {
        ranked.sort_by_key(|(group, _)| *group);
    }
    let rows: Vec<&str> = ranked.iter().map(|(_, row)| row.get()).collect();
    Ok(format!("[{}]", rows.join(",")).into())
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
    #[serde(borrow, default)]
    task: Option<Cow<'a, str>>,
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
    #[serde(default = "yes")]
    known: bool,
    #[serde(default)]
    money_known: bool,
    #[serde(default)]
    tokens_known: bool,
    #[serde(default)]
    unreported_usd: f64,
    #[serde(default)]
    unreported_tokens: u64,
    #[serde(default)]
    unreported_attempts: u64,
    #[serde(default)]
    agent: Option<AgentRow>,
    #[serde(default)]
    changed_at: Option<&'a str>,
    #[serde(default)]
    wake_at: Option<&'a str>,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    worked_ms: Option<u64>,
    #[serde(default)]
    attempts_failed: u32,
    #[serde(default)]
    max_attempts: Option<u32>,
    #[serde(default)]
    stalls: u32,
}

fn yes() -> bool {
    true
}

impl Listed<'_> {
    fn fill(&self) -> Option<String> {
        agent::fill(&self.agent.as_ref()?.activity)
    }

    fn spend(&self) -> Spend {
        Spend {
            cost_usd: self.cost_usd,
            tokens: self.tokens,
            money_known: self.known || self.money_known,
            tokens_known: self.known || self.tokens_known,
            unreported_usd: self.unreported_usd,
            unreported_tokens: self.unreported_tokens,
            unreported_attempts: self.unreported_attempts,
        }
    }

    fn condition(&self) -> Condition<'_> {
        Condition {
            state: &self.state,
            reason_code: self.reason_code.as_ref(),
            health: &self.health,
            exit: self.exit,
            survivors: self.survivors as usize,
            trouble: self.trouble.as_ref(),
            pace: Pace {
                paused: self.paused,
                wake_at: self.wake_at,
                attempts: (self.attempts_failed, self.max_attempts),
                stalls: self.stalls,
                now: None,
            },
        }
    }

    /// True of a run that goes on, or ended after this time.
    fn is_since(&self, since: Option<Timestamp>) -> bool {
        let ended = self.ended_at.and_then(|at| at.parse::<Timestamp>().ok());
        since.zip(ended).is_none_or(|(since, ended)| ended >= since)
    }

    fn state_words(&self, now: Timestamp) -> String {
        self.condition().at(now).words_at(self.phase.as_deref(), self.agent.as_ref())
    }

    fn age(&self, now: Timestamp) -> String {
        time::ms_between(self.created_at, now).map(duration::column).unwrap_or_default()
    }

    /// When it ended, or came into its state: `5m ago`.
    fn changed(&self, now: Timestamp) -> String {
        let at = self.ended_at.or(self.changed_at).or(self.started_at).unwrap_or(self.created_at);
        let ms = time::ms_between(at, now);
        ms.map(|ms| format!("{} ago", duration::column(ms))).unwrap_or_default()
    }

    /// How long it has worked: its rests do not count.
    fn runtime(&self, now: Timestamp) -> String {
        let Some(started) = self.started_at else { return "-".to_owned() };
        let until = self.ended_at.map_or(Some(now), |ended| ended.parse().ok());
        let passed = || until.and_then(|until| time::ms_between(started, until));
        self.worked_ms.or_else(passed).map_or_else(|| "-".to_owned(), duration::short)
    }

    /// What it runs: a program by the name of its file, since the start of a path says little. A task is as it is.
    fn command(&self) -> Cow<'_, str> {
        if self.task.is_some() {
            return Cow::Borrowed(&self.what);
        }
        by_file_name(&self.what)
    }

    fn spend_words(&self) -> String {
        self.spend().column().unwrap_or_default()
    }
}

/// `/usr/lib/jvm/bin/java -jar x` is `java -jar x`.
fn by_file_name(command: &str) -> Cow<'_, str> {
    let (program, rest) = command.split_once(' ').unwrap_or((command, ""));
    match program.rsplit_once('/') {
        Some((_, name)) if !name.is_empty() => {
            Cow::Owned(format!("{name} {rest}").trim_end().to_owned())
        }
        _ => Cow::Borrowed(command),
    }
}

/// Reads rows while the daemon is still writing them.
async fn each_row(
    world: &World,
    ask: &Ask,
    take: impl FnMut(&[u8]) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut session = Session::new(&world.client);
    let reply = session.open(&ask.clone().accept(LINES)).await?;
    if reply.has_header(HELD_HEADER) {
        errors::warn(&["everything is paused\nhint: outlast resume --all".to_owned()]);
    }
    if reply.has_header(FORGOTTEN_HEADER) {
        errors::warn(&[forgotten(reply.header(FORGOTTEN_HEADER).unwrap_or("some"))]);
    }
    rows::each(ask, reply, take).await
}

fn forgotten(count: &str) -> String {
    match count {
        "0" => "the journal was replaced or restored\nhint: outlast doctor".to_owned(),
        "1" => "1 run on disk is not in the journal\nhint: outlast recover --dry-run".to_owned(),
        some => {
            format!("{some} runs on disk are not in the journal\nhint: outlast recover --dry-run")
        }
    }
}

fn ask(args: &Ps) -> Ask {
    let mut ask = Ask::get("/v1/runs")
        .query_if("state", args.state.map(StateName::word))
        .query_if("trigger", args.trigger.as_ref());
    // Runs in a state that ends them are not among those that have not ended.
    let wants_ended = args.state.is_some_and(|state| state.verdict().is_some());
    if args.all || wants_ended || args.since.is_some() || args.last.is_some() {
        ask = ask.query("all", true);
    }
    for (key, value) in &args.label {
        ask = ask.query("label", format_args!("{key}={value}"));
    }
    ask.query_if("most", args.last)
}

/// What is left out first on a narrow terminal.
const DROPPABLE: &[&str] =
    &["AGE", "RUNTIME", CONTEXT, "COMMAND", "SPEND", "TURN", "CHANGED", "NAME"];

fn empty_table() -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let table = Table::new(vec![
        column("ID", 12),
        column("NAME", 8),
        column("STATE", 28),
        column("CHANGED", 8),
        column("AGE", 4),
        column("RUNTIME", 8),
        column("TURN", 8),
        column(CONTEXT, 7),
        column("SPEND", 14),
        column("COMMAND", 12),
    ]);
    table.dropping(DROPPABLE)
}

fn cells(row: &Listed<'_>, now: Timestamp) -> Vec<Cell> {
    vec![
        Cell::new(row.id),
        Cell::new(row.name.as_deref().unwrap_or_default()),
        Cell::coloured(&row.state_words(now), colour::of_state(&row.state)),
        Cell::new(&row.changed(now)),
        Cell::new(&row.age(now)),
        Cell::new(&row.runtime(now)),
        Cell::new(&figures::turn(row.turn, row.attempt, row.max_turns)),
        Cell::new(&row.fill().unwrap_or_default()),
        Cell::new(&row.spend_words()),
        Cell::new(&row.command()),
    ]
}

#[cfg(test)]
mod tests;
