//! Tests a conversation of the server with tools.

use std::{sync::Arc, time::Duration};

use savoir_agent::chat::{ChatService, ChatTurn};
use savoir_flow::{
    event::{Emitter, Event},
    skill_lookup::NoSkills,
};
use savoir_model::{Chunk, Message};
use savoir_store::{Database, Role, Speaker};
use serde_json::json;

use super::stage::{Stage, call, use_skill};

#[tokio::test]
async fn conversation_with_tools_is_stored_and_continues() {
    let mut stage = Stage::new();
    stage.skill("reader", "allowed-tools: Read", "Read.");
    stage.says([Chunk::Text("Let me see. ".to_owned()), use_skill("reader")]);
    stage.says([call("search_knowledge", json!({"query": "x"}))]);
    stage.says([Chunk::Text("It is so.".to_owned())]);
    let agent = stage.agent();
    let database = Database::open_folder(&stage.folder().join("data")).await.unwrap();
    let account = database.accounts().create("ada@example.org", "h", Role::User).await;
    let user = account.unwrap().unwrap().id;
    let chat = ChatService {
        services: agent.services.clone(),
        skill_lookup: Arc::new(NoSkills),
        database: database.clone(),
    };
    let turn = |message: &str| ChatTurn {
        session: "s".to_owned(),
        message: message.to_owned(),
        kb_id: Some("manuals".to_owned()),
        model: None,
        user,
        extra_time: Duration::ZERO,
    };
    database.sessions().ensure("s", user).await.unwrap();
    for message in ["Is it so?", "Sure?"] {
        let turn = turn(message);
        chat.store_message(&turn, None).await.unwrap();
        let (out, mut events) = Emitter::channel();
        let listening = async {
            let mut last = None;
            while let Some(event) = events.recv().await {
                last = Some(event);
            }
            last
        };
        let answering = async {
            chat.answer_with_tools(&turn, agent.library.clone(), None, &out).await;
            drop(out);
        };
        let ((), last) = tokio::join!(answering, listening);
        assert!(matches!(last, Some(Event::Done(_))), "{last:?}");
    }
    let kept = database.sessions().messages("s", None).await.unwrap();
    let kept: Vec<_> = kept.iter().map(|one| (one.speaker, one.content.as_str())).collect();
    assert_eq!(
        kept,
        [
            (Speaker::User, "Is it so?"),
            (Speaker::Assistant, "Let me see. It is so."),
            (Speaker::User, "Sure?"),
            (Speaker::Assistant, "done"),
        ]
    );
    let asked = stage.asked();
    assert_eq!(asked.len(), 4);
    // The allow-list of the skill applies to the knowledge search, too.
    let Some(Message::Tool { content, .. }) = asked[2].messages.last() else { panic!("no answer") };
    assert!(content.contains("failed: tool-not-allowed"), "{content}");
    // The next turn starts without an allow-list, and has the history.
    let names: Vec<_> = asked[3].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"search_knowledge") && !names.contains(&"run_command"), "{names:?}");
    let said: Vec<_> = asked[3].messages[1..].to_vec();
    assert_eq!(said.len(), 3, "{said:?}");
    assert_eq!(said[2], Message::User("Sure?".to_owned()));
}
