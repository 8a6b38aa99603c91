-- The event log.
--
-- A position is a number of the sequence. A transaction that appends first takes a number
-- and a shared advisory lock on it, its mark, and numbers its events then: what is below
-- the lowest mark has committed or never will. The sequence is of the whole schema and
-- must not cache numbers; marks tell namespaces apart (namespace.mark).

CREATE SEQUENCE pawl.event_seq CACHE 1;

ALTER TABLE pawl.namespace ADD COLUMN mark int NOT NULL DEFAULT (random() * 2147483646)::int;

-- Which life of the log this is. A server that is not the one that wrote it (a restored
-- backup, a standby that was promoted) begins another.
CREATE TABLE pawl.epoch (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    epoch    int    NOT NULL,
    timeline bigint NOT NULL,
    system   bigint NOT NULL, -- identifier of the cluster
    database oid    NOT NULL
);

-- Names of topics are small numbers in the log. They are made outside of users'
-- transactions, so that none waits for another to have its number.
CREATE TABLE pawl.topic (
    namespace int  NOT NULL,
    id        int  GENERATED ALWAYS AS IDENTITY,
    name      text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, name)
);
CREATE UNIQUE INDEX topic_id ON pawl.topic (namespace, id) WHERE id > 0;

CREATE TABLE pawl.event (
    namespace    int         NOT NULL,
    topic        int         NOT NULL,
    stripe       smallint    NOT NULL, -- of topic and key: stream.Stripe
    schema       int         NOT NULL DEFAULT 0,
    seq          bigint      NOT NULL,
    appended     timestamptz NOT NULL,
    time         timestamptz NOT NULL,
    expires      timestamptz,
    id           text        COLLATE "C" NOT NULL,
    key          text        COLLATE "C" NOT NULL DEFAULT '',
    type         text        NOT NULL DEFAULT '',
    source       text        NOT NULL DEFAULT '',
    content_type text        NOT NULL DEFAULT '',
    rest         bytea,                -- headers, correlation, causation, trace: stream.Rest
    data         bytea,
    PRIMARY KEY (namespace, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX event_topic ON pawl.event (namespace, topic, seq, stripe) WHERE topic > 0;

-- What a process appended last: a commit whose answer was lost is found by it, and is not
-- done again. The number is in the key, so that old versions of the row are not met.
CREATE TABLE pawl.event_writer (
    namespace int         NOT NULL,
    number    bigint      NOT NULL,
    writer    uuid        NOT NULL,
    expires   timestamptz NOT NULL,
    PRIMARY KEY (namespace, writer, number)
);
CREATE INDEX event_writer_expires ON pawl.event_writer (namespace, expires) WHERE expires > '-infinity';

-- Named readers, and how far they have come. Every change raises the turn, which fences
-- them; it is in the key, so that old versions of the row are not met by whoever knows it.
CREATE TABLE pawl.cursor (
    namespace int         NOT NULL,
    id        bigint      GENERATED ALWAYS AS IDENTITY,
    made      timestamptz NOT NULL,
    name      text        COLLATE "C" NOT NULL,
    filter    text        NOT NULL,
    PRIMARY KEY (namespace, name)
);

CREATE TABLE pawl.cursor_at (
    namespace int         NOT NULL,
    epoch     int         NOT NULL, -- 0: before everything
    cursor    bigint      NOT NULL,
    turn      bigint      NOT NULL,
    seq       bigint      NOT NULL,
    losses    int         NOT NULL DEFAULT 0,
    holder    uuid        NOT NULL,
    until     timestamptz,          -- end of its lease
    moved     timestamptz,
    PRIMARY KEY (namespace, cursor, turn)
);

-- Ids and idempotency keys that were accepted within the window, and what they stand for.
-- Who comes second waits for the transaction of who came first.
CREATE TABLE pawl.seen (
    namespace int         NOT NULL,
    topic     int         NOT NULL,
    seq       bigint      NOT NULL,
    expires   timestamptz NOT NULL,
    call      uuid        NOT NULL, -- that put it there: an answer that was lost is not taken for a duplicate
    key       boolean     NOT NULL, -- an idempotency key, not an id
    name      text        COLLATE "C" NOT NULL,
    event     text        COLLATE "C" NOT NULL, -- its id
    PRIMARY KEY (namespace, topic, key, name)
);
CREATE INDEX seen_expires ON pawl.seen (namespace, expires) WHERE expires > '-infinity';
