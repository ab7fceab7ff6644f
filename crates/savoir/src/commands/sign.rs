//! `savoir sign`: signs a skill with a key.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_engine::approval::printable;
use savoir_package::{
    File, Tree,
    trust::{
        self, FurtherSignature, SignatureError, SignatureKind, SigningKey, TrustStore,
        oms::{self, BundleKey, OmsError},
        ssh::{self, SshError},
    },
};
use savoir_skill::Dialect;
use serde_json::{Value, json};

use crate::{
    error::CommandError,
    load, output,
    trust::{Keyring, SignedFolder, kind_and_key},
    write,
};

const SIGNATURE_FILE: &str = "signature.json";
/// The file of OpenSSF model signing.
const OMS_BUNDLE_FILE: &str = "skill.oms.sig";
/// The file of an OpenPGP signature.
const PGP_SIGNATURE_FILE: &str = "signature.asc";

/// Sign a skill with a key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The signature covers every file of the skill's folder, its name and its version. It is stored in the
folder as signature.json. OpenSSH signatures are added to existing ones. So are signatures of
OpenSSF model signing, which are stored as skill.oms.sig if signature.json does not exist.

Examples:
  savoir sign my-skill                   with your only key
  savoir sign my-skill --key ada --publisher \"Ada Lovelace\"
  savoir sign my-skill --ssh-key ~/.ssh/id_ed25519
  savoir sign my-skill --print | gpg --detach-sign --armor > my-skill/signature.asc

Exit codes: 0 signed, 1 the skill has an error or no version, 2 wrong usage or unreadable input,
3 the key is revoked or readable by other users, or signatures of others would be lost.")]
pub(crate) struct Args {
    /// Folder of a skill
    path: PathBuf,
    #[command(flatten)]
    key: KeyArgs,
    /// Your name, stored in the signature [default: the trusted publisher of the key, else the
    /// name of the key]
    #[arg(long, value_name = "NAME", conflicts_with_all = ["ssh_key", "ssh_signature", "print"], value_parser = super::publisher)]
    publisher: Option<String>,
    /// Replace valid signatures of others
    #[arg(long)]
    replace: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The key that signs.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct KeyArgs {
    /// Name of your key, as `savoir keys list` shows it
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// OpenSSH private key, or the public key of one in ssh-agent or on a hardware token
    #[arg(long, value_name = "FILE")]
    ssh_key: Option<PathBuf>,
    /// Signature that `ssh-keygen -Y sign` made of the output of --print
    #[arg(long, value_name = "FILE")]
    ssh_signature: Option<PathBuf>,
    /// P-256 key in PEM format, for OpenSSF model signing
    #[arg(long, value_name = "FILE")]
    oms_key: Option<PathBuf>,
    /// Print the bytes to sign, for other programs, without signing
    #[arg(long)]
    print: bool,
}

/// A signature that is not written yet.
struct NewSignature {
    /// The file of the skill that stores it.
    file: &'static str,
    bytes: Vec<u8>,
    kind: SignatureKind,
    key_id: String,
    publisher: Option<String>,
}

impl NewSignature {
    /// The SHA-256 of each signed file, from the record if it lists them, else of all files except
    /// signatures.
    fn signed_files(&self, tree: &Tree) -> BTreeMap<String, String> {
        let record: Value = serde_json::from_slice(&self.bytes).unwrap_or_default();
        serde_json::from_value(record["files"].clone()).unwrap_or_else(|_| {
            let mut files = tree.digests();
            files.remove(PGP_SIGNATURE_FILE);
            files
        })
    }
}

/// The files to sign, and the existing signatures.
struct SigningJob<'a> {
    signed_folder: &'a SignedFolder,
    name: &'a str,
    version: &'a str,
    store: TrustStore,
    before: ExistingSignatures,
}

