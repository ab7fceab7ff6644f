//! Compares what tools were seen to use with what the skill declares.

use savoir_lint::Diagnostic;

use crate::{
    check::{Context, rule::rule},
    dialect::DefaultFileAccess,
    observed::{OBSERVED_FILE, ObservedPermissions},
    permission::{Domain, Level, Permission},
};

rule! {
    /// A recorded run of a tool used something that the skill does not declare.
    ///
    /// ## Why
    ///
    /// `savoir run --record` records what a tool opens and calls. Everything that is not declared
    /// is denied in normal runs, so the tool fails for everyone who installs it.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gaia with=tools.py
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
    /// ````json file=.savoir/observed.json
    /// {"version": 1, "tools": {"show": ["filesystem:read:./tables/**", "network:read:example.com"]}}
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gaia with=tools.py
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - filesystem:read:./tables/**
    ///   - network:read:example.com
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````json file=.savoir/observed.json
    /// {"version": 1, "tools": {"show": ["filesystem:read:./tables/**", "network:read:example.com"]}}
    /// ````
    PERMISSION_UNDECLARED = "permission-undeclared", Error, run compare_observed
}

rule! {
    /// A permission is declared that no recorded run used.
    ///
    /// ## Why
    ///
    /// The user must review every permission, and an attacker can use it. The recordings of
    /// `savoir run --record` cover every tool of the skill, and none of them used this permission.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gaia with=tools.py
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// author: ada
    /// license: MIT
    /// permissions:
    ///   - filesystem:read:./tables/**
    ///   - shell:execute:git
    /// tools:
    ///   - name: show
    ///     description: Show the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    ///
    /// ````json file=.savoir/observed.json
    /// {"version": 1, "tools": {"show": ["filesystem:read:./tables/**"]}}
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gaia with=tools.py
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
    /// ````json file=.savoir/observed.json
    /// {"version": 1, "tools": {"show": ["filesystem:read:./tables/**"]}}
    /// ````
    PERMISSION_UNUSED = "permission-unused", Warning
}

fn compare_observed(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    let Some(folder) = context.folder.filter(|folder| folder.has(OBSERVED_FILE)) else { return };
    let reading = context.reading;
    // A dialect that grants permissions by default needs no declaration.
    let running = reading.skill.dialect.running();
    if running.files != DefaultFileAccess::Nothing {
        return;
    }
    let document = &reading.document;
    let observed =
        folder.read(OBSERVED_FILE).ok().and_then(|bytes| ObservedPermissions::parse(&bytes).ok());
    let Some(observed) = observed else {
        let message = format!("{OBSERVED_FILE} cannot be read");
        let help = "remove it, or record it again: savoir run SKILL/TOOL --record";
        found.push(
            Diagnostic::error(PERMISSION_UNDECLARED.code, document.head_span(), message).help(help),
        );
        return;
    };
    let mut declared = reading.skill.permissions.clone();
    if running.requirements_grant {
        let scope = Some(reading.skill.requirements.programs.join(","));
        declared.push(Permission { domain: Domain::Shell, level: Level::Execute, scope });
    }
    let used = observed.all();
    for permission in &used {
        if !declared.iter().any(|one| one.covers(permission)) {
            let key = document.entries().iter().find(|entry| entry.key == "permissions");
            let span = key.map_or(document.head_span(), |entry| entry.key_span);
            let message = format!("a tool used `{permission}`, which the skill does not declare");
            found.push(
                Diagnostic::error(PERMISSION_UNDECLARED.code, span, message)
                    .help("declare it, or do without it"),
            );
        }
    }
    let seen_all =
        reading.skill.tools.iter().all(|tool| observed.tools.contains_key(tool.name.as_str()));
    if !seen_all {
        return;
    }
    for grant in document_grants(context) {
        let needed = grant
            .permissions
            .iter()
            .any(|one| is_silent(one) || used.iter().any(|seen| one.covers(seen)));
        if !needed {
            let message = format!("no tool was seen to use `{}`", grant.written);
            found.push(
                Diagnostic::warning(PERMISSION_UNUSED.code, grant.span, message).help("remove it"),
            );
        }
    }
}

fn document_grants(context: &Context<'_>) -> Vec<crate::dialect::Grant> {
    let reading = context.reading;
    reading.skill.dialect.language().grants(&reading.document)
}

/// Whether a recording cannot show a permission: variables, and permissions that grant nothing.
fn is_silent(permission: &Permission) -> bool {
    permission.domain == Domain::Env || permission.level == Level::None
}
