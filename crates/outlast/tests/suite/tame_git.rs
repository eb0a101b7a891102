//! No command that an agent puts into a repository is run by the daemon, and none sees the daemon's environment.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::harness::{Home, lines, str_of, until};
use crate::hosted::{becomes, file, git, put, repository, start};

const SECRET: &str = "DAEMON_ONLY_SECRET";

/// A repository, and a loop whose agent does this in a worktree of its own.
struct Planted {
    home: Home,
    id: String,
    worktree: PathBuf,
}

impl Planted {
    fn new(agent: &str) -> Self {
        let home = Home::new().env(SECRET, "S3CRET");
        let work = repository(&home);
        put(&work.join("tracked.txt"), "tracked\n");
        git(&work, &["add", "."]);
        git(&work, &["commit", "-q", "-m", "second"]);
        let settings = "workspace: {strategy: worktree, retain: {completed: forever}}";
        let id = start(&home, &file(&home, "loop", &format!("{agent}\nsay done x"), settings), &[]);
        let run = becomes(&home, &id, "completed", "done");
        let worktree = PathBuf::from(str_of(&run, "workspace"));
        Self { home, id, worktree }
    }

    /// What the planted commands wrote since the daemon was last asked something.
    fn ran(&self) -> Vec<String> {
        let text = fs::read_to_string(self.home.scratch().join("ran")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

/// Says that it ran, in whose environment, and below which parent.
const EVIL: &str = r#"printf '#!/bin/sh\necho "$0 $* secret=$DAEMON_ONLY_SECRET parent=$PPID" >>"%s/ran"\ncat 2>/dev/null\n' "$HOME" >"$HOME/evil"; chmod 700 "$HOME/evil""#;

/// Everything by which a repository has commands run.
fn plant() -> String {
    format!(
        r#"{EVIL}
e="$HOME/evil"
git config filter.x.clean "$e clean"; git config filter.x.smudge "$e smudge"; git config filter.x.required true
git config filter.y.process "$e process"
git config core.fsmonitor "$e fsmonitor"; git config core.untrackedCache true
git config core.pager "$e pager"; git config pager.status true
git config diff.external "$e external"; git config diff.x.textconv "$e textconv"; git config diff.x.command "$e diff"
git config alias.status "!$e alias"; git config alias.rev-parse "!$e alias"
git config gpg.program "$e gpg"; git config log.showSignature true
git config core.sshCommand "$e ssh"; git config credential.helper "!$e credential"
git config core.editor "$e editor"; git config sequence.editor "$e editor"
git config submodule.s.update "!$e submodule"; git config core.gitProxy "$e proxy"
git config extensions.partialClone origin; git config remote.origin.promisor true
git config remote.origin.url "ssh://nowhere.invalid/x"; git config remote.origin.uploadpack "$e uploadpack"
common=$(cd "$(git rev-parse --git-common-dir)" && pwd)
for hook in post-checkout post-index-change reference-transaction pre-commit fsmonitor-watchman; do
  mkdir -p "$common/hooks"; cp "$e" "$common/hooks/$hook"; done
mkdir -p "$common/info"; printf '* filter=x diff=x\nREADME filter=y\n' >"$common/info/attributes"
rm -f "$HOME/ran""#
    )
}

/// What is told of why a workspace is kept.
fn kept(home: &Home, id: &str) -> String {
    let output = home.output(&["rm", id]);
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[test]
fn no_command_of_a_repository_runs_under_the_daemon() {
    // What is as long as before and newer than the index has to be read to be told from what was.
    let planted = Planted::new(&format!("{}\ntouch tracked.txt README", plant()));
    // A git that asks in the usual way does run them: the trap is set.
    let asked = Command::new("git").current_dir(&planted.worktree).arg("status").output();
    assert!(asked.is_ok() && !planted.ran().is_empty(), "nothing was planted: {asked:?}");
    fs::remove_file(planted.home.scratch().join("ran")).expect("it is ours");
    let (home, id) = (&planted.home, &planted.id);
    home.json(&["gc", "--dry-run", "--json"]);
    let said = kept(home, id);
    assert_eq!(planted.ran(), [""; 0], "{said}");
    until("the workspace is gone", || (!is_there(&planted.worktree)).then_some(()));
    assert_eq!(planted.ran(), [""; 0]);
}

#[test]
fn work_that_is_nowhere_else_is_still_seen_without_filters() {
    for (dirt, expected) in [
        // As long as before, so that only its content tells.
        ("printf 'TRACKED\\n' >tracked.txt", "1 changed"),
        ("rm tracked.txt", "1 changed"),
        ("chmod +x tracked.txt", "1 changed"),
        ("echo new >new", "1 untracked"),
        (
            "echo staged >staged; git -c core.hooksPath=/dev/null -c core.fsmonitor=false add staged",
            "1 changed",
        ),
        // A filter that hides every change from git hides none from us.
        (
            "git config filter.hide.clean 'git show :tracked.txt'; echo 'tracked.txt filter=hide' >>\"$common/info/attributes\"; printf 'TRACKED\\n' >tracked.txt",
            "1 changed",
        ),
    ] {
        let planted = Planted::new(&format!("{}\n{dirt}", plant()));
        let said = kept(&planted.home, &planted.id);
        let events = planted.home.ok(&["events", &planted.id, "--json"]);
        assert!(said.contains(expected) || events.contains(expected), "{dirt}: {said}\n{events}");
        assert!(is_there(&planted.worktree), "{dirt}");
        assert!(
            !planted.ran().iter().any(|line| line.contains("S3CRET")),
            "{dirt}: {:?}",
            planted.ran()
        );
    }
}

#[test]
fn what_a_repository_ignores_is_ignored_and_a_repository_within_it_is_kept() {
    let ignored = "common=$(cd \"$(git rev-parse --git-common-dir)\" && pwd); mkdir -p \"$common/info\"; echo '*.o' >>\"$common/info/exclude\"; echo x >a.o";
    // Also what the person ignores everywhere.
    let everywhere = "mkdir -p \"$HOME/.config/git\"; echo .idea >\"$HOME/.config/git/ignore\"; mkdir .idea; echo x >.idea/x";
    let planted = Planted::new(&format!("{ignored}\n{everywhere}"));
    let said = kept(&planted.home, &planted.id);
    assert!(!said.contains("untracked"), "{said}");
    until("it is gone", || (!is_there(&planted.worktree)).then_some(()));
    // Its own settings would be read, and its commits are nowhere else.
    let nested = "who='-c user.name=t -c user.email=t@example.org'; git init -q in; cd in; git $who commit -q --allow-empty -m x; cd ..; git $who add in 2>/dev/null; git $who commit -q -m nested";
    let planted = Planted::new(&format!(
        "{EVIL}\n{nested}\ncd in; git config core.fsmonitor \"$HOME/evil\"; cd .."
    ));
    let said = kept(&planted.home, &planted.id);
    assert!(is_there(&planted.worktree.join("in")), "{said}");
    assert_eq!(lines(&planted.home.scratch().join("ran")), 0);
}
