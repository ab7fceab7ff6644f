//! Defines the grammars of skill names, and converts other text to names.

use std::borrow::Cow;

use thiserror::Error;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Longest skill name any grammar with a limit accepts, in characters.
pub const MAX_NAME_CHARS: usize = 64;

/// Longest name, of whatever it is, that others are compared with, in bytes: the time that it takes
/// grows with the length of both.
pub const MAX_COMPARED: usize = 128;

/// Characters of an invalid name that messages repeat.
const MAX_SHOWN_CHARS: usize = 100;

/// Longest name of a gibberish tool, in characters.
const MAX_TOOL_NAME_CHARS: usize = 32;

/// Name prefixes that only their owners may publish under.
const RESERVED_PREFIXES: [&str; 3] = ["amd-", "gaia-", "mcp-"];

/// Which names a dialect, or an act such as publishing, accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameGrammar {
    /// Lower-case letters and digits of any script, and single inner hyphens.
    AgentSkills,
    /// `[a-z0-9-]{1,64}` with single inner hyphens: Agent Flow Lite and gibberish.
    Ascii,
    /// `^[a-z][a-z0-9-]{0,63}$`, which allows double and trailing hyphens.
    Gaia,
    /// `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`, at most 64: what every dialect can read.
    Published,
    /// Any non-empty text: skillrt.
    Any,
}

/// Shortens a name for messages: a name longer than any valid one is cut.
pub fn shorten_name(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(MAX_SHOWN_CHARS) {
        None => name.into(),
        Some((end, _)) => format!("{}…", &name[..end]).into(),
    }
}

/// Why a skill name was refused. The texts are those of the Agent Flow Lite API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameProblem {
    /// There is no name.
    #[error("Skill name is required")]
    Empty,
    /// The name has more than 64 characters.
    #[error("Skill name must be {MAX_NAME_CHARS} characters or less")]
    TooLong {
        /// How many characters it has.
        chars: usize,
    },
    /// The name differs from its lower-case form.
    #[error("Skill name must be lowercase")]
    Uppercase,
    /// The name has a character outside the grammar.
    #[error("Skill name can only contain lowercase letters, numbers, and hyphens")]
    BadCharacter(char),
    /// The name starts or ends with a hyphen.
    #[error("Skill name cannot start or end with a hyphen")]
    EdgeHyphen,
    /// The name has two hyphens in a row.
    #[error("Skill name cannot contain consecutive hyphens")]
    DoubleHyphen,
    /// The name starts with a digit or a hyphen where a letter is needed.
    #[error("Skill name must start with a lowercase letter")]
    MustStartWithLetter,
}

impl NameProblem {
    /// The stable identifier of the problem.
    pub fn code(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong { .. } => "too-long",
            Self::Uppercase => "uppercase",
            Self::BadCharacter(_) => "bad-character",
            Self::EdgeHyphen => "edge-hyphen",
            Self::DoubleHyphen => "double-hyphen",
            Self::MustStartWithLetter => "must-start-with-letter",
        }
    }
}

impl NameGrammar {
    /// The JSON Schema of a name.
    pub(crate) fn schema(self) -> serde_json::Value {
        let pattern = match self {
            Self::AgentSkills | Self::Ascii => "^[a-z0-9]+(-[a-z0-9]+)*$",
            Self::Gaia => "^[a-z][a-z0-9-]{0,63}$",
            Self::Published => "^[a-z][a-z0-9]*(-[a-z0-9]+)*$",
            Self::Any => return serde_json::json!({"type": "string", "minLength": 1}),
        };
        serde_json::json!({
            "type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARS, "pattern": pattern
        })
    }

    /// Checks a name and reports the first problem, in the order the Agent Flow API checks.
    pub fn check(self, name: &str) -> Result<(), NameProblem> {
        match self {
            Self::Any if name.is_empty() => Err(NameProblem::Empty),
            Self::Any => Ok(()),
            Self::AgentSkills => {
                let name = canonical(name);
                check_size_and_case(&name)?;
                check_hyphens(&name)?;
                check_characters(&name, char::is_alphanumeric)
            }
            Self::Ascii => check_ascii(name),
            Self::Gaia => {
                check_size_and_case(name)?;
                check_characters(name, is_ascii_lower)?;
                check_first_letter(name)
            }
            Self::Published => check_ascii(name).and_then(|()| check_first_letter(name)),
        }
    }
}

