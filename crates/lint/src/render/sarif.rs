//! Findings as SARIF 2.1.0, the interchange format of static analysis.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::{FileReport, Renderer, RuleDescription, Summary};
use crate::{Diagnostic, Edit, Fix, Safety, Severity, Span};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(super) struct Sarif {
    rules: Vec<RuleDescription>,
    results: usize,
}

impl Sarif {
    pub(super) fn new(rules: Vec<RuleDescription>) -> Self {
        Self { rules, results: 0 }
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.rules.binary_search_by(|rule| rule.id.cmp(id)).ok()
    }
}

impl Renderer for Sarif {
    fn start(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{\"$schema\":\"{SCHEMA}\",\"version\":\"2.1.0\",\"runs\":[{{\"tool\":")?;
        let driver = Driver {
            name: "savoir",
            version: env!("CARGO_PKG_VERSION"),
            rules: self.rules.iter().map(descriptor).collect(),
        };
        serde_json::to_writer(&mut *out, &Tool { driver })?;
        out.write_all(b",\"columnKind\":\"unicodeCodePoints\",\"results\":[")
    }

    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()> {
        if report.diagnostics.is_empty() {
            return Ok(());
        }
        let uri = uri(report.path);
        for found in report.diagnostics {
            out.write_all(if self.results == 0 { b"\n" } else { b",\n" })?;
            self.results += 1;
            let index = self.index(found.code);
            serde_json::to_writer(&mut *out, &result(report, &uri, found, index))?;
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write, _: &Summary) -> io::Result<()> {
        out.write_all(if self.results == 0 { b"]}]}\n" } else { b"\n]}]}\n" })
    }
}

#[derive(Serialize)]
struct Tool {
    driver: Driver,
}

#[derive(Serialize)]
struct Driver {
    name: &'static str,
    version: &'static str,
    rules: Vec<Descriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    id: &'static str,
    short_description: Plain,
    full_description: Plain,
    help: Formatted,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct Plain {
    text: String,
}

#[derive(Serialize)]
struct Formatted {
    text: String,
    markdown: String,
}

#[derive(Serialize)]
struct Configuration {
    level: Severity,
}

fn descriptor(rule: &RuleDescription) -> Descriptor {
    let RuleDescription { id, docs, severity } = *rule;
    let reason = docs.section("Why").unwrap_or_else(|| docs.summary());
    Descriptor {
        id,
        short_description: Plain { text: docs.summary() },
        full_description: Plain { text: reason },
        help: Formatted { text: docs.markdown(), markdown: docs.markdown() },
        default_configuration: Configuration { level: severity },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Finding<'a> {
    rule_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: Severity,
    message: Plain,
    locations: [Location<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    fixes: Option<[Remedy<'a>; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location<'a> {
    physical_location: Place<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Place<'a> {
    artifact_location: Artifact<'a>,
    region: Region,
}

#[derive(Serialize)]
struct Artifact<'a> {
    uri: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
    end_line: usize,
    end_column: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Remedy<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<Plain>,
    artifact_changes: [ArtifactChange<'a>; 1],
    properties: Properties,
}

#[derive(Serialize)]
struct Properties {
    safety: Safety,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ArtifactChange<'a> {
    artifact_location: Artifact<'a>,
    replacements: Replacements<'a>,
}

struct Replacements<'a>(&'a FileReport<'a>, &'a [Edit]);

impl Serialize for Replacements<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.1.iter().map(|edit| replacement(self.0, edit)))
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Replacement<'a> {
    deleted_region: Region,
    #[serde(skip_serializing_if = "Option::is_none")]
    inserted_content: Option<Content<'a>>,
}

#[derive(Serialize)]
struct Content<'a> {
    text: &'a str,
}

fn result<'a>(
    report: &'a FileReport<'a>,
    uri: &'a str,
    found: &'a Diagnostic,
    rule_index: Option<usize>,
) -> Finding<'a> {
    let text = match &found.help {
        Some(help) => format!("{}\nhelp: {help}", found.message),
        None => found.message.clone(),
    };
    let physical_location =
        Place { artifact_location: Artifact { uri }, region: region(report, found.span) };
    Finding {
        rule_id: found.code,
        rule_index,
        level: found.severity,
        message: Plain { text },
        locations: [Location { physical_location }],
        fixes: found.fix.as_ref().and_then(|fix| remedy(report, uri, found, fix)).map(|fix| [fix]),
    }
}

/// A fix that changes something in a text that is there.
fn remedy<'a>(
    report: &'a FileReport<'a>,
    uri: &'a str,
    found: &Diagnostic,
    fix: &'a Fix,
) -> Option<Remedy<'a>> {
    if fix.edits.is_empty() || report.source.is_none() {
        return None;
    }
    let replacements = Replacements(report, &fix.edits);
    Some(Remedy {
        description: found.help.clone().map(|text| Plain { text }),
        artifact_changes: [ArtifactChange { artifact_location: Artifact { uri }, replacements }],
        properties: Properties { safety: fix.safety },
    })
}

fn replacement<'a>(report: &FileReport<'_>, edit: &'a Edit) -> Replacement<'a> {
    Replacement {
        deleted_region: region(report, edit.span),
        inserted_content: (!edit.text.is_empty()).then_some(Content { text: &edit.text }),
    }
}

/// The place of a span; the beginning of a file that could not be read, since code scanning
/// services drop results without a region.
fn region(report: &FileReport<'_>, span: Span) -> Region {
    let (start, end) = report.range_or_beginning(span);
    Region {
        start_line: start.line,
        start_column: start.column,
        end_line: end.line,
        end_column: end.column,
    }
}

/// A path as a URI: relative paths stay relative, absolute ones become `file:` addresses.
pub fn uri(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let path = path.strip_prefix("./").unwrap_or(&path);
    let drive = cfg!(windows) && path.as_bytes().get(1) == Some(&b':');
    let mut result = String::with_capacity(path.len() + 8);
    if drive {
        result.push_str("file:///");
    } else if path.starts_with('/') {
        result.push_str("file://");
    }
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                result.push(char::from(byte));
            }
            b':' if drive && at == 1 => result.push(':'),
            _ => {
                result.push('%');
                for digit in [byte >> 4, byte & 15] {
                    result.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
                }
            }
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri("skills/demo/SKILL.md"), "skills/demo/SKILL.md");
        assert_eq!(uri("./a b/100%/é:1.md"), "a%20b/100%25/%C3%A9%3A1.md");
        assert_eq!(uri("/srv/demo\u{1b}/SKILL.md"), "file:///srv/demo%1B/SKILL.md");
        assert_eq!(uri("-"), "-");
        assert_eq!(uri(""), "");
    }
}
