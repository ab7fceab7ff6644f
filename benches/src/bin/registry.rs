//! Compares the registry of `savoir serve` with nginx (which serves the same bytes) and with
//! another private registry (which serves packages of the same size).
//!
//! `bench-registry 10 3` measures each server for ten seconds, in turns, three times. It needs wrk.
//! If nginx or the other registry is missing, it is left out; the other registry is installed into
//! a cache on first use. All servers listen on loopback only.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::{
    env,
    fmt::Write as _,
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD as BASE64};
use made_up::{Bytes, Numbers};
use savoir_store::{Database, Storage};
use served::{Connection, Served};
use sha1::{Digest as _, Sha1};

#[allow(dead_code, reason = "another program uses the rest")]
#[path = "../made_up.rs"]
mod made_up;
#[allow(dead_code, reason = "another program uses the rest")]
#[path = "../served.rs"]
mod served;

/// Number of skills in the registry.
const SKILLS: u64 = 300;
/// Numbers of the requested skill and of the skill with a large artifact.
const REQUESTED: u64 = 7;
const LARGE: u64 = 8;
const LARGE_BYTES: usize = 100 * 1024;

/// Dependencies for npm. One of them requests `node-fetch` by a dist-tag that some mirrors lack, so
/// the version is fixed.
const VERDACCIO: &str = r#"{"private": true, "dependencies": {"verdaccio": "6"},
    "overrides": {"node-fetch": "2.7.0"}}"#;

