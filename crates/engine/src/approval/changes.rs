//! Describes what changed in a skill since it was approved.

use std::collections::{BTreeMap, BTreeSet};

use super::{Approval, ExtraGrants, Program, Request, permission_phrases, printable};

/// Maximum number of changes of one kind that are listed. A malicious skill can have thousands; the
/// question lists all its permissions anyway.
const MAX_CHANGES: usize = 6;

/// Lists every difference in short sentences, changed files first.
pub(super) fn changes(request: &Request, approval: &Approval) -> Vec<String> {
    let mut found = Vec::new();
    if approval.path != request.path {
        let path_text = printable(&approval.path.to_string_lossy());
        found.push(format!("the answer that was kept is for another place: {path_text}"));
    }
    if approval.digest != request.digest {
        found.push(files(&request.files, &approval.files));
    }
    permissions(request, approval, &mut found);
    extra(&request.extra, &approval.extra, &mut found);
    let mut of_programs = Vec::new();
    programs(&request.programs, &approval.programs, &mut of_programs);
    found.extend(limit_list(of_programs, "programs that changed"));
    if found.is_empty() {
        found.push("the answer that was kept is of another format".to_owned());
    }
    found
}

fn limit_list(mut found: Vec<String>, what: &str) -> Vec<String> {
    if found.len() > MAX_CHANGES {
        let more = found.len() - MAX_CHANGES;
        found.truncate(MAX_CHANGES);
        found.push(format!("and {more} more {what}"));
    }
    found
}

/// Describes which files changed, if the approval lists them.
fn files(now: &BTreeMap<String, String>, then: &BTreeMap<String, String>) -> String {
    let mut names = Vec::new();
    for (path, digest) in now {
        match then.get(path) {
            None => names.push(format!("{} (new)", printable(path))),
            Some(known) if known != digest => names.push(printable(path)),
            Some(_) => {}
        }
    }
    let gone = then.keys().filter(|path| !now.contains_key(*path));
    names.extend(gone.map(|path| format!("{} (removed)", printable(path))));
    if now.is_empty() || then.is_empty() || names.is_empty() {
        return "SKILL.md or a file of the skill changed".to_owned();
    }
    let what = if names.len() == 1 { "a file of the skill" } else { "files of the skill" };
    format!("{what} changed: {}", limit_list(names, "files").join(", "))
}

fn permissions(request: &Request, approval: &Approval, found: &mut Vec<String>) {
    let now: BTreeSet<_> = request.permissions.iter().collect();
    let then: BTreeSet<_> = approval.permissions.iter().collect();
    let mut new: Vec<_> = now.difference(&then).collect();
    // The most severe permissions come first, so that the limit never cuts them off.
    new.sort_by_key(|entry| {
        permission_phrases::permission(entry, &request.secrets).first().map(|p| p.weight)
    });
    let wanted = new.into_iter().map(|entry| printable(&entry.to_string()));
    let wanted = wanted.map(|entry| format!("new permission: {entry}")).collect();
    found.extend(limit_list(wanted, "new permissions, all of them below"));
    let gone = then.difference(&now).map(|entry| printable(&entry.to_string()));
    let gone = gone.map(|entry| format!("no longer wants: {entry}")).collect();
    found.extend(limit_list(gone, "that it no longer wants"));
}

fn programs(now: &[Program], then: &[Program], found: &mut Vec<String>) {
    for program in now {
        let (name, path) = (printable(&program.name), printable(&program.path.to_string_lossy()));
        match then.iter().find(|known| known.name == program.name) {
            None => found.push(format!("runs another program: {name}, which is {path}")),
            Some(known) if known.path != program.path => {
                let old = printable(&known.path.to_string_lossy());
                found.push(format!("{name} is now another file: {path}, it was {old}"));
            }
            Some(known) if known.sha256 != program.sha256 => {
                found.push(format!("the content of {name} changed: {path}"));
            }
            Some(_) => {}
        }
    }
    for program in then {
        if !now.iter().any(|known| known.name == program.name) {
            found.push(format!("no longer runs, or no longer finds: {}", printable(&program.name)));
        }
    }
}

fn extra(now: &ExtraGrants, then: &ExtraGrants, found: &mut Vec<String>) {
    for ((added, now), (_, then)) in now.lists().into_iter().zip(then.lists()) {
        for entry in now.iter().filter(|entry| !then.contains(entry)) {
            found.push(format!("you add: {} {}", added.option(), printable(entry)));
        }
        for entry in then.iter().filter(|entry| !now.contains(entry)) {
            found.push(format!("you remove: {} {}", added.option(), printable(entry)));
        }
    }
}