fn check_ascii(name: &str) -> Result<(), NameProblem> {
    check_size_and_case(name)?;
    check_characters(name, is_ascii_lower)?;
    check_hyphens(name)
}

fn check_size_and_case(name: &str) -> Result<(), NameProblem> {
    if name.is_empty() {
        return Err(NameProblem::Empty);
    }
    let chars = name.chars().count();
    if chars > MAX_NAME_CHARS {
        return Err(NameProblem::TooLong { chars });
    }
    if name.to_lowercase() == name { Ok(()) } else { Err(NameProblem::Uppercase) }
}

fn check_characters(name: &str, allowed: fn(char) -> bool) -> Result<(), NameProblem> {
    match name.chars().find(|&c| c != '-' && !allowed(c)) {
        Some(found) => Err(NameProblem::BadCharacter(found)),
        None => Ok(()),
    }
}

fn check_hyphens(name: &str) -> Result<(), NameProblem> {
    if has_edge_hyphen(name) {
        Err(NameProblem::EdgeHyphen)
    } else if name.contains("--") {
        Err(NameProblem::DoubleHyphen)
    } else {
        Ok(())
    }
}

fn check_first_letter(name: &str) -> Result<(), NameProblem> {
    if name.starts_with(|c: char| c.is_ascii_lowercase()) {
        Ok(())
    } else {
        Err(NameProblem::MustStartWithLetter)
    }
}

fn has_edge_hyphen(name: &str) -> bool {
    name.starts_with('-') || name.ends_with('-')
}

fn is_ascii_lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// The form in which agentskills.io compares names: trimmed and NFKC-normalized.
pub fn canonical(name: &str) -> Cow<'_, str> {
    let trimmed = name.trim();
    if trimmed.is_ascii() { Cow::Borrowed(trimmed) } else { Cow::Owned(trimmed.nfkc().collect()) }
}

/// Returns warning codes for names that GAIA accepts but most other dialects reject.
pub fn gaia_warnings(name: &str) -> Vec<&'static str> {
    let mut codes = Vec::new();
    if has_edge_hyphen(name) {
        codes.push("edge-hyphen");
    }
    if name.contains("--") {
        codes.push("double-hyphen");
    }
    codes
}

/// The reserved prefix the name starts with, if any.
pub fn reserved_prefix(name: &str) -> Option<&'static str> {
    RESERVED_PREFIXES.into_iter().find(|prefix| name.starts_with(prefix))
}

/// Whether registry URLs use the name for something other than a namespace.
pub fn is_reserved_namespace(namespace: &str) -> bool {
    const RESERVED: [&str; 10] = [
        "api", "artifacts", "download", "index", "publish", "registry", "search", "skills",
        "versions", "well-known",
    ];
    RESERVED.contains(&namespace)
}

/// Whether registry URLs use the name for something other than a skill. In a namespace,
/// `skills/acme/download` gives the bytes of `acme`, and not what is known of `acme/download`;
/// without one, `artifacts/1.0.0/SKILL.md` would be an archive.
pub fn is_reserved_skill_name(namespace: Option<&str>, name: &str) -> bool {
    match namespace {
        Some(_) => {
            ["deprecate", "download", "keys", "members", "reviews", "transfer"].contains(&name)
        }
        None => name == "artifacts",
    }
}

/// Whether the name is ASCII words of lower-case letters and digits joined by single hyphens.
pub fn is_kebab_case(name: &str) -> bool {
    name.split('-').all(|word| !word.is_empty() && word.chars().all(is_ascii_lower))
}

/// Whether the name could leave the directory it is joined to, or hide in it.
pub fn is_unsafe_path_name(name: &str) -> bool {
    name.is_empty()
        || name.starts_with('.')
        || name.contains("..")
        || name.contains(['/', '\\', '\0'])
}

/// Turns any text into a valid name as Agent Flow Lite does: spaces become hyphens, other
/// foreign characters vanish, and nothing left means `skill`.
pub fn normalize(name: &str) -> String {
    let lower = name.to_lowercase();
    let kept = lower.chars().filter_map(|c| match c {
        ' ' | '-' => Some('-'),
        c if is_ascii_lower(c) => Some(c),
        _ => None,
    });
    join_words(kept).unwrap_or_else(|| "skill".to_owned())
}

