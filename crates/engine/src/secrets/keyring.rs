//! Stores secrets in the keyring of the system, through the Secret Service of a desktop: GNOME
//! Keyring, `KWallet`, `KeePassXC`.
//!
//! The keyring may wait for the user to unlock it, or may never answer. So a separate thread calls
//! it, which is abandoned after a timeout.

use std::{collections::HashMap, path::Path, sync::mpsc, thread, time::Duration};

use secret_service::{
    EncryptionType,
    blocking::{Collection, SecretService},
};

use super::KeyringError;

/// Timeout for any answer of the keyring.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for the user to unlock the keyring.
const UNLOCK_TIMEOUT: Duration = Duration::from_mins(1);

impl From<secret_service::Error> for KeyringError {
    fn from(error: secret_service::Error) -> Self {
        use secret_service::Error;
        match error {
            Error::Unavailable | Error::NoResult => Self::Absent,
            Error::Locked | Error::Prompt | Error::PromptDisconnected => Self::Locked,
            error => Self::Failed(error.to_string()),
        }
    }
}

/// The attributes that identify a value in the keyring.
#[derive(Clone, Debug)]
struct Key {
    name: String,
    skill: String,
}

impl Key {
    fn new(name: &str, skill: Option<&Path>) -> Self {
        // No skill is in the root folder, so it stands for "any skill".
        let skill = skill.unwrap_or(Path::new("/")).to_string_lossy().into_owned();
        Self { name: name.to_owned(), skill }
    }

    fn attributes(&self) -> HashMap<&str, &str> {
        [("application", "savoir"), ("variable", &*self.name), ("skill", &*self.skill)].into()
    }
}

/// Stores a value; replaces an earlier one.
pub(super) fn store(name: &str, skill: Option<&Path>, value: &str) -> Result<(), KeyringError> {
    let (key, value) = (Key::new(name, skill), value.to_owned());
    in_keyring(move |collection| {
        let label = format!("{} for Savoir", key.name);
        let replace = true;
        let attributes = key.attributes();
        collection.create_item(&label, attributes, value.as_bytes(), replace, "text/plain")?;
        Ok(())
    })
}

pub(super) fn read(name: &str, skill: Option<&Path>) -> Result<String, KeyringError> {
    let key = Key::new(name, skill);
    in_keyring(move |collection| {
        let found = collection.search_items(key.attributes())?;
        let item = found.first().ok_or_else(|| KeyringError::Gone(key.name.clone()))?;
        item.ensure_unlocked().or_else(|_| item.unlock())?;
        let bytes = item.get_secret()?;
        String::from_utf8(bytes).map_err(|error| KeyringError::Failed(error.to_string()))
    })
}

/// Removes a value; does nothing if it does not exist.
pub(super) fn remove(name: &str, skill: Option<&Path>) -> Result<(), KeyringError> {
    let key = Key::new(name, skill);
    in_keyring(move |collection| {
        for item in collection.search_items(key.attributes())? {
            item.delete()?;
        }
        Ok(())
    })
}

/// Calls `work` with the user's unlocked collection.
fn in_keyring<T: Send + 'static>(
    work: impl FnOnce(&Collection<'_>) -> Result<T, KeyringError> + Send + 'static,
) -> Result<T, KeyringError> {
    let service = within(ANSWER_TIMEOUT, || {
        let service =
            SecretService::connect(EncryptionType::Dh).map_err(|_| KeyringError::Absent)?;
        // A service may have no collection. Creating one would ask the user for a new password.
        service.get_default_collection()?;
        Ok(service)
    })?;
    within(UNLOCK_TIMEOUT, move || {
        let collection = service.get_default_collection()?;
        collection.ensure_unlocked().or_else(|_| collection.unlock())?;
        collection.ensure_unlocked()?;
        work(&collection)
    })
}

fn within<T: Send + 'static>(
    most: Duration,
    work: impl FnOnce() -> Result<T, KeyringError> + Send + 'static,
) -> Result<T, KeyringError> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(most).unwrap_or(Err(KeyringError::Absent))
}
