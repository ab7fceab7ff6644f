//! Parses install commands of other tools, such as `npx skills add owner/repo`.

use super::SourceError;

/// A parsed command of another installer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of the line")]
pub struct PastedCommand {
    /// The sources, in the notation of [`Source::parse`](super::Source::parse).
    pub sources: Vec<String>,
    /// The names of the skills; if empty, all may be meant.
    pub skills: Vec<String>,
    /// The agents; if empty, those that are in use.
    pub agents: Vec<String>,
    /// Whether to install for all projects of the user.
    pub global: bool,
    /// Whether to skip questions.
    pub yes: bool,
    /// Whether to only list the skills.
    pub list: bool,
    /// Whether to install all skills.
    pub all: bool,
}

/// Parses a command for another installer, pasted as one argument or as several. Returns `None` for
/// other text.
///
/// ```
/// use savoir_package::source::parse_pasted_command;
///
/// let line = ["npx skills add acme/skills --skill pdf -a codex -y".to_owned()];
/// let asked = parse_pasted_command(&line)?.expect("it is a line of `npx skills`");
/// assert_eq!(asked.sources, ["github:acme/skills"]);
/// assert_eq!(asked.skills, ["pdf"]);
/// assert!(parse_pasted_command(&["acme/skills".to_owned()])?.is_none());
/// # Ok::<(), savoir_package::source::SourceError>(())
/// ```
pub fn parse_pasted_command(words: &[String]) -> Result<Option<PastedCommand>, SourceError> {
    let (commands, is_text) = match words {
        [page] if let Some(asked) = catalog_page(page) => return Ok(Some(asked)),
        [line] if line.trim().contains(char::is_whitespace) => (split(line), true),
        words => (vec![words.to_vec()], false),
    };
    let mut asked: Option<PastedCommand> = None;
    let mut unknown = None;
    for command in &commands {
        let words: Vec<&str> = command.iter().map(String::as_str).collect();
        let (tool, rest) = match find_tool(&words) {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(error) => {
                unknown = unknown.or(Some(error));
                continue;
            }
        };
        let mut line =
            ParsedArguments { tool, command: command.join(" "), asked: PastedCommand::default() };
        line.read(rest)?;
        let asked = asked.get_or_insert_default();
        asked.sources.extend(line.asked.sources);
        asked.skills.extend(line.asked.skills);
        asked.agents.extend(line.asked.agents);
        asked.global |= line.asked.global;
        asked.yes |= line.asked.yes;
        asked.list |= line.asked.list;
        asked.all |= line.asked.all;
    }
    // Several words may also be names of skills, such as `git docker`.
    let is_line = is_text || PACKAGE_RUNNERS.iter().any(|runner| starts_with(words, runner));
    match (asked, unknown) {
        (None, Some(error)) if is_line => Err(error),
        (asked, _) => Ok(asked),
    }
}

/// Parses the URL of a skill in the catalog of `npx skills`: `https://skills.sh/owner/repo/skill`.
fn catalog_page(page: &str) -> Option<PastedCommand> {
    let rest = page.trim().strip_prefix("https://")?;
    let rest = rest.strip_prefix("www.").unwrap_or(rest).strip_prefix("skills.sh/")?;
    let rest = rest.split(['?', '#']).next()?;
    let parts: Vec<&str> = rest.split('/').filter(|part| !part.is_empty()).collect();
    let [owner, repository, skill @ ..] = parts.as_slice() else { return None };
    let skills = skill.first().map(|&skill| skill.to_owned()).into_iter().collect();
    let sources = vec![format!("github:{owner}/{repository}")];
    Some(PastedCommand { sources, skills, ..PastedCommand::default() })
}

/// The tool of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tool {
    /// `skills add`, and similar tools.
    Skills,
    /// `gh skill install REPOSITORY SKILL@VERSION`
    Gh,
    /// `claude plugin marketplace add`, and similar commands of other agents.
    Plugin,
    /// `git clone`
    Git,
}

