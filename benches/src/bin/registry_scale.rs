//! Measures a registry with very many generated skills: the time of an import, the time and size of
//! the search index, and response times over HTTP.
//!
//! `bench-registry-scale 100000,1000000` measures both sizes and prints how much slower the larger
//! one is. `SAVOIR_BENCH_POSTGRES` is the URL of a PostgreSQL server; the benchmark creates a
//! database for each size and drops it afterwards. `--sqlite` uses a SQLite file instead. `--ask N`
//! sends N requests of each kind.
//!
//! `--fill URL DATA` fills an existing, empty database and data folder and keeps them; `--filled
//! URL DATA` measures such a database again without filling it.

#![allow(clippy::cast_precision_loss, clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env,
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use made_up::{Bytes, Numbers};
use savoir_package::registry::Name;
use savoir_store::{Database, Storage, Timestamp};
use served::{Connection, Served};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

#[path = "../made_up.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod made_up;
#[path = "../served.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod served;

/// Number of connections that send requests concurrently.
const CONNECTIONS: u64 = 2;

struct Settings {
    sizes: Vec<u64>,
    /// URL of a PostgreSQL server; `None` for SQLite.
    postgres: Option<String>,
    /// Number of requests of each kind.
    requests: u64,
    /// Database URL and data folder given by `--fill` or `--filled`.
    existing: Option<(String, PathBuf)>,
    /// Whether to fill `existing` first.
    fill: bool,
}

fn settings() -> Result<Settings, String> {
    let sizes = vec![100_000, 1_000_000];
    let mut settings =
        Settings { sizes, postgres: None, requests: 2000, existing: None, fill: false };
    let mut sqlite = false;
    let mut words = env::args().skip(1);
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("`{word}` is not a number"));
    while let Some(word) = words.next() {
        match word.as_str() {
            "--sqlite" => sqlite = true,
            "--fill" | "--filled" => {
                let mut next =
                    || words.next().ok_or(format!("{word} takes an address and a folder"));
                settings.existing = Some((next()?, next()?.into()));
                settings.fill = word == "--fill";
            }
            "--ask" => settings.requests = number(&words.next().unwrap_or_default())?,
            sizes => settings.sizes = sizes.split(',').map(number).collect::<Result<_, _>>()?,
        }
    }
    if !sqlite && settings.existing.is_none() {
        let missing = "set SAVOIR_BENCH_POSTGRES to postgres://…, or use --sqlite";
        settings.postgres = Some(env::var("SAVOIR_BENCH_POSTGRES").map_err(|_| missing)?);
    }
    Ok(settings)
}

