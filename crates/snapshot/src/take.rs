//! A snapshot: the tree of the workspace, a commit of it, and the ref that keeps the commit alive.
//!
//! The order is: objects, sync, ref, then a look at whether all objects are there. Made twice of the same files it is
//! the same commit, so being killed anywhere costs nothing but the time.

use std::fs::File;
use std::thread;

use outlast_wire::snapshot::{Last, Orders, Place, Repository, Taken, Where};

use crate::Failure;
use crate::area::{Area, Rules, Synced};
use crate::git::Git;
use crate::omitted;
use crate::place::{self, Around};
use crate::staged;

const WHO: &str = "Outlast";
const MAIL: &str = "outlast@localhost";
/// So many files are compared for renames; more are told as they are.
const RENAMES: &str = "-l200";

/// The ref of a run's snapshots in the repository that they go into.
pub fn ref_of(run: &str) -> String {
    format!("refs/outlast/runs/{run}/snap")
}

pub(crate) fn take(orders: &Orders, around: &Around) -> Result<Taken, Failure> {
    let place = place::open(orders, around)?;
    match once(orders, &place, around) {
        // The user's `gc --prune=now` came between the objects and the ref.
        Err(Failure::Pruned) => {
            Area::main(&around.path, &orders.git_dir, &place)?.forget()?;
            once(orders, &place, around)
        }
        taken => taken,
    }
}

/// What is known of the chain before.
pub(crate) struct Before {
    pub(crate) last: Option<Last>,
    pub(crate) head: Option<String>,
    pub(crate) branch: Option<String>,
}

fn once(orders: &Orders, place: &Place, around: &Around) -> Result<Taken, Failure> {
    let area = Area::main(&around.path, &orders.git_dir, place)?;
    let before = before(orders, place, &area, around)?;
    let has_repository = place.repository.is_some();
    let mut rules = Rules {
        place,
        max_file: orders.max_file,
        bytes_left: orders.bytes_left,
        is_first: before.last.is_none() && has_repository,
    };
    let mut synced = area.sync(&mut rules, 0)?;
    let head = before.head.as_deref();
    let staged = staged::tree(&area, place, head, &mut synced.left_out)?;
    let tree = match (&before.last, synced.is_same) {
        (Some(last), true) => last.tree.clone(),
        // An empty workspace, or a chain that was begun and has no commit yet.
        (None, true) => area.git.line(&["write-tree", "--missing-ok"])?,
        (_, false) => synced.tree.clone(),
    };
    let store = if has_repository { Where::Repository } else { Where::Own };
    let taken = |commit: String, is_same, counted: Counted| Taken {
        commit,
        tree: tree.clone(),
        head: before.head.clone(),
        branch: before.branch.clone(),
        is_same,
        files: counted.files,
        added: counted.added,
        deleted: counted.deleted,
        bytes: synced.bytes,
        left_out: synced.left_out.told.clone(),
        store,
    };
    let same = before.last.as_ref().filter(|last| last.tree == tree && last.head == before.head);
    if let Some(last) =
        same.map(|last| has_staged(&area, last, staged.as_deref())).transpose()?.flatten()
    {
        let is_same = orders.since.as_ref() == Some(&tree);
        let counted = match &orders.since {
            Some(since) if !is_same => count(&area, since, &tree)?,
            Some(_) | None => Counted::default(),
        };
        omitted::add(&orders.git_dir, &last.commit, &synced.left_out.paths)?;
        return Ok(taken(last.commit.clone(), is_same, counted));
    }
    let commit = commit(orders, &area, &before, &tree, staged.as_deref())?;
    let last = before.last.as_ref().map(|last| last.tree.as_str());
    // The disk works and so does git.
    let (synced_all, news) = thread::scope(|scope| {
        let news = scope.spawn(|| last.map(|last| News::between(&area, last, &tree)));
        (sync(&area), news.join())
    });
    synced_all?;
    let news = news.map_err(|_| Failure::Unreadable("the comparison of two trees".to_owned()))?;
    omitted::add(&orders.git_dir, &commit, &synced.left_out.paths)?;
    keep(orders, place, around, &area, &commit)?;
    let news = verify(&area, news, &tree, &commit)?;
    let is_same = orders.since.as_ref() == Some(&tree);
    let counted = match (&orders.since, news) {
        (Some(since), Some(news)) if Some(since.as_str()) == last => news.counted,
        (Some(since), Some(_)) if !is_same => count(&area, since, &tree)?,
        // After a chain was lost there is nothing to compare with.
        (Some(_) | None, Some(_) | None) => Counted::default(),
    };
    Ok(taken(commit, is_same, counted))
}

