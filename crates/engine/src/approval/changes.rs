//! What is different from the skill that was approved.

use std::collections::BTreeSet;

use super::{Approval, Program, Request, Widening, shown};

/// Reasons that are shown; a hostile skill can have thousands.
const MOST: usize = 12;

/// Every difference in one short sentence each, the grave ones first.
pub(super) fn changes(request: &Request, kept: &Approval) -> Vec<String> {
    let mut found = Vec::new();
    if kept.path != request.path {
        let place = shown(&kept.path.to_string_lossy());
        found.push(format!("the answer that was kept is for another place: {place}"));
    }
    permissions(request, kept, &mut found);
    programs(&request.programs, &kept.programs, &mut found);
    extra(&request.extra, &kept.extra, &mut found);
    if kept.digest != request.digest {
        found.push("SKILL.md or a file of the skill changed".to_owned());
    }
    if found.is_empty() {
        found.push("the answer that was kept is of another format".to_owned());
    }
    if found.len() > MOST {
        let more = found.len() - MOST;
        found.truncate(MOST);
        found.push(format!("and {more} more changes"));
    }
    found
}

fn permissions(request: &Request, kept: &Approval, found: &mut Vec<String>) {
    let now: BTreeSet<_> = request.permissions.iter().collect();
    let then: BTreeSet<_> = kept.permissions.iter().collect();
    for permission in now.difference(&then) {
        found.push(format!("wants a new permission: {}", shown(&permission.to_string())));
    }
    for permission in then.difference(&now) {
        found.push(format!("no longer wants: {}", shown(&permission.to_string())));
    }
}

fn programs(now: &[Program], then: &[Program], found: &mut Vec<String>) {
    for program in now {
        let (name, path) = (shown(&program.name), shown(&program.path.to_string_lossy()));
        match then.iter().find(|known| known.name == program.name) {
            None => found.push(format!("runs another program: {name}, which is {path}")),
            Some(known) if known.path != program.path => {
                let old = shown(&known.path.to_string_lossy());
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
            found.push(format!("no longer runs, or no longer finds: {}", shown(&program.name)));
        }
    }
}

fn extra(now: &Widening, then: &Widening, found: &mut Vec<String>) {
    for ((added, now), (_, then)) in now.lists().into_iter().zip(then.lists()) {
        for entry in now.iter().filter(|entry| !then.contains(entry)) {
            found.push(format!("you add: {} {}", added.option(), shown(entry)));
        }
        for entry in then.iter().filter(|entry| !now.contains(entry)) {
            found.push(format!("you take back: {} {}", added.option(), shown(entry)));
        }
    }
}
