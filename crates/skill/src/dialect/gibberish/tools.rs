//! Reads command tools from a Markdown body.

use std::collections::HashSet;

use savoir_lint::{Diagnostic, Span};

use crate::{
    command::{CommandError, CommandTemplate, default_in_description, parse_yes_no},
    document::Document,
    markdown::{CodeFence, Heading, Outline},
    name,
    skill::{Parameter, ParameterKind, Runner, Tool},
};

/// One `### name` section.
struct Section<'a> {
    text: &'a str,
    outline: &'a Outline,
    heading: Heading,
    /// From the line after the heading to the next section.
    span: Span,
}

/// Returns the name of the first section that has a `#### Command`.
pub(super) fn first_command_tool(document: &Document) -> Option<&str> {
    let section =
        sections(document).into_iter().find(|section| section.part("Command").is_some())?;
    Some(section.heading.title.slice(document.text()))
}

/// The positions of the parts of a command tool.
#[derive(Debug)]
pub(crate) struct CommandToolSpans {
    /// The name in its heading.
    pub(crate) name: Span,
    /// The lines of the command.
    pub(crate) command: Span,
    /// The rows of the parameter table, each with the name of the parameter.
    pub(crate) rows: Vec<(String, Span)>,
}

/// Returns the positions of all tools that have a command, in order.
pub(crate) fn command_tool_spans(document: &Document) -> Vec<CommandToolSpans> {
    let place = |section: Section<'_>| {
        let rows = section.part("Parameters").map(|part| section.rows(part)).unwrap_or_default();
        let name_of = |row: &Row| row.cells.first().map(|cell| cell.trim_matches('`').to_owned());
        Some(CommandToolSpans {
            name: section.heading.title,
            command: section.command_fence()?.content,
            rows: rows.iter().skip(2).filter_map(|row| Some((name_of(row)?, row.span))).collect(),
        })
    };
    sections(document).into_iter().filter_map(place).collect()
}

/// Returns the tools of a body and the problems in them.
pub(super) fn read(document: &Document) -> (Vec<Tool>, Vec<Diagnostic>) {
    let mut tools: Vec<Tool> = Vec::new();
    let mut found = Vec::new();
    let mut names = HashSet::new();
    let sections = sections(document);
    if sections.is_empty() {
        found.push(
            Diagnostic::error("no-tools", document.head_span(), "No tool definitions found")
                .help("add a section `### tool_name` with a `#### Command`"),
        );
    }
    for section in &sections {
        let title = section.heading.title;
        let name = title.slice(document.text());
        if let Err(problem) = name::check_tool_name(name) {
            found.push(
                Diagnostic::error(
                    "invalid-tool-name",
                    title,
                    format!("`{name}` is not a tool name: {problem}"),
                )
                .field(name)
                .help("use lower-case letters, digits and underscores, 32 at most"),
            );
            continue;
        }
        if !names.insert(name) {
            found.push(
                Diagnostic::error("duplicate-tool", title, format!("Duplicate tool name '{name}'"))
                    .field(name)
                    .help("give each tool of a skill its own name"),
            );
            continue;
        }
        let parameters = section.parameters(name, &mut found);
        if let Some(command) = section.command(name, &mut found) {
            tools.push(Tool {
                name: name.to_owned(),
                description: section.description(),
                parameters,
                returns: None,
                atomic: false,
                examples: section.examples(name),
                runner: Runner::Command(command),
            });
        }
    }
    (tools, found)
}

/// Returns the H3 sections whose heading is a single word.
fn sections(document: &Document) -> Vec<Section<'_>> {
    let text = document.text();
    let outline = document.outline();
    let ends = |after: &[Heading]| {
        after
            .iter()
            .find(|next| next.level <= 3)
            .map_or(document.body_span().end, |next| next.line.start)
    };
    let headings = &outline.headings;
    let tools = headings.iter().enumerate().filter(|(_, heading)| {
        let title = heading.title.slice(text);
        heading.level == 3 && !title.is_empty() && !title.contains(char::is_whitespace)
    });
    tools
        .map(|(index, heading)| {
            let span = Span::new(heading.line.end, ends(&headings[index + 1..]));
            Section { text, outline, heading: *heading, span }
        })
        .collect()
}

