//! The list as people see it, at several widths.

use super::*;

/// Found by a new user: the column showed the start of a long path, and never the program.
#[test]
fn a_command_is_shown_by_the_name_of_its_file() {
    for (what, shown) in [
        ("/usr/lib/jvm/21/bin/java -jar x.jar", "java -jar x.jar"),
        ("./run.sh", "run.sh"),
        ("make -C /src all", "make -C /src all"),
        ("/srv/repo/WORKFLOW.md", "WORKFLOW.md"),
        ("", ""),
    ] {
        assert_eq!(by_file_name(what), shown);
    }
}

const ORPHAN: &str = r#"{"id":"k3mx7q9w2r5t","name":null,"state":"running","reason_code":null,"health":"orphaned","what":"sh -c 'while true; do make -j8 check; done'","turn":1,"attempt":3,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null}"#;
const FAILED: &str = r#"{"id":"0a1b2c3d4e5f","name":"nightly-build","state":"failed","reason_code":"exit_code","health":"healthy","what":"sleep 100","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":"2026-11-15T11:55:03.5Z","exit":{"code":7},"labels":{"a":"b"},"survivors":0,"trouble":null}"#;
const QUEUED: &str = r#"{"id":"zzzzzzzzzzzz","name":null,"state":"queued","reason_code":null,"health":"healthy","what":"sleep 100","turn":0,"attempt":0,"created_at":"2026-11-15T11:55:00Z","started_at":null,"ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null}"#;

const LOOP: &str = r#"{"id":"0a1b2c3d4e5g","name":"port","state":"verifying","reason_code":null,"health":"healthy","what":"port the parser","turn":3,"attempt":2,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"phase":"check done 2/3","last_line":"ok","max_turns":20,"cost_usd":0.42,"tokens":15400}"#;
const TURN: &str = r#"{"id":"0a1b2c3d4e5h","name":"docs","state":"running","reason_code":null,"health":"healthy","what":"write the docs","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"phase":"turn 1 attempt 1","tokens":900}"#;
const AGENT: &str = r#"{"id":"0a1b2c3d4e5k","name":"fix","state":"running","reason_code":null,"health":"healthy","what":"fix it","turn":1,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"phase":"turn 1 attempt 1","tokens":900,"agent":{"kind":"claude","tool":{"name":"Bash","about":"cargo test","since":"2026-11-15T11:59:00Z"},"tools":1,"context":{"used":90000,"window":200000,"fill":0.45}}}"#;
const COMMANDS: [&str; 3] = [ORPHAN, FAILED, QUEUED];

fn render(lines: &[&str], columns: Option<usize>) -> String {
    let now = "2026-11-15T12:00:00Z".parse().expect("a time");
    let mut list = List::new(Sort::NeedsMe);
    for line in lines {
        list.push(&serde_json::from_str(line).expect("a row"), now);
    }
    list.table().render(Look { columns, colours: false })
}

