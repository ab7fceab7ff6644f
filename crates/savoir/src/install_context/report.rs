//! Prints the report of a plan: the changes that were made, or would be.

use std::{collections::BTreeSet, fmt::Write as _};

use savoir_package::{
    install::{InstallPlan, PlannedChange},
    lock::{AddedCapability, Capability},
};
use savoir_skill::convert::FieldOutcome;
use serde_json::{Value, json};

use super::InstallContext;
use crate::{error::CommandError, output};

/// New skills that are listed one by one.
const MAX_LISTED_SKILLS: usize = 10;

/// Prints plans.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) json: bool,
    /// Whether the plan was applied.
    pub(crate) done: bool,
}

impl Report {
    /// Prints the changes of plans, and `more` in JSON.
    pub(crate) fn print(
        self,
        context: &InstallContext,
        plans: &[&InstallPlan],
        mut more: serde_json::Map<String, Value>,
    ) -> Result<(), CommandError> {
        let changes = || plans.iter().flat_map(|plan| plan.changes());
        if self.json {
            let grown = plans.iter().flat_map(|plan| plan.added_capabilities());
            more.insert("done".into(), self.done.into());
            more.insert("changes".into(), changes().map(change).collect());
            more.insert("wants_more".into(), grown.map(growth).collect());
            return output::json(&more);
        }
        let nothing = plans.iter().all(|plan| plan.is_empty());
        let mut text = String::new();
        if !self.done && !nothing {
            text.push_str("nothing was changed; these changes would be made:\n");
        }
        let is_counted = new_skills(changes()).0 > MAX_LISTED_SKILLS;
        if is_counted {
            let (count, agents) = new_skills(changes());
            let _ = writeln!(text, "{count} new skills for {}", agents.join(", "));
        }
        let is_listed = |change: &&PlannedChange| {
            let is_new = matches!(change, PlannedChange::New { .. });
            !(is_faithful(change) || is_counted && is_new)
        };
        for change in changes().filter(is_listed) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}", output::sanitize(&context.short(&change.to_string())));
            losses(change, &mut text);
        }
        if changes().next().is_none() {
            text.push_str(&changed_files_line(plans));
        }
        output::text(&text)
    }
}

/// Which files change, if no skill does.
fn changed_files_line(plans: &[&InstallPlan]) -> String {
    let files: BTreeSet<&str> = plans.iter().flat_map(|plan| plan.changed_files()).collect();
    let files: Vec<&str> = files.into_iter().collect();
    match files.as_slice() {
        [] if plans.iter().all(|plan| plan.is_empty()) => "nothing to do\n".to_owned(),
        [] => "every file of the project is unchanged\n".to_owned(),
        [file] => format!("{file} is updated\n"),
        [first @ .., last] => format!("{} and {last} are updated\n", first.join(", ")),
    }
}

/// The number of new skills, and their agents.
fn new_skills<'a>(changes: impl Iterator<Item = &'a PlannedChange>) -> (usize, Vec<&'a str>) {
    let (mut count, mut all) = (0, BTreeSet::new());
    for change in changes {
        if let PlannedChange::New { agents, .. } = change {
            count += 1;
            all.extend(agents.iter().map(String::as_str));
        }
    }
    (count, all.into_iter().collect())
}

/// Whether a change is a conversion without losses.
fn is_faithful(change: &PlannedChange) -> bool {
    let PlannedChange::Converted { report, .. } = change else { return false };
    !report
        .iter()
        .any(|field| matches!(field.how, FieldOutcome::Approximated | FieldOutcome::Dropped))
}

/// Appends the losses of a conversion.
fn losses(change: &PlannedChange, text: &mut String) {
    let PlannedChange::Converted { report, .. } = change else { return };
    for field in report
        .iter()
        .filter(|field| matches!(field.how, FieldOutcome::Approximated | FieldOutcome::Dropped))
    {
        let how = if field.how == FieldOutcome::Dropped { "is dropped" } else { "is approximated" };
        let why = if field.why.is_empty() { String::new() } else { format!(": {}", field.why) };
        let _ = writeln!(text, "  {}", output::sanitize(&format!("{} {how}{why}", field.field)));
    }
}

fn change(change: &PlannedChange) -> Value {
    let mut value = match change {
        PlannedChange::New { name, version, agents } => {
            json!({ "change": "new", "name": name, "version": version.to_string(), "agents": agents })
        }
        PlannedChange::Updated { name, from, to } => {
            json!({ "change": "updated", "name": name, "from": from.to_string(), "to": to.to_string() })
        }
        PlannedChange::Tier { name, from, to, by } => {
            json!({ "change": "tier", "name": name, "from": from, "to": to, "signer": by })
        }
        PlannedChange::AgentsAdded { name, agents } => {
            json!({ "change": "further", "name": name, "agents": agents })
        }
        PlannedChange::Removed { name, version } => {
            json!({ "change": "removed", "name": name, "version": version.to_string() })
        }
        PlannedChange::StillNeeded { name, by } => {
            json!({ "change": "still_needed", "name": name, "by": by })
        }
        PlannedChange::Orphan(folder) => json!({ "change": "orphan", "folder": folder }),
        PlannedChange::Adopted { name, version, agents, source } => json!({
            "change": "adopted",
            "name": name,
            "version": version.to_string(),
            "agents": agents,
            "source": source.to_string(),
        }),
        PlannedChange::Skipped { folder, why } => {
            json!({ "change": "skipped", "folder": folder, "code": why.code() })
        }
        PlannedChange::Repaired(folder) => json!({ "change": "repaired", "folder": folder }),
        PlannedChange::Replaced(folder) => json!({ "change": "replaced", "folder": folder }),
        PlannedChange::Restored(folder) => json!({ "change": "restored", "folder": folder }),
        PlannedChange::Written(folder) => json!({ "change": "installed", "folder": folder }),
        PlannedChange::Undone(folder) => json!({ "change": "removed", "folder": folder }),
        PlannedChange::SourceFolder(folder) => json!({ "change": "own", "folder": folder }),
        PlannedChange::EditsLeft(folder) => json!({ "change": "left", "folder": folder }),
        PlannedChange::Merged { folder, file } => {
            json!({ "change": "merged", "folder": folder, "file": file })
        }
        PlannedChange::Conflict { folder, file, places } => {
            json!({ "change": "conflict", "folder": folder, "file": file, "places": places })
        }
        PlannedChange::EditsKept { folder, file } => {
            json!({ "change": "kept", "folder": folder, "file": file })
        }
        PlannedChange::Converted { name, agent, report } => {
            json!({ "change": "converted", "name": name, "agent": agent, "report": report })
        }
    };
    value["text"] = change.to_string().into();
    value
}

fn growth(growth: &AddedCapability) -> Value {
    let (kind, word) = match &growth.capability {
        Capability::Permission(permission) => ("permission", permission.to_string()),
        Capability::Tool(tool) => ("tool", tool.clone()),
    };
    json!({
        "name": growth.skill,
        "from": growth.from.to_string(),
        "to": growth.to.to_string(),
        "kind": kind,
        "accept": word,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repaired_folder_has_the_change_repaired() {
        let value = change(&PlannedChange::Repaired("pdf".into()));
        assert_eq!((&value["change"], &value["folder"]), (&json!("repaired"), &json!("pdf")));
    }
}
