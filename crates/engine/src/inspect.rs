//! Collects everything that a skill asks for into one approval request.

use savoir_sandbox::{FileUse, ProgramFiles};
use savoir_skill::{
    Skill,
    command::CommandTemplate,
    permission::{Domain, Level, Permission},
    skill::{Requirements, Runner, Tool},
};

use crate::{
    approval::{ExtraGrants, Program, Request, ToolPreview},
    grant, limits,
    loaded_skill::LoadedSkill,
    python::host::is_python_handler,
    run::{packages, script},
    run_environment::RunEnvironment,
    structured::fences,
};

/// Collects everything that a skill asks for. The result does not depend on the tool, so that one
/// approval covers all tools.
pub fn inspect(
    loaded_skill: &LoadedSkill,
    run_env: &RunEnvironment,
    extra: &ExtraGrants,
) -> Request {
    let skill = &loaded_skill.skill;
    Request {
        skill: skill.name.clone(),
        version: skill.version.clone(),
        description: skill.truncated_description().to_owned(),
        path: loaded_skill.path().to_owned(),
        dialect: skill.dialect.id().to_owned(),
        tool: None,
        command: Vec::new(),
        tools: skill.tools.iter().map(preview).collect(),
        programs: programs(loaded_skill, extra),
        permissions: skill.permissions.clone(),
        implicit_permissions: implicit_permissions(loaded_skill, run_env),
        implicit_elsewhere: grant::describe_implicit_elsewhere(skill, run_env),
        implied_programs: implied_programs(skill),
        packages: packages::names(loaded_skill),
        needs: needs(skill),
        extra: extra.clone(),
        digest: loaded_skill.digest.clone(),
        files: loaded_skill.files.clone(),
        secrets: secrets(loaded_skill, run_env, extra),
        trust: loaded_skill.trust,
        tier: loaded_skill.tier,
        signed: loaded_skill.signers.signed(),
        uncovered: loaded_skill.signers.uncovered.clone(),
        read_only: skill.policy.read_only.unwrap_or(false),
        always_ask: skill.policy.always_ask.unwrap_or(false),
    }
}

/// The permissions that a skill gets without declaring them: those of its dialect, and the variables
/// that it requires. These may be secrets, so the question lists their names.
fn implicit_permissions(loaded_skill: &LoadedSkill, run_env: &RunEnvironment) -> Vec<Permission> {
    let LoadedSkill { skill, .. } = loaded_skill;
    let required = skill.requirements.env_vars.iter().map(|name| Permission {
        domain: Domain::Env,
        level: Level::Read,
        scope: Some(name.clone()),
    });
    let declared = |one: &Permission| skill.permissions.iter().any(|known| known.covers(one));
    let required = required.filter(|one| !declared(one));
    grant::implicit_permissions(skill, run_env).into_iter().chain(required).collect()
}

/// Names of stored secrets that it would get.
fn secrets(
    loaded_skill: &LoadedSkill,
    run_env: &RunEnvironment,
    extra: &ExtraGrants,
) -> Vec<String> {
    let LoadedSkill { skill, .. } = loaded_skill;
    let of_env = skill.permissions.iter().filter(|entry| entry.domain == Domain::Env);
    let declared = of_env.filter_map(|entry| entry.scope.as_ref());
    let names = declared.chain(&skill.requirements.env_vars).chain(&extra.env);
    let mut names: Vec<String> =
        names.filter(|name| run_env.secret(name, loaded_skill.path()).is_some()).cloned().collect();
    names.sort();
    names.dedup();
    names
}