#[test]
fn into_a_pipe_nothing_is_cut() {
    insta::assert_snapshot!(render(&COMMANDS, None), @r"
    ID            NAME           STATE               CHANGED  AGE  RUNTIME  TURN  COMMAND
    k3mx7q9w2r5t                 running (orphaned)  4m ago   5m   4m 59s   1.3   sh -c 'while true; do make -j8 check; done'
    zzzzzzzzzzzz                 queued              5m ago   5m   -        -     sleep 100
    0a1b2c3d4e5f  nightly-build  failed (exit 7)     4m ago   5m   2s       1     sleep 100
    ");
}

#[test]
fn on_80_columns_commands_give_way() {
    insta::assert_snapshot!(render(&COMMANDS, Some(80)), @r"
    ID            NAME      STATE               CHANGED  RUNTIME  TURN  COMMAND
    k3mx7q9w2r5t            running (orphaned)  4m ago   4m 59s   1.3   sh -c 'whil…
    zzzzzzzzzzzz            queued              5m ago   -        -     sleep 100
    0a1b2c3d4e5f  nightly…  failed (exit 7)     4m ago   2s       1     sleep 100
    ");
}

#[test]
fn on_72_columns_names_give_way_too() {
    insta::assert_snapshot!(render(&COMMANDS, Some(72)), @r"
    ID            NAME       STATE               CHANGED  TURN  COMMAND
    k3mx7q9w2r5t             running (orphaned)  4m ago   1.3   sh -c 'whil…
    zzzzzzzzzzzz             queued              5m ago   -     sleep 100
    0a1b2c3d4e5f  nightly-…  failed (exit 7)     4m ago   1     sleep 100
    ");
}

#[test]
fn a_loop_shows_what_it_is_at_and_what_it_has_spent() {
    insta::assert_snapshot!(render(&[LOOP, TURN, QUEUED], None), @r"
    ID            NAME  STATE                      CHANGED  AGE  RUNTIME  TURN    SPEND       COMMAND
    0a1b2c3d4e5g  port  verifying: check done 2/3  4m ago   5m   4m 59s   3.2/20  $0.42       port the parser
    0a1b2c3d4e5h  docs  running                    4m ago   5m   4m 59s   1       900 tokens  write the docs
    zzzzzzzzzzzz        queued                     5m ago   5m   -        -                   sleep 100
    ");
    insta::assert_snapshot!(render(&[LOOP, TURN, QUEUED], Some(84)), @r"
    ID            NAME  STATE                      CHANGED  TURN    SPEND
    0a1b2c3d4e5g  port  verifying: check done 2/3  4m ago   3.2/20  $0.42
    0a1b2c3d4e5h  docs  running                    4m ago   1       900 tokens
    zzzzzzzzzzzz        queued                     5m ago   -
    ");
}

#[test]
fn an_agent_shows_its_tool_and_its_context() {
    insta::assert_snapshot!(render(&[AGENT, QUEUED], None), @r"
    ID            NAME  STATE          CHANGED  AGE  RUNTIME  CONTEXT  SPEND       COMMAND
    0a1b2c3d4e5k  fix   running: Bash  4m ago   5m   4m 59s   45%      900 tokens  fix it
    zzzzzzzzzzzz        queued         5m ago   5m   -                             sleep 100
    ");
    insta::assert_snapshot!(render(&[AGENT, QUEUED], Some(72)), @r"
    ID            NAME  STATE          CHANGED  SPEND       COMMAND
    0a1b2c3d4e5k  fix   running: Bash  4m ago   900 tokens  fix it
    zzzzzzzzzzzz        queued         5m ago               sleep 100
    ");
}

#[test]
fn names_states_and_spend_fit_80_and_120_columns() {
    const ASKS: &str = r#"{"id":"w9h5hnypf65r","name":"green","state":"blocked","reason_code":"done_check_failed","health":"waiting_human","what":"Make tests green","turn":3,"attempt":1,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":null,"labels":{},"survivors":0,"trouble":null,"max_turns":20,"cost_usd":0.15,"changed_at":"2026-11-15T11:58:00Z","worked_ms":58000}"#;
    const RETRY: &str = r#"{"id":"zax3mq66vpj2","name":"leak-of-the-worker","state":"waiting","reason_code":"exit_code","health":"healthy","what":"Find the memory leak","turn":7,"attempt":2,"created_at":"2026-11-15T11:55:00Z","started_at":"2026-11-15T11:55:01Z","ended_at":null,"exit":{"code":127},"labels":{},"survivors":0,"trouble":null,"max_turns":20,"cost_usd":2.17,"wake_at":"2026-11-15T12:00:37Z","attempts_failed":2,"max_attempts":5,"phase":"backoff"}"#;
    let rows = [ASKS, RETRY, ORPHAN, FAILED, QUEUED, LOOP];
    for columns in [80, 120] {
        for line in render(&rows, Some(columns)).lines() {
            assert!(unicode_width::UnicodeWidthStr::width(line) <= columns, "{line}");
        }
    }
    insta::assert_snapshot!(render(&rows, Some(80)), @r"
    ID            NAME           STATE                        CHANGED  TURN    SPEND
    w9h5hnypf65r  green          blocked: done check fails    2m ago   3/20    $0.15
    k3mx7q9w2r5t                 running (orphaned)           4m ago   1.3
    0a1b2c3d4e5g  port           verifying: check done 2/3    4m ago   3.2/20  $0.42
    zax3mq66vpj2  leak-of-the-…  retry 3/5 in 37s (exit 127)  4m ago   7.2/20  $2.17
    zzzzzzzzzzzz                 queued                       5m ago   -
    0a1b2c3d4e5f  nightly-build  failed (exit 7)              4m ago   1
    ");
    insta::assert_snapshot!(render(&rows, Some(120)), @r"
    ID            NAME                STATE                        CHANGED  AGE  RUNTIME  TURN    SPEND  COMMAND
    w9h5hnypf65r  green               blocked: done check fails    2m ago   5m   58s      3/20    $0.15  Make tests green
    k3mx7q9w2r5t                      running (orphaned)           4m ago   5m   4m 59s   1.3            sh -c 'while true;…
    0a1b2c3d4e5g  port                verifying: check done 2/3    4m ago   5m   4m 59s   3.2/20  $0.42  port the parser
    zax3mq66vpj2  leak-of-the-worker  retry 3/5 in 37s (exit 127)  4m ago   5m   4m 59s   7.2/20  $2.17  Find the memory le…
    zzzzzzzzzzzz                      queued                       5m ago   5m   -        -              sleep 100
    0a1b2c3d4e5f  nightly-build       failed (exit 7)              4m ago   5m   2s       1              sleep 100
    ");
}

#[test]
fn what_needs_a_person_comes_first_then_what_goes_on() {
    let order = |text: &str| {
        let ids = [ORPHAN, FAILED, QUEUED, LOOP, TURN].map(|row| row[7..19].to_owned());
        ids.iter().map(|id| text.find(id.as_str()).expect("it is listed")).collect::<Vec<_>>()
    };
    let all = [FAILED, QUEUED, LOOP, ORPHAN, TURN];
    let [orphan, failed, queued, a_loop, turn] = order(&render(&all, None))[..] else {
        panic!("five")
    };
    assert!(orphan < a_loop && a_loop < turn && turn < queued && queued < failed);
    let json = format!("[{}]", all.join(","));
    let sorted = chosen(&json, Some(Sort::NeedsMe), None).expect("rows");
    assert!(
        order(&sorted).iter().zip([0, 4, 3, 1, 2]).all(|(at, place)| {
            order(&sorted).iter().filter(|other| *other < at).count() == place
        }),
        "{sorted}"
    );
    let unchanged: Vec<serde_json::Value> = serde_json::from_str(&sorted).expect("an array");
    assert_eq!(unchanged.len(), all.len());
}

#[test]
fn a_terminal_state_looks_among_all_runs() {
    let args = |state| Ps {
        all: false,
        state,
        label: vec![("a".into(), "b".into())],
        sort: None,
        trigger: None,
        since: None,
        last: None,
        quiet: false,
        format: None,
        json: false,
    };
    assert_eq!(
        ask(&args(Some(StateName::Failed))).target,
        "/v1/runs?state=failed&all=true&label=a%3Db"
    );
    assert_eq!(ask(&args(None)).target, "/v1/runs?label=a%3Db");
}
