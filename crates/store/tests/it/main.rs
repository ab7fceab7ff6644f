//! Tests of the store. Those of the database run on SQLite, on PostgreSQL and on PostgreSQL with
//! pgvector; those of files run on a folder and on S3. `scripts/services.sh` starts the servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod accounts;
mod database;
mod facts;
mod files;
mod harness;
mod knowledge;
mod password;
mod registry;
mod search;
mod sessions;
mod shared;
mod skills;
mod whole_skills;
mod workflows;
