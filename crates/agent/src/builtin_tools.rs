//! Implements the built-in tools with which a model finds, loads and saves skills. Their number
//! does not depend on the number of skills.

mod draft;
mod search;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use futures::future::BoxFuture;
use savoir_skill::{Skill, allow_list::AllowList, allowed_tools::ToolGrant};
use serde::Serialize;
use serde_json::{Map, Value, json};

pub use self::draft::build_draft;
use self::search::{SearchIndex, named};
use super::{
    allowed_tools::{AllowedTools, CallGuard},
    library::{Library, LibraryError, Opened, resource_path},
    preamble::{Candidate, UnusableSkill},
    skill_tools::SkillTools,
    toolset::{Origin, ToolAnswer, ToolSpec, Toolset},
};

/// Maximum and default number of skills that one search returns.
const MAX_RESULTS: usize = 50;
const DEFAULT_RESULTS: usize = 10;

/// Shown to an agent that asks for a skill with `context: fork`.
const SUB_AGENT_NOTE: &str = "This skill is meant for a sub-agent: if you can start one, give it \
    these instructions, and no other tools than those of `allowed_tools` if there are any, and go on \
    with its result. If you cannot, carry it out here with these tools alone, and tell only what came \
    of it.";
/// The note for a skill whose allow-list refuses no available tool.
const NOT_ENFORCED_NOTE: &str = "Nothing that can be called here is refused because of it.";

/// Who carries out a forked skill if no sub-agent is started for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InlineForks {
    /// An agent that is connected with MCP.
    ByClient,
    /// The model of a chat.
    InChat,
    /// The sub-agent of another forked skill.
    InFork,
}

impl InlineForks {
    /// What to do about tools that the allow-list of the active skill refuses.
    fn hint(self) -> &'static str {
        match self {
            Self::ByClient => {
                "To use them, load a skill that allows them with use_skill, or run this skill in \
                 `savoir chat`, which starts a sub-agent."
            }
            Self::InChat => "To use them, load a skill that allows them with use_skill.",
            Self::InFork => {
                "Do without them: no skill allows more here than the one for which this sub-agent \
                 was started."
            }
        }
    }
}

