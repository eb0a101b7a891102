//! How a problem is told: `outlast: what went wrong`, then `hint:` where there is one.

use outlast_client::problem::Problem;
use outlast_wire::api::{ErrorBody, ErrorInfo, FileProblem};

use crate::output::{self, lines, time};

/// Who reads the errors of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errors {
    ForPeople,
    /// `{"error":{…}}`, on standard error as well: what stands on standard output is what was asked for.
    Json,
}

pub(crate) fn report(problem: &Problem, errors: Errors) {
    let Problem::Told { info, .. } = problem else { return };
    match errors {
        Errors::ForPeople => output::tell(&for_people(info)),
        Errors::Json => {
            // The run is for the commands themselves; scripts are promised the other three keys.
            let error = ErrorInfo { run: None, ..(**info).clone() };
            let json = serde_json::to_string(&ErrorBody { error }).expect("it is plain data");
            output::tell_exactly(&json);
        }
    }
}

fn for_people(info: &ErrorInfo) -> String {
    let ErrorInfo { message, hint, problems, .. } = info;
    if problems.len() > 1 {
        return of_file(problems);
    }
    // What is wrong with a file may be several things: the first line says that, the others say which.
    let said = |line: &str| output::printable(&time::localised(line));
    let lines: Vec<String> = message.trim_end().lines().map(said).collect();
    let mut told = format!("outlast: {}", lines.join("\n  "));
    if let Some(hint) = hint {
        told.push_str(&format!("\n{}", lines::hint(hint)));
    }
    told
}

/// Everything about a file, each with its own hint, as `check` has it.
fn of_file(problems: &[FileProblem]) -> String {
    let mut lines = Vec::new();
    for problem in problems {
        let FileProblem { level, file, line, key, message, hint, .. } = problem;
        let line = line.map_or_else(String::new, |line| format!(":{line}"));
        let key = key.as_ref().map_or_else(String::new, |key| format!(": {key}"));
        let said = output::printable(&format!("{file}{line}{key}: {message}"));
        lines.push(format!("{}: {said}", output::printable(level)));
        lines.extend(hint.as_ref().map(|hint| lines::hint(hint)));
    }
    let errors = problems.iter().filter(|problem| problem.level == "error").count();
    lines.push(format!("outlast: {}", counted(errors, "problem")));
    lines.join("\n")
}

pub(crate) fn counted(many: usize, word: &str) -> String {
    if many == 1 { format!("1 {word}") } else { format!("{many} {word}s") }
}

/// What is odd and was done anyway. A second line is its hint, and one that begins with `note:` is no warning.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        let mut lines = warning.lines();
        let first = output::printable(&time::localised(lines.next().unwrap_or_default()));
        let word = if first.starts_with("note: ") { "" } else { "warning: " };
        output::tell(&format!("{word}{first}"));
        lines.for_each(|line| output::tell(&output::printable(line)));
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
