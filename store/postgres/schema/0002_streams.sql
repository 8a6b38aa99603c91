-- The event log.
--
-- A position is a number of the sequence. A transaction that appends first takes a number
-- and a shared advisory lock on it, its mark, and numbers its events then: what is below
-- the lowest mark has committed or never will. The sequence is of the whole schema and
-- must not cache numbers; marks tell namespaces apart (namespace.mark).

CREATE SEQUENCE pawl.event_seq CACHE 1;

ALTER TABLE pawl.namespace ADD COLUMN mark int NOT NULL DEFAULT (random() * 2147483646)::int;

-- Counts changes of what processes remember of topics: another number means: read them again.
ALTER TABLE pawl.namespace ADD COLUMN topic_changes int NOT NULL DEFAULT 0;

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
    versioned boolean NOT NULL DEFAULT false, -- once it is, it stays so
    name      text COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, name)
);
CREATE UNIQUE INDEX topic_id ON pawl.topic (namespace, id) WHERE id > 0;

-- The version of the last event of each key, on versioned topics. Who appends locks it, after
-- everything else.
CREATE TABLE pawl.key_version (
    namespace int    NOT NULL,
    topic     int    NOT NULL,
    version   bigint NOT NULL, -- 0: none yet
    key       text   COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, topic, key)
) WITH (fillfactor = 70);

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
    version      bigint,               -- of its key, on versioned topics
    rest         bytea,                -- headers, correlation, causation, trace: stream.Rest
    data         bytea,
    PRIMARY KEY (namespace, seq)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX event_expires ON pawl.event (namespace, expires) WHERE expires > '-infinity';
CREATE INDEX event_topic ON pawl.event (namespace, topic, seq, stripe) WHERE topic > 0;

-- What retention has removed of each topic: store.TrimState. That of topic 0 is the highest of
-- the namespace: who reads behind it need not look here.
CREATE TABLE pawl.topic_trim (
    namespace int    NOT NULL,
    topic     int    NOT NULL,
    low       bigint NOT NULL DEFAULT 0,
    lost      bigint NOT NULL DEFAULT 0,
    counted   bigint NOT NULL DEFAULT 0,
    kept      bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (namespace, topic)
) WITH (fillfactor = 50);

-- Events that are accepted and not due yet. Whoever appends one removes it in the same commit.
CREATE TABLE pawl.delayed (
    namespace    int         NOT NULL,
    topic        int         NOT NULL,
    stripe       smallint    NOT NULL,
    schema       int         NOT NULL,
    number       bigint      GENERATED ALWAYS AS IDENTITY,
    due          timestamptz NOT NULL,
    time         timestamptz,
    expires      timestamptz,
    ttl          bigint,                -- microseconds, from its append
    id           text        COLLATE "C" NOT NULL,
    key          text        COLLATE "C" NOT NULL,
    type         text        NOT NULL,
    source       text        NOT NULL,
    content_type text        NOT NULL,
    rest         bytea,
    data         bytea,
    PRIMARY KEY (namespace, due, number)
);
CREATE INDEX delayed_topic ON pawl.delayed (namespace, topic) WHERE topic > 0;

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
    trimmed   timestamptz,          -- when it went past events that retention had removed
    PRIMARY KEY (namespace, cursor, turn)
);

-- Ids and idempotency keys that were accepted within the window, and what they stand for.
-- Who comes second waits for the transaction of who came first.
CREATE TABLE pawl.seen (
    namespace int         NOT NULL,
    topic     int         NOT NULL,
    seq       bigint      NOT NULL, -- below 0: of one that is delayed, its number
    expires   timestamptz NOT NULL,
    call      uuid        NOT NULL, -- that put it there: an answer that was lost is not taken for a duplicate
    key       boolean     NOT NULL, -- an idempotency key, not an id
    version   bigint      NOT NULL DEFAULT 0, -- of the event
    name      text        COLLATE "C" NOT NULL,
    event     text        COLLATE "C" NOT NULL, -- its id
    PRIMARY KEY (namespace, topic, key, name)
);
CREATE INDEX seen_expires ON pawl.seen (namespace, expires) WHERE expires > '-infinity';
CREATE INDEX seen_delayed ON pawl.seen (namespace, seq) WHERE seq < 0;

-- Lost in a crash of the server, and so is what processes remember of the head: an
-- unflushed sequence may have gone back.
CREATE UNLOGGED TABLE pawl.log_life (
    one  boolean PRIMARY KEY DEFAULT true CHECK (one),
    life uuid    NOT NULL
);

