-- Jobs, their archive, the workers that hold them, and what operators did.
--
-- Every key starts with the namespace. Times are microseconds since the epoch;
-- NULL is "none". Ids are the 16 bytes of a UUIDv7. The user's own tables may
-- live in the same file, hence the prefix.

CREATE TABLE pawl_namespace (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL UNIQUE,
    last_worker INTEGER NOT NULL DEFAULT 0, -- numbers are never used again
    registry    INTEGER NOT NULL DEFAULT 1, -- version of the workers that share totals, never 0
    revision    INTEGER NOT NULL DEFAULT 1, -- of what is declared and set, never 0; see settings
    group_news  INTEGER NOT NULL DEFAULT 0  -- how often a consumer group had news for its members
) STRICT;

-- Live jobs only. Short columns that claims and fences read come first, so that
-- a long payload (which SQLite puts on pages of its own) is not read for them.
CREATE TABLE pawl_job (
    namespace      INTEGER NOT NULL,
    id             BLOB NOT NULL,
    state          INTEGER NOT NULL,            -- job.State 1..4
    priority       INTEGER NOT NULL,
    due            INTEGER NOT NULL,
    run            INTEGER NOT NULL DEFAULT 0,  -- never decreases
    worker         INTEGER,                     -- while running
    claim          INTEGER,                     -- the worker's number of the claim that took it
    begun          INTEGER NOT NULL DEFAULT 0,  -- its handler has begun
    cancel         INTEGER NOT NULL DEFAULT 0,  -- asked to cancel while running
    ties           INTEGER NOT NULL DEFAULT 0,  -- job.Ties: what it has beside this row
    used           INTEGER NOT NULL DEFAULT 0,  -- attempts burned
    max_attempts   INTEGER NOT NULL,
    lost           INTEGER NOT NULL DEFAULT 0,
    rescues        INTEGER NOT NULL DEFAULT 0,
    snoozes        INTEGER NOT NULL DEFAULT 0,
    throttles      INTEGER NOT NULL DEFAULT 0,
    deferred       INTEGER NOT NULL DEFAULT 0,  -- as a suspect that could not run alone
    logs           INTEGER NOT NULL DEFAULT 0,  -- lines in pawl_job_log
    version        INTEGER NOT NULL DEFAULT 0,  -- of the arguments
    created        INTEGER NOT NULL,
    started        INTEGER,
    timeout        INTEGER,
    deadline       INTEGER,
    snoozed        INTEGER,                     -- last
    throttled      INTEGER,                     -- last
    gate           INTEGER,                     -- behind which it waits, or came through: job.GateRules
    queue          TEXT NOT NULL,
    kind           TEXT NOT NULL,
    "key"          TEXT,
    budget         TEXT,
    flow           BLOB,
    node           INTEGER,                     -- of its flow
    unique_hash    BLOB,
    unique_period  INTEGER,
    capabilities   TEXT,                        -- JSON array
    tags           TEXT,                        -- JSON array
    wait           INTEGER,                     -- job.Wait, while suspended
    reason         TEXT,
    progress_done  INTEGER,
    progress_total INTEGER,
    progress_note  TEXT,
    headers        BLOB,
    failures       BLOB,                        -- as job.AppendFailure
    args           BLOB,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- Claims seek here by queue and priority, in the order in which they take. Behind that are the attempts and the gate, which
-- is NULL: who counts the jobs of many queues, and those that have failed before, has no need of the table then. Both change
-- only with the state or the due time, so nothing is written more often.
CREATE INDEX pawl_job_ready ON pawl_job (namespace, queue, priority, due, id, used, gate) WHERE state = 2 AND gate IS NULL;
-- What a limit bounds waits behind a gate, where only claims meet it that know the
-- limit; what came through is counted in the second index.
CREATE INDEX pawl_job_gated ON pawl_job (namespace, queue, gate, priority, due, id, used) WHERE state = 2 AND gate IS NOT NULL;
CREATE INDEX pawl_job_gate_held ON pawl_job (namespace, gate) WHERE state = 3 AND gate IS NOT NULL;
-- What is remembered of a gate between claims: of an ordered one the job that has to
-- end before the next begins, of one with a rate its tokens. Most gates have no row.
CREATE TABLE pawl_gate (
    namespace INTEGER NOT NULL,
    gate      INTEGER NOT NULL,
    head      BLOB,
    level     REAL,
    filled    INTEGER,
    expires   INTEGER NOT NULL, -- when all its tokens are there
    PRIMARY KEY (namespace, gate)
) STRICT, WITHOUT ROWID;

-- What does not wait: what a worker holds (hold, rescue, repeated claims), and
-- what is blocked or suspended.
CREATE INDEX pawl_job_held ON pawl_job (namespace, state, worker, id) WHERE state <> 2;
-- The rest is rare, and empty most of the time. Neither names a column that a
-- claim or finish changes, so that those do not even look at them.
CREATE INDEX pawl_job_cancel ON pawl_job (namespace, id) WHERE cancel = 1;
CREATE INDEX pawl_job_deadline ON pawl_job (namespace, deadline, id) WHERE deadline IS NOT NULL;

-- Final jobs. Few indexes: six cost three times the insert.
CREATE TABLE pawl_job_archive (
    namespace      INTEGER NOT NULL,
    id             BLOB NOT NULL,
    state          INTEGER NOT NULL,            -- job.State 5..8
    worker         INTEGER,                     -- who ran it, when it ended in a run
    priority       INTEGER NOT NULL,
    due            INTEGER NOT NULL,
    run            INTEGER NOT NULL,
    ties           INTEGER NOT NULL DEFAULT 0,
    used           INTEGER NOT NULL,
    max_attempts   INTEGER NOT NULL,
    lost           INTEGER NOT NULL,
    rescues        INTEGER NOT NULL,
    snoozes        INTEGER NOT NULL,
    throttles      INTEGER NOT NULL DEFAULT 0,
    logs           INTEGER NOT NULL DEFAULT 0,
    version        INTEGER NOT NULL,
    created        INTEGER NOT NULL,
    started        INTEGER,
    finished       INTEGER NOT NULL,
    expires        INTEGER NOT NULL,            -- fixed when it ended
    timeout        INTEGER,
    deadline       INTEGER,
    snoozed        INTEGER,
    throttled      INTEGER,
    gate           INTEGER,
    queue          TEXT NOT NULL,
    kind           TEXT NOT NULL,
    "key"          TEXT,
    budget         TEXT,
    flow           BLOB,
    node           INTEGER,
    unique_hash    BLOB,
    unique_period  INTEGER,
    capabilities   TEXT,
    tags           TEXT,
    reason         TEXT,
    progress_done  INTEGER,
    progress_total INTEGER,
    progress_note  TEXT,
    headers        BLOB,
    failures       BLOB,
    args           BLOB,
    result         BLOB,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- Lists and counts by state; the newest id first, which is how lists page.
CREATE INDEX pawl_job_archive_state ON pawl_job_archive (namespace, state, queue, id);
-- Lists by finish, of what is rare: the end of a job that is done has no entry here.
CREATE INDEX pawl_job_archive_finished ON pawl_job_archive (namespace, state, finished, id) WHERE state IN (6, 7);
CREATE INDEX pawl_job_archive_expires ON pawl_job_archive (namespace, expires, id);

-- One job per hash: while it is live (until IS NULL), or until a time.
CREATE TABLE pawl_job_unique (
    namespace INTEGER NOT NULL,
    hash      BLOB NOT NULL,
    job       BLOB NOT NULL,
    until     INTEGER,
    PRIMARY KEY (namespace, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_job_unique_until ON pawl_job_unique (namespace, until) WHERE until IS NOT NULL;

-- Ids of jobs that were not kept: they still stop a resend for a while.
CREATE TABLE pawl_tombstone (
    namespace INTEGER NOT NULL,
    id        BLOB NOT NULL,
    expires   INTEGER NOT NULL,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_tombstone_expires ON pawl_tombstone (namespace, expires);

CREATE TABLE pawl_job_log (
    namespace INTEGER NOT NULL,
    job       BLOB NOT NULL,
    line      INTEGER NOT NULL, -- from 1
    time      INTEGER NOT NULL,
    run       INTEGER NOT NULL,
    level     INTEGER NOT NULL,
    text      TEXT NOT NULL,
    PRIMARY KEY (namespace, job, line)
) STRICT, WITHOUT ROWID;

-- One row per boot of a process. Leases are its heartbeat, not a time per job.
CREATE TABLE pawl_worker (
    namespace  INTEGER NOT NULL,
    id         INTEGER NOT NULL,
    label      TEXT NOT NULL,
    host       TEXT NOT NULL,
    process    INTEGER NOT NULL,
    machine    TEXT NOT NULL,              -- and start: see internal/boot
    start      TEXT NOT NULL,
    owner      TEXT NOT NULL,              -- whose code it runs, and which; empty for one that declares nothing
    version    TEXT NOT NULL,
    remote     INTEGER NOT NULL DEFAULT 0, -- no process of ours: it does no upkeep
    lock       TEXT NOT NULL,              -- the file in which it holds its byte; empty means none
    queues     TEXT NOT NULL,              -- JSON array
    slots      TEXT,                       -- of each of them, JSON array; NULL means unknown
    totals     TEXT,                       -- []store.Total as JSON; NULL means none
    split      INTEGER NOT NULL DEFAULT 0, -- version of the registry by which it splits them; 0: it does not share yet
    offer      TEXT NOT NULL,              -- job.Offer as JSON
    lost_after INTEGER NOT NULL,           -- microseconds without a beat
    started    INTEGER NOT NULL,
    beat       INTEGER NOT NULL,
    claim      INTEGER NOT NULL DEFAULT 0, -- the newest claim that took something
    lost       INTEGER,                    -- since when; it never lives again
    gone       INTEGER NOT NULL DEFAULT 0, -- deregistered, kept while jobs name it
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;

-- Those that live, in their order, and those that are lost. No beat touches them.
CREATE INDEX pawl_worker_live ON pawl_worker (namespace, id) WHERE lost IS NULL;
CREATE INDEX pawl_worker_lost ON pawl_worker (namespace, lost) WHERE lost IS NOT NULL;
-- Whether a version has a live worker. No beat touches it, and no statement reaches it
-- that only asks whether a worker lives.
CREATE INDEX pawl_worker_version ON pawl_worker (namespace, owner, version) WHERE lost IS NULL AND owner <> '';

-- The run for which a worker empties itself, one in a namespace: a suspect runs
-- alone. It has no end of its own: it holds while that run does.
CREATE TABLE pawl_alone (
    namespace INTEGER NOT NULL PRIMARY KEY,
    job       BLOB NOT NULL,
    run       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The versions of code that have, or had, a worker. Live are those without an end.
CREATE TABLE pawl_code_version (
    namespace INTEGER NOT NULL,
    owner     TEXT NOT NULL,
    version   TEXT NOT NULL,
    seen      INTEGER NOT NULL, -- anew when it comes back after it had no live worker
    ended     INTEGER,          -- when its last live worker left or was lost
    PRIMARY KEY (namespace, owner, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_code_version_live ON pawl_code_version (namespace, owner, version) WHERE ended IS NULL;
CREATE INDEX pawl_code_version_ended ON pawl_code_version (namespace, ended) WHERE ended IS NOT NULL;

-- What they declare. It goes with the last worker of its version.
CREATE TABLE pawl_declaration (
    namespace INTEGER NOT NULL,
    kind      TEXT NOT NULL,    -- store.SettingKind
    name      TEXT NOT NULL,
    owner     TEXT NOT NULL,
    version   TEXT NOT NULL,
    value     TEXT NOT NULL,    -- a JSON object
    since     INTEGER NOT NULL, -- when the owner began to hold the name
    PRIMARY KEY (namespace, owner, kind, name, version)
) STRICT, WITHOUT ROWID;

-- What operators have set for a name: the fields that stand over what is declared.
CREATE TABLE pawl_override (
    namespace INTEGER NOT NULL,
    kind      TEXT NOT NULL,
    name      TEXT NOT NULL,
    value     TEXT NOT NULL,
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    since     INTEGER NOT NULL,
    PRIMARY KEY (namespace, kind, name)
) STRICT, WITHOUT ROWID;

-- What is paused: a queue, a kind, or everything.
CREATE TABLE pawl_pause (
    namespace INTEGER NOT NULL,
    scope     INTEGER NOT NULL, -- job.PauseScope
    name      TEXT NOT NULL,    -- empty for everything
    since     INTEGER NOT NULL,
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    PRIMARY KEY (namespace, scope, name)
) STRICT, WITHOUT ROWID;

-- Queues that cool down because a handler was throttled, and what is remembered of
-- those that are over: the counter.
CREATE TABLE pawl_cool_down (
    namespace INTEGER NOT NULL,
    queue     TEXT NOT NULL,
    since     INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    throttles INTEGER NOT NULL,
    PRIMARY KEY (namespace, queue)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_cool_down_until ON pawl_cool_down (namespace, until);

-- What transactions of users want done to rows that others need, too. Rows are
-- applied in the order of their number, and removed by the transaction that applied
-- them. A kind that nobody knows stays.
CREATE TABLE pawl_intent (
    namespace INTEGER NOT NULL,
    id        BLOB NOT NULL,
    number    INTEGER NOT NULL,           -- ascends
    kind      INTEGER NOT NULL,           -- store.IntentKind
    failures  INTEGER NOT NULL DEFAULT 0,
    created   INTEGER NOT NULL,
    due       INTEGER,                    -- put off until then
    subject   TEXT NOT NULL,
    error     TEXT,                       -- of the last failure
    payload   BLOB,
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_intent_fresh ON pawl_intent (namespace, kind, number) WHERE due IS NULL;
CREATE INDEX pawl_intent_due ON pawl_intent (namespace, kind, due) WHERE due IS NOT NULL;
CREATE INDEX pawl_intent_subject ON pawl_intent (namespace, kind, subject, number);
CREATE INDEX pawl_intent_number ON pawl_intent (namespace, number);

-- How far schedules have come. What they are is declared and set like all else.
CREATE TABLE pawl_schedule (
    namespace INTEGER NOT NULL,
    name      TEXT NOT NULL,
    revision  INTEGER NOT NULL,           -- of what is declared and set, by which it was moved last
    anchor    INTEGER NOT NULL,           -- since when it has cron and zone
    next      INTEGER,                    -- when it is due; NULL while paused
    last      INTEGER,                    -- the newest due time that was dealt with
    last_job  BLOB,
    fires     INTEGER NOT NULL DEFAULT 0,
    skips     INTEGER NOT NULL DEFAULT 0,
    expires   INTEGER NOT NULL,           -- unless it is moved on before
    cron      TEXT NOT NULL,
    zone      TEXT NOT NULL,
    PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_schedule_expires ON pawl_schedule (namespace, expires);

-- Tokens of rates (job.Bucket, which says what the columns mean).
CREATE TABLE pawl_bucket (
    namespace INTEGER NOT NULL,
    name      TEXT NOT NULL,              -- of the limit
    key       TEXT NOT NULL,              -- of jobs, where it is per key
    level     INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    tick      INTEGER NOT NULL,
    held      INTEGER NOT NULL,
    before    INTEGER NOT NULL,
    drained   INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    turn      INTEGER NOT NULL,
    rate      INTEGER NOT NULL,
    burst     INTEGER NOT NULL,
    revision  INTEGER NOT NULL,
    expires   INTEGER NOT NULL,           -- it is full by then
    PRIMARY KEY (namespace, name, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_bucket_expires ON pawl_bucket (namespace, expires);

-- What processes measure: rows of one process and minute, of all processes and a
-- minute, and of all processes and an hour. A row is rolled up into the next width, in
-- one transaction, so that each thing is counted in one row.
CREATE TABLE pawl_metric (
    namespace INTEGER NOT NULL,
    class     INTEGER NOT NULL, -- metric.Class
    width     INTEGER NOT NULL, -- store.MetricWidth
    start     INTEGER NOT NULL,
    name      TEXT NOT NULL,    -- of a queue, a fingerprint, a worker
    kind      TEXT NOT NULL,
    source    BLOB NOT NULL,    -- and flush: whose part it is; zero for what is merged
    flush     INTEGER NOT NULL,
    roll      INTEGER,          -- when it is rolled up; NULL for hours
    expires   INTEGER NOT NULL,
    data      BLOB NOT NULL,    -- metric.Value
    PRIMARY KEY (namespace, class, width, start, name, kind, source, flush)
) STRICT, WITHOUT ROWID;
-- What one queue, fingerprint or worker came to, and what one kind did, without reading the others of that time.
CREATE INDEX pawl_metric_name ON pawl_metric (namespace, class, width, name, start);
CREATE INDEX pawl_metric_kind ON pawl_metric (namespace, class, width, kind, start);
CREATE INDEX pawl_metric_roll ON pawl_metric (namespace, roll, class, width, name, kind, start) WHERE roll IS NOT NULL;
CREATE INDEX pawl_metric_expires ON pawl_metric (namespace, expires);

-- The last flush of each process that was kept, so that none is kept twice.
CREATE TABLE pawl_metric_flush (
    namespace INTEGER NOT NULL,
    source    BLOB NOT NULL,
    number    INTEGER NOT NULL,
    expires   INTEGER NOT NULL,
    PRIMARY KEY (namespace, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_metric_flush_expires ON pawl_metric_flush (namespace, expires);

-- Operator actions, written in the transaction of the change.
CREATE TABLE pawl_audit (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace INTEGER NOT NULL,
    time      INTEGER NOT NULL,
    by        TEXT NOT NULL,
    action    TEXT NOT NULL,
    target    TEXT NOT NULL,
    note      TEXT NOT NULL,
    detail    TEXT NOT NULL, -- what changed
    expires   INTEGER NOT NULL
) STRICT;
-- They are listed by time, or by target and time; the id tells those of one moment apart.
CREATE INDEX pawl_audit_time ON pawl_audit (namespace, time, id);
CREATE INDEX pawl_audit_target ON pawl_audit (namespace, target, time, id);
CREATE INDEX pawl_audit_expires ON pawl_audit (namespace, expires);

-- What operators do to the many jobs that a filter matches, page by page: it goes on
-- in whichever process has the time, from the cursor, which moves in the transaction
-- that changes the jobs of a page.
CREATE TABLE pawl_operation (
    namespace INTEGER NOT NULL,
    id        BLOB NOT NULL,
    state     INTEGER NOT NULL,            -- store.OperationState
    next      INTEGER NOT NULL,            -- when the next page may be taken
    pages     INTEGER NOT NULL,            -- done so far; fences the next one
    pace      INTEGER NOT NULL,            -- jobs a second
    most      INTEGER NOT NULL,            -- jobs in all; 0 for as many as there are
    looked    INTEGER NOT NULL,            -- the sum of the five behind it
    changed   INTEGER NOT NULL,
    asked     INTEGER NOT NULL,
    duplicate INTEGER NOT NULL,
    busy      INTEGER NOT NULL,
    unchanged INTEGER NOT NULL,
    failures  INTEGER NOT NULL,            -- in a row
    created   INTEGER NOT NULL,
    ended     INTEGER,
    expires   INTEGER,
    verb      TEXT NOT NULL,               -- store.Verb as JSON
    filter    TEXT NOT NULL,               -- store.Filter as JSON
    cursor    TEXT NOT NULL,               -- store.Bookmark as JSON
    by        TEXT NOT NULL,
    note      TEXT NOT NULL,
    reason    TEXT NOT NULL,               -- of the last failure, or why it ended early
    PRIMARY KEY (namespace, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX pawl_operation_open ON pawl_operation (namespace, next, id) WHERE state = 1;
CREATE INDEX pawl_operation_expires ON pawl_operation (namespace, expires) WHERE expires IS NOT NULL;
