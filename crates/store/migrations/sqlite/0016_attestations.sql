-- Signed evaluations of versions. The signature counts, not the account that added it.
CREATE TABLE attestations (
    package TEXT NOT NULL,
    sort_key BLOB NOT NULL,
    digest TEXT NOT NULL,
    key_id TEXT NOT NULL,
    public_key TEXT,
    statement TEXT NOT NULL,
    added_by BIGINT,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (package, sort_key, digest),
    FOREIGN KEY (package, sort_key) REFERENCES versions (package, sort_key)
);