fn main() {
    let settings = match settings() {
        Ok(settings) => settings,
        Err(message) => {
            println!("usage: bench-registry-scale [ROWS,ROWS…] [--sqlite] [--ask N]: {message}");
            return;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let results: Vec<Vec<Times>> =
        settings.sizes.iter().map(|size| runtime.block_on(measure(&settings, *size))).collect();
    if let [first, .., last] = &results[..] {
        growth(first, last, &settings.sizes);
    }
}

/// Fills a new registry, serves it and measures requests.
async fn measure(settings: &Settings, skills: u64) -> Vec<Times> {
    if let Some((url, data)) = settings.existing.clone() {
        if settings.fill {
            fs::create_dir_all(&data).unwrap();
            fill(&data, Some(&url), skills).await;
        }
        let requests = settings.requests;
        let times = tokio::task::spawn_blocking(move || run(&data, Some(&url), skills, requests));
        return times.await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let temporary = TemporaryDatabase::create(settings.postgres.as_deref(), skills).await;
    let url = temporary.as_ref().map(|temporary| temporary.url.as_str());
    println!("\n## {skills} skills, {}\n", if url.is_some() { "PostgreSQL" } else { "SQLite" });
    fill(&data, url, skills).await;
    let requests = settings.requests;
    let url = url.map(str::to_owned);
    let times = tokio::task::spawn_blocking(move || run(&data, url.as_deref(), skills, requests));
    let times = times.await.unwrap();
    if let Some(temporary) = temporary {
        temporary.drop().await;
    }
    times
}

/// A database that is created for one size and dropped afterwards.
struct TemporaryDatabase {
    server: String,
    name: String,
    url: String,
}

impl TemporaryDatabase {
    async fn create(server: Option<&str>, skills: u64) -> Option<Self> {
        let server = server?.to_owned();
        let (before, _) = server.rsplit_once('/').unwrap();
        let name = format!("savoir_bench_{}_{skills}", std::process::id());
        let url = format!("{before}/{name}");
        Self::execute(&server, format!("CREATE DATABASE {name}")).await;
        Some(Self { server, name, url })
    }

    async fn execute(url: &str, statement: String) {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    async fn drop(self) {
        Self::execute(&self.server, format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

async fn fill(data: &Path, url: Option<&str>, skills: u64) {
    let storage = Storage::folder(data).unwrap();
    let database = match url {
        Some(url) => Database::open(url).await.unwrap(),
        None => Database::open_folder(data).await.unwrap(),
    };
    let registry = database.registry(&storage);
    let start = Instant::now();
    // All skills share one artifact, because only the database and the index are measured.
    let mut shared: Option<Bytes> = None;
    made_up::import(registry, skills, async |number| {
        if shared.is_none() {
            let zip = Numbers::new(number).bytes(3000);
            let skill_md = registry.put_blob(made_up::body(0).into_bytes().into()).await.unwrap();
            let (size, sha256) = (zip.len() as u64, registry.put_blob(zip.into()).await.unwrap());
            shared = Some(Bytes { sha256, size, skill_md });
        }
        shared.clone().unwrap()
    })
    .await;
    let took = start.elapsed().as_secs_f64();
    println!("imported in {took:.0} s, {:.0} per second", skills as f64 / took);
    database.close().await;
    if let Some(url) = url {
        // Autovacuum would do this after a while.
        TemporaryDatabase::execute(url, "VACUUM ANALYZE".to_owned()).await;
    }
}

fn run(data: &Path, url: Option<&str>, skills: u64, requests: u64) -> Vec<Times> {
    let server = Served::start(data, url);
    let built = server.wait_for_search(skills);
    thread::sleep(Duration::from_secs(5));
    let (seconds, size) = (built.as_secs_f64(), server.index_size());
    println!("search index built in {seconds:.0} s; {size} MB");
    println!("memory of the server, idle after that: {}", server.memory());
    let mut all = Vec::new();
    for (group, kinds) in [("metadata", METADATA), ("list", LIST), ("search", SEARCH)] {
        let mut together = Times { title: format!("{group}, all together"), times: Vec::new() };
        for (title, path) in kinds {
            let times =
                Times::take(title, server.address, requests, |numbers| path(numbers, skills));
            together.times.extend(&times.times);
            all.push(times);
        }
        together.times.sort_unstable();
        all.push(together);
    }
    println!("\n| milliseconds | p50 | p95 | p99 | max |\n| --- | ---: | ---: | ---: | ---: |");
    for times in &all {
        println!("{}", times.row());
    }
    println!("\nmemory of the server, after the run: {}", server.memory());
    all
}

type Kinds = &'static [(&'static str, fn(&mut Numbers, u64) -> String)];

/// Requests about one skill. Each request uses another skill, so that caches do not help.
const METADATA: Kinds = &[
    ("index file", |numbers, skills| {
        let name: Name = made_up::name(numbers.below(skills)).parse().unwrap();
        format!("/registry/index/v1/{}", name.index_path())
    }),
    ("detail", |numbers, skills| {
        format!("/registry/api/v1/skills/{}", made_up::name(numbers.below(skills)))
    }),
    ("version", |numbers, skills| {
        format!("/registry/api/v1/skills/{}/1.0.0", made_up::name(numbers.below(skills)))
    }),
];

/// Pages of the list of skills. Each cursor points after a random skill, so that no page repeats
/// and most pages are deep in the list.
const LIST: Kinds = &[
    ("page by name", |numbers, skills| list(&format!("cursor={}", cursor(numbers, skills)))),
    ("100 by name", |numbers, skills| {
        list(&format!("per_page=100&cursor={}", cursor(numbers, skills)))
    }),
    ("updated since", |numbers, skills| {
        list(&format!("updated={}", Timestamp::from_micros(made_up::at(numbers.below(skills)))))
    }),
    ("last changed", |numbers, skills| {
        list(&format!("sort=recent&cursor={}", time_cursor(numbers, skills)))
    }),
    ("of a tag", |numbers, _| list(&format!("tag={}", numbers.tag()))),
    ("of a tag, deep", |numbers, skills| {
        list(&format!("tag={}&cursor={}", numbers.tag(), cursor(numbers, skills)))
    }),
    ("of a tag, last changed", |numbers, skills| {
        list(&format!("tag={}&sort=recent&cursor={}", numbers.tag(), time_cursor(numbers, skills)))
    }),
    ("of a tier", |numbers, skills| {
        list(&format!("tier=experimental&cursor={}", cursor(numbers, skills)))
    }),
    ("of a tier without skills", |numbers, skills| {
        list(&format!("tier=verified&cursor={}", cursor(numbers, skills)))
    }),
    ("of an author", |numbers, _| list(&format!("author={}", numbers.author()))),
    ("of an author, last changed", |numbers, _| {
        list(&format!("author={}&sort=recent", numbers.author()))
    }),
    ("of a namespace", |numbers, _| list(&format!("namespace={}", numbers.namespace()))),
    ("of a namespace, last changed", |numbers, _| {
        list(&format!("namespace={}&sort=recent", numbers.namespace()))
    }),
    ("of a tag and an author", |numbers, _| {
        list(&format!("tag={}&author={}", numbers.tag(), numbers.author()))
    }),
    ("of a tag and a tier without skills", |numbers, _| {
        list(&format!("tag={}&tier=verified", numbers.tag()))
    }),
    ("of a tag and a namespace", |numbers, _| {
        list(&format!("tag={}&namespace={}", numbers.tag(), numbers.namespace()))
    }),
];

fn list(query: &str) -> String {
    format!("/registry/api/v1/skills?{query}")
}

/// A cursor after a random skill, for lists sorted by name.
fn cursor(numbers: &mut Numbers, skills: u64) -> String {
    made_up::id(numbers.below(skills))
}

/// A cursor after a random skill, for lists sorted by time.
fn time_cursor(numbers: &mut Numbers, skills: u64) -> String {
    let number = numbers.below(skills);
    format!("{}.{}", made_up::at(number), made_up::id(number))
}

const SEARCH: Kinds = &[
    ("one word", |numbers, _| words(&numbers.text(1))),
    ("two words", |numbers, _| words(&numbers.text(2))),
    ("three words", |numbers, _| words(&numbers.text(3))),
    ("exact name", |numbers, skills| words(&made_up::name(numbers.below(skills)))),
    ("while typing", |numbers, skills| {
        let name = made_up::name(numbers.below(skills));
        let last = name.rsplit('/').next().unwrap_or_default();
        words(&last[..3 + numbers.below(5) as usize])
    }),
    ("name with swapped letters", |numbers, skills| words(&swap_letters(numbers, skills))),
    ("phrase", |numbers, skills| {
        let body = made_up::body(numbers.below(skills));
        let from = numbers.below(100) as usize;
        let two: Vec<&str> = body.split(' ').skip(from).take(2).collect();
        words(&format!("\"{}\"", two.join(" ")))
    }),
    ("tag and word", |numbers, _| {
        let tag = numbers.tag();
        format!("{}&tag={tag}", words(&numbers.text(1)))
    }),
    ("tag", |numbers, _| format!("{}&tag={}", words(""), numbers.tag())),
    ("page 5 of two words", |numbers, _| format!("{}&page=5", words(&numbers.text(2)))),
];

fn words(text: &str) -> String {
    let mut path = "/registry/api/v1/search?q=".to_owned();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' => path.push(byte as char),
            _ => write!(path, "%{byte:02X}").unwrap(),
        }
    }
    path
}

/// The words of a skill's name without the number, with two letters swapped.
fn swap_letters(numbers: &mut Numbers, skills: u64) -> String {
    let name = made_up::name(numbers.below(skills));
    let last = name.rsplit('/').next().unwrap_or_default();
    let mut letters: Vec<char> =
        last.split('-').take(2).collect::<Vec<_>>().join(" ").chars().collect();
    let at = numbers.below(letters.len() as u64 - 1) as usize;
    letters.swap(at, at + 1);
    letters.into_iter().collect()
}

/// Response times of one kind of request, sorted.
struct Times {
    title: String,
    times: Vec<Duration>,
}

impl Times {
    fn take(
        title: &str,
        address: SocketAddr,
        requests: u64,
        path: impl Fn(&mut Numbers) -> String + Sync,
    ) -> Self {
        let run = |seed: u64| {
            let mut numbers = Numbers::new(seed ^ 0x1234_5678);
            let mut connection = Connection::open(address);
            let answer = |_| {
                let path = path(&mut numbers);
                let start = Instant::now();
                let response = connection.get(&path, "");
                let took = start.elapsed();
                let status = response.status;
                assert_eq!(status, 200, "{path}: {}", response.text());
                took
            };
            (0..requests / CONNECTIONS).map(answer).collect::<Vec<_>>()
        };
        let mut times: Vec<Duration> = thread::scope(|scope| {
            let run = &run;
            let threads: Vec<_> =
                (0..CONNECTIONS).map(|seed| scope.spawn(move || run(seed))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        times.sort_unstable();
        Self { title: title.to_owned(), times }
    }

    fn at(&self, part: usize) -> f64 {
        let last = self.times.len() - 1;
        self.times[(self.times.len() * part / 1000).min(last)].as_secs_f64() * 1000.0
    }

    fn row(&self) -> String {
        let [half, most, nearly, all] = [500, 950, 990, 1000].map(|part| self.at(part));
        format!("| {} | {half:.2} | {most:.2} | {nearly:.2} | {all:.2} |", self.title)
    }
}

fn growth(first: &[Times], last: &[Times], sizes: &[u64]) {
    let (small, large) = (sizes[0], sizes[sizes.len() - 1]);
    println!("\n## From {small} to {large} skills\n");
    println!("| ratio | p50 | p99 |\n| --- | ---: | ---: |");
    for (first, last) in first.iter().zip(last) {
        let [half, nearly] = [500, 990].map(|part| last.at(part) / first.at(part));
        println!("| {} | {half:.2} | {nearly:.2} |", first.title);
    }
}
