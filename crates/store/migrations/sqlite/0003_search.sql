CREATE TABLE chunks (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    doc_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    kb_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    text TEXT NOT NULL,
    size BIGINT NOT NULL
);
CREATE INDEX chunks_by_document ON chunks (doc_id);

-- The words are those of the tokeniser in the program, so that both databases find the same.
CREATE VIRTUAL TABLE chunk_words USING fts5 (
    words, content = '', contentless_delete = 1, tokenize = 'porter unicode61'
);
CREATE TRIGGER chunk_is_gone AFTER DELETE ON chunks BEGIN
    DELETE FROM chunk_words WHERE rowid = old.number;
END;

CREATE TABLE vectors (
    chunk BIGINT PRIMARY KEY REFERENCES chunks (number) ON DELETE CASCADE,
    kb_id TEXT NOT NULL,
    dimensions BIGINT NOT NULL,
    embedding BLOB
);
CREATE INDEX vectors_by_base ON vectors (kb_id, dimensions);
