//! Starts `savoir serve` in its own process, and sends HTTP requests to it.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// A server that runs until the value is dropped.
#[derive(Debug)]
pub(crate) struct Served {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Served {
    /// Starts the server on a data folder. `database` replaces the database in that folder.
    pub(crate) fn start(data: &Path, database: Option<&str>) -> Self {
        let mut command = Command::new(program("savoir"));
        command
            .args(["serve", "--address", "127.0.0.1:0", "--log-level", "error"])
            .args(["--rate-limit", "off", "--data"])
            .arg(data)
            .stderr(Stdio::piped());
        if let Some(database) = database {
            command.env("SAVOIR_DATABASE", database);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| {
                let (_, rest) = line.split_once("http://")?;
                rest.split(['/', ' ']).next()?.parse().ok()
            })
            .expect("the server logs its address");
        thread::spawn(move || lines.for_each(drop));
        Self { child, address }
    }

    /// Waits until the search index has this many skills and all pending changes. Returns how long
    /// that took.
    pub(crate) fn wait_for_search(&self, skills: u64) -> Duration {
        let start = Instant::now();
        loop {
            let text = Connection::open(self.address).get("/metrics", "").text();
            let value = |name: &str| {
                let line = text.lines().find_map(|line| line.strip_prefix(name));
                line.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or_default()
            };
            if value("savoir_registry_search_skills ") >= skills
                && value("savoir_registry_search_change ") > 0
            {
                return start.elapsed();
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// Size in MB of the index files that the server has mapped into memory.
    pub(crate) fn index_size(&self) -> u64 {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.child.id())).unwrap();
        let files = maps.lines().filter(|line| line.contains("/index/"));
        let bytes = files.filter_map(|line| {
            let (start, end) = line.split_whitespace().next()?.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some(number(end)? - number(start)?)
        });
        bytes.sum::<u64>() / 1_000_000
    }

    /// Memory of the server: anonymous, with mapped files, and peak, in MB.
    pub(crate) fn memory(&self) -> String {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let of = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            let kilobytes =
                line.split_whitespace().next().and_then(|text| text.parse::<u64>().ok());
            kilobytes.unwrap_or_default() * 1024 / 1_000_000
        };
        let [own, all, most] = ["RssAnon:", "VmRSS:", "VmHWM:"].map(of);
        format!("{own} MB own, {all} MB with files, {most} MB at most so far")
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Path of a program that was built into the same folder.
pub(crate) fn program(name: &str) -> PathBuf {
    env::current_exe().unwrap().with_file_name(name)
}

/// A connection that is kept alive.
#[derive(Debug)]
pub(crate) struct Connection(BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) etag: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(BufReader::new(stream))
    }

    /// Sends a GET request. `head` has further header lines.
    pub(crate) fn get(&mut self, path: &str, head: &str) -> Response {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{head}\r\n"), b"")
    }

    /// Sends a request and reads the response, which must have a Content-Length.
    pub(crate) fn send(&mut self, head: &str, body: &[u8]) -> Response {
        let stream = self.0.get_mut();
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut response = Response { status: 0, etag: None, body: Vec::new() };
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "no answer to {head}");
            let line = line.trim_end();
            if line.is_empty() {
                break;
            }
            match line.split_once(": ") {
                None => response.status = line.split(' ').nth(1).unwrap().parse().unwrap(),
                Some((name, value)) if name.eq_ignore_ascii_case("etag") => {
                    response.etag = Some(value.to_owned());
                }
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    response.body.resize(value.parse().unwrap(), 0);
                }
                Some(_) => {}
            }
        }
        self.0.read_exact(&mut response.body).unwrap();
        response
    }
}
