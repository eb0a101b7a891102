//! `outlast budgets`: what runs may use up together, and what is left of it.

use jiff::Timestamp;
use outlast_client::ask::Ask;
use outlast_client::session::{Session, unreadable};
use outlast_wire::api::{BudgetView, Spent};

use crate::Answer;
use crate::args::Budgets;
use crate::money;
use crate::output::table::{Cell, Column, Look, Table};
use crate::output::time::both;
use crate::output::{self, figures};
use crate::world::World;

pub(crate) async fn budgets(world: &World, args: Budgets) -> Answer {
    let body = Session::new(&world.client).fetch(&Ask::get("/v1/budgets")).await?;
    if args.json {
        output::print_line(&String::from_utf8_lossy(&body))?;
        return Ok(0);
    }
    let budgets: Vec<BudgetView> =
        serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
    if budgets.is_empty() {
        output::print_line("there are no budgets; [budgets] in config.toml makes some")?;
        return Ok(0);
    }
    let look = Look { columns: world.columns(), colours: world.colours() };
    output::print(&table(&budgets, world.now()).render(look))?;
    Ok(0)
}

fn table(budgets: &[BudgetView], now: Timestamp) -> Table {
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![
        column("BUDGET", 10),
        column("PER", 5),
        column("USED", 8),
        column("MAX", 8),
        column("LEFT", 8),
        column("THEN", 4),
        column("RESETS", 8),
    ]);
    for budget in budgets {
        let resets = budget.resets_at.as_deref().map_or_else(String::new, |at| both(at, now));
        let words = [
            budget.name.clone(),
            budget.period.clone(),
            amount(&budget.used),
            amount(&budget.max),
            amount(&budget.left),
            budget.on_exceed.clone(),
            resets,
        ];
        table.push(words.iter().map(|word| Cell::new(word)).collect());
    }
    table
}

/// `$1.20, 15k tokens`: what there is a maximum of.
fn amount(spent: &Spent) -> String {
    let cost = spent.cost_usd.map(money::dollars);
    let tokens = spent.tokens.map(figures::tokens);
    [cost, tokens].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