/// The workspace as it is, in objects that do not stay.
pub(crate) fn look(
    orders: &Orders,
    around: &Around,
    objects: &std::path::Path,
) -> Result<String, Failure> {
    let place = place::read(&orders.git_dir)?.ok_or_else(|| Failure::Gone("0".to_owned()))?;
    let mut area = Area::main(&around.path, &orders.git_dir, &place)?;
    // A copy, because a snapshot may be made at the same time.
    let aside = objects.join("look.git");
    place::make_dir(&aside.join("refs"))?;
    place::make_dir(&aside.join("info"))?;
    for name in ["config", "HEAD", "index", "info/attributes", "info/exclude"] {
        let copied = std::fs::copy(orders.git_dir.join(name), aside.join(name));
        copied.map_err(Failure::io(format!("copying {name}")))?;
    }
    let store = area.objects.clone();
    let own = objects.join("objects");
    place::make_dir(&own)?;
    area.git = Git::new(&around.path, &aside)
        .within(&area.top)
        .with("GIT_INDEX_FILE", aside.join("index"))
        .with("GIT_OBJECT_DIRECTORY", &own)
        .with("GIT_ALTERNATE_OBJECT_DIRECTORIES", &store);
    (area.git_dir, area.objects) = (aside, own);
    area.alternates = Some(store);
    let mut rules = Rules {
        place: &place,
        max_file: orders.max_file,
        bytes_left: orders.bytes_left,
        is_first: false,
    };
    let Synced { tree, is_same, .. } = area.sync(&mut rules, 0)?;
    if is_same { area.git.line(&["write-tree", "--missing-ok"]) } else { Ok(tree) }
}

/// What the journal and the ref say of the last snapshot. A chain that they do not agree on is begun anew.
fn before(orders: &Orders, place: &Place, area: &Area, around: &Around) -> Result<Before, Failure> {
    let Some(repository) = &place.repository else {
        let last = orders.last.clone();
        let is_there = match &last {
            Some(last) => has(&area.git, &last.commit)?,
            None => !area.git_dir.join("index").exists(),
        };
        if !is_there {
            area.forget()?;
        }
        return Ok(Before { last: last.filter(|_| is_there), head: None, branch: None });
    };
    let users = users_git(repository, around);
    let name = ref_of(&orders.run);
    let [at, head] = resolve(&users, [&name, "HEAD"])?;
    let branch = head.as_ref().map(|_| users.line(&["rev-parse", "--symbolic-full-name", "HEAD"]));
    let branch = branch.transpose()?.filter(|name| name.starts_with("refs/"));
    let last = match (&orders.last, &at) {
        (Some(last), Some(at)) if last.commit == *at => orders.last.clone(),
        // Killed after the ref was moved and before the journal had it.
        (Some(last), Some(at)) if is_child(&area.git, at, &last.commit)? => orders.last.clone(),
        (None, None) if !area.git_dir.join("index").exists() => None,
        _ => {
            area.forget()?;
            None
        }
    };
    Ok(Before { last, head, branch })
}

/// The last snapshot, if it has this tree beside it, or none if there is none.
fn has_staged<'a>(
    area: &Area,
    last: &'a Last,
    tree: Option<&str>,
) -> Result<Option<&'a Last>, Failure> {
    // Nothing is staged in a checkout without HEAD, or in one that is not a run's own.
    let known = match &last.head {
        Some(_) => staged::of(&area.git, &last.commit)?,
        None => None,
    };
    let known = known.map(|commit| area.git.line(&["rev-parse", &format!("{commit}^{{tree}}")]));
    let known = known.transpose()?;
    Ok(Some(last).filter(|_| known.as_deref() == tree))
}

fn is_child(git: &Git, commit: &str, parent: &str) -> Result<bool, Failure> {
    let Some(printed) = git.maybe(&["rev-parse", "--verify", "--quiet", &format!("{commit}^1")])?
    else {
        return Ok(false);
    };
    Ok(String::from_utf8_lossy(&printed).trim_end() == parent)
}

