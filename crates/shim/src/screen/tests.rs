//! What a viewer sees and what a program is answered, with and without a backlog.

use super::*;

const WINDOW: Window = Window { rows: 5, cols: 20 };

/// Numbers below a bound, the same on each run.
fn random() -> impl FnMut(usize) -> usize {
    let mut seed = 1u64;
    move |bound| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("31 bits") % bound
    }
}

fn small(n: usize) -> u16 {
    u16::try_from(n).expect("small")
}

#[test]
fn questions_are_answered_also_when_they_come_in_pieces() {
    let cases: [(&[u8], &[u8]); 9] = [
        (b"\x1b[5n", b"\x1b[0n"),
        (b"ab\r\ncd\x1b[6n", b"\x1b[2;3R"),
        (b"\x1b[c", b"\x1b[?62;22c"),
        (b"\x1b[>c", b"\x1b[>1;10;0c"),
        (b"\x1b[18t", b"\x1b[8;5;20t"),
        (b"\x1b[?2026$p", b"\x1b[?2026;0$y"),
        (b"\x1b]11;?\x07", b"\x1b]11;rgb:0000/0000/0000\x1b\\"),
        (b"\x1b]10;?\x1b\\", b"\x1b]10;rgb:d0d0/d0d0/d0d0\x1b\\"),
        (b"\x1b[>q", b"\x1bP>|outlast\x1b\\"),
    ];
    for (question, answer) in cases {
        let mut whole = Screen::new(WINDOW);
        assert_eq!(whole.show(question), answer, "{}", question.escape_ascii());
        let mut pieces = Screen::new(WINDOW);
        let said: Vec<u8> = question.iter().flat_map(|byte| pieces.show(&[*byte])).collect();
        assert_eq!(said, answer, "in pieces: {}", question.escape_ascii());
    }
}

#[test]
fn a_repaint_brings_another_terminal_to_the_same_screen() {
    let mut screen = Screen::new(WINDOW);
    screen.show(b"below\x1b[?1049h\x1b[?2004h\x1b[?1h\x1b[?1002h\x1b[?1006h\x1b]2;title\x07\x1b[3;4H\x1b[1;31mred");
    let mut other = Screen::new(WINDOW);
    other.show(b"something else entirely\r\n\x1b[?1000h");
    other.show(&screen.repaint());
    let (one, two) = (screen.parser.screen(), other.parser.screen());
    assert_eq!(two.contents_formatted(), one.contents_formatted());
    assert_eq!(two.input_mode_formatted(), one.input_mode_formatted());
    assert_eq!(two.cursor_position(), (2, 6));
    assert!(two.alternate_screen());
    assert_eq!(other.parser.callbacks().title, b"title");
}

/// A viewer that fell behind may have missed that the mouse was let go.
#[test]
fn a_repaint_switches_off_what_the_program_did_not_leave_on() {
    let mut other = Screen::new(WINDOW);
    other.show(b"\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b=\x1b[5 q\x1b[2;4r\x1b[?25l");
    other.show(&Screen::new(WINDOW).repaint());
    let plain = Screen::new(WINDOW);
    let (one, two) = (plain.parser.screen(), other.parser.screen());
    assert_eq!(two.state_formatted(), one.state_formatted());
}

/// The model as it is, but for its count of rows that went off the top.
fn state(parser: &Parser<Listener>) -> String {
    let state = format!("{:?} {:?}", parser.screen(), parser.callbacks().input);
    let parts = state.split("unbounded_len: ");
    parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit())).collect()
}

/// Output as programs print it: mostly lines, some colours, now and then anything.
fn random_output(next: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let lines: [&[u8]; 8] = [
        b"\r\n",
        b"a line\r\n",
        b"a line that is longer than the window is wide\r\n",
        b"\x1b[1;31mred\x1b[0m\r\n",
        b"50 %\r100 %\x1b[K\r\n",
        "宽字 👩‍👩‍👧 e\u{301}\r\n".as_bytes(),
        b"\ttab\x08\x08 \xff\xe4\xb8\r\n",
        b"no return\n",
    ];
    let others: [&[u8]; 24] = [
        b"\x1b[4m",
        b"\x1b[m",
        b"\x1b[38;5;",
        b"17",
        b"m",
        b"\x1b",
        b"[",
        b"\x1b[2;4r",
        b"\x1b[r",
        b"\x1b[?6h",
        b"\x1b[H",
        b"\x1b[9;3H",
        b"\x1b[6n",
        b"\x1b[?1049h",
        b"\x1b[?1049l",
        b"\x1b]2;title\x07",
        b"\x1b]11;?",
        b"\x1bPq text\x9c more",
        b"\x1b\\",
        b"\x18",
        b"\x1b[5b",
        b"\x1bM",
        b"\x1b7",
        b"\x1b8",
    ];
    let mut output = Vec::new();
    for _ in 0..next(6) {
        output.extend_from_slice(others[next(others.len())]);
    }
    for _ in 0..next(60) {
        output.extend_from_slice(lines[next(lines.len())]);
        if next(40) == 0 {
            output.extend_from_slice(others[next(5)]);
        }
    }
    output
}

