CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE leases (
    name TEXT PRIMARY KEY,
    holder TEXT NOT NULL,
    ends_at BIGINT NOT NULL
);

CREATE TABLE rate_limits (
    name TEXT PRIMARY KEY,
    hits BIGINT NOT NULL,
    resets_at BIGINT NOT NULL
);
CREATE INDEX rate_limits_by_end ON rate_limits (resets_at);

CREATE TABLE revoked_tokens (
    token TEXT PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX revoked_tokens_by_end ON revoked_tokens (expires_at);

CREATE TABLE api_tokens (
    id TEXT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    name TEXT NOT NULL,
    scopes TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    last_used_at BIGINT
);
CREATE INDEX api_tokens_by_user ON api_tokens (user_id);

CREATE TABLE login_failures (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    failed_at BIGINT NOT NULL
);
CREATE INDEX login_failures_by_name ON login_failures (name, failed_at);
CREATE INDEX login_failures_by_time ON login_failures (failed_at);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    user_id BIGINT,
    kb_id TEXT,
    workflow_id TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    message_count BIGINT NOT NULL
);
CREATE INDEX sessions_by_user ON sessions (user_id, updated_at);

CREATE TABLE session_messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    speaker TEXT NOT NULL,
    content TEXT NOT NULL,
    said_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, number)
);

CREATE TABLE bases (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    user_id BIGINT,
    created_at BIGINT NOT NULL,
    embedder TEXT,
    generation BIGINT NOT NULL
);
CREATE INDEX bases_by_name ON bases (name);

CREATE TABLE documents (
    id TEXT PRIMARY KEY,
    kb_id TEXT NOT NULL REFERENCES bases (id) ON DELETE CASCADE,
    filename TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    file_size BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX documents_by_base ON documents (kb_id, created_at);

CREATE TABLE tasks (
    id TEXT PRIMARY KEY,
    doc_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    kb_id TEXT NOT NULL,
    status TEXT NOT NULL,
    progress BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    error TEXT,
    attempts BIGINT NOT NULL,
    worker TEXT,
    lease_ends_at BIGINT
);
CREATE INDEX tasks_by_document ON tasks (doc_id);
CREATE INDEX tasks_by_status ON tasks (status, started_at);

CREATE TABLE workflows (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT,
    graph TEXT NOT NULL,
    user_id BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX workflows_by_user ON workflows (user_id, created_at);

CREATE TABLE executions (
    id TEXT PRIMARY KEY,
    workflow_id TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    user_id BIGINT,
    status TEXT NOT NULL,
    initial_input TEXT NOT NULL,
    model TEXT,
    checkpoint TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    worker TEXT,
    lease_ends_at BIGINT
);
CREATE INDEX executions_by_workflow ON executions (workflow_id);

CREATE TABLE model_requests (
    id TEXT PRIMARY KEY,
    user_id BIGINT,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    asked_at BIGINT NOT NULL
);
CREATE INDEX model_requests_by_time ON model_requests (asked_at);
