//! What a run has changed, and the run that it was forked from.

use outlast_client::ask::{Ask, run_path};
use outlast_client::session::Session;
use outlast_wire::api::{DiffView, ForkedFrom, RunView, SnapshotsView};

use crate::output::{self, figures};

/// `from k3m… at turn 3; $0.12 spent before`
pub(super) fn forked(from: &ForkedFrom) -> String {
    let spent = match from.cost_usd {
        cost if cost > 0.0 => format!("; ${cost:.2} spent before"),
        _ => String::new(),
    };
    format!("from {} at turn {}{spent}", from.run, from.turn)
}

/// `forked at turn 3`, or `fresh (another agent goes on)`; nothing for an agent that has no conversations.
pub(super) fn session_of(from: &ForkedFrom) -> Option<String> {
    match (from.session.as_str(), &from.why_fresh) {
        ("forked", _) => Some(format!("forked at turn {}", from.turn)),
        (session, Some(why)) => Some(format!("{session} ({why})")),
        (_, None) => None,
    }
}

/// What the run has changed: by the difference between the base and the last snapshot, as `diff` shows it.
pub(super) async fn changes_of(session: &mut Session<'_>, view: &RunView) -> Option<String> {
    let known = view.snapshots.as_ref()?;
    let figures = match known.turn {
        None | Some(0) => return Some(changes(view, known, None)),
        // Of one turn the sum is the difference.
        Some(1) => return Some(changes(view, known, Some(figures_of(known)))),
        Some(turn) => {
            let ask = Ask::get(&run_path(&view.id, "/diff"))
                .query("patch", false)
                .query("turns", format_args!("0..{turn}"));
            // Snapshots that are gone can no longer be compared; the rest of the page can be shown.
            session.call::<DiffView>(&ask).await.ok().map(|diff| {
                let more = if diff.files_cut { "more than " } else { "" };
                let files = figures::count(diff.files.len(), "file");
                format!("{more}{files}, +{} -{}", diff.added, diff.deleted)
            })
        }
    };
    Some(changes(view, known, figures))
}

fn figures_of(known: &SnapshotsView) -> String {
    let files = figures::files(known.files);
    format!("{files}, +{} -{}", known.added, known.deleted)
}

/// `9 files, +120 -31 by turn 4: outlast diff nightly`. Without figures of a comparison, the lines of each turn are
/// added up: a file that two turns changed would count twice.
fn changes(view: &RunView, known: &SnapshotsView, figures: Option<String>) -> String {
    let failed = known
        .failed
        .as_ref()
        .map(|why| format!("; the last snapshot failed: {}", output::one_line(why)));
    let failed = failed.unwrap_or_default();
    let Some(turn) = known.turn.filter(|turn| *turn > 0) else {
        return format!("none yet{failed}");
    };
    let figures = figures.unwrap_or_else(|| {
        format!("+{} -{} lines, added up turn by turn,", known.added, known.deleted)
    });
    let left_out = match known.left_out {
        0 => String::new(),
        count => format!(" ({count} left out)"),
    };
    let name = output::called(view);
    format!("{figures} by turn {turn}{left_out}: outlast diff {name}{failed}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn what_can_no_longer_be_compared_names_no_number_of_files() {
        let known = SnapshotsView { turn: Some(4), files: 4, added: 4, ..SnapshotsView::default() };
        let view = sample::running_loop();
        assert_eq!(
            changes(&view, &known, None),
            "+4 -0 lines, added up turn by turn, by turn 4: outlast diff port"
        );
        let one = SnapshotsView { turn: Some(1), files: 1, added: 4, ..SnapshotsView::default() };
        assert_eq!(
            changes(&view, &one, Some(figures_of(&one))),
            "1 file, +4 -0 by turn 1: outlast diff port"
        );
    }
}
