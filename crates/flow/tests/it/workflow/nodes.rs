//! Tests what each type of node does, and the order of its events.

use std::sync::Arc;

use savoir_flow::workflow::{Features, WorkflowHost};
use savoir_model::Message;
use serde_json::json;

use super::{OneSkill, Scripted, error_of, graph, host, inner_lines};

#[tokio::test]
async fn a_model_is_asked() {
    let model = Scripted::new(&["Hello there"]);
    let data =
        json!({"systemPrompt": "About {{topic}}: {{missing}}", "temperature": 0.1, "model": "big"});
    let nodes = [
        ("s", "start", json!({"inputVariable": "topic"})),
        ("m", "llm", data),
        ("e", "end", json!({})),
    ];
    let lines = inner_lines(&host(&model), &graph(&nodes, &["s m", "m e"]), "cats").await;
    assert_eq!(
        lines,
        [
            r#"node_start {"node_id":"s","node_type":"start"}"#,
            r#"node_complete {"node_id":"s","output":"cats"}"#,
            r#"node_start {"node_id":"m","node_type":"llm"}"#,
            r#"token {"node_id":"m","content":"Hello "}"#,
            r#"token {"node_id":"m","content":"there"}"#,
            r#"node_complete {"node_id":"m","output":"Hello there"}"#,
            r#"node_start {"node_id":"e","node_type":"end"}"#,
            r#"node_complete {"node_id":"e","output":"Hello there"}"#,
            r#"workflow_complete {"final_output":"Hello there"}"#,
        ]
    );
    let asked = &model.asked()[0];
    assert_eq!(asked.model, "big");
    assert_eq!((asked.temperature, asked.max_tokens), (Some(0.1), None));
    let expected =
        [Message::System("About cats: {{missing}}".into()), Message::User("cats".into())];
    assert_eq!(asked.messages, expected);
}

#[tokio::test]
async fn skill_body_replaces_system_prompt() {
    let model = Scripted::new(&["Done"]);
    let data = json!({"skillName": "summary", "systemPrompt": "not this", "temperature": 1.5});
    let nodes = [("s", "start", json!({"inputVariable": "article"})), ("m", "llm", data)];
    let lines = inner_lines(&host(&model), &graph(&nodes, &["s m"]), "A").await;
    assert_eq!(
        lines[3],
        r#"thought {"type_detail":"skill_loaded","node_id":"m","skill_name":"summary","has_prompt":true,"has_model_config":true}"#
    );
    let asked = &model.asked()[0];
    assert_eq!((asked.temperature, asked.max_tokens), (Some(0.2), Some(2000)));
    assert_eq!(asked.messages[0], Message::System("Sum up A in a  way".into()));
}

#[tokio::test]
async fn inputs_of_a_skill_are_filled_for_a_model() {
    let model = Scripted::new(&["one", "two"]);
    let mapped = json!({"skillName": "summary", "inputMappings": {"article": "{{input}}", "style": "brief"}});
    let nodes = [
        ("s", "start", json!({"inputVariable": "style"})),
        ("a", "llm", json!({"skillName": "summary"})),
        ("b", "llm", mapped),
    ];
    let said = "warm {{article}}";
    inner_lines(&host(&model), &graph(&nodes, &["s a", "a b"]), said).await;
    // The first required input gets the input of the node, and inserted values are not expanded
    // again.
    let expected = [
        "Sum up warm {{article}} in a warm {{article}} way",
        "Sum up warm {{article}} in a brief way",
    ];
    for (asked, expected) in model.asked().iter().zip(expected) {
        assert_eq!(asked.messages[0], Message::System(expected.into()));
    }
}

#[tokio::test]
async fn default_of_an_optional_input_comes_before_the_input_of_the_node() {
    const TONE: OneSkill = OneSkill(
        "tone",
        "---\nname: tone\ninputs: [{name: tone, default: kind}, {name: topic}]\n---\n\
         Be {{tone}} about {{topic}}\n",
    );
    const TEXT: OneSkill =
        OneSkill("text", "---\nname: text\ninputs: [{name: text}]\n---\nSum up {{text}}\n");
    let llm = |skill: &str| ("m", "llm", json!({"skillName": skill}));
    for (skill, start, prompt) in [
        (TONE, "input", "Be kind about "),
        (TONE, "topic", "Be kind about cats"),
        (TONE, "tone", "Be cats about "),
        (TEXT, "input", "Sum up cats"),
    ] {
        let model = Scripted::new(&["Done"]);
        let start = ("s", "start", json!({"inputVariable": start}));
        let graph = graph(&[start, llm(skill.0)], &["s m"]);
        let host = WorkflowHost { skill_lookup: Arc::new(skill), ..host(&model) };
        inner_lines(&host, &graph, "cats").await;
        assert_eq!(model.asked()[0].messages[0], Message::System(prompt.into()));
    }
}

