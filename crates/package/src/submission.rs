//! Reads and checks a package to publish.
//!
//! [`Submission::read`] is used by `savoir publish`, by the publish route of the server and by
//! imports of other collections, so that all of them accept and reject the same packages, with the
//! same codes and messages ([`Rejection`]). Nothing is run, and no files are read or written.
//!
//! The checks go from the outside in: the size of the archive, its structure, its layout, SKILL.md
//! and the rules of `savoir check`, the name, the version, the limits of an index, the signatures.
//!
//! ```
//! use savoir_package::{File, Tree, submission::{PublishOptions, Submission, pack}};
//!
//! let mut tree = Tree::default();
//! let text = "---
//! name: demo
//! description: Says hello. Use when greeting.
//! metadata:
//!   version: \"1.0.0\"
//! ---
//! # Demo
//! ";
//! tree.add("SKILL.md".into(), File { bytes: text.into(), executable: false })?;
//! let submission = Submission::of_tree(tree, Some("demo"), &PublishOptions::default())?;
//! let (filename, bytes) = submission.pack()?;
//! assert_eq!(filename, "demo-1.0.0.zip");
//! assert_eq!(Submission::read(&bytes, &PublishOptions::default())?.integrity,
//! submission.integrity);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod breaking;
mod checked;
mod facts;
mod naming;
mod rejection;

use savoir_skill::{Skill, digest::sha256_hex};
use semver::Version;
use serde_json::Value;

use crate::{
    File, Tree,
    archive::{self, ArchiveError},
    registry::{Name, wire::FileDigest},
    tree::SIGNATURE_FILES,
    trust::{
        self, Attestation, PublicKey, Role, SignatureError, SignatureRecord, Signer, Tier,
        TrustStore, TrustedKey,
    },
};

use self::{checked::CheckedManifest, facts::Facts};
pub use breaking::BreakingChanges;
pub use rejection::{Rejection, SubmissionFinding};

/// Options of the publisher.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishOptions {
    /// The namespace, if the skill gets one. Texts without frontmatter are always in one, such as
    /// `anon`.
    pub namespace: Option<String>,
    /// The name of a text without frontmatter; other skills have their own name.
    pub name: Option<String>,
    /// The version, if SKILL.md has none.
    pub version: Option<String>,
    /// A SKILL.md that was sent in addition to the archive.
    pub skill_md: Option<Vec<u8>>,
}

/// A package that can be published.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The name in the registry.
    pub name: Name,
    /// The version; `None` for a text without frontmatter, whose version the registry assigns.
    pub version: Option<Version>,
    /// The files, without the top-level folder of the archive.
    pub tree: Tree,
    /// The bytes of SKILL.md.
    pub skill_md: Vec<u8>,
    /// The integrity that locks pin.
    pub integrity: String,
    /// The files with their digests, sorted by path.
    pub files: Vec<FileDigest>,
    pub manifest: Value,
    pub dialect: String,
    pub description: String,
    pub author: Option<String>,
    pub license: Option<String>,
    pub tags: Vec<String>,
    /// The URL of the homepage.
    pub homepage: Option<String>,
    /// The URL of the source repository.
    pub repository: Option<String>,
    /// The tier that it claims.
    pub claimed: Option<Tier>,
    /// The requested permissions, as `domain:level:scope`.
    pub permissions: Vec<String>,
    /// The tools that it provides or uses.
    pub tools: Vec<String>,
    /// The dependencies, as `name@range`.
    pub dependencies: Vec<String>,
    /// The instructions.
    pub body: String,
    /// The signatures in its files.
    pub signatures: Vec<FoundSignature>,
    /// Findings of rules that do not prevent publishing.
    pub warnings: Vec<SubmissionFinding>,
    written: WrittenName,
}

/// Name and version as written in SKILL.md, which signatures cover.
#[derive(Clone, Debug)]
struct WrittenName {
    name: String,
    version: String,
}

/// A signature of a submission. Invalid signatures are rejected before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSignature {
    /// The signature as it is stored.
    pub record: SignatureRecord,
    /// Whether it is valid under the public key that it contains. Signatures without their key can
    /// only be checked with [`Submission::attested_by`].
    pub holds: bool,
}

/// Returns the tier that a skill claims. In a dialect in which signatures cannot raise the tier,
/// every skill is experimental, whatever it claims.
fn claimed(skill: &Skill) -> Option<Tier> {
    if skill.dialect.running().attestable { skill.policy.tier } else { Some(Tier::Experimental) }
}

impl Submission {
    /// Reads and checks an archive.
    pub fn read(artefact: &[u8], asked: &PublishOptions) -> Result<Self, Rejection> {
        let (folder, tree) = archive::unpack(artefact).and_then(archive::one_skill)?;
        Self::of_tree(tree, folder.as_deref(), asked)
    }

