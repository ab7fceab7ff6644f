//! Checks the server against its OpenAPI document with schemathesis: with valid data, invalid
//! data, and data from earlier responses.

use std::{
    fmt::Write as _,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    live_server::{Provider, ProviderBehavior, TestServer},
    services::{service, upload},
    support::Sandbox,
};

const ADMIN: &str = "admin@example.com";

/// Rules that the document cannot express, with the reasons.
const RULES: &str = r#"
# A body of another shape is 422. What else is wrong with it is 400, by rules that no schema states:
# the text of a skill, the type of a file, an account that is locked already.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 413, 429]

# The nodes of a graph have names of their own, which no schema states, and this is 422 by contract.
[[operations]]
include-path-regex = "/workflows(/import|/\\{id\\})?$"
checks.positive_data_acceptance.expected-statuses = ["2xx", 400, 401, 403, 404, 409, 413, 422, 429]

# It ends the token that all other questions are asked with.
[[operations]]
include-path = "/api/v1/auth/logout"
enabled = false
"#;

#[test]
fn server_conforms_to_its_openapi_document() {
    let Some(python) = service("SAVOIR_TEST_PYTHON", "schemathesis") else { return };
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Says(&["Good ", "day."]));
    let options = ["--rate-limit", "off", "--admin-email", ADMIN];
    let server = TestServer::start(&sandbox, &options, Some(&provider));
    let token = crate::cluster::register(&server, ADMIN);
    let hold = |phases: &str, examples: &str, more: &str| {
        sandbox.write("schemathesis.toml", format!("{RULES}{more}"));
        let url = format!("http://{}/openapi.json", server.address);
        let bearer = format!("Authorization: Bearer {token}");
        let output = Command::new(&python)
            .args(["-m", "schemathesis.cli", "run", &url, "--header", &bearer, "--phases", phases])
            .args(["--max-examples", examples, "--seed", "7", "--workers", "1", "--no-shrink"])
            .args(["--request-timeout", "20", "--suppress-health-check", "all"])
            .args(["--generation-database", "none", "--continue-on-failure"])
            .current_dir(sandbox.path(""))
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1")
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .output()
            .expect("schemathesis runs");
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{printed}{complaints}");
        assert!(!printed.contains("Unresolvable references"), "{printed}");
        let tested = printed.lines().find_map(|line| line.trim().strip_prefix("Tested: "));
        tested.and_then(|count| count.parse::<u32>().ok()).unwrap_or_else(|| panic!("{printed}"))
    };
    let document = server.ask("GET", "/openapi.json", "", None).json();
    let paths = document["paths"].as_object().expect("paths");
    let operations: usize = paths.values().filter_map(|path| Some(path.as_object()?.len())).sum();
    let things = create_test_data(&server, &token) + &publish_test_skill(&sandbox, &server, &token);
    let soak = std::env::var_os("SAVOIR_TEST_SOAK").is_some();
    let tested = hold("coverage,fuzzing", if soak { "8" } else { "3" }, &things);
    assert_eq!(usize::try_from(tested), Ok(operations - 1), "all but one are tested");
    // The stateful tests use resources that they created before.
    assert!(hold("stateful", "60", "") > 15);
    assert_eq!(server.ask("GET", "/ready", "", None).status, 200, "it is well afterwards");
}

