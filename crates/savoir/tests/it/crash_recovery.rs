//! Tests that acknowledged skills, conversations and workflows survive a kill.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::{
    live_server::{Provider, ProviderBehavior, TestServer},
    services::RunEnvironment,
    support::Sandbox,
};

const ROUNDS: u32 = 3;
const OPTIONS: [&str; 2] = ["--rate-limit", "off"];

/// The writes that a server acknowledged.
#[derive(Default)]
struct Acknowledged {
    /// Names of skills, each with the last acknowledged number.
    skills: Mutex<Vec<(String, u32)>>,
    /// Conversations, each with the number of complete turns.
    sessions: Mutex<Vec<(String, usize)>>,
    workflows: Mutex<Vec<String>>,
}

impl Acknowledged {
    fn len(&self) -> usize {
        let turns = |sessions: &[(String, usize)]| sessions.iter().map(|(_, turns)| turns).sum();
        let (skills, sessions): (usize, usize) = (
            self.skills.lock().expect("a lock").len(),
            turns(&self.sessions.lock().expect("a lock")),
        );
        skills + sessions + self.workflows.lock().expect("a lock").len()
    }
}

fn skill(name: &str, number: u32) -> String {
    let padding = "All of this is needed. ".repeat(100);
    format!("---\nname: {name}\ndescription: A skill.\n---\n\n{padding}\nNumber {number}.\n")
}

/// Writes until the server is killed.
struct Writer<'a> {
    address: &'a str,
    token: &'a str,
    acknowledged: &'a Acknowledged,
    stop: &'a AtomicBool,
}

impl Writer<'_> {
    /// The response; `None` after the server was killed.
    fn ask(
        &self,
        method: &str,
        path: &str,
        body: &Value,
    ) -> Option<crate::live_server::HttpResponse> {
        if self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let answer = TestServer::try_ask(self.address, method, path, self.token, Some(body))?;
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, answer.body);
        Some(answer)
    }

    fn skills(&self, name: &str) -> Option<()> {
        let body = json!({"name": name, "content": skill(name, 1)});
        self.ask("POST", "/api/v1/skills", &body)?;
        self.acknowledged.skills.lock().ok()?.push((name.to_owned(), 1));
        for number in 2.. {
            let body = json!({"content": skill(name, number)});
            self.ask("PUT", &format!("/api/v1/skills/{name}"), &body)?;
            let mut skills = self.acknowledged.skills.lock().ok()?;
            skills.iter_mut().find(|(known, _)| known == name)?.1 = number;
        }
        None
    }

    fn sessions(&self, id: &str) -> Option<()> {
        self.acknowledged.sessions.lock().ok()?.push((id.to_owned(), 0));
        loop {
            let body = json!({"session_id": id, "message": "What now?"});
            let answer = self.ask("POST", "/api/v1/chat/completions", &body)?;
            // An interrupted stream has no `done`.
            if answer.body.contains("Chat completed successfully") {
                let mut sessions = self.acknowledged.sessions.lock().ok()?;
                sessions.iter_mut().find(|(known, _)| known == id)?.1 += 1;
            }
        }
    }

    fn workflows(&self) -> Option<()> {
        // One user can have 200 workflows, and all rounds use the same user.
        for _ in 0..30 {
            let answer = self.ask("POST", "/api/v1/workflows", &json!({"name": "w"}))?;
            // An interrupted response does not count.
            let made: Value = serde_json::from_str(&answer.body).ok()?;
            let id = made["id"].as_str()?.to_owned();
            self.acknowledged.workflows.lock().ok()?.push(id);
        }
        None
    }
}

/// Writes to a server until it is killed.
fn write_and_kill(server: TestServer, token: &str, acknowledged: &Acknowledged, round: u32) {
    let stop = AtomicBool::new(false);
    let random = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("a time");
    thread::scope(|scope| {
        for number in 0..2 {
            let (address, stop) = (&server.address, &stop);
            let writer = move || Writer { address, token, acknowledged, stop };
            scope.spawn(move || writer().skills(&format!("skill-{round}-{number}")));
            scope.spawn(move || writer().sessions(&format!("session-{round}-{number}")));
            scope.spawn(move || writer().workflows());
        }
        thread::sleep(Duration::from_millis(800 + u64::from(random.subsec_micros() % 700)));
        server.signal("-KILL");
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(server.wait().0, None, "it was killed");
}

/// Checks that everything that was acknowledged exists.
fn check(server: &TestServer, token: &str, acknowledged: &Acknowledged) {
    let get = |path: &str| {
        let answer = server.ask("GET", path, token, None);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    };
    for (name, number) in acknowledged.skills.lock().expect("a lock").iter() {
        let text = get(&format!("/api/v1/skills/{name}"))["prompt"].to_string();
        let kept = text.rsplit("Number ").next().and_then(|end| end.split('.').next());
        let kept: u32 = kept.and_then(|digits| digits.parse().ok()).expect("a number");
        assert!((*number..=number + 1).contains(&kept), "{name}: {kept} in place of {number}");
    }
    for (id, turns) in acknowledged.sessions.lock().expect("a lock").iter() {
        if *turns == 0 {
            continue;
        }
        let session = get(&format!("/api/v1/chat/sessions/{id}"));
        let said = |role: &str| {
            let messages = session["messages"].as_array().expect("messages").iter();
            messages.filter(|message| message["role"] == role).count()
        };
        assert!(said("user") >= *turns, "{id}: {turns} turns, {session}");
        assert!(said("assistant") >= *turns, "{id}: {turns} turns, {session}");
    }
    for id in acknowledged.workflows.lock().expect("a lock").iter() {
        get(&format!("/api/v1/workflows/{id}"));
    }
}

#[test]
fn kill_loses_no_data_in_a_folder() {
    let sandbox = Sandbox::new();
    let provider = Provider::new(ProviderBehavior::Says(&["Nothing."]));
    let mut server = TestServer::start(&sandbox, &OPTIONS, Some(&provider));
    let token = server.log_in(&sandbox);
    let acknowledged = Acknowledged::default();
    for round in 0..ROUNDS {
        let before = acknowledged.len();
        write_and_kill(server, &token, &acknowledged, round);
        assert!(acknowledged.len() > before + 5, "the writers hardly wrote");
        server = TestServer::start(&sandbox, &OPTIONS, Some(&provider));
        check(&server, &token, &acknowledged);
    }
}

#[test]
fn kill_loses_no_data_in_database_and_bucket() {
    let Some(run_env) = RunEnvironment::new() else { return };
    let provider = Provider::new(ProviderBehavior::Says(&["Nothing."]));
    let other = run_env.server(&OPTIONS, Some(&provider));
    let token = crate::cluster::register(&other, "ada@example.com");
    let acknowledged = Acknowledged::default();
    for round in 0..ROUNDS {
        let before = acknowledged.len();
        let server = run_env.server(&OPTIONS, Some(&provider));
        write_and_kill(server, &token, &acknowledged, round);
        assert!(acknowledged.len() > before + 5, "the writers hardly wrote");
        check(&other, &token, &acknowledged);
    }
}