/// Turns any text into a valid name as Personal Agent does: accents are dropped and every run
/// of foreign characters becomes one hyphen. `None` if nothing is left.
pub fn slugify(text: &str) -> Option<String> {
    let plain: String = text.nfkd().filter(|&c| !is_combining_mark(c)).collect();
    join_words(plain.to_lowercase().chars().map(|c| if is_ascii_lower(c) { c } else { '-' }))
}

/// Collapses and trims hyphens and cuts to the limit; a hyphen is only written between words,
/// so a cut can leave at most one behind.
fn join_words(chars: impl Iterator<Item = char>) -> Option<String> {
    let mut name = String::with_capacity(MAX_NAME_CHARS);
    let mut pending_hyphen = false;
    for c in chars {
        if c == '-' {
            pending_hyphen = !name.is_empty();
            continue;
        }
        if std::mem::take(&mut pending_hyphen) {
            name.push('-');
        }
        name.push(c);
        if name.len() >= MAX_NAME_CHARS {
            break;
        }
    }
    name.truncate(MAX_NAME_CHARS);
    if name.ends_with('-') {
        name.pop();
    }
    (!name.is_empty()).then_some(name)
}

/// Why the name of a gibberish tool was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ToolNameProblem {
    /// There is no name.
    #[error("tool name is empty")]
    Empty,
    /// The name has more than 32 characters.
    #[error("tool name has {chars} characters, at most {MAX_TOOL_NAME_CHARS} are allowed")]
    TooLong {
        /// How many characters it has.
        chars: usize,
    },
    /// The name has a character outside `[a-z0-9_]`.
    #[error(
        "tool name contains {0:?}, only lower-case letters, digits and underscores are allowed"
    )]
    BadCharacter(char),
}

