use std::{collections::BTreeSet, fs};

use super::*;

fn agents(home: &Path, variables: &[(&str, &str)]) -> Agents {
    Agents::new(home, |name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into())
    })
}

#[test]
fn agent_ids_are_unambiguous() {
    let mut words = BTreeSet::new();
    for agent in Agent::ALL {
        assert!(words.insert(agent.id), "{} stands twice", agent.id);
        assert!(agent.aliases.iter().all(|alias| words.insert(alias)), "{}", agent.id);
        assert!(!agent.title.is_empty(), "{}", agent.id);
        assert!(!agent.project.is_empty() || !agent.user.is_empty(), "{}", agent.id);
    }
    assert_eq!(Agent::ALL.len(), 86);
    assert_eq!(Agent::by_id("kimi-cli").unwrap().id, "kimi-code-cli");
    let unknown = Agent::by_id("notepad").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown agent `notepad`; `savoir help --agents` lists all agents"
    );
    for (word, id) in [
        ("claude", "claude-code"),
        ("gemini", "gemini-cli"),
        ("qwen", "qwen-code"),
        ("copilot", "github-copilot"),
        ("vscode", "github-copilot"),
        ("goose", "goose"),
        ("Cursor", "cursor"),
    ] {
        assert_eq!(Agent::by_id(word).unwrap().id, id);
    }
    assert_eq!(Agent::by_id("gemni").unwrap_err().near, Some("gemini"));
    let unknown = Agent::by_id("codx").unwrap_err();
    assert_eq!(unknown.to_string(), "unknown agent `codx`; did you mean `codex`?");
}

/// The documentation of agents that this test reads exists only on some machines.
#[test]
fn agent_table_matches_documentation() {
    let facts = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/facts/agents.tsv");
    let Ok(facts) = fs::read_to_string(facts) else {
        #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
        {
            eprintln!("=== SKIPPED: the table of agents is not beside the repository ===");
        }
        return;
    };
    let agents = agents(Path::new("/~"), &[]);
    for line in facts.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [ids, project, user, ..] = columns[..] else { panic!("{line}") };
        for id in ids.split(" / ") {
            let agent = Agent::by_id(id).unwrap();
            let reads = agents.reads(agent, Path::new("/project"));
            let reads: Vec<&str> = reads.iter().filter_map(|folder| folder.path.to_str()).collect();
            for folder in project.split(' ').filter(|word| word.ends_with("skills")) {
                let folder = format!("/project/{folder}");
                assert!(reads.contains(&folder.as_str()), "{id} {folder} {reads:?}");
            }
            for folder in user.split([' ', '|']).filter(|word| word.starts_with("~/")) {
                let folder = format!("/{folder}");
                assert!(reads.contains(&folder.as_str()), "{id} {folder} {reads:?}");
            }
            let variable = user.split('|').next().and_then(|word| word.strip_prefix('$'));
            let bases: Vec<FolderBase> = agent.user.iter().map(|folder| folder.base).collect();
            assert!(
                variable.is_none_or(|variable| bases.iter().any(|base| match base {
                    FolderBase::Variable { name, .. } => *name == variable,
                    FolderBase::Config => variable == "XDG_CONFIG_HOME",
                    FolderBase::Home | FolderBase::System => false,
                })),
                "{id} does not know ${variable:?}"
            );
            assert_eq!(user == "-", agent.user.is_empty(), "{id}");
        }
    }
}

