//! Orders to a run: each is bound to what its giver saw and counts once, and 2xx says that it is in the journal.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Barrier;

use serde_json::{Value, json};

use crate::bad_line::{through_a_bad_line, whole};
use crate::harness::{Home, str_of, text, until};
use crate::hosted::{becomes, begin, of_kind, post};
use crate::loops::assert_sound;

/// Rounds of the race of two clients. `OUTLAST_ORDER_ROUNDS=1000` is how the claim was proven.
const ROUNDS: usize = 12;

/// Says something in every turn that a person has to approve.
const TELLER: &str = r#"echo "$OUTLAST_TURN" >>file; say continue "part $OUTLAST_TURN""#;
const APPROVAL: &str = "output: {require_approval_before_emit: true}";
/// Asks in every turn.
const ASKER: &str = r#"echo "$OUTLAST_TURN" >>file; say blocked "what about $OUTLAST_TURN?""#;

/// Waits until the run asks what it asks after so many turns, and says the number of the question.
fn asks(home: &Home, id: &str, turns: u64) -> u64 {
    until(&format!("{id} asks after turn {turns}"), || {
        let run = home.show(id);
        run["asks"]["seq"].as_u64().filter(|_| run["turns_committed"] == turns)
    })
}

fn emitted(home: &Home, id: &str) -> Vec<Value> {
    of_kind(home, id, "Emitted").iter().map(|event| event["turn"].clone()).collect()
}

fn code(answer: &Value) -> &str {
    str_of(&answer["error"], "code")
}

#[test]
fn an_approval_that_is_posted_again_approves_no_later_turn() {
    let home = Home::new();
    let id = begin(&home, TELLER, APPROVAL);
    let first = asks(&home, &id, 1);
    let path = format!("/v1/runs/{id}/answer");
    let order = json!({"id": "a-1", "answer": "approve"});
    assert_eq!(post(&home, &path, &order).0, 202);
    let second = asks(&home, &id, 2);
    assert!(second > first);
    assert_eq!(post(&home, &path, &order).0, 202, "it is the same order");
    let late = json!({"id": "a-2", "seq": first, "answer": "approve"});
    let (status, answer) = post(&home, &path, &late);
    assert_eq!((status, code(&answer)), (409, "already_answered"));
    let ahead = json!({"id": "a-3", "seq": second + 1, "answer": "approve"});
    let (status, answer) = post(&home, &path, &ahead);
    assert_eq!((status, code(&answer)), (409, "stale_order"), "{answer}");
    let other = json!({"id": "a-1", "answer": "deny"});
    let (status, answer) = post(&home, &path, &other);
    assert_eq!((status, code(&answer)), (409, "id_conflict"), "{answer}");
    assert_eq!(asks(&home, &id, 2), second, "it still asks");
    assert_eq!(emitted(&home, &id), [1]);
    let answered = of_kind(&home, &id, "Answered");
    assert_eq!(answered.len(), 1);
    let given = &answered[0];
    assert_eq!(
        (&given["order"], &given["answers"], &given["actor"]),
        (&json!("a-1"), &json!(first), &json!("user"))
    );
    let uid = rustix::process::geteuid().as_raw();
    assert_eq!(given["by"], json!({"kind": "user", "uid": uid}));
    // It outlasts the daemon.
    home.crash_daemon();
    home.ok(&["ps"]);
    assert_eq!(post(&home, &path, &order).0, 202);
    assert_eq!(emitted(&home, &id), [1]);
}

#[test]
fn a_second_answer_to_a_question_is_refused_with_the_first() {
    let home = Home::new();
    let id = begin(&home, TELLER, APPROVAL);
    let asked = asks(&home, &id, 1);
    let path = format!("/v1/runs/{id}/answer");
    let order = |order: &str, answer: &str| json!({"id": order, "seq": asked, "answer": answer});
    assert_eq!(post(&home, &path, &order("d", "deny")).0, 202);
    let (status, answer) = post(&home, &path, &order("a", "approve"));
    assert_eq!((status, code(&answer)), (409, "already_answered"));
    assert!(str_of(&answer["error"], "message").contains("denied by user"), "{answer}");
    asks(&home, &id, 2);
    assert_eq!((emitted(&home, &id).len(), home.count(&id, "EmissionDenied")), (0, 1));
    let said = home.fails(2, &["answer", &id, "--approve", "--seq", &asked.to_string()]);
    assert!(said.contains("denied") && said.contains("\nhint: "), "{said}");
}

