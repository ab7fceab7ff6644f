//! Describes a stored skill for people: what it may do, who reads it, what it costs.

use savoir_agent::preamble::hosts::{HOSTS, HostRules, SkillFiles, SkillVisibility};
use savoir_engine::approval::{PermissionLevel, describe_permission};
use savoir_flow::prompt;
use savoir_knowledge::chunk::estimate_tokens;
use savoir_package::Agent;
use savoir_skill::{
    Skill, Source,
    allowed_tools::ToolGrant,
    dialect::agent_flow::without_owner,
    permission::{Domain, Permission},
    read,
    skill::{Parameter, Runner},
};
use savoir_store::{Resource, ResourceEntry, SkillFacts};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::{
    skill_lookup::ParsedSkill,
    skill_scan::{self, FindingView},
};

/// The context of the models for which agents are simulated.
const CONTEXT_TOKENS: usize = 200_000;

/// What a skill may do, who reads it, what it costs and where it comes from.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Insight {
    dialect: &'static str,
    tokens: TokenCount,
    agents: Vec<AgentView>,
    permissions: Vec<PermissionView>,
    tools: Vec<ToolView>,
    /// Whether this server lets tools of skills run.
    can_run_tools: bool,
    files: Vec<FileView>,
    provenance: ProvenanceView,
    history: Vec<HistoryItem>,
    /// Placeholders `{{name}}` in the instructions that the author did not declare as inputs. A run
    /// fills them in like optional inputs.
    undeclared_inputs: Vec<String>,
    /// What the scan recommends: `allow`, `review` or `block`
    verdict: &'static str,
    /// What the scan found, the most severe first.
    findings: Vec<FindingView>,
}

/// Estimated tokens.
#[derive(Debug, Serialize, ToSchema)]
struct TokenCount {
    /// In every conversation of an agent that has the skill.
    description: usize,
    /// When an agent uses the skill.
    body: usize,
}

/// How an agent sees the skill.
#[derive(Debug, Serialize, ToSchema)]
struct AgentView {
    agent: &'static str,
    label: &'static str,
    /// Whether the agent shows the skill to its model.
    reads: bool,
    /// Whether the description is cut.
    cut: bool,
    note: Option<String>,
}

/// Something that the skill may do.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct PermissionView {
    pub(crate) permission: String,
    /// The permission as an English phrase.
    phrase: String,
    reason: String,
    /// `low`, `medium` or `high`
    level: &'static str,
}

/// A tool of the skill.
#[derive(Debug, Serialize, ToSchema)]
struct ToolView {
    name: String,
    description: String,
    /// The names of the parameters.
    inputs: Vec<String>,
    parameters: Vec<ParameterView>,
}

/// A parameter of a tool.
#[derive(Debug, Serialize, ToSchema)]
struct ParameterView {
    name: String,
    /// `string`, `integer`, `number`, `boolean`, `array` or `object`
    #[serde(rename = "type")]
    kind: &'static str,
    required: bool,
    description: String,
    default: Option<Value>,
}

