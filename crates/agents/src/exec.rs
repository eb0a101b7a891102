//! `exec`: any command. Its exit status is its answer.

use outlast_engine::Agent;

use crate::{Error, Plan};

pub const KIND: &str = "exec";

pub(crate) fn plan(agent: &Agent) -> Result<Plan, Error> {
    if agent.command.first().is_none_or(String::is_empty) {
        return Err(Error::NoCommand);
    }
    if agent.command.iter().any(|argument| argument.contains('\0')) {
        return Err(Error::ZeroByte);
    }
    Ok(Plan { argv: agent.command.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(kind: &str, command: &[&str]) -> Agent {
        Agent {
            kind: kind.to_owned(),
            command: command.iter().map(|&word| word.to_owned()).collect(),
        }
    }

    #[test]
    fn a_command_is_its_own_plan() {
        let plan = crate::plan(&agent("exec", &["echo", ""])).expect("a command");
        assert_eq!(plan.argv, ["echo", ""]);
    }

    #[test]
    fn nothing_to_run_and_unknown_kinds_are_refused() {
        assert_eq!(crate::plan(&agent("exec", &[])), Err(Error::NoCommand));
        assert_eq!(crate::plan(&agent("exec", &[""])), Err(Error::NoCommand));
        assert_eq!(crate::plan(&agent("exec", &["a", "b\0"])), Err(Error::ZeroByte));
        assert_eq!(
            crate::plan(&agent("oracle", &["x"])),
            Err(Error::UnknownKind { kind: "oracle".to_owned() })
        );
    }
}