/// The existing signatures of the skill.
enum ExistingSignatures {
    /// All of them are valid, or there are none.
    Good,
    /// They do not match the skill, so they may be replaced.
    Stale(SignatureError),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let keyring = Keyring::of_user()?;
    let signed_folder = SignedFolder::read(&args.path)?;
    load::require_correct(&signed_folder.loaded)?;
    let version = signed_folder.version().ok_or_else(|| without_version(&signed_folder))?;
    let (name, store) = (signed_folder.name(), keyring.trusted()?);
    let before = match trust::verify(&signed_folder.tree, name, version, &store) {
        Ok(_) => ExistingSignatures::Good,
        Err(error) => ExistingSignatures::Stale(error),
    };
    let work = SigningJob { signed_folder: &signed_folder, name, version, store, before };
    if args.key.print {
        output::content(&String::from_utf8_lossy(&work.message()?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let made = match &args.key {
        KeyArgs { ssh_key: Some(path), .. } => {
            let signature = ssh::sign(path, &work.message()?).map_err(ssh_failed)?;
            work.with_ssh(signature)?
        }
        KeyArgs { ssh_signature: Some(path), .. } => work.with_ssh(signature_in(path)?)?,
        KeyArgs { oms_key: Some(path), .. } => work.with_bundle(path, args)?,
        KeyArgs { key, .. } => {
            let (key_name, key) = own_key(&keyring, key.as_deref())?;
            work.with_own(&key_name, &key, args)?
        }
    };
    let signed = work.verify_new_signature(&made)?;
    write_signature(&signed_folder.folder, &made)?;
    work.report(args, &made, &signed)
}

/// The key of this name, or the only one.
pub(super) fn own_key(
    keyring: &Keyring,
    name: Option<&str>,
) -> Result<(String, SigningKey), CommandError> {
    let store = keyring.own_keys();
    if let Some(name) = name {
        return Ok((name.to_owned(), store.load(name)?));
    }
    let names: Vec<String> = store.list()?.into_iter().map(|key| key.name).collect();
    match names.as_slice() {
        [] => Err(CommandError::input("you have no key")
            .hint("create one: savoir keys new NAME")
            .hint("or sign with an OpenSSH key: --ssh-key ~/.ssh/id_ed25519")),
        [only] => Ok((only.clone(), store.load(only)?)),
        several => {
            Err(CommandError::input(format!("you have several keys: {}", several.join(", ")))
                .hint("choose one: --key NAME"))
        }
    }
}

/// A key that signs published skills.
pub(super) enum AnyKey {
    /// One of `savoir keys`.
    Own { name: String, key: SigningKey },
    /// An OpenSSH key file: a private key, or the public key of one in ssh-agent or on a token.
    Ssh(PathBuf),
}

impl AnyKey {
    /// The key of this name: one of `savoir keys`, else an OpenSSH key file.
    pub(super) fn named(keyring: &Keyring, name: Option<&str>) -> Result<Self, CommandError> {
        let path = name.map(Path::new).filter(|path| path.is_file());
        if let (Some(path), Some(text)) = (path, name)
            && (text.contains('/') || keyring.own_keys().list()?.iter().all(|own| own.name != text))
        {
            return Ok(Self::Ssh(path.to_owned()));
        }
        let (name, key) = own_key(keyring, name)?;
        Ok(Self::Own { name, key })
    }

    /// The public key as `savoir registry keys add` reads it: its text, or its file.
    pub(super) fn public_text(&self) -> String {
        match self {
            Self::Own { key, .. } => key.public_key().to_text(),
            Self::Ssh(path) if path.extension().is_some_and(|end| end == "pub") => {
                path.display().to_string()
            }
            Self::Ssh(path) => format!("{}.pub", path.display()),
        }
    }

    /// Returns the signed record of a skill.
    pub(super) fn sign(
        &self,
        tree: &Tree,
        name: &str,
        version: &str,
        publisher: Option<&str>,
    ) -> Result<Vec<u8>, CommandError> {
        match self {
            Self::Own { name: own, key } => {
                Ok(trust::sign(tree, name, version, publisher.unwrap_or(own), key))
            }
            Self::Ssh(path) => {
                let record = trust::unsigned(tree, name, version);
                let as_findings = |error: SignatureError| CommandError::findings(error);
                let bytes = trust::signed_bytes(&record).map_err(as_findings)?;
                let signature = ssh::sign(path, &bytes).map_err(ssh_failed)?;
                trust::countersign(&record, FurtherSignature::SshSig(signature))
                    .map_err(as_findings)
            }
        }
    }
}

/// The identifier of the key that made a record.
pub(super) fn key_id_of(record: &[u8]) -> String {
    signers(record).into_iter().next().unwrap_or_default()
}

fn without_version(signed_folder: &SignedFolder) -> CommandError {
    let path = signed_folder.loaded.path.display();
    let dialect = signed_folder.loaded.reading.detection.dialect;
    let hint = if dialect == Dialect::PROSE {
        "add a frontmatter first: savoir convert SKILL --to agentskills"
    } else if dialect.schema()["properties"].get("version").is_some() {
        "add it to the frontmatter: version: 1.0.0"
    } else {
        "add it to the frontmatter: metadata: {version: \"1.0.0\"}"
    };
    CommandError::findings(format!("{path} has no version, which a signature needs")).hint(hint)
}

impl SigningJob<'_> {
    /// The existing record of the skill.
    fn record(&self) -> Option<(&'static str, &[u8])> {
        let place = trust::file_name(&self.signed_folder.tree)?;
        Some((place, &self.signed_folder.tree.get(place)?.bytes))
    }

    /// The existing record, if its signatures are valid.
    fn good_record(&self) -> Option<(&'static str, &[u8])> {
        self.record().filter(|_| matches!(self.before, ExistingSignatures::Good))
    }

    /// A record to add a signature to.
    fn base(&self) -> (&'static str, Vec<u8>) {
        if let Some((file, bytes)) = self.good_record() {
            return (file, bytes.to_vec());
        }
        let file = self.record().map_or(SIGNATURE_FILE, |(file, _)| file);
        (file, trust::unsigned(&self.signed_folder.tree, self.name, self.version))
    }

    fn with_own(
        &self,
        key_name: &str,
        key: &SigningKey,
        args: &Args,
    ) -> Result<NewSignature, CommandError> {
        let key_id = key.key_id();
        let mut others = self.good_record().map(|(_, bytes)| signers(bytes)).unwrap_or_default();
        others.retain(|other| *other != key_id);
        if !others.is_empty() && !args.replace {
            let file = self.signed_folder.folder.join(SIGNATURE_FILE);
            return Err(CommandError::refused(format!(
                "{} has signatures that would be lost: {}",
                file.display(),
                printable(&others.join(", "))
            ))
            .with_code("signature_others")
            .hint("to keep them and add yours: --ssh-key FILE")
            .hint("to replace them: --replace"));
        }
        let known = self.store.get(&key_id).map(|trusted| trusted.publisher.clone());
        let publisher = args.publisher.clone().or(known).unwrap_or_else(|| key_name.to_owned());
        let file = self.record().map_or(SIGNATURE_FILE, |(file, _)| file);
        let bytes = trust::sign(&self.signed_folder.tree, self.name, self.version, &publisher, key);
        let (kind, publisher) = (SignatureKind::Ed25519, Some(publisher));
        Ok(NewSignature { file, bytes, kind, key_id, publisher })
    }

    /// The bytes that other programs sign.
    fn message(&self) -> Result<Vec<u8>, CommandError> {
        trust::signed_bytes(&self.base().1).map_err(|error| self.record_error(&error))
    }

    fn with_ssh(&self, signature: String) -> Result<NewSignature, CommandError> {
        let (file, base) = self.base();
        let bytes = self.add_signature(&base, FurtherSignature::SshSig(signature))?;
        let key_id = signers(&bytes).pop().unwrap_or_default();
        // A second signature of the same key is not added.
        let bytes = if signers(&base).contains(&key_id) { base } else { bytes };
        Ok(NewSignature { file, bytes, kind: SignatureKind::SshSig, key_id, publisher: None })
    }

    fn with_bundle(&self, path: &Path, args: &Args) -> Result<NewSignature, CommandError> {
        let failed = |error: OmsError| match error {
            OmsError::File(error) => error.into(),
            error => CommandError::input(format!("{}: {error}", path.display()))
                .with_code(error.code())
                .hint("create one: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256"),
        };
        let key = BundleKey::read(path).map_err(failed)?;
        let key_id = key.public_key().map_err(failed)?.key_id();
        let publisher = args.publisher.clone();
        let says = publisher.as_deref().unwrap_or_default();
        let bundle = oms::sign(&self.signed_folder.tree, self.name, self.version, says, &key);
        let bundle = bundle.map_err(failed)?;
        let kind = SignatureKind::Oms;
        let alone = self.record().is_none();
        if alone
            && (self.signed_folder.tree.get(OMS_BUNDLE_FILE).is_none()
                || self.replaces_bundle(args))
        {
            let bytes = format!("{bundle}\n").into_bytes();
            return Ok(NewSignature { file: OMS_BUNDLE_FILE, bytes, kind, key_id, publisher });
        }
        let (file, base) = self.base();
        let bytes = if signers(&base).contains(&key_id) {
            base
        } else {
            self.add_signature(&base, FurtherSignature::Oms(bundle))?
        };
        Ok(NewSignature { file, bytes, kind, key_id, publisher })
    }

    fn replaces_bundle(&self, args: &Args) -> bool {
        args.replace || matches!(self.before, ExistingSignatures::Stale(_))
    }

    fn add_signature(
        &self,
        record: &[u8],
        further: FurtherSignature,
    ) -> Result<Vec<u8>, CommandError> {
        trust::countersign(record, further).map_err(|error| self.record_error(&error))
    }

    fn record_error(&self, error: &SignatureError) -> CommandError {
        let folder = self.signed_folder.folder.display();
        let failed = match error {
            SignatureError::Revoked { .. } => CommandError::refused(format!("{folder}: {error}")),
            _ => {
                CommandError::findings(format!("{folder}: the signature would be invalid: {error}"))
            }
        };
        failed.with_code(error.code())
    }

    /// The skill with its new signature, verified as other users will verify it.
    fn verify_new_signature(&self, made: &NewSignature) -> Result<Tree, CommandError> {
        let mut signed = Tree::default();
        let others = self.signed_folder.tree.files().filter(|(path, _)| *path != made.file);
        let others = others.map(|(path, file)| (path.to_owned(), file.clone()));
        let added = File { bytes: made.bytes.clone(), executable: false };
        for (path, file) in others.chain([(made.file.to_owned(), added)]) {
            signed.add(path, file).map_err(|error| {
                CommandError::findings(format!("{}: {error}", self.signed_folder.folder.display()))
            })?;
        }
        match trust::verify(&signed, self.name, self.version, &self.store) {
            Ok(_) => Ok(signed),
            Err(error) => Err(self.record_error(&error).hint(format!(
                "nothing was written; first remove files with signatures that are no longer valid, \
                 such as {OMS_BUNDLE_FILE} and {PGP_SIGNATURE_FILE}"
            ))),
        }
    }

    fn report(
        &self,
        args: &Args,
        made: &NewSignature,
        signed: &Tree,
    ) -> Result<ExitCode, CommandError> {
        let permissions = &self.signed_folder.loaded.reading.skill.permissions;
        let replaced = match &self.before {
            // The hint is left out, because the skill was just signed.
            ExistingSignatures::Stale(error) => Some(without_hint(&error.to_string())),
            ExistingSignatures::Good => None,
        };
        let file = self.signed_folder.folder.join(made.file);
        if args.json {
            output::json(&json!({
                "name": self.name, "version": self.version, "key_id": made.key_id,
                "kind": made.kind, "publisher": made.publisher, "file": file,
                "integrity": signed.integrity(), "permissions": permissions,
                "files": made.signed_files(signed), "replaced": replaced,
            }))?;
            return Ok(ExitCode::SUCCESS);
        }
        let by = made.publisher.as_deref().map(|name| format!("{name}, ")).unwrap_or_default();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "signed         {}", printable(&self.signed_folder.title()));
        let by = by + &kind_and_key(made.kind, &made.key_id);
        let _ = writeln!(text, "by             {}", printable(&by));
        let _ = writeln!(text, "written to     {}", file.display());
        if let Some(why) = replaced {
            let _ = writeln!(text, "replaced       an invalid signature: {}", printable(&why));
        }
        let _ = writeln!(text, "integrity      {}", signed.integrity());
        let permissions = permissions.iter().map(ToString::to_string);
        lines(&mut text, "permissions", permissions, "none declared");
        let files = made.signed_files(signed).into_iter();
        let files = files.map(|(path, digest)| format!("{digest}  {path}"));
        lines(&mut text, "files", files, "none");
        output::text(&output::sanitize(&text))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn without_hint(message: &str) -> String {
    message.rsplit_once("; ").map_or(message, |(what, _)| what).to_owned()
}

fn lines(text: &mut String, label: &str, lines: impl Iterator<Item = String>, none: &str) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        let _ = writeln!(text, "{label:14} {none}");
    }
    for (index, line) in lines.enumerate() {
        let label = if index == 0 { label } else { "" };
        let _ = writeln!(text, "{label:14} {}", printable(&line));
    }
}

/// The keys whose signatures a record has.
fn signers(record: &[u8]) -> Vec<String> {
    let record: Value = serde_json::from_slice(record).unwrap_or_default();
    let further = record["signatures"].as_array().into_iter().flatten();
    let further = further.map(|entry| entry["keyid"].as_str().or(entry["type"].as_str()));
    let all = std::iter::once(record["key_id"].as_str()).chain(further);
    all.flatten().map(str::to_owned).collect()
}

fn signature_in(path: &Path) -> Result<String, CommandError> {
    let text = fs::read_to_string(path);
    text.map_err(|error| CommandError::input(format!("{} cannot be read: {error}", path.display())))
}

fn ssh_failed(error: SshError) -> CommandError {
    match error {
        SshError::Key(error) => error.into(),
        error => CommandError::input(error).with_code("ssh_key"),
    }
}

/// Writes the signature into the skill's folder.
fn write_signature(folder: &Path, made: &NewSignature) -> Result<(), CommandError> {
    let path = folder.join(made.file);
    let failed = |why: &dyn std::fmt::Display| {
        CommandError::input(format!("{} cannot be written: {why}", path.display()))
    };
    // The target of a symlink would be overwritten.
    if path.is_symlink() {
        return Err(failed(&"it is a symlink").hint("remove the symlink"));
    }
    write::replace(&path, &String::from_utf8_lossy(&made.bytes)).map_err(|error| failed(&error))
}
