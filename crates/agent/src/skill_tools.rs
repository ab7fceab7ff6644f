//! Offers and runs the tools of skills. A skill's tools are offered once the skill is in use, and
//! run like any other: after the same approval, in the same sandbox, with the same record.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use savoir_engine::{
    Home, RunError,
    approval::{ApprovalQuestion, Approvals, Request, Trust, shell_word},
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
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore};

use super::{
    allowed_tools::CallGuard,
    consent::{Asker, Consent},
    toolset::{Origin, ToolAnswer, ToolSpec, Toolset},
    workspaces::{LeftFile, Workspaces},
};

/// Maximum number of left files that the answer to a model lists.
const MAX_NAMED: usize = 100;

/// Loads skills from disk, with their signers.
pub trait SkillFolders: fmt::Debug + Send + Sync {
    /// Loads the skill with this name in its current state.
    fn load_skill(&self, skill: &str) -> Result<LoadedSkill, RunError>;
}

/// The settings under which the tools of skills run.
#[derive(Clone, Debug)]
pub struct SkillToolEnvironment {
    pub skill_folders: Arc<dyn SkillFolders>,
    /// Asks the user for approval.
    pub asker: Arc<dyn Asker>,
    /// The folders with approvals and records.
    pub home: Home,
    /// The working directory, home and variables of runs.
    pub run_env: RunEnvironment,
    /// The mode, a term of the gibb.eri.sh dialect.
    pub mode: String,
}

/// Limits which runs may happen at the same time. Clones share the limits.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// A tool that must run alone (`atomic`) takes the write lock, all others the read lock.
    turns: Arc<RwLock<()>>,
    /// The number of concurrent runs, if it is limited.
    slots: Option<Arc<Semaphore>>,
}

impl Queue {
    /// Creates a queue that allows `count` concurrent runs.
    pub fn with_slots(count: usize) -> Self {
        Self { turns: Arc::default(), slots: Some(Arc::new(Semaphore::new(count))) }
    }

    async fn acquire(&self, atomic: bool) -> RunPermit {
        let turns = Arc::clone(&self.turns);
        if atomic {
            (Some(turns.write_owned().await), None)
        } else {
            (None, Some(turns.read_owned().await))
        }
    }
}

/// The tool set with the tools of the skills that are in use.
#[derive(Debug)]
pub struct SkillTools {
    environment: SkillToolEnvironment,
    /// The skills in use; the most recently used comes last.
    in_use: Mutex<Vec<Skill>>,
    queue: Queue,
    /// If set, every run gets an empty folder of its own; otherwise all runs start in the folder of
    /// the environment.
    workspaces: Option<Workspaces>,
}

/// A write or a read lock of the queue.
type RunPermit = (Option<OwnedRwLockWriteGuard<()>>, Option<OwnedRwLockReadGuard<()>>);

impl SkillTools {
    /// Creates a tool set without skills.
    pub fn new(environment: SkillToolEnvironment) -> Self {
        Self { environment, in_use: Mutex::default(), queue: Queue::default(), workspaces: None }
    }

    /// Uses a queue that other tool sets may share: an atomic tool then runs alone among all of
    /// them.
    #[must_use]
    pub fn with_queue(self, queue: Queue) -> Self {
        Self { queue, ..self }
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
        self.explain_withheld(&skill.name, &skill.policy.modes)
    }

    /// Like [`explain_not_in_mode`](Self::explain_not_in_mode), for a skill with these modes.
    pub fn explain_withheld(&self, skill: &str, modes: &[String]) -> Option<String> {
        let mode = &self.environment.mode;
        (!manifest::is_offered_in(modes, mode)).then(|| {
            format!(
                "the tools of `{skill}` are for the mode {} alone, and this is {mode}: use another skill, or \
                 ask the person to start this with another mode (savoir mcp --mode, savoir chat --mode, or \
                 /mcp?mode= and the `mode` of a message on a server)",
                modes.join(" or ")
            )
        })
    }

