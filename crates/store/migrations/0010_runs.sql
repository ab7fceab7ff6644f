-- Everything that ran: prompts, tools, workflows and answers in conversations.
CREATE TABLE runs (
    id TEXT PRIMARY KEY,
    user_id BIGINT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    target TEXT NOT NULL,
    state TEXT NOT NULL,
    started_at BIGINT NOT NULL,
    ended_at BIGINT,
    -- When its process last said that it goes on.
    seen_at BIGINT NOT NULL,
    model TEXT,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    finish_reason TEXT,
    error TEXT,
    inputs TEXT NOT NULL,
    output TEXT,
    events TEXT NOT NULL
);
CREATE INDEX runs_by_user ON runs (user_id, started_at);
CREATE INDEX runs_by_time ON runs (started_at);
CREATE INDEX runs_by_state ON runs (state, seen_at);
