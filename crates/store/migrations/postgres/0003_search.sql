-- Stems without stop words, as in SQLite.
CREATE TEXT SEARCH DICTIONARY savoir_stem (TEMPLATE = snowball, LANGUAGE = english);
CREATE TEXT SEARCH CONFIGURATION savoir (COPY = simple);
ALTER TEXT SEARCH CONFIGURATION savoir
    ALTER MAPPING FOR asciiword, word, numword WITH savoir_stem;

CREATE TABLE chunks (
    number BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    doc_id TEXT NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
    kb_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    text TEXT NOT NULL,
    size BIGINT NOT NULL,
    words TSVECTOR NOT NULL,
    word_count BIGINT NOT NULL
);
CREATE INDEX chunks_by_document ON chunks (doc_id);
CREATE INDEX chunks_by_base ON chunks (kb_id);
CREATE INDEX chunks_by_word ON chunks USING gin (words);

CREATE TABLE vectors (
    chunk BIGINT PRIMARY KEY REFERENCES chunks (number) ON DELETE CASCADE,
    kb_id TEXT NOT NULL,
    dimensions BIGINT NOT NULL,
    embedding BYTEA
);
CREATE INDEX vectors_by_base ON vectors (kb_id, dimensions);
