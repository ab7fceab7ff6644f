//! Tests of vetting whole packages with the sandbox and the Python of this machine.

mod detonation;
mod examples;
mod hostile;
mod scanners;

use std::{env, path::Path, time::Duration};

use savoir_engine::python::{environment::variables, version::python_version};
use savoir_package::{File, Tree};
use savoir_registry::vetting::{
    Audit, Detonation, Finding, Limits, Options, Vetting, VettingReport,
};
use savoir_sandbox::SandboxSupport;

/// Whether tools can be run on this machine; prints a note if not.
fn can_detonate() -> bool {
    let support = SandboxSupport::detect();
    let held = support.sandbox.is_available()
        && support.proxy.is_available()
        && support.watch.is_available();
    if !held {
        eprintln!("note: this machine holds no sandbox, so this test checks nothing here");
    }
    held && has_python()
}

fn has_python() -> bool {
    let found = python_version(Path::new("python3"), &variables(env::vars_os())).is_ok();
    if !found {
        eprintln!("note: there is no python3, so this test checks nothing here");
    }
    found
}

/// Options with the detonation only, so that findings of other engines do not interfere.
fn options() -> Options {
    let limits =
        Limits { call: Duration::from_secs(3), skill: Duration::from_secs(9), ..Limits::default() };
    Options { detonation: Detonation::On, audit: Audit::Off, limits, ..Options::default() }
}

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        let executable = text.starts_with("#!");
        let file = File { bytes: text.as_bytes().to_vec(), executable };
        tree.add((*path).to_owned(), file).expect("a path of a skill");
    }
    tree
}

/// Creates a GAIA skill with one tool `look(query)` in this module.
fn gaia(permissions: &[&str], more: &str, module: &str) -> Tree {
    let permissions: Vec<String> =
        permissions.iter().map(|permission| format!("  - {permission}\n")).collect();
    let permissions = permissions.concat();
    let permissions =
        if permissions.is_empty() { "  - network:none\n".into() } else { permissions };
    let text = format!(
        "---\nname: demo\nversion: 1.0.0\ndescription: Looks something up. Use for tests.\n\
         author: Sam\nlicense: MIT\npermissions:\n{permissions}{more}tools:\n  - name: look\n    \
         description: Look something up\n    parameters:\n      query: {{type: string, required: true}}\n\
         security_tier: experimental\n---\n\n# Demo\n"
    );
    let module = format!("from gaia.agents.base.tools import tool\n{module}");
    tree(&[("SKILL.md", &text), ("tools.py", &module)])
}

/// Creates a module with this body of the tool.
fn look(body: &str) -> String {
    let body: Vec<String> = body.lines().map(|line| format!("    {line}\n")).collect();
    let body = body.concat();
    format!(
        "@tool\ndef look(query: str) -> str:\n    \"\"\"Look something up.\"\"\"\n{body}    return query\n"
    )
}

fn vet(tree: &Tree) -> VettingReport {
    Vetting::detect(options()).vet_here(tree)
}

/// Returns the findings of the detonation.
fn detonated(vetted: &VettingReport) -> Vec<&Finding> {
    vetted.findings.iter().filter(|one| one.engine == "detonation").collect()
}

fn rules(vetted: &VettingReport) -> Vec<&str> {
    let mut rules: Vec<&str> = detonated(vetted).iter().map(|one| one.rule.as_str()).collect();
    rules.dedup();
    rules
}
