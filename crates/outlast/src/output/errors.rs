//! How a problem is told: `outlast: what went wrong`, then `hint:` where there is one.

use outlast_client::problem::Problem;
use outlast_wire::api::{ErrorBody, ErrorInfo};

use crate::output;

/// Who reads the errors of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    ForPeople,
    /// `{"error":{…}}` on standard output.
    Json,
}

pub(crate) fn report(problem: &Problem, errors: Errors) {
    let Problem::Told { info, .. } = problem else { return };
    match errors {
        Errors::ForPeople => output::tell(&for_people(info)),
        // If standard output is gone too, the exit code still says it.
        Errors::Json => {
            // The run is for the commands themselves; scripts are promised the other three keys.
            let error = ErrorInfo { run: None, ..info.clone() };
            drop(output::print_json(&ErrorBody { error }));
        }
    }
}

fn for_people(info: &ErrorInfo) -> String {
    let ErrorInfo { message, hint, .. } = info;
    // What is wrong with a file may be several things: the first line says that, the others say which.
    let lines: Vec<String> = message.trim_end().lines().map(output::printable).collect();
    let mut told = format!("outlast: {}", lines.join("\n  "));
    if let Some(hint) = hint {
        told.push_str(&format!("\nhint: {hint}"));
    }
    told
}

/// What is odd and was done anyway.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        output::tell(&format!("warning: {}", output::printable(warning)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_and_a_hint() {
        let problem = Problem::refusal("unknown_run", "no run called x").hint("outlast ps -a");
        let Problem::Told { info, exit } = problem else { panic!("a refusal is told") };
        assert_eq!(for_people(&info), "outlast: no run called x\nhint: outlast ps -a");
        assert_eq!(exit, 2);
    }

    #[test]
    fn several_problems_stand_below_the_first_line() {
        let message = "WORKFLOW.md cannot be used\nline 3: no such kind\nline 9: not a number\n";
        let Problem::Told { info, .. } = Problem::refusal("bad_workflow", message) else {
            panic!("a refusal is told")
        };
        assert_eq!(
            for_people(&info),
            "outlast: WORKFLOW.md cannot be used\n  line 3: no such kind\n  line 9: not a number"
        );
    }
}
