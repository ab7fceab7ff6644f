//! Tests of migrating OpenClaw skills to GAIA skills, with all their files.

mod hostile;
mod real;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use savoir_package::{
    Tree,
    migrate::{ExistingOutput, MigrateOptions, MigrationReport, Migrator, Mode, ReportedFindings},
};
use tempfile::TempDir;

const SKILL: &str = "---\nname: Text Tools\nversion: '1.2'\nclaw_version: '1'\nauthor: Ada\n\
license: MIT\nactions:\n  - name: count-words\n    description: Count words\n    parameters:\n      \
text: {type: string, required: true}\n      class: {type: string, default: 'a\"b'}\n      \
limit: {type: integer}\n    handler: handlers/count.py:run\n---\n\nCounts the words of a text.\n";

const HANDLER: &str = "def run(text, limit=3, **rest):\n    return {'words': len(text.split()), 'limit': limit, 'rest': rest}\n";

/// A folder with skills, and one for results.
struct TestFolder(TempDir);

impl TestFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.0.path().join(relative)
    }

    fn write(&self, relative: &str, text: &str) -> PathBuf {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn options(&self) -> MigrateOptions {
        MigrateOptions::new(self.path("out"))
    }

    fn migrate(&self, file: &Path) -> MigrationReport {
        Migrator::new(self.options()).migrate(file)
    }

    /// Migrates a skill with one action that has this handler.
    fn action(&self, handler: &str) -> MigrationReport {
        let handler = serde_json::to_string(handler).unwrap();
        let text = format!(
            "---\nname: demo\nclaw_version: '1'\ndescription: Shows.\nactions:\n  - name: act\n    handler: {handler}\n---\n"
        );
        let _ = fs::remove_dir_all(self.path("out"));
        self.migrate(&self.write("demo/SKILL.md", &text))
    }

    fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }
}

fn codes(report: &MigrationReport) -> Vec<&str> {
    report.blockers.iter().map(|blocker| blocker.code).collect()
}

/// Runs a Python script in a folder; returns its output, or `None` if there is no Python.
fn python(folder: &Path, script: &str) -> Option<String> {
    let stub = folder.join("gaia/agents/base");
    fs::create_dir_all(&stub).unwrap();
    fs::write(stub.join("tools.py"), "def tool(function):\n    return function\n").unwrap();
    let ran = Command::new("python3").args(["-B", "-c", script]).current_dir(folder).output();
    let Ok(ran) = ran else {
        eprintln!("note: python3 is not here, so tools.py is not run");
        return None;
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    Some(String::from_utf8(ran.stdout).unwrap())
}

#[test]
fn all_files_are_migrated() {
    let place = TestFolder::new();
    let file = place.write("claw/SKILL.md", SKILL);
    place.write("claw/handlers/count.py", HANDLER);
    place.write("claw/references/more.md", "# More\n");
    place.write("claw/signature.json", "{}");
    let report = place.migrate(&file);
    assert!(report.migrated, "{report:#?}");
    assert_eq!(report.output.as_deref(), Some(&*place.path("out/text-tools")));
    let tree = Tree::read(&place.path("out/text-tools")).unwrap();
    let paths: Vec<&str> = tree.files().map(|(path, _)| path).collect();
    assert_eq!(paths, ["SKILL.md", "handlers/count.py", "references/more.md", "tools.py"]);
    let made = place.read("out/text-tools/tools.py");
    insta::assert_snapshot!(made.split("\n\n\n@tool\n").nth(1).unwrap());
    let fields: Vec<&str> = report.reviews().map(|note| note.field.as_str()).collect();
    assert!(fields.contains(&"signature.json") && fields.contains(&"actions.count-words"));
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 1, "nothing is left behind");
    let script =
        "import tools\nprint(tools.count_words('a b'))\nprint(tools.count_words('a', 'c', 1))";
    if let Some(said) = python(&place.path("out/text-tools"), script) {
        assert_eq!(
            said,
            "{'words': 2, 'limit': 3, 'rest': {'class': 'a\"b'}}\n{'words': 1, 'limit': 1, 'rest': {'class': 'c'}}\n"
        );
    }
}

#[test]
fn report_contains_expected_fields() {
    let place = TestFolder::new();
    let report = place.migrate(&place.write("claw/SKILL.md", SKILL));
    let json = serde_json::to_value(&report).unwrap();
    for member in [
        "source", "vendor", "name", "migrated", "claimed_tier", "security_tier", "permissions",
        "blockers", "notes", "mapped",
    ] {
        assert!(json.get(member).is_some(), "{member}");
    }
    assert_eq!(
        (&json["vendor"], &json["security_tier"]),
        (&"openclaw".into(), &"experimental".into())
    );
}

