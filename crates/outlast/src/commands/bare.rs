//! `outlast` alone, on a terminal: the report if something happened since it was last looked at, else `top`.

use outlast_wire::api::Predecessor;

use super::{report, top};
use crate::Answer;
use crate::args::Top;
use crate::report::{Facts, Groups, Looked};
use crate::world::World;

pub(crate) async fn bare(world: &World) -> Answer {
    let looked = Looked::read(world.client.layout()?).at;
    let (facts, groups) = report::look(world, None).await?;
    let is_news = looked.is_none_or(|at| is_news(&facts, &groups, at));
    if (is_news && !facts.rows.is_empty()) || world.is_dumb() {
        report::show(world, &facts, &groups)?;
        return Ok(u8::from(groups.needs_person(&facts)));
    }
    top::top(world, Top { open: false }).await
}

/// True if a run ended or stopped for a person, a daemon died, or a schedule was missed since `at`.
fn is_news(facts: &Facts, groups: &Groups, at: jiff::Timestamp) -> bool {
    let since = |text: &str| text.parse::<jiff::Timestamp>().is_ok_and(|then| then > at);
    let items = [&groups.needs_you, &groups.done, &groups.not_done];
    items.into_iter().flatten().any(|item| item.at.is_some_and(|then| then > at))
        || facts.night.missed.iter().any(|missed| since(&missed.at))
        || facts
            .night
            .starts
            .iter()
            .any(|start| start.before == Predecessor::Died && since(&start.at))
        || !facts.config.is_empty()
}
