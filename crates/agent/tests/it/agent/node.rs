//! Tests LLM nodes of workflows that use skills.

use savoir_agent::node_agent::WorkflowAgent;
use savoir_flow::{event::Emitter, services::Question, workflow::NodeAgent as _};
use savoir_model::{Chunk, Message};
use savoir_skill::{Source, read};
use serde_json::json;

use super::stage::{Stage, call, use_skill};

#[tokio::test]
async fn llm_node_gets_the_list_of_skills_and_can_load_one() {
    let mut stage = Stage::new();
    stage.skill("report", "context: fork\nallowed-tools: Read", "Collect, then write.");
    stage.says([use_skill("report")]).says([Chunk::Text("All is well.".to_owned())]);
    let agent = stage.agent();
    let node = WorkflowAgent {
        services: agent.services.clone(),
        library: agent.library.clone(),
        skill_tools: None,
    };
    let question = Question {
        model: None,
        messages: vec![
            Message::System("You write reports.".to_owned()),
            Message::User("Before.".to_owned()),
            Message::Assistant { text: "Yes.".to_owned(), tool_calls: Vec::new() },
            Message::User("The report, please.".to_owned()),
        ],
        temperature: Some(0.2),
        max_tokens: Some(77),
        user: None,
        skill: None,
    };
    let (out, mut events) = Emitter::channel();
    let listening = async { while events.recv().await.is_some() {} };
    let asking = async {
        let answer = node.ask(question, &out).await.expect("somebody listens");
        drop(out);
        answer
    };
    let (answer, ()) = tokio::join!(asking, listening);
    assert_eq!((answer.text.as_str(), answer.error.is_none()), ("All is well.", true));
    let asked = stage.asked();
    assert_eq!(asked.len(), 2);
    let Message::System(system) = &asked[0].messages[0] else { panic!("no system text") };
    assert!(system.starts_with("You write reports.\n\n"), "{system}");
    assert!(system.contains("\n- report: Does report.\n"), "{system}");
    assert!(system.contains("save_skill("), "{system}");
    assert_eq!(asked[0].messages.len(), 4, "the history is sent");
    assert_eq!((asked[0].temperature, asked[0].max_tokens), (Some(0.2), Some(77)));
    assert!(asked[0].tools.iter().any(|tool| tool.name == "use_skill"));
    // A workflow run that can be resumed starts no forks.
    let Some(Message::Tool { content, .. }) = asked[1].messages.last() else { panic!("no answer") };
    assert!(content.contains("This skill is meant for a sub-agent"), "{content}");
}

#[tokio::test]
async fn skill_of_an_llm_node_limits_its_tools() {
    let mut stage = Stage::new();
    stage.skill("free", "", "Anything.");
    let search = || call("search_skills", json!({"query": "free"}));
    stage.says([search()]).says([use_skill("free")]).says([search()]);
    stage.says([Chunk::Text("Over.".to_owned())]);
    let agent = stage.agent();
    let node = WorkflowAgent {
        services: agent.services.clone(),
        library: agent.library.clone(),
        skill_tools: None,
    };
    let text = "---\nname: reader\ndescription: Reads.\nallowed-tools: Read\n---\nRead.\n";
    let skill = read(Source::new(text.to_owned()), None).skill;
    let question = Question {
        model: None,
        messages: vec![Message::System("Read.".to_owned()), Message::User("Go.".to_owned())],
        temperature: None,
        max_tokens: None,
        user: None,
        skill: Some(&skill),
    };
    let (out, mut events) = Emitter::channel();
    let listening = async { while events.recv().await.is_some() {} };
    let asking = async {
        let answer = node.ask(question, &out).await.expect("somebody listens");
        drop(out);
        answer
    };
    let (answer, ()) = tokio::join!(asking, listening);
    assert_eq!(answer.text, "Over.");
    let asked = stage.asked();
    assert!(!asked[0].tools.iter().any(|tool| tool.name == "search_skills"));
    let answers: Vec<&str> = asked[3]
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::Tool { content, .. } => Some(content.as_str()),
            _ => None,
        })
        .collect();
    assert!(answers[0].contains("tool-not-allowed"), "{answers:?}");
    // The next skill replaces the list.
    assert!(answers[2].contains("\"of\":1"), "{answers:?}");
}
