//! `savoir info`: shows details of an installed or published skill.

mod published;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap_complete::engine::ArgValueCompleter;
use savoir_package::{
    Tree,
    ledger::{ClashOutcome, LedgerEntry, NameClash},
    registry::Name,
    source::is_in_local_bare_repository,
};
use savoir_skill::{Skill, folder::is_skill_file, skill::Policy, version::VersionRange};
use semver::Version;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    show::{self, Page},
    status::clash_json,
};
use crate::{
    completion,
    error::CommandError,
    installed::{ExaminedSkill, Installed, InstalledSkillJson, Locked, limit_names, source, state},
    load::{self, Loaded},
    lookup::{self, Fetched, sort_by_precedence},
    offline, output,
    remote::Remote,
};

/// The state of a skill that was fetched only to show it.
const NOT_INSTALLED: &str = "not installed";

/// Show details of an installed or published skill
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir info pdf
  savoir info .claude/skills/pdf
  savoir info pdf --json
  savoir info github:owner/repo/pdf      a skill that is not installed
  savoir info acme/pdf@^1.2 --registry https://skills.example.com/registry

If several installed skills have the name, all are shown. A name that no installed skill has is
looked up in its registry. With --registry, only that registry is used.

Exit codes: 1 a skill has errors, or the registry does not have it, 2 wrong usage, or the skill
is not installed and no registry is configured.")]
pub(crate) struct Args {
    /// Name or folder of a skill
    #[arg(value_name = "NAME[@RANGE]|PATH", add = ArgValueCompleter::new(completion::skills_and_paths))]
    skill: String,
    #[command(flatten)]
    remote: Remote,
    /// Use only downloaded data, without network access
    #[arg(long)]
    offline: bool,
    /// The project [default: the nearest folder above with savoir.toml, a lock or .git]
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let wanted = published::PublishedRef::parse(&args.skill);
    let network = offline::network(args.offline);
    if args.remote.registry.is_some() {
        let wanted = wanted.ok_or_else(|| no_name(&args.skill))?;
        let client = args.remote.client_on(network, wanted.name())?;
        return published::run(&wanted, &client, &args.remote, args.json);
    }
    let installed = Installed::open(args.project.as_deref())?;
    installed.warn();
    let (lone, located);
    let named = installed.ledger.named(&args.skill).iter().collect();
    let mut entries: Vec<&LedgerEntry> = sort_by_precedence(named, &installed);
    if entries.is_empty() && is_single_file(Path::new(&args.skill)) {
        return single_file(Path::new(&args.skill), args.json);
    }
    if entries.is_empty() {
        let found = folder(&args.skill);
        if found.is_none()
            && let Some(wanted) = wanted
            && let Some(client) = published::home(&wanted, &args.remote, network, &installed)?
        {
            return published::run(&wanted, &client?, &args.remote, args.json);
        }
        let folder = if let Some(folder) = found {
            folder
        } else {
            // The files of a fetched skill exist as long as it does.
            located = lookup::find(Path::new(&args.skill))?;
            if let Some(fetched) = &located.fetched {
                return show_fetched(fetched, args.json);
            }
            absolute(&located)
        };
        entries.extend(at(&folder, &installed));
        if entries.is_empty() {
            lone = LedgerEntry::lone(folder);
            entries.push(&lone);
        }
    }
    let examined = installed.examine(&entries);
    let known: Vec<InstalledDetails<'_>> =
        examined.iter().map(|examined| InstalledDetails::of(examined, &installed)).collect();
    if args.json {
        output::json(
            &json!({ "skills": known.iter().map(InstalledDetails::json).collect::<Vec<_>>() }),
        )?;
    } else {
        let pages: Vec<String> = known.iter().map(InstalledDetails::page).collect();
        output::text(&output::sanitize(&pages.join("\n")))?;
    }
    let broken = known.iter().any(InstalledDetails::is_broken);
    Ok(ExitCode::from(u8::from(broken)))
}

/// Whether a path is a Markdown file that is a skill without a folder.
fn is_single_file(path: &Path) -> bool {
    let is_named = path.file_name().is_some_and(|name| is_skill_file(&name.to_string_lossy()));
    !is_named && path.is_file()
}

