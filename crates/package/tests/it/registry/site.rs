//! A static registry, and a small server for it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use savoir_package::{
    Tree,
    archive::pack,
    registry::{
        Name, RegistryEntry,
        wire::{Config, IndexLine},
    },
    trust::Tier,
};
use savoir_skill::digest::sha256_hex;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// A folder of registry files, and its server.
pub(super) struct Site {
    root: PathBuf,
    _place: TempDir,
    address: String,
    seen: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl Site {
    /// Starts an empty registry.
    pub(super) async fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_owned();
        let site = Self::serve(&root, place).await;
        site.write("index/v1/config.json", &serde_json::to_vec(&Config::of_files()).unwrap());
        site
    }

    /// Starts a server for an existing folder.
    pub(super) async fn of(root: &Path) -> Self {
        Self::serve(root, tempfile::tempdir().unwrap()).await
    }

    async fn serve(root: &Path, place: TempDir) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (files, log) = (root.to_owned(), seen.clone());
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, files.clone(), log.clone()));
            }
        });
        Self { root: root.to_owned(), _place: place, address, seen, server }
    }

    /// Stops the server.
    pub(super) async fn stop(self) {
        self.server.abort();
        assert!(self.server.await.unwrap_err().is_cancelled());
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn entry(&self) -> RegistryEntry {
        RegistryEntry::at(&self.address)
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(super) fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Returns the requests since the last call, in any order.
    pub(super) fn seen(&self) -> Vec<String> {
        let mut seen = std::mem::take(&mut *self.seen.lock().unwrap());
        seen.sort();
        seen
    }

    /// Publishes a signed skill.
    pub(super) fn publish(&self, name: &str, tree: &Tree) -> IndexLine {
        self.publish_as(name, tree, |_| ())
    }

    /// Publishes a skill with a changed index line.
    pub(super) fn publish_as(
        &self,
        name: &str,
        tree: &Tree,
        change: impl FnOnce(&mut IndexLine),
    ) -> IndexLine {
        let name = Name::parse(name).unwrap();
        let bytes = pack(name.last(), tree).unwrap();
        let mut line = IndexLine::describe(&name, tree, &bytes).unwrap();
        line.tier = Tier::Community;
        self.write(&format!("artifacts/{}/{}", line.sha256, line.filename), &bytes);
        change(&mut line);
        let path = format!("index/v1/{}", name.index_path());
        let mut text = fs::read_to_string(self.path(&path)).unwrap_or_default();
        text.push_str(&serde_json::to_string(&line).unwrap());
        text.push('\n');
        self.write(&path, text.as_bytes());
        line
    }

    /// Changes the index lines of a skill.
    pub(super) fn edit(&self, name: &str, change: impl Fn(&mut IndexLine)) {
        let path = self.path(&format!("index/v1/{}", Name::parse(name).unwrap().index_path()));
        let text = fs::read_to_string(&path).unwrap();
        let edited = text.lines().map(|line| {
            let mut line = serde_json::from_str(line).unwrap();
            change(&mut line);
            serde_json::to_string(&line).unwrap() + "\n"
        });
        let edited: String = edited.collect();
        fs::write(path, edited).unwrap();
    }

    /// Takes a version down: its line is replaced by one with the reason.
    pub(super) fn take_down(&self, name: &str, version: &str, reason: &str) {
        let path = self.path(&format!("index/v1/{}", Name::parse(name).unwrap().index_path()));
        let text = fs::read_to_string(&path).unwrap();
        let gone = serde_json::json!({
            "name": name, "version": version, "withdrawn": true, "withdrawn_reason": reason,
        });
        let is_it = |line: &&str| line.contains(&format!("\"version\":\"{version}\""));
        assert_eq!(text.lines().filter(is_it).count(), 1, "{text}");
        let gone = gone.to_string();
        let mut left: Vec<&str> = text.lines().filter(|line| !is_it(line)).collect();
        left.extend([gone.as_str(), ""]);
        fs::write(path, left.join("\n")).unwrap();
    }

    /// Makes the registry list these skills, as one page.
    pub(super) fn list(&self, names: &[&str]) {
        let items: Vec<_> = names.iter().map(|name| serde_json::json!({"name": name})).collect();
        let page = serde_json::json!({"items": items, "next_cursor": null});
        self.write("api/v1/skills", page.to_string().as_bytes());
    }
}

async fn answer(mut stream: TcpStream, root: PathBuf, seen: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let head = String::from_utf8(head).unwrap();
    let target = head.split(' ').nth(1).unwrap();
    let path = target.split('?').next().unwrap().trim_start_matches('/');
    assert!(!path.contains(".."), "{path}");
    seen.lock().unwrap().push(path.to_owned());
    let (status, etag, body) = match fs::read(root.join(path)) {
        Ok(body) => {
            let etag = format!("\"{}\"", sha256_hex(&body));
            let known = head.lines().any(|line| {
                let line = line.to_ascii_lowercase();
                line.starts_with("if-none-match:") && line.contains(&etag)
            });
            if known { ("304 Not Modified", etag, Vec::new()) } else { ("200 OK", etag, body) }
        }
        Err(_) => ("404 Not Found", "\"\"".to_owned(), b"<h1>Not found</h1>".to_vec()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nETag: {etag}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
    let _ = stream.shutdown().await;
}
