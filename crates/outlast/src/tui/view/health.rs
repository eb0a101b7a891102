//! A run's health on the screen: one word, and how loud.

use outlast_wire::api::RunRow;
use ratatui_core::style::Style;

use super::theme::Theme;
use crate::attention::Group;
use crate::output::state::spaced;
use crate::tui::model::group;

/// Nothing for runs that are well or have ended, so that the eye finds the others; nor where the state has
/// said it.
pub(crate) fn health(row: &RunRow, theme: Theme) -> (String, Style) {
    let is_said = row.health == "waiting_human" && row.state == "blocked";
    if row.health == "healthy" || is_said || group(row) == Group::Ended {
        return (String::new(), theme.plain());
    }
    let style = match row.health.as_str() {
        "silent" | "rate_limited" | "near_limit" => theme.warning(),
        _ => theme.alarm(),
    };
    (spaced(&row.health), style)
}
