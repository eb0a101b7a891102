//! The modules of one crate as a graph, and the cycles among siblings at each of its levels.

use std::collections::{BTreeMap, BTreeSet};

use super::mentions::{self, Mention, Mentions};

/// The names from the top of the crate down.
type Module<'a> = Vec<&'a str>;

pub(super) struct Source<'a> {
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    pub(super) module: Module<'a>,
}

/// Siblings of which each leads to each of the others.
pub(super) struct Cycle<'a> {
    /// The module that they are in, with slashes.
    pub(super) folder: String,
    pub(super) modules: Vec<&'a str>,
    /// One for each direction between two of them.
    pub(super) links: Vec<Link<'a>>,
}

/// A sibling uses another: the first place where it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) file: &'a str,
    pub(super) line: usize,
}

/// A module uses another.
struct Edge<'a> {
    from: Module<'a>,
    to: Module<'a>,
    file: &'a str,
    line: usize,
}

pub(super) fn cycles<'a>(sources: &[Source<'a>]) -> Vec<Cycle<'a>> {
    let read = without_tests(sources);
    let modules = modules(&read);
    let edges: Vec<Edge<'a>> = read.iter().flat_map(|read| edges(read, &modules)).collect();
    folders(&modules).iter().flat_map(|folder| in_folder(folder, &edges)).collect()
}

/// A source and what it mentions.
struct Read<'s, 'a> {
    source: &'s Source<'a>,
    mentions: Mentions<'a>,
}

fn without_tests<'s, 'a>(sources: &'s [Source<'a>]) -> Vec<Read<'s, 'a>> {
    let read = |source: &'s Source<'a>| Read { source, mentions: mentions::of(source.text) };
    let mut all: Vec<Read<'s, 'a>> = sources.iter().map(read).collect();
    let for_tests: Vec<Module<'a>> = all.iter().flat_map(Read::for_tests).collect();
    all.retain(|read| !for_tests.iter().any(|tests| read.source.module.starts_with(tests)));
    all
}

impl<'a> Read<'_, 'a> {
    fn for_tests(&self) -> impl Iterator<Item = Module<'a>> {
        self.mentions.for_tests.iter().map(|name| joined(&self.source.module, &[*name]))
    }
}

fn modules<'a>(all: &[Read<'_, 'a>]) -> BTreeSet<Module<'a>> {
    let of_one = |read: &Read<'_, 'a>| {
        let inline = read.mentions.inline.iter().map(|within| joined(&read.source.module, within));
        inline.chain([read.source.module.clone()]).collect::<Vec<_>>()
    };
    all.iter().flat_map(of_one).collect()
}

fn edges<'a>(read: &Read<'_, 'a>, modules: &BTreeSet<Module<'a>>) -> Vec<Edge<'a>> {
    let edge = |mention: &Mention<'a>| {
        let from = joined(&read.source.module, &mention.within);
        let to = resolved(&from, &mention.path, modules)?;
        Some(Edge { from, to, file: read.source.file, line: mention.line })
    };
    read.mentions.paths.iter().filter_map(edge).collect()
}

/// The innermost module that `path` names for a reader in `from`; `None` if it is of another crate.
fn resolved<'a>(
    from: &[&'a str],
    path: &[&'a str],
    modules: &BTreeSet<Module<'a>>,
) -> Option<Module<'a>> {
    let supers = path.iter().take_while(|name| **name == "super").count();
    let (base, names) = match path.first()? {
        &"crate" => (&[][..], &path[1..]),
        &"self" => (from, &path[1..]),
        &"super" => (&from[..from.len().checked_sub(supers)?], &path[supers..]),
        child if modules.contains(&joined(from, &[*child])) => (from, path),
        _ => return None,
    };
    let mut module = base.to_vec();
    for name in names {
        module.push(name);
        if !modules.contains(&module) {
            module.pop();
            break;
        }
    }
    Some(module)
}

/// Every module that has others below it.
fn folders<'a>(modules: &BTreeSet<Module<'a>>) -> BTreeSet<Module<'a>> {
    modules.iter().filter_map(|module| Some(module.split_last()?.1.to_vec())).collect()
}

fn in_folder<'a>(folder: &[&'a str], edges: &[Edge<'a>]) -> Vec<Cycle<'a>> {
    let mut links: BTreeMap<(&str, &str), Link<'a>> = BTreeMap::new();
    for link in edges.iter().filter_map(|edge| link(folder, edge)) {
        links.entry((link.from, link.to)).or_insert(link);
    }
    let links: Vec<Link<'a>> = links.into_values().collect();
    let cycle = |modules: BTreeSet<&'a str>| Cycle {
        folder: folder.join("/"),
        links: links.iter().filter(|link| is_within(link, &modules)).copied().collect(),
        modules: modules.into_iter().collect(),
    };
    components(&links).into_iter().map(cycle).collect()
}

