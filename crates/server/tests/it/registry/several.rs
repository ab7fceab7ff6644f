//! Several processes on one registry.

use serde_json::json;

use super::{API, is_yanked, publish};
use crate::harness::for_each_server;

#[tokio::test]
async fn what_one_says_the_other_knows() {
    for_each_server(
        |_| {},
        async |server| {
            // With a file there is one process.
            if server.database.kind() == savoir_store::DatabaseKind::Sqlite {
                return;
            }
            let other = server.beside().await;
            let ada = server.register("ada@example.org").await;
            publish(server, &ada, "acme/tool", "1.0.0").await;
            let route = format!("{API}/skills/acme/tool/1.0.0/yank");
            for round in 0..10 {
                let yanked = round % 2 == 0;
                // The other one remembers what is so now.
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
