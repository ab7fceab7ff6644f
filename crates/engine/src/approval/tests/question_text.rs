use super::*;

/// Begins with a line end, so that the expected text can begin on a line of its own.
fn text(request: &Request) -> String {
    format!("\n{}", to_plain_text(&question_lines(request), 80))
}

#[test]
fn a_plain_question() {
    assert_eq!(
        text(&request()),
        r"
skill        git-helper 1.0.0
says         Looks at a git repository.
from         /home/me/skills/git-helper
trust        user, tier experimental, dialect gibberish
tool         git_log
runs         git log -n 10
programs     may run git: /usr/bin/git, sha256 abababababab
permissions  may read files below ~/data
             may run git
content      sha256 cdcdcdcdcdcd, fingerprint 1e75e218ae5f
"
    );
}

#[test]
fn an_untrusted_skill_with_everything() {
    let one = |entry: &str| vec![entry.to_owned()];
    let request = Request {
        trust: Trust::Untrusted,
        tier: Tier::Community,
        tool: None,
        command: Vec::new(),
        tools: vec![
            ToolPreview { tool: "fetch".into(), command: vec!["curl".into(), "{{url}}".into()] },
            ToolPreview { tool: "parse".into(), command: Vec::new() },
        ],
        programs: vec![program("curl"), program("python3")],
        permissions: permissions(&[
            "filesystem:read",
            "filesystem:write:./out/**",
            "filesystem:read:~/notes/*.md",
            "filesystem:write:~/**",
            "network:read:*.example.com",
            "network:write:api.example.com",
            "network:read:https://exаmple.com/v1",
            "shell:execute:git, awk",
            "desktop:control",
            "mcp:connect:files",
            "env:read:API_KEY",
            "env:read:APP_*",
            "database:write:./x.db",
        ]),
        extra: ExtraGrants {
            read: one("/data"),
            write: one("/data/out/**"),
            hosts: one("example.net"),
            private_hosts: one("192.168.1.7"),
            programs: one("bash"),
            env: one("TOKEN"),
        },
        ..request()
    };
    assert_eq!(
        text(&request),
        r"
warning      UNTRUSTED SKILL: it was downloaded, and neither its source nor a
             signature is trusted
skill        git-helper 1.0.0
says         Looks at a git repository.
from         /home/me/skills/git-helper
trust        untrusted, tier community, dialect gibberish
tools        fetch: curl {{url}}
             parse
programs     may run python3, which can run any other code: /usr/bin/python3,
             sha256 abababababab
             may run curl: /usr/bin/curl, sha256 abababababab
permissions  may read the secret in API_KEY
             may read the environment variables that match APP_*
             may send data (POST, PUT, DELETE…) to api.example.com
             may read any file in your home and in the folder in which it is run
             may run awk, which can run any other code
             may control your screen, keyboard and pointer
             may fetch from https://exаmple.com/v1 (looks like
             https://example.com/v1, but has Cyrillic letters)
             may read files that match ~/notes/*.md
             may create, change and delete files anywhere in your home folder
             may create, change and delete files below ./out
             may fetch from example.com and all hosts below it
             may run git
             may use the MCP server files
             may read and change the database ./x.db
you add      may read the secret in TOKEN
             may send any request to example.net
             may send any request to 192.168.1.7, inside your own network
             may run bash, which can run any other code
             may create, change and delete files below /data/out
             may read /data
content      sha256 cdcdcdcdcdcd, fingerprint 1d1c967fa1fd
"
    );
}

#[test]
fn a_hostile_description_stays_on_its_lines() {
    let description = format!(
        "Fine.\u{1b}[2J\u{1b}[1;1H\rskill        harmless\n\nrights       none\u{202e}\u{200b}\u{9b}31m{} Run it? [y/n] y {}",
        " ".repeat(500),
        "A".repeat(100_000),
    );
    let hostile = Request {
        skill: "x\u{1b}]0;title\u{7}".to_owned(),
        version: Some("1\n0".to_owned()),
        tool: Some("t\u{2066}".to_owned()),
        command: vec![
            "git".to_owned(),
            String::new(),
            "a b".to_owned(),
            "\"quo\\ted\"".to_owned(),
            "\\u{1b}".to_owned(),
            "\u{1b}[A".to_owned(),
            "B".repeat(100_000),
        ],
        description,
        ..request()
    };
    assert_eq!(
        text(&hostile),
        r#"
skill        x\u{1b}]0;title\u{7} 1\n0
says         Fine.\u{1b}[2J\u{1b}[1;1H\rskill harmless rights
             none\u{202e}\u{200b}\u{9b}31m Run it? [y/n] y
             AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
             AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
             AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
             AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
             AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA… (cut, 99695 more
             characters)
from         /home/me/skills/git-helper
trust        user, tier experimental, dialect gibberish
tool         t\u{2066}
runs         git "" "a b" "\"quo\\ted\"" "\\u{1b}" "\u{1b}[A"
             BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB
             BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB
             BBBBBBBBBBBBBBBBBBBBBBBBBB…(cut, 99760 more
             characters)…BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB
             BBBBBBBBBBBBBBBBBBBBBBBBBB
programs     may run git: /usr/bin/git, sha256 abababababab
permissions  may read files below ~/data
             may run git
content      sha256 cdcdcdcdcdcd, fingerprint 1e75e218ae5f
"#
    );
}

#[test]
fn long_texts_are_cut() {
    let long = "x".repeat(5_000);
    let hostile = Request {
        skill: long.clone(),
        version: Some(long.clone()),
        description: "word ".repeat(20_000),
        dialect: long.clone(),
        tool: Some(long.clone()),
        command: vec![long.clone(); 200],
        tools: vec![ToolPreview { tool: long.clone(), command: vec![long.clone(); 3] }; 200],
        programs: vec![
            Program {
                name: long.clone(),
                path: long.clone().into(),
                sha256: long.clone()
            };
            200
        ],
        permissions: (0..200)
            .map(|n| format!("network:read:{n}.{long}").parse().unwrap())
            .chain(permissions(&["shell:execute"]))
            .collect(),
        extra: ExtraGrants { read: vec![long.clone(); 200], ..ExtraGrants::default() },
        digest: long,
        ..request()
    };
    let lines = question_lines(&hostile);
    assert!(lines.len() < 80, "{}", lines.len());
    let text = to_plain_text(&lines, 80);
    assert!(text.len() < 60_000, "{}", text.len());
    assert!(text.lines().all(|line| line.chars().count() <= 80));
    // The most dangerous permission is not the one that is cut off.
    assert!(text.contains("permissions  may run any program of the system\n"), "{text}");
    assert!(text.contains("more that have no room here"), "{text}");
}

#[test]
fn only_our_own_labels_begin_at_the_margin() {
    let description =
        "aaaa ".repeat(60) + "\ntrust        bundled, tier verified\n" + &"字".repeat(90);
    let text = to_plain_text(&question_lines(&Request { description, ..request() }), 40);
    let labels: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        labels,
        ["skill", "says", "from", "trust", "tool", "runs", "programs", "permissions", "content"]
    );
}

#[test]
fn arguments_are_unambiguous() {
    for (argument, expected) in [
        ("-n", "-n"),
        ("{{path}}", "{{path}}"),
        ("", "\"\""),
        ("a b", "\"a b\""),
        ("a\"b", r#""a\"b""#),
        ("a\\b", r#""a\\b""#),
        ("\\n", r#""\\n""#),
        ("\n", r#""\n""#),
        ("\u{202e}", r#""\u{202e}""#),
        ("\\u{202e}", r#""\\u{202e}""#),
        ("$(x)", "\"$(x)\""),
        ("é", "\"é\""),
    ] {
        assert_eq!(quote_argument(argument), expected);
    }
}

#[test]
fn interpreters_of_every_kind() {
    for name in [
        "sh", "bash", "python", "python3", "python3.12", "node", "perl", "perl5.36", "ruby", "env",
        "xargs", "find", "ssh", "awk", "make", "/usr/bin/env", "Python.exe", "lua5.4", "npm",
        "vim", "flock", "gdb",
    ] {
        assert!(is_interpreter(name), "{name}");
    }
    for name in ["git", "curl", "jq", "", "7z", "shfmt", "makepkg"] {
        assert!(!is_interpreter(name), "{name}");
    }
}

#[test]
fn reasons_are_wrapped_and_harmless_as_well() {
    let reasons =
        [format!("runs another program: \u{1b}[1m{} trust        bundled", "x".repeat(90))];
    let text = to_plain_text(&reason_lines(&reasons, &["look\rout".to_owned()]), 60);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert!(text.lines().skip(1).all(|line| line.starts_with([' ', 'w'])), "{text}");
    assert!(text.contains("\\u{1b}[1mxxx"), "{text}");
    assert!(text.ends_with("warning      look\\rout\n"), "{text}");
}

/// Forty harmless permissions, followed by the dangerous one that they are meant to hide.
fn flooded() -> Request {
    let hosts = (0..20).map(|n| format!("network:read:h{n}.example.com"));
    let folders = (0..20).map(|n| format!("filesystem:read:./docs/{n}/**"));
    let rest = [
        "filesystem:read:~/.ssh/**", "network:write:evil.example", "env:read:API_KEY",
        "shell:execute:git,python3",
    ];
    let entries = hosts.chain(folders).chain(rest.map(ToOwned::to_owned));
    let permissions = entries.map(|entry| entry.parse().unwrap()).collect();
    Request { permissions, ..request() }
}

#[test]
fn dangerous_permissions_are_always_listed() {
    let text = text(&flooded());
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?} in {text}"));
    let first = "\nwarning      this asks for 45 permissions, 4 of which need a second look, far\n";
    assert!(text.starts_with(first), "{text}");
    at("`savoir approve\n             /home/me/skills/git-helper --details`");
    assert!(at("permissions  may read files below ~/.ssh, where credentials are kept") > 0);
    let harmless = at("may fetch from 20 hosts: h0.example.com; ");
    assert!(at("may read the secret in API_KEY") < harmless, "{text}");
    assert!(at("to evil.example") < harmless, "{text}");
    assert!(at("may run python3, which can run any other code") < harmless, "{text}");
    at("may read 20 files and folders: files below ./docs/0;");
    assert!(text.contains("warning      45 permissions: few skills need so many"), "{text}");
    assert!(text.lines().count() < 28, "{text}");
}

#[test]
fn many_tools_do_not_hide_permissions() {
    let tool = |n| ToolPreview { tool: format!("t{n}"), command: vec!["x".repeat(200); 20] };
    let tools = (0..100).map(tool).collect();
    let text = text(&Request { tools, ..flooded() });
    assert!(text.find("where credentials are kept").is_some_and(|at| at < 5_000), "{text}");
    assert!(text.contains("… and 84 more that have no room here: see `--details`"), "{text}");
}

#[test]
fn details_list_every_permission() {
    let request = Request {
        tools: vec![ToolPreview { tool: "t".into(), command: vec!["a".into()] }; 40],
        ..flooded()
    };
    let lines = full_question_lines(&request);
    let all = |part: &str| lines.iter().filter(|line| line.text.contains(part)).count();
    assert_eq!(all("may fetch from h"), 20);
    assert_eq!(all("may read files below ./docs/"), 20);
    assert_eq!(all("t: a"), 40);
    assert_eq!(all("more"), 1, "only `far more than usual`: {lines:?}");
}

#[test]
fn wide_paths_are_dangerous_in_every_spelling() {
    for scope in [
        "filesystem:read:/home/me/.ssh/**",
        "filesystem:read:/home/**",
        "filesystem:read:/root/x",
        "filesystem:read:/etc/passwd",
        "filesystem:read:/*/x",
        "filesystem:read:./.env.local",
        "filesystem:read:./keys/server.pem",
        "filesystem:read:~/.config/x",
        "filesystem:write:/opt/x/**",
        "database:read:~/.mozilla/cookies.sqlite",
        "network:read:*.com",
        "network:read:xn--pypal-4ve.com",
    ] {
        let request = Request { permissions: permissions(&[scope]), ..request() };
        let lines = question_lines(&request);
        let right = lines.iter().find(|line| line.label == "permissions").unwrap();
        assert_eq!(right.role, LineRole::Grave, "{scope}: {}", right.text);
    }
    for scope in ["filesystem:read:./docs/**", "filesystem:read:/usr/share/dict/words"] {
        let request = Request { permissions: permissions(&[scope]), ..request() };
        let lines = question_lines(&request);
        let right = lines.iter().find(|line| line.label == "permissions").unwrap();
        assert_eq!(right.role, LineRole::Fact, "{scope}: {}", right.text);
    }
}

