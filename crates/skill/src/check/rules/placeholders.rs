//! Compares placeholders in the body with the declared inputs.

use savoir_lint::{Diagnostic, Span, words::nearest};

use crate::{
    check::{Context, rule::rule},
    dialect::Strength,
    document::Document,
    render::{Placeholders, input_variable},
    skill::{Mode, Skill},
    template::{self, Grammar, Placeholder, claude},
    yaml::Node,
};

rule! {
    /// The body has a placeholder that is not a declared input.
    ///
    /// ## Why
    ///
    /// Agent Flow Lite does not store such a skill, and replaces an undeclared placeholder by
    /// nothing. skillrt leaves the placeholder unchanged, so the model sees the braces.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agent-flow
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// inputs:
    ///   - name: text
    ///     type: textarea
    /// ---
    /// Translate {{text}} into {{language}}.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=agent-flow
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// inputs:
    ///   - name: text
    ///     type: textarea
    ///   - name: language
    /// ---
    /// Translate {{text}} into {{language}}.
    /// ````
    UNDECLARED_PLACEHOLDER = "undeclared-placeholder", Error, run undeclared_placeholder
}

/// Returns the undeclared placeholders of an Agent Flow Lite skill, sorted and unique.
///
/// ```
/// use savoir_skill::{Dialect, Source, check::undeclared_placeholders, read_as};
///
/// let text = "---\nname: a\n---\n{{b}} {{a}} {{b}}\n";
/// let reading = read_as(Source::from_bytes(text.into())?, Dialect::AGENT_FLOW, None);
/// assert_eq!(undeclared_placeholders(&reading.skill), ["a", "b"]);
/// # Ok::<(), savoir_skill::SourceError>(())
/// ```
pub fn undeclared_placeholders(skill: &Skill) -> Vec<String> {
    let found = template::scan(&skill.body, Grammar::AgentFlowCheck).into_iter();
    let mut names: Vec<String> =
        found.map(|found| found.name).filter(|name| !declares(skill, name)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn declares(skill: &Skill, name: &str) -> bool {
    skill.inputs.iter().any(|input| input.name == name)
}

fn undeclared_placeholder(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    match context.placeholders() {
        Placeholders::AgentFlow => report_refused(context, found),
        Placeholders::Skillrt if context.reading.skill.mode == Mode::Structured => {
            report_left_as_written(context, found);
        }
        Placeholders::Skillrt
        | Placeholders::Claude
        | Placeholders::BaseDir
        | Placeholders::None => {}
    }
}

/// Reports all of them in one finding, with the message of the API that rejects the skill.
fn report_refused(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let skill = &context.reading.skill;
    let names = undeclared_placeholders(skill);
    if names.is_empty() {
        return;
    }
    let message = format!(
        "Undeclared placeholders in prompt: {}. Add them to inputs or remove from prompt.",
        names.join(", ")
    );
    let document = &context.reading.document;
    let places = template::scan(document.body(), Grammar::AgentFlowCheck);
    let first = places.iter().find(|place| !declares(skill, &place.name));
    let near = match names.as_slice() {
        [name] => nearest(name, skill.inputs.iter().map(|input| input.name.as_str())),
        _ => None,
    };
    let help = match (near, names.join("`, `")) {
        (Some(near), names) => {
            format!("did you mean `{near}`? Or declare `{names}` under `inputs`")
        }
        (None, names) => format!("declare `{names}` under `inputs`"),
    };
    let span = first.map_or(document.head_span(), |place| in_body(document, place));
    found.push(
        Diagnostic::error(UNDECLARED_PLACEHOLDER.code, span, message).field("prompt").help(help),
    );
}

/// Reports nothing if the dialect is only a weak guess, because braces may then be plain text.
fn report_left_as_written(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let skill = &context.reading.skill;
    if context.reading.detection.strength == Strength::Weak && skill.inputs.is_empty() {
        return;
    }
    let document = &context.reading.document;
    let mut reported: Vec<String> = Vec::new();
    for place in template::scan(document.body(), Grammar::Skillrt) {
        if declares(skill, &place.name) || reported.contains(&place.name) {
            continue;
        }
        let span = in_body(document, &place);
        let near = nearest(&place.name, skill.inputs.iter().map(|input| input.name.as_str()));
        // Code has its own braces; only a likely typo is reported there.
        if near.is_none() && is_code(document, span) {
            continue;
        }
        let message = format!("`{}` is not an input, so it stays as written", place.name);
        let problem = Diagnostic::warning(UNDECLARED_PLACEHOLDER.code, span, message);
        found.push(match near {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem.help("declare it under `inputs`, or remove the braces"),
        });
        reported.push(place.name);
    }
}

fn in_body(document: &Document, place: &Placeholder) -> Span {
    Span::new(place.span.start, place.span.end).shifted(document.body_span().start)
}

/// Inside a code block, or beside a backtick.
fn is_code(document: &Document, span: Span) -> bool {
    let text = document.text();
    document.outline().is_literal(span.start)
        || text[..span.start].ends_with(['`', '$'])
        || text[span.end..].starts_with('`')
}

rule! {
    /// An input is declared and never used.
    ///
    /// ## Why
    ///
    /// The user is asked for a value that is not used. Often the placeholder in the body has
    /// another name.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agent-flow
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// inputs:
    ///   - name: text
    ///     type: textarea
    ///   - name: tone
    /// ---
    /// Rewrite {{text}} in a friendly tone.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=agent-flow
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// inputs:
    ///   - name: text
    ///     type: textarea
    ///   - name: tone
    /// ---
    /// Rewrite {{text}} in a {{tone}} tone.
    /// ````
    UNUSED_INPUT = "unused-input", Warning, run unused_input
}

fn unused_input(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let skill = &context.reading.skill;
    if skill.inputs.is_empty() {
        return;
    }
    let Some(used) = used_names(context) else { return };
    let unused: Vec<(usize, &str)> = skill
        .inputs
        .iter()
        .map(|input| input.name.as_str())
        .enumerate()
        .filter(|(_, name)| !used.iter().any(|used| used == name))
        .collect();
    let all = unused.len() == skill.inputs.len() && unused.len() > 1;
    if all {
        let message = format!("the body does not use any of the {} inputs", unused.len());
        let span = list(context).map_or(context.reading.document.head_span(), |(span, _)| span);
        found.push(Diagnostic::warning(UNUSED_INPUT.code, span, message).field("inputs").help(
            format!("put {} where the value belongs", placeholder_text(context, unused[0].1)),
        ));
        return;
    }
    for (index, name) in unused {
        let message = format!("the body never uses the input `{name}`");
        found.push(
            Diagnostic::warning(UNUSED_INPUT.code, span_of(context, index, name), message)
                .field(format!("inputs[{index}]"))
                .help(format!(
                    "put {} where its value belongs, or remove it",
                    placeholder_text(context, name)
                )),
        );
    }
}

/// The names that the body uses; `None` for dialects without inputs.
fn used_names(context: &Context<'_>) -> Option<Vec<String>> {
    let body = context.reading.document.body();
    let names =
        |grammar| template::scan(body, grammar).into_iter().map(|found| found.name).collect();
    match context.placeholders() {
        Placeholders::AgentFlow => Some(names(Grammar::AgentFlow)),
        Placeholders::Skillrt => {
            let mut used: Vec<String> = names(Grammar::Skillrt);
            let inputs = context.reading.skill.inputs.iter();
            let in_code = inputs.filter(|input| body.contains(&input_variable(&input.name)));
            used.extend(in_code.map(|input| input.name.clone()));
            Some(used)
        }
        Placeholders::Claude => Some(used_arguments(body, &context.reading.skill.policy.arguments)),
        Placeholders::BaseDir | Placeholders::None => None,
    }
}

/// `$ARGUMENTS` uses all of them, `$1` the second one.
fn used_arguments(body: &str, names: &[String]) -> Vec<String> {
    let mut used = Vec::new();
    for found in claude::scan(body, names) {
        match found.target {
            claude::Target::All => return names.to_vec(),
            claude::Target::Position(at) | claude::Target::Name(at) => {
                used.extend(names.get(at).cloned());
            }
            claude::Target::Variable(_) | claude::Target::Escaped => {}
        }
    }
    used
}

fn placeholder_text(context: &Context<'_>, name: &str) -> String {
    let placeholder = format!("`{}`", context.placeholders().write(name));
    // A placeholder in a code block is refused when the block runs.
    let has_code = || !context.reading.document.outline().fences.is_empty();
    if context.placeholders() == Placeholders::Skillrt && has_code() {
        return format!("{placeholder}, or `${}` in a code block,", input_variable(name));
    }
    placeholder
}

/// Returns the key of the list of inputs, and its value.
fn list<'a>(context: &Context<'a>) -> Option<(Span, &'a Node)> {
    let entry = context.reading.document.fields()?.entry(context.placeholders().field())?;
    Some((entry.key_span, &entry.value))
}

/// Returns the span of an input: its name, or the list.
pub(super) fn span_of(context: &Context<'_>, index: usize, name: &str) -> Span {
    let Some((key, list)) = list(context) else {
        return context.reading.document.head_span();
    };
    let earlier = context.reading.skill.inputs.iter().take(index);
    let items = list.items().unwrap_or_default().iter();
    items
        .filter_map(|item| item.get("name").or(Some(item)))
        .filter(|node| node.text() == Some(name))
        .nth(earlier.filter(|input| input.name == name).count())
        .map_or(key, |node| node.span)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        check::rules::testing::{find, find_as, places},
        dialect::Dialect,
    };

    fn flow(inputs: &str, body: &str) -> String {
        format!("---\nname: demo\nmodel: {{temperature: 1}}\ninputs: {inputs}\n---\n{body}")
    }

    #[test]
    fn agent_flow_lists_placeholders_once_and_sorted() {
        let text = flow("[{name: a}]", "{{c}} {{a}} {{b}} {{c}} {{größe}} {{d-e}} {{ f }}");
        let found = find(UNDECLARED_PLACEHOLDER.code, &text);
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].message,
            "Undeclared placeholders in prompt: b, c, größe. Add them to inputs or remove from prompt."
        );
        assert!(found[0].is_error());
        assert_eq!(found[0].span.slice(&text), "{{c}}");
        assert!(find(UNDECLARED_PLACEHOLDER.code, &flow("[{name: a}]", "{{a}}")).is_empty());
    }

    #[test]
    fn skillrt_reports_only_certain_placeholders() {
        let head = "---\nname: x\nversion: 1.0.0\ndescription: d\n";
        let weak = format!("{head}---\n{{{{ other }}}}\n");
        assert!(find(UNDECLARED_PLACEHOLDER.code, &weak).is_empty());
        let text = format!(
            "{head}inputs: [{{name: topic, type: string}}]\n---\n{{{{ topic }}}} {{{{ tpoic }}}} {{{{ z }}}} `{{{{ y }}}}`\n\
             ```\n{{{{ vue }}}} {{{{ topik }}}}\n```\n"
        );
        let spots = places(UNDECLARED_PLACEHOLDER.code, &text);
        assert_eq!(spots, ["{{ tpoic }}", "{{ z }}", "{{ topik }}"]);
        assert!(!find(UNDECLARED_PLACEHOLDER.code, &text)[0].is_error());
    }

    #[test]
    fn unused_inputs_are_named_or_counted() {
        let text = flow("[{name: a}, {name: b}]", "{{a}} {{ b }}");
        assert_eq!(places(UNUSED_INPUT.code, &text), ["b"]);
        let none = flow("[{name: a}, {name: b}]", "text");
        assert_eq!(places(UNUSED_INPUT.code, &none), ["inputs"]);
        let found = find(UNUSED_INPUT.code, &none);
        assert_eq!(found[0].help.as_deref(), Some("put `{{a}}` where the value belongs"));
    }

    #[test]
    fn claude_arguments_have_three_spellings() {
        let count = |body: &str| {
            let text = format!("---\ndescription: d\narguments: [from, to]\n---\n{body}");
            find_as(UNUSED_INPUT.code, &text, Dialect::CLAUDE_CODE).len()
        };
        assert_eq!(count("$from $to"), 0);
        assert_eq!(count("$ARGUMENTS"), 0);
        assert_eq!(count("$0 $1"), 0);
        assert_eq!(count("$from"), 1);
        assert_eq!(count("\\$to $from"), 1);
        let text = "---\ndescription: d\narguments: from to\n---\n$from\n";
        assert_eq!(places(UNUSED_INPUT.code, text), ["arguments"]);
    }
}
