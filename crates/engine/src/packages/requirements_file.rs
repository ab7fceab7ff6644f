//! Reads `requirements.txt`: one requirement per line.

/// A line with its number.
pub(crate) type Line = (usize, String);

/// The requirements of a file, without comments and blank lines. Option lines of pip are kept, so
/// that the error can name the option.
pub(crate) fn lines(text: &str) -> Vec<Line> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found: Vec<Line> = Vec::new();
    let mut open: Option<Line> = None;
    for (index, line) in text.lines().enumerate() {
        let line = without_comment(line);
        let (number, mut joined) = open.take().unwrap_or((index + 1, String::new()));
        if let Some(part) = line.strip_suffix('\\') {
            joined.push_str(part);
            open = Some((number, joined));
        } else {
            joined.push_str(line);
            found.push((number, joined));
        }
    }
    found.extend(open);
    let trimmed = found.into_iter().map(|(number, line)| (number, line.trim().to_owned()));
    trimmed.filter(|(_, line)| !line.is_empty()).collect()
}

/// Removes a comment: a `#` at the start of the line or after white space.
fn without_comment(line: &str) -> &str {
    let starts = line.match_indices('#').map(|(index, _)| index);
    let is_start =
        |index: &usize| line[..*index].chars().next_back().is_none_or(char::is_whitespace);
    starts.into_iter().find(is_start).map_or(line, |index| &line[..index]).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_blank_lines_and_continuations() {
        let text = "\u{feff}# all of them\r\nsix==1.16.0  # small\n\n  rich>=13\nx; \\\n  python_version > '3'\n\
                    --index-url https://x\n-e .\na#b\n";
        let lines = lines(text);
        let texts: Vec<(usize, &str)> = lines.iter().map(|(n, text)| (*n, &**text)).collect();
        assert_eq!(
            texts,
            [
                (2, "six==1.16.0"),
                (4, "rich>=13"),
                (5, "x;   python_version > '3'"),
                (7, "--index-url https://x"),
                (8, "-e ."),
                (9, "a#b"),
            ]
        );
        assert_eq!(super::lines("x \\"), [(1, "x".to_owned())]);
    }
}
