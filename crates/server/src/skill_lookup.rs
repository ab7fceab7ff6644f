//! Finds stored skills and the ones that a user can see.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use futures::future::BoxFuture;
use savoir_flow::skill_lookup::{LoadError, SkillLookup};
use savoir_scan::Verdict;
use savoir_skill::{
    Skill,
    dialect::{
        agent_flow::{self, Purpose, Refusal, StoredSkillFile, model_settings},
        personal_agent::{Lifecycle, Provenance},
    },
    digest::sha256_hex,
    skill::Input,
};
use savoir_store::{
    SkillFacts, SkillFile, SkillFiles, StoreError, Timestamp, WriteError, name_of_key,
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    error::{ApiError, ApiResult, WithRouteMessage as _},
    limits::MAX_CACHED_SKILLS,
    params::OwnerQuery,
    personal::{
        self, FileOwner, ImportSource, RESERVED_NAMES, SavedSkill, SkillWriter, StoreSkillError,
        TextChange,
    },
    skill_scan,
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
    /// What the scan found in skills that came from elsewhere: the version of their files, and the
    /// verdict.
    verdicts: Mutex<HashMap<String, (String, Verdict)>>,
}

/// A stored skill.
#[derive(Debug)]
pub(crate) struct ParsedSkill {
    pub(crate) file: SkillFile,
    pub(crate) stored: StoredSkillFile,
    /// The response body of the route that shows the skill.
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
    /// The body without leading and trailing white space.
    prompt: String,
    /// The text of SKILL.md.
    raw_content: String,
    created_at: String,
    updated_at: String,
    /// `review` or `block`, if the scan found something in what an API token saved: the skill is
    /// disabled until a user has reviewed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
}

/// An input of a skill.
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

/// The model settings of a skill.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkillModel {
    temperature: f64,
    max_tokens: u32,
}

/// A skill whose text was saved.
#[derive(Debug)]
pub(crate) struct SavedText {
    pub(crate) skill: Arc<ParsedSkill>,
    verdict: Verdict,
}

impl SavedText {
    /// The response body of the route that saved the skill.
    pub(crate) fn detail(&self) -> Bytes {
        if self.verdict == Verdict::Allow {
            return self.skill.detail.clone();
        }
        let verdict = Some(self.verdict.as_str());
        let detail = SkillDetail::of(&self.skill.file, &self.skill.stored);
        serde_json::to_vec(&SkillDetail { verdict, ..detail }).unwrap_or_default().into()
    }
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
    /// The owner; only for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_id: Option<String>,
}

impl ParsedSkill {
    fn new(file: SkillFile, stored: StoredSkillFile) -> Self {
        let detail = SkillDetail::of(&file, &stored);
        let detail = serde_json::to_vec(&detail).unwrap_or_default().into();
        Self { file, stored, detail, portable: OnceLock::new() }
    }

    /// The skill as a run reads it: a skill from elsewhere in its own dialect.
    pub(crate) fn for_run(&self, source: Provenance) -> Result<Skill, Refusal> {
        if source == Provenance::Authored {
            return Ok(self.stored.skill.clone());
        }
        Ok(StoredSkillFile::read(self.file.name(), &self.file.text, Purpose::LoadImported)?.skill)
    }

    /// The parsed skill for agents, or the reason why it cannot be used.
    pub(crate) fn parsed_skill(&self) -> Result<&Skill, &str> {
        let read = || personal::read(self.file.name(), &self.file.text);
        self.portable.get_or_init(read).as_ref().map_err(String::as_str)
    }

