//! `outlast merge` and `outlast pr`: what a run has done is handed over.

use std::path::Path;

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::{MergeRun, MergedView, PullRequestView};

use crate::args::{Merge, Pr};
use crate::world::World;
use crate::{Answer, output, shell};

pub(crate) async fn merge(world: &World, args: Merge) -> Answer {
    let (with_uncommitted, dry_run) = (args.with_uncommitted, args.dry_run);
    let asked = MergeRun { into: args.into, with_uncommitted, dry_run };
    let ask = Ask::post(&run_path(&args.run, "/merge"), &asked);
    let view: MergedView = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&view)?;
        return Ok(0);
    }
    let MergedView { branch, into, result, .. } = &view;
    let at = result.as_deref().unwrap_or_default();
    let line = match (view.outcome.as_str(), &view.command) {
        ("already_merged", _) => format!("{branch} is merged into {into} already"),
        ("checked_out", Some(command)) => {
            format!("{into} is checked out, so it was not moved; type:\n{command}")
        }
        ("would_merge", _) => format!("{branch} merges into {into} without a conflict"),
        ("fast_forward", _) => format!("moved {into} to {branch}: {at}"),
        _ => format!("merged {branch} into {into}: {at}"),
    };
    output::print_line(&line)?;
    Ok(0)
}

pub(crate) async fn pr(world: &World, args: Pr) -> Answer {
    let ask = Ask::get(&run_path(&args.run, "/pr"));
    let view: PullRequestView = Session::new(&world.client).call(&ask).await?;
    if args.json {
        output::print_json(&view)?;
        return Ok(0);
    }
    if view.uncommitted > 0 {
        let count = view.uncommitted;
        let warning = format!(
            "{count} changed files are not committed, and are not part of it: outlast diff {} now",
            view.run
        );
        output::errors::warn(&[warning]);
    }
    let remote = view.remote.clone().ok_or_else(|| {
        let message = format!("{} had no remote `origin` before the first turn", view.repository);
        Problem::refusal("no_remote", message)
            .hint(format_args!("outlast merge {} --into BRANCH", view.run))
    })?;
    let forges = [github(&view, args.draft), gitlab(&view, args.draft)];
    let [preferred, other] = if remote.contains("gitlab") { [1, 0] } else { [0, 1] };
    let forge = [preferred, other].map(|at| &forges[at]);
    if !args.push {
        let push = ["git", "-C", &view.repository, "push", &remote, &view.branch];
        let push: Vec<String> = push.map(str::to_owned).to_vec();
        output::print_line(&shell::quoted(&push))?;
        output::print_line(&shell::quoted(forge[0]))?;
        return Ok(0);
    }
    let spec = format!("{}:refs/heads/{}", view.commit, view.branch);
    let push = ["push", &remote, &spec];
    let told = [("GIT_DIR", view.git_dir.as_str()), ("GIT_OBJECT_DIRECTORY", &view.objects)];
    let status = world.run_program("git", &push, Path::new(&view.repository), &told)?;
    if status != Some(0) {
        return Err(Problem::failure(format_args!("git push did not succeed")));
    }
    for command in forge {
        let (program, rest) = command.split_first().expect("a command has a name");
        let words: Vec<&str> = rest.iter().map(String::as_str).collect();
        if let Some(0) = world.run_program(program, &words, Path::new(&view.repository), &[])? {
            return Ok(0);
        }
    }
    output::print_line(&format!(
        "pushed; to open the pull request, type:\n{}",
        shell::quoted(forge[0])
    ))?;
    Ok(0)
}

fn github(view: &PullRequestView, draft: bool) -> Vec<String> {
    let head = [
        "gh",
        "pr",
        "create",
        "--head",
        &view.branch,
        "--title",
        &view.title,
        "--body",
        &view.body,
    ];
    with(head.to_vec(), view.base.as_deref().map(|base| ["--base", base]), draft)
}

fn gitlab(view: &PullRequestView, draft: bool) -> Vec<String> {
    let head = [
        "glab",
        "mr",
        "create",
        "--source-branch",
        &view.branch,
        "--title",
        &view.title,
        "--description",
        &view.body,
    ];
    with(head.to_vec(), view.base.as_deref().map(|base| ["--target-branch", base]), draft)
}

fn with<'a>(mut command: Vec<&'a str>, base: Option<[&'a str; 2]>, draft: bool) -> Vec<String> {
    command.extend(base.into_iter().flatten());
    command.extend(draft.then_some("--draft"));
    command.into_iter().map(str::to_owned).collect()
}
