//! `savoir admin`: manages accounts and signing keys in the data of a server.

use std::{
    io::{self, BufRead as _, IsTerminal as _},
    process::ExitCode,
};

use clap::ValueEnum;
use savoir_server::{AccountError, Email, create_account, rotate_signing_key};
use savoir_store::{Database, User, hash_password, registry::Actor};
use serde_json::{Value, json};

use crate::{error::CommandError, output, runtime, storage_args::StorageArgs};

/// Minimum length of a password, the same as in the server.
const MIN_PASSWORD: usize = 6;

/// Manage accounts and signing keys in the data of a server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The password is the first line of standard input. On a terminal, you are asked for it twice.

Examples:
  savoir admin create ada@example.com
  savoir admin create bot@example.com --role user < password.txt
  savoir admin list --json
  savoir admin rotate-key --forget-old

The server can keep running.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Create an account
    Create {
        /// Email address of the account
        email: String,
        /// Role of the account
        #[arg(long, default_value = "admin")]
        role: Role,
        #[command(flatten)]
        common: Common,
    },
    /// List all accounts
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Set a new password for an account and revoke its tokens
    ResetPassword {
        /// Email address of the account
        email: String,
        #[command(flatten)]
        common: Common,
    },
    /// Create a new key for signing tokens
    RotateKey {
        /// Revoke tokens that older keys signed: all users must log in again
        #[arg(long)]
        forget_old: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, clap::Args)]
struct Common {
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    storage_args: StorageArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Role {
    /// All permissions
    Admin,
    /// Only their own data
    User,
}

impl From<Role> for savoir_store::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Admin => Self::Admin,
            Role::User => Self::User,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::Create { email, role, common } => create(email, *role, common),
        Command::List { common } => list(common),
        Command::ResetPassword { email, common } => reset_password(email, common),
        Command::RotateKey { forget_old, common } => rotate_key(*forget_old, common),
    }?;
    Ok(ExitCode::SUCCESS)
}

impl Common {
    /// Opens the database, calls `work` and closes the database.
    fn with_database<T>(
        &self,
        work: impl AsyncFnOnce(&Database) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let location = self.storage_args.location()?;
        runtime::block_on(async {
            let (database, _) = location.open().await?;
            let done = work(&database).await;
            database.close().await;
            done
        })
    }

    fn account(&self, email: &str) -> Result<Option<User>, CommandError> {
        self.with_database(async |database| {
            let found = database.accounts().by_email(email).await?;
            Ok(found.map(|(user, _)| user))
        })
    }

    fn print(&self, value: &Value, text: &str) -> Result<(), CommandError> {
        if self.json { output::json(value) } else { output::text(&output::sanitize(text)) }
    }
}

fn create(email: &str, role: Role, common: &Common) -> Result<(), CommandError> {
    let email = Email::parse(email).ok_or_else(|| refusal(&AccountError::Email))?;
    // Checked before the user has to type a password.
    if common.account(email.as_str())?.is_some() {
        return Err(refusal(&AccountError::Taken));
    }
    let password = new_password()?;
    let created = common.with_database(async |database| {
        create_account(database, email, &password, role.into())
            .await
            .map_err(|error| refusal(&error))
    })?;
    let text = format!("Created {1} account {0}\n", created.email, created.role.as_str());
    common.print(&as_json(&created), &text)
}

fn refusal(error: &AccountError) -> CommandError {
    let hint = match error {
        AccountError::Store(error) => return CommandError::input(error),
        AccountError::Taken => "set a new password with: savoir admin reset-password EMAIL",
        AccountError::Email => "write it as name@example.com",
        AccountError::Password => "use a longer password",
    };
    CommandError::input(error).hint(hint)
}

fn list(common: &Common) -> Result<(), CommandError> {
    let users = common.with_database(async |database| Ok(database.accounts().list().await?))?;
    let row = |user: &User| {
        let state = if user.active { "" } else { "  (disabled)" };
        format!("{:>5}  {:<5}  {}{state}\n", user.id, user.role.as_str(), user.email)
    };
    let text = match users.as_slice() {
        [] => "no accounts; create one with: savoir admin create EMAIL\n".to_owned(),
        users => users.iter().map(row).collect(),
    };
    let accounts: Vec<Value> = users.iter().map(as_json).collect();
    common.print(&json!({ "accounts": accounts }), &text)
}

fn reset_password(email: &str, common: &Common) -> Result<(), CommandError> {
    let address = email.trim().to_lowercase();
    let unknown = || {
        CommandError::input(format!("account {address} does not exist"))
            .hint("list accounts with: savoir admin list")
    };
    let user = common.account(&address)?.ok_or_else(unknown)?;
    let password = new_password()?;
    let changed = common.with_database(async |database| {
        let hash = hash_password(&password).await?;
        Ok(database.accounts().set_password(&Actor::operator(), user.id, &hash).await?)
    })?;
    if !changed {
        return Err(unknown());
    }
    let text = format!("Changed the password of {} and revoked its tokens\n", user.email);
    common.print(&as_json(&user), &text)
}

fn rotate_key(forget_old: bool, common: &Common) -> Result<(), CommandError> {
    common.with_database(async |database| Ok(rotate_signing_key(database, forget_old).await?))?;
    let text = if forget_old {
        "Created a new signing key; all users must log in again\n"
    } else {
        "Created a new signing key; tokens of older keys stay valid until they expire\n"
    };
    common.print(&json!({"rotated": true, "forgot_old": forget_old}), text)
}

fn as_json(user: &User) -> Value {
    json!({
        "id": user.id, "email": user.email, "role": user.role.as_str(), "active": user.active,
        "created_at": user.created_at,
    })
}

/// Asks twice for a password on a terminal, otherwise reads the first line of standard input.
fn new_password() -> Result<String, CommandError> {
    let password = if io::stdin().is_terminal() {
        let ask = |question: &str| {
            rpassword::prompt_password(question).map_err(|error| {
                CommandError::input(format!("the password cannot be read: {error}"))
            })
        };
        let first = ask("Password: ")?;
        if first != ask("Repeat the password: ")? {
            return Err(CommandError::input("the passwords differ").hint("run the command again"));
        }
        first
    } else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map_err(|error| {
            CommandError::input(format!("the password cannot be read: {error}"))
                .hint("pass it on standard input, in UTF-8")
        })?;
        line.trim_end_matches(['\r', '\n']).to_owned()
    };
    if password.chars().count() < MIN_PASSWORD {
        let message = format!("the password must have at least {MIN_PASSWORD} characters");
        return Err(CommandError::input(message)
            .hint("pass it on standard input: savoir admin create EMAIL < password.txt"));
    }
    Ok(password)
}
