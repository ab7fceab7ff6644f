//! Offers and runs the tools of skills. A skill's tools are offered once the skill is in use, and
//! run like any other: after the same approval, in the same sandbox, with the same record.

mod answer;

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use savoir_engine::{
    Home, RunError,
    approval::Approvals,
    call::ToolNames,
    loaded_skill::LoadedSkill,
    manifest::{self, Manifest},
    record::DecisionRecord,
    run::{Call, CallInput, FinishedRun, RunPlan},
    run_environment::RunEnvironment,
    session::{ApprovalDuration, RunDecision, SavedApprovals, Session},
};
use savoir_lint::harmless;
use savoir_model::ToolDefinition;
use savoir_skill::Skill;
use serde_json::{Map, Value};
use tempfile::TempDir;
use tokio::sync::{
    OwnedRwLockReadGuard, OwnedRwLockWriteGuard, OwnedSemaphorePermit, RwLock, Semaphore,
};

use self::answer::{LeftFiles, answer, error_answer, rejection_error, store_left_files};
use super::{
    allowed_tools::CallGuard,
    consent::{Asker, Consent},
    toolset::{Origin, ToolAnswer, ToolSpec, Toolset},
    workspaces::Workspaces,
};

/// Loads skills from disk, with their signers.
pub trait SkillLoader: fmt::Debug + Send + Sync {
    /// Loads the skill with this name in its current state.
    fn load_skill(&self, skill: &str) -> Result<LoadedSkill, RunError>;
}

/// The settings under which the tools of skills run.
#[derive(Clone, Debug)]
pub struct SkillToolEnvironment {
    pub skill_loader: Arc<dyn SkillLoader>,
    /// Asks the user for approval.
    pub asker: Arc<dyn Asker>,
    /// The folders with approvals and records.
    pub home: Home,
    /// The working directory, home and variables of runs.
    pub run_env: RunEnvironment,
    /// The mode of the gibb.eri.sh dialect, which limits the skills that are offered.
    pub mode: String,
}

/// Limits which runs may happen at the same time. Clones share the limits.
#[derive(Clone, Debug, Default)]
pub struct RunLimiter {
    /// A tool that must run alone (`atomic`) takes the write lock, all others the read lock.
    exclusive: Arc<RwLock<()>>,
    /// The number of concurrent runs, if it is limited.
    slots: Option<Arc<Semaphore>>,
}

impl RunLimiter {
    /// Creates a limiter that allows `count` concurrent runs.
    pub fn with_slots(count: usize) -> Self {
        Self { exclusive: Arc::default(), slots: Some(Arc::new(Semaphore::new(count))) }
    }

    /// Waits until a run may start. The permit is held until it is dropped.
    async fn acquire(&self, atomic: bool) -> RunPermit {
        let exclusive = Arc::clone(&self.exclusive);
        let lock = if atomic {
            RunLock::Alone(exclusive.write_owned().await)
        } else {
            RunLock::Shared(exclusive.read_owned().await)
        };
        let slot = match &self.slots {
            // The semaphore is never closed, so this does not fail.
            Some(slots) => Arc::clone(slots).acquire_owned().await.ok(),
            None => None,
        };
        RunPermit { _lock: lock, _slot: slot }
    }
}

/// The permission to run now; dropping it lets other runs start.
struct RunPermit {
    _lock: RunLock,
    _slot: Option<OwnedSemaphorePermit>,
}