    /// A copy without skills that shares the environment and the queue.
    #[must_use]
    pub fn without_skills(&self) -> Self {
        Self {
            environment: self.environment.clone(),
            in_use: Mutex::default(),
            queue: self.queue.clone(),
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
        let own = |name: &&savoir_engine::call::ToolName| name.skill == skill.name;
        names(&in_use).iter().filter(own).map(|name| name.api.clone()).collect()
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
        given: &Map<String, Value>,
        call_guard: CallGuard<'_>,
    ) -> ToolAnswer {
        match self.run(skill, tool, given, call_guard).await {
            Ok((finished, left)) => answer(&finished, &left),
            Err(error) => refused(&error),
        }
    }

    async fn run(
        &self,
        skill: &str,
        tool: &str,
        given: &Map<String, Value>,
        call_guard: CallGuard<'_>,
    ) -> Result<(FinishedRun, LeftFiles), RunError> {
        let loaded_skill = self.load_offered_skill(skill).await?;
        let atomic =
            loaded_skill.skill.tools.iter().any(|known| known.name == tool && known.atomic);
        let (environment, own) = match &self.workspaces {
            Some(workspaces) => {
                let (environment, folder) = self.environment.in_workspace(workspaces)?;
                (environment, Some((workspaces.clone(), folder)))
            }
            None => (self.environment.clone(), None),
        };
        let (planning, planned) = (environment.clone(), Arc::clone(&loaded_skill));
        let (name, input) = (tool.to_owned(), CallInput::Json(given.clone()));
        let plan = blocking(move || planning.plan(&planned, &name, input)).await?;
        let decision = environment.ask_for_approval(&plan, &loaded_skill).await?;
        call_guard.check().map_err(|refused| {
            let error = RunError::refused(refused.code(), &refused);
            environment.record_rejected(&plan, &loaded_skill, "refused", error)
        })?;
        // The lock is taken after the approval, so that an unanswered question does not block other
        // runs.
        let turn = self.queue.acquire(atomic).await;
        let place = match &self.queue.slots {
            // The semaphore is never closed, so this does not fail.
            Some(slots) => Arc::clone(slots).acquire_owned().await.ok(),
            None => None,
        };
        // Dropping this future stops the run; other calls wait until it has ended.
        let _guard = plan.cancel_on_drop();
        let work = move || {
            let finished = environment.session(&loaded_skill).run(plan, decision, &mut |_| {});
            let left =
                own.map(|(workspaces, folder)| store_left_files(&workspaces, folder, &finished));
            drop((turn, place));
            finished.map(|finished| (finished, left.unwrap_or_else(|| Ok(Vec::new()))))
        };
        blocking(work).await
    }

    async fn load_offered_skill(&self, skill: &str) -> Result<Arc<LoadedSkill>, RunError> {
        let (skill_folders, name) = (Arc::clone(&self.environment.skill_folders), skill.to_owned());
        let loaded_skill = blocking(move || skill_folders.load_skill(&name)).await?;
        if manifest::is_offered(&loaded_skill.skill, &self.environment.mode) {
            return Ok(Arc::new(loaded_skill));
        }
        let mode = &self.environment.mode;
        Err(RunError::refused("not-in-mode", format!("`{skill}` is not offered in mode {mode}"))
            .with_hint("use another skill, or ask the person to change the mode"))
    }
}

impl SkillToolEnvironment {
    /// A copy whose runs happen in a new empty folder, which is deleted with the returned value.
    fn in_workspace(&self, workspaces: &Workspaces) -> Result<(Self, TempDir), RunError> {
        let folder = workspaces.create().map_err(|error| {
            let message = format!("the folder for the run cannot be created: {error}");
            RunError::cannot_start("no-folder", message)
        })?;
        let RunEnvironment { variables, kept, secrets, .. } = self.run_env.clone();
        let here = RunEnvironment::at(folder.path(), folder.path());
        let run_env =
            RunEnvironment { repository: None, is_own: true, variables, kept, secrets, ..here };
        Ok((Self { run_env, ..self.clone() }, folder))
    }

    /// The session that plans, approves and records runs of a skill.
    fn session<'a>(&'a self, loaded_skill: &'a LoadedSkill) -> Session<'a> {
        let on_record_error = &|error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "a run is not in the records");
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

/// The error that a model gets when the user did not approve.
fn rejection_error(question: &ApprovalQuestion, consent: Consent) -> RunError {
    let skill = &question.request.skill;
    if consent == Consent::Declined {
        let message = format!("the person declined to run this tool of `{skill}`");
        return RunError::refused("declined", message)
            .with_hint("do without it, or ask the person what they want instead");
    }
    let reasons = question.reasons.join("; ");
    let (code, why) = match consent {
        Consent::Unanswered => ("declined", "the question was not answered"),
        _ => ("approval-needed", "no user can be asked"),
    };
    let message = format!("`{skill}` needs a person's approval, and {why}: {reasons}");
    let path = shell_word(&question.request.path.display().to_string());
    let Request { always_ask, trust, .. } = question.request;
    let hint = if always_ask || trust == Trust::Untrusted {
        // For these skills, an approval is never stored, so the hint does not suggest one.
        format!(
            "it is asked about before every run: ask the person to run it in a terminal: \
             savoir run {path}"
        )
    } else {
        format!("ask the person to run this in a terminal: savoir approve {path}")
    };
    RunError::refused(code, message).with_hint(hint)
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
            names(&in_use).find(name).cloned()
        };
        Box::pin(async move {
            match found {
                Ok(name) => {
                    self.call_skill_tool(&name.skill, &name.tool, arguments, call_guard).await
                }
                Err(error) => refused(&error.into()),
            }
        })
    }
}

