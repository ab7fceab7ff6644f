//! `savoir publish`: publishes a skill in a registry.

mod rejection;
mod report;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_engine::{Home, approval::shell_word};
use savoir_package::{
    File, Tree, archive,
    limits::MAX_MANIFEST_BYTES,
    registry::{Client, Network, Settings, wire},
    submission::{self, BreakingChanges, PublishOptions, Rejection, Submission},
    trust::Tier,
};
use savoir_scan::{Report, Verdict};
use savoir_skill::{Source, folder::is_skill_file};
use serde_json::{Value, json};

use crate::{
    ask, config, credentials,
    error::CommandError,
    install_context::Progress,
    installed, output,
    remote::{self, Remote},
    runtime, skill_archive,
    trust::Keyring,
};

use super::sign::AnyKey;
use rejection::{refuse_blocked, registry_rejection};
use report::PublishReport;

/// Publish a skill in a registry
#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
A published version cannot be changed or replaced, only yanked. The skill is checked here as in the
registry: the archive, the rules of `savoir check`, name, version, signatures and the scan. The same
files always give the same archive.

A skill that claims a tier above experimental needs a signature: one in its folder, or one created
with --key. Nothing is written into the folder; --key and --unsigned ignore a signature in it.

Examples:
  savoir publish --dry-run               check the skill and show what would be published
  savoir publish my-skill --registry https://skills.example.com/registry
  savoir publish my-skill --namespace acme --key ada --changelog \"Reads tables, too.\"
  savoir publish my-skill --version 1.0.0 --key ~/.ssh/id_ed25519
  savoir publish notes.md --namespace anon      a text without frontmatter; or --namespace acme
  savoir publish my-skill --yes --json          for programs

Exit codes: 0 published, or the dry run succeeded; 1 the skill has an error, or the registry rejects
it; 2 wrong usage or unreadable input; 3 refused: no token, not confirmed, unsigned, or blocked by
the scan."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a person types")]
pub(crate) struct Args {
    /// A skill's folder, an archive of one, or a Markdown file
    #[arg(default_value = ".")]
    path: PathBuf,
    /// Address or name of the registry [default: `registry` in SKILL.md, else the one that the name
    /// belongs to, from `[registries]` in savoir.toml and in your settings]
    #[arg(long, value_name = "URL")]
    registry: Option<String>,
    /// Namespace of the skill; texts without frontmatter need `anon` or a namespace of yours [default:
    /// none]
    #[arg(long, value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Name of a text without frontmatter [default: its first heading]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Version of the skill if SKILL.md has none; the file is not changed
    #[arg(long, value_name = "VERSION")]
    version: Option<String>,
    /// Check the skill and show what would be published without publishing it
    #[arg(long)]
    dry_run: bool,
    /// Changes in this version
    #[arg(long, value_name = "TEXT")]
    changelog: Option<String>,
    /// Scan report in JSON to send with the skill
    #[arg(long, value_name = "FILE")]
    audit_report: Option<PathBuf>,
    /// Publish without a signature, which only experimental skills may do
    #[arg(long, conflicts_with = "key")]
    unsigned: bool,
    /// Sign with a key of yours, as listed by `savoir keys list`, or with an OpenSSH key file
    #[arg(long, value_name = "NAME|FILE")]
    key: Option<String>,
    /// Upload the skill although the local scan blocks it; the registry accepts it only if an
    /// administrator cleared the archive
    #[arg(long)]
    despite_scan: bool,
    /// Publish without confirmation
    #[arg(long, short)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    publish(args)
}

/// A package that passed every check.
struct PublishRequest {
    submission: Submission,
    filename: String,
    bytes: Vec<u8>,
    report: Report,
}

impl PublishRequest {
    fn verdict(&self) -> Verdict {
        self.report.verdict_for(self.submission.claimed.unwrap_or_default())
    }
}