/// Creates resources to request, as parameters for schemathesis.
fn create_test_data(server: &TestServer, token: &str) -> String {
    let ask = |method: &str, path: &str, body: Value| {
        let answer = server.ask(method, &format!("/api/v1{path}"), token, Some(&body));
        assert!(answer.status < 300, "{path}: {}", answer.body);
        answer.json()
    };
    let id = |made: &Value, member: &str| made[member].as_str().expect(member).to_owned();
    let base = id(&ask("POST", "/knowledge", json!({"name": "garden"})), "id");
    let path = format!("/api/v1/knowledge/{base}/upload");
    let answer = upload(server, &path, token, "herbs.md", "Sage is a herb.");
    let document: Value =
        serde_json::from_str(answer.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    let (document, task) = (id(&document, "id"), id(&document, "task_id"));
    let graph = json!({
        "nodes": [{"id": "s", "type": "start"}, {"id": "m", "type": "llm"}],
        "edges": [{"source": "s", "target": "m"}],
    });
    let workflow = json!({"name": "w", "graph_data": graph});
    let workflow = id(&ask("POST", "/workflows", workflow), "id");
    let execute = format!("/api/v1/workflows/{workflow}/execute");
    let run = server.ask("POST", &execute, token, Some(&json!({"input": "Hello."})));
    let execution = run.body.split("\"execution_id\": \"").nth(1).expect("an execution");
    let execution = execution.split('"').next().expect("an execution");
    ask("PUT", "/settings/feature-flags/ENABLE_PUBLIC_EMBED", json!({"enabled": true}));
    let published = id(&ask("POST", "/publish/embed", json!({"workflow_id": workflow})), "token");
    let chat = json!({"session_id": "talk", "message": "Hello."});
    assert_eq!(server.ask("POST", "/api/v1/chat/completions", token, Some(&chat)).status, 200);

    let mut text = String::new();
    for (paths, name, value) in [
        ("/knowledge/\\\\{kb\\\\}", "kb", base.as_str()),
        ("/knowledge/.*\\\\{doc\\\\}", "doc", &document),
        ("/knowledge/tasks/", "id", &task),
        ("/skills/\\\\{name\\\\}", "name", "plain-words"),
        ("/workflows/\\\\{id\\\\}", "id", &workflow),
        ("/workflows/executions/", "id", execution),
        ("/publish/embed/", "token", &published),
        ("/chat/sessions/", "id", "talk"),
    ] {
        write!(
            text,
            "\n[[operations]]\ninclude-path-regex = \"{paths}\"\nexclude-method = \"DELETE\"\n\
             parameters = {{ \"path.{name}\" = \"{value}\" }}\n"
        )
        .expect("a text");
    }
    text
}

/// Pairs of path parameter and value.
type Values<'a> = &'a [(&'a str, &'a str)];

/// Publishes skills to request, as parameters for schemathesis: a skill in the default namespace,
/// one in another namespace, a text, and a withdrawn version.
fn publish_test_skill(sandbox: &Sandbox, server: &TestServer, token: &str) -> String {
    let run = |args: &[&str]| {
        let mut command = sandbox.command(args);
        command
            .env("SAVOIR_TOKEN", token)
            .env("SAVOIR_REGISTRY", format!("http://{}/registry", server.address));
        let output = command.stdin(Stdio::null()).output().expect("savoir runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {said}");
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
    };
    let skill = |name: &str, version: &str| {
        let text = format!(
            "---\nname: {name}\ndescription: Greets people. Use when somebody comes.\nmetadata:\n  \
             version: \"{version}\"\n---\n# It\n\nSay hello.\n"
        );
        sandbox.write(&format!("stock/{name}/SKILL.md"), text);
    };
    sandbox.write("stock/tea.md", "# Tea\n\nBoil water.\n");
    run(&["publish", "stock/tea.md", "--namespace", "anon", "--yes", "--json"]);
    skill("greeter", "1.0.0");
    run(&["publish", "stock/greeter", "--namespace", "acme", "--yes", "--json"]);
    let [_, last] = ["1.1.0", "1.0.0"].map(|version| {
        skill("plain-words", version);
        run(&["publish", "stock/plain-words", "--yes", "--json"])
    });
    let digest = last["artifact"]["sha256"].as_str().expect("a digest");
    run(&["registry", "yank", "plain-words@1.1.0", "--reason", "it shouts", "--json"]);
    let answer = server.ask("GET", "/registry/api/v1/skills/plain-words/1.1.0", token, None);
    assert_eq!(answer.json()["yanked"], true, "{}", answer.body);

    let of = |path: &str| path.replace('{', "\\\\{").replace('}', "\\\\}");
    let tea = &[("namespace", "anon"), ("name", "tea"), ("version", "0.0.1")];
    let acme = &[("namespace", "acme"), ("name", "greeter"), ("version", "1.0.0")];
    let plain = &[("name", "plain-words"), ("version", "1.0.0")];
    let yanked = &[("version", "1.1.0")];
    let archive = &[("sha256", digest), ("filename", "plain-words-1.0.0.zip")];
    let things: [(&str, &str, Values<'_>); 10] = [
        ("GET", "/skills/{name}/{version}$", &plain[1..]),
        ("POST", "/skills/{name}/{version}/(yank|deprecate)", yanked),
        ("GET", "/skills/{namespace}/{name}/{version}$", acme),
        ("GET", "/skills/{namespace}/{name}/(download|keys|members)$", &acme[..2]),
        ("GET", "/namespaces/", &acme[..1]),
        ("GET", "/registry/{namespace}/", tea),
        ("GET", "/registry/{name}/", plain),
        ("GET", "/index/v1/{prefix}/{name}", &[("prefix", "pl"), plain[0]]),
        ("GET", "/index/v1/{prefix}/{namespace}", &[("prefix", "gr"), acme[0], acme[1]]),
        ("GET", "/artifacts/", archive),
    ];
    let mut text = String::new();
    for (method, path, values) in things {
        let values: Vec<String> =
            values.iter().map(|(name, value)| format!("\"path.{name}\" = \"{value}\"")).collect();
        write!(
            text,
            "\n[[operations]]\ninclude-path-regex = \"{}\"\ninclude-method = \"{method}\"\n\
             parameters = {{ {} }}\n",
            of(path),
            values.join(", ")
        )
        .expect("a text");
    }
    text
}
