//! Conversion: what comes out, what the report says, and that everything comes back.

mod generated;
mod real;
mod way_back;

use savoir_skill::{
    Dialect, Reading, Source,
    convert::{Conversion, ConvertError, How, convert},
    read_as,
};

fn reading(text: &str, dialect: Dialect) -> Reading {
    read_as(Source::from_bytes(text.into()).expect("a small text"), dialect, None)
}

fn to(text: &str, from: Dialect, target: Dialect) -> Conversion {
    convert(&reading(text, from), None, target).expect("a readable skill")
}

fn text(text: &str, from: Dialect, target: Dialect) -> String {
    to(text, from, target).files.swap_remove(0).text
}

/// Converts to every dialect and back, and gives the intermediate texts.
#[track_caller]
fn round_trips(original: &str, from: Dialect) -> Vec<(Dialect, String)> {
    let mut texts = Vec::new();
    for target in Dialect::ALL {
        let there = text(original, from, target);
        let back = text(&there, target, from);
        assert_eq!(back, original, "{from} to {target} and back, by way of\n{there}");
        let name = reading(&there, target).skill.name;
        assert!(target == Dialect::PROSE || !name.is_empty(), "{target}");
        texts.push((target, there));
    }
    texts
}

fn how(conversion: &Conversion, field: &str) -> Vec<(How, Option<String>)> {
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
fn its_own_dialect_is_the_identity() {
    for broken in [FLOW, "---\nname: [x\n---\n", "", "\u{feff}---\r\na: 1\r\n---"] {
        let conversion = to(broken, Dialect::AGENT_FLOW, Dialect::AGENT_FLOW);
        assert_eq!(conversion.files[0].text, broken);
        assert!(conversion.report.iter().all(|report| report.how == How::Kept));
    }
}

#[test]
fn agent_flow_to_claude_code() {
    let conversion = to(FLOW, Dialect::AGENT_FLOW, Dialect::CLAUDE_CODE);
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
    insta::assert_snapshot!(told(&conversion), @r###"
    name: name -> name: kept: the same field
    description: description -> description: kept: the same field
    inputs: inputs -> arguments: approximated: arguments have names only: no types, defaults or descriptions
    knowledge_base: knowledge_base -> metadata.savoir-keep: moved: Claude Code has no field for it; its lines are kept so that converting back restores it
    model: model -> metadata.savoir-keep: moved: Claude Code has no field for it; its lines are kept so that converting back restores it
    team: team -> team: kept: Claude Code leaves it alone
    body: body -> body: moved: placeholders like `{{x}}` became those of claude-code
    "###);
}

/// The report as lines.
fn told(conversion: &Conversion) -> String {
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

#[test]
fn agent_flow_to_skillrt() {
    let conversion = to(FLOW, Dialect::AGENT_FLOW, Dialect::SKILLRT);
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
    insta::assert_snapshot!(told(&conversion), @r###"
    name: name -> name: kept: the same field
    description: description -> description: kept: the same field
    inputs: inputs -> inputs: approximated: labels and widget types have no place here
    knowledge_base: knowledge_base -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are kept so that converting back restores it
    model: model -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are kept so that converting back restores it
    team: team -> team: kept: skillrt leaves it alone
    version: - -> version: approximated: skillrt needs a version
    body: body -> body: kept: byte for byte
    "###);
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

#[test]
fn gaia_to_skillrt() {
    let conversion = to(GAIA, Dialect::GAIA, Dialect::SKILLRT);
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
    insta::assert_snapshot!(told(&conversion), @r###"
    name: name -> name: kept: the same field
    version: version -> version: kept: the same field
    description: description -> description: kept: the same field
    author: author -> authors: moved: skillrt has it at `authors`
    license: license -> license: kept: the same field
    permissions: permissions -> permissions.network: moved: skillrt has it at `permissions.network`
    permissions: permissions -> permissions.env: moved: skillrt has it at `permissions.env`
    tools: tools -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are kept so that converting back restores it
    security_tier: security_tier -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are kept so that converting back restores it
    requirements: requirements -> metadata.savoir-keep: moved: skillrt has no field for it; its lines are kept so that converting back restores it
    tags: tags -> tags: kept: the same field
    body: body -> body: kept: byte for byte
    "###);
}

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

#[test]
fn gibberish_to_gaia() {
    let conversion = to(COMMANDS, Dialect::GIBBERISH, Dialect::GAIA);
    insta::assert_snapshot!(conversion.files[0].text, @r###"
    ---
    name: files
    version: 0.1.0
    description: Lists files.
    author: unknown
    license: LicenseRef-unknown
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
    insta::assert_snapshot!(told(&conversion), @r###"
    name: name -> name: kept: the same field
    version: version -> version: kept: the same field
    description: description -> description: kept: the same field
    read_only: read_only -> metadata.savoir-keep: moved: AMD GAIA has no field for it; its lines are kept so that converting back restores it
    timeout: timeout -> metadata.savoir-keep: moved: AMD GAIA has no field for it; its lines are kept so that converting back restores it
    network: network -> permissions: moved: AMD GAIA has it at `permissions`
    author: - -> author: approximated: GAIA needs an author
    license: - -> license: approximated: GAIA needs a licence
    security_tier: - -> security_tier: approximated: trust must be earned anew
    tools: body -> tools: approximated: GAIA calls functions of `tools.py`; write one for each command
    body: body -> body: kept: byte for byte
    "###);
}

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

#[test]
fn claude_code_to_codex_has_a_side_file() {
    let conversion = to(CLAUDE, Dialect::CLAUDE_CODE, Dialect::CODEX);
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
    insta::assert_snapshot!(told(&conversion), @r###"
    name: name -> name: kept: the same field
    description: description -> description: kept: the same field
    arguments: arguments -> metadata.savoir-keep: moved: Codex has no field for it; its lines are kept so that converting back restores it
    disable-model-invocation: disable-model-invocation -> agents/openai.yaml#policy.allow_implicit_invocation: moved: Codex has it at `agents/openai.yaml#policy.allow_implicit_invocation`
    effort: effort -> metadata.savoir-keep: moved: Codex has no field for it; its lines are kept so that converting back restores it
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
    insta::assert_snapshot!(text(CLAUDE, Dialect::CLAUDE_CODE, Dialect::GIBBERISH), @r###"
    ---
    # How it is started
    name: deploy
    version: 0.0.0
    description: Deploys. Use when asked to deploy.
    author: ada
    metadata:
      savoir-from: claude-code
      savoir-keep: |
        arguments: [target]
        disable-model-invocation: true
        effort: high

        allowed-tools:
          - Bash(git push:*)
          - Read
        metadata:
          author: ada
          # the last release
          version: "1.10"
      savoir-order: name,description,arguments,disable-model-invocation,effort,allowed-tools,metadata
    ---
    Deploy to $target. It costs $5.
    "###);
}

const CLAW: &str = "---
name: shot
description: Takes screenshots.
homepage: https://shot.example
metadata: {\"openclaw\": {\"emoji\": \"S\", \"requires\": {\"bins\": [\"shot\"]}, \"level\": 1.10}}
---
Run `{baseDir}/shot`.
";

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

const PROSE: &str = "# Say hello\n\nGreets the reader, warmly.\n\nThen stops.";

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
fn everything_comes_back() {
    round_trips(FLOW, Dialect::AGENT_FLOW);
    round_trips(GAIA, Dialect::GAIA);
    round_trips(COMMANDS, Dialect::GIBBERISH);
    round_trips(CLAUDE, Dialect::CLAUDE_CODE);
    round_trips(CLAW, Dialect::OPENCLAW);
    round_trips(PROSE, Dialect::PROSE);
}

#[test]
fn line_ends_and_byte_order_marks_come_back() {
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
fn awkward_fields_come_back() {
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
fn what_cannot_be_cut_is_kept_whole() {
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
fn broken_skills_are_mended_or_refused() {
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
    let conversion = to(FLOW, Dialect::AGENT_FLOW, Dialect::CLAUDE_CODE);
    assert_eq!(how(&conversion, "name"), [(How::Kept, Some("name".into()))]);
    let json = serde_json::to_value(&conversion.report[0]).unwrap();
    let expected = serde_json::json!({
        "field": "name", "from": "name", "to": "name", "how": "kept", "why": "the same field"
    });
    assert_eq!(json, expected);
}
