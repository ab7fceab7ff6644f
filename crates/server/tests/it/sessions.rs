//! Tests stored conversations.

use serde_json::{Value, json};

use crate::{
    chat::{CHAT, Place},
    harness::ADMIN,
    workflows::keep,
};

const SESSIONS: &str = "/api/v1/chat/sessions";

fn ids(list: &Value) -> Vec<&str> {
    let sessions = list["sessions"].as_array().unwrap().iter();
    sessions.map(|session| session["session_id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn conversation_responses() {
    let place = Place::new(&[]).await;
    place.ada.get(SESSIONS).await.is(200, &json!({"sessions": []}));
    let flow = keep(&place.ada, &json!({})).await;
    let body = json!({"session_id": "s", "message": "First é", "kb_id": "kb", "workflow_id": flow});
    place.ada.post(CHAT, &body).await;
    place.ada.post(CHAT, &json!({"session_id": "s", "message": "Second"})).await;
    let one = place.ada.get(&format!("{SESSIONS}/s")).await;
    let response = one.json();
    let id = place.ada.id().to_string();
    let (created, updated) = (&response["created_at"], &response["updated_at"]);
    let at = |number: usize| &response["messages"][number]["timestamp"];
    one.is(
        200,
        &json!({
            "session_id": "s",
            "messages": [
                {"role": "user", "content": "First é", "timestamp": at(0)},
                {"role": "user", "content": "Second", "timestamp": at(1)},
                {"role": "assistant", "content": "Hello you", "timestamp": at(2)},
            ],
            "created_at": created, "updated_at": updated, "kb_id": "kb", "workflow_id": flow,
            "user_id": id, "message_count": 3,
        }),
    );
    assert!(at(0).as_str() <= at(1).as_str() && at(1).as_str() <= at(2).as_str());
    let text = created.as_str().unwrap();
    assert!(text.len() == 27 && text.ends_with('Z') && updated.as_str().unwrap() >= text);
    place.ada.get(SESSIONS).await.is(
        200,
        &json!({"sessions": [{
            "session_id": "s", "title": "First é", "created_at": created, "updated_at": updated,
            "message_count": 3, "kb_id": "kb", "workflow_id": flow, "user_id": id,
        }]}),
    );
}

#[tokio::test]
async fn conversations_are_listed_for_their_user_only() {
    let place = Place::new(&[]).await;
    let admin = place.server.register(ADMIN).await;
    let bob = place.server.register("bob@example.org").await;
    for (person, id) in [(&place.ada, "a1"), (&bob, "b"), (&place.ada, "a2")] {
        person.post(CHAT, &json!({"session_id": id, "message": "x"})).await;
    }
    assert_eq!(ids(&place.ada.get(SESSIONS).await.json()), ["a2", "a1"]);
    assert_eq!(ids(&bob.get(SESSIONS).await.json()), ["b"]);
    assert_eq!(ids(&admin.get(SESSIONS).await.json()), ["a2", "b", "a1"]);
    // Conversations are sorted by their last message.
    place.ada.post(CHAT, &json!({"session_id": "a1", "message": "y"})).await;
    assert_eq!(ids(&place.ada.get(SESSIONS).await.json()), ["a1", "a2"]);

    let one = format!("{SESSIONS}/a1");
    // Another user's conversation is reported as not found.
    bob.get(&one).await.refuses(404, "Session 'a1' not found");
    bob.delete(&one).await.refuses(404, "Session 'a1' not found");
    bob.get(&format!("{SESSIONS}/none")).await.refuses(404, "Session 'none' not found");
    bob.delete(&format!("{SESSIONS}/none")).await.refuses(404, "Session 'none' not found");
    assert_eq!(admin.get(&one).await.json()["message_count"], 4);
    let gone = json!({"status": "success", "message": "Session 'a1' deleted successfully"});
    place.ada.delete(&one).await.is(200, &gone);
    place.ada.get(&one).await.refuses(404, "Session 'a1' not found");
    place.ada.delete(&one).await.refuses(404, "Session 'a1' not found");
    let gone = json!({"status": "success", "message": "Session 'b' deleted successfully"});
    admin.delete(&format!("{SESSIONS}/b")).await.is(200, &gone);
    // Other users can use the same id.
    let reply = bob.post(CHAT, &json!({"session_id": "a1", "message": "x"})).await;
    assert_eq!(reply.status, 200);
    assert_eq!(bob.get(&one).await.json()["message_count"], 2);
}