#[test]
fn existing_output_is_not_overwritten() {
    let place = TestFolder::new();
    let file = place.write("claw/SKILL.md", SKILL);
    place.write("out/text-tools/note.txt", "mine");
    assert_eq!(codes(&place.migrate(&file)), ["exists"]);
    let force = MigrateOptions { existing: ExistingOutput::Replace, ..place.options() };
    let report = Migrator::new(force.clone()).migrate(&file);
    assert_eq!(codes(&report), ["exists"], "what is not a skill is not replaced");
    place.write("out/text-tools/SKILL.md", "old");
    let report = Migrator::new(force).migrate(&file);
    assert!(report.migrated, "{report:#?}");
    assert!(!place.path("out/text-tools/note.txt").exists());
    assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 1);
}

#[test]
fn dry_run_writes_nothing() {
    let place = TestFolder::new();
    let options = MigrateOptions {
        mode: Mode::Try,
        scrutiny: ReportedFindings::Everything,
        ..place.options()
    };
    let report = Migrator::new(options).migrate(&place.write("claw/SKILL.md", SKILL));
    assert!(report.migrated && report.findings.is_some(), "{report:#?}");
    assert!(!place.path("out").exists());
}

#[test]
fn output_inside_the_skill_is_rejected() {
    let place = TestFolder::new();
    let file = place.write("claw/SKILL.md", SKILL);
    let inside = MigrateOptions::new(place.path("claw/deep/out"));
    assert_eq!(codes(&Migrator::new(inside).migrate(&file)), ["output_inside"]);
    let file = place.write("out/text-tools/SKILL.md", SKILL);
    let own = MigrateOptions { existing: ExistingOutput::Replace, ..place.options() };
    assert_eq!(codes(&Migrator::new(own).migrate(&file)), ["output_is_source"]);
    assert_eq!(place.read("out/text-tools/SKILL.md"), SKILL);
}

#[test]
fn second_skill_of_a_name_is_rejected() {
    let place = TestFolder::new();
    let options = MigrateOptions { existing: ExistingOutput::Replace, ..place.options() };
    let mut migrator = Migrator::new(options);
    assert!(migrator.migrate(&place.write("a/SKILL.md", SKILL)).migrated);
    assert_eq!(codes(&migrator.migrate(&place.write("b/SKILL.md", SKILL))), ["name_taken"]);
}

#[test]
fn existing_tools_file_is_renamed() {
    let place = TestFolder::new();
    place.write("demo/tools.py", "def act():\n    return 'old'\n");
    let report = place.action("tools.py:act");
    assert!(report.migrated, "{report:#?}");
    assert!(report.reviews().any(|note| note.field == "tools.py"));
    assert!(place.read("out/demo/openclaw_tools.py").contains("old"));
    if let Some(said) = python(&place.path("out/demo"), "import tools; print(tools.act())") {
        assert_eq!(said, "old\n");
    }
}

#[test]
fn uncallable_handlers_are_reported() {
    let place = TestFolder::new();
    place.write("demo/act.js", "module.exports = {}");
    place.write("demo/broken.py", "def (:\n");
    place.write("demo/empty.py", "x = 1\n");
    for (handler, why) in [
        ("act.js#run", "`act.js` is not Python"),
        ("act.ts", "`act.ts` is not in the skill"),
        ("gone.py:run", "`gone.py` is not in the skill"),
        ("broken.py:run", "`broken.py` does not read"),
        ("empty.py", "`empty.py` has no function"),
        ("", "no handler"),
    ] {
        let report = place.action(handler);
        assert!(report.migrated, "{handler}: {report:#?}");
        assert!(report.reviews().any(|note| note.message.contains(why)), "{handler}: {report:#?}");
        let script = "import tools\ntry:\n    tools.act()\nexcept NotImplementedError as error:\n    print(error)";
        if let Some(said) = python(&place.path("out/demo"), script) {
            assert!(said.contains(why), "{handler}: {said}");
        }
    }
    place.write("demo/found.py", "async def main(needed):\n    pass\n");
    let report = place.action("./found.py");
    assert!(place.read("out/demo/tools.py").contains("_call(\"found.py\", \"main\", {}, {})"));
    assert!(report.reviews().any(|note| note.message.contains("needs `needed`")), "{report:#?}");
}