fn main() {
    let mut words = env::args().skip(1);
    let mut number = |otherwise| words.next().map_or(otherwise, |word| word.parse().unwrap());
    let (seconds, rounds) = (number(10), number(3));
    if Command::new("wrk").arg("-v").output().is_err() {
        println!("The registry: skipped, wrk is not installed.");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let [small, large] = fill(&data);
    let server = Served::start(&data, None);
    server.wait_for_search(SKILLS);
    thread::sleep(Duration::from_secs(1));
    println!("Memory of savoir serve, idle: {}.", server.memory());
    let requests = requests(&server, &small, &large);
    let nginx = Nginx::start(&folder.path().join("nginx"), &requests);
    let peer = Peer::start(folder.path(), &small.zip, &large.zip);
    let rows: Vec<Row> = requests
        .iter()
        .map(|request| {
            let mut row = Row::new(request, server.address);
            row.nginx = nginx.as_ref().map(|nginx| nginx.target(request));
            row.peer = peer.as_ref().and_then(|peer| peer.target(request.kind));
            row
        })
        .collect();
    report(rows, peer.as_ref().map_or("another registry", |peer| peer.name), seconds, rounds);
    println!("\nMemory of savoir serve, after the run: {}.", server.memory());
}

/// A published skill and its artifact.
struct Published {
    name: String,
    sha256: String,
    zip: Vec<u8>,
}

impl Published {
    fn index_path(&self) -> String {
        let last = self.name.rsplit('/').next().unwrap();
        format!("/registry/index/v1/{}/{}", &last[..2], self.name)
    }

    fn artefact_path(&self, index: &str) -> String {
        let newest = index.lines().find(|line| line.contains(&self.sha256)).unwrap();
        let line: serde_json::Value = serde_json::from_str(newest).unwrap();
        let last = self.name.rsplit('/').next().unwrap();
        let version = line["version"].as_str().unwrap();
        format!("/registry/artifacts/{}/{last}-{version}.zip", self.sha256)
    }
}

/// Creates the data folder of the server.
fn fill(data: &Path) -> [Published; 2] {
    fs::create_dir_all(data).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut published = Vec::new();
    runtime.block_on(async {
        let database = Database::open_folder(data).await.unwrap();
        let storage = Storage::folder(data).unwrap();
        let registry = database.registry(&storage);
        made_up::import(registry, SKILLS, async |number| {
            let mut numbers = Numbers::new(number);
            let size =
                if number == LARGE { LARGE_BYTES } else { 2000 + numbers.below(4000) as usize };
            let zip = numbers.bytes(size);
            let body = made_up::body(number);
            let skill_md = registry.put_blob(body.into_bytes().into()).await.unwrap();
            let sha256 = registry.put_blob(zip.clone().into()).await.unwrap();
            if number == REQUESTED || number == LARGE {
                let name = made_up::name(number);
                published.push(Published { name, sha256: sha256.clone(), zip });
            }
            Bytes { sha256, size: size as u64, skill_md }
        })
        .await;
        database.close().await;
    });
    published.try_into().unwrap_or_else(|_| panic!("both skills are among them"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Metadata,
    SmallDownload,
    LargeDownload,
    NotModified,
}

/// A request and its expected response.
struct Request {
    title: &'static str,
    kind: Kind,
    path: String,
    body: Vec<u8>,
    /// The `ETag` of the response, for conditional requests.
    etag: String,
}

fn requests(server: &Served, small: &Published, large: &Published) -> Vec<Request> {
    let mut connection = Connection::open(server.address);
    let index = connection.get(&small.index_path(), "").text();
    let large_index = connection.get(&large.index_path(), "").text();
    let mut request = |title, kind, path: String| {
        let response = connection.get(&path, "");
        assert_eq!(response.status, 200, "{path}");
        Request { title, kind, path, body: response.body, etag: response.etag.unwrap() }
    };
    vec![
        request("index file", Kind::Metadata, small.index_path()),
        request("detail", Kind::Metadata, format!("/registry/api/v1/skills/{}", small.name)),
        request("download", Kind::SmallDownload, small.artefact_path(&index)),
        request("download", Kind::LargeDownload, large.artefact_path(&large_index)),
        request("index file, not modified", Kind::NotModified, small.index_path()),
    ]
}

/// A URL that wrk requests.
struct Target {
    url: String,
    header: Option<String>,
    rates: Vec<f64>,
}

impl Target {
    fn new(address: SocketAddr, path: &str, etag: Option<&str>) -> Self {
        let header = etag.map(|etag| format!("If-None-Match: {etag}"));
        Self { url: format!("http://{address}{path}"), header, rates: Vec::new() }
    }

    fn measure(&mut self, seconds: u64) {
        let mut wrk = Command::new("wrk");
        wrk.args(["-t1", "-c32", &format!("-d{seconds}s")]);
        if let Some(header) = &self.header {
            wrk.args(["-H", header]);
        }
        let output = wrk.arg(&self.url).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(!text.contains("Non-2xx"), "{}: {text}", self.url);
        let line = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"));
        self.rates.push(line.unwrap_or_else(|| panic!("{text}")).trim().parse().unwrap());
    }

    fn median(&self) -> f64 {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        rates[rates.len() / 2]
    }
}

/// One row of the report: the same request to each server.
struct Row {
    title: String,
    own: Target,
    nginx: Option<Target>,
    peer: Option<Target>,
}

impl Row {
    fn new(request: &Request, address: SocketAddr) -> Self {
        let size = request.body.len();
        let etag = (request.kind == Kind::NotModified).then_some(request.etag.as_str());
        Self {
            title: format!("{}, {size} bytes", request.title),
            own: Target::new(address, &request.path, etag),
            nginx: None,
            peer: None,
        }
    }
}

fn report(mut rows: Vec<Row>, peer: &str, seconds: u64, rounds: u64) {
    for _ in 0..rounds {
        for row in &mut rows {
            row.own.measure(seconds);
            for other in row.nginx.iter_mut().chain(row.peer.iter_mut()) {
                other.measure(seconds);
            }
        }
    }
    println!("\n| requests per second | savoir | nginx | of nginx | {peer} | times |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: |");
    for row in &rows {
        let own = row.own.median();
        let beside = |other: &Option<Target>| match other.as_ref().map(Target::median) {
            Some(rate) => format!("{rate:.0} | {:.2}", own / rate),
            None => "– | –".to_owned(),
        };
        println!("| {} | {own:.0} | {} | {} |", row.title, beside(&row.nginx), beside(&row.peer));
    }
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Waits until a server accepts connections on this address.
fn wait_until_listening(address: SocketAddr, timeout: Duration) -> bool {
    let step = Duration::from_millis(20);
    (0..timeout.as_millis() / step.as_millis()).any(|_| {
        let connected = TcpStream::connect(address).is_ok();
        if !connected {
            thread::sleep(step);
        }
        connected
    })
}

/// nginx with the same bytes in files and the same caching headers. It has one worker, because one
/// thread of wrk uses the other core.
struct Nginx {
    child: Child,
    address: SocketAddr,
}

impl Nginx {
    fn start(folder: &Path, requests: &[Request]) -> Option<Self> {
        let address = free_address();
        for request in requests {
            let file = folder.join(request.path.trim_start_matches('/'));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, &request.body).unwrap();
        }
        let config = folder.join("nginx.conf");
        fs::write(&config, nginx_config(&folder.display().to_string(), address)).unwrap();
        // nginx workers run as another user, who needs access to these folders.
        for folder in [folder.parent().unwrap(), folder] {
            let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(folder, open).unwrap();
        }
        let mut command = Command::new("nginx");
        command.arg("-c").arg(&config).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("nginx is not installed; it is left out.");
            return None;
        };
        let nginx = Self { child, address };
        assert!(wait_until_listening(address, Duration::from_secs(5)), "nginx does not start");
        for request in requests {
            assert_eq!(Connection::open(address).get(&request.path, "").body, request.body);
        }
        Some(nginx)
    }

    fn target(&self, request: &Request) -> Target {
        // nginx generates its own ETags.
        let etag = Connection::open(self.address).get(&request.path, "").etag;
        let etag = etag.filter(|_| request.kind == Kind::NotModified);
        Target::new(self.address, &request.path, etag.as_deref())
    }
}

fn nginx_config(here: &str, address: SocketAddr) -> String {
    let location = |path: &str, kind: &str, caching: &str| {
        format!(
            "location /registry/{path}/ {{ default_type {kind};\n\
             add_header Cache-Control \"{caching}\"; add_header X-Content-Type-Options nosniff; }}\n"
        )
    };
    let minute = "public, max-age=60, must-revalidate";
    let locations = [
        location("index", "application/x-ndjson", minute),
        location("api", "application/json", "public, no-cache"),
        location("artifacts", "application/zip", "public, max-age=31536000, immutable"),
    ];
    format!(
        "daemon off; worker_processes 1; error_log {here}/error.log; pid {here}/nginx.pid;\n\
         events {{ worker_connections 1024; }}\n\
         http {{ access_log off; sendfile on; tcp_nopush on; etag on; keepalive_requests 100000000;\n\
         client_body_temp_path {here}/b; proxy_temp_path {here}/p; fastcgi_temp_path {here}/f;\n\
         uwsgi_temp_path {here}/u; scgi_temp_path {here}/s;\n\
         server {{ listen {address}; root {here};\n{} }} }}\n",
        locations.concat()
    )
}

impl Drop for Nginx {
    /// Sends SIGTERM, because after SIGKILL the workers of nginx would keep running.
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

/// Another private registry, with two packages.
struct Peer {
    name: &'static str,
    child: Child,
    address: SocketAddr,
    metadata: &'static str,
    downloads: [&'static str; 2],
}

impl Peer {
    fn start(folder: &Path, small: &[u8], large: &[u8]) -> Option<Self> {
        let folder = folder.join("peer");
        fs::create_dir_all(&folder).unwrap();
        let peer = Self::verdaccio(&folder, small, large)
            .or_else(|| Self::pypiserver(&folder, small, large));
        if peer.is_none() {
            println!("Neither Verdaccio nor pypiserver can be installed; they are left out.");
        }
        peer
    }

    fn target(&self, kind: Kind) -> Option<Target> {
        let path = match kind {
            Kind::Metadata => self.metadata,
            Kind::SmallDownload => self.downloads[0],
            Kind::LargeDownload => self.downloads[1],
            Kind::NotModified => return None,
        };
        Some(Target::new(self.address, path, None))
    }

    fn verdaccio(folder: &Path, small: &[u8], large: &[u8]) -> Option<Self> {
        let place = cache("verdaccio");
        let program = place.join("node_modules/.bin/verdaccio");
        if !program.exists() {
            fs::write(place.join("package.json"), VERDACCIO).unwrap();
            let mut npm = Command::new("npm");
            npm.args(["install", "--silent", "--no-audit", "--no-fund", "--prefix"]);
            let installed = npm.arg(&place).stdout(Stdio::null()).status();
            installed.ok().filter(std::process::ExitStatus::success)?;
        }
        let address = free_address();
        let config = folder.join("config.yaml");
        let storage = folder.join("storage");
        let text = format!(
            "storage: {}\nlisten: {address}\nmax_body_size: 10mb\nuplinks: {{}}\nweb:\n  enable: false\n\
             packages:\n  '**':\n    access: $all\n    publish: $all\n    unpublish: $all\n\
             log: {{ type: stdout, format: json, level: fatal }}\n",
            storage.display()
        );
        fs::write(&config, text).unwrap();
        let child = Command::new(program)
            .arg("--config")
            .arg(&config)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let peer = Self {
            name: "Verdaccio",
            child,
            address,
            metadata: "/small",
            downloads: ["/small/-/small-1.0.0.tgz", "/large/-/large-1.0.0.tgz"],
        };
        assert!(wait_until_listening(address, Duration::from_mins(1)), "Verdaccio does not start");
        publish_to_verdaccio(address, "small", small);
        publish_to_verdaccio(address, "large", large);
        peer.check_download(small)
    }

    fn pypiserver(folder: &Path, small: &[u8], large: &[u8]) -> Option<Self> {
        let place = cache("pypiserver");
        let program = place.join("bin/pypi-server");
        if !program.exists() {
            let made = Command::new("python3").args(["-m", "venv"]).arg(&place).status();
            made.ok().filter(std::process::ExitStatus::success)?;
            let mut pip = Command::new(place.join("bin/pip"));
            let installed = pip.args(["install", "--quiet", "pypiserver"]).status();
            installed.ok().filter(std::process::ExitStatus::success)?;
        }
        fs::write(folder.join("small-1.0.0.tar.gz"), small).unwrap();
        fs::write(folder.join("large-1.0.0.tar.gz"), large).unwrap();
        let address = free_address();
        let child = Command::new(program)
            .args(["run", "--disable-fallback", "-i", "127.0.0.1", "-p"])
            .arg(address.port().to_string())
            .arg(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let peer = Self {
            name: "pypiserver",
            child,
            address,
            metadata: "/simple/small/",
            downloads: ["/packages/small-1.0.0.tar.gz", "/packages/large-1.0.0.tar.gz"],
        };
        assert!(wait_until_listening(address, Duration::from_mins(1)), "pypiserver does not start");
        peer.check_download(small)
    }

    /// Returns this peer only if a download has the bytes that were published.
    fn check_download(self, small: &[u8]) -> Option<Self> {
        let mut connection = Connection::open(self.address);
        let same = connection.get(self.downloads[0], "").body == small;
        if !same {
            println!("{} does not return the published bytes; it is left out.", self.name);
        }
        same.then_some(self)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Creates the folder into which a peer is installed.
fn cache(name: &str) -> PathBuf {
    let home = || env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let place = cache.unwrap_or_else(env::temp_dir).join("savoir-benches").join(name);
    fs::create_dir_all(&place).unwrap();
    place
}

/// Sends the same request as `npm publish`.
fn publish_to_verdaccio(address: SocketAddr, name: &str, tarball: &[u8]) {
    let file = format!("{name}-1.0.0.tgz");
    let url = format!("http://{address}/{name}/-/{file}");
    let shasum = Sha1::digest(tarball).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    });
    let version = serde_json::json!({
        "name": name, "version": "1.0.0", "description": made_up::body(REQUESTED),
        "readme": made_up::body(REQUESTED), "dist": {"tarball": url, "shasum": shasum},
    });
    let document = serde_json::json!({
        "_id": name, "name": name, "description": "made up", "readme": made_up::body(REQUESTED),
        "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version},
        "_attachments": {file: {
            "content_type": "application/octet-stream",
            "data": BASE64.encode(tarball), "length": tarball.len(),
        }},
    });
    let body = document.to_string();
    let head = format!(
        "PUT /{name} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    let response = Connection::open(address).send(&head, body.as_bytes());
    let status = response.status;
    assert!(status < 300, "Verdaccio: {status} {}", response.text());
}
