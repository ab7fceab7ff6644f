//! A skill in API responses for its owner.

use savoir_scan::Verdict;
use savoir_skill::{
    allowed_tools::ToolGrant,
    dialect::{
        agent_flow::without_owner,
        personal_agent::{Lifecycle, Provenance},
    },
    digest::hex,
};
use savoir_store::{Resource, SkillFacts, SkillFile};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

/// A skill with its metadata.
#[derive(Debug, Serialize, ToSchema)]
#[expect(clippy::struct_excessive_bools, reason = "the API defines these fields")]
pub struct Item {
    id: String,
    name: String,
    description: String,
    when_to_use: Option<String>,
    /// The tools that the skill allows, by their names in Personal Agent; all tools if the list is
    /// empty.
    allowed_tools: Vec<String>,
    context_fork: bool,
    /// Whether agents can use the skill.
    enabled: bool,
    pinned: bool,
    #[schema(value_type = String)]
    lifecycle_state: Lifecycle,
    #[schema(value_type = String)]
    source: Provenance,
    source_id: Option<String>,
    /// The version at the source; `name@version` for a skill from the registry.
    source_version: Option<String>,
    /// The last time that an agent used the skill.
    last_used_at: Option<String>,
    /// The paths of the other files.
    resources: Vec<String>,
    /// `own`, or `shared` for a skill without an owner.
    owner: &'static str,
    updated_at: String,
    has_inputs: bool,
    /// What the import repaired.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// `review` or `block`, if the scan of a skill that came from elsewhere, or that is disabled, found
    /// something.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
}

impl Item {
    /// Describes a skill. Some fields are empty if the skill cannot be parsed.
    pub fn new(file: &SkillFile, facts: &SkillFacts, resources: Vec<String>) -> Self {
        let skill = super::read(file.name(), &file.text).ok();
        let grants = skill.as_ref().and_then(|skill| skill.policy.allowed_tools.as_deref());
        let allowed_tools =
            grants.unwrap_or_default().iter().map(ToolGrant::display_name).collect();
        let has_inputs = skill.as_ref().is_some_and(|skill| !skill.inputs.is_empty());
        Self {
            id: file.name().to_owned(),
            name: file.name().to_owned(),
            allowed_tools,
            context_fork: skill.as_ref().is_some_and(|skill| skill.policy.context_fork),
            when_to_use: skill.as_ref().and_then(|skill| skill.when_to_use.clone()),
            description: skill.map_or_else(|| file.name().to_owned(), |skill| skill.description),
            owner: if facts.owner.is_some() { "own" } else { "shared" },
            updated_at: file.updated_at.to_string(),
            has_inputs,
            enabled: facts.is_offered(),
            pinned: facts.pinned,
            lifecycle_state: facts.lifecycle,
            source: facts.source,
            source_id: facts.source_id.clone(),
            source_version: facts.source_version.clone(),
            last_used_at: facts.last_used.map(|time| time.to_string()),
            resources,
            notes: Vec::new(),
            verdict: None,
        }
    }

    /// Adds notes about what the import repaired.
    #[must_use]
    pub fn with_notes(self, notes: Vec<String>) -> Self {
        Self { notes, ..self }
    }

    /// Adds the verdict of the scan, if it is known.
    #[must_use]
    pub fn with_verdict(self, verdict: Option<Verdict>) -> Self {
        let verdict = verdict.filter(|verdict| *verdict != Verdict::Allow);
        Self { verdict: verdict.map(Verdict::as_str), ..self }
    }
}

/// The digest of all files of a skill, independent of the owner: SHA-256 in hexadecimal digits.
pub(crate) fn digest<'a>(text: &str, resources: impl IntoIterator<Item = &'a Resource>) -> String {
    let mut hash = Sha256::new();
    hash.update(Sha256::digest(without_owner(text)));
    for resource in resources {
        hash.update(Sha256::digest(&resource.path));
        hash.update(Sha256::digest(&resource.bytes));
    }
    hex(&hash.finalize())
}