    /// Checks the files of a skill from a folder of this name.
    pub fn of_tree(
        tree: Tree,
        folder: Option<&str>,
        asked: &PublishOptions,
    ) -> Result<Self, Rejection> {
        let checked = CheckedManifest::new(&tree, folder)?;
        if asked.skill_md.as_ref().is_some_and(|sent| *sent != checked.skill_md) {
            return Err(Rejection::SkillDiffers);
        }
        let name = naming::name(&checked, asked)?;
        let version = naming::version(&checked, asked)?;
        let facts = Facts::new(&tree, &name, &checked)?;
        let mut written = checked.written();
        if let (true, Some(version)) = (written.version.is_empty(), &version) {
            written.version = version.to_string();
        }
        let signatures = signatures(&tree, &written)?;
        Ok(Self {
            integrity: tree.integrity(),
            files: files(&tree),
            manifest: checked.manifest(),
            dialect: checked.skill().dialect.id().to_owned(),
            description: facts.description,
            author: facts.author,
            license: facts.license,
            tags: facts.tags,
            homepage: facts.homepage,
            repository: facts.repository,
            claimed: claimed(checked.skill()),
            permissions: facts.permissions,
            tools: facts.tools,
            dependencies: facts.dependencies,
            body: checked.skill().body.clone(),
            warnings: checked.warnings,
            skill_md: checked.skill_md,
            name,
            version,
            tree,
            signatures,
            written,
        })
    }

    /// Returns what the signatures of these keys attest. OpenPGP signatures are checked by the
    /// program `gpgv`, all others in this process.
    pub fn attested_by(&self, keys: &[PublicKey]) -> Result<Attestation, SignatureError> {
        let trusted = |key: &PublicKey| TrustedKey {
            publisher: key.key_id(),
            key: key.clone(),
            role: Role::Publisher,
            namespaces: None,
        };
        let store = TrustStore::of_keys(keys.iter().map(trusted).collect());
        trust::verify(&self.tree, &self.written.name, &self.written.version, &store)
    }

    /// Returns the name and the version that a signature must cover.
    pub fn signed_as(&self) -> (&str, &str) {
        (&self.written.name, &self.written.version)
    }

    /// Returns the files with this record as `signature.json`.
    pub fn with_record(&self, bytes: Vec<u8>) -> Result<Tree, Rejection> {
        let place = trust::file_name(&self.tree).unwrap_or("signature.json");
        let file = File { bytes, executable: false };
        Ok(self.tree.with_file(place, file).map_err(ArchiveError::from)?)
    }

    /// Returns the file name and the bytes of the archive.
    pub fn pack(&self) -> Result<(String, Vec<u8>), Rejection> {
        Ok(pack(&self.tree, &self.name, self.version.as_ref())?)
    }
}

/// Returns the files of a skill without all signatures.
pub fn unsigned(tree: &Tree) -> Result<Tree, Rejection> {
    without(tree, |path| SIGNATURE_FILES.contains(&path))
}

fn without(tree: &Tree, left_out: impl Fn(&str) -> bool) -> Result<Tree, Rejection> {
    let mut rest = Tree::default();
    for (path, file) in tree.files().filter(|(path, _)| !left_out(path)) {
        rest.add(path.to_owned(), file.clone()).map_err(ArchiveError::from)?;
    }
    Ok(rest)
}

/// Packs a skill; returns the file name and the bytes. The same files always give the same bytes. A
/// text without frontmatter has no version yet.
pub fn pack(
    tree: &Tree,
    name: &Name,
    version: Option<&Version>,
) -> Result<(String, Vec<u8>), ArchiveError> {
    let filename = match version {
        Some(version) => name.artifact(version),
        None => format!("{}.zip", name.last()),
    };
    Ok((filename, archive::pack(name.last(), tree)?))
}

fn files(tree: &Tree) -> Vec<FileDigest> {
    let digest = |(path, file): (&str, &File)| FileDigest {
        path: path.to_owned(),
        sha256: sha256_hex(&file.bytes),
        size: file.bytes.len() as u64,
    };
    tree.files().map(digest).collect()
}

/// Checks the signatures without trusted keys.
fn signatures(tree: &Tree, written: &WrittenName) -> Result<Vec<FoundSignature>, Rejection> {
    let no_keys = TrustStore::default();
    let attested = trust::verify(tree, &written.name, &written.version, &no_keys)?;
    let holds = |record: &SignatureRecord| {
        let made_record = |signer: &Signer| {
            signer.kind == record.kind && Some(&signer.key_id) == record.key_id.as_ref()
        };
        attested.signatures.iter().any(made_record)
    };
    let found = trust::records(tree)?.into_iter();
    Ok(found.map(|record| FoundSignature { holds: holds(&record), record }).collect())
}
