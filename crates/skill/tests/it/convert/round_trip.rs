//! Tests conversions that were edited or converted again before they are converted back.

use savoir_skill::{Dialect, Folder, Hint, Source, convert::convert, folder::File, read, read_as};

use super::{CLAUDE, FLOW, convert_text, reading, report_text, text};

#[test]
fn a_conversion_of_a_conversion_starts_at_the_original() {
    let claude = text(FLOW, Dialect::AGENT_FLOW, Dialect::CLAUDE_CODE);
    let codex = text(&claude, Dialect::CLAUDE_CODE, Dialect::CODEX);
    assert_eq!(codex, text(FLOW, Dialect::AGENT_FLOW, Dialect::CODEX));
    assert_eq!(text(&codex, Dialect::CODEX, Dialect::AGENT_FLOW), FLOW);
    assert_eq!(text(&codex, Dialect::CODEX, Dialect::CLAUDE_CODE), claude);
    // Its file does not tell that it is for Codex.
    assert_eq!(text(&codex, Dialect::AGENTSKILLS, Dialect::AGENT_FLOW), FLOW);
}

#[test]
fn conversion_that_resembles_its_original_is_restored() {
    let base = "---\nname: x\ndescription: Does x.\nteam: docs\n---\nDo x.\n";
    let codex = text(base, Dialect::AGENTSKILLS, Dialect::CODEX);
    assert_ne!(codex, base);
    let found = read(Source::from_bytes(codex.into()).unwrap(), None);
    assert_eq!(found.detection.dialect, Dialect::AGENTSKILLS);
    assert_eq!(convert(&found, None, Dialect::AGENTSKILLS).unwrap().files[0].text, base);
}

