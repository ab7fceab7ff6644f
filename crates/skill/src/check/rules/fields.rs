//! Rules about required fields, unknown fields and their values.

use savoir_lint::Diagnostic;

use crate::{
    check::{Context, Target, rule::rule},
    yaml::Node,
};

rule! {
    /// The license is not an SPDX expression.
    ///
    /// ## Why
    ///
    /// Tools compare licenses by their SPDX identifiers. GAIA rejects other text, skillrt warns,
    /// and the base format accepts any text.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// license: MIT License
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
    /// license: MIT
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    INVALID_LICENSE = "invalid-license", Warning, fix Unsafe
}

rule! {
    /// The schema of the outputs is not a JSON Schema.
    ///
    /// ## Why
    ///
    /// A runtime compares the answer of the skill with the schema. With a broken schema, it refuses
    /// every answer.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: weather
    /// version: 1.0.0
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// outputs:
    ///   type: json
    ///   schema: {type: map}
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
    /// outputs:
    ///   type: json
    ///   schema: {type: object}
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    INVALID_SCHEMA = "invalid-schema", Error
}

rule! {
    /// A field has a value that its dialect does not know.
    ///
    /// ## Why
    ///
    /// The field takes one of a few words, a number in a range, or text that is not blank. A
    /// system that does not know the value ignores the field or rejects the skill.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=claude-code
    /// ---
    /// name: review-branch
    /// description: Reviews a branch. Use before merging.
    /// effort: hihg
    /// ---
    /// # Review a branch
    ///
    /// Read the diff and name the three largest risks.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=claude-code
    /// ---
    /// name: review-branch
    /// description: Reviews a branch. Use before merging.
    /// effort: high
    /// ---
    /// # Review a branch
    ///
    /// Read the diff and name the three largest risks.
    /// ````
    INVALID_VALUE = "invalid-value", Error, fix Unsafe
}

rule! {
    /// A field that the dialect needs is missing or empty.
    ///
    /// ## Why
    ///
    /// Agents find a skill by its name and choose it by its description. The reference validator
    /// rejects a skill that lacks one of them; Claude Code, Codex and OpenClaw use the folder's
    /// name for a missing name, but a client of the base format skips a skill without description.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    MISSING_FIELD = "missing-field", Error
}

rule! {
    /// A value under `metadata` is not text.
    ///
    /// ## Why
    ///
    /// In the base format, both keys and values are text. The reference validator accepts a list
    /// or a map but turns it into a string that cannot be parsed again; OpenClaw and Google ADK
    /// expect nested values. Only `--target agentskills` reports it.
    ///
    /// ## Bad
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// metadata:
    ///   places: [Lisbon, Porto]
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown target=agentskills
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// metadata:
    ///   places: Lisbon, Porto
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    NESTED_METADATA = "nested-metadata", Warning, run nested_metadata
}

fn nested_metadata(context: &Context<'_>, found: &mut Vec<Diagnostic>) {
    if !context.options.is_for(Target::AgentSkills, NESTED_METADATA.code) {
        return;
    }
    let metadata = context.reading.document.field("metadata").and_then(Node::entries);
    let nested = metadata.unwrap_or_default().iter().find(|entry| entry.value.text().is_none());
    if let Some(nested) = nested {
        let message = format!("`metadata.{}` is not text", nested.key);
        found.push(
            Diagnostic::warning(NESTED_METADATA.code, nested.value.span, message)
                .field(format!("metadata.{}", nested.key))
                .help("the base format maps text to text; other readers turn this into a string"),
        );
    }
}

rule! {
    /// A field starts with `x-runtime-strict:`, which skillrt reserves for future runtimes.
    ///
    /// ## Why
    ///
    /// A later runtime will give such a field a meaning that must be understood before the skill
    /// runs. Your own fields may have any other name; skillrt preserves them unchanged.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices. Use when someone asks what is due.
    /// "x-runtime-strict:ledger": true
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
    /// x-ledger: true
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    RESERVED_FIELD = "reserved-field", Error
}

rule! {
    /// A field has more characters than its dialect allows.
    ///
    /// ## Why
    ///
    /// Names, descriptions and compatibility notes are loaded for every skill at once, so each has
    /// a limit. The reference validator rejects longer ones; the GitHub command line only warns,
    /// and counts bytes.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gaia with=tools.py
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: >-
    ///   Lists open invoices, sorts them by customer and by date, adds up what is due, writes a
    ///   friendly reminder for each customer, and prepares a report of the month for the bookkeeper.
    ///   Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gaia with=tools.py
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: Lists open invoices and writes reminders. Use when someone asks what is due.
    /// author: ana
    /// license: MIT
    /// permissions: ["filesystem:read"]
    /// tools:
    ///   - name: list_invoices
    ///     description: Lists open invoices.
    /// security_tier: experimental
    /// ---
    /// # Invoices
    ///
    /// Call `list_invoices`.
    /// ````
    TOO_LONG = "too-long", Error
}

rule! {
    /// The dialect does not define this field.
    ///
    /// ## Why
    ///
    /// It has no effect, and it may be a typo. The reference validator and the upload to claude.ai
    /// reject fields other than the six of the base format; Claude Code, Codex and OpenClaw ignore
    /// them.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// licence: MIT
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// license: MIT
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    UNKNOWN_FIELD = "unknown-field", Warning, fix Unsafe
}

rule! {
    /// An input of an Agent Flow Lite skill has a type other than `text` and `textarea`.
    ///
    /// ## Why
    ///
    /// Agent Flow Lite reads any other word as `text`, so the field in the form has one line and
    /// accepts any text.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: translate
    /// description: Translates a text. Use when someone needs it in another language.
    /// inputs:
    ///   - name: source
    ///     type: textarea
    ///   - name: language
    ///     type: dropdown
    /// ---
    /// Translate into {{language}}:
    ///
    /// {{source}}
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: translate
    /// description: Translates a text. Use when someone needs it in another language.
    /// inputs:
    ///   - name: source
    ///     type: textarea
    ///   - name: language
    ///     type: text
    /// ---
    /// Translate into {{language}}:
    ///
    /// {{source}}
    /// ````
    UNKNOWN_INPUT_TYPE = "unknown-input-type", Warning
}

rule! {
    /// A field has a value of a type that its dialect does not expect.
    ///
    /// ## Why
    ///
    /// A number, a list or a map where text is expected stops some readers, and others turn it
    /// into text in their own way. `metadata` in quotes is one long string for every system except
    /// OpenClaw.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: disk-space
    /// description: Shows what fills a disk. Use when a disk is full.
    /// metadata: '{"openclaw": {"requires": {"bins": ["du"]}}}'
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
    /// metadata: {"openclaw": {"requires": {"bins": ["du"]}}}
    /// ---
    /// # Disk space
    ///
    /// Run `du` on the largest folders.
    /// ````
    WRONG_TYPE = "wrong-type", Error, fix Unsafe
}