/// Programs that run an npm package.
const PACKAGE_RUNNERS: [&[&str]; 9] = [
    &["npx"],
    &["bunx"],
    &["pnpx"],
    &["pnpm", "dlx"],
    &["pnpm", "exec"],
    &["yarn", "dlx"],
    &["npm", "exec"],
    &["npm", "x"],
    &["bun", "x"],
];

/// Options with a value.
const OPTIONS_WITH_VALUES: [&str; 11] = [
    "-a", "--agent", "-s", "--skill", "--scope", "--pin", "--ref", "--branch", "-b", "--path",
    "--depth",
];

/// Options that do not change what is installed.
const IGNORED_OPTIONS: [&str; 12] = [
    "--copy", "--force", "-f", "--full-depth", "--symlink", "--recursive", "--recurse-submodules",
    "--single-branch", "--quiet", "-q", "--universal", "--verbose",
];

/// Finds the tool of a command; returns it and the remaining words. A known program with another
/// command than an install is an error.
fn find_tool<'a, 'w>(words: &'a [&'w str]) -> Result<Option<(Tool, &'a [&'w str])>, SourceError> {
    let mut words = words;
    while let [first, rest @ ..] = words
        && (["$", ">", "%", "sudo", "!"].contains(first) || is_assignment(first))
    {
        words = rest;
    }
    if let Some(runner) = PACKAGE_RUNNERS.iter().find(|runner| words.starts_with(runner)) {
        let mut rest = &words[runner.len()..];
        while let [option, after @ ..] = rest
            && option.starts_with('-')
        {
            rest = after;
        }
        let Some((package, after)) = rest.split_first() else { return Ok(None) };
        let name = package.strip_prefix('@').unwrap_or(package).split('@').next();
        return match (name.unwrap_or_default(), after) {
            ("skills", ["add" | "install" | "i" | "a", rest @ ..])
            | ("openskills", ["install" | "add", rest @ ..])
            | ("add-skill", rest) => Ok(Some((Tool::Skills, rest))),
            _ => Err(not_understood(words)),
        };
    }
    Ok(match words {
        ["skills" | "openskills", "add" | "install" | "i", rest @ ..]
        | ["add-skill", rest @ ..]
        | ["savoir", "install" | "add", rest @ ..] => Some((Tool::Skills, rest)),
        ["gh", "skill" | "skills", "install" | "add", rest @ ..] => Some((Tool::Gh, rest)),
        ["claude" | "codex" | "copilot", "plugin", "marketplace", "add", rest @ ..]
        | ["/plugin" | "/plugins", "marketplace", "add", rest @ ..]
        | ["gemini", "extensions" | "extension" | "skills" | "skill", "install", rest @ ..] => {
            Some((Tool::Plugin, rest))
        }
        ["git", "clone", rest @ ..] => Some((Tool::Git, rest)),
        // This command needs the marketplace, which only the command before it names.
        ["claude" | "codex" | "copilot", "plugin", "install" | "enable", ..]
        | ["/plugin" | "/plugins", "install" | "enable", ..] => return Err(no_marketplace(words)),
        ["npm" | "pnpm" | "yarn" | "bun" | "gh" | "git" | "claude" | "gemini" | "codex", _, ..] => {
            return Err(not_understood(words));
        }
        _ => None,
    })
}

fn starts_with(words: &[String], start: &[&str]) -> bool {
    words.len() > start.len() && words.iter().zip(start).all(|(word, start)| word == start)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    })
}

fn not_understood(words: &[&str]) -> SourceError {
    let why = "it does not install skills in a way that is known".to_owned();
    let hint =
        "give `savoir install` the repository, such as owner/repo or https://host/owner/repo";
    SourceError::Pasted { line: words.join(" "), why, hint }
}

fn no_marketplace(words: &[&str]) -> SourceError {
    let why = "it does not say where the plugin comes from".to_owned();
    let hint = "give `savoir install` the repository of its marketplace, such as owner/repo";
    SourceError::Pasted { line: words.join(" "), why, hint }
}

