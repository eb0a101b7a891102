//! The table of error codes in the documents says what the enum of codes says.

use outlast_wire::codes::Code;

use super::Finding;
use super::tree::File;

const DOCUMENT: &str = "docs/exit-codes.md";
const HEAD: &str = "| code | status | exit | meaning |";

pub(super) fn are_documented(files: &[File]) -> Vec<Finding> {
    let Some(document) = files.iter().find(|file| file.path == DOCUMENT) else {
        return vec![Finding::failure(DOCUMENT, 1, "is missing")];
    };
    let rows = rows(document);
    let has_row = |code: &&Code| rows.iter().any(|(_, row)| *row == expected(**code));
    let missing = Code::ALL
        .iter()
        .filter(|code| !has_row(code))
        .map(|code| Finding::failure(DOCUMENT, 1, format!("lacks the row `{}`", expected(*code))));
    let is_known = |row: &str| Code::ALL.iter().any(|code| row == expected(*code));
    let unknown = rows.iter().filter(|(_, row)| !is_known(row)).map(|(line, row)| {
        Finding::failure(DOCUMENT, *line, format!("has a row that no code has: `{row}`"))
    });
    let repeated = rows.iter().enumerate().filter_map(|(index, (line, row))| {
        let is_repeated = rows[..index].iter().any(|(_, before)| before == row);
        is_repeated.then(|| Finding::failure(DOCUMENT, *line, "repeats a row"))
    });
    missing.chain(unknown).chain(repeated).collect()
}

fn expected(code: Code) -> String {
    format!("| `{}` | {} | {} | {} |", code.word(), code.status(), code.exit(), code.meaning())
}

/// The rows below the head of the table, without the rule between them.
fn rows(document: &File) -> Vec<(usize, &str)> {
    let table = document.lines().skip_while(|(_, line)| *line != HEAD).skip(2);
    table.take_while(|(_, line)| line.starts_with('|')).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    fn found(rows: &[String]) -> Vec<String> {
        let text = format!("{HEAD}\n|---|---|---|---|\n{}\n\n| more |\n", rows.join("\n"));
        let found = are_documented(&files(&[(DOCUMENT, &text)]));
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_row_that_is_missing_wrong_or_repeated_is_found() {
        let right: Vec<String> = Code::ALL.iter().map(|code| expected(*code)).collect();
        assert_eq!(found(&right), Vec::<String>::new());
        let lacks = format!("{DOCUMENT}:1: lacks the row `{}`", right[0]);
        assert_eq!(found(&right[1..]), [lacks.as_str()]);
        let mut wrong = right.clone();
        wrong[0] = right[0].replace("400", "200");
        let unknown = format!("{DOCUMENT}:3: has a row that no code has: `{}`", wrong[0]);
        assert_eq!(found(&wrong), [lacks, unknown]);
        let mut twice = right.clone();
        twice.push(right[0].clone());
        let line = right.len() + 3;
        assert_eq!(found(&twice), [format!("{DOCUMENT}:{line}: repeats a row")]);
    }

    #[test]
    fn a_document_without_the_table_is_found() {
        assert_eq!(are_documented(&files(&[(DOCUMENT, "")])).len(), Code::ALL.len());
        assert_eq!(are_documented(&[]).len(), 1);
    }
}
