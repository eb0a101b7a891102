//! A text as a QR code, drawn with characters: two rows of modules in each line.

use qrcodegen::{QrCode, QrCodeEcc};

/// Light around the code, in modules: cameras need it.
const MARGIN: i32 = 2;

/// Black on white, whatever the colours of the terminal are.
pub(crate) fn drawn(text: &str) -> Result<String, String> {
    let code = QrCode::encode_text(text, QrCodeEcc::Low)
        .map_err(|error| format!("this is too long for a QR code: {error}"))?;
    let range = -MARGIN..code.size() + MARGIN;
    let lines: Vec<String> = range
        .clone()
        .step_by(2)
        .map(|row| {
            let cells = range.clone().map(|column| {
                match (code.get_module(column, row), code.get_module(column, row + 1)) {
                    (true, true) => '█',
                    (true, false) => '▀',
                    (false, true) => '▄',
                    (false, false) => ' ',
                }
            });
            format!("\x1b[30;107m{}\x1b[0m", cells.collect::<String>())
        })
        .collect();
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::drawn;

    #[test]
    fn a_code_is_a_square_with_a_margin() {
        let code = drawn("http://127.0.0.1:7878/#k=00112233445566778899aabbccddeeff").unwrap();
        let lines: Vec<&str> = code.lines().collect();
        let width = |line: &str| {
            line.trim_start_matches("\x1b[30;107m").trim_end_matches("\x1b[0m").chars().count()
        };
        let first = width(lines[0]);
        assert!(lines.iter().all(|line| width(line) == first));
        assert_eq!(first.div_ceil(2), lines.len());
        assert!(drawn(&"x".repeat(5000)).is_err());
    }
}
