//! Assembles an agent from its skills.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use savoir_lint::words;
use savoir_skill::permission::{Decision, Permission, Tier, decision};
use semver::Version;
use serde::Serialize;

use super::{
    AgentFile, AgentSkill, Composition, Constraint, LocalSkill, LocalSkills, Model, Quantity,
    SetError, Status, UnusableSkill, model::ModelChecker,
};
use crate::{
    FilePosition,
    resolve::{
        Chosen, CombinedIndex, Demand, Necessity, Request, Requester, Resolution, ResolveError,
        Root, resolve,
    },
};

/// The inputs of [`assemble`].
#[derive(Clone, Copy, Debug)]
pub struct AssemblyRequest<'a> {
    pub agent: &'a AgentFile,
    /// The set of skills, if not the default one.
    pub set: Option<&'a str>,
    /// The skills that are available locally.
    pub offers: &'a LocalSkills,
    /// Further skills that could be fetched. Only their versions and dependencies are known.
    pub others: &'a CombinedIndex<'a>,
    /// The model that the agent is to run on.
    pub model: &'a Model,
}

/// An assembled agent. Skills that are missing or unusable are reported and left out.
#[derive(Clone, Debug)]
pub struct Assembly<'a> {
    /// The requested skills, and the versions that were chosen.
    pub composition: Composition,
    /// The chosen skills in install order.
    pub members: Vec<AssemblyMember<'a>>,
    /// The permissions of all skills together.
    pub grants: Vec<Grant>,
    /// The requirements on the model.
    pub constraints: Vec<Constraint>,
    /// The problems.
    pub findings: Vec<AssemblyFinding>,
}

/// Why a skill is part of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The agent requires it.
    Required,
    /// The agent works without it.
    Optional,
    /// Another skill depends on it.
    Dependency,
}

/// A chosen skill.
#[derive(Clone, Debug)]
pub struct AssemblyMember<'a> {
    pub name: String,
    pub version: Version,
    pub tier: Tier,
    pub role: Role,
    /// All requirements that other skills or the agent have for it.
    pub demands: Vec<Demand>,
    /// Its files; `None` if it would have to be fetched.
    pub offer: Option<&'a LocalSkill>,
    pub tools: Vec<ToolName>,
}

/// A tool of a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ToolName {
    pub name: String,
    /// The name that the model sees: with the skill's name in front if two skills have a tool of
    /// this name.
    pub shown: String,
}

/// A permission of the skills of an agent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Grant {
    pub permission: Permission,
    /// What the tier of the skills decides about it.
    pub decision: Decision,
    /// The skills that request it.
    pub skills: Vec<String>,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingLevel {
    /// Information.
    Note,
    /// The agent starts, but may lack something.
    Warning,
    /// The agent does not start, or does not work.
    Error,
}

impl FindingLevel {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A problem with an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssemblyFinding {
    pub level: FindingLevel,
    /// A stable code for programs.
    pub code: &'static str,
    pub message: String,
    /// The position in the agent file, if the problem is caused there.
    pub place: Option<FilePosition>,
    /// Suggestions to solve the problem.
    pub hints: Vec<String>,
}

impl AssemblyFinding {
    fn new(level: FindingLevel, code: &'static str, message: String) -> Self {
        Self { level, code, message, place: None, hints: Vec::new() }
    }

    fn at(mut self, skill: Option<&AgentSkill>) -> Self {
        self.place = skill.map(|skill| skill.place.clone());
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Assembles an agent. Problems are returned as findings, and the rest is assembled nevertheless.
pub fn assemble<'a>(request: &AssemblyRequest<'a>) -> Result<Assembly<'a>, SetError> {
    let composition = request.agent.composition(request.set)?;
    let roots = request.agent.roots(request.set)?;
    let mut builder = Builder { request, findings: Vec::new() };
    builder.report_warnings();
    let resolution = builder.resolve(&roots);
    Ok(builder.build(composition, resolution))
}

struct Builder<'w, 'a> {
    request: &'w AssemblyRequest<'a>,
    findings: Vec<AssemblyFinding>,
}

impl<'a> Builder<'_, 'a> {
    /// Reports the warnings of the file reader.
    fn report_warnings(&mut self) {
        for content_error in &self.request.agent.warnings {
            let mut found = AssemblyFinding::new(
                FindingLevel::Warning,
                "unknown_key",
                content_error.message.clone(),
            );
            found.place = Some(content_error.place.clone());
            found.hints.extend(content_error.hint.clone());
            self.findings.push(found);
        }
    }

