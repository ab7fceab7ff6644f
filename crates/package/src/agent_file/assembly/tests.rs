//! Tests of agents that are assembled from local files and from a registry index.

use savoir_skill::version::SkillRef;

use super::*;
use crate::{
    File, Tree,
    agent_file::SkillLocationKind,
    resolve::{Candidate, Index, IndexError, VersionDependencies},
    trust::TrustStore,
};

const AGENT: &str = "name: tester
skills:
  - a
  - {name: far, version: ^2, required: false}
model: {minimum: '>=7B'}
";

fn offer(name: &str, version: &str, needs: &str, way: SkillLocationKind) -> LocalSkill {
    let text = format!(
        "---\nname: {name}\nversion: {version}\ndescription: Does {name}.\nauthor: ada\nlicense: MIT\n\
         permissions: [\"shell:execute:git\"]\nrequirements:\n  model: \">=13B\"\n  skills: \
         [{needs}]\ntools:\n  - name: run_it\n    description: Runs it\nsecurity_tier: \
         community\n---\n# {name}\n"
    );
    let mut tree = Tree::default();
    for (path, text) in [("SKILL.md", text.as_str()), ("tools.py", "def run_it():\n    pass\n")] {
        tree.add(path.into(), File { bytes: text.into(), executable: false }).unwrap();
    }
    LocalSkill::of(&tree, name, &TrustStore::default()).unwrap().at(format!("skills/{name}"), way)
}

/// A registry index with versions of one skill, none of which is fetched.
struct Far;

impl Index for Far {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        let versions = if name == "far" { &["1.0.0", "2.1.0"][..] } else { &[] };
        let candidate = |text: &&str| Candidate {
            version: text.parse().unwrap(),
            yanked: false,
            tier: Tier::Verified,
        };
        Ok(versions.iter().map(candidate).collect())
    }

    fn dependencies(&self, _: &str, _: &Version) -> Result<VersionDependencies, IndexError> {
        Ok(VersionDependencies::Skills(vec![SkillRef::parse("a@>=1").unwrap()]))
    }
}

fn codes(assembly: &Assembly<'_>) -> Vec<String> {
    let findings = assembly.findings.iter();
    findings.map(|found| format!("{} {}", found.level.as_str(), found.code)).collect()
}

#[test]
fn skills_to_fetch_are_reported() {
    let agent = AgentFile::parse("AGENT.yaml", AGENT).unwrap();
    let mut offers = LocalSkills::default();
    offers.add(offer("a", "1.0.0", "", SkillLocationKind::Locked));
    let (far, model) = (Far, Model::named("x-30b"));
    let others = CombinedIndex::new(vec![&far]);
    let request = AssemblyRequest {
        agent: &agent,
        set: None,
        offers: &offers,
        others: &others,
        model: &model,
    };
    let assembly = assemble(&request).unwrap();
    let members: Vec<(String, Role, Tier)> = assembly
        .members
        .iter()
        .map(|member| (format!("{} {}", member.name, member.version), member.role, member.tier))
        .collect();
    let expected = [
        ("a 1.0.0".to_owned(), Role::Required, Tier::Experimental),
        ("far 2.1.0".to_owned(), Role::Optional, Tier::Verified),
    ];
    assert_eq!(members, expected);
    assert_eq!(assembly.members[0].needed_by(), ["far"]);
    assert!(assembly.members[1].offer.is_none() && assembly.members[1].instructions().is_none());
    let expected = ["warning minimum_too_low", "note experimental", "note not_fetched"];
    assert_eq!(codes(&assembly), expected);
    assert_eq!(assembly.findings[2].place.as_ref().unwrap().position.line, 4);
    assert_eq!(assembly.grants.len(), 1);
    assert_eq!(assembly.grants[0].decision, Decision::Sandboxed);
    assert_eq!(assembly.composition.parts[0].tools, ["run_it"]);
}

#[test]
fn unsigned_skills_are_reported_but_allowed() {
    let agent = AgentFile::parse("AGENT.yaml", AGENT).unwrap();
    let none = CombinedIndex::default();
    let model = Model::default();
    for way in [SkillLocationKind::Beside, SkillLocationKind::Named] {
        let mut offers = LocalSkills::default();
        offers.add(offer("a", "1.0.0", "", way));
        let request = AssemblyRequest {
            agent: &agent,
            set: None,
            offers: &offers,
            others: &none,
            model: &model,
        };
        let assembly = assemble(&request).unwrap();
        let codes = codes(&assembly);
        assert_eq!(codes[0], "error model_too_small", "{way:?}");
        assert!(codes.contains(&"note experimental".to_owned()), "{codes:?}");
    }
}
