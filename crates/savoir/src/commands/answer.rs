//! `savoir run` for a skill without tools: sends its prompt to a model.

use std::{cell::RefCell, process::ExitCode, sync::Arc};

use savoir_engine::{
    record::ErrorRecord,
    structured::{self, Answer},
};
use savoir_flow::{
    event::Emitter,
    prompt::{self, PromptRun},
    services::{Services, TimeLimits},
};
use savoir_knowledge::Knowledge;
use savoir_model::Models;
use savoir_skill::{Skill, skill::Output};
use savoir_store::Database;
use serde_json::{Map, Value};

use super::kb::Names;
use crate::{
    error::CommandError,
    events::{EventFormat, Printer, RunEnd},
    model_errors, models, output, runtime,
    storage_args::{StorageArgs, StorageLocation},
};

/// The code of a failed run whose failure has no code of its own.
const RUN_FAILED: &str = "run-failed";

/// A prompt for a model.
pub(super) struct PromptCommand<'a> {
    pub(super) skill: &'a Skill,
    pub(super) inputs: &'a Map<String, Value>,
    /// The skill's folder.
    pub(super) directory: Option<&'a str>,
    /// `provider:model`.
    pub(super) model: Option<&'a str>,
    pub(super) format: EventFormat,
    /// Why the run failed, for its record. With --json, the error is an event and is not returned.
    pub(super) failure: RefCell<Option<ErrorRecord>>,
}

impl PromptCommand<'_> {
    pub(super) fn run(&self) -> Result<ExitCode, CommandError> {
        let models = models::load_models()?;
        let location = StorageArgs::default().location()?;
        runtime::block_on(self.ask(models, &location)).map_err(|error| {
            match error.code().as_deref() {
                Some("no-model") => error.hint("`savoir render` shows the prompt without a model"),
                _ => error,
            }
        })
    }

    async fn ask(
        &self,
        models: Models,
        location: &StorageLocation,
    ) -> Result<ExitCode, CommandError> {
        let (models, failure) = model_errors::choose(&models, self.model).await?;
        let (database, knowledge) = self.knowledge(&models, location).await?;
        let services = Services {
            models: Arc::new(models),
            knowledge,
            database,
            limits: TimeLimits::default(),
        };
        let (out, events) = Emitter::channel();
        let Self { skill, inputs, directory, .. } = *self;
        let run = PromptRun { skill, inputs, directory, model: None, user: None };
        let mut printer = Printer::new(self.format).with_reasons(failure.clone(), RUN_FAILED);
        let is_checked = skill.outputs.as_ref().is_some_and(Output::is_checked);
        if is_checked && self.format != EventFormat::Json {
            printer.buffer_answer();
        }
        let running = async {
            let outcome = prompt::run(&services, run, &out).await;
            drop(out);
            // It fails if the user interrupted the run, which is reported below.
            outcome.unwrap_or_default()
        };
        let (ended, outcome) = tokio::join!(printer.follow(events), running);
        printer.print_sources(&self.names(&services).await);
        if let Some(database) = &services.database {
            database.close().await;
        }
        let buffered = printer.take_buffered();
        let error = match ended? {
            RunEnd::Completed => return self.print_checked(buffered.as_deref()),
            RunEnd::Stopped => CommandError::findings("the run was stopped").with_code("stopped"),
            RunEnd::Failed(message) => failure.get().unwrap_or_else(|| {
                let code = outcome.error.and_then(|failure| failure.code);
                CommandError::findings(message).with_code(code.unwrap_or(RUN_FAILED))
            }),
        };
        // The author of the skill needs an answer that does not match.
        if is_checked && self.format != EventFormat::Json && !outcome.text.is_empty() {
            output::note(&outcome.text);
        }
        let code = error.code().unwrap_or_default().into_owned();
        *self.failure.borrow_mut() = Some(ErrorRecord { code, message: error.to_string() });
        // The error was already printed as an event.
        if self.format == EventFormat::Json { Ok(error.report()) } else { Err(error) }
    }

    /// Prints an answer that was buffered until it was checked.
    fn print_checked(&self, buffered: Option<&str>) -> Result<ExitCode, CommandError> {
        if let (Some(text), Some(promised)) = (buffered, &self.skill.outputs) {
            match structured::validate_answer(promised, text) {
                // The model's own text is printed, because parsing would change numbers and drop
                // duplicate keys.
                Ok(Answer::Json(_)) => {
                    output::content(&format!("{}\n", structured::json_text(text)))?;
                }
                _ => output::content(&format!("{}\n", text.trim_end_matches('\n')))?,
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Opens the local database if the skill uses a knowledge base.
    async fn knowledge(
        &self,
        models: &Models,
        location: &StorageLocation,
    ) -> Result<(Option<Database>, Option<Knowledge>), CommandError> {
        let Some(base) = &self.skill.policy.knowledge_base else { return Ok((None, None)) };
        let missing = format!(
            "knowledge base `{base}` does not exist; create it with: savoir kb create {base}"
        );
        if !location.exists() {
            output::note(&missing);
            return Ok((None, None));
        }
        let (database, storage) = location.open().await?;
        let knowledge = Knowledge::new(database.clone(), storage, models.embedder().cloned());
        if knowledge.resolve(base, None).await?.is_none() {
            output::note(&missing);
        }
        Ok((Some(database), Some(knowledge)))
    }

    /// File names of the documents that an answer can cite.
    async fn names(&self, services: &Services) -> Names {
        let (Some(base), Some(knowledge)) =
            (&self.skill.policy.knowledge_base, &services.knowledge)
        else {
            return Names::new();
        };
        // Without names, ids are shown.
        let Ok(Some(base)) = knowledge.resolve(base, None).await else { return Names::new() };
        let documents = knowledge.documents(&base.id).await.unwrap_or_default();
        documents.into_iter().map(|document| (document.id, document.filename)).collect()
    }
}
