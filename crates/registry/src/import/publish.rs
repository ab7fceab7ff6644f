//! Adds versions to the registry.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use jiff::Timestamp as JiffTimestamp;
use savoir_package::registry::wire::IndexLine;
use savoir_skill::digest::sha256_hex;
use savoir_store::{
    StoreError, Timestamp,
    registry::{
        Actor, MemberRecord, NewSignature, NewVersion, PackageName, PackageRecord, Record,
        Registry, RegistryError, SignatureRecord, Signer, VersionRecord,
    },
};
use semver::{BuildMetadata, Version};

use super::{
    ImportMode, ImportPlan, ImportRefusal, ImportSummary,
    find_skills::{ImportJob, MirroredPackage},
    prepare_version::PreparedVersion,
};

/// Maximum size of a reason, in bytes.
const MAX_REASON_BYTES: usize = 4096;

/// Prefix of the reason if a version was taken down in the mirror.
const TAKEN_DOWN_REASON: &str = "it was taken down where it came from: ";

#[derive(Debug)]
struct ExistingVersion {
    /// Empty if it was taken down.
    sha256: String,
    yanked: bool,
}

/// Cached data of a package.
#[derive(Debug, Default)]
struct ExistingPackage {
    /// Whether the package exists in the registry.
    is_old: bool,
    /// The last number that the registry assigned to a text.
    last: u64,
    versions: BTreeMap<Version, ExistingVersion>,
}

pub(super) struct Publisher<'a> {
    registry: Registry<'a>,
    plan: &'a ImportPlan,
    known: HashMap<PackageName, ExistingPackage>,
    /// Versions of this batch that were taken down in the mirror, with their reasons.
    gone: BTreeMap<PackageName, Vec<(Version, Option<String>)>>,
}

/// Removes build metadata: versions that differ only in it are the same.
fn without_build_metadata(version: &Version) -> Version {
    Version { build: BuildMetadata::EMPTY, ..version.clone() }
}

impl<'a> Publisher<'a> {
    pub(super) fn new(registry: Registry<'a>, plan: &'a ImportPlan) -> Self {
        Self { registry, plan, known: HashMap::new(), gone: BTreeMap::new() }
    }

    async fn existing_package(
        &mut self,
        package: &PackageName,
    ) -> Result<&mut ExistingPackage, StoreError> {
        if !self.known.contains_key(package) {
            let mut known = ExistingPackage::default();
            if let Some(found) = self.registry.package(package).await? {
                known.is_old = true;
                for version in found.versions {
                    let there = ExistingVersion { sha256: version.sha256, yanked: version.yanked };
                    known.versions.insert(without_build_metadata(&version.version), there);
                }
                for number in self.registry.numbers(package).await? {
                    known.last = known.last.max(number.patch);
                    let withdrawn = || ExistingVersion { sha256: String::new(), yanked: true };
                    known.versions.entry(without_build_metadata(&number)).or_insert_with(withdrawn);
                }
            }
            self.known.insert(package.clone(), known);
        }
        Ok(self.known.entry(package.clone()).or_default())
    }

    /// Starts a batch: leaves out versions that exist, as far as that is known without reading them.
    pub(super) async fn skip_existing(
        &mut self,
        jobs: Vec<ImportJob>,
        done: &mut ImportSummary,
    ) -> Result<Vec<ImportJob>, StoreError> {
        self.known.clear();
        self.gone.clear();
        let mut left = Vec::with_capacity(jobs.len());
        for job in jobs {
            let ImportJob::Package(mut mirrored) = job else {
                left.push(job);
                continue;
            };
            self.take_down(&mirrored, done).await?;
            self.skip_existing_versions(&mut mirrored, done).await?;
            left.push(ImportJob::Package(mirrored));
        }
        Ok(left)
    }

