//! The `allowed-tools` field: a list of tool grants such as `Read, Bash(git add:*)`.

use std::{fmt, ops::Range};

use serde::Serialize;

/// One tool that a skill may use.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct ToolGrant {
    /// The name as written.
    pub name: String,
    /// The text in parentheses after the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Whether its parentheses do not close where it ends, so that nobody knows what is meant. It grants
    /// nothing, and rules out every tool that it names.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_broken: bool,
    /// The byte range of the grant in the source text.
    #[serde(skip)]
    pub range: Range<usize>,
}

/// Names of other systems and the tool of Personal Agent that they mean. Keys are compared
/// without case, hyphens and underscores.
const ALIASES: [(&str, &[&str]); 7] = [
    (
        "run_command",
        &[
            "bash", "shell", "terminal", "sh", "zsh", "powershell", "exec", "execute",
            "runcommand", "executecommand", "shellcommand", "runshellcommand", "localshell",
            "runterminalcmd", "runterminalcommand", "runinterminal", "executebash",
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

/// Tools of other agents that Savoir does not have, without case, hyphens and underscores.
const TOOLS_OF_OTHER_AGENTS: [&str; 20] = [
    "agent", "applypatch", "askuserquestion", "bashoutput", "browser", "exitplanmode", "grep",
    "killshell", "lsp", "monitor", "notebookedit", "notebookread", "search", "skill",
    "slashcommand", "task", "todoread", "todowrite", "toolsearch", "viewimage",
];

/// Splits the field on blanks and commas outside parentheses. What follows a parenthesis that nothing
/// closes belongs to the same broken grant: where it should have ended is not guessed. So does a
/// parenthesis with only blanks before it: it is a condition of the tool there.
pub fn split(text: &str) -> Vec<ToolGrant> {
    let mut grants: Vec<ToolGrant> = Vec::new();
    let mut start = None;
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' if start.is_none() => {
                let is_near = |last: &mut ToolGrant| text[last.range.end..at].trim().is_empty();
                start = grants.pop_if(is_near).map(|last| last.range.start);
                depth += 1;
            }
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
            Some(arguments) if self.is_broken => write!(f, "{}({arguments}", self.name),
            Some(arguments) => write!(f, "{}({arguments})", self.name),
            None => f.write_str(&self.name),
        }
    }
}

impl ToolGrant {
    /// It is broken, too, if nothing stands before the parenthesis, or a blank, or one that closes none:
    /// a list that names only this allows nothing, rather than everything.
    fn read(text: &str, range: Range<usize>) -> Option<Self> {
        let written = text.get(range.clone())?;
        let is_name = |name: &str| !name.is_empty() && !name.contains(')') && name == name.trim();
        let (name, arguments, is_broken) = match written.split_once('(') {
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(inside) if is_name(name) && is_balanced(inside) => (name, Some(inside), false),
                _ => (name, Some(rest), true),
            },
            None => (written, None, !is_name(written)),
        };
        let (name, arguments) = (name.to_owned(), arguments.map(str::to_owned));
        Some(Self { name, arguments, is_broken, range })
    }

    /// The name Personal Agent knows the tool by; a name it does not know is lower-cased.
    pub fn normalized(&self) -> String {
        let lower = self.name.to_lowercase();
        find_host_tool(&lower).map_or(lower, str::to_owned)
    }

    /// The normalized name; the text as written if the grant is broken.
    pub fn display_name(&self) -> String {
        if self.is_broken { self.to_string() } else { self.normalized() }
    }

    /// Suggests how to write a broken grant: closed after its first condition.
    pub fn suggest_closed(&self) -> String {
        let name = match self.name.replace(')', "").trim() {
            "" => "TOOL".to_owned(),
            name => name.to_owned(),
        };
        let Some(rest) = self.arguments.as_deref() else { return name };
        match rest.split([',', '(', ')']).next().unwrap_or_default().trim() {
            "" | "*" | ":*" | "**" => format!("{name}(CONDITION)"),
            first => format!("{name}({first})"),
        }
    }

    /// Returns each word of a broken grant as a separate grant, because any of them may name a tool.
    pub(crate) fn words_as_grants(&self) -> Vec<Self> {
        let text = self.to_string();
        let words = text.split([',', '(', ')']).flat_map(str::split_whitespace);
        let alone = |word: &str| Self {
            name: word.to_owned(),
            arguments: None,
            is_broken: false,
            range: self.range.clone(),
        };
        words.map(alone).collect()
    }

    /// Whether it names a tool that Personal Agent has, in the words of any system.
    pub fn is_known(&self) -> bool {
        find_host_tool(&self.name.to_lowercase()).is_some()
    }

    /// Whether a tool of this name may exist in some agent. Tools of MCP servers and of other skills
    /// may exist, and `savoir check` reports a broken grant separately.
    pub fn may_exist(&self) -> bool {
        let key = self.name.to_lowercase().replace(['-', '_'], "");
        self.is_broken
            || self.is_known()
            || TOOLS_OF_OTHER_AGENTS.contains(&key.as_str())
            || self.name.contains("__")
            || self.name.contains(['/', ':', '.'])
            || key.starts_with("mcp")
            || key.ends_with("skill")
            || key.ends_with("skills")
    }
}

