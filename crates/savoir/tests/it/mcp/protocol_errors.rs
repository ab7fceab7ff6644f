//! Tests invalid messages, and what the server offers at the start.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde_json::json;

use super::{Client, code, sandbox_with_examples};

#[test]
fn an_invalid_line_does_not_stop_the_server() {
    let sandbox = sandbox_with_examples(&["hello-world"]);
    let mut client = Client::start_uninitialized(&sandbox, &["../skills"]);
    let deep = "[".repeat(100_000);
    let long = format!(r#"{{"jsonrpc":"2.0","id":9,"method":"{}"}}"#, "x".repeat(10_000_000));
    for (line, expected) in [
        ("garbage", -32700),
        ("{\"jsonrpc\":", -32700),
        ("\u{0}", -32700),
        (deep.as_str(), -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
        ("17", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (long.as_str(), -32600),
    ] {
        client.write_line(line);
        let heard = client.read_message();
        let shown = &line[..line.len().min(60)];
        assert_eq!(heard["error"]["code"], expected, "{shown}: {heard}");
    }
    // Invalid messages do not end the session, before or after the handshake.
    client.write_line("");
    client.write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    client.write_line(r#"{"jsonrpc":"2.0","id":77,"result":{}}"#);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    let early = client.ask("tools/list", json!({}));
    assert_eq!(early["error"]["code"], -32602, "{early}");
    drop(client);

    let mut client = Client::new(&sandbox);
    assert_eq!(client.ask("no/such", json!({}))["error"]["code"], -32601);
    assert_eq!(client.ask("tools/call", json!({"nam": 1}))["error"]["code"], -32602);
    assert_eq!(client.ask("resources/read", json!({}))["error"]["code"], -32602);
    for method in
        ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "skills/list"]
    {
        for cursor in [json!(5), json!(["x"]), json!({"a": 1}), json!(true)] {
            let wrong = client.ask(method, json!({"cursor": cursor}));
            assert_eq!(wrong["error"]["code"], -32602, "{method} {cursor}: {wrong}");
            let message = wrong["error"]["message"].as_str().unwrap();
            assert!(message.contains("cursor"), "{method}: {message}");
        }
        let first = client.ask(method, json!({"cursor": null}));
        assert!(first["result"].is_object(), "{method}: {first}");
    }
    client.write_line("garbage");
    assert_eq!(client.read_message()["error"]["code"], -32700);
    client.write_line(
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}"#,
    );
    client.write_line(r#"{"jsonrpc":"2.0","method":"notifications/brand-new"}"#);
    assert_eq!(client.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(client.end(), 0);
}

#[test]
fn end_of_input_exits_cleanly() {
    let sandbox = sandbox_with_examples(&["hello-world"]);
    assert_eq!(Client::start_uninitialized(&sandbox, &["../skills"]).end(), 0);
    // All requests before the end of the input are answered.
    let mut client = Client::new(&sandbox);
    let ids: Vec<i64> = (0..20)
        .map(|_| {
            client.send(
                "tools/call",
                json!({"name": "search_skills", "arguments": {"query": "hello"}}),
            )
        })
        .collect();
    drop(client.input.take());
    for id in ids {
        let found = client.answer(id);
        assert_eq!(
            found["result"]["structuredContent"]["skills"][0]["name"], "hello-world",
            "{found}"
        );
    }
    assert_eq!(client.end(), 0);
}

#[test]
fn wrong_calls_return_errors_for_the_model() {
    let sandbox = sandbox_with_examples(&["git-helper"]);
    fs::write(sandbox.path("secret"), "secret").unwrap();
    let mut client = Client::new(&sandbox);
    for (tool, arguments, expected) in [
        ("use_skill", json!({"name": "git-helpr"}), "unknown-skill"),
        ("use_skill", json!({"name": 5}), "missing-argument"),
        ("use_skill", json!({}), "missing-argument"),
        (
            "read_skill_file",
            json!({"name": "git-helper", "path": "../../secret"}),
            "path-outside-skill",
        ),
        (
            "read_skill_file",
            json!({"name": "git-helper", "path": "/etc/passwd"}),
            "path-outside-skill",
        ),
        ("read_skill_file", json!({"name": "git-helper", "path": "none.md"}), "no-such-file"),
        ("no_such_tool", json!({}), "unknown-tool"),
        ("run_skill_tool", json!({"skill": "git-helper"}), "missing-argument"),
        ("run_skill_tool", json!({"skill": "git-helper", "tool": "x"}), "unknown-tool"),
        ("run_skill_tool", json!({"skill": "none", "tool": "x"}), "unknown-skill"),
        (
            "run_skill_tool",
            json!({"skill": "git-helper", "tool": "git_log", "arguments": 5}),
            "missing-argument",
        ),
        (
            "save_skill",
            json!({"name": "", "description": "d", "instructions": "i"}),
            "draft-refused",
        ),
    ] {
        let result = client.call(tool, &arguments);
        assert_eq!(code(&result), expected, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.len() > 10, "{text}");
    }
    let saved = json!({"name": "new-one", "description": "Does it. Use in tests.", "instructions": "Do it."});
    let saved = client.call("save_skill", &saved);
    assert_eq!(saved["structuredContent"]["enabled"], false, "{saved}");
    assert_eq!(code(&client.call("use_skill", &json!({"name": "new-one"}))), "unknown-skill");
}

#[test]
fn size_of_the_tool_list_does_not_depend_on_skill_count() {
    let sandbox = sandbox_with_examples(&[]);
    for n in 0..1000 {
        let text = format!(
            "---\nname: skill-{n:04}\ndescription: {} Use for {n}.\n---\nDo it.\n",
            "Does a great many things. ".repeat(10)
        );
        sandbox.write(&format!("skills/skill-{n:04}/SKILL.md"), text);
    }
    let mut client = Client::new(&sandbox);
    let answer = client.ask("tools/list", json!({}));
    assert!(answer.to_string().len() < 4_000, "{}", answer.to_string().len());
    let found = client.call("search_skills", &json!({"query": "use for 777"}));
    assert_eq!(found["structuredContent"]["of"], 1000, "{found}");
    assert_eq!(
        client.ask("skills/list", json!({}))["result"]["skills"].as_array().unwrap().len(),
        25
    );
}

#[test]
fn huge_names_are_handled_fast_and_not_echoed() {
    let sandbox = sandbox_with_examples(&["git-helper"]);
    let mut client = Client::new(&sandbox);
    let long = "x".repeat(3_900_000);
    let clock = Instant::now();
    let refused = client.call("use_skill", &json!({"name": long}));
    assert_eq!(code(&refused), "unknown-skill");
    let run = json!({"skill": "git-helper", "tool": long});
    let unknown = client.call("run_skill_tool", &run);
    assert_eq!(code(&unknown), "unknown-tool");
    let argument = json!({"skill": "git-helper", "tool": "git_log", "arguments": {long: 1}});
    let wrong = client.call("run_skill_tool", &argument);
    for document in [refused, unknown, wrong] {
        assert!(document.to_string().len() < 2_000, "{} bytes", document.to_string().len());
    }
    assert!(clock.elapsed() < Duration::from_secs(20), "{:?}", clock.elapsed());
}

#[test]
fn a_client_that_does_not_read_is_throttled() {
    const REQUEST_COUNT: usize = 10_000;
    let sandbox = sandbox_with_examples(&["hello-world"]);
    let mut command = sandbox.command(&["mcp", "../skills"]);
    command.current_dir(sandbox.path("work")).env("HOME", sandbox.path("home"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("savoir runs");
    let (mut input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let written = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&written);
    let writing = thread::spawn(move || {
        let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        }});
        writeln!(input, "{hello}").unwrap();
        writeln!(input, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#).unwrap();
        for id in 0..REQUEST_COUNT {
            writeln!(input, r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#).unwrap();
            count.store(id + 1, Ordering::Relaxed);
        }
    });
    thread::sleep(Duration::from_secs(5));
    let taken = written.load(Ordering::Relaxed);
    assert!(taken < REQUEST_COUNT / 4, "{taken} requests were taken in, and no answer was read");
    // A client that starts to read late gets every response.
    let lines = BufReader::new(output).lines().map_while(Result::ok);
    assert_eq!(lines.filter(|line| line.contains("\"result\":")).count(), REQUEST_COUNT + 1);
    writing.join().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
