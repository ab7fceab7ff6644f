//! Checks the spelling of `allowed-tools` and finds entries that cannot be parsed.

use savoir_lint::{Diagnostic, Edit, Fix, Span, words::nearest};

use crate::{
    allowed_tools::{ToolGrant, is_balanced, split},
    check::{Context, Target, rule::rule},
    document::State,
    yaml::{Entry, Node, Style, YamlVersion, write::write_scalar},
};

rule! {
    /// `allowed-tools` is a list.
    ///
    /// ## Why
    ///
    /// The base format uses one string with spaces between the tools, and its reference validator
    /// rejects a list. Claude Code also reads a list, so only `--target agentskills` reports it.
    ///
    /// ## Bad
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools:
    ///   - Read
    ///   - Bash(git log:*)
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools: Read Bash(git log:*)
    /// ---
    /// # Demo
    /// ````
    ALLOWED_TOOLS_LIST = "allowed-tools-list", Warning, fix Unsafe, run list_or_commas
}

rule! {
    /// The tools in `allowed-tools` are separated by commas.
    ///
    /// ## Why
    ///
    /// The base format separates tools by spaces. A host that follows it strictly looks for a tool
    /// called `Read,` and does not find it. Claude Code and most other hosts also accept commas,
    /// so only `--target agentskills` reports them.
    ///
    /// ## Bad
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools: Read, Grep, Bash(git log:*)
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools: Read Grep Bash(git log:*)
    /// ---
    /// # Demo
    /// ````
    ALLOWED_TOOLS_COMMAS = "allowed-tools-commas", Warning, fix Unsafe
}

rule! {
    /// The parenthesis of a tool in `allowed-tools` or `disallowed-tools` is not closed.
    ///
    /// ## Why
    ///
    /// It is unclear where it should end: other tools on the same line may belong to it. Savoir
    /// allows nothing for such an entry, and denies every tool that it names; other hosts may do
    /// the opposite.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools: Read Bash(git log:*
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools: Read Bash(git log:*)
    /// ---
    /// # Demo
    /// ````
    UNCLOSED_PARENTHESIS = "unclosed-parenthesis", Warning, run unclosed_parenthesis
}

rule! {
    /// `allowed-tools` names no tool that any agent is known to have.
    ///
    /// ## Why
    ///
    /// Savoir enforces the list, so no tool can be called while the skill is followed. Other agents
    /// ignore such a list, and allow every tool.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools: Reed Bahs
    /// ---
    /// # Demo
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// allowed-tools: Read Bash
    /// ---
    /// # Demo
    /// ````
    UNKNOWN_ALLOWED_TOOLS = "unknown-allowed-tools", Warning, run unknown_allowed_tools
}

fn unknown_allowed_tools(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let fields = context.reading.document.fields();
    let entry = ["allowed-tools", "allowed_tools"]
        .into_iter()
        .find_map(|key| Some((key, fields.and_then(|fields| fields.entry(key))?)));
    let Some((key, entry)) = entry else { return };
    let nodes = entry.value.items().unwrap_or(std::slice::from_ref(&entry.value));
    let grants: Vec<ToolGrant> = nodes.iter().filter_map(Node::text).flat_map(split).collect();
    let own =
        |grant: &ToolGrant| context.reading.skill.tools.iter().any(|tool| tool.name == grant.name);
    if grants.is_empty() || grants.iter().any(|grant| grant.may_exist() || own(grant)) {
        return;
    }
    let first = &grants[0].name;
    let help = match nearest(first, TOOL_NAMES) {
        Some(near) => format!("did you mean `{near}`? until then, the skill can call no tools"),
        None => "name tools such as Read, Edit or Bash, or remove the field".to_owned(),
    };
    let message = format!("`{key}` names no known tool, so Savoir allows none");
    let problem = Diagnostic::warning(UNKNOWN_ALLOWED_TOOLS.code, entry.value.span, message);
    found.push(problem.field(key).help(help));
}

/// The usual names of tools, for suggestions.
const TOOL_NAMES: [&str; 8] =
    ["Bash", "Read", "Write", "Edit", "Glob", "Grep", "WebFetch", "WebSearch"];

