//! Validates the Python requirements of skills.
//!
//! The texts come from a SKILL.md and end up as arguments of an installer, so the grammar is a list
//! of what is allowed: `name[extra] >=1,<2; marker`. Options, files, addresses and repositories are
//! refused, each by its name.

use std::fmt;

use thiserror::Error;

use super::version::is_version;

/// Most requirements of one skill.
pub const MAX_REQUIREMENTS: usize = 256;

/// Longest requirement.
const MAX_BYTES: usize = 512;

/// A requirement that an installer may see.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Requirement(String);

impl Requirement {
    /// The text for the installer.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a requirement may name the source of its package.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectReferences {
    /// Only the index.
    #[default]
    Forbid,
    /// `name @ https://…` and `name @ git+https://…`, too, because the caller has checked them.
    Allow,
}

/// Why a list of requirements is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequirementError {
    /// More than [`MAX_REQUIREMENTS`].
    #[error("the skill has {0} Python requirements, the limit is {MAX_REQUIREMENTS}")]
    TooMany(usize),
    #[error("the requirement {text:?} is refused: {why}")]
    Refused { text: String, why: &'static str },
}

/// Reads the requirements of a skill; the result is sorted and has each of them once.
///
/// ```
/// use savoir_engine::python::requirement::{DirectReferences, requirements};
///
/// let good = requirements(&["requests >=2.31,<3", "rich[jupyter]==13.*"], DirectReferences::Forbid)?;
/// assert_eq!(good[0].as_str(), "requests >=2.31,<3");
/// assert!(requirements(&["--index-url=https://evil.example"], DirectReferences::Forbid).is_err());
/// # Ok::<(), savoir_engine::python::requirement::RequirementError>(())
/// ```
pub fn requirements<T: AsRef<str>>(
    texts: &[T],
    references: DirectReferences,
) -> Result<Vec<Requirement>, RequirementError> {
    if texts.len() > MAX_REQUIREMENTS {
        return Err(RequirementError::TooMany(texts.len()));
    }
    let read = |text: &T| {
        let text = text.as_ref();
        read(text.trim_matches([' ', '\t']), references)
            .map_err(|why| RequirementError::Refused { text: text.chars().take(80).collect(), why })
    };
    let mut all = texts.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    all.sort();
    all.dedup();
    Ok(all)
}

/// The requirement for exactly one version of a package. Name and version were written by the
/// author of a package and end up in a file whose lines an installer can take for options, so both
/// are parsed.
pub(crate) fn pin(name: &str, version: &str) -> Result<Requirement, RequirementError> {
    let refuse = |why| {
        let text = format!("{name}=={version}").chars().take(80).collect();
        RequirementError::Refused { text, why }
    };
    if !package(name).map_err(refuse)?.is_empty() || name.contains(['[', ' ', '\t']) {
        return Err(refuse("text follows its name"));
    }
    if !is_version(version) {
        return Err(refuse("its version is not one of PEP 440"));
    }
    read(&format!("{name}=={version}"), DirectReferences::Forbid).map_err(refuse)
}

fn read(text: &str, references: DirectReferences) -> Result<Requirement, &'static str> {
    if text.is_empty() {
        return Err("it is empty");
    }
    if text.len() > MAX_BYTES {
        return Err("it is too long");
    }
    if text.starts_with('-') {
        return Err("it is an option of the installer");
    }
    if !text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return Err("it has a line end, a control character or a letter outside ASCII");
    }
    let (rest, marker) = text.split_once(';').map_or((text, None), |(a, b)| (a, Some(b)));
    if let Some((named, place)) = text.split_once('@') {
        let named = package(named.trim_end())?;
        if !named.is_empty() {
            return Err("text follows its name");
        }
        if references == DirectReferences::Forbid {
            return Err("it names an address instead of the index");
        }
        return address(place.trim_start()).map(|()| Requirement(text.to_owned()));
    }
    if rest.contains("://") || rest.contains(['/', '\\']) || rest.starts_with(['.', '~']) {
        return Err("it is a path or an address instead of a name");
    }
    let versions = package(rest.trim_end())?;
    clauses(versions.trim())?;
    marker.map_or(Ok(()), check_marker)?;
    Ok(Requirement(text.to_owned()))
}

/// Checks the name and the extras, and returns the rest.
fn package(text: &str) -> Result<&str, &'static str> {
    let inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let length = text.bytes().take_while(inside).count();
    let (name, rest) = text.split_at(length);
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !edge(name.bytes().next()) || !edge(name.bytes().last()) {
        return Err("it does not begin with the name of a package");
    }
    // Installers treat names with these endings as files.
    let archive = [".whl", ".zip", ".gz", ".bz2", ".xz", ".tgz", ".tar", ".txt", ".toml"];
    let lower = name.to_ascii_lowercase();
    if archive.iter().any(|end| lower.ends_with(end)) {
        return Err("its name is that of a file");
    }
    let rest = rest.trim_start();
    let Some(extras) = rest.strip_prefix('[') else { return Ok(rest) };
    let (extras, rest) = extras.split_once(']').ok_or("a bracket is not closed")?;
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| inside(&byte));
    if !extras.split(',').all(|extra| is_word(extra.trim())) {
        return Err("its extras are not words with commas between them");
    }
    Ok(rest.trim_start())
}

