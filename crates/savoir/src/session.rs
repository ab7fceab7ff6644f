//! What only a person may do at a registry's server: a password is asked for, something is done, and
//! the session ends.

use std::{
    fs,
    io::{self, BufRead as _, IsTerminal as _},
};

use savoir_engine::approval::shell_word;
use savoir_package::registry::{Client, RegistryError, Token, wire::WantedToken};

use crate::{ask, error::CommandError, output, remote::Remote};

/// Longest name of a machine that a token is called after.
const MAX_HOST: usize = 64;
/// How long a token is good unless somebody says otherwise.
const DAYS: u32 = 90;
/// The same of one with which everything can be done.
const DAYS_OF_ADMIN: u32 = 7;

/// Who logs in.
#[derive(Debug, clap::Args)]
pub(crate) struct Account {
    /// The address of your account; the password is asked for, or is the first line of standard input
    #[arg(long, value_name = "EMAIL")]
    pub(crate) email: String,
}

/// What a person types behind a command about their tokens at a registry.
pub(crate) fn as_whom(email: Option<&str>, address: &str, remote: &Remote) -> String {
    let email = email.map_or_else(|| "EMAIL".to_owned(), shell_word);
    let plainly = if remote.allow_http { " --allow-http" } else { "" };
    format!("--email {email} --registry {}{plainly}", shell_word(address))
}

/// Something that nobody may see: asked for on a terminal, else the first line of standard input.
pub(crate) fn secret(what: &str) -> Result<String, CommandError> {
    let failed = |error: io::Error| {
        CommandError::input(format!("the {what} cannot be read: {error}"))
            .hint("give it on standard input, in UTF-8")
    };
    let text = if io::stdin().is_terminal() {
        if !ask::can_ask() {
            return Err(CommandError::refused(format!("nobody can be asked for the {what}"))
                .hint("give it on standard input"));
        }
        let mut question = format!("{what}: ");
        question[..1].make_ascii_uppercase();
        rpassword::prompt_password(question).map_err(failed)?
    } else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(failed)?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    if text.is_empty() {
        return Err(CommandError::input(format!("there is no {what}"))
            .hint("give it on standard input, or run this on a terminal"));
    }
    Ok(text)
}

/// Does something as a person who logs in; the session ends whatever comes of it.
pub(crate) async fn as_person<T>(
    client: &Client,
    email: &str,
    password: &str,
    work: impl AsyncFnOnce(&Client) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let session = client.login(email, password).await.map_err(wrong_password)?;
    let person = client.as_holder_of(session)?;
    let outcome = work(&person).await;
    if let Err(error) = person.logout().await {
        output::note(&format!("the session of the password ends by itself later: {error}"));
    }
    outcome
}

fn wrong_password(error: RegistryError) -> CommandError {
    match error {
        RegistryError::Refused { address, status: 401, .. } => CommandError::refused(format!(
            "`{address}` does not know this address with this password"
        ))
        .named("wrong_password")
        .hint("check both; after five failures there is a pause of some minutes"),
        // No flag lets a password go without encryption.
        RegistryError::Source(error) => error.into(),
        error => error.into(),
    }
}

/// What a token of this machine may do, for so many days.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Rights {
    /// Let it change members and keys, too; the same as --scope owner
    #[arg(long)]
    owner: bool,
    /// Let it do more, everywhere; can be given several times
    #[arg(long, value_name = "SCOPE", conflicts_with = "namespace")]
    scope: Vec<More>,
    /// Let it read, and nothing else
    #[arg(long, conflicts_with_all = ["owner", "scope", "namespace"])]
    read_only: bool,
    /// Let it publish in this namespace only
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// How long it is good [default: 90, and 7 with --scope admin]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=366))]
    days: Option<u32>,
}

/// What a token can do beyond publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum More {
    /// Change members and keys
    Owner,
    /// Everything that an administrator does, such as reading the whole log; for administrators
    Admin,
}

impl Rights {
    pub(crate) fn wanted(&self, name: String) -> WantedToken {
        let admin = self.scope.contains(&More::Admin);
        let owner = self.owner || admin || self.scope.contains(&More::Owner);
        let more = owner.then_some("registry:owner");
        let usual = ["registry:publish", "registry:yank"].into_iter();
        let changes = usual.filter(|_| !self.read_only).chain(more);
        let changes = changes.map(|scope| match &self.namespace {
            Some(namespace) => format!("{scope}:{namespace}"),
            None => scope.to_owned(),
        });
        let everywhere = admin.then(|| "admin".to_owned());
        let scopes = std::iter::once("registry:read".to_owned()).chain(changes).chain(everywhere);
        let days = self.days.unwrap_or(if admin { DAYS_OF_ADMIN } else { DAYS });
        WantedToken { name, scopes: scopes.collect(), expires_in_days: Some(days) }
    }
}

/// What this machine is called.
pub(crate) fn host() -> String {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let text = files.iter().find_map(|file| fs::read_to_string(file).ok());
    let text = text.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let good = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = text.trim().chars().filter(good).take(MAX_HOST).collect();
    if name.is_empty() { "this machine".to_owned() } else { name }
}

/// A token that was typed or piped.
pub(crate) fn token() -> Result<Token, CommandError> {
    Ok(Token::new(&secret("token")?)?)
}
