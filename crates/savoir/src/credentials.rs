//! Access tokens for registries, stored in `credentials.toml` in the user's settings folder.
//!
//! A token is sent only to its own registry. `SAVOIR_TOKEN` is for programs without this file: it
//! belongs to the registry in `SAVOIR_REGISTRY`, or if that is not set, to the one in `--registry`.
//! It is never sent to a registry that only a project names.

use std::{
    collections::BTreeMap,
    env, fmt,
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::PathBuf,
};

use savoir_package::{
    registry::{Token, canonical},
    temporary_file,
};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::{config, error::CommandError};

/// Environment variable with a token.
pub(crate) const TOKEN: &str = "SAVOIR_TOKEN";
/// Environment variable with the address of a registry.
pub(crate) const REGISTRY: &str = "SAVOIR_REGISTRY";

const FILE: &str = "credentials.toml";
/// Locked while the file is written.
const LOCK: &str = ".credentials.lock";
/// Maximum size of the file in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The stored token of a registry.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct StoredToken {
    token: String,
    /// The id of the token on the server, which is needed to revoke it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// The account of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) email: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires_at: Option<String>,
}

impl fmt::Debug for StoredToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredToken").field("id", &self.id).finish_non_exhaustive()
    }
}

impl StoredToken {
    /// A token without an account or an id.
    pub(crate) fn new(token: &Token) -> Self {
        Self { token: token.secret().to_owned(), ..Self::default() }
    }

    /// Sets the account.
    pub(crate) fn of(self, email: Option<String>) -> Self {
        Self { email, ..self }
    }

    /// Sets the id on the server.
    pub(crate) fn known_as(self, id: String, expires_at: Option<String>) -> Self {
        Self { id: Some(id), expires_at, ..self }
    }

    pub(crate) fn token(&self) -> Result<Token, CommandError> {
        Ok(Token::new(&self.token)?)
    }
}

/// The token for a registry: the one in the environment if it belongs to it, else the stored one.
/// `typed` is the value of `--registry`.
pub(crate) fn token(address: &str, typed: Option<&str>) -> Result<Option<Token>, CommandError> {
    let address = canonical(address)?;
    match of_environment(typed.map(|_| address.as_str()))? {
        Some((registry, token)) if registry == address => Ok(Some(token)),
        _ => load_token(&address)?.map(|stored| stored.token()).transpose(),
    }
}

/// The token in the environment, and the address that it belongs to. `named` is the value of
/// `--registry`.
pub(crate) fn of_environment(named: Option<&str>) -> Result<Option<(String, Token)>, CommandError> {
    let Some(text) = variable(TOKEN) else { return Ok(None) };
    let token = Token::new(&text).map_err(|error| {
        CommandError::input(format!("{TOKEN}: {error}")).with_code(error.code().to_owned())
    })?;
    let registry = variable(REGISTRY).or_else(|| named.map(str::to_owned));
    let Some(registry) = registry else { return Ok(None) };
    Ok(Some((canonical(&registry)?, token)))
}

/// The value of an environment variable, if it is not blank.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.trim().is_empty())
}

/// The stored token of a registry.
pub(crate) fn load_token(address: &str) -> Result<Option<StoredToken>, CommandError> {
    Ok(all()?.remove(&canonical(address)?))
}

/// All stored tokens, by address.
pub(crate) fn all() -> Result<BTreeMap<String, StoredToken>, CommandError> {
    let Some(folder) = config::user_folder() else { return Ok(BTreeMap::new()) };
    Credentials::in_folder(folder).all()
}

/// Stores a token and replaces an older one.
pub(crate) fn save(address: &str, stored: &StoredToken) -> Result<PathBuf, CommandError> {
    Credentials::of_user()?.save(&canonical(address)?, stored)
}

/// Removes a token and returns it.
pub(crate) fn forget(address: &str) -> Result<Option<StoredToken>, CommandError> {
    Credentials::of_user()?.forget(&canonical(address)?)
}

/// The file `credentials.toml`.
struct Credentials {
    folder: PathBuf,
    file: PathBuf,
}

impl Credentials {
    fn of_user() -> Result<Self, CommandError> {
        let folder = config::user_folder().ok_or_else(|| {
            CommandError::input("tokens cannot be stored without a home folder")
                .hint("set HOME or XDG_CONFIG_HOME")
                .hint(format!("or set {TOKEN} to the token and {REGISTRY} to its registry"))
        })?;
        Ok(Self::in_folder(folder))
    }

    fn in_folder(folder: PathBuf) -> Self {
        Self { file: folder.join(FILE), folder }
    }

    fn all(&self) -> Result<BTreeMap<String, StoredToken>, CommandError> {
        let mut all = BTreeMap::new();
        for (address, value) in self.table()? {
            let stored = value.try_into().map_err(|_| {
                self.damaged_file_error(&format!("`{}` has no token", address.escape_debug()))
            })?;
            all.insert(address, stored);
        }
        Ok(all)
    }

    fn save(&self, address: &str, stored: &StoredToken) -> Result<PathBuf, CommandError> {
        let value =
            Value::try_from(stored).map_err(|error| self.damaged_file_error(&error.to_string()))?;
        self.change(|table| {
            table.insert(address.to_owned(), value);
            true
        })?;
        Ok(self.file.clone())
    }

