//! Writes the results as text, as JSON, and as `JUnit` XML for test servers.

use std::fmt::Write as _;

use savoir_lint::visible;
use serde_json::{Value, json};

use super::{CheckFailure, CheckOutcome, Group};

/// Maximum length of a reason, in characters.
const MAX_TEXT_CHARS: usize = 2000;

/// Number of checks that passed, failed and were skipped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

pub fn counts<'a>(outcomes: impl IntoIterator<Item = &'a CheckOutcome>) -> Counts {
    let mut counts = Counts::default();
    for outcome in outcomes {
        match &outcome.verdict {
            Ok(()) => counts.passed += 1,
            Err(CheckFailure::Failed(_)) => counts.failed += 1,
            Err(CheckFailure::Skipped(_)) => counts.skipped += 1,
        }
    }
    counts
}

/// The text for one check.
pub fn line(outcome: &CheckOutcome) -> String {
    let CheckOutcome { id, proves, .. } = outcome;
    match &outcome.verdict {
        Ok(()) => format!("✓ {id}: {proves}\n"),
        Err(CheckFailure::Failed(why)) => {
            format!("✗ {id}: {proves}\n    {}\n", visible(&bounded(why)))
        }
        Err(CheckFailure::Skipped(why)) => format!("- {id}: skipped: {}\n", visible(&bounded(why))),
    }
}

pub fn as_json(base: &str, prefix: &str, outcomes: &[CheckOutcome]) -> Value {
    let counts = counts(outcomes);
    let one = |outcome: &CheckOutcome| {
        let (status, reason) = match &outcome.verdict {
            Ok(()) => ("passed", None),
            Err(CheckFailure::Failed(why)) => ("failed", Some(bounded(why))),
            Err(CheckFailure::Skipped(why)) => ("skipped", Some(bounded(why))),
        };
        json!({
            "id": outcome.id, "group": outcome.group.as_str(), "proves": outcome.proves,
            "status": status, "reason": reason, "seconds": outcome.took.as_secs_f64(),
        })
    };
    json!({
        "registry": base, "published_under": prefix, "passed": counts.passed,
        "failed": counts.failed, "skipped": counts.skipped,
        "checks": outcomes.iter().map(one).collect::<Vec<_>>(),
    })
}

/// The results as XML, with one test suite for each group.
pub fn junit(base: &str, outcomes: &[CheckOutcome]) -> String {
    let all = counts(outcomes);
    let total: f64 = outcomes.iter().map(|outcome| outcome.took.as_secs_f64()).sum();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        xml,
        "<testsuites name=\"savoir registry conformance\" tests=\"{}\" failures=\"{}\" \
         skipped=\"{}\" time=\"{total:.3}\">",
        outcomes.len(),
        all.failed,
        all.skipped
    );
    for group in Group::ALL {
        let own: Vec<&CheckOutcome> = outcomes.iter().filter(|one| one.group == group).collect();
        if own.is_empty() {
            continue;
        }
        let counts = counts(own.iter().copied());
        let time: f64 = own.iter().map(|outcome| outcome.took.as_secs_f64()).sum();
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{}\" hostname=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" \
             errors=\"0\" time=\"{time:.3}\">",
            group.as_str(),
            escaped(base),
            own.len(),
            counts.failed,
            counts.skipped
        );
        for outcome in own {
            case(&mut xml, outcome);
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn case(xml: &mut String, outcome: &CheckOutcome) {
    let (id, group) = (escaped(&outcome.id), outcome.group.as_str());
    let time = outcome.took.as_secs_f64();
    let proves = escaped(outcome.proves);
    let _ = write!(xml, "    <testcase classname=\"{group}\" name=\"{id}\" time=\"{time:.3}\">");
    match &outcome.verdict {
        Ok(()) => {}
        Err(CheckFailure::Failed(why)) => {
            let why = escaped(&bounded(why));
            let _ = write!(xml, "<failure message=\"{proves}\">{why}</failure>");
        }
        Err(CheckFailure::Skipped(why)) => {
            let _ = write!(xml, "<skipped message=\"{}\"/>", escaped(&bounded(why)));
        }
    }
    xml.push_str("</testcase>\n");
}

fn bounded(text: &str) -> String {
    let mut cut: String = text.chars().take(MAX_TEXT_CHARS).collect();
    if cut.len() < text.len() {
        cut.push('…');
    }
    cut
}

/// Escapes text for XML. Some characters are not allowed in XML at all, so they are written as `\u{…}`.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&apos;"),
            '\n' | '\t' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(c));
            }
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn outcome(verdict: Result<(), CheckFailure>) -> CheckOutcome {
        CheckOutcome {
            id: "errors/json".to_owned(),
            group: Group::Errors,
            proves: "Errors are \"JSON\" & <nothing> else.",
            verdict,
            took: Duration::from_millis(1500),
        }
    }

    #[test]
    fn junit_report_escapes_text() {
        let nasty =
            "]]>&<x a='\"'>\u{0}\u{1}\u{1b}[2J\u{7f}\u{85}\r\n\u{fffe}\u{ffff}🦀é".to_owned();
        let long = "&".repeat(100_000);
        let outcomes = [
            outcome(Ok(())),
            outcome(Err(CheckFailure::Failed(nasty.clone()))),
            outcome(Err(CheckFailure::Failed(long))),
            outcome(Err(CheckFailure::Skipped(nasty))),
        ];
        let xml = junit("https://example.com/<\u{0}&\">", &outcomes);
        assert!(xml.len() < 30_000, "{}", xml.len());
        let mut reader = quick_xml::Reader::from_str(&xml);
        reader.config_mut().check_end_names = true;
        let (mut cases, mut failures) = (0, 0);
        loop {
            match reader.read_event().unwrap() {
                quick_xml::events::Event::Eof => break,
                quick_xml::events::Event::Start(tag) => {
                    for attribute in tag.attributes() {
                        attribute.unwrap();
                    }
                    cases += usize::from(tag.name().as_ref() == b"testcase");
                    failures += usize::from(tag.name().as_ref() == b"failure");
                }
                _ => {}
            }
        }
        assert_eq!((cases, failures), (4, 2));
        let bad = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{fffe}' | '\u{ffff}');
        assert!(!xml.chars().any(bad), "these have no place in XML");
        assert!(xml.contains("tests=\"4\" failures=\"2\" skipped=\"1\""), "{}", &xml[..300]);
    }

    #[test]
    fn report_lines_have_no_control_characters() {
        let text = line(&outcome(Err(CheckFailure::Failed("\u{1b}[2J".to_owned()))));
        assert!(text.starts_with("✗ errors/json: ") && !text.contains('\u{1b}'), "{text}");
        assert!(line(&outcome(Ok(()))).starts_with("✓ "));
        let skipped = line(&outcome(Err(CheckFailure::Skipped("it needs --token".to_owned()))));
        assert_eq!(skipped, "- errors/json: skipped: it needs --token\n");
    }
}
