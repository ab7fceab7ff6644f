//! What clients write to a server, and how each of it is read back.

use std::ops::Range;

use serde_json::{Value, json};

use crate::{
    live_server::{HttpResponse, TestServer},
    registry_faults::{SKILLS, is_published_everywhere, send_as, skill},
};

/// A client of a server that comes and goes.
#[derive(Clone)]
pub(super) struct Client {
    pub(super) address: String,
    /// Of an administrator.
    pub(super) token: String,
    /// Of somebody else, who reviews what the administrator publishes.
    pub(super) reviewer: String,
}

impl Client {
    fn ask(&self, method: &str, path: &str, body: &Value) -> Option<HttpResponse> {
        TestServer::try_ask(&self.address, method, path, &self.token, Some(body))
    }

    fn created(&self, path: &str, body: &Value) -> Value {
        let answer = self.ask("POST", path, body).expect("an answer");
        assert!(answer.status < 300, "{path}: {} {}", answer.status, answer.body);
        answer.json()
    }

    /// The answer of a server that works.
    fn get(&self, path: &str) -> Value {
        let answer = TestServer::try_ask(&self.address, "GET", path, &self.token, None);
        let answer = answer.unwrap_or_else(|| panic!("{path}: no answer"));
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    /// All items of a list that is read in parts.
    fn all(&self, path: &str, member: &str) -> Vec<Value> {
        const PART: usize = 500;
        let mut all = Vec::new();
        loop {
            let sign = if path.contains('?') { '&' } else { '?' };
            let part = self.get(&format!("{path}{sign}limit={PART}&offset={}", all.len()));
            let part = part[member].as_array().expect("a list").clone();
            let is_last = part.len() < PART;
            all.extend(part);
            if is_last {
                return all;
            }
        }
    }
}

/// What a server says to a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Acknowledged,
    /// It cannot do it now.
    Refused(String),
    /// The server went away.
    Gone,
}

impl Outcome {
    fn of(answer: Option<(u16, String)>) -> Self {
        match answer {
            None => Self::Gone,
            Some((200..300, _)) => Self::Acknowledged,
            Some((503, body)) => Self::Refused(body),
            Some((status, body)) => panic!("neither written nor refused: {status} {body}"),
        }
    }

    fn of_response(answer: Option<HttpResponse>) -> Self {
        Self::of(answer.map(|answer| (answer.status, answer.body)))
    }

    /// A stream ends with what became of it, unless it was cut off.
    fn of_stream(answer: Option<HttpResponse>) -> Self {
        match answer {
            Some(answer) if answer.status == 200 => {
                let Some(done) = answer.body.split("event: done").nth(1) else { return Self::Gone };
                if done.contains("completed successfully") {
                    Self::Acknowledged
                } else {
                    Self::Refused(answer.body)
                }
            }
            answer => Self::of_response(answer),
        }
    }
}

/// Whether each write adds something, or all of them replace the same thing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Added,
    Replaced,
}

/// One way to write.
pub(super) struct WritePath {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// Whether something is written besides the database.
    pub(super) uses_storage: bool,
    /// How many may be written.
    pub(super) limit: usize,
    /// Makes what all writes need, and returns its id.
    pub(super) prepare: fn(&Client) -> String,
    pub(super) write: fn(&Client, &str, usize) -> Outcome,
    /// The numbers that can be read, of these numbers that were tried; fails if one of them is
    /// there by half. What is replaced has its newest number.
    pub(super) read: fn(&Client, &str, Range<usize>) -> Vec<usize>,
}

const MANY: usize = usize::MAX;

