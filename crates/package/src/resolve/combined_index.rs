//! Combines several indexes into one.

use std::fmt;

use semver::Version;

use super::{Candidate, Index, IndexError, VersionDependencies};

/// Several indexes as one. If several have a version, the first one is used.
#[derive(Clone, Default)]
pub struct CombinedIndex<'a>(Vec<&'a dyn Index>);

impl fmt::Debug for CombinedIndex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CombinedIndex").field(&self.0.len()).finish()
    }
}

impl<'a> CombinedIndex<'a> {
    /// Combines indexes; the most trusted comes first.
    pub fn new(indexes: Vec<&'a dyn Index>) -> Self {
        Self(indexes)
    }
}

impl Index for CombinedIndex<'_> {
    fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
        let mut all: Vec<Candidate> = Vec::new();
        for index in &self.0 {
            for candidate in index.versions(name)? {
                if all.iter().all(|known| known.version != candidate.version) {
                    all.push(candidate);
                }
            }
        }
        Ok(all)
    }

    fn dependencies(
        &self,
        name: &str,
        version: &Version,
    ) -> Result<VersionDependencies, IndexError> {
        for index in &self.0 {
            let has = |candidate: &Candidate| candidate.version == *version;
            if index.versions(name)?.iter().any(has) {
                return index.dependencies(name, version);
            }
        }
        Err(format!("there is no version {version}").into())
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.0.iter().flat_map(|index| index.names()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use savoir_skill::{permission::Tier, version::SkillRef};

    use super::*;

    /// Versions of one skill that all depend on one other skill.
    struct One(&'static [&'static str], Tier, &'static str);

    impl Index for One {
        fn versions(&self, name: &str) -> Result<Vec<Candidate>, IndexError> {
            if name != "a" {
                return Ok(Vec::new());
            }
            let candidate = |text: &&str| Candidate {
                version: text.parse().unwrap(),
                yanked: false,
                tier: self.1,
            };
            Ok(self.0.iter().map(candidate).collect())
        }

        fn dependencies(&self, _: &str, _: &Version) -> Result<VersionDependencies, IndexError> {
            Ok(VersionDependencies::Skills(vec![SkillRef::parse(self.2).unwrap()]))
        }

        fn names(&self) -> Vec<String> {
            vec!["a".to_owned()]
        }
    }

    #[test]
    fn first_index_with_a_version_wins() {
        let first = One(&["1.0.0", "2.0.0"], Tier::Verified, "near");
        let second = One(&["2.0.0", "3.0.0"], Tier::Community, "far");
        let both = CombinedIndex::new(vec![&first, &second]);
        let found = both.versions("a").unwrap();
        let shown: Vec<String> =
            found.iter().map(|one| format!("{} {}", one.version, one.tier)).collect();
        assert_eq!(shown, ["1.0.0 verified", "2.0.0 verified", "3.0.0 community"]);
        for (version, need) in [("2.0.0", "near"), ("3.0.0", "far")] {
            let needs = both.dependencies("a", &version.parse().unwrap()).unwrap();
            assert_eq!(needs.skills()[0].name, need);
        }
        assert!(both.dependencies("a", &Version::new(4, 0, 0)).is_err());
        assert_eq!(both.names(), ["a"]);
        assert!(CombinedIndex::default().versions("a").unwrap().is_empty());
    }
}
