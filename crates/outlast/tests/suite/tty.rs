//! A run with a terminal of its own, and the terminals of those who come and go.

use std::fs;

use crate::harness::{Background, Gate, Home, is_alive, kill, str_of, text, until};
use crate::terminal::{Terminal, drawn};

/// A full-screen program: it says how large its terminal is and which keys were pressed, draws anew
/// when the size changes, and leaves with 5 on `q`.
const PROGRAM: &str = r#"
stty raw -echo
draw() {
    set -- $(stty size)
    printf '\033[?1049h\033[?25l\033[0m\033[2J\033[1;1H\033[7msize %s %s\033[0m' "$1" "$2"
    printf '\033[%d;%dHcorner\033[3;5H\033[1;32mkeys %s\033[0m' "$1" $(($2 - 5)) "$keys"
}
trap draw WINCH
draw
exec 3<&0
while :; do
    dd bs=1 count=1 <&3 >"$KEY" 2>/dev/null &
    until wait $!; do kill -0 $! || exit 1; done
    read -r key <"$KEY"
    if [ "$key" = q ]; then
        printf '\033[?25h\033[?1049l'
        exit 5
    fi
    keys=$keys$key
    draw
done
"#;

/// What the program has drawn when its terminal is so large and these keys were pressed.
fn drawing(rows: u16, cols: u16, keys: &str) -> String {
    let corner = cols - 5;
    drawn(
        rows,
        cols,
        &format!(
            "\x1b[?1049h\x1b[?25l\x1b[7msize {rows} {cols}\x1b[0m\x1b[{rows};{corner}Hcorner\x1b[3;5H\x1b[1;32mkeys {keys}\x1b[0m"
        ),
    )
}

fn start_program(home: &Home) -> String {
    let key = home.scratch().join("key");
    let env = format!("KEY={}", key.display());
    let id = home.ok(&["run", "-d", "--tty", "--env", &env, "--", "sh", "-c", PROGRAM]);
    until_printed(home, &id, "corner");
    id
}

/// Waits until a run has printed this, whichever client watches.
fn until_printed(home: &Home, id: &str, wanted: &str) {
    let log = home.attempt_dir(id, 1, 1).join("output.log");
    until(&format!("{wanted:?} is printed"), || {
        text(&fs::read(&log).ok()?).contains(wanted).then_some(())
    });
}

fn start_in_terminal(home: &Home, script: &str) -> String {
    home.ok(&["run", "-d", "--tty", "--", "sh", "-c", script])
}

fn attached(home: &Home, id: &str, rows: u16, cols: u16) -> Terminal {
    let mut terminal = Terminal::new(rows, cols);
    terminal.start(home, &["attach", id]);
    terminal
}

impl Terminal {
    fn until_drawn(&mut self, rows: u16, cols: u16, keys: &str) {
        let wanted = drawing(rows, cols, keys);
        let what = format!("{keys:?} is drawn in {rows} rows and {cols} columns");
        self.until(&what, |screen| screen.alternate_screen() && screen.state_formatted() == wanted);
    }

    /// Leaves with ctrl-\, and finds the terminal as it was.
    fn leave(&mut self, modes: &str) {
        self.press(b"\x1c");
        assert_eq!(self.code(), 130);
        self.assert_is_a_shells(modes, "\noutlast: detached; ");
    }

    /// As before the client came, with what it said at the end where the cursor had been.
    fn assert_is_a_shells(&self, modes: &str, said: &str) {
        assert_eq!(self.modes(), modes);
        let screen = self.screen();
        let wanted = format!("$ outlast\n{said}");
        assert!(screen.contents().starts_with(&wanted), "{}", screen.contents());
        let is_plain = !screen.alternate_screen() && !screen.hide_cursor();
        assert!(is_plain, "{}", screen.state_formatted().escape_debug());
        assert_eq!(screen.input_mode_formatted(), Self::new(2, 2).screen().input_mode_formatted());
    }
}

#[test]
fn a_full_screen_program_is_used_from_one_terminal_and_then_from_another_of_another_size() {
    let home = Home::new();
    let id = start_program(&home);

    let mut large = Terminal::new(30, 100);
    let modes = large.modes();
    large.start(&home, &["attach", &id]);
    large.until_drawn(30, 100, "");
    assert_ne!(large.modes(), modes, "keys are not passed on as they are");
    large.press(b"a");
    large.until_drawn(30, 100, "a");
    large.press(b"b");
    large.until_drawn(30, 100, "ab");
    large.leave(&modes);

    let mut small = attached(&home, &id, 12, 40);
    small.until_drawn(12, 40, "ab");
    small.press(b"c");
    small.until_drawn(12, 40, "abc");
    small.resize(15, 50);
    small.until_drawn(15, 50, "abc");
    small.press(b"q");
    assert_eq!(small.code(), 1);
    small.assert_is_a_shells(&modes, &format!("outlast: run {id} failed: exit code 5"));
    assert_eq!(home.show(&id)["exit"], serde_json::json!({"code": 5}));
}

