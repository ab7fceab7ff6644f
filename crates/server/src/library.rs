//! Gives agents access to the skills of one user.

use std::{collections::HashMap, sync::Arc};

use futures::future::{BoxFuture, join_all};
use savoir_agent::{
    library::{CalledBy, Draft, Library, LibraryError, MAX_SERVED_FILE_BYTES, Opened},
    preamble::{Candidate, UnusableSkill},
};
use savoir_skill::Skill;
use savoir_store::{SkillFacts, StoreError, Timestamp, name_of_key};

use crate::{
    access::Scope,
    app::App,
    auth::Caller,
    mcp::SkillFiles,
    personal::{ConflictReason, SkillToStore, StoreSkillError, is_text},
    skill_lookup::ParsedSkill,
};

/// The file that every skill has.
const MANIFEST: &str = "SKILL.md";

/// Number of files that are read at the same time.
const CONCURRENT_READS: usize = 8;

/// The skills that an agent of one user may use: their own and those without an owner, if they are
/// enabled and not archived.
#[derive(Debug)]
pub(crate) struct PersonalLibrary {
    app: App,
    caller: Caller,
}

impl PersonalLibrary {
    pub(crate) fn new(app: App, caller: Caller) -> Self {
        Self { app, caller }
    }

    /// All available skills, with their metadata.
    async fn load_available(&self) -> Result<Vec<(Arc<ParsedSkill>, SkillFacts)>, LibraryError> {
        let kept = self.app.skills.personal(&self.caller).await.map_err(store_failed)?;
        let noted = self.app.database.skill_facts().all().await.map_err(store_failed)?;
        Ok(filter_available(kept, &noted))
    }

    /// One available skill.
    async fn find(&self, name: &str) -> Result<(Arc<ParsedSkill>, SkillFacts), LibraryError> {
        let kept = self.app.skills.personal_one(&self.caller, name).await.map_err(store_failed)?;
        if let Some(kept) = kept {
            let noted = self.app.database.skill_facts().get(&kept.file.key).await;
            let noted = noted.map_err(store_failed)?;
            let facts = kept.facts(noted.as_ref());
            if facts.is_offered() {
                return Ok((kept, facts));
            }
        }
        let others = self.load_available().await?;
        let names = others.iter().map(|(kept, _)| kept.file.name());
        Err(LibraryError::unknown(name, names))
    }

    async fn open_for(&self, name: &str, by: CalledBy) -> Result<Arc<Opened>, LibraryError> {
        let (kept, _) = self.find(name).await?;
        let skill = skill_for_caller(&kept, by)?.clone();
        Ok(Arc::new(Opened { skill, note: None }))
    }

    /// The text files of a skill that a model may read.
    async fn text_files(&self, name: &str) -> Result<Vec<String>, LibraryError> {
        let (kept, _) = self.find(name).await?;
        skill_for_caller(&kept, CalledBy::Model)?;
        let key = kept.file.key.as_str();
        let entries =
            self.app.skills.skill_writer().files().resources(key).await.map_err(store_failed)?;
        let small: Vec<_> =
            entries.into_iter().filter(|entry| entry.size <= MAX_SERVED_FILE_BYTES).collect();
        let mut texts = Vec::new();
        for some in small.chunks(CONCURRENT_READS) {
            let known = join_all(some.iter().map(|entry| self.is_text(key, &entry.path))).await;
            let known = some.iter().zip(known).filter(|(_, is_text)| *is_text);
            texts.extend(known.map(|(entry, _)| entry.path.clone()));
        }
        Ok(texts)
    }

    /// Whether a file can be read as text.
    async fn is_text(&self, key: &str, path: &str) -> bool {
        let found =
            self.app.skills.skill_writer().files().resource(key, path, MAX_SERVED_FILE_BYTES).await;
        matches!(found, Ok(Some(found)) if is_text(&found.bytes))
    }

    /// The storage key of a skill that models or users may call.
    pub(crate) async fn find_usable_key(&self, name: &str) -> Result<String, LibraryError> {
        let (kept, _) = self.find(name).await?;
        parsed_skill(&kept)?;
        Ok(kept.file.key.clone())
    }

