//! Finds YAML that some readers reject or understand differently.

use std::fmt::Write as _;

use savoir_lint::{Diagnostic, Edit, Fix, Span};

use crate::{
    check::{Context, Target, rule::rule},
    dialect::Strictness,
    document::State,
    yaml::{Entry, Node, NodeData, Style, YamlVersion, resolve::resolve_plain},
};

rule! {
    /// `metadata` is written in braces.
    ///
    /// ## Why
    ///
    /// The reference validator of the base format reads only block style and rejects the file, so
    /// `--target agentskills` reports it. Some versions of OpenClaw read only JSON on one line: do
    /// not apply the fix to a skill that is used there.
    ///
    /// ## Bad
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// metadata: {"author": "ada", "version": "1.0"}
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
    /// metadata:
    ///   "author": "ada"
    ///   "version": "1.0"
    /// ---
    /// # Demo
    /// ````
    FLOW_METADATA = "flow-metadata", Warning, fix Unsafe, run flow_metadata
}

fn flow_metadata(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    let wanted = context.options.is_for(Target::AgentSkills, FLOW_METADATA.code);
    if !wanted || document.state() == State::Unreadable {
        return;
    }
    let Some(entry) = document.fields().and_then(|fields| fields.entry("metadata")) else { return };
    if !entry.value.is_flow() || entry.value.entries().is_none() {
        return;
    }
    let text = document.text();
    let mut problem = Diagnostic::warning(
        FLOW_METADATA.code,
        entry.key_span,
        "`metadata` is in braces, which strict readers reject",
    )
    .field("metadata")
    .help("write one `key: value` line for each entry, indented by two spaces");
    let edit = block_style(entry, text).filter(|_| document.state() == State::Clean);
    if let Some(edit) = edit {
        problem = problem.fix(Fix::unsafe_edits(vec![edit]));
    }
    found.push(problem);
}

/// The map in block style, with keys and values as they are written.
fn block_style(entry: &Entry, text: &str) -> Option<Edit> {
    let key_end = entry.key_span.end;
    let colon = key_end + text.get(key_end..)?.find(':')?;
    let span = Span::new(colon + 1, entry.value.span.end);
    let source = span.slice(text);
    // A comment has no place in the new lines, an anchor may be used elsewhere.
    if source.contains(" #") || source.contains("\n#") || source.contains(['&', '*', '!']) {
        return None;
    }
    let mut lines = String::new();
    block_lines(&entry.value, text, 2, &mut lines)?;
    Some(Edit::replace(span, lines))
}

fn block_lines(map: &Node, text: &str, indent: usize, lines: &mut String) -> Option<()> {
    let entries = map.entries().filter(|entries| !entries.is_empty())?;
    for entry in entries {
        let key = entry.key_span.slice(text);
        if key.is_empty() || key.contains('\n') {
            return None;
        }
        let value = entry.value.span.slice(text);
        // Writing to a string cannot fail.
        let _ = write!(lines, "\n{:indent$}{key}:", "");
        match &entry.value.data {
            NodeData::Scalar { .. } if value.contains('\n') => return None,
            NodeData::Scalar { .. } if value.is_empty() => {}
            NodeData::Scalar { .. } => {
                lines.push(' ');
                lines.push_str(value);
            }
            NodeData::Mapping { .. } => block_lines(&entry.value, text, indent + 2, lines)?,
            NodeData::Sequence { items, .. } => {
                if items.is_empty() {
                    return None;
                }
                for item in items {
                    let value = item.span.slice(text);
                    if item.text().is_none() || value.is_empty() || value.contains('\n') {
                        return None;
                    }
                    let _ = write!(lines, "\n{:indent$}  - {value}", "");
                }
            }
        }
    }
    Some(())
}

rule! {
    /// A value has different meanings in YAML 1.1 and YAML 1.2.
    ///
    /// ## Why
    ///
    /// `yes` is a word in YAML 1.2 and `true` in YAML 1.1, which Python reads; `012` is twelve in
    /// one and ten in the other. The skill behaves differently on different hosts.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// metadata:
    ///   audited: yes
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
    /// metadata:
    ///   audited: "yes"
    /// ---
    /// # Demo
    /// ````
    YAML_VERSION_DIFFERENCE = "yaml-version-difference", Warning, fix Unsafe, run yaml_version_difference
}

fn yaml_version_difference(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let document = &context.reading.document;
    if document.state() == State::Unreadable {
        return;
    }
    if let Some(fields) = document.fields() {
        visit(context, fields, found);
    }
}

