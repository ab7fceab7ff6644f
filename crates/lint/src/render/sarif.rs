//! Renders diagnostics as SARIF 2.1.0, the interchange format of static analysis.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::{FileReport, Renderer, RuleDescription, Summary};
use crate::{Diagnostic, Edit, Fix, Safety, Severity, Span, visible_json};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub(super) struct SarifRenderer {
    rules: Vec<RuleDescription>,
    results: usize,
}

impl SarifRenderer {
    pub(super) fn new(rules: Vec<RuleDescription>) -> Self {
        Self { rules, results: 0 }
    }

    fn rule_index(&self, id: &str) -> Option<usize> {
        self.rules.binary_search_by(|rule| rule.id.cmp(id)).ok()
    }
}

impl Renderer for SarifRenderer {
    fn start(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{\"$schema\":\"{SCHEMA}\",\"version\":\"2.1.0\",\"runs\":[{{\"tool\":")?;
        let driver = Driver {
            name: "savoir",
            version: env!("CARGO_PKG_VERSION"),
            rules: self.rules.iter().map(reporting_descriptor).collect(),
        };
        serde_json::to_writer(&mut *out, &Tool { driver })?;
        out.write_all(b",\"columnKind\":\"unicodeCodePoints\",\"results\":[")
    }

    fn file(&mut self, out: &mut dyn Write, report: &FileReport<'_>) -> io::Result<()> {
        if report.diagnostics.is_empty() {
            return Ok(());
        }
        let uri = uri(report.path);
        for diagnostic in report.diagnostics {
            out.write_all(if self.results == 0 { b"\n" } else { b",\n" })?;
            self.results += 1;
            let rule_index = self.rule_index(diagnostic.code);
            let result = sarif_result(report, &uri, diagnostic, rule_index);
            out.write_all(visible_json(&serde_json::to_string(&result)?).as_bytes())?;
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
    rules: Vec<ReportingDescriptor>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReportingDescriptor {
    id: &'static str,
    short_description: PlainText,
    full_description: PlainText,
    help: MultiformatMessage,
    default_configuration: Configuration,
}

#[derive(Serialize)]
struct PlainText {
    text: String,
}

#[derive(Serialize)]
struct MultiformatMessage {
    text: String,
    markdown: String,
}

#[derive(Serialize)]
struct Configuration {
    level: Severity,
}

fn reporting_descriptor(rule: &RuleDescription) -> ReportingDescriptor {
    let RuleDescription { id, docs, severity } = *rule;
    let reason = docs.section("Why").unwrap_or_else(|| docs.summary());
    ReportingDescriptor {
        id,
        short_description: PlainText { text: docs.summary() },
        full_description: PlainText { text: reason },
        help: MultiformatMessage { text: docs.markdown(), markdown: docs.markdown() },
        default_configuration: Configuration { level: severity },
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult<'a> {
    rule_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_index: Option<usize>,
    level: Severity,
    message: PlainText,
    locations: [Location<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    fixes: Option<[SarifFix<'a>; 1]>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location<'a> {
    physical_location: PhysicalLocation<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation<'a> {
    artifact_location: ArtifactLocation<'a>,
    region: Region,
}

#[derive(Serialize)]
struct ArtifactLocation<'a> {
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
struct SarifFix<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<PlainText>,
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
    artifact_location: ArtifactLocation<'a>,
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

fn sarif_result<'a>(
    report: &'a FileReport<'a>,
    uri: &'a str,
    diagnostic: &'a Diagnostic,
    rule_index: Option<usize>,
) -> SarifResult<'a> {
    let text = match &diagnostic.help {
        Some(help) => format!("{}\nhint: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let physical_location = PhysicalLocation {
        artifact_location: ArtifactLocation { uri },
        region: region(report, diagnostic.span),
    };
    SarifResult {
        rule_id: diagnostic.code,
        rule_index,
        level: diagnostic.severity,
        message: PlainText { text },
        locations: [Location { physical_location }],
        fixes: diagnostic
            .fix
            .as_ref()
            .and_then(|fix| sarif_fix(report, uri, diagnostic, fix))
            .map(|fix| [fix]),
    }
}

/// Returns the fix in SARIF form; `None` for a fix without edits, or if the file could not be read.
fn sarif_fix<'a>(
    report: &'a FileReport<'a>,
    uri: &'a str,
    diagnostic: &Diagnostic,
    fix: &'a Fix,
) -> Option<SarifFix<'a>> {
    if fix.edits.is_empty() || report.source.is_none() {
        return None;
    }
    let replacements = Replacements(report, &fix.edits);
    Some(SarifFix {
        description: diagnostic.help.clone().map(|text| PlainText { text }),
        artifact_changes: [ArtifactChange {
            artifact_location: ArtifactLocation { uri },
            replacements,
        }],
        properties: Properties { safety: fix.safety },
    })
}

fn replacement<'a>(report: &FileReport<'_>, edit: &'a Edit) -> Replacement<'a> {
    Replacement {
        deleted_region: region(report, edit.span),
        inserted_content: (!edit.text.is_empty()).then_some(Content { text: &edit.text }),
    }
}

/// Returns the region of a span. If the file could not be read, it is the start of the file,
/// because code scanning services drop results without a region.
fn region(report: &FileReport<'_>, span: Span) -> Region {
    let (start, end) = report.range_or_file_start(span);
    Region {
        start_line: start.line,
        start_column: start.column,
        end_line: end.line,
        end_column: end.column,
    }
}

/// Returns a path as a URI: relative paths stay relative, absolute ones become `file:` URLs.
pub fn uri(path: &str) -> String {
    let path = if cfg!(windows) { path.replace('\\', "/") } else { path.to_owned() };
    let path = path.strip_prefix("./").unwrap_or(&path);
    let drive = cfg!(windows) && path.as_bytes().get(1) == Some(&b':');
    let mut sarif_result = String::with_capacity(path.len() + 8);
    if drive {
        sarif_result.push_str("file:///");
    } else if path.starts_with('/') {
        sarif_result.push_str("file://");
    }
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                sarif_result.push(char::from(byte));
            }
            b':' if drive && at == 1 => sarif_result.push(':'),
            _ => {
                sarif_result.push('%');
                for digit in [byte >> 4, byte & 15] {
                    sarif_result.push(char::from(b"0123456789ABCDEF"[usize::from(digit)]));
                }
            }
        }
    }
    sarif_result
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
