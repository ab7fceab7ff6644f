//! Compares the resolver with a brute-force search.

use proptest::prelude::*;

use super::*;

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const VERSIONS: [&str; 5] = ["1.0.0", "1.1.0", "2.0.0-rc.1", "2.0.0", "2.1.0"];
const RANGES: [&str; 9] =
    ["*", "^1", "^2", "1.0.0", ">=1.1", "<2", "!=1.1.0", ">=2.0.0-rc.1", "<=1.1"];

/// Whether pre-releases are allowed that no range names.
#[derive(Clone, Copy, PartialEq)]
enum PreReleases {
    Named,
    All,
}

fn needs() -> impl Strategy<Value = Vec<SkillRef>> {
    let need = (0..NAMES.len(), 0..RANGES.len()).prop_map(|(name, range)| {
        SkillRef::parse(&format!("{}@{}", NAMES[name], RANGES[range])).unwrap()
    });
    prop::collection::vec(need, 0..3)
}

/// Every fifth version is missing, one in eight is yanked, one in eight is experimental.
fn index() -> impl Strategy<Value = Lines> {
    let version = (0..5_u8, 0..8_u8, needs());
    let skill = prop::collection::vec(version, VERSIONS.len());
    prop::collection::vec(skill, NAMES.len()).prop_map(|skills| {
        let mut index = Lines::default();
        for (name, versions) in NAMES.iter().zip(skills) {
            let there = VERSIONS.iter().zip(versions).filter(|(_, (there, ..))| *there > 0);
            let there = there.map(|(version, (_, flag, needs))| {
                let tier = if flag == 0 { Tier::Experimental } else { Tier::Community };
                let version = version.parse().unwrap();
                (Candidate { version, yanked: flag == 1, tier }, VersionDependencies::Skills(needs))
            });
            index.0.insert((*name).to_owned(), there.collect());
        }
        index
    })
}

fn usable<'a>(
    index: &'a Lines,
    name: &str,
) -> impl Iterator<Item = &'a (Candidate, VersionDependencies)> {
    index.0[name].iter().filter(|(candidate, _)| !candidate.yanked)
}

/// Whether a version meets a requirement. `resolve` of the range returns `None` exactly if no
/// version, pre-releases included, is in it.
fn meets(version: &Version, range: &VersionRange, there: &[Version], mode: PreReleases) -> bool {
    let alone = std::slice::from_ref(version);
    let admitted = range.resolve(alone).is_some();
    let any_named = there.iter().any(|version| range.matches(version));
    match mode {
        PreReleases::Named if any_named => range.matches(version),
        _ => admitted,
    }
}

/// Tries all versions of all required skills; `picked` has the version of each skill so far.
fn solvable(
    index: &Lines,
    request: &Request,
    picked: &mut BTreeMap<String, Version>,
    mode: PreReleases,
) -> bool {
    let mut demands: Vec<&SkillRef> = request.roots.iter().map(|root| &root.skill).collect();
    for (name, version) in picked.iter() {
        let found = index.0[name].iter().find(|(candidate, _)| candidate.version == *version);
        demands.extend(found.unwrap().1.skills().iter().filter(|need| need.name != *name));
    }
    let there = |name: &str| -> Vec<Version> {
        usable(index, name).map(|(candidate, _)| candidate.version.clone()).collect()
    };
    for demand in &demands {
        if let Some(version) = picked.get(&demand.name)
            && !meets(version, &demand.range, &there(&demand.name), mode)
        {
            return false;
        }
    }
    let Some(open) = demands.iter().find(|demand| !picked.contains_key(&demand.name)) else {
        return true;
    };
    let name = open.name.clone();
    there(&name).into_iter().any(|version| {
        picked.insert(name.clone(), version);
        let solved = solvable(index, request, picked, mode);
        picked.remove(&name);
        solved
    })
}

/// Checks that all requirements of the chosen versions are met, and that no skill was chosen
/// without a requirement.
fn check(index: &Lines, request: &Request, resolution: &Resolution) {
    let mut seen = BTreeSet::new();
    for name in &resolution.order {
        let chosen = &resolution.chosen[name];
        assert!(!chosen.requested_by.is_empty(), "nobody needs {name}");
        for demand in &chosen.requested_by {
            let version = std::slice::from_ref(&chosen.version);
            assert!(demand.range.resolve(version).is_some(), "{name} {}", demand.range);
        }
        for need in &chosen.needs {
            assert!(seen.contains(&need.name), "{name} comes before {}", need.name);
        }
        let known = usable(index, name);
        assert!(known.map(|(known, _)| known).any(|known| known.version == chosen.version));
        seen.insert(name.clone());
    }
    assert_eq!(seen.len(), resolution.chosen.len());
    assert!(request.roots.iter().all(|root| seen.contains(&root.skill.name)));
}

/// Resolves again with the result as the lock, and checks that nothing changes.
fn check_again(index: &Lines, request: &Request, resolution: &Resolution) {
    let versions = resolution.chosen.iter();
    let locked = versions.map(|(name, chosen)| (name.clone(), chosen.version.clone())).collect();
    let again = resolve(index, &Request { locked, ..request.clone() }).unwrap();
    assert_eq!(shown(&again), shown(resolution));
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn agrees_with_brute_force(index in index(), roots in needs()) {
        let root = |skill| Root::required(skill, RootRequest::Manifest);
        let roots = roots.into_iter().map(root).collect();
        let request = Request { roots, ..Request::default() };
        let solvable = |mode| solvable(&index, &request, &mut BTreeMap::new(), mode);
        match resolve(&index, &request) {
            Ok(resolution) => {
                assert!(solvable(PreReleases::All));
                check(&index, &request, &resolution);
                check_again(&index, &request, &resolution);
            }
            Err(ResolveError::Cycle(circle)) => {
                assert!(solvable(PreReleases::All));
                assert_eq!(circle.first(), circle.last());
                assert!(circle.len() > 1);
            }
            Err(error) => {
                assert!(!solvable(PreReleases::Named), "{error}");
                assert!(!error.to_string().is_empty());
            }
        }
    }
}