fn unclosed_parenthesis(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let fields = context.reading.document.fields();
    for key in ["allowed-tools", "allowed_tools", "disallowed-tools"] {
        let Some(entry) = fields.and_then(|fields| fields.entry(key)) else { continue };
        let nodes = entry.value.items().unwrap_or(std::slice::from_ref(&entry.value));
        for (node, text) in nodes.iter().filter_map(|node| Some((node, node.text()?))) {
            for grant in split(text).iter().filter(|grant| grant.is_broken) {
                let written = grant.to_string();
                let problem = Diagnostic::warning(
                    UNCLOSED_PARENTHESIS.code,
                    span_of_words(&written, node.span, context.text()),
                    format!("the parentheses of `{written}` do not belong to one tool"),
                );
                let help = match key {
                    "disallowed-tools" => "until then, every tool that it names is ruled out",
                    _ => "until then, it allows nothing",
                };
                let help = format!("write `{}`; {help}", grant.suggest_closed());
                found.push(problem.field(key).help(help));
            }
        }
    }
}

/// Returns the span of words in a value, or of the whole value if they are not found.
fn span_of_words(words: &str, value: Span, text: &str) -> Span {
    let Some(at) = value.slice(text).find(words) else { return value };
    Span::new(value.start + at, value.start + at + words.len())
}

/// Runs `allowed-tools-list` and `allowed-tools-commas`, which read the same field.
fn list_or_commas(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    let enabled = [ALLOWED_TOOLS_LIST.code, ALLOWED_TOOLS_COMMAS.code]
        .map(|code| context.options.is_for(Target::AgentSkills, code));
    if !enabled.contains(&true) || document.state() == State::Unreadable {
        return;
    }
    let Some(entry) = document.fields().and_then(|fields| fields.entry("allowed-tools")) else {
        return;
    };
    let repaired = document.state() == State::Repaired;
    let version = context.dialect().yaml();
    if let Some(items) = entry.value.items() {
        let mut problem = Diagnostic::warning(
            ALLOWED_TOOLS_LIST.code,
            entry.key_span,
            "`allowed-tools` is a list, the base format has one string",
        )
        .field("allowed-tools")
        .help("write the tools on one line, separated by spaces");
        let edit = list_to_string(items, version).and_then(|string| {
            Some(Edit::replace(value_span_after_colon(entry, context.text())?, string))
        });
        if let Some(edit) = edit.filter(|_| !repaired) {
            problem = problem.fix(Fix::unsafe_edits(vec![edit]));
        }
        found.push(problem);
    } else if let Some(text) = entry.value.text()
        && has_separating_comma(text)
    {
        let mut problem = Diagnostic::warning(
            ALLOWED_TOOLS_COMMAS.code,
            entry.value.span,
            "the tools are separated by commas, the base format uses spaces",
        )
        .field("allowed-tools")
        .help("remove the commas");
        let one_line = matches!(
            entry.value.style(),
            Some(Style::Plain | Style::SingleQuoted | Style::DoubleQuoted)
        );
        if let Some(without_commas) = replace_commas(text).filter(|_| one_line && !repaired) {
            let written = write_scalar(&without_commas, version);
            problem =
                problem.fix(Fix::unsafe_edits(vec![Edit::replace(entry.value.span, written)]));
        }
        found.push(problem);
    }
}

/// Joins the items into one string that starts with a space; `None` if a tool would be split.
fn list_to_string(items: &[Node], version: YamlVersion) -> Option<String> {
    let mut tools = Vec::with_capacity(items.len());
    for item in items {
        let tool = item.text()?.trim();
        let whole = split(tool);
        let one = matches!(whole.as_slice(), [grant] if grant.range == (0..tool.len()));
        if item.tag.is_some() || !one || !is_balanced(tool) {
            return None;
        }
        tools.push(tool);
    }
    (!tools.is_empty()).then(|| format!(" {}", write_scalar(&tools.join(" "), version)))
}

/// Returns the span from the colon to the end of the value; `None` if it contains a comment.
fn value_span_after_colon(entry: &Entry, text: &str) -> Option<Span> {
    let key_end = entry.key_span.end;
    let colon = key_end + text.get(key_end..)?.find(':')?;
    let last = entry.value.items()?.last()?.span.end;
    let end = if entry.value.is_flow() { entry.value.span.end } else { last };
    let span = Span::new(colon + 1, end.max(colon + 1));
    // A comment would be lost.
    let between = span.slice(text);
    (!between.contains(" #") && !between.contains("\n#")).then_some(span)
}

