//! What the journal says of health, of usage on the way, of budgets and of `pause --all`.

use outlast_engine::{
    Actor, Agent, Charge, Event, Fact, Health, HealthRules, Limit, RunSpec, Time, TurnOutcome,
    TurnStatus, Wait,
};

use super::{as_lines, assert_takes_more, from_lines, golden, has_all};

fn words() -> Vec<Event> {
    let unwell = Health::ALL.into_iter().filter(|health| *health != Health::Healthy);
    let healths = unwell.chain([Health::Healthy]);
    let since = Time(1_790_000_000_000);
    let why = "no output for 6 minutes".to_owned();
    let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
    let rules = HealthRules { silent_after_ms: 1000, thrash_attempts: 4, near_limit_percent: 90 };
    let charge = Charge {
        input_tokens: 1,
        output_tokens: 2,
        cached_tokens: 3,
        cost_usd_micros: 4,
        known: true,
        reserved: None,
        half: None,
    };
    let committed = Fact::TurnCommitted {
        turn: 1,
        attempt: 1,
        status: TurnStatus::Continue,
        outcome: TurnOutcome::MeaningfulCompletion,
        summary: String::new(),
        next_task: None,
        tool_calls: Vec::new(),
        refused: Vec::new(),
        wait: Some(Wait::RateLimit(since)),
        workspace: None,
        progress: None,
    };
    let mut facts: Vec<Fact> =
        healths.map(|health| Fact::HealthDegraded { health, since, why: why.clone() }).collect();
    let spec = RunSpec { health: rules, ..RunSpec::command(agent, "/".to_owned()) };
    let neared = |limit, budget| Fact::LimitNeared { limit, used: 8, max: 10, budget };
    facts.extend([
        Fact::HealthRecovered { from: Health::Silent },
        neared(Limit::MaxTokens, None),
        neared(Limit::Budget, Some("day".to_owned())),
        Fact::LimitReached { limit: Limit::Budget },
        Fact::UsageReported { turn: 1, attempt: 2, charge },
        Fact::PauseRequested {
            actor: Actor::User,
            all: true,
            now: true,
            order: outlast_engine::Order::default(),
        },
        Fact::ResumeRequested {
            actor: Actor::User,
            all: true,
            order: outlast_engine::Order::default(),
        },
        committed,
        Fact::RunCreated { spec: Box::new(spec), line: None },
    ]);
    (1..).zip(facts).map(|(seq, fact)| Event { seq, at: since, fact }).collect()
}

fn health_number(event: &Event) -> usize {
    let Fact::HealthDegraded { health, .. } = &event.fact else { return 0 };
    match health {
        Health::Healthy => 0,
        Health::Silent => 1,
        Health::Stalled => 2,
        Health::Thrashing => 3,
        Health::WaitingHuman => 4,
        Health::RateLimited => 5,
        Health::NearLimit => 6,
        Health::Orphaned => 7,
        Health::Unreachable => 8,
    }
}

#[test]
fn every_word_of_health() {
    let words = words();
    assert!(has_all(&words, 9, health_number));
    words.iter().for_each(assert_takes_more);
    assert_eq!(from_lines::<Event>(&golden("health-words.jsonl", &as_lines(&words))), words);
}
