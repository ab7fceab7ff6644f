//! Checks that awk programs and sed scripts neither run commands nor write files.

const AWK_PIPE_REASON: &str = "its program has `|`, by which awk runs commands";

/// Checks that an awk program runs no commands and writes no files.
pub(super) fn check_awk(text: &str) -> Result<(), &'static str> {
    if text.contains("system") || text.contains('@') {
        return Err("its program calls `system`, or a function by a name that is not seen here");
    }
    let code = strip_strings(strip_first_pattern(text))?;
    let code = code.replace("||", " ");
    if code.contains('|') {
        return Err(AWK_PIPE_REASON);
    }
    // `print > "file"` writes; `$1 > 5` compares.
    let writes = code.split(['{', '}', ';']).any(|statement| {
        let statement = statement.trim_start();
        statement.find("print").is_some_and(|at| statement[at..].contains('>'))
    });
    if writes { Err("its program writes a file") } else { Ok(()) }
}

/// Removes the pattern at the beginning: text between two slashes there is always a pattern.
fn strip_first_pattern(text: &str) -> &str {
    let begin = text.trim_start().trim_start_matches('!').trim_start();
    let Some(rest) = begin.strip_prefix('/') else { return text };
    match rest.split_once('/') {
        Some((pattern, rest)) if !pattern.contains(['\\', '[']) => rest,
        _ => text,
    }
}

/// Removes quoted strings. If a slash, a backslash or a comment could hide the start of a string,
/// the whole text counts as code.
fn strip_strings(text: &str) -> Result<String, &'static str> {
    if text.contains(['/', '\\', '#']) {
        return Ok(text.to_owned());
    }
    let parts: Vec<&str> = text.split('"').collect();
    if parts.len().is_multiple_of(2) {
        return Err("a quote in its program is not closed");
    }
    Ok(parts.iter().step_by(2).copied().collect::<Vec<_>>().join(" "))
}

const SED_REASON: &str =
    "its script does something that is not understood here, such as `e` or `w`";

/// Checks that a sed script runs no commands and writes no other files.
pub(super) fn check_sed(script: &str) -> Result<(), &'static str> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\t', '{', '}']);
        if rest.is_empty() {
            return Ok(());
        }
        rest = skip_addresses(rest)?;
        let mut characters = rest.chars();
        let command = characters.next().ok_or(SED_REASON)?;
        let rest_after_command = characters.as_str();
        rest = match command {
            '{' => rest_after_command,
            'p' | 'd' | '=' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'D' | 'P' | 'F' | 'z' => {
                expect_end_of_command(rest_after_command)?
            }
            'q' | 'Q' | 'l' => expect_end_of_command(
                rest_after_command
                    .trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']),
            )?,
            's' => expect_end_of_command(skip_substitution(rest_after_command)?)?,
            'y' => expect_end_of_command(skip_delimited(rest_after_command, 2)?)?,
            // Everything that follows is text.
            'a' | 'i' | 'c' => return Ok(()),
            'b' | 't' | 'T' | ':' => {
                let label = |c: char| c.is_ascii_alphanumeric() || c == '_';
                expect_end_of_command(rest_after_command.trim_start().trim_start_matches(label))?
            }
            _ => return Err(SED_REASON),
        };
    }
}

/// Returns the text after the line addresses of a command.
fn skip_addresses(text: &str) -> Result<&str, &'static str> {
    let mut rest = text;
    loop {
        rest = match rest.chars().next() {
            Some(c) if c.is_ascii_digit() || "$,~+! ".contains(c) => &rest[1..],
            Some('/') => skip_delimited(rest, 1)?.trim_start_matches(['I', 'M']),
            _ => return Ok(rest),
        };
    }
}

/// Returns the text after `s/a/b/flags`.
fn skip_substitution(text: &str) -> Result<&str, &'static str> {
    let rest = skip_delimited(text, 2)?;
    Ok(rest.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiIM".contains(c)))
}

/// Returns the text after `parts` delimited parts; the first character is the delimiter.
fn skip_delimited(text: &str, parts: usize) -> Result<&str, &'static str> {
    let mut characters = text.chars();
    let delimiter =
        characters.next().filter(|c| c.is_ascii_punctuation() && *c != '\\').ok_or(SED_REASON)?;
    let (mut found, mut in_set) = (0, 0_i32);
    while let Some(c) = characters.next() {
        match c {
            '\\' => drop(characters.next().ok_or(SED_REASON)?),
            c if c == delimiter => {
                // Seds differ in whether a delimiter in brackets is an ordinary character.
                if in_set != 0 {
                    return Err(SED_REASON);
                }
                found += 1;
                if found == parts {
                    return Ok(characters.as_str());
                }
            }
            '[' if found == 0 => in_set += 1,
            ']' if found == 0 => in_set = (in_set - 1).max(0),
            _ => {}
        }
    }
    Err(SED_REASON)
}

/// Checks that the command ends here: with the script, a semicolon or a brace.
fn expect_end_of_command(text: &str) -> Result<&str, &'static str> {
    let rest = text.trim_start_matches([' ', '\t']);
    match rest.chars().next() {
        None | Some(';' | '}') => Ok(rest),
        _ => Err(SED_REASON),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_programs_are_understood() {
        for text in [
            "{print $1}",
            "{ print $1 \"|\" $2 }",
            "NR > 1 { s += $3 } END { print s }",
            "/a|b/ { print $2 }",
            "!/^#/ {print}",
            "$3 > 100 || $4 == \"x\" {print $1, $2}",
            "BEGIN{FS=\",\"} {print $2; n++} END {print n}",
            "{if ($1 > 5) print $2}",
        ] {
            assert_eq!(check_awk(text), Ok(()), "{text}");
        }
        for script in [
            "1,5p", "$p", "$d", "5q", "s/a/b/", "s/a/b/g;s|c/d|e|2p", "/x/d", "/a/,/b/p", "/a/!d",
            "1~2p", "2,+3d", "/x/{s/a/b/;p}", "s/[0-9]*/N/g", "y/abc/xyz/", "/x/a new line w e",
            ":a;N;ba", "",
        ] {
            assert_eq!(check_sed(script), Ok(()), "{script}");
        }
    }

    #[test]
    fn programs_that_run_or_write_are_rejected() {
        for text in [
            "BEGIN { system(\"id\") }",
            "{ print | \"sh\" }",
            "{ \"id\" | getline x }",
            "{ print $1 |& \"sh\" }",
            "{ print $1 > \"f\" }",
            "{ printf(\"x\") >> \"f\" }",
            "BEGIN { f = \"sys\" \"tem\"; @f(\"id\") }",
            "{ if (x) /\"/ ; \"id\" | getline; y = /\"/ }",
            "{ x = 1 # \"\n \"id\" | getline }",
            "{ print \"a",
            "/\\/ | \"/ { print }",
        ] {
            assert!(check_awk(text).is_err(), "{text}");
        }
        for script in [
            "e id", "1e", "s/a/b/e", "s/a/b/ge", "s/a/b/w out", "s/.*/id/;e", "w out", "/x/w out",
            "1,5W out", "r /etc/passwd", "s/[/]/x/e", "s/a/b", "/x/{p;e id}", "s\\a\\b\\e",
            "\\,x,e id", "sxaxbxe", "bx\te id", "v",
        ] {
            assert!(check_sed(script).is_err(), "{script}");
        }
    }
}
