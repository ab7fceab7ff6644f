//! The tools of skills. They are offered once their skill is in use, and run as any other: after the
//! same decision, in the same sandbox, with the same record.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use savoir_engine::{
    Home, RunError,
    approval::{ApprovalQuestion, Approvals, shell_word},
    call::ToolNames,
    loaded_skill::LoadedSkill,
    manifest::{self, Manifest},
    record::DecisionRecord,
    run::{Call, Finished, Given, Plan},
    run_environment::RunEnvironment,
    session::{Agreed, Earlier, Session, Weighed},
};
use savoir_lint::harmless;
use savoir_model::ToolDefinition;
use savoir_skill::Skill;
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore};

use super::{
    allowed_tools::Fence,
    consent::{Asker, Consent},
    toolset::{Origin, ToolAnswer, ToolSpec, Toolset},
    workspaces::{LeftFile, Workspaces},
};

/// Files that a tool left of which a model reads.
const MOST_NAMED: usize = 100;

/// Where skills are found as they are on disk, with who vouches for them.
pub trait SkillFolders: fmt::Debug + Send + Sync {
    /// The skill of a name, as it is now.
    fn subject(&self, skill: &str) -> Result<LoadedSkill, RunError>;
}

/// Where and how the tools of skills run.
#[derive(Clone, Debug)]
pub struct SkillToolEnvironment {
    /// Where the skills are.
    pub subjects: Arc<dyn SkillFolders>,
    /// Whoever agrees to a run.
    pub asker: Arc<dyn Asker>,
    /// Where approvals and records are.
    pub home: Home,
    /// Where runs happen.
    pub run_env: RunEnvironment,
    /// The situation, as gibb.eri.sh calls it.
    pub mode: String,
}

/// Who waits for whom. Cloning shares it.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// A tool that must run alone holds all of it.
    turns: Arc<RwLock<()>>,
    /// Runs that may begin at once, if there is a limit.
    places: Option<Arc<Semaphore>>,
}

impl Queue {
    /// One with so many places.
    pub fn with_places(count: usize) -> Self {
        Self { turns: Arc::default(), places: Some(Arc::new(Semaphore::new(count))) }
    }

    async fn turn(&self, atomic: bool) -> Turn {
        let turns = Arc::clone(&self.turns);
        if atomic {
            (Some(turns.write_owned().await), None)
        } else {
            (None, Some(turns.read_owned().await))
        }
    }
}

/// The tools of the skills that are in use.
#[derive(Debug)]
pub struct SkillTools {
    bench: SkillToolEnvironment,
    /// Those that were used last come last.
    in_use: Mutex<Vec<Skill>>,
    queue: Queue,
    /// Where every run gets an empty folder of its own, unless all begin on the ground.
    workspaces: Option<Workspaces>,
}

/// A turn of a tool: alone, or together with others.
type Turn = (Option<OwnedRwLockWriteGuard<()>>, Option<OwnedRwLockReadGuard<()>>);

impl SkillTools {
    /// No tools yet.
    pub fn new(bench: SkillToolEnvironment) -> Self {
        Self { bench, in_use: Mutex::default(), queue: Queue::default(), workspaces: None }
    }

    /// In a queue that others may share: what must run alone runs alone among all of them.
    #[must_use]
    pub fn sharing(self, queue: Queue) -> Self {
        Self { queue, ..self }
    }

    /// With an empty folder for every run, which is kept if a tool leaves something in it.
    #[must_use]
    pub fn with_workspaces(self, workspaces: Workspaces) -> Self {
        Self { workspaces: Some(workspaces), ..self }
    }

    /// In another mode.
    #[must_use]
    pub fn in_mode(&self, mode: &str) -> Self {
        let mut tools = self.apart();
        mode.clone_into(&mut tools.bench.mode);
        tools
    }

    /// Why no tool of a skill is offered in this mode, and the way out.
    pub fn not_in_mode(&self, skill: &Skill) -> Option<String> {
        let mode = &self.bench.mode;
        (!manifest::is_offered(skill, mode)).then(|| {
            format!(
                "the tools of `{}` are for the mode {} alone, and this is {mode}: use another skill, or \
                 ask the person to start this with another mode (savoir mcp --mode, savoir chat --mode, or \
                 /mcp?mode= and the `mode` of a message on a server)",
                skill.name,
                skill.policy.modes.join(" or ")
            )
        })
    }

