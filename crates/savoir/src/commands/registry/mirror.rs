//! `savoir registry mirror`: copies a registry into a folder that any web server can serve.

use std::{path::PathBuf, process::ExitCode};

use savoir_package::registry::{
    Name, RegistryError,
    mirror::{MirrorReport, MirrorSelection, mirror},
};
use serde_json::json;

use crate::{error::CommandError, output, remote::Remote, runtime};

/// Copy a registry into a folder that any web server can serve
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  savoir registry mirror https://skills.example.com/registry ./mirror
  savoir registry mirror https://skills.example.com/registry ./mirror --skill acme/pdf
  savoir install acme/pdf --registry http://localhost:8000     if ./mirror is served there

An existing copy is updated, and an interrupted copy is continued. Every archive is checked against
the index. If the registry changed the bytes of a version, the copy keeps the old bytes and an error
is reported. If a version was taken down, its archive is removed and the index of the copy says so.

Exit codes: 1 something could not be copied, 2 wrong usage, 3 others can read credentials.toml.")]
pub(super) struct Args {
    /// Address of the registry, or its name in `[registries]`
    #[arg(value_name = "URL|NAME")]
    registry: String,
    /// Folder for the copy
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Only this skill and its dependencies; may be repeated
    #[arg(long, value_name = "NAME")]
    skill: Vec<Name>,
    /// Allow unencrypted HTTP to another machine
    #[arg(long)]
    allow_http: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, CommandError> {
    let remote = Remote { registry: Some(args.registry.clone()), allow_http: args.allow_http };
    let client = remote.client()?;
    let what = match args.skill.as_slice() {
        [] => MirrorSelection::Everything,
        names => MirrorSelection::Skills(names.to_vec()),
    };
    let copied = runtime::block_on(async { Ok(mirror(&client, &args.folder, &what).await?) })?;
    print(args, &copied)?;
    Ok(ExitCode::from(u8::from(!copied.failed.is_empty())))
}

fn print(args: &Args, copied: &MirrorReport) -> Result<(), CommandError> {
    let failed = copied.failed.iter();
    if args.json {
        let failed = failed.map(|failed| {
            let version = failed.version.as_ref().map(ToString::to_string);
            let (code, message) = (failed.error.code(), failed.error.to_string());
            json!({ "name": failed.name, "version": version, "code": code, "message": message })
        });
        let removed = copied.removed.iter();
        let removed = removed.map(|(name, version)| json!({ "name": name, "version": version }));
        return output::json(&json!({
            "folder": args.folder, "skills": copied.skills, "versions": copied.versions,
            "fetched": copied.fetched, "bytes": copied.bytes, "failed": failed.collect::<Vec<_>>(),
            "removed": removed.collect::<Vec<_>>(),
        }));
    }
    for failed in failed {
        let version = failed.version.as_ref().map(|version| format!(" {version}"));
        let version = version.unwrap_or_default();
        let became = match failed.error {
            RegistryError::ChangedCopy { .. } => "is unchanged in the copy",
            RegistryError::ReturnedCopy { .. } => "stays taken down",
            _ => "was not copied",
        };
        output::note(&format!("`{}`{version} {became}: {}", failed.name, failed.error));
    }
    for (name, version) in &copied.removed {
        output::note(&format!("`{name}` {version} was taken down; its archive is removed"));
    }
    output::text(&output::sanitize(&format!(
        "{} has {}, {}; {} downloaded\n",
        args.folder.display(),
        output::plural(copied.skills, "skill"),
        output::plural(copied.versions, "version"),
        output::plural(copied.fetched, "archive"),
    )))
}
