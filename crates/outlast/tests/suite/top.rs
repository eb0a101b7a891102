//! `top`: driven at a terminal as people do, while runs come and go and the daemon dies under it.

use std::fs;

use crate::harness::{Gate, Home, is_alive, kill, str_of, until};
use crate::loops::{Loop, request, rests};
use crate::tmux::Tmux;

/// Notes how the terminal is before and after, as the shell that comes back to it finds it.
pub(crate) fn at_top<'h>(home: &'h Home, columns: u16, rows: u16, with: &str) -> Option<Tmux<'h>> {
    let program = env!("CARGO_BIN_EXE_outlast");
    let script = format!(
        "stty -a >before; echo the shell was here; {with} '{program}' top; echo \"left with $?\"; stty -a >after; echo over"
    );
    Tmux::start(home, columns, rows, &script)
}

/// What the terminal was set to, but for its size.
fn modes(home: &Home, file: &str) -> String {
    let modes = fs::read_to_string(home.scratch().join(file)).expect("stty has written it");
    modes.lines().filter(|line| !line.contains("rows")).collect::<Vec<_>>().join("\n")
}

/// The shell has its terminal back as it was.
fn assert_left(home: &Home, tmux: &Tmux<'_>, code: i32) {
    let screen = tmux.shows("over");
    assert!(screen.contains(&format!("left with {code}")), "{screen}");
    assert!(!screen.contains("daemon up"), "{screen}");
    assert_eq!(tmux.variable("alternate_on"), "0");
    assert_eq!(tmux.variable("cursor_flag"), "1");
    assert_eq!(modes(home, "before"), modes(home, "after"));
}

/// The line of a run on the screen.
fn line<'s>(screen: &'s str, id: &str) -> &'s str {
    let found = screen.lines().find(|line| line.contains(id));
    found.unwrap_or_else(|| panic!("{id} is not on the screen:\n{screen}"))
}

#[test]
fn slow_200_runs_are_shown_and_the_last_is_reached() {
    let home = Home::new();
    let ids: Vec<String> = (0..197).map(|_| home.ok(&["run", "-d", "--", "true"])).collect();
    for id in &ids {
        assert_eq!(home.wait(id), 0);
    }
    let live: Vec<String> = (0..3).map(|_| home.start("sleep 1000")).collect();
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    let screen = tmux.until("all are counted", |screen| {
        screen.contains("3 running") && screen.contains("197 ended")
    });
    for id in &live {
        line(&screen, id);
    }
    assert!(!screen.contains(&ids[0]), "the oldest is far below:\n{screen}");
    tmux.press(&["End"]);
    let screen = tmux.shows(&format!("> {}", ids[0]));
    assert!(!screen.contains(&live[0]), "{screen}");
    // One page up from there, line by line, every run is where it belongs.
    for (above, id) in ids.iter().take(30).enumerate() {
        tmux.shows(&format!("> {id}"));
        tmux.press(&[if above % 2 == 0 { "Up" } else { "k" }]);
    }
    tmux.press(&["Home"]);
    tmux.shows(&format!("> {}", live[2]));
    tmux.press(&["a"]);
    tmux.until("only open runs are left", |screen| !screen.contains("completed"));
    tmux.press(&["q"]);
    assert_left(&home, &tmux, 0);
}

#[test]
fn output_is_followed_live_at_every_size() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "while {}; do n=$((n+1)); printf '\\033[31mround %s\\033[0m\\n' $n; done",
        gate.pass()
    );
    let id = home.ok(&["run", "-d", "--name", "rounds", "--", "sh", "-c", &script]);
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    gate.open();
    tmux.until("the list has the last line", |screen| {
        screen.contains(&id) && screen.contains("rounds") && screen.contains("round 1")
    });
    tmux.press(&["Enter"]);
    tmux.shows("output, live");
    for (round, (columns, rows)) in (2..).zip([(80, 24), (120, 40), (40, 10), (20, 5), (80, 24)]) {
        tmux.resize(columns, rows);
        gate.open();
        let screen = tmux.shows(&format!("round {round}"));
        assert!(!screen.contains("[31m"), "{screen}");
        tmux.until("it is drawn for this size", |screen| screen.contains(&id[..8]));
    }
    tmux.press(&["Escape"]);
    tmux.shows("LAST LINE");
    for (columns, rows) in [(120, 40), (40, 10), (80, 24)] {
        tmux.resize(columns, rows);
        let filled = |screen: &str| {
            let first = screen.lines().next().unwrap_or_default();
            first.contains("daemon up") && first.trim_end().chars().count() == usize::from(columns)
        };
        tmux.until("the header fills the width", filled);
    }
    home.ok(&["stop", "--now", &id]);
    tmux.until("its end is shown", |screen| line(screen, &id).contains("stopped"));
    tmux.press(&["C-c"]);
    assert_left(&home, &tmux, 0);
    let screen = tmux.screen();
    assert!(screen.starts_with("the shell was here\nleft with 0\n"), "{screen}");
}

