//! Simulates which installed skills other agents (Claude Code, Codex, …) show to their models.
//!
//! Each rule names its source. Sizes in tokens are estimates, because every host uses a tokenizer
//! of its own. A host is another agent; its catalogue is the list of skills that it shows to its
//! model.

mod reading;

use serde::Serialize;

pub use self::reading::SkillFiles;
use super::{count_that_fit, estimate_tokens, max_line_tokens, shorten_line};

/// The rules of one host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostRules {
    /// The name of the host, as `--agent` takes it.
    pub agent: &'static str,
    /// The part of the context that the catalogue may take, in thousandths.
    pub per_mille: usize,
    /// Maximum number of tokens of the catalogue, however large the context is.
    pub most_tokens: Option<usize>,
    /// Maximum number of characters of one description, with its hint.
    pub most_characters: Option<usize>,
    /// Whether the hint when to use a skill is part of the description.
    pub with_hint: bool,
    /// Whether the path of each skill is shown.
    pub with_path: bool,
    /// How a catalogue that is too long is shortened.
    pub overflow: Overflow,
    /// Maximum number of characters of a name; a skill with a longer one is not loaded.
    pub longest_name: Option<usize>,
    /// The source of the name of a skill.
    pub takes_name: NameSource,
    /// How a skill without a description is handled.
    pub no_description: MissingDescription,
    /// How frontmatter that is not valid YAML is handled.
    pub broken_yaml: BrokenYaml,
    /// How a skill declares that models must not call it.
    pub disables_model_invocation: ModelInvocationField,
    /// How skills of the same name are handled.
    pub same_name: DuplicateNames,
    /// The sources of these rules.
    pub rules: &'static [Rule],
}

/// How a catalogue that is too long is shortened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Overflow {
    /// Whole skills are left out, the least used first.
    LeaveOut,
    /// Descriptions are shortened to the same length; then skills are left out.
    Shorten,
}

/// The source of the name of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameSource {
    /// The name of the folder, even if the skill has another.
    Folder,
    /// The field `name`, or else the name of the folder.
    Field,
}

/// How a skill without a description is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MissingDescription {
    /// The first paragraph of its text is used.
    FirstParagraph,
    /// The skill is not loaded.
    NotLoaded,
}

/// How frontmatter that is not valid YAML is handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BrokenYaml {
    /// Invalid values are put in quotes.
    Quoted,
    /// The skill is not listed.
    NotListed,
}

/// How a skill declares that models must not call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelInvocationField {
    /// This field of the frontmatter is true.
    Field(&'static str),
    /// This value of a file beside SKILL.md is false.
    SideFile {
        file: &'static str,
        /// The path of the value, as keys with dots between them.
        path: &'static str,
    },
}

/// How skills of the same name are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DuplicateNames {
    /// One is shown.
    One,
    /// All are shown.
    All,
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
    /// The host's documentation or source says so.
    Documented,
    /// Users reported it.
    Reported,
    /// An assumption of Savoir.
    Estimate,
}

const TOKENS: Rule = Rule {
    says: "tokens are counted by letters, not by the tokenizer of the model",
    source: "savoir",
    certainty: Certainty::Estimate,
};

