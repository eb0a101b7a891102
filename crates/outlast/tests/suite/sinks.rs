//! Each kind of sink, what it asks of us, and what it does not want to be told.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::harness::{Home, str_of, text, until};
use crate::notices::{Sheet, until_settled};
use crate::receiver::{Receiver, Told, status};

fn configure(home: &Home, config: &str) {
    fs::write(home.path().join("config.toml"), config).expect("the test's directory is ours");
}

fn run(home: &Home, sink: &str, command: &[&str]) -> String {
    home.ok(&[&["run", "-d", "--notify", sink, "--"], command].concat())
}

fn sink(home: &Home) -> Value {
    home.json(&["sink", "ls", "--json"])[0].clone()
}

#[test]
fn a_sink_that_says_it_is_gone_is_left_alone_until_somebody_enables_it() {
    let home = Home::new();
    let receiver = Receiver::new();
    receiver.answers(|_, _| status(410, ""));
    configure(
        &home,
        &format!("[sinks.hook]\nkind = \"webhook\"\nurl = \"{}\"\n", receiver.url("/")),
    );
    let first = run(&home, "hook", &["true"]);
    until("it is disabled", || sink(&home)["disabled_at"].as_str().map(drop));
    home.crash_daemon();
    let second = run(&home, "hook", &["true"]);
    assert_eq!(home.wait(&second), 0);
    assert!(text(&home.output(&["doctor"]).stdout).contains("\"hook\" is disabled since"));
    assert_eq!((sink(&home)["pending"].as_u64(), receiver.told().len()), (Some(2), 1));
    receiver.answers(|_, _| status(204, ""));
    home.ok(&["sink", "enable", "hook"]);
    for id in [&first, &second] {
        assert_eq!(until_settled(&home, id)["notices"]["delivered"], 1);
    }
    assert_eq!(receiver.ids().len(), 2);
    assert!(sink(&home)["disabled_at"].is_null());
}

#[test]
fn a_sink_that_asks_for_time_gets_it() {
    let home = Home::new();
    let receiver = Receiver::new();
    receiver.answers(|_, _| status(429, "retry-after: 7200\r\n"));
    configure(
        &home,
        &format!("[sinks.hook]\nkind = \"webhook\"\nurl = \"{}\"\n", receiver.url("/")),
    );
    run(&home, "hook", &["true"]);
    let at = |row: &Value, key: &str| str_of(row, key).parse::<jiff::Timestamp>().expect("a time");
    let row =
        until("it has failed", || Some(sink(&home)).filter(|row| row["next_try_at"].is_string()));
    let asked = at(&row, "next_try_at").duration_since(at(&row, "failing_since")).as_secs();
    assert!((7199..=7300).contains(&asked), "{asked} s in {row}");
    receiver.answers(|_, _| status(503, "retry-after: Fri, 01 Jan 2100 00:00:00 GMT\r\n"));
    home.ok(&["sink", "enable", "hook"]);
    receiver.until_told(2);
    let row = until("it has failed again", || {
        Some(sink(&home)).filter(|row| row["problem"].as_str().is_some_and(|it| it.contains("503")))
    });
    let asked = at(&row, "next_try_at").duration_since(at(&row, "failing_since")).as_secs();
    assert!((86_000..=86_500).contains(&asked), "a day at most: {asked} s in {row}");
}

#[test]
fn a_level_and_a_present_person_mute() {
    let home = Home::new();
    let (receiver, here) = (Receiver::new(), home.scratch().join("here"));
    let url = receiver.url("/");
    configure(
        &home,
        &format!(
            "[notify]\npresence_file = \"{}\"\npresence_max_age_ms = 600000\ndefault = [\"always\"]\n\
             [sinks.needs]\nkind = \"slack\"\nurl = \"{url}needs\"\nlevel = \"needs_me\"\n\
             [sinks.done]\nkind = \"discord\"\nurl = \"{url}done\"\nlevel = \"done\"\n\
             [sinks.silent]\nkind = \"webhook\"\nurl = \"{url}silent\"\nlevel = \"silent\"\n\
             [sinks.always]\nkind = \"slack\"\nurl = \"{url}always\"\nwhen_present = \"send\"\n",
            here.display()
        ),
    );
    let tell = |command: &str| {
        let sinks = ["--notify", "needs", "--notify", "done", "--notify", "silent"];
        let id = home.ok(&[&["run", "-d"], &sinks[..], &["--", command]].concat());
        let run = until_settled(&home, &id);
        let counts = ["delivered", "muted"].map(|key| run["notices"][key].as_u64().unwrap_or(0));
        (counts[0], counts[1])
    };
    assert_eq!(tell("true"), (2, 2), "done and always");
    assert_eq!(tell("false"), (3, 1), "and who is needed");
    fs::write(&here, "").expect("the scratch directory is ours");
    assert_eq!(tell("false"), (1, 3), "a person who is there knows already");
    fs::remove_file(&here).expect("it was just made");
    assert_eq!(tell("false"), (3, 1));
    assert!(receiver.told().iter().all(|told| told.path != "/silent"));
}

