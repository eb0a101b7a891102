//! `outlast diff`: what turns changed in the workspace.

use outlast_client::ask::{Ask, run_path};
use outlast_client::session::Session;
use outlast_wire::api::{DiffFile, DiffView};

use crate::Answer;
use crate::args::Diff;
use crate::output::{self, errors, printable};
use crate::world::World;

pub(crate) async fn diff(world: &World, args: Diff) -> Answer {
    let wants_patch = !args.stat && !args.name_only;
    let ask = Ask::get(&run_path(&args.run, "/diff"))
        .query("patch", wants_patch)
        .query_if("turns", args.turns.as_ref())
        .query_if("paths", (!args.paths.is_empty()).then(|| args.paths.join("\n")));
    let view: DiffView = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&view)?;
        return Ok(0);
    }
    let page = if args.name_only {
        view.files.iter().map(|file| format!("{}\n", printable(&file.path))).collect()
    } else if args.stat {
        stat(&view)
    } else {
        patch(&view)
    };
    output::print(&page)?;
    errors::warn(&unshown(&view));
    Ok(0)
}

/// The turns at the end of the run that have no snapshot, and are not in the diff.
fn unshown(view: &DiffView) -> Vec<String> {
    let Some(last) = view.unshown_until else { return Vec::new() };
    let shown = view.to.strip_prefix("turn ").and_then(|turn| turn.parse().ok()).unwrap_or(0);
    let what = match shown + 1 {
        first if first == last => format!("turn {last} has no snapshot"),
        first => format!("turns {first} to {last} have no snapshot"),
    };
    vec![format!("{what}, and what changed since {} is not shown", view.to)]
}

/// The diff as git prints it, with nothing that a terminal would obey.
fn patch(view: &DiffView) -> String {
    let Some(patch) = &view.patch else { return String::new() };
    let mut page: String = patch
        .split_inclusive('\n')
        .map(|line| {
            let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
            let tabs: Vec<String> = text.split('\t').map(printable).collect();
            format!("{}{end}", tabs.join("\t"))
        })
        .collect();
    if view.patch_cut {
        page.push_str("\n… the diff is longer: name paths after --, or look at --stat\n");
    }
    page
}

fn stat(view: &DiffView) -> String {
    let name = |file: &DiffFile| match &file.was {
        Some(was) => printable(&format!("{was} => {}", file.path)),
        None => printable(&file.path),
    };
    let width = view.files.iter().map(|file| name(file).chars().count()).max().unwrap_or(0).min(60);
    let mut page: String = view
        .files
        .iter()
        .map(|file| {
            let lines = match (file.added, file.deleted) {
                (Some(added), Some(deleted)) => format!("+{added} -{deleted}"),
                _ => "binary".to_owned(),
            };
            format!(" {:<width$} | {lines}  {}\n", name(file), file.change)
        })
        .collect();
    let (count, more) = (view.files.len(), if view.files_cut { " and more" } else { "" });
    let files = if count == 1 { "file" } else { "files" };
    page.push_str(&format!(
        " {count} {files}{more} changed, +{} -{} ({} to {})\n",
        view.added, view.deleted, view.from, view.to
    ));
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> DiffView {
        let file = |path: &str, was: Option<&str>, change: &str, added| DiffFile {
            path: path.to_owned(),
            was: was.map(str::to_owned),
            change: change.to_owned(),
            added,
            deleted: added.map(|_| 1),
        };
        DiffView {
            from: "before the first turn".to_owned(),
            to: "turn 2".to_owned(),
            added: 5,
            deleted: 2,
            files: vec![
                file("a\u{1b}", None, "modified", Some(2)),
                file("new", Some("old"), "renamed", Some(3)),
                file("image", None, "added", None),
            ],
            patch: Some("+\u{1b}[31mred\tx\n".to_owned()),
            ..DiffView::default()
        }
    }

    #[test]
    fn files_have_their_lines_and_nothing_that_a_terminal_obeys() {
        assert_eq!(
            stat(&view()),
            " a·         | +2 -1  modified\n old => new | +3 -1  renamed\n image      | binary  added\n \
             3 files changed, +5 -2 (before the first turn to turn 2)\n"
        );
        assert_eq!(patch(&view()), "+·[31mred\tx\n");
    }
}
