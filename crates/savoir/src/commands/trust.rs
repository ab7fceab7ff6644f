//! `savoir trust`: manages trusted sources and keys.

use std::process::ExitCode;

use savoir_engine::approval::printable;
use savoir_package::{
    FileError,
    registry::Name,
    trust::{SourceRule, TrustedSources},
};
use serde_json::{Value, json};

use super::keys::{self, Distrust, List, RoleName, Trust};
use crate::{error::CommandError, output, remote::Remote, trust::Keyring};

/// The prefix of keys.
const KEY: &str = "key:";

/// Manage trusted sources and keys
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Skills from a trusted source are installed without confirmation and run without the warning for
untrusted skills. Their tier still depends on their signatures, the first run still asks, and skills
that the scan blocks are still refused.

Examples:
  savoir trust add github:anthropics             all repositories of an owner
  savoir trust add github:anthropics/skills      one repository
  savoir trust add git:git.acme.example/team     a path on another host
  savoir trust add 'acme/*'                      a namespace of your registry
  savoir trust add key:acme.pub --publisher Acme    a key: the same as `savoir keys trust`
  savoir trust list
  savoir trust remove github:anthropics

The list is stored in trusted-sources.toml in your settings folder.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Add(Add),
    List(List),
    Remove(Remove),
}

