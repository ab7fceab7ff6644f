//! Parses stored skills.

use savoir_agent::library::{apply_access_fields, prepare_skill};
use savoir_skill::{
    Dialect, Reading, Skill, Source, check, dialect::agent_flow::without_owner,
    limits::MAX_DESCRIPTION_CHARS, read as read_any, read_as,
};

/// Parses a skill by the rules of its dialect; returns an error message if the skill cannot be
/// used. The lists of allowed and disallowed tools, and who may call the skill, are read in every
/// dialect; if they cannot be parsed, the skill cannot be used.
pub fn read(name: &str, text: &str) -> Result<Skill, String> {
    let text = without_owner(text);
    let source =
        || Source::from_bytes(text.clone().into_bytes()).map_err(|error| error.to_string());
    let (found, portable) =
        (read_any(source()?, None), read_as(source()?, Dialect::PERSONAL_AGENT, None));
    let reading = if found.is_usable() { found } else { portable.clone() };
    let mut skill = if reading.is_usable() {
        reading.skill.clone()
    } else {
        // Formal errors, such as `metadata: text`, do not prevent a model from using the skill.
        let prepared = prepare_skill(name, &reading, None);
        prepared.map_err(|_| failure_reason(&reading))?.skill
    };
    name.clone_into(&mut skill.name);
    if skill.description.is_empty() {
        name.clone_into(&mut skill.description);
    }
    if let Some((end, _)) = skill.description.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        skill.description.truncate(end);
    }
    let also = portable.skill;
    skill.when_to_use = skill.when_to_use.or(also.when_to_use);
    apply_access_fields(&mut skill, &reading)?;
    Ok(skill)
}

fn failure_reason(reading: &Reading) -> String {
    let gravest = check::most_relevant_error(&reading.diagnostics);
    gravest.map_or_else(|| "its SKILL.md is broken".to_owned(), |found| found.message.clone())
}

#[cfg(test)]
mod tests {
    use savoir_skill::{
        allow_list::{AllowList, OfferedTool},
        allowed_tools::ToolGrant,
    };

    use super::*;

    fn allowed_tool_names(skill: &Skill) -> Vec<String> {
        let grants = skill.policy.allowed_tools.as_deref().unwrap_or_default();
        grants.iter().map(ToolGrant::normalized).collect()
    }

    #[test]
    fn allowed_tools_apply_in_every_dialect() {
        for fields in [
            "when_to_use: often",
            "inputs: [{name: who, type: text}]\nwhen_to_use: often",
            "knowledge_base: kb\nwhen_to_use: often",
            "user_id: '7'\nwhen_to_use: often",
            "version: 1.0.0\nwhen_to_use: often",
        ] {
            let text = format!(
                "---\nname: a\ndescription: d\n{fields}\nallowed-tools: Read Bash(git log:*)\ncontext: fork\n---\nDo it.\n"
            );
            let skill = read("a", &text).unwrap();
            assert_eq!(allowed_tool_names(&skill), ["read_file", "run_command"], "{fields}");
            assert_eq!(skill.when_to_use.as_deref(), Some("often"), "{fields}");
            assert!(skill.policy.context_fork, "{fields}");
        }
    }

    #[test]
    fn denied_tools_apply_in_every_dialect() {
        for fields in [
            "user-invocable: true",
            "when_to_use: often",
            "inputs: [{name: who, type: text}]",
            "knowledge_base: kb",
            "user_id: '7'",
            "version: 1.0.0",
            "version: 1.0.0\nread_only: true",
        ] {
            let read_with = |more: &str| {
                read("a", &format!("---\nname: a\ndescription: d\n{fields}\n{more}\n---\nDo it.\n"))
            };
            let skill = read_with("disallowed-tools: Bash Write(out/**)").unwrap();
            let list = AllowList::of(&skill.policy).expect(fields);
            assert!(!list.names(OfferedTool::Host("run_command")), "{fields}");
            assert!(list.names(OfferedTool::Host("read_file")), "{fields}");
            assert_eq!(skill.policy.disallowed_tools.len(), 2, "{fields}");
            for unread in [
                "disallowed-tools: {a: b}",
                "Disallowed_Tools: Bash",
                "Allowed-Tools: Read",
                "disable-model-invocation: yes",
                "disable-model-invocation: \"true\"",
                "disable-model-invocation: perhaps",
                "Disable-Model-Invocation: true",
                "user-invocable: [no]",
            ] {
                if unread.starts_with("user-") && fields.starts_with("user-") {
                    continue;
                }
                assert!(read_with(unread).is_err(), "{fields}\n{unread}");
            }
        }
    }

    #[test]
    fn formal_errors_do_not_matter() {
        for fields in ["metadata: text", "license: [x]", "metadata: text\nallowed-tools: Read"] {
            let text = format!("---\nname: a\ndescription: d\n{fields}\n---\nDo it.\n");
            let skill = read("a", &text).unwrap();
            assert_eq!(skill.body, "Do it.\n", "{fields}");
            assert_eq!(
                skill.policy.allowed_tools.is_some(),
                fields.contains("allowed"),
                "{fields}"
            );
        }
    }

    #[test]
    fn missing_fields_get_defaults() {
        let skill = read("a", "---\nuser_id: '7'\nmodel: {temperature: 1}\n---\nx\n").unwrap();
        assert_eq!((skill.name.as_str(), skill.description.as_str()), ("a", "a"));
        let long = format!("---\nname: a\ndescription: {}\n---\nx\n", "ä".repeat(2000));
        assert_eq!(read("a", &long).unwrap().description.chars().count(), MAX_DESCRIPTION_CHARS);
        assert!(read("a", "---\nname: [\n---\n").is_err());
    }
}
