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

/// The row of a length of time that a file gives under the name without `_ms`.
pub(crate) fn time<'t>(table: &'t [Key], path: &str) -> Option<&'t Key> {
    if lookup(table, path).is_some_and(|key| !key.path.ends_with('*')) {
        return None;
    }
    lookup(table, &format!("{path}_ms")).filter(|key| key.is_time())
}

/// The names that may stand right below this path. A length of time goes by the name that takes a unit.
pub(crate) fn names<'t>(table: &'t [Key], path: &str) -> Vec<&'t str> {
    let name = |key: &'t Key| {
        let name = child(key.path, path)?;
        Some(if key.is_time() { name.strip_suffix("_ms").unwrap_or(name) } else { name })
    };
    let mut names: Vec<&str> = below(table, path).filter_map(name).collect();
    names.dedup();
    names
}

/// A known key that an unknown one may have been meant to be: spelt almost alike in the same place, a part of a
/// name there, or of the same name elsewhere. `maxTurns` and `max-turns` are `max_turns`.
pub(crate) fn nearest(table: &[Key], path: &str) -> Option<String> {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let name = &snake(name);
    let siblings = || names(table, parent).into_iter().filter(|known| *known != "*");
    let in_ms = below(table, parent).filter_map(|key| child(key.path, parent));
    if let Some(known) = alike(name, siblings().chain(in_ms)) {
        return Some(join(parent, known));
    }
    let longer: Vec<String> = siblings()
        .filter(|known| !parent.is_empty() && is_part(name, known))
        .map(|known| join(parent, known))
        .collect();
    if !longer.is_empty() {
        return Some(longer.join(" or "));
    }
    // As the flag is called: `tree_depth` of `--tree-depth`.
    let in_section = parent.is_empty().then(|| name.replacen('_', ".", 1));
    if let Some(known) = in_section.and_then(|path| lookup(table, &path)) {
        return Some(known.path.to_owned());
    }
    let limits = if parent.is_empty() { limits(table, name) } else { Vec::new() };
    if limits.is_empty() { elsewhere(table, name) } else { Some(limits.join(" or ")) }
}

/// The limits that a name at the top of a file may have been meant to be: their own name, or a part of one.
fn limits(table: &[Key], name: &str) -> Vec<String> {
    let known: Vec<String> = names(table, "limits")
        .into_iter()
        .map(|known| join("limits", known))
        .chain(lookup(table, "agent.max_turns").map(|key| key.path.to_owned()))
        .collect();
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    let exact: Vec<String> = known.iter().filter(|path| last(path) == name).cloned().collect();
    if !exact.is_empty() {
        return exact;
    }
    known.into_iter().filter(|path| is_part(name, &last(path))).collect()
}

/// A name as our keys are written: `max_turns` of `maxTurns` or `max-turns`.
fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len());
    for char in name.chars() {
        match char {
            '-' => snake.push('_'),
            upper if upper.is_ascii_uppercase() => {
                if !snake.is_empty() && !snake.ends_with('_') {
                    snake.push('_');
                }
                snake.push(upper.to_ascii_lowercase());
            }
            other => snake.push(other),
        }
    }
    snake
}

/// The one of these that is spelt almost like a name.
pub(crate) fn alike<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (far, known) = known.map(|known| (distance(known, name), known)).min()?;
    (far <= 2.min(name.chars().count() / 3)).then_some(known)
}

/// True if a name lacks the first or the last words of a known one: `max_cost`, `timeout`.
fn is_part(name: &str, known: &str) -> bool {
    let rest = known.strip_prefix(name).is_some_and(|rest| rest.starts_with('_'));
    let start = known.strip_suffix(name).is_some_and(|start| start.ends_with('_'));
    name.len() > 3 && (rest || start)
}

pub(crate) fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What a path stands in; the whole file is empty.
pub(crate) fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}

/// The segment of a path right below a parent.
fn child<'p>(path: &'p str, parent: &str) -> Option<&'p str> {
    let rest = rest(path, parent)?;
    let rest = if parent.is_empty() { rest } else { rest.strip_prefix('.')? };
    rest.split(['.', '[']).next()
}

fn elsewhere(table: &[Key], name: &str) -> Option<String> {
    let called = |key: &&Key| {
        let last = key.path.rsplit('.').next();
        let short = last.filter(|_| key.is_time()).and_then(|last| last.strip_suffix("_ms"));
        last == Some(name) || short == Some(name)
    };
    let path = table.iter().find(called)?.path;
    Some(if path.ends_with(name) { path } else { path.strip_suffix("_ms")? }.to_owned())
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
        assert_eq!(meant("check").as_deref(), Some("checks"));
        assert_eq!(meant("limits.stall_windw").as_deref(), Some("limits.stall_window"));
        assert_eq!(meant("limits.max_cost").as_deref(), Some("limits.max_cost_usd"));
        assert_eq!(
            meant("limits.timeout").as_deref(),
            Some("limits.turn_timeout or limits.run_timeout")
        );
        assert_eq!(meant("agent.stall_window").as_deref(), Some("limits.stall_window"));
        assert_eq!(meant("maxTurns").as_deref(), Some("agent.max_turns"));
        assert_eq!(meant("max-cost").as_deref(), Some("limits.max_cost_usd"));
        let timeouts = "limits.turn_timeout or limits.run_timeout";
        assert_eq!(meant("timeout").as_deref(), Some(timeouts));
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
