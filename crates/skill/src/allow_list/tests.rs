use serde_json::json;

use super::*;
use crate::allowed_tools::split;

fn list(text: &str) -> AllowList {
    AllowList::new(Some(&split(text))).unwrap()
}

fn arguments(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn runs(list: &AllowList, command: &str) -> bool {
    let call_arguments = arguments(json!({"command": command}));
    list.check(OfferedTool::Host("run_command"), &call_arguments).is_ok()
}

#[test]
fn an_empty_list_restricts_nothing() {
    assert_eq!(AllowList::new(None), None);
    assert_eq!(AllowList::new(Some(&[])), None);
    assert_eq!(AllowList::new(Some(&split(" , "))), None);
}

#[test]
fn names_of_other_systems_stand_for_tools_of_the_host() {
    let list = list("Bash, READ str-replace My_Tool");
    for tool in ["run_command", "read_file", "edit_file", "my_tool"] {
        assert!(list.names(OfferedTool::Host(tool)), "{tool}");
    }
    for tool in ["write_file", "web_fetch", "mytool", "my-tool"] {
        assert!(!list.names(OfferedTool::Host(tool)), "{tool}");
    }
}

#[test]
fn tools_of_skills_are_allowed_by_their_exact_names() {
    let offered = |skill, tool, called| OfferedTool::Skill { skill, tool, called };
    let alpha = offered("alpha", "go", "alpha__go");
    for written in ["alpha/go", "alpha__go"] {
        let list = list(written);
        assert!(list.names(alpha), "{written}");
        assert!(list.names(offered("alpha", "go", "go")), "{written} is its own");
        // A folder that differs in its case, and one that looks like a skill and its tool.
        assert!(!list.names(offered("Alpha", "go", "Alpha__go")), "{written}");
        assert!(!list.names(offered("alpha", "GO", "alpha__GO")), "{written}");
    }
    let list = list("alpha__go__x");
    assert!(!list.names(offered("alpha__go", "x", "alpha__go__x")));
    assert!(!list.names(offered("alpha", "go__x", "alpha__go__x")));
}

#[test]
fn skill_tools_are_denied_by_each_of_their_names() {
    let long = "x".repeat(70);
    let offered = |called| OfferedTool::Skill { skill: &long, tool: "stop", called };
    for written in [format!("{long}__stop"), format!("{long}/stop"), format!("{long}__STOP")] {
        let policy = Policy { disallowed_tools: split(&written), ..Policy::default() };
        let list = AllowList::of(&policy).unwrap();
        for called in ["stop", "cut_4de1f550"] {
            assert!(!list.names(offered(called)), "{written} {called}");
            assert!(list.check(offered(called), &Map::new()).is_err(), "{written} {called}");
        }
    }
}

#[test]
fn stray_parentheses_never_widen_the_list() {
    let command = arguments(json!({"command": "rm -rf /"}));
    for text in ["Bash (git log:*)", "Bash\n(git log:*)", "(Bash", "Bash)", "(Bash)"] {
        let list = list(text);
        assert!(list.check(OfferedTool::Host("run_command"), &command).is_err(), "{text}");
        let policy = Policy { disallowed_tools: split(text), ..Policy::default() };
        let denied = AllowList::of(&policy).unwrap();
        assert!(!denied.names(OfferedTool::Host("run_command")), "{text}");
        assert!(denied.names(OfferedTool::Host("read_file")), "{text}");
    }
    let policy = Policy { disallowed_tools: split("(Bash Write, Read"), ..Policy::default() };
    let denied = AllowList::of(&policy).unwrap();
    for tool in ["run_command", "write_file", "read_file"] {
        assert!(!denied.names(OfferedTool::Host(tool)), "{tool}");
    }
}

#[test]
fn skill_tools_cannot_replace_host_tools() {
    let list = list("Bash Read search git/log");
    let offered = |skill, tool, called| OfferedTool::Skill { skill, tool, called };
    for (skill, tool, called) in [
        ("evil", "bash", "bash"),
        ("evil", "Read", "evil/Read"),
        ("evil", "run_command", "run_command"),
        ("evil", "log", "log"),
        ("evil", "log", "evil/log"),
        ("evil", "git/log", "evil_git_log"),
        // The Kelvin sign and the dotless i become ASCII letters in some folding.
        ("x", "search", "sear\u{0441}h"),
        ("g\u{0131}t", "log", "x"),
    ] {
        assert!(!list.names(offered(skill, tool, called)), "{called}");
    }
    assert!(list.names(offered("web", "search", "search")));
    assert!(list.names(offered("git", "log", "git_log")));
    assert!(
        !list.names(offered("Git", "LOG", "git_log")),
        "a folder of another case is another one"
    );
}

#[test]
fn commands_must_start_with_the_allowed_words() {
    let list = list("Bash(git add:*) Bash(npm test) Bash(make *)");
    for command in ["git add", "git add .", "git  add 'a b' \"c\"", "npm test", "make -j2 all"] {
        assert!(runs(&list, command), "{command}");
    }
    for command in [
        "git", "git adder", "git commit -m x", "git -c core.editor=evil add", "GIT ADD .",
        "/usr/bin/git add .", "npm test --watch", "npm", "makefile", "", " ",
        "PATH=/tmp git add .", "'git add' .", "sudo git add .",
    ] {
        assert!(!runs(&list, command), "{command}");
    }
}

#[test]
fn second_commands_are_rejected() {
    let list = list("Bash(git add:*)");
    for command in [
        "git add . && rm -rf /", "git add .; rm -rf /", "git add . | sh", "git add . & rm x",
        "git add $(rm -rf /)", "git add `rm -rf /`", "git add \"$(rm -rf /)\"", "git add \"`rm`\"",
        "git add .\nrm -rf /", "git add .\rrm -rf /", "git add . > /etc/passwd",
        "git add . < /etc/shadow", "git add . 2>&1", "git add <(rm x)", "git add \\\nx",
        "git add ${IFS}x", "git add $HOME", "git add {a,b}", "git add *", "git add ~/x",
        "git add 'unclosed", "git add \"unclosed", "git add # comment", "git add !!",
        "git add \u{a0}x", "git add \u{2028} rm", "git add \0x", "git add \u{1b}[0m",
    ] {
        assert!(!runs(&list, command), "{command:?}");
    }
}

#[test]
fn command_with_path_pattern_allows_files_that_fit() {
    let allowed = list("Bash(cat docs/*) Bash(python3 scripts/*.py:*) Bash(wc *.md)");
    for command in [
        "cat docs/a.md", "cat docs/a.md docs/b/c.md", "cat docs/*", "cat ./docs/a.md",
        "wc README.md notes.md",
    ] {
        assert!(runs(&allowed, command), "{command}");
    }
    for command in [
        "cat", "cat docs", "cat secret", "cat docs/a.md secret", "cat docs/../secret",
        "cat /docs/a", "cat -n docs/a", "cat docs/a; id", "cat docs/* secret", "cat *",
        "cat docs/?", "cat docs/a*", "wc *.md", "wc -l x.md", "ls docs/a",
    ] {
        assert!(!runs(&allowed, command), "{command}");
    }
    assert!(!runs(&list("Bash(git*)"), "git log"), "the program must be named");
    // A program that runs others is still asked about.
    let call_arguments = arguments(json!({"command": "find src/a -delete"}));
    let found = list("Bash(find src/*:*)").check(OfferedTool::Host("run_command"), &call_arguments);
    assert_eq!(found.unwrap_err().code(), "approval-needed");
}

#[test]
fn path_pattern_with_leading_slash_is_relative_to_the_working_directory() {
    let allowed = list("Read(/src/**) Write(//tmp/out/**)");
    let fits = |list: &AllowList, tool, path: &str| {
        list.check(OfferedTool::Host(tool), &arguments(json!({"path": path}))).is_ok()
    };
    for path in ["src/a.rs", "./src/a/b.rs", "/src/a.rs"] {
        assert!(fits(&allowed, "read_file", path), "{path}");
    }
    for path in ["docs/a", "/etc/passwd", "src/../docs/a", "lib/src/a"] {
        assert!(!fits(&allowed, "read_file", path), "{path}");
    }
    assert!(
        fits(&allowed, "write_file", "/tmp/out/a") && !fits(&allowed, "write_file", "tmp/out/a")
    );
    let denied = AllowList::of(&policy("Read", "Read(/secrets/**)")).unwrap();
    for path in ["secrets/a", "/secrets/a", "/home/me/project/secrets/a"] {
        assert!(!fits(&denied, "read_file", path), "{path}");
    }
    assert!(fits(&denied, "read_file", "docs/a") && fits(&denied, "read_file", "/work/docs/a"));
}

#[test]
fn entries_without_a_tool_are_found() {
    let tools = ["read_file", "run_command"].map(OfferedTool::Host);
    assert_eq!(
        list("Read WebSearch Bash(git:*) Reed(x)").find_missing(&tools),
        ["WebSearch", "Reed(x)"]
    );
    let denied = AllowList::of(&policy("", "WebSearch")).unwrap();
    assert!(denied.find_missing(&tools).is_empty());
}

#[test]
fn rejection_names_every_rule_of_the_list() {
    let allowed = list("Bash(git add:*) Bash(git log, npm test) Read(docs/**) Read(*.md)");
    let why = |tool, call_arguments| {
        let refused = allowed.check(OfferedTool::Host(tool), &arguments(call_arguments));
        refused.unwrap_err().to_string()
    };
    let command = why("run_command", json!({"command": "rm x"}));
    assert!(
        command.ends_with(
            "the command must start with `git add`, or the command must be `git log`, or the command \
             must be `npm test`"
        ),
        "{command}"
    );
    let path = why("read_file", json!({"path": "secret"}));
    assert!(path.contains("`docs/**`, or the path must fit `*.md`"), "{path}");
    let once = why("run_command", json!({"command": "rm x; id"}));
    assert_eq!(once.matches("plain command").count(), 1, "{once}");
}

#[test]
fn unknown_allowed_condition_allows_nothing() {
    for text in
        ["Bash(", "Bash(*", "Bash( ", "Bash(git*:*)", "Bash($x:*)", "Bash('open:*)", "Bash(,)"]
    {
        assert!(!runs(&list(text), "git add"), "{text}");
    }
    let list = list("my_tool(x) Read([ab]) WebFetch(example.com)");
    let call_arguments = arguments(json!({"path": "a", "url": "https://example.com", "x": "x"}));
    for tool in ["my_tool", "read_file", "web_fetch"] {
        let error = list.check(OfferedTool::Host(tool), &call_arguments).unwrap_err();
        assert_eq!(error.code(), "arguments-not-allowed", "{tool}");
    }
    for text in ["Bash", "Bash()", "Bash(*)", "Bash(:*)", "Bash(x) Bash"] {
        assert!(runs(&super::tests::list(text), "anything | at all"), "{text}");
    }
}

#[test]
fn paths_outside_the_allowed_pattern_are_rejected() {
    let list = list("Read(docs/**) Read(*.md), Write(out)");
    let fits = |tool, path: &str| {
        list.check(OfferedTool::Host(tool), &arguments(json!({"path": path}))).is_ok()
    };
    for path in ["docs/a", "docs/a/b.txt", "README.md", "./docs//x", "docs"] {
        assert!(fits("read_file", path), "{path}");
    }
    for path in [
        "docs/../secret", "..", "secret.txt", "/docs/a", "docs\\..\\x", "doc", "docsx/a", "",
        "README.md\0",
    ] {
        assert!(!fits("read_file", path), "{path:?}");
    }
    assert!(fits("write_file", "out/x/y") && fits("write_file", "out"));
    assert!(!fits("write_file", "docs/a") && !fits("edit_file", "out/x"));
}

#[test]
fn hosts_outside_the_allowed_domain_are_rejected() {
    let list = list("WebFetch(domain:example.com, domain:*.rs)");
    let fits = |url: &str| {
        list.check(OfferedTool::Host("web_fetch"), &arguments(json!({"url": url}))).is_ok()
    };
    for url in ["https://example.com/a?b", "http://EXAMPLE.com:8080", "https://docs.rs/x"] {
        assert!(fits(url), "{url}");
    }
    for url in [
        "https://example.com.evil.org",
        "https://evil.org/example.com",
        "https://example.com@evil.org",
        "https://evil.org#example.com",
        "https://evil.org\\@example.com",
        "https://sub.example.com",
        "ftp://example.com",
        "example.com",
        "https://.rs",
        "https://example.com%2eevil.org",
        "https://ex\u{e4}mple.com",
        "https:///example.com",
    ] {
        assert!(!fits(url), "{url}");
    }
}

#[test]
fn arguments_of_another_type_are_rejected() {
    let list = list("Bash(git:*) Read(docs/**)");
    for call_arguments in [
        json!({}),
        json!({"command": ["git", "add"]}),
        json!({"command": 1}),
        json!({"Command": "git"}),
    ] {
        assert!(list.check(OfferedTool::Host("run_command"), &arguments(call_arguments)).is_err());
    }
}

#[test]
fn rejection_lists_what_is_allowed() {
    let list = list("Read Bash(git add:*)");
    let other = list.check(OfferedTool::Host("write_file"), &Map::new()).unwrap_err();
    assert_eq!(other.code(), "tool-not-allowed");
    assert!(other.to_string().contains("`write_file`"), "{other}");
    assert!(other.to_string().contains("Read, Bash(git add:*)"), "{other}");
    let call_arguments = arguments(json!({"command": "git push"}));
    let wrong = list.check(OfferedTool::Host("run_command"), &call_arguments).unwrap_err();
    assert!(wrong.to_string().contains("must start with `git add`"), "{wrong}");
}

fn policy(allowed: &str, denied: &str) -> Policy {
    Policy {
        allowed_tools: Some(split(allowed)).filter(|grants| !grants.is_empty()),
        disallowed_tools: split(denied),
        ..Policy::default()
    }
}

#[test]
fn denied_tools_are_not_allowed() {
    assert_eq!(AllowList::of(&policy("", "")), None);
    let list = AllowList::of(&policy("", "Bash WebFetch(*)")).unwrap();
    assert!(
        !list.names(OfferedTool::Host("run_command")) && list.names(OfferedTool::Host("read_file"))
    );
    assert!(!list.names(OfferedTool::Host("web_fetch")));
    let call_arguments = arguments(json!({"command": "ls"}));
    let error = list.check(OfferedTool::Host("run_command"), &call_arguments).unwrap_err();
    assert_eq!(error.code(), "tool-not-allowed");
    assert!(error.to_string().contains("denied by this skill (Bash, WebFetch(*))"), "{error}");
    assert!(list.check(OfferedTool::Host("write_file"), &call_arguments).is_ok());
    let both = AllowList::of(&policy("Bash Read", "Bash")).unwrap();
    assert!(
        !both.names(OfferedTool::Host("run_command")) && both.names(OfferedTool::Host("read_file"))
    );
    assert!(!both.names(OfferedTool::Host("write_file")));
}

#[test]
fn denied_condition_rejects_matching_calls() {
    let list = AllowList::of(&policy("", "Bash(git push:*) Bash(npm publish)")).unwrap();
    assert!(list.names(OfferedTool::Host("run_command")));
    for command in [
        "ls",
        "git status",
        "git commit -m 'do not push'",
        "git log --grep push",
        "git pusher",
        "echo git push",
        "ls *.md | wc -l > out.txt 2>&1",
        "cargo test 2>&1 | tail -n 5 && git add .; git diff",
        "rm x",
        "[ -f x ] && cat x",
        "npm publish --dry-run",
        "timeout 60 make all",
        "find . -name '*.rs'",
        "sh build.sh all",
        "grep -rn 'git push' docs",
    ] {
        assert!(runs(&list, command), "{command}");
    }
    let error = list
        .check(OfferedTool::Host("run_command"), &arguments(json!({"command": "git push origin"})))
        .unwrap_err();
    assert_eq!(error.code(), "arguments-not-allowed");
    assert!(error.to_string().contains("denies (Bash(git push:*))"), "{error}");
    assert!(error.to_string().contains("it fits `git push:*`"), "{error}");
}

#[test]
fn denied_options_deny_the_whole_tool() {
    let list = AllowList::of(&policy("", "Bash(rm -rf:*)")).unwrap();
    assert!(!list.names(OfferedTool::Host("run_command")));
    for command in ["rm -r -f x", "rm -fr x", "ls"] {
        assert!(!runs(&list, command), "{command}");
    }
}

#[test]
fn denied_commands_cannot_be_disguised() {
    let list =
        AllowList::of(&policy("", "Bash(git push:*, npm publish, git remote add:*)")).unwrap();
    for command in [
        "git push", "git  push origin main", "'git' \"push\"", "g''it pu'sh'", "/usr/bin/git push",
        "git -C . push", "git --no-pager -c a=b push", "git -C remote remote add x y", "git pu*",
        "git *", "g?t push", "*", "[g]it push", "ls; git push", "ls && git push", "ls || git push",
        "ls | git push", "ls & git push", "ls &git push", "ls\ngit push", "> out git push",
        "2>out git push", "&> out git push", "echo &>x git push", "echo push | xargs -I % git %",
        "echo push | xargs -i git {}", "echo git push | xargs env", "env -S 'git push'",
        "flock lock -c 'git push'", "watch 'git push'", "echo git push | . /dev/stdin",
        "source script.sh", "git > out push", "git 2>&1 push", "if true; then git push; fi",
        "env git push", "env A=b git push", "timeout 5 git push", "echo push | xargs git",
        "echo x | xargs git push", "timeout 5 xargs git", "sh -c 'git push'", "bash",
        "echo git push | sh", "sh < x", "sh /dev/stdin", "timeout 5 sh -c 'git push'",
        "eval git push", "trap 'git push' EXIT", "npm publish", "command npm publish",
    ] {
        assert!(!runs(&list, command), "{command}");
    }
    // What cannot be read.
    for command in [
        "$x push", "$(git push)", "`git push`", "echo \"$(git push)\"", "(git push)",
        "{ git push; }", "git \\\npush", "cat <(git push)", "sort <<< x", "A=b git push",
        "! git push", "~/git push", "git push 'open", "git\u{a0}push", "# git push",
    ] {
        assert!(!runs(&list, command), "{command}");
    }
    for call_arguments in [json!({}), json!({"command": ["git", "push"]})] {
        assert!(list.check(OfferedTool::Host("run_command"), &arguments(call_arguments)).is_err());
    }
}

#[test]
fn denied_paths_and_hosts_are_rejected() {
    let denied = "Read(secrets/**, *.pem) WebFetch(domain:example.com, domain:*.example.com)";
    let list = AllowList::of(&policy("Read WebFetch", denied)).unwrap();
    let may = |tool, call_arguments| {
        list.check(OfferedTool::Host(tool), &arguments(call_arguments)).is_ok()
    };
    assert!(may("read_file", json!({"path": "docs/a.md"})));
    for path in
        ["secrets/a", "./secrets//a/b", "x.pem", "/w/secrets/a", "docs/../secrets/a", "secrets"]
    {
        assert!(!may("read_file", json!({"path": path})), "{path}");
    }
    assert!(may("web_fetch", json!({"url": "https://example.org/example.com"})));
    for url in
        ["https://example.com", "https://EXAMPLE.com./", "http://a.example.com:80/", "https://x@y"]
    {
        assert!(!may("web_fetch", json!({"url": url})), "{url}");
    }
    assert!(!list.names(OfferedTool::Host("run_command")));
}

#[test]
fn unknown_denied_condition_denies_the_whole_tool() {
    for denied in ["Bash(", "Bash(*", "Bash(git*:*)", "Bash($x:*)", "Bash(,)", "Bash(ls, git*)"] {
        let list = AllowList::of(&policy("", denied)).unwrap();
        assert!(!list.names(OfferedTool::Host("run_command")) && !runs(&list, "make"), "{denied}");
    }
    for (denied, tool) in [
        ("Read([ab])", "read_file"),
        ("WebFetch(example.com)", "web_fetch"),
        ("WebFetch(domain:)", "web_fetch"),
        ("my_tool(x)", "my_tool"),
    ] {
        let list = AllowList::of(&policy("", denied)).unwrap();
        assert!(!list.names(OfferedTool::Host(tool)), "{denied}");
    }
}

#[test]
fn unclosed_grant_allows_nothing_and_denies_all_named_tools() {
    for text in ["Bash(rm", "Bash(rm x:*", "Bash(ls, Read", "Bash(ls (x)", "Bash(rm)x", "Bash(rm))"]
    {
        let list = list(text);
        for command in ["rm", "rm x", "ls", "ls, Read"] {
            assert!(!runs(&list, command), "{text}: {command}");
        }
        assert!(!list.names(OfferedTool::Host("read_file")), "{text}");
    }
    let call_arguments = arguments(json!({"command": "rm"}));
    let refused =
        list("Bash(rm").check(OfferedTool::Host("run_command"), &call_arguments).unwrap_err();
    assert_eq!(refused.code(), "arguments-not-allowed");
    assert!(refused.to_string().contains("not closed: write Bash(rm)"), "{refused}");
    let denied = AllowList::of(&policy("", "Bash(git push:*, Write Read(x)")).unwrap();
    for tool in ["run_command", "write_file", "read_file"] {
        assert!(!denied.names(OfferedTool::Host(tool)), "{tool}");
    }
    assert!(denied.names(OfferedTool::Host("edit_file")) && !runs(&denied, "ls"));
    // Text behind a parenthesis: the tool, rather than a path that nobody has.
    let denied = AllowList::of(&policy("", "Read(secrets)x")).unwrap();
    assert!(!denied.names(OfferedTool::Host("read_file")));
}
