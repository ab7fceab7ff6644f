//! `savoir registry conformance`: checks whether a registry conforms to the registry API.

use std::{
    env, fs,
    io::{self, BufRead as _, Read as _},
    path::PathBuf,
    process::ExitCode,
};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use savoir_package::registry::Name;
use savoir_registry::conformance::{
    self as conformance, CheckOutcome, ConformanceCheck, Group, TestSettings, TestedRegistry,
    report::{self, Counts},
};
use serde_json::{Value, json};

use crate::{error::CommandError, output, runtime};

/// Environment variables for the tokens.
const TOKEN: &str = "SAVOIR_TOKEN";
const OTHER_TOKEN: &str = "SAVOIR_OTHER_TOKEN";
/// Longest token that is read from standard input.
const MAX_TOKEN_BYTES: u64 = 64 * 1024;

/// Check whether a registry conforms to the registry API
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a token, the checks only read. With a token, they publish small skills whose names start
with conf- and random letters. These cannot be removed, so use a test registry or your own
namespace. Pass the token in SAVOIR_TOKEN, because other users can see the command line.

Examples:
  savoir registry conformance http://127.0.0.1:7878/registry
  SAVOIR_TOKEN=… savoir registry conformance https://skills.example.com --namespace acme
  savoir registry conformance URL --email ada@example.com --password-stdin < password.txt
  savoir registry conformance URL --only pull --only search --junit report.xml
  savoir registry conformance https://mirror.example.com --skill acme/pdf     a mirror
  savoir registry conformance --list

