//! Whatever stands in a file, the answer is settings or problems.

mod support;

use outlast_workflow::template::{Variables, render};
use outlast_workflow::{Config, Overrides, Source, import};
use proptest::prelude::*;

fn anything(text: &str) {
    let path = std::path::Path::new("/repo/WORKFLOW.md");
    drop(support::load_with(text, &Config::default(), &Overrides::default()));
    drop(Config::parse(&Source { path, text }));
    drop(import::symphony(&Source { path, text }));
    drop(import::ace(&Source { path, text }));
}

/// Pieces of front matter, right and wrong, in any order.
fn yaml() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("agent:"),
        Just("limits:"),
        Just("tools:"),
        Just("  "),
        Just("\n"),
        Just("- "),
        Just(": "),
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just("|"),
        Just(">-"),
        Just("&a "),
        Just("*a"),
        Just("!!str "),
        Just("? "),
        Just("#"),
        Just("'"),
        Just("\""),
        Just("---"),
        Just("..."),
        Just("%YAML 1.2"),
        Just("max_turns: 5"),
        Just("name: a"),
        Just("command: x"),
        Just("kind: exec"),
        Just("\t"),
        Just("<<: "),
        Just("root: ~/x"),
        Just("0x"),
        Just("-1"),
        Just("1e9"),
        Just("é"),
        Just("\u{0}"),
        Just("\r\n"),
    ];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Pieces of templates, right and wrong, in any order.
fn prompt() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{{ task }}"),
        Just("{{ "),
        Just(" }}"),
        Just("{% "),
        Just(" %}"),
        Just("{%- "),
        Just("-%}"),
        Just("{% if task %}"),
        Just("{% endif %}"),
        Just("{% else %}"),
        Just("{% elsif turn %}"),
        Just("{% for x in messages %}"),
        Just("{% for x in (1..3) %}"),
        Just("{% endfor %}"),
        Just("{{ x }}"),
        Just("{% raw %}"),
        Just("{% endraw %}"),
        Just("{% comment %}"),
        Just("{% endcomment %}"),
        Just("{% case turn %}"),
        Just("{% when 1 %}"),
        Just("{% endcase %}"),
        Just("{% break %}"),
        Just("{% assign x = task %}"),
        Just("{% capture x %}"),
        Just("{% endcapture %}"),
        Just("{% increment x %}"),
        Just("{% cycle 'a', 'b' %}"),
        Just("{% ifchanged %}"),
        Just("{% endifchanged %}"),
        Just("{% tablerow x in messages %}"),
        Just("{% endtablerow %}"),
        Just("{% unless note %}"),
        Just("{% endunless %}"),
        Just(" | "),
        Just("join: ', '"),
        Just("task"),
        Just("issue.labels"),
        Just("["),
        Just("]"),
        Just("'"),
        Just("\""),
        Just("é"),
        Just("\n"),
        Just("if"),
        Just("=="),
        Just("or"),
        Just("1"),
        Just("-"),
        Just(":"),
        Just(","),
        Just("nil"),
        Just("contains"),
        Just("true"),
        Just("empty"),
        Just("."),
    ];
    proptest::collection::vec(piece, 0..25).prop_map(|pieces| pieces.concat())
}

/// A filter with arguments that it may not like.
fn filtered() -> impl Strategy<Value = String> {
    let filters = [
        "abs",
        "append",
        "at_least",
        "at_most",
        "capitalize",
        "ceil",
        "compact",
        "concat",
        "date",
        "default",
        "divided_by",
        "downcase",
        "escape",
        "escape_once",
        "first",
        "floor",
        "join",
        "last",
        "lstrip",
        "map",
        "minus",
        "modulo",
        "newline_to_br",
        "plus",
        "prepend",
        "remove",
        "remove_first",
        "replace",
        "replace_first",
        "reverse",
        "round",
        "rstrip",
        "size",
        "slice",
        "sort",
        "sort_natural",
        "split",
        "strip",
        "strip_html",
        "strip_newlines",
        "times",
        "truncate",
        "truncatewords",
        "uniq",
        "upcase",
        "url_decode",
        "url_encode",
        "where",
    ];
    let input = prop_oneof![
        Just("task"),
        Just("turn"),
        Just("messages"),
        Just("labels"),
        Just("nil"),
        Just("'é€x'"),
        Just("''"),
        Just("-9223372036854775808"),
        Just("9223372036854775807"),
        Just("1.5"),
        Just("0"),
        Just("'%'"),
        Just("'<p'"),
        Just("'%Q%9999d'"),
        Just("'2020-01-01'"),
        Just("issue.labels"),
        Just("true"),
    ];
    let argument = prop_oneof![
        Just("0"),
        Just("-1"),
        Just("1"),
        Just("2"),
        Just("''"),
        Just("'é'"),
        Just("'%Y %9999Q %'"),
        Just("nil"),
        Just("messages"),
        Just("9223372036854775807"),
        Just("-9223372036854775808"),
        Just("1.5"),
        Just("labels"),
        Just("'text'"),
    ];
    let filter =
        (proptest::sample::select(filters.to_vec()), proptest::collection::vec(argument, 0..3));
    let filter = filter.prop_map(|(name, arguments)| match arguments.is_empty() {
        true => name.to_owned(),
        false => format!("{name}: {}", arguments.join(", ")),
    });
    (input, proptest::collection::vec(filter, 1..3))
        .prop_map(|(input, filters)| format!("{{{{ {input} | {} }}}}", filters.join(" | ")))
}

fn variables() -> Variables {
    Variables {
        task: "é€ task".to_owned(),
        turn: 2,
        messages: vec![Default::default(), Default::default()],
        labels: [("a".to_owned(), "b".to_owned())].into(),
        ..Variables::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in "\\PC*") {
        anything(&text);
        anything(&format!("---\n{text}\n---\n{text}"));
    }

    #[test]
    fn any_front_matter_is_answered(text in yaml()) {
        anything(&format!("---\n{text}\n---\nhi\n"));
        anything(&text);
    }

    #[test]
    fn any_prompt_is_answered(text in prompt()) {
        drop(render(&text, &variables()));
    }

    #[test]
    fn any_use_of_a_filter_is_answered(text in filtered()) {
        drop(render(&text, &variables()));
    }
}
