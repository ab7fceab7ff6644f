//! A package to publish, parsed and checked.
//!
//! [`Submission::read`] is the only way in: for `savoir publish`, for the server's route and for the
//! import of other collections. So what one of them accepts, all of them accept, and a [`Rejection`]
//! has the same code and the same sentence everywhere. Nothing is run, and nothing is written; no
//! file is read but the bytes that are handed over.
//!
//! The order is from the outside in: the size of the archive, its structure, its layout, SKILL.md and
//! the rules of `savoir check`, the name, the version, what an index can hold, the signatures.
//!
//! ```
//! use savoir_package::{File, Tree, submission::{PublishOptions, Submission, pack}};
//!
//! let mut tree = Tree::default();
//! let text = "---\nname: demo\ndescription: Says hello. Use when greeting.\nmetadata:\n  version: \"1.0.0\"\n---\n# Demo\n";
//! tree.add("SKILL.md".into(), File { bytes: text.into(), executable: false })?;
//! let submission = Submission::of_tree(tree, Some("demo"), &PublishOptions::default())?;
//! let (filename, bytes) = submission.pack()?;
//! assert_eq!(filename, "demo-1.0.0.zip");
//! assert_eq!(Submission::read(&bytes, &PublishOptions::default())?.integrity, submission.integrity);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use rejection::{Rejection, SubmissionFinding};

/// What the publisher says beside the package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PublishOptions {
    /// The namespace, if the name does not stand alone; prose has one, such as `anon`.
    pub namespace: Option<String>,
    /// What prose is to be called; other skills have a name of their own.
    pub name: Option<String>,
    /// The version of a file that does not say one.
    pub version: Option<String>,
    /// The SKILL.md that was sent beside the archive.
    pub skill_md: Option<Vec<u8>>,
}

/// A package that can be published.
#[derive(Clone, Debug)]
pub struct Submission {
    /// What it is called in the registry.
    pub name: Name,
    /// Its version; none for prose, of which the registry counts the versions.
    pub version: Option<Version>,
    /// Its files, without the folder that they were packed in.
    pub tree: Tree,
    /// SKILL.md, byte for byte.
    pub skill_md: Vec<u8>,
    /// What a lock holds it to.
    pub integrity: String,
    /// Its files with their digests, sorted by path.
    pub files: Vec<FileDigest>,
    /// The frontmatter.
    pub manifest: Value,
    /// The dialect it is written in.
    pub dialect: String,
    /// What it does.
    pub description: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// Under which terms.
    pub license: Option<String>,
    /// Words for it.
    pub tags: Vec<String>,
    /// Where more is written about it: an address of the web.
    pub homepage: Option<String>,
    /// Where its source is: an address of the web.
    pub repository: Option<String>,
    /// The tier that it claims.
    pub claimed: Option<Tier>,
    /// What it asks for, as `domain:level:scope`.
    pub permissions: Vec<String>,
    /// The tools that it brings or uses, as an index lists them.
    pub tools: Vec<String>,
    /// The skills that it needs, as `name@range`.
    pub dependencies: Vec<String>,
    /// The instructions.
    pub body: String,
    /// The signatures that it brings.
    pub signatures: Vec<FoundSignature>,
    /// What the rules say that does not keep it from being published.
    pub warnings: Vec<SubmissionFinding>,
    written: WrittenName,
}

/// Name and version as SKILL.md has them, which is what is signed.
#[derive(Clone, Debug)]
struct WrittenName {
    name: String,
    version: String,
}

/// A signature of a submission. None of them is wrong, or it would have been rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundSignature {
    /// The signature, as it is kept.
    pub record: SignatureRecord,
    /// Whether it holds under the key that it brings. Of the others only those who have the key can
    /// tell: see [`Submission::attested_by`].
    pub holds: bool,
}

/// What a skill claims to be. Nobody can vouch for one of some dialects, whatever it says.
fn claimed(skill: &Skill) -> Option<Tier> {
    if skill.dialect.running().attestable { skill.policy.tier } else { Some(Tier::Experimental) }
}

impl Submission {
    /// Reads and checks an archive.
    pub fn read(artefact: &[u8], asked: &PublishOptions) -> Result<Self, Rejection> {
        let (folder, tree) = archive::unpack(artefact).and_then(archive::one_skill)?;
        Self::of_tree(tree, folder.as_deref(), asked)
    }

    /// Checks the files of a skill, which lie in a folder of this name.
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

    /// What these keys attest: each signature that one of them made has a role in it. To check one of
    /// OpenPGP, `gpgv` is started; all others are checked right here.
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

    /// The name and the version that a signature must name.
    pub fn signed_as(&self) -> (&str, &str) {
        (&self.written.name, &self.written.version)
    }

    /// The files with this record as their signature, in memory only.
    pub fn with_record(&self, bytes: Vec<u8>) -> Result<Tree, Rejection> {
        let place = trust::file_name(&self.tree).unwrap_or("signature.json");
        let file = File { bytes, executable: false };
        Ok(self.tree.with_file(place, file).map_err(ArchiveError::from)?)
    }

    /// The archive, and what it is called.
    pub fn pack(&self) -> Result<(String, Vec<u8>), Rejection> {
        Ok(pack(&self.tree, &self.name, self.version.as_ref())?)
    }
}

/// The files of a skill without any signature, whether it holds or not.
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

/// The archive of a skill, and what it is called. The same files give the same bytes, whenever and
/// wherever they are packed. Prose has no version yet.
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

/// Checks the signatures as far as that goes without knowing anybody.
fn signatures(tree: &Tree, written: &WrittenName) -> Result<Vec<FoundSignature>, Rejection> {
    let nobody = TrustStore::default();
    let attested = trust::verify(tree, &written.name, &written.version, &nobody)?;
    let holds = |record: &SignatureRecord| {
        let is_it = |signer: &Signer| {
            signer.kind == record.kind && Some(&signer.key_id) == record.key_id.as_ref()
        };
        attested.signatures.iter().any(is_it)
    };
    let found = trust::records(tree)?.into_iter();
    Ok(found.map(|record| FoundSignature { holds: holds(&record), record }).collect())
}
