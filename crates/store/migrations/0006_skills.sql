-- What is known of a skill besides its files. A skill without a row was written here and is enabled.
CREATE TABLE skill_facts (
    name TEXT PRIMARY KEY,
    owner TEXT,
    enabled BIGINT NOT NULL,
    pinned BIGINT NOT NULL,
    source TEXT NOT NULL,
    source_id TEXT,
    source_version TEXT,
    digest TEXT,
    last_used BIGINT,
    active_since BIGINT NOT NULL,
    lifecycle TEXT NOT NULL
);
CREATE INDEX skill_facts_by_source ON skill_facts (source, source_id);

CREATE TABLE catalog_sources (
    id TEXT PRIMARY KEY,
    label TEXT NOT NULL,
    repo_url TEXT NOT NULL,
    reference TEXT,
    enabled BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
