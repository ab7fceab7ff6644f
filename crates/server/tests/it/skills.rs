//! Tests storing skills: response bodies, visibility, and error messages.

use std::fs;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{ADMIN, Client, Reply, TestServer};

pub(crate) const SKILLS: &str = "/api/v1/skills";

pub(crate) fn new(name: &str, content: &str) -> Value {
    json!({"name": name, "content": content})
}

pub(crate) fn one(name: &str) -> String {
    format!("{SKILLS}/{name}")
}

pub(crate) async fn server() -> TestServer {
    TestServer::with(|config| {
        config.limits.routes = 0;
        config.limits.runs = 0;
    })
    .await
}

pub(crate) async fn people(server: &TestServer) -> [Client; 3] {
    [
        server.register(ADMIN).await,
        server.register("ada@example.org").await,
        server.register("bob@example.org").await,
    ]
}

#[track_caller]
fn is_time(value: &Value) {
    let text = value.as_str().unwrap();
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000000Z");
}

#[tokio::test]
async fn skill_with_all_fields() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let content = "---\nname: x\ndescription: d — é\nlicense: MIT\nmetadata:\n  z: 1\n  a: [yes, b]\n\
        inputs:\n  - name: a\n  - {name: b, label: B, type: textarea, required: yes, default: 5, \
        description: h}\n  - label: nameless\n  - {name: c, type: number}\nknowledge_base: manual\n\
        model:\n  temperature: 1\n---\n\n  {{a}} {{b}}\n\n";
    let reply = ada.post(SKILLS, &new("x", content)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    let response = reply.json();
    is_time(&response["created_at"]);
    is_time(&response["updated_at"]);
    let id = ada.id();
    let raw = content.replace("---\n\n", &format!("user_id: '{id}'\n---\n\n"));
    let inputs = "[{\"name\":\"a\",\"label\":\"a\",\"type\":\"text\",\"required\":false,\
        \"default\":null,\"description\":null},{\"name\":\"b\",\"label\":\"B\",\
        \"type\":\"textarea\",\"required\":true,\"default\":\"5\",\"description\":\"h\"},\
        {\"name\":\"c\",\"label\":\"c\",\"type\":\"text\",\"required\":false,\"default\":null,\
        \"description\":null}]";
    let expected = format!(
        "{{\"name\":\"x\",\"description\":\"d — é\",\"license\":\"MIT\",\
         \"metadata\":{{\"z\":1,\"a\":[true,\"b\"]}},\"inputs\":{inputs},\
         \"knowledge_base\":\"manual\",\"model\":{{\"temperature\":1.0,\"max_tokens\":2000}},\
         \"user_id\":\"{id}\",\"prompt\":\"{{{{a}}}} {{{{b}}}}\",\"raw_content\":{},\
         \"created_at\":{},\"updated_at\":{}}}",
        json!(raw),
        response["created_at"],
        response["updated_at"]
    );
    assert_eq!(reply.text, expected);
    assert_eq!(reply.header("content-type"), "application/json");
    let again = ada.get(&one("x")).await;
    assert_eq!((again.status.as_u16(), again.text), (200, expected));
    assert_eq!(fs::read_to_string(server.skill_file("x")).unwrap(), raw);

    let list = ada.get(SKILLS).await;
    let expected = format!(
        "{{\"skills\":[{{\"name\":\"x\",\"description\":\"d — é\",\"inputs\":{inputs},\
         \"has_inputs\":true,\"has_knowledge_base\":true,\"updated_at\":{}}}],\"total\":1}}",
        response["updated_at"]
    );
    assert_eq!((list.status.as_u16(), list.text), (200, expected));
}

#[tokio::test]
async fn minimal_skill_gets_defaults() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let response = ada.post(SKILLS, &new("x", "---\nmodel: gpt\n---\n")).await.json();
    let id = ada.id().to_string();
    assert_eq!(
        response.to_string(),
        json!({
            "name": "x", "description": "x", "license": null, "metadata": null, "inputs": null,
            "knowledge_base": null, "model": null, "user_id": id, "prompt": "",
            "raw_content": format!("---\nmodel: gpt\nuser_id: '{id}'\n---\n"),
            "created_at": response["created_at"], "updated_at": response["updated_at"],
        })
        .to_string()
    );
    let list = ada.get(SKILLS).await.json();
    assert_eq!(
        list["skills"][0].to_string(),
        json!({
            "name": "x", "description": "x", "inputs": null, "has_inputs": false,
            "has_knowledge_base": false, "updated_at": response["updated_at"],
        })
        .to_string()
    );
}