/// `>=1,<2`, or the same in parentheses.
fn clauses(text: &str) -> Result<(), &'static str> {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')).unwrap_or(text);
    if text.is_empty() {
        return Ok(());
    }
    let is_clause = |clause: &str| {
        let clause = clause.trim();
        let length = clause.bytes().take_while(|byte| b"<>=!~".contains(byte)).count();
        let (operator, version) = clause.split_at(length);
        let version = version.trim_start();
        let own = |byte: u8| byte.is_ascii_alphanumeric() || b".*+!-_".contains(&byte);
        ["~=", "==", "!=", ">=", "<=", ">", "<", "==="].contains(&operator)
            && version.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
            && version.bytes().all(own)
    };
    if inner.split(',').all(is_clause) { Ok(()) } else { Err("its versions are no range") }
}

fn check_marker(text: &str) -> Result<(), &'static str> {
    let own = |byte: u8| byte.is_ascii_alphanumeric() || b" _.,'\"<>=!~()+-".contains(&byte);
    let begins =
        |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic() || "('\"".contains(c));
    if text.bytes().all(own) && begins(text.trim_start()) && !text.contains("--") {
        Ok(())
    } else {
        Err("its marker has characters that markers do not have")
    }
}

fn address(text: &str) -> Result<(), &'static str> {
    const KINDS: [&str; 3] = ["https://", "git+https://", "file:///"];
    if text.contains(' ') {
        return Err("its address has a blank");
    }
    if KINDS.iter().any(|kind| text.starts_with(kind)) {
        Ok(())
    } else {
        Err("its address is not `https`, `git+https` or `file`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_requirements() {
        for text in [
            "six",
            "Six",
            "zope.interface",
            "a",
            "requests>=2.31",
            "requests >=2.31, <3",
            "requests (>=2.31,<3)",
            "rich[jupyter,all]==13.*",
            "torch==2.1.0+cpu",
            "x===1.0",
            "foo!=1.5,~=1.4.2",
            "tomli>=1; python_version < '3.11'",
            "pywin32; sys_platform == \"win32\" and (python_version >= '3.9')",
            " six ",
        ] {
            let read = requirements(&[text], DirectReferences::Forbid);
            assert!(read.is_ok(), "{text:?}: {read:?}");
        }
        let twice = requirements(&["b", "a", "b"], DirectReferences::Forbid).unwrap();
        assert_eq!(twice.iter().map(Requirement::as_str).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn hostile_requirements() {
        let long = "a".repeat(1_000);
        for text in [
            "",
            " ",
            "-r requirements.txt",
            "-e .",
            "--index-url=https://evil.example/simple",
            " --pre",
            "six --hash=sha256:00",
            "six --index-url https://evil.example",
            "six; --pre",
            "six;--pre",
            "six\n--index-url https://evil.example",
            "six\r--pre",
            "six\0",
            "six\tevil",
            "six\u{a0}",
            "s\u{456}x",
            "six evil",
            "six\\\n",
            "./six",
            ".",
            "..",
            "~/six",
            "/etc/passwd",
            "dir/six",
            "C:\\six",
            "six.whl",
            "six-1.0-py3-none-any.whl",
            "six-1.0.tar.gz",
            "requirements.txt",
            "https://evil.example/six.whl",
            "git+https://evil.example/six",
            "six @ https://evil.example/six.whl",
            "six@https://evil.example/six.whl",
            "six @ git+https://evil.example/six",
            "six @ file:///tmp/six",
            "six[",
            "six[a",
            "six[]",
            "six[a]b",
            "six[--pre]x",
            "six>=",
            "six=1",
            "six>=1,",
            "six>=-1",
            "six>=1 --pre",
            "six>=$(id)",
            "$(id)",
            "`id`",
            "six;",
            "six; os.system('id') # x",
            "six # comment",
            "six|id",
            "six&id",
            "_six",
            "six-",
            &long,
        ] {
            let read = requirements(&[text], DirectReferences::Forbid);
            assert!(read.is_err(), "{text:?}: {read:?}");
        }
        let many = vec!["six"; MAX_REQUIREMENTS + 1];
        assert_eq!(
            requirements(&many, DirectReferences::Forbid),
            Err(RequirementError::TooMany(257))
        );
    }

    #[test]
    fn pins() {
        for (name, version) in
            [("six", "1.16.0"), ("zope.interface", "6.0.post1"), ("Torch_x-y", "2.1.0+cpu")]
        {
            assert_eq!(pin(name, version).unwrap().as_str(), format!("{name}=={version}"));
        }
        let long = "a".repeat(9_000_000);
        for (name, version) in [
            ("--no-binary :all: #", "1"),
            ("-r", "1"),
            ("#", "1"),
            ("", "1"),
            ("six", ""),
            ("six ", "1"),
            ("six\n--pre", "1"),
            ("six[a]", "1"),
            ("six==1;", "1"),
            ("six==1 #", "1"),
            ("six @ https://evil.example/six.whl", "1"),
            ("six; --no-binary", "1"),
            ("six", "1 --no-binary :all:"),
            ("six", "1\n--no-binary :all:"),
            ("six", "1 # x"),
            ("six", "1.*"),
            ("six", "1,<2"),
            (&long, "1"),
            ("six", &long),
        ] {
            let short: String = name.chars().take(40).collect();
            assert!(pin(name, version).is_err(), "{short:?}");
        }
    }

    #[test]
    fn urls_are_accepted_if_allowed() {
        for (text, good) in [
            ("six @ https://files.example/six.whl", true),
            ("six[a]@git+https://git.example/six@v1", true),
            ("six @ file:///srv/six.whl", true),
            ("six @ http://files.example/six.whl", false),
            ("six @ ssh://git.example/six", false),
            ("six @ https://files.example/six.whl --pre", false),
            ("six>=1 @ https://files.example/six.whl", false),
            ("https://files.example/six.whl", false),
            ("./six", false),
            ("-e six", false),
        ] {
            assert_eq!(requirements(&[text], DirectReferences::Allow).is_ok(), good, "{text:?}");
        }
    }
}
