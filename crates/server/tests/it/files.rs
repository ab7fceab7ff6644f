//! Tests skills as files that users edit by hand, and concurrent writes.

use std::fs;

use serde_json::json;

use crate::{
    harness::ADMIN,
    skills::{SKILLS, new, one, people, server},
};

#[tokio::test]
async fn manual_changes_of_files_are_noticed() {
    let server = server().await;
    let [admin, ada, bob] = people(&server).await;
    let id = ada.id();
    let text = |words: &str| format!("---\nname: a\nuser_id: '{id}'\n---\n{words}\n");
    server.write_skill("a", &text("one"));
    assert_eq!(ada.get(&one("a")).await.json()["prompt"], "one");
    for words in ["two", "six", "ten"] {
        server.write_skill("a", &text(words));
        assert_eq!(ada.get(&one("a")).await.json()["prompt"], words);
        assert_eq!(ada.get(SKILLS).await.json()["total"], 1);
    }
    let mismatch = "Skill name mismatch: folder name 'a' does not match frontmatter name 'b'";
    let no_frontmatter = "Skill 'a' has no valid YAML frontmatter";
    let owner = format!("user_id: '{id}'\n");
    for (broken, field, message) in [
        (format!("---\nname: b\n{owner}---\n"), "name", mismatch),
        (format!("{owner}plain"), "frontmatter", no_frontmatter),
        (format!("---\n- x\n---\n{owner}"), "frontmatter", "frontmatter must be a mapping"),
        (format!("---\nname: 5\n{owner}---\n"), "name", "Frontmatter name must be a string"),
    ] {
        server.write_skill("a", &broken);
        for person in [&ada, &admin] {
            person.get(&one("a")).await.blames(400, field, message);
            let reply = person.post(&format!("{}/run", one("a")), &json!({})).await;
            reply.blames(400, field, message);
        }
        bob.get(&one("a")).await.blames(404, "name", "Skill 'a' not found");
        bob.delete(&one("a")).await.blames(404, "name", "Skill 'a' not found");
        assert_eq!(admin.get(SKILLS).await.json(), json!({"skills": [], "total": 0}));
    }
    // The skill can be repaired.
    let response =
        ada.put(&one("a"), &json!({"content": "---\nname: a\n---\nback\n"})).await.json();
    assert_eq!(
        (&response["prompt"], &response["user_id"]),
        (&json!("back"), &json!(id.to_string()))
    );
    // Limits apply only to writes through the API, not to edits by hand.
    server.write_skill(
        "a",
        &format!("---\n{owner}description: {}\n---\n{{{{x}}}}", "x".repeat(2000)),
    );
    assert_eq!(ada.get(&one("a")).await.status, 200);
    fs::remove_dir_all(server.skills_folder().join("a")).unwrap();
    ada.get(&one("a")).await.blames(404, "name", "Skill 'a' not found");
}

#[tokio::test]
async fn owner_of_a_broken_file_may_be_quoted_in_any_way() {
    let server = server().await;
    let [_, ada, bob] = people(&server).await;
    let id = ada.id();
    let mismatch = "Skill name mismatch: folder name 'a' does not match frontmatter name 'b'";
    for owner in [format!("'{id}'"), format!("\"{id}\""), id.to_string()] {
        server.write_skill("a", &format!("---\nname: b\nuser_id: {owner}\n---\n"));
        ada.get(&one("a")).await.blames(400, "name", mismatch);
        bob.get(&one("a")).await.blames(404, "name", "Skill 'a' not found");
    }
    server.write_skill("a", "---\nname: b\nuser_id: ''\n---\n");
    ada.get(&one("a")).await.blames(404, "name", "Skill 'a' not found");
}

