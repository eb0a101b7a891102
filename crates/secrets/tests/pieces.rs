//! However a stream is cut into pieces, the same bytes leave; and no secret among them.

use std::ffi::OsStr;

use outlast_secrets::{SecretRules, Secrets};
use proptest::prelude::*;

const VALUES: [(&str, &str); 6] = [
    ("A_TOKEN", "ab1ab1ab1"),
    ("B_TOKEN", "ab1ab1ab1ab-longer-than-a"),
    ("C_KEY", "bab-longer!"),
    ("D_SECRET", "sk-\"quoted\"\nand two lines of it"),
    ("E_PASSWORD", "aaaaaaaaaaaaaaaab1"),
    ("F_PIN", "a1b2"),
];

fn secrets() -> Secrets {
    let rules = SecretRules { names: vec!["F_PIN".to_owned()], ..SecretRules::default() };
    let env = VALUES.map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    Secrets::of(&rules, env, &[])
}

/// Text that is mostly secrets, parts of secrets and what looks like them.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let part = (0..VALUES.len(), any::<prop::sample::Index>(), any::<prop::sample::Index>());
    let piece = prop_oneof![
        2 => (0..VALUES.len()).prop_map(|at| VALUES[at].1.as_bytes().to_vec()),
        1 => (0..VALUES.len()).prop_map(|at| {
            serde_json::to_vec(VALUES[at].1).expect("text is JSON")
        }),
        3 => part.prop_map(|(at, from, to)| {
            let value = VALUES[at].1.as_bytes();
            let (from, to) = (from.index(value.len()), to.index(value.len() + 1));
            value[from.min(to)..to.max(from)].to_vec()
        }),
        2 => prop::collection::vec(prop::sample::select(b"ab-\n\\\"sk1".to_vec()), 0..12),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn in_pieces(secrets: &Secrets, text: &[u8], cuts: &[prop::sample::Index]) -> Vec<u8> {
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    let mut redactor = secrets.redactor();
    let mut out = Vec::new();
    for two in at.windows(2) {
        out.extend_from_slice(redactor.feed(&text[two[0]..two[1]]));
    }
    out.extend_from_slice(redactor.flush());
    assert_eq!(redactor.held(), 0);
    out
}

/// The leftmost secret, the longest of those that begin there, by plain comparison.
fn by_hand(text: &[u8]) -> Vec<u8> {
    let (mut at, mut out) = (0, Vec::new());
    let json = |value: &str| {
        let written = serde_json::to_string(value).expect("text is JSON");
        written.as_bytes()[1..written.len() - 1].to_vec()
    };
    let mut forms: Vec<(Vec<u8>, String)> = VALUES
        .iter()
        .flat_map(|(name, value)| {
            let lines = value.lines().filter(|line| value.lines().count() > 1 && line.len() >= 16);
            let lines = lines.map(|line| line.as_bytes().to_vec());
            let whole =
                [value.as_bytes().to_vec(), json(value), value.replace('\n', "\r\n").into_bytes()];
            lines.chain(whole).map(|form| (form, format!("[{name}]"))).collect::<Vec<_>>()
        })
        .collect();
    forms.sort_by_key(|(form, _)| std::cmp::Reverse(form.len()));
    while at < text.len() {
        let rest = &text[at..];
        // At the end more than half of a secret is not shown either.
        let begun = forms.iter().rev().find(|(form, _)| {
            form.len() > rest.len()
                && rest.len() >= 8
                && rest.len() * 2 > form.len()
                && form.starts_with(rest)
        });
        let whole = forms.iter().find(|(form, _)| rest.starts_with(form));
        let (shown, length) = match (begun, whole) {
            (Some((_, shown)), None) => (shown.as_bytes(), rest.len()),
            (Some((_, shown)), Some((form, _))) if form.len() < rest.len() => {
                (shown.as_bytes(), rest.len())
            }
            (_, Some((form, shown))) => (shown.as_bytes(), form.len()),
            (None, None) => (&rest[..1], 1),
        };
        out.extend_from_slice(shown);
        at += length;
    }
    out
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_cut_gives_the_same_and_it_is_what_a_plain_comparison_gives(
        text in text(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let secrets = secrets();
        let whole = in_pieces(&secrets, &text, &[]);
        prop_assert_eq!(&in_pieces(&secrets, &text, &cuts), &whole);
        prop_assert_eq!(&*secrets.hide_bytes(&text), &whole[..]);
        prop_assert_eq!(by_hand(&text), whole.clone());
    }

    /// Even if what is held back has to leave again and again.
    #[test]
    fn no_secret_ever_leaves(
        text in text(),
        pieces in prop::collection::vec((1..12_usize, any::<bool>()), 1..80),
    ) {
        let mut redactor = secrets().redactor();
        let (mut rest, mut out) = (&text[..], Vec::new());
        for (length, is_quiet) in pieces.iter().cycle() {
            let (piece, next) = rest.split_at(rest.len().min(*length));
            out.extend_from_slice(redactor.feed(piece));
            if *is_quiet {
                out.extend_from_slice(redactor.flush());
                prop_assert_eq!(redactor.held(), 0);
            }
            rest = next;
            if rest.is_empty() {
                break;
            }
        }
        out.extend_from_slice(redactor.flush());
        for (_, value) in VALUES {
            let has_left = contains(&out, value.as_bytes());
            prop_assert!(!has_left, "{value:?} in {:?}", String::from_utf8_lossy(&out));
        }
    }

    #[test]
    fn only_the_start_of_a_secret_is_held_back(text in text()) {
        let mut redactor = secrets().redactor();
        redactor.feed(&text);
        let held = &text[text.len() - redactor.held()..];
        let is_start = |form: &[u8]| form.len() > held.len() && form.starts_with(held);
        let forms = VALUES.iter().flat_map(|(_, value)| {
            let json = serde_json::to_string(value).expect("text is JSON");
            [
                value.as_bytes().to_vec(),
                json.as_bytes()[1..json.len() - 1].to_vec(),
                value.replace('\n', "\r\n").into_bytes(),
                value.lines().last().expect("has one").as_bytes().to_vec(),
                all_coded(value, false),
                all_coded(value, true),
            ]
        });
        prop_assert!(held.is_empty() || forms.clone().any(|form| is_start(&form)), "{held:?}");
    }

    /// Only strings change, whatever the rest of a document is; what is no document is read as text.
    #[test]
    fn a_document_means_the_same_without_its_secrets(
        strings in prop::collection::vec(text(), 1..4),
        broken in text(),
    ) {
        let secrets = secrets();
        let strings: Vec<String> =
            strings.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect();
        let document = |strings: &[String]| {
            serde_json::json!({ "all": strings, "n": [1.5, null, true], "last": strings.last() })
        };
        let written = document(&strings).to_string();
        let hidden: Vec<String> =
            strings.iter().map(|text| secrets.hide(text).into_owned()).collect();
        let read: serde_json::Value =
            serde_json::from_slice(&secrets.hide_json(written.as_bytes())).expect("still JSON");
        prop_assert_eq!(read, document(&hidden));
        if serde_json::from_slice::<serde_json::Value>(&broken).is_err() {
            prop_assert_eq!(secrets.hide_json(&broken), secrets.hide_bytes(&broken));
        }
    }

    #[test]
    fn without_secrets_the_bytes_are_passed_on_where_they_are(text in text()) {
        let mut redactor = Secrets::default().redactor();
        prop_assert!(std::ptr::eq(redactor.feed(&text), &raw const text[..]));
        prop_assert_eq!(redactor.held(), 0);
        prop_assert_eq!(redactor.flush(), b"");
    }
}

fn all_coded(value: &str, upper: bool) -> Vec<u8> {
    let code = |unit: u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
    value.encode_utf16().map(code).collect::<String>().into_bytes()
}

#[test]
fn a_secret_in_halves_is_hidden_and_what_only_began_like_one_is_shown() {
    let mut redactor = secrets().redactor();
    assert_eq!(redactor.feed(b"key: sk-\"quo"), b"key: ");
    assert_eq!(redactor.held(), 7);
    assert_eq!(redactor.feed(b"ted\"\nand two lines of it."), b"[D_SECRET].");
    assert_eq!(redactor.feed(b"a prompt> s"), b"a prompt> ");
    assert_eq!(redactor.flush(), b"s");
    assert_eq!(redactor.feed(b"sk-nothing"), b"sk-nothing");
    // Most of a secret does not leave either.
    assert_eq!(redactor.feed(b"bab-longer"), b"");
    assert_eq!(redactor.flush(), b"[C_KEY]");
}

#[test]
fn of_a_secret_that_comes_slowly_only_its_start_leaves() {
    let mut redactor = secrets().redactor();
    assert_eq!(redactor.feed(b"key: aaa"), b"key: ");
    assert_eq!((redactor.flush().to_vec(), redactor.held()), (b"aaa".to_vec(), 0));
    assert_eq!(redactor.feed(b"aaaaaaa"), b"");
    assert_eq!((redactor.held(), redactor.begun()), (7, 10));
    assert_eq!(redactor.flush(), b"[E_PASSWORD]", "more than half of it would have left");
    assert_eq!(redactor.feed(b"aaaaaab1, and on"), b", and on");
    // A start that comes to nothing leaves once.
    assert_eq!(redactor.feed(b"aaa"), b"");
    assert_eq!(redactor.flush(), b"aaa");
    assert_eq!(redactor.feed(b"aa."), b"aa.");
}

#[test]
fn what_is_hidden_after_a_start_has_left_does_not_join_what_is_around_it() {
    let mut redactor = secrets().redactor();
    assert_eq!(redactor.feed(b"ab1ab1ab1ab"), b"");
    assert_eq!(redactor.flush(), b"[A_TOKEN]ab");
    assert_eq!(redactor.feed(b"1ab1ab1"), b"");
    assert_eq!(redactor.flush(), b"[A_TOKEN]", "and not silently: the bytes before are shown");
    assert_eq!(redactor.feed(b"1ab1ab1."), b"1ab1ab1.");
}

#[test]
fn many_secrets_are_found_as_a_few_are() {
    let names: Vec<String> = (0..500).map(|number| format!("N{number}_TOKEN")).collect();
    let values: Vec<String> = (0..500).map(|number| format!("{number:03}-value-of-it")).collect();
    let env = names.iter().zip(&values).map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    let secrets = Secrets::of(&SecretRules::default(), env, &[]);
    assert_eq!(secrets.hide("x 042-value-of-it 499-value-of-it y"), "x [N42_TOKEN] [N499_TOKEN] y");
}
