//! Writes whole skills together with their metadata.
//!
//! Files and facts lie in two places, and a process may end between them. Before the files change, it
//! is noted what the new skill may do; only afterwards, in which version it came. So a skill that
//! waits for a person to look at it is never offered before, and one that did not arrive is taken as
//! the old one.

use std::time::Duration;

use savoir_skill::dialect::agent_flow::{self, Purpose, StoredSkillFile};
use savoir_store::{
    Database, QuotaReached, Resource, SkillFacts, SkillFile, SkillFiles, StoreError, WriteError,
    check_quota,
};
use thiserror::Error;

use super::{RESERVED_NAMES, digest};

/// How long one change of a skill may take before another process goes on.
const LEASE_DURATION: Duration = Duration::from_secs(30);
/// How often a change of the same skill is waited for, and how long each time.
const MAX_LEASE_TRIES: u32 = 200;
const LEASE_RETRY_INTERVAL: Duration = Duration::from_millis(50);

/// Keeps skills with their facts. Cloning shares them.
#[derive(Clone, Debug)]
pub struct SkillWriter {
    files: SkillFiles,
    database: Database,
}

/// A skill that is to be kept.
#[derive(Clone, Debug)]
pub struct New {
    /// Its handle.
    pub name: String,
    /// Its SKILL.md, without its owner.
    pub text: String,
    /// Its other files.
    pub resources: Vec<Resource>,
    /// Whose it is to be.
    pub owner: Option<String>,
}

/// A skill that was kept.
#[derive(Debug)]
pub struct StoredSkill {
    /// Its file.
    pub file: SkillFile,
    /// What is known of it.
    pub facts: SkillFacts,
    /// Whether there was none of its name.
    pub is_new: bool,
}

/// A skill that is in the place of a new one.
#[derive(Debug)]
pub struct Before {
    /// Its file.
    pub file: SkillFile,
    /// What is known of it.
    pub facts: SkillFacts,
    /// What all its files are now, if it is known what they were when they came.
    now: Option<String>,
}

impl Before {
    /// Whether nobody changed it since it came from elsewhere, or it is what comes now. One that did
    /// not arrive whole has no digest yet.
    pub fn is_untouched(&self, coming: &SkillFacts) -> bool {
        let was = &self.facts.digest;
        was.is_none() || *was == self.now || self.is_already(coming)
    }

    /// Whether it is, file by file, what comes now.
    pub fn is_already(&self, coming: &SkillFacts) -> bool {
        self.now.is_some() && coming.digest == self.now
    }
}

/// What becomes of what is known of a skill that is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notes {
    /// It is forgotten.
    Forgotten,
    /// It is kept, for when the skill comes back.
    Kept,
}

/// Why the skill that is there wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConflictReason {
    /// It has nothing to do with the new one.
    There,
    /// It came from the same place, and somebody changed it since.
    Changed,
}

