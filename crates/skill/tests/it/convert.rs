//! Tests conversions: the result, the report, and that converting back restores the original.

mod generated;
mod pairs;
mod real;
mod round_trip;

use savoir_skill::{
    Dialect, Reading, Source,
    convert::{Conversion, ConvertError, FieldOutcome, convert},
    read_as,
};

fn reading(text: &str, dialect: Dialect) -> Reading {
    read_as(Source::from_bytes(text.into()).expect("a small text"), dialect, None)
}

fn convert_text(text: &str, from: Dialect, target: Dialect) -> Conversion {
    convert(&reading(text, from), None, target).expect("a readable skill")
}

fn text(text: &str, from: Dialect, target: Dialect) -> String {
    convert_text(text, from, target).files.swap_remove(0).text
}

/// Converts to every dialect and back, and gives the intermediate texts.
#[track_caller]
fn round_trips(original: &str, from: Dialect) -> Vec<(Dialect, String)> {
    let mut texts = Vec::new();
    for target in Dialect::ALL {
        let converted = convert(&reading(original, from), None, target);
        if matches!(converted, Err(ConvertError::NoTools { .. })) {
            continue;
        }
        let there = text(original, from, target);
        let back = text(&there, target, from);
        assert_eq!(back, original, "{from} to {target} and back, by way of\n{there}");
        let name = reading(&there, target).skill.name;
        assert!(target == Dialect::PROSE || !name.is_empty(), "{target}");
        texts.push((target, there));
    }
    texts
}

fn outcomes_of(conversion: &Conversion, field: &str) -> Vec<(FieldOutcome, Option<String>)> {
    let of_field = conversion.report.iter().filter(|report| report.field == field);
    of_field.map(|report| (report.how, report.to.clone())).collect()
}

const FLOW: &str = "---
name: translate
description: Translates a text. Use when a text is in the wrong language.
inputs:
  - {name: text, type: textarea, required: true}   # what to translate
  - {name: tone, type: text, default: plain}
knowledge_base: glossary
model:
  temperature: 0.30
team: docs
---

Translate into a {{tone}} tone:

{{text}}
";

#[test]
fn converting_to_the_same_dialect_changes_nothing() {
    for broken in [FLOW, "---\nname: [x\n---\n", "", "\u{feff}---\r\na: 1\r\n---"] {
        let conversion = convert_text(broken, Dialect::AGENT_FLOW, Dialect::AGENT_FLOW);
        assert_eq!(conversion.files[0].text, broken);
        assert!(conversion.report.iter().all(|report| report.how == FieldOutcome::Kept));
    }
}

