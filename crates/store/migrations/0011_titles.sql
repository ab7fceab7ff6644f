-- The title of a conversation that its user chose.
ALTER TABLE sessions ADD COLUMN title TEXT;
