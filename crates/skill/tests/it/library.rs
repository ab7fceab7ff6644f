//! Compiles and tests the code of docs/reference/library.md.

use std::{error::Error, fs, path::Path};

/// Returns all texts between two marks, without indentation.
fn between(text: &str, open: &str, close: &str) -> Vec<Vec<String>> {
    let parts = text.split(open).skip(1).filter_map(|rest| Some(rest.split_once(close)?.0));
    parts.map(|part| part.lines().map(|line| line.trim().to_owned()).collect()).collect()
}

#[test]
fn the_page_shows_this_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/library.md");
    let page = fs::read_to_string(path).expect("docs/reference/library.md");
    let shown = between(&page, "```rust\n", "```\n");
    let here = between(include_str!("library.rs"), "    // The page:\n", "    // End.\n");
    assert_eq!(shown.len(), 2);
    assert_eq!(shown, here);
}

#[test]
fn first_metadata_block_is_used() -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    first_block(&root.join("examples/article-summary/SKILL.md"))
}

fn first_block(path: &Path) -> Result<(), Box<dyn Error>> {
    // The page:
    use savoir_skill::{Source, read};

    // `path` is examples/article-summary/SKILL.md
    let reading = read(Source::from_bytes(std::fs::read(path)?)?, None);
    let found = format!("{} because {}", reading.detection.dialect, reading.detection.why);
    assert_eq!(found, "agent-flow because `model` is a map of settings");
    assert_eq!(reading.skill.name, "article-summary");
    assert_eq!(reading.skill.inputs.len(), 2);
    // End.
    Ok(())
}

#[test]
fn second_metadata_block_is_used() -> Result<(), Box<dyn Error>> {
    // The page:
    use savoir_skill::{
        Dialect, Safety, Source,
        check::{Options, check, fix},
        convert::convert,
        read,
    };

    let text = "---\nname: demo\ndescription: Use for: demos\n---\nDo it.\n";
    let source = Source::from_bytes(text.into())?;
    let checked = check(source, None, &Options::default());
    assert_eq!(checked.diagnostics[0].code, "unquoted-colon");

    let fixed = fix(text, None, &Options::default(), Safety::Safe);
    assert!(fixed.text.contains("description: \"Use for: demos\""));

    let reading = read(Source::from_bytes(fixed.text.into())?, None);
    let conversion = convert(&reading, None, Dialect::SKILLRT)?;
    assert_eq!(conversion.files[0].path, "SKILL.md");
    // End.
    Ok(())
}