/// Shows a skill that is a single file. No agent reads it there.
fn single_file(path: &Path, as_json: bool) -> Result<ExitCode, CommandError> {
    let loaded = load::load(path, None)?;
    let skill = &loaded.reading.skill;
    let bytes = loaded.reading.document.text().len();
    let file = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    if as_json {
        let mut known = json!({
            "name": skill.name,
            "path": absolute(path),
            "version": skill.version,
            "description": skill.truncated_description(),
            "warnings": [],
            "files": [FileSize { path: file.into_owned(), bytes }],
        });
        add_declared(&mut known, &loaded);
        output::json(&json!({ "skills": [known] }))?;
    } else {
        let mut page = Page::default();
        page.field("name", &skill.name);
        page.field("version", skill.version.as_deref().unwrap_or_default());
        page.field("description", skill.truncated_description());
        declared(&mut page, &loaded);
        page.field("files", &format!("{file}  {}", output::plural(bytes, "byte")));
        page.list("warnings", runtime_warnings(&loaded));
        show::findings(&mut page, &loaded);
        output::text(&output::sanitize(&page.text))?;
    }
    Ok(ExitCode::from(u8::from(!loaded.reading.is_usable())))
}

/// Why this version of Savoir does not run the skill.
fn runtime_warnings(loaded: &Loaded) -> impl Iterator<Item = String> {
    const CODES: [&str; 2] = ["runtime-too-new", "unknown-runtime"];
    let found = loaded.reading.diagnostics.iter().filter(|found| CODES.contains(&found.code));
    found.map(|found| found.message.clone())
}

/// What the file declares, besides name, version and description.
fn declared(page: &mut Page, loaded: &Loaded) {
    let skill = &loaded.reading.skill;
    page.field("dialect", skill.dialect.id());
    page.field("claimed tier", skill.policy.tier.map_or("", |tier| tier.as_str()));
    show::identity(page, skill);
    show::inputs_and_output(page, skill);
    show::permissions(page, skill);
    page.list("tools", tools(skill).into_iter().map(str::to_owned));
    page.value("requirements", &serde_json::to_value(&skill.requirements).unwrap_or_default());
    let policy = Policy { tier: None, ..skill.policy.clone() };
    page.value("policy", &serde_json::to_value(policy).unwrap_or_default());
    page.value("other fields", &Value::Object(skill.extra.clone()));
}

/// Adds what the file declares, except for fields that are there already.
fn add_declared(known: &mut Value, loaded: &Loaded) {
    let Some(known) = known.as_object_mut() else { return };
    let skill = &loaded.reading.skill;
    let mut own = serde_json::to_value(skill).unwrap_or_default();
    let own = own.as_object_mut().map(std::mem::take).unwrap_or_default();
    let mut own: Map<String, Value> =
        own.into_iter().filter(|(key, _)| !["body", "resources"].contains(&key.as_str())).collect();
    own.insert("license".into(), json!(show::license(skill)));
    own.insert("claimed_tier".into(), json!(skill.policy.tier));
    own.insert("tools".into(), json!(tools(skill)));
    own.insert("errors".into(), json!(show::error_codes(&loaded.reading)));
    show::add_defaults(&mut own, skill);
    for (key, value) in own {
        known.entry(key).or_insert(value);
    }
    if let Some(warnings) = known.get_mut("warnings").and_then(Value::as_array_mut) {
        warnings.extend(runtime_warnings(loaded).map(Value::from));
    }
}

