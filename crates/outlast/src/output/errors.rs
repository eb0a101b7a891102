//! How a problem is told: `outlast: what went wrong`, then `hint:` where there is one.

use outlast_wire::api::{ErrorBody, ErrorInfo};

use crate::output;
use crate::problem::Problem;

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
        Errors::Json => drop(output::print_json(&ErrorBody { error: info.clone() })),
    }
}

fn for_people(info: &ErrorInfo) -> String {
    let ErrorInfo { message, hint, .. } = info;
    match hint {
        Some(hint) => format!("outlast: {message}\nhint: {hint}"),
        None => format!("outlast: {message}"),
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
}
