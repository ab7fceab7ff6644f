-- Earlier states of workflows. Saves that follow each other quickly share one.
CREATE TABLE workflow_versions (
    id TEXT PRIMARY KEY,
    workflow_id TEXT NOT NULL REFERENCES workflows (id) ON DELETE CASCADE,
    user_id BIGINT,
    graph TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX workflow_versions_by_workflow ON workflow_versions (workflow_id, updated_at);
