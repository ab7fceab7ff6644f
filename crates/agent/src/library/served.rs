//! Prepares a skill for a model, including skills with only formal errors.
//!
//! A version that is none is no reason to keep a text from a model. What a skill may do is another
//! thing: its tools stay closed until it is correct, and where it cannot be read whom and what it
//! allows, it is not served.

use savoir_skill::{
    Diagnostic, Dialect, Folder, Reading, Skill, State, check, convert::with_tools_of_original,
    read_as,
};

/// Fields that say nothing of what a skill may do.
const FORMAL: [&str; 12] = [
    "name",
    "description",
    "version",
    "license",
    "compatibility",
    "metadata",
    "author",
    "authors",
    "tags",
    "category",
    "homepage",
    "repository",
];
/// What can be wrong with them so that all else is read as it is written.
const FORMS: [&str; 5] =
    ["invalid-name", "invalid-value", "invalid-version", "too-long", "wrong-type"];
/// Fields that say who calls a skill and what it allows.
const GUARDS: [&str; 5] = [
    "allowed-tools",
    "allowed_tools",
    "disallowed-tools",
    "disable-model-invocation",
    "user-invocable",
];
/// A skill as a model gets it.
#[derive(Clone, Debug)]
pub struct Served {
    /// The skill; one that is formally wrong comes without its tools.
    pub skill: Skill,
    /// What is wrong with its form.
    pub note: Option<String>,
}

/// Serves a skill under the name by which it is asked for, or says why not.
pub fn serve(name: &str, reading: &Reading, folder: Option<&Folder>) -> Result<Served, String> {
    let (mut skill, note) = if reading.is_usable() {
        let whole = with_tools_of_original(reading, folder);
        (whole.unwrap_or_else(|| reading.skill.clone()), None)
    } else {
        let note = forgiven(reading).ok_or_else(|| why(reading))?;
        (Skill { tools: Vec::new(), ..reading.skill.clone() }, Some(note))
    };
    name.clone_into(&mut skill.name);
    guard(&mut skill, reading)?;
    Ok(Served { skill, note })
}

/// What is wrong with the form of a skill that has a text, if nothing else is wrong with it.
fn forgiven(reading: &Reading) -> Option<String> {
    let (skill, errors) = (&reading.skill, reading.diagnostics.iter().filter(|one| one.is_error()));
    let errors: Vec<&Diagnostic> = errors.collect();
    let says = !skill.description.trim().is_empty() && !skill.body.trim().is_empty();
    if reading.document.state() != State::Clean || !says || !errors.iter().all(|one| is_formal(one))
    {
        return None;
    }
    // What it says itself is not repeated: this is in our words.
    let wrong = errors
        .iter()
        .map(|one| format!("{}: {}", one.field.as_deref().unwrap_or_default(), one.code));
    let wrong = wrong.collect::<Vec<_>>().join("; ");
    Some(format!(
        "This skill is formally wrong ({wrong}). Its instructions can be followed; tools of its own \
         are closed until a person mends it, with `savoir check`."
    ))
}

fn is_formal(found: &Diagnostic) -> bool {
    let Some(field) = found.field.as_deref() else { return false };
    match found.code {
        // It has the name of its folder.
        "missing-field" => field == "name",
        code => FORMS.contains(&code) && FORMAL.contains(&field),
    }
}

