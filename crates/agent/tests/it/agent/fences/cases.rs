//! The cases: allow-lists, and the calls that are tried under them.

use serde_json::{Value, json};

/// A skill with some lines of frontmatter, and the calls that a model makes while it is active.
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) lines: &'static str,
    pub(super) tried: Vec<Tried>,
}

/// A call, and the error code with which it must be refused; none if it must run.
pub(super) struct Tried {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) refused: Option<&'static str>,
}

const TOOL: Option<&str> = Some("tool-not-allowed");
const ARGUMENTS: Option<&str> = Some("arguments-not-allowed");
const UNKNOWN: Option<&str> = Some("unknown-tool");

fn tried(tool: &'static str, arguments: Value, refused: Option<&'static str>) -> Tried {
    Tried { tool, arguments, refused }
}

/// A call of `run_command` that must run.
fn runs(command: &str) -> Tried {
    tried("run_command", json!({"command": command}), None)
}

fn not(command: &str) -> Tried {
    tried("run_command", json!({"command": command}), ARGUMENTS)
}

fn path(tool: &'static str, path: &str, refused: Option<&'static str>) -> Tried {
    tried(tool, json!({"path": path}), refused)
}

fn url(url: &str, refused: Option<&'static str>) -> Tried {
    tried("web_fetch", json!({"url": url}), refused)
}

fn case(name: &'static str, lines: &'static str, tried: Vec<Tried>) -> Case {
    Case { name, lines, tried }
}

/// A list, in some spelling, that allows only commands.
fn names_commands(name: &'static str, lines: &'static str) -> Case {
    case(name, lines, vec![runs("ls"), path("read_file", "a", TOOL), path("write_file", "a", TOOL)])
}

/// A list that names no existing tool.
fn names_nothing(name: &'static str, lines: &'static str) -> Case {
    let command = tried("run_command", json!({"command": "ls"}), TOOL);
    case(name, lines, vec![command, path("read_file", "a", TOOL)])
}

const DOCS: &str = "allowed-tools: Read(docs/**)";
const HOST: &str = "allowed-tools: WebFetch(domain:example.com)";
const ADD: &str = "allowed-tools: Bash(git add:*)";

/// The calls of these commands under a list that allows only `git add`.
fn add(name: &'static str, commands: &[&str]) -> Case {
    let good = runs("git add a.txt");
    case(name, ADD, std::iter::once(good).chain(commands.iter().map(|one| not(one))).collect())
}

pub(super) fn all() -> Vec<Case> {
    [names(), lookalikes(), commands(), parentheses(), arguments(), paths(), hosts()]
        .into_iter()
        .flatten()
        .collect()
}

fn names() -> Vec<Case> {
    vec![
        names_commands("alias Bash", "allowed-tools: Bash"),
        names_commands("alias bash", "allowed-tools: bash"),
        names_commands("alias BASH", "allowed-tools: BASH"),
        names_commands("alias Shell", "allowed-tools: Shell"),
        names_commands("alias Terminal", "allowed-tools: Terminal"),
        names_commands("own name", "allowed-tools: run_command"),
        names_commands("own name with a hyphen", "allowed-tools: run-command"),
        case(
            "alias str_replace",
            "allowed-tools: str_replace",
            vec![path("edit_file", "a", None), path("write_file", "a", TOOL)],
        ),
        case(
            "alias Create is not Edit",
            "allowed-tools: Create",
            vec![path("write_file", "a", None), path("edit_file", "a", TOOL)],
        ),
        case(
            "alias LS is not View",
            "allowed-tools: LS",
            vec![path("list_dir", ".", None), path("read_file", "a", TOOL)],
        ),
        case(
            "searching is not fetching",
            "allowed-tools: WebSearch",
            vec![tried("web_search", json!({"query": "x"}), None), url("https://a.org", TOOL)],
        ),
        case(
            "a name that a model makes up is not an alias",
            "allowed-tools: Bash",
            ["Bash", "bash", "Shell", "Terminal", "RUN_COMMAND", "Run_Command"]
                .map(|name| tried(name, json!({"command": "ls"}), UNKNOWN))
                .into(),
        ),
        names_nothing("machinery alone", "allowed-tools: use_skill read_skill_file"),
        names_nothing("unknown names alone", "allowed-tools: Frobnicate Teleport"),
        names_nothing("a star", "allowed-tools: \"*\""),
        names_nothing("a prefix", "allowed-tools: run_ rea"),
        names_nothing("a negation", "allowed-tools: \"!Write\""),
    ]
}

