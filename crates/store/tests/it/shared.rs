//! Tests of settings, rate limits, leases and usage, which all processes share.

use std::{collections::BTreeMap, time::Duration};

use savoir_store::{ModelRequest, SigningKey, Timestamp, TokenSums};

use crate::harness::for_each_database;

const MINUTE: Duration = Duration::from_mins(1);

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_shared() {
    for_each_database(async |place| {
        let settings = place.database.settings();
        assert_eq!(settings.get("a").await.unwrap(), None);
        assert_eq!(settings.put_if_absent("a", "1").await.unwrap(), "1");
        assert_eq!(settings.put_if_absent("a", "2").await.unwrap(), "1");
        settings.put("a", "3").await.unwrap();
        assert_eq!(settings.get("a").await.unwrap().as_deref(), Some("3"));
        assert!(!settings.take("a", "1").await.unwrap());
        let other = place.again().await;
        let (one, two) = (settings, other.settings());
        let (one, two) = tokio::join!(one.take("a", "3"), two.take("a", "3"));
        assert!(one.unwrap() ^ two.unwrap(), "true for exactly one");
        assert_eq!(settings.get("a").await.unwrap(), None);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_starts_agree_on_a_signing_key() {
    for_each_database(async |place| {
        let other = place.again().await;
        let tasks: Vec<_> = (0..8_i64)
            .map(|n| {
                let database = if n % 2 == 0 { place.database.clone() } else { other.clone() };
                tokio::spawn(async move {
                    let key = SigningKey {
                        id: format!("k{n}"),
                        pkcs8: vec![0, 255, 7],
                        created_at: Timestamp::from_micros(n),
                    };
                    database.settings().add_signing_key(&key, true).await.unwrap();
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        let settings = place.database.settings();
        let first = settings.signing_keys().await.unwrap();
        assert_eq!((first.len(), first[0].pkcs8.as_slice()), (1, [0_u8, 255, 7].as_slice()));
        let newest = SigningKey {
            id: "new".into(),
            pkcs8: vec![1],
            created_at: Timestamp::from_micros(100),
        };
        settings.add_signing_key(&newest, false).await.unwrap();
        assert_eq!(settings.signing_keys().await.unwrap()[0], newest);
        assert_eq!(settings.remove_signing_keys_before(Timestamp::now()).await.unwrap(), 1);
        let left = settings.signing_keys().await.unwrap();
        assert_eq!(left, [newest], "never the newest");
        futures::future::join_all((0..4).map(async |n| {
            let (id, created_at) = (n.to_string(), Timestamp::from_micros(n));
            let older = SigningKey { id, pkcs8: vec![2], created_at };
            settings.replace_signing_keys(&older).await.unwrap();
        }))
        .await;
        let left = settings.signing_keys().await.unwrap();
        assert_eq!((left.len(), left[0].pkcs8.as_slice()), (1, [2_u8].as_slice()));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limit_hits_of_processes_are_summed() {
    for_each_database(async |place| {
        let other = place.again().await;
        let tasks: Vec<_> = (0..20)
            .map(|n| {
                let database = if n % 2 == 0 { place.database.clone() } else { other.clone() };
                tokio::spawn(async move {
                    let mut counts = Vec::new();
                    for _ in 0..10 {
                        counts.push(database.rate_limits().hit("k", MINUTE).await.unwrap().count);
                    }
                    counts
                })
            })
            .collect();
        let mut counts = Vec::new();
        for task in tasks {
            counts.extend(task.await.unwrap());
        }
        counts.sort_unstable();
        assert_eq!(counts, (1..=200).collect::<Vec<u64>>());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rate_limit_window_starts_with_first_hit() {
    for_each_database(async |place| {
        let limits = place.database.rate_limits();
        let window = Duration::from_millis(300);
        let first = limits.hit("k", window).await.unwrap();
        let second = limits.hit("k", window).await.unwrap();
        assert_eq!((first.count, second.count), (1, 2));
        assert_eq!(first.resets_at, second.resets_at);
        assert_eq!(limits.sweep().await.unwrap(), 0);
        tokio::time::sleep(window).await;
        assert_eq!(limits.hit("k", window).await.unwrap().count, 1);
        tokio::time::sleep(window).await;
        assert_eq!(limits.sweep().await.unwrap(), 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lease_is_held_by_one_process() {
    for_each_database(async |place| {
        let leases = place.database.leases();
        let short = Duration::from_millis(200);
        let lease = leases.acquire("l", "a", MINUTE).await.unwrap().unwrap();
        assert_eq!(leases.acquire("l", "b", MINUTE).await.unwrap(), None);
        let renewed = leases.acquire("l", "a", short).await.unwrap().unwrap();
        assert!(renewed.until < lease.until);
        tokio::time::sleep(short).await;
        let taken = leases.acquire("l", "b", MINUTE).await.unwrap().unwrap();
        leases.release(&lease).await.unwrap();
        assert_eq!(leases.acquire("l", "a", MINUTE).await.unwrap(), None, "it was not a's");
        leases.release(&taken).await.unwrap();
        assert!(leases.acquire("l", "a", MINUTE).await.unwrap().is_some());

        let tasks: Vec<_> = (0..12)
            .map(|n| {
                let database = place.database.clone();
                tokio::spawn(async move {
                    database.leases().acquire("m", &n.to_string(), MINUTE).await.unwrap()
                })
            })
            .collect();
        let mut holders = 0;
        for task in tasks {
            holders += usize::from(task.await.unwrap().is_some());
        }
        assert_eq!(holders, 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_is_summed() {
    for_each_database(async |place| {
        let usage = place.database.usage();
        let start = Timestamp::now();
        for (user_id, provider, model) in
            [(Some(1), "p", "m"), (Some(1), "p", "n"), (Some(2), "q", "m"), (None, "q", "m")]
        {
            let spent =
                ModelRequest { user_id, provider, model, input_tokens: 10, output_tokens: 3 };
            usage.record(spent).await.unwrap();
        }
        let tokens = |n: u64| TokenSums { input_tokens: 10 * n, output_tokens: 3 * n, requests: n };
        let all = usage.summary(start, None).await.unwrap();
        assert_eq!(all.total, tokens(4));
        assert_eq!(
            all.by_model,
            BTreeMap::from([("m".into(), tokens(3)), ("n".into(), tokens(1))])
        );
        let one = usage.summary(start, Some(1)).await.unwrap();
        assert_eq!(one.total, tokens(2));
        assert_eq!(one.by_provider, BTreeMap::from([("p".into(), tokens(2))]));
        let later = usage.summary(Timestamp::now().plus(MINUTE), None).await.unwrap();
        assert_eq!(later.total, TokenSums::default());
        // Token counts are capped, so that their sum cannot overflow.
        for (provider, model) in [("r", "m"), ("r", "m"), ("s", "n")] {
            let (input_tokens, output_tokens) = (u64::MAX, u64::MAX);
            let spent =
                ModelRequest { user_id: None, provider, model, input_tokens, output_tokens };
            usage.record(spent).await.unwrap();
        }
        let all = usage.summary(start, None).await.unwrap();
        assert_eq!(all.total.requests, 7);
        assert!(all.total.input_tokens > 1_000_000_000, "{all:?}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_lasts_as_long_as_its_work_and_two_seconds_after_a_crash() {
    for_each_database(async |place| {
        let leases = place.database.leases();
        let lease = leases.hold("l").await.unwrap().expect("a lease");
        assert!(leases.hold("l").await.unwrap().is_none());
        let work = async {
            tokio::time::sleep(Duration::from_millis(2500)).await;
            leases.hold("l").await.unwrap().is_none()
        };
        assert_eq!(lease.during(work).await, Some(true), "it was renewed");
        let lease = leases.hold("l").await.unwrap().expect("it was released");
        // Nobody renews it after a crash.
        drop(lease);
        tokio::time::sleep(Duration::from_millis(2100)).await;
        assert!(leases.hold("l").await.unwrap().is_some());
    })
    .await;
}
