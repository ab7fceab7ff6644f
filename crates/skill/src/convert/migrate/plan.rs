//! Maps the fields of the source to the migrated skill.

use serde_json::Value;

use super::{
    MappedField, MigratedTool, MigrationBlocker, MigrationNote, MigrationRequest,
    PermissionBreadth,
    python_names::{RESERVED_MODULE_NAMES, python_name},
};
use crate::{
    dialect::{
        gaia::ManifestShape,
        openclaw::{BLOCKS, Block, COARSE, Installer, coarse_places},
    },
    document::Document,
    name::{self, NameGrammar},
    permission::{Domain, Level, Permission, Tier},
    reading::Reading,
    skill::{Parameter, Runner, Skill, Tool},
    version,
    yaml::{Node, YamlVersion},
};

/// Fields that occur only in the shape that GAIA's documentation describes.
const DOCUMENTED_SHAPE_KEYS: [&str; 3] = ["claw_version", "actions", "pip_requires"];

/// Fields of the OpenClaw block that are migrated, so that no note is needed.
const MAPPED_BLOCK_KEYS: [&str; 6] =
    ["requires", "install", "primaryEnv", "envVars", "env", "optionalEnv"];

/// Fields of the OpenClaw block that have no meaning in GAIA.
const UNREAD_BLOCK_KEYS: [&str; 7] =
    ["os", "always", "skillKey", "emoji", "homepage", "nix", "config"];

/// The migrated skill before it is written, with the notes for the user.
pub(super) struct MigrationPlan<'a> {
    pub(super) document: &'a Document,
    pub(super) shape: ManifestShape,
    pub(super) skill: Skill,
    pub(super) claimed_tier: Option<String>,
    pub(super) tools: Vec<MigratedTool>,
    pub(super) notes: Vec<MigrationNote>,
    pub(super) mapped: Vec<MappedField>,
    /// Top-level fields that were mapped to others, so they are not written again.
    pub(super) consumed: Vec<String>,
    /// Values that GAIA would misread in their place, by field name. They are stored elsewhere.
    pub(super) originals: Vec<(String, Value)>,
    block: Option<Block>,
    request: &'a MigrationRequest<'a>,
}

impl<'a> MigrationPlan<'a> {
    pub(super) fn new(reading: &'a Reading, request: &'a MigrationRequest<'a>) -> Self {
        let document = &reading.document;
        Self {
            document,
            shape: request.shape,
            skill: reading.skill.clone(),
            claimed_tier: None,
            tools: Vec::new(),
            notes: Vec::new(),
            mapped: Vec::new(),
            consumed: Vec::new(),
            originals: Vec::new(),
            block: document.fields().and_then(Block::of),
            request,
        }
    }

    /// Maps all fields and returns the reasons that block the migration.
    pub(super) fn fill(&mut self) -> Vec<MigrationBlocker> {
        let mut blockers: Vec<MigrationBlocker> =
            [self.name(), self.description()].into_iter().filter_map(Result::err).collect();
        self.version();
        self.publisher();
        self.tier();
        self.coarse_permissions();
        if let Some(block) = self.block.take() {
            self.programs(&block);
            self.variables(&block);
            self.packages(&block);
            self.note_unread_fields(&block);
        }
        self.actions();
        self.body();
        if self.skill.tools.is_empty() && self.shape == ManifestShape::Flat {
            blockers.push(MigrationBlocker::NoTools);
        }
        if self.request.breadth == PermissionBreadth::Scoped {
            let wide = self.skill.permissions.iter().filter(|grant| is_wide(grant));
            blockers.extend(wide.cloned().map(MigrationBlocker::Unscoped));
        }
        blockers
    }

    /// Returns the path of a GAIA field in the requested shape.
    fn at(&self, key: &str) -> String {
        match self.shape {
            ManifestShape::Nested => format!("metadata.gaia.{key}"),
            ManifestShape::Flat => key.to_owned(),
        }
    }

    fn map(&mut self, from: impl Into<String>, key: &str) {
        let mapped = MappedField { from: from.into(), to: self.at(key) };
        if !self.mapped.contains(&mapped) {
            self.mapped.push(mapped);
        }
    }

    /// Whether the source has the shape that GAIA's documentation describes.
    fn has_documented_shape(&self) -> bool {
        DOCUMENTED_SHAPE_KEYS.iter().any(|key| self.document.field(key).is_some())
    }

    /// Whether the result needs fields that the source may lack.
    fn needs_all_fields(&self) -> bool {
        self.has_documented_shape() || self.shape == ManifestShape::Flat
    }

