//! Converts version ranges to sets of versions.

use std::ops::Bound;

use pubgrub::Ranges;
use savoir_skill::version::{Clause, Op, VersionRange};
use semver::{BuildMetadata, Prerelease, Version};

/// A set of versions without build metadata, which is ignored in comparisons.
pub(super) type Versions = Ranges<Version>;

/// Removes the build metadata.
pub(super) fn plain(version: &Version) -> Version {
    Version { build: BuildMetadata::EMPTY, ..version.clone() }
}

/// Returns the versions in a range, including pre-releases.
pub(super) fn range_with_pre_releases(range: &VersionRange) -> Versions {
    range.clauses().iter().fold(Ranges::full(), |set, clause| set.intersection(&of(clause)))
}

/// Returns the versions in a range. Available pre-releases are included only if the range names
/// one, or if it contains no release.
pub(super) fn matching(range: &VersionRange, versions: &[Version]) -> Versions {
    let admitted = range_with_pre_releases(range);
    if range.clauses().iter().any(|clause| !clause.version.pre.is_empty()) {
        return admitted;
    }
    let releases = versions
        .iter()
        .filter(|version| !version.pre.is_empty())
        .fold(admitted.clone(), |set, pre_release| {
            set.intersection(&Ranges::singleton(pre_release.clone()).complement())
        });
    let some = versions.iter().any(|version| releases.contains(version));
    if some { releases } else { admitted }
}

fn of(clause: &Clause) -> Versions {
    let (start, end) = clause.bounds();
    let inside = Ranges::from_range_bounds((start, before_pre_releases(end)));
    if clause.op == Op::NotEqual { inside.complement() } else { inside }
}

/// A range that excludes 2.0.0 also excludes 2.0.0-rc.1: the set ends before its first pre-release.
fn before_pre_releases(end: Bound<Version>) -> Bound<Version> {
    match end {
        Bound::Excluded(end) if end.pre.is_empty() => {
            let pre = Prerelease::new("0").unwrap_or(Prerelease::EMPTY);
            Bound::Excluded(Version { pre, ..end })
        }
        end => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSIONS: [&str; 14] = [
        "0.0.3", "0.2.3", "0.3.0-rc.1", "1.0.0-rc.1", "1.0.0", "1.2.0", "1.2.3", "1.3.0-0",
        "1.3.0", "1.9.9", "2.0.0-0", "2.0.0-rc.1", "2.0.0", "3.0.0",
    ];

    /// The sets contain exactly the versions that the ranges match.
    #[test]
    fn sets_agree_with_ranges() {
        let versions: Vec<Version> = VERSIONS.iter().map(|text| text.parse().unwrap()).collect();
        for text in [
            "*", "1", "1.2", "1.2.3", "==1.2", "!=1.2", ">=1.2", "<=1.2", ">1", "<2", "^1.2",
            "^0.2.3", "^0.0.3", "~1.2.3", "~1", "~=1.2", "~=1.2.3", ">=1.0.0-rc.1",
            ">=1.0.0-rc.1, <2", "<2.0.0-rc.1", "<=2.0.0-rc.1", "1.0.0-rc.1", "!=1.2.3, ^1",
            "<1.0, >=3", "9",
        ] {
            let range = VersionRange::parse(text).unwrap();
            let set = matching(&range, &versions);
            let any = versions.iter().any(|version| range.matches(version));
            for version in &versions {
                if any {
                    assert_eq!(set.contains(version), range.matches(version), "{text} {version}");
                }
            }
            let highest = versions.iter().filter(|version| set.contains(*version)).max();
            assert_eq!(highest, range.resolve(&versions), "{text}");
        }
    }

    #[test]
    fn build_metadata_does_not_count() {
        let version: Version = "1.2.3+linux".parse().unwrap();
        let range = VersionRange::parse("==1.2.3+mac").unwrap();
        assert!(range_with_pre_releases(&range).contains(&plain(&version)));
    }
}
