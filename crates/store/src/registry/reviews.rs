//! Reviews of packages by users, and the reputation of publishers.

use savoir_skill::permission::Tier;
use semver::Version;
use serde_json::json;
use sqlx::AnyConnection;

use super::{
    Actor, Namespace, PackageName, Registry, RegistryError, Right,
    change::check_message,
    facts::{read_tier, read_version},
    log::{AuditAction, NewAuditEvent, note},
    owners::check_may_publish,
};
use crate::{
    StoreError, Timestamp,
    rate_limits::hit,
    sql::{Row, sql},
};

/// Maximum reviews of one account per day.
const MAX_REVIEWS_PER_DAY: u64 = 50;
/// Maximum audit requests of one account per day.
const MAX_AUDIT_REQUESTS_PER_DAY: u64 = 20;
const DAY: std::time::Duration = std::time::Duration::from_hours(24);
/// Maximum reviews per page.
const MAX_PAGE_SIZE: u64 = 100;

/// The best rating; the worst is 1.
pub const MAX_RATING: u8 = 5;

/// A user's review of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// The account of the user.
    pub account: i64,
    /// From 1 to [`MAX_RATING`].
    pub rating: u8,
    /// May be empty.
    pub message: String,
    /// The version that the user reviewed.
    pub version: Option<Version>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Clone, Debug)]
pub struct NewReview<'a> {
    pub rating: u8,
    pub message: &'a str,
    pub version: Option<&'a Version>,
}

/// The rating of a package, or of all packages of a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rating {
    /// Number of reviews.
    pub count: u64,
    /// Number of reviews with 1, 2, 3, 4 and 5 points.
    pub by_rating: [u64; MAX_RATING as usize],
}

impl Rating {
    /// Returns the mean; `None` without reviews.
    #[expect(clippy::cast_precision_loss, reason = "counts of reviews are small")]
    pub fn average(&self) -> Option<f64> {
        let sum: u64 = (1..).zip(self.by_rating).map(|(rating, count)| rating * count).sum();
        (self.count > 0).then(|| sum as f64 / self.count as f64)
    }
}

/// The public profile of a publisher.
#[derive(Clone, Debug, PartialEq)]
pub struct Publisher {
    pub namespace: Namespace,
    pub created_at: Timestamp,
    /// Packages with at least one version that is not yanked.
    pub packages: u64,
    /// How many of them have at least the tier `community`.
    pub signed_packages: u64,
    /// How many of them have the tier `verified`.
    pub verified_packages: u64,
    pub downloads: u64,
    pub rating: Rating,
}

impl Publisher {
    /// Returns a score from 0 to 100: 40 for signed skills, 30 for good ratings (in full from ten
    /// reviews on), 30 for downloads (in full from ten thousand on).
    #[expect(clippy::cast_precision_loss, reason = "only the order of magnitude counts")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the sum is from 0 to 100"
    )]
    pub fn reputation(&self) -> u8 {
        let signed = self.signed_packages as f64 / self.packages.max(1) as f64;
        let stars = self.rating.average().map_or(0.0, |average| (average - 1.0) / 4.0);
        let known = (self.rating.count as f64 / 10.0).min(1.0);
        let popular = ((1.0 + self.downloads as f64).log10() / 4.0).min(1.0);
        (40.0 * signed + 30.0 * stars * known + 30.0 * popular).round() as u8
    }
}

fn review(row: &Row) -> Result<Review, StoreError> {
    Ok(Review {
        account: row.number(0)?,
        rating: u8::try_from(row.number(1)?).unwrap_or(MAX_RATING),
        message: row.text(2)?,
        version: row.maybe_text(3)?.map(|text| read_version(&text)).transpose()?,
        created_at: row.time(4)?,
        updated_at: row.time(5)?,
    })
}

fn rating(rows: &[Row]) -> Result<Rating, StoreError> {
    let mut found = Rating::default();
    for row in rows {
        let (stars, count) = (row.count(0)?, row.count(1)?);
        let slot = usize::try_from(stars).ok().and_then(|stars| stars.checked_sub(1));
        if let Some(slot) = slot.and_then(|slot| found.by_rating.get_mut(slot)) {
            *slot += count;
            found.count += count;
        }
    }
    Ok(found)
}