/// Trust a source or a key
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Sources:
  github:OWNER, github:OWNER/REPO          also gitlab:, codeberg: and bitbucket:
  git:HOST/PATH                            repositories with a path that starts with PATH
  registry:https://HOST/registry#NAMESPACE a namespace of a registry; without #, all of it
  NAMESPACE/*                              a namespace of the registry that it belongs to
  key:FILE, key:TEXT                       a public key; needs --publisher

The rule applies to branches and tags that were fetched over https or ssh. A skill at an explicit
commit still needs confirmation, because hosts serve commits of forks under the original address.")]
struct Add {
    /// Source or key to trust
    #[arg(value_name = "SOURCE", required_unless_present = "from_registry")]
    source: Option<String>,
    /// Trust the keys that sign for this namespace in a registry
    #[arg(long, value_name = "NAMESPACE", conflicts_with_all = ["source", "role"])]
    from_registry: Option<String>,
    #[command(flatten)]
    remote: Remote,
    /// Trust the keys of a registry without confirmation
    #[arg(long, short, requires = "from_registry")]
    yes: bool,
    /// Owner of the key
    #[arg(long, value_name = "NAME", value_parser = super::publisher)]
    publisher: Option<String>,
    /// Role of the key
    #[arg(long, default_value = "publisher")]
    role: RoleName,
    /// Trust the key only for these skills: a name, or a prefix and `*`
    #[arg(long = "namespace", value_name = "NAME")]
    namespaces: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Stop trusting a source or a key
#[derive(Debug, clap::Args)]
struct Remove {
    /// A source or `key:ID`, as `savoir trust list` shows it
    source: String,
    #[command(flatten)]
    remote: Remote,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::Add(args) => add(args),
        Command::List(args) => list(args),
        Command::Remove(args) => remove(args),
    }
}

fn add(args: &Add) -> Result<ExitCode, CommandError> {
    let source = args.source.as_deref().unwrap_or_default();
    if let Some(key) = key(source, args)? {
        return keys::add(&key);
    }
    let rule = rule(source, &args.remote)?;
    let is_new = TrustedSources::add(&Keyring::of_user()?.sources_file(), &rule)?;
    if args.json {
        return print(&json!({ "source": rule.to_string(), "trusted": true, "new": is_new }));
    }
    let text = if is_new {
        format!("trusted {rule}: its skills are installed without confirmation\n")
    } else {
        format!("{rule} is already trusted\n")
    };
    output::text(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The key to trust; nothing if `source` is a source.
fn key(source: &str, args: &Add) -> Result<Option<Trust>, CommandError> {
    let named = source.strip_prefix(KEY);
    let is_key = named.is_some() || args.from_registry.is_some();
    if !is_key && args.publisher.is_none() {
        return Ok(None);
    }
    let (mut text, mut publisher) = (named.unwrap_or(source).to_owned(), args.publisher.clone());
    if keys::is_key_id(&text) {
        let own = Keyring::of_user()?.own_keys().list()?;
        let own = own.into_iter().find(|own| own.key.key_id().eq_ignore_ascii_case(&text));
        let own = own.ok_or_else(|| only_an_id(&text))?;
        (text, publisher) = (own.key.to_base64(), publisher.or(Some(own.name)));
    }
    if publisher.is_none() && args.from_registry.is_none() {
        return Err(
            CommandError::input("the owner of the key is missing").hint("add --publisher NAME")
        );
    }
    Ok(Some(Trust {
        key: args.source.is_some().then_some(text),
        from_registry: args.from_registry.clone(),
        remote: args.remote.clone(),
        yes: args.yes,
        publisher,
        role: args.role,
        namespaces: args.namespaces.clone(),
        json: args.json,
    }))
}

fn only_an_id(key_id: &str) -> CommandError {
    CommandError::input(format!("{} is the identifier of a key, not the key", printable(key_id)))
        .with_code("public_key")
        .hint("get the public key from its owner: savoir keys trust FILE --publisher NAME")
        .hint("or from the registry of a namespace: savoir keys trust --from-registry NAMESPACE")
}

/// Parses a rule. `acme/*` is stored with the URL of its registry, so that a project's settings
/// cannot change which registry it means.
fn rule(text: &str, remote: &Remote) -> Result<SourceRule, CommandError> {
    if let Some(namespace) = text.strip_suffix("/*").filter(|name| !name.contains(':')) {
        let name = Name::parse(namespace).map_err(|error| {
            CommandError::input(format!("`{}` is not a namespace", printable(namespace)))
                .with_code(error.code())
        })?;
        let address = remote.trusted_of(&name)?.address();
        return parse_rule(&format!("registry:{address}#{namespace}"));
    }
    parse_rule(text)
}

fn parse_rule(text: &str) -> Result<SourceRule, CommandError> {
    SourceRule::parse_trusted(text).map_err(|error| {
        let failed = CommandError::input(&error).with_code(error.code());
        match text.strip_prefix("https://github.com/").or_else(|| repository(text)) {
            Some(path) => failed.hint(format!("did you mean `github:{}`?", printable(path))),
            None => failed.hint("for a key: savoir trust add key:FILE --publisher NAME"),
        }
    })
}

/// The text, if it is `owner/repo`, which `savoir install` accepts for GitHub.
fn repository(text: &str) -> Option<&str> {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.');
    let (owner, name) = text.split_once('/')?;
    let is_repository = is_part(owner) && is_part(name) && !text.contains([':', '*', '\\']);
    (is_repository && !name.contains('/')).then_some(text)
}

fn list(args: &List) -> Result<ExitCode, CommandError> {
    let sources = Keyring::of_user()?.sources()?;
    let rules = sources.rules().iter().map(ToString::to_string);
    if args.json {
        let mut keys = keys::list_json()?;
        keys["sources"] = rules.collect::<Vec<_>>().into();
        return print(&keys);
    }
    let mut text = keys::section("sources", rules);
    text.push_str(&keys::list_text()?);
    if text.is_empty() {
        text.push_str("nothing is trusted; `savoir trust add github:OWNER` trusts an owner\n");
    }
    output::text(text.trim_start_matches('\n'))?;
    Ok(ExitCode::SUCCESS)
}

fn remove(args: &Remove) -> Result<ExitCode, CommandError> {
    let named = args.source.strip_prefix(KEY);
    if named.is_some() || keys::is_key_id(&args.source) {
        let key_id = named.unwrap_or(&args.source).to_owned();
        return keys::remove(&Distrust { key_id, json: args.json });
    }
    let rule = rule(&args.source, &args.remote)?;
    if !TrustedSources::remove(&Keyring::of_user()?.sources_file(), &rule)? {
        return Err(CommandError::input(format!("{rule} is not trusted"))
            .hint("list trusted sources: savoir trust list"));
    }
    if args.json {
        return print(&json!({ "source": rule.to_string(), "trusted": false }));
    }
    output::text(&format!("{rule} is no longer trusted; installed skills stay\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn print(value: &Value) -> Result<ExitCode, CommandError> {
    output::json(value)?;
    Ok(ExitCode::SUCCESS)
}

impl From<FileError> for CommandError {
    fn from(error: FileError) -> Self {
        let hint = error.hint().map(str::to_owned);
        let failed = Self::input(&error).with_code(error.code());
        hint.into_iter().fold(failed, Self::hint)
    }
}