#[test]
fn a_storm_is_told_as_one() {
    let home = Home::new();
    let receiver = Receiver::new();
    // No sink is tried again until all have ended.
    receiver.answers(|_, _| status(503, "retry-after: 3600\r\n"));
    let url = receiver.url("/");
    configure(
        &home,
        &format!(
            "[sinks.chat]\nkind = \"slack\"\nurl = \"{url}chat\"\n[sinks.hook]\nkind = \"webhook\"\nurl = \"{url}hook\"\n\
             [sinks.few]\nkind = \"webhook\"\nurl = \"{url}few\"\ncoalesce = true\n"
        ),
    );
    let args =
        ["run", "-d", "--notify", "chat", "--notify", "hook", "--notify", "few", "--", "true"];
    let runs: Vec<String> = (0..20).map(|_| home.ok(&args)).collect();
    runs.iter().for_each(|id| assert_eq!(home.wait(id), 0));
    let before = receiver.until_told(3).len();
    // Refused once more, so that it is told twice: it is the same batch, also for the next daemon.
    receiver
        .answers(|_, told| if told.path == "/hook" { status(200, "") } else { status(500, "") });
    ["chat", "hook", "few"].iter().for_each(|name| drop(home.ok(&["sink", "enable", name])));
    let of = |path: &str| -> Vec<Told> {
        receiver.told()[before..].iter().filter(|told| told.path == path).cloned().collect()
    };
    until("each has been tried", || {
        (!of("/chat").is_empty() && !of("/few").is_empty()).then_some(())
    });
    home.crash_daemon();
    receiver.answers(|_, _| status(200, ""));
    ["chat", "hook", "few"].iter().for_each(|name| drop(home.ok(&["sink", "enable", name])));
    runs.iter().for_each(|id| assert_eq!(until_settled(&home, id)["notices"]["delivered"], 3));
    let ids: BTreeSet<String> = of("/hook").iter().map(Told::id).collect();
    assert_eq!(ids.len(), 20, "machines are told everything");
    assert!(
        of("/chat")
            .iter()
            .all(|told| str_of(&told.json(), "text").starts_with("20 notices at once"))
    );
    let few = of("/few");
    let first = few[0].json();
    assert_eq!((str_of(&first, "type"), &first["data"]["count"]), ("run.batch", &20.into()));
    assert!(str_of(&first["data"], "summary").ends_with("and 15 more"), "{first}");
    assert!(
        few.iter()
            .all(|told| told.json() == first && told.header("webhook-id") == str_of(&first, "id"))
    );
    assert!(few.len() >= 2, "it was told again");
}

#[test]
fn each_kind_is_told_in_its_own_words() {
    let home = Home::new();
    let (bin, mail, shown) =
        (home.scratch().join("bin"), home.scratch().join("mail"), home.scratch().join("shown"));
    fs::create_dir(&bin).expect("the scratch directory is ours");
    let program = bin.join("notify-send");
    let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\n", shown.display());
    crate::programs::script(&program, &script);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let (home, receiver) = (home.env("PATH", path), Receiver::new());
    let url = receiver.url("");
    configure(
        &home,
        &format!(
            "[sinks.push]\nkind = \"ntfy\"\nurl = \"{url}/alerts\"\ntoken = \"tk_1\"\nclick = \"https://me.example/{{run}}\"\n\
             [sinks.chat]\nkind = \"slack\"\nurl = \"{url}/chat\"\n[sinks.other]\nkind = \"discord\"\nurl = \"{url}/other\"\n\
             [sinks.mail]\nkind = \"email\"\ncommand = \"cat > '{}'\"\nto = \"me@example.org\"\nfrom = \"outlast@example.org\"\n",
            mail.display()
        ),
    );
    let sinks = ["push", "chat", "other", "mail", "desktop"];
    let flags: Vec<&str> = sinks.iter().flat_map(|sink| ["--notify", sink]).collect();
    let name = ["run", "-d", "--name", "nächtlich"];
    let id = home
        .ok(&[&name[..], &flags, &["--", "sh", "-c", "echo '<!channel> & co'; exit 7"]].concat());
    let run = until_settled(&home, &id);
    assert_eq!(run["notices"]["delivered"], 5, "{run}");
    let told = receiver.told();
    let of = |path: &str| told.iter().find(|told| told.path == path).expect("it was told").json();
    let push = of("/");
    assert_eq!(
        (str_of(&push, "topic"), str_of(&push, "title")),
        ("alerts", "nächtlich failed: exit 7")
    );
    assert_eq!(
        (&push["priority"], str_of(&push, "click")),
        (&4.into(), format!("https://me.example/{id}").as_str())
    );
    assert_eq!(push["actions"][0]["action"], "view");
    let bearer =
        told.iter().find(|told| told.path == "/").expect("it was told").header("authorization");
    assert_eq!(bearer, "Bearer tk_1");
    assert!(str_of(&of("/chat"), "text").contains("&lt;!channel&gt; &amp; co"));
    assert_eq!(of("/other")["allowed_mentions"]["parse"], serde_json::json!([]));
    let mail = fs::read_to_string(mail).expect("a mail was sent");
    let (head, _) = mail.split_once("\n\n").expect("it has a head");
    assert!(
        head.starts_with("From: outlast@example.org\nTo: me@example.org\nSubject: =?utf-8?B?"),
        "{head}"
    );
    let shown = fs::read_to_string(shown).expect("it was shown");
    assert!(
        shown.contains("nächtlich failed: exit 7\n") && shown.contains("&lt;!channel&gt;"),
        "{shown}"
    );
}