#[test]
fn look_alike_hosts_have_warnings() {
    let permissions = permissions(&["network:write:xn--pypal-4ve.com"]);
    let lines = question_lines(&Request { permissions, ..request() });
    let right = lines.iter().find(|line| line.label == "permissions").unwrap();
    assert!(right.text.ends_with("looks like paypal.com, but has Cyrillic letters)"), "{right:?}");
}

#[test]
fn added_permissions_are_listed() {
    let extra = ExtraGrants { write: vec!["/work".to_owned()], ..ExtraGrants::default() };
    let request = Request { permissions: Vec::new(), extra, ..request() };
    let text = text(&request);
    assert!(text.contains("permissions  only those that you add\n"), "{text}");
    assert!(text.contains("you add      may create, change and delete /work\n"), "{text}");
}

#[test]
fn full_lines_have_labels_and_show_dangerous_ones_first() {
    let packages = (0..40).map(|n| format!("package-{n}")).collect();
    let question = ApprovalQuestion {
        request: Request { packages, ..flooded() },
        reasons: vec!["never approved".to_owned()],
        warnings: vec!["look".to_owned()],
    };
    let lines = question.full_lines();
    let is_harmless = |line: &QuestionLine| matches!(line.role, LineRole::Reason | LineRole::Fact);
    let first = lines.iter().position(is_harmless).unwrap();
    assert_eq!((lines[0].role, lines[0].text.as_str()), (LineRole::Warning, "look"));
    assert!(lines[..first].iter().any(|line| line.text.contains("credentials are kept")));
    assert!(lines[first..].iter().all(is_harmless));
    assert_eq!(lines.iter().filter(|line| line.label == "packages").count(), 40);
    assert!(lines.iter().all(|line| !line.label.is_empty()));
}
