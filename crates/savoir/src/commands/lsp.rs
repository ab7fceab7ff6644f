//! `savoir lsp`: the language server for editors.

mod listings;
mod workflows;

use std::{
    io::{self, BufReader},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use savoir_lsp::{Ending, Environment, FileProblem, ListedSkill, Listing};
use savoir_skill::{Diagnostic, Folder, check::Options};

use crate::{
    config::{self, Config},
    discover::{self, Candidate},
    error::CommandError,
    eval_files,
};

/// Start the language server for editors
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Your editor starts this command and talks to it over standard input and output. It helps with
SKILL.md, AGENT.yaml, savoir.toml, evals.json and workflow files, and reports what `savoir check`
reports. It never runs a skill.

docs/guides/editor.md shows how to set up VS Code, Zed, Neovim and Helix.")]
pub(crate) struct Args {
    /// Talk over standard input and output, which is the default
    #[arg(long, hide = true)]
    stdio: bool,
}

pub(crate) fn run(_: &Args) -> Result<ExitCode, CommandError> {
    let input = BufReader::new(io::stdin());
    let mut output = io::stdout().lock();
    match savoir_lsp::serve(input, &mut output, Arc::new(Machine))? {
        Ending::Shutdown => Ok(ExitCode::SUCCESS),
        // The protocol asks for this code if the client ends without `shutdown`.
        Ending::Disconnected => Ok(ExitCode::FAILURE),
    }
}

/// Provides the language server with the settings and skills of this machine, as other commands use
/// them.
struct Machine;

impl Environment for Machine {
    fn check_options(&self, folder: &Path) -> Result<Options, String> {
        let config = Config::load(folder).map_err(|error| error.to_string())?;
        Ok(config.check.options())
    }

    fn find_skills(&self, root: &Path, found: &mut dyn FnMut(PathBuf) -> bool) {
        discover::walk(&[root.to_owned()], &mut |candidate| match candidate {
            Candidate::Skill { path, .. } => found(path),
            Candidate::Unreadable { .. } | Candidate::Empty { .. } => true,
        });
    }

    fn check_settings(&self, path: &Path, text: &str) -> Vec<FileProblem> {
        let Err((span, error)) = config::check_project_text(path, text) else {
            return Vec::new();
        };
        let message = error.to_string();
        vec![FileProblem {
            span: span.or_else(|| quoted_word(text, &message)).unwrap_or_default(),
            message,
            hint: error.hints().first().cloned(),
            is_error: true,
        }]
    }

    fn check_workflow(&self, text: &str) -> Vec<FileProblem> {
        workflows::problems(text)
    }

    fn check_evals(&self, folder: &Folder, skill: &str, path: &str) -> Vec<FileProblem> {
        let files = eval_files::find_invalid_eval_files(folder, skill).into_iter();
        let found = files.filter(|file| file.path == path).flat_map(|file| file.diagnostics);
        let problem = |found: Diagnostic| FileProblem {
            span: found.span.start..found.span.end,
            is_error: found.is_error(),
            message: found.message,
            hint: found.help,
        };
        found.map(problem).collect()
    }

    fn listings(&self, skill: &ListedSkill<'_>) -> Vec<Listing> {
        listings::of(skill)
    }

    fn models(&self) -> Vec<String> {
        let config = Config::load(Path::new(".")).unwrap_or_default();
        config.models.default.into_iter().collect()
    }
}

/// The position of the word in backticks that a message contains.
fn quoted_word(text: &str, message: &str) -> Option<std::ops::Range<usize>> {
    let words = message.split('`').skip(1).step_by(2);
    let places = words.filter(|word| !word.is_empty()).filter_map(|word| {
        let at = text.find(word)?;
        Some(at..at + word.len())
    });
    places.last()
}