/// Names that look like those of tools, in lists and in calls.
fn lookalikes() -> Vec<Case> {
    let called = |name: &'static str, tool: &'static str| {
        case(name, "allowed-tools: Bash", vec![tried(tool, json!({"command": "ls"}), UNKNOWN)])
    };
    vec![
        called("called in full width", "\u{ff52}un_command"),
        called("called with a Cyrillic letter", "run_\u{0441}ommand"),
        called("called with a zero-width joiner", "run_\u{200d}command"),
        called("called with a soft hyphen", "run\u{ad}_command"),
        called("called with a blank behind", "run_command "),
        called("called with a blank before", " run_command"),
        called("called with a NUL behind", "run_command\0"),
        called("called with a line behind", "run_command\n"),
        called("called with a combining mark", "run_command\u{301}"),
        called("called with a slash", "host/run_command"),
        called("called with a namespace", "functions.run_command"),
        names_nothing("listed in full width", "allowed-tools: \u{ff22}ash"),
        names_nothing("listed with a Cyrillic letter", "allowed-tools: B\u{0430}sh"),
        names_nothing("listed with a zero-width joiner", "allowed-tools: \"Ba\\u200Dsh\""),
        names_nothing("listed with a dotless i", "allowed-tools: wr\u{131}te"),
        names_nothing("listed with the Kelvin sign", "allowed-tools: \"\u{212a}ash\""),
        names_nothing("listed with a combining mark", "allowed-tools: Bash\u{301}"),
    ]
}

fn commands() -> Vec<Case> {
    vec![
        add(
            "a second command behind a semicolon",
            &["git add a; rm -rf /", "git add a;rm x", ";git add a"],
        ),
        add(
            "a second command behind ands",
            &["git add a && id", "git add a&&id", "git add a & id"],
        ),
        add("a second command behind ors", &["git add a || id", "git add a | sh"]),
        add(
            "a command in a command",
            &["git add $(id)", "git add `id`", "git add \"$(id)\"", "git add \"`id`\""],
        ),
        add("a second line", &["git add a\nid", "git add a\r\nid", "git add a\rid", "\ngit push"]),
        add(
            "quotes around the command",
            &["'git add' a", "\"git add\" a", "git 'add' a; id", "git \"add", "git add 'a"],
        ),
        add(
            "variables before the command",
            &["GIT_DIR=/x git add a", "env git add a", "A=b;git add a"],
        ),
        add("variables in the command", &["git add $HOME", "git add ${IFS}a", "$0 git add a"]),
        add(
            "words that begin alike",
            &["git addx", "git add-all", "git", "gitadd a", "git  commit"],
        ),
        add(
            "options between the words",
            &["git -c core.pager=id add a", "git --exec-path=/x add a"],
        ),
        add("another program of the same name", &["/tmp/git add a", "./git add a", "../git add a"]),
        add(
            "redirects",
            &["git add a > /etc/passwd", "git add < a", "git add a 2>&1", "git add a >> b"],
        ),
        add(
            "groups of commands",
            &["(git add a)", "{ git add a; }", "git add <(id)", "! git add a"],
        ),
        add(
            "what a shell expands",
            &["git add *", "git add ~root", "git add {a,b}", "git add a?", "git add [a]"],
        ),
        add(
            "characters that nobody sees",
            &["git add\u{a0}a", "git\u{2003}add a", "git add a\0", "git add \u{1b}[0m"],
        ),
        add("an escaped line end", &["git add a\\\nid", "git add \\; id", "git\\ add a"]),
        add("letters that look alike", &["g\u{456}t add a", "GIT add a", "git ADD a"]),
        add("a comment", &["git add a # && id", "#git add a", "git add a #"]),
        add("nothing at all", &["", " ", "\t"]),
        case(
            "a whole command",
            "allowed-tools: Bash(npm test)",
            vec![
                runs("npm test"),
                not("npm test --x"),
                not("npm testx"),
                not("npm"),
                not("npm test;id"),
            ],
        ),
        case(
            "two lists for one tool",
            "allowed-tools: Bash(git log:*) Bash(git diff:*)",
            vec![runs("git log -1"), runs("git diff a"), not("git push"), not("git log; git diff")],
        ),
        case(
            "a list in one pair of parentheses",
            "allowed-tools: Bash(git log:*, git diff:*)",
            vec![runs("git log -1"), runs("git diff a"), not("git push")],
        ),
        case(
            "the wider of two counts",
            "allowed-tools: Bash(git add:*) Bash",
            vec![runs("id && ls | cat")],
        ),
    ]
}

