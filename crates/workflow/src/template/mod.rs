//! The prompt: a Liquid template, strict in what it may speak of.
//!
//! The template is read twice. First by us: structure, names and filters, so that an unknown one is an error
//! wherever it stands, with its line, and so that Liquid is never handed what it does not expect (it panics on
//! some of that). Then by Liquid, which renders it within a budget of bytes and steps.

mod example;
mod language;
mod meter;
mod names;
mod scan;
mod shape;
mod tags;
mod tokens;
mod variables;

use std::sync::Arc;

use liquid::Template;

use crate::problem::Code;
pub use crate::problem::Problem;
pub use example::{example_item, put};
use meter::Meter;
use tags::Bounded;
pub use variables::{
    FailedCheck, LIMIT_ALIASES, LimitsLeft, Message, Note, Previous, ToolResult, Variables,
};

/// Of a file without a prompt.
pub const DEFAULT: &str = "{{ task }}";

pub const LARGEST_PROMPT: usize = 1024 * 1024;

/// The code of a problem with what a template wants to make, as opposed to what it says.
pub const OVER_BUDGET: Code = Code::TemplateBudgetExceeded;

/// What problems call the template when no file is named.
const FILE: &str = "prompt";

/// Whether a template can be rendered at all, whatever the turn.
pub fn check(text: &str) -> Result<(), Problem> {
    problems(text).into_iter().next().map_or(Ok(()), Err)
}

/// Why a template cannot be rendered, whatever the turn: every name and filter that there is not, or else the first
/// place where it does not read, or costs more than a rendering may with a little of everything.
pub fn problems(text: &str) -> Vec<Problem> {
    match scan::scan(text) {
        Ok(pieces) => match names::problems(&pieces) {
            none if none.is_empty() => tried(text).err().into_iter().collect(),
            problems => problems,
        },
        Err(problem) => vec![problem],
    }
}

fn tried(text: &str) -> Result<(), Problem> {
    compile(text)?;
    [Variables::default(), Variables::sample()].iter().try_for_each(|variables| {
        match render_within(text, variables, LARGEST_PROMPT) {
            Err(problem) if problem.code == OVER_BUDGET => Err(problem),
            Ok(Rendered::Beginning { line, .. }) => Err(too_long(line)),
            // What is not there in this sample may be there in the run.
            Ok(Rendered::Whole(_)) | Err(_) => Ok(()),
        }
    })
}

/// The prompt of one turn.
pub fn render(text: &str, variables: &Variables) -> Result<String, Problem> {
    match render_within(text, variables, LARGEST_PROMPT)? {
        Rendered::Whole(prompt) => Ok(prompt),
        Rendered::Beginning { line, .. } => Err(too_long(line)),
    }
}

fn too_long(line: Option<usize>) -> Problem {
    let message = "the prompt comes out longer than 1 MiB";
    Problem { line, ..Problem::new(Code::TemplateRenderError, FILE, message) }
}

/// What a template came to within so many bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rendered {
    Whole(String),
    /// There was more; `line` is the one that did not fit.
    Beginning {
        text: String,
        line: Option<usize>,
    },
}

/// The prompt of one turn, or its first `most` bytes, cut at a letter.
pub fn render_within(text: &str, variables: &Variables, most: usize) -> Result<Rendered, Problem> {
    let (template, meter) = compile(text)?;
    let mut prompt = Bounded::new(most);
    let rendered = template.render_to(&mut prompt, &variables::object(variables));
    if prompt.is_full {
        return Ok(Rendered::Beginning { text: letters(prompt.bytes), line: meter.line() });
    }
    rendered.map_err(|error| {
        let problem = match meter.refusal() {
            Some(refusal) => Problem::new(Code::TemplateBudgetExceeded, FILE, refusal)
                .hint("make the value smaller, or leave it out of the prompt"),
            None => Problem::new(Code::TemplateRenderError, FILE, summary(&error.to_string()).0),
        };
        Problem { line: meter.line(), ..problem }
    })?;
    let prompt = String::from_utf8(prompt.bytes).map_err(|_| {
        Problem::new(Code::TemplateRenderError, FILE, "the prompt came out as no text")
    })?;
    Ok(Rendered::Whole(prompt))
}

/// Without the half of a letter at its end.
fn letters(mut bytes: Vec<u8>) -> String {
    if let Err(error) = std::str::from_utf8(&bytes) {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn compile(text: &str) -> Result<(Template, Arc<Meter>), Problem> {
    let pieces = scan::scan(text)?;
    if let Some(problem) = names::problems(&pieces).into_iter().next() {
        return Err(problem);
    }
    let meter = Arc::default();
    let parser = language::parser(&meter).map_err(|error| {
        Problem::new(Code::TemplateParseError, FILE, summary(&error.to_string()).0)
    })?;
    let parsed = parser.parse(&scan::marked(text, &pieces)).map_err(|error| {
        let (message, line) = summary(&error.to_string());
        let problem = Problem::new(Code::TemplateParseError, FILE, message);
        Problem { line, ..problem }
    })?;
    Ok((parsed, meter))
}

/// Liquid tells its story over many lines, with pictures: the gist of it, and the line if there is one.
fn summary(story: &str) -> (String, Option<usize>) {
    let told = story.strip_prefix("liquid: ").unwrap_or(story);
    let line = told.trim_start().strip_prefix("--> ").and_then(|rest| rest.split(':').next());
    let line = line.and_then(|line| line.parse().ok());
    let lines = || told.lines().map(str::trim).filter(|line| !line.is_empty());
    let gist = lines().find_map(|line| line.strip_prefix("= ")).or_else(|| lines().next());
    let details =
        lines().filter(|line| line.starts_with("requested") || line.starts_with("variable="));
    let details: Vec<_> = details.collect();
    let gist = gist.unwrap_or("cannot be rendered").trim_end_matches('.');
    let message = lower_first(gist);
    match details.is_empty() {
        true => (message, line),
        false => (format!("{message}: {}", details.join(", ")), line),
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}