#[test]
fn folders_follow_the_environment() {
    let home = Path::new("/home/ada");
    let project = Path::new("/project");
    let read = |agents: &Agents, id: &str| -> Vec<String> {
        let reads = agents.reads(Agent::by_id(id).unwrap(), project);
        reads.iter().map(|folder| folder.path.display().to_string()).collect()
    };
    let plain = agents(home, &[("CODEX_HOME", ""), ("XDG_CONFIG_HOME", "relative")]);
    assert_eq!(
        read(&plain, "claude-code"),
        ["/home/ada/.claude/skills", "/project/.claude/skills"]
    );
    assert_eq!(
        read(&plain, "codex"),
        [
            "/project/.agents/skills",
            "/project/.codex/skills",
            "/home/ada/.agents/skills",
            "/home/ada/.codex/skills",
            "/home/ada/.codex/skills/.system",
            "/etc/codex/skills"
        ]
    );
    assert_eq!(
        read(&plain, "openclaw"),
        [
            "/project/skills",
            "/project/.agents/skills",
            "/home/ada/.agents/skills",
            "/home/ada/.openclaw/skills",
            "/home/ada/.clawdbot/skills",
            "/home/ada/.moltbot/skills",
            "/home/ada/.openclaw/workspace/skills",
        ]
    );
    assert_eq!(
        read(&plain, "qwen-code"),
        [
            "/project/.qwen/skills", "/project/.agents/skills", "/home/ada/.qwen/skills",
            "/home/ada/.agents/skills"
        ]
    );
    assert_eq!(
        read(&plain, "goose"),
        [
            "/project/.goose/skills",
            "/project/.agents/skills",
            "/project/.claude/skills",
            "/home/ada/.config/goose/skills",
            "/home/ada/.agents/skills",
            "/home/ada/.claude/skills",
            "/home/ada/.config/agents/skills"
        ]
    );
    let set = agents(home, &[("CLAUDE_CONFIG_DIR", "/c"), ("XDG_CONFIG_HOME", "/x")]);
    assert_eq!(read(&set, "claude-code"), ["/c/skills", "/project/.claude/skills"]);
    let folder = |agents: &Agents, id: &str| agents.user_folder(Agent::by_id(id).unwrap());
    assert_eq!(folder(&set, "goose"), Some("/x/goose/skills".into()));
    assert_eq!(folder(&plain, "goose"), Some("/home/ada/.config/goose/skills".into()));
    assert_eq!(folder(&plain, "codex"), Some("/home/ada/.agents/skills".into()));
    assert_eq!(folder(&plain, "eve"), None);
    let codex = Agent::by_id("codex").unwrap();
    assert_eq!(codex.project_folder(project), Some("/project/.agents/skills".into()));
}

#[test]
fn agents_are_detected_by_their_files() {
    let place = tempfile::tempdir().unwrap();
    let (home, project) = (place.path().join("home"), place.path().join("project"));
    let programs = place.path().join("bin");
    for folder in [&home, &project, &programs] {
        fs::create_dir(folder).unwrap();
    }
    let path = programs.to_str().unwrap();
    let agents = agents(&home, &[("PATH", path)]);
    let detected =
        || -> Vec<&str> { agents.detected(&project).into_iter().map(|agent| agent.id).collect() };
    let expected: &[&str] = if Path::new("/etc/codex").exists() { &["codex"] } else { &[] };
    assert_eq!(detected(), expected);
    fs::create_dir_all(home.join(".agents/skills")).unwrap();
    fs::create_dir_all(project.join(".agents/skills")).unwrap();
    assert_eq!(detected(), expected, "what all share tells nothing");
    fs::create_dir(home.join(".claude")).unwrap();
    fs::create_dir(project.join(".roo")).unwrap();
    fs::write(programs.join("goose"), "").unwrap();
    fs::create_dir(home.join(".clawdbot")).unwrap();
    let found = detected();
    for id in ["claude-code", "roo", "goose", "openclaw"] {
        assert!(found.contains(&id), "{id} {found:?}");
    }
    assert_eq!(found.len(), 4 + expected.len());
    let openclaw = Agent::by_id("openclaw").unwrap();
    assert_eq!(agents.user_folder(openclaw), Some(home.join(".clawdbot/skills")));
    fs::create_dir(home.join(".openclaw")).unwrap();
    assert_eq!(agents.user_folder(openclaw), Some(home.join(".openclaw/skills")));
}
