//! Finds stored skills and the ones that a user can see.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use bytes::Bytes;
use futures::future::BoxFuture;
use savoir_flow::skill_lookup::{LoadError, SkillLookup};
use savoir_skill::{
    Skill,
    dialect::{
        agent_flow::{self, Purpose, Refusal, StoredSkillFile, model_settings},
        personal_agent::Lifecycle,
    },
    skill::Input,
};
use savoir_store::{SkillFacts, SkillFile, SkillFiles, StoreError, Timestamp, WriteError};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    error::{ApiError, ApiResult, WithRouteMessage as _},
    limits::MAX_CACHED_SKILLS,
    personal::{self, RESERVED_NAMES, SkillWriter, StoreSkillError},
};

/// How often the time of the last use of a skill is stored.
const LAST_USED_INTERVAL: Duration = Duration::from_mins(1);

/// All skills of the server.
#[derive(Debug)]
pub(crate) struct Skills {
    skill_writer: SkillWriter,
    files: SkillFiles,
    /// Parsed skills, valid as long as their files are unchanged.
    read: Mutex<HashMap<String, Arc<ParsedSkill>>>,
}

/// A stored skill.
#[derive(Debug)]
pub(crate) struct ParsedSkill {
    pub(crate) file: SkillFile,
    pub(crate) stored: StoredSkillFile,
    /// The response body that shows the skill.
    pub(crate) detail: Bytes,
    /// The parsed skill for agents, or the reason why it cannot be used.
    portable: OnceLock<Result<Skill, String>>,
}

/// A skill with its text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkillDetail {
    name: String,
    description: String,
    license: Option<String>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    inputs: Option<Vec<SkillInput>>,
    knowledge_base: Option<String>,
    model: Option<SkillModel>,
    user_id: Option<String>,
    /// The body without blanks around it.
    prompt: String,
    /// The whole file.
    raw_content: String,
    created_at: String,
    updated_at: String,
}

/// A value that a skill takes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkillInput {
    name: String,
    label: String,
    #[serde(rename = "type")]
    kind: &'static str,
    required: bool,
    default: Option<String>,
    description: Option<String>,
}

/// How a skill has the model called.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkillModel {
    temperature: f64,
    max_tokens: u32,
}

/// A skill in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkillSummary {
    name: String,
    description: String,
    inputs: Option<Vec<SkillInput>>,
    has_inputs: bool,
    has_knowledge_base: bool,
    updated_at: String,
}

impl ParsedSkill {
    fn new(file: SkillFile, stored: StoredSkillFile) -> Self {
        let detail = SkillDetail::of(&file, &stored);
        let detail = serde_json::to_vec(&detail).unwrap_or_default().into();
        Self { file, stored, detail, portable: OnceLock::new() }
    }

    /// The parsed skill for agents, or the reason why it cannot be used.
    pub(crate) fn parsed_skill(&self) -> Result<&Skill, &str> {
        let read = || personal::read(&self.file.name, &self.file.text);
        self.portable.get_or_init(read).as_ref().map_err(String::as_str)
    }

    /// The metadata of the skill, if stored metadata exists for it.
    pub(crate) fn facts(&self, noted: Option<&SkillFacts>) -> SkillFacts {
        SkillFacts::holding(noted, self.stored.owner.clone(), self.file.created_at)
    }

    pub(crate) fn summary(&self) -> SkillSummary {
        let skill = &self.stored.skill;
        SkillSummary {
            name: skill.name.clone(),
            description: skill.description.clone(),
            inputs: inputs(skill),
            has_inputs: !skill.inputs.is_empty(),
            has_knowledge_base: skill.policy.knowledge_base.is_some(),
            updated_at: self.file.updated_at.to_string(),
        }
    }

    pub(crate) fn owner(&self) -> Option<&str> {
        self.stored.owner.as_deref()
    }

    /// Whether an agent of the caller may see the skill.
    fn is_visible_to(&self, caller: &Caller) -> bool {
        (self.owner().is_none() || self.is_owned_by(caller))
            && !RESERVED_NAMES.contains(&self.file.name.as_str())
    }

    fn is_owned_by(&self, caller: &Caller) -> bool {
        self.owner() == Some(caller.owner_id().as_str())
    }
}

