//! The report on one screen, for people: local times, names, and commands that can be pasted.
//!
//! Pure: what it is given is all it knows. Text is cut at the edge of the screen; commands never are.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_wire::words::StateName;
use outlast_workflow::duration;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::facts::Facts;
use super::sort::{Groups, Item, took};
use super::when::When;
use super::{night, sort};
use crate::money;
use crate::output::colour::Colour;
use crate::output::{figures, printable};

/// So many of each group are shown.
const MOST: usize = 10;
/// No label is wider.
const WIDEST_LABEL: usize = 16;
/// A question may take so many lines.
const NOTE_LINES: usize = 2;

/// What the report is written on.
#[derive(Debug, Clone)]
pub(crate) struct Paper {
    pub(crate) columns: usize,
    pub(crate) colours: bool,
    pub(crate) tz: TimeZone,
}

pub(crate) fn page(facts: &Facts, groups: &Groups, paper: &Paper) -> String {
    let when = When::new(facts.now, &paper.tz);
    let all = [&groups.needs_you, &groups.done, &groups.not_done, &groups.waiting, &groups.running];
    let widest = all.into_iter().flatten().map(|item| label(item).width()).max().unwrap_or(0);
    let mut sheet = Sheet {
        text: String::new(),
        columns: paper.columns.clamp(40, 120),
        colours: paper.colours,
        label: widest.clamp(6, WIDEST_LABEL),
    };
    let ms = u64::try_from(facts.now.as_millisecond() - facts.since.as_millisecond()).unwrap_or(0);
    sheet.line(&format!("since {} ({})", when.at(facts.since), duration::short(ms)));
    needs_you(&mut sheet, facts, groups, &when);
    sheet.group("DONE", &groups.done, Heading::Always, &when, facts);
    sheet.group("NOT DONE", &groups.not_done, Heading::Always, &when, facts);
    sheet.group("WAITING", &groups.waiting, Heading::IfAny, &when, facts);
    sheet.group("STILL RUNNING", &groups.running, Heading::Always, &when, facts);
    spent(&mut sheet, facts, &groups.spent, &when);
    the_night(&mut sheet, facts, groups, &when);
    sheet.text
}

fn needs_you(sheet: &mut Sheet, facts: &Facts, groups: &Groups, when: &When) {
    let count = groups.needs_you.len() + usize::from(!facts.config.is_empty());
    sheet.heading("NEEDS YOU", count);
    if let Some(first) = facts.config.first() {
        let more = match facts.config.len() {
            1 => String::new(),
            all => format!(" (and {} more)", all - 1),
        };
        sheet.entry("config", &format!("invalid: {first}{more}"));
        sheet.command("outlast config check");
    }
    sheet.items(&groups.needs_you, when, facts);
}

/// What is held for attempts that did not report is no fact.
fn tokens(spent: &sort::Spent) -> Vec<String> {
    let reported = spent.tokens.saturating_sub(spent.unreported_tokens);
    let known = (reported > 0).then(|| figures::tokens(reported));
    let held = || format!("≤ {} not reported", figures::tokens(spent.unreported_tokens));
    known.into_iter().chain((spent.unreported_tokens > 0).then(held)).collect()
}

