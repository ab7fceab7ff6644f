//! Packages page by page. A page goes on after the last one's last name, so that what is published
//! meanwhile neither repeats nor hides anything, and the thousandth page is as fast as the first.

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

/// The columns of [`summary`].
pub(super) const SUMMARY: &str = "p.id, p.latest, p.tier, p.description, p.author, p.license,
    p.homepage, p.repository, p.tags, p.deprecated, p.updated_at";

/// The most that one page has.
const MAX_PAGE_SIZE: u64 = 1000;

/// A package, as lists show it: what its latest version says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Which package.
    pub package: PackageName,
    /// The highest release that was not yanked, or pre-release if there is no release. Lists leave
    /// packages out that have none.
    pub latest: Option<Version>,
    /// The tier that the latest version earned.
    pub attested: Tier,
    /// What it does.
    pub description: String,
    /// Who wrote it.
    pub author: Option<String>,
    /// Its licence.
    pub license: Option<String>,
    /// Where it is described.
    pub homepage: Option<String>,
    /// Where its source is.
    pub repository: Option<String>,
    /// What it is found by, sorted.
    pub tags: Vec<String>,
    /// What its users should know.
    pub deprecated: Option<String>,
    /// When it last changed.
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

/// Which packages are wanted: those for which all of it holds.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Those of a namespace.
    pub namespace: Option<Namespace>,
    /// Those that have a tag.
    pub tag: Option<String>,
    /// Those whose latest version earned a tier.
    pub tier: Option<Tier>,
    /// Those of an author.
    pub author: Option<String>,
    /// Those of which every version was yanked.
    pub yanked: Yanked,
}

/// What becomes of packages that have no version but yanked ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Yanked {
    /// They are left out: nobody could choose them.
    #[default]
    Without,
    /// They are there, too: whoever has such a version in a lock can have it.
    With,
}

/// In which order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// By namespace and name.
    #[default]
    Name,
    /// Those that changed longest ago first, since a time: one that changes while somebody reads
    /// comes again at the end, so that nothing is missed.
    Updated {
        /// What changed earlier is left out.
        since: Option<Timestamp>,
    },
    /// Those that changed last first, since a time.
    Recent {
        /// What changed earlier is left out.
        since: Option<Timestamp>,
    },
}

/// Where a page goes on. As text it holds nothing but letters, digits and `_ . / -`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// None in the order of names.
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

/// Some packages, and where to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The packages.
    pub items: Vec<Summary>,
    /// Where the next page begins; none if there is no more.
    pub next: Option<Cursor>,
}

impl Registry<'_> {
    /// A page of packages that have a version which can be chosen, at most `limit`.
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
    // Who withdrew everything left an empty index, and nothing that anybody could have.
    query.push(match filter.yanked {
        Yanked::Without => " WHERE p.latest IS NOT NULL",
        Yanked::With => " WHERE p.index_text <> ''",
    });
    // With a tag, names and times are those of the index of tags.
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

/// Leaves names out. With a tag both tables are told: PostgreSQL does not see that what holds for
/// the one holds for the other, and would read the other from its beginning.
fn bound(query: &mut SqlBuilder, filter: &Filter, sign: &str, name: &str) {
    query.and(&format!("p.id {sign}"), Value::Text(name.to_owned()));
    if filter.tag.is_some() {
        query.and(&format!("t.package {sign}"), Value::Text(name.to_owned()));
    }
}

/// What a filter asks for.
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
        // The sign after the slash.
        bound(query, filter, "<", &format!("{namespace}0"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_as_text() {
        for text in ["_/web-search", "acme/tool", "1763197200000001.acme/tool", "-5._/x"] {
            assert_eq!(text.parse::<Cursor>().unwrap().to_string(), text);
        }
        for text in ["", "x.y", "a/b/c", "1.", ".a", "'; DROP TABLE packages"] {
            assert!(text.parse::<Cursor>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_cursor_belongs_to_its_order() {
        let [name, time]: [Cursor; 2] =
            ["_/web-search", "17._/x"].map(|text| text.parse().unwrap());
        let query = |order, cursor| query(&Filter::default(), order, Some(cursor), 10);
        let recent = Order::Recent { since: None };
        assert!(query(Order::Name, &name).is_ok() && query(recent, &time).is_ok());
        assert!(query(Order::Name, &time).is_err() && query(recent, &name).is_err());
    }
}
