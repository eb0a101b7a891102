//! Prompts as people write them: they load, they render, and what is wrong with one is told.

mod support;

use outlast_workflow::template::{
    FailedCheck, LimitsLeft, Message, Note, Previous, Variables, check, render,
};

fn run() -> Variables {
    Variables {
        task: "Fix the login page\nIt is broken on phones.".to_owned(),
        run: "k3mxq".to_owned(),
        name: Some("login".to_owned()),
        turn: 1,
        workspace: "/w".to_owned(),
        labels: [("team".to_owned(), "web".to_owned())].into(),
        ..Variables::default()
    }
}

const ISSUE_PROMPT: &str = "\
You work on {{ issue.identifier }}: {{ issue.title }}
{%- comment %} nothing of this is said, not even {{ this }} or {% that %} {% endcomment %}
{% if issue.description %}
{{ issue.description | strip }}
{% else %}
No description.
{% endif %}
{%- assign labels = issue.labels | join: ', ' %}
Labels: {{ labels | default: 'none' }}
{% for label in issue.labels %}- {{ label | upcase }}
{% else %}(no labels)
{% endfor %}
{%- if attempt %}
This is try {{ attempt }} again; the state is {{ issue.state | downcase }}.
{%- elsif turn > 1 %}
This goes on.
{%- else %}
This is the first.
{%- endif %}
{% unless issue.url %}There is no link.{% endunless %}
{% case issue.priority %}{% when 1 or 2 %}Hurry.{% else %}No hurry.{% endcase %}
{% raw %}Write {{ like this }}.{% endraw %}
{% if issue.blocked_by.size > 0 %}{% for b in issue.blocked_by %}{{ b.identifier }}{% endfor %}{% endif %}";

