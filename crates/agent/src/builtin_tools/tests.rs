use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use savoir_lint::words::nearest;
use savoir_skill::{Source, read};

use super::*;
use crate::{library::Draft, preamble::Candidate};

/// Skills in memory, with a record of what was used and saved.
#[derive(Debug, Default)]
struct SkillLookup {
    skills: BTreeMap<String, Arc<Opened>>,
    files: BTreeMap<(String, String), String>,
    happened: Mutex<Vec<String>>,
}

impl SkillLookup {
    fn with(texts: &[&str]) -> Arc<Self> {
        let mut shelf = Self::default();
        for text in texts {
            let reading = read(Source::from_bytes(text.as_bytes().to_vec()).unwrap(), None);
            let skill = reading.skill;
            let file = (skill.name.clone(), "references/a.md".to_owned());
            shelf.files.insert(file, "the reference".to_owned());
            shelf.skills.insert(skill.name.clone(), Arc::new(Opened { skill, note: None }));
        }
        Arc::new(shelf)
    }

    fn note(&self, what: String) {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

impl Library for SkillLookup {
    fn skills(&self) -> BoxFuture<'_, Result<Arc<[Candidate]>, LibraryError>> {
        let all = self.skills.values().map(|opened| Candidate::new(&opened.skill)).collect();
        Box::pin(async move { Ok(all) })
    }

    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>> {
        let near = nearest(name, self.skills.keys().map(String::as_str)).map(str::to_owned);
        let unknown = LibraryError::Unknown { name: name.to_owned(), near };
        Box::pin(async move { self.skills.get(name).cloned().ok_or(unknown) })
    }

    fn resources<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, LibraryError>> {
        let own = self.files.keys().filter(|(skill, _)| skill == name);
        let paths = own.map(|(_, path)| path.clone()).collect();
        Box::pin(async { Ok(paths) })
    }

    fn choices(&self) -> BoxFuture<'_, Result<Vec<String>, LibraryError>> {
        Box::pin(async { Ok(self.skills.keys().cloned().collect()) })
    }

    fn choose<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>> {
        self.open(name)
    }

    fn read<'a>(
        &'a self,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<String, LibraryError>> {
        let key = (name.to_owned(), path.to_owned());
        let missing = LibraryError::NoFile { name: key.0.clone(), path: key.1.clone() };
        Box::pin(async move { self.files.get(&key).cloned().ok_or(missing) })
    }

    fn used<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        self.note(format!("used {name}"));
        Box::pin(async {})
    }

    fn save<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<String, LibraryError>> {
        self.note(format!("saved {}", draft.name));
        Box::pin(async { Ok("drafts".to_owned()) })
    }
}

const REPORT: &str = "---\nname: report\ndescription: Writes the weekly report.\n\
    allowed-tools: Read Bash(git log:*)\ncontext: fork\n---\n1. Collect.\n";
const PLAIN: &str = "---\nname: plain\ndescription: Says hello.\n---\nSay hello.\n";

