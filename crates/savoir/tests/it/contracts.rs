//! Tests requirements of gibb.eri.sh, skillrt and GAIA that no other module covers.

use std::fs;

use serde_json::json;

use crate::{
    live_server::{Provider, ProviderBehavior},
    support::{Sandbox, Transcript, terminal},
};

struct TestEnv(Sandbox);

impl TestEnv {
    fn new() -> Self {
        let sandbox = Sandbox::new();
        for folder in ["home", "project/.git"] {
            fs::create_dir_all(sandbox.path(folder)).expect("a folder");
        }
        Self(sandbox)
    }

    fn run(&self, args: &[&str]) -> Transcript {
        self.0.run_as("home", "project", args)
    }

    /// Writes a gibb.eri.sh skill of the user.
    fn gibberish(&self, name: &str, fields: &str, command: &str) {
        let text = format!(
            "---\nname: {name}\nversion: 1.0.0\n{fields}---\n\n### {name}_it\n\nDo it.\n\n\
             #### Parameters\n\nNone.\n\n#### Command\n\n```bash\n{command}\n```\n"
        );
        self.0.write(&format!("home/.config/gibberish/skills/{name}/SKILL.md"), text);
    }

    /// Writes a skillrt skill of the project.
    fn skillrt(&self, name: &str, fields: &str, body: &str) {
        let text = format!(
            "---\nname: {name}\nversion: 0.1.0\ndescription: Does {name}.\n{fields}---\n{body}\n"
        );
        self.0.write(&format!("project/{name}/SKILL.md"), text);
    }
}

#[test]
fn skills_of_gibberish_are_listed() {
    let test_env = TestEnv::new();
    test_env.gibberish("git", "description: Git.\n", "git status");
    let list = test_env.run(&["list", "--json"]);
    let skill = &list.json()["skills"][0];
    assert_eq!((&skill["name"], &skill["version"]), (&"git".into(), &"1.0.0".into()), "{list}");
    assert_eq!(skill["agents"][0], "gibberish", "{list}");
    let tools = test_env.run(&["tools", "git", "--format", "functiongemma"]);
    assert!(tools.stdout.contains("[Native Tools]\n\n[Skills]\n- git_it: Do it.\n"), "{tools}");
    let native = test_env.run(&[
        "tools", "git", "--format", "functiongemma", "--native", "typer=Type text at cursor",
    ]);
    assert!(native.stdout.contains("[Native Tools]\n- typer: Type text at cursor\n"), "{native}");
}

#[test]
fn gibberish_descriptions_are_cut_in_show() {
    let test_env = TestEnv::new();
    test_env.gibberish("long", &format!("description: {}\n", "w".repeat(300)), "git status");
    let shown = test_env.run(&["show", "long", "--json"]);
    assert_eq!(shown.json()["description"].as_str().map(str::len), Some(256), "{shown}");
    let list = test_env.run(&["list", "--json"]);
    let skill = &list.json()["skills"][0];
    assert_eq!(skill["description"].as_str().map(str::len), Some(256), "{list}");
    let context = test_env.run(&["context", "show"]);
    assert!(context.stdout.contains(&"w".repeat(256)), "{context}");
    assert!(!context.stdout.contains(&"w".repeat(257)), "{context}");
}

#[test]
fn gibberish_skill_in_a_folder_of_another_name_runs_with_a_note() {
    let test_env = TestEnv::new();
    test_env.gibberish("other", "description: Other.\nread_only: true\n", "echo hi");
    let from = test_env.0.path("home/.config/gibberish/skills/other");
    fs::rename(from, test_env.0.path("project/dirname")).expect("it is moved");
    let check = test_env.run(&["check", "./dirname"]);
    assert_eq!(check.code, 1, "{check}");
    assert!(check.stdout.contains("name-folder-mismatch"), "{check}");
    let note = "the folder of `other` is called dirname; gibb.eri.sh loads only";
    let approve = test_env.run(&["approve", "./dirname", "--yes"]);
    assert!(approve.stderr.contains(note), "{approve}");
    let run = test_env.run(&["run", "./dirname"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "hi\n"), "{run}");
    assert!(run.stderr.contains(note), "{run}");
}