const LETTERS: &str = "Skill name can only contain lowercase letters, numbers, and hyphens";

#[tokio::test]
async fn invalid_names_are_rejected() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let long = "a".repeat(65);
    for (name, message) in [
        ("", "Skill name is required"),
        (long.as_str(), "Skill name must be 64 characters or less"),
        ("Ab", "Skill name must be lowercase"),
        ("a b", LETTERS),
        ("a_b", LETTERS),
        ("a/b", LETTERS),
        ("..", LETTERS),
        ("../a", LETTERS),
        ("a\0", LETTERS),
        ("a\n", LETTERS),
        ("é", LETTERS),
        ("知识", LETTERS),
        ("-a", "Skill name cannot start or end with a hyphen"),
        ("a-", "Skill name cannot start or end with a hyphen"),
        ("a--b", "Skill name cannot contain consecutive hyphens"),
        ("import", "Skill name 'import' is reserved"),
        ("catalog", "Skill name 'catalog' is reserved"),
    ] {
        ada.post(SKILLS, &new(name, "")).await.blames(400, "name", message);
    }
    let most = "a".repeat(64);
    assert_eq!(ada.post(SKILLS, &new(&most, "---\na: 1\n---\n")).await.status, 201);
    assert_eq!(ada.get(&one(&most)).await.status, 200);
}

#[tokio::test]
async fn invalid_names_in_paths_are_rejected() {
    let server = server().await;
    let [admin, ada, _] = people(&server).await;
    let outside = server.skills_folder().join("../SKILL.md");
    fs::create_dir_all(server.skills_folder()).unwrap();
    fs::write(&outside, "---\na: 1\n---\n").unwrap();
    let long = "a".repeat(5000);
    for (path, message) in [
        ("..%2f", LETTERS),
        ("..%2f..%2fetc%2fpasswd", LETTERS),
        ("%2e%2e%2fx", LETTERS),
        ("..%5c", LETTERS),
        (".lock", LETTERS),
        ("a%00", LETTERS),
        ("%00", LETTERS),
        ("a%0A", LETTERS),
        ("%C3%A9", LETTERS),
        ("%EF%BC%8E%EF%BC%8E", LETTERS),
        ("x%20", LETTERS),
        (&long, "Skill name must be 64 characters or less"),
        ("A", "Skill name must be lowercase"),
        ("-", "Skill name cannot start or end with a hyphen"),
    ] {
        for person in [&admin, &ada] {
            let path = one(path);
            person.get(&path).await.blames(400, "name", message);
            person.put(&path, &json!({"content": "x"})).await.blames(400, "name", message);
            person.delete(&path).await.blames(400, "name", message);
            person.post(&format!("{path}/run"), &json!({})).await.blames(400, "name", message);
        }
    }
    assert!(outside.exists());
}

