//! Explains why no set of versions satisfies all requirements.
//!
//! The leaves of PubGrub's derivation are the requirements that cannot all be met. Those that
//! contradict each other become the first sentences; then follow those that connect them to a root.

use std::{
    collections::{BTreeSet, HashSet},
    rc::Rc,
};

use pubgrub::{DerivationTree, External};
use savoir_lint::words;
use savoir_skill::version::VersionRange;
use semver::Version;

use super::{
    Candidate, Explanation, ResolveError, RootRequest,
    provider::{IndexProvider, Package, ProviderError},
    version_sets::{self, Versions},
};

type Tree = DerivationTree<Package, Versions, String>;

/// Maximum sentences of an explanation.
const MAX_SENTENCES: usize = 8;
/// Maximum versions in one sentence.
const MAX_VERSIONS: usize = 5;

/// The origin of a requirement.
#[derive(Clone, Debug, PartialEq)]
enum DemandSource {
    Root(RootRequest),
    /// A skill, and its versions that have the requirement.
    Skill(Rc<str>, Vec<Version>),
}

impl DemandSource {
    fn sentence(&self, name: &str, range: &VersionRange) -> String {
        let range = written(range);
        match self {
            Self::Root(asker) => format!("{asker} asks for `{name}`{range}"),
            Self::Skill(skill, versions) if versions.len() > 1 => {
                format!("`{skill}` {} need `{name}`{range}", listed(versions))
            }
            Self::Skill(skill, versions) => {
                format!("`{skill}` {} needs `{name}`{range}", listed(versions))
            }
        }
    }

    fn skill(&self) -> Option<&str> {
        match self {
            Self::Root(_) => None,
            Self::Skill(name, _) => Some(name),
        }
    }
}

/// Formats a range with a leading space; empty for all versions.
fn written(range: &VersionRange) -> String {
    if range.is_any() { String::new() } else { format!(" {}", range.to_string().trim()) }
}

fn listed(versions: &[Version]) -> String {
    let shown: Vec<String> = versions.iter().take(MAX_VERSIONS).map(ToString::to_string).collect();
    match versions.len().saturating_sub(MAX_VERSIONS) {
        0 => words::and(&shown),
        more => format!("{} and {more} others", shown.join(", ")),
    }
}

/// A requirement that cannot be met together with the others.
#[derive(Clone, Debug)]
struct UnmetDemand {
    who: DemandSource,
    name: Rc<str>,
    range: VersionRange,
    set: Versions,
}

impl UnmetDemand {
    fn sentence(&self) -> String {
        self.who.sentence(&self.name, &self.range)
    }
}

/// Why requirements cannot be met.
enum DemandProblem {
    /// No version meets one requirement, for this reason.
    Alone(usize, UnmetReason),
    /// No version meets both requirements.
    Pair(usize, usize),
    /// Versions that cannot be used at all, and the reason.
    Unusable(Rc<str>, Vec<Version>, String),
}

/// Why no version meets a requirement.
#[derive(Clone, Copy, PartialEq)]
enum UnmetReason {
    /// The skill is unknown.
    Unknown,
    /// All matching versions are yanked.
    Withdrawn,
    /// No version is in the range.
    OutOfRange,
}

/// Builds the explanation of an unsolvable request.
pub(super) struct ConflictReport<'a> {
    offer: &'a IndexProvider<'a>,
    facts: Vec<UnmetDemand>,
    problems: Vec<DemandProblem>,
}

impl<'a> ConflictReport<'a> {
    pub(super) fn new(offer: &'a IndexProvider<'a>, tree: &Tree) -> Result<Self, ProviderError> {
        let mut case = Self { offer, facts: Vec::new(), problems: Vec::new() };
        for leaf in leaves(tree) {
            case.add_leaf(leaf)?;
        }
        case.find_problems()?;
        Ok(case)
    }

