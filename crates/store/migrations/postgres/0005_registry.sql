-- Names sort by their bytes, whatever the language of the server.
CREATE TABLE namespaces (
    name TEXT COLLATE "C" PRIMARY KEY,
    created_by BIGINT,
    created_at BIGINT NOT NULL
);

-- A holding is what people own together: a namespace, or one package of a namespace that is everybody's.
CREATE TABLE members (
    holding TEXT COLLATE "C" NOT NULL,
    user_id BIGINT NOT NULL,
    role TEXT NOT NULL,
    added_by BIGINT,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (holding, user_id)
);
CREATE INDEX members_by_user ON members (user_id, holding);

CREATE TABLE prefix_grants (
    user_id BIGINT NOT NULL,
    prefix TEXT NOT NULL,
    added_by BIGINT,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, prefix)
);

CREATE TABLE registry_keys (
    holding TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    public_key TEXT NOT NULL,
    label TEXT NOT NULL,
    account BIGINT,
    added_by BIGINT,
    added_at BIGINT NOT NULL,
    revoked_at BIGINT,
    revoked_why TEXT,
    PRIMARY KEY (holding, key_id)
);

-- One row says what lists and resolvers ask for: it is renewed with every change of a version.
CREATE TABLE packages (
    id TEXT COLLATE "C" PRIMARY KEY,
    created_by BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    latest TEXT,
    tier BIGINT NOT NULL,
    description TEXT NOT NULL,
    author TEXT COLLATE "C",
    license TEXT,
    homepage TEXT,
    repository TEXT,
    tags TEXT NOT NULL,
    deprecated TEXT,
    index_text TEXT NOT NULL,
    index_tag TEXT NOT NULL
);
CREATE INDEX packages_by_tier ON packages (tier, id) WHERE latest IS NOT NULL;
CREATE INDEX packages_by_author ON packages (author, id) WHERE latest IS NOT NULL;
CREATE INDEX packages_by_time ON packages (updated_at, id) WHERE latest IS NOT NULL;
CREATE INDEX packages_by_tier_and_time ON packages (tier, updated_at, id) WHERE latest IS NOT NULL;
CREATE INDEX packages_by_author_and_time ON packages (author, updated_at, id)
    WHERE latest IS NOT NULL;

CREATE TABLE package_tags (
    tag TEXT COLLATE "C" NOT NULL,
    package TEXT COLLATE "C" NOT NULL REFERENCES packages (id),
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tag, package)
);
CREATE INDEX package_tags_by_package ON package_tags (package);
CREATE INDEX package_tags_by_time ON package_tags (tag, updated_at, package);

-- The bytes of `sort_key` are in the order of SemVer, and the same for versions that differ in build
-- metadata alone. A version that was withdrawn keeps its row, so that nothing else gets its number.
CREATE TABLE versions (
    package TEXT COLLATE "C" NOT NULL REFERENCES packages (id),
    sort_key BYTEA NOT NULL,
    version TEXT NOT NULL,
    claimed BIGINT,
    attested BIGINT NOT NULL,
    integrity TEXT NOT NULL,
    sha256 TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    skill_md TEXT COLLATE "C" NOT NULL,
    entry TEXT NOT NULL,
    facts TEXT NOT NULL,
    verdict TEXT,
    scan TEXT,
    scanned_at BIGINT,
    yanked_at BIGINT,
    yanked_why TEXT,
    deprecated TEXT,
    withdrawn_at BIGINT,
    withdrawn_why TEXT,
    published_by BIGINT,
    published_at BIGINT NOT NULL,
    PRIMARY KEY (package, sort_key)
);
CREATE INDEX versions_by_artefact ON versions (sha256);
CREATE INDEX versions_by_skill_md ON versions (skill_md);
CREATE INDEX versions_not_scanned ON versions (package, sort_key)
    WHERE verdict IS NULL AND withdrawn_at IS NULL;

CREATE TABLE signatures (
    package TEXT COLLATE "C" NOT NULL,
    sort_key BYTEA NOT NULL,
    holding TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL,
    added_by BIGINT,
    added_at BIGINT NOT NULL,
    PRIMARY KEY (package, sort_key, holding, key_id),
    FOREIGN KEY (package, sort_key) REFERENCES versions (package, sort_key)
);
CREATE INDEX signatures_by_key ON signatures (holding, key_id, package);

CREATE TABLE downloads (
    package TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (package, version)
);

-- Blobs that a publish which is under way may refer to in a moment.
CREATE TABLE blob_claims (
    digest TEXT COLLATE "C" PRIMARY KEY,
    ends_at BIGINT NOT NULL
);

-- Every change with a number. The row of the counter is locked until its change is committed, so
-- that numbers are seen in their order and without gaps.
CREATE TABLE registry_counter (
    id BIGINT PRIMARY KEY CHECK (id = 1),
    seq BIGINT NOT NULL
);
INSERT INTO registry_counter (id, seq) VALUES (1, 0);

CREATE TABLE registry_log (
    seq BIGINT PRIMARY KEY,
    done_at BIGINT NOT NULL,
    account BIGINT,
    token TEXT,
    act TEXT NOT NULL,
    holding TEXT COLLATE "C",
    package TEXT COLLATE "C",
    version TEXT,
    details TEXT NOT NULL
);
CREATE INDEX registry_log_by_package ON registry_log (package, seq);
CREATE INDEX registry_log_by_holding ON registry_log (holding, seq);
CREATE INDEX registry_log_by_account ON registry_log (account, seq);

CREATE FUNCTION registry_log_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'what was done in the registry cannot be changed afterwards';
END
$$;
CREATE TRIGGER registry_log_stays BEFORE UPDATE OR DELETE ON registry_log
    FOR EACH ROW EXECUTE FUNCTION registry_log_stays();