#[test]
fn a_daemon_that_dies_is_waited_for_and_its_list_stays() {
    let home = Home::new();
    let before = home.ok(&["run", "-d", "--name", "before", "--", "true"]);
    assert_eq!(home.wait(&before), 0);
    let Some(tmux) = at_top(&home, 80, 24, "OUTLAST_NO_AUTOSTART=1") else { return };
    tmux.shows(&before);
    home.crash_daemon();
    let screen = tmux.shows("daemon gone, reconnecting");
    line(&screen, &before);
    home.ok(&["daemon", "start"]);
    tmux.shows("daemon up");
    let after = home.ok(&["run", "-d", "--name", "after", "--", "true"]);
    tmux.until("what is new is shown", |screen| {
        screen.contains(&after) && screen.contains(&before)
    });
    home.ok(&["rm", &before]);
    tmux.shows_no_more(&before);
    // Stopped is not dead: only a person starts it.
    home.ok(&["daemon", "stop"]);
    tmux.shows("it was stopped");
    home.ok(&["daemon", "start"]);
    tmux.shows("daemon up");
    tmux.press(&["q"]);
    assert_left(&home, &tmux, 0);
}

#[test]
fn a_run_that_is_looked_into_goes_on_after_a_crash() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("while {}; do n=$((n+1)); echo round $n; done", gate.pass());
    let id = home.start(&script);
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    tmux.shows(&id);
    tmux.press(&["o"]);
    gate.open();
    tmux.shows("round 1");
    for round in 2..5 {
        home.crash_daemon();
        gate.open();
        let screen = tmux.shows(&format!("round {round}"));
        assert_eq!(screen.matches("round 1\n").count(), 1, "nothing comes twice:\n{screen}");
    }
    tmux.press(&["Escape"]);
    tmux.until("the list is live again", |screen| {
        screen.contains("daemon up") && line(screen, &id).contains("round 4")
    });
    tmux.press(&["s"]);
    tmux.shows(&format!("stop {id}? y/n"));
    tmux.press(&["n"]);
    tmux.shows_no_more("y/n");
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    tmux.press(&["s", "y"]);
    tmux.until("it is stopped", |screen| line(screen, &id).contains("stopped"));
    assert_eq!(str_of(&home.show(&id), "state"), "stopped");
}

#[test]
fn what_a_loop_asks_is_answered_from_the_list() {
    let home = Home::new();
    let script = "echo thinking; [ $OUTLAST_TURN = 1 ] && { say blocked 'left or right?'; exit; }; say done ok";
    let id = Loop::of(&home, script).start();
    let other = home.start("sleep 1000");
    rests(&home, &id, "blocked", "agent_blocked");
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    let screen = tmux.until("both are there", |screen| {
        screen.contains(&other) && screen.contains("1 needs you")
    });
    let place = |id: &str| screen.lines().position(|line| line.contains(id));
    assert!(place(&id) < place(&other), "what needs a person comes first:\n{screen}");
    tmux.shows(&format!("> {id}"));
    tmux.press(&["A"]);
    tmux.shows("asks: left or right?");
    tmux.type_text("the left one, s'il te plaît");
    tmux.shows("answer: the left one");
    tmux.press(&["Enter"]);
    tmux.shows(&format!("answered {id}"));
    rests(&home, &id, "completed", "done");
    let messages = &request(&home, &id, 2, 1)["messages"];
    assert_eq!(messages[0]["text"], "the left one, s'il te plaît", "{messages}");
    tmux.until("its end is shown", |screen| line(screen, &id).contains("completed"));
    // Its turns are there to be looked into, and each one's output.
    tmux.press(&["End", "Enter"]);
    let screen = tmux.shows("turn 2  done");
    assert!(screen.contains("turn 1  blocked") && screen.contains("left or right?"), "{screen}");
    tmux.press(&["Left"]);
    let screen = tmux.until("the first turn's output is shown", |screen| {
        screen.contains("output of turn 1") && screen.contains("thinking")
    });
    assert_eq!(screen.matches("thinking").count(), 1, "{screen}");
}

