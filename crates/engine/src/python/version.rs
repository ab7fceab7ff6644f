//! Finds the version of a Python interpreter and compares versions with ranges.

use std::{
    cmp::Ordering,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use thiserror::Error;

/// Longest range that is read, and most numbers of one version in it.
const MAX_RANGE_BYTES: usize = 256;
const MAX_PARTS: usize = 8;

/// The error for an invalid version range or version.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{text}` is not a range of Python versions: {why}")]
pub struct RangeError {
    /// The invalid text.
    pub text: String,
    /// The reason.
    pub why: &'static str,
}

/// Whether a version is in a PEP 440 range: clauses with `>=`, `<=`, `>`, `<`, `==`,
/// `!=` or `~=`, and commas between them. An empty range accepts all.
///
/// ```
/// use savoir_engine::python::version::satisfies;
///
/// assert_eq!(satisfies(">=3.10, <4", "3.11.7"), Ok(true));
/// assert_eq!(satisfies("~=3.10", "3.9.2"), Ok(false));
/// assert_eq!(satisfies("==3.11.*", "3.11.7"), Ok(true));
/// assert!(satisfies("^3.10", "3.11.7").is_err());
/// ```
pub fn satisfies(range: &str, version: &str) -> Result<bool, RangeError> {
    let error = |why| {
        let text = range.chars().take(MAX_RANGE_BYTES).collect();
        RangeError { text, why }
    };
    if range.len() > MAX_RANGE_BYTES {
        return Err(error("it is too long"));
    }
    let version = numbers(version).ok_or_else(|| error("the version itself is not one"))?;
    let mut all = true;
    // Every clause is parsed, so that an invalid clause is an error even after one that does not
    // match.
    for clause in range.split(',').map(str::trim) {
        if clause.is_empty() && range.trim().is_empty() {
            continue;
        }
        all &= holds(clause, &version).map_err(error)?;
    }
    Ok(all)
}

fn holds(clause: &str, version: &[u64]) -> Result<bool, &'static str> {
    const OPERATORS: [&str; 7] = ["~=", "==", "!=", ">=", "<=", ">", "<"];
    let found = OPERATORS
        .iter()
        .find_map(|operator| Some((*operator, clause.strip_prefix(operator)?.trim())));
    let (operator, bound) =
        found.ok_or("a clause begins with `>=`, `<=`, `>`, `<`, `==`, `!=` or `~=`")?;
    if let Some(prefix) = bound.strip_suffix(".*") {
        let prefix = numbers(prefix).ok_or("a version is numbers with dots")?;
        let same = begins(version, &prefix);
        return match operator {
            "==" => Ok(same),
            "!=" => Ok(!same),
            _ => Err("`.*` stands only after `==` and `!=`"),
        };
    }
    let bound = numbers(bound).ok_or("a version is numbers with dots")?;
    let order = compare(version, &bound);
    Ok(match operator {
        ">=" => order.is_ge(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        "<" => order.is_lt(),
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        _ => match bound.split_last() {
            Some((_, prefix)) if !prefix.is_empty() => order.is_ge() && begins(version, prefix),
            _ => return Err("`~=` needs two numbers at least"),
        },
    })
}

fn numbers(text: &str) -> Option<Vec<u64>> {
    let parts: Vec<&str> = text.split('.').collect();
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.len() > MAX_PARTS || !parts.iter().all(is_number) {
        return None;
    }
    parts.iter().map(|part| part.parse().ok()).collect()
}

/// Missing numbers are zeros: `3.10` is `3.10.0`.
fn compare(a: &[u64], b: &[u64]) -> Ordering {
    let at = |numbers: &[u64], index: usize| numbers.get(index).copied().unwrap_or(0);
    let length = a.len().max(b.len());
    let orders = (0..length).map(|index| at(a, index).cmp(&at(b, index)));
    orders.fold(Ordering::Equal, Ordering::then)
}

fn begins(version: &[u64], prefix: &[u64]) -> bool {
    let at = |index: usize| version.get(index).copied().unwrap_or(0);
    prefix.iter().enumerate().all(|(index, number)| at(index) == *number)
}

/// Whether a text is a valid PEP 440 version, such as `1!2.0rc1.post2.dev3+local.4`.
pub(crate) fn is_version(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let text = text.strip_prefix('v').unwrap_or(&text);
    let (public, local) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
    let (epoch, rest) = public.split_once('!').unwrap_or(("0", public));
    let rest = release(rest).map(|rest| {
        let rest = suffix(rest, &["alpha", "beta", "preview", "pre", "rc", "a", "b", "c"]);
        let post =
            rest.strip_prefix('-').map(without_digits).filter(|it| it.len() + 1 < rest.len());
        let rest = post.unwrap_or_else(|| suffix(rest, &["post", "rev", "r"]));
        suffix(rest, &["dev"])
    });
    rest == Some("")
        && !epoch.is_empty()
        && without_digits(epoch).is_empty()
        && local.is_none_or(|local| local.split(['-', '_', '.']).all(is_word))
}

fn without_digits(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_digit())
}

