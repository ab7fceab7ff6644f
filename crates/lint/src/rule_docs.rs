//! Splits the documentation of a rule into summary and sections.

/// The documentation of a rule: the doc comment above it, line by line.
#[derive(Clone, Copy, Debug)]
pub struct RuleDocs(pub &'static str);

impl RuleDocs {
    /// Returns the documentation as Markdown.
    pub fn markdown(self) -> String {
        let lines = self.0.lines().map(|line| line.strip_prefix(' ').unwrap_or(line));
        lines.collect::<Vec<_>>().join("\n").trim().to_owned()
    }

    /// Returns the first paragraph on one line.
    pub fn summary(self) -> String {
        let docs = self.markdown();
        docs.split("\n\n").next().unwrap_or_default().replace('\n', " ")
    }

    /// Returns the text below a second-level heading, if there is one.
    pub fn section(self, heading: &str) -> Option<String> {
        let docs = self.markdown();
        let (_, section) = docs.split_once(&format!("## {heading}\n"))?;
        let section = section.split("\n## ").next()?.trim();
        (!section.is_empty()).then(|| section.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::RuleDocs;

    #[test]
    fn sections_end_at_the_next_heading() {
        let docs = RuleDocs(" One\n line.\n\n ## Why\n\n Because.\n\n ## Fix\n\n Do it.\n");
        assert_eq!(docs.summary(), "One line.");
        assert_eq!(docs.section("Why").as_deref(), Some("Because."));
        assert_eq!(docs.section("Fix").as_deref(), Some("Do it."));
        assert_eq!(docs.section("Bad"), None);
    }
}
