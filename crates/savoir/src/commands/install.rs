//! `savoir install`: installs skills for every agent.

use std::{collections::BTreeMap, env, ffi::OsString, process::ExitCode};

use savoir_package::{
    install::{self, CheckedSkill, FetchReason, InstallOptions, InstallPlan, PlannedChange, State},
    lock::{self, Lock},
    manifest::{self, SkillRequirement},
    registry::RequestedSkill,
    resolve::Update,
    source::{
        self, ExtraKind, GitSource, OfferedSkill, PastedCommand, PinnedSource, PluginExtra, Source,
        SourceOffers, is_shorthand, parse_pasted_command,
    },
};
use serde_json::{Map, Value, json};

use super::{agent as agent_command, sync};
use crate::{
    ask,
    error::CommandError,
    install_context::{
        Choice, Chosen, Consent, FetchedSkills, ForAgents, InstallContext, OutputArgs, Proposal,
        RegistryArgs, Report, ScopeArgs, Skipped, SourceListing, agent, arrived, lacks_needs, list,
        one_per_name, take_replacing, without_culprits, without_unmet_needs,
    },
    lookup::remote,
    output,
};

/// Install skills for every agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Sources:
  ./pdf, ../skills, pdf.zip, notes.md       a folder, an archive or a Markdown file
  owner/repo, owner/repo/path@v1.2          a repository on GitHub, or a folder of it
  gitlab:owner/repo, git@host:owner/repo    a repository elsewhere
  https://host/pdf.zip                      an archive on the web
  https://docs.example.com                  a site that lists its skills
  pdf, pdf@^1.2, acme/pdf@1.2.0             a skill of a registry
  npx skills add owner/repo --skill pdf     a command for another installer, as you copied it

Examples:
  savoir install ./my-skill
  savoir install owner/repo --list
  savoir install owner/repo -s pdf,docx -a claude-code,codex -y
  savoir install owner/repo --all --user -y
  savoir install --frozen                   exactly what savoir.lock pins

The purpose, permissions, signature and scan results of each skill are shown, and you are asked
once; -y answers yes. Files are installed byte for byte. With --all, a skill that cannot be
installed is skipped and the others are installed.
Exit codes: 1 failed or skipped some, 2 wrong usage, 3 not confirmed, blocked, or forged.")]
pub(crate) struct Args {
    /// Where to install from [default: the skills in savoir.toml and savoir.lock]
    #[arg(value_name = "SOURCE")]
    sources: Vec<String>,
    #[command(flatten)]
    choice: Choice,
    #[command(flatten)]
    ask: RegistryArgs,
    /// List the skills of the sources without installing them
    #[arg(long, conflicts_with_all = ["all", "skill", "dry_run"])]
    list: bool,
    #[command(flatten)]
    agents: ForAgents,
    /// Also install for GAIA, with its skill-lock.json; same as --agent gaia
    #[arg(long, value_name = "LAYOUT", value_parser = ["gaia"])]
    layout: Option<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    consent: Consent,
    /// Install exactly what savoir.lock pins, or fail
    #[arg(long, conflicts_with_all = ["sources", "skill", "all", "list", "agent"])]
    frozen: bool,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(mut args: Args) -> Result<ExitCode, CommandError> {
    if let Some(line) = parse_pasted_command(&args.sources)? {
        args.take_line(line)?;
    }
    if let [source] = args.sources.as_slice()
        && let Some(file) = agent_command::agent_file_at(source)
    {
        return agent_command::install_agent(&file, None, args.into_request());
    }
    install(&args)
}

impl Args {
    /// The arguments of an install without sources.
    pub(super) fn of(request: agent_command::InstallRequest) -> Self {
        let agent_command::InstallRequest { ask, agents, scope, consent, output } = request;
        Self {
            sources: Vec::new(),
            choice: Choice::default(),
            ask,
            list: false,
            agents,
            layout: None,
            scope,
            consent,
            frozen: false,
            output,
        }
    }

    pub(super) fn set_sources(&mut self, sources: Vec<String>) {
        self.sources = sources;
    }

    fn into_request(self) -> agent_command::InstallRequest {
        let Self { ask, agents, scope, consent, output, .. } = self;
        agent_command::InstallRequest { ask, agents, scope, consent, output }
    }