/// The arguments parsed so far.
struct ParsedArguments {
    tool: Tool,
    command: String,
    asked: PastedCommand,
}

impl ParsedArguments {
    fn read(&mut self, words: &[&str]) -> Result<(), SourceError> {
        let mut reference = None;
        let mut path = None;
        let mut plain: Vec<&str> = Vec::new();
        let mut rest = words;
        while let [word, after @ ..] = rest {
            rest = after;
            let (option, attached) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (*word, None),
            };
            if !option.starts_with('-') {
                plain.push(option);
                continue;
            }
            if option == "--" {
                plain.extend(rest);
                break;
            }
            let mut values: Vec<&str> = Vec::new();
            if OPTIONS_WITH_VALUES.contains(&option) {
                values.extend(attached);
                if attached.is_none() {
                    // `-a claude-code codex` has two values if the source came before.
                    let many = matches!(option, "-a" | "--agent" | "-s" | "--skill");
                    let most = if many && !plain.is_empty() { rest.len() } else { 1 };
                    let count = rest.iter().take_while(|word| !word.starts_with('-')).count();
                    let (taken, left) = rest.split_at(count.min(most));
                    values.extend(taken);
                    rest = left;
                }
                if values.is_empty() {
                    return Err(self.argument_error(&format!("`{option}` has no value")));
                }
            }
            match option {
                "-a" | "--agent" => self.asked.agents.extend(split_names(&values)),
                "-s" | "--skill" => {
                    self.asked.all |= values.contains(&"*");
                    self.asked.skills.extend(split_names(&values));
                }
                "--scope" => self.asked.global = values == ["user"],
                "--pin" | "--ref" | "--branch" | "-b" => reference = values.first().copied(),
                "--path" => path = values.first().copied(),
                "-g" | "--global" | "--user" => self.asked.global = true,
                "-y" | "--yes" => self.asked.yes = true,
                "-l" | "--list" => self.asked.list = true,
                "--all" => (self.asked.all, self.asked.yes) = (true, true),
                "-p" | "--project" | "--depth" => {}
                option if IGNORED_OPTIONS.contains(&option) => {}
                option => {
                    return Err(self.argument_error(&format!("its option `{option}` is not known")));
                }
            }
        }
        self.sources(&plain, reference, path)
    }

    fn sources(
        &mut self,
        plain: &[&str],
        reference: Option<&str>,
        path: Option<&str>,
    ) -> Result<(), SourceError> {
        let Some((first, others)) = plain.split_first() else {
            return Err(self.argument_error("it names no repository"));
        };
        let mut reference = reference.map(str::to_owned);
        let mut source = (*first).to_owned();
        match self.tool {
            Tool::Git | Tool::Plugin => {}
            Tool::Gh => {
                for skill in others {
                    let (name, version) = skill.split_once('@').unwrap_or((skill, ""));
                    self.asked.skills.push(name.to_owned());
                    let version = Some(version.to_owned()).filter(|version| !version.is_empty());
                    reference = reference.or(version);
                }
            }
            Tool::Skills => {
                // In this syntax, `@` is followed by the name of a skill, and `#` by a reference.
                let (place, fragment) = split_fragment(&source);
                let (place, fragment) = (place.to_owned(), fragment.map(str::to_owned));
                let (place, skill) = split_skill(&place);
                let (at, other) = match fragment.as_deref().map(|text| text.split_once('@')) {
                    Some(Some((at, skill))) => (Some(at.to_owned()), Some(skill.to_owned())),
                    _ => (fragment, None),
                };
                self.asked.skills.extend(skill.map(str::to_owned).into_iter().chain(other));
                reference = reference.or(at);
                place.clone_into(&mut source);
                self.asked.sources.extend(others.iter().map(|&other| other.to_owned()));
            }
        }
        if let Some(path) = path {
            let path = path.trim_matches('/');
            let place = source.trim_end_matches('/');
            let place = place.strip_suffix(".git").unwrap_or(place);
            let end = if source.contains("://") { ".git" } else { "" };
            source = format!("{place}{end}/{path}");
        }
        if let Some(reference) = reference {
            source = format!("{source}@{reference}");
        }
        // `npx skills add owner/repo` always means GitHub, even if a registry is configured.
        if super::is_shorthand(&source) {
            source = format!("github:{source}");
        }
        self.asked.sources.insert(0, source);
        Ok(())
    }

    fn argument_error(&self, why: &str) -> SourceError {
        let hint = "leave it out, or write: savoir install SOURCE --skill NAME --agent AGENT";
        SourceError::Pasted { line: self.command.clone(), why: why.to_owned(), hint }
    }
}

