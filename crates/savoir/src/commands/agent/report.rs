//! The output of `savoir agent check`.

use std::{borrow::Cow, fmt::Write as _};

use savoir_package::{
    agent_file::{
        AgentFile, Assembly, AssemblyFinding, AssemblyMember, Constraint, FindingLevel, Grant,
        Model, Quantity, Role,
    },
    resolve::{Demand, Requester, RootRequest},
};
use savoir_skill::permission::Decision;
use serde_json::{Value, json};

use crate::output::{self, plural};

pub(super) fn json(agent: &AgentFile, assembly: &Assembly<'_>, model: &Model) -> Value {
    let composition = &assembly.composition;
    json!({
        "agent": {
            "file": agent.file,
            "name": agent.name,
            "version": composition.version.as_ref().map(ToString::to_string),
            "description": agent.description,
            "set": composition.set,
        },
        "skills": assembly.members.iter().map(member_json).collect::<Vec<_>>(),
        "permissions": assembly.grants,
        "model": {
            "name": model.name,
            "parameters": model.parameters,
            "context": model.context,
            "gpu_memory": model.gpu_memory,
            "npu": model.npu,
            "constraints": assembly.constraints,
        },
        "findings": assembly.findings.iter().map(finding_json).collect::<Vec<_>>(),
    })
}

fn member_json(member: &AssemblyMember<'_>) -> Value {
    let demands: Vec<Value> = member.demands.iter().map(demand_json).collect();
    let summary = member.offer.map(|offer| &offer.summary);
    json!({
        "name": member.name,
        "version": member.version.to_string(),
        "tier": member.tier,
        "claimed_tier": summary.and_then(|summary| summary.claimed),
        "role": member.role,
        "requested_by": demands,
        "found": member.offer.map(|offer| offer.way),
        "place": member.offer.map(|offer| &offer.place),
        "folder": member.offer.and_then(|offer| offer.folder.as_deref()),
        "integrity": member.offer.map(|offer| &offer.integrity),
        "dialect": summary.map(|summary| summary.dialect),
        "description": summary.map(|summary| &summary.description),
        "tools": member.tools.iter().map(|tool| json!({
            "name": tool.name,
            "qualified_name": format!("{}/{}", member.name, tool.name),
            "shown": tool.shown,
        })).collect::<Vec<_>>(),
        "permissions": summary.map(|summary| &summary.permissions),
        "instructions": member.instructions().map(|text| json!({
            "lines": text.lines().count(),
            "characters": text.chars().count(),
        })),
    })
}

fn demand_json(demand: &Demand) -> Value {
    let range = demand.range.to_string();
    match &demand.requester {
        Requester::Skill { name, version } => {
            json!({"skill": name, "version": version.to_string(), "range": range})
        }
        Requester::Root(RootRequest::AgentFile(file)) => json!({"file": file, "range": range}),
        Requester::Root(asker) => json!({"by": asker.to_string(), "range": range}),
    }
}

fn finding_json(found: &AssemblyFinding) -> Value {
    json!({
        "level": found.level,
        "code": found.code,
        "message": found.message,
        "place": found.place.as_ref().map(|place| json!({
            "file": place.file,
            "line": place.position.line,
            "column": place.position.column,
        })),
        "hints": found.hints,
    })
}

pub(super) fn text(agent: &AgentFile, assembly: &Assembly<'_>, model: &Model) -> String {
    let mut page = assembly.composition.to_string();
    if !assembly.members.is_empty() {
        let _ = write!(page, "\nskills, in install order\n{}", skills(assembly));
    }
    if !assembly.grants.is_empty() {
        let _ = write!(page, "\npermissions\n{}", grants(&assembly.grants));
    }
    if !assembly.constraints.is_empty() {
        let _ = write!(page, "\nrequirements, {}\n", model_text(model));
        page.push_str(&constraints(agent, &assembly.constraints));
    }
    if !assembly.findings.is_empty() {
        page.push('\n');
    }
    for found in &assembly.findings {
        page.push_str(&finding(agent, found));
    }
    let _ = writeln!(page, "\n{}", summary(assembly));
    page
}

