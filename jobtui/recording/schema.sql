CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE source (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE entry (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, source INTEGER NOT NULL, what TEXT NOT NULL,
    key TEXT NOT NULL, body BLOB NOT NULL
);
CREATE INDEX entry_of_source ON entry (source, what, key, seq);
CREATE TABLE log (source INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (source, name));
CREATE TABLE job (source INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (source, id));
