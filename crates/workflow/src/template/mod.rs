//! The prompt: a Liquid template, strict in what it may speak of.
//!
//! The template is read twice. First by us: structure, names and filters, so that an unknown one is an error
//! wherever it stands, with its line, and so that Liquid is never handed what it does not expect (it panics on
//! some of that). Then by Liquid, which renders it.

mod names;
mod scan;
mod shape;
mod tokens;
mod variables;

use std::io::Write;

use liquid::{Parser, ParserBuilder, Template};

use crate::problem::{Problem, code};
pub use variables::{FailedCheck, LimitsLeft, Message, Note, Previous, ToolResult, Variables};

/// Of a file without a prompt.
pub const DEFAULT: &str = "{{ task }}";

pub const LARGEST_PROMPT: usize = 1024 * 1024;

/// What problems call the template when nobody says which file it stands in.
const FILE: &str = "prompt";

/// Whether a template can be rendered at all, whatever the turn.
pub fn check(text: &str) -> Result<(), Problem> {
    compile(text).map(|_| ())
}

/// The prompt of one turn.
pub fn render(text: &str, variables: &Variables) -> Result<String, Problem> {
    let template = compile(text)?;
    let mut prompt = Bounded { bytes: Vec::new(), is_full: false };
    let rendered = template.render_to(&mut prompt, &variables::object(variables));
    rendered.map_err(|error| {
        let (message, _) = summary(&error.to_string());
        let full = "the prompt comes out longer than 1 MiB".to_owned();
        let message = if prompt.is_full { full } else { message };
        Problem::new(code::TEMPLATE_RENDER, FILE, message)
    })?;
    String::from_utf8(prompt.bytes)
        .map_err(|_| Problem::new(code::TEMPLATE_RENDER, FILE, "the prompt came out as no text"))
}

fn compile(text: &str) -> Result<Template, Problem> {
    let pieces = scan::scan(text)?;
    names::check(&pieces)?;
    let parser = parser()?;
    parser.parse(&scan::without_comments(text, &pieces)).map_err(|error| {
        let (message, line) = summary(&error.to_string());
        let problem = Problem::new(code::TEMPLATE_PARSE, FILE, message);
        Problem { line, ..problem }
    })
}

fn parser() -> Result<Parser, Problem> {
    let built = ParserBuilder::with_stdlib().build();
    built.map_err(|error| Problem::new(code::TEMPLATE_PARSE, FILE, summary(&error.to_string()).0))
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

/// Takes what a prompt may be long, and no more.
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        if self.bytes.len() + more.len() > LARGEST_PROMPT {
            self.is_full = true;
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