/// Why a skill was not kept.
#[derive(Debug, Error)]
pub enum StoreSkillError {
    /// The name is one that routes have.
    #[error("Skill name '{0}' is reserved")]
    Reserved(String),
    /// Another one has the name.
    #[error("Skill name '{0}' belongs to another skill; give yours another name")]
    Taken(String),
    /// Somebody else changes it at the same time.
    #[error("Skill '{0}' is being changed; try again")]
    Busy(String),
    /// Its text cannot be kept.
    #[error("{0}")]
    Unfit(String),
    /// What is there wins.
    #[error("Skill '{0}' is there already")]
    Conflict(String),
    /// What somebody made of it wins.
    #[error(
        "Skill '{0}' was changed here since it came, and stays as it is; send overwrite: true to replace it"
    )]
    Edited(String),
    /// Its owner has as many as they may.
    #[error(transparent)]
    Quota(#[from] QuotaReached),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl StoreSkillError {
    /// A stable word for it.
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
    /// Keeps skills in files, and what is known of them in a database.
    pub fn new(files: SkillFiles, database: Database) -> Self {
        Self { files, database }
    }

    /// Where the files are.
    pub fn files(&self) -> &SkillFiles {
        &self.files
    }

    /// Where the facts are.
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// Keeps a skill, in place of one of the same name and owner. `decide` tells what will be known of
    /// it, or that the one that is there stays. Once begun it is done to its end, also if nobody waits
    /// for it any more.
    pub async fn settle(
        &self,
        new: New,
        decide: impl FnOnce(Option<&Before>) -> Result<SkillFacts, ConflictReason> + Send + 'static,
    ) -> Result<StoredSkill, StoreSkillError> {
        let skill_writer = self.clone();
        to_the_end(async move { skill_writer.settle_in_turn(new, decide).await }).await
    }

    async fn settle_in_turn(
        &self,
        new: New,
        decide: impl FnOnce(Option<&Before>) -> Result<SkillFacts, ConflictReason>,
    ) -> Result<StoredSkill, StoreSkillError> {
        let (text, name, owner) = (with_owner(&new)?, new.name.clone(), new.owner.clone());
        let exchange = Box::pin(self.in_turn(&name, self.exchange(new, &text, decide)));
        self.in_turn_of(owner.as_deref(), exchange).await
    }

    /// Does something with a skill while nobody else changes it.
    pub(crate) async fn in_turn<T>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, StoreSkillError>>,
    ) -> Result<T, StoreSkillError> {
        let leases = self.database.leases();
        let holder = uuid::Uuid::new_v4().to_string();
        let lease = format!("skill {name}");
        for _ in 0..MAX_LEASE_TRIES {
            if let Some(lease) = leases.acquire(&lease, &holder, LEASE_DURATION).await? {
                let done = work.await;
                leases.release(&lease).await?;
                return done;
            }
            tokio::time::sleep(LEASE_RETRY_INTERVAL).await;
        }
        Err(StoreSkillError::Busy(name.to_owned()))
    }

    /// Does something while nothing else is added to the skills of an owner, so that they can be
    /// counted.
    async fn in_turn_of<T>(
        &self,
        owner: Option<&str>,
        work: impl Future<Output = Result<T, StoreSkillError>>,
    ) -> Result<T, StoreSkillError> {
        match owner.filter(|_| self.database.quotas().skills > 0) {
            // No skill has a blank in its name.
            Some(owner) => self.in_turn(&format!("of {owner}"), work).await,
            None => work.await,
        }
    }

    /// Whether an owner may have one more.
    async fn check_quota(&self, owner: Option<&str>) -> Result<(), StoreSkillError> {
        let most = self.database.quotas().skills;
        let Some(owner) = owner.filter(|_| most > 0) else { return Ok(()) };
        let owns = |file: &&SkillFile| {
            // Most can be told apart without being read.
            file.text.contains(owner)
                && StoredSkillFile::read(&file.name, &file.text, Purpose::Load)
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

    async fn exchange(
        &self,
        new: New,
        text: &str,
        decide: impl FnOnce(Option<&Before>) -> Result<SkillFacts, ConflictReason>,
    ) -> Result<StoredSkill, StoreSkillError> {
        let New { name, resources, owner, .. } = new;
        let facts_of = self.database.skill_facts();
        let noted = facts_of.get(&name).await?;
        let before = self.before(&name, owner.as_deref(), noted.as_ref()).await?;
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
        facts_of.put(&name, &meanwhile).await?;
        let version = before.as_ref().map(|before| before.file.version.as_str());
        match self.files.put(&name, text, resources, version).await {
            Ok(file) => {
                facts_of.put(&name, &facts).await?;
                Ok(StoredSkill { file, facts, is_new: before.is_none() })
            }
            Err(error) => {
                match &noted {
                    Some(noted) => facts_of.put(&name, noted).await?,
                    None => facts_of.forget(&name).await?,
                }
                Err(match error {
                    WriteError::Exists { .. } => StoreSkillError::Taken(name),
                    WriteError::Missing | WriteError::Changed => StoreSkillError::Busy(name),
                    WriteError::Store(error) => StoreSkillError::Store(error),
                })
            }
        }
    }

    /// The skill that has a name now; an error if it is another's.
    async fn before(
        &self,
        name: &str,
        owner: Option<&str>,
        noted: Option<&SkillFacts>,
    ) -> Result<Option<Before>, StoreSkillError> {
        let taken = || StoreSkillError::Taken(name.to_owned());
        // Whose a file is cannot be told when it cannot be read.
        let file = match self.files.read(name).await {
            Err(StoreError::Damaged { .. }) => return Err(taken()),
            file => file?,
        };
        let Some(file) = file else { return Ok(None) };
        let stored = StoredSkillFile::read(name, &file.text, Purpose::Load).map_err(|_| taken())?;
        if stored.owner.as_deref() != owner {
            return Err(taken());
        }
        let facts = SkillFacts::holding(noted, stored.owner, file.created_at);
        let now = match &facts.digest {
            Some(_) => Some(digest(&file.text, &self.resources(name).await?)),
            None => None,
        };
        Ok(Some(Before { file, facts, now }))
    }

    /// Makes a skill of one file. What was noted of one that was removed by hand does not hold for it.
    pub(crate) async fn create(
        &self,
        name: &str,
        text: &str,
        owner: &str,
    ) -> Result<Result<SkillFile, WriteError>, StoreSkillError> {
        let (skill_writer, name, text) = (self.clone(), name.to_owned(), text.to_owned());
        let owner = owner.to_owned();
        to_the_end(async move {
            let create = async {
                skill_writer.check_quota(Some(&owner)).await?;
                let made = skill_writer.files.create(&name, &text).await;
                if made.is_ok() {
                    skill_writer.forget(&name).await;
                }
                Ok(made)
            };
            let create = Box::pin(skill_writer.in_turn(&name, create));
            skill_writer.in_turn_of(Some(&owner), create).await
        })
        .await
    }

    /// Removes a skill that still has a version, with what is known of it.
    pub(crate) async fn remove(
        &self,
        name: &str,
        version: &str,
    ) -> Result<Result<(), WriteError>, StoreSkillError> {
        self.remove_with(name, version, Notes::Forgotten).await
    }

    /// Removes a skill that still has a version.
    pub(super) async fn remove_with(
        &self,
        name: &str,
        version: &str,
        notes: Notes,
    ) -> Result<Result<(), WriteError>, StoreSkillError> {
        let (skill_writer, name, version) = (self.clone(), name.to_owned(), version.to_owned());
        to_the_end(async move {
            let remove = async {
                let removed = skill_writer.files.delete(&name, Some(&version)).await;
                if removed.is_ok() && notes == Notes::Forgotten {
                    skill_writer.forget(&name).await;
                }
                Ok(removed)
            };
            skill_writer.in_turn(&name, remove).await
        })
        .await
    }

    /// Forgets what is known of a skill that is gone, in its turn: afterwards another one may have the
    /// name. If that fails nothing is wrong: what is known of a skill that is not there does no harm.
    async fn forget(&self, name: &str) {
        if let Err(error) = self.database.skill_facts().forget(name).await {
            tracing::warn!(skill = name, %error, "what was known of a skill is not forgotten");
        }
    }

    /// Follows a skill to its new owner.
    pub(crate) async fn give(&self, name: &str, owner: Option<&str>) {
        if let Err(error) = self.database.skill_facts().give(name, owner).await {
            tracing::warn!(skill = name, %error, "what is known of a skill has its old owner");
        }
    }
}

/// Begins something that is done to its end, also if nobody waits for it any more.
fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, StoreSkillError>> + Send + 'static,
) -> impl Future<Output = Result<T, StoreSkillError>> {
    let task = tokio::spawn(work);
    async {
        let done = task.await;
        done.map_err(|error| StoreSkillError::Store(StoreError::Setting(error.to_string())))?
    }
}

/// The text as it is kept, after it was checked.
fn with_owner(new: &New) -> Result<String, StoreSkillError> {
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