fn skills(assembly: &Assembly<'_>) -> String {
    let rows: Vec<[Cow<'_, str>; 6]> = assembly
        .members
        .iter()
        .map(|member| {
            let place = member.offer.map_or("-", |offer| offer.place.as_str());
            [
                format!("  {}", output::cell(&member.name)).into(),
                member.version.to_string().into(),
                member.tier.as_str().into(),
                why(member).into(),
                output::cell(place),
                output::cell(&brings(member)).into_owned().into(),
            ]
        })
        .collect();
    output::table(["  NAME", "VERSION", "TIER", "WHY", "PATH", "PROVIDES"], &rows)
}

fn why(member: &AssemblyMember<'_>) -> String {
    match member.role {
        Role::Required => "required".to_owned(),
        Role::Optional => "optional".to_owned(),
        Role::Dependency => format!("for {}", member.needed_by().join(", ")),
    }
}

/// Describes the tools of a skill, by the names that the model sees, and the length of its
/// instructions.
fn brings(member: &AssemblyMember<'_>) -> String {
    let mut parts: Vec<String> = member.tools.iter().map(|tool| tool.shown.clone()).collect();
    if let Some(text) = member.instructions() {
        parts.push(format!("{} of instructions", plural(text.lines().count(), "line")));
    }
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

fn grants(grants: &[Grant]) -> String {
    let rows: Vec<[Cow<'_, str>; 3]> = grants
        .iter()
        .map(|grant| {
            let permission = grant.permission.to_string();
            [
                format!("  {}", output::cell(&permission)).into(),
                match grant.decision {
                    Decision::Auto => "granted".into(),
                    Decision::Prompt => "asks first".into(),
                    Decision::Sandboxed => "sandboxed, with limits".into(),
                    Decision::NotNeeded => "-".into(),
                },
                output::cell(&grant.skills.join(", ")).into_owned().into(),
            ]
        })
        .collect();
    output::table(["  PERMISSION", "DECISION", "SKILLS"], &rows)
}

/// A short description of the model.
fn model_text(model: &Model) -> String {
    let name = model.name.as_deref().unwrap_or("an unspecified model");
    let size = match model.parameters {
        Some(size) => format!(" with {} parameters", Quantity::Parameters.amount(size)),
        None => " of unknown size".to_owned(),
    };
    let context = match model.context {
        Some(tokens) => format!("a context of {}", Quantity::Context.amount(tokens)),
        None => "an unknown context".to_owned(),
    };
    format!("checked against {name}{size} and {context}")
}

fn constraints(agent: &AgentFile, constraints: &[Constraint]) -> String {
    let rows: Vec<[Cow<'_, str>; 4]> = constraints
        .iter()
        .map(|constraint| {
            let who = constraint.skill.as_deref().unwrap_or(&agent.name);
            [
                format!("  {}", constraint.status.as_str()).into(),
                constraint.quantity.to_string().into(),
                output::cell(&constraint.demand),
                output::cell(who),
            ]
        })
        .collect();
    output::table(["  STATUS", "WHAT", "AT LEAST", "FOR"], &rows)
}

/// Same layout as the findings of `savoir check`: place, level, message, then hints.
fn finding(agent: &AgentFile, found: &AssemblyFinding) -> String {
    let place = found.place.as_ref().map_or_else(|| agent.file.clone(), ToString::to_string);
    let message = found.message.replace('\n', "\n  ");
    let mut text = format!("{place}: {}[{}] {message}\n", found.level.as_str(), found.code);
    for hint in &found.hints {
        let _ = writeln!(text, "  hint: {hint}");
    }
    text
}

fn summary(assembly: &Assembly<'_>) -> String {
    let count =
        |level: FindingLevel| assembly.findings.iter().filter(|found| found.level == level).count();
    let (errors, warnings) = (count(FindingLevel::Error), count(FindingLevel::Warning));
    let verdict = if errors == 0 { "this agent can start" } else { "this agent cannot start" };
    let counts = match (errors, warnings) {
        (0, 0) => return verdict.to_owned(),
        (0, warnings) => plural(warnings, "warning"),
        (errors, 0) => plural(errors, "error"),
        (errors, warnings) => {
            format!("{}, {}", plural(errors, "error"), plural(warnings, "warning"))
        }
    };
    format!("{verdict}: {counts}")
}