    /// No tools yet, on the same bench: what must run alone runs alone here and there.
    #[must_use]
    pub fn apart(&self) -> Self {
        Self {
            bench: self.bench.clone(),
            in_use: Mutex::default(),
            queue: self.queue.clone(),
            workspaces: self.workspaces.clone(),
        }
    }

    /// Offers the tools of a skill from here on; tells the names under which they can be called.
    pub fn bring(&self, skill: &Skill) -> Vec<String> {
        if skill.tools.is_empty() || !manifest::is_offered(skill, &self.bench.mode) {
            return Vec::new();
        }
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|known| known.name != skill.name);
        in_use.push(skill.clone());
        let own = |name: &&savoir_engine::call::ToolName| name.skill == skill.name;
        names(&in_use).iter().filter(own).map(|name| name.api.clone()).collect()
    }

    /// Offers the tools of a skill no longer.
    pub fn forget(&self, skill: &str) {
        let mut in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
        in_use.retain(|known| known.name != skill);
    }

    /// The skills that are in use; those that were used last come last.
    pub fn in_use(&self) -> Vec<Skill> {
        self.in_use.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tools of one skill, whether it is in use or not, as they would be offered.
    pub fn tools_of(&self, skill: &Skill) -> Vec<ToolSpec> {
        if manifest::is_offered(skill, &self.bench.mode) {
            specs(std::slice::from_ref(skill))
        } else {
            Vec::new()
        }
    }

    /// Calls a tool of a skill by both of their names. Whether the list of another skill allows it
    /// was decided before, and is looked at again once somebody agreed.
    pub async fn call_of(
        &self,
        skill: &str,
        tool: &str,
        given: &Map<String, Value>,
        fence: Fence<'_>,
    ) -> ToolAnswer {
        match self.run(skill, tool, given, fence).await {
            Ok((finished, left)) => answer(&finished, &left),
            Err(error) => refused(&error),
        }
    }

    async fn run(
        &self,
        skill: &str,
        tool: &str,
        given: &Map<String, Value>,
        fence: Fence<'_>,
    ) -> Result<(Finished, Left), RunError> {
        let subject = self.subject(skill).await?;
        let atomic = subject.skill.tools.iter().any(|known| known.name == tool && known.atomic);
        let turn = self.queue.turn(atomic).await;
        let place = match &self.queue.places {
            // Nobody closes it.
            Some(places) => Arc::clone(places).acquire_owned().await.ok(),
            None => None,
        };
        let (bench, own) = match &self.workspaces {
            Some(workspaces) => {
                let (bench, folder) = self.bench.in_workspace(workspaces)?;
                (bench, Some((workspaces.clone(), folder)))
            }
            None => (self.bench.clone(), None),
        };
        let (planning, planned) = (bench.clone(), Arc::clone(&subject));
        let (name, given) = (tool.to_owned(), Given::Json(given.clone()));
        let plan = blocking(move || planning.plan(&planned, &name, given)).await?;
        let decision = bench.settle(&plan, &subject).await?;
        fence.check().map_err(|refused| {
            let error = RunError::refused(refused.code(), &refused);
            bench.turned_down(&plan, &subject, "refused", error)
        })?;
        // Whoever stops waiting for it ends it; others wait until it has ended.
        let _guard = plan.guard();
        let work = move || {
            let finished = bench.session(&subject).run(plan, decision, &mut |_| {});
            let left = own.map(|(workspaces, folder)| keep(&workspaces, folder, &finished));
            drop((turn, place));
            finished.map(|finished| (finished, left.unwrap_or_else(|| Ok(Vec::new()))))
        };
        blocking(work).await
    }

    async fn subject(&self, skill: &str) -> Result<Arc<LoadedSkill>, RunError> {
        let (subjects, name) = (Arc::clone(&self.bench.subjects), skill.to_owned());
        let subject = blocking(move || subjects.subject(&name)).await?;
        if manifest::is_offered(&subject.skill, &self.bench.mode) {
            return Ok(Arc::new(subject));
        }
        let mode = &self.bench.mode;
        Err(RunError::refused("not-in-mode", format!("`{skill}` is not offered in mode {mode}"))
            .way_out("use another skill, or ask the person to change the mode"))
    }
}

