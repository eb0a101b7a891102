//! Tab completes what the daemon knows by name, in the shells themselves.

use std::path::Path;
use std::process::Command;

use crate::harness::{Home, skip, text};
use crate::tmux::Tmux;

/// A home with runs of two names, and a directory whose `outlast` is ours.
fn home_with_runs() -> Home {
    let home = Home::new();
    home.ok(&["run", "-d", "--name", "nightly-build", "--", "sleep", "1000"]);
    home.ok(&["run", "-d", "--name", "weekly", "--", "true"]);
    home
}

/// Types the start of a run's name at the prompt of a shell, presses Tab, and sees the name.
fn tab_completes(shell: &str, start: &str) {
    if Command::new(shell).arg("--version").output().is_err() {
        return skip(&format!("there is no {shell}; install the package of that name"));
    }
    let home = home_with_runs();
    let bin = Path::new(env!("CARGO_BIN_EXE_outlast")).parent().expect("a directory").display();
    let script = format!("export PATH={bin}:$PATH PS1='ready> '\n{start}");
    let Some(tmux) = Tmux::start(&home, 100, 20, &script) else { return };
    tmux.shows("ready>");
    tmux.type_text("outlast logs ni");
    tmux.press(&["Tab"]);
    tmux.shows("outlast logs nightly-build");
    tmux.press(&["C-u"]);
    tmux.shows_no_more("outlast logs");
    tmux.type_text("outlast sch");
    tmux.press(&["Tab"]);
    tmux.shows("outlast schedule");
}

#[test]
fn tab_completes_a_runs_name_in_bash() {
    tab_completes(
        "bash",
        "outlast completions bash >rc; echo \"PS1='ready> '\" >>rc; bash --noprofile --rcfile rc -i",
    );
}

#[test]
fn tab_completes_a_runs_name_in_zsh() {
    let rc = "mkdir zsh; { echo 'autoload -U compinit; compinit -u -D'; outlast completions zsh; echo \"PS1='ready> '\"; } >zsh/.zshrc";
    tab_completes("zsh", &format!("{rc}; ZDOTDIR=$PWD/zsh zsh -i"));
}

#[test]
fn tab_completes_a_runs_name_in_fish() {
    let rc = "outlast completions fish >c.fish; echo 'function fish_prompt; echo \"ready> \"; end' >>c.fish";
    tab_completes("fish", &format!("{rc}; fish --no-config --init-command 'source c.fish'"));
}

#[test]
fn tab_offers_names_of_runs_sinks_and_triggers_and_starts_no_daemon() {
    let home = Home::new();
    let words = |words: &[&str]| {
        let output = home.output(&[&["__complete"], words].concat());
        let lines = text(&output.stdout);
        let names =
            lines.lines().map(|line| line.split('\t').next().unwrap_or_default().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(words(&["logs", ""]), Vec::<String>::new(), "no daemon, no runs");
    assert!(home.output(&["daemon", "status"]).status.code() == Some(7), "a key starts no daemon");
    let plain = home.start("sleep 1000");
    home.ok(&["run", "-d", "--name", "old one", "--", "true"]);
    home.wait("old one");
    home.ok(&["schedule", "add", "nightly", "--every", "1h", "--", "true"]);
    assert_eq!(words(&["logs", ""]), ["old one", &plain]);
    assert_eq!(words(&["logs", &plain[..3]]), [plain.as_str()]);
    assert_eq!(words(&["stop", ""]), [plain.as_str()], "only what is live can be stopped");
    assert_eq!(words(&["logs", "@"]), ["@last"]);
    assert_eq!(words(&["schedule", "next", ""]), ["nightly"]);
    assert_eq!(words(&["ps", "--trigger", "ni"]), ["nightly"]);
    assert_eq!(words(&["run", "-d", ""]), [":command 2"]);
    assert_eq!(words(&["run", "-f", ""]), [":files"]);
}

#[test]
fn queues_labels_and_agents_are_offered_by_their_names() {
    let home = Home::new();
    home.ok(&["run", "-d", "--queue", "gpu", "--label", "team=a", "--", "true"]);
    let offered = |words: &[&str]| text(&home.output(&[&["__complete"], words].concat()).stdout);
    assert_eq!(offered(&["run", "--queue", "g"]), "gpu\t1 run\n");
    assert_eq!(offered(&["stop", "--label", "te"]), "team=a\t1 run\n");
    assert!(offered(&["run", "--agent", "cl"]).starts_with("claude\t"));
}