/// All hosts whose rules are known.
pub const HOSTS: [HostRules; 2] = [
    HostRules {
        agent: "claude-code",
        per_mille: 10,
        most_tokens: None,
        most_characters: Some(1536),
        with_hint: true,
        with_path: false,
        overflow: Overflow::LeaveOut,
        longest_name: None,
        takes_name: NameSource::Folder,
        no_description: MissingDescription::FirstParagraph,
        broken_yaml: BrokenYaml::NotListed,
        disables_model_invocation: ModelInvocationField::Field("disable-model-invocation"),
        same_name: DuplicateNames::One,
        rules: &[
            Rule {
                says: "a skill has the name of its folder, and fields that are not known are ignored",
                source: "documentation of Claude Code",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "without a description the first paragraph of the text is shown",
                source: "documentation of Claude Code",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "headings before it are no paragraph",
                source: "savoir",
                certainty: Certainty::Estimate,
            },
            Rule {
                says: "a skill whose frontmatter is no YAML is not listed",
                source: "reports of users",
                certainty: Certainty::Reported,
            },
            Rule {
                says: "of skills with the same name one is listed; here the first by its path",
                source: "savoir",
                certainty: Certainty::Estimate,
            },
            Rule {
                says: "description and when_to_use together are cut at 1536 characters",
                source: "documentation of Claude Code",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "disable-model-invocation hides a skill from the model",
                source: "documentation of Claude Code",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "the catalogue takes about 1 % of the context",
                source: "documentation of Claude Code and reports of users",
                certainty: Certainty::Reported,
            },
            Rule {
                says: "the least used skills are left out first; without its records, the last by name",
                source: "reports of users, and savoir",
                certainty: Certainty::Estimate,
            },
            TOKENS,
        ],
    },
    HostRules {
        agent: "codex",
        per_mille: 20,
        most_tokens: Some(10_000),
        most_characters: Some(1024),
        with_hint: false,
        with_path: true,
        overflow: Overflow::Shorten,
        longest_name: Some(64),
        takes_name: NameSource::Field,
        no_description: MissingDescription::NotLoaded,
        broken_yaml: BrokenYaml::Quoted,
        disables_model_invocation: ModelInvocationField::SideFile {
            file: "agents/openai.yaml",
            path: "policy.allow_implicit_invocation",
        },
        same_name: DuplicateNames::All,
        rules: &[
            Rule {
                says: "of SKILL.md only name, description and metadata.short-description are read; \
                       a skill without a name has that of its folder",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "a skill without a description is not loaded",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "values that break the YAML are put in quotes, line by line, and it is read again",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "a description is cut at 1024 characters",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "skills of the same name are all listed, each with its path",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "the catalogue takes 2 % of the context, at most 10,000 tokens",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "descriptions are shortened evenly, then skills are left out",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "policy.allow_implicit_invocation: false in agents/openai.yaml hides a skill from \
                       the model; disable-model-invocation is not read",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            Rule {
                says: "a name has at most 64 characters",
                source: "source of Codex",
                certainty: Certainty::Documented,
            },
            TOKENS,
        ],
    },
];

/// A skill as it is installed for a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstalledSkill {
    pub name: String,
    /// The description in the skill.
    pub description: String,
    /// When to use it.
    pub when_to_use: Option<String>,
    /// The path of the SKILL.md, as the host shows it.
    pub path: String,
    /// Whether the model may use the skill without being asked for it by name.
    pub model_invocable: bool,
    /// Why the host cannot load it.
    pub broken: Option<String>,
}

/// The catalogue that the model of a host sees.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulation {
    /// The host.
    pub agent: &'static str,
    /// Tokens of the context.
    pub context: usize,
    /// Tokens that the catalogue may take.
    pub budget: usize,
    /// The estimated number of tokens of the catalogue.
    pub tokens: usize,
    /// The skills, in the order of the catalogue.
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
    /// The line in the catalogue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<String>,
    /// Whether the line was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Why the skill is left out or its line was cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl SkillVisibility {
    fn hidden(name: String, path: String, why: impl Into<String>) -> Self {
        Self { name, path, visible: false, line: None, truncated: false, why: Some(why.into()) }
    }
}

/// A skill that has a line in the catalogue.
struct CatalogueEntry {
    name: String,
    path: String,
    line: String,
    cut: bool,
}

