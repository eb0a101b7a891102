//! Words of an agent, fit to be quoted in one line of a message: short, and harmless to a terminal.

/// In characters.
const LONGEST: usize = 60;

pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((cut, _)) => format!("{}…", text[..cut].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_wrote_stays_on_one_short_line() {
        assert_eq!(quote("path"), "path");
        assert_eq!(quote("a\n\u{1b}[31m"), "a\\n\\u{1b}[31m");
        assert_eq!(quote(&"ä".repeat(61)), format!("{}…", "ä".repeat(60)));
    }
}