    /// Fails unless the skill that is stored under a key is enabled and can be used.
    pub(crate) async fn check_usable(&self, key: &str) -> Result<(), LibraryError> {
        let unknown = || LibraryError::unknown(name_of_key(key), std::iter::empty());
        let file = self.app.skills.skill_writer().files().read(key).await.map_err(store_failed)?;
        let kept = file.and_then(|file| self.app.skills.parse_stored(file).ok());
        let kept = kept.ok_or_else(unknown)?;
        let noted = self.app.database.skill_facts().get(key).await.map_err(store_failed)?;
        if !kept.facts(noted.as_ref()).is_offered() {
            return Err(unknown());
        }
        parsed_skill(&kept).map(drop)
    }

    async fn text(&self, name: &str, path: &str) -> Result<String, LibraryError> {
        let (kept, _) = self.find(name).await?;
        skill_for_caller(&kept, CalledBy::Model)?;
        let files = self.app.skills.skill_writer().files();
        let key = kept.file.key.as_str();
        let entries = files.resources(key).await.map_err(store_failed)?;
        let (own, given) = (name.to_owned(), path.to_owned());
        let Some(entry) = entries.into_iter().find(|entry| entry.path == path) else {
            return Err(LibraryError::NoFile { name: own, path: given });
        };
        if entry.size > MAX_SERVED_FILE_BYTES {
            return Err(LibraryError::TooLarge { path: given, size: entry.size });
        }
        let found = files.resource(key, path, MAX_SERVED_FILE_BYTES).await.map_err(store_failed)?;
        let Some(found) = found else {
            return Err(LibraryError::NoFile { name: own, path: given });
        };
        match String::from_utf8(found.bytes.into()) {
            Ok(text) if !text.contains('\0') => Ok(text),
            _ => Err(LibraryError::NoText { path: given }),
        }
    }

    async fn store_draft(&self, draft: &Draft) -> Result<String, LibraryError> {
        let refused = |reason: String| LibraryError::Draft { reason };
        let enough = [Scope::SkillsDraft, Scope::SkillsWrite];
        if enough.iter().all(|scope| self.caller.check_scope(*scope).is_err()) {
            let reason = Scope::SkillsDraft.missing_scope_hint();
            return Err(refused(format!("{reason}; or give the text to the user")));
        }
        let new = SkillToStore {
            name: draft.name.clone(),
            text: draft.text.clone(),
            resources: Vec::new(),
            owner: Some(self.caller.owner_id()),
        };
        let settled = self.app.skills.skill_writer().store(new, |before| match before {
            // A model must not overwrite an existing skill.
            Some(_) => Err(ConflictReason::There),
            None => {
                Ok(SkillFacts { enabled: false, ..SkillFacts::authored(None, Timestamp::now()) })
            }
        });
        match settled.await {
            Ok(settled) => Ok(settled.file.name().to_owned()),
            Err(StoreSkillError::Store(error)) => Err(store_failed(error)),
            Err(StoreSkillError::Conflict(name) | StoreSkillError::Taken(name)) => {
                Err(refused(format!("a skill `{name}` is there already; take another name")))
            }
            Err(error) => Err(refused(error.to_string())),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the way of an error")]
fn store_failed(error: StoreError) -> LibraryError {
    tracing::error!(%error, "the skills of a person cannot be read");
    // Internal errors are not shown to clients.
    LibraryError::Failed { reason: "the server failed; try again".to_owned() }
}

/// Filters the skills that are enabled and not archived.
fn filter_available(
    kept: Vec<Arc<ParsedSkill>>,
    noted: &HashMap<String, SkillFacts>,
) -> Vec<(Arc<ParsedSkill>, SkillFacts)> {
    let with_facts = kept.into_iter().map(|kept| {
        let facts = kept.facts(noted.get(&kept.file.key));
        (kept, facts)
    });
    with_facts.filter(|(_, facts)| facts.is_offered()).collect()
}

/// A parsed skill; an error if it cannot be used.
fn parsed_skill(kept: &ParsedSkill) -> Result<&Skill, LibraryError> {
    let broken = |reason: &str| LibraryError::Broken {
        name: kept.file.name().to_owned(),
        reason: reason.to_owned(),
    };
    kept.parsed_skill().map_err(broken)
}

/// Like `parsed_skill`, but also an error if the skill does not allow this kind of caller.
fn skill_for_caller(kept: &ParsedSkill, by: CalledBy) -> Result<&Skill, LibraryError> {
    let skill = parsed_skill(kept)?;
    by.check(skill)?;
    Ok(skill)
}

impl Library for PersonalLibrary {
    fn skills(&self) -> BoxFuture<'_, Result<Arc<[Candidate]>, LibraryError>> {
        Box::pin(async {
            let offered = self.load_available().await?;
            let candidates = offered.iter().filter_map(|(kept, facts)| {
                let skill = skill_for_caller(kept, CalledBy::Model).ok()?;
                let last_used = facts.last_used.map(Timestamp::seconds);
                let mut candidate = Candidate::new(skill);
                candidate.pinned = facts.pinned;
                candidate.last_used = last_used;
                Some(candidate)
            });
            Ok(candidates.collect())
        })
    }

    fn unusable(&self) -> BoxFuture<'_, Result<Vec<UnusableSkill>, LibraryError>> {
        Box::pin(async {
            let offered = self.load_available().await?;
            let broken = offered.iter().filter_map(|(kept, _)| {
                let reason = kept.parsed_skill().err()?.to_owned();
                Some(UnusableSkill { name: kept.file.name().to_owned(), reason })
            });
            Ok(broken.collect())
        })
    }

    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>> {
        Box::pin(self.open_for(name, CalledBy::Model))
    }

    fn resources<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, LibraryError>> {
        Box::pin(self.text_files(name))
    }

    fn choices(&self) -> BoxFuture<'_, Result<Vec<String>, LibraryError>> {
        Box::pin(async {
            let offered = self.load_available().await?;
            Ok(offered.iter().map(|(kept, _)| kept.file.name().to_owned()).collect())
        })
    }