fn publish(args: &Args) -> Result<ExitCode, CommandError> {
    let request = request(args)?;
    let page = PublishReport { request: &request, json: args.json };
    refuse_blocked(args, &request)?;
    if args.dry_run {
        if args.registry.is_some() {
            warn_breaking_changes(&home(args, &request)?, &request);
        }
        page.print_dry_run(args.registry.as_deref())?;
        return Ok(ExitCode::SUCCESS);
    }
    let audit = args.audit_report.as_deref().map(audit).transpose()?;
    let client = registry(args, &request)?;
    let address = client.address();
    warn_breaking_changes(&client, &request);
    confirm_publish(args, &page, &address)?;
    let publish = wire::Publish {
        artifact: request.bytes.clone(),
        filename: request.filename.clone(),
        namespace: request.submission.name.namespace().map(str::to_owned),
        name: args.name.clone(),
        version: args.version.clone(),
        skill: String::from_utf8(request.submission.skill_md.clone()).ok(),
        changelog: args.changelog.clone(),
        audit,
    };
    let progress = Progress::default();
    progress.show(&format!("publishing {}", request.submission.name));
    let published = runtime::block_on(async { Ok(client.publish(&publish).await) });
    progress.clear();
    let published =
        published?.map_err(|error| registry_rejection(error, &address, args, &request))?.published;
    check_stored_package(&request, &published, &address)?;
    page.print_published(&published, &address)?;
    if args.key.is_some() {
        warn_unregistered_key(&client, &request)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Warns about changes that a compatible version must not have. The registry accepts them, but those
/// who have the skill must agree before they can update.
fn warn_breaking_changes(client: &Client, request: &PublishRequest) {
    let Submission { name, version: Some(version), .. } = &request.submission else { return };
    // A registry that does not answer is reported when the skill is published.
    let index = runtime::block_on(async { Ok(client.index(name).await) });
    let Ok(Ok(Some(package))) = index else { return };
    let Some(changes) = request.submission.breaking_changes(&package) else { return };
    let BreakingChanges { before, removed_tools, added_tools, added_permissions, next } = changes;
    let mut what = Vec::new();
    if !removed_tools.is_empty() {
        what.push(format!("it no longer has {}", quoted(&removed_tools)));
    }
    if !added_tools.is_empty() {
        what.push(format!("{} {} new", quoted(&added_tools), are(added_tools.len())));
    }
    if !added_permissions.is_empty() {
        what.push(format!("it requests {} in addition", quoted(&added_permissions)));
    }
    output::print_to_stderr(&format!(
        "warning: {name} {version} breaks users of {before}: {}\nhint: set the version to {next}, or \
         keep what {before} had\n",
        output::cell(&what.join("; "))
    ));
}

fn quoted(words: &[String]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// Warns that a signature does not count in the registry until its key is registered there.
fn warn_unregistered_key(client: &Client, request: &PublishRequest) -> Result<(), CommandError> {
    let Submission { name, signatures, .. } = &request.submission;
    let known = runtime::block_on(async {
        Ok(match name.namespace() {
            Some(namespace) => client.keys(namespace).await,
            None => client.keys_of(name).await,
        })
    })?;
    // If the registry does not list its keys, it is unknown whether this key is registered.
    let Ok(known) = known else { return Ok(()) };
    let used: Vec<&str> =
        signatures.iter().filter_map(|one| one.record.key_id.as_deref()).collect();
    if known.iter().any(|key| key.revoked_at.is_none() && used.contains(&key.key_id.as_str())) {
        return Ok(());
    }
    let key = signatures.iter().find_map(|one| one.record.public_key.as_deref());
    let (team, address) = (name.namespace().unwrap_or(name.last()), client.address());
    output::note(&format!(
        "no key that signed it is registered for `{team}` in {address}, so it is experimental there; \
         to register the key: savoir registry keys add {team} {} --registry {address}",
        shell_word(key.unwrap_or("FILE.pub"))
    ));
    Ok(())
}

/// Fails if the registry published another name or version than the user confirmed.
fn check_stored_package(
    request: &PublishRequest,
    published: &wire::Publication,
    address: &str,
) -> Result<(), CommandError> {
    let Submission { name, version, .. } = &request.submission;
    let same_version = version.as_ref().is_none_or(|version| *version == published.version);
    if published.name == *name && same_version {
        return Ok(());
    }
    let sent = version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let done = format!("{} {}", published.name, published.version);
    Err(CommandError::findings(format!("{address} published {done} instead of {name}{sent}"))
        .with_code("published_otherwise")
        .detail("published", json!(published))
        .hint(format!(
            "show it: savoir info {}@{}; yank it if it is wrong: savoir registry yank {}@{}",
            published.name, published.version, published.name, published.version
        )))
}

/// Reads, checks, signs and packs the skill.
fn request(args: &Args) -> Result<PublishRequest, CommandError> {
    let options = PublishOptions {
        namespace: args.namespace.clone(),
        name: args.name.clone(),
        version: args.version.clone(),
        skill_md: None,
    };
    let rejected = |rejection: Rejection| rejection_error(&args.path, &rejection);
    let (folder, tree) = files(&args.path)?;
    let folder = folder.as_deref();
    let read = |tree: Tree| Submission::of_tree(tree, folder, &options);
    let bare = || submission::unsigned(&tree).map_err(rejected);
    let mut submission = if args.unsigned {
        read(bare()?).map_err(rejected)?
    } else {
        match read(tree.clone()) {
            // --key replaces the signature, so it does not matter that the old one is invalid.
            Err(Rejection::Signature(_)) if args.key.is_some() => {
                read(bare()?).map_err(rejected)?
            }
            read => read.map_err(rejected)?,
        }
    };
    check_name_option(args, &submission)?;
    if let Some(name) = &args.key {
        let signed = sign_files(&args.path, &submission, name)?;
        submission = check_signed_files(signed, &submission, &options).map_err(rejected)?;
    }
    confirm_plain_text(args, &submission)?;
    refuse_unsigned(args, &submission)?;
    let (filename, bytes) = submission.pack().map_err(rejected)?;
    // The archive is read again, as the registry will read it.
    let skill_md = Some(submission.skill_md.clone());
    let submission =
        Submission::read(&bytes, &PublishOptions { skill_md, ..options }).map_err(rejected)?;
    let report = submission.tree.scan();
    Ok(PublishRequest { submission, filename, bytes, report })
}

/// Fails if --name differs from the name in SKILL.md, because a published name cannot be changed.
fn check_name_option(args: &Args, submission: &Submission) -> Result<(), CommandError> {
    let (own, is_prose) = (&submission.name, submission.version.is_none());
    let is_its = |name: &String| name == own.last() || *name == own.to_string();
    let Some(name) = args.name.as_ref().filter(|name| !is_prose && !is_its(name)) else {
        return Ok(());
    };
    let message = format!(
        "{}: the name in SKILL.md is `{}`, but --name is `{name}`",
        args.path.display(),
        own.last()
    );
    Err(CommandError::input(message)
        .with_code("name_differs")
        .hint(format!("to use this name, set `name: {name}` in SKILL.md"))
        .hint(format!("to publish it as `{own}`, leave out --name")))
}

/// Fails for a SKILL.md without frontmatter outside of `anon`: the frontmatter was probably lost by
/// accident.
fn confirm_plain_text(args: &Args, submission: &Submission) -> Result<(), CommandError> {
    let is_prose = submission.version.is_none() && !submission.name.is_anonymous();
    if is_prose && !is_text(&args.path) {
        return Err(rejection_error(&args.path, &Rejection::Prose));
    }
    Ok(())
}

/// Whether a path is a single text file that is published as a skill.
fn is_text(path: &Path) -> bool {
    let named = path.file_name().is_some_and(|name| is_skill_file(&name.to_string_lossy()));
    path.is_file() && !named && !skill_archive::is_archive(path)
}

/// Checks the signed files of the same skill.
fn check_signed_files(
    tree: Tree,
    before: &Submission,
    options: &PublishOptions,
) -> Result<Submission, Rejection> {
    Submission::of_tree(tree, Some(before.name.last()), options)
}

/// The files with a signature by the key of the user.
fn sign_files(path: &Path, submission: &Submission, name: &str) -> Result<Tree, CommandError> {
    let keyring = Keyring::of_user()?;
    let key = AnyKey::named(&keyring, Some(name))?;
    let known = match &key {
        AnyKey::Own { key, .. } => keyring.trusted()?.get(&key.key_id()).cloned(),
        AnyKey::Ssh(_) => None,
    };
    let publisher = known.map(|trusted| trusted.publisher);
    let (skill, version) = submission.signed_as();
    let record = key.sign(&submission.tree, skill, version, publisher.as_deref())?;
    submission.with_record(record).map_err(|rejection| rejection_error(path, &rejection))
}

/// The files of the skill at a path, and the name of its folder. The path is a folder, its SKILL.md, an
/// archive, or another Markdown file.
fn files(path: &Path) -> Result<(Option<String>, Tree), CommandError> {
    let rejected = |rejection: Rejection| rejection_error(path, &rejection);
    let unreadable = |error: std::io::Error| {
        CommandError::input(format!("{}: {error}", path.display()))
            .hint("name a skill's folder, an archive of one, or a Markdown file")
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if skill_archive::is_archive(path) {
        let bytes = skill_archive::bytes(path).map_err(unreadable)?;
        let unpacked = archive::unpack(&bytes).and_then(archive::one_skill);
        return unpacked.map_err(|error| rejected(error.into()));
    }
    let named = path.file_name().is_some_and(|name| is_skill_file(&name.to_string_lossy()));
    let folder = if metadata.is_dir() { Some(path) } else { path.parent().filter(|_| named) };
    let Some(folder) = folder else {
        let mut tree = Tree::default();
        let bytes = skill_archive::bytes(path).map_err(unreadable)?;
        let added = tree.add("SKILL.md".to_owned(), File { bytes, executable: false });
        added.map_err(|error| rejected(archive::ArchiveError::from(error).into()))?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        return Ok((stem, tree));
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let real = folder.canonicalize().map_err(unreadable)?;
    check_no_secrets(&real)?;
    let tree =
        Tree::read(folder).map_err(|error| rejected(archive::ArchiveError::from(error).into()))?;
    let name = real.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok((name, tree))
}

/// Refuses a folder that contains the home, the settings or the data of the user: published files cannot
/// be removed.
fn check_no_secrets(folder: &Path) -> Result<(), CommandError> {
    let real = |place: PathBuf| place.canonicalize().unwrap_or(place);
    let settings = config::user_folder().map(real);
    let data = real(Home::from_environment()?.data().to_owned());
    let around = [Some(real(installed::home()?)), settings.clone(), Some(data)];
    let has_them = around.iter().flatten().any(|place| place.starts_with(folder));
    if !has_them && !settings.is_some_and(|settings| folder.starts_with(settings)) {
        return Ok(());
    }
    let shown = folder.display();
    Err(CommandError::refused(format!("{shown} contains your keys, tokens or settings"))
        .with_code("secrets_inside")
        .hint("move the skill into its own folder and publish that folder"))
}

fn rejection_error(path: &Path, rejection: &Rejection) -> CommandError {
    let failed = CommandError::findings(format!("{}: {rejection}", path.display()))
        .with_code(rejection.code())
        .detail("api_code", rejection.api_code().into())
        .detail("findings", json!(rejection.findings()));
    match rejection {
        Rejection::Check { .. } => {
            failed.hint(format!("to see all findings: savoir check {}", path.display()))
        }
        Rejection::Signature(_) => {
            let path = path.display();
            failed
                .hint(format!(
                    "sign it again: savoir sign {path}; or sign only the upload: --key NAME"
                ))
                .hint("or publish it without the signature: --unsigned")
        }
        _ => failed,
    }
}

/// Refuses an unsigned skill that claims a tier above experimental.
fn refuse_unsigned(args: &Args, submission: &Submission) -> Result<(), CommandError> {
    let claimed = submission.claimed.unwrap_or_default();
    if claimed == Tier::Experimental || !submission.signatures.is_empty() {
        return Ok(());
    }
    let message =
        format!("{}: the skill claims the tier {claimed}, but is unsigned", args.path.display());
    Err(CommandError::refused(message)
        .with_code("unsigned")
        .hint("sign it: --key NAME; `savoir keys new NAME` creates a key")
        .hint("or set `security_tier: experimental` in SKILL.md"))
}

/// Reads a scan report. The registry scans as well, and uses the report only if it is worse.
fn audit(path: &Path) -> Result<String, CommandError> {
    let wrong = |why: &dyn std::fmt::Display| {
        CommandError::input(format!("{}: {why}", path.display()))
            .with_code("invalid_audit_report")
            .hint("`savoir scan --json` prints a report")
    };
    let size = fs::metadata(path).map_err(|error| wrong(&error))?.len();
    if size > MAX_MANIFEST_BYTES {
        return Err(wrong(&format!("it has more than {MAX_MANIFEST_BYTES} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| wrong(&error))?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(_)) => Ok(text),
        Ok(_) => Err(wrong(&"it is not a JSON object")),
        Err(error) => Err(wrong(&error)),
    }
}

/// The registry that SKILL.md names. It only chooses where to publish: a downloaded file must not
/// choose where its dependencies come from.
fn declared_registry(submission: &Submission) -> Option<String> {
    let source = Source::from_bytes(submission.skill_md.clone()).ok()?;
    let links = savoir_skill::read(source, None).skill.links;
    links.get("registry").and_then(Value::as_str).map(str::to_owned)
}

/// The registry to publish in, without a token.
fn home(args: &Args, request: &PublishRequest) -> Result<Client, CommandError> {
    let registries = Remote::default().all(Network::Online)?;
    let declared = declared_registry(&request.submission);
    if let Some(typed) = args.registry.as_ref().or(declared.as_ref()) {
        return Ok(registries.named(typed)?);
    }
    let found = registries.client_of(&request.submission.name);
    Ok(found.map_err(remote::without_install_hints)?.clone())
}

/// The registry to publish in, with the token of the user.
fn registry(args: &Args, request: &PublishRequest) -> Result<Client, CommandError> {
    let address = home(args, request)?.address();
    let Some(token) = credentials::token(&address, args.registry.as_deref())? else {
        return Err(CommandError::refused(format!("you are not logged in to {address}"))
            .with_code("unauthorized")
            .hint(format!("log in first: savoir login --registry {address}"))
            .hint("or set the environment variable SAVOIR_TOKEN"));
    };
    let settings = Settings::new(Home::from_environment()?.cache().join("registry"));
    Ok(Client::new(settings, &address, Some(token))?)
}

/// Asks for confirmation, because a published version cannot be removed.
fn confirm_publish(
    args: &Args,
    page: &PublishReport<'_>,
    address: &str,
) -> Result<(), CommandError> {
    if args.yes {
        return Ok(());
    }
    if !ask::can_ask() {
        return Err(CommandError::refused(
            "publishing needs confirmation, and there is no terminal to ask on",
        )
        .with_code("not_agreed")
        .hint("check with --dry-run what would be published, then add --yes"));
    }
    let question = format!("{}\nPublish it in {address}? [y]es, [N]o: ", page.text());
    match ask::line(&question, &ask::yes_or_no)? {
        Some(true) => Ok(()),
        _ => Err(CommandError::refused("the skill was not published: you declined")
            .with_code("not_agreed")),
    }
}