#[tokio::test]
async fn first_validation_error_is_reported() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    ada.post(SKILLS, &new("there", "---\nname: there\n---\n")).await;
    fs::create_dir(server.skills_folder().join("empty")).unwrap();
    server.write_skill("Upper", "---\nname: Upper\n---\n");
    let long = |count: usize| "é".repeat(count);
    let large = format!("---\nname: other\n---\n{}", "x".repeat(51_200));
    let size = format!(
        "Skill file size ({} bytes) exceeds the soft limit of 51200 bytes (50KB). Consider splitting \
         into smaller skills or reducing content.",
        large.len()
    );
    let conflict = |name: &str, existing: &str| {
        format!(
            "Skill name '{name}' conflicts with existing skill '{existing}' (names are \
             case-insensitive)"
        )
    };
    let no_frontmatter = "Skill 'a' has no valid YAML frontmatter";
    let undeclared =
        "Undeclared placeholders in prompt: a, b. Add them to inputs or remove from prompt.";
    let with = |fields: &str| format!("---\n{fields}\n---\n{{{{b}}}} {{{{a}}}} {{{{b}}}}");
    for (name, content, status, field, message) in [
        ("import", large.clone(), 400, "name", "Skill name 'import' is reserved".to_owned()),
        ("there", large.clone(), 400, "content", size.clone()),
        ("a", large, 400, "content", size),
        ("there", String::new(), 409, "name", conflict("there", "there")),
        ("upper", "---\na: [\n---\n".into(), 409, "name", conflict("upper", "Upper")),
        ("empty", String::new(), 409, "name", "Skill 'empty' already exists".into()),
        ("a", String::new(), 400, "content", "Skill content is empty".into()),
        ("a", " \n\t\n".into(), 400, "content", "Skill content is empty".into()),
        ("a", "---\n- a\n---\n".into(), 400, "frontmatter", "frontmatter must be a mapping".into()),
        ("a", "{{a}}".into(), 400, "frontmatter", no_frontmatter.into()),
        ("a", "---\n---\n{{a}}".into(), 400, "frontmatter", no_frontmatter.into()),
        ("a", "---\nname: a\nopen".into(), 400, "frontmatter", no_frontmatter.into()),
        ("a", with("name: 5"), 400, "name", "Frontmatter name must be a string".into()),
        ("a", with("name: yes"), 400, "name", "Frontmatter name must be a string".into()),
        (
            "a",
            with(&format!("name: b\ndescription: {}", long(1025))),
            400,
            "name",
            "Frontmatter name 'b' does not match requested name 'a'".into(),
        ),
        (
            "a",
            with(&format!("description: {}", long(1025))),
            400,
            "description",
            "Description must be 1024 characters or less".into(),
        ),
        (
            "a",
            with(&format!("license: {}", long(65))),
            400,
            "license",
            "License must be 64 characters or less".into(),
        ),
        (
            "a",
            with(&format!("knowledge_base: {}", long(257))),
            400,
            "knowledge_base",
            "Knowledge base must be 256 characters or less".into(),
        ),
        (
            "a",
            with(&format!("user_id: {}", long(257))),
            400,
            "user_id",
            "User id must be 256 characters or less".into(),
        ),
        (
            "a",
            with("model: {temperature: 2.1}"),
            400,
            "model",
            "temperature must be between 0 and 2".into(),
        ),
        (
            "a",
            with("model: {temperature: hot}"),
            400,
            "model",
            "temperature must be a number".into(),
        ),
        (
            "a",
            with("model: {max_tokens: 8193}"),
            400,
            "model",
            "max_tokens must be between 1 and 8192".into(),
        ),
        (
            "a",
            with("model: {max_tokens: 0}"),
            400,
            "model",
            "max_tokens must be between 1 and 8192".into(),
        ),
        ("a", with("inputs: text"), 400, "inputs", "inputs must be a list".into()),
        (
            "a",
            with(&format!("inputs: [{{name: {}}}]", long(65))),
            400,
            "inputs",
            "Input name must be 64 characters or less".into(),
        ),
        (
            "a",
            with(&format!("inputs: [{{name: a, label: {}}}]", long(129))),
            400,
            "inputs",
            "Input label must be 128 characters or less".into(),
        ),
        (
            "a",
            with(&format!("inputs: [{{name: a, default: {}}}]", long(1025))),
            400,
            "inputs",
            "Input default must be 1024 characters or less".into(),
        ),
        (
            "a",
            with(&format!("inputs: [{{name: a, description: {}}}]", long(513))),
            400,
            "inputs",
            "Input description must be 512 characters or less".into(),
        ),
        ("a", with("user_id: 999"), 400, "prompt", undeclared.into()),
        ("a", with("name: a"), 400, "prompt", undeclared.into()),
        (
            "a",
            "---\nuser_id: 999\n---\n".into(),
            400,
            "user_id",
            "Cannot assign a skill to another user".into(),
        ),
    ] {
        ada.post(SKILLS, &new(name, &content)).await.blames(status, field, &message);
    }
    for content in ["---\na: [\n---\n", "---\na: b: c\n---\n", "---\na: 1\na: 2\n---\n"] {
        let reply = ada.post(SKILLS, &new("a", content)).await.json();
        assert_eq!(reply["detail"]["field"], "frontmatter");
        let message = reply["detail"]["message"].as_str().unwrap();
        assert!(message.starts_with("Invalid YAML frontmatter: "), "{message}");
    }
    // Nothing was written.
    let mut names: Vec<String> = fs::read_dir(server.skills_folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [".lock", "Upper", "empty", "there"]);
    assert_eq!(ada.get(SKILLS).await.json()["total"], 1);
}

