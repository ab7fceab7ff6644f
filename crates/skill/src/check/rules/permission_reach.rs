//! Permissions that are too broad, prompt the user, have a wrong scope, or cannot be enforced by the
//! sandbox.

use savoir_lint::Diagnostic;

use crate::{
    check::{Context, rule::rule, rules::permissions::PERMISSION_SCOPE},
    dialect::Grant,
    permission::{Decision, Domain, Level, Permission, Tier, decision},
    variable_name::changes_programs,
};

rule! {
    /// A community skill asks for permissions that prompt at install.
    ///
    /// ## Why
    ///
    /// At the community tier the user must agree to every permission that can change things or
    /// read secrets. Each question drives users away, and users who always agree are not
    /// protected.
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
    ///   - filesystem:write:./out/**
    /// tools:
    ///   - name: save
    ///     description: Save the table
    /// security_tier: community
    /// ---
    /// # Demo
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
    /// security_tier: community
    /// ---
    /// # Demo
    /// ````
    TIER_PERMISSION = "tier-permission", Warning, run permissions
}

rule! {
    /// A permission has a form that the sandbox cannot enforce.
    ///
    /// ## Why
    ///
    /// A permission that cannot be enforced is rejected, not ignored: a skill that requests it
    /// does not run. Permissions for the screen, MCP servers and databases on the network are
    /// rejected by `approve` and `run`, so they are an error here; a database that is a file is
    /// granted like a file. The same applies to writing files that other programs run or obey, such
    /// as `~/.bashrc`, `~/.ssh` and `.git/hooks`. A pattern for writing is granted only in part: it
    /// covers the files that exist when the run starts, so the skill cannot create files.
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
    ///   - filesystem:write:./out/*.csv
    /// tools:
    ///   - name: save
    ///     description: Save the table
    /// security_tier: experimental
    /// ---
    /// # Demo
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
    ///   - filesystem:write:./out/**
    /// tools:
    ///   - name: save
    ///     description: Save the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    UNENFORCEABLE_PERMISSION = "unenforceable-permission", Warning
}

rule! {
    /// A permission covers everything of its kind.
    ///
    /// ## Why
    ///
    /// A skill that may write everywhere, talk to every host or run every program is not limited
    /// at all, and registries and users reject it.
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
    ///   - network:write
    /// tools:
    ///   - name: send
    ///     description: Send the table
    /// security_tier: experimental
    /// ---
    /// # Demo
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
    ///   - network:write:api.example.com
    /// tools:
    ///   - name: send
    ///     description: Send the table
    /// security_tier: experimental
    /// ---
    /// # Demo
    /// ````
    BROAD_PERMISSION = "broad-permission", Warning
}

/// Programs that run whatever they are given.
const INTERPRETERS: [&str; 17] = [
    "sh", "bash", "zsh", "fish", "dash", "python", "python3", "node", "deno", "bun", "perl",
    "ruby", "php", "env", "xargs", "find", "ssh",
];

/// One walk over the permissions for all three rules.
fn permissions(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.reading.skill.permissions.is_empty() {
        return;
    }
    let grants = context.dialect().language().grants(&context.reading.document);
    tier(context, &grants, found);
    for grant in &grants {
        check_breadth(grant, context.reading.skill.policy.tier, found);
    }
}

fn tier(context: &Context<'_>, grants: &[Grant], found: &mut Vec<Diagnostic>) {
    let Some(tier @ Tier::Community) = context.reading.skill.policy.tier else { return };
    let prompting: Vec<&Grant> = grants
        .iter()
        .filter(|grant| grant.permissions.iter().any(|one| decision(tier, one) == Decision::Prompt))
        .collect();
    let Some(first) = prompting.first() else { return };
    let list = prompting.iter().map(|grant| format!("`{}`", grant.written)).collect::<Vec<_>>();
    let message = format!("installing asks the user for {}", list.join(", "));
    found.push(
        Diagnostic::warning(TIER_PERMISSION.code, first.span, message)
            .field("permissions")
            .help("remove permissions that the tools do not need; verified skills do not prompt"),
    );
}

