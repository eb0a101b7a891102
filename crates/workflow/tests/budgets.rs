//! What a template may cost. Each of these would fill a machine's memory or hold a thread for hours.

use outlast_workflow::template::{
    Message, OVER_BUDGET, Problem, Rendered, Variables, check, render, render_within,
};

const SEED: &str = "{% assign a = 'xxxxxxxxxx' %}\n";

/// The same line so often that what doubles with each would be 10 TiB.
fn doubled(line: &str) -> String {
    format!("{SEED}{}{{{{ a | size }}}}", format!("{line}\n").repeat(40))
}

fn refused(text: &str) -> Problem {
    let problem = render(text, &Variables::default()).expect_err(text);
    assert_eq!(problem.code, OVER_BUDGET, "{problem} of {text}");
    assert_eq!(check(text).expect_err(text), problem, "a check says the same");
    problem
}

#[test]
fn a_value_that_doubles_is_refused_with_its_line_however_it_is_made() {
    for line in [
        "{% assign a = a | append: a %}",
        "{% assign a = a | prepend: a %}",
        "{% capture a %}{{ a }}{{ a }}{% endcapture %}",
        "{% assign a = a | replace: 'x', 'xx' %}",
        "{% assign a = a | replace: '', 'x' %}",
        "{% assign a = a | replace_first: 'x', a | append: a %}",
        "{% assign a = a | truncate: 1, a | append: a | append: a %}",
        "{% assign a = '' | default: a | append: a %}",
        "{% assign a = a | split: '' | join: 'xx' %}",
        "{% assign a = a | url_encode | append: a %}",
        "{% ifchanged %}{% capture a %}{{ a }}{{ a }}{% endcapture %}{% endifchanged %}",
        "{% for i in (1..2) %}{% assign a = a | append: a %}{% endfor %}",
    ] {
        let problem = refused(&doubled(line));
        let line_number = problem.line.unwrap_or_else(|| panic!("no line: {problem}"));
        assert!((2..=41).contains(&line_number), "{problem} of {line}");
    }
    // The first round in which it is too much is the one that is named: 10 bytes, doubled 17 times.
    let problem = refused(&doubled("{% assign a = a | append: a %}"));
    assert_eq!(problem.to_string(), "prompt:18: append makes a value of more than 1 MiB");
}

#[test]
fn a_list_that_grows_is_refused() {
    let line = "{% assign l = l | concat: l %}\n".repeat(30);
    refused(&format!("{{% assign l = 'a b c' | split: ' ' %}}\n{line}"));
    let long = "x".repeat(40_000);
    refused(&format!("{{% assign l = '{long}' | split: '' %}}"));
}

#[test]
fn many_values_of_a_good_size_are_too_much_together() {
    let long = "x".repeat(600_000);
    let many: String = (0..40).map(|n| format!("{{% assign a{n} = a %}}\n")).collect();
    refused(&format!("{{% assign a = '{long}' %}}\n{many}"));
    let many = "{{ a | size }}\n".repeat(200);
    refused(&format!("{{% assign a = '{long}' %}}\n{many}"));
}

#[test]
fn one_step_cannot_make_what_a_thousand_may_not() {
    let many = "a".repeat(100_000);
    refused(&format!("{{% assign b = '{many}' %}}{{% assign a = '{many}' | replace: 'a', b %}}"));
    refused(&format!("{{% assign b = '{many}' %}}{{{{ b | split: 'a' | join: b | size }}}}"));
    refused("{{ '2026-11-17 00:00:00' | date: '%1000000000Y' | size }}");
    refused("{{ '2026-11-17 00:00:00' | date: '%99999999999999999999N' | size }}");
    assert_eq!(
        render("{{ '2026-11-17 00:00:00' | date: '%10Y' }}", &Variables::default()).unwrap(),
        "0000002026"
    );
}

#[test]
fn what_is_kept_for_a_moment_is_bounded_as_well() {
    let long = "x".repeat(100_000);
    let inner = format!("{{% for i in (1..9000) %}}{long}{{% endfor %}}");
    refused(&format!("{{% capture a %}}{inner}{{% endcapture %}}"));
    refused(&format!("{{% ifchanged %}}{inner}{{% endifchanged %}}"));
}

