//! Tests `savoir ui`: its access control, and that its responses are those of the commands.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::{Child, Command, Stdio},
};

use serde_json::Value;

use crate::support::{GOOD, Sandbox};

/// A running `savoir ui`.
struct MachineApp {
    child: Child,
    host: String,
    token: String,
}

/// The parts of a response that tests look at.
struct Response {
    status: u16,
    head: String,
    body: String,
}

impl MachineApp {
    fn start(sandbox: &Sandbox) -> Self {
        Self::spawn(sandbox.command(&["ui", "--no-open"]))
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("savoir starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("output")).read_line(&mut line).expect("a line");
        let url = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line}"));
        let (host, token) = url.trim().split_once("/enter?token=").expect("a token");
        Self { child, host: host.to_owned(), token: token.to_owned() }
    }

    fn send(&self, request: &str, headers: &str, body: &str) -> Response {
        let host = &self.host;
        self.send_as(host, request, headers, body)
    }

    fn send_as(&self, host: &str, request: &str, headers: &str, body: &str) -> Response {
        let mut stream = TcpStream::connect(&self.host).expect("a connection");
        let length = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: \
             application/json\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
        )
        .expect("the request is sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("a response");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status =
            head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        Response { status, head: head.to_owned(), body: body.to_owned() }
    }

    /// Opens the link and returns the headers with the session cookie and the key.
    fn enter(&self) -> String {
        let response = self.send(&format!("GET /enter?token={}", self.token), "", "");
        assert_eq!(response.status, 303, "{}", response.head);
        let value = |name: &str| response.head.lines().find_map(|line| line.strip_prefix(name));
        let cookie = value("set-cookie: ").and_then(|cookie| cookie.split(';').next());
        let key = value("location: /machine#key=").expect("a key");
        format!("Cookie: {}\r\nX-Savoir-Key: {key}\r\n", cookie.expect("a cookie"))
    }

    fn get(&self, path: &str, cookie: &str) -> Value {
        let response = self.send(&format!("GET {path}"), cookie, "");
        assert_eq!(response.status, 200, "{path}: {}", response.body);
        serde_json::from_str(&response.body).unwrap_or_else(|_| panic!("{path}: {}", response.body))
    }
}

impl Drop for MachineApp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn responses_match_the_commands() {
    let sandbox = Sandbox::new();
    sandbox.write("source/SKILL.md", GOOD);
    let installed = sandbox.run(&["install", "./source", "--agent", "claude-code", "-y"]);
    assert_eq!(installed.code, 0, "{installed}");
    let app = MachineApp::start(&sandbox);
    let cookie = app.enter();
    assert_eq!(app.get("/api/v1/auth/session", &cookie)["machine"], true);
    for file in ["theme.js", "favicon.svg"] {
        assert_eq!(app.send(&format!("GET /{file}"), "", "").status, 200, "{file}");
    }
    let listed = sandbox.run(&["list", "--json"]).json();
    assert_eq!(app.get("/api/v1/machine/skills", &cookie), listed);
    let name = listed["skills"][0]["name"].as_str().unwrap();
    for path in ["status", "outdated", "approvals", "secrets", "runs"] {
        assert!(app.get(&format!("/api/v1/machine/{path}"), &cookie).is_object(), "{path}");
    }
    let scanned = app.get(&format!("/api/v1/machine/scan?name={name}"), &cookie);
    assert_eq!(scanned["verdict"], "allow");
    let context = "/api/v1/machine/context?agent=claude-code&context=200000";
    assert_eq!(app.get(context, &cookie)["skills"][0]["name"], name);
    let without = app.get(&format!("{context}&without={name}"), &cookie);
    assert_eq!(without["difference"]["without"][0], name, "{without}");