#[test]
fn a_resume_that_is_posted_again_releases_no_later_block() {
    let home = Home::new();
    let id = begin(&home, ASKER, "");
    let first = asks(&home, &id, 1);
    let path = format!("/v1/runs/{id}/resume");
    let order = json!({"id": "r-1", "seq": first});
    assert_eq!(post(&home, &path, &order).0, 202);
    let second = asks(&home, &id, 2);
    assert_eq!(post(&home, &path, &order).0, 202, "it is the same order");
    let (status, answer) = post(&home, &path, &json!({"id": "r-2", "seq": first}));
    assert_eq!((status, code(&answer)), (409, "stale_order"), "{answer}");
    assert_eq!(asks(&home, &id, 2), second);
    assert_eq!(home.count(&id, "ResumeRequested"), 1);
    // A client that sends no body means what is there now.
    let mut daemon = UnixStream::connect(home.path().join("run/daemon.sock")).expect("it listens");
    write!(daemon, "POST {path} HTTP/1.1\r\nHost: outlast\r\nContent-Length: 0\r\n\r\n")
        .expect("it listens");
    assert!(text(&whole(&mut daemon).expect("it answers")).starts_with("HTTP/1.1 202 "));
    asks(&home, &id, 3);
}

#[test]
fn what_cannot_be_taken_is_never_acknowledged() {
    let home = Home::new();
    let id = begin(&home, ASKER, "");
    asks(&home, &id, 1);
    let order = |verb: &str, body: &Value| post(&home, &format!("/v1/runs/{id}/{verb}"), body);
    assert_eq!(order("stop", &json!({"id": "s-1"})).0, 202);
    becomes(&home, &id, "stopped", "stopped");
    assert_eq!(order("stop", &json!({"id": "s-1"})).0, 202, "it is the same order");
    for verb in ["stop", "pause", "resume"] {
        let (status, answer) = order(verb, &json!({"id": format!("{verb}-2")}));
        assert_eq!((status, code(&answer)), (409, "has_ended"), "{verb}");
    }
    let long = "x".repeat(201);
    for bad in [json!({"id": long}), json!({"id": ""}), json!({"id": "a\nb"})] {
        assert_eq!(order("stop", &bad).0, 400, "{bad}");
    }
    assert_eq!(home.count(&id, "StopRequested"), 1);
}