pub(super) const PATHS: [WritePath; 10] = [
    WritePath {
        name: "documents",
        kind: Kind::Added,
        uses_storage: true,
        limit: MANY,
        prepare: |client| id(&client.created("/api/v1/knowledge", &json!({"name": "faults"}))),
        write: upload,
        read: documents,
    },
    WritePath {
        name: "messages",
        kind: Kind::Added,
        uses_storage: false,
        limit: MANY,
        prepare: |_| "talk".to_owned(),
        write: |client, talk, number| {
            let session = session_of(talk, number);
            let body = json!({"session_id": session, "message": text(number)});
            Outcome::of_stream(client.ask("POST", "/api/v1/chat/completions", &body))
        },
        read: messages,
    },
    WritePath {
        name: "run history",
        kind: Kind::Added,
        uses_storage: false,
        limit: MANY,
        prepare: |_| "article-summary".to_owned(),
        write: |client, skill, number| {
            let body = json!({"inputs": {"article": text(number)}});
            Outcome::of_stream(client.ask("POST", &format!("/api/v1/skills/{skill}/run"), &body))
        },
        read: runs,
    },
    WritePath {
        name: "skills",
        kind: Kind::Added,
        uses_storage: true,
        limit: 1500,
        prepare: |_| String::new(),
        write: |client, _, number| {
            let name = format!("added-{number}");
            let body = json!({"name": name, "content": skill_text(&name, number)});
            Outcome::of_response(client.ask("POST", "/api/v1/skills", &body))
        },
        read: |client, _, tried| {
            let listed = client.all("/api/v1/skills", "skills");
            let found = numbers(&listed, "name", "added-", &tried);
            for number in &found {
                let kept = client.get(&format!("/api/v1/skills/added-{number}"));
                assert_eq!(number_in(&kept["prompt"]), Some(*number), "{kept}");
            }
            found
        },
    },
    WritePath {
        name: "versions of a skill",
        kind: Kind::Replaced,
        uses_storage: true,
        limit: MANY,
        prepare: |client| {
            let body = json!({"name": "replaced", "content": skill_text("replaced", 0)});
            client.created("/api/v1/skills", &body);
            "/api/v1/skills/replaced".to_owned()
        },
        write: |client, path, number| {
            let body = json!({"content": skill_text("replaced", number)});
            Outcome::of_response(client.ask("PUT", path, &body))
        },
        read: |client, path, _| number_in(&client.get(path)["prompt"]).into_iter().collect(),
    },
    WritePath {
        name: "workflows",
        kind: Kind::Added,
        uses_storage: false,
        // One user may have 200.
        limit: 190,
        prepare: |_| String::new(),
        write: |client, _, number| {
            let body = json!({"name": format!("added-{number}")});
            Outcome::of_response(client.ask("POST", "/api/v1/workflows", &body))
        },
        read: |client, _, tried| {
            numbers(&client.all("/api/v1/workflows", "items"), "name", "added-", &tried)
        },
    },
    WritePath {
        name: "versions of a workflow",
        kind: Kind::Replaced,
        uses_storage: false,
        limit: MANY,
        prepare: |client| {
            let made = client.created("/api/v1/workflows", &json!({"name": text(0)}));
            format!("/api/v1/workflows/{}", id(&made))
        },
        write: |client, path, number| {
            let note = json!({"id": "s", "type": "start", "data": {"note": text(number)}});
            let graph = json!({"nodes": [note], "edges": []});
            let body = json!({"name": text(number), "graph_data": graph});
            Outcome::of_response(client.ask("PUT", path, &body))
        },
        read: |client, path, _| {
            let workflow = client.get(path);
            let number = number_in(&workflow["name"]);
            let newest = client.get(&format!("{path}/versions"));
            let newest = newest["versions"][0]["id"].as_str().expect("a version").to_owned();
            let newest = client.get(&format!("{path}/versions/{newest}"));
            assert_eq!(newest["graph_data"], workflow["graph_data"], "the newest version");
            number.into_iter().collect()
        },
    },
    WritePath {
        name: "publishing",
        kind: Kind::Added,
        uses_storage: true,
        limit: MANY,
        prepare: |_| String::new(),
        write: |client, _, number| publish(client, &format!("added-{number}")),
        read: |client, _, tried| {
            tried
                .filter(|number| {
                    let name = format!("added-{number}");
                    is_published_everywhere(&client.address, &name, &skill(&name, "1.0.0"))
                })
                .collect()
        },
    },
    WritePath {
        name: "reviews",
        kind: Kind::Replaced,
        uses_storage: false,
        limit: MANY,
        prepare: |client| {
            assert_eq!(publish(client, "reviewed"), Outcome::Acknowledged);
            format!("{SKILLS}/reviewed/reviews")
        },
        write: |client, path, number| {
            let body = json!({"rating": 1 + number % 5, "message": text(number)});
            let answer =
                TestServer::try_ask(&client.address, "PUT", path, &client.reviewer, Some(&body));
            Outcome::of_response(answer)
        },
        read: |client, path, _| {
            let reviews = client.get(path);
            let Some(review) = reviews["items"].as_array().and_then(|items| items.first()) else {
                return Vec::new();
            };
            let number = number_in(&review["message"]).expect("a number");
            assert_eq!(review["rating"], 1 + number % 5, "{review}");
            vec![number]
        },
    },
    WritePath {
        name: "keys of providers",
        kind: Kind::Replaced,
        uses_storage: false,
        limit: MANY,
        prepare: |_| "/api/v1/admin/providers".to_owned(),
        write: |client, path, number| {
            let body = json!({"api_key": format!("key-{number}"), "model": text(number)});
            Outcome::of_response(client.ask("PUT", &format!("{path}/anthropic"), &body))
        },
        read: |client, path, _| {
            let providers = client.get(path);
            let mut providers = providers["providers"].as_array().expect("a list").iter();
            let own = providers.find(|provider| provider["id"] == "anthropic").expect("one");
            let number = number_in(&own["model"]);
            assert_eq!(own["has_key"], number.is_some(), "{own}");
            number.into_iter().collect()
        },
    },
];

fn id(made: &Value) -> String {
    made["id"].as_str().expect("an id").to_owned()
}

