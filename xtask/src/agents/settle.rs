//! The environment and the files that lead each agent to our model.
//!
//! Every home, cache and key is of the scratch directory; every key is a dummy.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::vendor::{Cli, Vendor};

/// How Claude is logged in: only a subscriber is told when a quota is there again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    Key,
    Subscriber,
}

/// Writes the agent's files below `home` and says which variables it needs.
pub(crate) fn settle(
    vendor: Vendor,
    home: &Path,
    port: u16,
    login: Login,
) -> Result<Vec<(&'static str, String)>> {
    let base = format!("http://127.0.0.1:{port}");
    let within = |path: &str| home.join(path).to_string_lossy().into_owned();
    let owned = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
        pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
    };
    Ok(match vendor.behind() {
        Cli::Claude => {
            let key = match login {
                Login::Key => ("ANTHROPIC_API_KEY", "sk-ant-fake"),
                Login::Subscriber => ("CLAUDE_CODE_OAUTH_TOKEN", "sk-ant-oat01-fake"),
            };
            owned(&[
                ("ANTHROPIC_BASE_URL", &base),
                key,
                ("CLAUDE_CONFIG_DIR", &within(".claude")),
                ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                ("DISABLE_AUTOUPDATER", "1"),
                ("DISABLE_TELEMETRY", "1"),
                ("DISABLE_ERROR_REPORTING", "1"),
            ])
        }
        Cli::Codex => {
            write(&home.join(".codex/config.toml"), &codex_config(&base))?;
            owned(&[("CODEX_HOME", &within(".codex")), ("FAKE_API_KEY", "sk-fake")])
        }
        Cli::Opencode => {
            write(&home.join("opencode.json"), &opencode_config(&base).to_string())?;
            owned(&[
                ("OPENCODE_CONFIG", &within("opencode.json")),
                ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
                ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
                ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
                ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
            ])
        }
        Cli::Gemini => {
            write(&home.join(".gemini/settings.json"), &gemini_config().to_string())?;
            owned(&[
                ("GOOGLE_GEMINI_BASE_URL", &base),
                ("GEMINI_API_KEY", "fake"),
                ("NO_BROWSER", "1"),
            ])
        }
        Cli::Pi => {
            write(&home.join(".pi/agent/models.json"), &pi_config(&base).to_string())?;
            owned(&[
                ("FAKE_API_KEY", "sk-fake"),
                ("PI_OFFLINE", "1"),
                ("PI_SKIP_VERSION_CHECK", "1"),
            ])
        }
    })
}

fn write(path: &Path, text: &str) -> Result<()> {
    let dir = path.parent().context("a file needs a directory")?;
    fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))
}

fn codex_config(base: &str) -> String {
    format!(
        r#"model = "gpt-5.5-codex"
model_provider = "fake"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.fake]
name = "fake"
base_url = "{base}/v1"
wire_api = "responses"
env_key = "FAKE_API_KEY"

[analytics]
enabled = false
"#
    )
}

fn opencode_config(base: &str) -> Value {
    let model = json!({ "name": "Fake 1", "tool_call": true, "limit": { "context": 200_000, "output": 8192 },
        "cost": { "input": 3, "output": 15, "cache_read": 0.3 } });
    json!({
        "autoupdate": false, "share": "disabled", "model": "fake/fake-1", "small_model": "fake/fake-1",
        "enabled_providers": ["fake"],
        "provider": { "fake": { "npm": "@ai-sdk/openai-compatible", "name": "Fake",
            "options": { "baseURL": format!("{base}/v1"), "apiKey": "sk-fake" },
            "models": { "fake-1": model } } }
    })
}

fn gemini_config() -> Value {
    json!({
        "general": { "enableAutoUpdate": false, "disableUpdateNag": true },
        "privacy": { "usageStatisticsEnabled": false }, "telemetry": { "enabled": false },
        "security": { "auth": { "selectedType": "gemini-api-key" }, "folderTrust": { "enabled": false } }
    })
}

fn pi_config(base: &str) -> Value {
    let cost = json!({ "input": 3, "output": 15, "cacheRead": 0.3, "cacheWrite": 3.75 });
    let model = json!({ "id": "fake-1", "name": "Fake 1", "reasoning": false, "input": ["text"],
        "contextWindow": 200_000, "maxTokens": 8192, "cost": cost });
    json!({ "providers": { "fake": { "baseUrl": format!("{base}/v1"), "api": "openai-completions",
        "apiKey": "FAKE_API_KEY", "models": [model] } } })
}
