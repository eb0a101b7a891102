//! The loop file that `init` writes. Pure: what is chosen is all it knows.

/// Kinds of agents that `init` can write a file for.
pub(super) const SCRIPT: &str = "script";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    /// A driven kind, or [`SCRIPT`].
    pub(super) agent: String,
    pub(super) in_worktree: bool,
    pub(super) checks: Vec<String>,
    pub(super) task: String,
}

pub(super) fn text(choice: &Choice) -> String {
    let mut text = String::from(
        "---\n# A loop for Outlast: the agent takes turns at the task below until the checks agree that it is done.\n#   outlast check         is this file valid, and what will it do?\n#   outlast run -d -f WORKFLOW.md --name work\n#   outlast report        what became of it\n",
    );
    text.push_str(&agent(choice));
    text.push_str(&workspace(choice));
    text.push_str(&checks(choice));
    text.push_str(LIMITS);
    text.push_str(&format!(
        "---\n{{% if task %}}{{{{ task }}}}{{% else %}}{}{{% endif %}}\n",
        literal(&choice.task)
    ));
    if choice.in_worktree {
        text.push_str("\nCommit what you do.\n");
    }
    text
}

/// Text that no template engine reads.
fn literal(task: &str) -> String {
    if task.contains("{{") || task.contains("{%") {
        return format!("{{% raw %}}{task}{{% endraw %}}");
    }
    task.to_owned()
}

fn agent(choice: &Choice) -> String {
    if choice.agent == SCRIPT {
        return SCRIPTED.to_owned();
    }
    let kind = &choice.agent;
    let mut text = format!(
        "\
agent:
  kind: {kind:<16}    # `outlast agents` lists the others
  # model: NAME             # the vendor's own name; without it, the agent's own setting
"
    );
    text.push_str(match kind.as_str() {
        "codex" => {
            "\
  # Codex's own words, a policy and a sandbox: it writes in the workspace without a question, and asks for more.
  permission_mode: on-request workspace-write
approvals:
  mode: deny                # what goes beyond the sandbox is refused, and the agent works without it
"
        }
        "claude" => {
            "\
approvals:
  # What is not on the list is refused, and the agent works without it. `park` asks you instead, and the run
  # rests until you answer.
  mode: deny
  # `Bash` is every command, and Outlast is no sandbox. Without it, the agent only edits files.
  allow: [Edit, Write, Bash]
"
        }
        _ => {
            "\
approvals:
  # The agent may use every tool that it asks for, and Outlast is no sandbox. `park` asks you instead, `deny`
  # refuses; docs/agents.md has the names for a list of what it may use.
  mode: allow
"
        }
    });
    text
}

/// A shell script is an agent too; the loop asks until an agent of the user's is in it.
const SCRIPTED: &str = r#"agent:
  kind: file                # a program that reads $OUTLAST_PROMPT_FILE and writes $OUTLAST_RESPONSE_FILE
  command: |
    answer() {              # whole or not at all: written beside it, then renamed
      printf '%s\n' "$1" > "$OUTLAST_RESPONSE_FILE.part"
      mv "$OUTLAST_RESPONSE_FILE.part" "$OUTLAST_RESPONSE_FILE"
    }
    # Your agent: a command that reads the prompt on standard input and does the work in this directory.
    agent() {
      echo "no agent is set: put its command into WORKFLOW.md, where it says agent()"
      return 64
    }
    agent < "$OUTLAST_PROMPT_FILE"
    case $? in
      0) answer '{"status": "done", "summary": "the agent says that it is done"}' ;;
      64) answer '{"status": "blocked", "summary": "no agent is set: put its command into WORKFLOW.md and start the loop again"}' ;;
      *) exit 1 ;;          # a failed try, which is repeated
    esac
"#;

fn workspace(choice: &Choice) -> String {
    let words = if choice.in_worktree {
        "\
workspace:
  strategy: worktree        # a checkout of its own from the last commit, on branch outlast/<name>
"
    } else {
        "\
workspace:
  strategy: inplace         # works in the directory that the run is started in
"
    };
    words.to_owned()
}

fn checks(choice: &Choice) -> String {
    let mut text = String::from(
        "checks:\n  # \"done\" is a claim of the agent. These commands decide; what they print is the next turn's input.\n",
    );
    if choice.checks.is_empty() {
        text.push_str("  # done: [\"make test\"]\n  done: []\n");
        return text;
    }
    text.push_str("  done:\n");
    for check in &choice.checks {
        text.push_str(&format!("    - {}\n", quoted(check)));
    }
    text
}

/// A YAML string that is itself whatever is in it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

const LIMITS: &str = "\
limits:
  max_cost_usd: 5           # as far as the agent reports what it spends
  no_progress_turns: 3      # turns in a row that change nothing, or claims that fail, before you are asked
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loop_file;

    #[test]
    fn the_file_for_a_driven_agent_is_commented() {
        let choice = Choice {
            agent: "claude".to_owned(),
            in_worktree: true,
            checks: vec!["cargo test".to_owned()],
            task: "Make the tests pass.".to_owned(),
        };
        insta::assert_snapshot!(text(&choice));
    }

    /// `check` warns of it until an agent is in it.
    #[test]
    fn the_script_is_known_as_a_placeholder_until_an_agent_is_in_it() {
        assert!(loop_file::is_placeholder(SCRIPTED));
        assert!(!loop_file::is_placeholder(&SCRIPTED.replace("return 64", "my-agent --fast")));
    }

    #[test]
    fn the_file_for_a_script_asks_for_an_agent() {
        let choice = Choice {
            agent: SCRIPT.to_owned(),
            in_worktree: false,
            checks: Vec::new(),
            task: "Say {{ hello }}.".to_owned(),
        };
        insta::assert_snapshot!(text(&choice));
    }
}
