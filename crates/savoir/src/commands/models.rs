//! `savoir models`: lists the available language models.

use std::{io::Write as _, process::ExitCode};

use savoir_model::{ModelError, ProviderModels};
use serde_json::{Value, json};

use crate::{error::CommandError, models, output, runtime};

/// Most models of a provider that are printed; `--json` lists all.
const MAX_PRINTED_MODELS: usize = 20;

/// List the available language models
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Models are configured with environment variables (OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY, OLLAMA_HOST) and with tables [models.NAME] in ~/.config/savoir/config.toml.

Examples:
  savoir models
  OLLAMA_HOST=http://127.0.0.1:11434 savoir models --json

Exit codes: 0 a provider can be reached, 1 none can be reached, 2 none is configured.")]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let models = models::load_models()?;
    if models.is_empty() {
        if args.json {
            output::json(&json!({"providers": [], "embedding": null}))?;
        }
        return Err(ModelError::NoProvider.into());
    }
    let listed = runtime::block_on(async { Ok(models.list().await) })?;
    let embedding = models.embedder().map(|embedder| embedder.identity().to_owned());
    if args.json {
        let providers: Vec<Value> = listed.iter().map(as_json).collect();
        output::json(&json!({"providers": providers, "embedding": embedding}))?;
    } else {
        print(&listed, embedding.as_deref())?;
    }
    let reached = listed.iter().any(|listed| listed.models.is_ok());
    Ok(ExitCode::from(u8::from(!reached)))
}

fn as_json(listed: &ProviderModels) -> Value {
    let ProviderModels { provider, default_model, models } = listed;
    match models {
        Ok(models) => {
            let default = default_model.as_ref().or(models.first());
            json!({"provider": provider, "default": default, "models": models})
        }
        Err(error) => json!({
            "provider": provider, "default": default_model, "error": error.to_string(),
            "help": error.help(),
        }),
    }
}

fn print(listed: &[ProviderModels], embedding: Option<&str>) -> Result<(), CommandError> {
    let mut out = output::stdout();
    for (at, ProviderModels { provider, default_model, models }) in listed.iter().enumerate() {
        let default_mark = if at == 0 { "  (default)" } else { "" };
        writeln!(out, "{}{default_mark}", output::sanitize(provider))?;
        match models {
            Ok(models) => {
                let default = default_model.as_ref().or(models.first());
                for model in models.iter().take(MAX_PRINTED_MODELS) {
                    let mark = if Some(model) == default { "*" } else { " " };
                    writeln!(out, "  {mark} {}", output::sanitize(model))?;
                }
                if let Some(default) = default.filter(|default| !models.contains(default)) {
                    writeln!(
                        out,
                        "  * {} (not in the list of the provider)",
                        output::sanitize(default)
                    )?;
                }
                if models.len() > MAX_PRINTED_MODELS {
                    writeln!(
                        out,
                        "    and {} more; --json lists all",
                        models.len() - MAX_PRINTED_MODELS
                    )?;
                }
            }
            Err(error) => {
                writeln!(out, "  {}", output::sanitize(&error.to_string()))?;
                if let Some(help) = error.help() {
                    writeln!(out, "  {}", output::sanitize(&help))?;
                }
            }
        }
    }
    match embedding {
        Some(identity) => writeln!(out, "\nembedding: {}", output::sanitize(identity))?,
        None => writeln!(out, "\nembedding: none; knowledge is searched by words alone (BM25)")?,
    }
    output::flush(out)
}