impl SkillToolEnvironment {
    /// The same bench in an empty folder, which is there as long as somebody keeps it.
    fn in_workspace(&self, workspaces: &Workspaces) -> Result<(Self, TempDir), RunError> {
        let folder = workspaces.begin().map_err(|error| {
            let message = format!("there is no folder in which the tool can run: {error}");
            RunError::failed("no-folder", message)
        })?;
        let RunEnvironment { variables, kept, secrets, .. } = self.run_env.clone();
        let here = RunEnvironment::at(folder.path(), folder.path());
        let run_env =
            RunEnvironment { repository: None, is_own: true, variables, kept, secrets, ..here };
        Ok((Self { run_env, ..self.clone() }, folder))
    }

    /// Runs of a skill, as everybody's.
    fn session<'a>(&'a self, subject: &'a LoadedSkill) -> Session<'a> {
        let on_unkept = &|error: &dyn std::fmt::Display| {
            tracing::warn!(%error, "a run is not in the records");
        };
        Session { subject, home: &self.home, on_unkept }
    }

    fn plan(&self, subject: &LoadedSkill, tool: &str, given: Given) -> Result<Plan, RunError> {
        let extra = Approvals::new(&self.home).extra_for(subject.path()).map_err(unkept)?;
        let (run_env, mode) = (&self.run_env, self.mode.as_str());
        self.session(subject).plan(&Call { subject, tool, given, run_env, mode, extra: &extra })
    }

    /// Holds a plan against the rules, and asks if they say so.
    async fn settle(&self, plan: &Plan, subject: &LoadedSkill) -> Result<DecisionRecord, RunError> {
        let question = match self.session(subject).weigh(plan, Earlier::Counts)? {
            Weighed::Run(decision) => return Ok(decision),
            Weighed::Ask(question) => question,
        };
        let agreed = match self.asker.ask(&question).await {
            Consent::Once => Agreed::Once,
            Consent::Always => Agreed::Always,
            consent => {
                let error = no(&question, consent);
                return Err(self.turned_down(plan, subject, "declined", error));
            }
        };
        self.session(subject).agree(&question, agreed)
    }

    fn turned_down(
        &self,
        plan: &Plan,
        subject: &LoadedSkill,
        verdict: &str,
        error: RunError,
    ) -> RunError {
        self.session(subject).turn_down(plan, verdict, error.code.as_ref(), &error.message);
        error
    }
}

/// What a model is told when nobody agreed.
fn no(question: &ApprovalQuestion, consent: Consent) -> RunError {
    let skill = &question.request.skill;
    if consent == Consent::Declined {
        let message = format!("the person declined to run this tool of `{skill}`");
        return RunError::refused("declined", message)
            .way_out("do without it, or ask the person what they want instead");
    }
    let reasons = question.reasons.join("; ");
    let (code, why) = match consent {
        Consent::Unanswered => ("declined", "nobody answered"),
        _ => ("approval-needed", "nobody can be asked"),
    };
    let message = format!("`{skill}` needs a person's approval, and {why}: {reasons}");
    let path = shell_word(&question.request.path.display().to_string());
    RunError::refused(code, message)
        .way_out(format!("ask the person to run this in a terminal: savoir approve {path}"))
}

impl Toolset for SkillTools {
    fn tools(&self) -> Vec<ToolSpec> {
        specs(&self.in_use.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: &'a Map<String, Value>,
        fence: Fence<'a>,
    ) -> BoxFuture<'a, ToolAnswer> {
        let found = {
            let in_use = self.in_use.lock().unwrap_or_else(PoisonError::into_inner);
            names(&in_use).find(name).cloned()
        };
        Box::pin(async move {
            match found {
                Ok(name) => self.call_of(&name.skill, &name.tool, arguments, fence).await,
                Err(error) => refused(&error.into()),
            }
        })
    }
}

/// Names that stay the same whichever other skills are in use, and that no tool of the host has.
fn names(skills: &[Skill]) -> ToolNames {
    ToolNames::qualified(skills)
}

fn specs(skills: &[Skill]) -> Vec<ToolSpec> {
    let names = names(skills);
    let manifest = Manifest::new(skills);
    let told = manifest.entries().iter().filter_map(|entry| {
        let name = names.of(&entry.name.skill, &entry.name.tool)?;
        let definition = ToolDefinition {
            name: name.api.clone(),
            description: harmless(&entry.description).into_owned(),
            parameters: legible(&entry.parameters),
        };
        let origin = Origin::Skill { skill: name.skill.clone(), tool: name.tool.clone() };
        Some(ToolSpec { definition, origin, atomic: entry.atomic })
    });
    told.collect()
}

