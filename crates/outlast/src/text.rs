//! Text that a person gives on the command line, or on standard input.

use std::io::Read;

use outlast_client::problem::Problem;

/// More than this is a file, and is better named than sent.
const LONGEST: u64 = 256 << 10;

/// The text itself, or what standard input has for `-`.
pub(crate) fn given(text: String) -> Result<String, Problem> {
    let text = if text == "-" { read(std::io::stdin().lock())? } else { text };
    if text.len() as u64 > LONGEST {
        return Err(too_long());
    }
    if text.trim().is_empty() {
        return Err(Problem::refusal("empty_text", "there is no text to send")
            .hint("give it as an argument, or on standard input with -"));
    }
    Ok(text)
}

fn read(input: impl Read) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let taken = input.take(LONGEST + 1).read_to_end(&mut bytes);
    taken.map_err(|error| Problem::failure(format_args!("cannot read standard input: {error}")))?;
    if bytes.len() as u64 > LONGEST {
        return Err(too_long());
    }
    String::from_utf8(bytes)
        .map_err(|_| Problem::refusal("not_utf8", "standard input is not UTF-8 text"))
}

fn too_long() -> Problem {
    let message = format!("the text is longer than {} KiB", LONGEST >> 10);
    Problem::refusal("too_long", message).hint("put it into a file, and say where that is")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_code(problem: &Problem, code: &str) -> bool {
        matches!(problem, Problem::Told { info, .. } if info.code.as_str() == code)
    }

    #[test]
    fn text_is_taken_as_it_is() {
        assert_eq!(given("do this\n".to_owned()), Ok("do this\n".to_owned()));
        assert_eq!(read("from\na pipe\n".as_bytes()), Ok("from\na pipe\n".to_owned()));
    }

    #[test]
    fn nothing_too_much_and_no_text_are_refused() {
        for text in ["", " \n"] {
            assert!(given(text.to_owned()).is_err_and(|problem| has_code(&problem, "empty_text")));
        }
        assert!(read(std::io::repeat(b'a')).is_err_and(|problem| has_code(&problem, "too_long")));
        assert!(read(&[0xff][..]).is_err_and(|problem| has_code(&problem, "not_utf8")));
    }
}
