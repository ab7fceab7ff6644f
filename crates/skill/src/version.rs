//! Parses versions, version ranges and references of the form `name@range`.

use std::{fmt, ops::Bound, str::FromStr};

use semver::{BuildMetadata, Prerelease, Version};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// The grammar of SemVer 2.0.0 as a regular expression, for JSON Schemas.
pub const SEMVER_PATTERN: &str = concat!(
    r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)",
    r"(-(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(\.(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*)?",
    r"(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$"
);

/// Why a version was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum VersionError {
    /// The text is not `MAJOR.MINOR.PATCH` with optional `-pre` and `+build`.
    #[error("`{text}` is not a semantic version such as 1.2.3: {reason}")]
    Invalid {
        /// The text that was read.
        text: String,
        /// What the reader stumbled over.
        reason: String,
    },
}

/// Reads a version by the rules of SemVer 2.0.0: no `v`, no leading zeros, three numbers.
pub fn parse_version(text: &str) -> Result<Version, VersionError> {
    Version::parse(text)
        .map_err(|error| VersionError::Invalid { text: text.to_owned(), reason: error.to_string() })
}

/// Why a range was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RangeError {
    /// `||` has no meaning here.
    #[error("`||` is not supported, alternatives cannot be written in one range")]
    Alternatives,
    /// A clause has no version, or one that cannot be read.
    #[error(
        "`{clause}` is not a version such as 1.2.3, nor an operator and a version such as ^1.2"
    )]
    BadClause {
        /// The clause as written, without its surrounding blanks.
        clause: String,
    },
    /// `~=` with a single number.
    #[error("`{clause}` needs at least two numbers, such as ~=1.2")]
    CompatibleNeedsTwoNumbers {
        /// The clause as written, without its surrounding blanks.
        clause: String,
    },
}

/// The operator of a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// No operator: exact with three numbers, otherwise a prefix.
    Bare,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `<`
    Less,
    /// `^`
    Caret,
    /// `~`
    Tilde,
    /// `~=` as in PEP 440.
    Compatible,
}

/// Longer operators first, so that `>=` is not read as `>`.
const OPERATORS: [(&str, Op); 9] = [
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
    (">=", Op::AtLeast),
    ("<=", Op::AtMost),
    ("~=", Op::Compatible),
    (">", Op::Greater),
    ("<", Op::Less),
    ("^", Op::Caret),
    ("~", Op::Tilde),
];

/// A version whose minor and patch numbers may be missing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PartialVersion {
    /// First number.
    pub major: u64,
    /// Second number.
    pub minor: Option<u64>,
    /// Third number; only present if the second is.
    pub patch: Option<u64>,
    /// What follows `-`; empty if nothing does.
    pub pre: Prerelease,
    /// What follows `+`; ignored in comparisons.
    pub build: BuildMetadata,
}

impl PartialVersion {
    fn parse(text: &str) -> Option<Self> {
        let (text, build) = match text.split_once('+') {
            Some((text, build)) => (text, BuildMetadata::new(non_empty(build)?).ok()?),
            None => (text, BuildMetadata::EMPTY),
        };
        let (numbers, pre) = match text.split_once('-') {
            Some((numbers, pre)) => (numbers, Prerelease::new(non_empty(pre)?).ok()?),
            None => (text, Prerelease::EMPTY),
        };
        let mut numbers = numbers.split('.').map(parse_number);
        let major = numbers.next()??;
        let minor = numbers.next().map_or(Some(None), |n| n.map(Some))?;
        let patch = numbers.next().map_or(Some(None), |n| n.map(Some))?;
        numbers.next().is_none().then_some(Self { major, minor, patch, pre, build })
    }

    /// The version with zeros for the missing numbers, without build metadata.
    fn floor(&self) -> Version {
        Version {
            pre: self.pre.clone(),
            ..Version::new(self.major, self.minor.unwrap_or(0), self.patch.unwrap_or(0))
        }
    }

    fn next_major(&self) -> Bound<Version> {
        below(self.major.checked_add(1).map(|major| Version::new(major, 0, 0)))
    }

