//! Tests that nodes keep the contract of skillrt skills, as `savoir run` does.

use std::sync::Arc;

use futures::future::BoxFuture;
use savoir_flow::{
    skill_lookup::{LoadError, SkillLookup},
    workflow::WorkflowHost,
};
use savoir_skill::{Dialect, Skill, Source, read_as};
use serde_json::{Value, json};

use super::{Scripted, error_of, graph, host, inner_lines, output_of};

/// A skillrt skill with these fields.
#[derive(Debug)]
struct Fields(&'static str);

impl SkillLookup for Fields {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>> {
        let fields = self.0;
        let text = format!(
            "---\nname: {name}\nversion: 1.0.0\ndescription: d\n{fields}\n---\nbody {{{{ x }}}}\n"
        );
        let skill = read_as(Source::new(text), Dialect::SKILLRT, None).skill;
        Box::pin(std::future::ready(Ok(skill)))
    }
}

fn with(fields: &'static str, model: &Arc<Scripted>) -> WorkflowHost {
    WorkflowHost { skill_lookup: Arc::new(Fields(fields)), ..host(model) }
}

/// Both types of nodes that use a skill.
fn nodes() -> [(&'static str, Value); 2] {
    let data = json!({"skillName": "rt", "inputMappings": {"x": "abc"}});
    [("skill", data.clone()), ("llm", data)]
}

#[tokio::test]
async fn skill_that_cannot_run_here_is_refused_before_the_model_is_asked() {
    for (fields, error) in [
        ("dependencies: {tools: [no-such-tool]}", "these programs are not on PATH: no-such-tool"),
        ("runtime: {type: foo-rt}", "it is for the unknown runtime `foo-rt`"),
        ("runtime: {type: mcp-tool}", "it stands for a tool of an MCP server"),
        ("runtime: {min-version: 9.0.0}", "it needs runtime 9.0.0"),
        ("inputs: [{name: x, type: number}]", "the input `x` must be a number"),
        ("inputs: [{name: y, type: string, required: true}]", "Missing required input: 'y'"),
    ] {
        for (kind, data) in nodes() {
            let model = Scripted::new(&[]);
            let message = error_of(&with(fields, &model), kind, data).await;
            assert!(message.contains(error), "{kind}: {message}");
        }
    }
}

#[tokio::test]
async fn answer_is_checked_before_it_is_passed_on() {
    const SCHEMA: &str = "outputs: {type: json, schema: {type: object}}";
    for (kind, data) in nodes() {
        let model = Scripted::new(&["no json"]);
        let message = error_of(&with(SCHEMA, &model), kind, data.clone()).await;
        assert!(message.contains("the answer is not JSON"), "{kind}: {message}");

        let model = Scripted::new(&["{\"a\": 1}"]);
        let output = output_of(&with(SCHEMA, &model), kind, data.clone(), "IN").await;
        assert_eq!(output, "{\"a\": 1}", "{kind}");

        // No part of a wrong answer is emitted, and a right one as a whole.
        let graph = graph(&[("s", "start", json!({})), ("n", kind, data)], &["s n"]);
        for (answer, tokens) in [("no json", 0), ("{\"a\": 1}", 1)] {
            let model = Scripted::new(&[answer]);
            let lines = inner_lines(&with(SCHEMA, &model), &graph, "IN").await;
            let found = lines.iter().filter(|line| line.starts_with("token ")).count();
            assert_eq!(found, tokens, "{kind}: {lines:?}");
        }
    }
}