fn text(number: usize) -> String {
    format!("Number {number}.")
}

/// The number in a text of [`text`].
fn number_in(value: &Value) -> Option<usize> {
    value.as_str()?.rsplit("Number ").next()?.split('.').next()?.parse().ok()
}

/// The numbers in names that begin like this.
fn numbers(listed: &[Value], member: &str, beginning: &str, tried: &Range<usize>) -> Vec<usize> {
    let number = |item: &Value| item[member].as_str()?.strip_prefix(beginning)?.parse().ok();
    listed.iter().filter_map(number).filter(|number| tried.contains(number)).collect()
}

fn skill_text(name: &str, number: usize) -> String {
    let padding = "All of this is needed. ".repeat(100);
    format!("---\nname: {name}\ndescription: A skill.\n---\n\n{padding}\n{}\n", text(number))
}

fn publish(client: &Client, name: &str) -> Outcome {
    let bytes = skill(name, "1.0.0");
    let kind = "application/zip";
    let answer = send_as(&client.address, "POST", SKILLS, &client.token, kind, &bytes);
    Outcome::of(answer.map(|(status, body)| (status, String::from_utf8_lossy(&body).into_owned())))
}

/// Some kilobytes, so that a document is larger than what a full disk has left.
fn document(number: usize) -> String {
    format!("{}{}", "Words that are searched for. ".repeat(1500), text(number))
}

fn upload(client: &Client, base: &str, number: usize) -> Outcome {
    let form = format!(
        "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{number}.md\"\r\n\
         Content-Type: text/plain\r\n\r\n{}\r\n--edge--\r\n",
        document(number)
    );
    let path = format!("/api/v1/knowledge/{base}/upload");
    let kind = "multipart/form-data; boundary=edge";
    let answer = send_as(&client.address, "POST", &path, &client.token, kind, form.as_bytes());
    Outcome::of(answer.map(|(status, body)| (status, String::from_utf8_lossy(&body).into_owned())))
}

fn documents(client: &Client, base: &str, tried: Range<usize>) -> Vec<usize> {
    let path = format!("/api/v1/knowledge/{base}/documents");
    let listed = client.all(&path, "documents");
    let number = |item: &Value| item["filename"].as_str()?.strip_suffix(".md")?.parse().ok();
    let mut found = Vec::new();
    for item in &listed {
        let Some(number) = number(item).filter(|number| tried.contains(number)) else { continue };
        let file = format!("{path}/{}/file", id(item));
        let answer = TestServer::try_ask(&client.address, "GET", &file, &client.token, None);
        let answer = answer.expect("an answer");
        assert_eq!(answer.status, 200, "the document {number} has no bytes: {}", answer.body);
        assert!(answer.body == document(number), "the document {number} has other bytes");
        found.push(number);
    }
    found
}

/// The status of each document.
pub(super) fn document_states(client: &Client, base: &str) -> Vec<String> {
    let listed = client.all(&format!("/api/v1/knowledge/{base}/documents"), "documents");
    listed.iter().map(|item| item["status"].as_str().expect("a status").to_owned()).collect()
}

/// A conversation is read with a thousand messages at most.
fn session_of(talk: &str, number: usize) -> String {
    format!("{talk}-{}", number / 200)
}

/// The messages that were answered.
fn messages(client: &Client, talk: &str, tried: Range<usize>) -> Vec<usize> {
    let sessions: Vec<String> = tried.clone().map(|number| session_of(talk, number)).collect();
    let mut answered = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        if at > 0 && sessions[at - 1] == *session {
            continue;
        }
        let path = format!("/api/v1/chat/sessions/{session}");
        let found = TestServer::try_ask(&client.address, "GET", &path, &client.token, None);
        let found = found.expect("an answer");
        if found.status == 404 {
            continue;
        }
        assert_eq!(found.status, 200, "{path}: {}", found.body);
        let found = found.json();
        let said = found["messages"].as_array().expect("messages");
        assert_eq!(found["message_count"], said.len(), "{path}");
        for two in said.windows(2) {
            if two[0]["role"] == "user" && two[1]["role"] == "assistant" {
                answered.push(number_in(&two[0]["content"]).expect("a number"));
            }
        }
    }
    answered.retain(|number| tried.contains(number));
    answered
}

/// The runs that succeeded.
fn runs(client: &Client, skill: &str, tried: Range<usize>) -> Vec<usize> {
    let listed = client.all(&format!("/api/v1/runs?kind=prompt&skill={skill}"), "runs");
    let mut found = Vec::new();
    // The newest are first.
    for run in listed.iter().filter(|run| run["state"] == "ok") {
        let run = client.get(&format!("/api/v1/runs/{}", id(run)));
        let number = number_in(&run["inputs"]["article"]).expect("a number");
        if number < tried.start {
            break;
        }
        assert!(run["output"].as_str().is_some_and(|output| !output.is_empty()), "{run}");
        found.push(number);
    }
    found
}
