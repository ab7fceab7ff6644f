//! Tests every format with ordinary and with malicious input.

use insta::assert_snapshot;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{Edit, Fix};

const COLORED: TextStyle = TextStyle { color: true, width: 80 };
const PLAIN: TextStyle = TextStyle { color: false, width: 80 };

fn rules() -> Vec<RuleDescription> {
    let rule = |id| RuleDescription {
        id,
        docs: RuleDocs("A title.\n\n## Why\n\nBecause.\n"),
        severity: Severity::Error,
    };
    vec![rule("byte-order-mark"), rule("unquoted-colon"), rule("unreadable-file")]
}

fn render(format: Format, style: TextStyle, reports: &[FileReport<'_>]) -> String {
    let found = || reports.iter().flat_map(|report| report.diagnostics);
    let errors = found().filter(|found| found.is_error()).count();
    let warnings = found().count() - errors;
    let summary = Summary { files: reports.len(), errors, warnings, ..Summary::default() };
    let mut out = Vec::new();
    let mut renderer = renderer(format, style, rules());
    renderer.start(&mut out).unwrap();
    for report in reports {
        renderer.file(&mut out, report).unwrap();
    }
    renderer.finish(&mut out, &summary).unwrap();
    String::from_utf8(out).unwrap()
}

fn render_one(format: Format, path: &str, text: &str, found: &[Diagnostic]) -> String {
    let source = Source::new(text.to_owned());
    let dialect = Some("agentskills");
    let report = FileReport { path, source: Some(&source), dialect, diagnostics: found };
    render(format, PLAIN, &[report])
}

fn text(text: &str, found: &[Diagnostic]) -> String {
    render_one(Format::Text, "SKILL.md", text, found)
}

const DEMO: &str = "---\nname: demo\ndescription: Use for: demos\n---\n# Demo\n";

fn demo_findings() -> [Diagnostic; 2] {
    [
        Diagnostic::warning("byte-order-mark", Span::new(10, 14), "the name is `demo`")
            .fix(Fix::unsafe_edits(vec![Edit::replace(Span::new(10, 14), "example")])),
        Diagnostic::error("unquoted-colon", Span::new(28, 42), "the value has a colon in it")
            .help("put the whole value in quotes")
            .fix(Fix::safe(vec![Edit::insert(28, "\""), Edit::insert(42, "\"")])),
    ]
}

fn unread() -> [Diagnostic; 1] {
    [Diagnostic::error("unreadable-file", Span::at(0), "byte 7 is not valid UTF-8")
        .help("save the file as UTF-8")]
}

fn render_demo(format: Format, style: TextStyle) -> String {
    let source = Source::new(DEMO.to_owned());
    let dialect = Some("agentskills");
    let (found, unread) = (demo_findings(), unread());
    let reports = [
        FileReport { path: "a/SKILL.md", source: Some(&source), dialect, diagnostics: &found },
        FileReport { path: "b/SKILL.md", source: Some(&source), dialect, diagnostics: &[] },
        FileReport { path: "c/SKILL.md", source: None, dialect: None, diagnostics: &unread },
    ];
    render(format, style, &reports)
}

#[test]
fn formats_have_names() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let error = "xml".parse::<Format>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown format `xml`; expected one of text, json, sarif, github"
    );
}