    /// Resolves the versions. Required skills that are not available at all are reported one by one
    /// and left out, so that the rest can still be checked.
    fn resolve(&mut self, roots: &[Root]) -> Resolution {
        let index = CombinedIndex::new(vec![self.request.offers, self.request.others]);
        let ask = |roots: Vec<Root>| resolve(&index, &Request { roots, ..Request::default() });
        let mut answer = ask(roots.to_vec());
        if answer.is_err() {
            let mut rest = Vec::new();
            for root in roots {
                match ask(vec![root.clone()]) {
                    Err(why) if root.need == Necessity::Required => self.report_missing(root, &why),
                    _ => rest.push(root.clone()),
                }
            }
            if rest.len() < roots.len() {
                answer = ask(rest);
            }
        }
        match answer {
            Ok(resolution) => {
                self.report_skipped(&resolution);
                resolution
            }
            Err(why) => {
                self.report_conflict(&why);
                Resolution::default()
            }
        }
    }

    /// Reports a required skill that is not available.
    fn report_missing(&mut self, root: &Root, why: &ResolveError) {
        let found = AssemblyFinding::new(FindingLevel::Error, why.code(), why.to_string());
        self.leave_out_root(root, why, found);
    }

    /// Reports required skills that are available, but not together.
    fn report_conflict(&mut self, why: &ResolveError) {
        let text = why.to_string();
        let found = AssemblyFinding::new(FindingLevel::Error, why.code(), text.clone());
        let place = self.skills().find(|skill| mentions(&text, &skill.skill.name));
        let found = self.with_explanation(found, why);
        self.findings.push(found.at(place));
    }

    fn report_skipped(&mut self, resolution: &Resolution) {
        for skipped in &resolution.skipped {
            let name = &skipped.root.skill.name;
            let message = format!("`{name}` is optional and left out: {}", skipped.why);
            let found = AssemblyFinding::new(FindingLevel::Warning, skipped.why.code(), message);
            self.leave_out_root(&skipped.root, &skipped.why, found);
        }
    }

    /// Leaves out a requested skill. If a local copy is unusable, reports only that.
    fn leave_out_root(&mut self, root: &Root, why: &ResolveError, found: AssemblyFinding) {
        let (name, level, text) = (&root.skill.name, found.level, why.to_string());
        let place = self.find_requested(name);
        let is_unknown = matches!(why, ResolveError::Unknown(_));
        if !is_unknown || self.request.offers.unusable().all(|unusable| unusable.name != *name) {
            self.findings.push(self.with_explanation(found, why).at(place));
        }
        for unusable in self.request.offers.unusable().filter(|other| mentions(&text, &other.name))
        {
            self.findings.push(unusable_finding(unusable, level).at(place));
        }
    }

    fn with_explanation(&self, mut found: AssemblyFinding, why: &ResolveError) -> AssemblyFinding {
        found.hints.extend(why.hints().iter().cloned());
        match why {
            ResolveError::Unknown(_) => found.hint(format!(
                "install what is missing: savoir agent install {}; or name a folder that has it: \
                 --skills PATH",
                self.request.agent.file
            )),
            _ => found,
        }
    }