fn parentheses() -> Vec<Case> {
    let closed = |name, lines| case(name, lines, vec![not("ls"), not("git add a")]);
    vec![
        case(
            "an unclosed parenthesis",
            "allowed-tools: \"Bash(git add:*\"",
            // The list has an unclosed parenthesis, so it grants nothing.
            vec![not("git add a"), not("ls"), not("git add a; id"), not("git")],
        ),
        case(
            "an unclosed parenthesis before other tools",
            "allowed-tools: Bash(git add:*, Read Write",
            vec![not("git add a"), path("read_file", "a", TOOL), path("write_file", "a", TOOL)],
        ),
        case(
            "an unclosed parenthesis that another one seems to close",
            "allowed-tools: Bash(ls, Read(docs)",
            vec![not("ls"), path("read_file", "docs", TOOL)],
        ),
        case(
            "an unclosed parenthesis among items",
            "allowed-tools: [\"Bash(git add:*\", Read, \"Write(a)\"]",
            vec![
                not("git add a"),
                path("read_file", "a", None),
                path("write_file", "a", None),
                path("write_file", "b", ARGUMENTS),
            ],
        ),
        case(
            "an unclosed parenthesis and the same tool",
            "allowed-tools: Bash(ls) Bash(git add:*",
            vec![runs("ls"), not("git add a")],
        ),
        case(
            "text behind a parenthesis",
            "allowed-tools: Bash(ls)x Read",
            vec![not("ls"), path("read_file", "a", None)],
        ),
        case(
            "an unclosed parenthesis rules out what it names",
            "disallowed-tools: Bash(rm:*, Write\nuser-invocable: true",
            vec![
                tried("run_command", json!({"command": "ls"}), TOOL),
                path("write_file", "a", TOOL),
                path("read_file", "a", None),
            ],
        ),
        case(
            "an unclosed parenthesis among items that are ruled out",
            "disallowed-tools:\n  - Read(a\n  - Write(b)\nuser-invocable: true",
            vec![
                path("read_file", "c", TOOL),
                path("write_file", "a", None),
                path("write_file", "b", ARGUMENTS),
                runs("ls"),
            ],
        ),
        closed("an unclosed parenthesis alone", "allowed-tools: \"Bash(\""),
        closed("nested parentheses", "allowed-tools: Bash((git add:*))"),
        closed("a star in the middle", "allowed-tools: Bash(git *:*)"),
        closed("a star alone as a word", "allowed-tools: Bash(* add:*)"),
        closed("a pattern with a shell in it", "allowed-tools: Bash($(id):*)"),
        closed("a quote in the pattern", "allowed-tools: \"Bash('git add:*)\""),
        closed("commas alone", "allowed-tools: Bash(,)"),
        names_commands("nothing in parentheses", "allowed-tools: Bash()"),
        names_commands("a star in parentheses", "allowed-tools: Bash(*)"),
        case(
            "parentheses before the name",
            "allowed-tools: (Bash) Read",
            vec![
                path("read_file", "a", None),
                tried("run_command", json!({"command": "ls"}), TOOL),
            ],
        ),
    ]
}