fn given(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

async fn call(builtin_tools: &BuiltinTools, name: &str, arguments: Value) -> ToolAnswer {
    builtin_tools.call(name, &given(arguments), CallGuard::unrestricted()).await
}

#[tokio::test]
async fn use_skill_returns_instructions_and_applies_the_list() {
    let shelf = SkillLookup::with(&[REPORT, PLAIN]);
    let allowed_tools = Arc::new(AllowedTools::default());
    let builtin_tools = BuiltinTools::new(shelf.clone(), Some(Arc::clone(&allowed_tools)));
    let answer = call(&builtin_tools, "use_skill", json!({"name": "report"})).await;
    assert_eq!(
        answer.data,
        Some(json!({
            "name": "report",
            "description": "Writes the weekly report.",
            "instructions": "1. Collect.\n",
            "context_fork": true,
            "allowed_tools": ["read_file", "run_command"],
            "grants": ["Read", "Bash(git log:*)"],
            "resources": ["references/a.md"],
        }))
    );
    assert_eq!(*shelf.happened.lock().unwrap(), ["used report"]);
    assert_eq!(allowed_tools.snapshot().skill(), Some("report"));
    call(&builtin_tools, "use_skill", json!({"name": "plain"})).await;
    assert_eq!(allowed_tools.snapshot().skill(), None);
}

#[tokio::test]
async fn agent_learns_that_a_list_names_no_known_tool() {
    let skill = |tools: &str| {
        format!("---\nname: a\ndescription: A.\nallowed-tools: {tools}\n---\nDo it.\n")
    };
    let tools_of =
        |tools: &str| BuiltinTools::new(SkillLookup::with(&[&skill(tools)]), Some(Arc::default()));
    let note = async |builtin_tools: BuiltinTools| builtin_tools.use_skill("a").await.unwrap().note;
    assert_eq!(
        note(tools_of("Reed Bahs(git:*)").with_forks_left_to_client()).await.unwrap(),
        "`allowed-tools` of this skill names no known tool (Reed, Bahs(git:*)), so no tool of Savoir \
         can be called while it is followed. Tell the user, or load another skill with use_skill."
    );
    // A list for another agent needs no note.
    for tools in ["Reed Bash", "Task", "mcp__tracker__list", "''"] {
        assert_eq!(note(tools_of(tools).with_forks_left_to_client()).await, None, "{tools}");
    }
    // A chat knows all tools, and has a note of its own.
    assert_eq!(note(tools_of("Reed")).await, None);
}

#[tokio::test]
async fn unknown_skill_changes_nothing() {
    let shelf = SkillLookup::with(&[REPORT]);
    let allowed_tools = Arc::new(AllowedTools::default());
    let builtin_tools = BuiltinTools::new(shelf.clone(), Some(Arc::clone(&allowed_tools)));
    call(&builtin_tools, "use_skill", json!({"name": "report"})).await;
    let answer = call(&builtin_tools, "use_skill", json!({"name": "reprot"})).await;
    assert_eq!(answer.failure.as_deref(), Some("unknown-skill"));
    assert!(answer.text.contains("did you mean `report`"), "{}", answer.text);
    assert_eq!(allowed_tools.snapshot().skill(), Some("report"), "a failure frees nobody");
}

#[tokio::test]
async fn files_outside_the_skill_are_not_read() {
    let builtin_tools = BuiltinTools::new(SkillLookup::with(&[REPORT]), None);
    let read = async |path: &str| {
        call(&builtin_tools, "read_skill_file", json!({"name": "report", "path": path})).await
    };
    assert_eq!(read("./references//a.md").await.text, "the reference");
    assert_eq!(read("../secret").await.failure.as_deref(), Some("path-outside-skill"));
    assert_eq!(read("references/b.md").await.failure.as_deref(), Some("no-such-file"));
}

#[tokio::test]
async fn skills_are_found_and_drafts_are_saved() {
    let shelf = SkillLookup::with(&[REPORT, PLAIN]);
    let builtin_tools = BuiltinTools::new(shelf.clone(), None);
    let found =
        call(&builtin_tools, "search_skills", json!({"query": "weekly"})).await.data.unwrap();
    assert_eq!(found["skills"][0]["name"], "report");
    assert_eq!((found["skills"].as_array().unwrap().len(), &found["of"]), (1, &json!(2)));
    let draft = json!({"name": "New One", "description": "Does it.", "instructions": "Do it."});
    let saved = call(&builtin_tools, "save_skill", draft).await.data.unwrap();
    assert_eq!((&saved["name"], &saved["enabled"]), (&json!("new-one"), &json!(false)));
    assert_eq!(*shelf.happened.lock().unwrap(), ["saved new-one"]);
}

#[tokio::test]
async fn invalid_calls_are_answered() {
    let builtin_tools = BuiltinTools::new(SkillLookup::with(&[]), None);
    for (name, arguments, code) in [
        ("use_skill", json!({}), "missing-argument"),
        ("use_skill", json!({"name": 7}), "missing-argument"),
        ("read_skill_file", json!({"name": "x"}), "missing-argument"),
        ("search_skills", json!({"query": null}), "missing-argument"),
        ("save_skill", json!({"name": "x"}), "draft-refused"),
        ("Use_Skill", json!({"name": "x"}), "unknown-tool"),
    ] {
        let answer = call(&builtin_tools, name, arguments).await;
        assert_eq!(answer.failure.as_deref(), Some(code), "{name}");
        assert!(!answer.text.is_empty());
    }
    let names: Vec<_> =
        builtin_tools.tools().into_iter().map(|tool| tool.definition.name).collect();
    assert_eq!(names, ["use_skill", "read_skill_file", "search_skills", "save_skill"]);
}
