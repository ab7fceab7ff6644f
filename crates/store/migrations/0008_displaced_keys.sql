-- When a key ended because somebody else showed that it is theirs. Until now only the reason told so.
ALTER TABLE registry_keys ADD COLUMN displaced_at BIGINT;
UPDATE registry_keys SET displaced_at = revoked_at
WHERE revoked_why = 'somebody else showed that it is theirs' AND proved_at IS NULL;
