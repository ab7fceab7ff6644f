//! Writes whole skills together with their metadata.
//!
//! Files and metadata ("facts") are stored in two places, and the process may crash between the two
//! writes. The new skill's permissions are stored before its files, its version after them. So a
//! skill that needs a review is never available before it, and an incompletely written skill counts
//! as the old one.

use std::time::Duration;

use savoir_scan::Verdict;
use savoir_skill::dialect::agent_flow::{self, Purpose, StoredSkillFile};
use savoir_store::{
    Database, QuotaReached, Resource, SkillFacts, SkillFile, SkillFiles, StoreError, Timestamp,
    WriteError, check_quota, name_of_key, owner_key, owner_of_key,
};
use thiserror::Error;

use super::{ImportSource, RESERVED_NAMES, digest};

/// How often to retry while the same skill is being changed, and the pause between retries.
const MAX_LEASE_TRIES: u32 = 200;
const LEASE_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Stores skills with their metadata. Cloning shares the state.
#[derive(Clone, Debug)]
pub struct SkillWriter {
    files: SkillFiles,
    database: Database,
}

/// A skill to store.
#[derive(Clone, Debug)]
pub struct SkillToStore {
    /// The name of the skill.
    pub name: String,
    /// The text of SKILL.md, without the owner.
    pub text: String,
    /// All other files.
    pub resources: Vec<Resource>,
    /// The future owner.
    pub owner: Option<String>,
}

/// A skill that was stored.
#[derive(Debug)]
pub struct StoredSkill {
    pub file: SkillFile,
    /// The metadata of the skill.
    pub facts: SkillFacts,
    /// Whether no skill had this name before.
    pub is_new: bool,
}

/// A new text of a skill.
#[derive(Debug)]
pub(crate) struct TextChange {
    /// The skill as it was read.
    pub(crate) before: SkillFile,
    pub(crate) text: String,
    pub(crate) by: ImportSource,
    /// The user who saves it.
    pub(crate) user_id: i64,
}

/// A skill whose text was saved.
#[derive(Debug)]
pub(crate) struct SavedSkill {
    pub(crate) file: SkillFile,
    /// What the scan found in the text of a program. Unless it is [`Verdict::Allow`], the skill is
    /// disabled.
    pub(crate) verdict: Verdict,
}

/// The existing skill that a new one would replace.
#[derive(Debug)]
pub struct ReplacedSkill {
    pub file: SkillFile,
    /// The metadata of the existing skill.
    pub facts: SkillFacts,
    /// The digest of its current files, if the digest at its import is known.
    now: Option<String>,
}

impl ReplacedSkill {
    /// Whether no user changed the skill since its import, or it already equals the new one. A
    /// skill that was not imported completely has no digest yet and counts as unchanged.
    pub fn is_untouched(&self, coming: &SkillFacts) -> bool {
        let was = &self.facts.digest;
        was.is_none() || *was == self.now || self.is_already(coming)
    }

    /// Whether all files equal those of the new skill.
    pub fn is_already(&self, coming: &SkillFacts) -> bool {
        self.now.is_some() && coming.digest == self.now
    }
}

/// What happens to the metadata of a skill that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notes {
    /// The metadata is deleted.
    Forgotten,
    /// The metadata stays for when the skill is imported again.
    Kept,
    /// The metadata of a disabled skill stays, so that a program does not enable the skill by
    /// creating it again.
    KeptIfDisabled,
}

/// Why an existing skill is not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// The existing skill has another source.
    There,
    /// The existing skill has the same source, and a user changed it since.
    Changed,
}