    fn next_minor(&self) -> Bound<Version> {
        let next = self.minor.unwrap_or(0).checked_add(1);
        below(next.map(|minor| Version::new(self.major, minor, 0)))
    }

    fn next_patch(&self) -> Bound<Version> {
        let next = self.patch.unwrap_or(0).checked_add(1);
        below(next.map(|patch| Version::new(self.major, self.minor.unwrap_or(0), patch)))
    }

    fn caret_end(&self) -> Bound<Version> {
        match (self.major, self.minor, self.patch) {
            (0, Some(0), Some(_)) => self.next_patch(),
            (0, Some(_), _) => self.next_minor(),
            _ => self.next_major(),
        }
    }

    /// The first version that a range over this prefix may contain, pre-releases included.
    fn prefix_start(&self) -> Version {
        Version { pre: Prerelease::new("0").unwrap_or(Prerelease::EMPTY), ..self.floor() }
    }
}

fn non_empty(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn parse_number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let leading_zero = text.len() > 1 && text.starts_with('0');
    if digits && !leading_zero { text.parse().ok() } else { None }
}

/// No version is above the largest number, so an overflow means no limit.
fn below(version: Option<Version>) -> Bound<Version> {
    version.map_or(Bound::Unbounded, Bound::Excluded)
}

/// One condition of a range.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Clause {
    /// How the version is compared.
    pub op: Op,
    /// What it is compared with.
    pub version: PartialVersion,
}

impl Clause {
    fn parse(text: &str) -> Result<Self, RangeError> {
        let (op, rest) = OPERATORS
            .into_iter()
            .find_map(|(sign, op)| Some((op, text.strip_prefix(sign)?)))
            .unwrap_or((Op::Bare, text));
        let clause = || text.to_owned();
        let version = PartialVersion::parse(rest.trim())
            .ok_or_else(|| RangeError::BadClause { clause: clause() })?;
        if op == Op::Compatible && version.minor.is_none() {
            return Err(RangeError::CompatibleNeedsTwoNumbers { clause: clause() });
        }
        Ok(Self { op, version })
    }

    /// The interval of versions the clause allows, or for [`Op::NotEqual`] the one it forbids.
    ///
    /// Bounds carry no build metadata; compare by precedence.
    pub fn bounds(&self) -> (Bound<Version>, Bound<Version>) {
        let partial = &self.version;
        let floor = || Bound::Included(partial.floor());
        match self.op {
            Op::Equal | Op::NotEqual => (floor(), floor()),
            Op::AtLeast => (floor(), Bound::Unbounded),
            Op::AtMost => (Bound::Unbounded, floor()),
            Op::Greater => (Bound::Excluded(partial.floor()), Bound::Unbounded),
            Op::Less => (Bound::Unbounded, Bound::Excluded(partial.floor())),
            Op::Caret => (floor(), partial.caret_end()),
            Op::Tilde if partial.minor.is_some() => (floor(), partial.next_minor()),
            Op::Compatible if partial.patch.is_some() => (floor(), partial.next_minor()),
            Op::Tilde | Op::Compatible => (floor(), partial.next_major()),
            Op::Bare if partial.patch.is_some() || !partial.pre.is_empty() => (floor(), floor()),
            Op::Bare => {
                let end = match partial.minor {
                    Some(_) => partial.next_minor(),
                    None => partial.next_major(),
                };
                (Bound::Included(partial.prefix_start()), end)
            }
        }
    }

    /// Whether the clause allows the version, pre-release or not.
    fn admits(&self, version: &Version) -> bool {
        let (start, end) = self.bounds();
        let inside = starts_before(&start, version) && ends_after(&end, version);
        inside != (self.op == Op::NotEqual)
    }
}

fn starts_before(start: &Bound<Version>, version: &Version) -> bool {
    match start {
        Bound::Unbounded => true,
        Bound::Included(start) => version.cmp_precedence(start).is_ge(),
        Bound::Excluded(start) => version.cmp_precedence(start).is_gt(),
    }
}

