//! Runs skill nodes.

use serde_json::{Map, Value};

use super::{NodeContext, NodeError, NodeResult};
use crate::{
    event::Emitter,
    prompt::{self, PromptRun, first_input},
    workflow::{
        scope::{Scope, text_of},
        template::{self, TextBudget, TextTooLong},
    },
};

pub(super) async fn run(
    name: Option<&str>,
    mappings: Option<&Map<String, Value>>,
    context: &NodeContext<'_>,
    out: &Emitter,
) -> Result<NodeResult, NodeError> {
    let name = name.ok_or_else(|| NodeError::failed("Skill not selected"))?;
    let skill = context.skill(name).await?;
    let inputs = match mappings {
        Some(mappings) => mapped_inputs(mappings, &context.scope())?,
        None => first_input(&skill, &context.input_text()),
    };
    let (model, user) = (context.run.model, context.run.user);
    let run = PromptRun { skill: &skill, inputs: &inputs, directory: None, model, user };
    let outcome = prompt::steps(&context.host.services, run, out).await?;
    match outcome.error {
        None => Ok(Value::from(outcome.text).into()),
        Some(failure) => Err(NodeError::Failed(failure.message)),
    }
}

/// Returns the inputs of a skill by their mappings: the output of a node, a text with placeholders,
/// a variable, or the text itself.
pub fn mapped_inputs(
    mappings: &Map<String, Value>,
    scope: &Scope<'_>,
) -> Result<Map<String, Value>, TextTooLong> {
    let mut budget = TextBudget::default();
    let mapped = mappings.iter().map(|(name, value)| {
        let text = match value {
            Value::String(text) => mapped(text, scope, &mut budget)?,
            other => text_of(other).into_owned(),
        };
        Ok((name.clone(), Value::from(text)))
    });
    mapped.collect()
}

fn mapped(text: &str, scope: &Scope<'_>, budget: &mut TextBudget) -> Result<String, TextTooLong> {
    let whole = match scope.output(text) {
        Some(output) => text_of(output),
        None if text.contains("{{") => return template::fill_within(text, scope, budget),
        None => match template::is_path(text).then(|| scope.find(text)).flatten() {
            Some(found) => found.text(),
            None => text.into(),
        },
    };
    budget.take(&whole)?;
    Ok(whole.into_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing;

    fn map(value: Value) -> Map<String, Value> {
        let Value::Object(map) = value else { panic!("an object") };
        map
    }

    #[test]
    fn mappings_are_resolved_by_kind() {
        let outputs = map(json!({"s": "OUT", "n": 7, "o": {"k": "v"}, "topic": "of a node"}));
        let variables = map(json!({"topic": "cats", "about": "dogs"}));
        let scope = Scope::new("IN", &outputs, &variables);
        let mappings = map(json!({
            "node": "s", "number": "n", "object": "o", "literal": "concise", "path": "o.output.k",
            "variable": "about", "first": "topic", "template": "{{about}} and {{what}}", "input": "input",
            "blank": "", "null": null, "five": 5, "list": [1, "a"], "words": "two words",
        }));
        let inputs = mapped_inputs(&mappings, &scope).unwrap();
        assert_eq!(
            Value::from(inputs),
            json!({
                "node": "OUT", "number": "7", "object": "{\"k\":\"v\"}", "literal": "concise", "path": "v",
                "variable": "dogs", "first": "of a node", "template": "dogs and {{what}}", "input": "IN",
                "blank": "", "null": "", "five": "5", "list": "[1,\"a\"]", "words": "two words",
            })
        );
    }

    #[test]
    fn first_required_input_gets_the_text() {
        let skill = |inputs: &str| {
            let text = format!("---\nname: a\ninputs: {inputs}\n---\nx\n");
            testing::skill(&text, savoir_skill::Dialect::AGENT_FLOW)
        };
        let context = |inputs| Value::from(first_input(&skill(inputs), "t"));
        assert_eq!(context("[{name: a}, {name: b, required: true}]"), json!({"b": "t"}));
        assert_eq!(context("[{name: a}, {name: b}]"), json!({"a": "t"}));
        assert_eq!(context("[]"), json!({}));
    }
}