-- Groups of consumers. What may be news for another member raises the version.
CREATE TABLE pawl.consumer_group (
    namespace int         NOT NULL,
    mode      smallint    NOT NULL, -- stream.Mode
    paused    boolean     NOT NULL DEFAULT false,
    id        bigint      GENERATED ALWAYS AS IDENTITY,
    version   bigint      NOT NULL DEFAULT 0,
    made      timestamptz NOT NULL,
    name      text        COLLATE "C" NOT NULL,
    filter    text        NOT NULL,
    PRIMARY KEY (namespace, id)
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX consumer_group_name ON pawl.consumer_group (namespace, name);

-- How far the log was read for those who share it: a competing group has one, in fan-out
-- each member has one, in ordered mode stripes say it. The turn is in the key, so that old
-- versions of the row are not met.
CREATE TABLE pawl.shelf (
    namespace      int         NOT NULL,
    id             bigint      GENERATED ALWAYS AS IDENTITY,
    consumer_group bigint      NOT NULL,
    expires        timestamptz,         -- in fan-out: its member was lost, and may come back until then
    member         text        COLLATE "C" NOT NULL, -- in fan-out: whose it is
    PRIMARY KEY (namespace, id)
);
CREATE UNIQUE INDEX shelf_member ON pawl.shelf (namespace, consumer_group, member);
CREATE INDEX shelf_expires ON pawl.shelf (namespace, expires) WHERE expires IS NOT NULL;

CREATE TABLE pawl.shelf_at (
    namespace int    NOT NULL,
    shelf     bigint NOT NULL,
    turn      bigint NOT NULL,
    upto      bigint NOT NULL,
    PRIMARY KEY (namespace, shelf, turn)
);

-- Members. A user's transaction that acknowledges holds the row, so no turn changes it.
CREATE TABLE pawl.hand (
    namespace      int         NOT NULL,
    id             bigint      GENERATED ALWAYS AS IDENTITY,
    consumer_group bigint      NOT NULL,
    shelf          bigint      NOT NULL,
    worker         bigint      NOT NULL, -- whose lease it has
    joined         timestamptz NOT NULL,
    member         text        COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, id)
);
CREATE UNIQUE INDEX hand_member ON pawl.hand (namespace, consumer_group, member);
CREATE INDEX hand_worker ON pawl.hand (namespace, worker);

-- What members work on. The turn fences: who does not know it has lost its hand.
CREATE TABLE pawl.hand_at (
    namespace int         NOT NULL,
    hand      bigint      NOT NULL,
    turn      bigint      NOT NULL,
    upto      bigint      NOT NULL DEFAULT 0, -- in ordered mode: how far its stripes were read ...
    turned    timestamptz NOT NULL,
    behind    smallint[],                     -- ... but for these stripes, which are at
    behind_at bigint[],
    open      bigint[]    NOT NULL DEFAULT '{}', -- numbers of events that have no row in retry
    PRIMARY KEY (namespace, hand, turn)
) WITH (toast_tuple_target = 8160); -- each turn writes open anew: it is not worth compressing

-- Deliveries that were given back, failed or were lost, until they are done.
CREATE TABLE pawl.retry (
    namespace      int         NOT NULL,
    stripe         smallint    NOT NULL,
    alone          boolean     NOT NULL DEFAULT false, -- it was given alone, and not kept since
    shelf          bigint      NOT NULL,
    seq            bigint      NOT NULL,
    consumer_group bigint      NOT NULL,
    hand           bigint      NOT NULL,           -- that works on it; 0: it waits; -1: it is parked
    wants          bigint      NOT NULL DEFAULT 0, -- of a suspect that waits: the hand that takes nothing else before it
    due            timestamptz NOT NULL,           -- of a parked one: since when
    failures       int         NOT NULL,
    losses         int         NOT NULL,
    reason         text        NOT NULL DEFAULT '',
    PRIMARY KEY (namespace, shelf, seq)
);
CREATE INDEX retry_due ON pawl.retry (namespace, shelf, due, seq) WHERE hand = 0;
CREATE INDEX retry_suspect ON pawl.retry (namespace, shelf, due) WHERE hand = 0 AND losses >= 2;
CREATE INDEX retry_line ON pawl.retry (namespace, shelf, seq) WHERE hand = 0;
CREATE INDEX retry_hand ON pawl.retry (namespace, hand) WHERE hand > 0;
CREATE INDEX retry_parked ON pawl.retry (namespace, consumer_group, due, seq) WHERE hand = -1;

-- In ordered mode: who reads a stripe. Where it is, is written when nobody does.
CREATE TABLE pawl.stripe (
    namespace      int      NOT NULL,
    stripe         smallint NOT NULL,
    consumer_group bigint   NOT NULL,
    hand           bigint   NOT NULL DEFAULT 0, -- 0: nobody
    at             bigint   NOT NULL,
    PRIMARY KEY (namespace, consumer_group, stripe)
);

-- Deliveries that were acknowledged in users' transactions, until their member has heard of it.
CREATE TABLE pawl.acked (
    namespace int    NOT NULL,
    hand      bigint NOT NULL,
    seq       bigint NOT NULL,
    PRIMARY KEY (namespace, hand, seq)
);
