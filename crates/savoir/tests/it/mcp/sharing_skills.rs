//! Tests skills that are served as prompts, as files and as whole skills.

use serde_json::{Value, json};

use super::{Client, code, sandbox_with_examples};

#[test]
fn skills_with_inputs_are_prompts() {
    let sandbox = sandbox_with_examples(&["article-summary", "git-helper"]);
    sandbox.write(
        "skills/review/SKILL.md",
        "---\nname: review\ndescription: Reviews. Use in tests.\nargument-hint: \"[file]\"\n---\nReview $ARGUMENTS in ${CLAUDE_SKILL_DIR}.\n",
    );
    let mut client = Client::new(&sandbox);
    let listed = client.ask("prompts/list", json!({}));
    let prompts = listed["result"]["prompts"].as_array().unwrap();
    let names: Vec<&str> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["article-summary", "review"], "{listed}");
    assert_eq!(
        prompts[0]["arguments"],
        json!([
            {"name": "article", "description": "The whole text of the article", "required": true},
            {"name": "tone", "description": "Tone", "required": false},
        ])
    );
    let mut get = |name: &str, arguments: Value| {
        client.ask("prompts/get", json!({"name": name, "arguments": arguments}))
    };
    let made = get("article-summary", json!({"article": "Cats sleep."}));
    let text = made["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("matter-of-fact tone") && text.contains("Cats sleep."), "{text}");
    let made = get("review", json!({"ARGUMENTS": "main.rs"}));
    let text = made["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Review main.rs in /") && text.contains("skills/review"), "{text}");
    for (name, arguments, why) in [
        ("article-summary", json!({}), "Missing required input"),
        ("article-summary", json!({"article": "x", "ton": "y"}), "did you mean `tone`"),
        ("git-helper", json!({}), "takes no inputs"),
        ("none", json!({}), "there is no skill"),
    ] {
        let error = &get(name, arguments)["error"];
        assert_eq!(error["code"], -32602, "{error}");
        assert!(error["message"].as_str().unwrap().contains(why), "{error}");
    }
}

#[test]
fn only_files_are_resources() {
    let sandbox = sandbox_with_examples(&["text-statistics"]);
    sandbox.write("skills/text-statistics/data/a b.bin", [0xff, 0xfe]);
    sandbox.write("secret", "secret");
    std::os::unix::fs::symlink("../../secret", sandbox.path("skills/text-statistics/link.md"))
        .unwrap();
    let mut client = Client::new(&sandbox);
    let listed = client.ask("resources/list", json!({}));
    let all = listed["result"]["resources"].as_array().unwrap();
    let uris: Vec<&str> = all.iter().map(|resource| resource["uri"].as_str().unwrap()).collect();
    assert!(uris.contains(&"skill://text-statistics/SKILL.md"), "{uris:?}");
    assert!(uris.contains(&"skill://text-statistics/data/a%20b.bin"), "{uris:?}");
    assert!(!uris.iter().any(|uri| uri.contains("link")), "{uris:?}");
    let mut read = |uri: &str| client.ask("resources/read", json!({"uri": uri}));
    let text = read("skill://text-statistics/SKILL.md");
    let contents = &text["result"]["contents"][0];
    assert_eq!(contents["mimeType"], "text/markdown");
    assert!(contents["text"].as_str().unwrap().starts_with("---\nname: text-statistics"), "{text}");
    assert_eq!(
        read("skill://text-statistics/data/a%20b.bin")["result"]["contents"][0]["blob"],
        "//4="
    );
    for uri in [
        "skill://text-statistics/link.md",
        "skill://text-statistics/../../secret",
        "skill://text-statistics/%2e%2e/%2e%2e/secret",
        "skill://text-statistics",
        "skill://none/SKILL.md",
        "file:///etc/passwd",
        "",
    ] {
        let answer = read(uri);
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
    }
    let templates = client.ask("resources/templates/list", json!({}));
    let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "skill://{name}/{+path}");
}

