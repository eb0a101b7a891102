-- Notices, one row for each sink that is to be told, written with the events that they tell of.
CREATE TABLE outbox (
    no         INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL,
    run        TEXT    NOT NULL,
    sink       TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    at         INTEGER NOT NULL,
    body       TEXT    NOT NULL,
    -- 'pending', 'delivered', 'muted' (its sink does not want it) or 'given_up'.
    state      TEXT    NOT NULL DEFAULT 'pending',
    -- How often its sink has answered that it will not have it; when it may be tried again; since when.
    tries      INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER,
    since      INTEGER,
    -- Those that are told together, as one; the id they are told under.
    batch      TEXT,
    settled_at INTEGER,
    problem    TEXT
);
CREATE UNIQUE INDEX outbox_id ON outbox (id, sink);
CREATE INDEX outbox_pending ON outbox (sink, no, run, tries, next_at) WHERE state = 'pending';
CREATE INDEX outbox_run ON outbox (run);
CREATE INDEX outbox_settled ON outbox (settled_at) WHERE state <> 'pending';

-- How telling goes, for each sink with which it does not go well.
CREATE TABLE sinks (
    sink        TEXT    PRIMARY KEY,
    failures    INTEGER NOT NULL,
    since       INTEGER NOT NULL,
    next_at     INTEGER,
    problem     TEXT,
    disabled_at INTEGER
);

-- What makes runs by itself. `spec` is JSON; so is `state`, which is how far it has come.
CREATE TABLE triggers (
    name       TEXT    PRIMARY KEY,
    kind       TEXT    NOT NULL,
    spec       TEXT    NOT NULL,
    state      TEXT    NOT NULL,
    paused     INTEGER NOT NULL DEFAULT 0,
    created_at INTEGER NOT NULL
);

-- What has come to a trigger, so that nothing that comes again makes a second run. `body` is what is still
-- to be made into a run, and is emptied once there is one.
CREATE TABLE deliveries (
    no      INTEGER PRIMARY KEY,
    trigger TEXT    NOT NULL,
    id      TEXT    NOT NULL,
    at      INTEGER NOT NULL,
    -- 'waiting', 'made', 'skipped' or 'refused'.
    state   TEXT    NOT NULL,
    run     TEXT,
    body    TEXT,
    problem TEXT
);
CREATE UNIQUE INDEX deliveries_id ON deliveries (trigger, id);
CREATE INDEX deliveries_waiting ON deliveries (trigger, no) WHERE state = 'waiting';

-- What runs have used up, by day (UTC days since 1970), for budgets that runs share. It stays when a run is
-- removed, so it has the run's labels itself.
CREATE TABLE ledger (
    run             TEXT    NOT NULL,
    day             INTEGER NOT NULL,
    labels          TEXT    NOT NULL,
    tokens          INTEGER NOT NULL,
    cost_usd_micros INTEGER NOT NULL,
    PRIMARY KEY (run, day)
) WITHOUT ROWID;
CREATE INDEX ledger_day ON ledger (day);
-- What was spent before there was a ledger, on the last day that is known of each run.
INSERT INTO ledger SELECT id, COALESCE(ended_at, created_at) / 86400000, labels, tokens, cost_usd_micros
    FROM runs WHERE tokens > 0 OR cost_usd_micros > 0;

-- Settings that the daemon itself is told: 'held' since when everything is paused.
CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- What made the run, if it was no person; whose child it is.
ALTER TABLE runs ADD COLUMN trigger TEXT;
ALTER TABLE runs ADD COLUMN parent TEXT;
CREATE INDEX runs_trigger ON runs (trigger) WHERE trigger IS NOT NULL;
CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL;
