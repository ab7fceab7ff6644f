//! Tests several servers that share one database and one bucket.

use std::{
    io::BufRead as _,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    live_server::{HttpResponse, Provider, ProviderBehavior, TestServer, events},
    services::{RunEnvironment, upload},
};

const NO_RATE_LIMIT: [&str; 2] = ["--rate-limit", "off"];

/// Creates an account over HTTP; returns its token.
pub(crate) fn register(server: &TestServer, email: &str) -> String {
    let body = json!({"email": email, "password": "secret-word"});
    let answer = server.ask("POST", "/api/v1/auth/register", "", Some(&body));
    assert_eq!(answer.status, 200, "{}", answer.body);
    answer.json()["token"].as_str().expect("a token").to_owned()
}

fn ok(answer: &HttpResponse) -> Value {
    assert!(answer.status < 300, "{} {}", answer.status, answer.body);
    answer.json()
}

fn greeter(words: &str) -> String {
    format!("---\nname: greeter\ndescription: Greets.\n---\n\n{words}\n")
}

#[test]
fn login_and_logout_apply_to_both_servers() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let (one, two) = (run_env.server(&NO_RATE_LIMIT, None), run_env.server(&NO_RATE_LIMIT, None));
    let token = register(&one, "ada@example.com");
    for _ in 0..3 {
        assert_eq!(two.ask("GET", "/api/v1/auth/me", &token, None).status, 200);
        assert_eq!(one.ask("GET", "/api/v1/auth/me", &token, None).status, 200);
    }
    let again = register(&two, "bob@example.com");
    assert_eq!(one.ask("GET", "/api/v1/auth/me", &again, None).status, 200);
    let body = json!({"email": "ADA@example.com", "password": "another"});
    assert_eq!(two.ask("POST", "/api/v1/auth/register", "", Some(&body)).status, 409);

    ok(&one.ask("POST", "/api/v1/auth/logout", &token, None));
    assert_eq!(two.ask("GET", "/api/v1/auth/me", &token, None).status, 401);
    assert_eq!(one.ask("GET", "/api/v1/auth/me", &token, None).status, 401);
}

#[test]
fn runs_are_counted_together() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let provider = Provider::new(ProviderBehavior::Says(&["Hello."]));
    let (one, two) = (run_env.server(&[], Some(&provider)), run_env.server(&[], Some(&provider)));
    let addresses = [one.address.as_str(), &two.address];
    let run = |number: usize, token: &str| {
        let inputs = json!({"inputs": {"article": "Rain fell."}});
        let path = "/api/v1/skills/article-summary/run";
        let answer = TestServer::try_ask(addresses[number % 2], "POST", path, token, Some(&inputs));
        answer.expect("an answer").status
    };
    let token = register(&one, "ada@example.com");
    let statuses: Vec<u16> = (0..14).map(|number| run(number, &token)).collect();
    assert_eq!(statuses, [[200; 10].as_slice(), &[429; 4]].concat());

    // The same for concurrent requests.
    let token = register(&two, "bob@example.com");
    let good = thread::scope(|scope| {
        let (run, token) = (&run, &token);
        let asked: Vec<_> = (0..24).map(|number| scope.spawn(move || run(number, token))).collect();
        let statuses = asked.into_iter().map(|thread| thread.join().expect("a status"));
        statuses.filter(|status| *status == 200).count()
    });
    assert_eq!(good, 10);
}