    /// The metadata of the skill; the default if none is stored.
    pub(crate) fn facts(&self, noted: Option<&SkillFacts>) -> SkillFacts {
        SkillFacts::for_owner(noted, self.stored.owner.clone(), self.file.created_at)
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
            user_id: None,
        }
    }

    pub(crate) fn summary_with_owner(&self) -> SkillSummary {
        SkillSummary { user_id: self.stored.owner.clone(), ..self.summary() }
    }

    pub(crate) fn owner(&self) -> Option<&str> {
        self.stored.owner.as_deref()
    }

    /// Whether an agent of the caller may see the skill.
    fn is_visible_to(&self, caller: &Caller) -> bool {
        (self.owner().is_none() || self.is_owned_by(caller))
            && !RESERVED_NAMES.contains(&self.file.name())
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
            verdict: None,
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
        Self {
            files: skill_writer.files().clone(),
            skill_writer,
            read: Mutex::default(),
            verdicts: Mutex::default(),
        }
    }

    pub(crate) fn skill_writer(&self) -> &SkillWriter {
        &self.skill_writer
    }

    /// Skills that an agent of the caller may see: their own and those without an owner, sorted by
    /// name. Of two with the same name, the caller's own counts. Skills of other users are excluded,
    /// even for administrators.
    pub(crate) async fn personal(
        &self,
        caller: &Caller,
    ) -> Result<Vec<Arc<ParsedSkill>>, StoreError> {
        let files = self.files.list().await?;
        let kept = files.into_iter().filter_map(|file| self.parse_stored(file).ok());
        let mut seen: Vec<_> = kept.filter(|kept| kept.is_visible_to(caller)).collect();
        seen.sort_by(|a, b| {
            let own_first = b.is_owned_by(caller).cmp(&a.is_owned_by(caller));
            a.file.name().cmp(b.file.name()).then(own_first)
        });
        seen.dedup_by(|a, b| a.file.name() == b.file.name());
        Ok(seen)
    }

    /// The skills that the caller's agents can use, or all for an administrator; newest first.
    pub(crate) async fn list_for_agents(
        &self,
        caller: &Caller,
    ) -> Result<Vec<Arc<ParsedSkill>>, StoreError> {
        if caller.user.is_admin() {
            return self.list(caller).await;
        }
        let mut seen = self.personal(caller).await?;
        sort_newest_first(&mut seen);
        Ok(seen)
    }

    /// Like `personal`, for one skill; `None` if there is none with this name.
    pub(crate) async fn personal_one(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Option<Arc<ParsedSkill>>, StoreError> {
        let Some(key) = self.find_own_or_shared(caller, name).await? else { return Ok(None) };
        let file = match self.files.read(&key).await {
            Ok(file) => file,
            Err(StoreError::Damaged { .. }) => None,
            Err(error) => return Err(error),
        };
        let kept = file.and_then(|file| self.parse_stored(file).ok());
        Ok(kept.filter(|kept| kept.is_visible_to(caller)))
    }

    /// The key of the caller's own skill, else of the shared one.
    async fn find_own_or_shared(
        &self,
        caller: &Caller,
        name: &str,
    ) -> Result<Option<String>, StoreError> {
        let own = self.skill_writer.find_key(name, Some(&caller.owner_id())).await?;
        match own {
            Some(own) => Ok(Some(own)),
            None => self.skill_writer.find_key(name, None).await,
        }
    }

    /// The key of the requested skill. Without an owner, it is the caller's own, else the shared
    /// one, else, for administrators, the oldest one of this name.
    async fn resolve(
        &self,
        caller: &Caller,
        wanted: SkillRef<'_>,
        purpose: LookupPurpose,
        failed: &str,
    ) -> ApiResult<String> {
        let name = wanted.name;
        let store_error = |error: StoreError| write_error(failed, error.into());
        if let Some(owner) = wanted.owner {
            let owner = (owner != SHARED_OWNER).then_some(owner);
            let found = self.skill_writer.find_key(name, owner).await.map_err(store_error)?;
            return found.ok_or_else(|| not_found(name));
        }
        if let Some(found) = self.find_own_or_shared(caller, name).await.map_err(store_error)? {
            return Ok(found);
        }
        if !caller.user.is_admin() {
            return Ok(name.to_owned());
        }
        let all = self.skill_writer.find_all(name).await.map_err(store_error)?;
        match (all.as_slice(), purpose) {
            ([], _) => Ok(name.to_owned()),
            ([oldest], _) | ([oldest, ..], LookupPurpose::Read) => Ok(oldest.key.clone()),
            (several, LookupPurpose::Change) => {
                let mut owners = Vec::new();
                for file in several {
                    let owner = self.skill_writer.owner_of(file).await.map_err(store_error)?;
                    owners.push(owner.into_user().unwrap_or_else(|| SHARED_OWNER.to_owned()));
                }
                Err(ambiguous(name, &owners))
            }
        }
    }

    /// Skills in the list of a user: their own and those of integrations for all users, or all for
    /// an administrator. Newest first.
    pub(crate) async fn list(&self, caller: &Caller) -> Result<Vec<Arc<ParsedSkill>>, StoreError> {
        let files = self.files.list().await?;
        let noted = self.skill_writer.database().skill_facts().all().await?;
        let is_of_integration = |kept: &ParsedSkill| {
            let facts = noted.get(&kept.file.key).filter(|facts| facts.owner.is_none());
            kept.owner().is_none()
                && facts.is_some_and(|facts| facts.source == Provenance::Integration)
        };
        let kept = files.into_iter().filter_map(|file| self.parse_stored(file).ok());
        let kept = kept.filter(|kept| !RESERVED_NAMES.contains(&kept.file.name()));
        let is_listed = |kept: &Arc<ParsedSkill>| {
            caller.user.is_admin() || kept.is_owned_by(caller) || is_of_integration(kept)
        };
        let mut seen: Vec<Arc<ParsedSkill>> = kept.filter(is_listed).collect();
        if !caller.user.is_admin() {
            let own = seen.iter().filter(|kept| kept.is_owned_by(caller));
            let own: HashSet<String> = own.map(|kept| kept.file.name().to_owned()).collect();
            seen.retain(|kept| kept.is_owned_by(caller) || !own.contains(kept.file.name()));
        }
        sort_newest_first(&mut seen);
        Ok(seen)
    }

    /// A skill that the caller may read and run: their own, one without an owner, or any for an
    /// administrator. A skill of another user is reported as not found.
    pub(crate) async fn get(
        &self,
        caller: &Caller,
        wanted: impl Into<SkillRef<'_>>,
    ) -> ApiResult<Arc<ParsedSkill>> {
        self.find(caller, wanted.into(), "Failed to get skill").await
    }

    /// Like `get`, for a run, which has its own message for internal errors.
    ///
    /// Counts as a use, which reactivates an archived skill. A disabled skill stays disabled until
    /// its user enables it.
    pub(crate) async fn load(
        &self,
        caller: &Caller,
        wanted: impl Into<SkillRef<'_>>,
    ) -> ApiResult<Skill> {
        let (kept, source) = self.load_stored(caller, wanted.into()).await?;
        Ok(kept.for_run(source)?)
    }

    /// Like `load`, with the stored skill and where it came from.
    pub(crate) async fn load_stored(
        &self,
        caller: &Caller,
        wanted: SkillRef<'_>,
    ) -> ApiResult<(Arc<ParsedSkill>, Provenance)> {
        let failed = "Failed to load skill";
        let name = wanted.name;
        let kept = self.find(caller, wanted, failed).await?;
        let facts_of = self.skill_writer.database().skill_facts();
        let key = kept.file.key.as_str();
        let facts = kept.facts(facts_of.get(key).await.or_failed(failed)?.as_ref());
        if !facts.enabled {
            let message = format!("Skill '{name}' is disabled; enable it first");
            return Err(ApiError::field(StatusCode::CONFLICT, "name", message));
        }
        let lately =
            facts.last_used.is_some_and(|used| used.plus(LAST_USED_INTERVAL) > Timestamp::now());
        if !lately || facts.lifecycle != Lifecycle::Active {
            facts_of.used(key, &facts).await.or_failed(failed)?;
        }
        Ok((kept, facts.source))
    }

    /// The verdict of the scan of a skill that came from elsewhere, or that is disabled. It is scanned
    /// again after its files changed, but not after the deadline: then the verdict is unknown.
    pub(crate) async fn verdict(
        &self,
        kept: &ParsedSkill,
        facts: &SkillFacts,
        deadline: Option<Instant>,
    ) -> Option<Verdict> {
        // Users may save what they want; what a program saved may be disabled.
        let is_scanned = match facts.source {
            Provenance::Imported | Provenance::Catalog => true,
            Provenance::Authored => !facts.enabled,
            Provenance::Integration => false,
        };
        if !is_scanned {
            return None;
        }
        let key = &kept.file.key;
        let digest = facts.digest.as_deref().unwrap_or_default();
        let version = format!("{} {digest}", kept.file.version);
        let verdicts = || self.verdicts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, verdict)) = verdicts().get(key)
            && *known == version
        {
            return Some(*verdict);
        }
        if deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return None;
        }
        let resources = self.skill_writer.resources(key).await.ok()?;
        let text = Arc::clone(&kept.file.text);
        let scanning =
            tokio::task::spawn_blocking(move || skill_scan::scan(&text, &resources).verdict);
        let verdict = scanning.await.ok()?;
        let mut known = verdicts();
        if known.len() >= MAX_CACHED_SKILLS {
            known.clear();
        }
        known.insert(key.clone(), (version, verdict));
        Some(verdict)
    }

    /// Fails unless the caller may change a skill: their own, or any for an administrator.
    pub(crate) async fn check_changeable(
        &self,
        caller: &Caller,
        wanted: impl Into<SkillRef<'_>>,
    ) -> ApiResult<()> {
        self.changeable(caller, wanted.into(), "Failed to update skill").await.map(drop)
    }

    async fn find(
        &self,
        caller: &Caller,
        wanted: SkillRef<'_>,
        failed: &str,
    ) -> ApiResult<Arc<ParsedSkill>> {
        let name = wanted.name;
        agent_flow::check_name(name)?;
        let key = self.resolve(caller, wanted, LookupPurpose::Read, failed).await?;
        let kept = match self.read_file(&key, failed).await? {
            Ok(file) => match self.parse_stored(file.clone()) {
                Ok(kept) => kept,
                Err(refusal) => {
                    return Err(self.broken(caller, &file, refusal.into(), failed).await);
                }
            },
            Err((file, refusal)) => return Err(self.broken(caller, &file, refusal, failed).await),
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
    ) -> ApiResult<SavedText> {
        agent_flow::check_name(name)?;
        if RESERVED_NAMES.contains(&name) {
            return Err(refused("name", format!("Skill name '{name}' is reserved")));
        }
        check_size(text)?;
        self.check_free(caller, name).await.map_err(|error| create_error(name, error))?;
        let stored = StoredSkillFile::read(name, text, Purpose::Create)?;
        check_owner(caller, stored.owner.as_deref())?;
        let text = agent_flow::with_owner(text, &caller.owner_id())?;
        let by = ImportSource::of(caller);
        let made = self.skill_writer.create(name, &text, &caller.owner_id(), by).await;
        let made = made.map_err(lock_error)?;
        let made = made.map_err(|error| create_error(name, error))?;
        self.saved_text(caller, made)
    }

    fn saved_text(&self, caller: &Caller, saved: SavedSkill) -> ApiResult<SavedText> {
        let SavedSkill { file, verdict } = saved;
        if verdict != Verdict::Allow {
            let (skill, by) = (&file.key, caller.user.id);
            tracing::info!(skill, by, %verdict, "a skill that a program saved is disabled");
        }
        Ok(SavedText { skill: self.parse_stored(file)?, verdict })
    }

    /// Fails if the caller has a skill of this name, or the name cannot be used.
    async fn check_free(&self, caller: &Caller, name: &str) -> Result<(), WriteError> {
        if let Some(own) = self.skill_writer.find_key(name, Some(&caller.owner_id())).await? {
            return self.files.check_free(&own).await;
        }
        match self.files.read(name).await {
            Ok(None) => self.files.check_free(name).await,
            Ok(Some(_)) | Err(StoreError::Damaged { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Replaces the text of a skill.
    pub(crate) async fn update(
        &self,
        caller: &Caller,
        wanted: SkillRef<'_>,
        text: &str,
        condition: &IfMatch,
    ) -> ApiResult<SavedText> {
        let name = wanted.name;
        // Without a condition, each of several concurrent updates must succeed.
        for _ in 0..MAX_UPDATE_TRIES {
            let kept = self.changeable(caller, wanted, "Failed to update skill").await?;
            condition.check(&kept.tag)?;
            if let Some(updated) = self.try_update(caller, name, text, &kept).await? {
                return Ok(updated);
            }
        }
        let message = format!("Skill '{name}' was changed in the meantime");
        Err(ApiError::field(StatusCode::CONFLICT, "content", message)
            .with_hint("others change it all the time; try again"))
    }

    /// Replaces the text of a skill; `None` if it changed since it was read.
    async fn try_update(
        &self,
        caller: &Caller,
        name: &str,
        text: &str,
        kept: &ChangeableSkill,
    ) -> ApiResult<Option<SavedText>> {
        check_size(text)?;
        let stored = StoredSkillFile::read(name, text, Purpose::Update)?;
        if stored.owner != kept.owner {
            check_owner(caller, stored.owner.as_deref())?;
            if let Some(owner) = &stored.owner {
                self.check_transferable(name, &kept.file.key, owner).await?;
            }
        }
        let text = match &kept.owner {
            Some(owner) => agent_flow::with_owner(text, owner)?,
            None => text.to_owned(),
        };
        let change = TextChange {
            before: kept.file.clone(),
            text,
            by: ImportSource::of(caller),
            user_id: caller.user.id,
        };
        match self.skill_writer.replace_text(change).await.map_err(lock_error)? {
            Ok(saved) => self.saved_text(caller, saved).map(Some),
            Err(WriteError::Missing) => Err(not_found(name)),
            Err(WriteError::Changed) => Ok(None),
            Err(error) => Err(write_error("Failed to update skill", error)),
        }
    }

    /// Fails if a skill cannot get another owner: if the owner has a skill of its name, or if its
    /// folder has the old owner in its name.
    async fn check_transferable(&self, name: &str, key: &str, owner: &str) -> ApiResult<()> {
        let failed = "Failed to update skill";
        let taken = self.skill_writer.find_key(name, Some(owner)).await.or_failed(failed)?;
        if taken.is_none() && key == name {
            return Ok(());
        }
        let message = format!("Skill '{name}' cannot be given to user {owner}");
        Err(ApiError::field(StatusCode::CONFLICT, "user_id", message)
            .with_hint("export it, and let that user import it under a free name"))
    }

    /// A skill whose versions the caller may read: one that the caller may change.
    pub(crate) async fn find_for_versions(
        &self,
        caller: &Caller,
        wanted: SkillRef<'_>,
    ) -> ApiResult<SkillFile> {
        Ok(self.changeable(caller, wanted, "Failed to read versions").await?.file)
    }

    /// Deletes a skill with its folder.
    pub(crate) async fn delete(
        &self,
        caller: &Caller,
        wanted: SkillRef<'_>,
        condition: &IfMatch,
    ) -> ApiResult<()> {
        let name = wanted.name;
        let kept = self.changeable(caller, wanted, "Failed to delete skill").await?;
        condition.check(&kept.tag)?;
        match self
            .skill_writer
            .remove(&kept.file.key, &kept.file.version, ImportSource::of(caller))
            .await
            .map_err(lock_error)?
        {
            Ok(()) => Ok(()),
            // Another skill with this name was created at the same time: the one to delete is gone.
            Err(WriteError::Missing | WriteError::Changed) => Err(not_found(name)),
            Err(error) => Err(write_error("Failed to delete skill", error)),
        }
    }

    /// A skill that the caller may change: their own, or any for an administrator. A file that cannot be read or parsed can still be replaced and deleted.
    async fn changeable(
        &self,
        caller: &Caller,
        wanted: SkillRef<'_>,
        failed: &str,
    ) -> ApiResult<ChangeableSkill> {
        let name = wanted.name;
        agent_flow::check_name(name)?;
        let key = self.resolve(caller, wanted, LookupPurpose::Change, failed).await?;
        let file = self.files.read_lossy(&key).await;
        let file = file.map_err(|error| write_error(failed, error.into()))?;
        let file = file.ok_or_else(|| not_found(name))?;
        let owner = self.skill_writer.owner_of(&file).await.or_failed(failed)?;
        match owner {
            FileOwner::Shared if !caller.user.is_admin() => Err(ApiError::field(
                StatusCode::FORBIDDEN,
                "user_id",
                "Only an administrator can modify a skill without an owner",
            )),
            owner if !caller.user.is_admin() && !owner.is_user(&caller.owner_id()) => {
                Err(not_found(name))
            }
            owner => {
                let owner = owner.into_user();
                Ok(ChangeableSkill { tag: tag_of(&file.text), file, owner })
            }
        }
    }

    /// The response for a file that cannot be read: only its owner and administrators see why.
    async fn broken(
        &self,
        caller: &Caller,
        file: &SkillFile,
        refusal: ApiError,
        failed: &str,
    ) -> ApiError {
        match self.skill_writer.owner_of(file).await {
            Err(error) => write_error(failed, error.into()),
            Ok(owner) if caller.user.is_admin() || owner.is_user(&caller.owner_id()) => refusal,
            Ok(_) => not_found(file.name()),
        }
    }

    /// Reads a file; one that is not valid text is returned with the response for those who may see
    /// it.
    async fn read_file(
        &self,
        key: &str,
        failed: &str,
    ) -> ApiResult<Result<SkillFile, (SkillFile, ApiError)>> {
        let name = name_of_key(key);
        let store_error = |error: StoreError| write_error(failed, error.into());
        match self.files.read(key).await {
            Ok(file) => file.map(Ok).ok_or_else(|| not_found(name)),
            Err(StoreError::Damaged { message, .. }) => {
                let file = self.files.read_lossy(key).await.map_err(store_error)?;
                let file = file.ok_or_else(|| not_found(name))?;
                let message = format!("Skill '{name}' cannot be read: {message}");
                let refusal = ApiError::field(StatusCode::BAD_REQUEST, "content", message)
                    .with_hint("replace its text with UTF-8 text of at most 50 KiB, or delete it");
                Ok(Err((file, refusal)))
            }
            Err(error) => Err(store_error(error)),
        }
    }

    pub(crate) fn parse_stored(&self, file: SkillFile) -> Result<Arc<ParsedSkill>, Refusal> {
        if let Some(kept) = self.cache().get(&file.key)
            && kept.file.version == file.version
        {
            return Ok(Arc::clone(kept));
        }
        // A file without an owner was put there by hand, in any dialect.
        let mut stored = StoredSkillFile::read(file.name(), &file.text, Purpose::LoadImported)?;
        if stored.owner.is_some() {
            stored = StoredSkillFile::read(file.name(), &file.text, Purpose::Load)?;
        }
        let kept = Arc::new(ParsedSkill::new(file, stored));
        let mut remembered = self.cache();
        if remembered.len() >= MAX_CACHED_SKILLS
            && let Some(other) = remembered.keys().next().cloned()
        {
            remembered.remove(&other);
        }
        remembered.insert(kept.file.key.clone(), Arc::clone(&kept));
        Ok(kept)
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<String, Arc<ParsedSkill>>> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sort_newest_first(skills: &mut [Arc<ParsedSkill>]) {
    skills.sort_by(|a, b| {
        let newest = b.file.updated_at.cmp(&a.file.updated_at);
        newest.then_with(|| a.file.key.cmp(&b.file.key))
    });
}

/// Maximum number of tries of an update while others change the skill.
const MAX_UPDATE_TRIES: u32 = 50;

/// Checks the size of the text. The line with the owner, which the server added, does not count.
fn check_size(text: &str) -> Result<(), Refusal> {
    let size = match text.len() {
        size if size <= agent_flow::MAX_CONTENT_BYTES => size,
        _ => agent_flow::without_owner(text).len(),
    };
    agent_flow::check_size(size as u64)
}

/// The entity tag of a text.
pub(crate) fn tag_of(text: &str) -> String {
    format!("\"{}\"", &sha256_hex(text.as_bytes())[..32])
}

/// The value of a query's owner for a skill that belongs to all users.
const SHARED_OWNER: &str = "shared";

/// A skill by its name and, if known, its owner: the id of an account, or `shared`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SkillRef<'a> {
    name: &'a str,
    owner: Option<&'a str>,
}

impl<'a> SkillRef<'a> {
    pub(crate) fn new(name: &'a str, owner: &'a OwnerQuery) -> Self {
        Self { name, owner: owner.owner.as_deref() }
    }
}

impl<'a> From<&'a str> for SkillRef<'a> {
    fn from(name: &'a str) -> Self {
        Self { name, owner: None }
    }
}

impl<'a> From<&'a String> for SkillRef<'a> {
    fn from(name: &'a String) -> Self {
        name.as_str().into()
    }
}

/// The condition of a change: the tags in the header `If-Match`.
#[derive(Clone, Debug)]
pub(crate) struct IfMatch(Option<String>);

impl IfMatch {
    pub(crate) fn new(headers: &HeaderMap) -> Self {
        let value = headers.get(header::IF_MATCH);
        Self(value.map(|value| value.to_str().unwrap_or_default().to_owned()))
    }

    fn check(&self, tag: &str) -> ApiResult<()> {
        if self.accepts(tag) { Ok(()) } else { Err(Self::failed("skill")) }
    }

    /// Whether a change is allowed of what has this tag now.
    pub(crate) fn accepts(&self, tag: &str) -> bool {
        let same = |known: &str| matches!(known.trim(), "*") || known.trim() == tag;
        self.0.as_deref().is_none_or(|wanted| wanted.split(',').any(same))
    }

    /// The response if something was changed since it was read.
    pub(crate) fn failed(what: &str) -> ApiError {
        let message = format!("The {what} was changed since it was read");
        let hint = format!("read the {what} again, merge the changes, and send its new ETag");
        ApiError::plain(StatusCode::PRECONDITION_FAILED, message).with_hint(hint)
    }
}

/// Converts a write error. An unavailable storage has its own response.
fn write_error(failed: &str, error: WriteError) -> ApiError {
    match error {
        WriteError::Store(error) => ApiError::stored(failed, &error),
        error => ApiError::internal(failed, &error),
    }
}

/// Why a skill is looked up. If the name is ambiguous, nothing is changed or deleted.
#[derive(Clone, Copy)]
enum LookupPurpose {
    Read,
    Change,
}

struct ChangeableSkill {
    tag: String,
    file: SkillFile,
    owner: Option<String>,
}

fn check_owner(caller: &Caller, owner: Option<&str>) -> ApiResult<()> {
    match owner {
        Some(owner) if owner != caller.owner_id() && !caller.user.is_admin() => {
            Err(refused("user_id", "Cannot assign a skill to another user"))
        }
        _ => Ok(()),
    }
}

/// The response if several users have a skill of a name, and it is not clear which one is meant.
fn ambiguous(name: &str, owners: &[String]) -> ApiError {
    let message = format!("Several users have a skill '{name}': {}", owners.join(", "));
    ApiError::field(StatusCode::CONFLICT, "owner", message)
        .with_hint(format!("add the owner to the address: ?owner={}", owners[0]))
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
        StoreSkillError::Store(error) => ApiError::stored("Failed to keep skill", &error),
        StoreSkillError::Quota(reached) => reached.into(),
        error => ApiError::field(StatusCode::CONFLICT, "name", error.to_string()),
    }
}

fn create_error(name: &str, error: WriteError) -> ApiError {
    let message = match error {
        WriteError::Exists { existing, has_file: true } => format!(
            "Skill name '{name}' conflicts with existing skill '{}' (names are case-insensitive)",
            name_of_key(&existing)
        ),
        WriteError::Exists { existing, has_file: false } => {
            format!("Skill '{}' already exists", name_of_key(&existing))
        }
        error => return write_error("Failed to create skill", error),
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
            kept.map_err(ApiError::into_load_error)
        })
    }
}
