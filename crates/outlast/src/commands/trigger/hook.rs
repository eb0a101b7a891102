//! A webhook as its person meets it: its address, its secret, and a delivery to try it with.

use std::path::Path;

use outlast_client::problem::Problem;
use outlast_wire::api::{AddTrigger, HookAddress, TriggerSource};
use outlast_workflow::template;
use serde_json::{Map, Value};

use crate::output;
use crate::output::page::{Page, shell_words};

/// How the client came to know a webhook's secret.
pub(super) enum Secret {
    /// Made here or by the daemon just now, and shown once.
    Chosen(String),
    /// On the command line.
    Given(String),
    /// In a variable of this name.
    Variable(String),
    /// That of the trigger that is replaced.
    Unknown,
}

impl Secret {
    pub(super) fn of(given: &str) -> Self {
        match given.strip_prefix("env:") {
            Some(name) => Self::Variable(name.to_owned()),
            None => Self::Given(given.to_owned()),
        }
    }

    /// As a shell writes it.
    fn in_shell(&self) -> String {
        match self {
            Self::Chosen(secret) | Self::Given(secret) => shell_words(std::slice::from_ref(secret)),
            Self::Variable(name) => format!("\"${name}\""),
            Self::Unknown => "SECRET".to_owned(),
        }
    }
}

/// The whole address of a webhook, where its secret is, and a delivery to try it with.
pub(super) fn print(
    asked: &AddTrigger,
    hook: &HookAddress,
    secret: &Secret,
) -> Result<(), Problem> {
    let local = format!("http://localhost/hooks/{}", asked.name);
    let mut page = Page::default();
    page.line("address", hook.url.as_deref().unwrap_or(&local));
    match secret {
        Secret::Chosen(secret) => page.line("secret", secret),
        Secret::Given(_) => page.line("secret", "the one that you gave"),
        Secret::Variable(name) => page.line("secret", &format!("the value of ${name}")),
        Secret::Unknown => page.line("secret", "as before"),
    }
    page.text.push_str("try it\n");
    for line in delivery(asked, hook, secret) {
        page.text.push_str(&format!("  {line}\n"));
    }
    output::print(&page.text)?;
    if let Secret::Chosen(_) = secret {
        output::tell("outlast: the secret is not shown again; the daemon keeps it in its database");
    }
    tell_problem(hook);
    Ok(())
}

/// Says that no other machine can reach a webhook, and how to change that.
pub(super) fn tell_problem(hook: &HookAddress) {
    let Some(problem) = &hook.problem else { return };
    let HookAddress { socket, .. } = hook;
    output::tell(&format!(
        "outlast: {problem}; the webhook is reached only by the socket {socket}"
    ));
    output::tell_hint(&how_to_listen(hook));
}

/// A line for the shell after which the daemon listens; one that says more if the config has such a table already.
fn how_to_listen(hook: &HookAddress) -> String {
    let path = Path::new(&hook.config);
    if std::fs::read_to_string(path).is_ok_and(|text| text.contains("[listen]")) {
        return "outlast doctor".to_owned();
    }
    let words = |path: &Path| shell_words(&[path.display().to_string()]);
    let dir = path.parent().filter(|dir| !dir.is_dir());
    let dir = dir.map(|dir| format!("mkdir -p {} && ", words(dir))).unwrap_or_default();
    let table = r#"'\n[listen]\naddress = "127.0.0.1:8737"\n'"#;
    let file = words(path);
    format!(
        "have the daemon listen on this machine:\n{dir}printf {table} >> {file} && outlast doctor"
    )
}

/// A signed delivery as commands for the shell. Each time it is another one, since equal bodies count once.
fn delivery(asked: &AddTrigger, hook: &HookAddress, secret: &Secret) -> Vec<String> {
    let example = example(asked).to_string();
    let open = example.strip_suffix('}').unwrap_or("{");
    let comma = if open == "{" { "" } else { "," };
    let quoted = open.replace('\'', r"'\''");
    let mut lines = vec![
        format!("secret={}", secret.in_shell()),
        format!(r#"body='{quoted}{comma}"sent_at":"'$(date +%s)'"}}'"#),
        r#"sign=$(printf %s "$body" | openssl dgst -sha256 -hmac "$secret")"#.to_owned(),
        r#"curl -sS -d "$body" -H "X-Hub-Signature-256: sha256=${sign##* }" \"#.to_owned(),
    ];
    match &hook.url {
        Some(url) => lines.push(format!("  {url}")),
        None => {
            let socket = shell_words(std::slice::from_ref(&hook.socket));
            lines.push(format!("  --unix-socket {socket} \\"));
            lines.push(format!("  http://localhost/hooks/{}", asked.name));
        }
    }
    lines
}

/// A body that passes the filters, as far as they say what it has to be, and that has what the task and the loop file
/// name.
fn example(asked: &AddTrigger) -> Value {
    let file = asked.run.workflow.as_ref().map(|file| file.text.as_str());
    let named = template::example_item(asked.run.task.as_deref().into_iter().chain(file));
    let Value::Object(mut body) = named else { return Value::Object(Map::new()) };
    let TriggerSource::Webhook { filters, .. } = &asked.source else {
        return Value::Object(body);
    };
    for filter in filters {
        let (pointer, value) = match filter.split_once(['=', '~', '!']) {
            Some((pointer, value)) if filter[pointer.len()..].starts_with('=') => (pointer, value),
            Some((pointer, value)) if filter[pointer.len()..].starts_with('~') => {
                (pointer, value.trim_start_matches('^').trim_end_matches('$'))
            }
            // What must not be is not there.
            Some(_) => continue,
            None => (filter.as_str(), "test"),
        };
        let path: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
        template::put(&mut body, &path, Value::from(value));
    }
    Value::Object(body)
}
