CREATE TABLE users (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    role TEXT NOT NULL,
    active BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    tokens_since BIGINT NOT NULL,
    deleted_at BIGINT
);
CREATE UNIQUE INDEX users_by_email ON users (email) WHERE deleted_at IS NULL;

CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    pkcs8 BYTEA NOT NULL,
    created_at BIGINT NOT NULL
);
