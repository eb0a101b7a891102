//! Values of secret variables reach neither the spool, nor a viewer, nor a record.

use std::io::Write;

use outlast_wire::output::Stream;
use outlast_wire::shim::{EnvVar, NeverStarted, Order, Role, SecretRules, Window};

use crate::harness::{Attempt, EPOCH, never_started, put};

const SECRET: &str = "sk-Xq7vT2-never-on-disk";

fn with_secret(script: &str) -> Attempt {
    let mut attempt = Attempt::sh(script);
    attempt.spec.env.push(EnvVar { name: "MY_TOKEN".into(), value: SECRET.into() });
    attempt
}

fn output(attempt: &Attempt) -> String {
    String::from_utf8(attempt.output()).expect("text")
}

#[test]
fn a_secret_is_hidden_wherever_it_is_printed_and_counted_as_it_was_kept() {
    let script =
        r#"echo "a $MY_TOKEN b $MY_TOKEN"; echo "c$MY_TOKEN" >&2; printf '{"k":"%s"}' "$MY_TOKEN""#;
    let attempt = with_secret(script);
    let records = attempt.run();
    let stdout = "a [MY_TOKEN] b [MY_TOKEN]\n{\"k\":\"[MY_TOKEN]\"}";
    assert_eq!(attempt.stream(Stream::Stdout), stdout.as_bytes());
    assert_eq!(attempt.stream(Stream::Stderr), b"c[MY_TOKEN]\n");
    let bytes = stdout.len() + "c[MY_TOKEN]\n".len();
    let told = format!("{records:?}");
    assert!(told.contains(&format!("output_bytes: {bytes},")), "{told}");
}

/// The test lets the command go on once it has printed the first half.
#[test]
fn halves_in_two_writes_are_found() {
    let attempt = with_secret(
        r#"printf '%s' "x${MY_TOKEN%??????????}"; read go <"$T/fifo"; echo "${MY_TOKEN#?????????????}.""#,
    );
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    shim.peer.until_started();
    shim.peer.until_output(0);
    writeln!(std::fs::OpenOptions::new().write(true).open(fifo).expect("opens")).expect("writes");
    shim.peer.until_over();
    assert_eq!(output(&attempt), "x[MY_TOKEN].\n");
}

#[test]
fn a_prompt_that_ends_like_a_secret_begins_is_shown_while_the_command_waits() {
    let attempt = with_secret(r#"printf 'yes or sk'; read go <"$T/fifo"; printf '?'"#);
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    shim.peer.until_started();
    assert_eq!(shim.peer.until_output("yes or s".len() as u64), "yes or sk".len() as u64);
    assert_eq!(output(&attempt), "yes or sk");
    writeln!(std::fs::OpenOptions::new().write(true).open(fifo).expect("opens")).expect("writes");
    shim.peer.until_over();
    assert_eq!(output(&attempt), "yes or sk?");
}

#[test]
fn of_a_secret_that_comes_slowly_only_the_start_is_shown() {
    let attempt = with_secret(
        r#"printf '%s' "${MY_TOKEN%????????????????????}"; read go <"$T/fifo"; echo "${MY_TOKEN#???}.""#,
    );
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    shim.peer.until_started();
    assert_eq!(shim.peer.until_output(2), 3);
    writeln!(std::fs::OpenOptions::new().write(true).open(fifo).expect("opens")).expect("writes");
    shim.peer.until_over();
    assert_eq!(output(&attempt), "sk-[MY_TOKEN].\n");
}

#[test]
fn a_viewer_of_a_terminal_sees_no_secret() {
    let mut attempt = with_secret(r#"read go; echo "<$MY_TOKEN>"; read go"#);
    attempt.spec.tty = Some(Window { rows: 24, cols: 80 });
    let mut shim = attempt.start();
    shim.peer.until_started();
    let mut viewer = attempt.connect();
    viewer.hello(EPOCH, Role::Viewer);
    viewer.say(Order::Attach { window: Window { rows: 24, cols: 80 } });
    viewer.press(b"\n");
    viewer.until_screen(24, 80, |screen| screen.contents().contains("<[MY_TOKEN]>"));
    // One that comes later is painted the model, which has not seen it either.
    let mut late = attempt.connect();
    late.hello(EPOCH, Role::Viewer);
    late.say(Order::Attach { window: Window { rows: 24, cols: 80 } });
    late.until_screen(24, 80, |screen| screen.contents().contains("<[MY_TOKEN]>"));
    viewer.press(b"\n");
    shim.peer.until_over();
    assert!(!output(&attempt).contains(SECRET));
    assert!(output(&attempt).contains("<[MY_TOKEN]>"));
}

#[test]
fn the_operators_rules_are_those_of_the_spec() {
    let run = |rules: SecretRules| {
        let mut attempt = with_secret(r#"echo "$MY_TOKEN $PLAIN""#);
        attempt.spec.env.push(EnvVar { name: "PLAIN".into(), value: "only-plain-1".into() });
        attempt.spec.secrets = rules;
        attempt.run();
        output(&attempt)
    };
    let list = |name: &str| vec![name.to_owned()];
    let rules = SecretRules { names: list("PLA*"), ..SecretRules::default() };
    assert_eq!(run(rules), "[MY_TOKEN] [PLAIN]\n");
    let rules = SecretRules { off: list("MY_TOKEN"), ..SecretRules::default() };
    assert_eq!(run(rules), format!("{SECRET} only-plain-1\n"));
    let rules = SecretRules { redact: false, names: list("PLAIN"), ..SecretRules::default() };
    assert_eq!(run(rules), format!("{SECRET} only-plain-1\n"));
}

#[test]
fn no_record_has_a_secret_in_it() {
    let mut attempt = with_secret("");
    attempt.spec.argv = vec![SECRET.to_owned()];
    let why = never_started(&attempt.run());
    let hidden = "[MY_TOKEN]: command not found".to_owned();
    assert_eq!(why, Some((NeverStarted::CommandNotFound, hidden)));

    let attempt = with_secret(
        r#"sh -c ': >"$T/up"; read go <"$T/fifo"' "$MY_TOKEN" & until [ -e "$T/up" ]; do :; done"#,
    );
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    shim.peer.until(|record| format!("{record:?}").contains("[MY_TOKEN]"));
    writeln!(std::fs::OpenOptions::new().write(true).open(fifo).expect("opens")).expect("writes");
    shim.peer.until_over();
    let events = std::fs::read_to_string(attempt.dir.events()).expect("there are records");
    assert!(!events.contains(SECRET), "{events}");
}

#[test]
fn an_environment_that_cannot_be_read_is_not_quoted() {
    let attempt = with_secret("true");
    put(&attempt.path("env.json"), format!(r#"["{SECRET}"]"#).as_bytes());
    let (code, why) = never_started(&attempt.run()).expect("it never started");
    assert_eq!(code, NeverStarted::BadSpec);
    assert!(why.ends_with("env.json: no list of variables, at line 1 column 26"), "{why}");
}
