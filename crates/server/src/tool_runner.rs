//! Runs tools of skills on the server, if the operator allows it.
//!
//! They run as with `savoir run`: from the folder in which their skill lies, after an approval of the
//! operator and in the sandbox. Nobody can be asked, so what is not approved is refused with the
//! command that approves it. Every run starts in an empty folder of its own, and sees none
//! of the variables of the server, which may be secrets. What a tool leaves in its folder is kept for a while,
//! and the one for whom it ran can download it.

use std::{fmt, path::Path, sync::Arc};

use savoir_agent::{
    consent::Nobody,
    skill_tools::{Queue, SkillFolders, SkillToolEnvironment, SkillTools},
    workspaces::Workspaces,
};
use savoir_engine::{
    Home, RunError, StoreError, loaded_skill::LoadedSkill, manifest::MODES,
    run_environment::RunEnvironment,
};
use tokio::runtime::Handle;

use crate::{access::Scope, app::App, auth::Caller, library::PersonalLibrary};

/// Runs of all people at once.
const MAX_CONCURRENT_RUNS: usize = 8;
/// Variables of the server that a run may see.
const PASSED_ENVIRONMENT_VARIABLES: [&str; 4] = ["PATH", "LANG", "TZ", "TERM"];

/// Reads the skill in a folder, with who vouches for it.
pub trait ReadFolder: fmt::Debug + Send + Sync {
    /// The skill as it is now.
    fn read(&self, folder: &Path) -> Result<LoadedSkill, RunError>;
}

/// Where tools of skills run. Cloning shares it.
#[derive(Clone, Debug)]
pub struct ToolRunner {
    home: Home,
    run_env: RunEnvironment,
    reader: Arc<dyn ReadFolder>,
    /// What must run alone is alone on the whole server.
    queue: Queue,
}

impl ToolRunner {
    /// A workshop with the approvals and records of a home. Of the ground, only its folders of Savoir
    /// and a few variables count.
    pub fn new(home: Home, run_env: RunEnvironment, reader: Arc<dyn ReadFolder>) -> Self {
        Self { home, run_env, reader, queue: Queue::with_slots(MAX_CONCURRENT_RUNS) }
    }

    /// What tools left for a person.
    pub(crate) fn workspaces(&self, caller: &Caller) -> Result<Workspaces, StoreError> {
        Workspaces::of(&self.home, &caller.user.id.to_string())
    }

    /// What runs the tools of the skills that a person may use.
    fn tools(&self, app: &App, caller: &Caller) -> Result<SkillTools, StoreError> {
        let workspaces = self.workspaces(caller)?;
        let mut variables = self.run_env.variables.clone();
        variables.retain(|(name, _)| PASSED_ENVIRONMENT_VARIABLES.contains(&name.as_str()));
        let run_env = RunEnvironment {
            repository: None,
            variables,
            kept: self.run_env.kept.clone(),
            ..RunEnvironment::at(self.home.data(), self.home.data())
        };
        let library = PersonalLibrary::new(app.clone(), caller.clone());
        let reader = Arc::clone(&self.reader);
        let bench = SkillToolEnvironment {
            skill_folders: Arc::new(OfferedTool { app: app.clone(), library, reader }),
            asker: Arc::new(Nobody),
            home: self.home.clone(),
            run_env,
            mode: MODES[0].to_owned(),
        };
        Ok(SkillTools::new(bench).with_queue(self.queue.clone()).with_workspaces(workspaces))
    }
}

/// What runs the tools of skills for somebody who may run skills, if the operator lets them run. It is
/// in the first mode until another one is chosen.
pub(crate) fn tools(app: &App, caller: &Caller) -> Option<SkillTools> {
    let workshop = app.config.skill_tools.as_ref()?;
    caller.must_have(Scope::SkillsRun).ok()?;
    match workshop.tools(app, caller) {
        Ok(tools) => Some(tools),
        Err(error) => {
            tracing::error!(%error, "there is no folder in which tools of skills can run");
            None
        }
    }
}

/// What a program is told whose token may not run the tools that run here.
pub(crate) fn lacking(app: &App, caller: &Caller) -> Option<String> {
    app.config.skill_tools.as_ref()?;
    caller.must_have(Scope::SkillsRun).is_err().then(|| Scope::SkillsRun.way_out())
}

/// The skills that an agent of one person is offered at the moment of a run.
#[derive(Debug)]
struct OfferedTool {
    app: App,
    library: PersonalLibrary,
    reader: Arc<dyn ReadFolder>,
}

impl SkillFolders for OfferedTool {
    fn load_skill(&self, skill: &str) -> Result<LoadedSkill, RunError> {
        // Somebody may have disabled it since its tools were offered. Whoever may call it was looked at
        // when it was loaded.
        let there = Handle::current().block_on(self.library.is_there(skill));
        there.map_err(|error| RunError::call(error.code(), error))?;
        let files = self.app.skills.skill_writer().files();
        if !files.is_local() {
            return Err(RunError::refused(
                "skill-not-here",
                "tools run where a skill lies in a folder, and those of this server lie in a bucket",
            )
            .with_hint("do without the tool"));
        }
        let place = files.place(skill).map_err(|error| {
            tracing::error!(skill, %error, "the folder of a skill cannot be read");
            RunError::failed("skill-unreadable", "the server failed; try again")
        })?;
        let gone = || RunError::call("no-skill", format!("there is no skill `{skill}`"));
        self.reader.read(&place.ok_or_else(gone)?)
    }
}
