//! `outlast budgets`: what runs may use up together, and what is left of it.

use jiff::Timestamp;
use outlast_client::ask::Ask;
use outlast_client::session::{Session, unreadable};
use outlast_wire::api::BudgetView;

use crate::Answer;
use crate::args::Budgets;
use crate::loop_file;
use crate::money;
use crate::output::figures::Spend;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::time::relative;
use crate::output::{self, figures, waiting};
use crate::world::World;

pub(crate) async fn budgets(world: &World, args: Budgets) -> Answer {
    let body = Session::new(&world.client).fetch(&Ask::get("/v1/budgets")).await?;
    loop_file::mention_wrong_config(world)?;
    if args.json {
        output::print_line(&String::from_utf8_lossy(&body))?;
        return Ok(0);
    }
    let budgets: Vec<BudgetView> =
        serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
    if budgets.is_empty() {
        output::print_line("no budgets set; see [budgets] in config.toml")?;
        return Ok(0);
    }
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&table(&budgets, world.now()).render(look))?;
    for line in remarks(&budgets) {
        output::print_line(&line)?;
    }
    Ok(0)
}

fn table(budgets: &[BudgetView], now: Timestamp) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![
        column("BUDGET", 10),
        column("OF", 6),
        column("USED", 8),
        column("MAX", 6),
        column("LEFT", 6),
        column("THEN", 4),
        column("RESETS", 8),
    ])
    .dropping(&["THEN", "LEFT"]);
    for budget in budgets {
        let resets = resets(budget, now);
        let mut first = [budget.name.as_str(), &budget.on_exceed, &resets];
        for figures in [money(budget), tokens(budget)].into_iter().flatten() {
            let [of, used, max, left] = figures;
            let [name, then, resets] = std::mem::take(&mut first);
            let words = [name, &of, &used, &max, &left, then, resets];
            table.push(words.iter().map(|word| Cell::new(word)).collect());
        }
    }
    table
}

fn resets_at(budget: &BudgetView) -> Option<Timestamp> {
    budget.resets_at.as_deref()?.parse().ok()
}

/// `in 17h 18m`; what is for good never begins anew.
fn resets(budget: &BudgetView, now: Timestamp) -> String {
    resets_at(budget).map_or_else(|| "never".to_owned(), |at| relative(at, now))
}

fn spend(budget: &BudgetView) -> Spend {
    Spend {
        cost_usd: budget.used.cost_usd.unwrap_or(0.0),
        tokens: budget.used.tokens.unwrap_or(0),
        money_known: budget.known,
        tokens_known: budget.known,
        unreported_usd: budget.unreported.cost_usd.unwrap_or(0.0),
        unreported_tokens: budget.unreported.tokens.unwrap_or(0),
        unreported_attempts: budget.unreported_attempts,
    }
}

fn money(budget: &BudgetView) -> Option<[String; 4]> {
    let max = money::dollars(budget.max.cost_usd?);
    let used = spend(budget).money().unwrap_or_else(|| nothing_counted(budget, "$0.00"));
    let left = money::dollars(budget.left.cost_usd.unwrap_or(0.0));
    Some(["money".to_owned(), used, max, left])
}

fn tokens(budget: &BudgetView) -> Option<[String; 4]> {
    let max = figures::short(budget.max.tokens?);
    let used = spend(budget).count().unwrap_or_else(|| nothing_counted(budget, "0"));
    let left = figures::short(budget.left.tokens.unwrap_or(0));
    Some(["tokens".to_owned(), used, max, left])
}

/// Where no figure was reported, zero is one only if none was due.
fn nothing_counted(budget: &BudgetView, zero: &str) -> String {
    let mark = if budget.unreported_attempts > 0 { "?" } else { "" };
    format!("{zero}{mark}")
}

/// What a figure alone does not say: when a day begins, that it was not reported, and that runs wait.
fn remarks(budgets: &[BudgetView]) -> Vec<String> {
    let mut lines = Vec::new();
    for budget in budgets {
        if let Some(at) = resets_at(budget) {
            let clock = waiting::in_zone(at, budget.tz.as_deref());
            lines.push(format!("{}: a day begins at {clock}", budget.name));
        }
        let name = &budget.name;
        if !budget.known {
            let attempts = figures::count(
                usize::try_from(budget.unreported_attempts).unwrap_or(usize::MAX),
                "attempt",
            );
            let spent = spend(budget);
            let has_figures = spent.cost_usd > 0.0 || spent.tokens > 0;
            let used = spent.words().filter(|_| has_figures);
            let used = used.unwrap_or_else(|| "nothing is counted for them".to_owned());
            lines.push(format!("{name}: {attempts} did not report: {used}"));
        }
        match budget.waiting {
            0 => {}
            1 => lines.push(format!("{name}: 1 run waits for it")),
            runs => lines.push(format!("{name}: {runs} runs wait for it")),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_that_was_not_reported_is_marked() {
        let budget = serde_json::from_value(serde_json::json!({
            "name": "day", "label": null, "period": "day", "on_exceed": "wait", "used": {"cost_usd": 0.0},
            "known": false, "unreported": {}, "unreported_attempts": 1, "reserved": {}, "max": {"cost_usd": 1.0},
            "left": {"cost_usd": 1.0}, "resets_at": null}));
        let budget: BudgetView = budget.expect("a budget");
        assert_eq!(money(&budget).map(|[_, used, ..]| used).as_deref(), Some("$0.00?"));
    }

    #[test]
    fn a_table_says_the_zone_and_what_was_not_reported_and_fits_eighty_columns() {
        let budgets: Vec<BudgetView> = serde_json::from_value(serde_json::json!([
            {"name": "day", "label": null, "period": "day", "tz": "Europe/Berlin", "on_exceed": "wait",
             "used": {"tokens": 750_000, "cost_usd": 3.0}, "known": false,
             "unreported": {"tokens": 250_000, "cost_usd": 3.0}, "unreported_attempts": 3, "waiting": 2,
             "reserved": {"tokens": 0, "cost_usd": 0.0}, "max": {"tokens": 20_000_000, "cost_usd": 50.0},
             "left": {"tokens": 19_250_000, "cost_usd": 47.0}, "resets_at": "2026-11-15T23:00:00.000Z"},
            {"name": "label team=web", "label": "team=web", "period": "total", "on_exceed": "end",
             "used": {"cost_usd": 1.5}, "known": true, "reserved": {"cost_usd": 0.0}, "max": {"cost_usd": 200.0},
             "left": {"cost_usd": 198.5}, "resets_at": null},
        ]))
        .expect("budgets");
        let now = "2026-11-15T05:42:00Z".parse().expect("a time");
        let look = Look { columns: Some(80), colours: false };
        let page = format!("{}{}", table(&budgets, now).render(look), remarks(&budgets).join("\n"));
        insta::assert_snapshot!(page, @r"
        BUDGET          OF      USED     MAX      LEFT     THEN  RESETS
        day             money   ≤$3.00?  $50.00   $47.00   wait  in 17h 18m
                        tokens  ≤750k?   20.0M    19.2M
        label team=web  money   $1.50    $200.00  $198.50  end   never
        day: a day begins at 00:00 Europe/Berlin
        day: 3 attempts did not report: ≤ $3.00, ≤ 750k tokens, $3.00 of it not reported
        day: 2 runs wait for it
        ");
    }
}
