//! Reads cases whose keys a format names.

use savoir_lint::{Diagnostic, Span, visible, words::nearest};
use savoir_skill::Folder;

use super::assertion;
use crate::{
    json::{Node, Value},
    limits::{MAX_ASSERTIONS, MAX_PROMPT_BYTES},
    set::{Case, CaseFile, EvalSet, Location, Trigger},
};

/// The keys of a case, the usual one first.
pub(super) struct CaseKeys {
    pub(super) id: &'static [&'static str],
    pub(super) prompt: &'static [&'static str],
    pub(super) expected: &'static [&'static str],
    pub(super) assertions: &'static [&'static str],
    /// Lists of what must not be true of a good result.
    pub(super) must_not: &'static [&'static str],
    pub(super) files: &'static [&'static str],
    pub(super) expected_skill: &'static [&'static str],
}

/// Reads one file into a set.
pub(super) struct Reader<'a> {
    folder: &'a Folder,
    path: &'a str,
    skill: &'a str,
    set: &'a mut EvalSet,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        folder: &'a Folder,
        path: &'a str,
        skill: &'a str,
        set: &'a mut EvalSet,
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self { folder, path, skill, set, diagnostics }
    }

    pub(super) fn add(&mut self, found: Diagnostic) {
        self.diagnostics.push(found);
    }

    pub(super) fn missing(&mut self, node: &Node, key: &str) {
        let message = format!("`{key}` is missing");
        let found = Diagnostic::error("eval-missing-field", head(node), message);
        self.add(found.help(format!("add \"{key}\" to this object")));
    }

    pub(super) fn wrong_type(&mut self, node: &Node, key: &str, expected: &str) {
        let message = format!("`{key}` is {}, expected {expected}", node.kind());
        let found = Diagnostic::error("eval-wrong-type", node.span, message);
        self.add(found.help(format!("write {expected} here")));
    }

    /// Warns about keys of the file that look like misspelt ones.
    pub(super) fn known_keys(&mut self, root: &Node, known: &[&str]) {
        for member in root.members() {
            if let Some(near) = nearest(&member.key, known.iter().copied())
                && near != member.key
            {
                let key = visible(&member.key);
                let message = format!("the key `{key}` is not read; did you mean `{near}`?");
                let found = Diagnostic::warning("eval-unknown-key", member.key_span, message);
                self.add(found.help(format!("rename it to `{near}`, or remove it")));
            }
        }
    }

    /// Reads the name of the skill, which must be the skill of the folder.
    pub(super) fn skill_name(&mut self, root: &Node, key: &str) {
        let Some(node) = root.get(key) else { return };
        let Some(name) = node.text() else {
            return self.wrong_type(node, key, "a string");
        };
        if name != self.skill {
            let message = format!(
                "`{key}` is `{}`, but the skill is `{}`",
                visible(name),
                visible(self.skill)
            );
            let found = Diagnostic::warning("eval-other-skill", node.span, message);
            self.add(found.help(format!("write \"{}\"", visible(self.skill))));
        }
        self.set.skill.get_or_insert_with(|| name.to_owned());
    }

    pub(super) fn trigger(&mut self, query: &str, should_trigger: bool, span: Span) {
        if query.trim().is_empty() {
            let found = Diagnostic::error("eval-missing-field", span, "the query is empty");
            return self.add(found.help("write what a user would say"));
        }
        let location = Location { file: self.path.to_owned(), span };
        self.set.triggers.push(Trigger { query: query.to_owned(), should_trigger, location });
    }

    pub(super) fn cases(&mut self, list: &Node, keys: &CaseKeys) {
        self.cases_that_require(list, keys, &[]);
    }

    pub(super) fn cases_that_require(&mut self, list: &Node, keys: &CaseKeys, requires: &[String]) {
        let Some(items) = list.items() else {
            let found = Diagnostic::error(
                "eval-wrong-type",
                list.span,
                format!("the cases are {}, expected a list", list.kind()),
            );
            return self.add(found.help("write a list of objects: [{…}, {…}]"));
        };
        if items.is_empty() {
            let found = Diagnostic::warning("eval-no-cases", list.span, "the list has no cases");
            return self.add(found.help("add a case with a prompt and assertions"));
        }
        for (index, item) in items.iter().enumerate() {
            self.case(item, index, keys, requires);
        }
    }

    pub(super) fn case(&mut self, node: &Node, index: usize, keys: &CaseKeys, requires: &[String]) {
        if !matches!(node.value, Value::Object(_)) {
            let message = format!("the case is {}, expected an object", node.kind());
            let found = Diagnostic::error("eval-wrong-type", node.span, message);
            return self.add(found.help("write {\"prompt\": …, \"assertions\": […]}"));
        }
        let Some(prompt) = self.prompt(node, keys) else { return };
        let expected = self.first_text(node, keys.expected);
        let mut assertions = self.assertions(node, keys.assertions);
        for mut assertion in self.assertions(node, keys.must_not) {
            assertion.text = format!("The agent did not do this: {}", assertion.text);
            assertions.push(assertion);
        }
        self.should_trigger(node, &prompt, keys);
        let id = self.id(node, index, keys);
        if assertions.is_empty() && expected.is_none() {
            // A list of wrong assertions was reported already.
            let is_trigger = node.get("should_trigger").is_some()
                || keys.expected_skill.iter().any(|key| node.get(key).is_some());
            let has_list = keys.assertions.iter().any(|key| node.get(key).is_some());
            if !is_trigger && !has_list {
                let message = "the case has nothing to check";
                let found = Diagnostic::warning("eval-no-assertions", head(node), message);
                self.add(found.help(format!("add `{}`", keys.assertions[0])));
            }
        }
        let files = self.files(node, keys);
        let location = Location { file: self.path.to_owned(), span: node.span };
        let requires = requires.to_vec();
        self.set.cases.push(Case { id, prompt, expected, files, assertions, requires, location });
    }

    fn prompt(&mut self, node: &Node, keys: &CaseKeys) -> Option<String> {
        let Some(found) = keys.prompt.iter().find_map(|key| node.get(key)) else {
            self.missing(node, keys.prompt[0]);
            return None;
        };
        let Some(text) = found.text() else {
            self.wrong_type(found, keys.prompt[0], "a string");
            return None;
        };
        if text.trim().is_empty() {
            let error = Diagnostic::error("eval-missing-field", found.span, "the prompt is empty");
            self.add(error.help("write what a user would ask for"));
            return None;
        }
        if text.len() > MAX_PROMPT_BYTES {
            let message =
                format!("the prompt has {} bytes, at most {MAX_PROMPT_BYTES} are sent", text.len());
            let error = Diagnostic::error("eval-too-large", found.span, message);
            self.add(error.help("move data into a file and list it in `files`"));
            return None;
        }
        Some(text.to_owned())
    }

    fn id(&mut self, node: &Node, index: usize, keys: &CaseKeys) -> String {
        let found = keys.id.iter().find_map(|key| node.get(key));
        match found.map(|node| (node, &node.value)) {
            Some((_, Value::Text(text))) if !text.trim().is_empty() => text.trim().to_owned(),
            Some((_, Value::Number(number))) => number.to_string(),
            Some((node, _)) => {
                self.wrong_type(node, keys.id[0], "a number or a string");
                (index + 1).to_string()
            }
            None => (index + 1).to_string(),
        }
    }

    /// The first text; other types are errors.
    fn first_text(&mut self, node: &Node, keys: &[&'static str]) -> Option<String> {
        let (key, found) = keys.iter().find_map(|key| Some((*key, node.get(key)?)))?;
        match &found.value {
            Value::Text(text) => (!text.trim().is_empty()).then(|| text.clone()),
            Value::Null => None,
            Value::Object(_) | Value::List(_) => Some(found.to_value().to_string()),
            _ => {
                self.wrong_type(found, key, "a string");
                None
            }
        }
    }

    fn assertions(&mut self, node: &Node, keys: &[&'static str]) -> Vec<crate::set::Assertion> {
        let found = keys.iter().find_map(|key| Some((*key, node.get(key)?)));
        let Some((key, list)) = found else { return Vec::new() };
        let items = match &list.value {
            Value::List(items) => items.as_slice(),
            Value::Text(_) => std::slice::from_ref(list),
            Value::Null => &[],
            _ => {
                self.wrong_type(list, key, "a list");
                &[]
            }
        };
        if items.len() > MAX_ASSERTIONS {
            let message = format!("a case has at most {MAX_ASSERTIONS} assertions");
            let error = Diagnostic::error("eval-too-large", list.span, message);
            self.add(error.help("split the case"));
        }
        let mut assertions = Vec::new();
        for item in items.iter().take(MAX_ASSERTIONS) {
            match assertion::read(item) {
                Ok(assertion) => assertions.push(assertion),
                Err(error) => self.add(*error),
            }
        }
        assertions
    }

    /// Files are named by their path in the folder of the skill, or of its evaluations.
    fn files(&mut self, node: &Node, keys: &CaseKeys) -> Vec<CaseFile> {
        let found = keys.files.iter().find_map(|key| Some((*key, node.get(key)?)));
        let Some((key, list)) = found else { return Vec::new() };
        let Some(items) = list.items() else {
            if list.value != Value::Null {
                self.wrong_type(list, key, "a list of paths");
            }
            return Vec::new();
        };
        let mut files = Vec::new();
        for item in items {
            match item.text() {
                Some(path) => files.extend(self.file(path, item.span)),
                None => self.wrong_type(item, key, "a path"),
            }
        }
        files
    }

    fn file(&mut self, path: &str, span: Span) -> Option<CaseFile> {
        let clean = path.strip_prefix("./").unwrap_or(path);
        let outside = clean.is_empty()
            || clean.starts_with('/')
            || clean.contains(['\\', '\0'])
            || clean.split('/').any(|part| part == "..");
        if outside {
            let message = format!("`{}` leads out of the skill", visible(path));
            let error = Diagnostic::error("eval-outside-path", span, message);
            self.add(error.help("put the file into the skill, for example in evals/files/"));
            return None;
        }
        let candidates =
            [clean.to_owned(), format!("evals/{clean}"), format!("evals/files/{clean}")];
        let Some(source) = candidates.iter().find(|path| self.folder.has(path)) else {
            let message = format!("the skill has no file `{}`", visible(path));
            let error = Diagnostic::error("eval-missing-file", span, message);
            self.add(
                error
                    .help(format!("add it as evals/files/{}, or correct the path", visible(clean))),
            );
            return None;
        };
        // The agent sees it without the folders of the evaluations.
        let short =
            ["evals/files/", "evals/"].iter().find_map(|prefix| source.strip_prefix(prefix));
        let path = short.unwrap_or(source).to_owned();
        Some(CaseFile { path, source: source.clone(), span })
    }

    /// A case that says which skill should be used is a trigger query, too. An explicit
    /// `should_trigger` decides.
    fn should_trigger(&mut self, node: &Node, prompt: &str, keys: &CaseKeys) {
        let explicit = node.get("should_trigger");
        let skill = keys.expected_skill.iter().find_map(|key| node.get(key));
        let Some(found) = explicit.or(skill) else { return };
        let names = |node: &Node| match &node.value {
            Value::Text(name) => Some(name == self.skill),
            Value::List(items) => Some(items.iter().any(|item| item.text() == Some(self.skill))),
            Value::Null => Some(false),
            _ => None,
        };
        let should = match &found.value {
            Value::Bool(should) if explicit.is_some() => *should,
            _ if explicit.is_some() => {
                return self.wrong_type(found, "should_trigger", "true or false");
            }
            _ => match names(found) {
                // Both skills would be right.
                Some(false) if node.get("acceptable_skills").and_then(names) == Some(true) => {
                    return;
                }
                Some(should) => should,
                None => {
                    return self.wrong_type(found, keys.expected_skill[0], "the name of a skill");
                }
            },
        };
        self.trigger(prompt, should, found.span);
    }
}

/// The first character of an object, so that a message about the whole of it is short.
fn head(node: &Node) -> Span {
    Span::new(node.span.start, node.span.start + 1)
}
