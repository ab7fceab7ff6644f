//! Rules about versions and version ranges.

use crate::check::rule::rule;

rule! {
    /// A reference to another skill does not have a valid version range.
    ///
    /// ## Why
    ///
    /// It is unclear which version to install. Write `name`, or `name@^1.2` with a range; GAIA
    /// also accepts a map of name and version.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// dependencies:
    ///   skills: ["ledger@^1 || ^2"]
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// dependencies:
    ///   skills: ["ledger@^1.2"]
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    INVALID_RANGE = "invalid-range", Error
}

rule! {
    /// A version is not SemVer.
    ///
    /// ## Why
    ///
    /// GAIA, gibb.eri.sh and skillrt need three numbers, such as `1.0.0`, to compare versions.
    /// Also, `1.0` without quotes is a number. The base format stores the version as free text
    /// under `metadata`.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: weather
    /// version: 1.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    INVALID_VERSION = "invalid-version", Error, fix Unsafe
}

rule! {
    /// A skill of the base format has no version when skillrt reads it.
    ///
    /// ## Why
    ///
    /// skillrt tolerates the missing field and assumes `0.0.0`, so every update looks like the same
    /// version.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// version: 0.1.0
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    MISSING_VERSION = "missing-version", Warning, fix Unsafe
}

rule! {
    /// The skill requires a newer skillrt runtime than the one that reads it.
    ///
    /// ## Why
    ///
    /// The skill can be read and shown, but a run may lack features of the newer runtime. Savoir
    /// implements level 0.1.0.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// runtime:
    ///   type: markdown-skill
    ///   min-version: 2.0.0
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// runtime:
    ///   type: markdown-skill
    ///   min-version: 0.1.0
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    RUNTIME_TOO_NEW = "runtime-too-new", Warning
}

rule! {
    /// The skill names a runtime that Savoir cannot run.
    ///
    /// ## Why
    ///
    /// The skill can be read and shown, but `savoir run` refuses it. The specification of skillrt
    /// has `markdown-skill`, `anthropic-skill` and `mcp-tool`. Of these, Savoir does not run
    /// `mcp-tool`, because it calls no MCP servers.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// runtime:
    ///   type: markdown-skil
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// runtime:
    ///   type: markdown-skill
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    UNKNOWN_RUNTIME = "unknown-runtime", Warning, fix Unsafe
}
