//! Simulates which installed skills other agents (Claude Code, Codex) show to their models.
//!
//! A host is another agent; its catalogue is the list of skills that it shows to its model. The
//! rules follow requests of real releases that were recorded; each rule names its source. The
//! recordings are in `tests/data/catalogues.json`, and a test compares them with the simulation.

mod claude_code;
mod codex;
mod fields;

use serde::Serialize;

/// The rules of one host.
#[derive(Clone, Copy, Debug)]
pub struct HostRules {
    /// The name of the host, as `--agent` takes it.
    pub agent: &'static str,
    /// The release whose requests were recorded.
    pub version: &'static str,
    /// The behavior of the host, with the sources.
    pub rules: &'static [Rule],
    host: Host,
}

#[derive(Clone, Copy, Debug)]
enum Host {
    ClaudeCode,
    Codex,
}

/// One rule, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The behavior of the host.
    pub says: &'static str,
    /// The document or person that describes the rule.
    pub source: &'static str,
    pub certainty: Certainty,
}

/// The reliability of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certainty {
    /// A recorded request of the host shows it.
    Recorded,
    /// An assumption of Savoir.
    Estimate,
}

/// All hosts whose rules are known.
pub const HOSTS: [HostRules; 2] = [
    HostRules {
        agent: "claude-code",
        version: claude_code::VERSION,
        rules: claude_code::RULES,
        host: Host::ClaudeCode,
    },
    HostRules { agent: "codex", version: codex::VERSION, rules: codex::RULES, host: Host::Codex },
];

/// Where a skill is installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SkillScope {
    User,
    #[default]
    Project,
}

/// The files of a skill that a host reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct SkillFiles<'a> {
    /// The name of the folder.
    pub folder: &'a str,
    /// The path of SKILL.md.
    pub path: &'a str,
    /// The folder with all skills in which the host found this one; empty if it is not known.
    pub root: &'a str,
    pub scope: SkillScope,
    /// The content of SKILL.md.
    pub text: &'a str,
    /// The content of the side file of the host, if the skill has it.
    pub side: Option<&'a str>,
}

impl SkillFiles<'_> {
    /// The path of SKILL.md below the root.
    fn path_in_root(&self) -> &str {
        let below = self.path.strip_prefix(self.root.trim_end_matches(['/', '\\']));
        below.unwrap_or(self.path).trim_start_matches(['/', '\\'])
    }

    /// The names of the folders between the root and SKILL.md.
    fn folders_in_root(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.path_in_root().split(['/', '\\']).collect();
        names.pop();
        names
    }

    fn has_exact_file_name(&self) -> bool {
        self.path.rsplit(['/', '\\']).next() == Some("SKILL.md")
    }
}

/// A skill as a host reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledSkill {
    /// The name by which the model calls it.
    pub name: String,
    /// Another name that is shown behind the name.
    pub label: Option<String>,
    /// The description as it is shown if there is room for it.
    pub description: String,
    /// Whether the host cut the description because of its length.
    pub cut: bool,
    /// The path of SKILL.md.
    pub path: String,
    /// The folder with all skills in which the host found this one.
    pub root: String,
    /// The path of SKILL.md below the root.
    pub path_in_root: String,
    pub scope: SkillScope,
    /// Why the host does not show it to its model.
    pub hidden: Option<String>,
}

impl InstalledSkill {
    fn new(files: &SkillFiles<'_>) -> Self {
        Self {
            name: files.folder.to_owned(),
            path: files.path.to_owned(),
            root: files.root.to_owned(),
            path_in_root: files.path_in_root().to_owned(),
            scope: files.scope,
            ..Self::default()
        }
    }

    fn hidden(self, why: impl Into<String>) -> Self {
        Self { hidden: Some(why.into()), ..self }
    }
}

/// The catalogue that the model of a host sees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    /// The host.
    pub agent: &'static str,
    /// The release of the host whose rules these are.
    pub version: &'static str,
    /// Tokens of the context.
    pub context: usize,
    /// Tokens that the catalogue may take.
    pub budget: usize,
    /// Tokens of the catalogue as the host counts them, including its built-in skills.
    pub tokens: usize,
    /// The skills, in the order of the catalogue; then those that are not in it.
    pub skills: Vec<SkillVisibility>,
    /// The rules, with their sources.
    pub rules: &'static [Rule],
}