fn spent(sheet: &mut Sheet, facts: &Facts, spent: &sort::Spent, when: &When) {
    let count = |runs: usize| figures::count(runs, "run");
    let mut parts = Vec::new();
    if spent.reported_usd > 0.0 {
        parts.push(format!("{} reported", money::dollars(spent.reported_usd)));
    }
    if spent.held_runs > 0 {
        let (held, runs) = (money::dollars(spent.unreported_usd), count(spent.held_runs));
        parts.push(format!("≤ {held} not reported ({runs})"));
    }
    if spent.unbounded_runs > 0 {
        parts.push(format!("not all reported ({})", count(spent.unbounded_runs)));
    }
    parts.extend(tokens(spent));
    let uncounted = spent.unreported_runs - spent.held_runs - spent.unbounded_runs;
    if uncounted > 0 {
        parts.push(format!("not all tokens reported ({})", count(uncounted)));
    }
    sheet.line("");
    sheet.title(
        "SPENT",
        &match parts.as_slice() {
            [] => "nothing reported".to_owned(),
            parts => format!("{}, by the runs above since they began", parts.join(" · ")),
        },
    );
    for budget in &facts.budgets {
        let (used, max) = (&budget.used, &budget.max);
        // What is held for attempts that did not report is no fact.
        let bound = |is_held: bool| if is_held { "≤ " } else { "" };
        let amount = |used: Option<f64>, max: Option<f64>| {
            let bound = bound(budget.unreported.cost_usd.is_some_and(|usd| usd > 0.0));
            Some(format!("{bound}{} of {}", money::dollars(used?), money::dollars(max?)))
        };
        let tokens = |used: Option<u64>, max: Option<u64>| {
            let bound = bound(budget.unreported.tokens.is_some_and(|tokens| tokens > 0));
            Some(format!("{bound}{} of {}", figures::short(used?), figures::tokens(max?)))
        };
        let amounts: Vec<String> =
            [amount(used.cost_usd, max.cost_usd), tokens(used.tokens, max.tokens)]
                .into_iter()
                .flatten()
                .collect();
        let resets = budget.resets_at.as_deref().map(|at| format!(", resets {}", when.text(at)));
        let unreported = match budget.unreported_attempts {
            0 => "",
            _ => ", not all reported",
        };
        let (name, amounts) = (&budget.name, amounts.join(", "));
        let words = format!("budget {name}: {amounts}{unreported}{}", resets.unwrap_or_default());
        sheet.title("", &words);
    }
}

fn the_night(sheet: &mut Sheet, facts: &Facts, groups: &Groups, when: &When) {
    let mut title = "THE NIGHT";
    for night::Line { about, text, commands } in night::lines(facts, groups, when) {
        sheet.title(title, &format!("{about}: {text}"));
        for command in commands {
            sheet.line(&format!("{:TITLE$}{command}", ""));
        }
        title = "";
    }
}

/// The width of `SPENT` and `THE NIGHT` and what follows them.
const TITLE: usize = 11;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heading {
    Always,
    IfAny,
}

struct Sheet {
    text: String,
    columns: usize,
    colours: bool,
    label: usize,
}

impl Sheet {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn cut_line(&mut self, line: &str) {
        let line = cut(line, self.columns);
        self.line(&line);
    }

    fn heading(&mut self, word: &str, count: usize) {
        let word = Colour::Bold.paint(word, self.colours);
        let count = if count == 0 { "nothing".to_owned() } else { format!("({count})") };
        self.line(&format!("\n{word} {count}"));
    }

    /// `SPENT      …`, continued below itself.
    fn title(&mut self, word: &str, text: &str) {
        let lines = wrapped(text, self.columns.saturating_sub(TITLE), usize::MAX);
        let mut word = word;
        for line in lines {
            let painted = Colour::Bold.paint(word, self.colours);
            let pad = TITLE.saturating_sub(word.width());
            self.line(&format!("{painted}{:pad$}{line}", ""));
            word = "";
        }
    }

    fn group(&mut self, word: &str, items: &[Item], heading: Heading, when: &When, facts: &Facts) {
        if items.is_empty() && heading == Heading::IfAny {
            return;
        }
        self.heading(word, items.iter().map(|item| item.runs).sum());
        self.items(items, when, facts);
    }

    /// The latest, in their order.
    fn items(&mut self, items: &[Item], when: &When, facts: &Facts) {
        let hidden = items.len().saturating_sub(MOST);
        if hidden > 0 {
            self.line(&format!("  {hidden} earlier ones: outlast ps -a"));
        }
        for item in &items[hidden..] {
            self.item(item, when, facts);
        }
    }