#[test]
fn a_screen_that_is_not_drawn_again_is_painted_as_it_was() {
    let drawing = "lost\x1b[?1049h\x1b[2J\x1b[?2004h\x1b[?1h\x1b=\x1b[?1002h\x1b[?1006h\x1b[?25l\
                   \x1b[2;3H\x1b[1;38;5;202;44mbold\x1b[0m \x1b[38;2;1;2;3;4mwords\x1b[0m\
                   \x1b[5;78Hedge\x1b[7;1H宽字 ü e\u{301}\x1b[24;80H#\x1b[9;10H\x1b[3;7mat";
    let home = Home::new();
    let file = home.scratch().join("drawing");
    fs::write(&file, drawing).expect("the test's directory is ours");
    let gate = Gate::new(&home, "gate");
    let id = start_in_terminal(
        &home,
        &format!("stty raw -echo; cat '{}'; {}", file.display(), gate.pass()),
    );
    until_printed(&home, &id, drawing);
    let wanted = drawn(24, 80, drawing);
    for _ in 0..2 {
        let mut terminal = Terminal::new(24, 80);
        let modes = terminal.modes();
        terminal.start(&home, &["attach", &id]);
        terminal.until("it is painted", |screen| {
            screen.alternate_screen() && screen.state_formatted() == wanted
        });
        terminal.leave(&modes);
    }
}

#[test]
fn leaving_a_program_that_shares_the_shells_screen_goes_on_below_its_cursor() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    let drawing = r"printf '\033[2J\033[1;1Htitle\033[24;1Hstatus\033[2;20r\033[?1003h\033[5 q\033[5;1Hanswer: '";
    let id = start_in_terminal(&home, &format!("stty raw -echo; {drawing}; {}", gate.pass()));
    let mut terminal = Terminal::new(24, 80);
    let modes = terminal.modes();
    terminal.start(&home, &["attach", &id]);
    terminal.until("it is painted", |screen| {
        screen.contents().ends_with("status") && screen.cursor_position() == (4, 8)
    });
    terminal.press(b"\x1c");
    assert_eq!(terminal.code(), 130);
    assert_eq!(terminal.modes(), modes);
    let screen = terminal.screen();
    let lines: Vec<String> = screen.rows(0, 80).collect();
    assert_eq!(
        (&*lines[0], &*lines[4], &*lines[5]),
        ("title", "answer: ", &*format!("outlast: detached; {id} keeps running"))
    );
    assert!(
        !screen.contents().contains("status"),
        "what was below is still there:\n{}",
        screen.contents()
    );
    assert_eq!(screen.input_mode_formatted(), Terminal::new(2, 2).screen().input_mode_formatted());
    // The whole screen scrolls again.
    terminal.say(&"line\r\n".repeat(30));
    terminal.until("a shell goes on", |screen| screen.contents() == ["line"; 23].join("\n"));
}

/// It may be over before its terminal is there to look at.
#[test]
fn a_run_that_is_soon_over_is_shown_all_the_same() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    for _ in 0..10 {
        let mut terminal = Terminal::new(24, 80);
        let modes = terminal.modes();
        terminal.start(&home, &["run", "--tty", "--", "sh", "-c", "echo hello; exit 7"]);
        assert_eq!(terminal.code(), 1);
        assert_eq!(terminal.modes(), modes);
        let shown = terminal.screen().contents();
        assert!(shown.contains("hello\noutlast: run "), "{shown:?}");
    }
}

/// Asks the terminal, and reads up to the last letter of the answer.
const ASK: &str = r#"
ask() {
    printf "$1"
    answer=
    until case $answer in *"$2") ;; *) false ;; esac; do answer=$answer$(dd bs=1 count=1 2>/dev/null); done
    printf '%s' "$answer" | tr '\033' '^'
}
"#;

