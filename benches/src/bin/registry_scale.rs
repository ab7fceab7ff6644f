//! A registry with very many made-up skills: how long an import takes, how long the search index takes
//! to be built and how large it is, and how long answers take over HTTP.
//!
//! `bench-registry-scale 100000,1000000` does that for both and tells how much slower the larger is.
//! `SAVOIR_BENCH_POSTGRES` is the address of a PostgreSQL server, in which a database is made for each
//! size and dropped afterwards; with `--sqlite` a file is used instead. `--ask N` asks N questions of
//! each kind. `--fill URL DATA` fills an empty database and a folder of one's own and leaves them, and
//! `--filled URL DATA` asks those that were filled before.

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
use served::{Line, Served};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

#[path = "../made_up.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod made_up;
#[path = "../served.rs"]
#[allow(dead_code, reason = "another program uses the rest")]
mod served;

/// Connections that ask at the same time.
const LINES: u64 = 2;

struct Settings {
    sizes: Vec<u64>,
    /// The server of databases; a file if there is none.
    postgres: Option<String>,
    /// Questions of each kind.
    questions: u64,
    /// A database and a folder of one's own.
    own: Option<(String, PathBuf)>,
    /// Whether those are filled first.
    fill: bool,
}

fn settings() -> Result<Settings, String> {
    let sizes = vec![100_000, 1_000_000];
    let mut settings = Settings { sizes, postgres: None, questions: 2000, own: None, fill: false };
    let mut sqlite = false;
    let mut words = env::args().skip(1);
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("`{word}` is no number"));
    while let Some(word) = words.next() {
        match word.as_str() {
            "--sqlite" => sqlite = true,
            "--fill" | "--filled" => {
                let mut next =
                    || words.next().ok_or(format!("{word} takes an address and a folder"));
                settings.own = Some((next()?, next()?.into()));
                settings.fill = word == "--fill";
            }
            "--ask" => settings.questions = number(&words.next().unwrap_or_default())?,
            sizes => settings.sizes = sizes.split(',').map(number).collect::<Result<_, _>>()?,
        }
    }
    if !sqlite && settings.own.is_none() {
        let missing = "set SAVOIR_BENCH_POSTGRES to postgres://…, or say --sqlite";
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

/// Fills a new registry, serves it and asks it.
async fn measure(settings: &Settings, skills: u64) -> Vec<Times> {
    if let Some((url, data)) = settings.own.clone() {
        if settings.fill {
            fs::create_dir_all(&data).unwrap();
            fill(&data, Some(&url), skills).await;
        }
        let questions = settings.questions;
        let asked = tokio::task::spawn_blocking(move || ask(&data, Some(&url), skills, questions));
        return asked.await.unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir_all(&data).unwrap();
    let place = Place::make(settings.postgres.as_deref(), skills).await;
    let url = place.as_ref().map(|place| place.url.as_str());
    println!("\n## {skills} skills, {}\n", if url.is_some() { "PostgreSQL" } else { "SQLite" });
    fill(&data, url, skills).await;
    let questions = settings.questions;
    let url = url.map(str::to_owned);
    let asked = tokio::task::spawn_blocking(move || ask(&data, url.as_deref(), skills, questions));
    let times = asked.await.unwrap();
    if let Some(place) = place {
        place.drop().await;
    }
    times
}

/// A database of its own.
struct Place {
    server: String,
    name: String,
    url: String,
}

impl Place {
    async fn make(server: Option<&str>, skills: u64) -> Option<Self> {
        let server = server?.to_owned();
        let (before, _) = server.rsplit_once('/').unwrap();
        let name = format!("savoir_bench_{}_{skills}", std::process::id());
        let url = format!("{before}/{name}");
        Self::tell(&server, format!("CREATE DATABASE {name}")).await;
        Some(Self { server, name, url })
    }

    async fn tell(url: &str, statement: String) {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }

    async fn drop(self) {
        Self::tell(&self.server, format!("DROP DATABASE {} WITH (FORCE)", self.name)).await;
    }
}

async fn fill(data: &Path, url: Option<&str>, skills: u64) {
    let storage = Storage::folder(data).unwrap();
    let database = match url {
        Some(url) => Database::open(url).await.unwrap(),
        None => Database::open_folder(data).await.unwrap(),
    };
    let registry = database.registry(&storage);
    let began = Instant::now();
    // All skills share their bytes: what is measured is the database and the index.
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
    let took = began.elapsed().as_secs_f64();
    println!("imported in {took:.0} s, {:.0} in a second", skills as f64 / took);
    database.close().await;
    if let Some(url) = url {
        // What the server does by itself after a while.
        Place::tell(url, "VACUUM ANALYZE".to_owned()).await;
    }
}

fn ask(data: &Path, url: Option<&str>, skills: u64, questions: u64) -> Vec<Times> {
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
                Times::take(title, server.address, questions, |numbers| path(numbers, skills));
            together.times.extend(&times.times);
            all.push(times);
        }
        together.times.sort_unstable();
        all.push(together);
    }
    println!("\n| milliseconds | p50 | p95 | p99 | most |\n| --- | ---: | ---: | ---: | ---: |");
    for times in &all {
        println!("{}", times.row());
    }
    println!("\nmemory of the server, after the run: {}", server.memory());
    all
}