impl From<&Parameter> for ParameterView {
    fn from(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name.clone(),
            kind: parameter.kind.as_str(),
            required: parameter.required,
            description: parameter.description.clone(),
            default: parameter.default.clone(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillFileItem)]
struct FileView {
    path: String,
    size: u64,
}

/// Where the skill comes from.
#[derive(Debug, Serialize, ToSchema)]
struct ProvenanceView {
    /// `authored`, `imported`, `integration` or `catalog`
    #[schema(value_type = String)]
    source: savoir_skill::dialect::personal_agent::Provenance,
    /// The id of the skill at its source.
    id: Option<String>,
    version: Option<String>,
    installed_at: String,
}

/// A change of the skill.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SkillHistoryItem)]
struct HistoryItem {
    at: String,
    change: &'static str,
}

/// Describes a skill and scans it. Takes time: call it on a blocking thread.
pub(crate) fn describe(
    kept: &ParsedSkill,
    facts: &SkillFacts,
    files: Vec<ResourceEntry>,
    resources: &[Resource],
    can_run_tools: bool,
) -> Insight {
    let text = without_owner(&kept.file.text);
    let reading = read(Source::new(text.clone()), None);
    let skill = kept.parsed_skill().unwrap_or(&reading.skill);
    let (created, updated) = (kept.file.created_at, kept.file.updated_at);
    let mut history = vec![HistoryItem { at: created.to_string(), change: "created" }];
    if updated > created {
        history.push(HistoryItem { at: updated.to_string(), change: "changed" });
    }
    let report = skill_scan::scan(&kept.file.text, resources);
    Insight {
        dialect: reading.skill.dialect.id(),
        tokens: TokenCount {
            description: estimate_tokens(&format!("{}: {}", kept.file.name(), skill.description)),
            body: estimate_tokens(&skill.body),
        },
        agents: HOSTS.iter().map(|host| agent_view(host, kept.file.name(), &text)).collect(),
        permissions: permissions(skill),
        tools: tools(skill),
        can_run_tools,
        files: files
            .into_iter()
            .map(|ResourceEntry { path, size }| FileView { path, size })
            .collect(),
        provenance: ProvenanceView {
            source: facts.source,
            id: facts.source_id.clone(),
            version: facts.source_version.clone(),
            installed_at: created.to_string(),
        },
        history,
        undeclared_inputs: undeclared_inputs(kept, facts),
        verdict: report.verdict.as_str(),
        findings: skill_scan::explain(&report),
    }
}

/// Placeholders in the instructions that a run fills in, and that are not declared as inputs.
pub(crate) fn undeclared_inputs(kept: &ParsedSkill, facts: &SkillFacts) -> Vec<String> {
    kept.for_run(facts.source)
        .map_or_else(|_| Vec::new(), |skill| prompt::undeclared_inputs(&skill))
}

fn agent_view(host: &HostRules, name: &str, text: &str) -> AgentView {
    let path = format!("{name}/SKILL.md");
    let files = SkillFiles { folder: name, path: &path, text, ..SkillFiles::default() };
    let simulation = host.simulate(vec![host.read(&files)], CONTEXT_TOKENS);
    let seen = simulation.skills.into_iter().next();
    AgentView {
        agent: host.agent,
        label: Agent::by_id(host.agent).map_or(host.agent, |agent| agent.title),
        reads: seen.as_ref().is_some_and(|seen| seen.visible),
        cut: seen.as_ref().is_some_and(SkillVisibility::is_shortened),
        note: seen.and_then(|seen| seen.why),
    }
}

pub(crate) fn permissions(skill: &Skill) -> Vec<PermissionView> {
    let mut views =
        describe_permissions(&skill.permissions, |permission| permission_reason(skill, permission));
    views.extend(skill.policy.allowed_tools.iter().flatten().map(describe_grant));
    views
}

/// Describes a tool of the agent that the skill may use, with its condition.
fn describe_grant(grant: &ToolGrant) -> PermissionView {
    let name = grant.display_name();
    let runs = ["run_command", "bash", "shell"].contains(&grant.normalized().as_str());
    let condition = grant.arguments.as_deref().map(str::trim).filter(|_| !grant.is_broken);
    let condition = condition.filter(|text| !matches!(*text, "" | "*" | ":*" | "**"));
    let only = condition.map_or_else(String::new, |text| match text.strip_suffix(":*") {
        Some(start) => format!(", only `{start} …`"),
        None => format!(", only `{text}`"),
    });
    PermissionView {
        phrase: format!("may use the tool {name} of the agent without asking{only}"),
        permission: condition.map_or_else(|| name.clone(), |text| format!("{name}({text})")),
        reason: "`allowed-tools` lists it".to_owned(),
        level: if runs { "high" } else { "low" },
    }
}

/// Describes permissions in English, each with a reason.
pub(crate) fn describe_permissions<'a>(
    permissions: impl IntoIterator<Item = &'a Permission>,
    reason: impl Fn(&Permission) -> String,
) -> Vec<PermissionView> {
    let describe = |permission: &'a Permission| {
        let reason = reason(permission);
        describe_permission(permission).into_iter().map(move |described| PermissionView {
            permission: permission.to_string(),
            phrase: described.phrase,
            reason: reason.clone(),
            level: match described.level {
                PermissionLevel::Low => "low",
                PermissionLevel::Medium => "medium",
                PermissionLevel::High => "high",
            },
        })
    };
    permissions.into_iter().flat_map(describe).collect()
}

/// Why the skill needs a permission: a tool that uses it, else the declaration.
fn permission_reason(skill: &Skill, permission: &Permission) -> String {
    let programs = permission.scope.as_deref().unwrap_or_default();
    let mut names = programs.split(',').map(str::trim);
    let tool = skill.tools.iter().find(|tool| match &tool.runner {
        Runner::Command(command) => {
            permission.domain == Domain::Shell && names.any(|name| name == command.program)
        }
        _ => false,
    });
    match tool {
        Some(tool) => format!("the tool `{}` runs it", tool.name),
        None => "SKILL.md declares it".to_owned(),
    }
}

fn tools(skill: &Skill) -> Vec<ToolView> {
    let tools = skill.tools.iter().map(|tool| ToolView {
        name: tool.name.clone(),
        description: tool.description.clone(),
        inputs: tool.parameters.iter().map(|parameter| parameter.name.clone()).collect(),
        parameters: tool.parameters.iter().map(Into::into).collect(),
    });
    tools.collect()
}