fn check_breadth(grant: &Grant, tier: Option<Tier>, found: &mut Vec<Diagnostic>) {
    let mut broad =
        grant.permissions.iter().filter_map(|permission| describe_broad(permission, tier));
    if let Some((why, hint)) = grant.permissions.iter().find_map(Permission::refusal) {
        let message = format!("no run can have `{}`: {why}", grant.written);
        found.push(
            Diagnostic::error(UNENFORCEABLE_PERMISSION.code, grant.span, message)
                .field("permissions")
                .help(hint),
        );
    } else if let Some(problem) = grant.permissions.iter().find_map(Permission::scope_problem) {
        found.push(
            Diagnostic::warning(PERMISSION_SCOPE.code, grant.span, problem.reason)
                .field("permissions")
                .help(problem.hint),
        );
    } else if let Some(path) = grant.permissions.iter().find_map(Permission::protected_path) {
        let message =
            format!("`{}` cannot be granted: {path} is never written by skills", grant.written);
        found.push(
            Diagnostic::error(UNENFORCEABLE_PERMISSION.code, grant.span, message)
                .field("permissions")
                .help("write somewhere else"),
        );
    } else if let Some(why) = grant.permissions.iter().find_map(unenforceable) {
        let message = format!("the sandbox cannot enforce `{}`: {}", grant.written, why.0);
        found.push(
            Diagnostic::warning(UNENFORCEABLE_PERMISSION.code, grant.span, message)
                .field("permissions")
                .help(why.1),
        );
    } else if let Some((what, help)) = broad.next() {
        let message = format!("`{}` allows {what}", grant.written);
        found.push(
            Diagnostic::warning(BROAD_PERMISSION.code, grant.span, message)
                .field("permissions")
                .help(help),
        );
    }
}

/// Why the sandbox refuses the permission, and a hint.
fn unenforceable(permission: &Permission) -> Option<(&'static str, &'static str)> {
    if permission.level == Level::None {
        return None;
    }
    let scope = permission.scope.as_deref();
    match permission.domain {
        Domain::Filesystem => unenforceable_path(permission.level, scope?),
        Domain::Env => changes_programs(scope?).map(|_| {
            (
                "the variable changes how every program runs",
                "pass the value under a name of your own",
            )
        }),
        Domain::Network => public_suffix(scope?).then_some((
            "it covers every host under a public ending",
            "name the domain, such as `*.example.com`",
        )),
        // `Permission::refusal` speaks about the others.
        Domain::Shell | Domain::Desktop | Domain::Mcp | Domain::Database => None,
    }
}

/// Files that match a pattern can be mounted, but not created. Sets of characters and alternatives
/// are not patterns.
fn unenforceable_path(level: Level, scope: &str) -> Option<(&'static str, &'static str)> {
    if scope.contains(['[', '{']) {
        return Some((
            "`[` and `{` stand for themselves in a path, because names of files contain them",
            "write one entry for each path; `*`, `?` and `**` are wildcards",
        ));
    }
    let is_pattern = |part: &str| part.contains(['*', '?']);
    let path = scope.strip_suffix("/**").unwrap_or(scope);
    let partly = level == Level::Write && path != "**" && path.split('/').any(is_pattern);
    partly.then_some((
        "a pattern covers only files that exist, so new ones cannot be created",
        "name the folder and end with `/**`, or name one file",
    ))
}

/// `*.com`: one label after the star.
fn public_suffix(scope: &str) -> bool {
    let host = scope.split_once("://").map_or(scope, |(_, rest)| rest);
    let host = host.split(['/', ':']).next().unwrap_or_default();
    host.strip_prefix("*.").is_some_and(|rest| !rest.contains('.'))
}