impl SkillDetail {
    fn of(file: &SkillFile, stored: &StoredSkillFile) -> Self {
        let skill = &stored.skill;
        let settings = model_settings(skill);
        let model = stored.has_model.then_some(SkillModel {
            temperature: settings.temperature,
            max_tokens: settings.max_tokens,
        });
        Self {
            name: skill.name.clone(),
            description: skill.description.clone(),
            license: skill.license.clone(),
            metadata: stored.metadata.clone(),
            inputs: inputs(skill),
            knowledge_base: skill.policy.knowledge_base.clone(),
            model,
            user_id: stored.owner.clone(),
            prompt: skill.body.trim().to_owned(),
            raw_content: file.text.to_string(),
            created_at: file.created_at.to_string(),
            updated_at: file.updated_at.to_string(),
        }
    }
}

fn inputs(skill: &Skill) -> Option<Vec<SkillInput>> {
    let inputs = skill.inputs.iter().map(|input: &Input| SkillInput {
        name: input.name.clone(),
        label: input.label.clone().unwrap_or_else(|| input.name.clone()),
        kind: input.kind.as_str(),
        required: input.required,
        default: input.default.as_ref().map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }),
        description: input.description.clone(),
    });
    Some(inputs.collect::<Vec<_>>()).filter(|inputs| !inputs.is_empty())
}

impl Skills {
    pub(crate) fn new(skill_writer: SkillWriter) -> Self {
        Self { files: skill_writer.files().clone(), skill_writer, read: Mutex::default() }
    }

    pub(crate) fn skill_writer(&self) -> &SkillWriter {
        &self.skill_writer
    }

    /// Skills that an agent of the caller may see: their own and those without an owner, sorted by
    /// name. Skills of other users are excluded, even for administrators.
    pub(crate) async fn personal(
        &self,
        caller: &Caller,
    ) -> Result<Vec<Arc<ParsedSkill>>, StoreError> {
        let files = self.files.list().await?;
        let kept = files.into_iter().filter_map(|file| self.parse_stored(file).ok());
        Ok(kept.filter(|kept| kept.is_visible_to(caller)).collect())
    }