fn ends_after(end: &Bound<Version>, version: &Version) -> bool {
    match end {
        Bound::Unbounded => true,
        Bound::Included(end) => version.cmp_precedence(end).is_le(),
        Bound::Excluded(end) => {
            version.cmp_precedence(end).is_lt() && !is_pre_release_of(version, end)
        }
    }
}

/// A range that excludes 2.0.0 should not match 2.0.0-rc.1, although it sorts before.
fn is_pre_release_of(version: &Version, release: &Version) -> bool {
    let numbers = |v: &Version| (v.major, v.minor, v.patch);
    release.pre.is_empty() && !version.pre.is_empty() && numbers(version) == numbers(release)
}

/// A set of versions, written as clauses joined by commas.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VersionRange {
    source: String,
    clauses: Vec<Clause>,
}

impl VersionRange {
    /// The range that holds every version.
    pub fn any() -> Self {
        Self { source: "*".to_owned(), clauses: Vec::new() }
    }

    /// Reads a range; empty, `*`, `latest` and `any` hold every version.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let trimmed = text.trim();
        let is_any = ["", "*", "latest", "any"].iter().any(|w| trimmed.eq_ignore_ascii_case(w));
        if is_any {
            return Ok(Self { source: text.to_owned(), clauses: Vec::new() });
        }
        if trimmed.contains("||") {
            return Err(RangeError::Alternatives);
        }
        let clauses = trimmed.split(',').map(str::trim).filter(|clause| !clause.is_empty());
        let clauses = clauses.map(Clause::parse).collect::<Result<_, _>>()?;
        Ok(Self { source: text.to_owned(), clauses })
    }

    /// The clauses, all of which must hold; none for the range of all versions.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// Whether every version is in the range.
    pub fn is_any(&self) -> bool {
        self.clauses.is_empty()
    }

    /// Whether a clause names a pre-release, which lets pre-releases match.
    fn names_pre_release(&self) -> bool {
        self.clauses.iter().any(|clause| !clause.version.pre.is_empty())
    }

    /// Whether the version is in the range; a pre-release only if the range names one.
    pub fn matches(&self, version: &Version) -> bool {
        (version.pre.is_empty() || self.names_pre_release()) && self.admits(version)
    }

    /// Whether a version satisfies all clauses, including pre-releases: the fallback of the resolver.
    fn admits(&self, version: &Version) -> bool {
        self.clauses.iter().all(|clause| clause.admits(version))
    }

    /// The highest version in the range; a pre-release the range does not name is only chosen
    /// when nothing else is in it.
    pub fn resolve<'a>(&self, versions: &'a [Version]) -> Option<&'a Version> {
        let highest = |wanted: fn(&Self, &Version) -> bool| {
            versions.iter().filter(|version| wanted(self, version)).max()
        };
        highest(Self::matches).or_else(|| highest(Self::admits))
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl Serialize for VersionRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.source)
    }
}

impl FromStr for VersionRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        Self::parse(text)
    }
}

/// A skill and the versions of it that will do, written `name` or `name@range`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SkillRef {
    /// The name, not checked against any grammar.
    pub name: String,
    /// The range, any version if none was written.
    pub range: VersionRange,
}

/// Why a reference was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SkillRefError {
    /// The text before the `@` is empty.
    #[error("the reference `{0}` has no skill name")]
    NoName(String),
    /// The text after the `@` is not a range.
    #[error(transparent)]
    Range(#[from] RangeError),
}

impl SkillRef {
    /// Reads `name` or `name@range`.
    pub fn parse(text: &str) -> Result<Self, SkillRefError> {
        let (name, range) = match text.split_once('@') {
            Some((name, range)) => (name.trim(), VersionRange::parse(range.trim())?),
            None => (text.trim(), VersionRange::any()),
        };
        if name.is_empty() {
            return Err(SkillRefError::NoName(text.to_owned()));
        }
        Ok(Self { name: name.to_owned(), range })
    }
}

impl fmt::Display for SkillRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.range.is_any() {
            f.write_str(&self.name)
        } else {
            write!(f, "{}@{}", self.name, self.range)
        }
    }
}

#[cfg(test)]
mod tests;