/// Shows a skill of a source that is not installed.
fn show_fetched(fetched: &Fetched, as_json: bool) -> Result<ExitCode, CommandError> {
    let loaded = load::load(&fetched.path, None)?;
    let (skill, files) = (&loaded.reading.skill, Files::read(&fetched.path));
    if as_json {
        let mut known = json!({
            "name": fetched.name,
            "version": skill.version,
            "description": skill.description,
            "source": fetched.origin,
            "state": NOT_INSTALLED,
            "warnings": [],
        });
        match &files {
            Ok(files) => {
                known["integrity"] = json!(files.integrity);
                known["files"] = json!(files.files);
            }
            Err(problem) => known["files_problem"] = json!(problem),
        }
        add_declared(&mut known, &loaded);
        output::json(&json!({ "skills": [known] }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut page = Page::default();
    page.field("name", &fetched.name);
    page.field("version", skill.version.as_deref().unwrap_or_default());
    page.field("description", &skill.description);
    page.field("source", &fetched.origin);
    page.field("state", NOT_INSTALLED);
    declared(&mut page, &loaded);
    match &files {
        Ok(files) => files.page(&mut page),
        Err(problem) => page.field("files", problem),
    }
    output::text(&output::sanitize(&page.text))?;
    Ok(ExitCode::SUCCESS)
}

fn no_name(text: &str) -> CommandError {
    if let Some((name, range)) = text.split_once('@')
        && Name::parse(name).is_ok()
        && let Err(error) = VersionRange::parse(range)
    {
        return CommandError::input(format!("`{text}`: {error}"))
            .with_code("invalid_range")
            .hint(format!("write a range such as {name}@1.2, {name}@^1.2 or {name}@~=1.2"));
    }
    CommandError::input(format!("`{text}` is not a valid name of a published skill"))
        .with_code("invalid_name")
        .hint("write NAME, NAMESPACE/NAME or NAME@RANGE")
}

/// The folder of a skill that is given by its path.
fn folder(path: &str) -> Option<PathBuf> {
    let path = Path::new(path);
    let is_file = path.file_name().is_some_and(|name| is_skill_file(&name.to_string_lossy()));
    let folder = if is_file && path.is_file() { path.parent()? } else { path };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let folder = folder.canonicalize().ok().filter(|folder| folder.is_dir())?;
    (!is_in_local_bare_repository("", &folder)).then_some(folder)
}

fn absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The installed skill in a folder.
fn at<'a>(folder: &Path, installed: &'a Installed) -> Option<&'a LedgerEntry> {
    let name = folder.file_name()?.to_str()?;
    let same = |entry: &&LedgerEntry| {
        entry.path() == folder || entry.path().canonicalize().is_ok_and(|path| path == folder)
    };
    installed.ledger.named(name).iter().find(same)
}

/// An installed skill with the content of its files.
struct InstalledDetails<'a> {
    examined: &'a ExaminedSkill<'a>,
    installed: &'a Installed,
    locked: Option<&'a Locked>,
    loaded: Option<Loaded>,
    files: Result<Files, String>,
}

#[derive(Serialize)]
struct Files {
    integrity: String,
    files: Vec<FileSize>,
}

#[derive(Serialize)]
struct FileSize {
    path: String,
    bytes: usize,
}

impl<'a> InstalledDetails<'a> {
    fn of(examined: &'a ExaminedSkill<'a>, installed: &'a Installed) -> Self {
        let entry = examined.entry;
        Self {
            examined,
            installed,
            locked: installed.locked_at(entry),
            loaded: load::load(entry.path(), None).ok(),
            files: Files::read(entry.path()),
        }
    }

    fn json(&self) -> Value {
        let known =
            serde_json::to_value(InstalledSkillJson::examined(self.examined, self.installed));
        let mut known = known.unwrap_or_default();
        match &self.loaded {
            Some(loaded) => add_declared(&mut known, loaded),
            None => {
                for key in ["dialect", "permissions", "claimed_tier", "tools"] {
                    known[key] = Value::Null;
                }
            }
        }
        match &self.files {
            Ok(files) => {
                known["integrity"] = json!(files.integrity);
                known["files"] = json!(files.files);
            }
            Err(problem) => known["files_problem"] = json!(problem),
        }
        known["clashes"] = self.clashes().iter().map(clash_json).collect();
        known["locked"] = json!(self.locked.map(|locked| json!({
            "lock": locked.file,
            "version": locked.skill.version.to_string(),
            "source": locked.skill.source.to_string(),
            "integrity": locked.skill.integrity,
            "tier": locked.skill.tier,
            "attested": locked.skill.attested,
            "signer": locked.skill.signer,
        })));
        known
    }

    fn page(&self) -> String {
        let (entry, origin) = (self.examined.entry, self.examined.origin());
        let details = self.examined.details.as_ref().ok();
        let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
        let mut page = Page::default();
        page.field("name", entry.name());
        page.field("SKILL.md name", &text(self.other_name()));
        page.field("version", &text(details.and_then(|details| details.version.as_deref())));
        page.field("description", &text(details.and_then(|d| d.description.as_deref())));
        page.field("folder", &self.installed.shown(entry.path()));
        let links = entry.places().iter().filter_map(|place| place.link());
        page.list("symlinks", links.map(|link| self.installed.shown(link).into_owned()));
        page.field("origin", origin.map_or("plain", |origin| origin.word()));
        page.field("source", &source(origin, self.locked).unwrap_or_default());
        let claims = details.iter().flat_map(|details| &details.claims);
        page.list("also claimed by", claims.map(|claim| claim.word().to_owned()));
        page.field(
            "state",
            &match state(self.examined) {
                (word, Some(why)) => format!("{word}: {why}"),
                (word, None) => word.to_owned(),
            },
        );
        page.field("agents", &self.agents());
        for clash in self.clashes() {
            self.clash(&clash, &mut page);
        }
        self.lock(&mut page);
        if let Some(loaded) = &self.loaded {
            declared(&mut page, loaded);
        }
        match &self.files {
            Ok(files) => files.page(&mut page),
            Err(problem) => page.field("files", problem),
        }
        let warnings = details.iter().flat_map(|details| &details.warnings);
        let runtime = self.loaded.iter().flat_map(runtime_warnings);
        page.list("warnings", warnings.map(ToString::to_string).chain(runtime));
        if let Some(loaded) = &self.loaded {
            show::findings(&mut page, loaded);
        }
        page.text
    }

