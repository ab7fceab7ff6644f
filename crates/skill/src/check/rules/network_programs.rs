//! Finds commands that need the network in skills that do not declare it.

use savoir_lint::Diagnostic;

use super::command_templates::ToolCommand;
use crate::{
    check::{Context, rule::rule},
    permission::{Domain, Level},
};

rule! {
    /// A command uses the network, but the skill does not declare `network: true`.
    ///
    /// ## Why
    ///
    /// gibb.eri.sh treats the field as information. Savoir gives a tool no network without it, so
    /// the command fails because it cannot resolve a host name.
    ///
    /// ## Bad
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// ---
    /// ### get_page
    ///
    /// Fetch a page.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// curl -s https://example.com/
    /// ```
    /// ````
    ///
    /// ## Good
    ///
    /// ````markdown dialect=gibberish
    /// ---
    /// name: demo
    /// version: 1.0.0
    /// description: Shows a rule.
    /// network: true
    /// ---
    /// ### get_page
    ///
    /// Fetch a page.
    ///
    /// #### Parameters
    ///
    /// None.
    ///
    /// #### Command
    ///
    /// ```bash
    /// curl -s https://example.com/
    /// ```
    /// ````
    NETWORK_NOT_DECLARED = "network-not-declared", Warning
}

/// Programs that do nothing without a network.
const NETWORK_PROGRAMS: [&str; 16] = [
    "curl", "wget", "http", "https", "xh", "npx", "bunx", "uvx", "pipx", "gh", "glab", "ssh",
    "scp", "rsync", "dig", "ping",
];

impl ToolCommand<'_> {
    pub(super) fn network(&self, context: &Context<'_>, found: &mut Vec<Diagnostic>) {
        let may_connect = context
            .reading
            .skill
            .permissions
            .iter()
            .any(|one| one.domain == Domain::Network && one.level != Level::None);
        let words = self.words.iter().skip(self.command.environment.len());
        let program = self.command.program.rsplit('/').next().unwrap_or_default();
        let is_network_program = NETWORK_PROGRAMS.contains(&program);
        let mut words = words.enumerate();
        let word = words.find(|(at, word)| is_network_program && *at == 0 || is_url(&word.text));
        let Some((_, word)) = word.filter(|_| !may_connect) else { return };
        let message =
            format!("`{}` needs the network, which the skill does not declare", word.text);
        found.push(
            Diagnostic::warning(NETWORK_NOT_DECLARED.code, word.span, message)
                .field(self.tool.name.clone())
                .help("add `network: true` to the frontmatter"),
        );
    }
}

/// Whether a word is an address on another machine.
fn is_url(word: &str) -> bool {
    let rest = ["http://", "https://"].iter().find_map(|scheme| word.strip_prefix(scheme));
    let local = ["localhost", "127.", "[::1]"];
    rest.is_some_and(|rest| !local.iter().any(|own| rest.starts_with(own)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{check::rules::testing::find_as, dialect::Dialect};

    fn reported(network: &str, command: &str) -> Vec<String> {
        let text = format!(
            "---\nname: demo\nversion: 1.0.0\ndescription: d\n{network}---\n### t\n\nDoes.\n\n#### Parameters\n\nNone.\n\n\
             #### Command\n\n```bash\n{command}\n```\n"
        );
        let found = find_as(NETWORK_NOT_DECLARED.code, &text, Dialect::GIBBERISH);
        found.iter().map(|found| found.span.slice(&text).to_owned()).collect()
    }

    #[test]
    fn network_programs_need_the_field() {
        assert_eq!(reported("", "curl -s https://example.com/"), ["curl"]);
        assert_eq!(reported("", "A=b /usr/bin/wget x"), ["/usr/bin/wget"]);
        assert_eq!(reported("network: false\n", "git clone https://x.org/a"), ["https://x.org/a"]);
        assert!(reported("network: true\n", "curl -s https://example.com/").is_empty());
        assert!(reported("", "git log").is_empty());
        assert!(reported("", "open http://localhost:3000/").is_empty());
    }
}
