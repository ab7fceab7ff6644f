//! Where tools of skills run on a server, if its operator lets them.
//!
//! They run as with `savoir run`: from the folder in which their skill lies, after an approval of the
//! operator and in the sandbox. Nobody can be asked, so what is not approved is refused with the
//! command that approves it. Every run starts in an empty folder, which is gone after it, and sees none
//! of the variables of the server, which may be secrets.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use savoir_engine::{
    Home, RunError,
    agent::{
        consent::Nobody,
        skill_tools::{Bench, Queue, SkillTools, Subjects},
    },
    ground::Ground,
    manifest::MODES,
    subject::Subject,
};
use tempfile::TempDir;
use tokio::runtime::Handle;

use crate::{access::Scope, app::App, asked::Caller, library::PersonalLibrary};

/// Runs of all people at once.
const MOST_RUNS: usize = 8;
/// Variables of the server that a run may see.
const PASSED: [&str; 4] = ["PATH", "LANG", "TZ", "TERM"];

/// Reads the skill in a folder, with who vouches for it.
pub trait ReadFolder: fmt::Debug + Send + Sync {
    /// The skill as it is now.
    fn read(&self, folder: &Path) -> Result<Subject, RunError>;
}

/// Where tools of skills run. Cloning shares it.
#[derive(Clone, Debug)]
pub struct Workshop {
    home: Home,
    ground: Ground,
    reader: Arc<dyn ReadFolder>,
    /// What must run alone is alone on the whole server.
    queue: Queue,
    /// Where runs have their folders, from the first one on. It goes with the server.
    folder: Arc<OnceLock<TempDir>>,
}

impl Workshop {
    /// A workshop with the approvals and records of a home. Of the ground, only its folders of Savoir
    /// and a few variables count.
    pub fn new(home: Home, ground: Ground, reader: Arc<dyn ReadFolder>) -> Self {
        let (queue, folder) = (Queue::with_places(MOST_RUNS), Arc::default());
        Self { home, ground, reader, queue, folder }
    }

    fn folder(&self) -> io::Result<PathBuf> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder.path().to_owned());
        }
        let made = tempfile::Builder::new().prefix("savoir-tools-").tempdir()?;
        Ok(self.folder.get_or_init(|| made).path().to_owned())
    }

    /// Removes what runs that were broken off have left, when the server ends.
    pub(crate) fn clear(&self) {
        let Some(folder) = self.folder.get() else { return };
        if let Err(error) = fs::remove_dir_all(folder.path()) {
            tracing::warn!(%error, "folders in which tools ran are still there");
        }
    }

    /// What runs the tools of the skills that a person may use.
    fn tools(&self, app: &App, caller: &Caller) -> io::Result<SkillTools> {
        let folder = self.folder()?;
        let mut variables = self.ground.variables.clone();
        variables.retain(|(name, _)| PASSED.contains(&name.as_str()));
        let ground = Ground {
            repository: None,
            variables,
            kept: self.ground.kept.clone(),
            ..Ground::at(&folder, &folder)
        };
        let library = PersonalLibrary::new(app.clone(), caller.clone());
        let reader = Arc::clone(&self.reader);
        let bench = Bench {
            subjects: Arc::new(Offered { app: app.clone(), library, reader }),
            asker: Arc::new(Nobody),
            home: self.home.clone(),
            ground,
            mode: MODES[0].to_owned(),
        };
        Ok(SkillTools::new(bench).sharing(self.queue.clone()).lodging_below(folder))
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
struct Offered {
    app: App,
    library: PersonalLibrary,
    reader: Arc<dyn ReadFolder>,
}

impl Subjects for Offered {
    fn subject(&self, skill: &str) -> Result<Subject, RunError> {
        // Somebody may have disabled it since its tools were offered. Whoever may call it was looked at
        // when it was loaded.
        let there = Handle::current().block_on(self.library.is_there(skill));
        there.map_err(|error| RunError::call(error.code(), error))?;
        let files = self.app.skills.keeper().files();
        if !files.is_local() {
            return Err(RunError::refused(
                "skill-not-here",
                "tools run where a skill lies in a folder, and those of this server lie in a bucket",
            )
            .way_out("do without the tool"));
        }
        let place = files.place(skill).map_err(|error| {
            tracing::error!(skill, %error, "the folder of a skill cannot be read");
            RunError::failed("skill-unreadable", "the server failed; try again")
        })?;
        let gone = || RunError::call("no-skill", format!("there is no skill `{skill}`"));
        self.reader.read(&place.ok_or_else(gone)?)
    }
}
