-- The event log. A position is a number; there is one writer, so numbers are committed in
-- their order, and what can be read is the head. AUTOINCREMENT: else numbers of events that
-- were trimmed would come again.

CREATE TABLE pawl_topic (
    namespace INTEGER NOT NULL,
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    versioned INTEGER NOT NULL DEFAULT 0, -- once it is, it stays so
    name      TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX pawl_topic_name ON pawl_topic (namespace, name);

-- The version of the last event of each key, on versioned topics.
CREATE TABLE pawl_key_version (
    namespace INTEGER NOT NULL,
    topic     INTEGER NOT NULL,
    key       TEXT    NOT NULL,
    version   INTEGER NOT NULL,
    PRIMARY KEY (namespace, topic, key)
) STRICT, WITHOUT ROWID;

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
    version      INTEGER,          -- of its key, on versioned topics
    rest         BLOB,             -- headers, correlation, causation, trace: stream.Rest
    data         BLOB
) STRICT;
CREATE INDEX pawl_event_expires ON pawl_event (namespace, expires) WHERE expires IS NOT NULL;
CREATE INDEX pawl_event_topic ON pawl_event (namespace, topic, seq, stripe);

-- What retention has removed of each topic: store.TrimState. That of topic 0 is the highest of
-- the namespace: who reads behind it need not look here.
CREATE TABLE pawl_topic_trim (
    namespace INTEGER NOT NULL,
    topic     INTEGER NOT NULL,
    low       INTEGER NOT NULL,
    lost      INTEGER NOT NULL,
    counted   INTEGER NOT NULL,
    kept      INTEGER NOT NULL,
    PRIMARY KEY (namespace, topic)
) STRICT, WITHOUT ROWID;

-- Events that are accepted and not due yet. Whoever appends one removes it in the same commit.
CREATE TABLE pawl_delayed (
    number       INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace    INTEGER NOT NULL,
    topic        INTEGER NOT NULL,
    stripe       INTEGER NOT NULL,
    schema       INTEGER NOT NULL,
    due          INTEGER NOT NULL,
    time         INTEGER,
    expires      INTEGER,
    ttl          INTEGER,          -- from its append
    id           TEXT    NOT NULL,
    key          TEXT    NOT NULL,
    type         TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    content_type TEXT    NOT NULL,
    rest         BLOB,
    data         BLOB
) STRICT;
CREATE INDEX pawl_delayed_due ON pawl_delayed (namespace, due, number);
CREATE INDEX pawl_delayed_topic ON pawl_delayed (namespace, topic);

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
    trimmed   INTEGER,          -- when it went past events that retention had removed
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

-- Ids and idempotency keys that were accepted within the window, and what they stand for.
CREATE TABLE pawl_seen (
    namespace INTEGER NOT NULL,
    topic     INTEGER NOT NULL,
    key       INTEGER NOT NULL, -- an idempotency key, not an id
    name      TEXT    NOT NULL,
    event     TEXT    NOT NULL, -- its id
    seq       INTEGER NOT NULL, -- below 0: of one that is delayed, its number
    version   INTEGER NOT NULL DEFAULT 0, -- of the event
    expires   INTEGER NOT NULL,
    PRIMARY KEY (namespace, topic, key, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_seen_expires ON pawl_seen (namespace, expires);
CREATE INDEX pawl_seen_delayed ON pawl_seen (namespace, seq) WHERE seq < 0;

-- Groups of consumers. What may be news for another member raises the version.
CREATE TABLE pawl_consumer_group (
    namespace INTEGER NOT NULL,
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT    NOT NULL,
    filter    TEXT    NOT NULL,
    mode      INTEGER NOT NULL, -- stream.Mode
    version   INTEGER NOT NULL,
    paused    INTEGER NOT NULL,
    made      INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX pawl_consumer_group_name ON pawl_consumer_group (namespace, name);

-- How far the log was read for those who share it: a competing group has one, in fan-out
-- each member has one, in ordered mode stripes say it.
CREATE TABLE pawl_shelf (
    namespace      INTEGER NOT NULL,
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer_group INTEGER NOT NULL,
    member         TEXT    NOT NULL, -- in fan-out: whose it is
    upto           INTEGER NOT NULL,
    expires        INTEGER           -- in fan-out: its member was lost, and may come back until then
) STRICT;
CREATE UNIQUE INDEX pawl_shelf_member ON pawl_shelf (namespace, consumer_group, member);
CREATE INDEX pawl_shelf_expires ON pawl_shelf (namespace, expires) WHERE expires IS NOT NULL;

-- Members, and what they work on. The turn fences: who does not know it has lost its hand.
CREATE TABLE pawl_hand (
    namespace      INTEGER NOT NULL,
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    consumer_group INTEGER NOT NULL,
    shelf          INTEGER NOT NULL,
    worker         INTEGER NOT NULL, -- whose lease it has
    turn           INTEGER NOT NULL,
    upto           INTEGER NOT NULL, -- in ordered mode: how far its stripes were read ...
    behind         BLOB,             -- ... but for these: numbers of stripes and where they are
    open           BLOB,             -- numbers of events that have no row in pawl_retry
    joined         INTEGER NOT NULL,
    turned         INTEGER NOT NULL,
    member         TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX pawl_hand_member ON pawl_hand (namespace, consumer_group, member);
CREATE INDEX pawl_hand_worker ON pawl_hand (namespace, worker);

-- Deliveries that were given back, failed or were lost, until they are done.
CREATE TABLE pawl_retry (
    namespace      INTEGER NOT NULL,
    shelf          INTEGER NOT NULL,
    seq            INTEGER NOT NULL,
    consumer_group INTEGER NOT NULL,
    stripe         INTEGER NOT NULL,
    hand           INTEGER NOT NULL, -- that works on it; 0: it waits; -1: it is parked
    wants          INTEGER NOT NULL, -- of a suspect that waits: the hand that takes nothing else before it
    alone          INTEGER NOT NULL, -- it was given alone, and not kept since
    failures       INTEGER NOT NULL,
    losses         INTEGER NOT NULL,
    due            INTEGER NOT NULL, -- of a parked one: since when
    reason         TEXT    NOT NULL,
    PRIMARY KEY (namespace, shelf, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_retry_due ON pawl_retry (namespace, shelf, due, seq) WHERE hand = 0;
CREATE INDEX pawl_retry_line ON pawl_retry (namespace, shelf, seq) WHERE hand = 0;
CREATE INDEX pawl_retry_hand ON pawl_retry (namespace, hand) WHERE hand > 0;
CREATE INDEX pawl_retry_parked ON pawl_retry (namespace, consumer_group, due, seq) WHERE hand = -1;

-- In ordered mode: who reads a stripe. Where it is, is written when nobody does.
CREATE TABLE pawl_stripe (
    namespace      INTEGER NOT NULL,
    consumer_group INTEGER NOT NULL,
    stripe         INTEGER NOT NULL,
    hand           INTEGER NOT NULL, -- 0: nobody
    at             INTEGER NOT NULL,
    PRIMARY KEY (namespace, consumer_group, stripe)
) STRICT, WITHOUT ROWID;

-- Deliveries that were acknowledged in users' transactions, until their member has heard of it.
CREATE TABLE pawl_acked (
    namespace INTEGER NOT NULL,
    hand      INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    PRIMARY KEY (namespace, hand, seq)
) STRICT, WITHOUT ROWID;