#[test]
fn a_prompt_written_for_issues_renders() {
    let text = render(ISSUE_PROMPT, &run()).unwrap();
    for part in [
        "You work on login: Fix the login page",
        "It is broken on phones.",
        "Labels: none",
        "(no labels)",
        "This is the first.",
        "There is no link.",
        "No hurry.",
        "Write {{ like this }}.",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(!text.contains("nothing of this"));
    let again = render(ISSUE_PROMPT, &Variables { earlier_attempts: 2, ..run() }).unwrap();
    assert!(again.contains("This is try 2 again; the state is active."), "{again}");
}

#[test]
fn what_is_left_of_a_limit_has_the_names_of_request_json_and_of_the_loop_file() {
    let limits_left = LimitsLeft {
        turns: Some(3),
        attempts: Some(2),
        run_ms: Some(1000),
        tokens: Some(50),
        cost_usd_micros: Some(1_500_000),
    };
    let variables = Variables { limits_left, ..Variables::default() };
    for (name, expected) in [
        ("turns", "3"),
        ("max_turns", "3"),
        ("attempts", "2"),
        ("max_attempts", "2"),
        ("run_ms", "1000"),
        ("run_timeout_ms", "1000"),
        ("tokens", "50"),
        ("max_tokens", "50"),
        ("cost_usd", "1.50"),
        ("max_cost_usd", "1.50"),
    ] {
        let text = format!("{{{{ limits_left.{name} }}}}");
        assert_eq!(render(&text, &variables).as_deref(), Ok(expected), "{name}");
        let none = render(
            &format!("{{{{ limits_left.{name} | default: 'no limit' }}}}"),
            &Variables::default(),
        );
        assert_eq!(none.as_deref(), Ok("no limit"), "{name}");
    }
}

#[test]
fn a_prompt_of_ours_speaks_of_what_happened() {
    let prompt = "Turn {{ turn }} of {{ name | default: run }} in {{ workspace }} for {{ labels.team }}.\n\
        {% if note %}{{ note.cause }}: {{ note.text }}\n{% endif %}\
        {% for m in messages %}{{ m.from | default: 'a person' }} says {{ m.text }}{% unless forloop.last %}; {% endunless %}{% endfor %}\n\
        {% for c in previous.failed_checks %}{{ c.command }} said {{ c.output }}{% endfor %}\n\
        {{ previous.status }} {{ limits_left.max_turns | default: 'many' }} left";
    let later = Variables {
        turn: 2,
        note: Some(Note { cause: "stalled".to_owned(), text: "go on".to_owned() }),
        messages: vec![
            Message { text: "hi".to_owned(), from: None },
            Message { text: "ho".to_owned(), from: Some("ada".to_owned()) },
        ],
        previous: Previous {
            status: Some("continue".to_owned()),
            failed_checks: vec![FailedCheck {
                command: "make".to_owned(),
                output: "no".to_owned(),
            }],
            ..Previous::default()
        },
        ..run()
    };
    assert_eq!(
        render(prompt, &later).unwrap(),
        "Turn 2 of login in /w for web.\nstalled: go on\na person says hi; ada says ho\nmake said no\ncontinue many left"
    );
    assert!(render(prompt, &run()).is_ok());
}

#[test]
fn what_a_task_says_is_never_a_template() {
    let odd = Variables { task: "{{ nope }} {% if %}".to_owned(), ..run() };
    assert_eq!(render("{{ task }}", &odd).unwrap(), "{{ nope }} {% if %}");
}

#[test]
fn an_unknown_name_is_told_wherever_it_stands() {
    let cases = [
        "{{ nope }}",
        "{{ task | append: nope }}",
        "{% if nope %}{% endif %}",
        "{% if task == nope %}{% endif %}",
        "{% if false and issue.nope %}{% endif %}",
        "{% unless note.nope %}{% endunless %}",
        "{% case nope %}{% when 1 %}{% endcase %}",
        "{% for m in messages %}{{ m.nope }}{% endfor %}",
        "{% for m in messages %}{% endfor %}{{ m.text }}",
        "{% for x in nope %}{% endfor %}",
        "{% assign a = nope %}",
        "{{ labels[nope] }}",
        "{{ forloop.index }}",
        "{{ issue['nope'] }}",
        "{{ task.nope }}",
    ];
    for prompt in cases {
        let problem = check(&format!("one\n{prompt}")).unwrap_err();
        assert_eq!(
            (problem.code.word(), problem.line),
            ("template_render_error", Some(2)),
            "{prompt}: {problem}"
        );
    }
}

#[test]
fn what_has_no_form_is_told_with_its_line() {
    let cases = [
        "{{ task",
        "{% if task %}",
        "{% endif %}",
        "{% if task %}{% endfor %}",
        "{% else %}",
        "{% comment %}",
        "{% comment %}{% raw %}",
        "{% raw %}",
        "{% break %}",
        "{% dance %}",
        "{% include 'x' %}",
        "{{ }}",
        "{{ task | }}",
        "{{ 'open }}",
        "{% assign x %}",
        "{% for x of messages %}{% endfor %}",
        "{% for x in (1..1000000000) %}{% endfor %}",
        "{% for x in (1..1000) %}{% for y in (1..1000) %}{% endfor %}{% endfor %}",
        "{{ task ^ 2 }}",
        "{{ labels[labels[labels[labels[labels[labels[labels[labels[labels[labels[name]]]]]]]]]] }}",
    ];
    for prompt in cases {
        let problem = check(&format!("one\n{prompt}")).unwrap_err();
        assert_eq!(
            (problem.code.word(), problem.line),
            ("template_parse_error", Some(2)),
            "{prompt}: {problem}"
        );
        assert!(!problem.message.contains('\n'), "{prompt}: {problem}");
    }
}

#[test]
fn a_filter_that_cannot_do_its_work_is_an_error_of_rendering() {
    let problem = render("{{ task | plus: 1 }}", &run()).unwrap_err();
    assert_eq!(problem.code.word(), "template_render_error");
    assert!(!problem.message.contains('\n'), "{problem}");
}

#[test]
fn a_prompt_that_grows_too_long_is_an_error() {
    let much = Variables { task: "x".repeat(300_000), ..run() };
    let problem = render("{% for i in (1..4) %}{{ task }}{% endfor %}", &much).unwrap_err();
    assert_eq!(problem.code.word(), "template_render_error");
    assert!(problem.message.contains("1 MiB"), "{problem}");
}

#[test]
fn without_a_prompt_the_task_is_the_prompt() {
    let prompt =
        support::effective(&support::exec("").replace("{{ task }}", "")).workflow.unwrap().prompt;
    assert_eq!(render(&prompt, &run()).unwrap(), run().task);
}

#[test]
fn a_prompt_of_nothing_but_tags_is_still_read_once() {
    let prompt = "{{turn}}".repeat(100_000);
    assert_eq!(render(&prompt, &run()).unwrap().len(), 100_000);
}