#[tokio::test]
async fn maximum_lengths_are_accepted() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let long = |count: usize| "é".repeat(count);
    let content = format!(
        "---\ndescription: {}\nlicense: {}\nknowledge_base: {}\nmodel: {{temperature: 2, max_tokens: \
         8192}}\ninputs:\n- name: {}\n  label: {}\n  default: {}\n  description: {}\n---\n",
        long(1024),
        long(64),
        long(256),
        long(64),
        long(128),
        long(1024),
        long(512)
    );
    let reply = ada.post(SKILLS, &new("a", &content)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    // The limit is in bytes, and counts only the author's text.
    let head = "---\na: 1\n---\n";
    let full = format!("{head}{}", "x".repeat(51_200 - head.len()));
    let reply = ada.post(SKILLS, &new("b", &full)).await;
    assert_eq!(reply.status, 201, "{}", reply.text);
    assert!(fs::metadata(server.skill_file("b")).unwrap().len() > 51_200);
    assert_eq!(ada.put(&one("b"), &json!({"content": full})).await.status, 200);
    let letters = format!("{head}{}", "é".repeat(25_600));
    let message = format!(
        "Skill file size ({} bytes) exceeds the soft limit of 51200 bytes (50KB). Consider splitting \
         into smaller skills or reducing content.",
        letters.len()
    );
    assert!(letters.chars().count() < 51_200);
    ada.post(SKILLS, &new("c", &letters)).await.blames(400, "content", &message);
    ada.put(&one("b"), &json!({"content": letters})).await.blames(400, "content", &message);
}

#[tokio::test]
async fn changes_are_checked_in_order() {
    let server = server().await;
    let [admin, ada, bob] = people(&server).await;
    ada.post(SKILLS, &new("a", "---\nname: a\n---\nold")).await;
    let before = fs::read(server.skill_file("a")).unwrap();
    let put = async |person: &Client, name: &str, content: &str| {
        person.put(&one(name), &json!({"content": content})).await
    };
    let large = format!("---\nname: b\n---\n{}", "x".repeat(51_200));
    put(&ada, "A", &large).await.blames(400, "name", "Skill name must be lowercase");
    put(&ada, "none", &large).await.blames(404, "name", "Skill 'none' not found");
    put(&bob, "a", &large).await.blames(404, "name", "Skill 'a' not found");
    let reply = put(&ada, "a", &large).await;
    assert_eq!(reply.json()["detail"]["field"], "content");
    put(&ada, "a", "").await.blames(400, "content", "Skill content is empty");
    let message = "Skill 'a' has no valid YAML frontmatter";
    put(&ada, "a", "plain text").await.blames(400, "frontmatter", message);
    let message = "Cannot change skill name via update. Frontmatter name 'b' does not match 'a'";
    put(&ada, "a", "---\nname: b\n---\n{{x}}").await.blames(400, "name", message);
    let message = "Undeclared placeholders in prompt: x. Add them to inputs or remove from prompt.";
    put(&ada, "a", "---\nuser_id: 99\n---\n{{x}}").await.blames(400, "prompt", message);
    let message = "Cannot assign a skill to another user";
    put(&ada, "a", "---\nuser_id: 99\n---\n").await.blames(400, "user_id", message);
    assert_eq!(fs::read(server.skill_file("a")).unwrap(), before);

    // An update preserves the owner and every other byte.
    let id = ada.id();
    for person in [&ada, &admin] {
        let content = "---\r\n# note\r\nname:   a # mine\r\n---\r\n\r\nnew\r\n";
        let response = put(person, "a", content).await.json();
        assert_eq!(response["user_id"], json!(id.to_string()));
        let raw =
            format!("---\r\n# note\r\nname:   a # mine\r\nuser_id: '{id}'\r\n---\r\n\r\nnew\r\n");
        assert_eq!(response["raw_content"], json!(raw));
        assert_eq!(fs::read_to_string(server.skill_file("a")).unwrap(), raw);
    }
    // Only an administrator can change the owner.
    let response = put(&admin, "a", &format!("---\nuser_id: {}\n---\n", bob.id())).await.json();
    assert_eq!(response["user_id"], json!(bob.id().to_string()));
    ada.get(&one("a")).await.blames(404, "name", "Skill 'a' not found");
    assert_eq!(bob.get(&one("a")).await.status, 200);
}