    fn choose<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<Opened>, LibraryError>> {
        Box::pin(self.open_for(name, CalledBy::Person))
    }

    fn read<'a>(
        &'a self,
        name: &'a str,
        path: &'a str,
    ) -> BoxFuture<'a, Result<String, LibraryError>> {
        Box::pin(self.text(name, path))
    }

    fn used<'a>(&'a self, name: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Ok((kept, facts)) = self.find(name).await else { return };
            // If this fails, the skill only looks less recently used than it is.
            if let Err(error) = self.app.database.skill_facts().used(&kept.file.key, &facts).await {
                tracing::warn!(skill = name, %error, "the use of a skill was not noted");
            }
        })
    }

    fn save<'a>(&'a self, draft: &'a Draft) -> BoxFuture<'a, Result<String, LibraryError>> {
        Box::pin(self.store_draft(draft))
    }
}

impl SkillFiles for PersonalLibrary {
    fn list<'a>(
        &'a self,
        skill: &'a str,
    ) -> BoxFuture<'a, Result<Vec<(String, u64)>, LibraryError>> {
        Box::pin(async move {
            let (kept, _) = self.find(skill).await?;
            skill_for_caller(&kept, CalledBy::Model)?;
            let own = (MANIFEST.to_owned(), kept.file.text.len() as u64);
            let entries = self.app.skills.skill_writer().files().resources(&kept.file.key).await;
            let others =
                entries.map_err(store_failed)?.into_iter().map(|entry| (entry.path, entry.size));
            let mut files: Vec<_> = std::iter::once(own).chain(others).collect();
            files.sort_unstable();
            Ok(files)
        })
    }

    fn bytes<'a>(
        &'a self,
        skill: &'a str,
        path: &'a str,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<u8>, LibraryError>> {
        Box::pin(async move {
            let (kept, _) = self.find(skill).await?;
            skill_for_caller(&kept, CalledBy::Model)?;
            let size = kept.file.text.len();
            if path == MANIFEST {
                return if size <= most {
                    Ok(kept.file.text.as_bytes().to_vec())
                } else {
                    Err(LibraryError::TooLarge { path: path.to_owned(), size: size as u64 })
                };
            }
            let files = self.app.skills.skill_writer().files();
            let found = files.resource(&kept.file.key, path, most as u64).await;
            let found = found.map_err(store_failed)?;
            let missing = || LibraryError::NoFile { name: skill.to_owned(), path: path.to_owned() };
            Ok(found.ok_or_else(missing)?.bytes.into())
        })
    }
}

#[cfg(test)]
mod tests;