    /// Whether agents cannot use the skill.
    fn is_broken(&self) -> bool {
        self.examined.details.is_err()
            || self.loaded.as_ref().is_some_and(|loaded| !loaded.reading.is_usable())
    }

    /// The name in SKILL.md, if it differs from the folder name.
    fn other_name(&self) -> Option<&str> {
        let name = self.examined.details.as_ref().ok()?.name.as_deref()?;
        (name != self.examined.entry.name()).then_some(name)
    }

    fn agents(&self) -> String {
        let agents = self.examined.entry.agents();
        let count = agents.len();
        let used = agents.iter().filter(|agent| self.installed.in_use.contains(agent));
        let used: Vec<&str> = used.map(|agent| agent.id).collect();
        match (used.is_empty(), count - used.len()) {
            (true, 0) => "no agent sees it".to_owned(),
            (true, 1) => "none in use; 1 other sees it".to_owned(),
            (true, others) => format!("none in use; {others} others see it"),
            (false, 0) => used.join(", "),
            (false, others) => format!("{}, and {others} that are not in use", used.join(", ")),
        }
    }

    /// Other skills of the same name that an agent in use also sees.
    fn clashes(&self) -> Vec<NameClash<'a>> {
        let entry = self.examined.entry;
        let mut clashes = self.installed.ledger.clashes();
        clashes.retain(|clash| {
            clash.agents.iter().any(|agent| self.installed.in_use.contains(agent))
                && clash.entries.iter().any(|other| other.path() == entry.path())
        });
        clashes
    }

    fn clash(&self, clash: &NameClash<'_>, page: &mut Page) {
        let entry = self.examined.entry;
        let used = clash.agents.iter().filter(|agent| self.installed.in_use.contains(agent));
        let agents = limit_names(used.map(|agent| agent.id));
        let shown = |entry: &&LedgerEntry| self.installed.shown(entry.path()).into_owned();
        let others = clash.entries.iter().filter(|other| other.path() != entry.path());
        let others: Vec<String> = others.map(shown).collect();
        match (clash.outcome, clash.entries.first()) {
            (ClashOutcome::AllShown, _) => {
                page.field("shown beside", &format!("{} in {agents}", others.join(", ")));
            }
            (ClashOutcome::FirstWins, Some(first)) if first.path() != entry.path() => {
                page.field("hidden by", &format!("{} in {agents}", shown(first)));
            }
            (ClashOutcome::FirstWins, _) => {
                page.field("hides", &format!("{} in {agents}", others.join(", ")));
            }
        }
    }

    fn lock(&self, page: &mut Page) {
        let Some(locked) = self.locked else { return };
        let skill = &locked.skill;
        page.field("locked by", &self.installed.shown(&locked.file));
        if skill.version != Version::new(0, 0, 0) {
            page.field("locked version", &skill.version.to_string());
        }
        page.field("tier", skill.tier.as_str());
        page.field("signed by", skill.signer.as_deref().unwrap_or_default());
    }
}

fn tools(skill: &Skill) -> Vec<&str> {
    skill.tools.iter().map(|tool| tool.name.as_str()).collect()
}

impl Files {
    fn read(folder: &Path) -> Result<Self, String> {
        let tree = Tree::read(folder).map_err(|error| error.to_string())?;
        let size = |(path, file): (&str, &savoir_package::File)| FileSize {
            path: path.to_owned(),
            bytes: file.bytes.len(),
        };
        Ok(Self { integrity: tree.integrity(), files: tree.files().map(size).collect() })
    }

    fn page(&self, page: &mut Page) {
        page.field("integrity", &self.integrity);
        let files = self.files.iter();
        let line =
            |file: &FileSize| format!("{}  {}", file.path, output::plural(file.bytes, "byte"));
        page.list("files", files.map(line));
    }
}