#[tokio::test]
async fn a_join_waits_for_all_inputs_and_receives_them() {
    let model = Scripted::new(&["left", "right", "deep"]);
    let nodes = [
        ("s", "start", json!({})),
        ("a", "llm", json!({})),
        ("b", "llm", json!({})),
        ("c", "llm", json!({})),
        ("e", "end", json!({})),
    ];
    // One path to the end is longer than the other.
    let graph = graph(&nodes, &["s a", "s b", "b c", "a e", "c e"]);
    let lines = inner_lines(&host(&model), &graph, "IN").await;
    let last = lines.last().unwrap();
    assert_eq!(last, r#"workflow_complete {"final_output":"left\n\ndeep"}"#);
}

#[tokio::test]
async fn a_join_ignores_branches_that_were_not_taken() {
    let model = Scripted::new(&["answer"]);
    let nodes = [
        ("s", "start", json!({})),
        ("c", "condition", json!({"expression": "{{input}} == 'yes'"})),
        ("a", "llm", json!({})),
        ("e", "end", json!({})),
    ];
    let graph = graph(&nodes, &["s c", "c a true", "c e false", "a e"]);
    let lines = inner_lines(&host(&model), &graph, "yes").await;
    assert_eq!(lines.last().unwrap(), r#"workflow_complete {"final_output":"answer"}"#);
}

#[tokio::test]
async fn a_condition_that_cannot_be_evaluated_warns() {
    let host = host(&Scripted::new(&[]));
    for (expression, reason) in [
        ("{{input}} > 3", "write + before it"),
        ("this is rubbish ((", "at character 1, `this` has no meaning"),
        ("{{nobody.output}} == 1", "values here: {{input}}, {{s.output}}"),
        ("{{input}} == 5", "are never equal"),
    ] {
        let nodes =
            [("s", "start", json!({})), ("c", "condition", json!({"expression": expression}))];
        let lines = inner_lines(&host, &graph(&nodes, &["s c"]), "5").await;
        let warning = lines.iter().find(|line| line.starts_with("warning ")).expect("a warning");
        assert!(warning.contains(expression) && warning.contains(reason), "{warning}");
        assert!(warning.contains(r#""node_id":"c""#), "{warning}");
    }
}

#[tokio::test]
async fn input_is_that_of_the_workflow_and_a_node_has_its_output() {
    let model = Scripted::new(&["first", "second"]);
    let nodes = [
        ("s", "start", json!({})),
        ("a", "llm", json!({})),
        ("b", "llm", json!({"systemPrompt": "{{input}}, then {{a.output}}"})),
        ("c", "condition", json!({"expression": "{{input}} == 'IN' and {{b.output}} == 'second'"})),
        ("yes", "end", json!({})),
    ];
    let graph = graph(&nodes, &["s a", "a b", "b c", "c yes true"]);
    let lines = inner_lines(&host(&model), &graph, "IN").await;
    let asked = model.asked();
    assert_eq!(asked[1].messages[0], Message::System("IN, then first".into()));
    assert_eq!(asked[1].messages[1], Message::User("first".into()));
    assert_eq!(lines.last().unwrap(), r#"workflow_complete {"final_output":"second"}"#);
    assert!(lines.iter().any(|line| line.contains(r#""branch":"true""#)), "{lines:?}");
}

#[tokio::test]
async fn number_in_an_output_is_compared_with_plus() {
    let model = Scripted::new(&["10"]);
    let nodes = [
        ("s", "start", json!({})),
        ("rate", "llm", json!({})),
        ("c", "condition", json!({"expression": "+{{rate.output}} > 3"})),
    ];
    let lines = inner_lines(&host(&model), &graph(&nodes, &["s rate", "rate c"]), "x").await;
    assert!(lines.iter().any(|line| line.contains(r#""branch":"true""#)), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("warning ")), "{lines:?}");
}

#[tokio::test]
async fn setting_that_is_not_used_as_written_warns() {
    let host = host(&Scripted::new(&["a"]));
    let nodes = [("s", "start", json!({})), ("m", "llm", json!({"temperature": 3}))];
    let lines = inner_lines(&host, &graph(&nodes, &["s m"]), "x").await;
    assert_eq!(
        lines[3],
        r#"warning {"node_id":"m","message":"`temperature` is 3, and 2 is used instead; write a number from 0 to 2"}"#
    );
}

#[tokio::test]
async fn reason_of_a_failed_model_is_a_warning() {
    let mut host = host(&Scripted::new(&[]));
    host.services.models = Arc::new(savoir_model::Models::default());
    let nodes = [("s", "start", json!({})), ("k", "skill", json!({"skillName": "summary"}))];
    let lines = inner_lines(&host, &graph(&nodes, &["s k"]), "IN").await;
    let warning = lines.iter().find(|line| line.starts_with("warning ")).expect("a warning");
    assert!(warning.contains("no language model is configured; "), "{warning}");
    assert!(warning.contains("OPENAI_API_KEY"), "{warning}");
    assert_eq!(lines.last().unwrap(), r#"workflow_error {"error":"Generation failed"}"#);
}

#[tokio::test]
async fn history_is_sent_only_if_enabled() {
    let model = Scripted::new(&["one", "two", "three"]);
    let nodes = [
        ("s", "start", json!({})),
        ("a", "llm", json!({})),
        ("b", "llm", json!({})),
        ("c", "llm", json!({"inheritChatHistory": true})),
    ];
    inner_lines(&host(&model), &graph(&nodes, &["s a", "a b", "b c"]), "zero").await;
    let counts: Vec<usize> = model.asked().iter().map(|asked| asked.messages.len()).collect();
    assert_eq!(counts, [2, 2, 6]);
    let said = |text: &str| Message::Assistant { text: text.into(), tool_calls: Vec::new() };
    let user = |text: &str| Message::User(text.into());
    let expected = [user("zero"), said("one"), user("one"), said("two"), user("two")];
    assert_eq!(model.asked()[2].messages[1..], expected);
}

#[tokio::test]
async fn a_skill_runs_and_its_events_carry_the_node() {
    let model = Scripted::new(&["Short"]);
    let data = json!({"skillName": "summary", "inputMappings": {"article": "s", "style": "{{input}}-like"}});
    let nodes = [("s", "start", json!({})), ("k", "skill", data)];
    let lines = inner_lines(&host(&model), &graph(&nodes, &["s k"]), "IN").await;
    assert_eq!(
        lines[2..],
        [
            r#"node_start {"node_id":"k","node_type":"skill"}"#,
            r#"thought {"type_detail":"validation","node_id":"k","status":"start"}"#,
            r#"thought {"type_detail":"validation","node_id":"k","status":"complete","message":"All required inputs provided"}"#,
            r#"thought {"type_detail":"substitution","node_id":"k","status":"start"}"#,
            r#"thought {"type_detail":"substitution","node_id":"k","status":"complete","message":"Variables substituted"}"#,
            r#"thought {"type_detail":"generation","node_id":"k","status":"start"}"#,
            r#"token {"node_id":"k","content":"Short"}"#,
            r#"node_complete {"node_id":"k","output":"Short"}"#,
            r#"workflow_complete {"final_output":"Short"}"#,
        ]
    );
    let Message::User(prompt) = &model.asked()[0].messages[1] else { panic!("a prompt") };
    assert_eq!(prompt.trim(), "Sum up IN in a IN-like way");
}

#[tokio::test]
async fn failure_messages_match_the_contract() {
    let host = |answers: &[&str]| host(&Scripted::new(answers));
    let none = host(&[]);
    for (kind, data, expected) in [
        ("skill", json!({}), "Skill not selected"),
        ("skill", json!({"skillName": "x"}), "Failed to load skill 'x': Skill 'x' not found"),
        ("llm", json!({"skillName": "x"}), "Failed to load skill 'x': Skill 'x' not found"),
        (
            "skill",
            json!({"skillName": "summary", "inputMappings": {"style": "a"}}),
            "Missing required input: 'article'",
        ),
        ("knowledge", json!({}), "Knowledge base not configured"),
        ("knowledge", json!({"knowledgeBaseId": "k"}), "Retrieval failed"),
        ("code", json!({"code": " "}), "Code is required"),
        ("http", json!({}), "URL is required"),
        (
            "http",
            json!({"method": "PATCH", "url": "http://a.example"}),
            "HTTP method not supported",
        ),
    ] {
        assert_eq!(error_of(&none, kind, data.clone()).await, expected, "{kind} {data}");
    }
    let broken = host(&["half !no", "!no"]);
    assert_eq!(
        error_of(&broken, "llm", json!({})).await,
        "LLM call failed: the local model failed"
    );
    let data = json!({"skillName": "summary"});
    assert_eq!(error_of(&broken, "skill", data).await, "Generation failed");
}

#[tokio::test]
async fn skill_failure_is_reported_once() {
    let model = Scripted::new(&["!no"]);
    let nodes = [("s", "start", json!({})), ("k", "skill", json!({"skillName": "summary"}))];
    let lines = inner_lines(&host(&model), &graph(&nodes, &["s k"]), "IN").await;
    assert_eq!(
        lines[lines.len() - 4..],
        [
            r#"thought {"type_detail":"generation","node_id":"k","status":"start"}"#,
            r#"warning {"node_id":"k","message":"the local model failed"}"#,
            r#"node_error {"node_id":"k","error":"Generation failed"}"#,
            r#"workflow_error {"error":"Generation failed"}"#,
        ]
    );
}

#[tokio::test]
async fn dangerous_nodes_are_disabled_by_default() {
    let mut host = host(&Scripted::new(&[]));
    host.features = Features::default();
    let expected = "This feature has been disabled by the administrator";
    for kind in ["http", "code"] {
        assert_eq!(error_of(&host, kind, json!({})).await, expected);
    }
}
