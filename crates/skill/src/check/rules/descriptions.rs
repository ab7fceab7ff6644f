//! Finds descriptions that are longer than systems show.

use crate::check::rule::rule;

rule! {
    /// The description of a skillrt skill is longer than advised.
    ///
    /// ## Why
    ///
    /// skillrt lists one line for each skill and advises 120 characters, 512 at most. It accepts
    /// longer text, but lists become hard to read.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=skillrt
    /// ---
    /// name: invoices
    /// version: 1.0.0
    /// description: >-
    ///   Lists open invoices, sorts them by customer and by date, adds up what is due, and writes a
    ///   friendly reminder for each customer. Use when someone asks what is due.
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
    /// ---
    /// # Invoices
    ///
    /// Open the ledger, list what is not paid, and sort it by customer and by date.
    /// ````
    DESCRIPTION_LONG = "description-long", Warning
}

rule! {
    /// The description is longer than the system shows.
    ///
    /// ## Why
    ///
    /// The rest is cut off without a warning, often including the sentence that says when to use
    /// the skill. gibb.eri.sh cuts at 256 characters, Codex and Personal Agent at 1024, Claude
    /// Code at 1536 together with `when_to_use`.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: >-
    ///   Explains who changed a line, when the change was made, which commit brought it, which
    ///   ticket the commit belongs to, what the message of the commit says about it, and which other
    ///   files the same commit touched at that time. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: git-history
    /// version: 1.0.0
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// read_only: true
    /// ---
    /// # Git history
    ///
    /// ### blame
    ///
    /// Shows who changed each line of a file.
    ///
    /// #### Parameters
    ///
    /// | Name | Type | Required | Description |
    /// |------|------|----------|-------------|
    /// | file | string | yes | The file to explain |
    ///
    /// #### Command
    ///
    /// ```bash
    /// git blame -- {{file}}
    /// ```
    /// ````
    DESCRIPTION_TRUNCATED = "description-truncated", Warning
}
