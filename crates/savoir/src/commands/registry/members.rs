//! `savoir registry members`: manages the members of a namespace.

use std::{borrow::Cow, process::ExitCode};

use savoir_package::registry::wire::{Member, NewMember, TeamRole};
use serde_json::json;

use super::common::{Common, change_team, load_team};
use crate::{error::CommandError, output};

/// Manage the members of a namespace
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir registry members list acme
  savoir registry members add acme grace@example.com --role owner
  savoir registry members remove acme grace@example.com
  savoir registry members list _/greeter         a skill without a namespace

Exit codes: 1 the registry refuses or cannot be reached, 2 wrong usage.")]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the members
    #[command(after_help = "\
Examples:
  savoir registry members list acme
  savoir registry members list acme --json")]
    List {
        /// The namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        #[command(flatten)]
        common: Common,
    },
    /// Add a member, or change the role of one
    #[command(after_help = "\
Examples:
  savoir registry members add acme grace@example.com
  savoir registry members add acme grace@example.com --role owner")]
    Add {
        /// The namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        /// Email of the account
        #[arg(value_name = "EMAIL")]
        email: String,
        /// Role of the member
        #[arg(long, default_value = "publisher")]
        role: RoleName,
        #[command(flatten)]
        common: Common,
    },
    /// Remove a member
    #[command(after_help = "\
Example:
  savoir registry members remove acme grace@example.com")]
    Remove {
        /// The namespace
        #[arg(value_name = "NAMESPACE")]
        namespace: String,
        /// Email of the account
        #[arg(value_name = "EMAIL")]
        email: String,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum RoleName {
    /// May publish, yank and deprecate
    Publisher,
    /// May also manage members and keys
    Owner,
}

impl From<RoleName> for TeamRole {
    fn from(role: RoleName) -> Self {
        match role {
            RoleName::Publisher => Self::Publisher,
            RoleName::Owner => Self::Owner,
        }
    }
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    match &args.command {
        Command::List { namespace, common } => list(namespace, common),
        Command::Add { namespace, email, role, common } => {
            let role = TeamRole::from(*role);
            common.with_namespace(namespace, async |client| {
                let member = NewMember { email: email.clone(), role };
                let add = async |team: &str| client.add_member(team, &member).await;
                let (namespace, ()) = change_team(client, namespace, add).await?;
                let value = json!({ "namespace": namespace, "email": email, "role": role });
                Ok((value, format!("added {email} to {namespace} as {}\n", role.as_str())))
            })
        }
        Command::Remove { namespace, email, common } => {
            common.with_namespace(namespace, async |client| {
                let remove = async |team: &str| client.remove_member(team, email).await;
                let (namespace, ()) = change_team(client, namespace, remove).await?;
                let value = json!({ "namespace": namespace, "email": email, "removed": true });
                Ok((value, format!("removed {email} from {namespace}\n")))
            })
        }
    }
}

fn list(namespace: &str, common: &Common) -> Result<ExitCode, CommandError> {
    common.with_namespace(namespace, async |client| {
        let ask = async |team: &str| client.members(team).await;
        let (namespace, members) = load_team(namespace, ask).await?;
        let rows: Vec<[Cow<'_, str>; 3]> = members.iter().map(row).collect();
        let text = match rows.as_slice() {
            [] => format!("{namespace} has no members\n"),
            rows => output::table(["MEMBER", "ROLE", "SINCE"], rows),
        };
        Ok((json!({ "namespace": namespace, "members": members }), text))
    })
}

fn row(member: &Member) -> [Cow<'_, str>; 3] {
    let who = match (&member.email, member.user_id) {
        (Some(email), _) => output::cell(email),
        (None, Some(id)) => format!("account {id}").into(),
        (None, None) => "unknown".into(),
    };
    let since = output::cell(member.added_at.as_deref().unwrap_or_default());
    [who, output::cell(&member.role), since]
}
