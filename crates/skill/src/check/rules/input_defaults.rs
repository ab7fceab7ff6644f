//! Finds duplicate inputs and contradictory defaults.

use savoir_lint::Diagnostic;
use serde_json::Value;

use super::placeholders::span_of;
use crate::{
    check::{Context, rule::rule},
    skill::InputKind,
};

rule! {
    /// Two inputs have the same name.
    ///
    /// ## Why
    ///
    /// One value fills every placeholder of that name; the type, the default and `required` of the
    /// second entry are ignored.
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
    ///   - name: text
    /// ---
    /// Rewrite {{text}}.
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
    /// ---
    /// Rewrite {{text}}.
    /// ````
    DUPLICATE_INPUT = "duplicate-input", Error, run duplicate_input
}

fn duplicate_input(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let inputs = &context.reading.skill.inputs;
    for (index, input) in inputs.iter().enumerate() {
        if inputs[..index].iter().any(|earlier| earlier.name == input.name) {
            let message = format!("the input `{}` appears twice", input.name);
            let span = span_of(context, index, &input.name);
            found.push(
                Diagnostic::error(DUPLICATE_INPUT.code, span, message)
                    .field(format!("inputs[{index}]"))
                    .help("give each input its own name, or remove one"),
            );
        }
    }
}

rule! {
    /// An input is required and has a default.
    ///
    /// ## Why
    ///
    /// In Agent Flow Lite, a required input needs a value even if it has a default: a run without
    /// the value fails, and the default is never used.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agent-flow
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// inputs:
    ///   - name: tone
    ///     required: true
    ///     default: friendly
    /// ---
    /// Answer in a {{tone}} tone.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=agent-flow
    /// ---
    /// name: demo
    /// description: Shows a rule. Use when learning.
    /// inputs:
    ///   - name: tone
    ///     default: friendly
    /// ---
    /// Answer in a {{tone}} tone.
    /// ````
    REQUIRED_WITH_DEFAULT = "required-with-default", Warning, run required_with_default
}

fn required_with_default(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if !context.placeholders().required_beats_default() {
        return;
    }
    for (index, input) in context.reading.skill.inputs.iter().enumerate() {
        if input.required && input.default.is_some() {
            let message =
                format!("the input `{}` is required, so its default is never used", input.name);
            let span = span_of(context, index, &input.name);
            found.push(
                Diagnostic::warning(REQUIRED_WITH_DEFAULT.code, span, message)
                    .field(format!("inputs[{index}].default"))
                    .help("remove `required`, or remove `default`"),
            );
        }
    }
}

rule! {
    /// The default of an input is not of its type.
    ///
    /// ## Why
    ///
    /// skillrt checks values against the type before a run, so a run with the default fails.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// inputs:
    ///   - name: count
    ///     type: number
    ///     default: many
    /// ---
    /// Tell {{ count }} jokes.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// inputs:
    ///   - name: count
    ///     type: number
    ///     default: 3
    /// ---
    /// Tell {{ count }} jokes.
    /// ````
    INPUT_DEFAULT_TYPE = "input-default-type", Error, run input_default_type
}

fn input_default_type(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if !context.placeholders().have_types() {
        return;
    }
    for (index, input) in context.reading.skill.inputs.iter().enumerate() {
        let Some(default) = &input.default else { continue };
        if !has_type(input.kind, default) {
            let message =
                format!("the default of `{}` is not {}", input.name, expected_type(input.kind));
            let span = span_of(context, index, &input.name);
            found.push(
                Diagnostic::error(INPUT_DEFAULT_TYPE.code, span, message)
                    .field(format!("inputs[{index}].default"))
                    .help("change the default or the type"),
            );
        }
    }
}

/// Whether the value, or what a user would type for it, is of the type.
fn has_type(kind: InputKind, value: &Value) -> bool {
    let text = value.as_str();
    match kind {
        InputKind::Text | InputKind::Textarea | InputKind::String => {
            !value.is_array() && !value.is_object()
        }
        InputKind::Number => {
            value.is_number() || text.is_some_and(|text| text.trim().parse::<f64>().is_ok())
        }
        InputKind::Boolean => value.is_boolean() || matches!(text, Some("true" | "false")),
        InputKind::File => text.is_some_and(|text| !text.is_empty()),
        InputKind::Url => text.is_some_and(|text| {
            text.split_once("://").is_some_and(|(scheme, rest)| {
                !scheme.is_empty()
                    && scheme
                        .chars()
                        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
                    && !rest.is_empty()
            })
        }),
        InputKind::Json => true,
    }
}

fn expected_type(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Text | InputKind::Textarea | InputKind::String => "text",
        InputKind::Number => "a number",
        InputKind::Boolean => "`true` or `false`",
        InputKind::File => "the path of a file",
        InputKind::Url => "an absolute URL",
        InputKind::Json => "JSON",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        check::rules::testing::{find_as, places},
        dialect::Dialect,
    };

    #[test]
    fn second_duplicate_is_reported() {
        let text = "---\nname: x\nmodel: {temperature: 1}\ninputs:\n  - name: a\n  - {}\n  - name: a # second\n---\n{{a}}\n";
        let found = find_as(DUPLICATE_INPUT.code, text, Dialect::AGENT_FLOW);
        assert_eq!(found.len(), 1);
        assert!(text[found[0].span.end..].starts_with(" # second"));
    }

    #[test]
    fn only_agent_flow_ignores_the_default() {
        let text = "---\nname: x\nversion: 1.0.0\ndescription: d\ninputs: [{name: a, type: string, required: true, default: b}]\n---\n{{a}}\n";
        assert!(places(REQUIRED_WITH_DEFAULT.code, text).is_empty());
        assert_eq!(find_as(REQUIRED_WITH_DEFAULT.code, text, Dialect::AGENT_FLOW).len(), 1);
    }

    #[test]
    fn values_of_each_type() {
        use InputKind::{Boolean, File, Json, Number, String, Url};
        for (kind, good, bad) in [
            (String, json!("x"), json!(["x"])),
            (String, json!(5), json!({})),
            (Number, json!(1.5), json!("x")),
            (Number, json!("2"), json!(true)),
            (Boolean, json!(false), json!("yes")),
            (File, json!("a.txt"), json!(1)),
            (Url, json!("https://example.com"), json!("example.com")),
        ] {
            assert!(has_type(kind, &good), "{kind:?} {good}");
            assert!(!has_type(kind, &bad), "{kind:?} {bad}");
        }
        assert!(has_type(Json, &json!([1])));
    }
}