#[test]
fn long_lists_come_in_pages() {
    let sandbox = sandbox_with_examples(&[]);
    for skill in 0..30 {
        let folder = format!("skills/s{skill:02}");
        let text = format!("---\nname: s{skill:02}\ndescription: x\n---\nx\n");
        sandbox.write(&format!("{folder}/SKILL.md"), text);
        for file in 0..9 {
            sandbox.write(&format!("{folder}/f{file}.txt"), "x");
        }
    }
    let mut client = Client::new(&sandbox);
    for (method, member, whole, key) in
        [("resources/list", "resources", 300, "uri"), ("skills/list", "skills", 30, "uri")]
    {
        let (mut seen, mut cursor) = (std::collections::BTreeSet::new(), Value::Null);
        let mut pages = 0;
        loop {
            let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
            let page = client.ask(method, params)["result"].clone();
            pages += 1;
            for item in page[member].as_array().unwrap() {
                assert!(seen.insert(item[key].to_string()), "{item} comes twice");
            }
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!((seen.len(), pages), (whole, 2), "{method}");
    }
    for method in ["resources/list", "skills/list", "prompts/list", "tools/list"] {
        for cursor in ["nonsense", "zzz", "", "skill://none/SKILL.md"] {
            let wrong = client.ask(method, json!({"cursor": cursor}));
            assert_eq!(wrong["error"]["code"], -32602, "{method} from {cursor:?}: {wrong}");
        }
    }
}

#[test]
fn large_files_are_listed_and_not_read() {
    let sandbox = sandbox_with_examples(&["text-statistics"]);
    let most = 256 * 1024;
    for (name, size) in [("fits.txt", most), ("large.txt", most + 1), ("huge.bin", 10_000_000)] {
        sandbox.write(&format!("skills/text-statistics/{name}"), vec![b'x'; size]);
    }
    let mut client = Client::new(&sandbox);
    let mut read = |name: &str| {
        client.ask("resources/read", json!({"uri": format!("skill://text-statistics/{name}")}))
    };
    let fits = read("fits.txt");
    let text = fits["result"]["contents"][0]["text"].as_str().expect("a text");
    assert_eq!(text.len(), most);
    for name in ["large.txt", "huge.bin"] {
        let refused = read(name);
        let why = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{name} is read"));
        assert!(why.contains("262144"), "{why}");
    }
}

#[test]
fn skills_are_served_with_digests() {
    let sandbox = sandbox_with_examples(&["text-statistics"]);
    sandbox.write("skills/folder-name/SKILL.md", "---\nname: other-name\ndescription: x\n---\nx\n");
    sandbox.write("skills/huge/SKILL.md", "---\nname: huge\ndescription: x\n---\nx\n");
    for n in 0..512 {
        sandbox.write(&format!("skills/huge/f{n}"), "");
    }
    let mut client = Client::start_uninitialized(&sandbox, &["../skills"]);
    let begun = client.ask(
        "initialize",
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}),
    );
    let capabilities = &begun["result"]["capabilities"];
    let extension = &capabilities["extensions"]["io.modelcontextprotocol/skills"];
    assert_eq!(extension, &json!({"directoryRead": true}), "{begun}");
    assert!(capabilities["resources"].is_object(), "{begun}");

    let listed = client.ask("skills/list", json!({}))["result"].clone();
    assert_eq!(
        (&listed["resultType"], &listed["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert!(listed["ttlMs"].as_u64().unwrap() > 0);
    let skills = listed["skills"].as_array().unwrap();
    assert_eq!(skills.len(), 2, "{listed}");
    assert_eq!(skills[0]["uri"], "skill://folder-name/other-name/SKILL.md");
    let skill = &skills[1];
    assert_eq!(skill["uri"], "skill://text-statistics/SKILL.md");
    // The frontmatter is complete and unchanged.
    assert_eq!(skill["frontmatter"]["security_tier"], "experimental");
    assert_eq!(skill["frontmatter"]["tools"][1]["parameters"]["limit"]["default"], 10);
    assert_eq!(skill["frontmatter"].as_object().unwrap().len(), 9, "{skill}");
    for file in skill["resources"].as_array().unwrap() {
        let path = file["uri"].as_str().unwrap().strip_prefix("skill://").unwrap();
        let bytes = std::fs::read(sandbox.path("skills").join(path)).unwrap();
        let digest = format!("sha256:{}", savoir_skill::digest::sha256_hex(&bytes));
        assert_eq!(
            (&file["size"], &file["digest"]),
            (&json!(bytes.len()), &json!(digest)),
            "{path}"
        );
    }
    let got = client.ask("skills/get", json!({"uri": "skill://text-statistics/SKILL.md"}));
    assert_eq!(&got["result"]["skill"], skill);
    for uri in
        ["skill://huge/SKILL.md", "skill://folder-name/SKILL.md", "skill://text-statistics", "x"]
    {
        let error = client.ask("skills/get", json!({"uri": uri}));
        assert_eq!(error["error"]["code"], -32602, "{error}");
    }
    assert_eq!(client.ask("skills/get", json!({}))["error"]["code"], -32602);
}

#[test]
fn skill_with_another_name_is_found_by_its_listed_uri() {
    let sandbox = sandbox_with_examples(&[]);
    let text = "---\nname: other-name\ndescription: x\n---\nx\n";
    sandbox.write("skills/folder-name/SKILL.md", text);
    sandbox.write("skills/folder-name/references/a.md", "a");
    // The skill has a subfolder with its own name, so both would have the same URI.
    sandbox.write("skills/unclear/SKILL.md", "---\nname: twice\ndescription: x\n---\nx\n");
    sandbox.write("skills/unclear/twice/SKILL.md", "inner");
    // The name in the frontmatter is a path out of the folder.
    sandbox.write("skills/evil/SKILL.md", "---\nname: ../folder-name\ndescription: x\n---\nx\n");
    let mut client = Client::new(&sandbox);
    let listed = client.ask("skills/list", json!({}))["result"]["skills"].clone();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    let skill = &listed[0];
    let uri = skill["uri"].as_str().unwrap();
    assert_eq!(uri, "skill://folder-name/other-name/SKILL.md");
    assert_eq!(skill["frontmatter"]["name"], "other-name");
    let got = client.ask("skills/get", json!({"uri": uri}));
    assert_eq!(&got["result"]["skill"], skill, "{got}");
    let mut read = Vec::new();
    for file in skill["resources"].as_array().unwrap() {
        let got = client.ask("resources/read", json!({"uri": file["uri"]}));
        let contents =
            got["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{got}"));
        let digest = savoir_skill::digest::sha256_hex(contents.as_bytes());
        assert_eq!(file["digest"], format!("sha256:{digest}"), "{file}");
        read.push(file["uri"].as_str().unwrap().to_owned());
    }
    assert_eq!(read, [uri, "skill://folder-name/other-name/references/a.md"]);
    let mut children = |uri: &str| {
        let looked = client.ask("resources/directory/read", json!({"uri": uri}));
        let found = looked["result"]["resources"].as_array().unwrap_or_else(|| panic!("{looked}"));
        found.iter().map(|one| one["uri"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let below = "skill://folder-name/other-name";
    assert_eq!(children(below), [uri.to_owned(), format!("{below}/references")]);
    assert_eq!(children(&format!("{below}/references")), [format!("{below}/references/a.md")]);
    assert_eq!(children("skill://folder-name")[0], "skill://folder-name/SKILL.md");
    // The URI with the folder's name alone is invalid in the extension; the error contains the
    // right one.
    let other = client.ask("skills/get", json!({"uri": "skill://folder-name/SKILL.md"}));
    assert!(other["error"]["message"].as_str().unwrap().contains(uri), "{other}");
    let inner = client.ask("resources/read", json!({"uri": "skill://unclear/twice/SKILL.md"}));
    assert_eq!(inner["result"]["contents"][0]["text"], "inner", "{inner}");
}

#[test]
fn folders_can_be_listed() {
    let sandbox = sandbox_with_examples(&["text-statistics"]);
    sandbox.write("skills/text-statistics/data/deep/a.txt", "x");
    sandbox.write("skills/text-statistics/data/b.txt", "x");
    let mut client = Client::new(&sandbox);
    let mut look = |uri: &str| client.ask("resources/directory/read", json!({"uri": uri}));
    let root = look("skill://text-statistics");
    let children = root["result"]["resources"].as_array().unwrap();
    let data = children.iter().find(|child| child["name"] == "data").expect("a folder");
    assert_eq!(data["mimeType"], "inode/directory");
    assert_eq!(data["uri"], "skill://text-statistics/data");
    let inner = look("skill://text-statistics/data");
    assert_eq!(inner["result"]["resources"].as_array().unwrap().len(), 2, "{inner}");
    for uri in [
        "skill://text-statistics/SKILL.md",
        "skill://text-statistics/x",
        "skill://none",
        "skill://",
    ] {
        assert_eq!(look(uri)["error"]["code"], -32602, "{uri}");
    }
}

#[test]
fn skill_with_a_large_text_is_still_listed() {
    let sandbox = sandbox_with_examples(&[]);
    sandbox.write("skills/large/SKILL.md", "---\nname: large\ndescription: x\n---\nx\n");
    sandbox.write("skills/large/data.txt", vec![b'x'; 300 * 1024]);
    let mut client = Client::new(&sandbox);
    let got = client.ask("skills/get", json!({"uri": "skill://large/SKILL.md"}));
    let skill = &got["result"]["skill"];
    let files = skill["resources"].as_array().unwrap_or_else(|| panic!("{got}"));
    let data = files.iter().find(|file| file["uri"] == "skill://large/data.txt").unwrap();
    let digest = savoir_skill::digest::sha256_hex(&vec![b'x'; 300 * 1024]);
    assert_eq!(data["size"], 300 * 1024);
    assert_eq!(data["digest"], format!("sha256:{digest}"));
    let listed = client.ask("skills/list", json!({}));
    assert_eq!(&listed["result"]["skills"][0], skill);
    let refused = client.ask("resources/read", json!({"uri": "skill://large/data.txt"}));
    assert!(refused["error"]["message"].as_str().unwrap().contains("262144"), "{refused}");
}

#[test]
fn only_files_that_can_be_read_are_resources_of_a_skill() {
    let sandbox = sandbox_with_examples(&[]);
    let skill = "skills/mixed";
    sandbox.write(&format!("{skill}/SKILL.md"), "---\nname: mixed\ndescription: x\n---\nx\n");
    sandbox.write(&format!("{skill}/references/a.md"), "reference");
    sandbox.write(&format!("{skill}/huge.txt"), vec![b'x'; 10_000_000]);
    sandbox.write(&format!("{skill}/picture.bin"), [0xff, 0xfe, 0x00]);
    sandbox.write("secret.txt", "secret");
    std::os::unix::fs::symlink("../../secret.txt", sandbox.path(skill).join("link.md")).unwrap();
    let mut client = Client::new(&sandbox);
    let output = client.call("use_skill", &json!({"name": "mixed"}));
    assert_eq!(output["structuredContent"]["resources"], json!(["references/a.md"]), "{output}");
    let mut read = |path: &str| {
        let result = client.call("read_skill_file", &json!({"name": "mixed", "path": path}));
        let error = result["structuredContent"]["error"].clone();
        (error["code"].as_str().unwrap_or_default().to_owned(), error["message"].to_string())
    };
    let (code, message) = read("link.md");
    assert_eq!(code, "no-such-file");
    assert!(message.contains("link") && message.contains("outside"), "{message}");
    assert_eq!(read("huge.txt").0, "file-too-large");
    assert_eq!(read("picture.bin").0, "file-not-text");
}

#[test]
fn invalid_skills_are_served_without_tools() {
    let sandbox = sandbox_with_examples(&["text-statistics"]);
    let text = sandbox.read("skills/text-statistics/SKILL.md");
    let version = text.lines().find(|line| line.starts_with("version: ")).expect("a version");
    let wrong = text.replacen(version, "version: 1.0", 1);
    sandbox.write("skills/text-statistics/SKILL.md", wrong);
    let locked =
        "---\nname: locked\ndescription: Locks up. \nversion: 1.0\nallowed-tools: Read\n---\nx\n";
    sandbox.write("skills/locked/SKILL.md", locked);
    sandbox.write("skills/garbage/SKILL.md", "---\nname: [\n  }\n---\nx\n");
    let mut client = Client::new(&sandbox);
    let output = client.call("use_skill", &json!({"name": "text-statistics"}));
    assert_eq!(output["isError"], false, "{output}");
    let output = &output["structuredContent"];
    assert!(output["instructions"].as_str().unwrap().len() > 20, "{output}");
    assert!(output["note"].as_str().unwrap().contains("version: invalid-version"), "{output}");
    assert!(output.get("tools").is_none(), "{output}");
    let run =
        json!({"skill": "text-statistics", "tool": "count_words", "arguments": {"text": "a"}});
    assert_eq!(code(&client.call("run_skill_tool", &run)), "unknown-tool");

    let found = client.call("search_skills", &json!({"query": "locks garbage"}));
    let found = &found["structuredContent"];
    assert_eq!(found["skills"][0]["name"], "locked", "{found}");
    assert_eq!(found["unusable"][0]["name"], "garbage", "{found}");
    let broken = client.call("use_skill", &json!({"name": "garbage"}));
    assert_eq!(code(&broken), "broken-skill");

    let output = client.call("use_skill", &json!({"name": "locked"}));
    assert_eq!(output["structuredContent"]["allowed_tools"], json!(["read_file"]), "{output}");
}