#[tokio::test]
async fn skills_without_an_owner() {
    let server = server().await;
    let [admin, ada, _] = people(&server).await;
    server.write_skill("free", "---\nname: free\n---\nHi\n");
    assert_eq!(ada.get(SKILLS).await.json(), json!({"skills": [], "total": 0}));
    assert_eq!(admin.get(SKILLS).await.json()["total"], 1);
    let response = ada.get(&one("free")).await.json();
    assert_eq!((&response["user_id"], &response["prompt"]), (&Value::Null, &json!("Hi")));
    assert_eq!(ada.post(&format!("{}/run", one("free")), &json!({})).await.status, 200);
    let message = "Only an administrator can modify a skill without an owner";
    ada.put(&one("free"), &json!({"content": "---\na: 1\n---\n"}))
        .await
        .blames(403, "user_id", message);
    ada.delete(&one("free")).await.blames(403, "user_id", message);
    // A change by an administrator does not change the owner.
    let text = "---\nname: free\n---\nHello\n";
    let response = admin.put(&one("free"), &json!({"content": text})).await.json();
    assert_eq!((&response["user_id"], &response["raw_content"]), (&Value::Null, &json!(text)));
    let reply = admin.delete(&one("free")).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
}

#[tokio::test]
async fn changing_the_owner_needs_permission() {
    let server = server().await;
    let [admin, ada, bob] = people(&server).await;
    let content = format!("---\nuser_id: '{}'\n---\n", bob.id());
    let response = admin.post(SKILLS, &new("gift", &content)).await.json();
    assert_eq!(response["raw_content"], json!(content));
    assert_eq!(bob.get(SKILLS).await.json()["total"], 1);
    ada.get(&one("gift")).await.blames(404, "name", "Skill 'gift' not found");
    // Other users can use the name, too, but only for their own skills.
    let message = "Cannot assign a skill to another user";
    ada.post(SKILLS, &new("gift", &content)).await.blames(400, "user_id", message);
    assert_eq!(ada.post(SKILLS, &new("gift", "---\nx: 1\n---\n")).await.status, 201);
    let content = format!("---\nuser_id: {}\n---\n", ada.id());
    assert_eq!(ada.post(SKILLS, &new("own", &content)).await.json()["raw_content"], json!(content));
}

#[tokio::test]
async fn skills_are_listed_newest_first_then_by_name() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let names = async || -> Vec<String> {
        let list = ada.get(SKILLS).await.json();
        let list = list["skills"].as_array().unwrap().iter();
        list.map(|skill| skill["name"].as_str().unwrap().to_owned()).collect()
    };
    for name in ["b", "c", "a"] {
        ada.post(SKILLS, &new(name, "---\nx: 1\n---\n")).await;
    }
    assert_eq!(names().await, ["a", "c", "b"]);
    ada.put(&one("b"), &json!({"content": "---\nx: 2\n---\n"})).await;
    assert_eq!(names().await, ["b", "a", "c"]);
    let same = std::time::SystemTime::now();
    for name in ["a", "b", "c"] {
        fs::File::open(server.skill_file(name)).unwrap().set_modified(same).unwrap();
    }
    assert_eq!(names().await, ["a", "b", "c"]);
}

#[tokio::test]
async fn deleting_a_skill_removes_its_folder() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    ada.post(SKILLS, &new("a", "---\nx: 1\n---\n")).await;
    let folder = server.skills_folder().join("a");
    fs::create_dir(folder.join("assets")).unwrap();
    fs::write(folder.join("assets/x.txt"), "x").unwrap();
    let reply = ada.delete(&one("a")).await;
    assert_eq!((reply.status.as_u16(), reply.text.as_str()), (204, ""));
    assert!(!folder.exists());
    ada.delete(&one("a")).await.blames(404, "name", "Skill 'a' not found");
    assert_eq!(ada.post(SKILLS, &new("a", "---\nx: 1\n---\n")).await.status, 201);
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let text = "Input should be a valid string";
    let reply = ada.post(SKILLS, &json!({"name": 5})).await;
    reply.is(422, &json!({"detail": [
        {"type": "string_type", "loc": ["body", "name"], "msg": text, "input": 5},
        {"type": "missing", "loc": ["body", "content"], "msg": "Field required", "input": {"name": 5}},
    ]}));
    let reply = ada.put(&one("none"), &json!({})).await;
    reply.differs("missing", &json!(["body", "content"]), "Field required", &json!({}));
    let request = ada.request(Method::POST, SKILLS).body("{\"name\": ");
    let reply = Reply::of(request).await;
    reply.differs("json_invalid", &json!(["body", 9]), "JSON decode error", &json!({}));
}

