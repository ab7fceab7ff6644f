-- What administrators took down, also where the version itself is gone: the digests of its archive and
-- of its files, so that nobody publishes the same again, and since when.
ALTER TABLE versions ADD COLUMN taken_at BIGINT;
ALTER TABLE versions ADD COLUMN taken_sha256 TEXT;
ALTER TABLE versions ADD COLUMN taken_integrity TEXT;
CREATE INDEX versions_taken_by_artefact ON versions (taken_sha256) WHERE taken_sha256 IS NOT NULL;
CREATE INDEX versions_taken_by_integrity ON versions (taken_integrity)
    WHERE taken_integrity IS NOT NULL;
CREATE INDEX versions_by_integrity ON versions (integrity);

-- Until now only the log knew what was withdrawn, and only the report of a scan what was blocked.
UPDATE versions SET taken_at = withdrawn_at,
    taken_sha256 = (
        SELECT substring(told.details from '"sha256":"([0-9a-f]{64})"') FROM registry_log told
        WHERE told.package = versions.package AND told.version = versions.version
            AND told.act IN ('published', 'withdrawn')
            AND told.details ~ '"sha256":"[0-9a-f]{64}"'
        ORDER BY told.seq DESC LIMIT 1),
    taken_integrity = (
        SELECT substring(told.details from '"integrity":"([^"\\]+)"') FROM registry_log told
        WHERE told.package = versions.package AND told.version = versions.version
            AND told.act IN ('published', 'withdrawn')
            AND told.details ~ '"integrity":"[^"\\]+"'
        ORDER BY told.seq DESC LIMIT 1)
WHERE withdrawn_at IS NOT NULL;
UPDATE versions SET taken_at = COALESCE(scanned_at, published_at), taken_sha256 = sha256,
    taken_integrity = integrity
WHERE verdict = 'block' AND withdrawn_at IS NULL AND scan LIKE '%"judged":{%';

-- When its owner showed that they have the secret half of a key; never for those of older programs.
ALTER TABLE registry_keys ADD COLUMN proved_at BIGINT;