/// Why a skill was not stored.
#[derive(Debug, Error)]
pub enum StoreSkillError {
    /// The name is used by a route.
    #[error("Skill name '{0}' is reserved")]
    Reserved(String),
    /// The folder of the skill exists, and is not a skill.
    #[error("Skill name '{0}' belongs to something else; give yours another name")]
    Taken(String),
    /// Another request is changing the skill.
    #[error("Skill '{0}' is being changed; try again")]
    Busy(String),
    /// The text is invalid.
    #[error("{0}")]
    Unfit(String),
    /// An existing skill is not replaced.
    #[error("Skill '{0}' is there already")]
    Conflict(String),
    /// An existing skill that a user changed is not replaced.
    #[error(
        "Skill '{0}' was changed here since it came, and stays as it is; send overwrite: true to replace it"
    )]
    Edited(String),
    /// The owner has reached the quota.
    #[error(transparent)]
    Quota(#[from] QuotaReached),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StoreSkillError {
    /// A stable error code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Reserved(_) => "reserved-name",
            Self::Taken(_) => "name-taken",
            Self::Busy(_) => "skill-busy",
            Self::Unfit(_) => "skill-unfit",
            Self::Conflict(_) => "skill-stays",
            Self::Edited(_) => "skill-edited",
            Self::Quota(_) => "quota-reached",
            Self::Store(_) => "store-failed",
        }
    }
}

impl SkillWriter {
    /// Stores skills in files, and their metadata in a database.
    pub fn new(files: SkillFiles, database: Database) -> Self {
        Self { files, database }
    }

    pub fn files(&self) -> &SkillFiles {
        &self.files
    }

    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Stores a skill, and replaces one of the same name and owner. `decide` returns the metadata,
    /// or that the existing skill is not replaced. Once started, the change is completed even if
    /// the caller is dropped.
    pub async fn store(
        &self,
        new: SkillToStore,
        decide: impl FnOnce(Option<&ReplacedSkill>) -> Result<SkillFacts, ConflictReason>
        + Send
        + 'static,
    ) -> Result<StoredSkill, StoreSkillError> {
        let skill_writer = self.clone();
        run_to_completion(async move { skill_writer.store_locked(new, decide).await }).await
    }

    async fn store_locked(
        &self,
        new: SkillToStore,
        decide: impl FnOnce(Option<&ReplacedSkill>) -> Result<SkillFacts, ConflictReason>,
    ) -> Result<StoredSkill, StoreSkillError> {
        let (text, name, owner) = (text_with_owner(&new)?, new.name.clone(), new.owner.clone());
        let exchange =
            Box::pin(self.with_skill_lock(&name, self.replace_skill(new, &text, decide)));
        self.with_owner_lock(owner.as_deref(), exchange).await
    }

