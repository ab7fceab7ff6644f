//! Runs an evaluation, or grades a recorded one again.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use savoir_engine::{Home, run_environment::RunEnvironment};
use savoir_eval::{
    formats::{self, EvalReading},
    gate::Gate,
    results::Results,
    run::{
        AgentHost, Budget, Cache, EvaluatedSkill, Graders, Host, Judge, SavoirHost, Study,
        read_recorded, replay, run as run_study,
    },
    set::Grader,
    stats::Verdict,
    store,
};
use savoir_lint::render::{FileReport, Format, TextStyle, renderer};
use savoir_model::{ChosenModel, Models};
use savoir_package::TreeError;
use uuid::Uuid;

use super::{RunArgs, SAVOIR, list, render};
use crate::{
    agent_skills::{AgentSkillArgs, AgentSkills},
    discover::{self, Candidate},
    error::CommandError,
    models, output,
    progress::Progress,
    runtime,
    trust::{self, SignedFolder},
    write,
};

/// Maximum number of decoy skills: the largest catalog of trigger queries has 100 skills.
const MAX_DECOYS: usize = 99;

pub(super) fn run(args: &RunArgs) -> Result<ExitCode, CommandError> {
    let Some(path) = &args.path else {
        return Err(CommandError::input("no skill is named").hint("savoir eval PATH"));
    };
    let skill = SignedFolder::read(path)?;
    let reading = read_evals(&skill)?;
    let (results, folder) = match &args.replay {
        Some(folder) => (regrade(args, folder, &reading)?, folder.clone()),
        None => runtime::block_on_with_cleanup(measure(args, &skill, reading))?,
    };
    report(args, &results, &folder)
}

/// The evaluations of a skill; mistakes are printed.
fn read_evals(skill: &SignedFolder) -> Result<EvalReading, CommandError> {
    let Some(folder) = &skill.loaded.folder else {
        return Err(CommandError::input("the skill is a file, and evaluations need a folder"));
    };
    let reading = formats::read(folder, skill.name());
    print_mistakes(skill, &reading)?;
    for path in &reading.unknown {
        output::note(&format!("{path} is not a known format of evaluations and is not read"));
    }
    if reading.has_errors() {
        return Err(CommandError::input("the evaluations have mistakes")
            .with_code("invalid-evals")
            .hint("correct the places above and run the command again"));
    }
    if reading.is_empty() {
        let shown = skill.folder.display();
        return Err(CommandError::input(format!("{shown} has no evaluations"))
            .with_code("no-evals")
            .hint(format!("write some: savoir eval new {shown}")));
    }
    Ok(reading)
}

fn print_mistakes(skill: &SignedFolder, reading: &EvalReading) -> Result<(), CommandError> {
    let found: Vec<_> = reading.files.iter().filter(|file| !file.diagnostics.is_empty()).collect();
    if found.is_empty() {
        return Ok(());
    }
    let mut text = Vec::new();
    let mut rendered = renderer(Format::Text, TextStyle::default(), Vec::new());
    for file in found {
        let path = skill.folder.join(&file.path).display().to_string();
        let path = path.strip_prefix("./").unwrap_or(&path);
        let (source, diagnostics) = (file.source.as_ref(), file.diagnostics.as_slice());
        let report = FileReport { path, source, dialect: None, diagnostics };
        rendered.file(&mut text, &report)?;
    }
    output::print_to_stderr(&String::from_utf8_lossy(&text));
    Ok(())
}

