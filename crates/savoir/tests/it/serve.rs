//! Tests `savoir serve`: the first start, a run over HTTP, stopping, and data safety.

use std::{
    collections::BTreeMap,
    fs,
    io::BufRead as _,
    net::TcpListener,
    os::unix::fs::PermissionsExt as _,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant, SystemTime},
};

use serde_json::{Value, json};

use crate::{
    live_server::{Provider, ProviderBehavior, TestServer, events},
    support::Sandbox,
};

fn masked_greeting(greeting: &str, server: &TestServer, sandbox: &Sandbox) -> String {
    let folder = sandbox.path("");
    let folder = folder.to_string_lossy();
    let text = greeting.replace(&server.address, "[ADDRESS]");
    let text = text.replace(folder.trim_end_matches('/'), "[FOLDER]");
    // The message contains the path of the program if `savoir` is not on PATH.
    let text = text.replace(env!("CARGO_BIN_EXE_savoir"), "savoir");
    let mut lines = Vec::new();
    for line in text.lines() {
        let line = match line.split_once("create one here: ") {
            Some((before, _)) => format!("{before}create one here: [LINK]"),
            None => line.to_owned(),
        };
        lines.push(line);
    }
    lines.join("\n")
}

#[test]
fn first_start_prints_instructions() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &[], None);
    insta::assert_snapshot!(masked_greeting(&server.greeting, &server, &sandbox));
    let mode = |path: &str| {
        let metadata = fs::metadata(sandbox.path(path)).expect(path);
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode(".savoir/data"), 0o700);
    assert_eq!(mode(".savoir/data/skills"), 0o700);
    assert_eq!(mode(".savoir/data/savoir.sqlite"), 0o600);
    assert_eq!(server.ask("GET", "/health", "", None).status, 200);
    assert_eq!(server.ask("GET", "/ready", "", None).status, 200);
}

#[test]
fn examples_are_installed_once_without_overwriting() {
    let sandbox = Sandbox::new();
    drop(TestServer::start(&sandbox, &[], None));
    let skills = || {
        let entries = fs::read_dir(sandbox.path(".savoir/data/skills")).expect("a folder");
        entries.flatten().filter(|entry| entry.path().join("SKILL.md").is_file()).count()
    };
    assert_eq!(skills(), 4);
    for name in ["plain-words", "reply-draft", "meeting-minutes", "article-summary"] {
        fs::remove_dir_all(sandbox.path(&format!(".savoir/data/skills/{name}"))).expect(name);
    }
    drop(TestServer::start(&sandbox, &[], None));
    assert_eq!(skills(), 0);

    let sandbox = Sandbox::new();
    sandbox.write(".savoir/data/skills/mine/SKILL.md", crate::support::GOOD);
    drop(TestServer::start(&sandbox, &[], None));
    assert!(!sandbox.path(".savoir/data/skills/plain-words").exists());
}

#[test]
fn a_run_over_http_and_in_the_terminal_are_the_same() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Says(&["It ", "rained.", "\n"]));
    let server = TestServer::start(&sandbox, &[], Some(&provider));
    assert!(server.greeting.contains("openai: echo-1 by default, 1 model"), "{}", server.greeting);
    let token = server.log_in(&sandbox);
    let inputs = json!({"inputs": {"article": "Rain fell.", "tone": "dry"}});
    let answer = server.ask("POST", "/api/v1/skills/article-summary/run", &token, Some(&inputs));
    assert_eq!(answer.status, 200, "{}", answer.body);
    let mut over_http: Vec<Value> = events(&answer.body).into();
    let used = over_http.iter().find(|event| event["event"] == "usage").expect("its tokens");
    assert_eq!(used["data"]["finish_reason"], "stop");
    over_http.retain(|event| event["event"] != "usage");

    let words = ["run", "article-summary", "--input", "article=Rain fell.", "--input", "tone=dry"];
    let run = |more: &[&str]| {
        let mut command = sandbox.command(&[&words[..], more].concat());
        provider.of(&mut command);
        command.output().expect("savoir runs")
    };
    let printed = run(&["--json"]);
    assert!(printed.status.success(), "{printed:?}");
    let lines = String::from_utf8_lossy(&printed.stdout).into_owned();
    let in_terminal: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(over_http, in_terminal);
    assert_eq!(over_http.last().expect("events")["event"], "done");
    let questions = provider.questions();
    assert_eq!(questions[0]["messages"], questions[1]["messages"]);

    let plain = run(&[]);
    assert_eq!(String::from_utf8_lossy(&plain.stdout), "It rained.\n");
    assert_eq!(String::from_utf8_lossy(&plain.stderr), "");
    let verbose = run(&["--verbose"]);
    assert_eq!(String::from_utf8_lossy(&verbose.stdout), "It rained.\n");
    assert!(String::from_utf8_lossy(&verbose.stderr).starts_with("validation: start\n"));
}

