//! Compares the simulated catalogs with recorded requests of real agents.
//!
//! `tests/data/catalogues.json` has sets of skills and recordings. A set is a list of skills or the
//! numbers from which [`generate`] makes one. A recording lists what one agent showed of one set, in
//! order: the index of the skill in the set, `whole`, `cut` or `dropped` for its description, the
//! characters of the description, and the name if it is not that of the folder.
//!
//! The agents ran headless in an empty home folder, without a network, against a local endpoint
//! that wrote down the requests.

use std::collections::HashMap;

use savoir_agent::preamble::hosts::{HostRules, SkillFiles, SkillScope};
use serde::Deserialize;

/// The minimum agreement of names and of descriptions with the recording, in thousandths.
const MIN_AGREEMENT: usize = 980;
/// The folder of the recorded sessions. The length of paths affects the catalog of Codex.
const RECORDED_IN: &str = "/tmp/recorded-catalogues";

#[derive(Deserialize)]
struct Data {
    sets: HashMap<String, SkillSet>,
    recordings: Vec<Recording>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SkillSet {
    Listed(Vec<TestSkill>),
    Generated(Generator),
}

#[derive(Clone, Deserialize)]
struct TestSkill {
    scope: String,
    folder: String,
    /// SKILL.md, with `{fill:N}` for N characters of filler and `{N*c}` for N times a character.
    text: String,
    side: Option<String>,
}

#[derive(Deserialize)]
struct Generator {
    count: usize,
    seed: u32,
    shortest: u32,
    longest: u32,
    /// Whether some skills belong to the user, and some descriptions are Chinese.
    #[serde(default)]
    mixed: bool,
}

#[derive(Deserialize)]
struct Recording {
    agent: String,
    version: String,
    model: String,
    context: usize,
    set: String,
    shown: Vec<Shown>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Shown {
    Named(usize, String, usize, String),
    Plain(usize, String, usize),
}

/// What the catalog shows of one skill: its index, its name, and how much of its description,
/// with the length.
type Outcome = (usize, String, String, usize);

impl Shown {
    fn outcome(&self, skills: &[TestSkill]) -> Outcome {
        match self {
            Self::Named(index, kind, length, name) => (*index, name.clone(), kind.clone(), *length),
            Self::Plain(index, kind, length) => {
                let name = skills[*index].folder_name().to_owned();
                (*index, name, kind.clone(), *length)
            }
        }
    }
}

impl TestSkill {
    fn folder_name(&self) -> &str {
        self.folder.rsplit('/').next().expect("a folder")
    }
}

impl SkillSet {
    fn skills(&self) -> Vec<TestSkill> {
        match self {
            Self::Listed(skills) => skills.clone(),
            Self::Generated(generator) => generate(generator),
        }
    }
}

/// Makes skills whose names and descriptions have many lengths.
fn generate(generator: &Generator) -> Vec<TestSkill> {
    let mut state = generator.seed;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_103_515_245).wrapping_add(12_345) % (1 << 31);
        (state >> 8) % below
    };
    let mut skills = Vec::new();
    for index in 0..generator.count {
        let end = 1 + next(40) as usize;
        let letters = &"abcdefghijklmnopqrstuvwxyz-abcdefghijklmn"[..end];
        let folder = format!("s{index:03}-{}", letters.trim_end_matches('-'));
        let length = generator.shortest + next(generator.longest - generator.shortest);
        let description = if generator.mixed && index % 5 == 0 {
            format!("{{{}*试}}", length / 2)
        } else {
            format!("{{fill:{length}}}")
        };
        let scope = if generator.mixed && index % 2 == 1 { "user" } else { "project" };
        let text = format!("---\nname: {folder}\ndescription: {description}\n---\nDo it.\n");
        skills.push(TestSkill { scope: scope.to_owned(), folder, text, side: None });
    }
    skills
}

/// Replaces the placeholders of a text.
fn expand(text: &str) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        expanded.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        let placeholder =
            after.split_once('}').and_then(|(inside, rest)| Some((placeholder(inside)?, rest)));
        if let Some((value, after)) = placeholder {
            expanded.push_str(&value);
            rest = after;
        } else {
            expanded.push('{');
            rest = after;
        }
    }
    expanded + rest
}