    /// Applies the options of a command for another installer.
    fn take_line(&mut self, line: PastedCommand) -> Result<(), CommandError> {
        for word in &line.agents {
            self.agents.agent.push(agent(word).map_err(CommandError::input)?);
        }
        // `npx skills add REPO -y` means every skill.
        self.choice.all |= line.all || line.yes && line.skills.is_empty();
        self.sources = line.sources;
        self.choice.skill.extend(line.skills);
        self.scope.global |= line.global;
        // A `-y` in a copied command does not confirm: its author cannot agree for the user.
        self.list |= line.list;
        Ok(())
    }

    /// Rejects options that need a source.
    fn check_nothing_chosen(&self) -> Result<(), CommandError> {
        let chosen = self.choice.options();
        let list = if self.list { "--list" } else { "" };
        let options = [chosen.as_str(), list].join(" ").trim().to_owned();
        if options.is_empty() {
            return Ok(());
        }
        let error = CommandError::input("no source is given").with_code("no_source");
        let error = error.hint(format!("give one: savoir install SOURCE {options}"));
        Err(if self.list { error.hint("`savoir list` lists installed skills") } else { error })
    }
}

/// Repeats `--skill` and `--agent` for each value, because other installers allow several values:
/// `--skill a b` becomes `--skill a --skill b` after a source. A word with a slash, a colon, a dot
/// or an `@` is a source. `*` means all skills, or the default agents.
pub(crate) fn with_one_value_per_option(args: Vec<OsString>) -> Vec<OsString> {
    let text = |word: Option<&OsString>| {
        word.and_then(|word| word.to_str()).unwrap_or_default().to_owned()
    };
    if !["install", "add"].contains(&text(args.get(1)).as_str()) {
        return args;
    }
    let mut has_all = args.iter().any(|word| word == "--all");
    let mut has_source = false;
    let mut args = args.into_iter().peekable();
    let mut written: Vec<OsString> = args.by_ref().take(2).collect();
    while let Some(word) = args.next() {
        let shown = text(Some(&word));
        let (option, attached) = match shown.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option, Some(value)),
            _ => (shown.as_str(), None),
        };
        let is_skill = matches!(option, "-s" | "--skill");
        if option == "--" {
            written.push(word);
            written.extend(args);
            break;
        }
        if !is_skill && !matches!(option, "-a" | "--agent") {
            has_source |= !option.starts_with('-');
            written.push(word);
            continue;
        }
        let is_value = |word: &OsString| {
            let word = text(Some(word));
            let is_plain = !word.starts_with('-') && !word.contains(['/', ':', '.', '@']);
            has_source && is_plain && (is_skill || word == "*" || agent(&word).is_ok())
        };
        let mut values: Vec<OsString> = attached.map(OsString::from).into_iter().collect();
        if attached.is_none() {
            values.extend(args.next());
            while let Some(value) = args.next_if(is_value) {
                values.push(value);
            }
        }
        let count = values.len();
        values.retain(|value| value != "*");
        if is_skill && values.len() < count {
            // `--all` makes the names of single skills redundant.
            if !std::mem::replace(&mut has_all, true) {
                written.push("--all".into());
            }
            continue;
        }
        if count == 0 {
            written.push(word);
            continue;
        }
        for value in values {
            written.extend([option.into(), value]);
        }
    }
    written
}

