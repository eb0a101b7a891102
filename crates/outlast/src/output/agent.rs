//! What a driven agent is at, in few words.

use jiff::Timestamp;
use outlast_wire::api::{Activity, ContextNow, RetryNow};
use outlast_workflow::duration;

use super::figures;
use super::time::ms_between;

/// A tool with a longer name is cut where there is little room.
const MOST_NAME: usize = 20;

/// In a word or two, for a list: `Bash`, `Bash +1`, `retries`.
pub(crate) fn doing(activity: &Activity) -> Option<String> {
    if activity.unreadable.is_some() {
        return Some("events unreadable".to_owned());
    }
    if activity.asks.is_some() {
        return Some("asks".to_owned());
    }
    if activity.retrying.is_some() {
        return Some("retries".to_owned());
    }
    let tool = activity.tool.as_ref()?;
    let others = activity.tools.saturating_sub(1);
    let others = if others > 0 { format!(" +{others}") } else { String::new() };
    Some(format!("{}{others}", cut(&tool.name)))
}

fn cut(name: &str) -> String {
    match name.char_indices().nth(MOST_NAME) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// `Bash: cargo test, 12s`
pub(crate) fn tool(activity: &Activity, now: Timestamp) -> Option<String> {
    let tool = activity.tool.as_ref()?;
    let about = if tool.about.is_empty() { String::new() } else { format!(": {}", tool.about) };
    let others = match activity.tools.saturating_sub(1) {
        0 => String::new(),
        others => format!(", and {}", figures::count(others as usize, "other")),
    };
    let since = ms_between(&tool.since, now).map(|ms| format!(", {}", duration::short(ms)));
    Some(format!("{}{about}{others}{}", tool.name, since.unwrap_or_default()))
}

/// `45%`, or `90k` of a window that is not known.
pub(crate) fn fill(activity: &Activity) -> Option<String> {
    let context = activity.context?;
    Some(percent(&context).unwrap_or_else(|| figures::short(context.used)))
}

/// `90k of 200k tokens (45%)`
pub(crate) fn context(activity: &Activity) -> Option<String> {
    let context = activity.context?;
    Some(match (context.window, percent(&context)) {
        (Some(window), Some(percent)) => {
            let used = figures::short(context.used);
            format!("{used} of {} ({percent})", figures::tokens(window))
        }
        _ => figures::tokens(context.used),
    })
}

fn percent(context: &ContextNow) -> Option<String> {
    context.fill.map(|fill| format!("{:.0}%", fill * 100.0))
}

/// `overloaded; try 2 of 10 in 5s`
pub(crate) fn retry(retrying: &RetryNow, now: Timestamp) -> String {
    let most = retrying.most.map(|most| format!(" of {most}")).unwrap_or_default();
    let until = retrying.until.as_deref().and_then(|until| until.parse::<Timestamp>().ok());
    let wait_ms = until.map(|until| until.as_millisecond() - now.as_millisecond());
    let wait = wait_ms.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0);
    let wait = wait.map(|ms| format!(" in {}", duration::short(ms))).unwrap_or_default();
    format!("{}; try {}{most}{wait}", retrying.why, retrying.attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(json: &str) -> Activity {
        serde_json::from_str(json).expect("an activity")
    }

    #[test]
    fn an_agent_is_told_by_what_it_waits_for() {
        let tool = r#""tool":{"name":"Bash","about":"make","since":"2026-11-15T11:59:48Z"}"#;
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let one = activity(&format!("{{{tool},\"tools\":1}}"));
        assert_eq!(doing(&one).as_deref(), Some("Bash"));
        assert_eq!(super::tool(&one, now).as_deref(), Some("Bash: make, 12s"));
        let two = activity(&format!("{{{tool},\"tools\":2}}"));
        assert_eq!(doing(&two).as_deref(), Some("Bash +1"));
        assert_eq!(super::tool(&two, now).as_deref(), Some("Bash: make, and 1 other, 12s"));
        assert_eq!(doing(&Activity::default()), None);
        let long = activity(r#"{"tool":{"name":"mcp__a_server__a_tool_with_a_name","since":""}}"#);
        assert_eq!(doing(&long).as_deref(), Some("mcp__a_server__a_too…"));
    }

    #[test]
    fn a_context_is_a_share_where_its_window_is_known() {
        let known = activity(r#"{"context":{"used":90000,"window":200000,"fill":0.45}}"#);
        assert_eq!(fill(&known).as_deref(), Some("45%"));
        assert_eq!(context(&known).as_deref(), Some("90k of 200k tokens (45%)"));
        let unknown = activity(r#"{"context":{"used":90000}}"#);
        assert_eq!(fill(&unknown).as_deref(), Some("90k"));
        assert_eq!(context(&unknown).as_deref(), Some("90k tokens"));
    }

    #[test]
    fn a_retry_says_which_and_when() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let waits = activity(
            r#"{"retrying":{"attempt":2,"most":10,"why":"overloaded","since":"","until":"2026-11-15T12:00:05Z"}}"#,
        );
        assert_eq!(doing(&waits).as_deref(), Some("retries"));
        let words = retry(waits.retrying.as_ref().expect("it retries"), now);
        assert_eq!(words, "overloaded; try 2 of 10 in 5s");
    }
}