#[test]
fn a_program_that_asks_its_terminal_is_answered_while_nobody_is_attached() {
    let home = Home::new();
    let script = format!(
        r"{ASK} stty raw -echo; printf '\033[3;7H'; ask '\033[6n' R; ask '\033[c' c; exit 5"
    );
    let id = start_in_terminal(&home, &script);
    assert_eq!(home.wait(&id), 1);
    assert_eq!(home.show(&id)["exit"], serde_json::json!({"code": 5}));
    let log = home.ok(&["logs", &id]);
    assert!(log.contains("^[3;7R") && log.contains("^[?62;22c"), "{log:?}");
}

#[test]
fn a_program_that_asks_is_answered_once_by_the_terminal_that_is_attached() {
    let home = Home::new();
    let script = format!(
        r"{ASK} stty raw -echo; printf hello; dd bs=1 count=1 2>/dev/null; printf '\033[2J\033[4;9H'; ask '\033[6n' R;
        printf ' next '; dd bs=1 count=1 2>/dev/null; sleep 600"
    );
    let id = start_in_terminal(&home, &script);
    let mut terminal = attached(&home, &id, 24, 80);
    terminal.until_shows("hello");
    terminal.press(b"a");
    terminal.until_shows("^[4;9R next");
    terminal.press(b"z");
    terminal.until_shows("^[4;9R next z");
}

#[test]
fn two_terminals_show_the_same_and_one_that_is_killed_is_not_missed() {
    let home = Home::new();
    let id = start_program(&home);
    let mut one = attached(&home, &id, 20, 60);
    one.until_drawn(20, 60, "");
    let mut two = attached(&home, &id, 20, 60);
    two.until_drawn(20, 60, "");
    one.press(b"a");
    two.until_drawn(20, 60, "a");
    two.press(b"b");
    for terminal in [&mut one, &mut two] {
        terminal.until_drawn(20, 60, "ab");
    }
    one.client().kill().expect("it is our child");
    one.status();
    two.press(b"c");
    two.until_drawn(20, 60, "abc");

    // The client that came last decides how large it is.
    let mut three = attached(&home, &id, 10, 40);
    three.until_drawn(10, 40, "abc");
    two.until_shows("size 10 40");
    three.press(b"q");
    assert_eq!((two.code(), three.code()), (1, 1));
}

#[test]
fn a_terminal_that_takes_nothing_holds_nobody_up_and_is_painted_when_it_does_again() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = start_in_terminal(
        &home,
        &format!("stty raw -echo; echo ready; {}; seq 400000; {}", gate.pass(), gate.pass()),
    );
    let mut stopped = attached(&home, &id, 24, 80);
    let mut other = attached(&home, &id, 24, 80);
    for terminal in [&mut stopped, &mut other] {
        terminal.until_shows("ready");
    }
    kill(stopped.client().id(), "STOP");
    gate.open();
    other.until_shows("400000");
    kill(stopped.client().id(), "CONT");
    let wanted = other.screen().state_formatted();
    stopped.until("it is up to date", |screen| screen.state_formatted() == wanted);
    gate.open();
    assert_eq!((stopped.code(), other.code()), (0, 0));
}

#[test]
fn a_terminal_is_painted_again_after_the_daemon_was_killed() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        r"stty raw -echo; printf '\033[2J\033[Hbefore'; {}; printf '\033[3;3Hmeanwhile'; dd bs=1 count=1 2>/dev/null; exit 5",
        gate.pass()
    );
    let id = start_in_terminal(&home, &script);
    let mut terminal = Terminal::new(24, 80);
    let modes = terminal.modes();
    terminal.start(&home, &["attach", &id]);
    terminal.until_shows("before");
    // The client is held still, so that it is surely not there when the program draws.
    kill(terminal.client().id(), "STOP");
    home.crash_daemon();
    gate.open();
    until_printed(&home, &id, "meanwhile");
    kill(terminal.client().id(), "CONT");
    let wanted = drawn(24, 80, "before\x1b[3;3Hmeanwhile");
    terminal.until("it is painted again", |screen| screen.state_formatted() == wanted);
    terminal.press(b"x");
    assert_eq!(terminal.code(), 1);
    assert_eq!(terminal.modes(), modes);
    assert_eq!(home.show(&id)["exit"], serde_json::json!({"code": 5}));
    assert_eq!(home.count(&id, "TurnStarted"), 1);
}