fn has(git: &Git, commit: &str) -> Result<bool, Failure> {
    let printed =
        git.fed(&["cat-file", "--batch-check=%(objecttype)"], format!("{commit}\n").as_bytes())?;
    Ok(printed.starts_with(b"commit"))
}

/// In the user's git directory: only to read and to set our own ref, and to read HEAD.
pub(crate) fn users_git(repository: &Repository, around: &Around) -> Git {
    Git::new(&around.path, &repository.admin).with("GIT_COMMON_DIR", &repository.common)
}

fn resolve(git: &Git, names: [&str; 2]) -> Result<[Option<String>; 2], Failure> {
    let asked = names.map(|name| format!("{name}\n")).concat();
    let printed =
        git.fed(&["cat-file", "--batch-check=%(objecttype) %(objectname)"], asked.as_bytes())?;
    let text = String::from_utf8_lossy(&printed).into_owned();
    let mut found = text.lines().map(|line| line.strip_prefix("commit ").map(str::to_owned));
    Ok([found.next().flatten(), found.next().flatten()])
}

fn commit(
    orders: &Orders,
    area: &Area,
    before: &Before,
    tree: &str,
    staged: Option<&str>,
) -> Result<String, Failure> {
    let date = format!("{} +0000", orders.date_s);
    let mut git = area.git.clone();
    for (name, value) in [
        ("GIT_AUTHOR_NAME", WHO),
        ("GIT_AUTHOR_EMAIL", MAIL),
        ("GIT_AUTHOR_DATE", &date),
        ("GIT_COMMITTER_NAME", WHO),
        ("GIT_COMMITTER_EMAIL", MAIL),
        ("GIT_COMMITTER_DATE", &date),
    ] {
        git = git.with(name, value);
    }
    let staged = staged.map(|tree| staged::commit(&git, tree)).transpose()?;
    let end = staged.as_deref().map(staged::line).unwrap_or_default();
    let message = format!("{}{end}", orders.message);
    let mut args = vec!["-c", "i18n.commitEncoding=utf-8", "commit-tree", tree];
    if let Some(last) = &before.last {
        args.extend(["-p", &last.commit]);
    }
    // So that commits of an attempt that is undone later stay reachable.
    if let Some(head) = &before.head {
        args.extend(["-p", head]);
    }
    if let Some(staged) = &staged {
        args.extend(["-p", staged]);
    }
    args.extend(["-m", &message]);
    git.line(&args)
}

/// Everything that was written is on the disk before a ref names it.
fn sync(area: &Area) -> Result<(), Failure> {
    let objects = File::open(&area.objects).map_err(Failure::io("opening the object store"))?;
    rustix::fs::syncfs(&objects)
        .map_err(|error| Failure::io("syncing the object store")(error.into()))
}

fn keep(
    orders: &Orders,
    place: &Place,
    around: &Around,
    area: &Area,
    commit: &str,
) -> Result<(), Failure> {
    if let Some(repository) = &place.repository {
        let users = users_git(repository, around);
        users.run(&["update-ref", "--no-deref", &ref_of(&orders.run), commit])?;
    }
    place::write(&area.git_dir.join("HEAD"), format!("{commit}\n").as_bytes())
}

/// Asks for all objects that this snapshot has and the one before has not.
fn verify(
    area: &Area,
    news: Option<Result<News, Failure>>,
    tree: &str,
    commit: &str,
) -> Result<Option<News>, Failure> {
    let mut asked = format!("{commit}\n{tree}\n").into_bytes();
    match &news {
        Some(Ok(news)) => asked.extend(&news.objects),
        // A comparison fails too if an object is gone, which the question below says better.
        Some(Err(_)) => {}
        None => {
            let listed = area.git.run(&["ls-tree", "-r", "-t", "--format=%(objectname)", tree])?;
            asked.extend(listed);
        }
    }
    let found = area.git.fed(&["cat-file", "--batch-check=%(objecttype)"], &asked)?;
    let is_missing = |line: &[u8]| line.ends_with(b" missing");
    if found.split(|byte| *byte == b'\n').any(is_missing) {
        return Err(Failure::Pruned);
    }
    news.transpose()
}