/// A schema whose texts hide nothing from the person who reads them before a model does.
fn legible(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) if matches!(name.as_str(), "description" | "title") => {
                    (name.clone(), harmless(text).into())
                }
                value => (name.clone(), legible(value)),
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(legible).collect::<Vec<_>>().into(),
        other => other.clone(),
    }
}

/// What a run left in its folder, or why that is lost.
type Left = Result<Vec<LeftFile>, String>;

/// Keeps what a run left in its folder; else gives why not.
fn keep(workspaces: &Workspaces, folder: TempDir, finished: &Result<Finished, RunError>) -> Left {
    let Ok(finished) = finished else { return Ok(Vec::new()) };
    workspaces.keep(folder, &finished.record.id).map_err(|error| {
        tracing::warn!(%error, "what a tool left is not kept");
        error.to_string()
    })
}

/// What a model reads of a run: the envelope, whether it went well or not, and what it left.
fn answer(finished: &Finished, left: &Left) -> ToolAnswer {
    let envelope = &finished.envelope;
    let mut data = serde_json::to_value(envelope).unwrap_or_else(|_| json!({"success": false}));
    match left {
        Ok(left) if left.is_empty() => {}
        Ok(left) => {
            data["run"] = json!(finished.record.id);
            data["files"] = json!(left.iter().take(MOST_NAMED).collect::<Vec<_>>());
        }
        Err(why) => data["files_lost"] = json!(format!("the files that it left are gone: {why}")),
    }
    if !finished.outcome.put_aside.is_empty() {
        let told = finished.outcome.put_aside.iter().map(ToString::to_string);
        data["put_aside"] = json!(told.take(MOST_NAMED).collect::<Vec<_>>());
    }
    let failure = (!envelope.success).then(|| "tool-failed".to_owned());
    ToolAnswer { failure, ..ToolAnswer::data(data) }
}

fn refused(error: &RunError) -> ToolAnswer {
    let way_out = error.way_out.as_deref().map(|way| format!(" ({way})")).unwrap_or_default();
    ToolAnswer::failed(&error.code, format!("{}{way_out}", error.message))
}

fn unkept(error: savoir_engine::StoreError) -> RunError {
    RunError::failed("approvals-unreadable", error)
}

/// Work that waits, away from those that must not.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<T, RunError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(RunError::failed("run-failed", error)))
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
        fn subject(&self, _: &str) -> Result<LoadedSkill, RunError> {
            Err(RunError::call("no-skill", "there is none"))
        }
    }

    fn tools(folder: &Path) -> SkillTools {
        SkillTools::new(SkillToolEnvironment {
            subjects: Arc::new(Nothing),
            asker: Arc::new(Nobody),
            home: Home::at(folder),
            run_env: RunEnvironment::at(folder, folder),
            mode: "Global".to_owned(),
        })
    }

    #[test]
    fn descriptions_hide_nothing() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "string", "description": "x\u{200b}\ny", "enum": ["\u{202e}"]}},
        });
        let shown = legible(&schema);
        assert_eq!(shown["properties"]["a"]["description"], "x\\u{200b}\ny");
        assert_eq!(shown["properties"]["a"]["enum"][0], "\u{202e}", "a value stays what it is");
    }

    #[tokio::test]
    async fn what_must_run_alone_is_alone_among_all_that_share_a_queue() {
        let folder = tempfile::tempdir().unwrap();
        let queue = Queue::with_places(8);
        let one = tools(folder.path()).sharing(queue.clone());
        let (other, lone) = (tools(folder.path()).sharing(queue), tools(folder.path()));
        let alone = one.queue.turn(true).await;
        let moment = Duration::from_millis(50);
        for atomic in [false, true] {
            assert!(timeout(moment, other.queue.turn(atomic)).await.is_err(), "{atomic}");
            assert!(timeout(moment, one.apart().queue.turn(atomic)).await.is_err(), "{atomic}");
        }
        assert!(timeout(moment, lone.queue.turn(true)).await.is_ok(), "it shares nothing");
        drop(alone);
        let _together = (one.queue.turn(false).await, other.queue.turn(false).await);
        assert!(timeout(moment, one.queue.turn(true)).await.is_err());
    }
}