fn arguments() -> Vec<Case> {
    let given = |arguments: Value| tried("run_command", arguments, ARGUMENTS);
    vec![
        case(
            "arguments of another kind",
            ADD,
            vec![
                given(json!({})),
                given(json!({"command": ["git", "add", "a"]})),
                given(json!({"command": {"git": "add"}})),
                given(json!({"command": null})),
                given(json!({"Command": "git add a"})),
                given(json!({"cmd": "git add a"})),
                given(json!({"command ": "git add a"})),
            ],
        ),
        case(
            "a condition that nobody knows",
            "allowed-tools: WebSearch(cats)",
            vec![tried("web_search", json!({"query": "cats"}), ARGUMENTS)],
        ),
    ]
}

fn paths() -> Vec<Case> {
    let read = |one: &str| path("read_file", one, ARGUMENTS);
    let good = |one: &str| path("read_file", one, None);
    vec![
        case("a folder", DOCS, vec![good("docs/a"), good("docs/b/c"), read("a"), read("docsx/a")]),
        case(
            "dots that lead out",
            DOCS,
            vec![read("docs/../a"), read("docs/.."), read("../docs/a")],
        ),
        case("absolute paths", DOCS, vec![read("/docs/a"), read("//docs/a"), read("file:docs/a")]),
        case("backslashes", DOCS, vec![read("docs\\..\\a"), read("docs\\a")]),
        case("a NUL in the path", DOCS, vec![read("docs/a\0/../../x"), read("docs/a\0")]),
        case("letters in full width", DOCS, vec![read("\u{ff44}ocs/a"), read("DOCS/a")]),
        case(
            "reading is not writing",
            DOCS,
            vec![path("write_file", "docs/a", TOOL), path("edit_file", "docs/a", TOOL)],
        ),
        case(
            "a pattern that is not understood",
            "allowed-tools: Read([ab]/**) Write({a,b}/**)",
            vec![read("a/x"), path("write_file", "a/x", ARGUMENTS)],
        ),
    ]
}

fn hosts() -> Vec<Case> {
    vec![
        case(
            "a host",
            HOST,
            vec![url("https://example.com/a", None), url("https://evil.org", ARGUMENTS)],
        ),
        case(
            "hosts that begin or end alike",
            HOST,
            vec![
                url("https://example.com.evil.org", ARGUMENTS),
                url("https://notexample.com", ARGUMENTS),
                url("https://a.example.com", ARGUMENTS),
            ],
        ),
        case(
            "a host in another part of the address",
            HOST,
            vec![
                url("https://example.com@evil.org", ARGUMENTS),
                url("https://evil.org/example.com", ARGUMENTS),
                url("https://evil.org?example.com", ARGUMENTS),
                url("https://evil.org#example.com", ARGUMENTS),
                url("https://evil.org\\example.com", ARGUMENTS),
            ],
        ),
        case(
            "other ways to write a host",
            HOST,
            vec![
                url("https://ex\u{e4}mple.com", ARGUMENTS),
                url("https://example%2ecom", ARGUMENTS),
                url("ftp://example.com", ARGUMENTS),
                url("https:example.com", ARGUMENTS),
            ],
        ),
        case(
            "no host at all",
            "allowed-tools: WebFetch(example.com)",
            vec![url("https://example.com", ARGUMENTS)],
        ),
    ]
}
