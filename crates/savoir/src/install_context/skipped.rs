//! Handles skills that are skipped while the others of the same command are installed.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use savoir_package::{InstallFailure, install::CheckedSkill, lock::Lock};
use serde_json::{Value, json};

use crate::{
    ask,
    copies::{Identity, group_copies},
    error::CommandError,
    output,
};

/// A skill that is not installed, and why.
#[derive(Debug)]
pub(crate) struct Skipped {
    pub(crate) name: String,
    /// The source that it would be installed from.
    pub(crate) source: String,
    /// The reason, with exit code and hints.
    pub(crate) error: CommandError,
}

impl Skipped {
    pub(crate) fn new(name: &str, source: &str, error: impl Into<CommandError>) -> Self {
        Self { name: name.to_owned(), source: source.to_owned(), error: error.into() }
    }

    fn ready(ready: &CheckedSkill, error: CommandError) -> Self {
        Self::new(&ready.summary.name, &ready.source.to_string(), error)
    }

    pub(crate) fn json(&self) -> Value {
        let mut json = json!({ "name": self.name, "source": self.source });
        if let Some(error) = self.error.to_json() {
            json["error"] = error["error"].clone();
        }
        json
    }
}

/// One line for each skill that is skipped, with its reason.
pub(crate) fn page(skipped: &[Skipped]) -> String {
    let mut page = String::new();
    for one in skipped {
        let reason = one.error.to_string();
        let name = output::cell(&one.name).into_owned();
        // Writing to a string cannot fail.
        let _ = writeln!(page, "skipped {name}: {}", output::cell(&reason.replace('\n', "; ")));
        for hint in one.error.hints() {
            let _ = writeln!(page, "  hint: {}", output::cell(hint));
        }
    }
    page
}

/// Keeps one skill per name. Identical copies count once. Of different skills, the user chooses one on
/// a terminal; otherwise the shortest path wins.
pub(crate) fn one_per_name(
    ready: Vec<CheckedSkill>,
    skipped: &mut Vec<Skipped>,
    may_ask: bool,
) -> Result<Vec<CheckedSkill>, CommandError> {
    let mut order: Vec<String> = Vec::new();
    let mut groups: BTreeMap<String, Vec<CheckedSkill>> = BTreeMap::new();
    for one in ready {
        // Some file systems ignore case in folder names.
        let name = one.summary.name.to_lowercase();
        let group = groups.entry(name.clone()).or_default();
        if group.is_empty() {
            order.push(name);
        }
        group.push(one);
    }
    let mut remaining = Vec::with_capacity(order.len());
    for name in order {
        let mut group = groups.remove(&name).unwrap_or_default();
        group.sort_by_cached_key(|one| path_length(&one.source.to_string()));
        let files =
            |one: &CheckedSkill| Identity { files: Some(one.tree.integrity()), locked: None };
        let copies = group_copies(group, files).into_iter();
        let mut group: Vec<CheckedSkill> =
            copies.filter_map(|copies| copies.into_iter().next()).collect();
        if group.len() > 1 && may_ask {
            let chosen = choose(&name, &group)?;
            remaining.push(group.swap_remove(chosen));
            continue;
        }
        let mut group = group.into_iter();
        let Some(winner) = group.next() else { continue };
        let place = winner.source.to_string();
        skipped.extend(group.map(|other| Skipped::ready(&other, another_copy(&other, &place))));
        remaining.push(winner);
    }
    Ok(remaining)
}

/// Sort key that puts the shortest path first.
pub(super) fn path_length(path: &str) -> (usize, usize, String) {
    (path.matches('/').count(), path.len(), path.to_owned())
}

fn another_copy(other: &CheckedSkill, winner: &str) -> CommandError {
    let (name, source) = (&other.summary.name, other.source.to_string());
    CommandError::findings(format!("{source} has the same name as {winner}"))
        .with_code("same-name")
        .hint(format!("to install this one instead: --path {} --skill {name}", inside(&source)))
}

/// The path of a skill inside its source, as an argument of `--path`.
fn inside(source: &str) -> &str {
    let exact = source.split_once('#').map_or("", |(_, exact)| exact);
    match exact.split_once(':') {
        Some((_, path)) if !path.is_empty() => path,
        _ => source.strip_prefix("path+").unwrap_or(source),
    }
}

fn choose(name: &str, group: &[CheckedSkill]) -> Result<usize, CommandError> {
    let mut page = format!("{} different skills are named {}:\n", group.len(), output::cell(name));
    for (at, one) in group.iter().enumerate() {
        let _ = writeln!(page, "  {}  {}", at + 1, output::cell(&one.source.to_string()));
    }
    page.push_str("Which one? [1]: ");
    let meant = |line: &str| match line.trim() {
        "" => Some(0),
        number => {
            let number: usize = number.parse().ok()?;
            (1..=group.len()).contains(&number).then(|| number - 1)
        }
    };
    Ok(ask::line(&page, &meant)?.unwrap_or_default())
}

/// Skips skills with dependencies that are not available.
pub(crate) fn without_unmet_needs(
    mut ready: Vec<CheckedSkill>,
    lock: &Lock,
    skipped: &mut Vec<Skipped>,
) -> Vec<CheckedSkill> {
    loop {
        let names: BTreeSet<String> = ready.iter().map(|one| one.summary.name.clone()).collect();
        let is_there = |name: &str| {
            let folder = name.rsplit('/').next().unwrap_or(name);
            names.contains(folder) || lock.skills.contains_key(folder)
        };
        let unmet = |one: &CheckedSkill| {
            let mut needs = one.summary.needs.iter().map(|need| need.name.clone());
            needs.find(|name| !is_there(name))
        };
        let before = ready.len();
        ready.retain(|one| {
            let Some(need) = unmet(one) else { return true };
            let error = CommandError::findings(format!("it needs the skill `{need}`"))
                .with_code("missing-dependency")
                .hint(format!("install `{need}` first, or name both: savoir install SKILL {need}"));
            skipped.push(Skipped::ready(one, error));
            false
        });
        if ready.len() == before {
            return ready;
        }
    }
}

/// Skips the skills that made a plan fail; returns the error if it is not about any of them.
pub(crate) fn without_culprits(
    ready: &mut Vec<CheckedSkill>,
    error: InstallFailure,
    skipped: &mut Vec<Skipped>,
) -> Result<(), CommandError> {
    let folders = match &error {
        InstallFailure::Occupied(paths) => paths.clone(),
        InstallFailure::Unkeepable { path, .. } => vec![path.clone()],
        InstallFailure::SkillSummary { name, .. } | InstallFailure::Convert { name, .. } => {
            vec![PathBuf::from(name)]
        }
        _ => return Err(error.into()),
    };
    let before = ready.len();
    ready.retain(|one| {
        let name = &one.summary.name;
        let folder = folders.iter().find(|path| path.file_name() == Some(OsStr::new(name)));
        let Some(folder) = folder else { return true };
        let reason = match &error {
            InstallFailure::Occupied(_) => occupied_folder_error(name, folder),
            error => CommandError::findings(error).with_code(error.code()),
        };
        skipped.push(Skipped::ready(one, reason));
        false
    });
    if ready.len() == before { Err(error.into()) } else { Ok(()) }
}

fn occupied_folder_error(name: &str, folder: &Path) -> CommandError {
    let message = format!("{} exists and was not installed by savoir", folder.display());
    CommandError::findings(message)
        .with_code("occupied")
        .hint(format!("keep it: savoir adopt {name}; or replace it: --force"))
}