pub(super) fn install(args: &Args) -> Result<ExitCode, CommandError> {
    if args.sources.is_empty() {
        args.check_nothing_chosen()?;
    }
    let context = args.scope.open()?.with_registry_args(&args.ask);
    if args.sources.is_empty() {
        let Args { agents, consent, ask, output, .. } = args;
        let request = sync::SyncRequest { agents, consent, ask, only_looks: output.dry_run };
        let done = sync::sync(&context, &request, args.output, args.frozen)?;
        let root = context.skill_set.root();
        if !root.join(manifest::FILE).exists() && !root.join(lock::FILE).exists() {
            output::note(&format!(
                "there is neither savoir.toml nor savoir.lock in {}; to install a skill: savoir \
                 install SOURCE",
                root.display()
            ));
        }
        return Ok(done);
    }
    let (requested, sources) = parse_sources(args, &context)?;
    let mut listings = list_sources(&context, sources)?;
    if args.list {
        args.choice.narrow(&mut listings)?;
        list(&listings, context.skill_set.root(), args.output.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = if listings.is_empty() { Chosen::default() } else { args.choice.of(&listings)? };
    let mut how = install_options(args, &context)?;
    let state = context.skill_set.state()?;
    let by_name = chosen.by_name || !requested.is_empty();
    let FetchedSkills { ready, mut skipped } = fetch_chosen(&context, chosen.offers, &listings)?;
    if args.choice.all {
        skipped.extend(listings.iter().flat_map(|listing| &listing.skipped).map(not_a_skill));
    }
    let ready = one_per_name(ready, &mut skipped, !args.consent.yes && ask::is_interactive())?;
    let mut ready = add_published(&context, ready, requested, &args.ask)?;
    if by_name {
        context.refuse_blocked(&args.consent, &ready)?;
        context.refuse_forbidden(&ready)?;
    }
    skipped.extend(context.take_blocked(&args.consent, &mut ready)?);
    skipped.extend(context.take_forbidden(&mut ready));
    if args.choice.all {
        skipped.extend(take_replacing(&mut ready, &state.lock));
    }
    how.agents = context.without_source_agents(&ready, how.agents)?;
    skipped.extend(context.take_own_folders(&mut ready, &how.agents)?);
    let ready = without_unmet_needs(ready, &state.lock, &mut skipped);
    let extras = listings.into_iter().flat_map(|listing| listing.not_installed).collect();
    let batch = Batch { context: &context, args, how, agreed: state.lock, by_name, extras };
    batch.apply_batch(ready, skipped)
}

/// The skills of one command: some are installed, and some are skipped.
struct Batch<'a> {
    context: &'a InstallContext,
    args: &'a Args,
    how: InstallOptions,
    /// The lockfile before the install.
    agreed: Lock,
    /// Whether the user named every skill.
    by_name: bool,
    /// Parts of plugins that are not skills.
    extras: Vec<PluginExtra>,
}

impl Batch<'_> {
    fn apply_batch(
        &self,
        mut ready: Vec<CheckedSkill>,
        mut skipped: Vec<Skipped>,
    ) -> Result<ExitCode, CommandError> {
        let Self { context, args, how, .. } = self;
        // If one skill makes the plan fail, plan again without it.
        while let Err(error) = context.skill_set.install(&ready, how) {
            if self.by_name && ready.len() == 1 {
                return Err(error.into());
            }
            without_culprits(&mut ready, error, &mut skipped)?;
        }
        if ready.is_empty() && self.by_name {
            return Err(nothing_to_install(skipped));
        }
        let agree = |plan: &mut InstallPlan| self.ask_consent(plan, &ready, &skipped);
        let (plan, done) =
            context.carry_out(|| Ok(context.skill_set.install(&ready, how)?), agree)?;
        if !done && !args.output.dry_run {
            return sync::declined_result(false);
        }
        let mut more = Map::new();
        more.insert("skills".into(), ready.iter().map(arrived).collect());
        more.insert("skipped".into(), skipped.iter().map(Skipped::json).collect());
        more.insert("not_installed".into(), self.extras.iter().map(extra).collect());
        Report { json: args.output.json, done }.print(context, &[&plan], more)?;
        if skipped.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
        if !args.output.json {
            let count = plan.changes().iter().filter(|change| is_new(change)).count();
            let word = if done { "installed" } else { "would install" };
            output::text(&format!("{word} {count}, skipped {}\n", skipped.len()))?;
        }
        Ok(ExitCode::FAILURE)
    }

    fn ask_consent(
        &self,
        plan: &mut InstallPlan,
        ready: &[CheckedSkill],
        skipped: &[Skipped],
    ) -> Result<bool, CommandError> {
        let proposal = Proposal {
            verb: "Install",
            ready,
            agreed: &self.agreed,
            trusted: &self.context.trusted,
            skipped,
            always_asks: false,
            notes: &self.skipped_parts_line(),
        };
        if self.args.output.dry_run {
            self.args.consent.show(proposal, plan);
            return Ok(false);
        }
        self.args.consent.ask(proposal, plan)
    }

    /// A line that counts the parts of plugins that are not skills.
    fn skipped_parts_line(&self) -> String {
        let mut counts: BTreeMap<ExtraKind, usize> = BTreeMap::new();
        for extra in &self.extras {
            *counts.entry(extra.kind).or_default() += 1;
        }
        let counts: Vec<String> =
            counts.into_iter().map(|(kind, count)| kind.count(count)).collect();
        if counts.is_empty() {
            return String::new();
        }
        format!("not installed, because savoir installs only skills: {}\n", counts.join(", "))
    }
}