    /// Runs some work while no other request changes a skill.
    pub(crate) async fn with_skill_lock<T>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, StoreSkillError>>,
    ) -> Result<T, StoreSkillError> {
        let lease = format!("skill {}", name_of_key(name));
        for _ in 0..MAX_LEASE_TRIES {
            if let Some(lease) = self.database.leases().hold(&lease).await? {
                let busy = || Err(StoreSkillError::Busy(name.to_owned()));
                return lease.during(work).await.unwrap_or_else(busy);
            }
            tokio::time::sleep(LEASE_RETRY_INTERVAL).await;
        }
        Err(StoreSkillError::Busy(name.to_owned()))
    }

    /// Runs some work while no skill is added for an owner, so that the number of skills stays
    /// correct.
    async fn with_owner_lock<T>(
        &self,
        owner: Option<&str>,
        work: impl Future<Output = Result<T, StoreSkillError>>,
    ) -> Result<T, StoreSkillError> {
        match owner.filter(|_| self.database.quotas().skills > 0) {
            // A key with a blank cannot be the name of a skill.
            Some(owner) => self.with_skill_lock(&format!("of {owner}"), work).await,
            None => work.await,
        }
    }

    /// Checks the quota of an owner.
    async fn check_quota(&self, owner: Option<&str>) -> Result<(), StoreSkillError> {
        let most = self.database.quotas().skills;
        let Some(owner) = owner.filter(|_| most > 0) else { return Ok(()) };
        let owns = |file: &&SkillFile| {
            // Most files of other owners can be skipped without parsing.
            file.text.contains(owner)
                && StoredSkillFile::read(file.name(), &file.text, Purpose::Load)
                    .is_ok_and(|stored| stored.owner.as_deref() == Some(owner))
        };
        let used = self.files.list().await?.iter().filter(owns).count() as u64;
        let Err(reached) = check_quota("skills", used, 1, most) else { return Ok(()) };
        let account = match owner.parse() {
            Ok(id) => self.database.accounts().by_id(id).await?,
            Err(_) => None,
        };
        if account.is_some_and(|account| account.is_admin()) { Ok(()) } else { Err(reached.into()) }
    }

    async fn replace_skill(
        &self,
        new: SkillToStore,
        text: &str,
        decide: impl FnOnce(Option<&ReplacedSkill>) -> Result<SkillFacts, ConflictReason>,
    ) -> Result<StoredSkill, StoreSkillError> {
        let SkillToStore { name, resources, owner, .. } = new;
        let facts_of = self.database.skill_facts();
        let key = self.key_for(&name, owner.as_deref()).await?;
        let noted = facts_of.get(&key).await?;
        let before = self.load_replaced(&key, owner.as_deref(), noted.as_ref()).await?;
        if before.is_none() {
            self.check_quota(owner.as_deref()).await?;
        }
        let facts = decide(before.as_ref()).map_err(|why| match why {
            ConflictReason::There => StoreSkillError::Conflict(name.clone()),
            ConflictReason::Changed => StoreSkillError::Edited(name.clone()),
        })?;
        let facts = SkillFacts { owner, ..facts };
        let was = before.as_ref().map(|before| &before.facts);
        let meanwhile = SkillFacts {
            source_version: was.and_then(|was| was.source_version.clone()),
            digest: was.and_then(|was| was.digest.clone()),
            ..facts.clone()
        };
        facts_of.put(&key, &meanwhile).await?;
        let version = before.as_ref().map(|before| before.file.version.as_str());
        match self.files.put(&key, text, resources, version).await {
            Ok(file) => {
                // If this writer lost its lock meanwhile, another one has stored its own metadata,
                // which may disable the skill.
                facts_of.replace_if(&key, &meanwhile, Some(&facts)).await?;
                if before.is_none() && noted.is_none_or(|noted| noted.owner != facts.owner) {
                    self.remove_versions(&key).await;
                }
                let user_id = facts.owner.as_deref().and_then(|owner| owner.parse().ok());
                let replaced = before.as_ref().map(|before| &before.file);
                self.record_version(&file, replaced, user_id).await;
                Ok(StoredSkill { file, facts, is_new: before.is_none() })
            }
            Err(error) => {
                facts_of.replace_if(&key, &meanwhile, noted.as_ref()).await?;
                Err(match error {
                    WriteError::Exists { .. } => StoreSkillError::Taken(name),
                    WriteError::Missing | WriteError::Changed => StoreSkillError::Busy(name),
                    WriteError::Store(error) => StoreSkillError::Store(error),
                })
            }
        }
    }

    /// The key of an owner's skill, if there is one.
    pub async fn find_key(
        &self,
        name: &str,
        owner: Option<&str>,
    ) -> Result<Option<String>, StoreError> {
        if let Some(file) = self.files.read_lossy(name).await?
            && self.is_owned_by(&file, owner).await?
        {
            return Ok(Some(file.key));
        }
        let key = owner_key(name, owner);
        Ok(self.files.read_lossy(&key).await?.map(|file| file.key))
    }

    /// Whether a file belongs to an owner; without an owner, whether it belongs to all users.
    async fn is_owned_by(&self, file: &SkillFile, owner: Option<&str>) -> Result<bool, StoreError> {
        Ok(match self.owner_of(file).await? {
            FileOwner::User(found) => Some(found.as_str()) == owner,
            FileOwner::Shared => owner.is_none(),
            FileOwner::Unknown => false,
        })
    }

    /// The owner of a file. That of a file which cannot be read is in a line of its text, else in its
    /// metadata, else in its key.
    pub(crate) async fn owner_of(&self, file: &SkillFile) -> Result<FileOwner, StoreError> {
        if let Ok(stored) = StoredSkillFile::read(file.name(), &file.text, Purpose::Load)
            && (file.is_valid || stored.owner.is_some())
        {
            return Ok(stored.owner.map_or(FileOwner::Shared, FileOwner::User));
        }
        if let Some(owner) = owner_line(&file.text) {
            return Ok(FileOwner::User(owner.to_owned()));
        }
        let noted = self.database.skill_facts().get(&file.key).await?;
        let noted = noted.and_then(|noted| noted.owner);
        let owner = noted.or_else(|| owner_of_key(&file.key).map(str::to_owned));
        Ok(owner.map_or(FileOwner::Unknown, FileOwner::User))
    }

    /// All skills with a name, of any owner; the oldest first.
    pub async fn find_all(&self, name: &str) -> Result<Vec<SkillFile>, StoreError> {
        let mut found = Vec::new();
        for key in self.files.keys().await? {
            if name_of_key(&key) == name {
                found.extend(self.files.read_lossy(&key).await?);
            }
        }
        found.sort_by_key(|file| file.created_at);
        Ok(found)
    }

    /// The key of an owner's skill, or the one that a new skill of the owner gets.
    async fn key_for(&self, name: &str, owner: Option<&str>) -> Result<String, StoreError> {
        if let Some(key) = self.find_key(name, owner).await? {
            return Ok(key);
        }
        let is_free = matches!(self.files.read(name).await, Ok(None));
        Ok(if is_free { name.to_owned() } else { owner_key(name, owner) })
    }

    /// The skill that is stored under a key; an error if it belongs to another owner.
    async fn load_replaced(
        &self,
        key: &str,
        owner: Option<&str>,
        noted: Option<&SkillFacts>,
    ) -> Result<Option<ReplacedSkill>, StoreSkillError> {
        let name = name_of_key(key);
        let taken = || StoreSkillError::Taken(name.to_owned());
        let Some(file) = self.files.read_lossy(key).await? else { return Ok(None) };
        if !self.is_owned_by(&file, owner).await? {
            return Err(taken());
        }
        let facts = SkillFacts::for_owner(noted, owner.map(str::to_owned), file.created_at);
        let now = match &facts.digest {
            Some(_) => Some(digest(&file.text, &self.resources(key).await?)),
            None => None,
        };
        Ok(Some(ReplacedSkill { file, facts, now }))
    }

    /// Creates a skill of one file. Old metadata of a skill whose files were deleted is removed. A
    /// skill that a program creates is disabled if the scan finds something, or if one of this name
    /// was disabled before.
    pub(crate) async fn create(
        &self,
        name: &str,
        text: &str,
        owner: &str,
        by: ImportSource,
    ) -> Result<Result<SavedSkill, WriteError>, StoreSkillError> {
        let (skill_writer, name, text) = (self.clone(), name.to_owned(), text.to_owned());
        let owner = owner.to_owned();
        run_to_completion(async move {
            let create = Box::pin(
                skill_writer
                    .with_skill_lock(&name, skill_writer.create_locked(&name, &text, &owner, by)),
            );
            skill_writer.with_owner_lock(Some(&owner), create).await
        })
        .await
    }

    async fn create_locked(
        &self,
        name: &str,
        text: &str,
        owner: &str,
        by: ImportSource,
    ) -> Result<Result<SavedSkill, WriteError>, StoreSkillError> {
        self.check_quota(Some(owner)).await?;
        let key = self.key_for(name, Some(owner)).await?;
        let verdict = by.scan(text, Vec::new()).await?;
        let facts_of = self.database.skill_facts();
        let noted = facts_of.get(&key).await?;
        let was_disabled = |noted: &SkillFacts| {
            by == ImportSource::Program && !noted.enabled && noted.owner.as_deref() == Some(owner)
        };
        let disabled = (verdict != Verdict::Allow || noted.as_ref().is_some_and(was_disabled))
            .then(|| SkillFacts {
                enabled: false,
                ..SkillFacts::authored(Some(owner.to_owned()), Timestamp::now())
            });
        if let Some(disabled) = &disabled {
            facts_of.put(&key, disabled).await?;
        }
        match (self.files.create(&key, text).await, disabled) {
            (Ok(file), disabled) => {
                self.remove_versions(&key).await;
                if disabled.is_none() {
                    self.record_owner(&file, owner).await;
                }
                self.record_version(&file, None, owner.parse().ok()).await;
                Ok(Ok(SavedSkill { file, verdict }))
            }
            (Err(error), None) => Ok(Err(error)),
            (Err(error), Some(disabled)) => {
                facts_of.replace_if(&key, &disabled, noted.as_ref()).await?;
                Ok(Err(error))
            }
        }
    }

    /// Replaces the text of a skill that still has the version that was read. If a program does it
    /// and the scan finds something, the skill is disabled.
    pub(crate) async fn replace_text(
        &self,
        change: TextChange,
    ) -> Result<Result<SavedSkill, WriteError>, StoreSkillError> {
        let skill_writer = self.clone();
        run_to_completion(async move {
            let name = change.before.name().to_owned();
            skill_writer.with_skill_lock(&name, skill_writer.replace_text_locked(change)).await
        })
        .await
    }

    async fn replace_text_locked(
        &self,
        change: TextChange,
    ) -> Result<Result<SavedSkill, WriteError>, StoreSkillError> {
        let TextChange { before, text, by, user_id } = change;
        let (key, owner) = (before.key.as_str(), self.owner_of(&before).await?.into_user());
        let resources = match by {
            ImportSource::Person => Vec::new(),
            ImportSource::Program => self.resources(key).await?,
        };
        let verdict = by.scan(&text, resources).await?;
        let facts_of = self.database.skill_facts();
        let noted = facts_of.get(key).await?;
        let facts = SkillFacts::for_owner(noted.as_ref(), owner.clone(), before.created_at);
        let disabled = (verdict != Verdict::Allow && facts.enabled)
            .then_some(SkillFacts { enabled: false, ..facts });
        // Before the text, so that the skill is never available without a review.
        if let Some(disabled) = &disabled {
            facts_of.put(key, disabled).await?;
        }
        match self.files.replace(key, &text, &before.version).await {
            Ok(file) => {
                let new_owner = self.owner_of(&file).await?.into_user();
                let is_same_owner = new_owner == owner;
                if !is_same_owner {
                    // The new owner must not read what the old one wrote.
                    self.remove_versions(key).await;
                    self.set_owner(key, new_owner.as_deref()).await;
                }
                if let (None, Some(owner)) = (&noted, &new_owner) {
                    self.record_owner(&file, owner).await;
                }
                let replaced = is_same_owner.then_some(&before);
                self.record_version(&file, replaced, Some(user_id)).await;
                Ok(Ok(SavedSkill { file, verdict }))
            }
            Err(error) => {
                if let Some(disabled) = &disabled {
                    facts_of.replace_if(key, disabled, noted.as_ref()).await?;
                }
                Ok(Err(error))
            }
        }
    }

    /// Removes a skill, if it still has this version, with its metadata.
    pub(crate) async fn remove(
        &self,
        key: &str,
        version: &str,
        by: ImportSource,
    ) -> Result<Result<(), WriteError>, StoreSkillError> {
        let notes = match by {
            ImportSource::Person => Notes::Forgotten,
            ImportSource::Program => Notes::KeptIfDisabled,
        };
        self.remove_with(key, version, notes).await
    }

    /// Removes a skill, if it still has this version.
    pub(super) async fn remove_with(
        &self,
        key: &str,
        version: &str,
        notes: Notes,
    ) -> Result<Result<(), WriteError>, StoreSkillError> {
        let (skill_writer, key, version) = (self.clone(), key.to_owned(), version.to_owned());
        run_to_completion(async move {
            let remove = async {
                let is_kept = match notes {
                    Notes::Forgotten => false,
                    Notes::Kept => true,
                    Notes::KeptIfDisabled => {
                        let noted = skill_writer.database.skill_facts().get(&key).await?;
                        noted.is_some_and(|noted| !noted.enabled)
                    }
                };
                let removed = skill_writer.files.delete(&key, Some(&version)).await;
                if removed.is_ok() && !is_kept {
                    skill_writer.remove_facts(&key).await;
                }
                Ok(removed)
            };
            skill_writer.with_skill_lock(&key, remove).await
        })
        .await
    }

    /// Deletes the metadata of a removed skill, while the skill is locked, because another skill
    /// may get the name afterwards. An error is only logged: metadata without a skill is harmless.
    async fn remove_facts(&self, key: &str) {
        if let Err(error) = self.database.skill_facts().forget(key).await {
            tracing::warn!(skill = key, %error, "what was known of a skill is not forgotten");
        }
        self.remove_versions(key).await;
    }

    /// Records the owner of a skill, in case its file becomes unreadable. An error is only logged,
    /// because the skill is saved.
    async fn record_owner(&self, saved: &SkillFile, owner: &str) {
        let facts = SkillFacts::authored(Some(owner.to_owned()), saved.created_at);
        if let Err(error) = self.database.skill_facts().put(&saved.key, &facts).await {
            tracing::warn!(skill = saved.key, %error, "the owner of a skill is not recorded");
        }
    }

    async fn remove_versions(&self, key: &str) {
        if let Err(error) = self.database.skill_facts().forget_versions(key).await {
            tracing::warn!(skill = key, %error, "the versions of a skill are not removed");
        }
    }

    /// Records the text of a saved skill as its newest version, after the text that it replaced:
    /// the file may have been changed without the server. An error is only logged, because the
    /// skill is saved.
    async fn record_version(
        &self,
        saved: &SkillFile,
        replaced: Option<&SkillFile>,
        user_id: Option<i64>,
    ) {
        let facts = self.database.skill_facts();
        let record = async {
            if let Some(before) = replaced {
                let text = agent_flow::without_owner(&before.text);
                let written_at = before.updated_at.min(Timestamp::now());
                facts.record_version(&saved.key, &text, None, written_at).await?;
            }
            let text = agent_flow::without_owner(&saved.text);
            facts.record_version(&saved.key, &text, user_id, Timestamp::now()).await
        };
        if let Err(error) = record.await {
            tracing::warn!(skill = saved.key, %error, "a version of a skill is not recorded");
        }
    }

    /// Changes the owner in the metadata of a skill.
    async fn set_owner(&self, key: &str, owner: Option<&str>) {
        if let Err(error) = self.database.skill_facts().set_owner(key, owner).await {
            tracing::warn!(skill = key, %error, "what is known of a skill has its old owner");
        }
    }
}