    fn forget(&self, address: &str) -> Result<Option<StoredToken>, CommandError> {
        let mut gone = None;
        self.change(|table| {
            gone = table.remove(address);
            gone.is_some()
        })?;
        Ok(gone.and_then(|value| value.try_into().ok()))
    }

    /// Changes the file under a lock. `change` returns whether to write it.
    fn change(&self, change: impl FnOnce(&mut Table) -> bool) -> Result<(), CommandError> {
        let failed = |error: io::Error| self.io_error("written", &error);
        let mut folder = fs::DirBuilder::new();
        folder.recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let lock = self.folder.join(LOCK);
        let lock = OpenOptions::new().create(true).append(true).mode(0o600).open(lock);
        let lock = lock.map_err(failed)?;
        lock.lock().map_err(failed)?;
        let mut table = self.table()?;
        if !change(&mut table) {
            return Ok(());
        }
        let text =
            toml::to_string(&table).map_err(|error| self.damaged_file_error(&error.to_string()))?;
        let mut file = temporary_file::create(&self.folder, None).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        file.persist(&self.file).map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn table(&self) -> Result<Table, CommandError> {
        let file = match File::open(&self.file) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Table::new()),
            Err(error) => return Err(self.io_error("read", &error)),
        };
        let metadata = file.metadata().map_err(|error| self.io_error("read", &error))?;
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(self.open_to_others());
        }
        let mut text = String::new();
        file.take(MAX_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| self.io_error("read", &error))?;
        // The message of the parser may contain a token, so it is not printed.
        text.parse().map_err(|_| self.damaged_file_error("it is not valid TOML"))
    }

    fn open_to_others(&self) -> CommandError {
        let file = self.file.display();
        CommandError::refused(format!("{file} contains tokens, and other users can read it"))
            .with_code("credentials_readable")
            .hint(format!("remove their access: chmod 600 {file}"))
            .hint("if someone may have read it, replace the tokens: savoir logout, savoir login")
    }

    fn damaged_file_error(&self, why: &str) -> CommandError {
        CommandError::input(format!("{}: {why}", self.file.display()))
            .with_code("credentials_damaged")
            .hint("remove the file and log in again: savoir login")
    }

    fn io_error(&self, what: &str, error: &io::Error) -> CommandError {
        CommandError::input(format!("{} cannot be {what}: {error}", self.file.display()))
            .with_code("credentials_io")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored_token(token: &str) -> StoredToken {
        let token = Token::new(token).unwrap();
        StoredToken { id: Some("t1".into()), ..StoredToken::new(&token) }
    }

    #[test]
    fn tokens_are_saved_replaced_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let own = Credentials::in_folder(place.path().join("savoir"));
        assert!(own.all().unwrap().is_empty());
        assert!(own.forget("https://a.example").unwrap().is_none());
        own.save("https://a.example", &stored_token("sv_one")).unwrap();
        own.save("https://b.example/registry", &stored_token("sv_two")).unwrap();
        own.save("https://a.example", &stored_token("sv_three")).unwrap();
        let all = own.all().unwrap();
        assert_eq!(all["https://a.example"].token().unwrap().secret(), "sv_three");
        assert!(!format!("{all:?}").contains("sv_"));
        let mode = fs::metadata(&own.file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let gone = own.forget("https://a.example").unwrap().unwrap();
        assert_eq!(gone.id.as_deref(), Some("t1"));
        assert_eq!(own.all().unwrap().len(), 1);
    }

    #[test]
    fn unsafe_credential_files_are_rejected_without_printing_them() {
        let place = tempfile::tempdir().unwrap();
        let own = Credentials::in_folder(place.path().to_owned());
        own.save("https://a.example", &stored_token("sv_secret")).unwrap();
        fs::set_permissions(&own.file, fs::Permissions::from_mode(0o640)).unwrap();
        let error = own.all().unwrap_err();
        assert_eq!(
            (error.exit_code(), error.code().unwrap().as_ref()),
            (3, "credentials_readable")
        );
        let refused = own.save("https://b.example", &stored_token("sv_other")).unwrap_err();
        assert_eq!(refused.exit_code(), 3);
        for text in ["token = sv_secret", "\"https://a\" = \"sv_secret\"", "a = { id = \"x\" }"] {
            fs::write(&own.file, text).unwrap();
            fs::set_permissions(&own.file, fs::Permissions::from_mode(0o600)).unwrap();
            let error = own.all().unwrap_err();
            assert_eq!(error.exit_code(), 2);
            assert!(!error.to_string().contains("sv_secret"), "{error}");
        }
    }

    #[test]
    fn concurrent_saves_keep_all_tokens() {
        let place = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let own = Credentials::in_folder(place.path().to_owned());
                scope.spawn(move || {
                    let address = format!("https://{number}.example");
                    own.save(&address, &stored_token(&format!("sv_{number}"))).unwrap();
                });
            }
        });
        assert_eq!(Credentials::in_folder(place.path().to_owned()).all().unwrap().len(), 8);
    }
}