enum RunLock {
    Alone(#[expect(dead_code, reason = "holds the lock")] OwnedRwLockWriteGuard<()>),
    Shared(#[expect(dead_code, reason = "holds the lock")] OwnedRwLockReadGuard<()>),
}

/// The tool set with the tools of the skills that are in use.
#[derive(Debug)]
pub struct SkillTools {
    environment: SkillToolEnvironment,
    /// The skills in use; the most recently used comes last.
    in_use: Mutex<Vec<Skill>>,
    limiter: RunLimiter,
    /// If set, every run gets an empty folder of its own; otherwise all runs start in the folder of
    /// the environment.
    workspaces: Option<Workspaces>,
}

impl SkillTools {
    /// Creates a tool set without skills.
    pub fn new(environment: SkillToolEnvironment) -> Self {
        Self {
            environment,
            in_use: Mutex::default(),
            limiter: RunLimiter::default(),
            workspaces: None,
        }
    }

    /// Uses a limiter that other tool sets may share: an atomic tool then runs alone among all of
    /// them.
    #[must_use]
    pub fn with_limiter(self, limiter: RunLimiter) -> Self {
        Self { limiter, ..self }
    }

    /// Gives every run an empty folder, which is stored if a tool leaves files in it.
    #[must_use]
    pub fn with_workspaces(self, workspaces: Workspaces) -> Self {
        Self { workspaces: Some(workspaces), ..self }
    }

    /// A copy for another mode, without skills.
    #[must_use]
    pub fn with_mode(&self, mode: &str) -> Self {
        let mut tools = self.without_skills();
        mode.clone_into(&mut tools.environment.mode);
        tools
    }

    /// A copy that asks another user, without skills.
    #[must_use]
    pub fn with_asker(&self, asker: Arc<dyn Asker>) -> Self {
        let mut tools = self.without_skills();
        tools.environment.asker = asker;
        tools
    }

    /// Explains why the tools of a skill are not offered in this mode, with a hint.
    pub fn explain_not_in_mode(&self, skill: &Skill) -> Option<String> {
        self.explain_modes_mismatch(&skill.name, &skill.policy.modes)
    }

    /// Like [`explain_not_in_mode`](Self::explain_not_in_mode), for a skill with these modes.
    pub fn explain_modes_mismatch(&self, skill: &str, modes: &[String]) -> Option<String> {
        let mode = &self.environment.mode;
        (!manifest::is_offered_in(modes, mode)).then(|| {
            format!(
                "the tools of `{skill}` are only offered in mode {}; the current mode is {mode}. hint: \
                 use another skill, or ask the user to change the mode (`--mode` of savoir mcp and \
                 savoir chat, `/mcp?mode=` or the `mode` of a message on a server)",
                modes.join(" or ")
            )
        })
    }

    /// A copy without skills that shares the environment and the limiter.
    #[must_use]
    pub fn without_skills(&self) -> Self {
        Self {
            environment: self.environment.clone(),
            in_use: Mutex::default(),
            limiter: self.limiter.clone(),
            workspaces: self.workspaces.clone(),
        }
    }

    /// Starts to offer the tools of a skill; returns the names by which they can be called.
    pub fn offer_skill(&self, skill: &Skill) -> Vec<String> {
        if skill.tools.is_empty() || !manifest::is_offered(skill, &self.environment.mode) {
            return Vec::new();
        }
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|known| known.name != skill.name);
        in_use.push(skill.clone());
        let belongs_to_skill = |name: &&savoir_engine::call::ToolName| name.skill == skill.name;
        qualified_names(&in_use)
            .iter()
            .filter(belongs_to_skill)
            .map(|name| name.api.clone())
            .collect()
    }

    /// Stops offering the tools of a skill.
    pub fn remove_skill(&self, skill: &str) {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|known| known.name != skill);
    }

    /// The skills in use; the most recently used comes last.
    pub fn in_use(&self) -> Vec<Skill> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tools of one skill as they would be offered, whether it is in use or not.
    pub fn tools_of(&self, skill: &Skill) -> Vec<ToolSpec> {
        if manifest::is_offered(skill, &self.environment.mode) {
            specs(std::slice::from_ref(skill))
        } else {
            Vec::new()
        }
    }

    /// Calls a tool by the names of its skill and of the tool. The caller has checked the
    /// allow-lists of other skills; they are checked again after the user approved.
    pub async fn call_skill_tool(
        &self,
        skill: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        call_guard: CallGuard<'_>,
    ) -> ToolAnswer {
        match self.run(skill, tool, arguments, call_guard).await {
            Ok((finished, left_files)) => answer(&finished, &left_files),
            Err(error) => error_answer(&error),
        }
    }

