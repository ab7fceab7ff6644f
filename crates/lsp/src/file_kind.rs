//! Decides which files the server checks.

use std::path::Path;

use savoir_package::{agent_file, manifest};
use savoir_skill::folder::is_skill_file;

/// The kinds of files that the server knows. All others, such as other Markdown files, get no
/// diagnostics, even if an editor sends them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Skill,
    Agent,
    Settings,
    Evals,
    Workflow,
    Other,
}

/// The language id that the editor extension gives to SKILL.md files, for files without a path.
const SKILL_LANGUAGE: &str = "skill";

impl FileKind {
    pub(crate) fn new(path: Option<&Path>, language: &str) -> Self {
        let Some(path) = path else {
            return if language == SKILL_LANGUAGE { Self::Skill } else { Self::Other };
        };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let in_folder = |wanted: &str| {
            path.parent().and_then(Path::file_name).is_some_and(|folder| folder == wanted)
        };
        if is_skill_file(name) {
            Self::Skill
        } else if agent_file::FILES.contains(&name) {
            Self::Agent
        } else if name == manifest::FILE {
            Self::Settings
        } else if name == "evals.json" {
            Self::Evals
        } else if name.ends_with(".workflow.json")
            || (in_folder("workflows") && path.extension().is_some_and(|kind| kind == "json"))
        {
            Self::Workflow
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_files_have_a_kind() {
        let kind = |path: &str| FileKind::new(Some(Path::new(path)), "markdown");
        assert_eq!(kind("/a/SKILL.md"), FileKind::Skill);
        assert_eq!(kind("/a/README.md"), FileKind::Other);
        assert_eq!(kind("/a/AGENT.yaml"), FileKind::Agent);
        assert_eq!(kind("/a/savoir.toml"), FileKind::Settings);
        assert_eq!(kind("/a/evals/evals.json"), FileKind::Evals);
        assert_eq!(kind("/a/workflows/x.json"), FileKind::Workflow);
        assert_eq!(kind("/a/x.workflow.json"), FileKind::Workflow);
        assert_eq!(kind("/a/package.json"), FileKind::Other);
        assert_eq!(FileKind::new(None, "skill"), FileKind::Skill);
    }
}
