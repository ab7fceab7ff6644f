-- Whether an answer was stopped before its end.
ALTER TABLE session_messages ADD COLUMN stopped BIGINT NOT NULL DEFAULT 0;