/// Returns the text after dotted numbers.
fn release(text: &str) -> Option<&str> {
    let mut rest = Some(without_digits(text)).filter(|rest| rest.len() < text.len())?;
    while let Some(part) = rest.strip_prefix('.') {
        let after = without_digits(part);
        if after.len() == part.len() {
            break;
        }
        rest = after;
    }
    Some(rest)
}

/// Returns the text after one of the words and its number, if present.
fn suffix<'a>(text: &'a str, words: &[&str]) -> &'a str {
    const SEPARATORS: [char; 3] = ['-', '_', '.'];
    let start = text.strip_prefix(SEPARATORS).unwrap_or(text);
    let Some(rest) = words.iter().find_map(|word| start.strip_prefix(word)) else { return text };
    let number = rest.strip_prefix(SEPARATORS).unwrap_or(rest);
    if without_digits(number).len() < number.len() { without_digits(number) } else { rest }
}

/// Why the version of an interpreter cannot be determined.
#[derive(Debug, Error)]
pub enum PythonError {
    /// The interpreter cannot be started.
    #[error("cannot start {}", python.display())]
    Start {
        python: PathBuf,
        #[source]
        source: std::io::Error,
    },
    /// The interpreter does not print its version.
    #[error("{} is not a Python interpreter that prints its version", python.display())]
    Silent { python: PathBuf },
}

/// The version of an interpreter, `3.11.7`. It gets these variables only: an interpreter can be a
/// script that starts programs of its `PATH`.
pub fn python_version(
    python: &Path,
    variables: &[(OsString, OsString)],
) -> Result<String, PythonError> {
    let output = Command::new(python)
        .env_clear()
        .envs(variables.iter().cloned())
        // Version managers read settings in the working folder.
        .current_dir("/")
        .args(["-I", "-S", "-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"])
        .stdin(Stdio::null())
        .output()
        .map_err(|source| PythonError::Start { python: python.to_owned(), source })?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || numbers(&version).is_none_or(|parts| parts.len() != 3) {
        return Err(PythonError::Silent { python: python.to_owned() });
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges() {
        for (range, version, expected) in [
            ("", "3.9.0", true),
            (">=3.10", "3.10.0", true),
            (">=3.10", "3.9.18", false),
            (">=3.10,<4", "4.0.0", false),
            (" >= 3.10 , < 4 ", "3.13.1", true),
            ("<3.12", "3.12.0", false),
            ("<=3.12", "3.12.1", false),
            (">3.11", "3.11.1", true),
            ("~=3.10", "3.14.0", true),
            ("~=3.10", "4.0.0", false),
            ("~=3.10.2", "3.10.1", false),
            ("~=3.10.2", "3.10.9", true),
            ("~=3.10.2", "3.11.0", false),
            ("==3.11.*", "3.11.7", true),
            ("==3.11.*", "3.1.1", false),
            ("==3.*", "3.1.1", true),
            ("!=3.11.*", "3.11.7", false),
            ("==3.11", "3.11.0", true),
            ("==3.11", "3.11.7", false),
            ("!=3.11.4,>=3.9", "3.11.4", false),
        ] {
            assert_eq!(satisfies(range, version), Ok(expected), "{range:?} {version}");
        }
    }

    #[test]
    fn versions_of_packages() {
        for version in [
            "1", "1.0", "v1.0", "2024.10.5", "1!2.0", "1.0a1", "1.0.alpha-1", "1.0b",
            "1.0rc1.post2.dev3", "1.0c1", "1.0-1", "1.0.post1", "1.0r4", "1.0-rev-4", "1.0.dev0",
            "1.0.dev", "2.1.0+cpu", "1.0+ubuntu.1-2_3", "1.0RC1",
        ] {
            assert!(is_version(version), "{version:?}");
        }
        for text in [
            "", "v", "a", "1.", ".1", "1..0", "1.*", "*", "1.0 ", "1.0 #", "1 --no-binary :all:",
            "1\n-r x", "1;x", "1,<2", "1-", "1.0+", "1.0+a..b", "1.0+a b", "!1", "x!1", "1!",
            "1.0foo", "1.0a1b2", "1.0/2", "1@x",
        ] {
            assert!(!is_version(text), "{text:?}");
        }
    }

    #[test]
    fn invalid_ranges_are_rejected() {
        let long = ">=3,".repeat(1_000);
        for range in [
            "3.10", "^3.10", "===3.10", ">=", ">=3.x", ">=3.10,", ",", "~=3", ">=3.*", "==*",
            "=>3", ">=-1", ">=3..1", ">=3.10;x", ">=99999999999999999999999", "<1,oops", &long,
        ] {
            assert!(satisfies(range, "3.11.7").is_err(), "{range:?}");
        }
        assert!(satisfies(">=3", "three").is_err());
    }
}