Exit codes: 0 all passed, 1 some failed, 2 wrong usage or no registry found.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag that a person types")]
pub(crate) struct Args {
    /// Address of the registry
    #[arg(required_unless_present = "list")]
    url: Option<String>,
    /// Token that may publish; `-` reads it from the first line of standard input
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Token of another account, which must not be able to publish the same skills
    #[arg(long, value_name = "TOKEN")]
    other_token: Option<String>,
    /// Log in with this account instead of a token
    #[arg(long, value_name = "EMAIL", conflicts_with = "token", requires = "password_stdin")]
    email: Option<String>,
    /// Read the password from the first line of standard input
    #[arg(long, requires = "email")]
    password_stdin: bool,
    /// Publish in this namespace
    #[arg(long, value_name = "NS")]
    namespace: Option<String>,
    /// Skill to download if nothing is published; needed for a mirror, which has no list [default: the
    /// first listed skill]
    #[arg(long, value_name = "NAME", value_parser = Name::parse)]
    skill: Option<Name>,
    /// Run only this group of checks; may be repeated
    #[arg(long, value_name = "GROUP", value_parser = group_parser())]
    only: Vec<Group>,
    /// Publish nothing, even with a token
    #[arg(long)]
    read_only: bool,
    /// Write the results as XML for test servers
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// List all checks without running them
    #[arg(long)]
    list: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn group_parser() -> impl TypedValueParser<Value = Group> {
    let values = Group::ALL.map(|group| PossibleValue::new(group.as_str()).help(group.about()));
    PossibleValuesParser::new(values).try_map(|word| {
        let named = |group: &Group| group.as_str() == word;
        Group::ALL.into_iter().find(named).ok_or("not a group of checks")
    })
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let is_wanted =
        |check: &ConformanceCheck| args.only.is_empty() || args.only.contains(&check.group);
    let checks: Vec<ConformanceCheck> =
        conformance::checks().into_iter().filter(is_wanted).collect();
    if args.list {
        return list(args, &checks);
    }
    let (tested_registry, outcomes) = runtime::block_on(async {
        let tested_registry = find(args).await?;
        if !args.json && tested_registry.publishes() {
            output::note(&format!(
                "names of published skills start with {}",
                tested_registry.prefix()
            ));
        }
        let mut broken = None;
        let outcomes = conformance::run(&tested_registry, &checks, |outcome| {
            if !args.json && broken.is_none() {
                broken = output::text(&report::line(outcome)).err();
            }
        });
        let outcomes = outcomes.await;
        broken.map_or(Ok((tested_registry, outcomes)), Err)
    })?;
    finish(args, &tested_registry, &outcomes)
}

fn list(args: &Args, checks: &[ConformanceCheck]) -> Result<ExitCode, CommandError> {
    if args.json {
        let one = |check: &ConformanceCheck| json!({"id": check.id, "group": check.group.as_str(), "proves": check.proves});
        output::json(&json!({ "checks": checks.iter().map(one).collect::<Vec<_>>() }))?;
    } else {
        let lines = checks.iter().map(|check| format!("{}: {}\n", check.id, check.proves));
        output::text(&lines.collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn find(args: &Args) -> Result<TestedRegistry, CommandError> {
    let url = args.url.clone().unwrap_or_default();
    let variable = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let mut settings = TestSettings {
        url: url.clone(),
        token: args.token.clone().or_else(|| variable(TOKEN)).map(from_input).transpose()?,
        other: args.other_token.clone().or_else(|| variable(OTHER_TOKEN)),
        namespace: args.namespace.clone(),
        read_only: args.read_only,
        skill: args.skill.clone(),
    };
    if let Some(email) = &args.email {
        settings.token = Some(log_in(&url, email).await?);
    }
    let tested_registry = TestedRegistry::find(settings).await.map_err(|why| {
        CommandError::input(format!("{url}: {why}"))
            .with_code("registry_unreachable")
            .hint("name the address of a registry: http://127.0.0.1:7878/registry")
    })?;
    match tested_registry.unavailable_reason().await {
        None => Ok(tested_registry),
        Some(why) => Err(CommandError::input(format!("{url}: {why}"))
            .with_code("unauthorized")
            .hint("give a token in SAVOIR_TOKEN, or an account: --email EMAIL --password-stdin")),
    }
}

/// The token; `-` stands for the first line of standard input.
fn from_input(token: String) -> Result<String, CommandError> {
    if token != "-" {
        return Ok(token);
    }
    let mut line = String::new();
    io::stdin().lock().take(MAX_TOKEN_BYTES).read_line(&mut line).map_err(|error| {
        CommandError::input(format!("the token cannot be read: {error}"))
            .with_code("token_unreadable")
            .hint("give it on standard input, in UTF-8")
    })?;
    Ok(line.trim().to_owned())
}

async fn log_in(url: &str, email: &str) -> Result<String, CommandError> {
    let mut password = String::new();
    io::stdin().lock().read_line(&mut password).map_err(|error| {
        CommandError::input(format!("the password cannot be read: {error}"))
            .with_code("password_unreadable")
            .hint("give it on standard input, in UTF-8")
    })?;
    let server = url.trim_end_matches('/').trim_end_matches("/registry");
    let body = json!({
        "email": email, "password": password.trim_end_matches(['\r', '\n']),
    });
    let wrong = |why: String| {
        CommandError::input(format!("{email} cannot log in at {server}: {why}"))
            .with_code("login_failed")
            .hint("check the email address and the password, or pass a token: --token")
    };
    let login_request =
        reqwest::Client::new().post(format!("{server}/api/v1/auth/login")).json(&body);
    let answer =
        login_request.send().await.map_err(|error| wrong(error.without_url().to_string()))?;
    let status = answer.status();
    let value: Value = answer.json().await.unwrap_or_default();
    match value["token"].as_str() {
        Some(token) => Ok(token.to_owned()),
        None => Err(wrong(status.to_string())),
    }
}

fn finish(
    args: &Args,

    tested_registry: &TestedRegistry,
    outcomes: &[CheckOutcome],
) -> Result<ExitCode, CommandError> {
    let Counts { passed, failed, skipped } = report::counts(outcomes);
    if let Some(file) = &args.junit {
        fs::write(file, report::junit(tested_registry.base(), outcomes)).map_err(|error| {
            CommandError::input(format!("{}: {error}", file.display()))
                .with_code("report_unwritable")
                .hint("name a file that can be written: --junit FILE")
        })?;
    }
    if args.json {
        output::json(&report::as_json(
            tested_registry.base(),
            &tested_registry.prefix(),
            outcomes,
        ))?;
    } else {
        output::text(&format!("\n{passed} passed, {failed} failed, {skipped} skipped\n"))?;
    }
    Ok(ExitCode::from(u8::from(failed > 0)))
}