    /// Reserves versions that were taken down in the mirror. Existing ones are only yanked; an
    /// administrator of this registry can take them down.
    async fn take_down(
        &mut self,
        mirrored: &MirroredPackage,
        done: &mut ImportSummary,
    ) -> Result<(), StoreError> {
        for line in &mirrored.gone {
            let Ok(package) = line.name.to_string().parse::<PackageName>() else { continue };
            let why = line.withdrawn_reason.as_deref().unwrap_or_default();
            let why = &why[..why.floor_char_boundary(MAX_REASON_BYTES - TAKEN_DOWN_REASON.len())];
            let known = self.existing_package(&package).await?;
            match known.versions.get_mut(&without_build_metadata(&line.version)) {
                Some(there) if there.yanked => {}
                Some(there) => {
                    there.yanked = true;
                    let why = format!("{TAKEN_DOWN_REASON}{why}");
                    self.yank(&package, &line.version, Some(&why), mirrored, done).await?;
                }
                None => {
                    let there = ExistingVersion { sha256: String::new(), yanked: true };
                    known.versions.insert(without_build_metadata(&line.version), there);
                    let why = Some(why.to_owned()).filter(|why| !why.is_empty());
                    self.gone.entry(package).or_default().push((line.version.clone(), why));
                    done.taken_down += u64::from(self.plan.mode == ImportMode::DryRun);
                }
            }
        }
        Ok(())
    }

    async fn yank(
        &self,
        package: &PackageName,
        version: &Version,
        why: Option<&str>,
        mirrored: &MirroredPackage,
        done: &mut ImportSummary,
    ) -> Result<(), StoreError> {
        if self.plan.mode == ImportMode::Write {
            let yank = self.registry.yank(&Actor::operator(), package, version, why).await;
            progress(yank.map(drop), &mirrored.index, done)?;
        }
        done.yanked += 1;
        Ok(())
    }

    async fn skip_existing_versions(
        &mut self,
        mirrored: &mut MirroredPackage,
        done: &mut ImportSummary,
    ) -> Result<(), StoreError> {
        let Some((_, first)) = mirrored.versions.first() else { return Ok(()) };
        // An invalid name is reported when the version is read.
        let Ok(package) = first.name.to_string().parse::<PackageName>() else { return Ok(()) };
        let known = self.existing_package(&package).await?;
        let mut yanked = Vec::new();
        mirrored.versions.retain(|(_, line)| {
            match known.versions.get(&without_build_metadata(&line.version)) {
                Some(there) if there.sha256 == line.sha256 => {
                    if line.yanked && !there.yanked {
                        yanked.push((line.version.clone(), line.yanked_reason.clone()));
                    }
                    done.skipped += 1;
                    false
                }
                _ => true,
            }
        });
        for (version, why) in yanked {
            self.yank(&package, &version, why.as_deref(), mirrored, done).await?;
        }
        Ok(())
    }

    /// The version, unless it exists. If it exists with other bytes, it is refused.
    pub(super) async fn is_new(
        &mut self,
        mut ready: PreparedVersion,
        done: &mut ImportSummary,
    ) -> Result<Option<PreparedVersion>, StoreError> {
        let known = self.existing_package(&ready.package).await?;
        let version = match &ready.version {
            Some(version) => without_build_metadata(version),
            // The registry assigns versions to texts; the same text does not get a second one.
            None if known.versions.values().any(|there| there.sha256 == ready.sha256) => {
                done.skipped += 1;
                return Ok(None);
            }
            None => {
                let last = known.versions.keys().map(|version| version.patch).max();
                Version::new(0, 0, last.unwrap_or(0).max(known.last).saturating_add(1))
            }
        };
        ready.version.get_or_insert_with(|| version.clone());
        match known.versions.get(&version) {
            Some(there) if there.sha256 == ready.sha256 => {
                done.skipped += 1;
                Ok(None)
            }
            Some(_) => {
                let reason = "this version already exists with other bytes; raise its version";
                let refusal = ImportRefusal::new(&ready.path, "version_exists", reason);
                done.refused.push(refusal.of(&ready));
                Ok(None)
            }
            None => {
                let there = ExistingVersion { sha256: ready.sha256.clone(), yanked: false };
                known.versions.insert(version, there);
                Ok(Some(ready))
            }
        }
    }