    fn name(&mut self) -> Result<(), MigrationBlocker> {
        let grammar = match self.shape {
            ManifestShape::Nested => NameGrammar::Ascii,
            ManifestShape::Flat => NameGrammar::Gaia,
        };
        if let Some(name) = self.request.name {
            grammar.check(name).map_err(|problem| MigrationBlocker::InvalidName {
                name: name.to_owned(),
                problem,
            })?;
            name.clone_into(&mut self.skill.name);
            return Ok(());
        }
        let old = self.skill.name.clone();
        let new = name::slugify(&old).filter(|name| grammar.check(name).is_ok());
        let new = new.ok_or_else(|| MigrationBlocker::NoName(old.clone()))?;
        if self.document.field("name").is_none() {
            self.notes.push(MigrationNote::new("name", "it is the name of the folder"));
        } else if new != old {
            self.notes.push(MigrationNote::new("name", format!("`{old}` became `{new}`")));
        }
        self.skill.name = new;
        Ok(())
    }

    fn description(&mut self) -> Result<(), MigrationBlocker> {
        let limit = match self.shape {
            ManifestShape::Nested => 1024,
            ManifestShape::Flat => 200,
        };
        if self.skill.description.trim().is_empty() {
            let paragraph = first_paragraph(&self.skill.body, limit);
            if !self.has_documented_shape() || paragraph.is_empty() {
                return Err(MigrationBlocker::NoDescription);
            }
            self.skill.description = paragraph;
            let message = "there was none, so it is the first paragraph of the body";
            self.notes.push(MigrationNote::review("description", message));
        }
        let chars = self.skill.description.chars().count();
        if chars > limit {
            return Err(MigrationBlocker::LongDescription { chars, limit });
        }
        Ok(())
    }

    fn version(&mut self) {
        if let Some(old) = self.skill.version.take() {
            match complete_version(&old) {
                Some(new) if new == old => self.skill.version = Some(new),
                Some(new) => {
                    self.notes
                        .push(MigrationNote::new("version", format!("`{old}` became `{new}`")));
                    self.skill.version = Some(new);
                }
                None => {
                    if let Some(node) = self.document.field("version") {
                        let value = node.to_value(YamlVersion::V1_1);
                        self.originals.push(("version".into(), value));
                    }
                    let message = format!("`{old}` is not a SemVer version and was left out");
                    self.notes.push(MigrationNote::review("version", message));
                }
            }
        }
        if self.skill.version.is_none() && self.needs_all_fields() {
            self.skill.version = Some("0.1.0".into());
            self.notes.push(MigrationNote::review("version", "there was none, so it is 0.1.0"));
        }
    }

    fn publisher(&mut self) {
        if self.document.field("author").is_none() && !self.skill.authors.is_empty() {
            let to = "author".into();
            self.mapped.push(MappedField { from: "metadata.author".into(), to });
        }
        if !self.needs_all_fields() {
            return;
        }
        if self.skill.authors.is_empty() {
            self.skill.authors.push("unknown".into());
            self.notes.push(MigrationNote::review("author", "there was none, so it is `unknown`"));
        }
        if self.skill.license.is_none() {
            self.skill.license = Some("NOASSERTION".into());
            self.notes
                .push(MigrationNote::review("license", "there was none, so it is `NOASSERTION`"));
        }
    }

    fn tier(&mut self) {
        let fields = self.document.fields();
        let own = fields.and_then(|fields| fields.get("security_tier"));
        let blocks = self.block.as_ref().map(|block| &block.node);
        let claimed = own.or_else(|| blocks?.get("security_tier"));
        self.claimed_tier = claimed.and_then(Node::text).map(str::to_owned);
        self.skill.policy.tier = Some(Tier::Experimental);
        if let Some(tier) = &self.claimed_tier {
            let message =
                format!("the source claims `{tier}`; a migrated skill starts as experimental");
            self.notes.push(MigrationNote::review("security_tier", message));
        }
    }

    /// Maps booleans that switch a whole domain on or off, and adds a review note for each that is
    /// on. The reader has already expanded each domain to all its levels.
    fn coarse_permissions(&mut self) {
        let document = self.document;
        let boolean = |path: &str| {
            document.fields()?.path(path).and_then(|node| node.boolean(YamlVersion::V1_2))
        };
        for domain in COARSE {
            for place in coarse_places(domain) {
                let Some(on) = boolean(&place) else { continue };
                self.map(place.clone(), "permissions");
                let top = place.split('.').next().unwrap_or_default().to_owned();
                if !self.consumed.contains(&top) {
                    self.consumed.push(top);
                }
                if on {
                    let message = format!(
                        "it grants all of `{domain}`; limit it to what the skill needs, for example with a scope"
                    );
                    self.notes.push(MigrationNote::review(place, message));
                }
            }
        }
        self.other_permissions();
    }

