//! Tests tools of skills for agents over HTTP: they run only if the operator enables and approves
//! them.

use std::{fs, path::Path, sync::Arc};

use savoir_engine::{
    Home, RunError,
    approval::{Approval, Approvals, ExtraGrants, Trust},
    loaded_skill::LoadedSkill,
    run::{Call, CallInput, plan},
    run_environment::RunEnvironment,
};
use savoir_package::trust::TrustStore;
use savoir_server::{ReadFolder, ToolRunner};
use savoir_skill::{Folder, Source, read};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::{
    cookies::open_session,
    harness::{ADMIN, Client, Reply, TestServer},
    mcp::{ask, begin, begin_at, greet, modern, modern_at},
    model::{Answer, Scripted},
};

/// A skill whose tools run programs that exist on every machine.
const DEMO: &str = "---\nname: demo\nversion: 1.0.0\ndescription: Says hello. Use when greeting.\nread_only: true\n---\n\n# Demo\n\n### hello\n\nSay hello.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\necho \"hello world\"\n```\n\n### look\n\nLook around.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\nls -A\n```\n";

/// Reads skills from their folders.
#[derive(Debug)]
struct Disk;

impl ReadFolder for Disk {
    fn read(&self, folder: &Path) -> Result<LoadedSkill, RunError> {
        let file = folder.join("SKILL.md");
        let bytes = fs::read(&file).map_err(|error| RunError::call("no-skill", error))?;
        let opened = Folder::open(folder).expect("a folder");
        let reading = read(Source::from_bytes(bytes).expect("text"), Some(&opened));
        let store = TrustStore::default();
        Ok(LoadedSkill::new(&reading, &file, Some(folder), Trust::User, &store)?)
    }
}

/// A server whose operator has enabled tools.
struct Stage {
    server: TestServer,
    model: Arc<Scripted>,
    home: Home,
    run_env: RunEnvironment,
    _folder: TempDir,
}

impl Stage {
    async fn new() -> Self {
        Self::with_answers(&[]).await
    }

