//! The state that all requests share.

use std::{ops::Deref, sync::Arc};

use savoir_engine::{knowledge::Knowledge, services::Services, workflow::CodePolicy};
use savoir_model::Models;
use savoir_registry::{RegistryState, vetting::Vetting};
use savoir_store::{Database, Storage, StoreError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::Config,
    keys::Keys,
    metrics::Metrics,
    personal::{SkillWriter, catalog::Catalog},
    readiness::Readiness,
    skill_lookup::Skills,
    throttle::Turns,
};

/// Everything that a request may need. Cloning shares it.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

/// The parts of an [`App`].
#[derive(Debug)]
pub struct Inner {
    pub(crate) config: Config,
    pub(crate) database: Database,
    pub(crate) storage: Storage,
    pub(crate) skills: Skills,
    pub(crate) services: Services,
    pub(crate) knowledge: Knowledge,
    pub(crate) keys: Keys,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    /// Runs that go on, also after their listener went away.
    pub(crate) tasks: TaskTracker,
    /// Passwords that are being checked.
    pub(crate) turns: Turns,
    /// What is asked about a package before it is published.
    pub(crate) vetting: Vetting,
    /// What the routes of the registry share.
    pub(crate) registry_state: RegistryState,
    /// From where people may take skills.
    pub(crate) catalog: Catalog,
    /// How much code of workflows may run at once.
    pub(crate) code: CodePolicy,
    /// Streams are to end now.
    pub(crate) stop: CancellationToken,
}

impl App {
    /// Puts a server together. The signing key is made at the very first start.
    pub async fn new(
        config: Config,
        database: Database,
        storage: Storage,
        models: Models,
    ) -> Result<Self, StoreError> {
        let database = database.with_quotas(config.quotas);
        let keys = Keys::open(&database).await?;
        // Nobody else who keeps blobs in the same storage may sweep ours.
        database.registry(&storage).mark().await?;
        let knowledge =
            Knowledge::new(database.clone(), storage.clone(), models.embedder().cloned());
        let services = Services {
            models: Arc::new(models),
            knowledge: Some(knowledge.clone()),
            database: Some(database.clone()),
            limits: config.time_limits,
        };
        let catalog = Catalog::new(config.catalog.clone());
        let catalog = catalog.map_err(|error| StoreError::Setting(error.to_string()))?;
        Ok(Self(Arc::new(Inner {
            catalog,
            skills: Skills::new(SkillWriter::new(storage.skills(), database.clone())),
            vetting: Vetting::detect(config.registry.vetting.clone()),
            config,
            database,
            storage,
            services,
            knowledge,
            keys,
            metrics: Metrics::default(),
            readiness: Readiness::default(),
            tasks: TaskTracker::new(),
            turns: Turns::default(),
            registry_state: RegistryState::default(),
            code: CodePolicy::default(),
            stop: CancellationToken::new(),
        })))
    }
}

impl App {
    /// The knowledge that it serves: what is uploaded here wakes an indexer of it at once.
    pub fn knowledge(&self) -> &Knowledge {
        &self.knowledge
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