/// Grants as one string with blanks between them. Those that nothing closes come last, so that nothing
/// that follows closes them, or is swallowed; those that begin with a parenthesis come first, so that they
/// are no condition of another.
pub(crate) fn join<'a>(grants: impl IntoIterator<Item = &'a ToolGrant>) -> String {
    let mut written: Vec<String> = grants.into_iter().map(ToString::to_string).collect();
    written.sort_by_key(|one| (leaves_open(one), !one.starts_with('(')));
    written.join(" ")
}

fn leaves_open(text: &str) -> bool {
    let deeper = |depth: usize, c| match c {
        '(' => depth + 1,
        ')' => depth.saturating_sub(1),
        _ => depth,
    };
    text.chars().fold(0, deeper) > 0
}

/// Whether every parenthesis has its partner. Quotes do not matter, so one in quotes needs one, too.
pub(crate) fn is_balanced(text: &str) -> bool {
    let mut depth = 0_usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return false,
            ')' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}

fn find_host_tool(lower: &str) -> Option<&'static str> {
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
        for (text, count, mended) in [
            ("Bash(rm", 1, "Bash(rm)"),
            ("Bash(git add:*, Read Write", 1, "Bash(git add:*)"),
            ("Bash(git (x)", 1, "Bash(git)"),
            ("Bash(rm, Read(x)", 1, "Bash(rm)"),
            ("Bash(rm)x", 1, "Bash(rm)"),
            ("Bash(a)(b)", 1, "Bash(a)"),
            ("Bash(rm)) Read", 2, "Bash(rm)"),
            ("Bash(", 1, "Bash(CONDITION)"),
            ("Bash(*", 1, "Bash(CONDITION)"),
            ("Bash (git log:*)", 1, "Bash(git log:*)"),
            ("Bash\n(git log:*) Read", 2, "Bash(git log:*)"),
            ("(Bash Write, Read", 1, "TOOL(Bash Write)"),
            ("(Bash)", 1, "TOOL(Bash)"),
            ("Bash) Write", 2, "Bash"),
        ] {
            let grants = split(text);
            assert_eq!(grants.len(), count, "{text}");
            assert!(grants[0].is_broken, "{text}");
            assert_eq!(grants[0].to_string(), &text[grants[0].range.clone()], "as it is written");
            assert_eq!(grants[0].display_name(), grants[0].to_string(), "no name of a tool");
            assert_eq!(grants[0].suggest_closed(), mended, "{text}");
        }
        assert!(!split("Bash(a (b) c) Read() x").iter().any(|grant| grant.is_broken));
        assert_eq!(split("Bash(git Read")[0].arguments.as_deref(), Some("git Read"));
        let grants = split("Bash() Read) (x), (y) Write");
        let display_names: Vec<_> = grants.iter().map(ToolGrant::display_name).collect();
        assert_eq!(display_names, ["run_command", "Read) (x)", "(y)", "write_file"]);
    }

    #[test]
    fn joining_grants_does_not_close_open_parentheses() {
        let written = ["Bash(rm", "Foo)", "Read(a", "Read(b))", "Write"];
        let grants: Vec<ToolGrant> = written.iter().flat_map(|one| split(one)).collect();
        let text = join(&grants);
        assert_eq!(text, "Foo) Read(b)) Write Bash(rm Read(a");
        let again: Vec<String> = split(&text).iter().map(ToolGrant::display_name).collect();
        assert_eq!(again, ["Foo)", "Read(b))", "write_file", "Bash(rm Read(a"]);
        let grants: Vec<ToolGrant> =
            ["Write", "(Bash)"].iter().flat_map(|one| split(one)).collect();
        assert_eq!(join(&grants), "(Bash) Write");
    }

    #[test]
    fn empty_list_is_still_a_list() {
        assert_eq!(split("(Bash)")[0].display_name(), "(Bash)");
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
