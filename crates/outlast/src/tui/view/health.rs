//! A run's health on the screen: one word, and how loud.

use outlast_wire::api::RunRow;
use outlast_wire::words::{Health, StateName};
use ratatui_core::style::Style;

use super::theme::Theme;
use crate::attention::Group;
use crate::output::state::spaced;
use crate::tui::model::group;

/// Nothing for runs that are well or have ended, so that the eye finds the others; nor where the state has
/// said it.
pub(crate) fn health(row: &RunRow, theme: Theme) -> (String, Style) {
    let is_said = row.health == Health::WaitingHuman && row.state == StateName::Blocked;
    if row.health == Health::Healthy || is_said || group(row) == Group::Ended {
        return (String::new(), theme.plain());
    }
    let style = match row.health.known() {
        Some(Health::Silent | Health::RateLimited | Health::NearLimit) => theme.warning(),
        _ => theme.alarm(),
    };
    (spaced(row.health.as_str()), style)
}