    /// Like `personal`, for one skill; `None` if there is none with this name.
    pub(crate) async fn personal_one(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Option<Arc<ParsedSkill>>, StoreError> {
        let file = match self.files.read(name).await {
            Ok(file) => file,
            Err(StoreError::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        let kept = file.and_then(|file| self.parse_stored(file).ok());
        Ok(kept.filter(|kept| kept.is_visible_to(caller)))
    }

    /// Skills in the list of a user: their own, or all for an administrator. Newest first.
    pub(crate) async fn list(&self, caller: &Caller) -> Result<Vec<Arc<ParsedSkill>>, StoreError> {
        let files = self.files.list().await?;
        let kept = files.into_iter().filter_map(|file| self.parse_stored(file).ok());
        let mut seen: Vec<Arc<ParsedSkill>> = kept
            .filter(|kept| caller.user.is_admin() || kept.is_owned_by(caller))
            .filter(|kept| !RESERVED_NAMES.contains(&kept.file.name.as_str()))
            .collect();
        seen.sort_by(|a, b| {
            let newest = b.file.updated_at.cmp(&a.file.updated_at);
            newest.then_with(|| a.file.name.cmp(&b.file.name))
        });
        Ok(seen)
    }

    /// A skill that the caller may read and run: their own, one without an owner, or any for an
    /// administrator. A skill of another user is reported as not found.
    pub(crate) async fn get(&self, caller: &Caller, name: &str) -> ApiResult<Arc<ParsedSkill>> {
        self.find(caller, name, "Failed to get skill").await
    }

    /// Like `get`, for a run, which has its own message for internal errors.
    ///
    /// Counts as a use, which reactivates an archived skill. A disabled skill stays disabled until
    /// its user enables it.
    pub(crate) async fn load(&self, caller: &Caller, name: &str) -> ApiResult<Arc<ParsedSkill>> {
        let failed = "Failed to load skill";
        let kept = self.find(caller, name, failed).await?;
        let facts_of = self.skill_writer.database().skill_facts();
        let facts = kept.facts(facts_of.get(name).await.or_failed(failed)?.as_ref());
        if !facts.enabled {
            let message = format!("Skill '{name}' is disabled; enable it first");
            return Err(ApiError::field(StatusCode::CONFLICT, "name", message));
        }
        let lately =
            facts.last_used.is_some_and(|used| used.plus(LAST_USED_INTERVAL) > Timestamp::now());
        if !lately || facts.lifecycle != Lifecycle::Active {
            facts_of.used(name, &facts).await.or_failed(failed)?;
        }
        Ok(kept)
    }

    /// Fails unless the caller may change a skill: their own, or any for an administrator.
    pub(crate) async fn check_changeable(&self, caller: &Caller, name: &str) -> ApiResult<()> {
        self.changeable(caller, name, "Failed to update skill").await.map(drop)
    }

    async fn find(&self, caller: &Caller, name: &str, failed: &str) -> ApiResult<Arc<ParsedSkill>> {
        agent_flow::check_name(name)?;
        let file = self.files.read(name).await.or_failed(failed)?;
        let file = file.ok_or_else(|| not_found(name))?;
        let kept = match self.parse_stored(file.clone()) {
            Ok(kept) => kept,
            // The owner of a file that cannot be parsed is unknown.
            Err(_) if !caller.user.is_admin() && !owns_text(&file, caller) => {
                return Err(not_found(name));
            }
            Err(refusal) => return Err(refusal.into()),
        };
        let visible = kept.owner().is_none() || kept.is_owned_by(caller) || caller.user.is_admin();
        if visible { Ok(kept) } else { Err(not_found(name)) }
    }

    /// Stores a new skill.
    pub(crate) async fn create(
        &self,
        caller: &Caller,
        name: &str,
        text: &str,
    ) -> ApiResult<Arc<ParsedSkill>> {
        agent_flow::check_name(name)?;
        if RESERVED_NAMES.contains(&name) {
            return Err(refused("name", format!("Skill name '{name}' is reserved")));
        }
        agent_flow::check_size(text.len() as u64)?;
        self.files.check_free(name).await.map_err(|error| create_error(name, &error))?;
        let stored = StoredSkillFile::read(name, text, Purpose::Create)?;
        check_owner(caller, stored.owner.as_deref())?;
        let text = agent_flow::with_owner(text, &caller.owner_id())?;
        let made = self.skill_writer.create(name, &text, &caller.owner_id()).await;
        let made = made.map_err(lock_error)?;
        let made = made.map_err(|error| create_error(name, &error))?;
        Ok(self.parse_stored(made)?)
    }

    /// Replaces the text of a skill.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        name: &str,
        text: &str,
    ) -> ApiResult<Arc<ParsedSkill>> {
        let kept = self.changeable(caller, name, "Failed to update skill").await?;
        agent_flow::check_size(text.len() as u64)?;
        let stored = StoredSkillFile::read(name, text, Purpose::Update)?;
        if stored.owner != kept.owner {
            check_owner(caller, stored.owner.as_deref())?;
        }
        let text = match &kept.owner {
            Some(owner) => agent_flow::with_owner(text, owner)?,
            None => text.to_owned(),
        };
        match self.files.replace(name, &text, &kept.version).await {
            Ok(file) => {
                let understood = self.parse_stored(file)?;
                if understood.stored.owner != kept.owner {
                    self.skill_writer.set_owner(name, understood.owner()).await;
                }
                Ok(understood)
            }
            Err(WriteError::Missing) => Err(not_found(name)),
            Err(WriteError::Changed) => {
                let message = format!("Skill '{name}' was changed in the meantime");
                Err(ApiError::field(StatusCode::CONFLICT, "content", message))
            }
            Err(error) => Err(ApiError::internal("Failed to update skill", &error)),
        }
    }

    /// Deletes a skill with its folder.
    pub(crate) async fn delete(&self, caller: &Caller, name: &str) -> ApiResult<()> {
        let kept = self.changeable(caller, name, "Failed to delete skill").await?;
        match self.skill_writer.remove(name, &kept.version).await.map_err(lock_error)? {
            Ok(()) => Ok(()),
            // Another skill with this name was created at the same time: the one to delete is gone.
            Err(WriteError::Missing | WriteError::Changed) => Err(not_found(name)),
            Err(error) => Err(ApiError::internal("Failed to delete skill", &error)),
        }
    }

    /// The version and the owner of a skill that the caller may change: their own, or any for an
    /// administrator. A file that cannot be parsed can still be fixed.
    async fn changeable(
        &self,
        caller: &Caller,
        name: &str,
        failed: &str,
    ) -> ApiResult<ChangeableSkill> {
        agent_flow::check_name(name)?;
        let file = self.files.read(name).await.or_failed(failed)?;
        let file = file.ok_or_else(|| not_found(name))?;
        let owner = match self.parse_stored(file.clone()) {
            Ok(kept) => kept.stored.owner.clone(),
            // The owner of a file that cannot be parsed is unknown.
            Err(_) if !caller.user.is_admin() && !owns_text(&file, caller) => {
                return Err(not_found(name));
            }
            Err(_) => owner_line(&file.text).map(str::to_owned),
        };
        let own = owner.as_deref() == Some(caller.owner_id().as_str());
        match owner {
            None if !caller.user.is_admin() => Err(ApiError::field(
                StatusCode::FORBIDDEN,
                "user_id",
                "Only an administrator can modify a skill without an owner",
            )),
            Some(_) if !own && !caller.user.is_admin() => Err(not_found(name)),
            owner => Ok(ChangeableSkill { version: file.version, owner }),
        }
    }

    pub(crate) fn parse_stored(&self, file: SkillFile) -> Result<Arc<ParsedSkill>, Refusal> {
        if let Some(kept) = self.cache().get(&file.name)
            && kept.file.version == file.version
        {
            return Ok(Arc::clone(kept));
        }
        let stored = StoredSkillFile::read(&file.name, &file.text, Purpose::Load)?;
        let kept = Arc::new(ParsedSkill::new(file, stored));
        let mut remembered = self.cache();
        if remembered.len() >= MAX_CACHED_SKILLS
            && let Some(other) = remembered.keys().next().cloned()
        {
            remembered.remove(&other);
        }
        remembered.insert(kept.file.name.clone(), Arc::clone(&kept));
        Ok(kept)
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, Arc<ParsedSkill>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct ChangeableSkill {
    version: String,
    owner: Option<String>,
}

/// The owner of a file whose frontmatter cannot be parsed: the line that the server wrote.
fn owner_line(text: &str) -> Option<&str> {
    let line = text.lines().find_map(|line| line.strip_prefix("user_id: '"))?;
    line.strip_suffix('\'')
}

fn owns_text(file: &SkillFile, caller: &Caller) -> bool {
    owner_line(&file.text) == Some(caller.owner_id().as_str())
}

fn check_owner(caller: &Caller, owner: Option<&str>) -> ApiResult<()> {
    match owner {
        Some(owner) if owner != caller.owner_id() && !caller.user.is_admin() => {
            Err(refused("user_id", "Cannot assign a skill to another user"))
        }
        _ => Ok(()),
    }
}

fn refused(field: &str, message: impl Into<String>) -> ApiError {
    ApiError::field(StatusCode::BAD_REQUEST, field, message)
}

fn not_found(name: &str) -> ApiError {
    ApiError::field(StatusCode::NOT_FOUND, "name", format!("Skill '{name}' not found"))
}

/// The response when another request changes the skill at the same time.
fn lock_error(error: StoreSkillError) -> ApiError {
    match error {
        StoreSkillError::Store(error) => ApiError::internal("Failed to keep skill", &error),
        StoreSkillError::Quota(reached) => reached.into(),
        error => ApiError::field(StatusCode::CONFLICT, "name", error.to_string()),
    }
}

fn create_error(name: &str, error: &WriteError) -> ApiError {
    let message = match error {
        WriteError::Exists { existing, has_file: true } => format!(
            "Skill name '{name}' conflicts with existing skill '{existing}' (names are case-insensitive)"
        ),
        WriteError::Exists { existing, has_file: false } => {
            format!("Skill '{existing}' already exists")
        }
        error => return ApiError::internal("Failed to create skill", error),
    };
    ApiError::field(StatusCode::CONFLICT, "name", message)
}

/// The skills that one user can see, for runs.
#[derive(Debug)]
pub(crate) struct PersonalSkills {
    pub(crate) app: crate::App,
    pub(crate) caller: Caller,
}

impl SkillLookup for PersonalSkills {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Skill, LoadError>> {
        Box::pin(async move {
            let kept = self.app.skills.load(&self.caller, name).await;
            kept.map(|kept| kept.stored.skill.clone()).map_err(ApiError::into_load_error)
        })
    }
}
