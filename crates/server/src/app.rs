//! Defines [`App`], the state that all requests share.

use std::{ops::Deref, sync::Arc};

use savoir_flow::{services::Services, workflow::CodePolicy};
use savoir_knowledge::Knowledge;
use savoir_model::Models;
use savoir_registry::{RegistryState, vetting::Vetting};
use savoir_store::{Database, Storage, StoreError, Timestamp};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::Config,
    keys::Keys,
    metrics::Metrics,
    personal::{SkillWriter, catalog::Catalog},
    providers,
    questions::Questions,
    readiness::Readiness,
    run_history::RunHistory,
    skill_lookup::Skills,
    throttle::AttemptSlots,
};

/// The shared state of the server. Cloning is cheap and shares the state.
#[derive(Clone, Debug)]
pub struct App(Arc<Inner>);

/// The fields of an [`App`].
#[derive(Debug)]
pub struct Inner {
    pub(crate) config: Config,
    pub(crate) started_at: Timestamp,
    pub(crate) database: Database,
    pub(crate) storage: Storage,
    pub(crate) skills: Skills,
    pub(crate) services: Services,
    pub(crate) knowledge: Knowledge,
    pub(crate) keys: Keys,
    pub(crate) metrics: Metrics,
    pub(crate) history: RunHistory,
    /// Questions about tools that wait for an answer.
    pub(crate) questions: Questions,
    pub(crate) readiness: Readiness,
    /// Runs in progress. They continue after their client disconnects.
    pub(crate) tasks: TaskTracker,
    /// Limits concurrent password checks.
    pub(crate) turns: AttemptSlots,
    /// Checks packages before they are published.
    pub(crate) vetting: Vetting,
    pub(crate) registry_state: RegistryState,
    /// The repositories from which users may import skills.
    pub(crate) catalog: Catalog,
    /// Limits how much workflow code runs at once.
    pub(crate) code: CodePolicy,
    /// Cancelled when streams must end.
    pub(crate) stop: CancellationToken,
}

impl App {
    /// Creates the state of a server. The signing key is created at the first start.
    pub async fn new(
        config: Config,
        database: Database,
        storage: Storage,
        models: Models,
    ) -> Result<Self, StoreError> {
        let database = database.with_quotas(config.quotas);
        let keys = Keys::open(&database).await?;
        // Marks the storage, so that another server with blobs in the same storage does not delete
        // ours.
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
        let app = Self(Arc::new(Inner {
            catalog,
            skills: Skills::new(SkillWriter::new(storage.skills(), database.clone())),
            vetting: Vetting::detect(config.registry.vetting.clone()),
            config,
            started_at: Timestamp::now(),
            database,
            storage,
            services,
            knowledge,
            keys,
            metrics: Metrics::default(),
            history: RunHistory::default(),
            questions: Questions::default(),
            readiness: Readiness::default(),
            tasks: TaskTracker::new(),
            turns: AttemptSlots::default(),
            registry_state: RegistryState::default(),
            code: CodePolicy::default(),
            stop: CancellationToken::new(),
        }));
        providers::load(&app).await;
        Ok(app)
    }
}

impl App {
    /// The knowledge bases of the server. An upload through this value wakes the indexer
    /// immediately.
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
