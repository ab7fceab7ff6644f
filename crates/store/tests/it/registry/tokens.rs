//! Tests of the audit log entries about tokens.

use std::time::Duration;

use savoir_store::{
    ApiToken, NewToken, Timestamp, User,
    registry::{Actor, AuditAction, AuditFilter},
};
use serde_json::json;
use sqlx::Connection as _;

use super::{Shop, for_each_registry};

fn new<'a>(user: &User, digest: &'a str, scopes: &'a [String]) -> NewToken<'a> {
    let (name, since) = ("ci", Timestamp::now());
    NewToken { user_id: user.id, name, scopes, digest, expires_at: None, since }
}

async fn make(shop: &Shop<'_>, user: &User, scope: &str) -> ApiToken {
    let (digest, scopes) = (uuid::Uuid::new_v4().to_string(), [scope.to_owned()]);
    let new = new(user, &digest, &scopes);
    shop.database.accounts().add_token(&Actor::person(user), new).await.unwrap().unwrap()
}

/// A log entry about a token: action, account, token that was used, token that changed.
type TokenEvent = (AuditAction, Option<i64>, Option<String>, String);

async fn token_events(shop: &Shop<'_>) -> Vec<TokenEvent> {
    let entries = shop.registry().audit(&AuditFilter::default(), None, 100).await.unwrap();
    let token_events = entries.into_iter().rev().map(|entry| {
        let id = entry.details["id"].as_str().unwrap_or_default().to_owned();
        (entry.change.act, entry.account, entry.token, id)
    });
    token_events.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_lists_tokens_with_registry_scopes() {
    for_each_registry(async |shop| {
        let accounts = shop.database.accounts();
        let (alice, bob, admin) = (&shop.alice, &shop.bob, &shop.admin);
        let one = make(shop, alice, "registry:publish:acme").await;
        let two = make(shop, alice, "admin").await;
        let three = make(shop, alice, "registry:read").await;
        let four = make(shop, bob, "registry:read").await;
        make(shop, alice, "chat").await;
        make(shop, bob, "skills:read").await;
        let mut over = new(alice, "over", &three.scopes);
        over.expires_at = Some(Timestamp::now().plus(Duration::from_millis(1)));
        let over = accounts.add_token(&shop.alice(), over).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(!accounts.remove_token(&shop.bob(), bob.id, &one.id).await.unwrap());
        let itself = Actor::program(alice, &one);
        assert!(accounts.remove_token(&itself, alice.id, &one.id).await.unwrap());
        assert!(!accounts.remove_token(&itself, alice.id, &one.id).await.unwrap());
        assert!(accounts.set_password(&Actor::operator(), alice.id, "h2").await.unwrap());
        assert!(accounts.delete(&shop.admin(), bob.id).await.unwrap());
        assert!(!accounts.set_password(&Actor::operator(), bob.id, "h2").await.unwrap());
        let made = |token: &ApiToken| {
            (AuditAction::TokenMade, Some(token.user_id), None, token.id.clone())
        };
        let ended = |by: Option<i64>, token: &ApiToken| {
            (AuditAction::TokenEnded, by, None, token.id.clone())
        };
        let mut token_events = token_events(shop).await;
        // Tokens that were revoked together may be logged in any order.
        token_events[6..8].sort_by_key(|event| event.3 != two.id);
        let with = (AuditAction::TokenEnded, Some(alice.id), Some(one.id.clone()), one.id.clone());
        assert_eq!(
            token_events,
            [
                made(&one),
                made(&two),
                made(&three),
                made(&four),
                made(&over),
                with,
                ended(None, &two),
                ended(None, &three),
                ended(Some(admin.id), &four),
            ]
        );
        let last = shop.registry().audit(&AuditFilter::default(), None, 1).await.unwrap();
        let details = json!({"id": four.id, "name": "ci", "user_id": bob.id,
            "scopes": ["registry:read"], "expires_at": null, "why": "the account was deleted"});
        assert_eq!(last[0].details, details);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn token_change_fails_if_it_cannot_be_logged() {
    for_each_registry(async |shop| {
        let accounts = shop.database.accounts();
        let token = make(shop, &shop.alice, "registry:read").await;
        shop.place.raw("ALTER TABLE registry_log RENAME TO away").await;
        let alice = shop.alice.id;
        let actor = shop.alice();
        assert!(accounts.remove_token(&actor, alice, &token.id).await.is_err());
        assert!(accounts.set_password(&actor, alice, "h2").await.is_err());
        assert!(accounts.delete(&shop.admin(), alice).await.is_err());
        let unlogged = new(&shop.alice, "unlogged", &token.scopes);
        assert!(accounts.add_token(&actor, unlogged).await.is_err());
        shop.place.raw("ALTER TABLE away RENAME TO registry_log").await;
        assert_eq!(accounts.tokens(alice).await.unwrap(), [token]);
        let (_, hash) = accounts.by_email("alice@example.org").await.unwrap().unwrap();
        assert_eq!(hash, "h");
    })
    .await;
}

/// Only PostgreSQL runs two write transactions at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn token_creation_waits_for_password_change() {
    for_each_registry(async |shop| {
        if shop.place.is_sqlite() {
            return;
        }
        let mut other = sqlx::AnyConnection::connect(&shop.place.url).await.unwrap();
        let mut change = other.begin().await.unwrap();
        sqlx::query("UPDATE users SET tokens_since = $2 WHERE id = $1")
            .bind(shop.alice.id)
            .bind(Timestamp::now().plus(Duration::from_secs(1)).micros())
            .execute(&mut *change)
            .await
            .unwrap();
        let (database, alice, actor) = (shop.database.clone(), shop.alice.clone(), shop.alice());
        let made = tokio::spawn(async move {
            let scopes = ["registry:read".to_owned()];
            database.accounts().add_token(&actor, new(&alice, "d", &scopes)).await.unwrap()
        });
        tokio::time::sleep(Duration::from_millis(300)).await;
        change.commit().await.unwrap();
        assert_eq!(made.await.unwrap(), None);
    })
    .await;
}