#[tokio::test]
async fn only_one_of_concurrent_requests_creates_a_skill() {
    let server = server().await;
    let beside = server.beside().await;
    let ada = server.register("ada@example.org").await;
    let there = beside.client(&ada.token);
    let posts = (0..16).map(async |number| {
        let person = if number % 2 == 0 { &ada } else { &there };
        let content = format!("---\nname: a\n---\n{}", number.to_string().repeat(2000));
        person.post(SKILLS, &new("a", &content)).await
    });
    let replies = futures::future::join_all(posts).await;
    let message = "Skill name 'a' conflicts with existing skill 'a' (names are case-insensitive)";
    let (made, refused): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 201);
    assert_eq!(made.len(), 1);
    for reply in refused {
        reply.blames(409, "name", message);
    }
    assert_eq!(ada.get(&one("a")).await.text, made[0].text);
}

#[tokio::test]
async fn concurrent_updates_leave_a_complete_file() {
    let server = server().await;
    let ada = server.register("ada@example.org").await;
    let text = |number: usize| {
        let letter = char::from(b'a' + u8::try_from(number % 26).unwrap());
        format!("---\nname: x\n---\n{}", letter.to_string().repeat(20_000 + number))
    };
    ada.post(SKILLS, &new("x", &text(0))).await;
    let path = server.skill_file("x");
    let puts = (1..20).map(async |number| {
        let reply = ada.put(&one("x"), &json!({"content": text(number)})).await;
        assert!([200, 409].contains(&reply.status.as_u16()), "{}", reply.text);
        let kept = fs::read_to_string(&path).unwrap();
        let seen = ada.get(&one("x")).await.json()["prompt"].as_str().unwrap().to_owned();
        for text in [kept.rsplit("---\n").next().unwrap(), &seen] {
            let first = text.chars().next().unwrap();
            let number = text.len() - 20_000;
            assert!(text.chars().all(|letter| letter == first));
            assert_eq!(u32::from(first), u32::from(b'a') + u32::try_from(number % 26).unwrap());
        }
        reply.status.as_u16()
    });
    let statuses = futures::future::join_all(puts).await;
    assert!(statuses.contains(&200), "{statuses:?}");
}

#[tokio::test]
async fn symlinks_out_of_the_folder_are_not_followed() {
    let server = server().await;
    let [admin, ada, _] = people(&server).await;
    let outside = server.skills_folder().join("../outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(server.skills_folder()).unwrap();
    fs::write(outside.join("SKILL.md"), "---\nname: link\n---\nsecret\n").unwrap();
    std::os::unix::fs::symlink(&outside, server.skills_folder().join("link")).unwrap();
    for person in [&admin, &ada] {
        person.get(&one("link")).await.blames(404, "name", "Skill 'link' not found");
        person.delete(&one("link")).await.blames(404, "name", "Skill 'link' not found");
        let body = json!({"content": "---\nname: link\n---\n"});
        person.put(&one("link"), &body).await.blames(404, "name", "Skill 'link' not found");
    }
    assert_eq!(admin.get(SKILLS).await.json()["total"], 0);
    let text = fs::read_to_string(outside.join("SKILL.md")).unwrap();
    assert!(text.contains("secret"));
}

#[tokio::test]
async fn internal_errors_have_fixed_messages() {
    let server = server().await;
    let admin = server.register(ADMIN).await;
    server.write_skill("a", "");
    fs::write(server.skill_file("a"), b"---\nname: a\n---\n\xff").unwrap();
    let unreadable = json!({
        "detail": {"field": "content", "message": "Skill 'a' cannot be read: it is not UTF-8"},
        "hint": "replace its text with UTF-8 text of at most 50 KiB, or delete it",
    });
    admin.get(&one("a")).await.is(400, &unreadable);
    admin.post(&format!("{}/run", one("a")), &json!({})).await.is(400, &unreadable);
    assert_eq!(admin.get(SKILLS).await.json(), json!({"skills": [], "total": 0}));
    // A file takes the place of the folder with all skills.
    fs::remove_dir_all(server.skills_folder()).unwrap();
    fs::write(server.skills_folder(), "").unwrap();
    let reply = admin.post(SKILLS, &new("b", "---\nx: 1\n---\n")).await;
    reply.refuses(500, "Failed to create skill");
}