#[derive(Default)]
struct Counted {
    files: u64,
    added: u64,
    deleted: u64,
}

impl Counted {
    fn add(&mut self, line: &str) {
        let mut fields = line.split('\t');
        let mut number = || fields.next().and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        self.added += number();
        self.deleted += number();
        self.files += 1;
    }
}

/// What one tree has and another has not: its objects, a line for each, and the lines of its files.
#[derive(Default)]
struct News {
    objects: Vec<u8>,
    counted: Counted,
}

impl News {
    fn between(area: &Area, from: &str, to: &str) -> Result<Self, Failure> {
        let mut news = Self::default();
        if from == to {
            return Ok(news);
        }
        let args = ["diff-tree", "-r", "-t", "-M", RENAMES, "--raw", "--numstat", "--abbrev=64"];
        let printed = area.git.run(&[&args[..], &[from, to]].concat())?;
        let text = String::from_utf8_lossy(&printed).into_owned();
        for line in text.lines() {
            let Some(raw) = line.strip_prefix(':') else {
                news.counted.add(line);
                continue;
            };
            let id = raw.split(' ').nth(3).unwrap_or_default();
            if id.bytes().any(|digit| digit != b'0') {
                news.objects.extend(id.as_bytes());
                news.objects.push(b'\n');
            }
        }
        Ok(news)
    }
}

fn count(area: &Area, from: &str, to: &str) -> Result<Counted, Failure> {
    News::between(area, from, to).map(|news| news.counted)
}

/// Makes the snapshots up to `commit` another run's as well: its own names of the same objects. Answers with what sets
/// its ref in a repository, and fails if the snapshot is gone.
pub fn pin(
    from: &std::path::Path,
    to: &std::path::Path,
    run: &str,
    commit: &str,
    around: &Around,
) -> Result<Vec<std::process::Command>, Failure> {
    let gone = || Failure::Gone(commit.to_owned());
    let place = place::read(from)?.ok_or_else(gone)?;
    let area = Area::main(&around.path, from, &place)?;
    if !has(&area.git, commit)? {
        return Err(gone());
    }
    let Some(repository) = &place.repository else {
        link(&from.join("objects"), &to.join("objects"))?;
        let objects = File::open(to.join("objects")).map_err(Failure::io("the object store"))?;
        rustix::fs::syncfs(&objects)
            .map_err(|error| Failure::io("syncing the object store")(error.into()))?;
        return Ok(Vec::new());
    };
    let users = Git::new(&around.path, &repository.common);
    Ok(vec![users.command(&["update-ref", "--no-deref", &ref_of(run), commit])])
}

/// Gives each object of a store another name; a file system that cannot copies it. Objects never change.
fn link(from: &std::path::Path, to: &std::path::Path) -> Result<(), Failure> {
    place::make_dir(to)?;
    let entries = outlast_wire::again::read_dir(from);
    for entry in entries.map_err(Failure::io("reading an object store"))? {
        let entry = entry.map_err(Failure::io("reading an object store"))?;
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(Failure::io("reading an object store"))?;
        let is_unfinished = entry.file_name().to_string_lossy().starts_with("tmp_");
        if kind.is_dir() {
            link(&path, &target)?;
        } else if !is_unfinished && !target.exists() {
            std::fs::hard_link(&path, &target)
                .or_else(|_| std::fs::copy(&path, &target).map(drop))
                .map_err(Failure::io("copying an object store"))?;
        }
    }
    Ok(())
}

/// What removes the ref of a run, if it has one. What the ref kept alive is for the user's own `gc`.
pub fn drop_ref(
    git_dir: &std::path::Path,
    run: &str,
    around: &Around,
) -> Result<Vec<std::process::Command>, Failure> {
    let Some(place) = place::read(git_dir)? else { return Ok(Vec::new()) };
    let Some(repository) = place.repository.filter(|it| it.common.is_dir()) else {
        return Ok(Vec::new());
    };
    let refs = [ref_of(run), format!("{}-rest", ref_of(run))];
    let users = Git::new(&around.path, &repository.common);
    Ok(refs
        .into_iter()
        .map(|name| users.command(&["update-ref", "--no-deref", "-d", &name]))
        .collect())
}
