//! The `allowed-tools` field: a list of tool grants such as `Read, Bash(git add:*)`.

use std::{fmt, ops::Range};

use serde::Serialize;

/// One tool that a skill may use.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ToolGrant {
    /// The name as written.
    pub name: String,
    /// What stands in parentheses after the name, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Where the grant stands in the text it was read from, in bytes.
    #[serde(skip)]
    pub range: Range<usize>,
}

/// Names of other systems and the tool of Personal Agent they stand for. Keys are compared
/// without case, hyphens and underscores.
const ALIASES: [(&str, &[&str]); 7] = [
    (
        "run_command",
        &[
            "bash",
            "shell",
            "terminal",
            "sh",
            "zsh",
            "powershell",
            "exec",
            "execute",
            "runcommand",
            "executecommand",
            "shellcommand",
            "runshellcommand",
            "localshell",
            "runterminalcmd",
            "runterminalcommand",
            "runinterminal",
            "executebash",
        ],
    ),
    ("read_file", &["read", "view", "cat", "readfile", "viewfile", "openfile", "fsread"]),
    ("write_file", &["write", "create", "writefile", "createfile", "fswrite"]),
    (
        "edit_file",
        &["edit", "strreplace", "multiedit", "editfile", "searchreplace", "replaceinfile"],
    ),
    ("list_dir", &["glob", "ls", "list", "dir", "listdir", "listdirectory", "listfiles"]),
    ("web_search", &["websearch", "searchweb", "googlewebsearch"]),
    ("web_fetch", &["webfetch", "fetch", "fetchurl", "urlfetch", "fetchwebpage"]),
];

/// Splits the field on blanks and commas outside parentheses.
pub fn split(text: &str) -> Vec<ToolGrant> {
    let mut grants = Vec::new();
    let mut start = None;
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            grants.extend(start.take().and_then(|start| ToolGrant::read(text, start..at)));
        } else {
            start.get_or_insert(at);
        }
    }
    grants.extend(start.and_then(|start| ToolGrant::read(text, start..text.len())));
    grants
}

impl fmt::Display for ToolGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.arguments {
            Some(arguments) => write!(f, "{}({arguments})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl ToolGrant {
    /// Where nothing stands before the parenthesis, all of it is a name that no tool has: a list that
    /// names only this allows nothing, rather than everything.
    fn read(text: &str, range: Range<usize>) -> Option<Self> {
        let written = text.get(range.clone())?;
        let (name, arguments) = match written.split_once('(') {
            Some((name, rest)) if !name.is_empty() => (name, Some(condition(rest))),
            _ => (written, None),
        };
        Some(Self { name: name.to_owned(), arguments, range })
    }

    /// The name Personal Agent knows the tool by; a name it does not know is lower-cased.
    pub fn normalized(&self) -> String {
        let lower = self.name.to_lowercase();
        known(&lower).map_or(lower, str::to_owned)
    }

    /// Whether it names a tool that Personal Agent has, in the words of any system.
    pub fn is_known(&self) -> bool {
        known(&self.name.to_lowercase()).is_some()
    }
}

/// What stands between parentheses. Where nothing closes them and nothing restricts is left, the one that
/// opens them stays, so that nobody takes it for no restriction.
fn condition(rest: &str) -> String {
    match rest.strip_suffix(')') {
        Some(inside) => inside.to_owned(),
        None if rest.trim_matches(|c| c == '*' || c == ':' || c == ' ').is_empty() => {
            format!("({rest}")
        }
        None => rest.to_owned(),
    }
}

fn known(lower: &str) -> Option<&'static str> {
    let key: String = lower.chars().filter(|c| !matches!(c, '-' | '_')).collect();
    let known = ALIASES.iter().find(|(_, aliases)| aliases.contains(&key.as_str()));
    known.map(|(tool, _)| *tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normalized(text: &str) -> Vec<String> {
        split(text).iter().map(ToolGrant::normalized).collect()
    }

    #[test]
    fn blanks_and_commas_outside_parentheses_separate() {
        let text = " Read,  Bash(git add:*, git (x) y)\n,Custom ";
        let grants = split(text);
        assert_eq!(grants.len(), 3);
        assert_eq!(grants[1].name, "Bash");
        assert_eq!(grants[1].arguments.as_deref(), Some("git add:*, git (x) y"));
        assert_eq!(&text[grants[1].range.clone()], "Bash(git add:*, git (x) y)");
        assert_eq!(&text[grants[2].range.clone()], "Custom");
        assert_eq!(grants[0].arguments, None);
        assert!(split("").is_empty() && split(" , ,").is_empty());
    }

    #[test]
    fn broken_parentheses_do_no_harm() {
        assert_eq!(split("Bash(git Read")[0].arguments.as_deref(), Some("git Read"));
        assert_eq!(
            normalized("Bash() Read) (x) Write"),
            ["run_command", "read)", "(x)", "write_file"]
        );
    }

    #[test]
    fn a_list_of_nothing_that_is_there_is_still_a_list() {
        assert_eq!(split("(Bash)")[0].name, "(Bash)");
        assert!(split(" , ").is_empty());
    }

    #[test]
    fn aliases_of_the_specification() {
        for (tool, names) in [
            ("run_command", "Bash Shell Terminal bash(git:*) run_command"),
            ("read_file", "Read View Cat READ read_file"),
            ("write_file", "Write Create write_file"),
            ("edit_file", "Edit str_replace MultiEdit edit_file"),
            ("list_dir", "Glob LS List list_dir"),
            ("web_search", "WebSearch web_search web-search"),
            ("web_fetch", "WebFetch web_fetch"),
        ] {
            for found in normalized(names) {
                assert_eq!(found, tool, "{names}");
            }
        }
    }

    #[test]
    fn unknown_names_stay() {
        assert_eq!(normalized("Grep mcp__Git__Log my-Tool"), ["grep", "mcp__git__log", "my-tool"]);
    }
}
