//! Programs in the languages of awk and sed, as far as they are understood without doubt.

const PIPE: &str = "its program has `|`, by which awk runs commands";

/// Whether a program for awk runs and writes nothing.
pub(super) fn awk(text: &str) -> Result<(), &'static str> {
    if text.contains("system") || text.contains('@') {
        return Err("its program calls `system`, or a function by a name that is not seen here");
    }
    let code = without_texts(without_first_pattern(text))?;
    let code = code.replace("||", " ");
    if code.contains('|') {
        return Err(PIPE);
    }
    // `print > "file"` writes; `$1 > 5` compares.
    let writes = code.split(['{', '}', ';']).any(|statement| {
        let statement = statement.trim_start();
        statement.find("print").is_some_and(|at| statement[at..].contains('>'))
    });
    if writes { Err("its program writes a file") } else { Ok(()) }
}

/// Without the pattern at the beginning: what stands there between two slashes is nothing else.
fn without_first_pattern(text: &str) -> &str {
    let begin = text.trim_start().trim_start_matches('!').trim_start();
    let Some(rest) = begin.strip_prefix('/') else { return text };
    match rest.split_once('/') {
        Some((pattern, rest)) if !pattern.contains(['\\', '[']) => rest,
        _ => text,
    }
}

/// Without texts in quotes. Where a slash, a backslash or a comment could hide where a text begins, all
/// of it counts as code.
fn without_texts(text: &str) -> Result<String, &'static str> {
    if text.contains(['/', '\\', '#']) {
        return Ok(text.to_owned());
    }
    let parts: Vec<&str> = text.split('"').collect();
    if parts.len().is_multiple_of(2) {
        return Err("a quote in its program is not closed");
    }
    Ok(parts.iter().step_by(2).copied().collect::<Vec<_>>().join(" "))
}

const SED: &str = "its script does something that is not understood here, such as `e` or `w`";

/// Whether a script for sed runs nothing and writes no other files.
pub(super) fn sed(script: &str) -> Result<(), &'static str> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', ';', '\t', '{', '}']);
        if rest.is_empty() {
            return Ok(());
        }
        rest = without_addresses(rest)?;
        let mut characters = rest.chars();
        let command = characters.next().ok_or(SED)?;
        let behind = characters.as_str();
        rest = match command {
            '{' => behind,
            'p' | 'd' | '=' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | 'D' | 'P' | 'F' | 'z' => {
                end_of_command(behind)?
            }
            'q' | 'Q' | 'l' => end_of_command(
                behind.trim_start_matches([' ', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']),
            )?,
            's' => end_of_command(substitution(behind)?)?,
            'y' => end_of_command(delimited(behind, 2)?)?,
            // All that follows is text.
            'a' | 'i' | 'c' => return Ok(()),
            'b' | 't' | 'T' | ':' => {
                let label = |c: char| c.is_ascii_alphanumeric() || c == '_';
                end_of_command(behind.trim_start().trim_start_matches(label))?
            }
            _ => return Err(SED),
        };
    }
}

/// What stands behind the lines that a command is for.
fn without_addresses(text: &str) -> Result<&str, &'static str> {
    let mut rest = text;
    loop {
        rest = match rest.chars().next() {
            Some(c) if c.is_ascii_digit() || "$,~+! ".contains(c) => &rest[1..],
            Some('/') => delimited(rest, 1)?.trim_start_matches(['I', 'M']),
            _ => return Ok(rest),
        };
    }
}

/// What stands behind `s/a/b/flags`.
fn substitution(text: &str) -> Result<&str, &'static str> {
    let rest = delimited(text, 2)?;
    Ok(rest.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiIM".contains(c)))
}

/// What stands behind so many parts, which end where the first character comes again.
fn delimited(text: &str, parts: usize) -> Result<&str, &'static str> {
    let mut characters = text.chars();
    let delimiter =
        characters.next().filter(|c| c.is_ascii_punctuation() && *c != '\\').ok_or(SED)?;
    let (mut found, mut in_set) = (0, 0_i32);
    while let Some(c) = characters.next() {
        match c {
            '\\' => drop(characters.next().ok_or(SED)?),
            c if c == delimiter => {
                // Some seds take a delimiter in brackets for a character, others do not.
                if in_set != 0 {
                    return Err(SED);
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
    Err(SED)
}

/// A command ends with the script, a semicolon or a brace.
fn end_of_command(text: &str) -> Result<&str, &'static str> {
    let rest = text.trim_start_matches([' ', '\t']);
    match rest.chars().next() {
        None | Some(';' | '}') => Ok(rest),
        _ => Err(SED),
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
            assert_eq!(awk(text), Ok(()), "{text}");
        }
        for script in [
            "1,5p",
            "$p",
            "$d",
            "5q",
            "s/a/b/",
            "s/a/b/g;s|c/d|e|2p",
            "/x/d",
            "/a/,/b/p",
            "/a/!d",
            "1~2p",
            "2,+3d",
            "/x/{s/a/b/;p}",
            "s/[0-9]*/N/g",
            "y/abc/xyz/",
            "/x/a new line w e",
            ":a;N;ba",
            "",
        ] {
            assert_eq!(sed(script), Ok(()), "{script}");
        }
    }

    #[test]
    fn what_runs_or_writes_is_found() {
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
            assert!(awk(text).is_err(), "{text}");
        }
        for script in [
            "e id",
            "1e",
            "s/a/b/e",
            "s/a/b/ge",
            "s/a/b/w out",
            "s/.*/id/;e",
            "w out",
            "/x/w out",
            "1,5W out",
            "r /etc/passwd",
            "s/[/]/x/e",
            "s/a/b",
            "/x/{p;e id}",
            "s\\a\\b\\e",
            "\\,x,e id",
            "sxaxbxe",
            "bx\te id",
            "v",
        ] {
            assert!(sed(script).is_err(), "{script}");
        }
    }
}