    /// Returns the requested skills, with those of all sets.
    fn skills(&self) -> impl Iterator<Item = &'a AgentSkill> {
        let agent = self.request.agent;
        agent.skills.iter().chain(agent.sets.values().flatten())
    }

    /// Returns where the agent file requests a skill; the active set comes first.
    fn find_requested(&self, name: &str) -> Option<&'a AgentSkill> {
        let agent = self.request.agent;
        let set = agent.active_set_name(self.request.set).ok().flatten();
        let set = set.and_then(|set| agent.sets.get(set)).map_or(&[][..], Vec::as_slice);
        agent.skills.iter().chain(set).find(|skill| skill.skill.name == name)
    }

    fn build(mut self, mut composition: Composition, resolution: Resolution) -> Assembly<'a> {
        composition.resolved(&resolution);
        let Resolution { mut chosen, order, .. } = resolution;
        let mut members: Vec<AssemblyMember<'a>> = order
            .into_iter()
            .filter_map(|name| chosen.remove(&name).map(|chosen| self.member(name, chosen)))
            .collect();
        self.name_tools(&mut members);
        for part in &mut composition.parts {
            let member = members.iter().find(|member| member.name == part.skill.name);
            let tools = member.into_iter().flat_map(|member| &member.tools);
            part.tools = tools.map(|tool| tool.shown.clone()).collect();
        }
        for member in &members {
            self.report_member(member);
        }
        let constraints = self.constraints(&members);
        let grants = collect_grants(&members);
        // The most severe findings come first; the sort is stable.
        self.findings.sort_by_key(|found| std::cmp::Reverse(found.level));
        Assembly { composition, members, grants, constraints, findings: self.findings }
    }

    fn member(&self, name: String, chosen: Chosen) -> AssemblyMember<'a> {
        let offer = self.request.offers.get(&name, &chosen.version);
        let role = match self.find_requested(&name).map(|skill| skill.need) {
            Some(Necessity::Required) => Role::Required,
            Some(Necessity::Optional) => Role::Optional,
            None => Role::Dependency,
        };
        let tools = offer.into_iter().flat_map(|offer| &offer.summary.reading.skill.tools);
        let tool = |name: &String| ToolName { name: name.clone(), shown: name.clone() };
        let tools = tools.map(|declared| tool(&declared.name)).collect();
        // A local copy may differ from the version in the index, so its own tier counts.
        let tier = offer.map_or(chosen.tier, |offer| offer.tier);
        let (version, demands) = (chosen.version, chosen.requested_by);
        AssemblyMember { name, version, tier, role, demands, offer, tools }
    }

    /// Adds the name of the skill to the names of tools that two skills share.
    fn name_tools(&mut self, members: &mut [AssemblyMember<'a>]) {
        let mut owners: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for member in members.iter() {
            for tool in &member.tools {
                owners.entry(tool.name.clone()).or_default().insert(member.name.clone());
            }
        }
        owners.retain(|_, skills| skills.len() > 1);
        for member in members {
            let shared = |tool: &&mut ToolName| owners.contains_key(&tool.name);
            for tool in member.tools.iter_mut().filter(shared) {
                tool.shown = format!("{}/{}", member.name, tool.name);
            }
        }
        for (tool, skills) in owners {
            let shown: Vec<String> = skills.iter().map(|skill| format!("{skill}/{tool}")).collect();
            let skills: Vec<String> = skills.iter().map(|skill| format!("`{skill}`")).collect();
            let message = format!("{} bring a tool `{tool}`", words::and(&skills));
            let found = AssemblyFinding::new(FindingLevel::Warning, "tool_clash", message);
            let hint = format!("the model sees them as {}", words::and(&shown));
            self.findings.push(found.hint(hint));
        }
    }

    /// Reports problems of a chosen skill.
    fn report_member(&mut self, member: &AssemblyMember<'a>) {
        let AssemblyMember { name, version, .. } = member;
        let place = self.find_requested(name);
        let Some(offer) = member.offer else {
            let message = format!("`{name}` {version} is not on this machine");
            let found = AssemblyFinding::new(FindingLevel::Note, "not_fetched", message).at(place);
            self.findings.push(found.hint(format!("savoir install {name}")));
            return;
        };
        if offer.tier == Tier::Experimental {
            let message = format!(
                "`{name}` {version} is experimental: installing the agent elsewhere asks for consent"
            );
            self.findings
                .push(AssemblyFinding::new(FindingLevel::Note, "experimental", message).at(place));
        }
        for unusable in self.request.offers.unusable().filter(|other| other.name == *name) {
            self.findings.push(unusable_finding(unusable, FindingLevel::Warning).at(place));
        }
        for other in self.request.offers.hidden(name, version) {
            let message = format!(
                "{} has other files of `{name}` {version}: those in {} are taken",
                other.place, offer.place
            );
            self.findings.push(AssemblyFinding::new(
                FindingLevel::Warning,
                "two_of_one_version",
                message,
            ));
        }
    }

    fn constraints(&mut self, members: &[AssemblyMember<'a>]) -> Vec<Constraint> {
        let AssemblyRequest { agent, model, .. } = *self.request;
        let file = Path::new(&agent.file).file_name().unwrap_or_default().to_string_lossy();
        let (constraints, unreadable) = (Vec::new(), Vec::new());
        let mut judge = ModelChecker { agent, file: &file, model, constraints, unreadable };
        judge.agent();
        for member in members {
            if let Some(offer) = member.offer {
                judge.skill(&member.name, &offer.summary.reading.skill.requirements);
            }
        }
        let ModelChecker { constraints, unreadable, .. } = judge;
        for (name, why) in unreadable {
            let message = format!("`{name}` has a requirement that cannot be read: {why}");
            let found =
                AssemblyFinding::new(FindingLevel::Warning, "unreadable_requirement", message);
            self.findings.push(found.at(self.find_requested(&name)));
        }
        for constraint in &constraints {
            self.findings.extend(constraint_finding(constraint, &file).map(|found| {
                found.at(constraint.skill.as_deref().and_then(|name| self.find_requested(name)))
            }));
        }
        constraints
    }
}

/// Whether a sentence mentions a skill.
fn mentions(sentence: &str, name: &str) -> bool {
    sentence.contains(&format!("`{name}`"))
}

fn unusable_finding(unusable: &UnusableSkill, level: FindingLevel) -> AssemblyFinding {
    let UnusableSkill { name, place, why } = unusable;
    let message = format!("`{name}` in {place} cannot be used: {why}");
    AssemblyFinding::new(level, "unusable_skill", message)
        .hint("fix it or remove it, or name another one: --skills PATH")
}

/// Returns the finding for a requirement on the model that is unmet or unknown.
fn constraint_finding(constraint: &Constraint, file: &str) -> Option<AssemblyFinding> {
    let Constraint { skill, quantity, demand, status, against, low } = constraint;
    let who = skill.as_ref().map_or_else(|| file.to_owned(), |name| format!("`{name}`"));
    let wants = match quantity {
        Quantity::Npu => format!("{who} needs an NPU"),
        _ => format!("{who} needs {quantity} {demand}"),
    };
    let against = against.as_deref().unwrap_or_default();
    match (status, low) {
        (Status::Unmet, _) => {
            let hint = match low {
                Some(low) => format!("raise {low} in {file} to {demand}"),
                None => "choose another model or machine, or other skills".to_owned(),
            };
            let message = format!("{wants}, and {against}");
            Some(AssemblyFinding::new(FindingLevel::Error, quantity.code(), message).hint(hint))
        }
        (Status::Met, Some(low)) => {
            let message = format!("{wants}, and {file} asks for {low} only");
            let hint = format!("raise {low} in {file} to {demand}: other models would not do");
            Some(AssemblyFinding::new(FindingLevel::Warning, "minimum_too_low", message).hint(hint))
        }
        (Status::Unknown, _) => {
            let message = format!("{wants}, and it is not known whether that is met");
            let found = AssemblyFinding::new(FindingLevel::Note, "not_known", message);
            Some(found.hint(format!("say it: {}", quantity.option())))
        }
        (Status::Met, None) => None,
    }
}

impl Quantity {
    /// A stable code for programs.
    fn code(self) -> &'static str {
        match self {
            Self::Parameters => "model_too_small",
            Self::Context => "context_too_small",
            Self::GpuMemory => "gpu_memory_too_small",
            Self::Npu => "no_npu",
        }
    }

    /// The command-line option that sets the quantity.
    fn option(self) -> &'static str {
        match self {
            Self::Parameters => "--model NAME",
            Self::Context => "--context TOKENS",
            Self::GpuMemory => "--gpu-memory SIZE",
            Self::Npu => "--npu yes",
        }
    }
}