/// Runs all trials. Returns the results and the folder in which they are stored.
async fn measure(
    args: &RunArgs,
    skill: &SignedFolder,
    reading: EvalReading,
) -> Result<(Results, PathBuf), CommandError> {
    let home = Home::from_environment()?;
    let models = models::load_models()?;
    let needs_judge = reading
        .set
        .cases
        .iter()
        .any(|case| case.graded().iter().any(|assertion| assertion.grader == Grader::Judge));
    // A model name of another agent is unknown to Savoir.
    let own_model = args.model.as_deref().filter(|_| args.host == SAVOIR);
    let judge = match (needs_judge, args.judge.as_deref().or(own_model)) {
        (true, wanted) => {
            let judge = choose(&models, wanted).await;
            Some(Judge::new(judge.map_err(|error| with_judge_hint(error, args))?))
        }
        (false, _) => None,
    };
    let run_env = trust::run_env(&home)?;
    let evaluated = evaluated(skill)?;
    let previous = args.previous.as_deref().map(|path| {
        let previous = evaluated_at(path)?;
        // The agent must not see which version it uses, so both have the same name.
        Ok::<_, CommandError>(previous.named(&evaluated.record.name))
    });
    let decoys = match &args.decoys {
        Some(folder) => decoys_below(folder, &evaluated.record.name)?,
        None => Vec::new(),
    };
    let cache = Cache::new(home.cache_folder("evals")?, &machine(&home)?);
    let host = host(args, skill, &home, &run_env, &models).await?;
    let folder = match &args.output {
        Some(folder) => folder.clone(),
        None => home.data_folder(list::FOLDER)?.join(Uuid::now_v7().to_string()),
    };
    let Some(files) = skill.loaded.folder.clone() else {
        return Err(CommandError::input("the skill is a file, and evaluations need a folder"));
    };
    let study = Study {
        set: reading.set,
        folder: files,
        skill: evaluated,
        previous: previous.transpose()?,
        decoys,
        host,
        graders: Graders { judge, run_env, cache: Some(cache.clone()) },
        cache: Some(cache),
        trials: args.trials,
        trial_time: Duration::from_secs(args.trial_timeout),
        parallel: usize::from(args.jobs),
        budget: Budget {
            tokens: args.max_tokens,
            cost: args.max_cost.zip(args.price),
            time: args.max_time.map(Duration::from_secs),
        },
        prices: args.price,
        gate: args.gate,
    };
    let progress = Mutex::new(Progress::new());
    let show = |finished: usize, all: usize| {
        let mut progress = progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.update(|| format!("{finished} of {all} trials"));
    };
    let finished = tokio::select! {
        finished = run_study(&study, &show) => finished,
        _ = tokio::signal::ctrl_c() => {
            return Err(CommandError::exited(130, "the evaluation was stopped")
                .with_code("stopped")
                .hint("run the same command again to continue: finished trials are stored"));
        }
    };
    drop(progress);
    store::write_results(&folder, &finished.results, &finished.traces)
        .map_err(|error| unwritable(&folder, &error))?;
    if args.output.is_some() {
        list::link(&home, &folder)?;
    }
    Ok((finished.results, folder))
}

/// The agent that runs the trials.
async fn host(
    args: &RunArgs,
    skill: &SignedFolder,
    home: &Home,
    run_env: &RunEnvironment,
    models: &Models,
) -> Result<Arc<dyn Host>, CommandError> {
    if args.host != SAVOIR {
        let variable = |name: &str| std::env::var(name).ok();
        let host = AgentHost::find(&args.host, args.model.as_deref(), &variable);
        let host = host.map_err(|error| {
            CommandError::input(&error).with_code("agent-unusable").hint(error.hint())
        })?;
        return Ok(Arc::new(host));
    }
    let chosen = choose(models, args.model.as_deref()).await?;
    let paths = std::iter::once(skill.folder.clone()).chain(args.decoys.clone()).collect();
    let which = AgentSkillArgs { paths, ..AgentSkillArgs::default() };
    let folders = Arc::new(AgentSkills::new(which, home.clone())?);
    Ok(Arc::new(SavoirHost::new(chosen, home.clone(), run_env.clone(), folders)))
}

/// A random name of this machine, created at the first evaluation. It is not stored in the cache,
/// so that a copied cache is detected.
fn machine(home: &Home) -> Result<String, CommandError> {
    let path = home.data_folder(list::FOLDER)?.join("machine");
    let failed = |error: std::io::Error| {
        CommandError::input(format!("{} cannot be written: {error}", path.display()))
    };
    match std::fs::read_to_string(&path) {
        Ok(name) if !name.trim().is_empty() => return Ok(name.trim().to_owned()),
        _ => {}
    }
    let name = Uuid::new_v4().to_string();
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    write::replace(&path, &name).map_err(|kind| failed(kind.into()))?;
    Ok(name)
}

fn unwritable(folder: &Path, error: &std::io::Error) -> CommandError {
    CommandError::input(format!("the results cannot be written to {}: {error}", folder.display()))
        .hint("name another folder with --output")
}

/// With `--host`, `--model` is not the model that judges.
fn with_judge_hint(error: CommandError, args: &RunArgs) -> CommandError {
    match &args.judge {
        None if args.host != SAVOIR => error.hint(format!(
            "a model grades the answers of {}: name it with --judge PROVIDER:MODEL",
            args.host
        )),
        _ => error,
    }
}

