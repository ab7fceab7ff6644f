//! Tests with random registries that the skill set resolves to the gathered versions.

use savoir_package::resolve::Update;

use super::{gathered, registries, site::Site, take};
use crate::install::test_project::{TestProject, gaia};

const NAMES: [&str; 6] = ["a0", "acme/a1", "a2", "acme/a3", "a4", "a5"];
const RANGES: [&str; 5] = ["*", "^1", ">=1.1", "<2", "^2"];

/// A deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

/// Publishes a version of each skill with dependencies on later ones.
fn publish(project: &TestProject, site: &Site, dice: &mut Dice, version: &str) {
    for (at, name) in NAMES.iter().enumerate() {
        let mut needs = Vec::new();
        for other in &NAMES[at + 1..] {
            if dice.below(3) == 0 {
                let range = RANGES[dice.below(RANGES.len())];
                needs.push(format!("{other}, version: \"{range}\""));
            }
        }
        let needs: Vec<&str> = needs.iter().map(String::as_str).collect();
        let last = name.rsplit('/').next().unwrap();
        let tree = project.signed(last, version, &gaia(last, version, &[], &needs));
        let withdrawn = dice.below(8) == 0;
        site.publish_as(name, &tree, |line| line.yanked = withdrawn);
    }
}

#[tokio::test]
async fn install_resolves_to_gathered_versions() {
    let (mut taken, mut refused) = (0, 0);
    for seed in 0..8 {
        let (project, site, mut dice) = (TestProject::new(), Site::start().await, Dice(seed));
        let all = registries(&project, vec![site.entry()]);
        for version in ["1.0.0", "1.1.0", "2.0.0-rc.1", "2.0.0"] {
            publish(&project, &site, &mut dice, version);
            let wanted = format!("{}@{}", NAMES[dice.below(3)], RANGES[dice.below(RANGES.len())]);
            for (wanted, update) in [(vec![&*wanted], Update::Nothing), (vec![], Update::All)] {
                match gathered(&project, &all, &wanted, update).await {
                    Ok(found) => {
                        take(&project, &found);
                        taken += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.code(), "version_conflict", "{seed}: {error}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(taken > 20 && refused > 0, "{taken} and {refused}");
}