#[test]
fn stream_ends_with_a_message_when_the_server_stops() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Dawdles);
    let server = TestServer::start(&sandbox, &["--grace", "0"], Some(&provider));
    let token = server.log_in(&sandbox);
    let inputs = json!({"inputs": {"article": "Rain fell."}});
    let mut stream =
        server.send_streaming("POST", "/api/v1/skills/article-summary/run", &token, Some(&inputs));
    let mut text = String::new();
    while !text.contains("event: token") {
        assert_ne!(stream.reader.read_line(&mut text).expect("a line"), 0, "{text}");
    }
    server.signal("-TERM");
    while stream.reader.read_line(&mut text).expect("a line") > 0 {}
    let names = text.lines().filter_map(|line| line.strip_prefix("event: "));
    let names: Vec<&str> = names.filter(|name| *name != "usage").collect();
    assert_eq!(&names[names.len() - 2..], ["error", "done"], "{text}");
    assert!(text.contains("The server is stopping"), "{text}");
    let (code, log) = server.wait();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("stopping"), "{log}");
}

#[test]
fn a_second_signal_stops_at_once() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Dawdles);
    let server = TestServer::start(&sandbox, &["--grace", "60"], Some(&provider));
    let token = server.log_in(&sandbox);
    let inputs = json!({"inputs": {"article": "Rain fell."}});
    let _stream =
        server.send_streaming("POST", "/api/v1/skills/article-summary/run", &token, Some(&inputs));
    server.signal("-INT");
    thread::sleep(Duration::from_millis(700));
    server.signal("-INT");
    let (code, log) = server.wait();
    assert_eq!(code, Some(1), "{log}");
}

#[test]
fn port_in_use_is_reported_before_files_are_created() {
    let sandbox = Sandbox::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let run = sandbox.run(&["serve", "--address", &address]);
    assert_eq!(run.code, 2, "{run}");
    let said = format!(
        "error: {address} is in use by another program\nhint: choose another port: --address"
    );
    assert!(run.stderr.starts_with(&said), "{run}");
    assert!(!sandbox.path(".savoir").exists());
}

#[test]
fn setup_link_creates_one_administrator() {
    let sandbox = Sandbox::new();
    let server = TestServer::start(&sandbox, &[], None);
    let link = server.greeting.split("create one here: ").nth(1).expect("a link");
    let link = link.split_whitespace().next().expect("a link");
    let path = link.split_once(&server.address).expect("the address").1;
    let (path, secret) = path.split_once("#token=").expect("a secret in the fragment");
    let page = server.ask("GET", path, "", None);
    assert_eq!(page.status, 200, "{}", page.body);
    let form = json!({"token": secret, "email": "ada@example.com", "password": "secret-word"});
    let made = server.ask("POST", "/api/v1/setup", "", Some(&form));
    assert_eq!(made.status, 200, "{}", made.body);
    let again = server.ask("POST", "/api/v1/setup", "", Some(&form));
    assert!(again.status >= 400, "{}", again.body);
    let list = sandbox.run(&["admin", "list", "--json"]).json();
    let first = &list["accounts"][0];
    assert_eq!((&first["email"], &first["role"]), (&json!("ada@example.com"), &json!("admin")));
    drop(server);
    let server = TestServer::start(&sandbox, &[], None);
    assert!(!server.greeting.contains("administrator"), "{}", server.greeting);
}

/// Skills by name, with the last acknowledged number and the last sent one.
type Written = Arc<Mutex<BTreeMap<String, (u32, u32)>>>;

fn skill(name: &str, number: u32) -> String {
    let padding = "All of this is needed. ".repeat(200);
    format!(
        "---\nname: {name}\ndescription: Number {number}.\n---\n\n{padding}\nNumber {number}.\n"
    )
}

fn acknowledged(written: &Written) -> u32 {
    written.lock().expect("a lock").values().map(|(acknowledged, _)| acknowledged).sum()
}

fn write_until(address: &str, token: &str, name: &str, written: &Written, stop: &AtomicBool) {
    let path = format!("/api/v1/skills/{name}");
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        written.lock().expect("a lock").entry(name.to_owned()).or_default().1 = number;
        let content = skill(name, number);
        let status = if number == 1 {
            let body = json!({"name": name, "content": content});
            TestServer::try_ask(address, "POST", "/api/v1/skills", token, Some(&body))
        } else {
            TestServer::try_ask(address, "PUT", &path, token, Some(&json!({"content": content})))
        };
        match status.map(|answer| answer.status) {
            Some(200 | 201) => {
                written.lock().expect("a lock").get_mut(name).expect("an entry").0 = number;
            }
            Some(other) => panic!("{name}: {other}"),
            None => return,
        }
    }
}

