//! Tests conversions between pairs of dialects.

use savoir_skill::{
    Dialect, Source,
    convert::{ConvertError, convert},
    read,
};

use super::{CLAUDE, CLAW, COMMANDS, FLOW, GAIA, PROSE, convert_text, reading, report_text, text};

#[test]
fn agent_flow_to_claude_code() {
    let conversion = convert_text(FLOW, Dialect::AGENT_FLOW, Dialect::CLAUDE_CODE);
    insta::assert_snapshot!(conversion.files[0].text, @r###"
    ---
    name: translate
    description: Translates a text. Use when a text is in the wrong language.
    arguments:
      - text
      - tone
    team: docs
    metadata:
      savoir-from: agent-flow
      savoir-body: '{{x}}'
      savoir-keep: |
        inputs:
          - {name: text, type: textarea, required: true}   # what to translate
          - {name: tone, type: text, default: plain}
        knowledge_base: glossary
        model:
          temperature: 0.30
      savoir-order: name,description,inputs,knowledge_base,model,team
    ---

    Translate into a $tone tone:

    $text
    "###);
    insta::assert_snapshot!(report_text(&conversion), @r###"
    name: name -> name: kept: the same field
    description: description -> description: kept: the same field
    inputs: inputs -> arguments: approximated: arguments have names only: no types, defaults or descriptions
    knowledge_base: knowledge_base -> metadata.savoir-keep: moved: Claude Code has no field for it; its lines are stored so that converting back restores it
    model: model -> metadata.savoir-keep: moved: Claude Code has no field for it; its lines are stored so that converting back restores it
    team: team -> team: kept: Claude Code leaves it alone
    body: body -> body: moved: placeholders like `{{x}}` became those of claude-code
    "###);
}

#[test]
fn agent_flow_to_skillrt() {
    let conversion = convert_text(FLOW, Dialect::AGENT_FLOW, Dialect::SKILLRT);
    insta::assert_snapshot!(conversion.files[0].text, @r###"
    ---
    name: translate
    version: 0.0.0
    description: Translates a text. Use when a text is in the wrong language.
    inputs:
      - name: text
        type: string
        required: true
      - name: tone
        type: string
        default: plain
    team: docs
    metadata:
      savoir-from: agent-flow
      savoir-keep: |
        inputs:
          - {name: text, type: textarea, required: true}   # what to translate
          - {name: tone, type: text, default: plain}
        knowledge_base: glossary
        model:
          temperature: 0.30
      savoir-order: name,description,inputs,knowledge_base,model,team
    ---

    Translate into a {{tone}} tone:

    {{text}}
    "###);
    insta::assert_snapshot!(report_text(&conversion), @r###"
    name: name -> name: kept: the same field
    description: description -> description: kept: the same field
    inputs: inputs -> inputs: approximated: labels and widget types have no place here
    knowledge_base: knowledge_base -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are stored so that converting back restores it
    model: model -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are stored so that converting back restores it
    team: team -> team: kept: skillrt leaves it alone
    version: - -> version: approximated: skillrt needs a version
    body: body -> body: kept: byte for byte
    "###);
}

#[test]
fn gaia_to_skillrt() {
    let conversion = convert_text(GAIA, Dialect::GAIA, Dialect::SKILLRT);
    insta::assert_snapshot!(conversion.files[0].text, @r###"
    ---
    name: weather
    version: 1.2.0
    description: Tells the weather.
    authors:
      - ada
    license: MIT
    permissions:
      network:
        - api.weather.example
      env:
        - WEATHER_KEY
    tags: [weather]
    metadata:
      savoir-from: gaia
      savoir-keep: |
        author: ada
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
      savoir-order: name,version,description,author,license,permissions,tools,security_tier,requirements,tags
    ---
    # Weather
    "###);
    insta::assert_snapshot!(report_text(&conversion), @r###"
    name: name -> name: kept: the same field
    version: version -> version: kept: the same field
    description: description -> description: kept: the same field
    author: author -> authors: moved: skillrt has it at `authors`
    license: license -> license: kept: the same field
    permissions: permissions -> permissions.network: moved: skillrt has it at `permissions.network`
    permissions: permissions -> permissions.env: moved: skillrt has it at `permissions.env`
    tools: tools -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are stored so that converting back restores it
    security_tier: security_tier -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are stored so that converting back restores it
    requirements: requirements -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are stored so that converting back restores it
    tags: tags -> tags: kept: the same field
    body: body -> body: kept: byte for byte
    "###);
}

#[test]
fn gibberish_to_gaia() {
    let conversion = convert_text(COMMANDS, Dialect::GIBBERISH, Dialect::GAIA);
    insta::assert_snapshot!(conversion.files[0].text, @r###"
    ---
    name: files
    version: 0.1.0
    description: Lists files.
    author: unknown
    license: NOASSERTION
    permissions:
      - network:read
      - network:write
    security_tier: experimental
    tools:
      - name: list_files
        description: List the files of a folder.
        parameters:
          folder:
            type: string
            required: true
            description: The folder
    metadata:
      savoir-from: gibberish
      savoir-keep: |
        read_only: true
        timeout: 10
        network: true
      savoir-order: name,version,description,read_only,timeout,network
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
    "###);
    insta::assert_snapshot!(report_text(&conversion), @r###"
    name: name -> name: kept: the same field
    version: version -> version: kept: the same field
    description: description -> description: kept: the same field
    read_only: read_only -> metadata.savoir-keep: moved: AMD GAIA has no field for it; its lines are stored so that converting back restores it
    timeout: timeout -> metadata.savoir-keep: moved: AMD GAIA has no field for it; its lines are stored so that converting back restores it
    network: network -> permissions: moved: AMD GAIA has it at `permissions`
    author: - -> author: approximated: GAIA needs an author
    license: - -> license: approximated: GAIA needs a license
    security_tier: - -> security_tier: approximated: a converted skill starts as experimental
    tools: body -> tools: approximated: GAIA calls functions of `tools.py`; write one for each command
    body: body -> body: kept: byte for byte
    "###);
}

#[test]
fn claude_code_to_codex_has_a_side_file() {
    let conversion = convert_text(CLAUDE, Dialect::CLAUDE_CODE, Dialect::CODEX);
    let paths: Vec<&str> = conversion.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["SKILL.md", "agents/openai.yaml"]);
    assert_eq!(conversion.files[1].text, "policy:\n  allow_implicit_invocation: false\n");
    insta::assert_snapshot!(conversion.files[0].text, @r###"
    ---
    # How it is started
    name: deploy
    description: Deploys. Use when asked to deploy.
    allowed-tools:
      - Bash(git push:*)
      - Read
    metadata:
      author: ada
      # the last release
      version: "1.10"
      savoir-from: claude-code
      savoir-keep: |+
        arguments: [target]
        disable-model-invocation: true
        effort: high

      savoir-order: name,description,arguments,disable-model-invocation,effort,allowed-tools,metadata
    ---
    Deploy to $target. It costs $5.
    "###);
    insta::assert_snapshot!(report_text(&conversion), @r###"
    name: name -> name: kept: the same field
    description: description -> description: kept: the same field
    arguments: arguments -> metadata.savoir-keep: moved: Codex has no field for it; its lines are stored so that converting back restores it
    disable-model-invocation: disable-model-invocation -> agents/openai.yaml#policy.allow_implicit_invocation: moved: Codex has it at `agents/openai.yaml#policy.allow_implicit_invocation`
    effort: effort -> metadata.savoir-keep: moved: Codex has no field for it; its lines are stored so that converting back restores it
    allowed-tools: allowed-tools -> allowed-tools: approximated: Codex does not restrict tools by skill
    metadata: metadata -> metadata: kept: the same field
    body: body -> body: approximated: Codex does not fill in its placeholders for `target`
    "###);
}

#[test]
fn claude_code_to_agent_flow_and_gibberish() {
    insta::assert_snapshot!(text(CLAUDE, Dialect::CLAUDE_CODE, Dialect::AGENT_FLOW), @r###"
    ---
    # How it is started
    name: deploy
    description: Deploys. Use when asked to deploy.
    inputs:
      - name: target
        type: text
    allowed-tools:
      - Bash(git push:*)
      - Read
    metadata:
      author: ada
      # the last release
      version: "1.10"
      savoir-from: claude-code
      savoir-body: $x
      savoir-keep: |+
        arguments: [target]
        disable-model-invocation: true
        effort: high

      savoir-order: name,description,arguments,disable-model-invocation,effort,allowed-tools,metadata
    ---
    Deploy to {{target}}. It costs $5.
    "###);
}

#[test]
fn skill_without_tools_does_not_become_one_of_gibberish() {
    for (source, from) in [(CLAUDE, Dialect::CLAUDE_CODE), (FLOW, Dialect::AGENT_FLOW)] {
        let error = convert(&reading(source, from), None, Dialect::GIBBERISH).unwrap_err();
        assert_eq!(error, ConvertError::NoTools { target: Dialect::GIBBERISH });
        assert!(error.help().is_some());
    }
}

#[test]
fn metadata_in_braces_becomes_a_block() {
    insta::assert_snapshot!(text(CLAW, Dialect::OPENCLAW, Dialect::SKILLRT), @r###"
    ---
    name: shot
    version: 0.0.0
    description: Takes screenshots.
    dependencies:
      tools:
        - shot
    metadata:
      openclaw:
        emoji: S
        requires:
          bins:
            - shot
        level: 1.10
      savoir-from: openclaw
      savoir-keep: |
        homepage: https://shot.example
        metadata: {"openclaw": {"emoji": "S", "requires": {"bins": ["shot"]}, "level": 1.10}}
      savoir-order: name,description,homepage,metadata
    ---
    Run `{baseDir}/shot`.
    "###);
    // Nothing must be added, so nothing is touched.
    let plain = CLAW.replace("homepage: https://shot.example\n", "");
    assert_eq!(text(&plain, Dialect::OPENCLAW, Dialect::CLAUDE_CODE), plain);
}

#[test]
fn prose_becomes_structured_and_back() {
    insta::assert_snapshot!(text(PROSE, Dialect::PROSE, Dialect::AGENTSKILLS), @r###"
    ---
    name: say-hello
    description: Greets the reader, warmly.
    metadata:
      savoir-from: prose
    ---
    # Say hello

    Greets the reader, warmly.

    Then stops.
    "###);
    insta::assert_snapshot!(text(FLOW, Dialect::AGENT_FLOW, Dialect::PROSE), @r###"

    Translate into a {{tone}} tone:

    {{text}}
    <!-- savoir: {"from":"agent-flow","head":"-\u002d-\nname: translate\ndescription: Translates a text. Use when a text is in the wrong language.\ninputs:\n  - {name: text, type: textarea, required: true}   # what to translate\n  - {name: tone, type: text, default: plain}\nknowledge_base: glossary\nmodel:\n  temperature: 0.30\nteam: docs\n-\u002d-\n"} -->
    "###);
}

#[test]
fn input_types_of_skillrt_become_text_in_agent_flow() {
    let original = "---\nname: review\nversion: 1.0.0\ndescription: Reviews a change. Use for pull \
                    requests.\ninputs:\n  - name: change\n    type: url   # of the change\n    \
                    required: true\n  - name: strictness\n    type: number\n    default: 3\n---\n\
                    Review {{ change }} at {{ strictness }}.\n";
    let converted = text(original, Dialect::SKILLRT, Dialect::AGENT_FLOW);
    let read = read(Source::new(converted.clone()), None);
    assert_eq!(read.detection.dialect, Dialect::AGENT_FLOW, "{converted}");
    assert!(read.diagnostics.is_empty(), "{converted}: {:?}", read.diagnostics);
    let fields = converted.split("metadata:").next().unwrap_or_default();
    assert!(!fields.contains("url") && !fields.contains("number"), "{converted}");
    assert_eq!(text(&converted, Dialect::AGENT_FLOW, Dialect::SKILLRT), original);
}
