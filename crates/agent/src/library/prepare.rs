//! Prepares a skill for a model, including skills with only formal errors.
//!
//! A formal error, such as an invalid version, does not prevent a model from reading the
//! instructions, but the skill's own tools stay disabled until the error is fixed. A skill whose
//! access fields (who may call it, which tools it allows) cannot be read is not offered at all.

use savoir_skill::{
    Diagnostic, Dialect, Folder, Reading, Skill, State, check,
    convert::with_tools_of_original,
    read_as,
    yaml::{Entry, YamlVersion},
};

/// Fields that do not affect what a skill may do.
const DESCRIPTIVE_FIELDS: [&str; 12] = [
    "name", "description", "version", "license", "compatibility", "metadata", "author", "authors",
    "tags", "category", "homepage", "repository",
];
/// Errors in these fields that do not affect how the other fields are read.
const FORMAL_ERRORS: [&str; 5] =
    ["invalid-name", "invalid-value", "invalid-version", "too-long", "wrong-type"];
/// Fields that decide who may call a skill and which tools it allows.
const ACCESS_FIELDS: [&str; 5] = [
    "allowed-tools", "allowed_tools", "disallowed-tools", "disable-model-invocation",
    "user-invocable",
];
/// The note for a skill that is listed with its name alone.
const NO_DESCRIPTION_NOTE: &str = "This skill has no description, so its line in the list does not say \
    when to use it. A user can add a `description` to its SKILL.md.";

/// A skill prepared for a model.
#[derive(Clone, Debug)]
pub struct PreparedSkill {
    /// The skill; without its tools if it has formal errors.
    pub skill: Skill,
    /// A note about formal errors, or a missing description.
    pub note: Option<String>,
}

/// Prepares a skill under the requested name, or returns the reason why it cannot be used.
pub fn prepare_skill(
    name: &str,
    reading: &Reading,
    folder: Option<&Folder>,
) -> Result<PreparedSkill, String> {
    let (mut skill, note) = if reading.is_usable() {
        let whole = with_tools_of_original(reading, folder);
        let skill = whole.unwrap_or_else(|| reading.skill.clone());
        let note = skill.description.trim().is_empty().then(|| NO_DESCRIPTION_NOTE.to_owned());
        (skill, note)
    } else {
        let note = formal_error_note(reading).ok_or_else(|| check_error(reading))?;
        (Skill { tools: Vec::new(), ..reading.skill.clone() }, Some(note))
    };
    name.clone_into(&mut skill.name);
    apply_access_fields(&mut skill, reading)?;
    Ok(PreparedSkill { skill, note })
}

/// Returns a note about the formal errors of a skill, if it has only such errors.
fn formal_error_note(reading: &Reading) -> Option<String> {
    let (skill, errors) = (&reading.skill, reading.diagnostics.iter().filter(|one| one.is_error()));
    let errors: Vec<&Diagnostic> = errors.collect();
    let says = !skill.description.trim().is_empty() && !skill.body.trim().is_empty();
    if reading.document.state() != State::Clean || !says || !errors.iter().all(|one| is_formal(one))
    {
        return None;
    }
    // The note must not repeat text of the skill.
    let wrong = errors
        .iter()
        .map(|one| format!("{}: {}", one.field.as_deref().unwrap_or_default(), one.code));
    let wrong = wrong.collect::<Vec<_>>().join("; ");
    Some(format!(
        "This skill has formal errors ({wrong}). Its instructions can be followed; its own tools are \
         disabled until a user fixes the errors that `savoir check` lists."
    ))
}

fn is_formal(found: &Diagnostic) -> bool {
    let Some(field) = found.field.as_deref() else { return false };
    match found.code {
        // The name of the folder is used instead.
        "missing-field" => field == "name",
        code => FORMAL_ERRORS.contains(&code) && DESCRIPTIVE_FIELDS.contains(&field),
    }
}

/// Applies the access fields of every dialect to a skill. Returns an error if they cannot be read.
pub fn apply_access_fields(skill: &mut Skill, reading: &Reading) -> Result<(), String> {
    let document = &reading.document;
    let version = reading.detection.dialect.yaml();
    let misspelt =
        |entry: &&Entry| is_misspelt_access_field(&entry.key) && !is_default_access(entry, version);
    if let Some(entry) = document.entries().iter().find(misspelt) {
        let key = entry.key.escape_debug();
        return Err(with_check_hint(&format!(
            "`{key}` is not read: write it in small letters with hyphens"
        )));
    }
    let keys = ACCESS_FIELDS.iter().chain(&["context", "context_fork"]);
    if !keys.into_iter().any(|key| document.field(key).is_some()) {
        return Ok(());
    }
    let policy = &mut skill.policy;
    for dialect in [Dialect::CLAUDE_CODE, Dialect::PERSONAL_AGENT] {
        let also = read_as(document.source().clone(), dialect, None);
        if let Some(found) = also.diagnostics.iter().find(|found| is_access_field_error(found)) {
            return Err(with_check_hint(&found.message));
        }
        let also = also.skill.policy;
        policy.allowed_tools = policy.allowed_tools.take().or(also.allowed_tools);
        let denied = also.disallowed_tools.into_iter();
        let new: Vec<_> = denied.filter(|one| !policy.disallowed_tools.contains(one)).collect();
        policy.disallowed_tools.extend(new);
        policy.context_fork |= also.context_fork;
        policy.model_invocable = stricter(policy.model_invocable, also.model_invocable);
        policy.user_invocable = stricter(policy.user_invocable, also.user_invocable);
    }
    Ok(())
}

