//! Tests skills that are added, changed and removed while a client is connected.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Client, REPLY_TIMEOUT, code, sandbox_with_examples};
use crate::support::Sandbox;

fn skill(sandbox: &Sandbox, place: &str, name: &str, body: &str) {
    sandbox.write(
        &format!("{place}/{name}/SKILL.md"),
        format!("---\nname: {name}\ndescription: Tries {name}. Use in tests.\n---\n{body}\n"),
    );
}

/// Repeats a request until the response is as expected.
fn until(client: &mut Client, mut right: impl FnMut(&mut Client) -> bool) {
    let begun = Instant::now();
    while !right(client) {
        assert!(begun.elapsed() < REPLY_TIMEOUT, "it is not noticed");
        thread::sleep(Duration::from_millis(200));
    }
}

fn found(client: &mut Client) -> Vec<String> {
    let found = client.call("search_skills", &json!({"query": "tries", "limit": 50}));
    let found = found["structuredContent"]["skills"].as_array().expect("skills").clone();
    let mut names: Vec<String> =
        found.iter().map(|skill| skill["name"].as_str().expect("a name").to_owned()).collect();
    names.sort();
    names
}

fn is(method: &str) -> impl Fn(&Value) -> bool {
    move |notice: &Value| notice["method"] == method
}

#[test]
fn added_and_removed_skills_are_noticed() {
    let sandbox = sandbox_with_examples(&[]);
    skill(&sandbox, "skills", "first", "Do it.");
    let mut client = Client::new(&sandbox);
    assert_eq!(found(&mut client), ["first"]);
    skill(&sandbox, "skills", "second", "Do $ARGUMENTS.");
    until(&mut client, |client| found(client) == ["first", "second"]);
    let used = client.call("use_skill", &json!({"name": "second"}));
    assert_eq!(used["isError"], false, "{used}");
    let listed = client.ask("prompts/list", json!({}));
    assert_eq!(listed["result"]["prompts"][0]["name"], "second", "{listed}");
    for method in ["notifications/prompts/list_changed", "notifications/resources/list_changed"] {
        assert!(client.notices.iter().any(is(method)), "{method}: {:?}", client.notices);
    }

    // One skill changes, and one is removed.
    let text = fs::read_to_string(sandbox.path("skills/first/SKILL.md")).unwrap();
    let text = text.replace("Tries first", "Is of no use to anybody at all, and");
    fs::write(sandbox.path("skills/first/SKILL.md"), text).unwrap();
    until(&mut client, |client| found(client) == ["second"]);
    fs::remove_dir_all(sandbox.path("skills/second")).unwrap();
    until(&mut client, |client| found(client).is_empty());
    assert_eq!(code(&client.call("use_skill", &json!({"name": "second"}))), "unknown-skill");
}

#[test]
fn skills_installed_later_are_offered() {
    let sandbox = sandbox_with_examples(&[]);
    fs::create_dir_all(sandbox.path("work/.git")).unwrap();
    fs::create_dir_all(sandbox.path("work/.claude/skills")).unwrap();
    let mut client = Client::with(&sandbox, &[], &json!({}));
    assert_eq!(found(&mut client), Vec::<String>::new());
    skill(&sandbox, "work/.claude/skills", "later", "Do it.");
    until(&mut client, |client| found(client) == ["later"]);
}

#[test]
fn clients_without_subscription_are_notified() {
    let sandbox = sandbox_with_examples(&[]);
    skill(&sandbox, "skills", "first", "Do it.");
    let mut client = Client::new(&sandbox);
    // On a busy machine, some appear before the first search and are not reported.
    let mut output = (0..10).find_map(|n| {
        thread::sleep(Duration::from_secs(2));
        skill(&sandbox, "skills", &format!("later-{n}"), "Do it.");
        client.lines.recv_timeout(Duration::from_secs(7)).ok()
    });
    for kind in ["tools", "prompts", "resources"] {
        let heard = output.take().unwrap_or_else(|| client.read_message());
        let method = format!("notifications/{kind}/list_changed");
        assert_eq!(heard["method"], method, "{heard}");
    }
    assert!(found(&mut client).contains(&"later-0".to_owned()));
}