fn not_a_skill(found: &source::Skipped) -> Skipped {
    let error = CommandError::findings(&found.why).with_code("not-a-skill");
    Skipped::new(&found.path, &found.path, error)
}

fn extra(extra: &PluginExtra) -> Value {
    json!({
        "kind": extra.kind.count(1).trim_start_matches("1 "),
        "name": extra.name,
        "path": extra.path,
        "plugin": extra.plugin,
    })
}

fn is_new(change: &PlannedChange) -> bool {
    matches!(
        change,
        PlannedChange::New { .. }
            | PlannedChange::Updated { .. }
            | PlannedChange::AgentsAdded { .. }
    )
}

/// The error if none of the given skills can be installed.
fn nothing_to_install(skipped: Vec<Skipped>) -> CommandError {
    let mut errors = skipped.into_iter().map(|skipped| skipped.error);
    errors.next().unwrap_or_else(|| CommandError::refused("no skill was chosen"))
}

/// The text of a source, and the parsed source.
type TypedSource = (String, Source);

/// Parses the sources into published names and other sources.
fn parse_sources(
    args: &Args,
    context: &InstallContext,
) -> Result<(Vec<RequestedSkill>, Vec<TypedSource>), CommandError> {
    let here = env::current_dir().map_err(|error| {
        CommandError::input(format!("the current folder cannot be read: {error}"))
    })?;
    let (mut requested, mut sources) = (Vec::new(), Vec::new());
    for text in &args.sources {
        let source = Source::parse(&args.ask.full_source(text, context)?, &here)?;
        match args.ask.named(&source)? {
            Some(named) => requested.push(named),
            None => sources.push((text.clone(), source)),
        }
    }
    Ok((requested, sources))
}

/// Lists the skills of the sources.
fn list_sources(
    context: &InstallContext,
    sources: Vec<TypedSource>,
) -> Result<Vec<SourceListing>, CommandError> {
    let mut listings = Vec::with_capacity(sources.len());
    for (typed, source) in sources {
        context.doing(&format!("reading {typed}"));
        let found = look(context, &source).map_err(|error| with_shorthand_hint(error, &typed))?;
        let pinned = matches!(source, Source::Url { digest: Some(_), .. });
        let SourceOffers { skills: mut offers, skipped, not_installed } = found;
        if let Source::Folder(folder) = &source {
            offers = context.without_installed_copies(folder, offers)?;
        }
        listings.push(SourceListing { typed, offers, skipped, not_installed, pinned });
    }
    context.done();
    Ok(listings)
}

/// `acme/pdf` may mean a skill of a registry that is not set.
fn with_shorthand_hint(error: CommandError, typed: &str) -> CommandError {
    if !is_shorthand(typed) || error.code().as_deref() != Some("no_repository") {
        return error;
    }
    error.hint(format!(
        "`{typed}` means a repository on GitHub; for a skill of a registry: --registry URL"
    ))
}

/// Lists the skills of a source. A path in a repository may also be the name of a skill, as in
/// commands that do not install it.
fn look(context: &InstallContext, source: &Source) -> Result<SourceOffers, CommandError> {
    let found = context.wait(context.fetcher.look(source));
    let (Err(error), Source::Git(git)) = (&found, source) else { return Ok(found?) };
    let Some(path) = git.path.as_ref().filter(|_| remote::is_absent(error)) else {
        return Ok(found?);
    };
    let whole = Source::Git(GitSource { path: None, ..git.clone() });
    let mut offers = context.wait(context.fetcher.look(&whole))?;
    match remote::pick(&offers.skills, path) {
        Some((skill, None)) => {
            offers.skills = vec![skill];
            Ok(offers)
        }
        _ => Ok(found?),
    }
}

/// Adds skills from registries: those given by name, and missing dependencies.
fn add_published(
    context: &InstallContext,
    mut ready: Vec<CheckedSkill>,
    requested: Vec<RequestedSkill>,
    ask: &RegistryArgs,
) -> Result<Vec<CheckedSkill>, CommandError> {
    let state = context.skill_set.state()?;
    let needed =
        lacks_needs(&ready, &state) && context.registries(&state, ask)?.clients().next().is_some();
    if !requested.is_empty() || needed {
        let more = context.gather(&state, &ready, requested, Update::Nothing, ask)?;
        ready.extend(more);
    }
    Ok(ready)
}