/// The edge as one between two children of the folder, if it is one.
fn link<'a>(folder: &[&'a str], edge: &Edge<'a>) -> Option<Link<'a>> {
    let child = |module: &[&'a str]| module.strip_prefix(folder)?.first().copied();
    let (from, to) = (child(&edge.from)?, child(&edge.to)?);
    (from != to).then_some(Link { from, to, file: edge.file, line: edge.line })
}

fn is_within(link: &Link<'_>, modules: &BTreeSet<&str>) -> bool {
    modules.contains(link.from) && modules.contains(link.to)
}

/// The strongly connected components of more than one module.
fn components<'a>(links: &[Link<'a>]) -> BTreeSet<BTreeSet<&'a str>> {
    let names: BTreeSet<&str> = links.iter().map(|link| link.from).collect();
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        names.iter().map(|name| (*name, reached_from(name, links))).collect();
    let leads_to = |from: &str, to: &str| reached.get(from).is_some_and(|them| them.contains(to));
    let with = |name: &&'a str| -> BTreeSet<&'a str> {
        names
            .iter()
            .filter(|other| leads_to(name, other) && leads_to(other, name))
            .copied()
            .collect()
    };
    names.iter().map(with).filter(|component| component.len() > 1).collect()
}

fn reached_from<'a>(start: &str, links: &[Link<'a>]) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut at = vec![start];
    while let Some(here) = at.pop() {
        for link in links.iter().filter(|link| link.from == here) {
            if reached.insert(link.to) {
                at.push(link.to);
            }
        }
    }
    reached
}

fn joined<'a>(module: &[&'a str], below: &[&'a str]) -> Module<'a> {
    [module, below].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each cycle as its folder and modules. A source is its module, with slashes, and its text.
    fn found(sources: &[(&'static str, &'static str)]) -> Vec<String> {
        let source = |(path, text): &(&'static str, &'static str)| Source {
            file: path,
            text,
            module: path.split('/').filter(|name| !name.is_empty()).collect(),
        };
        let sources: Vec<_> = sources.iter().map(source).collect();
        let told = |cycle: &Cycle<'_>| format!("{}: {}", cycle.folder, cycle.modules.join(" "));
        cycles(&sources).iter().map(told).collect()
    }

    #[test]
    fn a_longer_way_around_is_a_cycle_too() {
        let sources = [
            ("a", "use crate::b::B;"),
            ("b", "use crate::c;"),
            ("c", "use super::{a, d};"),
            ("d", ""),
        ];
        assert_eq!(found(&sources), [": a b c"]);
    }

    #[test]
    fn siblings_stand_for_all_that_is_below_them() {
        let sources =
            [("a", ""), ("a/x", "use crate::b;"), ("b", ""), ("b/y/z", "use crate::a::x;")];
        assert_eq!(found(&sources), [": a b"]);
    }

    #[test]
    fn each_level_has_its_own() {
        let sources = [
            ("", "mod a;\nmod b;"),
            ("a", "use self::x::X;"),
            ("a/x", "use super::y;"),
            ("a/y", "use super::x::X;\nuse super::A;"),
            ("b", "use crate::a::x;"),
        ];
        assert_eq!(found(&sources), ["a: x y"]);
    }

    #[test]
    fn a_module_and_its_ancestors_are_no_cycle() {
        let sources = [
            ("", "mod a;\nuse a::x::X;"),
            ("a", "use x::X;"),
            ("a/x", "use super::A;\nuse crate::Top;\nuse super::super::Top as _;"),
        ];
        assert_eq!(found(&sources), [""; 0]);
    }

    #[test]
    fn the_files_of_test_modules_are_left_out() {
        let sources = [
            ("a", "use crate::b;\n#[cfg(test)]\nmod tests;"),
            ("a/tests", "use crate::b;"),
            ("b", "#[cfg(test)]\nmod life;"),
            ("b/life", "use crate::a;"),
            ("b/life/more", "use crate::a;"),
        ];
        assert_eq!(found(&sources), [""; 0]);
    }

    #[test]
    fn modules_within_a_file_are_modules() {
        let sources = [("", "mod a { use super::b; }\nmod b { use crate::a::A; }")];
        assert_eq!(found(&sources), [": a b"]);
    }
}