fn placeholder(inside: &str) -> Option<String> {
    if let Some(length) = inside.strip_prefix("fill:") {
        return Some(filler(length.parse().ok()?));
    }
    let (count, repeated) = inside.split_once('*')?;
    Some(repeated.repeat(count.parse().ok()?))
}

fn filler(length: usize) -> String {
    let words = "lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor \
                 incididunt ut labore et dolore magna aliqua ";
    let mut text: String = words.chars().cycle().take(length).collect();
    if text.ends_with(' ') {
        text.pop();
        text.push('x');
    }
    text
}

fn simulate(recording: &Recording, skills: &[TestSkill]) -> Vec<Outcome> {
    let host = HostRules::of(&recording.agent).expect("a known agent");
    let folder = if recording.agent == "claude-code" { ".claude/skills" } else { ".agents/skills" };
    let mut paths = HashMap::new();
    let mut installed = Vec::new();
    for (index, skill) in skills.iter().enumerate() {
        let user = skill.scope == "user";
        let root = format!("{RECORDED_IN}/{}/{folder}", if user { "home" } else { "project" });
        let path = format!("{root}/{}/SKILL.md", skill.folder);
        let text = expand(&skill.text);
        installed.push(host.read(&SkillFiles {
            folder: skill.folder_name(),
            path: &path,
            root: &root,
            scope: if user { SkillScope::User } else { SkillScope::Project },
            text: &text,
            side: skill.side.as_deref(),
        }));
        paths.insert(path, index);
    }
    let simulation = host.simulate(installed, recording.context);
    let visible = simulation.skills.into_iter().filter(|skill| skill.visible);
    let outcome = visible.map(|skill| {
        let kind = serde_json::to_value(skill.description).expect("a value");
        let kind = kind.as_str().expect("a word").to_owned();
        (paths[&skill.path], skill.name, kind, skill.characters.unwrap_or_default())
    });
    outcome.collect()
}

/// Thousandths of the skills whose outcomes agree in what `view` returns of them.
fn agreement<T: PartialEq>(
    count: usize,
    (recorded, simulated): (&[Outcome], &[Outcome]),
    view: impl Fn(usize, &Outcome) -> T,
) -> usize {
    let find = |outcomes: &[Outcome], index: usize| {
        let position = outcomes.iter().position(|outcome| outcome.0 == index);
        position.map(|position| view(position, &outcomes[position]))
    };
    let same = (0..count).filter(|index| find(recorded, *index) == find(simulated, *index));
    same.count() * 1000 / count
}

fn data() -> Data {
    serde_json::from_str(include_str!("../data/catalogues.json")).expect("valid data")
}

#[test]
fn simulated_catalogues_agree_with_recorded_requests() {
    let data = data();
    for recording in &data.recordings {
        let Recording { agent, version, model, context, set, .. } = recording;
        let skills = data.sets[set].skills();
        let recorded: Vec<Outcome> =
            recording.shown.iter().map(|shown| shown.outcome(&skills)).collect();
        let simulated = simulate(recording, &skills);
        let both = (recorded.as_slice(), simulated.as_slice());
        let names = agreement(skills.len(), both, |_, outcome| outcome.1.clone());
        let kinds = agreement(skills.len(), both, |_, outcome| outcome.2.clone());
        let lengths = agreement(skills.len(), both, |_, outcome| outcome.3);
        let order = agreement(skills.len(), both, |position, _| position);
        let title = format!("{agent} {version} {model} {context} {set}");
        eprintln!(
            "{title}: names {names}, descriptions {kinds}, lengths {lengths}, \
             order {order}"
        );
        for (index, skill) in skills.iter().enumerate() {
            let find =
                |outcomes: &[Outcome]| outcomes.iter().find(|outcome| outcome.0 == index).cloned();
            let (recorded, simulated) = (find(&recorded), find(&simulated));
            if recorded != simulated {
                eprintln!("  {}: recorded {recorded:?}, simulated {simulated:?}", skill.folder);
            }
        }
        assert!(names >= MIN_AGREEMENT && kinds >= MIN_AGREEMENT, "{title}: {names} {kinds}");
        assert!(lengths >= MIN_AGREEMENT, "{title}: {lengths}");
    }
}

#[test]
fn recordings_are_of_the_releases_that_the_rules_name() {
    for recording in data().recordings {
        assert_eq!(HostRules::of(&recording.agent).unwrap().version, recording.version);
    }
}
