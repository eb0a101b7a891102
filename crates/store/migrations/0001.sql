-- One row a run. Everything but `no` and `seq` is a projection of the run's events.
-- `name`, `key`, `what`, `labels` and `created_at` never change; `open` changes only when it has to, since
-- it stands in two indexes.
CREATE TABLE runs (
    no          INTEGER PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    seq         INTEGER NOT NULL,
    open        INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    reason_code TEXT,
    health      TEXT    NOT NULL,
    turn        INTEGER NOT NULL,
    attempt     INTEGER NOT NULL,
    survivors   INTEGER NOT NULL,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    ended_at    INTEGER,
    exit_code   INTEGER,
    exit_signal INTEGER,
    name        TEXT,
    key         TEXT,
    labels      TEXT    NOT NULL,
    what        TEXT    NOT NULL
);
CREATE INDEX runs_open ON runs (open) WHERE open = 1;
CREATE UNIQUE INDEX runs_key ON runs (key) WHERE key IS NOT NULL;
CREATE INDEX runs_name ON runs (name, open) WHERE name IS NOT NULL;

-- The truth. `body` is the fact as JSON, with its kind. In the order of writing, not of runs: what many runs
-- append at once then stands on few pages, and a group commit is as small as its events.
CREATE TABLE events (
    no    INTEGER PRIMARY KEY,
    run   INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    at    INTEGER NOT NULL,
    kind  TEXT    NOT NULL,
    epoch INTEGER NOT NULL,
    body  TEXT    NOT NULL
);
CREATE UNIQUE INDEX events_run ON events (run, seq);

-- Who may write: one row.
CREATE TABLE fence (epoch INTEGER NOT NULL);
INSERT INTO fence (epoch) VALUES (0);