/// How a model sees one skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkillVisibility {
    /// The name of the skill.
    pub name: String,
    /// The path of the SKILL.md.
    pub path: String,
    /// Whether the skill is in the catalogue.
    pub visible: bool,
    /// How much of the description is in the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<ShownDescription>,
    /// Characters of the description in the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub characters: Option<usize>,
    /// The line in the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Why the skill is left out or its description is not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How much of a description is in a catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShownDescription {
    /// All of it.
    Whole,
    /// The beginning.
    Cut,
    /// Nothing: the model sees only the name.
    Dropped,
}

impl SkillVisibility {
    fn hidden(skill: InstalledSkill, why: impl Into<String>) -> Self {
        Self {
            name: skill.name,
            path: skill.path,
            visible: false,
            description: None,
            characters: None,
            line: None,
            why: Some(why.into()),
        }
    }

    /// A skill in the catalogue. `characters` of its description are shown.
    fn listed(skill: InstalledSkill, characters: usize, line: String) -> Self {
        let (description, why) = match skill.description.chars().count() {
            0 => (ShownDescription::Dropped, None),
            _ if characters == 0 => {
                (ShownDescription::Dropped, Some("the catalogue has no room for its description"))
            }
            all if characters < all => {
                (ShownDescription::Cut, Some("all descriptions are shortened to fit"))
            }
            _ if skill.cut => (ShownDescription::Cut, Some("its description is too long")),
            _ => (ShownDescription::Whole, None),
        };
        Self {
            name: skill.name,
            path: skill.path,
            visible: true,
            description: Some(description),
            characters: Some(characters),
            line: Some(line),
            why: why.map(str::to_owned),
        }
    }

    /// Whether the model does not see the whole description.
    pub fn is_shortened(&self) -> bool {
        matches!(self.description, Some(ShownDescription::Cut | ShownDescription::Dropped))
    }
}

/// What a host makes of its skills.
struct Catalogue {
    budget: usize,
    tokens: usize,
    skills: Vec<SkillVisibility>,
}

impl HostRules {
    /// The rules of a host.
    pub fn of(agent: &str) -> Option<&'static Self> {
        HOSTS.iter().find(|rules| rules.agent == agent)
    }

    /// The file beside SKILL.md that the host reads.
    pub fn side_file(&self) -> Option<&'static str> {
        match self.host {
            Host::ClaudeCode => None,
            Host::Codex => Some(codex::SIDE_FILE),
        }
    }

    /// Reads a skill as the host does.
    pub fn read(&self, files: &SkillFiles<'_>) -> InstalledSkill {
        if !files.has_exact_file_name() {
            let why = "its file is not named SKILL.md";
            return InstalledSkill::new(files).hidden(why);
        }
        match self.host {
            Host::ClaudeCode => claude_code::read(files),
            Host::Codex => codex::read(files),
        }
    }

    /// Simulates the catalogue for a model with a context of `context` tokens.
    pub fn simulate(&self, skills: Vec<InstalledSkill>, context: usize) -> Simulation {
        let Catalogue { budget, tokens, skills } = match self.host {
            Host::ClaudeCode => claude_code::catalogue(skills, context),
            Host::Codex => codex::catalogue(skills, context),
        };
        let Self { agent, version, rules, .. } = *self;
        Simulation { agent, version, context, budget, tokens, skills, rules }
    }
}

/// Separates the skills that a host shows from the others.
fn split_hidden(skills: Vec<InstalledSkill>) -> (Vec<InstalledSkill>, Vec<SkillVisibility>) {
    let mut hidden = Vec::new();
    let mut shown = Vec::with_capacity(skills.len());
    for mut skill in skills {
        match skill.hidden.take() {
            Some(why) => hidden.push(SkillVisibility::hidden(skill, why)),
            None => shown.push(skill),
        }
    }
    (shown, hidden)
}
