//! Speed tests with many rows. `SAVOIR_TEST_ROWS` sets their number; the results are printed.

use std::time::{Duration, Instant};

use savoir_skill::permission::Tier;
use savoir_store::registry::{
    Actor, Filter, Namespace, Order, PackageName, PackageRecord, Record, Registry, ScanResult,
    ScanVerdict, SignatureRecord, VersionFacts, VersionRecord,
};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

use super::{Shop, for_each_registry, name, version};

fn rows() -> u64 {
    std::env::var("SAVOIR_TEST_ROWS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000)
}

fn package_name(n: u64) -> PackageName {
    let place = match n % 4 {
        0 => String::new(),
        1 => "anon/".to_owned(),
        _ => format!("team{}/", n % 1000),
    };
    name(&format!("{place}skill-{n:07}"))
}

fn record(n: u64) -> Record {
    let at = 1_700_000_000_000_000 + i64::try_from(n).unwrap() * 1_000_000;
    let facts = VersionFacts {
        description: format!("Skill number {n} does something that is worth a sentence of text"),
        tags: vec![format!("tag{}", n % 50), format!("rare{}", n % 5000), "all".to_owned()],
        author: Some(format!("author{}", n % 2000)),
        license: Some("MIT".to_owned()),
        needs: vec![format!("skill-{:07}@>=1.0.0", n / 2 * 4)],
        permissions: vec!["network:read".to_owned()],
        dialect: "gaia".to_owned(),
        ..VersionFacts::default()
    };
    let owner_scope = package_name(n).owner_scope();
    let signature = SignatureRecord {
        owner_scope: owner_scope.to_string(),
        key_id: "k".to_owned(),
        state: "active".to_owned(),
        record: "{}".to_owned(),
        added_by: None,
        added_at: at,
    };
    let report = serde_json::json!({"findings": []});
    let one = |text: String| VersionRecord {
        version: text,
        claimed: Some("community".to_owned()),
        integrity: "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".to_owned(),
        sha256: format!("{n:064x}"),
        size: 1234,
        skill_md: format!("{:064x}", n + 1_000_000_000),
        facts: facts.clone(),
        scan: Some(ScanResult { verdict: ScanVerdict::Allow, report: report.clone() }),
        scanned_at: Some(at),
        published_at: at,
        signatures: if n.is_multiple_of(100) { vec![signature.clone()] } else { Vec::new() },
        ..VersionRecord::default()
    };
    let versions =
        (0..=u64::from(n.is_multiple_of(10))).map(|minor| one(format!("1.{minor}.0"))).collect();
    Record::Package(Box::new(PackageRecord {
        name: package_name(n),
        created_by: None,
        created_at: at,
        updated_at: at,
        deprecated: None,
        versions,
    }))
}

async fn fill(registry: Registry<'_>, rows: u64) -> Duration {
    let start = Instant::now();
    let mut import = registry.import(&Actor::operator()).await.unwrap();
    for n in 0..rows {
        import.push(record(n)).await.unwrap();
    }
    let done = import.finish().await.unwrap();
    assert_eq!(done.packages, rows);
    start.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn last_page_is_as_fast_as_first() {
    for_each_registry(async |shop| {
        if shop.place.pgvector {
            return;
        }
        // SQLite is meant for smaller registries.
        let most = if shop.place.is_sqlite() { 20_000 } else { u64::MAX };
        let (registry, rows) = (shop.registry(), rows().min(most));
        let filled = fill(registry, rows).await;
        shop.place.raw(if shop.place.is_sqlite() { "ANALYZE" } else { "VACUUM ANALYZE" }).await;
        say(&format!("{:?}: {rows} packages in {filled:?}", shop.database.kind()));
        let last = package_name(rows - 1);
        let cursor = |n: u64| {
            let at = 1_700_000_000_000_000 + n * 1_000_000;
            format!("{at}.{}", package_name(n)).parse().unwrap()
        };
        let by_name = "team500/skill-0000000".parse().unwrap();
        let tag = |text: &str| Filter { tag: Some(text.to_owned()), ..Filter::default() };
        let author = Filter { author: Some("author7".to_owned()), ..Filter::default() };
        let tier = |tier| Filter { tier: Some(tier), ..Filter::default() };
        let namespace =
            Filter { namespace: Some(Namespace::parse("team7").unwrap()), ..Filter::default() };
        let recent = Order::Recent { since: None };
        let lists = [
            ("first page", Filter::default(), Order::Name, None),
            ("deep page", Filter::default(), Order::Name, Some(&by_name)),
            ("tag of all", tag("all"), Order::Name, Some(&by_name)),
            ("tag of some", tag("tag7"), Order::Name, None),
            ("tag of few", tag("rare7"), Order::Name, None),
            ("tag, recent", tag("tag7"), recent, None),
            ("tag of few, recent", tag("rare7"), recent, None),
            ("author", author.clone(), Order::Name, None),
            ("author, recent", author.clone(), recent, None),
            ("verified, recent", tier(Tier::Verified), recent, None),
            ("community, recent", tier(Tier::Community), recent, None),
            ("community", tier(Tier::Community), Order::Name, None),
            ("verified, of which are none", tier(Tier::Verified), Order::Name, None),
            ("namespace", namespace.clone(), Order::Name, None),
            ("namespace, recent", namespace, recent, None),
            ("author and tier", Filter { tier: Some(Tier::Verified), ..author }, Order::Name, None),
            ("recent", Filter::default(), recent, None),
        ];
        for (what, filter, order, after) in &lists {
            let time = times(async || {
                registry.list(filter, *order, *after, 20).await.unwrap();
            });
            report(shop, what, time.await);
        }
        let middle = cursor(rows / 2);
        let time = times(async || {
            registry.list(&Filter::default(), recent, Some(&middle), 20).await.unwrap();
        });
        report(shop, "recent, deep", time.await);
        let time = times(async || drop(registry.index(&last).await.unwrap().unwrap()));
        report(shop, "index", time.await);
        let time = times(async || drop(registry.package(&last).await.unwrap().unwrap()));
        report(shop, "package", time.await);
        let one = version("1.0.0");
        let time = times(async || drop(registry.version(&last, &one).await.unwrap()));
        report(shop, "version", time.await);
        let new = super::draft("team500/newcomer", "1.0.0");
        let start = Instant::now();
        new.publish(registry, &shop.admin()).await.unwrap();
        say(&format!("{:?}: publish: {:?}", shop.database.kind(), start.elapsed()));
        if !shop.place.is_sqlite() && rows >= 50_000 {
            plans_use_indexes(shop).await;
        }
    })
    .await;
}

/// Returns the median and the 99th percentile.
async fn times(work: impl AsyncFn()) -> (Duration, Duration) {
    let mut times = Vec::new();
    let count = if rows() >= 50_000 { 300 } else { 20 };
    for _ in 0..count {
        let start = Instant::now();
        work().await;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    (times[count / 2], times[count * 99 / 100])
}

fn report(shop: &Shop<'_>, what: &str, (half, most): (Duration, Duration)) {
    say(&format!("{:?}: {what}: p50 {half:?}, p99 {most:?}", shop.database.kind()));
    // A generous limit, which counting or sorting all rows would still exceed by far.
    assert!(half < Duration::from_millis(100), "{what} took {half:?}");
}

#[expect(clippy::print_stderr, reason = "figures are there to be read")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Checks the query plans of PostgreSQL for the statements that the store runs.
async fn plans_use_indexes(shop: &Shop<'_>) {
    let mut connection = sqlx::AnyConnection::connect(&shop.place.url).await.unwrap();
    let listed = "SELECT p.id, p.description FROM packages p WHERE p.latest IS NOT NULL";
    let tagged =
        "SELECT p.id, p.description FROM packages p JOIN package_tags t ON t.package = p.id
         WHERE p.latest IS NOT NULL";
    for (statement, index) in [
        ("SELECT index_text FROM packages WHERE id = 'team7/x'".to_owned(), "packages_pkey"),
        (format!("{listed} AND p.id > 'team5/x' ORDER BY p.id LIMIT 21"), "packages_pkey"),
        (
            format!("{listed} AND p.tier = 2 AND p.id > 'a/b' ORDER BY p.id LIMIT 21"),
            "packages_by_tier",
        ),
        (format!("{listed} AND p.author = 'author7' ORDER BY p.id LIMIT 21"), "packages_by_author"),
        (
            format!(
                "{listed} AND (p.updated_at, p.id) < (1700001000000000, 'a/b')
                ORDER BY p.updated_at DESC, p.id DESC LIMIT 21"
            ),
            "packages_by_time",
        ),
        (
            format!(
                "{tagged} AND t.tag = 'rare7' AND t.package > 'a/b' AND p.id > 'a/b'
                 ORDER BY t.package LIMIT 21"
            ),
            "package_tags_pkey",
        ),
        (
            format!(
                "{tagged} AND t.tag = 'all' AND t.package > 'team5/x' AND p.id > 'team5/x'
                 ORDER BY t.package LIMIT 21"
            ),
            "package_tags_pkey",
        ),
        (
            format!(
                "{tagged} AND t.tag = 'tag7' ORDER BY t.updated_at DESC, t.package DESC LIMIT 21"
            ),
            "package_tags_by_time",
        ),
        (
            "SELECT version FROM versions WHERE package = 'team7/x' AND withdrawn_at IS NULL
                ORDER BY sort_key DESC"
                .to_owned(),
            "versions_pkey",
        ),
        ("SELECT 1 FROM versions WHERE sha256 = 'x'".to_owned(), "versions_by_artefact"),
        ("SELECT 1 FROM versions WHERE skill_md = 'x'".to_owned(), "versions_by_skill_md"),
        (
            "SELECT seq FROM registry_log WHERE seq > 5 ORDER BY seq LIMIT 100".to_owned(),
            "registry_log",
        ),
        (
            "SELECT package FROM versions WHERE verdict IS NULL AND withdrawn_at IS NULL
                ORDER BY package, sort_key LIMIT 10"
                .to_owned(),
            "versions_not_scanned",
        ),
        (
            "SELECT DISTINCT package FROM signatures WHERE holding = 'team7' AND key_id = 'k'
                AND state = 'active' ORDER BY package"
                .to_owned(),
            "signatures",
        ),
    ] {
        let explain = AssertSqlSafe(format!("EXPLAIN (ANALYZE) {statement}"));
        let rows = sqlx::query(explain).fetch_all(&mut connection).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        let time = plan.lines().find(|line| line.starts_with("Execution")).unwrap_or_default();
        say(&format!("{index}: {time}"));
        assert!(plan.contains(index), "{statement}\n{plan}");
        assert!(!plan.contains("Seq Scan on packages"), "{statement}\n{plan}");
        assert!(!plan.contains("Seq Scan on versions"), "{statement}\n{plan}");
    }
    connection.close().await.unwrap();
}
