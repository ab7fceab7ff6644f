use std::time::Duration;

use savoir_store::{Database, NewToken, Role, Timestamp, registry::Actor};

use crate::harness::for_each_database;

const HOUR: Duration = Duration::from_hours(1);

fn by() -> Actor {
    Actor::operator()
}

#[tokio::test(flavor = "multi_thread")]
async fn account_lifecycle() {
    for_each_database(async |place| {
        let accounts = place.database.accounts();
        assert!(!accounts.has_admin().await.unwrap());
        let ada = accounts.create(" Ada@Example.ORG ", "hash", Role::Admin).await.unwrap().unwrap();
        assert_eq!((ada.email.as_str(), ada.active), ("ada@example.org", true));
        assert!(ada.is_admin() && accounts.has_admin().await.unwrap());
        assert!(accounts.create("ada@example.org", "x", Role::User).await.unwrap().is_none());
        let bob = accounts.create("bob@example.org", "b", Role::User).await.unwrap().unwrap();
        assert!(bob.id > ada.id);
        let list = accounts.list().await.unwrap();
        assert_eq!(list, [bob.clone(), ada.clone()]);
        assert_eq!(
            accounts.by_email("ADA@example.org").await.unwrap(),
            Some((ada.clone(), "hash".to_owned()))
        );

        assert!(accounts.set_active(bob.id, false).await.unwrap());
        assert!(!accounts.set_active(bob.id, false).await.unwrap());
        assert!(!accounts.by_id(bob.id).await.unwrap().unwrap().active);
        assert!(accounts.set_role(bob.id, Role::Admin).await.unwrap());
        assert!(accounts.by_id(bob.id).await.unwrap().unwrap().is_admin());

        assert!(accounts.delete(&by(), bob.id).await.unwrap());
        assert!(!accounts.delete(&by(), bob.id).await.unwrap());
        assert_eq!(accounts.by_id(bob.id).await.unwrap(), None);
        assert_eq!(accounts.by_email("bob@example.org").await.unwrap(), None);
        let other = accounts.create("bob@example.org", "c", Role::User).await.unwrap().unwrap();
        assert!(other.id > bob.id, "numbers are never given again");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn last_active_administrator_cannot_be_removed() {
    for_each_database(async |place| {
        let accounts = place.database.accounts();
        let ada = accounts.create("ada@example.org", "h", Role::Admin).await.unwrap().unwrap();
        let bob = accounts.create("bob@example.org", "h", Role::Admin).await.unwrap().unwrap();
        assert!(accounts.set_active(bob.id, false).await.unwrap());
        // Bob is an administrator, but cannot log in.
        assert!(!accounts.set_active(ada.id, false).await.unwrap());
        assert!(!accounts.set_role(ada.id, Role::User).await.unwrap());
        assert!(!accounts.delete(&by(), ada.id).await.unwrap());
        assert!(accounts.has_admin().await.unwrap());
        assert!(accounts.set_role(bob.id, Role::User).await.unwrap());
        assert!(accounts.set_active(bob.id, true).await.unwrap());
        assert!(accounts.set_role(bob.id, Role::Admin).await.unwrap());
        assert!(accounts.set_role(ada.id, Role::User).await.unwrap());
        assert!(accounts.delete(&by(), ada.id).await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn second_account_of_an_address_is_rejected() {
    for_each_database(async |place| {
        let other = place.again().await;
        let mut tasks = Vec::new();
        for n in 0..16 {
            let database = if n % 2 == 0 { place.database.clone() } else { other.clone() };
            tasks.push(tokio::spawn(async move {
                database.accounts().create("same@example.org", "h", Role::User).await.unwrap()
            }));
        }
        let mut made = 0;
        for task in tasks {
            made += usize::from(task.await.unwrap().is_some());
        }
        assert_eq!(made, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_tokens_are_revoked_by_logout_and_password_change() {
    for_each_database(async |place| {
        let accounts = place.database.accounts();
        let user = accounts.create("u@example.org", "h", Role::User).await.unwrap().unwrap();
        let issued = Timestamp::now();
        let until = issued.plus(HOUR);
        assert_eq!(accounts.of_token(user.id, "t1", issued).await.unwrap(), Some(user.clone()));
        assert_eq!(accounts.of_token(user.id + 1, "t1", issued).await.unwrap(), None);

        assert!(accounts.revoke("t1", until).await.unwrap());
        assert!(!accounts.revoke("t1", until).await.unwrap());
        assert!(!accounts.revoke("over", issued.minus(HOUR)).await.unwrap());
        assert_eq!(accounts.of_token(user.id, "t1", issued).await.unwrap(), None);
        assert!(accounts.of_token(user.id, "t2", issued).await.unwrap().is_some());

        assert!(accounts.set_active(user.id, false).await.unwrap());
        assert!(!accounts.of_token(user.id, "t2", issued).await.unwrap().unwrap().active);
        assert!(accounts.set_password(&by(), user.id, "h2").await.unwrap());
        assert_eq!(accounts.of_token(user.id, "t2", issued).await.unwrap(), None);
        assert!(accounts.of_token(user.id, "t3", Timestamp::now()).await.unwrap().is_some());
        assert!(accounts.delete(&by(), user.id).await.unwrap());
        assert_eq!(accounts.of_token(user.id, "t3", Timestamp::now()).await.unwrap(), None);
        assert!(!accounts.set_password(&by(), user.id, "h3").await.unwrap());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn api_token_lifecycle() {
    for_each_database(async |place| {
        let accounts = place.database.accounts();
        let user = accounts.create("u@example.org", "h", Role::User).await.unwrap().unwrap();
        let scopes = ["run".to_owned(), "read".to_owned()];
        let new = |digest, expires_at| NewToken {
            user_id: user.id,
            name: "laptop",
            scopes: &scopes,
            digest,
            expires_at,
            since: Timestamp::now(),
        };
        let token = accounts.add_token(&by(), new("d1", None)).await.unwrap().unwrap();
        let over = new("d2", Some(Timestamp::now().minus(HOUR)));
        let second = accounts.add_token(&by(), over).await.unwrap().unwrap();
        assert!(accounts.add_token(&by(), new("d1", None)).await.is_err(), "a secret is used once");
        assert_eq!(accounts.by_token_digest("d2").await.unwrap(), None, "it is over");
        assert_eq!(accounts.by_token_digest("d3").await.unwrap(), None);
        let (found, owner) = accounts.by_token_digest("d1").await.unwrap().unwrap();
        assert_eq!((found, owner), (token.clone(), user.clone()));
        let list = accounts.tokens(user.id).await.unwrap();
        assert_eq!(list.iter().map(|t| &t.id).collect::<Vec<_>>(), [&second.id, &token.id]);
        assert!(list[1].last_used_at.is_some() && list[0].last_used_at.is_none());
        assert_eq!(list[1].scopes, scopes);

        assert!(!accounts.remove_token(&by(), user.id + 1, &token.id).await.unwrap());
        assert!(accounts.remove_token(&by(), user.id, &token.id).await.unwrap());
        assert_eq!(accounts.by_token_digest("d1").await.unwrap(), None);
        accounts.add_token(&by(), new("d4", None)).await.unwrap();
        let before = new("d5", None);
        accounts.set_password(&by(), user.id, "h2").await.unwrap();
        assert_eq!(
            accounts.add_token(&by(), before).await.unwrap(),
            None,
            "it was asked for before"
        );
        assert!(accounts.add_token(&by(), new("d6", None)).await.unwrap().is_some());
        accounts.delete(&by(), user.id).await.unwrap();
        assert_eq!(accounts.by_token_digest("d6").await.unwrap(), None);
        assert_eq!(accounts.add_token(&by(), new("d7", None)).await.unwrap(), None);
    })
    .await;
}

/// Another process drops its cached accounts when this one changes an account.
#[tokio::test(flavor = "multi_thread")]
async fn changes_by_another_process_invalidate_the_cache() {
    for_each_database(async |place| {
        let other = place.again().await;
        let (here, there) = (place.database.accounts(), other.accounts());
        here.create("admin@example.org", "h", Role::Admin).await.unwrap();
        let user = here.create("u@example.org", "h", Role::User).await.unwrap().unwrap();
        let (id, mut issued) = (user.id, Timestamp::now());
        let scopes = ["read".to_owned()];
        for round in 0..20 {
            let digest = format!("d{round}");
            let new = NewToken {
                user_id: id,
                name: "n",
                scopes: &scopes,
                digest: &digest,
                expires_at: Some(Timestamp::now().plus(HOUR)),
                since: Timestamp::now(),
            };
            let token = there.add_token(&by(), new).await.unwrap().unwrap();
            let signed = format!("t{round}");
            for _ in 0..2 {
                let found = here.of_token(id, &signed, issued).await.unwrap().unwrap();
                assert_eq!((found.active, found.is_admin()), (true, round % 2 == 1));
                assert!(here.by_token_digest(&digest).await.unwrap().unwrap().1.active);
            }
            assert!(there.set_active(id, false).await.unwrap());
            assert!(!here.of_token(id, &signed, issued).await.unwrap().unwrap().active);
            assert!(!here.by_token_digest(&digest).await.unwrap().unwrap().1.active);
            assert!(there.set_active(id, true).await.unwrap());
            // A login from before the account was disabled stays invalid.
            assert_eq!(here.of_token(id, &signed, issued).await.unwrap(), None);
            issued = Timestamp::now();
            let role = if round % 2 == 0 { Role::Admin } else { Role::User };
            assert!(there.set_role(id, role).await.unwrap());
            let found = here.of_token(id, &signed, issued).await.unwrap().unwrap();
            assert_eq!((found.active, found.role), (true, role));
            assert!(there.revoke(&signed, issued.plus(HOUR)).await.unwrap());
            assert_eq!(here.of_token(id, &signed, issued).await.unwrap(), None);
            assert!(here.by_token_digest(&digest).await.unwrap().is_some());
            assert!(there.remove_token(&by(), id, &token.id).await.unwrap());
            assert_eq!(here.by_token_digest(&digest).await.unwrap(), None);
        }
        assert!(here.of_token(id, "last", issued).await.unwrap().is_some());
        assert!(there.set_password(&by(), id, "h2").await.unwrap());
        assert_eq!(here.of_token(id, "last", issued).await.unwrap(), None);
        assert!(here.of_token(id, "last", Timestamp::now()).await.unwrap().is_some());
        assert!(there.delete(&by(), id).await.unwrap());
        assert_eq!(here.of_token(id, "last", Timestamp::now()).await.unwrap(), None);
        other.close().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn symlinked_database_shares_the_account_cache() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real.sqlite"), folder.path().join("link.sqlite"));
    let here = Database::open(&format!("sqlite://{}", real.display())).await.unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let there = Database::open(&format!("sqlite://{}", link.display())).await.unwrap();
    let user = here.accounts().create("u@example.org", "h", Role::User).await.unwrap().unwrap();
    let issued = Timestamp::now();
    let found = async || here.accounts().of_token(user.id, "t", issued).await.unwrap();
    assert!(found().await.is_some() && found().await.is_some());
    assert!(there.accounts().set_password(&by(), user.id, "h2").await.unwrap());
    assert_eq!(found().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_logins_are_counted() {
    for_each_database(async |place| {
        let accounts = place.database.accounts();
        let start = Timestamp::now();
        let note = async |name| accounts.record_failure(name, start).await.unwrap();
        let counts = futures::future::join_all((0..4).map(|_| note("a"))).await;
        let mut counts: Vec<_> = counts.into_iter().map(|noted| (noted.count, noted.id)).collect();
        counts.sort();
        assert_eq!(counts.iter().map(|(count, _)| *count).collect::<Vec<_>>(), [1, 2, 3, 4]);
        accounts.remove_failure(&counts[0].1).await.unwrap();
        assert_eq!(note("b").await.count, 1);
        let (count, first) = accounts.failures("a", start).await.unwrap();
        assert!(count == 3 && first.unwrap() >= start);
        assert_eq!(accounts.failures("a", Timestamp::now().plus(HOUR)).await.unwrap(), (0, None));
        accounts.clear_failures("a").await.unwrap();
        assert_eq!(accounts.failures("a", start).await.unwrap(), (0, None));
        assert_eq!(accounts.failures("b", start).await.unwrap().0, 1);
    })
    .await;
}
