CREATE INDEX executions_by_time ON executions (updated_at);

CREATE INDEX bases_by_user ON bases (user_id);
CREATE INDEX tasks_by_base ON tasks (kb_id, status);

CREATE TABLE turns (
    user_id BIGINT PRIMARY KEY,
    number BIGINT NOT NULL
);