#[test]
fn ctrl_c_is_the_programs_and_a_signal_to_the_client_detaches() {
    let home = Home::new();
    let id = start_in_terminal(
        &home,
        "trap 'echo caught' INT; echo ready; while :; do read -r line; done",
    );
    for signal in ["INT", "QUIT", "HUP", "TERM"] {
        let mut terminal = Terminal::new(24, 80);
        let modes = terminal.modes();
        terminal.start(&home, &["attach", &id]);
        terminal.until_shows("ready");
        kill(terminal.client().id(), signal);
        assert_eq!(terminal.code(), 130, "{signal}");
        assert_eq!(terminal.modes(), modes, "{signal}");
    }
    let mut terminal = attached(&home, &id, 24, 80);
    terminal.until_shows("ready");
    terminal.press(b"\x03");
    terminal.until_shows("caught");
    assert_eq!(str_of(&home.show(&id), "state"), "running");
}

#[test]
fn ctrl_backslash_and_ctrl_c_leave_a_run_without_a_terminal() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    let id = home.start(&format!("echo ready; {}", gate.pass()));
    for key in [b"\x1c", b"\x03"] {
        let mut terminal = attached(&home, &id, 24, 80);
        terminal.until_shows("ready");
        terminal.press(key);
        assert_eq!(terminal.code(), 130);
        terminal.until_shows(&format!("detached; {id} keeps running"));
        assert_eq!(str_of(&home.show(&id), "state"), "running");
    }
}

/// The exit code of `wait` from a shell that shares nothing with the shell that started the run.
fn wait_from_elsewhere(home: &Home, id: &str) -> i32 {
    let mut command = home.command("env");
    let outlast_home = format!("OUTLAST_HOME={}", home.path().display());
    command.args([
        "-i",
        &outlast_home,
        env!("CARGO_BIN_EXE_outlast"),
        "wait",
        id,
        "--timeout",
        "60s",
    ]);
    let output = command.current_dir("/").output().expect("there is an env");
    output.status.code().expect("it is not killed")
}

fn until_gone(client: Option<Background>) {
    let mut client = client.expect("a client was started");
    client.0.wait().expect("it is our child");
}

#[test]
fn a_run_started_detached_outlasts_the_hang_up_of_its_terminal() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("{}; exit 7", gate.pass());
    let mut terminal = Terminal::new(24, 80);
    // No daemon is there yet: it, too, is started at this terminal.
    terminal.start(&home, &["run", "-d", "--name", "left", "--", "sh", "-c", &script]);
    assert_eq!(terminal.code(), 0);
    let (daemon, pid) = (home.daemon_pid(), home.pid("left"));
    terminal.hang_up();
    assert!(is_alive(pid));
    gate.open();
    assert_eq!(wait_from_elsewhere(&home, "left"), 1);
    assert_eq!(home.show("left")["exit"], serde_json::json!({"code": 7}));
    assert_eq!(home.daemon_pid(), daemon, "the daemon went with the terminal");
}

#[test]
fn an_attached_run_outlasts_the_hang_up_of_its_terminal_and_the_death_of_its_client() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("echo ready; {}; echo done; exit 7", gate.pass());
    for kind in ["plain", "tty"] {
        for death in ["closed", "killed"] {
            let name = format!("{kind}-{death}");
            let tty: &[&str] = if kind == "tty" { &["--tty"] } else { &[] };
            let args = [&["run", "--name", &name], tty, &["--", "sh", "-c", &script]].concat();
            let mut terminal = Terminal::new(24, 80);
            terminal.start(&home, &args);
            terminal.until_shows("ready");
            let daemon = home.daemon_pid();
            if death == "killed" {
                kill(terminal.client().id(), "KILL");
            }
            until_gone(terminal.hang_up());
            assert_eq!(str_of(&home.show(&name), "state"), "running", "{name}");
            gate.open();
            assert_eq!(wait_from_elsewhere(&home, &name), 1, "{name}");
            assert_eq!(home.show(&name)["exit"], serde_json::json!({"code": 7}), "{name}");
            assert!(home.ok(&["logs", &name]).ends_with("done"), "{name}");
            assert_eq!(home.daemon_pid(), daemon, "the daemon went with the terminal");
        }
    }
}

#[test]
fn without_a_terminal_here_a_run_with_one_is_watched_as_it_prints() {
    let home = Home::new();
    let id = start_in_terminal(&home, "stty size; printf 'a\\033[1mb'; exit 7");
    let output = home.output(&["attach", &id]);
    let seen = (text(&output.stdout), output.status.code());
    assert_eq!(seen, ("24 80\r\na\x1b[1mb".to_owned(), Some(1)), "{}", text(&output.stderr));
    assert!(home.fails(2, &["run", "--tty", "--", "true"]).contains("hint:"));
}