/// Chooses the model, or returns an error with a hint.
async fn choose(models: &Models, wanted: Option<&str>) -> Result<ChosenModel, CommandError> {
    Ok(models.choose(wanted).await?)
}

fn evaluated(skill: &SignedFolder) -> Result<EvaluatedSkill, CommandError> {
    let name = place_name(skill);
    let read = EvaluatedSkill::read(&skill.folder, &name, skill.version());
    read.map_err(|error: TreeError| {
        CommandError::findings(format!("{}: {error}", skill.folder.display()))
            .with_code(error.code())
    })
}

fn evaluated_at(path: &Path) -> Result<EvaluatedSkill, CommandError> {
    evaluated(&SignedFolder::read(path)?)
}

/// The name of the skill if it is a valid folder name, else the name of its folder.
fn place_name(skill: &SignedFolder) -> String {
    let name = skill.name();
    let is_plain = !name.is_empty()
        && name.len() <= 128
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    if is_plain {
        return name.to_owned();
    }
    let folder = skill.folder.canonicalize().unwrap_or_else(|_| skill.folder.clone());
    folder
        .file_name()
        .map_or_else(|| "skill".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The skills below a folder.
fn decoys_below(folder: &Path, skill: &str) -> Result<Vec<EvaluatedSkill>, CommandError> {
    let mut decoys: Vec<EvaluatedSkill> = Vec::new();
    discover::walk(&[folder.to_owned()], &mut |candidate| {
        if let Candidate::Skill { folder: Some(folder), .. } = candidate
            && let Ok(decoy) = evaluated_at(folder.root())
            && decoy.record.name != skill
            && decoys.iter().all(|known| known.record.name != decoy.record.name)
        {
            decoys.push(decoy);
        }
        decoys.len() < MAX_DECOYS
    });
    if decoys.is_empty() {
        return Err(CommandError::input(format!("{} has no other skills", folder.display()))
            .hint("name a folder with skills, or leave out --decoys"));
    }
    Ok(decoys)
}

/// Grades recorded trials again, and writes the reports if a folder is named.
fn regrade(args: &RunArgs, folder: &Path, reading: &EvalReading) -> Result<Results, CommandError> {
    let recorded = read_recorded(folder).map_err(|error| {
        CommandError::input(format!("the recorded trials cannot be read: {error}"))
            .with_code("results-unreadable")
            .hint("name a folder that `savoir eval SKILL --output DIR` wrote")
    })?;
    let home = Home::from_environment()?;
    let graders = Graders { judge: None, run_env: trust::run_env(&home)?, cache: None };
    let gate: Option<Gate> = args.gate;
    let results = runtime::block_on_with_cleanup(async {
        Ok(replay(&recorded, &reading.set, &graders, gate).await)
    })?;
    if let Some(output) = &args.output {
        store::write_results(output, &results, &recorded.traces)
            .map_err(|error| unwritable(output, &error))?;
    }
    Ok(results)
}

fn report(args: &RunArgs, results: &Results, folder: &Path) -> Result<ExitCode, CommandError> {
    if args.json {
        output::json(results)?;
    } else {
        output::text(&output::sanitize(&render::summary(results)))?;
        let written = args.output.as_deref().unwrap_or(folder);
        if args.replay.is_none() || args.output.is_some() {
            output::note(&format!("report: {}", written.join(store::HTML_FILE).display()));
        }
    }
    let conclusion = &results.conclusion;
    if conclusion.all_trials == conclusion.invalid_trials {
        return Err(CommandError::findings("no trial is valid")
            .with_code("no-valid-trial")
            .hint(first_reason(results).unwrap_or_default()));
    }
    let passes = args.gate.is_none() || conclusion.verdict == Verdict::Pass;
    Ok(ExitCode::from(u8::from(!passes)))
}

/// The reason of the first invalid trial.
fn first_reason(results: &Results) -> Option<String> {
    let mut trials = results.cases.iter().flat_map(|case| case.arms.values().flatten());
    let of_trial = trials.find_map(|trial| trial.reason.clone());
    let mut queries = results.triggers.iter().flat_map(|one| &one.queries);
    of_trial.or_else(|| queries.find_map(|query| query.reason.clone()))
}
