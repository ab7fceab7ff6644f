//! Storage: a folder for one machine, or a database and a bucket for several.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use savoir_engine::Home;
use savoir_store::{Database, Storage, StoreError};

use crate::{
    config::{Config, ServeLayer, mask_password},
    error::CommandError,
    output,
};

/// File name of the database in the data folder.
const DATABASE_FILE_NAME: &str = "savoir.sqlite";

/// Timeout of the first request to a bucket.
const BUCKET_TIMEOUT: Duration = Duration::from_secs(10);

/// Storage options of the command line.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct StorageArgs {
    /// Data folder [default: ~/.local/share/savoir]
    #[arg(long, value_name = "DIR", help_heading = "Storage")]
    data: Option<PathBuf>,
    #[arg(
        long,
        value_name = "URL",
        help_heading = "Storage",
        help = "Database instead of a file in the data folder: postgres://… or sqlite://PATH"
    )]
    database: Option<String>,
    #[arg(
        long,
        value_name = "URL",
        help_heading = "Storage",
        help = "Bucket instead of the data folder: s3://BUCKET[/PREFIX]"
    )]
    storage: Option<String>,
}

impl StorageArgs {
    pub(crate) fn layer(&self) -> ServeLayer {
        let Self { data, database, storage } = self.clone();
        ServeLayer { data, database, storage, ..ServeLayer::default() }
    }

    /// The storage from the command line, with the settings as defaults.
    pub(crate) fn location(&self) -> Result<StorageLocation, CommandError> {
        let config = Config::load(Path::new("."))?;
        StorageLocation::new(&self.layer().merge_over(config.serve), &Home::from_environment()?)
    }
}

/// Where the data of a server is stored.
#[derive(Clone, Debug)]
pub(crate) struct StorageLocation {
    data: PathBuf,
    database: Option<String>,
    storage: Option<String>,
    /// Whether it is the default storage, which all other commands use.
    pub(crate) is_home: bool,
    /// Whether the data folder is not the default one.
    is_elsewhere: bool,
}

impl StorageLocation {
    pub(crate) fn new(settings: &ServeLayer, home: &Home) -> Result<Self, CommandError> {
        let data = settings.data.clone().unwrap_or_else(|| home.data().to_owned());
        let data = std::path::absolute(&data).map_err(|error| {
            CommandError::input(format!("{} is not a folder: {error}", data.display()))
        })?;
        let (database, storage) = (settings.database.clone(), settings.storage.clone());
        let is_elsewhere = data != home.data();
        let is_home = !is_elsewhere && storage.is_none();
        Ok(Self { data, database, storage, is_home, is_elsewhere })
    }

    /// Whether the storage exists, as far as that is known without opening it.
    pub(crate) fn exists(&self) -> bool {
        self.database.is_some() || self.data.join(DATABASE_FILE_NAME).is_file()
    }

    /// Opens and migrates the database, and opens the storage.
    pub(crate) async fn open(&self) -> Result<(Database, Storage), CommandError> {
        if self.database.is_none() || self.storage.is_none() {
            make_folder(&self.data)?;
        }
        let storage = match &self.storage {
            Some(url) => Storage::open(url),
            None => Storage::folder(&self.data),
        };
        let storage = storage.map_err(|error| {
            CommandError::from(error)
                .hint("--storage takes s3://BUCKET[/PREFIX]; see docs/guides/server.md")
        })?;
        if let Some(url) = &self.storage {
            probe(&storage, url).await?;
        }
        let database = match &self.database {
            Some(url) => Database::open(url).await,
            None => Database::open_folder(&self.data).await,
        };
        let database = database.map_err(|error| {
            let hint = match &error {
                StoreError::Full { .. } => "`df` shows how much space each disk has left",
                _ => "--database takes postgres://… or sqlite://PATH; see docs/guides/server.md",
            };
            CommandError::from(error).hint(hint)
        })?;
        Ok((database, storage))
    }

    /// Folder of the registry's search index, which can be rebuilt.
    pub(crate) fn search(&self) -> PathBuf {
        self.data.join("search")
    }

    /// Folder of the repositories of the catalog, which can be downloaded again.
    pub(crate) fn catalog(&self) -> PathBuf {
        self.data.join("catalog")
    }

    /// The database for messages, without its password.
    pub(crate) fn shown_database(&self) -> String {
        match &self.database {
            Some(url) => mask_password(url),
            None => self.data.join(DATABASE_FILE_NAME).display().to_string(),
        }
    }

    /// Options with which other commands find the same accounts, with a leading space.
    pub(crate) fn storage_options(&self) -> String {
        match &self.database {
            // The address may contain a password.
            Some(_) => " --database URL".to_owned(),
            None if self.is_elsewhere => format!(" --data {}", self.data.display()),
            None => String::new(),
        }
    }

    /// Whether skills are stored in a folder of this machine.
    pub(crate) fn has_folder(&self) -> bool {
        self.storage.is_none()
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Name or path of a skill for commands that only read files.
    pub(crate) fn skill(&self, name: &str) -> Option<String> {
        match &self.storage {
            Some(_) => None,
            None if self.is_home => Some(name.to_owned()),
            None => Some(self.data.join("skills").join(name).display().to_string()),
        }
    }

    /// The storage for messages, without its password.
    pub(crate) fn shown_storage(&self) -> String {
        match &self.storage {
            Some(url) => mask_password(url),
            None => self.data.display().to_string(),
        }
    }
}

/// Creates a folder that only its owner can read. Warns if other users can read an existing one.
fn make_folder(path: &Path) -> Result<(), CommandError> {
    let wrong = |error: io::Error| {
        CommandError::input(format!("{} cannot be used: {error}", path.display()))
            .hint("choose another folder: --data DIR")
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(wrong)?;
    #[cfg(unix)]
    {
        let metadata = fs::metadata(path).map_err(wrong)?;
        let mode = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions());
        if mode & 0o077 != 0 {
            let shown = path.display();
            output::note(&format!(
                "other users can read {shown}; to prevent that: chmod 700 {shown}"
            ));
        }
    }
    Ok(())
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::input(error)
    }
}

/// Checks that a bucket answers, so that errors are reported at the start.
async fn probe(storage: &Storage, url: &str) -> Result<(), CommandError> {
    let why = match tokio::time::timeout(BUCKET_TIMEOUT, storage.ping()).await {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", BUCKET_TIMEOUT.as_secs()),
    };
    Err(CommandError::input(format!("{} cannot be used: {why}", mask_password(url))).hint(
        "set AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and AWS_ENDPOINT_URL for \
         anything that is not AWS",
    ))
}