    /// Does not discard the original `permissions` if it contains anything but such booleans. It is
    /// stored outside the place where GAIA reads permissions.
    fn other_permissions(&mut self) {
        let Some(node) = self.document.field("permissions") else { return };
        let known = |key: &str| COARSE.iter().any(|domain| domain.as_str() == key);
        let understood = node.entries().is_some_and(|entries| {
            entries
                .iter()
                .all(|entry| known(&entry.key) && entry.value.boolean(YamlVersion::V1_2).is_some())
        });
        if !understood && self.consumed.iter().any(|key| key == "permissions") {
            self.consumed.retain(|key| key != "permissions");
        }
    }

    fn programs(&mut self, block: &Block) {
        let requirements = self.skill.requirements.clone();
        let lists = [
            ("requires.bins", &requirements.programs),
            ("requires.anyBins", &requirements.any_programs),
        ];
        for (key, programs) in lists.into_iter().filter(|(_, programs)| !programs.is_empty()) {
            let place = block.place(key);
            for program in programs {
                self.program(&place, program);
            }
            if key == "requires.anyBins" && programs.len() > 1 {
                let message = "only one of these programs is needed; remove the rest";
                self.notes.push(MigrationNote::review(place.clone(), message));
            }
            self.map(place, "permissions");
        }
    }

    fn program(&mut self, place: &str, program: &str) {
        let scope = Some(program.to_owned());
        let grant = Permission { domain: Domain::Shell, level: Level::Execute, scope };
        if let Some(problem) = grant.scope_problem() {
            let message = format!("`{program}` got no permission: {problem}");
            self.notes.push(MigrationNote::review(place, message));
            return;
        }
        let refused = Permission::unscoped(Domain::Shell, Level::None);
        if self.skill.permissions.contains(&refused) {
            self.skill.permissions.retain(|known| *known != refused);
            let message = "the source forbids the shell and needs programs; they are permitted";
            self.notes.push(MigrationNote::review(place, message));
        }
        if !self.skill.permissions.iter().any(|known| known.covers(&grant)) {
            self.skill.permissions.push(grant);
        }
    }

    fn variables(&mut self, block: &Block) {
        for (name, place, needed) in block.variables() {
            if !needed {
                let message = format!(
                    "`{name}` can be left out there, but must be set in GAIA; remove it if it is not needed"
                );
                self.notes.push(MigrationNote::review(place.clone(), message));
            }
            let variables = &mut self.skill.requirements.env_vars;
            if !variables.contains(&name) {
                variables.push(name);
            }
            self.map(place, "requirements.env_vars");
        }
        if !self.skill.requirements.host_tools.is_empty() {
            self.map(block.place("requires.tools"), "tools_required");
        }
    }

    fn packages(&mut self, block: &Block) {
        let place = block.place("install");
        for installer in block.installers() {
            let requirements = &mut self.skill.requirements;
            let (list, package, key) = match installer {
                Installer::Python(package) => {
                    (&mut requirements.python_packages, package, "requirements.dependencies")
                }
                Installer::Node(package) => {
                    (&mut requirements.node_packages, package, "requirements.node_dependencies")
                }
                Installer::Other(kind) => {
                    let message =
                        format!("`{kind}` installs nothing in GAIA; the entry is preserved");
                    self.notes.push(MigrationNote::review(place.clone(), message));
                    continue;
                }
            };
            if !list.contains(&package) {
                list.push(package);
            }
            self.map(place.clone(), key);
        }
    }

    fn note_unread_fields(&mut self, block: &Block) {
        let is_own = !block.path.is_empty() && block.path != "metadata";
        for entry in block.node.entries().unwrap_or_default() {
            let key = entry.key.as_str();
            let other = is_own && !MAPPED_BLOCK_KEYS.contains(&key);
            if other || (!block.path.is_empty() && UNREAD_BLOCK_KEYS.contains(&key)) {
                self.notes
                    .push(MigrationNote::new(block.place(key), "preserved; GAIA does not read it"));
            }
        }
        let metadata = self.document.fields().and_then(|fields| fields.get("metadata"));
        for key in BLOCKS {
            let place = format!("metadata.{key}");
            if place != block.path && metadata.is_some_and(|node| node.get(key).is_some()) {
                let message =
                    format!("preserved but not read, because `{}` takes precedence", block.path);
                self.notes.push(MigrationNote::new(place, message));
            }
        }
        for entry in block.node.get("requires").and_then(Node::entries).unwrap_or_default() {
            let place = block.place(&format!("requires.{}", entry.key));
            match entry.key.as_str() {
                "bins" | "anyBins" | "env" | "tools" => {}
                "config" => {
                    let message = "preserved; these are OpenClaw settings, check what they mean for this skill";
                    self.notes.push(MigrationNote::review(place, message));
                }
                _ => self
                    .notes
                    .push(MigrationNote::review(place, "preserved; GAIA does not read it")),
            }
        }
    }

