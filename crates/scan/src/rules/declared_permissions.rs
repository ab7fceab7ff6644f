//! Rules that compare what the code does with what the skill declares.

use savoir_skill::{
    Span,
    dialect::DefaultFileAccess,
    permission::{Domain, Level, Permission},
};

use crate::{
    Confidence, Severity,
    action::Action,
    context::{Context, FindingDraft},
    fragment::{Role, TextFragment},
    host::{HostReputation, host_of_url, reputation},
    rule::rule,
};

rule! {
    /// The code connects to a host that the skill does not declare.
    ///
    /// ## Why
    ///
    /// The user agrees only to what the skill declares. A skill that uses more is either careless
    /// or malicious.
    ///
    /// ## Fix
    ///
    /// Declare the host, or do not use it.
    ///
    /// ## Bad
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - filesystem:read:./tables/**
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````python file=tools.py
    /// import requests
    /// def show():
    ///     return requests.get("https://api.example.org/tables").text
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - network:read:api.example.org
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````python file=tools.py
    /// import requests
    /// def show():
    ///     return requests.get("https://api.example.org/tables").text
    /// ````
    UNDECLARED_NETWORK = "undeclared-network", High, run undeclared_network
}

/// Returns the declared permissions, if the dialect grants nothing by default.
fn declared_permissions(context: &Context<'_>) -> Option<Vec<Permission>> {
    let skill = &context.reading.as_ref()?.skill;
    (skill.dialect.running().files == DefaultFileAccess::Nothing).then(|| {
        let mut permissions = skill.permissions.clone();
        if skill.dialect.running().requirements_grant {
            let scope = Some(skill.requirements.programs.join(","));
            permissions.push(Permission { domain: Domain::Shell, level: Level::Execute, scope });
        }
        permissions
    })
}

/// Whether a fragment is a program of the skill, not an example in a text.
fn is_program(fragment: &TextFragment<'_>) -> bool {
    fragment.role == Role::Script && !fragment.is_shown_in_document
}

fn grants(declared: &[Permission], domain: Domain) -> impl Iterator<Item = &Permission> {
    declared.iter().filter(move |one| one.domain == domain && one.level != Level::None)
}

fn undeclared_network(context: &mut Context<'_>) {
    let Some(declared) = declared_permissions(context) else { return check_offline_claim(context) };
    context.for_each_action(&UNDECLARED_NETWORK, |fragment, action, _| {
        let Action::Connects { to, .. } = action else { return None };
        if !is_program(fragment) || reputation(to) == HostReputation::Local {
            return None;
        }
        let scoped = host_of_url(to).filter(|host| !host.contains(['{', '$']));
        let granted = grants(&declared, Domain::Network).any(|one| match &scoped {
            Some(host) => one.covers(&Permission {
                domain: Domain::Network,
                level: one.level,
                scope: Some(host.clone()),
            }),
            None => true,
        });
        let place = scoped.map_or_else(|| "a host".to_owned(), |host| format!("`{host}`"));
        (!granted).then(|| {
            FindingDraft::new(
                Severity::High,
                Confidence::High,
                format!("the code talks to {place}, which the skill does not declare"),
            )
        })
    });
}

/// Reports a skill that claims to work offline, in a dialect without permissions.
fn check_offline_claim(context: &mut Context<'_>) {
    let description = context
        .reading
        .as_ref()
        .map(|reading| reading.skill.description.to_lowercase())
        .unwrap_or_default();
    let claims = [
        "offline", "no network", "without network", "never leaves your", "no internet",
        "100% local", "fully local", "purely local", "entirely local",
    ];
    if !claims.iter().any(|claim| description.contains(claim)) {
        if super::privacy_claims::promises_local_data(context) {
            context.for_each_action(&UNDECLARED_NETWORK, |fragment, action, _| {
                is_program(fragment)
                    .then(|| super::privacy_claims::breaks_promise(action))
                    .flatten()
            });
        }
        return;
    }
    context.for_each_action(&UNDECLARED_NETWORK, |fragment, action, _| {
        let Action::Connects { to, .. } = action else { return None };
        (is_program(fragment) && reputation(to) != HostReputation::Local).then(|| {
            FindingDraft::new(
                Severity::High,
                Confidence::Medium,
                "the description claims that the skill works offline, but the code connects to a host",
            )
        })
    });
}

rule! {
    /// The code starts a program that the skill does not declare.
    ///
    /// ## Why
    ///
    /// The user agrees only to what the skill declares.
    ///
    /// ## Fix
    ///
    /// Declare it (`shell:execute:git`), or do not use it.
    ///
    /// ## Bad
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - filesystem:read:./tables/**
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````python file=tools.py
    /// import subprocess
    /// def show():
    ///     return subprocess.run(["git", "log"])
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - shell:execute:git
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````python file=tools.py
    /// import subprocess
    /// def show():
    ///     return subprocess.run(["git", "log"])
    /// ````
    UNDECLARED_PROGRAM = "undeclared-program", High, run undeclared_program
}

fn undeclared_program(context: &mut Context<'_>) {
    let Some(declared) = declared_permissions(context) else { return };
    context.for_each_action(&UNDECLARED_PROGRAM, |fragment, action, _| {
        let Action::StartsProgram(name) = action else { return None };
        // A shell script is started as a whole; what it uses is granted or missed when it runs.
        if !is_program(fragment)
            || fragment.depth == 0 && fragment.language == crate::fragment::Language::Shell
        {
            return None;
        }
        let wanted =
            Permission { domain: Domain::Shell, level: Level::Execute, scope: Some(name.clone()) };
        let granted = declared.iter().any(|one| one.covers(&wanted));
        (!granted).then(|| {
            FindingDraft::new(
                Severity::High,
                Confidence::Medium,
                format!("the code starts `{name}`, which the skill does not declare"),
            )
        })
    });
}

rule! {
    /// The code reads or writes files that the skill does not declare.
    ///
    /// ## Why
    ///
    /// The user agrees only to what the skill declares.
    ///
    /// ## Fix
    ///
    /// Declare the folder, or use only the folder of the skill.
    ///
    /// ## Bad
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - network:read:api.example.org
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````python file=tools.py
    /// def show():
    ///     return open("/var/lib/tables/a.csv").read()
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - filesystem:read:/var/lib/tables/**
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````python file=tools.py
    /// def show():
    ///     return open("/var/lib/tables/a.csv").read()
    /// ````
    UNDECLARED_FILES = "undeclared-files", Medium, run undeclared_files
}

fn undeclared_files(context: &mut Context<'_>) {
    let Some(declared) = declared_permissions(context) else { return };
    context.for_each_action(&UNDECLARED_FILES, |fragment, action, _| {
        let (path, level, verb) = match action {
            Action::ReadsFile(path) => (path, Level::Read, "reads"),
            Action::WritesFile { path, .. } => (path, Level::Write, "writes"),
            _ => return None,
        };
        // Only what lies outside for certain.
        let outside = path.starts_with('/') || path.starts_with("~/");
        if !is_program(fragment)
            || !outside
            || path.starts_with("/tmp")
            || path.contains(['{', '$'])
        {
            return None;
        }
        let wanted = Permission { domain: Domain::Filesystem, level, scope: Some(path.clone()) };
        let granted = declared.iter().any(|one| one.covers(&wanted));
        (!granted).then(|| {
            FindingDraft::new(
                Severity::Medium,
                Confidence::Medium,
                format!("the code {verb} `{path}`, which the skill does not declare"),
            )
        })
    });
}

rule! {
    /// The skill declares a permission that its code does not seem to need.
    ///
    /// ## Why
    ///
    /// The user must review every permission, and an attacker can use it.
    ///
    /// ## Fix
    ///
    /// Remove it.
    ///
    /// ## Bad
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - network:read:api.example.org
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````python file=tools.py
    /// def show():
    ///     return "nothing"
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown file=SKILL.md
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````python file=tools.py
    /// def show():
    ///     return "nothing"
    /// ````
    UNUSED_PERMISSION = "unused-permission", Low, run unused_permission
}

fn unused_permission(context: &mut Context<'_>) {
    let Some(declared) = declared_permissions(context) else { return };
    let code = context.fragments.iter().filter(|analyzed| is_program(&analyzed.fragment)).count();
    if code == 0 {
        return;
    }
    let any = |wanted: fn(&Action) -> bool| {
        let parts = context.fragments.iter().filter(|analyzed| is_program(&analyzed.fragment));
        parts.flat_map(|analyzed| &analyzed.actions.located).any(|seen| wanted(&seen.action))
    };
    let network = any(|action| {
        matches!(
            action,
            Action::Connects { .. }
                | Action::ExecutesCode(_)
                | Action::StartsProgram(_)
                | Action::InstallsPackage { .. }
        )
    });
    let shell = any(|action| matches!(action, Action::StartsProgram(_)));
    let mut unused: Vec<String> = Vec::new();
    for one in &declared {
        let used = match one.domain {
            Domain::Network => network,
            Domain::Shell => shell || one.scope.as_deref() == Some(""),
            _ => true,
        };
        if !used && one.level != Level::None {
            unused.push(one.to_string());
        }
    }
    context.for_each_fragment(&UNUSED_PERMISSION, |fragment| {
        if fragment.role != Role::Instructions || fragment.depth > 0 {
            return Vec::new();
        }
        let each = unused.iter().map(|one| {
            let at = fragment.text.find(one.as_str()).unwrap_or(0);
            let draft = FindingDraft::new(
                Severity::Low,
                Confidence::Medium,
                format!("no code seems to need `{one}`"),
            );
            (Span::new(at, at + one.len().min(fragment.text.len() - at)), draft)
        });
        each.collect()
    });
}
