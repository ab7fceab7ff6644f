-- How the documents of a knowledge base are split; NULL means the usual size. A base is stale while
-- its documents are split in another way than this.
ALTER TABLE bases ADD COLUMN chunk_tokens BIGINT;
ALTER TABLE bases ADD COLUMN chunk_overlap BIGINT;
ALTER TABLE bases ADD COLUMN stale BIGINT NOT NULL DEFAULT 0;