#[test]
fn killed_server_keeps_acknowledged_writes() {
    let sandbox = Sandbox::new();
    let options = ["--rate-limit", "off"];
    let mut server = TestServer::start(&sandbox, &options, None);
    let token = server.log_in(&sandbox);
    let written = Written::default();
    for round in 0..3 {
        let stop = AtomicBool::new(false);
        let random = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
        thread::scope(|scope| {
            for writer in 0..4 {
                let name = format!("writer-{round}-{writer}");
                let (address, token, written) = (&server.address, &token, &written);
                let stop = &stop;
                scope.spawn(move || write_until(address, token, &name, written, stop));
            }
            thread::sleep(Duration::from_millis(200 + u64::from(random.subsec_micros() % 500)));
            let deadline = Instant::now() + Duration::from_secs(20);
            while acknowledged(&written) <= 4 * (round + 1) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(20));
            }
            server.signal("-KILL");
            stop.store(true, Ordering::Relaxed);
        });
        server = TestServer::start(&sandbox, &options, None);
        let count = acknowledged(&written);
        assert!(count > 4 * (round + 1), "the writers hardly wrote: {count}");
        for (name, (acknowledged, sent)) in written.lock().expect("a lock").iter() {
            let kept = server.ask("GET", &format!("/api/v1/skills/{name}"), &token, None);
            if kept.status == 404 && *acknowledged == 0 {
                continue;
            }
            assert_eq!(kept.status, 200, "{name}: {}", kept.body);
            let text = kept.json()["prompt"].as_str().unwrap_or_default().to_owned();
            let number = text.rsplit("Number ").next().and_then(|end| end.strip_suffix('.'));
            let number: u32 = number.and_then(|digits| digits.parse().ok()).expect("a number");
            assert!(
                (*acknowledged..=*sent).contains(&number),
                "{name}: {number} of {acknowledged}"
            );
        }
    }
}

#[test]
fn settings_have_an_origin_and_no_passwords() {
    let sandbox = Sandbox::new();
    let file = "[serve]\naddress = \"127.0.0.1:9\"\ngrace = 3\nrate-limit = \"off\"\n\n[models.local]\nkind = \"openai\"\nbase-url = \"http://127.0.0.1:1/v1\"\n";
    sandbox.write(".config/savoir/config.toml", file);
    let mut command = sandbox.command(&["config", "--json"]);
    command.env("SAVOIR_DATABASE", "postgres://ada:secret@db/savoir").env("SAVOIR_GRACE", "5");
    command.env("SAVOIR_OIDC_CLIENT_SECRET", "secret");
    let output = command.output().expect("savoir runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(!text.contains(":secret@") && !text.contains("\"secret\""), "{text}");
    let settings: Value = serde_json::from_str(&text).expect("JSON");
    let database = json!({"value": "postgres://ada:***@db/savoir", "from": "SAVOIR_DATABASE"});
    assert_eq!(settings["serve.database"], database);
    assert_eq!(settings["serve.grace"], json!({"value": 5, "from": "SAVOIR_GRACE"}));
    assert_eq!(settings["serve.rate-limit"]["value"], "off");
    assert_eq!(settings["serve.log"]["from"], "default");
    assert_eq!(settings["models.local.kind"]["value"], "openai");

    // A project must not configure the user's server or keys.
    sandbox
        .write("savoir.toml", "[models.openai]\nkind = \"openai\"\nbase-url = \"http://evil\"\n");
    let run = sandbox.run(&["config"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("`[models]` is not allowed in the settings of a project"), "{run}");

    // The tables for skills and agents are allowed in a project.
    sandbox.write("savoir.toml", "[skills]\nnotes = \"^1\"\n[agents]\nuse = [\"codex\"]\n");
    let run = sandbox.run(&["config"]);
    assert_eq!(run.code, 0, "{run}");
}

#[test]
fn invalid_settings_are_reported_before_files_are_created() {
    let sandbox = Sandbox::new();
    for (words, said) in [
        (
            &["--public-url", "skills.example.com"][..],
            "--public-url: `skills.example.com` is not a URL",
        ),
        (&["--cors-origin", "*"], "--cors-origin: `*` is not a URL"),
        (&["--rate-limit", "fast"], "`fast` is not a rate limit; write runs=10"),
        (&["--address", "nowhere"], "cannot listen on nowhere"),
    ] {
        let run = sandbox.run(&[&["serve"], words].concat());
        assert_eq!(run.code, 2, "{words:?}: {run}");
        assert!(run.stderr.contains(said), "{words:?}: {run}");
    }
    for (name, value) in
        [("SAVOIR_GRACE", "soon"), ("SAVOIR_LOG", "loud"), ("SAVOIR_BEHIND_PROXY", "x")]
    {
        let output = sandbox.command(&["serve"]).env(name, value).output().expect("savoir runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(name), "{said}");
    }
    assert!(!sandbox.path(".savoir").exists());
}

#[test]
fn ineffective_setting_is_reported() {
    let sandbox = Sandbox::new();
    let document = "--registry-redirect has no effect";
    let server = TestServer::start(&sandbox, &["--registry-redirect"], None);
    assert!(server.greeting.contains(document), "{}", server.greeting);
    drop(server);
    let server = TestServer::start(&sandbox, &[], None);
    assert!(!server.greeting.contains(document), "{}", server.greeting);
}
