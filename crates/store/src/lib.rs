//! The memory: what Savoir keeps, in SQLite or PostgreSQL and in local files or S3.
//!
//! - [`Database`] is one or the other database behind the same functions. It opens with its
//!   migrations done. Its rooms: [`Accounts`], [`Settings`], [`RateLimits`], [`Sessions`],
//!   [`Knowledge`], [`Workflows`], [`Usage`], [`Leases`], [`SkillFacts`], [`CatalogSources`].
//! - [`Storage`] keeps bytes under keys, in a folder or a bucket.
//! - [`registry`] is packages that many publish and everybody reads, in both of them.
//! - [`SkillFiles`] keeps skills as plain files, `skills/{name}/SKILL.md`.
//!
//! No state that matters lives in a process: several can share a database and a bucket.

#![forbid(unsafe_code)]

mod accounts;
mod catalog;
mod database;
mod deadline;
mod error;
mod facts;
mod knowledge;
mod leases;
mod migrations;
mod password;
mod quota;
mod rate;
pub mod registry;
mod sessions;
mod settings;
mod skills;
mod sql;
mod stamp;
mod storage;
mod time;
mod usage;
mod workflows;

pub use accounts::{Accounts, ApiToken, Failure, Look, NewToken, Role, User};
pub use catalog::{CatalogSource, CatalogSources, NewCatalogSource};
pub use database::{Database, Kind};
pub use error::StoreError;
pub use facts::{Facts, SkillFacts};
pub use knowledge::{
    Base, Chunk, Claimed, Document, Hit, Knowledge, NewDocument, Status, Task, VectorSearch,
};
pub use leases::{Lease, Leases};
pub use password::{PasswordHash, hash_password, verify_password};
pub use quota::{QuotaReached, Quotas, check_quota};
pub use rate::{Hits, RateLimits};
pub use sessions::{Session, SessionMessage, SessionSummary, Sessions, Speaker};
pub use settings::{Settings, SigningKey};
pub use skills::{Resource, ResourceEntry, SkillFile, SkillFiles, WriteError};
pub use storage::Storage;
pub use time::Time;
pub use usage::{Spent, Tokens, Usage, UsageSummary};
pub use workflows::{Checkpoint, Execution, ExecutionStatus, NewWorkflow, Workflow, Workflows};
