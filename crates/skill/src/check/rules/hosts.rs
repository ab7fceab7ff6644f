//! Rules about fields that single systems add to the base format.

use crate::check::rule::rule;

rule! {
    /// `argument-hint` is a list, because its brackets are not quoted.
    ///
    /// ## Why
    ///
    /// Claude Code shows the hint while the user types the command, and expects text. For YAML
    /// `[branch]` is a list of one word.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: review-branch
    /// description: Reviews a branch. Use before merging.
    /// argument-hint: [branch]
    /// ---
    /// # Review a branch
    ///
    /// Review the branch $ARGUMENTS.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: review-branch
    /// description: Reviews a branch. Use before merging.
    /// argument-hint: "[branch]"
    /// ---
    /// # Review a branch
    ///
    /// Review the branch $ARGUMENTS.
    /// ````
    ARGUMENT_HINT_LIST = "argument-hint-list", Warning, fix Unsafe
}

rule! {
    /// A GAIA field is both at the top level and under `metadata.gaia`.
    ///
    /// ## Why
    ///
    /// GAIA has two layouts. Its product reads `metadata.gaia` and ignores the fields at the top
    /// level, so permissions there have no effect.
    ///
    /// ## Bad
    ///
    /// ````markdown with=tools.py
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// permissions: ["network:none"]
    /// metadata:
    ///   gaia:
    ///     permissions: ["network:read:api.weather.example"]
    ///     tools:
    ///       - name: forecast
    ///         description: Looks up the forecast of a place.
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
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// metadata:
    ///   gaia:
    ///     permissions: ["network:read:api.weather.example"]
    ///     tools:
    ///       - name: forecast
    ///         description: Looks up the forecast of a place.
    /// ---
    /// # Weather
    ///
    /// Call `forecast`.
    /// ````
    BOTH_SHAPES = "both-shapes", Warning
}

rule! {
    /// `agents/openai.yaml` cannot be parsed.
    ///
    /// ## Why
    ///
    /// Codex reads presentation and policy from this file. It ignores errors there and loads the
    /// skill without it, so a policy that restricts the model is lost without a warning. The
    /// example has an empty file.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=codex with=agents/openai.yaml
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=codex
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    SIDE_FILE = "side-file", Warning
}

rule! {
    /// `os` names a system that OpenClaw does not know.
    ///
    /// ## Why
    ///
    /// OpenClaw compares with `darwin`, `linux` and `win32` only. A skill for `macos`, the name
    /// that a page of ClawHub uses, is never offered.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: disk-space
    /// description: Shows what fills a disk. Use when a disk is full.
    /// metadata:
    ///   openclaw:
    ///     os: [macos, linux]
    /// ---
    /// # Disk space
    ///
    /// Run `du` on the largest folders.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: disk-space
    /// description: Shows what fills a disk. Use when a disk is full.
    /// metadata:
    ///   openclaw:
    ///     os: [darwin, linux]
    /// ---
    /// # Disk space
    ///
    /// Run `du` on the largest folders.
    /// ````
    UNKNOWN_OS = "unknown-os", Warning, fix Unsafe
}