#[test]
fn ps_lists_first_what_needs_a_person_and_for_scripts_the_newest() {
    let home = Home::new();
    let asks = Loop::of(&home, "say blocked 'left or right?'").start();
    rests(&home, &asks, "blocked", "agent_blocked");
    let ended = home.start("true");
    assert_eq!(home.wait(&ended), 0);
    let older = home.start("sleep 1000");
    let newer = home.start("sleep 1000");
    let (needs_me, newest) = ([&asks, &newer, &older, &ended], [&newer, &older, &ended, &asks]);
    let printed = |args: &[&str]| -> Vec<String> {
        let lines = home.ok(&[&["ps", "-a"], args].concat());
        lines.lines().skip(1).map(|line| line[..12].to_owned()).collect()
    };
    let json = |args: &[&str]| -> Vec<String> {
        let rows = home.json(&[&["ps", "-a", "--json"], args].concat());
        let rows = rows.as_array().expect("an array").iter();
        rows.map(|row| str_of(row, "id").to_owned()).collect()
    };
    assert_eq!(printed(&[]), needs_me.map(String::as_str));
    assert_eq!(printed(&["--sort", "newest"]), newest.map(String::as_str));
    assert_eq!(json(&[]), newest.map(String::as_str));
    assert_eq!(json(&["--sort", "needs-me"]), needs_me.map(String::as_str));
}

#[test]
fn what_needs_approval_is_approved_from_within_the_run() {
    let home = Home::new();
    let id = Loop::of(&home, "say done 'the report'")
        .with("output: {require_approval_before_emit: true}")
        .start();
    rests(&home, &id, "blocked", "needs_approval");
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    tmux.shows(&id);
    tmux.press(&["Enter"]);
    tmux.shows("asks: the report");
    tmux.press(&["A"]);
    tmux.shows("y approve  n deny");
    tmux.press(&["y"]);
    tmux.shows(&format!("approved {id}"));
    rests(&home, &id, "completed", "done");
    assert_eq!(home.count(&id, "Emitted"), 1);
    tmux.until("its end is shown here too", |screen| line(screen, &id).contains("completed"));
}

#[test]
fn messages_and_pauses_reach_the_run() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script =
        format!("{}; [ $OUTLAST_TURN = 3 ] && say done ok || say continue on", gate.pass());
    let id = Loop::of(&home, &script).start();
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    tmux.shows(&id);
    tmux.press(&["m"]);
    tmux.type_text("q is no command here");
    tmux.press(&["Enter"]);
    tmux.shows(&format!("sent to {id}"));
    gate.open();
    until("the second turn has begun", || (home.show(&id)["turn"] == 2).then_some(()));
    assert_eq!(request(&home, &id, 2, 1)["messages"][0]["text"], "q is no command here");
    tmux.press(&["p"]);
    tmux.shows("pauses after its current turn");
    gate.open();
    tmux.until("it is paused", |screen| line(screen, &id).contains("paused"));
    tmux.press(&["p"]);
    tmux.until("it goes on", |screen| !line(screen, &id).contains("paused"));
    gate.open();
    rests(&home, &id, "completed", "done");
}

#[test]
fn attach_takes_the_terminal_and_gives_it_back() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("echo hello; {}; echo bye", gate.pass());
    let id = home.ok(&["run", "-d", "--tty", "--", "sh", "-c", &script]);
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    tmux.shows(&id);
    tmux.press(&["t"]);
    tmux.until("the run's terminal is shown", |screen| {
        screen.contains("hello") && !screen.contains("daemon up")
    });
    tmux.press(&["C-\\"]);
    tmux.shows("daemon up");
    // Every key is for the list again, the first one too.
    tmux.press(&["?"]);
    tmux.shows("any key goes back");
    tmux.press(&["x", "t"]);
    tmux.shows_no_more("daemon up");
    gate.open();
    tmux.shows("press enter to go back to top");
    tmux.press(&["Enter"]);
    tmux.until("the end is in the list", |screen| {
        screen.contains("daemon up") && line(screen, &id).contains("completed")
    });
    tmux.press(&["q"]);
    assert_left(&home, &tmux, 0);
}