    async fn with_answers(answers: &[Answer]) -> Self {
        let folder = TempDir::new().unwrap();
        let home = Home::at(&folder.path().join("savoir"));
        fs::create_dir_all(folder.path().join("work")).unwrap();
        fs::write(folder.path().join("work/secret"), "of the operator").unwrap();
        let here = RunEnvironment::at(&folder.path().join("work"), folder.path());
        let variables = vec![("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())];
        let run_env = RunEnvironment { variables, ..here.keeping(&home) };
        let workshop = ToolRunner::new(home.clone(), run_env.clone(), Arc::new(Disk));
        let model = Scripted::new(answers);
        let server = TestServer::with_model(model.clone(), |config| {
            config.skill_tools = Some(workshop);
            config.chat_tools = true;
        });
        Self { server: server.await, model, home, run_env, _folder: folder }
    }

    /// Does the same as `savoir approve`.
    fn approve(&self, skill: &str) {
        self.approve_in(skill, "Global");
    }

    fn approve_in(&self, skill: &str, mode: &str) {
        let loaded_skill = Disk.read(&self.server.skills_folder().join(skill)).unwrap();
        let call = Call {
            loaded_skill: &loaded_skill,
            tool: "hello",
            input: CallInput::Json(Map::new()),
            run_env: &self.run_env,
            mode,
            extra: &ExtraGrants::default(),
        };
        let request = plan(&call).unwrap().request;
        Approvals::new(&self.home).save(Approval::new(&request, "operator".to_owned())).unwrap();
    }
}

async fn keep(client: &Client, text: &str) {
    let body = json!({"name": "demo", "content": text});
    let made = client.post("/api/v1/skills", &body).await;
    assert_eq!(made.status, 201, "{}", made.text);
}

async fn call(client: &Client, session: &str, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    ask(client, session, "tools/call", params).await["result"].clone()
}

fn code(result: &Value) -> &str {
    result["structuredContent"]["error"]["code"].as_str().unwrap_or_else(|| panic!("{result}"))
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn approved_tools_run_for_users_with_access() {
    let stage = Stage::new().await;
    let (ann, bob) =
        (stage.server.register("ann@x.org").await, stage.server.register("bob@x.org").await);
    keep(&ann, DEMO).await;
    let (of_ann, of_bob) = (begin(&ann).await, begin(&bob).await);
    let hello = json!({"skill": "demo", "tool": "hello"});
    let refused = call(&ann, &of_ann, "run_skill_tool", hello.clone()).await;
    assert_eq!(code(&refused), "approval-needed", "{refused}");
    assert!(refused.to_string().contains("savoir approve /"), "the way out: {refused}");

    stage.approve("demo");
    let run = call(&ann, &of_ann, "run_skill_tool", hello.clone()).await;
    assert_eq!(run["structuredContent"]["success"], true, "{run}");
    assert!(run.to_string().contains("hello world"), "{run}");
    let other = call(&bob, &of_bob, "run_skill_tool", hello.clone()).await;
    assert_eq!(code(&other), "unknown-skill", "{other}");

    // The tool is listed once its skill is loaded, and cannot see files of the operator.
    call(&ann, &of_ann, "use_skill", json!({"name": "demo"})).await;
    let listed = ask(&ann, &of_ann, "tools/list", json!({})).await;
    assert!(names(&listed).contains(&"demo__look"), "{listed}");
    let looked = call(&ann, &of_ann, "demo__look", json!({})).await;
    assert_eq!(looked["structuredContent"]["success"], true, "{looked}");
    assert!(!looked.to_string().contains("secret"), "{looked}");

    // Disabling the skill disables its tools, even approved ones.
    let patched = ann.request(reqwest::Method::PATCH, "/api/v1/skills/demo");
    assert_eq!(Reply::of(patched.json(&json!({"enabled": false}))).await.status, 200);
    for (tool, arguments) in [("demo__hello", json!({})), ("run_skill_tool", hello.clone())] {
        let refused = call(&ann, &of_ann, tool, arguments).await;
        assert_eq!(code(&refused), "unknown-skill", "{tool}: {refused}");
    }
    let listed = ask(&ann, &of_ann, "tools/list", json!({})).await;
    assert!(!names(&listed).iter().any(|name| name.starts_with("demo__")), "{listed}");
    let patched = ann.request(reqwest::Method::PATCH, "/api/v1/skills/demo");
    assert_eq!(Reply::of(patched.json(&json!({"enabled": true}))).await.status, 200);
    // A changed skill needs a new approval.
    let changed = json!({"content": DEMO.replace("hello world", "good bye")});
    assert_eq!(ann.put("/api/v1/skills/demo", &changed).await.status, 200);
    let refused = call(&ann, &of_ann, "run_skill_tool", hello).await;
    assert_eq!(code(&refused), "approval-needed", "{refused}");
}

/// A skill whose tools leave files and print their working folder.
fn leaving() -> String {
    let tool = |name: &str, command: &str| {
        format!(
            "\n### {name}\n\nDo it.\n\n#### Parameters\n\nNone.\n\n#### Command\n\n```bash\n{command}\n```\n"
        )
    };
    let text = DEMO.replace("read_only: true\n", "");
    [text, tool("leave", "bash -c 'echo done > left'"), tool("place", "pwd")].concat()
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_start_in_an_empty_folder_and_their_files_are_stored() {
    let stage = Stage::new().await;
    let (ann, bob) =
        (stage.server.register("ann@x.org").await, stage.server.register("bob@x.org").await);
    keep(&ann, &leaving()).await;
    stage.approve("demo");
    let session = begin(&ann).await;
    call(&ann, &session, "use_skill", json!({"name": "demo"})).await;
    let left = call(&ann, &session, "demo__leave", json!({})).await;
    assert_eq!(left["structuredContent"]["success"], true, "{left}");
    let run = left["structuredContent"]["run"].as_str().unwrap_or_else(|| panic!("{left}"));
    assert_eq!(left["structuredContent"]["files"], json!([{"path": "left", "size": 5}]));
    let listed = ann.get(&format!("/api/v1/runs/{run}/files")).await;
    assert_eq!(listed.status, 200, "{}", listed.text);
    assert_eq!(listed.json()["files"][0]["path"], "left");
    let file = ann.get(&format!("/api/v1/runs/{run}/file?path=left")).await;
    assert_eq!(file.status, 200, "{}", file.text);
    assert_eq!(file.text, "done\n");
    for path in ["nothing", "../left", "/etc/passwd", "."] {
        let missing = ann.get(&format!("/api/v1/runs/{run}/file?path={path}")).await;
        assert_eq!(missing.status, 404, "{path}");
    }
    for address in
        [format!("/api/v1/runs/{run}/files"), format!("/api/v1/runs/{run}/file?path=left")]
    {
        assert_eq!(bob.get(&address).await.status, 404, "it is Ann's");
    }
    let looked = call(&ann, &session, "demo__look", json!({})).await;
    assert_eq!(looked["structuredContent"]["success"], true, "{looked}");
    assert!(!looked.to_string().contains("left"), "{looked}");
    let mut places = Vec::new();
    for _ in 0..2 {
        let value = call(&ann, &session, "demo__place", json!({})).await.to_string();
        let start = value.find('/').expect("a path");
        let place: String =
            value[start..].chars().take_while(|c| !"\"\\\n ".contains(*c)).collect();
        assert!(place.contains("/workspaces/"), "{value}");
        assert!(!Path::new(&place).exists(), "{place} is still there");
        places.push(place);
    }
    assert_ne!(places[0], places[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn running_tools_needs_the_run_scope() {
    let stage = Stage::new().await;
    let ann = stage.server.register("ann@x.org").await;
    keep(&ann, DEMO).await;
    stage.approve("demo");
    for (scopes, may) in [(vec!["skills:read"], false), (vec!["skills:read", "skills:run"], true)] {
        let body = json!({"name": "p", "scopes": scopes});
        let made = ann.post("/api/v1/auth/tokens", &body).await.json();
        let agent = stage.server.client(made["token"].as_str().unwrap());
        let session = begin(&agent).await;
        let listed = ask(&agent, &session, "tools/list", json!({})).await;
        assert_eq!(names(&listed).contains(&"run_skill_tool"), may, "{scopes:?}");
        let hello = json!({"skill": "demo", "tool": "hello"});
        let run = call(&agent, &session, "run_skill_tool", hello).await;
        assert_eq!(run["isError"], json!(!may), "{scopes:?}: {run}");
        if !may {
            for (tool, given) in [
                ("run_skill_tool", json!({"skill": "demo", "tool": "hello"})),
                ("demo__hello", json!({})),
            ] {
                let refused = call(&agent, &session, tool, given).await;
                assert_eq!(code(&refused), "missing-scope", "{refused}");
                let message = refused["content"][0]["text"].as_str().unwrap();
                assert!(message.contains("`skills:run`"), "{message}");
                assert!(message.contains("/api/v1/auth/tokens"), "{message}");
            }
            let draft = json!({"name": "n", "description": "d", "instructions": "i"});
            let refused = call(&agent, &session, "save_skill", draft).await;
            let message = refused["content"][0]["text"].as_str().unwrap();
            assert!(message.contains("`skills:draft`"), "{message}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unapproved_tools_do_not_run() {
    let server = TestServer::start().await;
    let ann = server.register("ann@x.org").await;
    keep(&ann, DEMO).await;
    let session = begin(&ann).await;
    let value = call(&ann, &session, "use_skill", json!({"name": "demo"})).await;
    assert_eq!(value["structuredContent"]["tools"], Value::Null, "{value}");
    let hello = json!({"skill": "demo", "tool": "hello"});
    assert_eq!(code(&call(&ann, &session, "run_skill_tool", hello).await), "unknown-tool");
    assert_eq!(code(&call(&ann, &session, "demo__hello", json!({})).await), "unknown-tool");
}

#[tokio::test(flavor = "multi_thread")]
async fn session_mode_comes_from_the_url() {
    let stage = Stage::new().await;
    let ann = stage.server.register("ann@x.org").await;
    keep(&ann, &DEMO.replace("read_only: true", "modes: [Dev]\nread_only: true")).await;
    stage.approve_in("demo", "Dev");
    let hello = json!({"skill": "demo", "tool": "hello"});
    for (path, may) in [
        ("/mcp", false),
        ("/mcp?mode=meeting", false),
        ("/mcp?mode=dev", true),
        ("/mcp?x=y&mode=Dev", true),
    ] {
        let session = begin_at(&ann, path).await;
        call(&ann, &session, "use_skill", json!({"name": "demo"})).await;
        let listed = ask(&ann, &session, "tools/list", json!({})).await;
        assert_eq!(names(&listed).contains(&"demo__hello"), may, "{path}: {listed}");
        let run = call(&ann, &session, "run_skill_tool", hello.clone()).await;
        if may {
            assert_eq!(run["structuredContent"]["success"], true, "{path}: {run}");
        } else {
            assert_eq!(code(&run), "not-in-mode", "{path}: {run}");
            assert!(run.to_string().contains("/mcp?mode="), "the way out: {run}");
        }
    }
    for path in ["/mcp?mode=party", "/mcp?mode=", "/mcp?mode=dev&mode=global"] {
        let refused = greet(&ann, path).await;
        assert_eq!(refused.status, 400, "{path}: {}", refused.text);
        assert!(refused.text.contains("mode"), "{}", refused.text);
    }
    let refused = greet(&ann, "/mcp?mode=party").await;
    assert!(refused.text.contains("Global, Dev, Meeting, Writer"), "{}", refused.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn mode_cannot_bypass_the_allow_list() {
    let stage = Stage::new().await;
    let ann = stage.server.register("ann@x.org").await;
    keep(&ann, DEMO).await;
    stage.approve("demo");
    let narrow = "---\nname: narrow\ndescription: Reads. Use when reading.\nallowed-tools: Read\n---\n\nRead.\n";
    let body = json!({"name": "narrow", "content": narrow});
    assert_eq!(ann.post("/api/v1/skills", &body).await.status, 201);
    let hello = json!({"skill": "demo", "tool": "hello"});
    let run = call_alone_at(&ann, "/mcp?mode=dev", "run_skill_tool", hello.clone()).await;
    assert_eq!(run["structuredContent"]["success"], true, "{run}");
    call_alone(&ann, "use_skill", json!({"name": "narrow"})).await;
    let refused = call_alone_at(&ann, "/mcp?mode=dev", "run_skill_tool", hello).await;
    assert_eq!(code(&refused), "tool-not-allowed", "{refused}");
}

/// Calls a tool without a session.
async fn call_alone(client: &Client, name: &str, arguments: Value) -> Value {
    call_alone_at(client, "/mcp", name, arguments).await
}

async fn call_alone_at(client: &Client, path: &str, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    let request = modern_at(client, path, "tools/call", params).header("mcp-name", name);
    let value = Reply::of(request).await;
    let data = value.text.lines().find_map(|line| line.strip_prefix("data: {"));
    let text = data.map_or_else(|| value.text.clone(), |data| format!("{{{data}"));
    let answer: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{}", value.text));
    answer["result"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn allow_list_applies_to_stateless_requests() {
    let stage = Stage::new().await;
    let ann = stage.server.register("ann@x.org").await;
    keep(&ann, DEMO).await;
    stage.approve("demo");
    let narrow = "---\nname: narrow\ndescription: Reads. Use when reading.\nallowed-tools: Read\n---\n\nRead.\n";
    let body = json!({"name": "narrow", "content": narrow});
    assert_eq!(ann.post("/api/v1/skills", &body).await.status, 201);
    let hello = json!({"skill": "demo", "tool": "hello"});
    let run = call_alone(&ann, "run_skill_tool", hello.clone()).await;
    assert_eq!(run["structuredContent"]["success"], true, "{run}");
    call_alone(&ann, "use_skill", json!({"name": "narrow"})).await;
    let refused = call_alone(&ann, "run_skill_tool", hello.clone()).await;
    assert_eq!(code(&refused), "tool-not-allowed", "{refused}");
    // Sessions and other tokens have their own allow-lists.
    let session = begin(&ann).await;
    let run = call(&ann, &session, "run_skill_tool", hello.clone()).await;
    assert_eq!(run["structuredContent"]["success"], true, "{run}");
    call_alone(&ann, "use_skill", json!({"name": "demo"})).await;
    let listed = Reply::of(modern(&ann, "tools/list", json!({}))).await;
    assert!(listed.text.contains("demo__hello"), "{}", listed.text);
    let run = call_alone(&ann, "run_skill_tool", hello).await;
    assert_eq!(run["structuredContent"]["success"], true, "{run}");
}

/// The model loads the skill, calls its tool, and then answers.
const CALL_HELLO: [Answer; 3] = [
    Answer::Calls("use_skill", r#"{"name": "demo"}"#),
    Answer::Calls("demo__hello", "{}"),
    Answer::Says(&["Done."]),
];

/// Sends a message. Returns the id of the run, and a task that ends with the events of the run.
async fn say(client: &Client) -> (String, tokio::task::JoinHandle<String>) {
    let body = json!({"session_id": "talk", "message": "Greet me"});
    let request = client.request(reqwest::Method::POST, "/api/v1/chat/completions").json(&body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let run = response.headers()["x-savoir-run"].to_str().unwrap().to_owned();
    (run, tokio::spawn(async { response.text().await.unwrap() }))
}

/// The question that a run waits for.
async fn question(client: &Client, run: &str) -> Value {
    for _ in 0..400 {
        let shown = client.get(&format!("/api/v1/runs/{run}")).await.json();
        let spans = shown["spans"].as_array().unwrap();
        if let Some(span) = spans.iter().find(|span| span["kind"] == "approval") {
            return span["detail"].clone();
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    panic!("the run {run} asks nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn administrator_is_asked_in_the_conversation() {
    let stage = Stage::with_answers(&CALL_HELLO).await;
    let admin = stage.server.register(ADMIN).await;
    let bob = stage.server.register("bob@x.org").await;
    keep(&admin, DEMO).await;
    let page = open_session(&stage.server, ADMIN).await;
    let (run, events) = say(&page).await;
    let asked = question(&admin, &run).await;
    assert_eq!((&asked["tool"], &asked["skill"]), (&json!("hello"), &json!("demo")), "{asked}");
    assert_eq!(asked["choices"], json!(["once", "always", "deny"]));
    let path = format!("/api/v1/runs/{run}/approvals/{}", asked["id"].as_str().unwrap());
    let answer = |word: &str| json!({"answer": word});
    // Neither another user nor an API token can answer.
    assert_eq!(bob.post(&path, &answer("once")).await.status, 404);
    let token = json!({"name": "agent", "scopes": ["skills:run", "chat", "admin"]});
    let token = admin.post("/api/v1/auth/tokens", &token).await.json()["token"].clone();
    let program = stage.server.client(token.as_str().unwrap());
    assert_eq!(program.post(&path, &answer("once")).await.status, 403);
    assert_eq!(admin.post(&path, &answer("perhaps")).await.status, 400);
    assert_eq!(admin.post(&path, &answer("once")).await.status, 204);
    assert_eq!(admin.post(&path, &answer("once")).await.status, 404, "it is answered");
    let events = events.await.unwrap();
    assert!(events.contains("\"answer\": \"once\""), "{events}");
    assert!(events.contains("Done."), "{events}");
    let value = stage.model.last().1;
    assert!(value.contains("hello world"), "the tool ran: {value}");
}

#[tokio::test(flavor = "multi_thread")]
async fn denied_tool_does_not_run_and_others_are_not_asked() {
    let stage = Stage::with_answers(&CALL_HELLO).await;
    let admin = stage.server.register(ADMIN).await;
    let bob = stage.server.register("bob@x.org").await;
    keep(&admin, DEMO).await;
    let page = open_session(&stage.server, ADMIN).await;
    let (run, events) = say(&page).await;
    let id = question(&admin, &run).await["id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/runs/{run}/approvals/{id}");
    assert_eq!(admin.post(&path, &json!({"answer": "deny"})).await.status, 204);
    events.await.unwrap();
    let value = stage.model.last().1;
    assert!(value.contains("declined") && !value.contains("hello world"), "{value}");

    // Stopping a run removes its question.
    for answer in &CALL_HELLO[..2] {
        stage.model.next(*answer);
    }
    let (run, events) = say(&page).await;
    let id = question(&admin, &run).await["id"].as_str().unwrap().to_owned();
    assert_eq!(admin.call(&format!("/api/v1/runs/{run}/stop")).await.status, 204);
    events.await.unwrap();
    let path = format!("/api/v1/runs/{run}/approvals/{id}");
    assert_eq!(admin.post(&path, &json!({"answer": "once"})).await.status, 404);

    // Other users are not asked, because a tool runs on the machine of the operator. API clients
    // are not asked, because they do not know these events.
    keep(&bob, DEMO).await;
    let bobs_page = open_session(&stage.server, "bob@x.org").await;
    for client in [&bobs_page, &admin] {
        for answer in CALL_HELLO {
            stage.model.next(answer);
        }
        let (_, events) = say(client).await;
        let events = events.await.unwrap();
        assert!(!events.contains("event: approval"), "{events}");
        assert!(stage.model.last().1.contains("approval-needed"), "{}", stage.model.last().1);
    }
}

/// Runs a tool. Returns the id of the run, and its events when it has ended.
async fn run_tool(
    client: &Client,
    tool: &str,
    arguments: Value,
) -> (String, tokio::task::JoinHandle<String>) {
    let path = format!("/api/v1/skills/demo/tools/{tool}/run");
    let request = client.request(reqwest::Method::POST, &path);
    let response = request.json(&json!({"arguments": arguments})).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let run = response.headers()["x-savoir-run"].to_str().unwrap().to_owned();
    (run, tokio::spawn(async { response.text().await.unwrap() }))
}

#[tokio::test(flavor = "multi_thread")]
async fn single_tool_runs_after_its_approval_and_is_recorded() {
    let stage = Stage::new().await;
    let admin = stage.server.register(ADMIN).await;
    keep(&admin, DEMO).await;
    let insight = admin.get("/api/v1/skills/demo/insight").await.json();
    assert_eq!(insight["can_run_tools"], true);
    assert_eq!(insight["tools"][0]["parameters"], json!([]));

    // A program is not asked.
    let (_, events) = run_tool(&admin, "hello", json!({})).await;
    let events = events.await.unwrap();
    assert!(events.contains("approval-needed") && events.contains("savoir approve"), "{events}");
    assert!(!events.contains("event: approval"), "{events}");

    let page = open_session(&stage.server, ADMIN).await;
    let (run, events) = run_tool(&page, "hello", json!({})).await;
    let asked = question(&admin, &run).await;
    let path = format!("/api/v1/runs/{run}/approvals/{}", asked["id"].as_str().unwrap());
    assert_eq!(admin.post(&path, &json!({"answer": "once"})).await.status, 204);
    let events = events.await.unwrap();
    assert!(events.contains("hello world") && events.contains("\"success\""), "{events}");

    let shown = admin.get(&format!("/api/v1/runs/{run}")).await.json();
    assert_eq!((&shown["kind"], &shown["state"]), (&json!("tool"), &json!("ok")), "{shown}");
    assert_eq!(shown["rerun"]["path"], "/api/v1/skills/demo/tools/hello/run");
    assert_eq!(shown["output"], "hello world");

    let missing = admin.post("/api/v1/skills/demo/tools/none/run", &json!({})).await;
    assert_eq!(missing.status, 404, "{}", missing.text);
    let wrong = admin.post("/api/v1/skills/demo/tools/hello/run", &json!({"arguments": 1})).await;
    assert_eq!(wrong.status, 422, "{}", wrong.text);
    let bob = stage.server.register("bob@x.org").await;
    assert_eq!(bob.post("/api/v1/skills/demo/tools/hello/run", &json!({})).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn single_tool_does_not_run_where_tools_are_off_or_the_skill_is_disabled() {
    let server = TestServer::start().await;
    let ann = server.register("ann@x.org").await;
    keep(&ann, DEMO).await;
    let refused = ann.post("/api/v1/skills/demo/tools/hello/run", &json!({})).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    assert!(refused.text.contains("start the server with --skill-tools"), "{}", refused.text);
    assert_eq!(ann.get("/api/v1/skills/demo/insight").await.json()["can_run_tools"], false);

    let stage = Stage::new().await;
    let ann = stage.server.register("ann@x.org").await;
    keep(&ann, DEMO).await;
    let patched = ann.request(reqwest::Method::PATCH, "/api/v1/skills/demo");
    assert_eq!(Reply::of(patched.json(&json!({"enabled": false}))).await.status, 200);
    let refused = ann.post("/api/v1/skills/demo/tools/hello/run", &json!({})).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
}