#[test]
fn approval_names_missing_programs() {
    let test_env = TestEnv::new();
    test_env.skillrt("needs", "dependencies: {tools: [no-such-tool]}\n", "```bash\ntrue\n```");
    let approve = test_env.run(&["approve", "./needs", "--yes"]);
    assert_eq!(approve.code, 0, "{approve}");
    assert!(approve.stderr.contains("not on PATH: no-such-tool"), "{approve}");
}

#[test]
fn skillrt_prose_needs_no_heading() {
    let test_env = TestEnv::new();
    test_env.0.write("project/n.md", "Remember: trains leave at 9.\n\n- a\n- b\n");
    let check = test_env.run(&["check", "n.md"]);
    assert_eq!(check.code, 0, "{check}");
    assert!(check.stdout.contains("is read as prose"), "{check}");
}

#[test]
fn skillrt_globs_are_relative_to_the_working_folder() {
    let test_env = TestEnv::new();
    let code = "```bash\nls; echo new > made.txt\n```";
    test_env.0.write("project/in.txt", "in");
    test_env.0.write("home/private.txt", "mine");
    test_env.skillrt("all", "permissions: {filesystem: [\"**\"]}\n", code);
    let approve = test_env.run(&["approve", "./all", "--yes"]);
    assert_eq!(approve.code, 0, "{approve}");
    let run = test_env.run(&["run", "./all", "--exec-fences"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("in.txt"), "{run}");
    assert!(run.stderr.contains("permissions: read and write ./**"), "{run}");
    assert!(test_env.0.path("project/made.txt").exists(), "{run}");
    let code = "```bash\ncat ~/private.txt\n```";
    test_env.skillrt("all", "permissions: {filesystem: [\"**\"]}\n", code);
    test_env.run(&["approve", "./all", "--yes"]);
    let run = test_env.run(&["run", "./all", "--exec-fences"]);
    assert_ne!(run.code, 0, "{run}");
    // The hint names the one option that is enough.
    test_env.skillrt("home", "permissions: {filesystem: [\"~/**\"]}\n", code);
    let refused = test_env.run(&["approve", "./home", "--yes"]);
    assert_eq!(refused.code, 3, "{refused}");
    assert!(refused.stderr.contains("--allow-write FOLDER"), "{refused}");
    assert!(!refused.stderr.contains("filesystem:read:./data"), "{refused}");
    let approve = test_env.run(&["approve", "./home", "--yes", "--allow-write", "."]);
    assert_eq!(approve.code, 0, "{approve}");
    // A permission of GAIA is not a path.
    test_env.skillrt("gaia", "permissions: {filesystem: [\"filesystem:read:./data/**\"]}\n", code);
    let check = test_env.run(&["check", "./gaia"]);
    assert!(check.stdout.contains("is a permission, not a path"), "{check}");
    assert_eq!(test_env.run(&["approve", "./gaia", "--yes"]).code, 3);
}

#[test]
fn skillrt_name_that_is_no_folder_name_is_not_installed() {
    let test_env = TestEnv::new();
    fs::create_dir_all(test_env.0.path("home/.claude")).expect("a folder");
    for name in ["a/b", "'a\\b'", ".hid", "../evil"] {
        let text = format!(
            "---\nname: {name}\nversion: 1.0.0\ndescription: Evil.\nruntime: {{type: markdown-skill}}\n---\nDo it.\n"
        );
        test_env.0.write("project/evil/SKILL.md", text);
        let check = test_env.run(&["check", "./evil"]);
        assert_eq!(check.code, 1, "{name}: {check}");
        assert!(check.stdout.contains("error[unsafe-name]"), "{name}: {check}");
        assert!(check.stdout.contains("cannot be the name of a folder"), "{name}: {check}");
        let install = test_env.run(&["install", "./evil", "-y"]);
        assert_eq!(install.code, 1, "{name}: {install}");
        assert!(!test_env.0.path("project/.claude").exists(), "{name}: {install}");
    }
    // Agents accept such a name in their own dialect.
    test_env
        .0
        .write("project/evil/SKILL.md", "---\nname: a/b\ndescription: Does it.\n---\nDo it.\n");
    let install = test_env.run(&["install", "./evil", "-y"]);
    assert_eq!(install.code, 0, "{install}");
}

#[test]
fn info_shows_all_fields_and_warnings() {
    let test_env = TestEnv::new();
    let fields = "runtime: {type: markdown-skill, min-version: 0.2.0}\nauthors: [Ada]\nfoo: 1\n\
                  inputs: [{name: url, type: url, required: true}]\noutputs: {type: text}\n\
                  dependencies: {tools: [git]}\n";
    test_env.skillrt("newer", fields, "Look at {{ url }}.");
    let info = test_env.run(&["info", "./newer"]);
    assert_eq!(info.code, 0, "{info}");
    for line in [
        "authors        Ada",
        "license        UNLICENSED",
        "inputs         url (url, required)",
        "output         text",
        "permissions    none",
        "other fields   foo: 1",
        "warnings       it needs runtime 0.2.0, this is 0.1.0",
    ] {
        assert!(info.stdout.lines().any(|shown| shown == line), "{line}: {info}");
    }
    assert!(info.stdout.contains("git"), "{info}");
    let json = test_env.run(&["info", "./newer", "--json"]).json();
    let skill = &json["skills"][0];
    assert_eq!(skill["extra"], json!({"foo": 1}), "{skill:#}");
    assert_eq!(skill["warnings"], json!(["it needs runtime 0.2.0, this is 0.1.0"]));
    assert_eq!(skill["requirements"]["programs"], json!(["git"]));
    assert_eq!(skill["errors"], json!([]));
    test_env.skillrt("other", "runtime: {type: foo}\n", "Do it.");
    let info = test_env.run(&["info", "./other"]);
    assert!(info.stdout.contains("`foo` is not a known runtime"), "{info}");
    let show = test_env.run(&["show", "./other"]);
    assert!(show.stdout.contains("permissions    none\n"), "{show}");
}

#[test]
fn info_fails_for_a_file_with_errors() {
    let test_env = TestEnv::new();
    let head = "---\nname: bad\nversion: 1.0.0\ndescription: d\n";
    for text in [
        format!("{head}runtime: {{type: markdown-skill}}\n"),
        format!("{head}runtime: {{type: markdown-skill\n---\nbody\n"),
        format!("{head}runtime: {{type: markdown-skill}}\npermissions: [x]\n---\nbody\n"),
    ] {
        test_env.0.write("project/bad/SKILL.md", &text);
        let info = test_env.run(&["info", "./bad"]);
        assert_eq!(info.code, 1, "{text}: {info}");
        assert!(info.stdout.contains("findings       1 error"), "{text}: {info}");
        assert!(info.stdout.contains("savoir check "), "{text}: {info}");
        let json = test_env.run(&["info", "./bad", "--json"]);
        let errors = json.json()["skills"][0]["errors"].as_array().map(Vec::len);
        assert_eq!((json.code, errors), (1, Some(1)), "{text}: {json}");
    }
}

#[test]
fn info_reads_a_single_file() {
    let test_env = TestEnv::new();
    test_env.0.write("project/n.md", "# Trains\n\nTrains leave at 9.\n");
    let info = test_env.run(&["info", "n.md"]);
    assert_eq!(info.code, 0, "{info}");
    for line in
        ["name           trains", "dialect        prose", "description    Trains leave at 9."]
    {
        assert!(info.stdout.lines().any(|shown| shown == line), "{line}: {info}");
    }
    assert!(!info.stdout.contains("os error"), "{info}");
    let json = test_env.run(&["info", "n.md", "--json"]).json();
    assert_eq!(json["skills"][0]["dialect"], "prose", "{json:#}");
    assert_eq!(json["skills"][0]["files"][0]["path"], "n.md", "{json:#}");
}

#[test]
fn printed_permissions_are_those_of_the_run() {
    let test_env = TestEnv::new();
    test_env.0.write("project/secret", "SECRET");
    let code = "# Title\n\nText.\n\n```bash\ncat secret\n```\n";
    test_env.0.write("project/prosey/SKILL.md", code);
    test_env.run(&["approve", "./prosey", "--yes"]);
    let run = test_env.run(&["run", "./prosey", "--exec-fences"]);
    assert_eq!(run.stdout, "SECRET", "{run}");
    let project = test_env.0.path("project").canonicalize().expect("the project");
    let line = format!("permissions: read {}/**\n", project.display());
    assert!(run.stderr.contains(&line) && !run.stderr.contains("none"), "{run}");
    // skillrt grants nothing without a declaration.
    test_env.skillrt("own", "runtime: {type: markdown-skill}\n", code);
    test_env.run(&["approve", "./own", "--yes"]);
    let run = test_env.run(&["run", "./own", "--exec-fences"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{run}");
    let none = "permissions: none: no network, no files, no environment variables\n";
    assert!(run.stderr.contains(none), "{run}");
    // `*` covers public hosts.
    test_env.skillrt("web", "permissions: {network: ['*']}\n", "```bash\ntrue\n```\n");
    test_env.run(&["approve", "./web", "--yes"]);
    let run = test_env.run(&["run", "./web", "--exec-fences"]);
    assert!(
        run.stderr.contains("permissions: fetch from and send to any host on the internet\n"),
        "{run}"
    );
}

#[test]
fn prompt_of_a_skillrt_skill_always_prints_its_permissions() {
    let test_env = TestEnv::new();
    let provider = Provider::new(ProviderBehavior::Says(&["No."]));
    let none = "permissions: none: no network, no files, no environment variables\n";
    for (name, fields, line) in [
        ("nothing", "runtime: {type: markdown-skill}\n", none),
        ("empty", "runtime: {type: markdown-skill}\npermissions: {}\n", none),
        ("lists", "permissions: {network: [], filesystem: [], env: []}\n", none),
        (
            "some",
            "permissions: {env: [LANG]}\n",
            "permissions: read the environment variable LANG\n",
        ),
    ] {
        test_env.skillrt(name, fields, "Say no.");
        let mut command = test_env.0.command(&["run", name]);
        command.current_dir(test_env.0.path("project")).env("HOME", test_env.0.path("home"));
        provider.of(&mut command);
        let output = command.output().expect("savoir runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(line), "{name}: {stderr}");
    }
}

#[test]
fn prose_that_an_agent_reads_is_installed_unchanged() {
    let test_env = TestEnv::new();
    fs::create_dir_all(test_env.0.path("home/.claude")).expect("a folder");
    let text = "# Title\n\nTrains leave at 9.\n\n```bash\nls\n```\n";
    test_env.0.write("project/prosey/SKILL.md", text);
    let install = test_env.run(&["install", "./prosey", "-y"]);
    assert_eq!(install.code, 0, "{install}");
    assert_eq!(test_env.0.read("project/.claude/skills/prosey/SKILL.md"), text);
    assert!(!install.stdout.contains("converted"), "{install}");
}

#[test]
fn gibberish_store_decides_the_dialect() {
    let test_env = TestEnv::new();
    test_env.gibberish("plainy", "description: d\n", "echo hi");
    let file = "home/.config/gibberish/skills/plainy/SKILL.md";
    let text = test_env.0.read(file).replace("#### Command\n\n", "");
    test_env.0.write(file, text);
    let tools = test_env.run(&["tools", "plainy"]);
    assert!(tools.stdout.contains("plainy_it"), "{tools}");
    test_env.run(&["approve", "plainy", "--yes"]);
    let listed = test_env.run(&["context", "show"]);
    assert!(listed.stdout.contains("- plainy: d\n"), "{listed}");
    let run = test_env.run(&["run", "plainy/plainy_it"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "hi\n"), "{run}");
    test_env.0.write(file, "# Only text\n");
    let check = test_env.run(&["check", test_env.0.path(file).to_str().expect("UTF-8")]);
    assert_eq!(check.code, 1, "{check}");
}

#[test]
fn gibberish_examples_are_in_the_prompt() {
    let test_env = TestEnv::new();
    test_env.gibberish("greet", "description: d\n", "echo hi");
    let file = "home/.config/gibberish/skills/greet/SKILL.md";
    let call = |tool| {
        format!("<start_function_call>call:{tool}{{q:<escape>hello<escape>}}<end_function_call>")
    };
    let (own, other) = (call("greet_it"), call("other"));
    let text = test_env.0.read(file)
        + &format!("\n#### Examples\n\n```\nSay hello\n{own}\n{other}\n```\n");
    test_env.0.write(file, text);
    let tools = test_env.run(&["tools", "greet", "--format", "functiongemma"]);
    assert!(tools.stdout.ends_with(&format!("<end_function_declaration>\n{own}\n")), "{tools}");
    let json = test_env.run(&["tools", "greet", "--json"]).json();
    assert_eq!(json["tools"][0]["examples"], json!([own]));
}

#[test]
fn failed_model_has_a_code_and_a_reason_in_json() {
    let test_env = TestEnv::new();
    test_env.skillrt("ask", "", "Say hello.");
    let refused = Provider::new(ProviderBehavior::Refuses);
    let gone = |command: &mut std::process::Command| {
        command.env("OPENAI_BASE_URL", "http://127.0.0.1:1/v1");
        command.env("OPENAI_API_KEY", "x").env("OPENAI_MODEL", "m");
    };
    let setups: [&dyn Fn(&mut std::process::Command); 2] = [&|command| refused.of(command), &gone];
    for set in setups {
        let mut command = test_env.0.command_as("home", "project", &["run", "./ask", "--json"]);
        set(&mut command);
        let output = command.output().expect("savoir runs");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let event = |name: &str| -> serde_json::Value {
            let mut events = text
                .lines()
                .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
            events.find(|event| event["event"] == name).expect("the event")["data"].clone()
        };
        let error = event("error");
        assert_eq!(error["code"], "model-failed", "{text}");
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("openai"), "{text}");
        assert!(error["help"].is_array(), "{text}");
        assert_eq!(event("done")["message"], message, "{text}");
    }
}

#[test]
fn skill_without_tools_is_not_converted_to_gibberish() {
    let test_env = TestEnv::new();
    test_env.skillrt("plain", "runtime: {type: markdown-skill}\n", "Do it.");
    let convert = test_env.run(&["convert", "./plain", "--to", "gibberish", "-o", "out"]);
    assert_eq!(convert.code, 1, "{convert}");
    assert!(convert.stderr.contains("needs a tool, and this one has none"), "{convert}");
    assert!(convert.stderr.contains("#### Command"), "{convert}");
    assert!(!test_env.0.path("project/out").exists());
}

#[test]
fn gibberish_messages_are_those_of_the_contract() {
    let test_env = TestEnv::new();
    test_env.gibberish("gone", "description: Gone.\n", "no-such-program-here");
    let run = test_env.run(&["run", "gone/gone_it", "--json"]);
    let json = run.json();
    assert_eq!(json["error"], "Command not found: no-such-program-here", "{run}");
    assert_eq!(json["code"], "command-not-found", "{run}");
    let text = "---\nname: none\nversion: 1.0.0\ndescription: d\nmodes: [Dev]\n---\nText.\n";
    test_env.0.write("home/.config/gibberish/skills/none/SKILL.md", text);
    let check = test_env.run(&["check", "none"]);
    assert!(check.stdout.contains("No tool definitions found"), "{check}");
}

#[test]
fn missing_network_of_gibberish_is_reported_before_and_after() {
    let test_env = TestEnv::new();
    test_env.gibberish(
        "page",
        "description: Page.\nread_only: true\n",
        "curl -s -S https://example.invalid/",
    );
    let check = test_env.run(&["check", "page"]);
    assert!(check.stdout.contains("network-not-declared"), "{check}");
    assert_eq!(test_env.run(&["approve", "page", "--yes"]).code, 0);
    let run = test_env.run(&["run", "page/page_it"]);
    assert_ne!(run.code, 0, "{run}");
    assert!(run.stderr.contains("the sandbox denied connecting to example.invalid"), "{run}");
    assert!(run.stderr.contains("--allow-host example.invalid"), "{run}");
}

#[test]
fn gibberish_asks_once_before_reading_and_always_before_writing() {
    let test_env = TestEnv::new();
    test_env.gibberish("reads", "description: Reads.\nread_only: true\n", "echo read");
    test_env.gibberish("writes", "description: Writes.\n", "echo written");
    let typed = |tool: &str, question: &str| {
        let command = test_env.0.command_as("home", "project", &["run", tool]);
        terminal::run_in_steps(command, &[(question, "y\n")])
    };
    let reads = typed("reads/reads_it", "Approve it until it changes? ");
    assert_eq!(reads.code, 0, "{reads}");
    assert_eq!(test_env.run(&["run", "reads/reads_it"]).code, 0);
    let writes = typed("writes/writes_it", "Run it once with all of this? ");
    assert_eq!(writes.code, 0, "{writes}");
    assert_eq!(test_env.run(&["run", "writes/writes_it"]).code, 3);
}

#[test]
fn skillrt_fields_have_the_defaults_of_the_specification() {
    let test_env = TestEnv::new();
    test_env.skillrt("plain", "permissions: {network: []}\n", "Do it.");
    let shown = test_env.run(&["show", "./plain", "--json"]);
    let json = shown.json();
    assert_eq!(json["license"], "UNLICENSED", "{shown}");
    assert_eq!((&json["authors"], &json["tags"]), (&json!([]), &json!([])), "{shown}");
    assert_eq!(json["requirements"]["runtime"], json!({"type": "markdown-skill"}), "{shown}");
}

#[test]
fn gibberish_fields_have_the_defaults_of_the_specification() {
    let test_env = TestEnv::new();
    test_env.gibberish("plain", "description: Plain.\n", "git status");
    let shown = test_env.run(&["show", "plain", "--json"]);
    let policy = &shown.json()["policy"];
    let expected =
        json!({"modes": ["Global"], "timeout": 30, "read_only": false, "always_ask": false});
    assert_eq!(policy, &expected, "{shown}");
}

#[test]
fn skillrt_runtimes_are_told_apart() {
    let test_env = TestEnv::new();
    test_env.skillrt("wrapper", "runtime: {type: mcp-tool}\n", "Call it.");
    let run = test_env.run(&["run", "./wrapper", "--json"]);
    assert_eq!(run.code, 1, "{run}");
    assert!(run.stdout.contains("mcp-tool"), "{run}");
    assert!(run.stderr.contains("Savoir calls no MCP servers"), "{run}");
    test_env.skillrt("odd", "runtime: {type: strange}\n", "Do it.");
    let check = test_env.run(&["check", "./odd"]);
    assert!(check.stdout.contains("unknown-runtime"), "{check}");
    test_env.skillrt("sdk", "runtime: {type: anthropic-skill}\n", "See ${CLAUDE_SKILL_DIR}/a.md");
    let rendered = test_env.run(&["render", "./sdk"]);
    assert!(rendered.stdout.contains("/sdk/a.md"), "{rendered}");
}

#[test]
fn broken_output_schemas_are_found_by_check() {
    let test_env = TestEnv::new();
    test_env.skillrt("bad", "outputs: {type: json, schema: {type: wrong}}\n", "Do it.");
    let check = test_env.run(&["check", "./bad", "--dialect", "skillrt"]);
    assert_eq!(check.code, 1, "{check}");
    assert!(check.stdout.contains("invalid-schema"), "{check}");
}

#[test]
fn skillrt_dependencies_are_found_beside_the_skill() {
    let test_env = TestEnv::new();
    let fields = "dependencies: {skills: [\"helper@>=0.1.0\"], mcp-servers: [far]}\n";
    test_env.skillrt("user", fields, "Do it.\n\n```sh\necho done\n```");
    let missing = test_env.run(&["run", "./user", "--exec-fences"]);
    assert!(missing.stderr.contains("helper@>=0.1.0 is not installed"), "{missing}");
    assert!(missing.stderr.contains("put them beside this skill"), "{missing}");
    test_env.skillrt("helper", "runtime: {type: markdown-skill}\n", "Help.");
    assert_eq!(test_env.run(&["approve", "./user", "--yes"]).code, 0);
    let run = test_env.run(&["run", "./user", "--exec-fences"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "done\n"), "{run}");
    assert!(run.stderr.contains("the MCP server `far` is not known here"), "{run}");
    test_env.0.write("project/.mcp.json", r#"{"mcpServers": {"far": {"command": "x"}}}"#);
    let known = test_env.run(&["run", "./user", "--exec-fences"]);
    assert!(!known.stderr.contains("far"), "{known}");
}

#[test]
fn skillrt_permissions_with_ports_and_patterns_run() {
    let test_env = TestEnv::new();
    let fields = "permissions: {network: [\"api.example.com:8443\"], filesystem: [\"./*.json\"]}\n\
                  inputs: [{name: who, type: string, default: Ada}]\n";
    test_env.skillrt("reader", fields, "```sh\ncat a.json; echo $INPUT_WHO >> a.json\n```");
    test_env.0.write("project/a.json", "{}\n");
    let check = test_env.run(&["check", "./reader"]);
    assert!(!check.stdout.contains("unused-input"), "{check}");
    let approved = test_env.run(&["approve", "./reader", "--yes"]);
    assert_eq!(approved.code, 0, "{approved}");
    let run = test_env.run(&["run", "./reader", "--exec-fences"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, "{}\n"), "{run}");
    assert_eq!(test_env.0.read("project/a.json"), "{}\nAda\n");
}

#[test]
fn skillrt_scopes_that_approve_refuses_are_found_by_check() {
    let test_env = TestEnv::new();
    for (field, scope) in [
        ("network", "ftp://example.com"),
        ("network", "127.1"),
        ("network", "a..com"),
        ("filesystem", "../up/**"),
        ("filesystem", ""),
        ("env", "A B"),
    ] {
        let fields = format!("permissions: {{{field}: [\"{scope}\"]}}\n");
        test_env.skillrt("wrong", &fields, "```sh\necho hi\n```");
        let check = test_env.run(&["check", "./wrong"]);
        assert!(check.stdout.contains("permission-scope"), "{scope}: {check}");
        let approved = test_env.run(&["approve", "./wrong", "--yes"]);
        assert_eq!(approved.code, 3, "{scope}: {approved}");
    }
}

#[test]
fn schemas_describe_what_the_contracts_allow() {
    let test_env = TestEnv::new();
    let skillrt = test_env.run(&["schema", "skillrt"]).json();
    let outputs = &skillrt["properties"]["outputs"]["anyOf"];
    assert_eq!(outputs[1]["type"], "null", "{skillrt}");
    let gibberish = test_env.run(&["schema", "gibberish"]).json();
    let timeout = &gibberish["properties"]["timeout"];
    assert_eq!((&timeout["minimum"], &timeout["maximum"]), (&1.into(), &300.into()));
}

#[test]
fn docstrings_describe_tools_of_gaia() {
    let test_env = TestEnv::new();
    let text = "---\nname: greeter\nversion: 1.0.0\ndescription: Greets. Use when somebody arrives.\n\
                author: ada\nlicense: MIT\npermissions: [\"network:none\"]\ntools:\n  - name: greet\n    \
                parameters:\n      name: {type: string, required: true}\nsecurity_tier: experimental\n---\n# G\n";
    test_env.0.write("project/greeter/SKILL.md", text);
    let module = "from gaia.agents.base.tools import tool\n\n\n@tool\ndef greet(name: str) -> dict:\n    \
                  \"\"\"Return a greeting.\"\"\"\n    return {}\n";
    test_env.0.write("project/greeter/tools.py", module);
    let tools = test_env.run(&["tools", "./greeter", "--json"]);
    assert_eq!(tools.json()["tools"][0]["description"], "Return a greeting.", "{tools}");
    let check = test_env.run(&["check", "./greeter"]);
    assert!(!check.stdout.contains("missing-field"), "{check}");
}
