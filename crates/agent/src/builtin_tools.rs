//! The tools by which a model asks for skills: a few that are always the same, however many skills
//! there are.

mod draft;
mod search;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::future::BoxFuture;
use savoir_skill::{Skill, allow_list::AllowList, allowed_tools::ToolGrant};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::search::named;
pub use self::{draft::write as write_draft, search::search};
use super::{
    allowed_tools::{AllowedTools, CallGuard},
    library::{Library, LibraryError, Opened, resource_path},
    skill_tools::SkillTools,
    toolset::{Origin, ToolAnswer, ToolSpec, Toolset},
};

/// Skills that one search finds at most, and if nothing else is said.
const MAX_FOUND: usize = 50;
const FOUND: usize = 10;

/// Shown to an agent that asks for a skill with `context: fork`.
const FOR_A_SUB_AGENT: &str = "This skill is meant for a sub-agent: if you can start one, give it \
    these instructions, and no other tools than those of `allowed_tools` if there are any, and go on \
    with its result. If you cannot, carry it out here with these tools alone, and tell only what came \
    of it.";
/// What goes on if nothing is followed.
const NOTHING_HOLDS: &str = "Nothing that can be called here is refused because of it.";

/// What `use_skill` tells, as Personal Agent has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkillInstructions {
    /// The skill.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What to do.
    pub instructions: String,
    /// Whether it is meant to be carried out by somebody else.
    pub context_fork: bool,
    /// The tools that it allows, by the names of Personal Agent.
    pub allowed_tools: Vec<String>,
    /// What really holds: the same list as the skill writes it, with its conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// The tools that it rules out, as the skill writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// Its other files.
    pub resources: Vec<String>,
    /// The names under which its own tools can be called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// What else there is to know before it is followed, in our words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl SkillInstructions {
    /// What a skill tells, of which these files can be read.
    pub fn of(opened: &Opened, resources: Vec<String>) -> Self {
        let skill = &opened.skill;
        let grants = skill.policy.allowed_tools.as_deref().unwrap_or_default();
        Self {
            name: skill.name.clone(),
            description: skill.description.clone(),
            instructions: skill.body.clone(),
            context_fork: skill.policy.context_fork,
            allowed_tools: grants.iter().map(ToolGrant::display_name).collect(),
            grants: grants.iter().map(ToString::to_string).collect(),
            disallowed_tools: skill
                .policy
                .disallowed_tools
                .iter()
                .map(ToString::to_string)
                .collect(),
            resources,
            tools: Vec::new(),
            note: opened.note.clone(),
        }
    }
}

/// The tools by which a model asks for skills.
#[derive(Debug)]
pub struct BuiltinTools {
    library: Arc<dyn Library>,
    /// What a skill that is loaded narrows; nothing is narrowed for agents of others, who see to it
    /// themselves.
    allowed_tools: Option<Arc<AllowedTools>>,
    /// Where the tools of a skill that is loaded are offered.
    tools: Option<Arc<SkillTools>>,
    /// Whether the calling agent itself runs skills with `context: fork`.
    leaves_forks: bool,
}

impl BuiltinTools {
    /// Tools over a library.
    pub fn new(library: Arc<dyn Library>, allowed_tools: Option<Arc<AllowedTools>>) -> Self {
        Self { library, allowed_tools, tools: None, leaves_forks: false }
    }

    /// Leaves skills with `context: fork` to the calling agent: they restrict no tools here, and the
    /// answer says that the skill is meant for a separate agent.
    #[must_use]
    pub fn leaving_forks(self) -> Self {
        Self { leaves_forks: true, ..self }
    }

    /// Offers the tools of each skill that is loaded.
    #[must_use]
    pub fn with_skill_tools(self, tools: Arc<SkillTools>) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// Loads a skill, and follows it.
    pub async fn use_skill(&self, name: &str) -> Result<SkillInstructions, LibraryError> {
        let opened = self.library.open(name).await?;
        let resources = self.library.resources(name).await?;
        self.library.used(&opened.skill.name).await;
        let tools = self.follow(&opened.skill);
        let note = self.note(&opened);
        Ok(SkillInstructions { tools, note, ..SkillInstructions::of(&opened, resources) })
    }

    fn leaves(&self, skill: &Skill) -> bool {
        self.leaves_forks && skill.policy.context_fork
    }

    /// Notes that the model reads before it follows a skill.
    pub fn note(&self, opened: &Opened) -> Option<String> {
        let before = opened.note.as_deref();
        if !self.leaves(&opened.skill) {
            return before.map(str::to_owned);
        }
        let held = self.held(&opened.skill).unwrap_or_else(|| NOTHING_HOLDS.to_owned());
        Some(noted(before, &format!("{FOR_A_SUB_AGENT} {held}")))
    }

    /// The tools of a forked skill that the allow-list of the current skill permits.
    fn held(&self, skill: &Skill) -> Option<String> {
        let snapshot = self.allowed_tools.as_ref()?.snapshot();
        let followed = snapshot.skill()?;
        let refused: Vec<String> = self.tools_of(skill, |tool| !snapshot.offers(tool));
        let refused = match refused.as_slice() {
            [] => "it frees no other tools".to_owned(),
            names => format!("it refuses the tools {} of this one", names.join(", ")),
        };
        Some(format!(
            "The skill `{followed}` is still followed here, and its list holds: {refused}. The way out \
             is to load another skill with use_skill that allows them, or to carry this one out with \
             `savoir chat`, which starts a sub-agent."
        ))
    }

    /// The names of those tools of a skill that are meant.
    fn tools_of(&self, skill: &Skill, is_meant: impl Fn(&ToolSpec) -> bool) -> Vec<String> {
        let specs = self.tools.as_ref().map(|tools| tools.tools_of(skill)).unwrap_or_default();
        specs.into_iter().filter(is_meant).map(|spec| spec.definition.name).collect()
    }