    fn add_leaf(
        &mut self,
        leaf: &External<Package, Versions, String>,
    ) -> Result<(), ProviderError> {
        match leaf {
            External::FromDependencyOf(Package::Root(at), _, Package::Skill(name), set) => {
                if let Some(root) = self.offer.roots.get(*at) {
                    let who = DemandSource::Root(root.asker.clone());
                    let (name, range) = (name.clone(), root.skill.range.clone());
                    self.facts.push(UnmetDemand { who, name, range, set: set.clone() });
                }
            }
            External::FromDependencyOf(Package::Skill(skill), by, Package::Skill(name), set) => {
                self.take_need(skill, by, name, set)?;
            }
            External::Custom(Package::Skill(name), versions, why) => {
                let versions = self.usable(name, versions)?;
                self.problems.push(DemandProblem::Unusable(name.clone(), versions, why.clone()));
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a dependency of those versions that actually have it.
    fn take_need(
        &mut self,
        skill: &Rc<str>,
        by: &Versions,
        name: &Rc<str>,
        set: &Versions,
    ) -> Result<(), ProviderError> {
        let mut versions = Vec::new();
        let mut range = None;
        for version in self.usable(skill, by)? {
            let candidate = self.offer.candidate(skill, &version)?;
            let needs = self.offer.index_cache.needs(skill, &candidate.version)?;
            let need = needs.skills().iter().find(|need| *need.name == **name);
            if let Some(need) = need {
                versions.push(candidate.version);
                range.get_or_insert_with(|| need.range.clone());
            }
        }
        if let Some(range) = range {
            let (who, name) = (DemandSource::Skill(skill.clone(), versions), name.clone());
            self.facts.push(UnmetDemand { who, name, range, set: set.clone() });
        }
        Ok(())
    }

    fn usable(&self, name: &str, set: &Versions) -> Result<Vec<Version>, ProviderError> {
        let choice = self.offer.usable_versions(name)?;
        Ok(choice.versions.iter().filter(|version| set.contains(*version)).cloned().collect())
    }

    fn find_problems(&mut self) -> Result<(), ProviderError> {
        let mut alone = BTreeSet::new();
        for (at, fact) in self.facts.iter().enumerate() {
            if self.usable(&fact.name, &fact.set)?.is_empty() {
                alone.insert(at);
                self.problems.push(DemandProblem::Alone(at, self.unmet_reason(fact)?));
            }
        }
        for (second, fact) in self.facts.iter().enumerate() {
            for (first, other) in self.facts.iter().enumerate().take(second) {
                // Two versions of one skill are never chosen together, so their requirements cannot
                // conflict.
                let alternatives =
                    fact.who.skill().is_some() && fact.who.skill() == other.who.skill();
                if fact.name != other.name
                    || alternatives
                    || alone.contains(&first)
                    || alone.contains(&second)
                {
                    continue;
                }
                let both = fact.set.intersection(&other.set);
                if self.usable(&fact.name, &both)?.is_empty() {
                    self.problems.push(DemandProblem::Pair(first, second));
                }
            }
        }
        Ok(())
    }

    fn unmet_reason(&self, fact: &UnmetDemand) -> Result<UnmetReason, ProviderError> {
        let candidates = self.offer.index_cache.candidates(&fact.name)?;
        if candidates.is_empty() {
            return Ok(UnmetReason::Unknown);
        }
        let wanted = version_sets::range_with_pre_releases(&fact.range);
        let inside =
            |candidate: &&Candidate| wanted.contains(&version_sets::plain(&candidate.version));
        let inside: Vec<&Candidate> = candidates.iter().filter(inside).collect();
        Ok(if inside.iter().any(|candidate| candidate.yanked) {
            UnmetReason::Withdrawn
        } else {
            UnmetReason::OutOfRange
        })
    }

    /// Returns skills for which no release, but some pre-release meets two requirements.
    pub(super) fn pre_releases_would_help(&self) -> Result<BTreeSet<String>, ProviderError> {
        let mut names = BTreeSet::new();
        for problem in &self.problems {
            let DemandProblem::Pair(first, second) = problem else { continue };
            let (first, second) = (&self.facts[*first], &self.facts[*second]);
            let both = version_sets::range_with_pre_releases(&first.range)
                .intersection(&version_sets::range_with_pre_releases(&second.range));
            if !self.offer.admits_pre_releases(&first.name)
                && !self.usable(&first.name, &both)?.is_empty()
            {
                names.insert(first.name.to_string());
            }
        }
        Ok(names)
    }

    pub(super) fn error(&self) -> Result<ResolveError, ProviderError> {
        let explanation = self.explanation()?;
        let all = |lack: UnmetReason| {
            self.problems
                .iter()
                .all(|problem| matches!(problem, DemandProblem::Alone(_, l) if *l == lack))
                && !self.problems.is_empty()
        };
        Ok(if all(UnmetReason::Unknown) {
            ResolveError::Unknown(explanation)
        } else {
            ResolveError::Conflict(explanation)
        })
    }

    fn explanation(&self) -> Result<Explanation, ProviderError> {
        let mut text = Explanation::default();
        let mut said = BTreeSet::new();
        for problem in &self.problems {
            let (sentence, hint) = self.add_sentence(problem, &mut said)?;
            push_new(&mut text.sentences, sentence);
            if let Some(hint) = hint {
                push_new(&mut text.hints, hint);
            }
        }
        if self.problems.is_empty() {
            let all: Vec<String> = self.facts.iter().map(UnmetDemand::sentence).collect();
            text.sentences.push(format!("{}: no versions meet all of this", words::and(&all)));
            text.hints.push("loosen one of these ranges".to_owned());
        } else {
            self.add_requesters(&mut said, &mut text.sentences);
        }
        limit_sentences(&mut text.sentences);
        Ok(text)
    }

    fn add_sentence(
        &self,
        problem: &DemandProblem,
        said: &mut BTreeSet<usize>,
    ) -> Result<(String, Option<String>), ProviderError> {
        match problem {
            DemandProblem::Pair(first, second) => {
                said.extend([*first, *second]);
                Ok(self.pair_sentence(*first, *second))
            }
            DemandProblem::Alone(at, lack) => {
                said.insert(*at);
                self.lack_sentences(&self.facts[*at], *lack)
            }
            DemandProblem::Unusable(name, versions, why) => {
                let sentence = format!("`{name}` {} cannot be used: {why}", listed(versions));
                Ok((sentence, None))
            }
        }
    }

    /// Returns the sentence about a pair: dependencies first, then the requirement that the user
    /// can change.
    fn pair_sentence(&self, first: usize, second: usize) -> (String, Option<String>) {
        let (mut first, mut second) = (&self.facts[first], &self.facts[second]);
        if first.who.skill().is_none() {
            (first, second) = (second, first);
        }
        let name = &first.name;
        let sentence = format!(
            "{}, but {}: no version of `{name}` is both",
            first.sentence(),
            second.sentence()
        );
        let hint = match (&first.who, &second.who) {
            (DemandSource::Skill(skill, _), DemandSource::Root(asker)) => format!(
                "ask for `{name}`{} in {asker}, or for another version of `{skill}`",
                written(&first.range)
            ),
            (DemandSource::Skill(skill, _), DemandSource::Skill(other, _)) => {
                format!("ask for another version of `{skill}` or of `{other}`")
            }
            (DemandSource::Root(asker), _) => format!("change the range of `{name}` in {asker}"),
        };
        (sentence, Some(hint))
    }

    fn lack_sentences(
        &self,
        fact: &UnmetDemand,
        lack: UnmetReason,
    ) -> Result<(String, Option<String>), ProviderError> {
        let (said, name) = (fact.sentence(), &fact.name);
        Ok(match lack {
            UnmetReason::Unknown => {
                let names = self.offer.index_cache.names();
                let near = words::nearest(name, names.iter().map(String::as_str));
                let hint = near.map(|near| format!("did you mean `{near}`?"));
                (format!("{said}, and there is no skill of that name"), hint)
            }
            UnmetReason::Withdrawn => {
                let hint = "ask for another version; a lock that has this one keeps it";
                (format!("{said}, and every version of that is yanked"), Some(hint.to_owned()))
            }
            UnmetReason::OutOfRange => {
                let there: Vec<Version> = self.offer.usable_versions(name)?.versions.clone();
                let there = match there.as_slice() {
                    [] => "there is none that may be chosen".to_owned(),
                    [one] => format!("there is only {one}"),
                    some => format!("there are {}", listed(some)),
                };
                let hint = match &fact.who {
                    DemandSource::Root(asker) => format!("change the range of `{name}` in {asker}"),
                    DemandSource::Skill(skill, _) => {
                        format!("ask for another version of `{skill}`")
                    }
                };
                (format!("{said}, and no version of `{name}` is that: {there}"), Some(hint))
            }
        })
    }

    /// Adds sentences about who requires the skills that were mentioned.
    fn add_requesters(&self, said: &mut BTreeSet<usize>, sentences: &mut Vec<String>) {
        let mut open: Vec<usize> = said.iter().copied().collect();
        let unusable = self.problems.iter().filter_map(|problem| match problem {
            DemandProblem::Unusable(name, ..) => Some(&**name),
            _ => None,
        });
        let mut names: Vec<&str> = unusable.collect();
        loop {
            names.extend(open.drain(..).filter_map(|at| self.facts[at].who.skill()));
            let Some(name) = names.pop() else { return };
            for (at, fact) in self.facts.iter().enumerate() {
                if *fact.name == *name && said.insert(at) {
                    push_new(sentences, fact.sentence());
                    open.push(at);
                }
            }
        }
    }
}

fn push_new(texts: &mut Vec<String>, text: String) {
    if !texts.contains(&text) {
        texts.push(text);
    }
}

fn limit_sentences(sentences: &mut Vec<String>) {
    let more = sentences.len().saturating_sub(MAX_SENTENCES);
    if more > 0 {
        sentences.truncate(MAX_SENTENCES);
        sentences.push(format!("and {more} more such demands"));
    }
}

/// Returns the leaves of a derivation, each once. It is a graph that shares nodes, and could be
/// exponentially large as a tree.
fn leaves(tree: &Tree) -> Vec<&External<Package, Versions, String>> {
    let mut found = Vec::new();
    let mut seen: HashSet<*const Tree> = HashSet::new();
    let mut open = vec![tree];
    while let Some(next) = open.pop() {
        if !seen.insert(std::ptr::from_ref(next)) {
            continue;
        }
        match next {
            DerivationTree::External(leaf) => found.push(leaf),
            DerivationTree::Derived(derived) => open.extend([&*derived.cause2, &*derived.cause1]),
        }
    }
    found
}