/// Collects the permissions of all skills. A permission is listed twice if tiers decide
/// differently.
fn collect_grants(members: &[AssemblyMember<'_>]) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for member in members {
        let permissions = member.offer.into_iter().flat_map(|offer| &offer.summary.permissions);
        for permission in permissions {
            let decision = decision(member.tier, permission);
            if decision == Decision::NotNeeded {
                continue;
            }
            let known = grants
                .iter_mut()
                .find(|known| known.permission == *permission && known.decision == decision);
            match known {
                Some(known) if known.skills.contains(&member.name) => {}
                Some(known) => known.skills.push(member.name.clone()),
                None => {
                    let (permission, skills) = (permission.clone(), vec![member.name.clone()]);
                    grants.push(Grant { permission, decision, skills });
                }
            }
        }
    }
    grants.sort_by_cached_key(|grant| grant.permission.to_string());
    grants
}

impl AssemblyMember<'_> {
    /// Returns the instructions of the skill, if it has any and is available locally.
    pub fn instructions(&self) -> Option<&str> {
        let body = self.offer.map(|offer| offer.summary.reading.skill.body.trim());
        body.filter(|body| !body.is_empty())
    }

    /// Returns the skills that depend on it; empty if only the agent requests it.
    pub fn needed_by(&self) -> Vec<&str> {
        let names = self.demands.iter().filter_map(|demand| match &demand.requester {
            Requester::Skill { name, .. } => Some(name.as_str()),
            Requester::Root(_) => None,
        });
        names.collect()
    }
}

#[cfg(test)]
mod tests;