fn visit(context: &Context<'_>, node: &Node, found: &mut Vec<Diagnostic>) {
    match &node.data {
        NodeData::Scalar { text, style: Style::Plain }
            if node.tag.is_none() && may_differ(text) =>
        {
            difference(context, node, text, found);
        }
        NodeData::Scalar { .. } => {}
        NodeData::Sequence { items, .. } => {
            for item in items {
                visit(context, item, found);
            }
        }
        NodeData::Mapping { entries, .. } => {
            for entry in entries {
                visit(context, &entry.value, found);
            }
        }
    }
}

/// A cheap look before the two readings: truth values are short words, numbers begin as such.
fn may_differ(text: &str) -> bool {
    match text.as_bytes() {
        [b'y' | b'Y' | b'n' | b'N' | b'o' | b'O', rest @ ..] => (1..=2).contains(&rest.len()),
        [b'0'..=b'9' | b'+' | b'-' | b'.', rest @ ..] => rest.len() < 32,
        _ => false,
    }
}

fn difference(context: &Context<'_>, node: &Node, text: &str, found: &mut Vec<Diagnostic>) {
    let old = resolve_plain(text, YamlVersion::V1_1);
    let new = resolve_plain(text, YamlVersion::V1_2);
    if old == new {
        return;
    }
    let here = if context.dialect().yaml() == YamlVersion::V1_1 { &old } else { &new };
    let is_text = here.is_string() || context.conventions().strictness == Strictness::TextOnly;
    let mut problem = Diagnostic::warning(
        YAML_VERSION_DIFFERENCE.code,
        node.span,
        format!("`{text}` is {old} in YAML 1.1 and {new} in YAML 1.2"),
    );
    // Where another type is wanted, quotes would only hide the mistake.
    let wrong = context.reading.diagnostics.iter().any(|other| other.span == node.span);
    if wrong {
        problem = problem.help("write the value so that every reader understands it alike");
    } else if is_text {
        problem = problem
            .help(format!("put it in quotes: \"{text}\""))
            .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, format!("\"{text}\""))]));
    } else if let Some(truth) = here.as_bool() {
        problem = problem
            .help(format!("write `{truth}`"))
            .fix(Fix::unsafe_edits(vec![Edit::replace(node.span, truth.to_string())]));
    } else {
        problem = problem.help(format!("write `{here}`, or put it in quotes if it is text"));
    }
    found.push(problem);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::rules::testing::{find, find_as, fixed},
        dialect::Dialect,
    };

    fn text(metadata: &str) -> String {
        format!("---\nname: x\ndescription: d\nmetadata:{metadata}\nlicense: MIT\n---\n# x\n")
    }

    #[test]
    fn braces_become_lines() {
        for (flow, block) in [
            (" {a: b, c: 1.10}", "\n  a: b\n  c: 1.10"),
            (" {\"a\": \"b c\", 'd': 'e'}", "\n  \"a\": \"b c\"\n  'd': 'e'"),
            (" {a: {b: c}, d: [e, f]}", "\n  a:\n    b: c\n  d:\n    - e\n    - f"),
            ("\n  {a: b}", "\n  a: b"),
        ] {
            assert_eq!(fixed(FLOW_METADATA.code, &text(flow)), Some(text(block)), "{flow}");
        }
        for flow in [" {}", " {a: {}}", " {a: [{b: c}]}", " {a: b, # why\n  c: d}"] {
            assert_eq!(fixed(FLOW_METADATA.code, &text(flow)), None, "{flow}");
        }
        assert!(find(FLOW_METADATA.code, &text("\n  a: b")).is_empty());
    }

    #[test]
    fn ambiguous_values_are_quoted_or_spelled_out() {
        let code = YAML_VERSION_DIFFERENCE.code;
        assert_eq!(fixed(code, &text("\n  a: yes")), Some(text("\n  a: \"yes\"")));
        assert_eq!(fixed(code, &text("\n  a: 012")), Some(text("\n  a: \"012\"")));
        for same in ["1.0", "true", "5", "yesterday", "'no'", "2024-01-01", "on time", "1.2.3", "~"]
        {
            assert!(find(code, &text(&format!("\n  a: {same}"))).is_empty(), "{same}");
        }
        let flow = "---\nname: x\nmodel: {temperature: 1}\ninputs:\n  - name: a\n    required: yes\n---\n{{a}}\n";
        let found = find_as(code, flow, Dialect::AGENT_FLOW);
        assert_eq!(found[0].fix.as_ref().map(|fix| fix.edits[0].text.as_str()), Some("true"));
        let claude = "---\nname: x\ndescription: d\nuser-invocable: yes\n---\n# x\n";
        assert!(find_as(code, claude, Dialect::CLAUDE_CODE)[0].fix.is_none());
    }
}