impl Registry<'_> {
    /// Writes or replaces the review of an account. Publishers of a package cannot review it.
    pub async fn set_review(
        &self,
        actor: &Actor,
        package: &PackageName,
        new: NewReview<'_>,
    ) -> Result<Review, RegistryError> {
        let account = actor.account.ok_or(RegistryError::NobodyActs)?;
        if !(1..=MAX_RATING).contains(&new.rating) {
            let message = format!("it is a whole number from 1 to {MAX_RATING}");
            return Err(RegistryError::Invalid { what: "the rating", message });
        }
        check_message(Some(new.message))?;
        let mut work = self.begin().await?;
        check_is_there(work.connection(), package).await?;
        if is_publisher(work.connection(), account, package).await? {
            let message = "you publish this skill".to_owned();
            return Err(RegistryError::Invalid { what: "the review", message });
        }
        let written = hit(work.connection(), &format!("reviews/{account}"), DAY).await?;
        if written.count > MAX_REVIEWS_PER_DAY {
            return Err(RegistryError::TooOften { what: "reviews", most: MAX_REVIEWS_PER_DAY });
        }
        let version = new.version.map(ToString::to_string);
        let row = sql("INSERT INTO package_reviews
                (package, user_id, rating, message, version, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $6)
             ON CONFLICT (package, user_id) DO UPDATE SET rating = excluded.rating,
                message = excluded.message, version = excluded.version,
                updated_at = excluded.updated_at
             RETURNING user_id, rating, message, version, created_at, updated_at")
        .text(&package.id())
        .number(account)
        .number(i64::from(new.rating))
        .text(new.message)
        .maybe_text(version.as_deref())
        .time(Timestamp::now())
        .one(work.connection())
        .await?;
        let stored = review(&row)?;
        let event = NewAuditEvent::new(AuditAction::Reviewed)
            .package(package)
            .details(json!({"rating": stored.rating}));
        note(work.connection(), actor, Timestamp::now(), vec![event]).await?;
        work.commit().await?;
        Ok(stored)
    }

    /// Removes a review: the account's own, or as an administrator that of another account. Returns
    /// false if there is none.
    pub async fn remove_review(
        &self,
        actor: &Actor,
        package: &PackageName,
        account: Option<i64>,
    ) -> Result<bool, RegistryError> {
        let own = actor.account;
        let account = account.or(own).ok_or(RegistryError::NobodyActs)?;
        if own != Some(account) {
            actor.check_admin()?;
        }
        let mut work = self.begin().await?;
        let removed = sql("DELETE FROM package_reviews WHERE package = $1 AND user_id = $2
             RETURNING rating, message")
        .text(&package.id())
        .number(account)
        .optional(work.connection())
        .await?;
        let Some(row) = removed else { return Ok(false) };
        let mut details = json!({"account": account, "rating": row.number(0)?});
        if own != Some(account) {
            // The log keeps the text of a review that an administrator removed, but not of one that
            // its author removed.
            details["message"] = row.text(1)?.into();
        }
        let event =
            NewAuditEvent::new(AuditAction::ReviewRemoved).package(package).details(details);
        note(work.connection(), actor, Timestamp::now(), vec![event]).await?;
        work.commit().await?;
        Ok(true)
    }

    /// Returns the reviews of a package, newest first, without those of deleted and disabled
    /// accounts.
    pub async fn reviews(
        &self,
        package: &PackageName,
        limit: u64,
        offset: u64,
    ) -> Result<Vec<Review>, StoreError> {
        let rows =
            sql("SELECT r.user_id, r.rating, r.message, r.version, r.created_at, r.updated_at
             FROM package_reviews r JOIN users u ON u.id = r.user_id
                AND u.deleted_at IS NULL AND u.active = 1
             WHERE r.package = $1 ORDER BY r.updated_at DESC, r.user_id LIMIT $2 OFFSET $3")
            .text(&package.id())
            .count(limit.min(MAX_PAGE_SIZE))
            .count(offset)
            .all(self.reader())
            .await?;
        rows.iter().map(review).collect()
    }

    pub async fn rating(&self, package: &PackageName) -> Result<Rating, StoreError> {
        let rows = sql("SELECT r.rating, COUNT(*) FROM package_reviews r
             JOIN users u ON u.id = r.user_id
                AND u.deleted_at IS NULL AND u.active = 1
             WHERE r.package = $1 GROUP BY r.rating")
        .text(&package.id())
        .all(self.reader())
        .await?;
        rating(&rows)
    }

    /// Returns the profile of a publisher; `None` if there is no such namespace.
    pub async fn publisher(&self, namespace: &Namespace) -> Result<Option<Publisher>, StoreError> {
        let row = sql("SELECT created_at FROM namespaces WHERE name = $1")
            .text(&namespace.to_string())
            .optional(self.reader())
            .await?;
        let Some(row) = row else { return Ok(None) };
        let created_at = row.time(0)?;
        // `0` is the character after `/`, so this range contains all ids in the namespace.
        let (start, end) = (format!("{namespace}/"), format!("{namespace}0"));
        let tiers = sql("SELECT tier, COUNT(*) FROM packages
             WHERE id > $1 AND id < $2 AND latest IS NOT NULL GROUP BY tier")
        .text(&start)
        .text(&end)
        .all(self.reader())
        .await?;
        let (mut packages, mut signed_packages, mut verified_packages) = (0, 0, 0);
        for row in &tiers {
            let (tier, count) = (read_tier(row.number(0)?)?, row.count(1)?);
            packages += count;
            signed_packages += if tier >= Tier::Community { count } else { 0 };
            verified_packages += if tier == Tier::Verified { count } else { 0 };
        }
        let downloads = sql("SELECT CAST(SUM(number) AS BIGINT) FROM downloads
             WHERE package > $1 AND package < $2")
        .text(&start)
        .text(&end)
        .one(self.reader())
        .await?;
        let downloads = downloads.maybe_number(0)?.and_then(|sum| u64::try_from(sum).ok());
        let rows = sql("SELECT r.rating, COUNT(*) FROM package_reviews r
             JOIN users u ON u.id = r.user_id
                AND u.deleted_at IS NULL AND u.active = 1
             WHERE r.package > $1 AND r.package < $2 GROUP BY r.rating")
        .text(&start)
        .text(&end)
        .all(self.reader())
        .await?;
        Ok(Some(Publisher {
            namespace: namespace.clone(),
            created_at,
            packages,
            signed_packages,
            verified_packages,
            downloads: downloads.unwrap_or_default(),
            rating: rating(&rows)?,
        }))
    }

    /// Asks the administrators to audit a version, which can make it `verified`. Only for
    /// publishers of the package. The request is stored as a log entry.
    pub async fn request_audit(
        &self,
        actor: &Actor,
        package: &PackageName,
        version: &Version,
        message: &str,
    ) -> Result<(), RegistryError> {
        check_message(Some(message))?;
        actor.check_right(Right::Publish, Some(&package.owner_scope()))?;
        let account = actor.account.ok_or(RegistryError::NobodyActs)?;
        let known = self.version(package, version).await?;
        let mut work = self.begin().await?;
        check_may_publish(work.connection(), actor, package).await?;
        let most = MAX_AUDIT_REQUESTS_PER_DAY;
        if hit(work.connection(), &format!("audit-requests/{account}"), DAY).await?.count > most {
            return Err(RegistryError::TooOften { what: "requests for an audit", most });
        }
        let details = json!({"sha256": known.sha256, "message": message});
        let event = NewAuditEvent::new(AuditAction::AuditRequested)
            .version(package, version)
            .details(details);
        note(work.connection(), actor, Timestamp::now(), vec![event]).await?;
        Ok(work.commit().await?)
    }
}

async fn check_is_there(
    connection: &mut AnyConnection,
    package: &PackageName,
) -> Result<(), RegistryError> {
    let row = sql("SELECT 1 FROM packages WHERE id = $1")
        .text(&package.id())
        .optional(connection)
        .await?;
    match row {
        Some(_) => Ok(()),
        None => Err(RegistryError::NotFound { what: format!("skill {package} here") }),
    }
}

/// Whether an account may publish the package.
async fn is_publisher(
    connection: &mut AnyConnection,
    account: i64,
    package: &PackageName,
) -> Result<bool, StoreError> {
    let row = sql("SELECT 1 FROM members WHERE holding = $1 AND user_id = $2")
        .text(package.owner_scope().as_str())
        .number(account)
        .optional(connection)
        .await?;
    Ok(row.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn average_and_reputation() {
        let rating = Rating { count: 4, by_rating: [1, 0, 0, 0, 3] };
        assert_eq!(rating.average(), Some(4.0));
        assert_eq!(Rating::default().average(), None);
        let mut publisher = Publisher {
            namespace: Namespace::parse("acme").unwrap(),
            created_at: Timestamp::now(),
            packages: 0,
            signed_packages: 0,
            verified_packages: 0,
            downloads: 0,
            rating: Rating::default(),
        };
        assert_eq!(publisher.reputation(), 0);
        publisher = Publisher {
            packages: 2,
            signed_packages: 2,
            downloads: 1_000_000,
            rating: Rating { count: 10, by_rating: [0, 0, 0, 0, 10] },
            ..publisher
        };
        assert_eq!(publisher.reputation(), 100);
    }
}
