//! The first line of every page: what all runs come to, and whether the daemon is there.

use jiff::Timestamp;
use outlast_workflow::duration;
use ratatui_core::style::Style;

use super::canvas::{Canvas, width};
use crate::attention::Group;
use crate::output::figures::Spend;
use crate::tui::model::{Link, Model, Scope, Shape, Sort, group};

pub(super) fn draw(model: &Model, y: u16, canvas: &mut Canvas<'_>) {
    let all = canvas.area().width;
    let (daemon, style) = daemon(model, canvas);
    let taken = width(&daemon).min(all);
    canvas.put(all - taken, y, taken, &daemon, style);
    let pieces = totals(model, canvas);
    canvas.row(y, 0, all.saturating_sub(taken + 1), &pieces);
}

/// `daemon up 3h`, or since when it is gone.
pub(super) fn daemon(model: &Model, canvas: &Canvas<'_>) -> (String, Style) {
    let theme = canvas.theme;
    match &model.link {
        Link::Connecting => ("connecting".to_owned(), theme.dim()),
        Link::Up { since } => {
            let up = since.parse().map(|since| span(since, model.now)).unwrap_or_default();
            (format!("daemon up {up}"), theme.dim())
        }
        Link::Gone { since, .. } => {
            let gone = span(*since, model.now);
            (format!("daemon gone, reconnecting {gone}"), theme.alarm())
        }
    }
}

fn span(since: Timestamp, now: Timestamp) -> String {
    let ms = now.as_millisecond().saturating_sub(since.as_millisecond());
    duration::column(u64::try_from(ms).unwrap_or(0))
}

fn totals(model: &Model, canvas: &Canvas<'_>) -> Vec<(String, Style)> {
    let theme = canvas.theme;
    let mut pieces = vec![("outlast".to_owned(), theme.bold())];
    for counted in Group::ALL {
        let count = model.list.rows().filter(|row| group(row) == counted).count();
        let is_cut = counted == Group::Ended && model.list.is_cut;
        let style = match counted {
            Group::NeedsMe => theme.alarm(),
            Group::Running | Group::Waiting | Group::Queued | Group::Ended => theme.plain(),
        };
        if count > 0 {
            let more = if is_cut { "+" } else { "" };
            pieces.push((format!("  {count}{more} {}", counted.word(count)), style));
        }
    }
    let spend = model.list.rows().map(Spend::from).fold(Spend::nothing(), Spend::plus);
    let spent = [spend.money(), spend.count().map(|count| format!("{count} tokens"))];
    pieces.extend(spent.into_iter().flatten().map(|text| (format!("  {text}"), theme.plain())));
    pieces.extend(narrowed(model).map(|text| (format!("  [{text}]"), theme.warning())));
    pieces
}

/// How the list differs from what is shown at first.
fn narrowed(model: &Model) -> impl Iterator<Item = String> {
    let list = &model.list;
    let filter = (!list.filter.is_empty()).then(|| format!("/{}", list.filter));
    let scope = (list.scope == Scope::Open).then(|| "open".to_owned());
    let shape = (list.shape == Shape::Tree).then(|| "tree".to_owned());
    let sort = (list.sort != Sort::NeedsMe).then(|| list.sort.word().to_owned());
    [filter, scope, shape, sort].into_iter().flatten()
}