/// Describes a permission that allows everything of its kind, with a hint.
fn describe_broad(permission: &Permission, tier: Option<Tier>) -> Option<(String, &'static str)> {
    let scope = permission.scope.as_deref();
    let everywhere = matches!(scope, None | Some("*" | "**" | "/" | "/**" | "~" | "~/" | "~/**"));
    // A skill that a trusted key signed may use the user's home.
    let is_experimental = tier == Some(Tier::Experimental);
    let refusal = if is_experimental { ", which no run of an experimental skill gets" } else { "" };
    match (permission.domain, permission.level) {
        (Domain::Filesystem, Level::Write) if everywhere => Some((
            format!("writing to every file of the user{refusal}"),
            "name the folder, such as `./out/**`",
        )),
        (Domain::Filesystem, Level::Read) if everywhere && is_experimental => Some((
            format!("reading every file of the user{refusal}"),
            "name the folder, such as `./data/**`",
        )),
        (Domain::Env, Level::Read) if everywhere => Some((
            "reading every environment variable, with all passwords and tokens".to_owned(),
            "name the variables, one entry each",
        )),
        (Domain::Network, Level::Write) if everywhere => {
            Some(("sending to every host".to_owned(), "name the hosts, one entry each"))
        }
        (Domain::Shell, Level::Execute) if everywhere => {
            Some(("running every program".to_owned(), "name the programs, such as `git`"))
        }
        (Domain::Shell, Level::Execute) => {
            let mut names = scope?.split(',').map(str::trim);
            let any = names.find(|name| INTERPRETERS.contains(name))?;
            let help = "call the program that does the work, not one that runs others";
            Some((format!("any code, because `{any}` runs what it is given"), help))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::rules::testing::{find, places};

    fn gaia(tier: &str, permissions: &[&str]) -> String {
        let list = permissions.join("\n  - ");
        format!(
            "---\nname: demo\nversion: 1.0.0\ndescription: d\nauthor: a\nlicense: MIT\npermissions:\n  - {list}\n\
             tools: [{{name: t, description: d}}]\nsecurity_tier: {tier}\n---\n# x\n"
        )
    }

    #[test]
    fn one_finding_lists_what_is_asked() {
        let entries = ["network:read:a.com", "filesystem:write:./x/**", "env:read:A"];
        let found = find(TIER_PERMISSION.code, &gaia("community", &entries));
        assert_eq!(found.len(), 1);
        assert!(found[0].message.ends_with("`filesystem:write:./x/**`, `env:read:A`"));
        assert!(find(TIER_PERMISSION.code, &gaia("verified", &entries)).is_empty());
        assert!(find(TIER_PERMISSION.code, &gaia("community", &entries[..1])).is_empty());
    }

    #[test]
    fn paths_of_skillrt_are_read_as_a_run_reads_them() {
        let text = |scope: &str| {
            format!(
                "---\nname: demo\nversion: 1.0.0\ndescription: d\nruntime: {{type: markdown-skill}}\n\
                 permissions: {{filesystem: [\"{scope}\"]}}\n---\n# x\n"
            )
        };
        for (scope, code) in [
            ("filesystem:read:./data/**", PERMISSION_SCOPE.code),
            ("{a,b}.txt", UNENFORCEABLE_PERMISSION.code),
            ("[ab].txt", UNENFORCEABLE_PERMISSION.code),
            ("*.txt", UNENFORCEABLE_PERMISSION.code),
            ("~/**", BROAD_PERMISSION.code),
        ] {
            assert_eq!(find(code, &text(scope)).len(), 1, "{scope}");
        }
        for scope in ["**", "./data/**", "data/a.txt"] {
            for rule in [&PERMISSION_SCOPE, &UNENFORCEABLE_PERMISSION, &BROAD_PERMISSION] {
                assert_eq!(find(rule.code, &text(scope)), [], "{scope}: {}", rule.code);
            }
        }
    }

    #[test]
    fn sandbox_can_enforce_simple_permissions() {
        for (entry, refused) in [
            ("desktop:control", true),
            ("desktop:none", false),
            ("mcp:connect:x", true),
            ("database:read:x", true),
            ("database:write", true),
            ("database:write:./x.db", false),
            ("filesystem:write:./out/**", false),
            ("filesystem:write:~/.bashrc", true),
            ("filesystem:write:./.git/hooks/**", true),
            ("filesystem:write:./out/a.txt", false),
            ("filesystem:write:./out/*.csv", true),
            ("filesystem:write:./*/out/**", true),
            ("filesystem:read:./in/*.csv", false),
            ("filesystem:read:./*/a.csv", false),
            ("filesystem:read:./in/**/a.csv", false),
            ("filesystem:write:./in/**/a.csv", true),
            ("env:read:API_KEY", false),
            ("env:read:LD_PRELOAD", true),
            ("env:read:ENV", true),
            ("env:read:https_proxy", true),
            ("env:read:RUBYLIB", true),
            ("network:read:*.example.com", false),
            ("network:read:*.com", true),
            ("shell:execute:git", false),
        ] {
            let found = places(UNENFORCEABLE_PERMISSION.code, &gaia("verified", &[entry])).len();
            assert_eq!(found, usize::from(refused), "{entry}");
        }
    }

    #[test]
    fn broad_permissions_are_reported() {
        for (entry, describe_broad) in [
            ("filesystem:write", true),
            ("filesystem:write:~/**", true),
            ("filesystem:read", false),
            ("network:write", true),
            ("network:read", false),
            ("network:write:a.com", false),
            ("shell:execute", true),
            ("shell:execute:git, bash", true),
            ("shell:execute:git", false),
        ] {
            let found = places(BROAD_PERMISSION.code, &gaia("verified", &[entry])).len();
            assert_eq!(found, usize::from(describe_broad), "{entry}");
        }
    }

    #[test]
    fn experimental_skill_names_files_and_variables() {
        for entry in ["filesystem:read", "filesystem:read:~/**", "env:read", "env:read:*"] {
            assert_eq!(places(BROAD_PERMISSION.code, &gaia("experimental", &[entry])).len(), 1);
        }
        for entry in ["filesystem:read:./data/**", "env:read:API_KEY", "filesystem:none"] {
            assert!(places(BROAD_PERMISSION.code, &gaia("experimental", &[entry])).is_empty());
        }
    }

    #[test]
    fn whole_home_of_an_experimental_skill_is_reported_as_refused() {
        for entry in ["filesystem:read", "filesystem:write", "filesystem:write:~/**"] {
            let found = find(BROAD_PERMISSION.code, &gaia("experimental", &[entry]));
            let message = &found[0].message;
            assert!(message.ends_with(", which no run of an experimental skill gets"), "{message}");
        }
        let found = find(BROAD_PERMISSION.code, &gaia("verified", &["filesystem:write"]));
        assert!(found[0].message.ends_with("allows writing to every file of the user"));
    }

    #[test]
    fn skillrt_lists() {
        let text = "---\nname: x\nversion: 1.0.0\ndescription: d\npermissions:\n  network: ['*', a.com]\n  \
                    filesystem: ['./out/**', './*.csv', '~/**']\n  env: [HOME]\n---\n# x\n";
        assert_eq!(places(BROAD_PERMISSION.code, text), ["'*'", "'~/**'"]);
        assert_eq!(places(UNENFORCEABLE_PERMISSION.code, text), ["'./*.csv'"]);
    }

    #[test]
    fn scopes_that_approve_refuses_are_reported_in_skillrt() {
        let skill = |permissions: &str| {
            format!(
                "---\nname: x\nversion: 1.0.0\ndescription: d\npermissions:\n  {permissions}\n---\n# x\n"
            )
        };
        for (permissions, place) in [
            ("filesystem: ['../up/**']", "'../up/**'"),
            ("filesystem: ['']", "''"),
            ("network: [a.com, 'https://']", "'https://'"),
            ("network: [host:99999]", "host:99999"),
            ("network: ['a b']", "'a b'"),
            ("network: a.*.com", "a.*.com"),
            ("env: [A-B]", "A-B"),
            ("env: ['']", "''"),
        ] {
            let text = skill(permissions);
            assert_eq!(places(PERMISSION_SCOPE.code, &text), [place], "{permissions}");
            let found = find(PERMISSION_SCOPE.code, &text);
            assert!(found[0].help.is_some(), "{permissions}");
        }
        for permissions in
            ["filesystem: ['./a/**', '**']", "network: ['*', 'a.com:8443']", "env: ['*']"]
        {
            assert!(find(PERMISSION_SCOPE.code, &skill(permissions)).is_empty(), "{permissions}");
        }
    }
}
