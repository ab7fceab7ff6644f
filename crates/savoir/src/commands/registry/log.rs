//! `savoir registry log`: shows the audit log of a registry.

use std::{borrow::Cow, process::ExitCode};

use savoir_package::registry::{
    Client,
    wire::{LogEntry, LogQuery},
};
use serde_json::{Value, json};

use super::common::{Common, NO_NAMESPACE_PREFIX};
use crate::{error::CommandError, output};

/// Entries per request.
const PER_PAGE: u32 = 100;
/// Show the audit log of a registry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Members see the entries of their namespace, and only the account number of other users.
Administrators see all entries: savoir login --email EMAIL --scope admin.
A skill without a namespace is written as NAME or _/NAME.

Examples:
  savoir registry log acme
  savoir registry log acme/pdf
  savoir registry log greeter
  savoir registry log --limit 500 --json

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct Args {
    /// Only entries of this namespace or skill
    #[arg(value_name = "NAMESPACE|NAME")]
    what: Option<String>,
    /// Maximum number of entries, newest first
    #[arg(long, value_name = "N", default_value_t = 50,
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let work = async |client: &Client| {
        let entries = load_entries(client, args).await?;
        let rows: Vec<[Cow<'_, str>; 5]> = entries.iter().map(row).collect();
        let text = match rows.as_slice() {
            [] => "no entries\n".to_owned(),
            rows => output::table(["TIME", "ACCOUNT", "ACTION", "TARGET", "DETAILS"], rows),
        };
        Ok((json!({ "entries": entries }), text))
    };
    match &args.what {
        Some(what) => args.common.with_namespace(what, work),
        None => args.common.with_registry(work),
    }
}

/// The requested entries. A name without a slash is a namespace, or a skill without a namespace.
async fn load_entries(client: &Client, args: &Args) -> Result<Vec<LogEntry>, CommandError> {
    let limit = args.limit as usize;
    let of_team = |team: &str| LogQuery { namespace: Some(team.into()), ..LogQuery::default() };
    let query = match args.what.as_deref() {
        None => LogQuery::default(),
        Some(what) if what.starts_with(NO_NAMESPACE_PREFIX) => of_team(what),
        Some(what) if what.contains('/') => {
            LogQuery { package: Some(what.into()), ..LogQuery::default() }
        }
        Some(what) => {
            let first = entries(client, of_team(what), limit).await;
            if first.as_ref().is_ok_and(|entries| !entries.is_empty()) {
                return first;
            }
            let alone =
                entries(client, of_team(&format!("{NO_NAMESPACE_PREFIX}{what}")), limit).await;
            return alone.or(first);
        }
    };
    entries(client, query, limit).await
}

/// Reads entries page by page, up to the limit.
pub(super) async fn entries(
    client: &Client,
    mut query: LogQuery,
    limit: usize,
) -> Result<Vec<LogEntry>, CommandError> {
    query.per_page = Some(u32::try_from(limit).unwrap_or(PER_PAGE).min(PER_PAGE));
    let mut found = Vec::new();
    loop {
        let page = client.log(&query).await?;
        let before = found.len();
        found.extend(page.items);
        found.truncate(limit);
        // An empty page ends the loop, which might otherwise never end.
        if found.len() == limit || page.next_cursor.is_none() || found.len() == before {
            return Ok(found);
        }
        query.cursor = page.next_cursor;
    }
}

fn row(entry: &LogEntry) -> [Cow<'_, str>; 5] {
    let who = match &entry.actor {
        Value::Null => "operator".to_owned(),
        Value::String(email) => email.clone(),
        other => format!("account {other}"),
    };
    let to = match (&entry.name, &entry.version, &entry.namespace) {
        (Some(name), Some(version), _) => format!("{name}@{version}"),
        (Some(name), None, _) => name.clone(),
        (None, _, namespace) => namespace.clone().unwrap_or_default(),
    };
    let details = match &entry.details {
        Value::Null => String::new(),
        Value::Object(map) if map.is_empty() => String::new(),
        other => other.to_string(),
    };
    let cell = |text: &str| Cow::Owned(output::cell(text).into_owned());
    [
        cell(entry.at.as_deref().unwrap_or_default()),
        cell(&who),
        cell(&entry.act),
        cell(&to),
        cell(&details),
    ]
}
