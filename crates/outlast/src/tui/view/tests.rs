//! Screens as people see them, at the sizes that terminals have.

use outlast_client::follow::Piece;
use outlast_client::journal;
use outlast_wire::api::RunRow;
use outlast_wire::output::Stream;
use outlast_wire::words::{Health, Word};
use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use unicode_width::UnicodeWidthStr;

use super::*;
use crate::output::sample as views;
use crate::tui::keys::Key;
use crate::tui::model::{Event, Followed};
use crate::tui::sample::{self, NOW};

const PLAIN: Theme = Theme { colours: false };

fn model(rows: Vec<RunRow>) -> Model {
    let mut model = Model::new(NOW.parse().expect("a time"), super::super::model::Scope::All);
    model.update(Event::Hello { since: "2026-11-15T09:00:00Z".to_owned() });
    for row in rows {
        model.update(Event::Row(Box::new(row)));
    }
    model.update(Event::Listed { is_cut: false });
    model
}

fn press(model: &mut Model, keys: &str) {
    for key in keys.chars() {
        let key = if key == '\r' { Key::Enter } else { Key::Char(key) };
        model.update(Event::Key(key));
    }
}

/// The cells as lines of text.
fn text(cells: &Buffer) -> String {
    let mut text = String::new();
    for y in 0..cells.area.height {
        let mut line = String::new();
        let mut x = 0;
        while x < cells.area.width {
            let symbol = cells[(x, y)].symbol();
            line.push_str(symbol);
            x += u16::try_from(symbol.width().max(1)).expect("a symbol is narrow");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn shown(model: &mut Model, width: u16, height: u16) -> String {
    text(&draw(model, width, height, PLAIN).cells)
}

fn some() -> Vec<RunRow> {
    vec![
        RunRow {
            name: Some("größe-日本語-port".to_owned()),
            health: Health::NearLimit.into(),
            turn: 3,
            attempt: 2,
            max_turns: Some(20),
            cost_usd: 0.42,
            tokens: 15_400,
            last_line: Some("left or right?".to_owned()),
            ..sample::row("k3mx7q9w2r5t", "blocked", 190)
        },
        RunRow {
            name: Some("nightly".to_owned()),
            health: Health::Silent.into(),
            phase: Some("turn 1 attempt 1".to_owned()),
            last_line: Some(
                "\x1b[2J   Compiling 日本語 v0.1.0 and a long line that goes on".to_owned(),
            ),
            ..sample::row("0a1b2c3d4e5f", "running", 5)
        },
        RunRow {
            parent: Some("0a1b2c3d4e5f".to_owned()),
            ..sample::row("child0000000", "waiting", 2)
        },
        sample::row("zzzzzzzzzzzz", "completed", 1),
    ]
}

#[test]
fn the_list_at_80_columns() {
    insta::assert_snapshot!(shown(&mut model(some()), 80, 8), @r"
        outlast  1 needs you  1 running  1 waiting  1 ended  $0.42  15k to… daemon up 3h
          ID           NAME      STATE             HEALTH    TURN   AGE SPEND LAST LINE
        > k3mx7q9w2r5t größe-日… blocked: asks you near lim… 3.2/20 3h  $0.42 left or r…
          0a1b2c3d4e5f nightly   running           silent    1      5m        ·[2J   Co…
          child0000000           waiting                     1      2m        make -j8
          zzzzzzzzzzzz           completed                   1      1m        make -j8

        ? keys  enter open  A answer  m message  s stop  t attach  / filter  q quit
        ");
}

#[test]
fn the_list_at_120_columns() {
    insta::assert_snapshot!(shown(&mut model(some()), 120, 8), @r"
        outlast  1 needs you  1 running  1 waiting  1 ended  $0.42  15k tokens                                      daemon up 3h
          ID            NAME               STATE              HEALTH      TURN    AGE  SPEND      LAST LINE
        > k3mx7q9w2r5t  größe-日本語-port  blocked: asks you  near limit  3.2/20  3h   $0.42 15k  left or right?
          0a1b2c3d4e5f  nightly            running            silent      1       5m              ·[2J   Compiling 日本語 v0.1.…
          child0000000                     waiting                        1       2m              make -j8
          zzzzzzzzzzzz                     completed                      1       1m              make -j8

        ? keys  enter open  A answer  m message  s stop  t attach  / filter  a ended  q quit
        ");
}

fn at_work() -> RunRow {
    let agent = r#"{"kind":"claude","model":"opus","tool":{"name":"Bash","about":"cargo test","since":"2026-11-15T11:59:48Z"},
        "tools":1,"context":{"used":90000,"window":200000,"fill":0.45},
        "turn_usage":{"input_tokens":900,"output_tokens":100,"cached_tokens":0,"cost_usd":0.0,"known":false}}"#;
    RunRow {
        phase: Some("turn 1 attempt 1".to_owned()),
        tokens: 15_400,
        last_line: Some("→ Bash: cargo test".to_owned()),
        agent: Some(serde_json::from_str(agent).expect("an agent")),
        ..sample::row("0a1b2c3d4e5f", "running", 5)
    }
}

#[test]
fn an_agent_at_work_shows_its_tool_its_context_and_its_spend() {
    let mut model = model(vec![at_work(), sample::row("zzzzzzzzzzzz", "completed", 1)]);
    insta::assert_snapshot!(shown(&mut model, 80, 6), @r"
        outlast  1 running  1 ended  15k tokens                             daemon up 3h
          ID           STATE         TURN AGE CTX SPEND LAST LINE
        > 0a1b2c3d4e5f running: Bash 1    5m  45% 15k   → Bash: cargo test
          zzzzzzzzzzzz completed     1    1m            make -j8

        ? keys  enter open  p pause  m message  s stop  t attach  / filter  q quit
        ");
    press(&mut model, "\r");
    insta::assert_snapshot!(shown(&mut model, 100, 6), @r"
        0a1b2c3d4e5f  running: Bash  turn 1  5m  15k                                            daemon up 3h
        claude opus  Bash: cargo test, 12s  context 90k of 200k tokens (45%)  this turn 1k tokens
        ── output, live ────────────────────────────────────────────────────────────────────────────────────


        ? keys  p pause  m message  s stop  t attach  ←→ turn  ↑↓ scroll  end live  esc back
        ");
}

#[test]
fn the_list_at_40_columns() {
    insta::assert_snapshot!(shown(&mut model(some()), 40, 8), @r"
        outlast  1 needs you  1 ru… daemon up 3h
          ID           NAME    STATE     HEALTH
        > k3mx7q9w2r5t größe-… blocked:… near l…
          0a1b2c3d4e5f nightly running   silent
          child0000000         waiting
          zzzzzzzzzzzz         completed

        ? keys  enter open  A answer  q quit
        ");
}

#[test]
fn the_list_at_20_by_5() {
    insta::assert_snapshot!(shown(&mut model(some()), 20, 5), @r"
        outlast daemon up 3h
          ID       STATE
        > k3mx7q9… blocked:…
          0a1b2c3… running
        ? keys  enter open
        ");
}

#[test]
fn children_are_set_in() {
    let mut model = model(some());
    press(&mut model, "T");
    insta::assert_snapshot!(shown(&mut model, 80, 8), @r"
        outlast  1 needs you  1 running  1 waiting  1 ended  $0.42  15k to… daemon up 3h
          ID           NAME      STATE             HEALTH    TURN   AGE SPEND LAST LINE
        > k3mx7q9w2r5t größe-日… blocked: asks you near lim… 3.2/20 3h  $0.42 left or r…
          0a1b2c3d4e5f nightly   running           silent    1      5m        ·[2J   Co…
          └ child0000…           waiting                     1      2m        make -j8
          zzzzzzzzzzzz           completed                   1      1m        make -j8

        ? keys  enter open  A answer  m message  s stop  t attach  / filter  q quit
        ");
}

#[test]
fn a_daemon_that_is_gone_leaves_its_list() {
    let mut model = model(some());
    model.now = "2026-11-15T12:00:05Z".parse().expect("a time");
    model.update(Event::Lost { why: "it went away".to_owned() });
    model.now = "2026-11-15T12:00:12Z".parse().expect("a time");
    let picture = draw(&mut model, 80, 8, PLAIN);
    let lines = text(&picture.cells);
    let first = lines.lines().next().unwrap_or_default();
    assert!(first.ends_with("daemon gone, reconnecting 7s"), "{first}");
    assert!(lines.contains("nightly"), "{lines}");
    assert!(picture.cells[(4, 3)].modifier.contains(Modifier::DIM));
}

#[test]
fn one_run_is_looked_into() {
    let mut model = model(some());
    press(&mut model, "\r");
    let view = views::blocked("agent_blocked", Some("left or\nright?"));
    model.update(Event::Looked(Box::new(view)));
    let events = [
        r#"{"seq":2,"at":"2026-11-15T11:57:00Z","kind":"TurnStarted","turn":1,"attempt":1}"#,
        r#"{"seq":5,"at":"2026-11-15T11:59:00Z","kind":"AttemptEnded","turn":1,"attempt":1,"outcome":"exited","charge":{"input_tokens":15000,"output_tokens":400,"cost_usd_micros":420000}}"#,
        r#"{"seq":6,"at":"2026-11-15T11:59:00Z","kind":"TurnCommitted","turn":1,"attempt":1,"status":"continue","outcome":"meaningful_completion","summary":"the lexer\nis there"}"#,
        r#"{"seq":7,"at":"2026-11-15T11:59:00Z","kind":"TurnStarted","turn":2,"attempt":2}"#,
    ];
    for json in events {
        let event = journal::Event::read(json).expect("an event");
        model.update(Event::Followed { following: 1, news: Followed::Happened(Box::new(event)) });
    }
    let bytes = b"one\n\x1b[31mtwo \xe6\x97\xa5\xe6\x9c\xac\x1b[0m\nthree\r100%\n".to_vec();
    let piece = Piece::Data { stream: Stream::Stdout, at_ms: 0, bytes };
    model.update(Event::Followed { following: 1, news: Followed::Wrote(piece) });
    insta::assert_snapshot!(shown(&mut model, 80, 12), @r"
        k3mx7q9w2r5t  größe-日本語-port  blocked: asks you  near limit  tu… daemon up 3h
        asks: left or right?
        turn 1  continue, files changed  2m  $0.42  15k tokens  the lexer is there
        turn 2  running, 2 attempts      1m
        ── output, live ────────────────────────────────────────────────────────────────
        one
        two 日本
        100%



        ? keys  A answer  m message  s stop  t attach  ←→ turn  ↑↓ scroll  esc back
        ");
    for (width, height) in [(20, 5), (40, 10), (10, 3)] {
        let lines = shown(&mut model, width, height);
        assert!(lines.contains("100%"), "{width}×{height}:\n{lines}");
    }
}

fn with_budget(unknown: u32) -> outlast_wire::api::RunView {
    let pot = |total: u64, reserved: u64, committed: u64| {
        let free = total - reserved - committed;
        serde_json::json!({"total": total, "free": free, "reserved": reserved, "committed": committed, "over": 0})
    };
    let tree = serde_json::json!({
        "turns": pot(30, 8, 3), "tokens": pot(100_000, 15_000, 15_400),
        "cost_usd_micros": pot(5_000_000, 1_000_000, 420_000), "runs": pot(20, 12, 2), "unknown": unknown,
    });
    let tree = Some(serde_json::from_value(tree).expect("pots"));
    outlast_wire::api::RunView { tree, ..views::running_loop() }
}

#[test]
fn a_run_with_a_budget_for_its_tree_says_what_is_left_of_it() {
    let mut model = model(vec![sample::row("k3mx7q9w2r5t", "running", 3)]);
    press(&mut model, "\r");
    model.update(Event::Looked(Box::new(with_budget(1))));
    insta::assert_snapshot!(shown(&mut model, 80, 16), @r"
        k3mx7q9w2r5t  running  turn 1  3m                                   daemon up 3h
        port the parser
        tree     free  reserved  committed     of
        money   $3.58     $1.00    ≤$0.42?  $5.00
        tokens    69k       15k      ≤15k?   100k
        turns      19         8          3     30
        runs        6        12          2     20
        1 child did not report what it used: charged as reserved
        ── output, live ────────────────────────────────────────────────────────────────






        ? keys  p pause  m message  s stop  t attach  ←→ turn  ↑↓ scroll  esc back
        ");
    // A small screen has it in a line, and one that is smaller still shows the output.
    insta::assert_snapshot!(shown(&mut model, 80, 8), @r"
        k3mx7q9w2r5t  running  turn 1  3m                                   daemon up 3h
        port the parser
        budget $3.58 free of $5.00, $1.00 reserved; 69k tokens free of 100k tokens, 15k…
        ── output, live ────────────────────────────────────────────────────────────────



        ? keys  p pause  m message  s stop  t attach  ←→ turn  ↑↓ scroll  esc back
        ");
    for (width, height) in [(20, 5), (40, 10), (10, 3)] {
        assert_eq!(shown(&mut model, width, height).lines().count(), usize::from(height));
    }
}

/// A run that had ended was offered to be stopped and sent a message.
#[test]
fn a_run_that_has_ended_is_only_looked_at() {
    let mut model = model(vec![sample::row("zzzzzzzzzzzz", "completed", 1)]);
    let lines = shown(&mut model, 80, 6);
    assert!(lines.ends_with("? keys  enter open  / filter  a ended  q quit\n"), "{lines}");
    for key in ["s", "S", "p", "r", "A", "m"] {
        press(&mut model, key);
        let lines = shown(&mut model, 80, 6);
        assert!(lines.ends_with("zzzzzzzzzzzz has ended\n"), "{key}: {lines}");
    }
}

#[test]
fn what_is_asked_stands_at_the_bottom() {
    let mut model = model(some());
    press(&mut model, "s");
    let lines = shown(&mut model, 80, 8);
    assert!(lines.ends_with("stop k3mx7q9w2r5t (größe-日本語-port)? y/n\n"), "{lines}");
    press(&mut model, "n/nigh");
    let picture = draw(&mut model, 80, 8, PLAIN);
    assert_eq!(picture.cursor, Some(Position { x: 5, y: 7 }));
    press(&mut model, "\r");
    let asks = views::blocked("needs_input", Some("which of them, and why? ".repeat(9).as_str()));
    model.update(Event::ToAnswer(Box::new(asks)));
    press(&mut model, &"a long answer ".repeat(9));
    insta::assert_snapshot!(shown(&mut model, 60, 9), @r"
        outlast  1 needs you  1 running  1 waiting  1 … daemon up 3h
          ID           NAME    STATE   HEALTH TURN AGE LAST LINE
        > 0a1b2c3d4e5f nightly running silent 1    5m  ·[2J   Compi…


        größe-日本語-port asks: which of them, and why? which of the
        m, and why? which of them, and why? which of them, and why?
        which of them, and why? which of them, and why? which of th…
        answer: g answer a long answer a long answer a long answer
        ");
    let picture = draw(&mut model, 60, 9, PLAIN);
    assert_eq!(picture.cursor, Some(Position { x: 59, y: 8 }));
}

#[test]
fn the_keys_fit_on_an_ordinary_screen() {
    let mut model = model(some());
    press(&mut model, "?");
    let lines = shown(&mut model, 80, 24);
    for key in ["enter", "answer what it asks", "ctrl-c", "thrashing"] {
        assert!(lines.contains(key), "{lines}");
    }
    assert!(!lines.contains('…'), "{lines}");
}

#[test]
fn no_size_is_too_small() {
    for width in 0..50 {
        for height in 0..12 {
            let mut model = model(some());
            for keys in ["", "s", "\r", "m", "/", "?"] {
                press(&mut model, keys);
                let picture = draw(&mut model, width, height, PLAIN);
                assert_eq!((picture.cells.area.width, picture.cells.area.height), (width, height));
                model.update(Event::Key(Key::Escape));
            }
        }
    }
    draw(&mut model(some()), u16::MAX, u16::MAX, PLAIN);
}

#[test]
fn nothing_reaches_the_terminal_that_it_would_obey() {
    let evil = "a\x1b]0;x\x07\u{9b}31m\r\n\x1b[2Jb";
    let mut row = sample::row("k3mx7q9w2r5t", "running", 1);
    row.name = Some(evil.to_owned());
    row.last_line = Some(evil.to_owned());
    row.phase = Some(evil.to_owned());
    row.health = Word::of(evil);
    let mut model = model(vec![row]);
    for keys in ["", "s", "n\r"] {
        press(&mut model, keys);
        let picture = draw(&mut model, 200, 24, PLAIN);
        for cell in picture.cells.content() {
            assert!(!cell.symbol().contains(char::is_control), "{:?}", cell.symbol());
        }
    }
}

#[test]
fn without_colours_there_are_none() {
    let mut model = model(some());
    let colours = |model: &mut Model, theme| {
        let picture = draw(model, 80, 8, theme);
        picture.cells.content().iter().filter(|cell| cell.fg != Color::Reset).count()
    };
    assert_eq!(colours(&mut model, PLAIN), 0);
    assert!(colours(&mut model, Theme { colours: true }) > 0);
}