#[test]
fn a_backlog_changes_neither_the_screen_nor_the_answers() {
    let mut next = random();
    let mut dropped = 0;
    for case in 0..400 {
        let window = Window { rows: small(1 + next(6)), cols: small(2 + next(12)) };
        let bounds = Bounds { backlog_max: 40 + next(300), scrolled_min: 32 };
        let mut lazy = Screen::bounded(window, bounds);
        let (rows, cols) = sides(window);
        let mut eager = Parser::new_with_callbacks(rows, cols, 0, Listener::default());
        for _ in 0..12 {
            let output = random_output(&mut next);
            let mut said = Vec::new();
            let mut rest = output.as_slice();
            while !rest.is_empty() {
                let (piece, others) = rest.split_at((1 + next(80)).min(rest.len()));
                let held = lazy.backlog.len();
                said.extend(lazy.show(piece));
                dropped += usize::from(lazy.backlog.len() > 0 && lazy.backlog.len() < held);
                rest = others;
            }
            eager.process(&output);
            let answered = std::mem::take(&mut eager.callbacks_mut().answers);
            assert_eq!(said, answered, "case {case}: {}", output.escape_ascii());
            if next(3) > 0 {
                continue;
            }
            lazy.repaint();
            assert!(
                state(&lazy.parser) == state(&eager),
                "case {case}: {}\n{}\n{}",
                output.escape_ascii(),
                lazy.parser.screen().state_formatted().escape_debug(),
                eager.screen().state_formatted().escape_debug()
            );
            if next(8) == 0 {
                let window = Window { rows: small(1 + next(6)), cols: small(2 + next(12)) };
                let (rows, cols) = sides(window);
                lazy.resize(window);
                eager.set_size(rows, cols);
            }
        }
    }
    assert!(dropped > 100, "lines were dropped {dropped} times only");
}

#[test]
fn a_flood_leaves_a_small_backlog() {
    let mut screen = Screen::new(Window { rows: 24, cols: 80 });
    for n in 0..60_000 {
        let line = format!("\x1b[32mok\x1b[0m line {n} of very many\r\n");
        assert_eq!(screen.show(line.as_bytes()), b"");
        assert!(screen.backlog.len() <= BACKLOG_MAX);
    }
    let scrolled = screen.parser.callbacks().scrolled;
    assert!(scrolled < 2 * SCROLLED_MIN, "the model was shown {scrolled} lines");
    screen.repaint();
    let contents = screen.parser.screen().contents();
    assert!(contents.ends_with("ok line 59999 of very many"), "{contents}");
    assert_eq!(contents.lines().count(), 23);
}

/// A panic in the model would take the shim, and with it the exit status, down.
#[test]
fn no_garbage_and_no_size_breaks_the_model() {
    let pieces: [&[u8]; 16] = [
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b";",
        b"9999",
        b"0",
        b"?",
        b"h",
        b"l",
        b"m",
        b"H",
        b"L",
        b"\xff\xe4\xb8",
        "宽字👩‍👩‍👧".as_bytes(),
        b"\r\n\t\x08",
        b"text",
    ];
    let finals = b"@ABCDEFGHIJKLMPSTXZ`abcdefghlmnpqrstu78=>M";
    let mut next = random();
    let mut screen = Screen::new(WINDOW);
    for _ in 0..200_000 {
        match next(20) {
            0 => {
                screen.resize(Window { rows: small(next(9)), cols: small(next(9)) });
            }
            1..=6 => drop(screen.show(&[finals[next(finals.len())]])),
            _ => drop(screen.show(pieces[next(pieces.len())])),
        }
        if next(50) == 0 {
            drop(screen.repaint());
        }
    }
}