/// To whom a file belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileOwner {
    User(String),
    /// To all users.
    Shared,
    /// The file cannot be read.
    Unknown,
}

impl FileOwner {
    pub(crate) fn is_user(&self, id: &str) -> bool {
        matches!(self, Self::User(owner) if owner == id)
    }

    pub(crate) fn into_user(self) -> Option<String> {
        match self {
            Self::User(owner) => Some(owner),
            Self::Shared | Self::Unknown => None,
        }
    }
}

/// The owner of a file whose frontmatter cannot be parsed: in the line that the server or the user
/// wrote.
fn owner_line(text: &str) -> Option<&str> {
    let value = text.lines().find_map(|line| line.strip_prefix("user_id:"))?.trim();
    let unquoted =
        ['\'', '"'].iter().find_map(|&quote| value.strip_prefix(quote)?.strip_suffix(quote));
    Some(unquoted.unwrap_or(value)).filter(|owner| !owner.is_empty())
}

/// Runs work that is completed even if the caller is dropped.
fn run_to_completion<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreSkillError>> + Send + 'static,
) -> impl Future<Output = Result<T, StoreSkillError>> {
    let task = tokio::spawn(work);
    async {
        let done = task.await;
        done.map_err(|error| StoreSkillError::Store(StoreError::Setting(error.to_string())))?
    }
}

/// The text to store, after it was validated.
fn text_with_owner(new: &SkillToStore) -> Result<String, StoreSkillError> {
    let unfit = |refusal: agent_flow::Refusal| StoreSkillError::Unfit(refusal.message);
    if RESERVED_NAMES.contains(&new.name.as_str()) {
        return Err(StoreSkillError::Reserved(new.name.clone()));
    }
    agent_flow::check_name(&new.name).map_err(unfit)?;
    let text = agent_flow::without_owner(&new.text);
    let text = match &new.owner {
        Some(owner) => agent_flow::with_owner(&text, owner).map_err(unfit)?,
        None => text,
    };
    let stored = StoredSkillFile::read(&new.name, &text, Purpose::Load).map_err(unfit)?;
    if stored.owner != new.owner {
        return Err(StoreSkillError::Unfit(
            "it names an owner that cannot be taken out".to_owned(),
        ));
    }
    super::read(&new.name, &text).map_err(StoreSkillError::Unfit)?;
    Ok(text)
}
