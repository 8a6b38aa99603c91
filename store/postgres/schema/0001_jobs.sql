-- Jobs, their archive, the workers that hold them, and what operators did.
--
-- "pawl." is replaced by the schema's name. Every key starts with the namespace.
-- NULL is "none". Durations are microseconds. Wide and rare columns come last.
-- Text in an index is compared by its bytes: an order that the server's locale
-- decides changes with the next system library, and the index is broken then.
--
-- Every index beside a primary key is partial, also where its condition is true
-- of all rows: to a planner without statistics all indexes that start with the
-- namespace look alike, and it would look ids up in the wrong one. A statement
-- reaches such an index only by repeating its condition.

CREATE TABLE pawl.namespace (
    id       int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name     text   COLLATE "C" NOT NULL UNIQUE,
    registry bigint NOT NULL DEFAULT 1, -- version of the workers that share totals; no version comes twice, and none is 0
    revision bigint NOT NULL DEFAULT 1  -- of what is declared and set; none comes twice, and none is 0
);

-- Live jobs only. Rows are written three times in their life (enqueue, claim,
-- finish) and are gone then, so vacuum has to come often and must not truncate:
-- that would lock the table against everyone.
CREATE TABLE pawl.job (
    namespace      int         NOT NULL,
    priority       smallint    NOT NULL,
    state          smallint    NOT NULL,               -- job.State 1..4
    id             uuid        NOT NULL,
    due            timestamptz NOT NULL,
    created        timestamptz NOT NULL,
    run            bigint      NOT NULL DEFAULT 0,     -- never decreases
    version        int         NOT NULL DEFAULT 0,     -- of the arguments
    max_attempts   int         NOT NULL,
    used           int         NOT NULL DEFAULT 0,     -- attempts burned
    ties           int         NOT NULL DEFAULT 0,     -- job.Ties: what it has beside this row
    begun          boolean     NOT NULL DEFAULT false, -- its handler has begun
    cancel         boolean     NOT NULL DEFAULT false, -- asked to cancel while running
    queue          text        COLLATE "C" NOT NULL,
    kind           text        NOT NULL,
    args           bytea,
    worker         bigint,                             -- while running
    claim          bigint,                             -- the worker's number of the claim that took it
    started        timestamptz,
    lost           int         NOT NULL DEFAULT 0,
    rescues        int         NOT NULL DEFAULT 0,
    snoozes        int         NOT NULL DEFAULT 0,
    throttles      int         NOT NULL DEFAULT 0,
    deferred       int         NOT NULL DEFAULT 0,     -- as a suspect that could not run alone
    gate           bigint,                             -- behind which it waits, or came through: job.GateRules
    passed         timestamptz,                        -- when it last came through a gate
    node           int,                                -- of its flow
    timeout        bigint,
    deadline       timestamptz,
    snoozed        timestamptz,                        -- last
    throttled      timestamptz,                        -- last
    key            text,
    budget         text,
    flow           uuid,
    unique_hash    bytea,
    unique_period  bigint,
    capabilities   text[],
    tags           text[],
    wait           smallint,                           -- job.Wait, while suspended
    reason         text,
    progress_done  bigint,
    progress_total bigint,
    progress_note  text,
    headers        bytea,
    failures       bytea,                              -- as job.AppendFailure
    PRIMARY KEY (namespace, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.2, autovacuum_analyze_threshold = 5000, vacuum_truncate = false
);

-- Claims seek here by queue and priority, in the order in which they take. No two
-- entries are alike, so looking for such before a page is split is in vain.
CREATE INDEX job_ready ON pawl.job (namespace, queue, priority, due, id)
    WITH (deduplicate_items = off) WHERE state = 2 AND gate IS NULL;
-- What a limit bounds waits behind a gate, where only claims meet it that know the
-- limit; what came through is counted in the second index, by when it did, so that a
-- count passes what has ended and a held snapshot still sees.
CREATE INDEX job_gated ON pawl.job (namespace, queue, gate, priority, due, id)
    WITH (deduplicate_items = off) WHERE state = 2 AND gate IS NOT NULL;
CREATE INDEX job_gate_held ON pawl.job (namespace, gate, passed) WHERE state = 3 AND gate IS NOT NULL;
-- What is remembered of a gate between claims: of an ordered one the job that has to
-- end before the next begins, of one with a rate its tokens. Most gates have no row.
CREATE TABLE pawl.gate (
    namespace int    NOT NULL,
    gate      bigint NOT NULL,
    head      uuid,
    level     float8,
    filled    bigint, -- microseconds of the store's clock
    expires   timestamptz NOT NULL, -- when all its tokens are there
    PRIMARY KEY (namespace, gate)
) WITH (fillfactor = 50);

-- What a worker holds: rescue, hold, repeated claims.
CREATE INDEX job_held ON pawl.job (namespace, worker, claim) WHERE state = 3;
-- The rest is rare, and empty most of the time.
CREATE INDEX job_cancel ON pawl.job (namespace, worker) WHERE cancel;
CREATE INDEX job_deadline ON pawl.job (namespace, deadline) WHERE deadline IS NOT NULL AND state <> 3;
CREATE INDEX job_idle ON pawl.job (namespace, state, id) WHERE state IN (1, 4);

-- Final jobs. Few indexes: six cost three times the insert.
CREATE TABLE pawl.job_archive (
    namespace      int         NOT NULL,
    priority       smallint    NOT NULL,
    state          smallint    NOT NULL,               -- job.State 5..8
    id             uuid        NOT NULL,
    due            timestamptz NOT NULL,
    created        timestamptz NOT NULL,
    finished       timestamptz NOT NULL,
    expires        timestamptz NOT NULL,               -- fixed when it ended
    run            bigint      NOT NULL,
    version        int         NOT NULL,
    max_attempts   int         NOT NULL,
    used           int         NOT NULL,
    ties           int         NOT NULL DEFAULT 0,
    queue          text        COLLATE "C" NOT NULL,
    kind           text        NOT NULL,
    args           bytea,
    worker         bigint,                             -- who ran it, when it ended in a run
    started        timestamptz,
    lost           int         NOT NULL,
    rescues        int         NOT NULL,
    snoozes        int         NOT NULL,
    throttles      int         NOT NULL DEFAULT 0,
    gate           bigint,
    node           int,
    timeout        bigint,
    deadline       timestamptz,
    snoozed        timestamptz,
    throttled      timestamptz,
    key            text,
    budget         text,
    flow           uuid,
    unique_hash    bytea,
    unique_period  bigint,
    capabilities   text[],
    tags           text[],
    reason         text,
    progress_done  bigint,
    progress_total bigint,
    progress_note  text,
    headers        bytea,
    failures       bytea,
    result         bytea,
    PRIMARY KEY (namespace, id)
) WITH (vacuum_truncate = false);

-- Lists and counts by state; the newest id first, which is how lists page.
CREATE INDEX job_archive_state ON pawl.job_archive (namespace, state, queue, id) WITH (deduplicate_items = off) WHERE state >= 5;
-- Lists by finish, of what is rare: the end of a job that is done has no entry here.
CREATE INDEX job_archive_finished ON pawl.job_archive (namespace, state, finished, id) WHERE state IN (6, 7);
CREATE INDEX job_archive_expires ON pawl.job_archive (namespace, expires) WHERE state >= 5;

-- One job per hash: while it is live (until IS NULL), or until a time.
CREATE TABLE pawl.job_unique (
    namespace int   NOT NULL,
    hash      bytea NOT NULL,
    job       uuid  NOT NULL,
    until     timestamptz,
    PRIMARY KEY (namespace, hash)
);
CREATE INDEX job_unique_until ON pawl.job_unique (namespace, until) WHERE until IS NOT NULL;

-- Ids of jobs that were not kept: they still stop a resend for a while. Run and
-- worker let a finish whose answer was lost find out that it had happened.
CREATE TABLE pawl.tombstone (
    namespace int         NOT NULL,
    id        uuid        NOT NULL,
    expires   timestamptz NOT NULL,
    run       bigint,
    worker    bigint,
    PRIMARY KEY (namespace, id)
);
CREATE INDEX tombstone_expires ON pawl.tombstone (namespace, expires) WHERE expires > '-infinity';

CREATE TABLE pawl.job_log (
    namespace int         NOT NULL,
    job       uuid        NOT NULL,
    line      bigint      GENERATED ALWAYS AS IDENTITY, -- ascends within a job
    time      timestamptz NOT NULL,
    run       bigint      NOT NULL,
    level     int         NOT NULL,
    text      bytea       NOT NULL, -- UTF-8; text could not hold a zero byte
    PRIMARY KEY (namespace, job, line)
);

-- One row per boot of a process. Leases are its heartbeat, not a time per job. Beats are not
-- written here but in worker_beat: while a snapshot is held every version of a row stays, and
-- claims read this one.
CREATE TABLE pawl.worker (
    namespace  int         NOT NULL,
    id         bigint      NOT NULL,               -- no sequence, see newWorker
    label      text        NOT NULL,
    host       text        NOT NULL,
    process    int         NOT NULL,
    machine    text        COLLATE "C" NOT NULL,   -- and start: see internal/boot
    start      text        NOT NULL,
    owner      text        COLLATE "C" NOT NULL DEFAULT '', -- whose code it runs, and which; empty for one that declares nothing
    version    text        COLLATE "C" NOT NULL DEFAULT '',
    remote     boolean     NOT NULL DEFAULT false, -- no process of ours: it does no upkeep
    queues     text[]      NOT NULL,
    slots      int[],                              -- of each of them; NULL means unknown
    totals     jsonb,                              -- []store.Total; NULL means none
    split      bigint      NOT NULL DEFAULT 0,     -- version of the registry by which it splits them; 0: it does not share yet
    offer      bytea       NOT NULL,               -- job.Offer as JSON
    lost_after bigint      NOT NULL,               -- microseconds without a beat
    started    timestamptz NOT NULL,
    beat       timestamptz NOT NULL,               -- the last one, once it is lost; while it lives, see worker_beat
    lost       timestamptz,                        -- since when; it never lives again
    gone       boolean     NOT NULL DEFAULT false, -- left the registry; the row stays a day, see Suspects
    drained    boolean     NOT NULL DEFAULT false, -- lost, and holds nothing any more
    PRIMARY KEY (namespace, id)
) WITH (fillfactor = 50);
-- Those that live, in their order. Numbers are above 0: the condition keeps statements that
-- look for one by its number at the primary key.
CREATE INDEX worker_live ON pawl.worker (namespace, id) WHERE lost IS NULL AND id > 0;
-- Those of a machine.
CREATE INDEX worker_machine ON pawl.worker (namespace, machine, id) WHERE lost IS NULL AND machine <> '';
-- Those that may hold runs and are no more. One that holds nothing when it leaves is never here.
CREATE INDEX worker_undrained ON pawl.worker (namespace, id) WHERE lost IS NOT NULL AND NOT drained;
-- Those that are lost or left, for the look that asks whether some can go.
CREATE INDEX worker_lost ON pawl.worker (namespace, gone, lost) WHERE lost IS NOT NULL AND id > 0;

-- Whether a version has a live worker. No statement reaches it that only asks whether a
-- worker lives.
CREATE INDEX worker_version ON pawl.worker (namespace, owner, version) WHERE lost IS NULL AND owner <> '';

-- When each live worker has beaten, one row for each. The time is in the key: the last entry of
-- a worker is the one that counts, so nobody visits what earlier beats have left, however long
-- a snapshot keeps it. Who is lost or leaves has none any more, and cannot beat.
CREATE TABLE pawl.worker_beat (
    namespace int         NOT NULL,
    worker    bigint      NOT NULL,
    at        timestamptz NOT NULL,
    PRIMARY KEY (namespace, worker, at)
) WITH (vacuum_truncate = false);

-- The run for which a worker empties itself, one in a namespace: a suspect runs
-- alone. It has no end of its own: it holds while that run does.
CREATE TABLE pawl.alone (
    namespace int    NOT NULL PRIMARY KEY,
    job       uuid   NOT NULL,
    run       bigint NOT NULL
);

-- The versions of code that have, or had, a worker. Live are those without an end.
CREATE TABLE pawl.code_version (
    namespace int         NOT NULL,
    owner     text        COLLATE "C" NOT NULL,
    version   text        COLLATE "C" NOT NULL,
    seen      timestamptz NOT NULL, -- anew when it comes back after it had no live worker
    ended     timestamptz,          -- when its last live worker left or was lost
    PRIMARY KEY (namespace, owner, version)
);
CREATE INDEX code_version_live ON pawl.code_version (namespace, owner, version) WHERE ended IS NULL;
CREATE INDEX code_version_ended ON pawl.code_version (namespace, ended) WHERE ended IS NOT NULL;

-- What they declare. It goes with the last worker of its version.
CREATE TABLE pawl.declaration (
    namespace int         NOT NULL,
    kind      text        COLLATE "C" NOT NULL, -- store.SettingKind
    name      text        COLLATE "C" NOT NULL,
    owner     text        COLLATE "C" NOT NULL,
    version   text        COLLATE "C" NOT NULL,
    value     bytea       NOT NULL,             -- a JSON object
    since     timestamptz NOT NULL,             -- when the owner began to hold the name
    PRIMARY KEY (namespace, owner, kind, name, version)
);

-- What operators have set for a name: the fields that stand over what is declared.
CREATE TABLE pawl.override (
    namespace int         NOT NULL,
    kind      text        COLLATE "C" NOT NULL,
    name      text        COLLATE "C" NOT NULL,
    value     bytea       NOT NULL,
    by        text        NOT NULL,
    note      text        NOT NULL,
    since     timestamptz NOT NULL,
    PRIMARY KEY (namespace, kind, name)
);

-- What is paused: a queue, a kind, or everything.
CREATE TABLE pawl.pause (
    namespace int         NOT NULL,
    scope     smallint    NOT NULL,             -- job.PauseScope
    name      text        COLLATE "C" NOT NULL, -- empty for everything
    since     timestamptz NOT NULL,
    by        text        NOT NULL,
    note      text        NOT NULL,
    PRIMARY KEY (namespace, scope, name)
);

-- Queues that cool down because a handler was throttled, and what is remembered of
-- those that are over: the counter.
CREATE TABLE pawl.cool_down (
    namespace int         NOT NULL,
    queue     text        COLLATE "C" NOT NULL,
    since     timestamptz NOT NULL,
    until     timestamptz NOT NULL,
    throttles int         NOT NULL,
    PRIMARY KEY (namespace, queue)
);
CREATE INDEX cool_down_until ON pawl.cool_down (namespace, until);

-- What a transaction of the user's own added: its commit may come late, and the
-- looks of other processes find out here. Rows go by their transaction's number,
-- so that a look reads only what it could not see before (hint.go).
CREATE TABLE pawl.hint (
    namespace   int         NOT NULL,
    transaction xid8        NOT NULL,
    priority    smallint    NOT NULL,
    due         timestamptz NOT NULL,
    queue       text        NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false
);
CREATE INDEX hint_transaction ON pawl.hint (namespace, transaction);

-- What transactions of users want done to rows that others need, too: they only
-- insert here. Rows are applied in the order of their transaction and number, and
-- removed by the transaction that applied them. A kind that nobody knows stays.
CREATE TABLE pawl.intent (
    namespace   int         NOT NULL,
    kind        smallint    NOT NULL,           -- store.IntentKind
    failures    int         NOT NULL DEFAULT 0,
    transaction xid8        NOT NULL,
    number      bigint      GENERATED ALWAYS AS IDENTITY,
    created     timestamptz NOT NULL,
    due         timestamptz,                    -- put off until then
    id          uuid        NOT NULL,
    subject     text        COLLATE "C" NOT NULL,
    payload     bytea,
    error       text,                           -- of the last failure
    PRIMARY KEY (namespace, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0, vacuum_truncate = false
);
CREATE INDEX intent_fresh ON pawl.intent (namespace, kind, transaction, number) WHERE due IS NULL;
CREATE INDEX intent_due ON pawl.intent (namespace, kind, due) WHERE due IS NOT NULL;
CREATE INDEX intent_subject ON pawl.intent (namespace, kind, subject, transaction, number) WHERE kind > 0;

-- How far schedules have come. What they are is declared and set like all else.
CREATE TABLE pawl.schedule (
    namespace int         NOT NULL,
    revision  bigint      NOT NULL,             -- of what is declared and set, by which it was moved last
    anchor    timestamptz NOT NULL,             -- since when it has cron and zone
    next      timestamptz,                      -- when it is due; NULL while paused
    last      timestamptz,                      -- the newest due time that was dealt with
    fires     bigint      NOT NULL DEFAULT 0,
    skips     bigint      NOT NULL DEFAULT 0,
    expires   timestamptz NOT NULL,             -- unless it is moved on before
    last_job  uuid,
    name      text        COLLATE "C" NOT NULL,
    cron      text        COLLATE "C" NOT NULL,
    zone      text        COLLATE "C" NOT NULL,
    PRIMARY KEY (namespace, name)
) WITH (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000
);
CREATE INDEX schedule_expires ON pawl.schedule (namespace, expires) WHERE expires > '-infinity';

-- Tokens of rates (job.Bucket, which says what the columns mean). Times of the bucket's own are in µs. The last three
-- columns are the last answer: an upsert returns what is stored, and nothing else.
CREATE TABLE pawl.bucket (
    namespace int         NOT NULL,
    name      text        COLLATE "C" NOT NULL, -- of the limit
    key       text        COLLATE "C" NOT NULL, -- of jobs, where it is per key
    level     bigint      NOT NULL,
    at        timestamptz NOT NULL,
    tick      bigint      NOT NULL,
    held      bigint      NOT NULL,
    before    bigint      NOT NULL,
    drained   bigint      NOT NULL,
    until     bigint      NOT NULL,
    turn      bigint      NOT NULL,
    rate      bigint      NOT NULL,
    burst     bigint      NOT NULL,
    revision  bigint      NOT NULL,
    expires   timestamptz NOT NULL,             -- it is full by then
    ready     bigint      NOT NULL,
    size      bigint      NOT NULL,
    wait      bigint      NOT NULL,
    PRIMARY KEY (namespace, name, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX bucket_expires ON pawl.bucket (namespace, expires);

-- What processes measure: rows of one process and minute, of all processes and a
-- minute, and of all processes and an hour. A row is rolled up into the next width, in
-- one transaction, so that each thing is counted in one row.
CREATE TABLE pawl.metric (
    namespace int         NOT NULL,
    class     smallint    NOT NULL,             -- metric.Class
    width     smallint    NOT NULL,             -- store.MetricWidth
    flush     bigint      NOT NULL,             -- and source: whose part it is; zero for what is merged
    start     timestamptz NOT NULL,
    roll      timestamptz,                      -- when it is rolled up; NULL for hours
    expires   timestamptz NOT NULL,
    source    uuid        NOT NULL,
    name      text        COLLATE "C" NOT NULL, -- of a queue, a fingerprint, a worker
    kind      text        COLLATE "C" NOT NULL,
    data      bytea       NOT NULL,             -- metric.Value
    PRIMARY KEY (namespace, class, width, start, name, kind, source, flush)
);
-- What one queue, fingerprint or worker came to, and what one kind did, without reading the others of that time.
CREATE INDEX metric_name ON pawl.metric (namespace, class, width, name, start) WHERE name >= '';
CREATE INDEX metric_kind ON pawl.metric (namespace, class, width, kind, start) WHERE kind >= '';
CREATE INDEX metric_roll ON pawl.metric (namespace, roll, class, width, name, kind, start) WHERE roll IS NOT NULL;
CREATE INDEX metric_expires ON pawl.metric (namespace, expires) WHERE expires > '-infinity';

-- The last flush of each process that was kept, so that none is kept twice.
CREATE TABLE pawl.metric_flush (
    namespace int         NOT NULL,
    source    uuid        NOT NULL,
    number    bigint      NOT NULL,
    expires   timestamptz NOT NULL,
    PRIMARY KEY (namespace, source)
);
CREATE INDEX metric_flush_expires ON pawl.metric_flush (namespace, expires) WHERE expires > '-infinity';

-- Operator actions, written in the transaction of the change.
CREATE TABLE pawl.audit (
    namespace int         NOT NULL,
    id        bigint      GENERATED ALWAYS AS IDENTITY,
    time      timestamptz NOT NULL,
    expires   timestamptz NOT NULL,
    by        text        NOT NULL,
    action    text        NOT NULL,
    target    text        COLLATE "C" NOT NULL,
    note      text        NOT NULL,
    detail    text        NOT NULL, -- what changed
    PRIMARY KEY (namespace, time, id)
);
-- They are listed by time, or by target and time; the id tells those of one moment apart.
CREATE INDEX audit_target ON pawl.audit (namespace, target, time, id);
CREATE INDEX audit_expires ON pawl.audit (namespace, expires) WHERE expires > '-infinity';

-- What operators do to the many jobs that a filter matches, page by page: it goes on
-- in whichever process has the time, from the cursor, which moves in the transaction
-- that changes the jobs of a page.
CREATE TABLE pawl.operation (
    namespace int         NOT NULL,
    state     smallint    NOT NULL, -- store.OperationState
    pace      int         NOT NULL, -- jobs a second
    id        uuid        NOT NULL,
    next      timestamptz NOT NULL, -- when the next page may be taken
    created   timestamptz NOT NULL,
    ended     timestamptz,
    expires   timestamptz,
    pages     bigint      NOT NULL, -- done so far; fences the next one
    most      bigint      NOT NULL, -- jobs in all; 0 for as many as there are
    looked    bigint      NOT NULL, -- the sum of the five behind it
    changed   bigint      NOT NULL,
    asked     bigint      NOT NULL,
    duplicate bigint      NOT NULL,
    busy      bigint      NOT NULL,
    unchanged bigint      NOT NULL,
    failures  int         NOT NULL, -- in a row
    verb      bytea       NOT NULL, -- store.Verb as JSON
    filter    bytea       NOT NULL, -- store.Filter as JSON
    cursor    bytea       NOT NULL, -- store.Bookmark as JSON
    by        text        NOT NULL,
    note      text        NOT NULL,
    reason    text        NOT NULL, -- of the last failure, or why it ended early
    PRIMARY KEY (namespace, id)
) WITH (fillfactor = 50);
CREATE INDEX operation_open ON pawl.operation (namespace, next, id) WHERE state = 1;
CREATE INDEX operation_expires ON pawl.operation (namespace, expires) WHERE expires IS NOT NULL;