#[test]
fn text_shows_the_line_and_the_hint() {
    assert_snapshot!(render_demo(Format::Text, PLAIN), @"
    warning[byte-order-mark]: the name is `demo`
     --> a/SKILL.md:2:7
      |
    2 | name: demo
      |       ^^^^
      |
      = hint: `--fix --unsafe` replaces `demo` with `example`

    error[unquoted-colon]: the value has a colon in it
     --> a/SKILL.md:3:14
      |
    3 | description: Use for: demos
      |              ^^^^^^^^^^^^^^
      |
      = hint: put the whole value in quotes
      = hint: `--fix` does this

    error[unreadable-file]: byte 7 is not valid UTF-8
    --> c/SKILL.md
     = hint: save the file as UTF-8

    checked 3 skills: 2 errors, 1 warning
    ");
}

#[test]
fn text_has_colors_if_enabled() {
    assert_snapshot!(render_demo(Format::Text, COLORED).replace('\u{1b}', "ESC"), @"
    ESC[1mESC[33mwarning[byte-order-mark]ESC[0mESC[1m: the name is `demo`ESC[0m
     ESC[1mESC[94m-->ESC[0m a/SKILL.md:2:7
      ESC[1mESC[94m|ESC[0m
    ESC[1mESC[94m2ESC[0m ESC[1mESC[94m|ESC[0m name: demo
      ESC[1mESC[94m|ESC[0m       ESC[1mESC[33m^^^^ESC[0m
      ESC[1mESC[94m|ESC[0m
      ESC[1mESC[94m= ESC[0mESC[1mhintESC[0m: `--fix --unsafe` replaces `demo` with `example`

    ESC[1mESC[91merror[unquoted-colon]ESC[0mESC[1m: the value has a colon in itESC[0m
     ESC[1mESC[94m-->ESC[0m a/SKILL.md:3:14
      ESC[1mESC[94m|ESC[0m
    ESC[1mESC[94m3ESC[0m ESC[1mESC[94m|ESC[0m description: Use for: demos
      ESC[1mESC[94m|ESC[0m              ESC[1mESC[91m^^^^^^^^^^^^^^ESC[0m
      ESC[1mESC[94m|ESC[0m
      ESC[1mESC[94m= ESC[0mESC[1mhintESC[0m: put the whole value in quotes
      ESC[1mESC[94m= ESC[0mESC[1mhintESC[0m: `--fix` does this

    ESC[1mESC[91merror[unreadable-file]ESC[0mESC[1m: byte 7 is not valid UTF-8ESC[0m
    ESC[1mESC[94m--> ESC[0mc/SKILL.md
     ESC[1mESC[94m= ESC[0mESC[1mhintESC[0m: save the file as UTF-8

    checked 3 skills: ESC[1mESC[91m2 errorsESC[0m, ESC[1mESC[33m1 warningESC[0m
    ");
}

#[test]
fn text_ends_with_a_summary() {
    let sum = |files, errors, warnings| {
        let mut out = Vec::new();
        let mut renderer = renderer(Format::Text, PLAIN, rules());
        renderer
            .finish(&mut out, &Summary { files, errors, warnings, ..Summary::default() })
            .unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(sum(12, 0, 0), "checked 12 skills: all fine\n");
    assert_eq!(sum(12, 2, 1), "checked 12 skills: 2 errors, 1 warning\n");
    assert_eq!(sum(1, 1, 0), "checked 1 skill: 1 error\n");
    assert_eq!(sum(1, 0, 3), "checked 1 skill: 3 warnings\n");
    assert_eq!(sum(0, 0, 0), "checked 0 skills\n");
}

#[test]
fn text_points_at_the_ends_of_files() {
    let found = |at| [Diagnostic::error("code", Span::at(at), "something is missing")];
    assert_snapshot!(text("", &found(0)), @"
    error[code]: something is missing
     --> SKILL.md:1:1
      |
    1 |
      | ^

    checked 1 skill: 1 error
    ");
    assert_snapshot!(text("name: demo\n", &found(11)), @"
    error[code]: something is missing
     --> SKILL.md:2:1
      |
    2 |
      | ^

    checked 1 skill: 1 error
    ");
    assert_snapshot!(text("name: demo", &found(99)), @"
    error[code]: something is missing
     --> SKILL.md:1:11
      |
    1 | name: demo
      |           ^

    checked 1 skill: 1 error
    ");
}

#[test]
fn text_cuts_spans_of_many_lines() {
    let found = [Diagnostic::error("code", Span::new(4, DEMO.len()), "this is too long")];
    assert_snapshot!(text(DEMO, &found), @"
    error[code]: this is too long
     --> SKILL.md:2:1
      |
    2 | name: demo
      | ^^^^^^^^^^ and 3 more lines

    checked 1 skill: 1 error
    ");
}

#[test]
fn text_cuts_long_lines() {
    let line = format!("{}needle{}", "hay ".repeat(15_000), " hay".repeat(15_000));
    let found = [Diagnostic::error("code", Span::new(60_000, 60_006), "that is sharp")];
    assert_snapshot!(text(&line, &found), @"
    error[code]: that is sharp
     --> SKILL.md:1:60001
      |
    1 | ...y hay hay hay hay needle hay hay hay hay hay hay hay hay hay hay hay h...
      |                      ^^^^^^

    checked 1 skill: 1 error
    ");
    let found = [Diagnostic::error("code", Span::new(0, line.len()), "that is long")];
    assert_snapshot!(text(&line, &found), @"
    error[code]: that is long
     --> SKILL.md:1:1
      |
    1 | hay hay hay hay hay hay hay hay hay hay hay hay hay hay hay hay hay ha...
      | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    checked 1 skill: 1 error
    ");
}

#[test]
fn text_places_marks_below_wide_characters_and_tabs() {
    let line = "\u{feff}\tname:\t世界 é x\r\n";
    let at = line.find('x').unwrap();
    let found = [
        Diagnostic::error("code", Span::new(0, 3), "a byte order mark"),
        Diagnostic::error("code", Span::new(10, 16), "two worlds"),
        Diagnostic::error("code", Span::new(at, at + 1), "an unknown"),
        Diagnostic::error("code", Span::new(at + 1, at + 2), "a carriage return"),
    ];
    assert_snapshot!(text(line, &found), @r"
    error[code]: a byte order mark
     --> SKILL.md:1:1
      |
    1 | \u{feff}    name:    世界 é x
      | ^^^^^^^^

    error[code]: two worlds
     --> SKILL.md:1:8
      |
    1 |     name:    世界 é x
      |              ^^^^

    error[code]: an unknown
     --> SKILL.md:1:13
      |
    1 |     name:    世界 é x
      |                     ^

    error[code]: a carriage return
     --> SKILL.md:1:14
      |
    1 |     name:    世界 é x\r
      |                      ^^

    checked 1 skill: 4 errors
    ");
}

#[test]
fn text_places_marks_below_combining_characters() {
    let shown = text("e\u{301}\u{301} x", &[Diagnostic::error("code", Span::new(6, 7), "x")]);
    assert!(shown.contains("\n1 | e\u{301}\u{301} x\n  |   ^\n"), "{shown}");
}

#[test]
fn text_escapes_control_characters_of_the_file() {
    let line = "a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}evil\u{2066}\u{200b}\u{e0041}z";
    let found = [Diagnostic::error("code", Span::new(1, 6), line)
        .help(line)
        .fix(Fix::safe(vec![Edit::replace(Span::new(1, 6), "\u{1b}]0;title\u{7}")]))];
    let shown = render_one(Format::Text, "a\u{1b}[2K\nb/SKILL.md", line, &found);
    assert_snapshot!(shown, @r"
    error[code]: a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}evil\u{2066}\u{200b}\u{e0041}z
     --> a\u{1b}[2K\nb/SKILL.md:1:2
      |
    1 | a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}evil\u{2066}\u{200b}\u{e0041}z
      |  ^^^^^^^^^^
      |
      = hint: a\u{1b}[31mred\u{7}\u{9b}2J\u{202e}evil\u{2066}\u{200b}\u{e0041}z
      = hint: `--fix` replaces `\u{1b}[31m` with `\u{1b}]0;title\u{7}`

    checked 1 skill: 1 error
    ");
}

#[test]
fn text_describes_what_a_fix_does() {
    let fixed = |edits: Vec<Edit>| {
        let found = Diagnostic::warning("code", Span::new(0, 4), "look").fix(Fix::safe(edits));
        let shown = text("name: demo\nmore\n", &[found]);
        let line = shown.lines().find_map(|line| line.split_once("= hint: "));
        line.map(|(_, help)| help.to_owned()).unwrap_or_default()
    };
    assert_eq!(fixed(vec![Edit::insert(0, "my-")]), "`--fix` inserts `my-`");
    assert_eq!(fixed(vec![Edit::delete(Span::new(0, 4))]), "`--fix` removes `name`");
    let replace = Edit::replace(Span::new(0, 4), "title");
    assert_eq!(fixed(vec![replace]), "`--fix` replaces `name` with `title`");
    assert_eq!(fixed(vec![Edit::delete(Span::new(0, 11))]), "`--fix` fixes this");
    assert_eq!(fixed(vec![Edit::insert(0, "x".repeat(41))]), "`--fix` fixes this");
    assert_eq!(fixed(vec![Edit::insert(0, "a"), Edit::insert(4, "b")]), "`--fix` fixes this");
    assert_eq!(fixed(Vec::new()), "");
}

#[test]
fn last_line_counts_fixable_problems() {
    let last = |fixable, fixable_unsafe| {
        let summary = Summary { files: 1, errors: 2, warnings: 3, fixable, fixable_unsafe };
        let mut out = Vec::new();
        renderer(Format::Text, PLAIN, rules()).finish(&mut out, &summary).unwrap();
        String::from_utf8(out).unwrap().lines().last().unwrap().to_owned()
    };
    assert_eq!(last(0, 0), "checked 1 skill: 2 errors, 3 warnings");
    assert_eq!(last(3, 0), "3 of 5 findings can be fixed with --fix");
    assert_eq!(last(0, 1), "1 of 5 findings can be fixed with --fix --unsafe");
    assert_eq!(last(2, 1), "2 of 5 findings can be fixed with --fix, 1 more with --unsafe");
}

#[test]
fn json_is_one_document() {
    let shown = render_demo(Format::Json, PLAIN);
    assert_snapshot!(shown, @r#"
    {"files":[
    {"path":"a/SKILL.md","dialect":"agentskills","diagnostics":[{"code":"byte-order-mark","severity":"warning","message":"the name is `demo`","start":{"line":2,"column":7},"end":{"line":2,"column":11},"help":null,"fix":{"safety":"unsafe","edits":[{"start":{"line":2,"column":7,"offset":10},"end":{"line":2,"column":11,"offset":14},"text":"example"}]}},{"code":"unquoted-colon","severity":"error","message":"the value has a colon in it","start":{"line":3,"column":14},"end":{"line":3,"column":28},"help":"put the whole value in quotes","fix":{"safety":"safe","edits":[{"start":{"line":3,"column":14,"offset":28},"end":{"line":3,"column":14,"offset":28},"text":"\""},{"start":{"line":3,"column":28,"offset":42},"end":{"line":3,"column":28,"offset":42},"text":"\""}]}}]},
    {"path":"b/SKILL.md","dialect":"agentskills","diagnostics":[]},
    {"path":"c/SKILL.md","dialect":null,"diagnostics":[{"code":"unreadable-file","severity":"error","message":"byte 7 is not valid UTF-8","start":{"line":1,"column":1},"end":{"line":1,"column":1},"help":"save the file as UTF-8","fix":null}]}
    ],"summary":{"files":3,"errors":2,"warnings":1,"fixable":0}}
    "#);
    let value: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(value["files"].as_array().unwrap().len(), 3);
}

#[test]
fn json_without_files_is_a_document_too() {
    let shown = render(Format::Json, PLAIN, &[]);
    let empty =
        "{\"files\":[],\"summary\":{\"files\":0,\"errors\":0,\"warnings\":0,\"fixable\":0}}\n";
    assert_eq!(shown, empty);
}

#[test]
fn json_counts_characters_and_bytes() {
    let edit = Edit::delete(Span::new(5, 6));
    let found = [Diagnostic::error("code", Span::new(5, 6), "x").fix(Fix::safe(vec![edit]))];
    let shown = render_one(Format::Json, "SKILL.md", "é\né x", &found);
    let value: Value = serde_json::from_str(&shown).unwrap();
    let found = &value["files"][0]["diagnostics"][0];
    assert_eq!(found["start"], serde_json::json!({"line": 2, "column": 2}));
    let start = &found["fix"]["edits"][0]["start"];
    assert_eq!(*start, serde_json::json!({"line": 2, "column": 2, "offset": 5}));
}

#[test]
fn sarif_results_have_rules_places_and_fixes() {
    let shown = render_demo(Format::Sarif, PLAIN);
    let value: Value = serde_json::from_str(&shown).unwrap();
    let run = &value["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), 3);
    let mut results = run["results"].clone();
    for result in results.as_array_mut().unwrap() {
        // The index changes with every new rule.
        let index = result.as_object_mut().unwrap().shift_remove("ruleIndex");
        if let Some(index) = index.and_then(|index| index.as_u64()) {
            assert_eq!(rules[index as usize]["id"], result["ruleId"]);
        }
    }
    assert_snapshot!(serde_json::to_string_pretty(&results).unwrap(), @r#"
    [
      {
        "ruleId": "byte-order-mark",
        "level": "warning",
        "message": {
          "text": "the name is `demo`"
        },
        "locations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "a/SKILL.md"
              },
              "region": {
                "startLine": 2,
                "startColumn": 7,
                "endLine": 2,
                "endColumn": 11
              }
            }
          }
        ],
        "fixes": [
          {
            "artifactChanges": [
              {
                "artifactLocation": {
                  "uri": "a/SKILL.md"
                },
                "replacements": [
                  {
                    "deletedRegion": {
                      "startLine": 2,
                      "startColumn": 7,
                      "endLine": 2,
                      "endColumn": 11
                    },
                    "insertedContent": {
                      "text": "example"
                    }
                  }
                ]
              }
            ],
            "properties": {
              "safety": "unsafe"
            }
          }
        ]
      },
      {
        "ruleId": "unquoted-colon",
        "level": "error",
        "message": {
          "text": "the value has a colon in it\nhint: put the whole value in quotes"
        },
        "locations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "a/SKILL.md"
              },
              "region": {
                "startLine": 3,
                "startColumn": 14,
                "endLine": 3,
                "endColumn": 28
              }
            }
          }
        ],
        "fixes": [
          {
            "description": {
              "text": "put the whole value in quotes"
            },
            "artifactChanges": [
              {
                "artifactLocation": {
                  "uri": "a/SKILL.md"
                },
                "replacements": [
                  {
                    "deletedRegion": {
                      "startLine": 3,
                      "startColumn": 14,
                      "endLine": 3,
                      "endColumn": 14
                    },
                    "insertedContent": {
                      "text": "\""
                    }
                  },
                  {
                    "deletedRegion": {
                      "startLine": 3,
                      "startColumn": 28,
                      "endLine": 3,
                      "endColumn": 28
                    },
                    "insertedContent": {
                      "text": "\""
                    }
                  }
                ]
              }
            ],
            "properties": {
              "safety": "safe"
            }
          }
        ]
      },
      {
        "ruleId": "unreadable-file",
        "level": "error",
        "message": {
          "text": "byte 7 is not valid UTF-8\nhint: save the file as UTF-8"
        },
        "locations": [
          {
            "physicalLocation": {
              "artifactLocation": {
                "uri": "c/SKILL.md"
              },
              "region": {
                "startLine": 1,
                "startColumn": 1,
                "endLine": 1,
                "endColumn": 1
              }
            }
          }
        ]
      }
    ]
    "#);
}

#[test]
fn sarif_describes_rules() {
    let value: Value = serde_json::from_str(&render(Format::Sarif, PLAIN, &[])).unwrap();
    assert_eq!(value["version"], "2.1.0");
    let rule = &value["runs"][0]["tool"]["driver"]["rules"][0];
    for pointer in ["/shortDescription/text", "/fullDescription/text", "/help/markdown"] {
        assert!(rule.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !text.is_empty()));
    }
    assert!(matches!(rule["defaultConfiguration"]["level"].as_str(), Some("error" | "warning")));
    assert_eq!(value["runs"][0]["results"], serde_json::json!([]));
}

#[test]
fn github_output_is_workflow_commands() {
    assert_snapshot!(render_demo(Format::Github, PLAIN), @"
    ::warning file=a/SKILL.md,line=2,col=7,endLine=2,endColumn=11,title=byte-order-mark::the name is `demo`
    ::error file=a/SKILL.md,line=3,col=14,endLine=3,endColumn=28,title=unquoted-colon::the value has a colon in it%0Ahint: put the whole value in quotes
    ::error file=c/SKILL.md,title=unreadable-file::byte 7 is not valid UTF-8%0Ahint: save the file as UTF-8
    ");
}

#[test]
fn github_commands_cannot_be_forged() {
    let found =
        [Diagnostic::error("code", Span::new(0, 12), "50%\r\n::set-output name=x::y\u{1b}")
            .help("write 100%, or: nothing")];
    let shown = render_one(Format::Github, "a:b,c%\n::error ::d.md", DEMO, &found);
    assert_snapshot!(shown, @r"::error file=a%3Ab%2Cc%25%0A%3A%3Aerror %3A%3Ad.md,line=1,endLine=2,title=code::50%25%0D%0A::set-output name=x::y\u{1b}%0Ahint: write 100%25, or: nothing");
}

/// Generates text with many special characters.
fn hostile() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        3 => any::<char>().prop_map(String::from),
        2 => "[a-z:]{0,8}",
        1 => Just("\r\n".to_owned()),
        1 => Just("\n".to_owned()),
        1 => Just("\t".to_owned()),
        1 => Just("\u{1b}[31m".to_owned()),
        1 => Just("\u{202e}\u{200d}\u{feff}".to_owned()),
        1 => Just("世界👩\u{200d}👩".to_owned()),
        1 => Just("\u{301}".repeat(90)),
        1 => Just(" ".repeat(40)),
        1 => Just("x".repeat(200)),
    ];
    proptest::collection::vec(part, 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn nothing_in_a_file_reaches_the_terminal_raw(
        text in hostile(),
        message in hostile(),
        path in hostile(),
        start in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
        width in 0_usize..200,
    ) {
        let places: Vec<usize> =
            (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        let (start, end) = (*start.get(&places), *end.get(&places));
        let span = Span::new(start.min(end), start.max(end));
        let found = [Diagnostic::error("code", span, message.clone())
            .help(message.clone())
            .fix(Fix::safe(vec![Edit::replace(span, message)]))];
        let source = Source::new(text);
        let report =
            FileReport { path: &path, source: Some(&source), dialect: None, diagnostics: &found };

        for color in [false, true] {
            let shown = render(Format::Text, TextStyle { color, width }, &[report]);
            let shown = if color { without_colors(&shown) } else { shown };
            prop_assert!(!shown.contains(|c| c != '\n' && crate::visible::is_hidden(c)), "{:?}", shown);
        }
        let shown = render(Format::Github, PLAIN, &[report]);
        prop_assert_eq!(shown.lines().count(), 1);
        prop_assert!(!shown.trim_end_matches('\n').contains(crate::visible::is_hidden), "{:?}", shown);
        for format in [Format::Json, Format::Sarif] {
            let shown = render(format, PLAIN, &[report]);
            prop_assert!(serde_json::from_str::<Value>(&shown).is_ok());
        }
    }

    #[test]
    fn invalid_spans_do_not_panic(text in hostile(), start: usize, end: usize) {
        let edits = vec![Edit::delete(Span::new(start, end))];
        let found = [Diagnostic::error("code", Span::new(start, end), "x").fix(Fix::safe(edits))];
        for format in Format::ALL {
            prop_assert!(!render_one(format, "SKILL.md", &text, &found).is_empty());
        }
    }
}

/// Removes `ESC [ numbers m`, and no other sequence.
fn without_colors(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        result.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(0);
        rest = after[end..].strip_prefix('m').unwrap_or_else(|| {
            result.push('\u{1b}');
            after
        });
    }
    result + rest
}
