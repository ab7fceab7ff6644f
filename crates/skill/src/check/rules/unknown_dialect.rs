//! Reports frontmatter that matches no dialect.

use crate::check::rule::rule;

rule! {
    /// The frontmatter does not show which system the skill is for.
    ///
    /// ## Why
    ///
    /// Without a name, a description or a field that some system knows, no agent lists the skill.
    /// The file is checked against the base format, and the message names the systems with the most
    /// similar fields.
    ///
    /// ## Bad
    ///
    /// ````markdown
    /// ---
    /// title: Water the plants
    /// when: every morning
    /// ---
    /// # Water the plants
    ///
    /// Two fingers deep, then decide.
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown
    /// ---
    /// name: water-plants
    /// description: Tells when to water plants. Use when someone asks about house plants.
    /// ---
    /// # Water the plants
    ///
    /// Two fingers deep, then decide.
    /// ````
    UNKNOWN_DIALECT = "unknown-dialect", Error
}