#[test]
fn both_servers_see_each_others_writes() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let provider = Provider::new(ProviderBehavior::Says(&["Good ", "day."]));
    let (one, two) = (
        run_env.server(&NO_RATE_LIMIT, Some(&provider)),
        run_env.server(&NO_RATE_LIMIT, Some(&provider)),
    );
    let token = register(&one, "ada@example.com");
    let ask = |server: &TestServer, method: &str, path: &str, body: Option<Value>| {
        server.ask(method, path, &token, body.as_ref())
    };

    let body = json!({"name": "greeter", "content": greeter("Say hello.")});
    assert_eq!(ask(&one, "POST", "/api/v1/skills", Some(body.clone())).status, 201);
    assert_eq!(ask(&two, "POST", "/api/v1/skills", Some(body)).status, 409);
    let prompts = |server: &TestServer| {
        let answer = ask(server, "POST", "/api/v1/skills/greeter/run", Some(json!({})));
        assert!(answer.body.contains("Skill execution completed"), "{}", answer.body);
        let question = provider.questions().pop().expect("a question");
        question["messages"][1]["content"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(prompts(&two), "Say hello.");
    for number in 0..6 {
        let (writer, reader) = if number % 2 == 0 { (&one, &two) } else { (&two, &one) };
        let words = format!("Say it {number} times.");
        let body = json!({"content": greeter(&words)});
        ok(&ask(writer, "PUT", "/api/v1/skills/greeter", Some(body)));
        assert_eq!(prompts(reader), words);
        assert_eq!(prompts(writer), words);
    }
    assert_eq!(ask(&one, "DELETE", "/api/v1/skills/greeter", None).status, 204);
    assert_eq!(ask(&two, "GET", "/api/v1/skills/greeter", None).status, 404);

    for (server, message) in [(&one, "First."), (&two, "Second."), (&one, "Third.")] {
        let body = json!({"session_id": "talk", "message": message});
        let answer = ask(server, "POST", "/api/v1/chat/completions", Some(body));
        assert!(answer.body.contains("Chat completed successfully"), "{}", answer.body);
    }
    let question = provider.questions().pop().expect("a question");
    let said: Vec<&str> = question["messages"].as_array().expect("messages")[1..]
        .iter()
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(said, ["First.", "Good day.", "Second.", "Good day.", "Third."]);
    let session = ok(&ask(&two, "GET", "/api/v1/chat/sessions/talk", None));
    assert_eq!(session["message_count"], 6, "{session}");
}

#[test]
fn document_indexed_by_one_server_is_found_by_both() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let (one, two) = (run_env.server(&NO_RATE_LIMIT, None), run_env.server(&NO_RATE_LIMIT, None));
    let token = register(&one, "ada@example.com");
    let base = one.ask("POST", "/api/v1/knowledge", &token, Some(&json!({"name": "garden"})));
    let base = ok(&base)["id"].as_str().expect("an id").to_owned();
    for (number, server) in [&one, &two, &one, &two].into_iter().enumerate() {
        let text = format!("The herb of number {number} is called wort{number} by everyone.");
        let path = format!("/api/v1/knowledge/{base}/upload");
        let answer = upload(server, &path, &token, &format!("{number}.md"), &text);
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let began = Instant::now();
    let documents = loop {
        let list = two.ask("GET", &format!("/api/v1/knowledge/{base}/documents"), &token, None);
        let list = ok(&list)["documents"].as_array().expect("documents").clone();
        if list.iter().all(|document| document["status"] == "completed") {
            break list;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{list:?}");
        thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(documents.len(), 4);
    for server in [&one, &two] {
        for number in 0..4 {
            let path = format!("/api/v1/knowledge/{base}/search?query=wort{number}");
            let found = ok(&server.ask("GET", &path, &token, None));
            assert_eq!(found["total"], 1, "{found}");
        }
        let path = format!("/api/v1/knowledge/{base}/info");
        assert_eq!(ok(&server.ask("GET", &path, &token, None))["document_count"], 4);
    }
}

#[test]
fn run_continues_on_another_server_after_a_kill() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let (slow, quick) = (
        Provider::new(ProviderBehavior::Dawdles),
        Provider::new(ProviderBehavior::Says(&["Done."])),
    );
    let one = run_env.server(&NO_RATE_LIMIT, Some(&slow));
    let two = run_env.server(&NO_RATE_LIMIT, Some(&quick));
    let token = register(&one, "ada@example.com");
    let graph = json!({
        "nodes": [
            {"id": "s", "type": "start", "data": {}},
            {"id": "m", "type": "llm", "data": {"systemPrompt": "Be brief."}},
            {"id": "e", "type": "end", "data": {}},
        ],
        "edges": [{"source": "s", "target": "m"}, {"source": "m", "target": "e"}],
    });
    let workflow = json!({"name": "long", "graph_data": graph});
    let workflow = ok(&one.ask("POST", "/api/v1/workflows", &token, Some(&workflow)));
    let path = format!("/api/v1/workflows/{}/execute", workflow["id"].as_str().expect("an id"));
    let mut stream = one.send_streaming("POST", &path, &token, Some(&json!({"input": "Tell me."})));
    let mut text = String::new();
    while !text.contains("event: token") {
        assert_ne!(stream.reader.read_line(&mut text).expect("a line"), 0, "{text}");
    }
    let id = text.split("\"execution_id\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let path = format!("/api/v1/workflows/executions/{}", id.expect("an id"));
    let resume = format!("{path}/resume");
    // While its server runs, no other server can take over the run.
    assert_eq!(two.ask("POST", &resume, &token, None).status, 409);
    one.signal("-KILL");
    let died = Instant::now();
    let execution = ok(&two.ask("GET", &path, &token, None));
    assert_eq!(execution["status"], "running");
    assert_eq!(execution["executed_nodes"], json!(["s"]));

    let answer = loop {
        let answer = two.ask("POST", &resume, &token, None);
        if answer.status == 200 {
            break answer;
        }
        assert_eq!(answer.status, 409, "{}", answer.body);
        assert_eq!(answer.json()["detail"], "Execution is still running");
        assert!(died.elapsed() < Duration::from_secs(6), "the lease does not end");
        thread::sleep(Duration::from_millis(500));
    };
    // The usage of a model call may be reported before earlier events, so these events are left
    // out.
    let output = events(&answer.body).into_iter().filter(|event| event["event"] != "usage");
    let output: Vec<Value> = output.collect();
    assert_eq!(output[0]["event"], "workflow_start");
    assert_eq!(output[0]["data"]["resumed"], true);
    let begun: Vec<&Value> = output
        .iter()
        .filter(|event| event["event"] == "node_start")
        .map(|event| &event["data"]["node_id"])
        .collect();
    assert_eq!(begun, ["m", "e"], "the first node is not run again");
    assert!(answer.body.contains("\"final_output\": \"Done.\""), "{}", answer.body);
    assert_eq!(ok(&two.ask("GET", &path, &token, None))["status"], "completed");
    let again = two.ask("POST", &resume, &token, None);
    assert_eq!(again.status, 400);
    assert_eq!(again.json()["detail"], "Execution already completed");
}

#[test]
fn concurrent_starts_create_one_database() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let servers: Vec<TestServer> = thread::scope(|scope| {
        let started: Vec<_> =
            (0..3).map(|_| scope.spawn(|| run_env.server(&NO_RATE_LIMIT, None))).collect();
        started.into_iter().map(|thread| thread.join().expect("a server")).collect()
    });
    let token = register(&servers[0], "ada@example.com");
    for server in &servers {
        assert_eq!(server.ask("GET", "/api/v1/auth/me", &token, None).status, 200);
        assert_eq!(server.ask("GET", "/api/v1/skills/plain-words", &token, None).status, 200);
    }
    let doubled = "SELECT count(*) - count(DISTINCT version) FROM schema_versions";
    assert_eq!(run_env.number(doubled), 0);
    assert_eq!(run_env.number("SELECT count(*) FROM signing_keys"), 1);
}

#[test]
fn lost_connections_are_reopened() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let server = run_env.server(&NO_RATE_LIMIT, None);
    let token = register(&server, "ada@example.com");
    for pause in [0, 2500] {
        // Opens several database connections.
        thread::scope(|scope| {
            for _ in 0..8 {
                let (address, token) = (&server.address, &token);
                scope.spawn(move || {
                    TestServer::try_ask(address, "GET", "/api/v1/workflows", token, None)
                });
            }
        });
        thread::sleep(Duration::from_millis(pause));
        assert!(run_env.cut_connections() > 0);
        let cut = Instant::now();
        let mut failed = 0;
        for _ in 0..40 {
            let status = server.ask("GET", "/api/v1/workflows", &token, None).status;
            assert!([200, 503].contains(&status), "{status}");
            failed += u32::from(status == 503);
        }
        assert!(cut.elapsed() < Duration::from_secs(10));
        // Connections that were idle for a while are tested before use. Background tasks may have
        // used some just now, which are not tested.
        let most = if pause == 0 { 16 } else { 6 };
        assert!(failed <= most, "{failed} requests failed after {pause} ms");
        let body = json!({"name": "w"});
        let made = server.ask("POST", "/api/v1/workflows", &token, Some(&body));
        assert_eq!(made.status, 201, "{}", made.body);
    }
}

#[test]
fn unreachable_bucket_is_reported_without_partial_writes() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let server = run_env.server(&NO_RATE_LIMIT, None);
    let token = register(&server, "ada@example.com");
    let base = server.ask("POST", "/api/v1/knowledge", &token, Some(&json!({"name": "garden"})));
    let base = ok(&base)["id"].as_str().expect("an id").to_owned();
    let skill = json!({"name": "greeter", "content": greeter("Say hello.")});
    let files = format!("/api/v1/knowledge/{base}");
    ready(&server, 200);

    run_env.line.cut(true);
    let answer = ready(&server, 503);
    let body = json!({"status": "not ready", "database": "ok", "storage": "unreachable"});
    assert_eq!(answer.json(), body);
    assert_eq!(server.ask("GET", "/health", "", None).status, 200);
    let made = server.ask("POST", "/api/v1/skills", &token, Some(&skill));
    assert_eq!(made.status, 503, "{}", made.body);
    let detail = "The database or the storage of the server does not answer. Try again later.";
    assert_eq!(made.json(), json!({"detail": detail}));
    assert!(made.head.contains("\nx-request-id: "), "{}", made.head);
    let listed = server.ask("GET", "/api/v1/skills", &token, None);
    assert_eq!((listed.status, &listed.json()["detail"]), (503, &json!(detail)));
    let answer = upload(&server, &format!("{files}/upload"), &token, "a.md", "Some words.");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("\r\nx-request-id: "), "{answer}");

    run_env.line.cut(false);
    ready(&server, 200);
    assert_eq!(server.ask("GET", "/api/v1/skills/greeter", &token, None).status, 404);
    let documents = ok(&server.ask("GET", &format!("{files}/documents"), &token, None));
    assert_eq!(documents["total"], 0, "{documents}");
    let made = server.ask("POST", "/api/v1/skills", &token, Some(&skill));
    assert_eq!(made.status, 201, "{}", made.body);
}

