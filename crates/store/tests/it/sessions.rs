use savoir_store::Speaker;

use crate::harness::for_each_database;

#[tokio::test(flavor = "multi_thread")]
async fn users_with_same_session_id_see_their_own() {
    for_each_database(async |place| {
        let sessions = place.database.sessions();
        let one = sessions.ensure("s", 1).await.unwrap();
        let two = sessions.ensure("s", 2).await.unwrap();
        assert_ne!(one.id, two.id);
        assert_eq!((one.own_id(), two.own_id()), ("s", "s"));
        assert_eq!(sessions.own("s", 2).await.unwrap(), Some(two.clone()));
        assert_eq!(sessions.own("s", 1).await.unwrap(), Some(one.clone()));
        assert_eq!(sessions.own("s", 3).await.unwrap(), None);
        assert_eq!(sessions.ensure("s", 2).await.unwrap(), two);
        sessions.append(&two.id, Speaker::User, "mine").await.unwrap();
        assert!(sessions.messages(&one.id, None).await.unwrap().is_empty());
        // The session of the first user is deleted; the second user's session stays.
        assert!(sessions.delete(&one.id, Some(1)).await.unwrap());
        assert_eq!(sessions.own("s", 2).await.unwrap().unwrap().message_count, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_lifecycle() {
    for_each_database(async |place| {
        let sessions = place.database.sessions();
        assert_eq!(sessions.get("s").await.unwrap(), None);
        let begun = sessions.ensure("s", 1).await.unwrap();
        assert_eq!((begun.user_id, begun.message_count), (Some(1), 0));
        assert_eq!(sessions.ensure("s", 1).await.unwrap(), begun, "it is begun once");
        sessions.append("s", Speaker::Assistant, "welcome").await.unwrap();
        sessions.append("s", Speaker::User, "first \u{1f600}").await.unwrap();
        sessions.append("s", Speaker::User, "second\0").await.unwrap();
        sessions.set_context("s", Some("kb"), None).await.unwrap();
        sessions.set_context("s", None, Some("w")).await.unwrap();
        let session = sessions.get("s").await.unwrap().unwrap();
        assert_eq!(session.kb_id.as_deref(), Some("kb"));
        assert_eq!(session.workflow_id.as_deref(), Some("w"));
        assert_eq!(session.message_count, 3);
        assert!(session.updated_at > session.created_at);

        let said = sessions.messages("s", None).await.unwrap();
        assert_eq!(said[0].speaker, Speaker::Assistant);
        let words: Vec<_> = said.iter().map(|m| m.content.as_str()).collect();
        assert_eq!(words, ["welcome", "first \u{1f600}", "second\u{fffd}"]);
        assert_eq!(sessions.messages("s", Some(2)).await.unwrap(), said[1..]);
        assert!(sessions.messages("s", Some(0)).await.unwrap().is_empty());

        sessions.ensure("other", 2).await.unwrap();
        let all = sessions.list(None).await.unwrap();
        assert_eq!(all.iter().map(|s| s.session.id.as_str()).collect::<Vec<_>>(), ["other", "s"]);
        let own = sessions.list(Some(1)).await.unwrap();
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].title.as_deref(), Some("first \u{1f600}"));
        assert_eq!(sessions.list(Some(2)).await.unwrap()[0].title, None);

        assert!(!sessions.delete("s", Some(2)).await.unwrap(), "it is of another");
        assert!(sessions.delete("s", Some(1)).await.unwrap());
        assert!(!sessions.delete("s", None).await.unwrap());
        assert!(sessions.delete("other", None).await.unwrap());
        assert!(sessions.messages("s", None).await.unwrap().is_empty());
        sessions.append("s", Speaker::User, "too late").await.unwrap();
        assert_eq!(sessions.get("s").await.unwrap(), None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_messages_get_distinct_positions() {
    for_each_database(async |place| {
        place.database.sessions().ensure("s", 1).await.unwrap();
        let other = place.again().await;
        let tasks: Vec<_> = (0..8)
            .map(|writer| {
                let database = if writer % 2 == 0 { place.database.clone() } else { other.clone() };
                tokio::spawn(async move {
                    for n in 0..10 {
                        let words = format!("{writer} {n}");
                        database.sessions().append("s", Speaker::User, &words).await.unwrap();
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let said = place.database.sessions().messages("s", None).await.unwrap();
        assert_eq!(said.len(), 80);
        for writer in 0..8 {
            let own: Vec<_> = said
                .iter()
                .filter_map(|m| m.content.strip_prefix(&format!("{writer} ")))
                .map(|n| n.parse::<u32>().unwrap())
                .collect();
            assert_eq!(own, (0..10).collect::<Vec<_>>());
        }
        let session = place.database.sessions().get("s").await.unwrap().unwrap();
        assert_eq!(session.message_count, 80);
    })
    .await;
}
