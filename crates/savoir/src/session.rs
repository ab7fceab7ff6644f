//! Sessions with a password at a registry, for actions that tokens cannot do.

use std::{
    fs,
    io::{self, BufRead as _, IsTerminal as _},
};

use savoir_engine::approval::shell_word;
use savoir_package::registry::{Client, RegistryError, Token, wire::CreateTokenRequest};

use crate::{ask, error::CommandError, output, remote::Remote};

/// Maximum length of the machine name in the name of a token.
const MAX_HOST: usize = 64;
/// Default lifetime of a token.
const TOKEN_DAYS: u32 = 90;
/// Default lifetime of a token with the scope admin.
const ADMIN_TOKEN_DAYS: u32 = 7;

/// The account that logs in.
#[derive(Debug, clap::Args)]
pub(crate) struct Account {
    /// Email address of your account; the password is asked for or read from standard input
    #[arg(long, value_name = "EMAIL")]
    pub(crate) email: String,
}

/// The options for a command about the tokens of a user at a registry.
pub(crate) fn account_options(email: Option<&str>, address: &str, remote: &Remote) -> String {
    let email = email.map_or_else(|| "EMAIL".to_owned(), shell_word);
    let plainly = if remote.allow_http { " --allow-http" } else { "" };
    format!("--email {email} --registry {}{plainly}", shell_word(address))
}

/// Asks for a secret on a terminal, else reads the first line of standard input.
pub(crate) fn secret(what: &str) -> Result<String, CommandError> {
    let failed = |error: io::Error| {
        CommandError::input(format!("the {what} cannot be read: {error}"))
            .hint("pass it on standard input, in UTF-8")
    };
    let text = if io::stdin().is_terminal() {
        if !ask::can_ask() {
            return Err(CommandError::refused(format!("cannot ask for the {what}"))
                .hint("pass it on standard input"));
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
        return Err(CommandError::input(format!("the {what} is empty"))
            .hint("pass it on standard input, or run the command in a terminal"));
    }
    Ok(text)
}

/// Logs in, calls `work`, and logs out even if `work` fails.
pub(crate) async fn with_password_session<T>(
    client: &Client,
    email: &str,
    password: &str,
    work: impl AsyncFnOnce(&Client) -> Result<T, CommandError>,
) -> Result<T, CommandError> {
    let session = client.login(email, password).await.map_err(wrong_password)?;
    let person = client.with_token(session)?;
    let outcome = work(&person).await;
    if let Err(error) = person.logout().await {
        output::note(&format!("could not log out; the session will expire: {error}"));
    }
    outcome
}

fn wrong_password(error: RegistryError) -> CommandError {
    match error {
        RegistryError::Refused { address, status: 401, .. } => {
            CommandError::refused(format!("`{address}` rejected the email address or the password"))
                .with_code("wrong_password")
                .hint("check both; after five failures, logins are blocked for some minutes")
        }
        // Passwords are never sent unencrypted, so the hint about --allow-http does not apply.
        RegistryError::Source(error) => error.into(),
        error => error.into(),
    }
}

/// Permissions and lifetime of a token.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TokenArgs {
    /// Also allow changing members and keys; the same as --scope owner
    #[arg(long)]
    owner: bool,
    /// Add a scope for all namespaces; may be repeated
    #[arg(long, value_name = "SCOPE", conflicts_with = "namespace")]
    scope: Vec<ExtraScope>,
    /// Allow only reading
    #[arg(long, conflicts_with_all = ["owner", "scope", "namespace"])]
    read_only: bool,
    /// Allow publishing only in this namespace
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// Lifetime of the token [default: 90, or 7 with --scope admin]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=366))]
    days: Option<u32>,
}

/// Scopes beyond publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExtraScope {
    /// Change members and keys
    Owner,
    /// All actions of an administrator, such as reading the audit log; for administrators only
    Admin,
}

impl TokenArgs {
    pub(crate) fn wanted(&self, name: String) -> CreateTokenRequest {
        let admin = self.scope.contains(&ExtraScope::Admin);
        let owner = self.owner || admin || self.scope.contains(&ExtraScope::Owner);
        let more = owner.then_some("registry:owner");
        let usual = ["registry:publish", "registry:yank"].into_iter();
        let changes = usual.filter(|_| !self.read_only).chain(more);
        let changes = changes.map(|scope| match &self.namespace {
            Some(namespace) => format!("{scope}:{namespace}"),
            None => scope.to_owned(),
        });
        let everywhere = admin.then(|| "admin".to_owned());
        let scopes = std::iter::once("registry:read".to_owned()).chain(changes).chain(everywhere);
        let days = self.days.unwrap_or(if admin { ADMIN_TOKEN_DAYS } else { TOKEN_DAYS });
        CreateTokenRequest { name, scopes: scopes.collect(), expires_in_days: Some(days) }
    }
}

/// The name of this machine.
pub(crate) fn host() -> String {
    let files = ["/proc/sys/kernel/hostname", "/etc/hostname"];
    let text = files.iter().find_map(|file| fs::read_to_string(file).ok());
    let text = text.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    let good = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = text.trim().chars().filter(good).take(MAX_HOST).collect();
    if name.is_empty() { "this machine".to_owned() } else { name }
}

/// Reads a token from the terminal or standard input.
pub(crate) fn token() -> Result<Token, CommandError> {
    Ok(Token::new(&secret("token")?)?)
}
