//! Tests `savoir diff`.

use crate::support::{GOOD, Sandbox, Transcript};

const OLD: &str = "---\nname: notes\ndescription: Keeps notes. Use when asked.\n\
    allowed-tools: Read\n---\nWrite a note.\n";
const NEW: &str = "---\nname: notes\ndescription: Keeps notes. Use when asked.\n\
    allowed-tools: Read Bash(git:*)\n---\nWrite a note. Commit it, and tell the user about it.\n";

fn run_ok(sandbox: &Sandbox, arguments: &[&str]) -> Transcript {
    let run = sandbox.run(arguments);
    assert_eq!(run.code, 0, "{run}");
    run
}

#[test]
fn new_tools_and_tokens_are_listed() {
    let sandbox = Sandbox::new();
    sandbox.write("old/notes/SKILL.md", OLD);
    sandbox.write("new/notes/SKILL.md", NEW);
    let run = run_ok(&sandbox, &["diff", "old", "new"]);
    assert!(run.stdout.contains("  + tool Bash(git:*)\n"), "{run}");
    assert!(run.stdout.contains("instructions about 13 tokens (+10)"), "{run}");
    let json = run_ok(&sandbox, &["diff", "old", "new", "--json"]).json();
    assert_eq!(json["skills"][0]["change"], "changed");
    assert_eq!(json["skills"][0]["added_tools"][0], "Bash(git:*)");
}

#[test]
fn added_removed_and_moved_skills() {
    let sandbox = Sandbox::new();
    sandbox.write("old/gone/SKILL.md", OLD.replace("notes", "gone"));
    sandbox.write("old/notes/SKILL.md", OLD);
    sandbox.write("new/elsewhere/notes/SKILL.md", OLD);
    sandbox.write("new/fresh/SKILL.md", OLD.replace("notes", "fresh"));
    let json = run_ok(&sandbox, &["diff", "old", "new", "--json"]).json();
    let skills = json["skills"].as_array().unwrap();
    let changes: Vec<_> = skills.iter().map(|skill| (&skill["name"], &skill["change"])).collect();
    assert_eq!(changes.len(), 2, "the moved skill is unchanged: {json}");
    assert_eq!(skills[0]["change"], "added");
    assert_eq!(skills[1]["change"], "removed");
}

#[test]
fn one_skill_with_itself_has_no_differences() {
    let sandbox = Sandbox::new();
    sandbox.write("a/SKILL.md", GOOD);
    assert_eq!(run_ok(&sandbox, &["diff", "a", "a"]).stdout, "no differences\n");
    let markdown = run_ok(&sandbox, &["diff", "a", "a", "--format", "markdown"]);
    assert_eq!(markdown.stdout, "No skill has changed.\n");
}

#[test]
fn markdown_cannot_be_broken_by_a_skill() {
    let sandbox = Sandbox::new();
    sandbox.write("old/notes/SKILL.md", OLD);
    sandbox.write("new/notes/SKILL.md", OLD.replace("Read", "'Bash(a|b\\\\|`c:*)'"));
    let run = run_ok(&sandbox, &["diff", "old", "new", "--format", "markdown"]);
    let row = run.stdout.lines().find(|line| line.contains("notes")).unwrap();
    assert_eq!(row.matches('|').count(), 5, "{run}");
    assert!(run.stdout.contains("ask for more than before"), "{run}");
}

#[test]
fn missing_folder_is_an_error_with_a_hint() {
    let sandbox = Sandbox::new();
    sandbox.write("a/SKILL.md", GOOD);
    let run = sandbox.run(&["diff", "missing", "a"]);
    assert_eq!(run.code, 2, "{run}");
    assert!(run.stderr.contains("hint: name a skill's folder"), "{run}");
}

#[test]
fn installed_skills_are_named() {
    let sandbox = Sandbox::new();
    sandbox.write("work/.claude/skills/notes/SKILL.md", OLD);
    sandbox.write("work/new/SKILL.md", NEW);
    let run = sandbox.run_as("home", "work", &["diff", "notes", "new"]);
    assert_eq!(run.code, 0, "{run}");
    assert!(run.stdout.contains("  + tool Bash(git:*)\n"), "{run}");
    let unknown = sandbox.run_as("home", "work", &["diff", "note", "new"]);
    assert_eq!(unknown.code, 2, "{unknown}");
    assert!(unknown.stderr.contains("did you mean `notes`?"), "{unknown}");
}