/// The programs of the machine that a skill runs without declaring them. Its own files are not
/// included, because its signature covers them.
fn implied_programs(skill: &Skill) -> Vec<Permission> {
    let of_tools = skill.tools.iter().filter_map(|tool| match &tool.runner {
        Runner::Command(command) => Some(&command.program),
        Runner::Python { .. } | Runner::Handler { .. } => None,
    });
    let required = skill.requirements.programs.iter();
    let required = required.filter(|_| skill.dialect.running().requirements_grant);
    let mut names: Vec<&String> = of_tools.chain(required).collect();
    names.retain(|name| !name.contains('/'));
    names.sort();
    names.dedup();
    let shell = |name: &String| Permission {
        domain: Domain::Shell,
        level: Level::Execute,
        scope: Some(name.clone()),
    };
    names.into_iter().map(shell).collect()
}

/// The requirements of the skill on the machine and on the model that calls it.
fn needs(skill: &Skill) -> Vec<String> {
    let Requirements { python, model, context, hardware, os, .. } = &skill.requirements;
    let mut needs = Vec::new();
    needs.extend(python.as_ref().map(|range| format!("Python {range}")));
    needs.extend(model.as_ref().map(|size| format!("a model of {size} parameters")));
    needs.extend(context.as_ref().map(|size| format!("a context of {size} tokens")));
    needs.extend(hardware.as_ref().map(|hardware| format!("hardware {hardware}")));
    needs.extend((!os.is_empty()).then(|| format!("one of these systems: {}", os.join(", "))));
    let unused = packages::unused_node_packages(skill);
    needs.extend((!unused.is_empty()).then(|| {
        format!(
            "npm packages that are not installed, because its tools may not run node: {}",
            unused.join(", ")
        )
    }));
    needs
}

/// `NAME=value` before a program, as written.
fn assignments(command: &CommandTemplate) -> impl Iterator<Item = String> {
    command.environment.iter().map(|(name, value)| format!("{name}={}", value.text()))
}

fn preview(tool: &Tool) -> ToolPreview {
    let command = match &tool.runner {
        Runner::Command(command) => assignments(command)
            .chain(std::iter::once(command.program.clone()))
            .chain(command.args.iter().map(|argument| argument.text().to_owned()))
            .collect(),
        Runner::Python { .. } | Runner::Handler { .. } => Vec::new(),
    };
    ToolPreview { tool: tool.name.clone(), command }
}

/// The programs of all tools and those that are granted, as far as they are found.
fn programs(loaded_skill: &LoadedSkill, extra: &ExtraGrants) -> Vec<Program> {
    let skill = &loaded_skill.skill;
    let mut names: Vec<String> = skill.tools.iter().map(program_name).collect();
    names.extend(grant::granted_names(&skill.permissions));
    names.extend(skill.requirements.programs.iter().chain(&extra.programs).cloned());
    if skill.tools.is_empty() {
        names.extend(fences(&skill.body, None).iter().map(|fence| fence.interpreter.to_owned()));
        // Any of its scripts can be run, each with the interpreter that it names.
        names.extend(
            skill.resources.iter().map(|path| format!("./{path}")).take(limits::MAX_SCRIPTS),
        );
    }
    names.sort();
    names.dedup();
    let found = names.iter().filter_map(|name| script::start(loaded_skill, name).ok());
    with_interpreters(found.map(|start| start.program).collect())
}

/// Adds the interpreters that the first lines of scripts name, so that the question shows them, too.
fn with_interpreters(mut programs: Vec<Program>) -> Vec<Program> {
    let paths: Vec<_> = programs.iter().map(|program| program.path.clone()).collect();
    let closures =
        paths.iter().filter_map(|path| ProgramFiles::of(std::slice::from_ref(path)).ok());
    for program_files in closures {
        let interpreters = program_files.files().filter(|(_, kind)| *kind == FileUse::Interpreter);
        programs.extend(interpreters.filter_map(|(path, _)| grant::program_at(path).ok()));
    }
    programs.sort();
    programs.dedup();
    programs
}

fn program_name(tool: &Tool) -> String {
    match &tool.runner {
        Runner::Command(command) => command.program.clone(),
        Runner::Handler { path } if !is_python_handler(path) => format!("./{path}"),
        Runner::Python { .. } | Runner::Handler { .. } => "python3".to_owned(),
    }
}
