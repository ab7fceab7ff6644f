-- When an evaluation ended, as it states, so that the newest of each key can be listed; and when it was
-- removed. The row of a removed evaluation stays, so that nobody adds it again.
ALTER TABLE attestations ADD COLUMN finished_at BIGINT NOT NULL DEFAULT 0;
UPDATE attestations SET finished_at = added_at;
ALTER TABLE attestations ADD COLUMN removed_at BIGINT;
