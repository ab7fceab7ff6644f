//! `savoir new`: creates a new skill.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use savoir_skill::{
    Dialect,
    dialect::{agent_flow::RESERVED_NAMES, template_description},
    name::NameGrammar,
};

use crate::{error::CommandError, output, write};

/// Create a new skill
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir new weather-report
  savoir new git-helper --dialect gibberish
  savoir new invoice --dialect gaia --description \"Reads invoices\"")]
pub(crate) struct Args {
    /// Name of the skill: lower-case letters, digits and single hyphens
    name: String,
    /// Dialect of the skill
    #[arg(long, value_name = "DIALECT", value_parser = super::dialects(), default_value = "agentskills")]
    dialect: Dialect,
    /// What the skill does and when to use it
    #[arg(long)]
    description: Option<String>,
    /// Folder in which to create the skill's folder
    #[arg(long, value_name = "DIR", default_value = ".")]
    path: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    check_name(&args.name, args.dialect)?;
    let description = args.description.clone();
    let description = description.unwrap_or_else(|| template_description(&args.name));
    let folder = args.path.join(&args.name);
    let files = args.dialect.scaffold(&args.name, &description);
    write::new_folder(&folder, |staging: &Path| {
        for file in &files {
            write::file_in(staging, &file.path, file.text.as_bytes())?;
        }
        Ok(())
    })?;
    let mut text = String::new();
    for file in &files {
        let _ = writeln!(text, "created {}", folder.join(&file.path).display());
    }
    let file = folder.join("SKILL.md");
    let _ = writeln!(text, "replace the text of the template in {}", file.display());
    let _ = writeln!(text, "then check it with: savoir check {}", folder.display());
    output::text(&output::sanitize(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks a name with the grammar that every dialect can read. Agent Flow Lite has a grammar and a
/// normalization of its own.
fn check_name(name: &str, dialect: Dialect) -> Result<(), CommandError> {
    let (grammar, proposal) = if dialect == Dialect::AGENT_FLOW {
        (NameGrammar::Ascii, Some(savoir_skill::name::normalize(name)))
    } else {
        (NameGrammar::Published, savoir_skill::name::slugify(name))
    };
    if dialect == Dialect::AGENT_FLOW && RESERVED_NAMES.contains(&name) {
        let message = format!("`{name}` is not a valid skill name: servers use it for a route");
        return Err(CommandError::input(message).hint(format!("try `{name}-skill`")));
    }
    let Err(problem) = grammar.check(name) else { return Ok(()) };
    let name = name.escape_debug();
    let error = CommandError::input(format!("`{name}` is not a valid skill name: {problem}"));
    Err(match proposal.filter(|proposal| grammar.check(proposal).is_ok()) {
        Some(proposal) => error.hint(format!("try `{proposal}`")),
        None => {
            error.hint("use lower-case letters, digits and single hyphens, and start with a letter")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_server_refuses_are_not_for_agent_flow() {
        for name in ["import", "catalog"] {
            let error = check_name(name, Dialect::AGENT_FLOW).unwrap_err().to_string();
            assert!(error.contains("servers use it for a route"), "{error}");
            assert!(check_name(name, Dialect::GAIA).is_ok());
        }
        assert!(check_name("importer", Dialect::AGENT_FLOW).is_ok());
    }
}
