-- The event log. A position is a number; there is one writer, so numbers are committed in
-- their order, and what can be read is the head. AUTOINCREMENT: else numbers of events that
-- were trimmed would come again.

CREATE TABLE pawl_topic (
    namespace INTEGER NOT NULL,
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX pawl_topic_name ON pawl_topic (namespace, name);

CREATE TABLE pawl_event (
    seq          INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace    INTEGER NOT NULL,
    topic        INTEGER NOT NULL,
    stripe       INTEGER NOT NULL, -- of topic and key: stream.Stripe
    schema       INTEGER NOT NULL,
    appended     INTEGER NOT NULL,
    time         INTEGER NOT NULL,
    expires      INTEGER,
    id           TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    content_type TEXT    NOT NULL,
    rest         BLOB,             -- headers, correlation, causation, trace: stream.Rest
    data         BLOB
) STRICT;
CREATE INDEX pawl_event_topic ON pawl_event (namespace, topic, seq, stripe);

-- How far named readers have come. Every change raises the turn, by which they are fenced.
CREATE TABLE pawl_cursor (
    namespace INTEGER NOT NULL,
    name      TEXT    NOT NULL,
    filter    TEXT    NOT NULL,
    turn      INTEGER NOT NULL,
    epoch     INTEGER NOT NULL, -- 0: before everything
    seq       INTEGER NOT NULL,
    losses    INTEGER NOT NULL,
    holder    BLOB    NOT NULL,
    until     INTEGER,          -- end of its lease
    made      INTEGER NOT NULL,
    moved     INTEGER,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

-- Ids and idempotency keys that were accepted within the window, and what they stand for.
CREATE TABLE pawl_seen (
    namespace INTEGER NOT NULL,
    topic     INTEGER NOT NULL,
    key       INTEGER NOT NULL, -- an idempotency key, not an id
    name      TEXT    NOT NULL,
    event     TEXT    NOT NULL, -- its id
    seq       INTEGER NOT NULL,
    expires   INTEGER NOT NULL,
    PRIMARY KEY (namespace, topic, key, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_seen_expires ON pawl_seen (namespace, expires);