/// Fetches and checks the chosen skills and their dependencies in the same sources.
fn fetch_chosen(
    context: &InstallContext,
    chosen: Vec<OfferedSkill>,
    listings: &[SourceListing],
) -> Result<FetchedSkills, CommandError> {
    let state = context.skill_set.state()?;
    let wanted = |offer: OfferedSkill| manifest_entry(context, &state, offer, listings);
    let chosen: Vec<(OfferedSkill, FetchReason)> =
        chosen.into_iter().map(wanted).collect::<Result<_, _>>()?;
    let FetchedSkills { ready, skipped } = context.fetch_some(&chosen)?;
    let offers: Vec<OfferedSkill> =
        listings.iter().flat_map(|listing| listing.offers.clone()).collect();
    let ready = context.with_needs(ready, &offers, &state.lock)?;
    context.done();
    Ok(FetchedSkills { ready, skipped })
}

/// The entry of a chosen skill in `savoir.toml`.
fn manifest_entry(
    context: &InstallContext,
    state: &State,
    offer: OfferedSkill,
    listings: &[SourceListing],
) -> Result<(OfferedSkill, FetchReason), CommandError> {
    let mut wanted = install::requirement_for(&offer.source, context.skill_set.root());
    if let (SkillRequirement::Url { url, integrity }, PinnedSource::Url { digest, .. }) =
        (&mut wanted, &offer.source)
    {
        let is_pinned =
            listings.iter().any(|listing| listing.pinned && listing.offers.contains(&offer));
        let found = digest.integrity();
        *integrity = pinned_integrity(state, url).or_else(|| is_pinned.then(|| found.clone()));
        if integrity.as_ref().is_some_and(|pinned| *pinned != found) {
            return Err(CommandError::refused(format!(
                "{url} does not match savoir.toml: its integrity is {found}"
            ))
            .with_code("integrity")
            .hint("if you trust the change, write the new `integrity` into savoir.toml"));
        }
    }
    Ok((offer, FetchReason::Requested(wanted)))
}

/// The integrity that `savoir.toml` pins for an address.
fn pinned_integrity(state: &State, address: &str) -> Option<String> {
    state.manifest.skills.values().find_map(|wanted| match wanted {
        SkillRequirement::Url { url, integrity } if url == address => integrity.clone(),
        _ => None,
    })
}

fn install_options(args: &Args, context: &InstallContext) -> Result<InstallOptions, CommandError> {
    let state = context.skill_set.state()?;
    let (occupied, edits) = (args.output.occupied(), args.output.edits());
    let mut agents = context.agents(&args.agents, &state.manifest)?;
    if let Some(layout) = &args.layout {
        agents.push(agent(layout).map_err(CommandError::input)?);
    }
    Ok(InstallOptions { agents, occupied, edits, agents_are_kept: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_values_get_an_option_each() {
        for (typed, meant) in [
            ("install o/r --skill a b -y", "install o/r --skill a --skill b -y"),
            ("add o/r -a claude-code codex", "add o/r -a claude-code -a codex"),
            ("install npx skills add o/r -s a b", "install npx skills add o/r -s a -s b"),
            ("install o/r -s * -a *", "install o/r --all"),
            ("install o/r --skill=* --agent=* --all", "install o/r --all"),
            ("install o/r -s a *", "install o/r --all"),
            // The source may follow, and another one may, too.
            ("install -s a pdf", "install -s a pdf"),
            ("install o/r -s a o/q ./x", "install o/r -s a o/q ./x"),
            ("install o/r -a codex pdf", "install o/r -a codex pdf"),
            ("install o/r -s", "install o/r -s"),
            ("install o/r -s a -- b", "install o/r -s a -- b"),
            ("list -s a b", "list -s a b"),
        ] {
            let words: Vec<OsString> =
                format!("savoir {typed}").split(' ').map(OsString::from).collect();
            let written = with_one_value_per_option(words);
            let written: Vec<&str> =
                written.iter().skip(1).filter_map(|word| word.to_str()).collect();
            assert_eq!(written.join(" "), meant, "{typed}");
        }
    }
}