/// The report as lines.
fn report_text(conversion: &Conversion) -> String {
    let lines = conversion.report.iter().map(|report| {
        let place = |place: &Option<String>| place.clone().unwrap_or_else(|| "-".into());
        let how = format!("{:?}", report.how).to_lowercase();
        format!(
            "{}: {} -> {}: {how}: {}",
            report.field,
            place(&report.from),
            place(&report.to),
            report.why
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

const GAIA: &str = "---
name: weather
version: 1.2.0
description: Tells the weather.
author: ada
license: MIT
permissions:
  - network:read:api.weather.example
  - network:write:api.weather.example
  - env:read:WEATHER_KEY
tools:
  - name: forecast
    description: Forecast for a city
    parameters:
      city: {type: string, required: true}
security_tier: community
requirements:
  env_vars: [WEATHER_KEY]
tags: [weather]
---
# Weather
";

const COMMANDS: &str = "---
name: files
version: 0.1.0
description: Lists files.
read_only: true
timeout: 10
network: true
---
# Files

### list_files

List the files of a folder.

#### Parameters

| Name | Type | Required | Description |
|------|------|----------|-------------|
| folder | string | yes | The folder |

#### Command

```bash
ls -1 -- {{folder}}
```
";

const CLAUDE: &str = "---
# How it is started
name: deploy
description: Deploys. Use when asked to deploy.
arguments: [target]
disable-model-invocation: true
effort: high

allowed-tools:
  - Bash(git push:*)
  - Read
metadata:
  author: ada
  # the last release
  version: \"1.10\"
---
Deploy to $target. It costs $5.
";

const CLAW: &str = "---
name: shot
description: Takes screenshots.
homepage: https://shot.example
metadata: {\"openclaw\": {\"emoji\": \"S\", \"requires\": {\"bins\": [\"shot\"]}, \"level\": 1.10}}
---
Run `{baseDir}/shot`.
";

const PROSE: &str = "# Say hello\n\nGreets the reader, warmly.\n\nThen stops.";

#[test]
fn every_skill_round_trips() {
    round_trips(FLOW, Dialect::AGENT_FLOW);
    round_trips(GAIA, Dialect::GAIA);
    round_trips(COMMANDS, Dialect::GIBBERISH);
    round_trips(CLAUDE, Dialect::CLAUDE_CODE);
    round_trips(CLAW, Dialect::OPENCLAW);
    round_trips(PROSE, Dialect::PROSE);
}

#[test]
fn line_ends_and_byte_order_marks_round_trip() {
    for (example, dialect) in [(FLOW, Dialect::AGENT_FLOW), (CLAUDE, Dialect::CLAUDE_CODE)] {
        let windows = example.replace('\n', "\r\n");
        for (target, there) in round_trips(&windows, dialect) {
            assert!(!there.replace("\r\n", "").contains('\n'), "{target}: {there:?}");
        }
        for (_, there) in round_trips(&format!("\u{feff}{windows}"), dialect) {
            assert!(there.starts_with('\u{feff}'));
        }
        // One line of the other kind among them.
        round_trips(&windows.replacen("description: ", "x: 1\ndescription: ", 1), dialect);
        round_trips(&example.replacen("description: ", "x: 1\r\ndescription: ", 1), dialect);
    }
}

#[test]
fn awkward_fields_round_trip() {
    let awkward = "---

# A comment on its own

name: awkward
# about the description
description: >
  Folded
  text.

date: 2024-01-31
ratio: 1.10
octal: 0o17
flag: yes
'quoted key': \"a \\u2028 b\"
\"a,b\": [1, 'x']
nothing:
text: |+
  first
    second

  # no comment

list:
- a
- b: c   # note
tools: whatever
version: 2
metadata:
    nested:
        deep: [x]
    last: |
        block

# the end
---
Body
";
    for dialect in Dialect::ALL {
        if dialect != Dialect::PROSE {
            round_trips(awkward, dialect);
        }
    }
}

#[test]
fn values_mean_the_same_in_both_versions_of_yaml() {
    let skill = "---\nname: x\nversion: 1.0.0\ndescription: d\ninputs: []\nflag: yes\n---\n";
    let there = text(skill, Dialect::SKILLRT, Dialect::GAIA);
    assert_eq!(reading(&there, Dialect::GAIA).skill.extra["flag"], "yes");
    assert!(there.contains("\nflag: 'yes'\n"), "{there}");
}

#[test]
fn unsplittable_frontmatter_is_stored_whole() {
    for head in [
        "{name: x, description: d, version: 1.0.0}",
        "name: &n x\ndescription: *n\nversion: 1.0.0",
        "base: &b {tags: [a]}\nname: x\ndescription: d\nversion: 1.0.0\n<<: *b",
        "  name: x\n  description: d\n  version: 1.0.0",
    ] {
        let skill = format!("---\n{head}\n---\nbody\n");
        for dialect in [Dialect::SKILLRT, Dialect::AGENTSKILLS, Dialect::GAIA] {
            round_trips(&skill, dialect);
        }
    }
    round_trips("\n\n---\nname: x\nversion: 1.0.0\ndescription: d\n---\nbody", Dialect::SKILLRT);
    round_trips("--- \nname: x\ndescription: d\n---\t\nbody", Dialect::AGENTSKILLS);
}

#[test]
fn broken_skills_are_repaired_or_rejected() {
    let broken = "---\nname: x\ndescription: Use for: y\n---\nbody\n";
    let mended = "---\nname: x\ndescription: \"Use for: y\"\n---\nbody\n";
    assert_eq!(text(broken, Dialect::AGENTSKILLS, Dialect::CLAUDE_CODE), mended);
    for (dialect, text) in [
        (Dialect::SKILLRT, broken),
        (Dialect::AGENTSKILLS, "---\nname: x\nname: y\n---\n"),
        (Dialect::AGENTSKILLS, "---\nname: [x\n  y: {\n---\n"),
        (Dialect::AGENTSKILLS, "no frontmatter"),
        (Dialect::AGENTSKILLS, ""),
    ] {
        let error = convert(&reading(text, dialect), None, Dialect::CODEX).unwrap_err();
        assert!(matches!(error, ConvertError::Unreadable { line: 1.., .. }), "{text}: {error}");
    }
}

#[test]
fn reports_are_json() {
    let conversion = convert_text(FLOW, Dialect::AGENT_FLOW, Dialect::CLAUDE_CODE);
    assert_eq!(outcomes_of(&conversion, "name"), [(FieldOutcome::Kept, Some("name".into()))]);
    let json = serde_json::to_value(&conversion.report[0]).unwrap();
    let expected = serde_json::json!({
        "field": "name", "from": "name", "to": "name", "how": "kept", "why": "the same field"
    });
    assert_eq!(json, expected);
}