type Kinds = &'static [(&'static str, fn(&mut Numbers, u64) -> String)];

/// What is asked about one skill. Each is another one, so that nothing is remembered.
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

/// Pages of the list of skills. A cursor is the name, or the time and the name, of any skill: no page is
/// asked for twice, and most are deep in the list.
const LIST: Kinds = &[
    ("page by name", |numbers, skills| list(&format!("cursor={}", cursor(numbers, skills)))),
    ("100 by name", |numbers, skills| {
        list(&format!("per_page=100&cursor={}", cursor(numbers, skills)))
    }),
    ("updated since", |numbers, skills| {
        list(&format!("updated={}", Timestamp::from_micros(made_up::at(numbers.below(skills)))))
    }),
    ("last changed", |numbers, skills| {
        list(&format!("sort=recent&cursor={}", timed(numbers, skills)))
    }),
    ("of a tag", |numbers, _| list(&format!("tag={}", numbers.tag()))),
    ("of a tag, deep", |numbers, skills| {
        list(&format!("tag={}&cursor={}", numbers.tag(), cursor(numbers, skills)))
    }),
    ("of a tag, last changed", |numbers, skills| {
        list(&format!("tag={}&sort=recent&cursor={}", numbers.tag(), timed(numbers, skills)))
    }),
    ("of a tier", |numbers, skills| {
        list(&format!("tier=experimental&cursor={}", cursor(numbers, skills)))
    }),
    ("of a tier that none has", |numbers, skills| {
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
    ("of a tag and a tier that none has", |numbers, _| {
        list(&format!("tag={}&tier=verified", numbers.tag()))
    }),
    ("of a tag and a namespace", |numbers, _| {
        list(&format!("tag={}&namespace={}", numbers.tag(), numbers.namespace()))
    }),
];

fn list(query: &str) -> String {
    format!("/registry/api/v1/skills?{query}")
}

/// Where a page by name goes on after any skill.
fn cursor(numbers: &mut Numbers, skills: u64) -> String {
    made_up::id(numbers.below(skills))
}

/// Where a page by time goes on after any skill.
fn timed(numbers: &mut Numbers, skills: u64) -> String {
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
    ("name with a slip", |numbers, skills| words(&slip(numbers, skills))),
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

/// The words of a name, without its number, with two letters in the wrong order.
fn slip(numbers: &mut Numbers, skills: u64) -> String {
    let name = made_up::name(numbers.below(skills));
    let last = name.rsplit('/').next().unwrap_or_default();
    let mut letters: Vec<char> =
        last.split('-').take(2).collect::<Vec<_>>().join(" ").chars().collect();
    let at = numbers.below(letters.len() as u64 - 1) as usize;
    letters.swap(at, at + 1);
    letters.into_iter().collect()
}

/// How long answers to one kind of question took, sorted.
struct Times {
    title: String,
    times: Vec<Duration>,
}

impl Times {
    fn take(
        title: &str,
        address: SocketAddr,
        questions: u64,
        path: impl Fn(&mut Numbers) -> String + Sync,
    ) -> Self {
        let ask = |line: u64| {
            let (mut numbers, mut line) = (Numbers::new(line ^ 0x1234_5678), Line::open(address));
            let answer = |_| {
                let path = path(&mut numbers);
                let began = Instant::now();
                let came = line.get(&path, "");
                let took = began.elapsed();
                let status = came.status;
                assert_eq!(status, 200, "{path}: {}", came.text());
                took
            };
            (0..questions / LINES).map(answer).collect::<Vec<_>>()
        };
        let mut times: Vec<Duration> = thread::scope(|scope| {
            let ask = &ask;
            let lines: Vec<_> = (0..LINES).map(|line| scope.spawn(move || ask(line))).collect();
            lines.into_iter().flat_map(|line| line.join().unwrap()).collect()
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
    println!("| times as long | p50 | p99 |\n| --- | ---: | ---: |");
    for (first, last) in first.iter().zip(last) {
        let [half, nearly] = [500, 990].map(|part| last.at(part) / first.at(part));
        println!("| {} | {half:.2} | {nearly:.2} |", first.title);
    }
}