    fn item(&mut self, item: &Item, when: &When, facts: &Facts) {
        let room = self.columns.saturating_sub(self.label + 4);
        let mut label = label(item);
        for line in wrapped(&head(item, when, facts), room, NOTE_LINES) {
            self.entry(&std::mem::take(&mut label), &line);
        }
        for line in wrapped(item.note.as_deref().unwrap_or_default(), room, NOTE_LINES) {
            self.beside("", &line);
        }
        for command in &item.commands {
            self.command(command);
        }
    }

    /// `  bug-42   completed 22:31 …`
    fn entry(&mut self, label: &str, text: &str) {
        let label = cut(label, self.label);
        self.beside(&label, &printable(text));
    }

    fn beside(&mut self, label: &str, text: &str) {
        let pad = self.label.saturating_sub(label.width());
        self.cut_line(&format!("  {label}{:pad$}  {text}", ""));
    }

    fn command(&mut self, command: &str) {
        let pad = self.label;
        let command = Colour::Cyan.paint(command, self.colours);
        self.line(&format!("  {:pad$}  {command}", ""));
    }
}

/// The name, else what made it, else the id. Several runs of one trigger go by the trigger.
fn label(item: &Item) -> String {
    let trigger = item.trigger.as_deref();
    let name = trigger.filter(|_| item.runs > 1).or(item.name.as_deref()).or(trigger);
    printable(name.unwrap_or(&item.id))
}

/// `completed 22:31 · 31m · 4 turns · $0.06`
fn head(item: &Item, when: &When, facts: &Facts) -> String {
    let mut parts = Vec::new();
    let at = item.at.map(|at| when.at(at)).unwrap_or_default();
    let is_over = item.state.has_ended();
    match (item.runs, is_over || item.state == StateName::Blocked) {
        (1, true) => parts.push(format!("{} {at}", item.words)),
        (1, false) => parts.push(format!("{} since {at}", item.words)),
        (many, _) => parts.push(format!("{} {many} times, last {at}", item.words)),
    }
    if let Some(wake_at) = item.wake_at.filter(|_| item.state == StateName::Waiting) {
        parts.push(format!("goes on {}", when.at(wake_at)));
    }
    if item.state == StateName::Blocked {
        parts.extend(ago(item, facts.now));
    } else {
        parts.extend(took(item).filter(|_| is_over));
    }
    parts.extend(item.figures.iter().cloned());
    if let Some(branch) = item.branch.as_ref().filter(|_| item.runs == 1) {
        parts.push(format!("branch {}", printable(branch)));
    }
    if let Some(trigger) = item.trigger.as_deref() {
        parts.push(made_by(trigger, when, facts));
    }
    parts.join(" · ")
}

fn ago(item: &Item, now: Timestamp) -> Option<String> {
    let ms = u64::try_from(now.as_millisecond() - item.at?.as_millisecond()).ok()?;
    (ms >= 60_000).then(|| format!("{} ago", duration::short(ms)))
}

/// `schedule, next 03:00`
fn made_by(trigger: &str, when: &When, facts: &Facts) -> String {
    let known = facts.triggers.iter().find(|known| known.name == trigger);
    let kind = known.map_or("trigger", |known| known.kind.as_str());
    match known.and_then(|known| known.next_at.as_deref()) {
        Some(next) => format!("{kind}, next {}", when.text(next)),
        None => kind.to_owned(),
    }
}

/// Lines of at most so many columns; of more lines than wanted the last is cut.
fn wrapped(text: &str, columns: usize, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in printable(text).split(' ').filter(|word| !word.is_empty()) {
        let is_last = lines.len() == most;
        match lines.last_mut() {
            Some(line) if is_last || line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| cut(line, columns)).collect()
}

fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let mut cut = String::new();
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if width > room {
            break;
        }
        room -= width;
        cut.push(c);
    }
    format!("{}…", cut.trim_end())
}