/// The answer of `use_skill`, in the format of the Personal Agent dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkillInstructions {
    pub name: String,
    pub description: String,
    pub instructions: String,
    /// Whether the skill should run in a fork.
    pub context_fork: bool,
    /// The tools that it allows, by their names in Personal Agent.
    pub allowed_tools: Vec<String>,
    /// The enforced list as the skill writes it, with its conditions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// The tools that it forbids, as the skill writes them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disallowed_tools: Vec<String>,
    /// The other files of the skill.
    pub resources: Vec<String>,
    /// The names under which its own tools can be called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// A note of Savoir about the skill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl SkillInstructions {
    /// Builds the instructions of a skill with these readable files.
    pub fn of(opened: &Opened, resources: Vec<String>) -> Self {
        let skill = &opened.skill;
        let grants = skill.policy.allowed_tools.as_deref().unwrap_or_default();
        Self {
            name: skill.name.clone(),
            description: skill.truncated_description().to_owned(),
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
    /// The allow-list that loading a skill sets. `None` if other agents use these tools over MCP:
    /// they enforce the list themselves.
    allowed_tools: Option<Arc<AllowedTools>>,
    /// Offers the tools of loaded skills.
    tools: Option<Arc<SkillTools>>,
    /// Whether the calling agent itself runs skills with `context: fork`.
    inline_forks: Option<InlineForks>,
    /// The index of the skills of the last search.
    index: Mutex<Option<Arc<SearchIndex>>>,
}

impl BuiltinTools {
    /// Creates the tools for a library.
    pub fn new(library: Arc<dyn Library>, allowed_tools: Option<Arc<AllowedTools>>) -> Self {
        Self { library, allowed_tools, tools: None, inline_forks: None, index: Mutex::default() }
    }

    /// Leaves skills with `context: fork` to the calling agent: they restrict no tools here, and the
    /// answer says that the skill is meant for a separate agent.
    #[must_use]
    pub fn with_forks_left_to_client(self) -> Self {
        self.with_inline_forks(InlineForks::ByClient)
    }

    /// Returns the instructions of forked skills instead of starting a sub-agent.
    #[must_use]
    pub fn with_inline_forks(self, inline_forks: InlineForks) -> Self {
        Self { inline_forks: Some(inline_forks), ..self }
    }

    /// Adds a tool set that offers the tools of each loaded skill.
    #[must_use]
    pub fn with_skill_tools(self, tools: Arc<SkillTools>) -> Self {
        Self { tools: Some(tools), ..self }
    }

    /// Loads a skill, and applies its allow-list.
    pub async fn use_skill(&self, name: &str) -> Result<SkillInstructions, LibraryError> {
        let opened = self.library.open(name).await?;
        self.check_usable(&opened)?;
        let resources = self.library.resources(name).await?;
        self.library.used(&opened.skill.name).await;
        let tools = self.follow(&opened.skill);
        let note = self.note(&opened);
        Ok(SkillInstructions { tools, note, ..SkillInstructions::of(&opened, resources) })
    }

    /// Checks that a skill can be used now: on this machine, and in this mode.
    pub fn check_usable(&self, opened: &Opened) -> Result<(), LibraryError> {
        let skill = &opened.skill;
        if let Some(reason) = self.tools.as_ref().and_then(|tools| tools.explain_not_in_mode(skill))
        {
            let name = skill.name.clone();
            return Err(LibraryError::NotReady { name, code: "not-in-mode", reason });
        }
        opened.check_ready().map(drop)
    }

    fn leaves_fork_to_client(&self, skill: &Skill) -> bool {
        self.inline_forks.is_some() && skill.policy.context_fork
    }

    /// Returns the notes that the model reads before the instructions of a skill.
    pub fn note(&self, opened: &Opened) -> Option<String> {
        let (skill, before) = (&opened.skill, opened.note.as_deref());
        let also = if self.leaves_fork_to_client(skill) {
            let held = self.enforcement_note(skill).unwrap_or_else(|| NOT_ENFORCED_NOTE.to_owned());
            Some(format!("{SUB_AGENT_NOTE} {held}"))
        } else {
            self.unknown_tools_note(skill)
        };
        let lacking = opened.check_ready().ok().flatten();
        let notes = before.map(str::to_owned).into_iter().chain(lacking).chain(also);
        notes.reduce(|before, also| join_notes(Some(&before), &also))
    }

    /// A note for other agents about an allow-list that names no known tool. A chat has a note of
    /// its own, because it knows all tools.
    fn unknown_tools_note(&self, skill: &Skill) -> Option<String> {
        let grants =
            skill.policy.allowed_tools.as_deref().filter(|_| self.inline_forks.is_some())?;
        let is_own = |grant: &ToolGrant| skill.tools.iter().any(|tool| tool.name == grant.name);
        if grants.is_empty() || grants.iter().any(|grant| grant.may_exist() || is_own(grant)) {
            return None;
        }
        let names = grants.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        tracing::warn!(skill = skill.name, names, "a skill allows only unknown tools");
        Some(format!(
            "`allowed-tools` of this skill names no known tool ({names}), so no tool of Savoir can be \
             called while it is followed. Tell the user, or load another skill with use_skill."
        ))
    }

    /// The tools of a forked skill that the allow-list of the current skill permits.
    fn enforcement_note(&self, skill: &Skill) -> Option<String> {
        let snapshot = self.allowed_tools.as_ref()?.snapshot();
        let followed = snapshot.skill()?;
        let refused: Vec<String> = self.tools_of(skill, |tool| !snapshot.offers(tool));
        let refused = match refused.as_slice() {
            [] => "you cannot use other tools".to_owned(),
            names => format!("you cannot use the tools {} of this skill", names.join(", ")),
        };
        Some(format!(
            "The allow-list of the skill `{followed}` is still enforced here: {refused}. {}",
            self.inline_forks.map_or("", InlineForks::hint)
        ))
    }

    /// The names of those tools of a skill that `matches` accepts.
    fn tools_of(&self, skill: &Skill, matches: impl Fn(&ToolSpec) -> bool) -> Vec<String> {
        let specs = self.tools.as_ref().map(|tools| tools.tools_of(skill)).unwrap_or_default();
        specs.into_iter().filter(matches).map(|spec| spec.definition.name).collect()
    }

    /// Applies a skill: enforces its allow-list, and returns the names under which its tools are
    /// offered. A skill that is left to the calling agent changes no list, so tools that the
    /// previous skill forbids stay forbidden.
    pub fn follow(&self, skill: &Skill) -> Vec<String> {
        if let Some(allowed_tools) =
            self.allowed_tools.as_ref().filter(|_| !self.leaves_fork_to_client(skill))
        {
            allowed_tools.follow(&skill.name, AllowList::of(&skill.policy));
        }
        let brought = self.tools.as_ref().map(|tools| tools.offer_skill(skill)).unwrap_or_default();
        let Some(allowed_tools) =
            self.allowed_tools.as_ref().filter(|_| self.leaves_fork_to_client(skill))
        else {
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

    /// Returns the skills that match a query best, with their descriptions.
    pub async fn search_skills(
        &self,
        query: &str,
        max_results: usize,
    ) -> Result<Value, LibraryError> {
        let skills = self.library.skills().await?;
        let index = self.index(&skills);
        let withheld = |skill: &&Candidate| {
            let reason = self.tools.as_ref()?.explain_modes_mismatch(&skill.name, &skill.modes)?;
            Some(UnusableSkill { name: skill.name.clone(), reason })
        };
        let of_other_modes: Vec<_> = skills.iter().filter_map(|skill| withheld(&skill)).collect();
        let max_results = max_results.min(MAX_RESULTS);
        let found = index.search(query, max_results + of_other_modes.len()).into_iter();
        let found = found.filter(|skill| withheld(skill).is_none()).take(max_results);
        let lines = found.map(|skill| json!({"name": skill.name, "line": skill.line}));
        let count = skills.len() - of_other_modes.len();
        let mut answer = json!({"skills": lines.collect::<Vec<_>>(), "of": count});
        let mut unusable = self.library.unusable().await?;
        unusable.extend(of_other_modes);
        let unusable: Vec<_> = named(&unusable, query).take(MAX_RESULTS).collect();
        if !unusable.is_empty() {
            answer["unusable"] = json!(unusable);
        }
        Ok(answer)
    }

    /// The search index of these skills, which is created again when they change.
    fn index(&self, skills: &Arc<[Candidate]>) -> Arc<SearchIndex> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        match &*index {
            Some(index) if index.is_of(skills) => Arc::clone(index),
            _ => Arc::clone(index.insert(Arc::new(SearchIndex::new(Arc::clone(skills))))),
        }
    }

    async fn answer(
        &self,
        name: &str,
        given: &Map<String, Value>,
    ) -> Result<ToolAnswer, CallFailure> {
        match name {
            "use_skill" => {
                let answer = self.use_skill(text(given, "name")?).await?;
                let answer =
                    serde_json::to_value(answer).map_err(|error| CallFailure::failed(&error))?;
                Ok(ToolAnswer::data(answer))
            }
            "read_skill_file" => {
                let (name, path) = (text(given, "name")?, text(given, "path")?);
                Ok(ToolAnswer::text(self.read_skill_file(name, path).await?))
            }
            "search_skills" => {
                let max_results =
                    given.get("limit").and_then(Value::as_u64).unwrap_or(DEFAULT_RESULTS as u64);
                let max_results = usize::try_from(max_results).unwrap_or(MAX_RESULTS);
                Ok(ToolAnswer::data(self.search_skills(text(given, "query")?, max_results).await?))
            }
            "save_skill" => {
                let draft = build_draft(given)?;
                let place = self.library.save(&draft).await?;
                Ok(ToolAnswer::data(json!({
                    "name": draft.name, "enabled": false, "saved": place,
                    "note": "It is saved, and not offered to models until a user has reviewed it.",
                })))
            }
            name => Err(CallFailure {
                code: "unknown-tool",
                message: format!("there is no tool `{name}`"),
            }),
        }
    }
}

/// Joins two notes.
pub(super) fn join_notes(before: Option<&str>, also: &str) -> String {
    before.map_or_else(|| also.to_owned(), |before| format!("{before} {also}"))
}

/// Why a call failed.
struct CallFailure {
    code: &'static str,
    message: String,
}

impl CallFailure {
    fn failed(error: &dyn std::fmt::Display) -> Self {
        Self { code: "failed", message: error.to_string() }
    }
}

impl From<LibraryError> for CallFailure {
    fn from(error: LibraryError) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

fn text<'a>(given: &'a Map<String, Value>, name: &str) -> Result<&'a str, CallFailure> {
    let found = given.get(name).and_then(Value::as_str);
    found.ok_or_else(|| CallFailure {
        code: "missing-argument",
        message: format!("the argument `{name}` is missing or not a string"),
    })
}

impl Toolset for BuiltinTools {
    fn tools(&self) -> Vec<ToolSpec> {
        let text = |description: &str| json!({"type": "string", "description": description});
        let name = text("The name of the skill, as it is listed");
        let number = json!({"type": "integer", "minimum": 1, "maximum": MAX_RESULTS});
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
                .unwrap_or_else(|CallFailure { code, message }| ToolAnswer::failed(code, message))
        })
    }
}