    fn actions(&mut self) {
        if self.document.field("pip_requires").is_some() {
            self.map("pip_requires", "requirements.dependencies");
            self.consumed.push("pip_requires".into());
        }
        let Some(actions) = self.document.field("actions") else { return };
        let written = actions.items().map_or(0, <[Node]>::len);
        if written != self.skill.tools.len() || actions.items().is_none() {
            let message = "an action without a name is ignored; the list is preserved";
            self.notes.push(MigrationNote::review("actions", message));
        } else {
            self.consumed.push("actions".into());
        }
        self.map("actions", "tools");
        for tool in std::mem::take(&mut self.skill.tools) {
            let tool = self.action(tool);
            self.tools.push(tool);
        }
        self.skill.tools = self.tools.iter().map(|one| one.tool.clone()).collect();
    }

    fn action(&mut self, mut tool: Tool) -> MigratedTool {
        let taken: Vec<String> = self.tools.iter().map(|one| one.tool.name.clone()).collect();
        let name = python_name(&tool.name, "tool", &RESERVED_MODULE_NAMES, &taken);
        let action = std::mem::replace(&mut tool.name, name);
        let place = format!("actions.{action}");
        if action != tool.name {
            let message = format!("the action `{action}` became the tool `{}`", tool.name);
            self.notes.push(MigrationNote::review(place.clone(), message));
        }
        let mut names: Vec<String> = Vec::new();
        let mut arguments = Vec::new();
        for parameter in &mut tool.parameters {
            let name = python_name(&parameter.name, "parameter", &[], &names);
            names.push(name.clone());
            self.parameter(&place, parameter, &name);
            arguments.push(std::mem::replace(&mut parameter.name, name));
        }
        let handler = match &tool.runner {
            Runner::Handler { path } => path.clone(),
            Runner::Command(_) | Runner::Python { .. } => String::new(),
        };
        MigratedTool { tool, action, handler, arguments }
    }

    fn parameter(&mut self, place: &str, parameter: &mut Parameter, name: &str) {
        if parameter.name != name {
            let message = format!("the parameter `{}` became `{name}`", parameter.name);
            self.notes.push(MigrationNote::review(place, message));
        }
        if parameter.required && parameter.default.is_some() {
            // A Python parameter either has a default or is required, never both.
            parameter.required = false;
            let message = format!("`{name}` has a default, so it is no longer required");
            self.notes.push(MigrationNote::review(place, message));
        }
    }

    fn body(&mut self) {
        if self.skill.body.contains("{baseDir}") {
            let message = "GAIA does not fill in `{baseDir}`; write paths relative to the skill";
            self.notes.push(MigrationNote::review("body", message));
        }
    }
}

/// Completes a version with missing parts. Returns `None` if the text is not a version.
fn complete_version(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix(['v', 'V']).unwrap_or(text);
    let valid = |text: &str| version::parse_version(text).is_ok();
    if valid(text) {
        return Some(text.to_owned());
    }
    let missing = 3_usize.checked_sub(text.split('.').count())?;
    let full = format!("{text}{}", ".0".repeat(missing));
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    (plain && valid(&full)).then_some(full)
}

/// Returns the first paragraph of a body that is not a heading, cut to `limit`.
fn first_paragraph(body: &str, limit: usize) -> String {
    let lines = body.lines().map(str::trim);
    let text = lines.skip_while(|line| line.is_empty() || line.starts_with(['#', '`', '<', '|']));
    let words = text.take_while(|line| !line.is_empty()).flat_map(str::split_whitespace);
    let mut paragraph = String::new();
    for word in words {
        if paragraph.chars().count() + 1 + word.chars().count() > limit {
            break;
        }
        if !paragraph.is_empty() {
            paragraph.push(' ');
        }
        paragraph.push_str(word);
    }
    paragraph
}

/// Whether a permission opens a whole domain of this machine.
fn is_wide(grant: &Permission) -> bool {
    let local = [Domain::Shell, Domain::Filesystem, Domain::Database, Domain::Desktop, Domain::Env];
    grant.scope.is_none() && grant.level != Level::None && local.contains(&grant.domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_completed_or_left_out() {
        for (text, expected) in [
            ("1", Some("1.0.0")),
            ("v1.2", Some("1.2.0")),
            ("1.2.3-rc.1", Some("1.2.3-rc.1")),
            ("1.2.3.4", None),
            ("1-rc", None),
            ("01.2.3", None),
            ("latest", None),
            ("", None),
        ] {
            assert_eq!(complete_version(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_first_paragraph_is_text() {
        let body = "\n# Title\n\nOne two\nthree.\n\nFour.\n";
        assert_eq!(first_paragraph(body, 200), "One two three.");
        assert_eq!(first_paragraph(body, 8), "One two");
        assert_eq!(first_paragraph("# Only\n", 200), "");
    }
}
