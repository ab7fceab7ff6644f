//! The two lines `---` and what stands between and before them.

use crate::check::rule::rule;

rule! {
    /// Blank lines stand before the frontmatter.
    ///
    /// ## Why
    ///
    /// The frontmatter must begin on the first line. The reference validator refuses the file, and
    /// other readers take all of it for the body.
    ///
    /// ## Bad
    ///
    /// ````markdown
    ///
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
    /// ````markdown
    /// ---
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    /// ---
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    BLANK_BEFORE_FRONTMATTER = "blank-before-frontmatter", Error, fix Safe
}

rule! {
    /// The whole file stands in a code block.
    ///
    /// ## Why
    ///
    /// Chat answers wrap files this way, and the wrapping was copied along. No reader finds the
    /// frontmatter behind it.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ```markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    /// ---
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ```
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
    CODE_FENCED = "code-fenced", Error, fix Safe
}

rule! {
    /// Blanks follow `---` on the line of a fence.
    ///
    /// ## Why
    ///
    /// Not every reader takes such a line for a fence: skillrt never does, and the `npx skills`
    /// installer passes over the skill without a word.
    ///
    /// ## Bad
    ///
    /// ````markdown escaped
    /// ---\u{20}
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
    /// ````markdown
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    FENCE_TRAILING_BLANK = "fence-trailing-blank", Warning, fix Safe
}

rule! {
    /// The text between the fences is not a map of fields.
    ///
    /// ## Why
    ///
    /// A reader looks fields up by their names. A list or a sentence has none, and every dialect
    /// refuses it.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// - name
    /// - description
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
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    FRONTMATTER_NOT_MAP = "frontmatter-not-map", Error
}

rule! {
    /// The frontmatter has more than 64 KiB.
    ///
    /// ## Why
    ///
    /// It is not read then, so that a hostile file cannot cost much time. Real frontmatter stays
    /// below 8 KiB. Long text belongs in the body, data in a file of the skill.
    FRONTMATTER_TOO_LARGE = "frontmatter-too-large", Error
}

rule! {
    /// The file begins with fields, but no fence stands around them.
    ///
    /// ## Why
    ///
    /// Without the lines `---` the fields are plain text. The reference validator refuses the file;
    /// systems that accept prose read it as a skill without name and description.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// name: git-history
    /// description: Explains who changed a line. Use when someone asks why code is as it is.
    ///
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
    ///
    /// # Git history
    ///
    /// Run `git blame` on the file.
    /// ````
    MISSING_FENCE = "missing-fence", Error, fix Safe
}

rule! {
    /// The file has no frontmatter, and its dialect needs one.
    ///
    /// ## Why
    ///
    /// Agents choose a skill by its description. A client of the base format skips a skill without
    /// one, while skillrt and Personal Agent accept a file that is all body.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=agentskills
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=agentskills
    /// ---
    /// name: weather
    /// description: Looks up the weather. Use when someone asks about rain or sun.
    /// ---
    /// # Weather
    ///
    /// Ask for the place, then look up its forecast.
    /// ````
    MISSING_FRONTMATTER = "missing-frontmatter", Error
}

rule! {
    /// The frontmatter begins, but no second `---` ends it.
    ///
    /// ## Why
    ///
    /// The readers disagree: the base format, GAIA, gibb.eri.sh and skillrt refuse the file, while
    /// Agent Flow Lite and Personal Agent take all of it for the body.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// name: invoices
    /// description: Lists open invoices. Use when someone asks what is due.
    ///
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
    ///
    /// # Invoices
    ///
    /// Open the ledger and list what is not paid.
    /// ````
    UNCLOSED_FRONTMATTER = "unclosed-frontmatter", Error, fix Safe
}