/// Whether a key is an access field in a spelling that no dialect reads.
fn is_misspelt_access_field(key: &str) -> bool {
    let meant = key.to_ascii_lowercase().replace('_', "-");
    ACCESS_FIELDS.contains(&meant.as_str()) && !ACCESS_FIELDS.contains(&key)
}

/// Whether an access field only repeats what is true without it, so that a misspelling is harmless.
fn is_default_access(entry: &Entry, version: YamlVersion) -> bool {
    match entry.key.to_ascii_lowercase().replace('_', "-").as_str() {
        "user-invocable" => entry.value.boolean(version) == Some(true),
        "disable-model-invocation" => entry.value.boolean(version) == Some(false),
        _ => false,
    }
}

fn is_access_field_error(found: &Diagnostic) -> bool {
    let field = found.field.as_deref().unwrap_or_default();
    // For a list, the field includes the index.
    let field = field.split(['[', '.']).next().unwrap_or_default();
    found.is_error() && ACCESS_FIELDS.contains(&field)
}

fn stricter(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (one, other) => one.or(other),
    }
}

fn check_error(reading: &Reading) -> String {
    let why = check::most_relevant_error(&reading.diagnostics);
    with_check_hint(why.map_or("its SKILL.md is broken", |found| found.message.as_str()))
}

fn with_check_hint(why: &str) -> String {
    format!("{why}; run `savoir check` for details")
}

#[cfg(test)]
mod tests {
    use savoir_skill::{Source, allowed_tools::ToolGrant, read};

    use super::*;

    fn prepare_fields(fields: &str) -> Result<PreparedSkill, String> {
        let text = format!("---\nname: a\ndescription: Does it.\n{fields}\n---\nDo it.\n");
        prepare_text(&text)
    }

    fn prepare_text(text: &str) -> Result<PreparedSkill, String> {
        let reading = read(Source::from_bytes(text.as_bytes().to_vec()).unwrap(), None);
        prepare_skill("folder", &reading, None)
    }

    fn tools(prepared: &PreparedSkill) -> Vec<String> {
        let grants = prepared.skill.policy.allowed_tools.as_deref().unwrap_or_default();
        grants.iter().map(ToolGrant::normalized).collect()
    }

    #[test]
    fn skill_with_formal_errors_is_prepared() {
        for fields in ["version: 1.0", "license: [x]", "metadata: hello"] {
            let prepared = prepare_fields(fields).unwrap();
            assert_eq!(prepared.skill.name, "folder");
            assert_eq!(prepared.skill.body, "Do it.\n", "{fields}");
        }
        assert_eq!(prepare_fields("version: 1.0.0").unwrap().note, None);
    }

    #[test]
    fn skill_without_description_has_a_note() {
        let prepared = prepare_text("---\nname: a\n---\nDo it.\n").unwrap();
        assert!(prepared.note.unwrap().starts_with("This skill has no description"));
    }

    #[test]
    fn skill_without_text_or_description_is_rejected() {
        for text in
            ["---\nname: [\n---\nDo.\n", "---\nname: a\ndescription: d\nname: b\n---\nDo.\n", ""]
        {
            let why = prepare_text(text).unwrap_err();
            assert!(why.contains("savoir check"), "{text:?}: {why}");
        }
    }

    #[test]
    fn access_fields_apply_or_the_skill_is_rejected() {
        for version in ["1.0", "1.0.0"] {
            let fields = format!("version: {version}\nallowed-tools: Read\ncontext: fork");
            let one = prepare_fields(&fields).unwrap();
            assert_eq!(tools(&one), ["read_file"], "{version}");
            assert!(one.skill.policy.context_fork, "{version}");
            let one =
                prepare_fields(&format!("version: {version}\ndisallowed-tools: Bash")).unwrap();
            assert_eq!(one.skill.policy.disallowed_tools.len(), 1, "{version}");
            let quiet = format!("version: {version}\ndisable-model-invocation: true");
            assert_eq!(prepare_fields(&quiet).unwrap().skill.policy.model_invocable, Some(false));
            for unread in [
                "allowed-tools: {a: b}",
                "allowed-tools: [{a: b}]",
                "disallowed-tools: {a: b}",
                "disable-model-invocation: perhaps",
                "user-invocable: [no]",
            ] {
                let fields = format!("version: {version}\n{unread}");
                assert!(prepare_fields(&fields).is_err(), "{fields}");
            }
        }
        assert!(prepare_fields("version: 1.0\nallowed-tools: Read\nallowed-tools: Bash").is_err());
    }

    #[test]
    fn misspelt_access_fields_that_restrict_nothing_are_ignored() {
        for harmless in ["user_invocable: true", "disable_model_invocation: false"] {
            assert!(prepare_fields(harmless).is_ok(), "{harmless}");
        }
        for unread in ["user_invocable: false", "Disable-Model-Invocation: true"] {
            assert!(prepare_fields(unread).unwrap_err().contains("is not read"), "{unread}");
        }
    }

    #[test]
    fn tools_of_skills_with_errors_are_disabled() {
        let tools = "tools:\n  - name: t\n    description: d\n    command: echo hi";
        for fields in [
            format!("version: 1.0\nsecurity_tier: experimental\n{tools}"),
            format!("version: 1.0.0\npermissions: {{a: [}}\n{tools}"),
            format!("version: 1.0.0\npermissions: 7\n{tools}"),
            format!("version: 1.0\npermissions: 7\n{tools}"),
        ] {
            if let Ok(prepared) = prepare_fields(&fields) {
                assert!(prepared.skill.tools.is_empty() || prepared.note.is_none(), "{fields}");
            }
        }
    }
}