fn split_names(values: &[&str]) -> impl Iterator<Item = String> {
    let parts = values.iter().flat_map(|value| value.split(','));
    let named = parts.filter(|value| !value.is_empty() && *value != "*");
    named.map(str::to_owned).collect::<Vec<_>>().into_iter()
}

fn split_fragment(source: &str) -> (&str, Option<&str>) {
    match source.split_once('#') {
        Some((place, fragment)) if !fragment.is_empty() => (place, Some(fragment)),
        Some((place, _)) => (place, None),
        None => (source, None),
    }
}

/// Splits `owner/repo@skill` at the last `@`, unless it belongs to the address.
fn split_skill(source: &str) -> (&str, Option<&str>) {
    match source.rsplit_once('@') {
        Some((place, skill))
            if place.contains('/') && !place.ends_with('/') && !skill.contains(['/', ':']) =>
        {
            (place, Some(skill))
        }
        _ => (source, None),
    }
}

/// Splits a text into commands and words like a shell. Shell syntax such as variables is not
/// expanded.
fn split(text: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut characters = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = characters.next() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '\\') => match characters.next() {
                Some('\n') | None => {}
                Some(c) => word.get_or_insert_default().push(c),
            },
            (None, '#') if word.is_none() => while characters.next_if(|c| *c != '\n').is_some() {},
            (None, '\n' | ';' | '&' | '|') => {
                commands.last_mut().into_iter().for_each(|command| command.extend(word.take()));
                commands.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => {
                commands.last_mut().into_iter().for_each(|command| command.extend(word.take()));
            }
            (Some(_) | None, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().into_iter().for_each(|command| command.extend(word.take()));
    commands.retain(|command| !command.is_empty());
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> PastedCommand {
        let whole = parse_pasted_command(&[text.to_owned()]).unwrap().unwrap();
        let words: Vec<String> = split(text).concat();
        if split(text).len() == 1 {
            assert_eq!(
                parse_pasted_command(&words).unwrap().unwrap(),
                whole,
                "as one word and as many"
            );
        }
        whole
    }

    fn source(text: &str) -> String {
        let line = line(text);
        assert_eq!(line.sources.len(), 1, "{text}");
        line.sources[0].clone()
    }

    #[test]
    fn readme_commands_are_parsed() {
        for (text, expected) in [
            ("npx skills add o/r", "github:o/r"),
            ("$ npx skills@latest add o/r", "github:o/r"),
            ("npx --yes skills@1.4.5 add https://github.com/o/r", "https://github.com/o/r"),
            ("pnpm dlx skills add o/r", "github:o/r"),
            ("bunx skills add o/r", "github:o/r"),
            ("yarn dlx skills add o/r", "github:o/r"),
            ("skills add o/r/skills/x", "github:o/r/skills/x"),
            ("npx skills add o/r#v1", "github:o/r@v1"),
            ("npx add-skill o/r", "github:o/r"),
            ("npx openskills install o/r", "github:o/r"),
            ("npx skills add git@github.com:o/r.git", "git@github.com:o/r.git"),
            ("npx skills add ./local", "./local"),
            (
                "npx skills add https://github.com/o/r/tree/main/skills/x",
                "https://github.com/o/r/tree/main/skills/x",
            ),
            ("gh skill install o/r", "github:o/r"),
            ("gh skill install o/r pdf@v1.2", "github:o/r@v1.2"),
            ("gh skill install o/r pdf --pin abc1234", "github:o/r@abc1234"),
            ("claude plugin marketplace add o/r", "github:o/r"),
            ("/plugin marketplace add o/r", "github:o/r"),
            ("gemini extensions install https://github.com/o/r", "https://github.com/o/r"),
            (
                "gemini skills install https://github.com/o/r.git --path skills/x",
                "https://github.com/o/r.git/skills/x",
            ),
            (
                "git clone https://github.com/o/r.git ~/.claude/skills/r",
                "https://github.com/o/r.git",
            ),
            (
                "git clone --depth 1 -b v2 https://github.com/o/r && cd r",
                "https://github.com/o/r@v2",
            ),
            ("FOO=1 npx skills add o/r # installs it", "github:o/r"),
            ("npx skills add \\\n  o/r", "github:o/r"),
        ] {
            assert_eq!(source(text), expected, "{text}");
        }
    }

    #[test]
    fn options_are_parsed() {
        let all = line("npx -y skills add https://github.com/o/r --skill x -a claude-code -g -y");
        assert_eq!((all.skills, all.agents), (vec!["x".into()], vec!["claude-code".into()]));
        assert!(all.global && all.yes && !all.list && !all.all);
        let many = line("npx skills add o/r -s a 'b c' --agent=codex,cursor --list");
        assert_eq!(many.skills, ["a", "b c"]);
        assert_eq!(many.agents, ["codex", "cursor"]);
        assert!(many.list && !many.yes && !many.global);
        let every = line("npx skills add o/r --skill '*' -a '*'");
        assert!(every.all && every.skills.is_empty() && every.agents.is_empty());
        let every = line("npx skills add o/r --all");
        assert!(every.all && every.yes);
        let named = line("npx skills add o/r@pdf");
        assert_eq!((named.sources, named.skills), (vec!["github:o/r".into()], vec!["pdf".into()]));
        let gh = line("gh skill install o/r pdf --agent claude-code --scope user");
        assert_eq!((gh.skills, gh.global), (vec!["pdf".into()], true));
        let before = line("npx skills add -s x o/r");
        assert_eq!((before.skills, before.sources), (vec!["x".into()], vec!["github:o/r".into()]));
    }

    #[test]
    fn only_install_commands_are_parsed() {
        let two = line("/plugin marketplace add o/r\n/plugin install x@y");
        assert_eq!(two.sources, ["github:o/r"]);
        let chain = line("git clone https://github.com/o/r && cd r && npm install");
        assert_eq!(chain.sources, ["https://github.com/o/r"]);
        let page =
            parse_pasted_command(&["https://skills.sh/o/r/pdf?x=y".to_owned()]).unwrap().unwrap();
        assert_eq!((page.sources, page.skills), (vec!["github:o/r".into()], vec!["pdf".into()]));
    }

    #[test]
    fn other_commands_are_not_parsed() {
        for words in [
            &["o/r"][..],
            &["./My Skill"],
            &["pdf"],
            &["o/r", "p/q"],
            &["PDF Tools"],
            &["git", "docker"],
            &["npx"],
            &[],
        ] {
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            assert_eq!(parse_pasted_command(&words).unwrap(), None, "{words:?}");
        }
    }

    #[test]
    fn unsupported_command_has_hint() {
        for text in [
            "npx skills add o/r --telemetry",
            "npx skills add",
            "npx skills add o/r -a",
            "npx cowsay hello",
            "npm install x",
            "/plugin install x@y",
            "git pull origin",
        ] {
            let error = parse_pasted_command(&[text.to_owned()]).unwrap_err();
            assert_eq!((error.code(), error.hint().is_some()), ("pasted_line", true), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_paste_does_not_panic(text in ".{0,60}", odd in "(npx|git|gh|skills|add|clone|-a|'|\"|\\\\|#|&| |o/r|@|=){0,12}") {
            for text in [text, odd] {
                // Only checks that parsing does not panic.
                let _ = parse_pasted_command(&[text]);
            }
        }
    }
}
