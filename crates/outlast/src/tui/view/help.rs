//! What each key does.

use super::Frame;
use super::canvas::Canvas;

const KEYS: [(&str, &str); 19] = [
    ("↑ ↓ j k", "move; PgUp PgDn Home End too"),
    ("enter o", "look into the run: its turns and its output, live"),
    ("esc", "back; in the list, lift the filter"),
    ("← →", "in a run: the output of the turn before, or after"),
    ("/", "filter by id, name, state, health, command or label"),
    ("a", "with ended runs, or without"),
    ("T", "as a tree of parents and children"),
    ("1 2 3 4", "sort: needs me first, newest, spend, name"),
    ("s", "stop it, and all that it started (asks first)"),
    ("S", "kill it at once (asks first)"),
    ("p", "pause after this turn, or resume"),
    ("r", "resume"),
    ("A", "answer what it asks"),
    ("m", "send it a message"),
    ("t", "attach to it; ctrl-\\ comes back"),
    ("ctrl-l", "draw again; ctrl-z goes to sleep until fg"),
    ("q ctrl-c", "leave; every run goes on"),
    ("", ""),
    ("", "first: blocked, stalled, thrashing, orphaned, unreachable, stop incomplete"),
];

pub(super) fn draw(frame: Frame, canvas: &mut Canvas<'_>) {
    let (all, theme) = (canvas.area().width, canvas.theme);
    let bottom = frame.footer.unwrap_or(canvas.area().height);
    (0..bottom).for_each(|y| canvas.wipe(y));
    for (y, (key, what)) in (0..bottom).zip(KEYS) {
        let x = if key.is_empty() { 1 } else { canvas.put(1, y, 10, key, theme.bold()).max(11) };
        canvas.put(x, y, all.saturating_sub(x), what, theme.plain());
    }
}
