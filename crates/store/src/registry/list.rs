//! Lists packages page by page. Each page continues after the last name of the previous one, so
//! that concurrent changes neither repeat nor hide a package, and late pages are as fast as early
//! ones.

use std::{fmt, str::FromStr};

use savoir_skill::permission::Tier;
use semver::Version;

use super::{
    Namespace, PackageName, Registry, RegistryError,
    facts::{read_name, read_tier, read_version, tier_number},
};
use crate::{
    StoreError, Timestamp,
    sql::{Row, SqlBuilder, Value, damaged},
};

/// The columns that [`summary`] reads.
pub(super) const SUMMARY: &str = "p.id, p.latest, p.tier, p.description, p.author, p.license,
    p.homepage, p.repository, p.tags, p.deprecated, p.updated_at";

const MAX_PAGE_SIZE: u64 = 1000;

/// A package in a list; the metadata comes from its latest version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub package: PackageName,
    /// The highest release that is not yanked, or the highest pre-release if there is no release.
    /// Lists leave out packages without one.
    pub latest: Option<Version>,
    /// The tier that scan and signatures of the latest version attest.
    pub attested: Tier,
    pub description: String,
    pub author: Option<String>,
    pub license: Option<String>,
    pub homepage: Option<String>,
    pub repository: Option<String>,
    /// The tags for the search, sorted.
    pub tags: Vec<String>,
    /// The deprecation message.
    pub deprecated: Option<String>,
    pub updated_at: Timestamp,
}

/// Reads the columns of [`SUMMARY`].
pub(super) fn summary(row: &Row) -> Result<Summary, StoreError> {
    let tags = row.text(8)?;
    Ok(Summary {
        package: read_name(&row.text(0)?)?,
        latest: row.maybe_text(1)?.map(|text| read_version(&text)).transpose()?,
        attested: read_tier(row.number(2)?)?,
        description: row.text(3)?,
        author: row.maybe_text(4)?,
        license: row.maybe_text(5)?,
        homepage: row.maybe_text(6)?,
        repository: row.maybe_text(7)?,
        tags: serde_json::from_str(&tags).map_err(|_| damaged("the tags of a package", &tags))?,
        deprecated: row.maybe_text(9)?,
        updated_at: row.time(10)?,
    })
}

/// A filter for packages; all conditions must match.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub namespace: Option<Namespace>,
    pub tag: Option<String>,
    /// The tier of the latest version.
    pub tier: Option<Tier>,
    pub author: Option<String>,
    /// Whether packages without an installable version are included.
    pub yanked: Yanked,
}

/// What happens to packages whose versions are all yanked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Yanked {
    /// They are left out, because no new install can choose them.
    #[default]
    Without,
    /// They are included, because a lockfile may pin one of their versions.
    With,
}

/// The order of the packages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By namespace and name.
    #[default]
    Name,
    /// Least recently changed first. A package that changes during paging appears again at the end,
    /// so that no change is missed.
    Updated {
        /// Packages that changed before this time are left out.
        since: Option<Timestamp>,
    },
    /// Most recently changed first.
    Recent {
        /// Packages that changed before this time are left out.
        since: Option<Timestamp>,
    },
}

/// The position where the next page starts. Its text form contains only letters, digits and `_ . /
/// -`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// `None` in the order of names.
    time: Option<Timestamp>,
    package: PackageName,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.time {
            Some(time) => write!(f, "{}.{}", time.micros(), self.package.id()),
            None => f.write_str(&self.package.id()),
        }
    }
}

impl FromStr for Cursor {
    type Err = RegistryError;

    fn from_str(text: &str) -> Result<Self, RegistryError> {
        let (time, package) = match text.split_once('.') {
            Some((time, package)) => (Some(time), package),
            None => (None, text),
        };
        let time = time.map(|time| time.parse().map(Timestamp::from_micros)).transpose();
        match (time, package.parse()) {
            (Ok(time), Ok(package)) => Ok(Self { time, package }),
            _ => Err(invalid_cursor()),
        }
    }
}

fn invalid_cursor() -> RegistryError {
    let message = "it is not a cursor of the previous page; start again without it".to_owned();
    RegistryError::Invalid { what: "the cursor", message }
}

/// A page of packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    pub items: Vec<Summary>,
    /// Where the next page starts; `None` on the last page.
    pub next: Option<Cursor>,
}

