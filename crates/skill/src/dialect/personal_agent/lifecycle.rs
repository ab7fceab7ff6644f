//! Implements how Personal Agent lists its skills for the model, and how it archives unused ones.

use serde::{Deserialize, Serialize};

/// Days without use after which a skill is stale.
const STALE_DAYS: u32 = 30;

/// Days without use after which a skill is archived.
const ARCHIVED_DAYS: u32 = 90;

/// The origin of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// Written in Personal Agent.
    Authored,
    /// Read from a file or an archive.
    Imported,
    /// Projected from an integration.
    Integration,
    /// Installed from a catalog.
    Catalog,
}

/// How recently a skill was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// In use.
    #[default]
    Active,
    /// Not used for a month.
    Stale,
    /// Not used for three months, and disabled until the user runs it.
    Archived,
}

impl Lifecycle {
    /// Whether a skill in this state is offered.
    pub fn is_enabled(self) -> bool {
        self != Self::Archived
    }
}

/// The properties that decide how a skill ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct CurationInfo {
    /// The origin of the skill.
    #[serde(rename = "source")]
    pub provenance: Provenance,
    /// Whether the user pinned the skill, so that it does not age.
    #[serde(default)]
    pub pinned: bool,
}

impl CurationInfo {
    /// Returns the state of an active skill after some days without use. Only skills that were
    /// written in Personal Agent age, and none is ever deleted.
    pub fn state_after_idle(self, idle_days: u32) -> Lifecycle {
        if self.pinned || self.provenance != Provenance::Authored {
            return Lifecycle::Active;
        }
        match idle_days {
            ARCHIVED_DAYS.. => Lifecycle::Archived,
            STALE_DAYS.. => Lifecycle::Stale,
            _ => Lifecycle::Active,
        }
    }
}

/// Returns the line that describes a skill to the model.
pub fn preamble_line(name: &str, description: &str, when_to_use: Option<&str>) -> String {
    let mut line = format!("- {name}: {}", on_one_line(description));
    if let Some(hint) = when_to_use.map(on_one_line).filter(|hint| !hint.is_empty()) {
        line.push_str(" — When to use: ");
        line.push_str(&hint);
    }
    line
}

fn on_one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_personal_skills_are_archived() {
        use Lifecycle::{Active, Archived, Stale};

        let own = CurationInfo { provenance: Provenance::Authored, pinned: false };
        let states = [0, 29, 30, 89, 90, 400].map(|days| own.state_after_idle(days));
        assert_eq!(states, [Active, Active, Stale, Stale, Archived, Archived]);
        assert_eq!(CurationInfo { pinned: true, ..own }.state_after_idle(400), Active);
        assert_eq!(
            CurationInfo { provenance: Provenance::Catalog, ..own }.state_after_idle(400),
            Active
        );
    }

    #[test]
    fn a_preamble_is_one_line() {
        assert_eq!(preamble_line("a", "does\n x \n", None), "- a: does x");
        assert_eq!(preamble_line("a", "d", Some(" ")), "- a: d");
        assert_eq!(preamble_line("a", "d", Some("w")), "- a: d — When to use: w");
    }
}
