//! Prints the start message of a server: its URL, its data, and a first command.

use std::{io, io::Write as _, net::SocketAddr, path::Path, time::Duration};

use anstream::{AutoStream, ColorChoice};
use anstyle::Style;
use savoir_model::{ModelError, Models, ProviderModels};
use savoir_server::App;
use savoir_store::{Storage, StoreError};

use crate::{
    config::LogFormat,
    output::{self, plural},
    storage_args::StorageLocation,
};

/// Time limit for listing models; the server already answers requests.
const MODEL_LIST_TIMEOUT: Duration = Duration::from_secs(3);

pub(super) struct Greeting<'a> {
    pub(super) format: LogFormat,
    pub(super) url: String,
    pub(super) address: SocketAddr,
    pub(super) location: &'a StorageLocation,
    pub(super) models: Models,
    /// Who may read the registry, if not everyone.
    pub(super) readers: &'static str,
}

const EVERYWHERE: &str = "listening on all network interfaces; put a TLS proxy in front of it";

impl Greeting<'_> {
    /// Prints to standard error, or as log lines if the log is JSON.
    pub(super) async fn print_greeting(&self, app: &App, storage: &Storage) {
        let lines = match self.lines(app, storage).await {
            Ok(lines) => lines,
            Err(error) => {
                tracing::error!(%error, "cannot read the stored data");
                return;
            }
        };
        match self.format {
            LogFormat::Text => print(&lines),
            LogFormat::Json => {
                for (label, text) in lines {
                    tracing::info!(what = label, "{text}");
                }
            }
        }
    }

    async fn lines(
        &self,
        app: &App,
        storage: &Storage,
    ) -> Result<Vec<(&'static str, String)>, StoreError> {
        let version = env!("CARGO_PKG_VERSION");
        let mut lines = vec![("savoir", format!("{version} at {}", self.url))];
        if self.address.ip().is_unspecified() {
            lines.push(("", EVERYWHERE.to_owned()));
        }
        lines.push(("registry", format!("{}/registry{}", self.url, self.readers)));
        let (database_text, files) =
            (self.location.shown_database(), self.location.shown_storage());
        lines.push(("data", format!("{database_text}, files in {files}")));
        let skills = storage.skills().keys().await?;
        lines.push(("skills", plural(skills.len(), "skill")));
        lines.extend(self.models().await);
        let search = match self.models.embedder() {
            Some(embedder) => format!("words (BM25) and vectors of {}", embedder.identity()),
            None => "words alone (BM25); set SAVOIR_EMBEDDING_MODEL to add vectors".to_owned(),
        };
        lines.push(("search", search));
        if let Some(link) = savoir_server::setup_link(app).await? {
            lines.push(("accounts", format!("no administrator yet; create one here: {link}")));
            let (savoir, storage_options) = (program(), self.location.storage_options());
            lines.push(("", format!("or run: {savoir} admin create EMAIL{storage_options}")));
        }
        lines.push(("try", self.first_step(&skills)));
        Ok(lines)
    }

    /// The available models, or how to set one up.
    async fn models(&self) -> Vec<(&'static str, String)> {
        if self.models.is_empty() {
            let app = "none yet; add one in the web app under Administration, Models and keys,";
            let help = ModelError::NoProvider.help().unwrap_or_default();
            return vec![("models", app.to_owned()), ("", format!("or {help}"))];
        }
        let Ok(listed) = tokio::time::timeout(MODEL_LIST_TIMEOUT, self.models.list()).await else {
            let seconds = MODEL_LIST_TIMEOUT.as_secs();
            return vec![("models", format!("no answer within {seconds} s; see `savoir models`"))];
        };
        let labels = std::iter::once("models").chain(std::iter::repeat(""));
        labels.zip(listed.iter().map(provider)).collect()
    }

    fn first_step(&self, skills: &[String]) -> String {
        let example = skills.iter().find(|name| *name == "article-summary");
        let Some(skill) = example.and_then(|name| self.location.skill(name)) else {
            return format!("curl {}/openapi.json", self.url);
        };
        // Without a model, the prompt can still be rendered.
        let verb = if self.models.is_empty() { "render" } else { "run" };
        let savoir = program();
        format!("{savoir} {verb} {skill} --input article=\"Rain fell. It was wet.\"")
    }
}

/// The command that runs this program: its name if that is on PATH, else its path.
fn program() -> String {
    let ours = std::env::current_exe().ok();
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths).map(|folder| folder.join("savoir"));
    let on_path = found.into_iter().find(|path| path.is_file());
    match (on_path, ours) {
        (None, Some(path)) => {
            let here = std::env::current_dir().ok();
            let near = here.and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
            near.unwrap_or(path).display().to_string()
        }
        _ => "savoir".to_owned(),
    }
}

/// `openai: gpt-4o by default, 12 models`
fn provider(listed: &ProviderModels) -> String {
    let name = &listed.provider;
    match &listed.models {
        Ok(models) => {
            let first = listed.default_model.as_ref().or(models.first());
            let default = first.map_or_else(String::new, |model| format!("{model} by default, "));
            format!("{name}: {default}{}", plural(models.len(), "model"))
        }
        Err(error) => match error.help() {
            Some(help) => format!("{name}: {error}; {help}"),
            None => format!("{name}: {error}"),
        },
    }
}

fn print(lines: &[(&str, String)]) {
    let bold = Style::new().bold();
    let mut err = AutoStream::new(io::stderr().lock(), ColorChoice::Auto);
    for (label, text) in lines {
        // A closed standard error is not a problem.
        let _ = writeln!(err, "{bold}{label:<9}{bold:#} {}", output::sanitize(text));
    }
    let _ = err.flush();
}