impl Registry<'_> {
    /// Returns a page of at most `limit` packages.
    pub async fn list(
        &self,
        filter: &Filter,
        order: Order,
        after: Option<&Cursor>,
        limit: u64,
    ) -> Result<Page, RegistryError> {
        let limit = limit.clamp(1, MAX_PAGE_SIZE);
        let query = query(filter, order, after, limit)?;
        let rows = query.into_statement().all(self.reader()).await?;
        let items: Result<Vec<Summary>, StoreError> = rows.iter().map(summary).collect();
        let mut items = items?;
        let more = items.len() as u64 > limit;
        items.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        let next = items.last().filter(|_| more).map(|last| Cursor {
            time: (order != Order::Name).then_some(last.updated_at),
            package: last.package.clone(),
        });
        Ok(Page { items, next })
    }
}

fn query(
    filter: &Filter,
    order: Order,
    after: Option<&Cursor>,
    limit: u64,
) -> Result<SqlBuilder, RegistryError> {
    let mut query = SqlBuilder::new(format!("SELECT {SUMMARY} FROM packages p"));
    if filter.tag.is_some() {
        query.push(" JOIN package_tags t ON t.package = p.id");
    }
    // A package whose versions are all withdrawn has an empty index and is never listed.
    query.push(match filter.yanked {
        Yanked::Without => " WHERE p.latest IS NOT NULL",
        Yanked::With => " WHERE p.index_text <> ''",
    });
    // With a tag, compare the columns of `package_tags`, so that its index is used.
    let (id, time) = match filter.tag {
        Some(_) => ("t.package", "t.updated_at"),
        None => ("p.id", "p.updated_at"),
    };
    conditions(&mut query, filter);
    let (since, sign, direction) = match order {
        Order::Name => (None, ">", ""),
        Order::Updated { since } => (since, ">", ""),
        Order::Recent { since } => (since, "<", " DESC"),
    };
    if let Some(since) = since {
        query.and(&format!("{time} >="), Value::Number(since.micros()));
    }
    match (order, after.map(|cursor| (cursor.time, cursor.package.id()))) {
        (Order::Name, Some((None, package))) => bound(&mut query, filter, ">", &package),
        (Order::Updated { .. } | Order::Recent { .. }, Some((Some(last), package))) => {
            let last = query.place(Value::Number(last.micros()));
            let package = query.place(Value::Text(package));
            query.push(&format!(" AND ({time}, {id}) {sign} ({last}, {package})"));
        }
        (_, None) => {}
        (_, Some(_)) => return Err(invalid_cursor()),
    }
    let columns = match order {
        Order::Name => id.to_owned(),
        _ => format!("{time}{direction}, {id}{direction}"),
    };
    let limit = query.place(Value::Number(i64::try_from(limit + 1).unwrap_or(i64::MAX)));
    query.push(&format!(" ORDER BY {columns} LIMIT {limit}"));
    Ok(query)
}

/// Adds a condition on the package name, with a tag for both tables: PostgreSQL does not infer it
/// through the join, and would scan the other table from its start.
fn bound(query: &mut SqlBuilder, filter: &Filter, sign: &str, name: &str) {
    query.and(&format!("p.id {sign}"), Value::Text(name.to_owned()));
    if filter.tag.is_some() {
        query.and(&format!("t.package {sign}"), Value::Text(name.to_owned()));
    }
}

/// Adds the conditions of a filter.
fn conditions(query: &mut SqlBuilder, filter: &Filter) {
    if let Some(tag) = &filter.tag {
        query.and("t.tag =", Value::Text(tag.clone()));
    }
    if let Some(tier) = filter.tier {
        query.and("p.tier =", Value::Number(tier_number(tier)));
    }
    if let Some(author) = &filter.author {
        query.and("p.author =", Value::Text(author.clone()));
    }
    if let Some(namespace) = &filter.namespace {
        bound(query, filter, ">=", &format!("{namespace}/"));
        // `0` is the character after `/`, so this is the end of the names in the namespace.
        bound(query, filter, "<", &format!("{namespace}0"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_text_round_trip() {
        for text in ["_/web-search", "acme/tool", "1763197200000001.acme/tool", "-5._/x"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "x.y", "a/b/c", "1.", ".a", "'; DROP TABLE packages"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }

    #[test]
    fn cursor_of_another_order_is_rejected() {
        let [name, time]: [Cursor; 2] =
            ["_/web-search", "17._/x"].map(|text| text.parse().unwrap());
        let query = |order, cursor| query(&Filter::default(), order, Some(cursor), 10);
        let recent = Order::Recent { since: None };
        assert!(query(Order::Name, &name).is_ok() && query(recent, &time).is_ok());
        assert!(query(Order::Name, &time).is_err() && query(recent, &name).is_err());
    }
}