/// Tool names that do not depend on the other skills in use, and that no host tool has.
fn names(skills: &[Skill]) -> ToolNames {
    ToolNames::qualified(skills)
}

fn specs(skills: &[Skill]) -> Vec<ToolSpec> {
    let names = names(skills);
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

/// The files that a run left in its folder, or why they are lost.
type LeftFiles = Result<Vec<LeftFile>, String>;

/// Stores the files that a run left in its folder.
fn store_left_files(
    workspaces: &Workspaces,
    folder: TempDir,
    finished: &Result<FinishedRun, RunError>,
) -> LeftFiles {
    let Ok(finished) = finished else { return Ok(Vec::new()) };
    workspaces.store(folder, &finished.record.id).map_err(|error| {
        tracing::warn!(%error, "what a tool left is not kept");
        error.to_string()
    })
}

/// The answer to a model: the envelope of the run, and the files that it left.
fn answer(finished: &FinishedRun, left: &LeftFiles) -> ToolAnswer {
    let envelope = &finished.envelope;
    let mut data = serde_json::to_value(envelope).unwrap_or_else(|_| json!({"success": false}));
    match left {
        Ok(left) if left.is_empty() => {}
        Ok(left) => {
            data["run"] = json!(finished.record.id);
            data["files"] = json!(left.iter().take(MAX_NAMED).collect::<Vec<_>>());
        }
        Err(why) => data["files_lost"] = json!(format!("its remaining files were lost: {why}")),
    }
    if !finished.outcome.moved_files.is_empty() {
        let moved = finished.outcome.moved_files.iter().map(ToString::to_string);
        data["put_aside"] = json!(moved.take(MAX_NAMED).collect::<Vec<_>>());
    }
    let failure = (!envelope.success).then(|| "tool-failed".to_owned());
    let access = Some(finished.record.access_summary()).filter(|access| !access.is_empty());
    ToolAnswer { failure, access, ..ToolAnswer::data(data) }
}

fn refused(error: &RunError) -> ToolAnswer {
    let hint = error.hint.as_deref().map(|way| format!(" ({way})")).unwrap_or_default();
    ToolAnswer::failed(&error.code, format!("{}{hint}", error.message))
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

    use tokio::time::timeout;

    use super::*;
    use crate::consent::Nobody;

    #[derive(Debug)]
    struct Nothing;

    impl SkillFolders for Nothing {
        fn load_skill(&self, _: &str) -> Result<LoadedSkill, RunError> {
            Err(RunError::call("no-skill", "there is none"))
        }
    }

    fn tools(folder: &Path) -> SkillTools {
        SkillTools::new(SkillToolEnvironment {
            skill_folders: Arc::new(Nothing),
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
        let shown = make_texts_visible(&schema);
        assert_eq!(shown["properties"]["a"]["description"], "x\\u{200b}\ny");
        assert_eq!(shown["properties"]["a"]["enum"][0], "\u{202e}", "a value stays what it is");
    }

    #[tokio::test]
    async fn atomic_runs_are_exclusive_within_a_queue() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::with_slots(8);
        let one = tools(folder.path()).with_queue(queue.clone());
        let (other, lone) = (tools(folder.path()).with_queue(queue), tools(folder.path()));
        let alone = one.queue.acquire(true).await;
        let snapshot = Duration::from_millis(50);
        for atomic in [false, true] {
            assert!(timeout(snapshot, other.queue.acquire(atomic)).await.is_err(), "{atomic}");
            assert!(
                timeout(snapshot, one.without_skills().queue.acquire(atomic)).await.is_err(),
                "{atomic}"
            );
        }
        assert!(timeout(snapshot, lone.queue.acquire(true)).await.is_ok(), "it shares nothing");
        drop(alone);
        let _together = (one.queue.acquire(false).await, other.queue.acquire(false).await);
        assert!(timeout(snapshot, one.queue.acquire(true)).await.is_err());
    }
}
