-- Texts that skills had, the present one included.
CREATE TABLE skill_versions (
    id TEXT PRIMARY KEY,
    skill TEXT NOT NULL,
    user_id BIGINT,
    text TEXT NOT NULL,
    saved_at BIGINT NOT NULL
);
CREATE INDEX skill_versions_by_skill ON skill_versions (skill, saved_at);
