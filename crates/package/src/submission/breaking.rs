//! Compares a submission with the published versions that it claims to be compatible with.

use savoir_skill::permission::Permission;
use semver::Version;

use super::Submission;
use crate::{lock::added_permissions, registry::wire::IndexLine};

/// What a version changes for those who have the version before, although its number says that they
/// can update without a thought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakingChanges {
    /// The version before.
    pub before: Version,
    /// Tools that it no longer has.
    pub removed_tools: Vec<String>,
    /// Tools that the version before did not have, if some were removed: one may be a new name.
    pub added_tools: Vec<String>,
    /// Permissions that the version before did not request.
    pub added_permissions: Vec<String>,
    /// The lowest version number for such changes.
    pub next: Version,
}

impl Submission {
    /// Compares this version with the newest published one before it. Returns `None` if nothing
    /// breaks, or if the number says that something may.
    pub fn breaking_changes(&self, published: &[IndexLine]) -> Option<BreakingChanges> {
        let version = self.version.as_ref()?;
        let older = published.iter().filter(|line| !line.yanked && line.version < *version);
        let before = older.max_by(|one, other| one.version.cmp(&other.version))?;
        if !is_compatible(&before.version, version) {
            return None;
        }
        let lacks = |all: &[String], tool: &&String| !all.contains(tool);
        let removed_tools: Vec<String> =
            before.tools.iter().filter(|tool| lacks(&self.tools, tool)).cloned().collect();
        let mut added_tools: Vec<String> =
            self.tools.iter().filter(|tool| lacks(&before.tools, tool)).cloned().collect();
        if removed_tools.is_empty() {
            added_tools.clear();
        }
        let parsed = |texts: &[String]| -> Vec<Permission> {
            texts.iter().filter_map(|text| text.parse().ok()).collect()
        };
        let added = added_permissions(&parsed(&before.permissions), &parsed(&self.permissions));
        let added_permissions: Vec<String> = added.iter().map(ToString::to_string).collect();
        if removed_tools.is_empty() && added_permissions.is_empty() {
            return None;
        }
        let next = if before.version.major == 0 {
            Version::new(0, before.version.minor + 1, 0)
        } else {
            Version::new(before.version.major + 1, 0, 0)
        };
        let before = before.version.clone();
        Some(BreakingChanges { before, removed_tools, added_tools, added_permissions, next })
    }
}

/// Whether `^before` accepts a later version, so that `savoir update` offers it.
fn is_compatible(before: &Version, version: &Version) -> bool {
    match (before.major, before.minor) {
        (0, 0) => false,
        (0, minor) => version.major == 0 && version.minor == minor,
        (major, _) => version.major == major,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{File, Tree, submission::PublishOptions};

    /// A skill with a tool and a permission.
    fn submission(version: &str, tool: &str, permission: &str) -> Submission {
        let text = format!(
            "---\nname: demo\nversion: {version}\ndescription: Says hello. Use when greeting.\n\
             author: ada\nlicense: MIT\npermissions:\n  - {permission}\ntools:\n  - name: {tool}\n    \
             description: Says hello\nsecurity_tier: experimental\n---\n# Demo\n\nSay hello.\n"
        );
        let code = format!(
            "from gaia.agents.base.tools import tool\n\n\n@tool\ndef {tool}() -> dict:\n    \
             \"\"\"Say hello.\"\"\"\n    return {{}}\n"
        );
        let mut tree = Tree::default();
        for (path, text) in [("SKILL.md", text), ("tools.py", code)] {
            tree.add(path.into(), File { bytes: text.into(), executable: false }).unwrap();
        }
        Submission::of_tree(tree, Some("demo"), &PublishOptions::default()).unwrap()
    }

    fn published(version: &str, yanked: bool) -> IndexLine {
        let Submission { name, integrity, tools, permissions, .. } =
            submission(version, "greet", "network:none");
        let line = serde_json::json!({
            "name": name, "version": version, "integrity": integrity, "sha256": "0".repeat(64),
            "size": 1, "filename": "demo.zip", "tools": tools, "permissions": permissions,
            "yanked": yanked, "deprecated": null, "published_at": null, "signer": null,
        });
        serde_json::from_value(line).unwrap()
    }

    #[test]
    fn renamed_tool_and_added_permission_break_a_patch() {
        let lines =
            [published("0.9.0", false), published("1.0.0", false), published("1.0.5", true)];
        let new = submission("1.0.1", "greet_all", "network:read:example.com");
        let changes = new.breaking_changes(&lines).unwrap();
        assert_eq!(changes.before, Version::new(1, 0, 0));
        assert_eq!(changes.removed_tools, ["greet"]);
        assert_eq!(changes.added_tools, ["greet_all"]);
        assert_eq!(changes.added_permissions, ["network:read:example.com"]);
        assert_eq!(changes.next, Version::new(2, 0, 0));
    }

    #[test]
    fn same_capabilities_and_new_major_versions_break_nothing() {
        let lines = [published("1.0.0", false)];
        let breaks = |version: &str, tool: &str, permission: &str| {
            submission(version, tool, permission).breaking_changes(&lines).is_some()
        };
        assert!(!breaks("1.0.1", "greet", "network:none"));
        assert!(breaks("1.1.0", "greet", "network:read:example.com"));
        assert!(!breaks("2.0.0", "greet_all", "network:read:example.com"));
        // It is published beside the newer one.
        assert!(!breaks("0.9.0", "greet_all", "network:none"));
        let zero = [published("0.1.0", false)];
        assert!(submission("0.1.1", "hello", "network:none").breaking_changes(&zero).is_some());
        assert!(submission("0.2.0", "hello", "network:none").breaking_changes(&zero).is_none());
    }
}