#[test]
fn a_command_is_told_who_it_is_about_and_its_failure_is_shown() {
    let home = Home::new();
    let (told, go) = (home.scratch().join("told"), home.scratch().join("go"));
    let command = format!(
        "test -e '{}' || {{ echo not yet >&2; exit 9; }}; echo \"$OUTLAST_NOTICE_TYPE $OUTLAST_NOTICE_RUN $OUTLAST_NOTICE_ID $PWD\" > '{}'",
        go.display(),
        told.display()
    );
    let id = run(&home, &format!("cmd:{command}"), &["true"]);
    let show = until("it has failed", || {
        Some(home.show(&id)).filter(|run| run["notices"]["problem"].is_string())
    });
    let problem = str_of(&show["notices"], "problem");
    assert!(problem.contains('9') && problem.contains("not yet"), "{problem}");
    assert!(home.ok(&["show", &id]).contains("1 pending: "));
    fs::write(go, "").expect("the scratch directory is ours");
    home.ok(&["sink", "enable", &format!("cmd:{command}")]);
    until_settled(&home, &id);
    let told = fs::read_to_string(told).expect("it was told");
    let words: Vec<&str> = told.split_whitespace().collect();
    assert_eq!(words[..2], ["run.completed", &id]);
    assert!(words[2].starts_with(&id), "{told}");
    assert_eq!(words[3], home.scratch().to_str().expect("it is text"), "where the run was started");
}

#[test]
fn a_sink_is_tried_out_and_says_what_happened() {
    let home = Home::new();
    let (sheet, receiver) = (Sheet::new(&home, "told"), Receiver::new());
    configure(&home, &format!("[sinks.file]\nkind = \"cmd\"\ncommand = \"{}\"\n", sheet.command()));
    let tested = home.json(&["sink", "test", "file", "--json"]);
    assert_eq!((&tested["delivered"], str_of(&tested, "kind")), (&true.into(), "cmd"));
    let told = &sheet.notices()[0];
    assert_eq!((str_of(told, "id"), str_of(told, "type")), (str_of(&tested, "id"), "sink.test"));
    receiver.answers(|_, _| status(302, "location: /elsewhere\r\n"));
    let output = home.output(&["sink", "test", &format!("webhook:{}", receiver.url("/x"))]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(
        said.starts_with("not delivered to webhook:")
            && said.contains("redirects are not followed"),
        "{said}"
    );
    assert_eq!(receiver.told().len(), 1);
    let said = home.fails(2, &["sink", "test", "nosink"]);
    assert!(said.contains("there is no sink \"nosink\"") && said.contains("hint: file"), "{said}");
    home.fails(1, &["sink", "test", "webhook:http://127.0.0.1:1/"]);
}

#[test]
fn a_sink_that_left_the_config_is_not_forgotten() {
    let home = Home::new();
    let sheet = Sheet::new(&home, "told");
    let config = format!("[sinks.file]\nkind = \"cmd\"\ncommand = \"{}\"\n", sheet.command());
    configure(&home, &config);
    let gate = home.scratch().join("go");
    let script = format!("while [ ! -e '{}' ]; do sleep 0.02; done", gate.display());
    let id = run(&home, "file", &["sh", "-c", &script]);
    configure(&home, "");
    fs::write(gate, "").expect("the scratch directory is ours");
    until("it has failed", || {
        let problem = home.show(&id)["notices"]["problem"].as_str().map(str::to_owned);
        problem.filter(|problem| problem.contains("there is no sink \"file\""))
    });
    configure(&home, &config);
    home.ok(&["sink", "enable", "file"]);
    until_settled(&home, &id);
    assert_eq!(sheet.notices().len(), 1);
}
