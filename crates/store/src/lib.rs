//! Stores data in SQLite or PostgreSQL, and files in local folders or S3.
//!
//! - [`Database`] offers the same functions for both databases. Opening it runs the migrations. Its
//!   parts: [`Accounts`], [`Settings`], [`RateLimits`], [`Sessions`], [`Knowledge`], [`Workflows`],
//!   [`Runs`], [`Usage`], [`Leases`], [`SkillFactsTable`], [`CatalogSources`].
//! - [`Storage`] stores bytes under keys, in a folder or a bucket.
//! - [`registry`] stores published packages, in both of them.
//! - [`SkillFiles`] stores skills as plain files, `skills/{name}/SKILL.md`.
//!
//! Processes keep no state of their own, so several can share a database and a bucket.

#![forbid(unsafe_code)]

mod accounts;
mod catalog;
mod database;
mod deadline;
mod error;
mod facts;
mod file_stamp;
mod knowledge;
mod leases;
mod migrations;
mod password;
mod quota;
mod rate_limits;
pub mod registry;
mod runs;
mod sessions;
mod settings;
mod skill_versions;
mod skills;
mod sql;
mod storage;
mod timestamp;
mod usage;
mod workflow_versions;
mod workflows;

pub use accounts::{Accounts, AccountsVersion, ApiToken, LoginFailure, NewToken, Role, User};
pub use catalog::{CatalogSource, CatalogSources, NewCatalogSource};
pub use database::{Database, DatabaseKind};
pub use error::StoreError;
pub use facts::{SkillFacts, SkillFactsTable};
pub use knowledge::{
    Chunk, ChunkHit, ChunkSize, ClaimedTask, Document, IndexingStatus, IndexingTask, Knowledge,
    KnowledgeBase, NewDocument, VectorSearch,
};
pub use leases::{HeldLease, Lease, Leases};
pub use password::{PasswordHash, hash_password, verify_password};
pub use quota::{QuotaReached, Quotas, check_quota};
pub use rate_limits::{RateCount, RateLimits};
pub use runs::{Run, RunEnd, RunFilter, RunKind, RunState, Runs};
pub use sessions::{Session, SessionMessage, SessionSummary, Sessions, Speaker};
pub use settings::{Settings, SigningKey};
pub use skill_versions::SkillVersion;
pub use skills::{
    Resource, ResourceEntry, SkillFile, SkillFiles, WriteError, name_of_key, owner_key,
    owner_of_key,
};
pub use storage::Storage;
pub use timestamp::Timestamp;
pub use usage::{DayUsage, ModelRequest, TokenSums, Usage, UsageSummary};
pub use workflow_versions::WorkflowVersion;
pub use workflows::{
    ChangedWorkflow, Checkpoint, Execution, ExecutionStatus, NewWorkflow, Workflow, Workflows,
};