impl Section<'_> {
    /// Returns the lines under `#### title`.
    fn part(&self, title: &str) -> Option<Span> {
        let mut own = self.parts();
        let (_, span) =
            own.find(|(heading, _)| heading.title.slice(self.text).eq_ignore_ascii_case(title))?;
        Some(span)
    }

    fn parts(&self) -> impl Iterator<Item = (&Heading, Span)> {
        // Headings are sorted, so a file with many sections is still read in one pass.
        let headings = &self.outline.headings;
        let first = headings.partition_point(|heading| heading.line.start < self.span.start);
        let inside = headings[first..].iter().take_while(|next| next.line.start < self.span.end);
        let starts: Vec<&Heading> = inside.filter(|heading| heading.level == 4).collect();
        let ends: Vec<usize> = starts
            .iter()
            .skip(1)
            .map(|next| next.line.start)
            .chain(std::iter::once(self.span.end))
            .collect();
        starts
            .into_iter()
            .zip(ends)
            .map(|(heading, end)| (heading, Span::new(heading.line.end, end)))
    }

    fn fences(&self, within: Span) -> impl Iterator<Item = &CodeFence> {
        let fences = &self.outline.fences;
        let first = fences.partition_point(|fence| fence.whole.start < within.start);
        fences[first..].iter().take_while(move |fence| fence.whole.start < within.end)
    }

    /// Returns the text before the first `####` or code fence, on one line.
    fn description(&self) -> String {
        let part = self.parts().next().map(|(heading, _)| heading.line.start);
        let fence = self.fences(self.span).next().map(|fence| fence.whole.start);
        let end = part.into_iter().chain(fence).min().unwrap_or(self.span.end);
        let lines = Span::new(self.span.start, end).slice(self.text).lines();
        lines.map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Returns the calls of this tool in the code blocks under `#### Examples`, one per line.
    fn examples(&self, tool: &str) -> Vec<String> {
        let Some(part) = self.part("Examples") else { return Vec::new() };
        let start = format!("<start_function_call>call:{tool}{{");
        let is_call = |line: &&str| {
            let inside = line.strip_prefix(start.as_str());
            let inside = inside.and_then(|rest| rest.strip_suffix("}<end_function_call>"));
            inside.is_some_and(|inside| !inside.contains("_function_"))
        };
        let lines = self.fences(part).flat_map(|fence| fence.content.slice(self.text).lines());
        lines.map(str::trim).filter(is_call).map(str::to_owned).collect()
    }

    /// Returns the code block that contains the command.
    fn command_fence(&self) -> Option<&CodeFence> {
        let within = self.part("Command").unwrap_or(self.span);
        self.fences(within).find(|fence| {
            let info = fence.info.slice(self.text);
            matches!(info.split_whitespace().next(), Some("bash" | "sh"))
        })
    }

    fn command(&self, tool: &str, found: &mut Vec<Diagnostic>) -> Option<CommandTemplate> {
        let is_empty = |fence: &&CodeFence| {
            CommandTemplate::parse(fence.content.slice(self.text)) == Err(CommandError::Empty)
        };
        let Some(fence) = self.command_fence().filter(|fence| !is_empty(fence)) else {
            let message = format!("the tool `{tool}` has no command");
            found.push(
                Diagnostic::error("no-command", self.heading.title, message)
                    .field(tool)
                    .help("add `#### Command` and a `bash` code block with one command"),
            );
            return None;
        };
        let invalid = |message: String| {
            Diagnostic::error("invalid-command", fence.content, message)
                .field(tool)
                .help("write one command; put several into a script of the skill")
        };
        CommandTemplate::parse(fence.content.slice(self.text))
            .map_err(|error| found.push(invalid(format!("the tool `{tool}`: {error}"))))
            .ok()
    }

    fn parameters(&self, tool: &str, found: &mut Vec<Diagnostic>) -> Vec<Parameter> {
        let Some(part) = self.part("Parameters") else {
            let message = format!("the tool `{tool}` has no `#### Parameters`");
            found.push(
                Diagnostic::warning("no-parameters-section", self.heading.title, message)
                    .field(tool)
                    .help("add a table, or the word `None.`"),
            );
            return Vec::new();
        };
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut names = HashSet::new();
        for row in self.rows(part).into_iter().skip(2) {
            if let Some(parameter) = Self::parameter(&row, found) {
                if names.insert(parameter.name.clone()) {
                    parameters.push(parameter);
                } else {
                    let message = format!("the parameter `{}` appears twice", parameter.name);
                    let problem = Diagnostic::warning("duplicate-parameter", row.span, message);
                    found.push(problem.field(tool).help("remove one of the rows"));
                }
            }
        }
        parameters
    }

    fn rows(&self, part: Span) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut at = part.start;
        for line in part.slice(self.text).split_inclusive('\n') {
            let span = Span::new(at, at + line.trim_end().len());
            at += line.len();
            let indent = line.len() - line.trim_start().len();
            if line.trim_start().starts_with('|') && !self.outline.is_literal(span.start + indent) {
                rows.push(Row { span, cells: cells(line) });
            }
        }
        rows
    }

    fn parameter(row: &Row, found: &mut Vec<Diagnostic>) -> Option<Parameter> {
        let cell = |index: usize| row.cells.get(index).map_or("", String::as_str);
        let name = cell(0).trim_matches('`').to_owned();
        if name.is_empty() {
            return None;
        }
        // An object cannot be passed as an argument of a program.
        let kind = ParameterKind::from_cell(cell(1)).filter(|kind| *kind != ParameterKind::Object);
        let kind = kind.unwrap_or_else(|| {
            let message = format!("`{}` is read as `string`", cell(1));
            found.push(
                Diagnostic::warning("unknown-parameter-type", row.span, message)
                    .field(name.clone())
                    .help("use string, integer, number, boolean or array"),
            );
            ParameterKind::String
        });
        let required = parse_yes_no(cell(2)).unwrap_or_else(|| {
            let message = format!("`{}` does not say whether `{name}` is required", cell(2));
            let problem = Diagnostic::warning("unclear-required", row.span, message);
            found.push(problem.field(name.clone()).help("write `yes` or `no`"));
            false
        });
        let description = cell(3).to_owned();
        let default = default_in_description(&description, kind);
        Some(Parameter { name, kind, required, description, default })
    }
}