#[tokio::test]
async fn damaged_files_can_be_replaced_and_deleted() {
    let server = server().await;
    let [admin, ada, bob] = people(&server).await;
    let damage = |name: &str| {
        let path = server.skill_file(name);
        let mut bytes = fs::read(&path).unwrap();
        bytes.push(0xff);
        fs::write(path, bytes).unwrap();
    };
    for name in ["one", "two", "three"] {
        ada.post(SKILLS, &new(name, "---\nx: 1\n---\nHi\n")).await;
        damage(name);
    }
    let message = "Skill 'one' cannot be read: it is not UTF-8";
    assert_eq!(ada.get(&one("one")).await.json()["detail"]["message"], message);
    bob.delete(&one("one")).await.blames(404, "name", "Skill 'one' not found");
    let content = json!({"content": "---\nx: 2\n---\nHello\n"});
    bob.put(&one("one"), &content).await.blames(404, "name", "Skill 'one' not found");
    let fixed = ada.put(&one("one"), &content).await;
    assert_eq!((fixed.status.as_u16(), &fixed.json()["prompt"]), (200, &json!("Hello")));
    assert_eq!(ada.get(&one("one")).await.json()["user_id"], json!(ada.id().to_string()));
    assert_eq!(ada.delete(&one("two")).await.status, 204);
    assert_eq!(admin.delete(&one("three")).await.status, 204);
    assert_eq!(ada.post(SKILLS, &new("two", "---\nx: 1\n---\n")).await.status, 201);
    // The skill of a second owner with the same name has another folder.
    bob.post(SKILLS, &new("two", "---\nx: 1\n---\n")).await;
    damage(&format!("two~{}", bob.id()));
    assert_eq!(bob.delete(&one("two")).await.status, 204);
    assert_eq!(ada.get(&one("two")).await.status, 200);
    // The owner of this one is not known, so that it exists only for administrators.
    server.write_skill("free", "---\nname: free\n---\nHi\n");
    damage("free");
    ada.delete(&one("free")).await.blames(404, "name", "Skill 'free' not found");
    assert_eq!(admin.delete(&one("free")).await.status, 204);
}

#[tokio::test]
async fn administrators_name_the_owner_of_a_skill() {
    let server = server().await;
    let [admin, ada, bob] = people(&server).await;
    for (client, text) in [(&ada, "Of Ada"), (&bob, "Of Bob")] {
        let made = client.post(SKILLS, &new("amb", &format!("---\nx: 1\n---\n{text}\n"))).await;
        assert_eq!(made.status, 201, "{}", made.text);
    }
    let listed = admin.get(SKILLS).await.json();
    let mut owners: Vec<_> =
        listed["skills"].as_array().unwrap().iter().map(|skill| skill["user_id"].clone()).collect();
    owners.sort_by_key(ToString::to_string);
    assert_eq!(owners, [json!(ada.id().to_string()), json!(bob.id().to_string())]);
    assert_eq!(ada.get(SKILLS).await.json()["skills"][0].get("user_id"), None);

    let path = one("amb");
    let of = |client: &Client| format!("{path}?owner={}", client.id());
    let run = format!("{path}/run");
    assert_eq!(admin.get(&path).await.json()["prompt"], "Of Ada", "the oldest one is read");
    for refused in
        [admin.put(&path, &json!({"content": "---\nx: 2\n---\n"})).await, admin.delete(&path).await]
    {
        assert_eq!(refused.status, 409, "{}", refused.text);
        let message = format!("Several users have a skill 'amb': {}, {}", ada.id(), bob.id());
        assert_eq!(refused.json()["detail"], json!({"field": "owner", "message": message}));
    }
    assert_eq!(admin.get(&of(&bob)).await.json()["prompt"], "Of Bob");
    let changed = json!({"content": "---\nx: 2\n---\nNew\n"});
    assert_eq!(admin.put(&of(&bob), &changed).await.json()["prompt"], "New");
    let ran = admin.post(&format!("{run}?owner={}", ada.id()), &json!({})).await;
    assert_eq!(ran.status, 200, "{}", ran.text);
    assert_eq!(admin.delete(&of(&bob)).await.status, 204);
    assert_eq!(bob.get(&path).await.status, 404);
    assert_eq!(ada.get(&path).await.json()["prompt"], "Of Ada");
    // A unique name needs no owner, and users cannot name other owners.
    assert_eq!(admin.get(&path).await.json()["prompt"], "Of Ada");
    assert_eq!(ada.get(&of(&ada)).await.status, 200);
    assert_eq!(bob.get(&of(&ada)).await.status, 404);
    for none in ["9999", "shared", "..%2F..", ""] {
        let missing = admin.get(&format!("{path}?owner={none}")).await;
        missing.blames(404, "name", "Skill 'amb' not found");
    }
}
