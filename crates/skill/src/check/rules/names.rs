//! Rules about names of skills.

use savoir_lint::Diagnostic;

use crate::{
    check::{Context, rule::rule},
    dialect::{Dialect, skillrt::UnsafeName},
    name::{is_unsafe_path_name, slugify},
};

rule! {
    /// The name has two hyphens in a row, which only GAIA allows.
    ///
    /// ## Why
    ///
    /// The base format and its validator reject such a name, so the skill cannot be used in
    /// another system.
    ///
    /// ## Bad
    ///
    /// ````markdown folder=pdf--merge with=tools.py
    /// ---
    /// name: pdf--merge
    /// version: 1.0.0
    /// description: Merges PDF files. Use when someone has several and wants one.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:write"]
    /// tools:
    ///   - name: merge
    ///     description: Merges files.
    /// security_tier: experimental
    /// ---
    /// # Merge PDF files
    ///
    /// Call `merge`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: pdf-merge
    /// version: 1.0.0
    /// description: Merges PDF files. Use when someone has several and wants one.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:write"]
    /// tools:
    ///   - name: merge
    ///     description: Merges files.
    /// security_tier: experimental
    /// ---
    /// # Merge PDF files
    ///
    /// Call `merge`.
    /// ````
    DOUBLE_HYPHEN = "double-hyphen", Warning, fix Unsafe
}

rule! {
    /// The name ends with a hyphen, which only GAIA allows.
    ///
    /// ## Why
    ///
    /// The base format and its validator reject a hyphen at either end, so the skill cannot be
    /// used in another system.
    ///
    /// ## Bad
    ///
    /// ````markdown folder=pdf-merge- with=tools.py
    /// ---
    /// name: pdf-merge-
    /// version: 1.0.0
    /// description: Merges PDF files. Use when someone has several and wants one.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:write"]
    /// tools:
    ///   - name: merge
    ///     description: Merges files.
    /// security_tier: experimental
    /// ---
    /// # Merge PDF files
    ///
    /// Call `merge`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: pdf-merge
    /// version: 1.0.0
    /// description: Merges PDF files. Use when someone has several and wants one.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:write"]
    /// tools:
    ///   - name: merge
    ///     description: Merges files.
    /// security_tier: experimental
    /// ---
    /// # Merge PDF files
    ///
    /// Call `merge`.
    /// ````
    EDGE_HYPHEN = "edge-hyphen", Warning, fix Unsafe
}

rule! {
    /// The name breaks the grammar of its dialect.
    ///
    /// ## Why
    ///
    /// A name is a folder, a command and a key, so it has only lower-case letters, digits and
    /// single hyphens. The reference validator rejects other names; Claude Code and OpenClaw
    /// accept them, and Personal Agent rewrites them. The fix proposes a name, but the folder must
    /// be renamed by hand.
    ///
    /// ## Bad
    ///
    /// ````markdown folder=git-history
    /// ---
    /// name: Git History
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    INVALID_NAME = "invalid-name", Error, fix Unsafe
}

rule! {
    /// The name of a skillrt skill is not in kebab-case.
    ///
    /// ## Why
    ///
    /// skillrt accepts any name, but advises lower-case words with hyphens between them. The other
    /// systems reject all other names.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: open_invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Open invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: open-invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Open invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    NAME_NOT_KEBAB_CASE = "name-not-kebab-case", Warning, fix Unsafe
}

rule! {
    /// The name starts with `amd-`, `gaia-` or `mcp-`.
    ///
    /// ## Why
    ///
    /// GAIA's registry reserves these prefixes for their owners. The skill works locally, but only
    /// they can publish it.
    ///
    /// ## Bad
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: gaia-weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// author: ana
    /// license: MIT
    /// permissions: ["network:read:api.weather.example"]
    /// tools:
    ///   - name: forecast
    ///     description: Looks up the forecast of a place.
    /// security_tier: experimental
    /// ---
    /// # Weather
    ///
    /// Call `forecast`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// author: ana
    /// license: MIT
    /// permissions: ["network:read:api.weather.example"]
    /// tools:
    ///   - name: forecast
    ///     description: Looks up the forecast of a place.
    /// security_tier: experimental
    /// ---
    /// # Weather
    ///
    /// Call `forecast`.
    /// ````
    RESERVED_PREFIX = "reserved-prefix", Warning
}

rule! {
    /// The name of a skillrt skill is a path, or starts with a dot.
    ///
    /// ## Why
    ///
    /// skillrt stores a skill in a folder that has its name. Such a name could be a folder outside of
    /// the store, or a hidden one, so the skill cannot be installed. Other dialects report the name
    /// as `invalid-name`.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: team/invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Open invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: team-invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Open invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    UNSAFE_NAME = "unsafe-name", Error, run unsafe_name
}

pub(in crate::check) fn unsafe_name(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if context.dialect() != Dialect::SKILLRT {
        return;
    }
    let Some(node) = context.reading.document.field("name") else { return };
    let Some(text) = node.text().filter(|text| !text.is_empty()) else { return };
    if !is_unsafe_path_name(text) {
        return;
    }
    // One name is one finding.
    found.retain(|found| found.code != NAME_NOT_KEBAB_CASE.code);
    let message = UnsafeName(text.to_owned()).to_string();
    let mut problem = Diagnostic::error(UNSAFE_NAME.code, node.span, message)
        .field("name")
        .help("use lower-case words with hyphens between them");
    if let Some(slug) = slugify(text) {
        problem = problem.help(format!("`{slug}` would be"));
    }
    found.push(problem);
}
