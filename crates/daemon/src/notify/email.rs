//! Mail, handed to a command that sends it: one message, as RFC 5322 has it, in plain text.
//!
//! Nothing that a run writes gets into the head of a message but encoded, so that it can add no line to it.

use std::time::Duration;

use outlast_engine::Time;
use outlast_workflow::notify::base64;

use super::body::Telling;
use super::{Outcome, command, text};
use crate::ground::Ground;
use crate::world;
use crate::world::command::Call;

/// Bytes of a subject; each piece of it is encoded in a line of its own, which has at most 76 signs.
const LONGEST_SUBJECT: usize = 200;
const PIECE: usize = 42;
const LINE: usize = 57;

pub(super) struct Letter<'a> {
    pub(super) to: &'a str,
    pub(super) from: Option<&'a str>,
    pub(super) now: Time,
}

pub(super) async fn send(
    ground: &Ground,
    (line, dir): (&str, &str),
    letter: &Letter<'_>,
    telling: &Telling,
    within: Duration,
) -> Outcome {
    let argv = ["sh", "-c", line].map(str::to_owned).to_vec();
    let stdin = message(letter, telling).into_bytes();
    let (around, rules) = (command::named(telling, dir), ground.settings.secret_rules());
    let call = Call { argv, stdin, around, rules, most_stdout: 0 };
    command::outcome(world::command::call(&ground.exe, call, within).await)
}

fn message(letter: &Letter<'_>, telling: &Telling) -> String {
    let mut head = vec![
        format!("To: {}", letter.to),
        format!("Subject: {}", subject(&telling.title())),
        format!("Date: {}", date(letter.now)),
        format!("Message-ID: <{}@outlast.invalid>", plain_id(&telling.id)),
        "Auto-Submitted: auto-generated".to_owned(),
        "MIME-Version: 1.0".to_owned(),
        "Content-Type: text/plain; charset=utf-8".to_owned(),
        "Content-Transfer-Encoding: base64".to_owned(),
    ];
    if let Some(from) = letter.from {
        head.insert(0, format!("From: {from}"));
    }
    let body = format!("{}\n\nrun {}, notice {}\n", telling.message(), telling.run, telling.id);
    let lines: Vec<String> = body.as_bytes().chunks(LINE).map(base64::encode).collect();
    format!("{}\n\n{}\n", head.join("\n"), lines.join("\n"))
}

/// As it is if it is plain, else encoded piece by piece.
fn subject(title: &str) -> String {
    let title = text::clipped(&text::one_line(title), LONGEST_SUBJECT);
    let is_plain = title.chars().all(|char| matches!(char, ' '..='~')) && !title.contains("=?");
    if is_plain && title.len() <= 60 {
        return title;
    }
    let mut pieces = vec![String::new()];
    for char in title.chars() {
        let piece = pieces.last_mut().expect("there is always one");
        if piece.len() + char.len_utf8() > PIECE {
            pieces.push(char.to_string());
        } else {
            piece.push(char);
        }
    }
    let encoded: Vec<String> = pieces
        .iter()
        .map(|piece| format!("=?utf-8?B?{}?=", base64::encode(piece.as_bytes())))
        .collect();
    encoded.join("\n ")
}

/// The same for the same notice, so that mail programs know it again.
fn plain_id(id: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() { char } else { '.' };
    id.chars().map(plain).collect()
}

fn date(now: Time) -> String {
    let at = i64::try_from(now.0).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let at = at.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_string(&at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::body::Content;
    use super::*;

    #[test]
    fn a_run_can_add_no_line_to_the_head() {
        let mut telling = Telling::test("k3m/t1.a1/9", Time(0));
        telling.kind = "run.failed".to_owned();
        let Content::One(notice) = &mut telling.content else { panic!("one") };
        notice.kind = "run.failed".to_owned();
        notice.data.name = Some("nightly\r\nBcc: them@example.org".to_owned());
        notice.data.summary = Some(".\r\nBcc: them@example.org\né".to_owned());
        let letter = Letter { to: "me@example.org", from: None, now: Time(784_111_777_000) };
        let message = message(&letter, &telling);
        let (head, body) = message.split_once("\n\n").unwrap();
        assert_eq!(
            head,
            "To: me@example.org\nSubject: nightly Bcc: them@example.org failed\n\
             Date: Sun, 6 Nov 1994 08:49:37 -0000\nMessage-ID: <k3m.t1.a1.9@outlast.invalid>\n\
             Auto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\
             Content-Transfer-Encoding: base64"
        );
        assert!(body.lines().all(|line| line.len() <= 76));
        let whole: Vec<u8> = body.lines().flat_map(|line| base64::decode(line).unwrap()).collect();
        assert!(String::from_utf8(whole).unwrap().contains('é'));
    }

    #[test]
    fn a_subject_of_any_words_is_encoded_in_pieces() {
        let subject = subject(&"prüfung ".repeat(12));
        assert!(subject.lines().count() > 1);
        assert!(
            subject.lines().all(|line| line.trim().starts_with("=?utf-8?B?") && line.len() <= 76)
        );
    }
}