    /// Publishes versions that do not exist.
    pub(super) async fn publish(
        &mut self,
        ready: Vec<PreparedVersion>,
        done: &mut ImportSummary,
    ) -> Result<(), StoreError> {
        let mut new: BTreeMap<PackageName, Vec<PreparedVersion>> = BTreeMap::new();
        for one in ready {
            if self.existing_package(&one.package).await?.is_old {
                self.add(one, done).await?;
            } else {
                new.entry(one.package.clone()).or_default().push(one);
            }
        }
        for (package, gone) in std::mem::take(&mut self.gone) {
            if self.existing_package(&package).await?.is_old {
                self.reserve_versions(&package, gone, done).await?;
            } else {
                new.entry(package.clone()).or_default();
                self.gone.insert(package, gone);
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        match self.add_in_one_transaction(&new).await {
            Ok(added) => self.count(added, &new, done),
            Err(RegistryError::Store(error)) => return Err(error),
            // One of them failed, so try each of them alone.
            Err(_) => {
                for (package, versions) in new {
                    let path = versions.first().map(|one| one.path.clone()).unwrap_or_default();
                    let one = BTreeMap::from([(package, versions)]);
                    match self.add_in_one_transaction(&one).await {
                        Ok(added) => self.count(added, &one, done),
                        Err(error) => progress(Err(error), &path, done)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts the versions of added packages.
    fn count(
        &self,
        added: u64,
        packages: &BTreeMap<PackageName, Vec<PreparedVersion>>,
        done: &mut ImportSummary,
    ) {
        let gone = packages.keys().filter_map(|package| self.gone.get(package));
        let gone = gone.map(|gone| gone.len() as u64).sum();
        done.published += added.saturating_sub(gone);
        done.taken_down += gone;
    }

    /// Reserves versions of an existing package.
    async fn reserve_versions(
        &self,
        package: &PackageName,
        gone: Vec<(Version, Option<String>)>,
        done: &mut ImportSummary,
    ) -> Result<(), StoreError> {
        let actor = Actor::operator();
        for (version, why) in gone {
            let why = why.as_deref();
            match self.registry.reserve_withdrawn(&actor, package, &version, why).await {
                Ok(added) => done.taken_down += u64::from(added),
                Err(error) => progress(Err(error), package.to_string().as_ref(), done)?,
            }
        }
        Ok(())
    }

    /// Adds new packages in one transaction.
    async fn add_in_one_transaction(
        &self,
        packages: &BTreeMap<PackageName, Vec<PreparedVersion>>,
    ) -> Result<u64, RegistryError> {
        let mut records = Vec::new();
        for (package, versions) in packages {
            records.push(self.record(package, versions).await?);
        }
        let mut import = self.registry.import(&Actor::operator()).await?;
        let filled = async {
            for record in self.owner_records(packages.keys()).into_iter().chain(records) {
                import.push(record).await?;
            }
            for ready in packages.values().flatten() {
                self.registry.put_blob(ready.artefact.clone().into()).await?;
                self.registry.put_blob(ready.submission.skill_md.clone().into()).await?;
                import.renew().await?;
            }
            Ok(())
        };
        match filled.await {
            Ok(()) => Ok(import.finish().await?.versions),
            Err(error) => {
                import.cancel().await?;
                Err(error)
            }
        }
    }

    /// The namespaces and the owners of packages.
    fn owner_records<'b>(&self, packages: impl Iterator<Item = &'b PackageName>) -> Vec<Record> {
        let now = Timestamp::now().micros();
        let (mut namespaces, mut holdings) = (BTreeSet::new(), BTreeSet::new());
        for package in packages {
            if !package.namespace().is_shared() {
                namespaces.insert(package.namespace().to_string());
            }
            holdings.insert(package.owner_scope().to_string());
        }
        let namespace =
            |name| Record::Namespace { name, created_by: self.plan.owner, created_at: now };
        let owner = self.plan.owner;
        let member = |owner_scope| {
            let member = MemberRecord {
                owner_scope,
                user_id: owner?,
                role: "owner".to_owned(),
                added_by: None,
                added_at: now,
            };
            Some(Record::Member(member))
        };
        let members = holdings.into_iter().filter_map(member);
        namespaces.into_iter().map(namespace).chain(members).collect()
    }

    async fn record(
        &self,
        package: &PackageName,
        versions: &[PreparedVersion],
    ) -> Result<Record, RegistryError> {
        let keys = self.registry.keys(&package.owner_scope()).await?;
        let is_active = |id: &str| keys.iter().any(|key| key.key_id == id && key.revoked.is_none());
        let now = Timestamp::now().micros();
        let mut versions: Vec<&PreparedVersion> = versions.iter().collect();
        versions.sort_by(|a, b| a.assigned_version().cmp_precedence(&b.assigned_version()));
        let record = |ready: &PreparedVersion| version(ready, self.plan, now, is_active);
        let mut versions: Vec<VersionRecord> = versions.into_iter().map(record).collect();
        let gone = self.gone.get(package).into_iter().flatten();
        versions.extend(gone.map(|(version, why)| VersionRecord {
            version: version.to_string(),
            withdrawn_at: Some(now),
            withdrawn_why: Some(why.clone().unwrap_or_default()),
            published_by: self.plan.owner,
            published_at: now,
            ..VersionRecord::default()
        }));
        let created_at = versions.iter().map(|version| version.published_at).min();
        Ok(Record::Package(Box::new(PackageRecord {
            name: package.clone(),
            created_by: self.plan.owner,
            created_at: created_at.unwrap_or(now),
            updated_at: now,
            deprecated: None,
            versions,
        })))
    }

    /// Adds a version to an existing package.
    async fn add(
        &self,
        ready: PreparedVersion,
        done: &mut ImportSummary,
    ) -> Result<(), StoreError> {
        let added = self.add_one(&ready).await;
        if added.is_ok() {
            done.published += 1;
        }
        progress(added, &ready.path, done)
    }

    async fn add_one(&self, ready: &PreparedVersion) -> Result<(), RegistryError> {
        let (actor, package, version) =
            (Actor::operator(), &ready.package, &ready.assigned_version());
        let signature = |(key_id, record): (&String, &String)| NewSignature {
            signer: Signer::Publisher,
            key_id: key_id.clone(),
            record: record.clone(),
        };
        let signatures: Vec<NewSignature> = ready.signatures().map(signature).collect();
        let new = NewVersion {
            package,
            version,
            artefact: ready.artefact.clone().into(),
            skill_md: ready.submission.skill_md.clone().into(),
            integrity: &ready.submission.integrity,
            claimed: ready.submission.claimed,
            facts: &ready.facts,
            signatures: &signatures,
            scan: ready.scan.as_ref(),
            published_at: ready.line.as_ref().and_then(published).map(Timestamp::from_micros),
        };
        self.registry.publish(&actor, new).await?;
        let Some(line) = &ready.line else { return Ok(()) };
        if line.yanked {
            // Shorten the reason of the mirror, so that a long one cannot prevent the yank.
            let why = line.yanked_reason.as_deref();
            let why = why.map(|why| &why[..why.floor_char_boundary(MAX_REASON_BYTES)]);
            self.registry.yank(&actor, package, version, why).await?;
        }
        if let Some(message) = &line.deprecated {
            self.registry.deprecate(&actor, package, Some(version), Some(message)).await?;
        }
        Ok(())
    }
}

fn version(
    ready: &PreparedVersion,
    plan: &ImportPlan,
    now: i64,
    is_active: impl Fn(&str) -> bool,
) -> VersionRecord {
    let line = ready.line.as_ref();
    let published_at = line.and_then(published).unwrap_or(now);
    let signature = |(key_id, record): (&String, &String)| SignatureRecord {
        owner_scope: ready.package.owner_scope().to_string(),
        key_id: key_id.clone(),
        state: if is_active(key_id) { "active" } else { "unknown" }.to_owned(),
        record: record.clone(),
        added_by: plan.owner,
        added_at: now,
    };
    VersionRecord {
        version: ready.assigned_version().to_string(),
        claimed: ready.submission.claimed.map(|tier| tier.as_str().to_owned()),
        integrity: ready.submission.integrity.clone(),
        sha256: ready.sha256.clone(),
        size: ready.artefact.len() as u64,
        skill_md: sha256_hex(&ready.submission.skill_md),
        facts: ready.facts.clone(),
        scan: ready.scan.clone(),
        scanned_at: Some(now),
        yanked_at: line.filter(|line| line.yanked).map(|_| now),
        yanked_why: line.filter(|line| line.yanked).and_then(|line| line.yanked_reason.clone()),
        deprecated: line.and_then(|line| line.deprecated.clone()),
        published_by: plan.owner,
        published_at,
        signatures: ready.signatures().map(signature).collect(),
        ..VersionRecord::default()
    }
}

/// The publication time in a mirror, unless it is in the future.
fn published(line: &IndexLine) -> Option<i64> {
    let time: JiffTimestamp = line.published_at.as_deref()?.parse().ok()?;
    Some(time.as_microsecond()).filter(|time| *time <= Timestamp::now().micros())
}

/// Records a refusal. Only an error of the database ends the import.
fn progress(
    outcome: Result<(), RegistryError>,
    path: &std::path::Path,
    done: &mut ImportSummary,
) -> Result<(), StoreError> {
    match outcome {
        Ok(()) => Ok(()),
        Err(RegistryError::Store(error)) => Err(error),
        Err(error) => {
            done.refused.push(ImportRefusal::new(path, error.code(), &error));
            Ok(())
        }
    }
}