#[test]
fn loops_in_loops_over_lists_come_to_an_end() {
    let list = "{% assign l = '1234567890' | split: '' %}\n";
    let open: String = (0..8).map(|n| format!("{{% for a{n} in l %}}")).collect();
    let close = "{% endfor %}".repeat(8);
    let problem = refused(&format!("{list}{open}{close}"));
    assert_eq!(problem.message, "the template takes more than 100000 steps");
    assert_eq!(problem.line, Some(2));
    // This one prints as it goes, so the prompt is full first.
    let open: String = (0..8).map(|n| format!("{{% tablerow a{n} in l cols:2 %}}")).collect();
    let close = "{% endtablerow %}".repeat(8);
    let text = format!("{list}{open}{close}");
    let problem = render(&text, &Variables::default()).unwrap_err();
    assert_eq!(problem.message, "the prompt comes out longer than 1 MiB");
    assert_eq!(check(&text).unwrap_err(), problem);
}

#[test]
fn a_number_that_liquid_cannot_hold_is_refused_wherever_it_stands() {
    for text in [
        "{{ 22222222222222222222 }}",
        "{{ messages[22222222222222222222].text }}",
        "{{ item[labels[-22222222222222222222]] }}",
        "{{ 'a' | slice: 22222222222222222222 }}",
    ] {
        let problem = check(text).expect_err("a number too big");
        assert!(problem.message.ends_with("is too big a number"), "{problem} of {text}");
    }
}

#[test]
fn columns_are_a_number_that_can_be_divided_by() {
    for cols in ["0", "-1", "turn", "'x'", "1.5"] {
        let text = format!("{{% tablerow m in messages cols:{cols} %}}x{{% endtablerow %}}");
        let problem = check(&text).expect_err("nothing divides by it");
        assert_eq!(problem.message, "cols is a whole number of at least 1", "{cols}");
    }
}

#[test]
fn a_template_of_a_reasonable_size_pays_nothing() {
    let text = "{%- for m in messages -%}\n  {{ m.from }}: {{ m.text | strip | upcase }}\n{%- endfor -%}\n\
        {% tablerow m in messages cols:2 %}{{ m.from }}{% endtablerow %}\
        {% for i in (1..9000) %}{% if i == 4500 %} half {% endif %}{% endfor %}";
    let message = |from: &str| Message { text: " hi ".to_owned(), from: Some(from.to_owned()) };
    let variables =
        Variables { messages: vec![message("ada"), message("bob")], ..Variables::default() };
    let text = render(text, &variables).unwrap();
    assert_eq!(
        text,
        "ada: HIbob: HI<tr class=\"row1\"><td class=\"col1\">ada</td><td class=\"col2\">bob</td></tr> half "
    );
}

#[test]
fn white_space_is_trimmed_as_it_is_without_marks() {
    for (text, expected) in [
        ("a {%- for i in (1..2) -%} b {%- endfor -%} c", "abbc"),
        ("a {% for i in (1..2) %} b {% endfor %} c", "a  b  b  c"),
        ("a {%- if true -%} b {%- else -%} c {%- endif -%} d", "abd"),
        ("a {{- 1 -}} b", "a1b"),
        ("{% case 1 %}\n{% when 1 %}x{% endcase %}", "x"),
        ("a {%- comment -%} {{ b }} {%- endcomment -%} c", "ac"),
        ("a {%- assign x = 1 -%} b {%- capture y -%} c {%- endcapture -%} {{ y }}", "abc"),
    ] {
        assert_eq!(render(text, &Variables::default()).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_prompt_that_is_too_long_is_refused_or_cut_as_its_reader_wants() {
    let text = "{% for i in (1..9000) %}0123456789\u{e9}{% endfor %}";
    let whole = render(text, &Variables::default()).unwrap();
    assert_eq!(whole.len(), 9000 * 12);
    let cut = render_within(text, &Variables::default(), 11).unwrap();
    assert_eq!(cut, Rendered::Beginning { text: "0123456789".to_owned(), line: Some(1) });
    let long = format!("{{% for i in (1..9000) %}}{}{{% endfor %}}", "x".repeat(200));
    let problem = render(&long, &Variables::default()).unwrap_err();
    assert_eq!(check(&long).unwrap_err(), problem);
    assert_eq!(problem.message, "the prompt comes out longer than 1 MiB");
}

#[test]
fn a_date_whose_format_ends_in_a_letter_of_more_than_one_byte_is_refused_and_no_panic() {
    let text = "one\n{{ '2026-11-17 00:00:00' | date: '%Y %\u{36d}' }}";
    let problem = render(text, &Variables::default()).unwrap_err();
    assert_eq!(problem.line, Some(2));
    assert_eq!(check(text).unwrap_err(), problem);
    let text = "{{ '2026-11-17 00:00:00' | date: '%Y\u{e9}' }}";
    assert_eq!(render(text, &Variables::default()).unwrap(), "2026\u{e9}");
}