impl HostRules {
    /// The rules of a host.
    pub fn of(agent: &str) -> Option<&'static Self> {
        HOSTS.iter().find(|rules| rules.agent == agent)
    }

    /// The number of tokens that the catalogue may take in a context.
    pub fn budget(&self, context: usize) -> usize {
        let share = context.saturating_mul(self.per_mille) / 1000;
        self.most_tokens.map_or(share, |most| share.min(most))
    }

    /// Simulates the catalogue for a model with a context of `context` tokens.
    pub fn simulate(&self, mut skills: Vec<InstalledSkill>, context: usize) -> Simulation {
        skills.sort_by(|a, b| a.name.cmp(&b.name).then_with(|| a.path.cmp(&b.path)));
        let budget = self.budget(context);
        let mut hidden = Vec::new();
        let mut entries: Vec<CatalogueEntry> = Vec::new();
        for skill in skills {
            match self.hidden_reason(&skill) {
                Some(why) => hidden.push(SkillVisibility::hidden(skill.name, skill.path, why)),
                None if self.same_name == DuplicateNames::One
                    && entries.last().is_some_and(|last| last.name == skill.name) =>
                {
                    let why = "another skill has the same name";
                    hidden.push(SkillVisibility::hidden(skill.name, skill.path, why));
                }
                None => entries.push(self.entry(skill)),
            }
        }
        let mut visibilities = self.fit(entries, budget);
        let lines = visibilities.iter().filter_map(|visibility| visibility.line.as_deref());
        let tokens = lines.map(estimate_tokens).sum();
        visibilities.extend(hidden);
        Simulation {
            agent: self.agent,
            context,
            budget,
            tokens,
            skills: visibilities,
            rules: self.rules,
        }
    }

    fn hidden_reason(&self, skill: &InstalledSkill) -> Option<String> {
        if let Some(why) = &skill.broken {
            return Some(why.clone());
        }
        if !skill.model_invocable {
            return Some("it says that it is only for people to call".to_owned());
        }
        let longest = self.longest_name?;
        let length = skill.name.chars().count();
        (length > longest).then(|| format!("its name has {length} characters, {longest} are read"))
    }

    fn entry(&self, skill: InstalledSkill) -> CatalogueEntry {
        let mut text = skill.description.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.with_hint
            && let Some(hint) = &skill.when_to_use
        {
            text.push(' ');
            text.push_str(hint.trim());
        }
        let most = self.most_characters.unwrap_or(usize::MAX);
        let end = text.char_indices().nth(most).map(|(at, _)| at);
        if let Some(end) = end {
            text.truncate(end);
        }
        let path = if self.with_path { format!(" (file: {})", skill.path) } else { String::new() };
        CatalogueEntry {
            line: format!("- {}: {text}{path}", skill.name),
            name: skill.name,
            path: skill.path,
            cut: end.is_some(),
        }
    }

    fn fit(&self, entries: Vec<CatalogueEntry>, budget: usize) -> Vec<SkillVisibility> {
        let whole: Vec<usize> = entries.iter().map(|entry| estimate_tokens(&entry.line)).collect();
        let least: Vec<usize> = match self.overflow {
            Overflow::LeaveOut => whole.clone(),
            Overflow::Shorten => {
                let name = |entry: &CatalogueEntry| estimate_tokens(&entry.name) + 4;
                entries.iter().zip(&whole).map(|(entry, whole)| name(entry).min(*whole)).collect()
            }
        };
        let (count, room) = if whole.iter().sum::<usize>() <= budget {
            (entries.len(), budget)
        } else {
            count_that_fit(&least, budget)
        };
        let share = max_line_tokens(&whole[..count], &least[..count], room);
        let entries = entries.into_iter().zip(&least).enumerate();
        entries
            .map(|(index, (entry, least))| {
                if index >= count {
                    let why = format!("the catalogue of {budget} tokens is full");
                    return SkillVisibility::hidden(entry.name, entry.path, why);
                }
                let shorter = shorten_line(&entry.line, share.max(*least));
                let why = match (&shorter, entry.cut) {
                    (Some(_), _) => Some("all descriptions are shortened to fit".to_owned()),
                    (None, true) => Some("its description is too long".to_owned()),
                    (None, false) => None,
                };
                SkillVisibility {
                    name: entry.name,
                    path: entry.path,
                    visible: true,
                    truncated: why.is_some(),
                    line: Some(shorter.unwrap_or(entry.line)),
                    why,
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installed(name: &str, words: usize) -> InstalledSkill {
        InstalledSkill {
            name: name.to_owned(),
            description: vec!["word"; words].join(" "),
            path: format!("/skills/{name}/SKILL.md"),
            model_invocable: true,
            ..InstalledSkill::default()
        }
    }

    fn visibilities(
        agent: &str,
        skills: Vec<InstalledSkill>,
        context: usize,
    ) -> Vec<SkillVisibility> {
        HostRules::of(agent).unwrap().simulate(skills, context).skills
    }

    #[test]
    fn budgets_of_hosts() {
        assert_eq!(HostRules::of("claude-code").unwrap().budget(200_000), 2000);
        assert_eq!(HostRules::of("codex").unwrap().budget(200_000), 4000);
        assert_eq!(HostRules::of("codex").unwrap().budget(2_000_000), 10_000);
        assert!(HostRules::of("nobody").is_none());
    }

    #[test]
    fn claude_code_cuts_and_leaves_out() {
        let mut hinted = installed("b", 3);
        hinted.when_to_use = Some("always".to_owned());
        let mut hidden = installed("c", 3);
        hidden.model_invocable = false;
        let found = visibilities("claude-code", vec![installed("a", 600), hinted, hidden], 200_000);
        assert_eq!(found[0].line.as_ref().unwrap().chars().count(), 1536 + "- a: ".len());
        assert!(found[0].truncated && found[0].visible);
        assert_eq!(found[1].line.as_deref(), Some("- b: word word word always"));
        assert!(!found[2].visible && found[2].why.as_ref().unwrap().contains("people"));

        let many = (0..100).map(|n| installed(&format!("s{n:02}"), 50)).collect();
        let found = visibilities("claude-code", many, 200_000);
        let visible = found.iter().filter(|visibility| visibility.visible).count();
        assert!((20..60).contains(&visible), "{visible}");
        assert!(
            found[..visible].iter().all(|visibility| visibility.visible && !visibility.truncated)
        );
        assert!(found[99].why.as_ref().unwrap().contains("full"), "{:?}", found[99]);
    }

    #[test]
    fn codex_shortens_before_it_leaves_out() {
        let many: Vec<_> = (0..100).map(|n| installed(&format!("s{n:02}"), 100)).collect();
        let rules = HostRules::of("codex").unwrap();
        let simulation = rules.simulate(many.clone(), 200_000);
        assert!(simulation.tokens <= simulation.budget, "{simulation:?}");
        assert!(
            simulation.skills.iter().all(|visibility| visibility.visible && visibility.truncated)
        );
        let tiny = rules.simulate(many, 10_000);
        assert!(tiny.tokens <= tiny.budget);
        assert!(tiny.skills.iter().any(|visibility| !visibility.visible));
        let long = visibilities("codex", vec![installed(&"n".repeat(65), 1)], 200_000);
        assert!(!long[0].visible);
    }

    #[test]
    fn skills_with_the_same_name() {
        let mut other = installed("a", 2);
        other.path = "/z/a/SKILL.md".to_owned();
        let twins = vec![other, installed("a", 1)];
        let codex = visibilities("codex", twins.clone(), 200_000);
        assert_eq!((codex[0].visible, codex[1].visible), (true, true));
        let claude = visibilities("claude-code", twins, 200_000);
        assert_eq!((claude[0].visible, claude[1].visible), (true, false));
        assert_eq!(claude[1].path, "/z/a/SKILL.md");
    }

    #[test]
    fn codex_cuts_long_descriptions() {
        let found = visibilities("codex", vec![installed("a", 600)], 200_000);
        assert!(found[0].visible && found[0].truncated);
        let line = found[0].line.as_ref().unwrap();
        assert_eq!(line.split(" (file: ").next().unwrap().chars().count(), 1024 + "- a: ".len());
    }
}