/// Waits until `/ready` has this status.
fn ready(server: &TestServer, status: u16) -> HttpResponse {
    let began = Instant::now();
    loop {
        let answer = server.ask("GET", "/ready", "", None);
        if answer.status == status {
            return answer;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{}", answer.body);
        thread::sleep(Duration::from_millis(100));
    }
}

/// Sends the same request to several servers at the same time; returns the sorted statuses.
fn send_concurrently(
    servers: [&TestServer; 2],
    path: &str,
    token: &str,
    body: Option<&Value>,
) -> Vec<u16> {
    let addresses = servers.map(|server| server.address.as_str());
    let ask = |number: usize| TestServer::try_ask(addresses[number % 2], "POST", path, token, body);
    let mut statuses: Vec<u16> = thread::scope(|scope| {
        let ask = &ask;
        let asked: Vec<_> = (0..8).map(|number| scope.spawn(move || ask(number))).collect();
        let answers = asked.into_iter().map(|thread| thread.join().expect("an answer"));
        answers.map(|answer| answer.expect("an answer").status).collect()
    });
    statuses.sort_unstable();
    statuses
}

#[test]
fn of_concurrent_writes_one_wins() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let (no, slow) = (
        Provider::new(ProviderBehavior::Refuses),
        Provider::new(ProviderBehavior::Slowly(&["On."; 4])),
    );
    let one = run_env.server(&NO_RATE_LIMIT, Some(&no));
    let token = register(&one, "ada@example.com");
    let workflow = json!({"name": "w", "graph_data": {
        "nodes": [{"id": "s", "type": "start"}, {"id": "m", "type": "llm"}],
        "edges": [{"source": "s", "target": "m"}],
    }});
    let workflow = ok(&one.ask("POST", "/api/v1/workflows", &token, Some(&workflow)));
    let path = format!("/api/v1/workflows/{}/execute", workflow["id"].as_str().expect("an id"));
    let run = one.ask("POST", &path, &token, Some(&json!({"input": "Go."})));
    assert!(run.body.contains("event: workflow_error"), "{}", run.body);
    let id = run.body.split("\"execution_id\": \"").nth(1).and_then(|rest| rest.split('"').next());
    let resume = format!("/api/v1/workflows/executions/{}/resume", id.expect("an id"));

    let (two, three) =
        (run_env.server(&NO_RATE_LIMIT, Some(&slow)), run_env.server(&NO_RATE_LIMIT, Some(&slow)));
    assert_eq!(
        send_concurrently([&two, &three], &resume, &token, None),
        [200, 409, 409, 409, 409, 409, 409, 409]
    );
    assert_eq!(slow.questions().len(), 1);
    for number in 0..3 {
        let name = format!("greeter-{number}");
        let content = greeter("Say hello.").replace("greeter", &name);
        let body = json!({"name": name, "content": content});
        assert_eq!(
            send_concurrently([&two, &three], "/api/v1/skills", &token, Some(&body)),
            [201, 409, 409, 409, 409, 409, 409, 409]
        );
    }
    // Only once, because a client that registers several existing addresses has to wait.
    let body = json!({"email": "bob@example.com", "password": "secret-word"});
    assert_eq!(
        send_concurrently([&two, &three], "/api/v1/auth/register", "", Some(&body)),
        [200, 409, 409, 409, 409, 409, 409, 409]
    );
}
