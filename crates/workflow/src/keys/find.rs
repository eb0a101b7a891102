//! Finding a key in a table, and which key a person may have meant.

use super::Key;

/// The row of a path as a file has it, with `[]` for the items of a list.
pub(crate) fn lookup<'t>(table: &'t [Key], path: &str) -> Option<&'t Key> {
    let exact = table.iter().find(|key| key.path == path);
    exact.or_else(|| table.iter().find(|key| rest(key.path, path) == Some("")))
}

/// Whether keys stand below this path.
pub(crate) fn is_section(table: &[Key], path: &str) -> bool {
    below(table, path).next().is_some()
}

/// The path of the keys below any name here, if there are such.
pub(crate) fn below_any(table: &[Key], path: &str) -> Option<String> {
    let any = format!("{path}.*");
    is_section(table, &any).then_some(any)
}

pub(crate) fn below<'t>(table: &'t [Key], path: &str) -> impl Iterator<Item = &'t Key> {
    table.iter().filter(move |key| {
        rest(key.path, path).is_some_and(|rest| path.is_empty() || rest.starts_with(['.', '[']))
    })
}

/// What of a key's path stands after `path`, if it begins so; `*` is any name.
fn rest<'k>(key: &'k str, path: &str) -> Option<&'k str> {
    if path.is_empty() {
        return Some(key);
    }
    let mut rest = key;
    for (n, name) in path.split('.').enumerate() {
        let here = if n == 0 { rest } else { rest.strip_prefix('.')? };
        let any = here.strip_prefix('*').filter(|_| !name.ends_with("[]"));
        rest = any.or_else(|| here.strip_prefix(name))?;
    }
    Some(rest)
}

/// The names that may stand right below this path.
pub(crate) fn names<'t>(table: &'t [Key], path: &str) -> Vec<&'t str> {
    let mut names: Vec<&str> = below(table, path).filter_map(|key| child(key.path, path)).collect();
    names.dedup();
    names
}

/// A known key that an unknown one may have been meant to be: spelt almost alike in the same place, or of
/// the same name elsewhere.
pub(crate) fn nearest(table: &[Key], path: &str) -> Option<String> {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let siblings = below(table, parent).filter_map(|key| child(key.path, parent));
    let alike = siblings.map(|known| (distance(known, name), known)).min();
    match alike {
        Some((far, known)) if far <= 2.min(name.chars().count() / 3) => {
            Some(if parent.is_empty() { known.to_owned() } else { format!("{parent}.{known}") })
        }
        _ => elsewhere(table, name),
    }
}

/// The segment of a path right below a parent.
fn child<'p>(path: &'p str, parent: &str) -> Option<&'p str> {
    let rest = rest(path, parent)?;
    let rest = if parent.is_empty() { rest } else { rest.strip_prefix('.')? };
    rest.split(['.', '[']).next()
}

fn elsewhere(table: &[Key], name: &str) -> Option<String> {
    let same = table.iter().find(|key| key.path.rsplit('.').next() == Some(name));
    same.map(|key| key.path.to_owned())
}

/// How many letters have to be put in, taken out or changed.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::WORKFLOW;
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_key() {
        let meant = |path| nearest(WORKFLOW, path);
        assert_eq!(meant("limit").as_deref(), Some("limits"));
        assert_eq!(meant("limits.max_token").as_deref(), Some("limits.max_tokens"));
        assert_eq!(meant("limits.max_turns").as_deref(), Some("agent.max_turns"));
        assert_eq!(meant("tools[].nam").as_deref(), Some("tools[].name"));
        assert_eq!(meant("weather"), None);
    }

    #[test]
    fn sections_and_leaves_are_told_apart() {
        assert!(is_section(WORKFLOW, "tools"));
        assert!(is_section(WORKFLOW, "workspace.retain"));
        assert!(!is_section(WORKFLOW, "on_interrupt"));
        assert!(!is_section(WORKFLOW, "tool"));
        let config = super::super::CONFIG;
        assert!(lookup(config, "concurrency.per_label.team=a").is_some());
        assert!(is_section(config, "sinks.phone") && lookup(config, "sinks.phone.url").is_some());
        assert_eq!(nearest(config, "sinks.phone.levl").as_deref(), Some("sinks.phone.level"));
    }
}