#[test]
fn edits_of_a_conversion_go_into_the_original() {
    let there = text(FLOW, Dialect::AGENT_FLOW, Dialect::CLAUDE_CODE);
    let shared =
        there.replace("in the wrong language", "hard to read").replace("tone:\n", "tone!\n");
    let back = text(&shared, Dialect::CLAUDE_CODE, Dialect::AGENT_FLOW);
    assert_eq!(
        back,
        FLOW.replace("in the wrong language", "hard to read").replace("tone:\n", "tone!\n")
    );
    let edited = there.replacen("  - tone\n", "  - tone\n  - length\neffort: high\n", 1);
    assert_ne!(edited, there);
    let conversion = convert_text(&edited, Dialect::CLAUDE_CODE, Dialect::AGENT_FLOW);
    insta::assert_snapshot!(conversion.files[0].text, @r###"
    ---
    name: translate
    description: Translates a text. Use when a text is in the wrong language.
    inputs:
      - name: text
        type: textarea
        required: true
      - name: tone
        type: text
        default: plain
      - name: length
        type: text
    knowledge_base: glossary
    model:
      temperature: 0.30
    team: docs
    metadata:
      savoir-from: claude-code
      savoir-keep: |
        effort: high
      savoir-order: name,description,arguments,effort,team,metadata
    ---

    Translate into a {{tone}} tone:

    {{text}}
    "###);
    insta::assert_snapshot!(report_text(&conversion), @r###"
    name: name -> name: kept: the same field
    description: description -> description: kept: the same field
    inputs: inputs -> inputs: moved: edited since the conversion
    knowledge_base: knowledge_base -> knowledge_base: moved: restored as it was before the conversion
    model: model -> model: moved: restored as it was before the conversion
    team: team -> team: kept: the same field
    effort: effort -> metadata.savoir-keep: moved: Agent Flow Lite has no field for it; its lines are stored so that converting back restores it
    body: body -> body: moved: restored as it was before the conversion
    "###);
    let again = text(&conversion.files[0].text, Dialect::AGENT_FLOW, Dialect::CLAUDE_CODE);
    let skill = reading(&again, Dialect::CLAUDE_CODE).skill;
    assert_eq!(skill.policy.host["effort"], "high");
    assert_eq!(skill.policy.arguments, ["text", "tone", "length"]);
}

#[test]
fn edited_metadata_is_merged() {
    let there = text(CLAUDE, Dialect::CLAUDE_CODE, Dialect::SKILLRT);
    let edited = there.replace("  - ada\n", "  - bob\n");
    assert_ne!(edited, there);
    let back = text(&edited, Dialect::SKILLRT, Dialect::CLAUDE_CODE);
    let metadata = "metadata:\n  author: ada\n  # the last release\n  version: \"1.10\"\n";
    let merged = "metadata:\n  author: bob\n  version: '1.10'\n";
    assert_eq!(back, CLAUDE.replace(metadata, merged));
    let edited = there.replace("effort: high", "effort: low");
    let back = text(&edited, Dialect::SKILLRT, Dialect::CLAUDE_CODE);
    assert_eq!(back, CLAUDE.replace("effort: high", "effort: low"));
}

#[test]
fn edited_conversion_keeps_the_stash() {
    let there = text(FLOW, Dialect::AGENT_FLOW, Dialect::CLAUDE_CODE);
    let edited = there.replacen("  - tone\n", "", 1);
    let codex = text(&edited, Dialect::CLAUDE_CODE, Dialect::CODEX);
    assert_eq!(text(&codex, Dialect::CODEX, Dialect::CLAUDE_CODE), edited);
    let back = reading(&text(&codex, Dialect::CODEX, Dialect::AGENT_FLOW), Dialect::AGENT_FLOW);
    assert_eq!(back.skill.policy.knowledge_base.as_deref(), Some("glossary"));
}

#[test]
fn text_after_the_comment_of_prose_stays() {
    let there = text(FLOW, Dialect::AGENT_FLOW, Dialect::PROSE) + "\nOne more line.\n";
    let back = text(&there, Dialect::PROSE, Dialect::AGENT_FLOW);
    assert_eq!(back, format!("{FLOW}\nOne more line.\n"));
}

/// The file `SKILL.md` and another one, in a folder that agents do not know.
fn folder(path: &'static str, text: &str) -> Folder {
    let file = |path: &str| File { path: path.to_owned(), link: false };
    let bytes = text.as_bytes().to_vec();
    let files = vec![file("SKILL.md"), file(path)];
    Folder::in_memory(Some("triage"), files, move |asked| (asked == path).then(|| bytes.clone()))
}

#[test]
fn unknown_field_of_a_plugin_needs_no_stash() {
    let original = "---\nname: m1\ndescription: |\n  Does a thing. Use when asked to do the thing.\n\
                    package: Azure.AI.OpenAI\n---\n# Rtx\nDo it.\n";
    let hint = Hint { dialect: Dialect::CLAUDE_CODE, why: "it is in a plugin".to_owned() };
    let plugin = folder("notes.md", "").with_hint(Some(hint));
    let source = |text: &str| Source::from_bytes(text.into()).unwrap();
    for target in Dialect::ALL {
        let first = read(source(original), Some(&plugin));
        assert_eq!(first.detection.dialect, Dialect::CLAUDE_CODE);
        // Some dialects need tools.
        let Ok(converted) = convert(&first, Some(&plugin), target) else { continue };
        let there = converted.files[0].text.clone();
        // The converted file is elsewhere, so its place does not show its dialect.
        let back = convert(&read(source(&there), None), None, Dialect::CLAUDE_CODE).unwrap();
        assert_eq!(back.files[0].text, original, "{target}");
    }
}

#[test]
fn existing_file_of_codex_is_restored() {
    const YAML: &str = "interface:\n  display_name: \"Triage\"\n  brand_color: \"#D83A34\"\n";
    let original = "---\nname: triage\ndescription: Sorts issues. Use when triaging.\n\
                    disable-model-invocation: true\n---\n# Triage\nSort them.\n";
    let first = folder("agents/openai.yaml", YAML);
    let read = |text: &str, dialect, folder: &Folder| {
        read_as(Source::from_bytes(text.into()).unwrap(), dialect, Some(folder))
    };
    let claude = read(original, Dialect::CLAUDE_CODE, &first);
    let codex = convert(&claude, Some(&first), Dialect::CODEX).unwrap();
    let side = &codex.files[1].text;
    assert!(side.starts_with(YAML), "{side}");
    assert!(side.ends_with("policy:\n  allow_implicit_invocation: false\n"), "{side}");
    let second = folder("agents/openai.yaml", side);
    let middle = read(&codex.files[0].text, Dialect::CODEX, &second);
    assert_eq!(middle.skill.policy.model_invocable, Some(false));
    let back = convert(&middle, Some(&second), Dialect::CLAUDE_CODE).unwrap();
    let files: Vec<_> = back.files.iter().map(|file| (file.path.as_str(), &*file.text)).collect();
    assert_eq!(files, [("SKILL.md", original), ("agents/openai.yaml", YAML)]);
    assert_eq!(back.removed, Vec::<String>::new());
}
