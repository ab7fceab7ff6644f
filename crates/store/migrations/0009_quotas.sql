-- What an account keeps is counted when it adds something.
CREATE INDEX versions_by_publisher ON versions (published_by, size);
CREATE INDEX documents_by_size ON documents (kb_id, file_size);
-- How the name of a namespace looks: `acrne` and `acme` look the same.
CREATE INDEX namespaces_by_look ON namespaces
    (replace(replace(replace(replace(replace(name, '0', 'o'), '1', 'l'), 'i', 'l'), 'rn', 'm'), 'vv', 'w'));
