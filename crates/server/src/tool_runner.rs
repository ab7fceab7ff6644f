//! Runs tools of skills on the server, if the operator allows it.
//!
//! Tools run as with `savoir run`: from the folder of their skill, after an approval by the
//! operator, and in the sandbox. In a conversation, an administrator is asked (see `questions`);
//! elsewhere nobody can be asked, so a tool without approval is rejected with the command that
//! approves it. Every run starts in its own empty folder, and sees no environment variables of the
//! server that may be secrets. Files that a tool leaves in its folder are stored for some time; the
//! user for whom the tool ran can download them.

use std::{fmt, path::Path, sync::Arc};

use savoir_agent::{
    consent::Nobody,
    library::LibraryError,
    skill_tools::{RunLimiter, SkillLoader, SkillToolEnvironment, SkillTools},
    workspaces::Workspaces,
};
use savoir_engine::{
    Home, RunError, StoreError, loaded_skill::LoadedSkill, manifest::MODES,
    run_environment::RunEnvironment,
};
use savoir_store::name_of_key;
use tokio::runtime::Handle;

use crate::{access::Scope, app::App, auth::Caller, library::PersonalLibrary};

/// Maximum concurrent runs of all users.
const MAX_CONCURRENT_RUNS: usize = 8;
/// Environment variables of the server that a run may see.
const PASSED_ENVIRONMENT_VARIABLES: [&str; 4] = ["PATH", "LANG", "TZ", "TERM"];

/// Reads the skill in a folder, with its signatures.
pub trait ReadFolder: fmt::Debug + Send + Sync {
    /// Reads the current files.
    fn read(&self, folder: &Path) -> Result<LoadedSkill, RunError>;
}

/// Runs tools of skills. Cloning shares the state.
#[derive(Clone, Debug)]
pub struct ToolRunner {
    home: Home,
    run_env: RunEnvironment,
    reader: Arc<dyn ReadFolder>,
    /// Atomic tools do not run in parallel with any other tool on the server.
    limiter: RunLimiter,
}

impl ToolRunner {
    /// A runner with the approvals and records of a home folder. Of `run_env`, only Savoir's
    /// folders and a few variables are used.
    pub fn new(home: Home, run_env: RunEnvironment, reader: Arc<dyn ReadFolder>) -> Self {
        Self { home, run_env, reader, limiter: RunLimiter::with_slots(MAX_CONCURRENT_RUNS) }
    }

    /// The files that tools left for a user.
    pub(crate) fn workspaces(&self, caller: &Caller) -> Result<Workspaces, StoreError> {
        Workspaces::of(&self.home, &caller.user.id.to_string())
    }

    /// A runner for the tools of the skills that a user may use.
    fn tools(
        &self,
        app: &App,
        caller: &Caller,
        key: Option<String>,
    ) -> Result<SkillTools, StoreError> {
        let workspaces = self.workspaces(caller)?;
        let mut variables = self.run_env.variables.clone();
        variables.retain(|(name, _)| PASSED_ENVIRONMENT_VARIABLES.contains(&name.as_str()));
        let run_env = RunEnvironment {
            repository: None,
            variables,
            savoir_folders: self.run_env.savoir_folders.clone(),
            ..RunEnvironment::at(self.home.data(), self.home.data())
        };
        let library = PersonalLibrary::new(app.clone(), caller.clone());
        let reader = Arc::clone(&self.reader);
        let skill_tool_environment = SkillToolEnvironment {
            skill_loader: Arc::new(OfferedTool { app: app.clone(), library, reader, key }),
            asker: Arc::new(Nobody),
            home: self.home.clone(),
            run_env,
            mode: MODES[0].to_owned(),
        };
        Ok(SkillTools::new(skill_tool_environment)
            .with_limiter(self.limiter.clone())
            .with_workspaces(workspaces))
    }
}

/// A runner for the tools of skills, if the caller may run skills and the operator allows tools. It
/// starts in the default mode.
pub(crate) fn tools(app: &App, caller: &Caller) -> Option<SkillTools> {
    start(app, caller, None)
}

/// Like [`tools`], for the skill that is stored under a key, which may belong to another user.
pub(crate) fn tools_of(app: &App, caller: &Caller, key: String) -> Option<SkillTools> {
    start(app, caller, Some(key))
}

fn start(app: &App, caller: &Caller, key: Option<String>) -> Option<SkillTools> {
    let tool_config = app.config.skill_tools.as_ref()?;
    caller.check_scope(Scope::SkillsRun).ok()?;
    match tool_config.tools(app, caller, key) {
        Ok(tools) => Some(tools),
        Err(error) => {
            tracing::error!(%error, "the folder for runs of tools cannot be created");
            None
        }
    }
}

/// The message for an API token that lacks the scope to run tools.
pub(crate) fn missing_scope_message(app: &App, caller: &Caller) -> Option<String> {
    app.config.skill_tools.as_ref()?;
    caller.check_scope(Scope::SkillsRun).is_err().then(|| Scope::SkillsRun.missing_scope_hint())
}

/// Loads the skills that a user's agent can use at the time of a run.
#[derive(Debug)]
struct OfferedTool {
    app: App,
    library: PersonalLibrary,
    reader: Arc<dyn ReadFolder>,
    /// The storage key of the only skill, if it is already chosen.
    key: Option<String>,
}

impl OfferedTool {
    async fn find_key(&self, skill: &str) -> Result<String, LibraryError> {
        match &self.key {
            Some(key) if name_of_key(key) == skill => {
                self.library.check_usable(key).await.map(|()| key.clone())
            }
            _ => self.library.find_usable_key(skill).await,
        }
    }
}

impl SkillLoader for OfferedTool {
    fn load_skill(&self, skill: &str) -> Result<LoadedSkill, RunError> {
        // The skill may have been disabled since its tools were listed. Whether models may call it
        // was checked when it was loaded.
        let key = Handle::current().block_on(self.find_key(skill));
        let key = key.map_err(|error| RunError::call(error.code(), error))?;
        let files = self.app.skills.skill_writer().files();
        if !files.is_local() {
            return Err(RunError::refused(
                "skill-not-here",
                "tools run only if skills are stored in a folder, and this server stores them in a bucket",
            )
            .with_hint("do without the tool"));
        }
        let place = files.place(&key).map_err(|error| {
            tracing::error!(skill, %error, "the folder of a skill cannot be read");
            RunError::cannot_start("skill-unreadable", "the server failed; try again")
        })?;
        let gone = || RunError::call("no-skill", format!("there is no skill `{skill}`"));
        self.reader.read(&place.ok_or_else(gone)?)
    }
}