#[test]
fn whatever_ends_it_the_terminal_is_put_back() {
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        let home = Home::new();
        home.ok(&["daemon", "start"]);
        let Some(tmux) = at_top(&home, 80, 24, "sh -c 'echo $$ >pid; exec \"$@\"' sh") else {
            return;
        };
        tmux.shows("no runs yet");
        let pid = fs::read_to_string(home.scratch().join("pid")).expect("the shell wrote it");
        kill(pid.trim().parse().expect("a pid"), signal);
        assert_left(&home, &tmux, 130);
    }
}

#[test]
fn ctrl_z_gives_the_shell_its_terminal_until_it_is_called_back() {
    let home = Home::new();
    let id = home.start("sleep 1000");
    let program = env!("CARGO_BIN_EXE_outlast");
    let script = format!(
        "set -m; stty -a >before; '{program}' top; stty -a >asleep; echo asleep; read -r _; fg >/dev/null; echo \"left with $?\"; stty -a >after; echo over"
    );
    let Some(tmux) = Tmux::start(&home, 80, 24, &script) else { return };
    tmux.shows(&id);
    tmux.press(&["C-z"]);
    let screen = tmux.shows("asleep");
    assert!(!screen.contains("daemon up"), "{screen}");
    assert_eq!(modes(&home, "before"), modes(&home, "asleep"));
    tmux.press(&["Enter"]);
    tmux.until("it is back", |screen| screen.contains("daemon up") && screen.contains(&id));
    tmux.press(&["j", "q"]);
    assert_left(&home, &tmux, 0);
}

#[test]
fn a_terminal_that_is_closed_leaves_nobody_behind() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let Some(tmux) = at_top(&home, 80, 24, "sh -c 'echo $$ >pid; exec \"$@\"' sh") else { return };
    tmux.shows("no runs yet");
    let pid = fs::read_to_string(home.scratch().join("pid")).expect("the shell wrote it");
    let pid = pid.trim().parse().expect("a pid");
    assert!(is_alive(pid));
    drop(tmux);
    until("it has gone with its terminal", || (!is_alive(pid)).then_some(()));
}

#[test]
fn a_flood_of_output_does_not_drown_the_keys() {
    let home = Home::new();
    let id = home.start("exec yes the flood");
    let Some(tmux) = at_top(&home, 80, 24, "") else { return };
    tmux.shows(&id);
    tmux.press(&["Enter"]);
    tmux.until("it floods", |screen| screen.matches("the flood\n").count() > 10);
    tmux.press(&["Escape"]);
    tmux.shows("LAST LINE");
    tmux.press(&["S", "y"]);
    tmux.until("it is killed", |screen| line(screen, &id).contains("stopped"));
    tmux.press(&["q"]);
    assert_left(&home, &tmux, 0);
}

#[test]
fn without_a_terminal_it_refuses_and_says_what_does_not() {
    let home = Home::new();
    let said = home.fails(2, &["top"]);
    assert!(said.starts_with("outlast: top needs a terminal"), "{said}");
    assert!(said.contains("hint: outlast ps"), "{said}");
    assert_eq!(home.daemon_if_up(), None, "nothing was started for that");
    let Some(tmux) = at_top(&home, 80, 24, "TERM=dumb") else { return };
    let screen = tmux.shows("left with 2");
    assert!(screen.contains("hint: outlast ps"), "{screen}");
}

#[test]
fn without_colours_none_are_written() {
    let home = Home::new();
    let id = home.start("exit 1");
    assert_eq!(home.wait(&id), 1);
    for (with, has_colours) in [("NO_COLOR=1", false), ("", true)] {
        let Some(tmux) = at_top(&home, 80, 24, with) else { return };
        tmux.until("it is there", |screen| screen.contains(&id) && screen.contains("failed"));
        let drawn = tmux.painted();
        let coloured = (30..38).any(|code| drawn.contains(&format!("\x1b[{code}m")));
        assert_eq!(coloured, has_colours, "{drawn:?}");
        tmux.press(&["q"]);
        assert_left(&home, &tmux, 0);
    }
}