    let headers = format!("{cookie}X-Savoir-App: 1\r\n");
    let body = format!("{{\"name\":\"{name}\"}}");
    let removed = app.send("POST /api/v1/machine/remove", &headers, &body);
    assert_eq!(removed.status, 200, "{}", removed.body);
    let listed = app.get("/api/v1/machine/skills", &cookie);
    assert_eq!(listed["skills"].as_array().map(Vec::len), Some(0), "{listed}");
    let missing = app.send("POST /api/v1/machine/remove", &headers, &body);
    assert_eq!(missing.status, 422, "{}", missing.body);
    assert!(missing.body.contains("\"detail\""), "{}", missing.body);
}

#[test]
fn requests_without_the_session_are_rejected() {
    let sandbox = Sandbox::new();
    let app = MachineApp::start(&sandbox);
    let skills = "GET /api/v1/machine/skills";
    assert_eq!(app.send(skills, "", "").status, 401, "without a cookie");
    assert_eq!(app.send("GET /enter?token=wrong", "", "").status, 403);
    let cookie = app.enter();
    assert_eq!(app.send(skills, &cookie, "").status, 200);
    // Programs on other ports of the host receive the cookie, but not the key.
    let (alone, key) = cookie.split_once("\r\n").expect("two headers");
    let alone = format!("{alone}\r\n");
    assert_eq!(app.send(skills, &alone, "").status, 401, "without the key");
    assert_eq!(app.send(skills, key, "").status, 401, "without the cookie");
    let taken = app.send(&format!("GET /enter?token={}", app.token), &alone, "");
    assert!(taken.status == 303 && !taken.head.contains("key="), "{}", taken.head);
    assert_eq!(app.send_as("evil.example", skills, &cookie, "").status, 403, "another host name");
    let change = app.send("POST /api/v1/machine/undo", &cookie, "{}");
    assert_eq!(change.status, 403, "a form of another page has no header");
    let headers = format!("{cookie}X-Savoir-App: 1\r\n");
    assert_eq!(app.send("POST /api/v1/machine/install", &headers, "{}").status, 404);
    let page = app.send("GET /machine", "", "");
    assert_eq!(page.status, 200);
    assert!(page.head.contains("content-security-policy"), "{}", page.head);
    let again = app.send(&format!("GET /enter?token={}", app.token), "", "");
    assert_eq!(again.status, 403, "the link works once");
    assert!(again.body.contains("somebody else"), "{}", again.body);
    assert_eq!(app.send(skills, &cookie, "").status, 401, "whoever was first is out");
}

#[cfg(target_os = "linux")]
#[test]
fn link_is_not_visible_in_process_arguments() {
    use std::os::unix::fs::PermissionsExt as _;

    let sandbox = Sandbox::new();
    let browser = sandbox.write(
        "bin/xdg-open",
        "#!/bin/sh\nfile=${1#file://}\nstat -c %a \"$file\" > mode\ncp \"$file\" page\nprintf '%s' \
         \"$*\" > arguments.new\nmv arguments.new arguments\n",
    );
    std::fs::set_permissions(&browser, std::fs::Permissions::from_mode(0o755)).unwrap();
    let folder = browser.parent().unwrap();
    let mut command = sandbox.command(&["ui"]);
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&paths));
    command.env("PATH", std::env::join_paths(paths).unwrap());
    command.env("XDG_RUNTIME_DIR", folder);
    let app = MachineApp::spawn(command);
    let read = |name: &str| std::fs::read_to_string(sandbox.path(name));
    let arguments = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(25));
        read("arguments").ok()
    });
    let arguments = arguments.expect("the browser was started");
    assert!(!arguments.contains(&app.token) && !arguments.contains("http"), "{arguments}");
    assert!(read("page").unwrap().contains(&app.token));
    assert_eq!(read("mode").unwrap().trim(), "600");
    let file = std::path::Path::new(arguments.strip_prefix("file://").unwrap()).to_owned();
    assert!(file.exists());
    app.enter();
    assert!(!file.exists(), "the file is deleted when the link was used");
}