/// Checks the name of a gibberish tool: `[a-z0-9_]{1,32}`.
pub fn check_tool_name(name: &str) -> Result<(), ToolNameProblem> {
    if name.is_empty() {
        return Err(ToolNameProblem::Empty);
    }
    if let Some(found) = name.chars().find(|&c| c != '_' && !is_ascii_lower(c)) {
        return Err(ToolNameProblem::BadCharacter(found));
    }
    let chars = name.len();
    if chars > MAX_TOOL_NAME_CHARS { Err(ToolNameProblem::TooLong { chars }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(grammar: NameGrammar, name: &str) -> &'static str {
        grammar.check(name).map_or_else(NameProblem::code, |()| "ok")
    }

    #[test]
    fn ascii_grammar_reports_the_first_problem_in_order() {
        let long = "x".repeat(65);
        for (name, expected) in [
            ("review", "ok"),
            ("0-day", "ok"),
            ("", "empty"),
            (long.as_str(), "too-long"),
            ("Review", "uppercase"),
            ("É", "uppercase"),
            ("-Review", "uppercase"),
            ("re view", "bad-character"),
            ("-re_view", "bad-character"),
            ("größe", "bad-character"),
            ("review\n", "bad-character"),
            ("../up", "bad-character"),
            ("-review", "edge-hyphen"),
            ("review-", "edge-hyphen"),
            ("-", "edge-hyphen"),
            ("re--view", "double-hyphen"),
        ] {
            assert_eq!(code(NameGrammar::Ascii, name), expected, "{name:?}");
        }
        assert_eq!(code(NameGrammar::Ascii, &"é".repeat(65)), "too-long");
        assert_eq!(code(NameGrammar::Ascii, &"x".repeat(64)), "ok");
    }

    #[test]
    fn messages_are_those_of_the_api() {
        let message = |name: &str| NameGrammar::Ascii.check(name).unwrap_err().to_string();
        assert_eq!(message(""), "Skill name is required");
        assert_eq!(message(&"y".repeat(70)), "Skill name must be 64 characters or less");
        assert_eq!(message("ABC"), "Skill name must be lowercase");
        assert_eq!(
            message("a.b"),
            "Skill name can only contain lowercase letters, numbers, and hyphens"
        );
        assert_eq!(message("a-"), "Skill name cannot start or end with a hyphen");
        assert_eq!(message("a--b"), "Skill name cannot contain consecutive hyphens");
    }

    #[test]
    fn agentskills_grammar_takes_any_script() {
        for (name, expected) in [
            ("größe-2", "ok"),
            ("日本語", "ok"),
            ("  padded ", "ok"),
            ("ｆｕｌｌ", "ok"),
            ("   ", "empty"),
            ("Größe", "uppercase"),
            ("a_b", "bad-character"),
            ("a b", "bad-character"),
            ("-a_b", "edge-hyphen"),
        ] {
            assert_eq!(code(NameGrammar::AgentSkills, name), expected, "{name:?}");
        }
        assert_eq!(canonical(" ｆｕｌｌ "), "full");
    }

    #[test]
    fn gaia_published_and_any() {
        for (name, gaia, published) in [
            ("web", "ok", "ok"),
            ("web-", "ok", "edge-hyphen"),
            ("we--b", "ok", "double-hyphen"),
            ("-web", "must-start-with-letter", "edge-hyphen"),
            ("2web", "must-start-with-letter", "must-start-with-letter"),
            ("web_x", "bad-character", "bad-character"),
            ("Web", "uppercase", "uppercase"),
            ("", "empty", "empty"),
        ] {
            assert_eq!(code(NameGrammar::Gaia, name), gaia, "{name:?}");
            assert_eq!(code(NameGrammar::Published, name), published, "{name:?}");
        }
        assert_eq!(code(NameGrammar::Gaia, &"g".repeat(65)), "too-long");
        assert_eq!(code(NameGrammar::Any, "../ANY thing"), "ok");
        assert_eq!(code(NameGrammar::Any, ""), "empty");
    }

    #[test]
    fn gaia_extras() {
        assert_eq!(gaia_warnings("a--b-"), ["edge-hyphen", "double-hyphen"]);
        assert!(gaia_warnings("a-b").is_empty());
        assert_eq!(reserved_prefix("mcp-files"), Some("mcp-"));
        assert_eq!(reserved_prefix("mcp"), None);
        assert_eq!(reserved_prefix("my-gaia-x"), None);
    }

    #[test]
    fn kebab_case() {
        assert!(is_kebab_case("pr-review2"));
        for name in ["", "-a", "a-", "a--b", "PR_Review", "prReview", "ä"] {
            assert!(!is_kebab_case(name), "{name:?}");
        }
    }

    #[test]
    fn normalize_keeps_what_agent_flow_keeps() {
        for (text, expected) in [
            ("My Skill", "my-skill"),
            ("a  b", "a-b"),
            (" - a - ", "a"),
            ("Grüße", "gre"),
            ("tab\there", "tabhere"),
            ("a_b.c", "abc"),
            ("???", "skill"),
            ("", "skill"),
        ] {
            assert_eq!(normalize(text), expected, "{text:?}");
        }
        assert_eq!(normalize(&format!("{} b", "x".repeat(63))), "x".repeat(63));
        assert_eq!(normalize(&"x".repeat(200)).len(), 64);
    }

    #[test]
    fn slugify_drops_accents() {
        for (text, expected) in [
            ("Résumé Helper!", Some("resume-helper")),
            ("a_b.c", Some("a-b-c")),
            ("ﬁle №5", Some("file-no5")),
            ("--x--", Some("x")),
            ("日本", None),
            ("", None),
        ] {
            assert_eq!(slugify(text).as_deref(), expected, "{text:?}");
        }
        assert_eq!(slugify(&format!("{}-y", "x".repeat(63))), Some("x".repeat(63)));
    }

    #[test]
    fn names_that_leave_the_store() {
        for name in ["", ".hidden", "..", "a/b", "a\\b", "a\0b", "a..b"] {
            assert!(is_unsafe_path_name(name), "{name:?}");
        }
        assert!(!is_unsafe_path_name("A b.c"));
    }

    #[test]
    fn tool_names() {
        assert_eq!(check_tool_name("git_status2"), Ok(()));
        assert_eq!(check_tool_name(""), Err(ToolNameProblem::Empty));
        assert_eq!(check_tool_name("git-status"), Err(ToolNameProblem::BadCharacter('-')));
        assert_eq!(check_tool_name("Git"), Err(ToolNameProblem::BadCharacter('G')));
        assert_eq!(check_tool_name(&"t".repeat(32)), Ok(()));
        assert_eq!(check_tool_name(&"t".repeat(33)), Err(ToolNameProblem::TooLong { chars: 33 }));
    }
}