    async fn run(
        &self,
        skill: &str,
        tool: &str,
        arguments: &Map<String, Value>,
        call_guard: CallGuard<'_>,
    ) -> Result<(FinishedRun, LeftFiles), RunError> {
        let loaded_skill = self.load_offered_skill(skill).await?;
        let atomic = loaded_skill
            .skill
            .tools
            .iter()
            .any(|candidate| candidate.name == tool && candidate.atomic);
        let (environment, workspace) = match &self.workspaces {
            Some(workspaces) => {
                let (environment, folder) = self.environment.in_workspace(workspaces)?;
                (environment, Some((workspaces.clone(), folder)))
            }
            None => (self.environment.clone(), None),
        };
        let (environment_copy, skill_copy) = (environment.clone(), Arc::clone(&loaded_skill));
        let (name, input) = (tool.to_owned(), CallInput::Json(arguments.clone()));
        let plan = blocking(move || environment_copy.plan(&skill_copy, &name, input)).await?;
        let decision = environment.ask_for_approval(&plan, &loaded_skill).await?;
        call_guard.check().map_err(|refusal| {
            let error = RunError::refused(refusal.code(), &refusal);
            environment.record_rejected(&plan, &loaded_skill, "refused", error)
        })?;
        // The permit is acquired after the approval, so that an unanswered question does not block
        // other runs.
        let permit = self.limiter.acquire(atomic).await;
        // Dropping this future stops the run; other calls wait until it has ended.
        let _guard = plan.cancel_on_drop();
        let work = move || {
            let finished = environment.session(&loaded_skill).run(plan, decision, &mut |_| {});
            let left_files = workspace
                .map(|(workspaces, folder)| store_left_files(&workspaces, folder, &finished));
            drop(permit);
            finished.map(|finished| (finished, left_files.unwrap_or_else(|| Ok(Vec::new()))))
        };
        blocking(work).await
    }

    async fn load_offered_skill(&self, skill: &str) -> Result<Arc<LoadedSkill>, RunError> {
        let (skill_loader, name) = (Arc::clone(&self.environment.skill_loader), skill.to_owned());
        let loaded_skill = blocking(move || skill_loader.load_skill(&name)).await?;
        if manifest::is_offered(&loaded_skill.skill, &self.environment.mode) {
            return Ok(Arc::new(loaded_skill));
        }
        let mode = &self.environment.mode;
        Err(RunError::refused("not-in-mode", format!("`{skill}` is not offered in mode {mode}"))
            .with_hint("use another skill, or ask the user to change the mode"))
    }
}

impl SkillToolEnvironment {
    /// A copy whose runs happen in a new empty folder, which is deleted with the returned value.
    fn in_workspace(&self, workspaces: &Workspaces) -> Result<(Self, TempDir), RunError> {
        let folder = workspaces.create().map_err(|error| {
            let message = format!("the folder for the run cannot be created: {error}");
            RunError::cannot_start("no-folder", message)
        })?;
        let RunEnvironment { variables, savoir_folders, secrets, .. } = self.run_env.clone();
        let here = RunEnvironment::at(folder.path(), folder.path());
        let run_env = RunEnvironment {
            repository: None,
            has_private_directory: true,
            variables,
            savoir_folders,
            secrets,
            ..here
        };
        Ok((Self { run_env, ..self.clone() }, folder))
    }

    /// The session that plans, approves and records runs of a skill.
    fn session<'a>(&'a self, loaded_skill: &'a LoadedSkill) -> Session<'a> {
        let on_record_error = &|error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "a run could not be recorded");
        };
        Session { loaded_skill, home: &self.home, on_record_error }
    }

    fn plan(
        &self,
        loaded_skill: &LoadedSkill,
        tool: &str,
        input: CallInput,
    ) -> Result<RunPlan, RunError> {
        let extra = Approvals::new(&self.home)
            .extra_for(loaded_skill.path())
            .map_err(approvals_unreadable)?;
        let (run_env, mode) = (&self.run_env, self.mode.as_str());
        self.session(loaded_skill).plan(&Call {
            loaded_skill,
            tool,
            input,
            run_env,
            mode,
            extra: &extra,
        })
    }

    /// Checks a plan against the approval rules, and asks the user if necessary.
    async fn ask_for_approval(
        &self,
        plan: &RunPlan,
        loaded_skill: &LoadedSkill,
    ) -> Result<DecisionRecord, RunError> {
        let question = match self.session(loaded_skill).check_approval(plan, SavedApprovals::Use)? {
            RunDecision::Run(decision) => return Ok(decision),
            RunDecision::Ask(question) => question,
        };
        let agreed = match self.asker.ask(&question).await {
            Consent::Once => ApprovalDuration::Once,
            Consent::Always => ApprovalDuration::Always,
            consent => {
                let error = rejection_error(&question, consent);
                return Err(self.record_rejected(plan, loaded_skill, "declined", error));
            }
        };
        self.session(loaded_skill).record_approval(&question, agreed)
    }

    fn record_rejected(
        &self,
        plan: &RunPlan,
        loaded_skill: &LoadedSkill,
        verdict: &str,
        error: RunError,
    ) -> RunError {
        self.session(loaded_skill).record_rejection(
            plan,
            verdict,
            error.code.as_ref(),
            &error.message,
        );
        error
    }
}