/// What a skill says of who calls it and what it allows holds in whichever dialect it says so. The
/// error says why that cannot be told.
pub fn guard(skill: &mut Skill, reading: &Reading) -> Result<(), String> {
    let document = &reading.document;
    let mut keys = document.entries().iter().map(|entry| entry.key.as_str());
    if let Some(key) = keys.find(|key| is_misspelt_guard(key)) {
        let key = key.escape_debug();
        return Err(told(&format!("`{key}` is not read: write it in small letters with hyphens")));
    }
    let keys = GUARDS.iter().chain(&["context", "context_fork"]);
    if !keys.into_iter().any(|key| document.field(key).is_some()) {
        return Ok(());
    }
    let policy = &mut skill.policy;
    for dialect in [Dialect::CLAUDE_CODE, Dialect::PERSONAL_AGENT] {
        let also = read_as(document.source().clone(), dialect, None);
        if let Some(found) = also.diagnostics.iter().find(|found| is_unread_guard(found)) {
            return Err(told(&found.message));
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

/// Whether somebody means to guard a skill with a field that nobody reads.
fn is_misspelt_guard(key: &str) -> bool {
    let meant = key.to_ascii_lowercase().replace('_', "-");
    GUARDS.contains(&meant.as_str()) && !GUARDS.contains(&key)
}

fn is_unread_guard(found: &Diagnostic) -> bool {
    let field = found.field.as_deref().unwrap_or_default();
    // A list is named with the place in it.
    let field = field.split(['[', '.']).next().unwrap_or_default();
    found.is_error() && GUARDS.contains(&field)
}

fn stricter(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (one, other) => one.or(other),
    }
}

fn why(reading: &Reading) -> String {
    let why = check::most_relevant_error(&reading.diagnostics);
    told(why.map_or("its SKILL.md is broken", |found| found.message.as_str()))
}

fn told(why: &str) -> String {
    format!("{why}; a person can see it with `savoir check`")
}

#[cfg(test)]
mod tests {
    use savoir_skill::{Source, allowed_tools::ToolGrant, read};

    use super::*;

    fn served(fields: &str) -> Result<Served, String> {
        let text = format!("---\nname: a\ndescription: Does it.\n{fields}\n---\nDo it.\n");
        served_text(&text)
    }

    fn served_text(text: &str) -> Result<Served, String> {
        let reading = read(Source::from_bytes(text.as_bytes().to_vec()).unwrap(), None);
        serve("folder", &reading, None)
    }

    fn tools(served: &Served) -> Vec<String> {
        let grants = served.skill.policy.allowed_tools.as_deref().unwrap_or_default();
        grants.iter().map(ToolGrant::normalized).collect()
    }

    #[test]
    fn what_is_only_formally_wrong_is_served() {
        for fields in ["version: 1.0", "license: [x]", "metadata: hello"] {
            let served = served(fields).unwrap();
            assert_eq!(served.skill.name, "folder");
            assert_eq!(served.skill.body, "Do it.\n", "{fields}");
        }
        assert_eq!(served("version: 1.0.0").unwrap().note, None);
    }

    #[test]
    fn without_a_text_or_a_description_nothing_is_served() {
        for text in
            ["---\nname: [\n---\nDo.\n", "---\nname: a\ndescription: d\nname: b\n---\nDo.\n", ""]
        {
            let why = served_text(text).unwrap_err();
            assert!(why.contains("savoir check"), "{text:?}: {why}");
        }
    }

    #[test]
    fn what_it_allows_holds_or_it_is_not_served() {
        for version in ["1.0", "1.0.0"] {
            let fields = format!("version: {version}\nallowed-tools: Read\ncontext: fork");
            let one = served(&fields).unwrap();
            assert_eq!(tools(&one), ["read_file"], "{version}");
            assert!(one.skill.policy.context_fork, "{version}");
            let one = served(&format!("version: {version}\ndisallowed-tools: Bash")).unwrap();
            assert_eq!(one.skill.policy.disallowed_tools.len(), 1, "{version}");
            let quiet = format!("version: {version}\ndisable-model-invocation: true");
            assert_eq!(served(&quiet).unwrap().skill.policy.model_invocable, Some(false));
            for unread in [
                "allowed-tools: {a: b}",
                "allowed-tools: [{a: b}]",
                "disallowed-tools: {a: b}",
                "disable-model-invocation: perhaps",
                "user-invocable: [no]",
            ] {
                let fields = format!("version: {version}\n{unread}");
                assert!(served(&fields).is_err(), "{fields}");
            }
        }
        assert!(served("version: 1.0\nallowed-tools: Read\nallowed-tools: Bash").is_err());
    }

    #[test]
    fn tools_and_permissions_are_closed() {
        let tools = "tools:\n  - name: t\n    description: d\n    command: echo hi";
        for fields in [
            format!("version: 1.0\nsecurity_tier: experimental\n{tools}"),
            format!("version: 1.0.0\npermissions: {{a: [}}\n{tools}"),
            format!("version: 1.0.0\npermissions: 7\n{tools}"),
            format!("version: 1.0\npermissions: 7\n{tools}"),
        ] {
            if let Ok(served) = served(&fields) {
                assert!(served.skill.tools.is_empty() || served.note.is_none(), "{fields}");
            }
        }
    }
}
