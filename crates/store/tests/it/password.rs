use std::time::Instant;

use savoir_store::{StoreError, hash_password, verify_password};

#[tokio::test(flavor = "multi_thread")]
async fn password_hash_round_trip() {
    let hash = hash_password("päss\0word").await.unwrap();
    assert!(hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{hash}");
    assert_ne!(hash, hash_password("päss\0word").await.unwrap(), "every hash has its own salt");
    assert!(verify_password("päss\0word", Some(&hash)).await.unwrap());
    assert!(!verify_password("pass", Some(&hash)).await.unwrap());
    assert!(!verify_password("nobody", None).await.unwrap());
    let error = verify_password("x", Some("plain")).await.unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }));
}

#[tokio::test(flavor = "multi_thread")]
async fn verification_takes_equally_long_without_account() {
    let hash = hash_password("p").await.unwrap();
    let time = async |hash: Option<&str>| {
        let mut best = std::time::Duration::MAX;
        for _ in 0..5 {
            let start = Instant::now();
            verify_password("q", hash).await.unwrap();
            best = best.min(start.elapsed());
        }
        best.as_secs_f64()
    };
    let (with, without) = (time(Some(&hash)).await, time(None).await);
    assert!(without > with / 3.0 && without < with * 3.0, "{with} {without}");
}