impl Toolset for SkillTools {
    fn tools(&self) -> Vec<ToolSpec> {
        specs(&self.in_use.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        call_guard: CallGuard<'a>,
    ) -> BoxFuture<'a, ToolAnswer> {
        let found = {
            let in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
            qualified_names(&in_use).find(name).cloned()
        };
        Box::pin(async move {
            match found {
                Ok(name) => {
                    self.call_skill_tool(&name.skill, &name.tool, arguments, call_guard).await
                }
                Err(error) => error_answer(&error.into()),
            }
        })
    }
}

/// Tool names that do not depend on the other skills in use, and that no host tool has.
fn qualified_names(skills: &[Skill]) -> ToolNames {
    ToolNames::qualified(skills)
}

fn specs(skills: &[Skill]) -> Vec<ToolSpec> {
    let names = qualified_names(skills);
    let manifest = Manifest::new(skills);
    let specs = manifest.entries().iter().filter_map(|entry| {
        let name = names.of(&entry.name.skill, &entry.name.tool)?;
        let definition = ToolDefinition {
            name: name.api.clone(),
            description: harmless(&entry.description).into_owned(),
            parameters: make_texts_visible(&entry.parameters),
        };
        let origin = Origin::Skill { skill: name.skill.clone(), tool: name.tool.clone() };
        Some(ToolSpec { definition, origin, atomic: entry.atomic })
    });
    specs.collect()
}

/// Escapes invisible characters in the texts of a schema, so that the user sees what a model reads.
fn make_texts_visible(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) if matches!(name.as_str(), "description" | "title") => {
                    (name.clone(), harmless(text).into())
                }
                value => (name.clone(), make_texts_visible(value)),
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(make_texts_visible).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

fn approvals_unreadable(error: savoir_engine::StoreError) -> RunError {
    RunError::cannot_start("approvals-unreadable", error)
}

/// Runs blocking work on a thread of its own, so that it does not block the async runtime.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<T, RunError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(RunError::cannot_start("run-failed", error)))
}

#[cfg(test)]
mod tests {
    use std::{path::Path, time::Duration};

    use serde_json::json;
    use tokio::time::timeout;

    use super::*;
    use crate::consent::Nobody;

    #[derive(Debug)]
    struct NoSkills;

    impl SkillLoader for NoSkills {
        fn load_skill(&self, _: &str) -> Result<LoadedSkill, RunError> {
            Err(RunError::call("no-skill", "there is none"))
        }
    }

    fn tools(folder: &Path) -> SkillTools {
        SkillTools::new(SkillToolEnvironment {
            skill_loader: Arc::new(NoSkills),
            asker: Arc::new(Nobody),
            home: Home::at(folder),
            run_env: RunEnvironment::at(folder, folder),
            mode: "Global".to_owned(),
        })
    }

    #[test]
    fn invisible_characters_in_descriptions_are_escaped() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "string", "description": "x\u{200b}\ny", "enum": ["\u{202e}"]}},
        });
        let visible = make_texts_visible(&schema);
        assert_eq!(visible["properties"]["a"]["description"], "x\\u{200b}\ny");
        assert_eq!(visible["properties"]["a"]["enum"][0], "\u{202e}", "values are not escaped");
    }

    #[tokio::test]
    async fn atomic_runs_are_exclusive_within_a_queue() {
        let folder = tempfile::tempdir().unwrap();
        let limiter = RunLimiter::with_slots(8);
        let one = tools(folder.path()).with_limiter(limiter.clone());
        let (other, separate) = (tools(folder.path()).with_limiter(limiter), tools(folder.path()));
        let alone = one.limiter.acquire(true).await;
        let short_wait = Duration::from_millis(50);
        for atomic in [false, true] {
            assert!(timeout(short_wait, other.limiter.acquire(atomic)).await.is_err(), "{atomic}");
            assert!(
                timeout(short_wait, one.without_skills().limiter.acquire(atomic)).await.is_err(),
                "{atomic}"
            );
        }
        assert!(
            timeout(short_wait, separate.limiter.acquire(true)).await.is_ok(),
            "it shares nothing"
        );
        drop(alone);
        let _together = (one.limiter.acquire(false).await, other.limiter.acquire(false).await);
        assert!(timeout(short_wait, one.limiter.acquire(true)).await.is_err());
    }
}