struct Row {
    span: Span,
    cells: Vec<String>,
}

/// Splits a table row into cells; `\|` is a bar inside a cell.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim();
    let inner = inner.strip_prefix('|').unwrap_or(inner);
    let inner = inner.strip_suffix('|').filter(|rest| !rest.ends_with('\\')).unwrap_or(inner);
    let mut cells = vec![String::new()];
    let mut chars = inner.chars().peekable();
    while let Some(c) = chars.next() {
        let cell = cells.last_mut();
        match (c, chars.peek(), cell) {
            ('\\', Some('|'), Some(cell)) => {
                cell.push('|');
                chars.next();
            }
            ('|', ..) => cells.push(String::new()),
            (c, _, Some(cell)) => cell.push(c),
            (_, _, None) => {}
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use savoir_lint::Source;

    fn tools(body: &str) -> (Vec<Tool>, Vec<&'static str>) {
        let text = format!("---\nname: x\n---\n{body}");
        let (tools, found) = read(&Document::parse(Source::new(text)));
        (tools, found.iter().map(|problem| problem.code).collect())
    }

    #[test]
    fn reads_table_and_command() {
        let (tools, found) = tools(
            "### find\n\nFind\nthings.\n\n#### Parameters\n\n| Name | Type | Required | Description |\n\
             |---|---|---|---|\n| `q` | string | Yes | a \\| b |\n| n | int | no | Most (default: 10). |\n\n\
             #### Command\n\n```bash\nrg {{q}} \\\n  -m {{n}}\n```\n",
        );
        assert_eq!(found, [""; 0]);
        assert_eq!(tools[0].description, "Find things.");
        let names: Vec<_> =
            tools[0].parameters.iter().map(|p| (p.name.as_str(), p.required)).collect();
        assert_eq!(names, [("q", true), ("n", false)]);
        assert_eq!(tools[0].parameters[0].description, "a | b");
        assert_eq!(tools[0].parameters[1].default, Some(serde_json::json!(10)));
    }

    #[test]
    fn headings_and_tables_in_code_do_not_count() {
        let (tools, found) = tools(
            "### a\n#### Parameters\n\n```\n| x | string | yes | no |\n### b\n```\nNone.\n#### Command\n```sh\nls\n```\n",
        );
        assert_eq!(found, [""; 0]);
        assert_eq!(tools.len(), 1);
        assert!(tools[0].parameters.is_empty());
    }

    #[test]
    fn several_words_are_documentation() {
        let (tools, found) =
            tools("### How to use\n```bash\nls\n```\n### t\n```bash\nls\n```\n## End\n");
        assert_eq!(tools.len(), 1);
        assert_eq!(found, ["no-parameters-section"]);
    }

    #[test]
    fn problems_have_codes() {
        assert_eq!(tools("text").1, ["no-tools"]);
        assert_eq!(tools("### Bad-Name\n```bash\nls\n```\n").1, ["invalid-tool-name"]);
        assert_eq!(tools("### a\n#### Parameters\nNone.\n").1, ["no-command"]);
        let empty = "### a\n#### Parameters\nNone.\n#### Command\n```bash\n# none yet\n```\n";
        assert_eq!(tools(empty).1, ["no-command"]);
        assert_eq!(
            tools("### a\n#### Parameters\nNone.\n```bash\nls\nls\n```\n").1,
            ["invalid-command"]
        );
    }
}