#[test]
fn one_approval_whose_answer_is_lost_on_the_way_approves_one_emission() {
    let home = Home::new();
    let id = begin(&home, TELLER, APPROVAL);
    asks(&home, &id, 1);
    let said = through_a_bad_line(&home, "/answer", 2, &["answer", &id, "--approve"]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    asks(&home, &id, 2);
    assert_eq!((emitted(&home, &id), home.count(&id, "Answered")), (vec![json!(1)], 1));
}

#[test]
fn a_resume_whose_answer_is_lost_on_the_way_releases_one_block() {
    let home = Home::new();
    let id = begin(&home, ASKER, "");
    asks(&home, &id, 1);
    let said = through_a_bad_line(&home, "/resume", 1, &["resume", &id]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    asks(&home, &id, 2);
    assert_eq!(home.count(&id, "ResumeRequested"), 1);
}

#[test]
fn a_removal_whose_answer_is_lost_on_the_way_is_no_failure_and_removes_no_other_run_of_that_name() {
    let home = Home::new();
    for _ in 0..2 {
        let id = home.ok(&["run", "-d", "--name", "build", "--", "true"]);
        assert_eq!(home.wait(&id), 0);
    }
    let before = home.json(&["ps", "-a", "--json"]).as_array().map_or(0, Vec::len);
    let said = through_a_bad_line(&home, "DELETE", 1, &["rm", "build"]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let after = home.json(&["ps", "-a", "--json"]).as_array().map_or(0, Vec::len);
    assert_eq!((before, after), (2, 1));
}

/// A stream of numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// What one of the two clients wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Approve,
    Deny,
    Reply,
    Resume,
    Pause,
    Stop,
}

const WISHES: [Wish; 16] = {
    use Wish::{Approve, Deny, Pause, Reply, Resume, Stop};
    [
        Approve, Approve, Approve, Approve, Deny, Deny, Deny, Deny, Reply, Reply, Reply, Resume,
        Resume, Resume, Pause, Stop,
    ]
};

impl Wish {
    fn verb(self) -> &'static str {
        match self {
            Self::Approve | Self::Deny | Self::Reply => "answer",
            Self::Resume => "resume",
            Self::Pause => "pause",
            Self::Stop => "stop",
        }
    }

    fn body(self, order: &str, seq: u64) -> Value {
        match self {
            Self::Approve => json!({"id": order, "seq": seq, "answer": "approve"}),
            Self::Deny => json!({"id": order, "seq": seq, "answer": "deny"}),
            Self::Reply => json!({"id": order, "seq": seq, "answer": {"text": "so"}}),
            Self::Resume | Self::Pause => json!({"id": order, "seq": seq}),
            Self::Stop => json!({"id": order}),
        }
    }

    /// What is typed for it; a stop at the command line waits for the end, which is no order.
    fn typed(self, id: &str) -> Option<Vec<String>> {
        let words = match self {
            Self::Approve => vec!["answer", id, "--approve", "--json"],
            Self::Deny => vec!["answer", id, "--deny", "--json"],
            Self::Reply => vec!["answer", id, "so", "--json"],
            Self::Resume => vec!["resume", id, "--json"],
            Self::Pause => vec!["pause", id, "--json"],
            Self::Stop => return None,
        };
        Some(words.into_iter().map(str::to_owned).collect())
    }

    /// The order that an event is.
    fn of(event: &Value) -> Option<Self> {
        Some(match (str_of(event, "kind"), event["decision"].as_str()) {
            ("Answered", Some("approve")) => Self::Approve,
            ("Answered", Some("deny")) => Self::Deny,
            ("Answered", Some(_)) => Self::Reply,
            ("ResumeRequested", _) => Self::Resume,
            ("PauseRequested", _) => Self::Pause,
            ("StopRequested", _) => Self::Stop,
            _ => return None,
        })
    }
}

/// What became of a wish.
struct Outcome {
    wish: Wish,
    /// Chosen by the client; the built program does not say its own.
    order: Option<String>,
    /// Why it was refused.
    refused: Option<Value>,
}

/// Gives one order as any client does, again until it is answered.
fn give(home: &Home, id: &str, wish: Wish, order: String, seq: u64, by_hand: bool) -> Outcome {
    if let Some(args) = wish.typed(id).filter(|_| by_hand) {
        let said = home.output(&args);
        let refused = (!said.status.success()).then(|| {
            assert_eq!(said.status.code(), Some(2), "{args:?}: {said:?}");
            let json = serde_json::from_slice(&said.stderr);
            json.or_else(|_| serde_json::from_slice(&said.stdout)).expect("a refusal is JSON")
        });
        return Outcome { wish, order: None, refused };
    }
    let path = format!("/v1/runs/{id}/{}", wish.verb());
    let (status, answer) = until("an answer", || {
        Some(post(home, &path, &wish.body(&order, seq))).filter(|(status, _)| *status != 503)
    });
    assert!(matches!(status, 202 | 409), "{wish:?}: {status} {answer}");
    Outcome { wish, order: Some(order), refused: (status != 202).then_some(answer) }
}

/// Every order that was acknowledged is in the journal and no other; every question has one answer at most.
fn hold_to_it(home: &Home, id: &str, outcomes: &[Outcome]) {
    let events = home.events(id);
    let journal: Vec<(Wish, &Value)> =
        events.iter().filter_map(|event| Some((Wish::of(event)?, event))).collect();
    let (mut acknowledged, mut written) = (BTreeMap::new(), BTreeMap::new());
    for (wish, _) in &journal {
        *written.entry(*wish).or_insert(0) += 1;
    }
    for outcome in outcomes {
        let is_written = |order: &String| journal.iter().any(|(_, it)| it["order"] == **order);
        match &outcome.refused {
            None => {
                *acknowledged.entry(outcome.wish).or_insert(0) += 1;
                assert!(outcome.order.as_ref().is_none_or(is_written), "{id}: {:?}", outcome.order);
            }
            Some(refused) => {
                let error = &refused["error"];
                assert!(!str_of(error, "code").is_empty() && str_of(error, "message").len() > 10);
                assert!(!outcome.order.as_ref().is_some_and(is_written), "{id}: {refused}");
            }
        }
    }
    assert_eq!(acknowledged, written, "{id}");
    let questions: Vec<u64> = events
        .iter()
        .filter(|event| event["kind"] == "StateChanged" && event["to"] == "blocked")
        .filter_map(|event| event["seq"].as_u64())
        .collect();
    for question in questions {
        let answers = journal.iter().filter(|(_, event)| event["answers"] == question).count();
        assert!(answers <= 1, "{id}: event {question} has {answers} answers");
    }
    let approved: Vec<&Value> = events
        .iter()
        .filter(|event| event["kind"] == "Answered" && event["decision"] == "approve")
        .collect();
    let emitted = events.iter().filter(|event| event["kind"] == "Emitted").count();
    let asks_first = events.iter().any(|event| event["reason_code"] == "needs_approval");
    assert!(
        !asks_first || emitted <= approved.len(),
        "{id}: {emitted} emitted, {} approved",
        approved.len()
    );
}

/// Two clients give one run orders at the same moment, again and again; by hand and with the built program.
#[test]
fn slow_two_clients_at_once_every_order_that_is_acknowledged_is_in_the_journal() {
    let rounds = std::env::var("OUTLAST_ORDER_ROUNDS").ok().and_then(|it| it.parse().ok());
    let rounds: usize = rounds.unwrap_or(ROUNDS);
    let home = Home::new();
    let mut dice = Dice(20_261_117);
    let mut run: Option<(String, Vec<Outcome>)> = None;
    let (mut taken, mut refused) = (0, 0);
    let mut round = 0;
    while round < rounds {
        let (id, mut outcomes) = run.take().unwrap_or_else(|| {
            let approves = dice.below(2) == 0;
            let id =
                if approves { begin(&home, TELLER, APPROVAL) } else { begin(&home, ASKER, "") };
            (id, Vec::new())
        });
        let seen = until("it asks, or rests", || {
            let run = home.show(&id);
            let is_over = run["ended_at"].is_string();
            (is_over || run["asks"].is_object() || run["phase"] == "paused").then_some(run)
        });
        if seen["ended_at"].is_string() {
            hold_to_it(&home, &id, &outcomes);
            continue;
        }
        round += 1;
        let seq = seen["asks"]["seq"].as_u64().or(seen["seq"].as_u64()).expect("a number");
        let wishes: Vec<(Wish, bool)> = (0..2)
            .map(|_| (WISHES[usize::try_from(dice.below(16)).unwrap_or(0)], dice.below(3) == 0))
            .collect();
        let start = Barrier::new(2);
        let both: Vec<Outcome> = std::thread::scope(|scope| {
            let clients: Vec<_> = (0..2)
                .map(|client| {
                    let (home, id, start) = (&home, id.as_str(), &start);
                    let (wish, by_hand) = wishes[client];
                    scope.spawn(move || {
                        start.wait();
                        give(home, id, wish, format!("r{round}c{client}"), seq, by_hand)
                    })
                })
                .collect();
            clients.into_iter().map(|client| client.join().expect("it gives its order")).collect()
        });
        taken += both.iter().filter(|it| it.refused.is_none()).count();
        refused += both.iter().filter(|it| it.refused.is_some()).count();
        outcomes.extend(both);
        // A run that rests until it is resumed is let go, so that it asks again.
        if home.show(&id)["paused"] == true {
            outcomes.push(give(&home, &id, Wish::Resume, format!("r{round}"), u64::MAX, false));
        }
        run = Some((id, outcomes));
    }
    if let Some((id, outcomes)) = run {
        hold_to_it(&home, &id, &outcomes);
    }
    assert!(taken > 0 && (refused > 0 || rounds < 50), "{taken} taken, {refused} refused");
    assert_sound(&home);
}