fn has_separating_comma(text: &str) -> bool {
    if !text.contains(',') {
        return false;
    }
    let mut depth = 0usize;
    text.chars().any(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    })
}

fn replace_commas(text: &str) -> Option<String> {
    let grants = split(text);
    let words: Vec<&str> =
        grants.iter().filter_map(|grant| text.get(grant.range.clone())).collect();
    (!words.is_empty() && is_balanced(text)).then(|| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::{
            self, Options,
            rules::testing::{find, find_as, fixed, places},
        },
        dialect::Dialect,
    };
    use savoir_lint::Source;

    fn text(tools: &str) -> String {
        format!("---\nname: x\ndescription: d\nallowed-tools:{tools}\nlicense: MIT\n---\n# x\n")
    }

    #[test]
    fn lists_become_a_string() {
        for (list, string) in [
            ("\n  - Read\n  - Bash(git add:*)", " Read Bash(git add:*)"),
            ("\n- Read\n- 'Grep'", " Read Grep"),
            (" [Read, \"Bash(a, b)\"]", " Read Bash(a, b)"),
            (" [Read,\n  Grep]", " Read Grep"),
        ] {
            let expected = text(string);
            assert_eq!(fixed(ALLOWED_TOOLS_LIST.code, &text(list)), Some(expected), "{list}");
        }
        for list in
            [" []", "\n  - Web Search", "\n  - Read # why\n  - Grep", "\n  - Bash(", "\n  - {a: b}"]
        {
            assert_eq!(fixed(ALLOWED_TOOLS_LIST.code, &text(list)), None, "{list}");
        }
        let checked = check::check(Source::new(text(" [Read]")), None, &Options::default());
        assert!(checked.diagnostics.is_empty(), "most hosts read a list");
    }

    #[test]
    fn unclosed_parenthesis_is_reported_at_its_position() {
        let code = UNCLOSED_PARENTHESIS.code;
        for (tools, found) in [
            (" Read Bash(rm", vec!["Bash(rm"]),
            (" 'Bash(rm, Read'", vec!["Bash(rm, Read"]),
            ("\n  - Bash(rm\n  - Read\n  - \"Read(a\"", vec!["Bash(rm", "Read(a"]),
            (" Bash(rm) Read(a (b)/**)", vec![]),
        ] {
            assert_eq!(places(code, &text(tools)), found, "{tools}");
        }
        let denied = text(" Read").replace("license: MIT", "disallowed-tools: Write, Bash(rm");
        let problem = &find_as(code, &denied, Dialect::CLAUDE_CODE)[0];
        assert_eq!(problem.span.slice(&denied), "Bash(rm");
        let help = problem.help.as_deref().unwrap();
        assert!(help.contains("write `Bash(rm)`") && help.contains("ruled out"), "{help}");
    }

    #[test]
    fn list_without_known_tool_is_reported() {
        let code = UNKNOWN_ALLOWED_TOOLS.code;
        for tools in [" Reed Bahs", " Custom", " '*'", "\n  - Custom\n  - Other"] {
            let problems = find(code, &text(tools));
            assert_eq!(problems.len(), 1, "{tools}");
            assert!(problems[0].message.contains("allows none"), "{}", problems[0].message);
        }
        assert!(find(code, &text(" Reed"))[0].help.as_deref().unwrap().contains("`Read`"));
        for tools in [
            " Read Custom", " Grep", " mcp__git__log", " \"Bash(git log:*)\"", " other/tool",
            " save_skill", " Bash(rm", "", " []",
        ] {
            assert!(find(code, &text(tools)).is_empty(), "{tools}");
        }
    }

    #[test]
    fn commas_become_blanks() {
        for (commas, blanks) in [
            (" Read, Grep", " Read Grep"),
            (" \"Read,Grep,  Bash(git a, b:*)\"", " Read Grep Bash(git a, b:*)"),
            (" 'Bash(x: y), Read'", " 'Bash(x: y) Read'"),
        ] {
            let expected = text(blanks);
            assert_eq!(fixed(ALLOWED_TOOLS_COMMAS.code, &text(commas)), Some(expected), "{commas}");
        }
        assert!(find(ALLOWED_TOOLS_COMMAS.code, &text(" Read Bash(a, b)")).is_empty());
        assert_eq!(fixed(ALLOWED_TOOLS_COMMAS.code, &text(" >\n  Read, Grep")), None);
    }
}
