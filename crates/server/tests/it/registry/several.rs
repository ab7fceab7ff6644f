//! Tests several processes on one registry.

use serde_json::json;

use super::{API, is_yanked, publish};
use crate::harness::for_each_server;

#[tokio::test]
async fn changes_of_one_server_are_visible_to_the_other() {
    for_each_server(
        |_| {},
        async |server| {
            // SQLite supports only one process.
            if server.database.kind() == savoir_store::DatabaseKind::Sqlite {
                return;
            }
            let other = server.beside().await;
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let route = format!("{API}/skills/acme/tool/1.0.0/yank");
            for round in 0..10 {
                let yanked = round % 2 == 0;
                // Fills the cache of the other process.
                for _ in 0..3 {
                    assert_eq!(is_yanked(&other, "acme/tool").await, !yanked);
                }
                ada.post(&route, &json!({"yanked": yanked})).await.ok(200);
                assert_eq!(is_yanked(&other, "acme/tool").await, yanked, "round {round}");
            }
        },
    )
    .await;
}