    /// Starts to follow a skill: enforces its allow-list, and returns the names under which its tools
    /// are offered. A skill that is left to the calling agent changes no list: a tool that the
    /// skill before it refuses stays refused.
    pub fn follow(&self, skill: &Skill) -> Vec<String> {
        if let Some(allowed_tools) = self.allowed_tools.as_ref().filter(|_| !self.leaves(skill)) {
            allowed_tools.follow(&skill.name, AllowList::of(&skill.policy));
        }
        let brought = self.tools.as_ref().map(|tools| tools.offer_skill(skill)).unwrap_or_default();
        let Some(allowed_tools) = self.allowed_tools.as_ref().filter(|_| self.leaves(skill)) else {
            return brought;
        };
        let snapshot = allowed_tools.snapshot();
        self.tools_of(skill, |tool| snapshot.offers(tool))
    }

    /// Reads a text file of a skill.
    pub async fn read_skill_file(&self, name: &str, path: &str) -> Result<String, LibraryError> {
        let path = resource_path(path)?;
        self.library.read(name, &path).await
    }

    /// The skills that fit a question best, with their lines.
    pub async fn search_skills(&self, query: &str, most: usize) -> Result<Value, LibraryError> {
        let skills = self.library.skills().await?;
        let found = search(&skills, query, most.min(MAX_FOUND));
        let lines = found.iter().map(|skill| json!({"name": skill.name, "line": skill.line}));
        let mut told = json!({"skills": lines.collect::<Vec<_>>(), "of": skills.len()});
        let unusable = self.library.unusable().await?;
        let unusable: Vec<_> = named(&unusable, query).take(MAX_FOUND).collect();
        if !unusable.is_empty() {
            told["unusable"] = json!(unusable);
        }
        Ok(told)
    }

    async fn answer(&self, name: &str, given: &Map<String, Value>) -> Result<ToolAnswer, Refused> {
        match name {
            "use_skill" => {
                let told = self.use_skill(text(given, "name")?).await?;
                let told = serde_json::to_value(told).map_err(|error| Refused::failed(&error))?;
                Ok(ToolAnswer::data(told))
            }
            "read_skill_file" => {
                let (name, path) = (text(given, "name")?, text(given, "path")?);
                Ok(ToolAnswer::text(self.read_skill_file(name, path).await?))
            }
            "search_skills" => {
                let most = given.get("limit").and_then(Value::as_u64).unwrap_or(FOUND as u64);
                let most = usize::try_from(most).unwrap_or(MAX_FOUND);
                Ok(ToolAnswer::data(self.search_skills(text(given, "query")?, most).await?))
            }
            "save_skill" => {
                let draft = write_draft(given)?;
                let place = self.library.save(&draft).await?;
                Ok(ToolAnswer::data(json!({
                    "name": draft.name, "enabled": false, "saved": place,
                    "note": "It is kept, and offered to nobody until a person looked at it.",
                })))
            }
            name => {
                Err(Refused { code: "unknown-tool", message: format!("there is no tool `{name}`") })
            }
        }
    }
}

/// Two notes in one.
pub(super) fn noted(before: Option<&str>, also: &str) -> String {
    before.map_or_else(|| also.to_owned(), |before| format!("{before} {also}"))
}

/// Why a call came to nothing.
struct Refused {
    code: &'static str,
    message: String,
}

impl Refused {
    fn failed(error: &dyn std::fmt::Display) -> Self {
        Self { code: "failed", message: error.to_string() }
    }
}

impl From<LibraryError> for Refused {
    fn from(error: LibraryError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

fn text<'a>(given: &'a Map<String, Value>, name: &str) -> Result<&'a str, Refused> {
    let found = given.get(name).and_then(Value::as_str);
    found.ok_or_else(|| Refused {
        code: "missing-argument",
        message: format!("the argument `{name}` is missing, or is no text"),
    })
}

impl Toolset for BuiltinTools {
    fn tools(&self) -> Vec<ToolSpec> {
        let text = |description: &str| json!({"type": "string", "description": description});
        let name = text("The name of the skill, as it is listed");
        let number = json!({"type": "integer", "minimum": 1, "maximum": MAX_FOUND});
        let tool = |name: &str, description: &str, properties: Value, required: &[&str]| {
            ToolSpec::new(name, description, properties, required, Origin::Builtin)
        };
        vec![
            tool(
                "use_skill",
                "Load the instructions of a skill before doing what it is for, and follow them.",
                json!({"name": name}),
                &["name"],
            ),
            tool(
                "read_skill_file",
                "Read a text file that a skill brings along, by its path in the list of resources.",
                json!({"name": name, "path": text("The path inside the skill")}),
                &["name", "path"],
            ),
            tool(
                "search_skills",
                "Find skills that are not listed, by words.",
                json!({"query": text("What it should be for"), "limit": number}),
                &["query"],
            ),
            tool(
                "save_skill",
                "Keep a procedure that worked as a skill. A person looks at it before it is offered.",
                json!({
                    "name": text("A short name: lower-case letters, digits and hyphens"),
                    "description": text("One line: what it does, and when to use it"),
                    "instructions": text("The steps, in Markdown"),
                    "when_to_use": text("When it should be used"),
                    "allowed_tools": text("The only tools that it needs, with blanks between them"),
                }),
                &["name", "description", "instructions"],
            ),
        ]
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        _: CallGuard<'a>,
    ) -> BoxFuture<'a, ToolAnswer> {
        Box::pin(async move {
            self.answer(name, arguments)
                .await
                .unwrap_or_else(|Refused { code, message }| ToolAnswer::failed(code, message))
        })
    }
}
