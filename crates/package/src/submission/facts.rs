//! Extracts the index metadata of a submission, and checks its limits.

use savoir_skill::Skill;
use url::Url;

use super::{Rejection, checked::CheckedManifest};
use crate::{
    SkillSummary, SummaryError, Tree,
    limits::{MAX_AUTHOR_BYTES, MAX_LISTED, MAX_PUBLISHED_DESCRIPTION, MAX_TAG_BYTES, MAX_TAGS},
    registry::Name,
};

/// The metadata for an index.
pub(super) struct Facts {
    pub(super) description: String,
    pub(super) author: Option<String>,
    pub(super) license: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) homepage: Option<String>,
    pub(super) repository: Option<String>,
    pub(super) permissions: Vec<String>,
    pub(super) tools: Vec<String>,
    pub(super) dependencies: Vec<String>,
}

impl Facts {
    /// Reads the skill as installers do.
    pub(super) fn new(
        tree: &Tree,
        name: &Name,
        checked: &CheckedManifest,
    ) -> Result<Self, Rejection> {
        let summary = SkillSummary::read(tree, name.last())?;
        if summary.name != name.last() {
            let error = format!("the skill calls itself `{}`", summary.name.escape_debug());
            return Err(Rejection::SkillSummary(SummaryError::Name(error)));
        }
        let skill = checked.skill();
        let facts = Self {
            description: skill.description.trim().to_owned(),
            author: joined(&skill.authors),
            license: skill.license.clone(),
            tags: skill.tags.clone(),
            homepage: address(skill, "homepage"),
            repository: address(skill, "repository"),
            permissions: summary.permissions.iter().map(ToString::to_string).collect(),
            tools: summary.tools.clone(),
            dependencies: needs(&summary)?,
        };
        // Some tools reject a registry's whole list because of one skill without a description.
        if facts.description.is_empty() {
            return Err(Rejection::NoDescription { line: checked.description_line() });
        }
        facts.within_limits()?;
        facts.without_control()?;
        Ok(facts)
    }

    fn within_limits(&self) -> Result<(), Rejection> {
        let too_much = |what: &'static str, most: String| Err(Rejection::TooMuch { what, most });
        if self.description.chars().count() > MAX_PUBLISHED_DESCRIPTION {
            let most = format!("{MAX_PUBLISHED_DESCRIPTION} characters");
            return too_much("the description", most);
        }
        if self.author.as_ref().is_some_and(|author| author.len() > MAX_AUTHOR_BYTES) {
            return too_much("the author", format!("{MAX_AUTHOR_BYTES} bytes"));
        }
        let is_bad = |tag: &String| tag.trim().is_empty() || tag.len() > MAX_TAG_BYTES;
        if self.tags.len() > MAX_TAGS || self.tags.iter().any(is_bad) {
            return too_much("the tags", format!("{MAX_TAGS} tags of 1 to {MAX_TAG_BYTES} bytes"));
        }
        let lists = [
            ("the permissions", &self.permissions),
            ("the tools", &self.tools),
            ("the dependencies", &self.dependencies),
        ];
        match lists.into_iter().find(|(_, list)| list.len() > MAX_LISTED) {
            Some((what, _)) => too_much(what, format!("{MAX_LISTED} entries")),
            None => Ok(()),
        }
    }

    /// Rejects control characters, because web pages and prompts show these texts.
    fn without_control(&self) -> Result<(), Rejection> {
        let acts = |text: &String| text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        let texts = [
            ("the description", vec![&self.description]),
            ("the author", self.author.iter().collect()),
            ("the license", self.license.iter().collect()),
            ("a tag", self.tags.iter().collect()),
            ("a permission", self.permissions.iter().collect()),
            ("a tool", self.tools.iter().collect()),
        ];
        match texts.into_iter().find(|(_, texts)| texts.iter().any(|text| acts(text))) {
            Some((what, _)) => Err(Rejection::Control { what }),
            None => Ok(()),
        }
    }
}

/// Returns the dependencies. Each must be a valid registry name.
fn needs(summary: &SkillSummary) -> Result<Vec<String>, Rejection> {
    let need = |need: &savoir_skill::version::SkillRef| {
        let wrong = |why: String| SummaryError::Need { text: need.to_string(), why };
        match Name::parse(&need.name) {
            Ok(_) => Ok(need.to_string()),
            Err(error) => Err(Rejection::SkillSummary(wrong(error.to_string()))),
        }
    };
    summary.needs.iter().map(need).collect()
}

fn joined(authors: &[String]) -> Option<String> {
    Some(authors.join(", ")).filter(|author| !author.trim().is_empty())
}

/// Returns a web URL; other URLs could run code when a user clicks the link.
fn address(skill: &Skill, key: &str) -> Option<String> {
    let text = skill.links.get(key)?.as_str()?;
    let url = Url::parse(text).ok()?;
    matches!(url.scheme(), "https" | "http").then(|| url.to_string())
}
