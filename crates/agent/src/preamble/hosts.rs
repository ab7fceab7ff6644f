//! Simulates which installed skills other agents, such as Claude Code, show to their models.
//!
//! A host is another agent; its catalog is the list of skills that it shows to its model. The
//! rules follow requests of real releases that were recorded; each rule names its source. The
//! recordings are in `tests/data/catalogues.json`, and a test compares them with the simulation.

mod claude_code;
mod codex;
mod fields;
mod gemini_cli;
mod goose;
mod opencode;
mod qwen_code;

use std::collections::HashSet;

use serde::Serialize;

/// Bytes that count as one token where a host does not count them.
const BYTES_PER_TOKEN: usize = 4;

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
    GeminiCli,
    Goose,
    Opencode,
    QwenCode,
}

/// One rule, and its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// The behavior of the host.
    #[serde(rename = "says")]
    pub behavior: &'static str,
    /// Where the rule comes from: a recorded request, or an assumption of Savoir.
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
pub const HOSTS: [HostRules; 6] = [
    HostRules {
        agent: "claude-code",
        version: claude_code::VERSION,
        rules: claude_code::RULES,
        host: Host::ClaudeCode,
    },
    HostRules { agent: "codex", version: codex::VERSION, rules: codex::RULES, host: Host::Codex },
    HostRules {
        agent: "gemini-cli",
        version: gemini_cli::VERSION,
        rules: gemini_cli::RULES,
        host: Host::GeminiCli,
    },
    HostRules { agent: "goose", version: goose::VERSION, rules: goose::RULES, host: Host::Goose },
    HostRules {
        agent: "opencode",
        version: opencode::VERSION,
        rules: opencode::RULES,
        host: Host::Opencode,
    },
    HostRules {
        agent: "qwen-code",
        version: qwen_code::VERSION,
        rules: qwen_code::RULES,
        host: Host::QwenCode,
    },
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

/// The catalog that the model of a host sees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    /// The host.
    pub agent: &'static str,
    /// The release of the host whose rules these are.
    pub version: &'static str,
    /// Tokens of the context.
    pub context: usize,
    /// Tokens that the catalog may take: the whole context if the host sets no limit.
    pub budget: usize,
    /// Tokens of the catalog as the host counts them, including its built-in skills.
    pub tokens: usize,
    /// The skills, in the order of the catalog; then those that are not in it.
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
    /// Whether the skill is in the catalog.
    pub visible: bool,
    /// How much of the description is in the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<ShownDescription>,
    /// Characters of the description in the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub characters: Option<usize>,
    /// The line in the catalog.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Why the skill is left out or its description is not whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// How much of a description is in a catalog.
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

    /// A skill in the catalog. `characters` of its description are shown.
    fn listed(skill: InstalledSkill, characters: usize, line: String) -> Self {
        let (description, why) = match skill.description.chars().count() {
            0 => (ShownDescription::Dropped, None),
            _ if characters == 0 => {
                (ShownDescription::Dropped, Some("the catalog has no room for its description"))
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
            Host::Codex => Some(codex::SIDE_FILE),
            _ => None,
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
            Host::GeminiCli => gemini_cli::read(files),
            Host::Goose => goose::read(files),
            Host::Opencode => opencode::read(files),
            Host::QwenCode => qwen_code::read(files),
        }
    }

    /// Simulates the catalog for a model with a context of `context` tokens.
    pub fn simulate(&self, skills: Vec<InstalledSkill>, context: usize) -> Simulation {
        let Catalogue { budget, tokens, skills } = match self.host {
            Host::ClaudeCode => claude_code::catalogue(skills, context),
            Host::Codex => codex::catalogue(skills, context),
            Host::GeminiCli => gemini_cli::catalogue(skills, context),
            Host::Goose => goose::catalogue(skills, context),
            Host::Opencode => opencode::catalogue(skills, context),
            Host::QwenCode => qwen_code::catalogue(skills, context),
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

/// Keeps the first of the skills with the same name.
fn split_duplicates(skills: Vec<InstalledSkill>) -> (Vec<InstalledSkill>, Vec<SkillVisibility>) {
    let mut names = HashSet::new();
    let (kept, others): (Vec<_>, Vec<_>) =
        skills.into_iter().partition(|skill| names.insert(skill.name.clone()));
    let why = "another skill has the same name";
    (kept, others.into_iter().map(|skill| SkillVisibility::hidden(skill, why)).collect())
}

/// Builds the catalog of a host without a limit. Of skills with the same name, that of the project
/// counts, else the first path; `arrange` puts the skills in the order of the host, and `text` is how
/// it lists one.
fn list_whole(
    mut skills: Vec<InstalledSkill>,
    context: usize,
    arrange: impl FnOnce(&mut [InstalledSkill]),
    text: impl Fn(&InstalledSkill) -> String,
) -> Catalogue {
    skills.sort_by_cached_key(|skill| (skill.scope == SkillScope::User, skill.path.clone()));
    let (skills, hidden) = split_hidden(skills);
    let (mut skills, duplicates) = split_duplicates(skills);
    arrange(&mut skills);
    let mut tokens = 0;
    let mut listed = Vec::with_capacity(skills.len());
    for skill in skills {
        let text = text(&skill);
        tokens += text.len().div_ceil(BYTES_PER_TOKEN);
        let characters = skill.description.chars().count();
        listed.push(SkillVisibility::listed(skill, characters, text));
    }
    listed.extend(duplicates);
    listed.extend(hidden);
    Catalogue { budget: context, tokens, skills: listed }
}
