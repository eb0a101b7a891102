//! The runs above and below a run, as their users name them.

use std::collections::BTreeMap;

use outlast_client::ask::{Ask, run_path};
use outlast_client::session::Session;
use outlast_wire::api::{RunTree, RunView};

/// Of more children the ids are enough; `outlast tree` has the rest.
const MOST_NAMED: usize = 20;

/// The same run with names beside the ids of its parent and children: `tests (k3mx7q9w2r5t)`. An id stays where the
/// run has no name, or cannot be asked about.
pub(super) async fn named(session: &mut Session<'_>, view: RunView) -> RunView {
    let parent = match &view.parent {
        Some(parent) => {
            let above = session.call::<RunView>(&Ask::get(&run_path(parent, ""))).await;
            Some(with_name(parent, above.ok().and_then(|above| above.name).as_deref()))
        }
        None => None,
    };
    let names = match view.children.len() {
        1..=MOST_NAMED => names_below(session, &view.id).await,
        _ => BTreeMap::new(),
    };
    let children = view.children.iter();
    let children = children.map(|id| with_name(id, names.get(id).map(String::as_str))).collect();
    RunView { parent, children, ..view }
}

async fn names_below(session: &mut Session<'_>, run: &str) -> BTreeMap<String, String> {
    let Ok(tree) = session.call::<RunTree>(&Ask::get(&run_path(run, "/tree"))).await else {
        return BTreeMap::new();
    };
    let named = tree.children.into_iter().map(|child| child.run);
    named.filter_map(|row| Some((row.id, row.name?))).collect()
}

fn with_name(id: &str, name: Option<&str>) -> String {
    name.map_or_else(|| id.to_owned(), |name| format!("{name} ({id})"))
}
