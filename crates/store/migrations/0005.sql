-- What of a run's spend was not reported: false if an attempt that ran has not said all that it used, and how much is
-- held for such attempts. A charge from before that was written counts as reserved in full.
ALTER TABLE runs ADD COLUMN known INTEGER NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN reserved_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN reserved_cost_usd_micros INTEGER NOT NULL DEFAULT 0;
-- How long an ended run worked; not known of those from before.
ALTER TABLE runs ADD COLUMN worked_ms INTEGER;
-- An event that is damaged proves nothing.
CREATE TEMP VIEW readable AS
    SELECT run, seq, kind, CASE WHEN json_valid(body) THEN body ELSE '{}' END AS body FROM main.events
    WHERE kind IN ('AttemptStarted', 'AttemptEnded');
CREATE TABLE unreported AS
    SELECT ended.run AS run,
        SUM(COALESCE(json_extract(ended.body, '$.charge.input_tokens'), 0)
            + COALESCE(json_extract(ended.body, '$.charge.output_tokens'), 0)) AS tokens,
        SUM(COALESCE(json_extract(ended.body, '$.charge.cost_usd_micros'), 0)) AS cost_usd_micros
    FROM readable AS ended
    WHERE ended.kind = 'AttemptEnded' AND COALESCE(json_extract(ended.body, '$.charge.known'), 0) = 0
        AND EXISTS (SELECT 1 FROM readable AS started
            WHERE started.run = ended.run AND started.kind = 'AttemptStarted' AND started.seq < ended.seq
            AND json_extract(started.body, '$.turn') = json_extract(ended.body, '$.turn')
            AND json_extract(started.body, '$.attempt') = json_extract(ended.body, '$.attempt'))
    GROUP BY ended.run;
UPDATE runs SET known = 0,
    reserved_tokens = (SELECT tokens FROM unreported WHERE run = runs.no),
    reserved_cost_usd_micros = (SELECT cost_usd_micros FROM unreported WHERE run = runs.no)
    WHERE no IN (SELECT run FROM unreported);
DROP TABLE unreported;
DROP VIEW readable;

-- The ledger by slots of a quarter of an hour, so that a day may begin at the midnight of any time zone. Of what was
-- spent before, only the day in UTC is known: it counts at noon, which is on the same date nearly everywhere.
-- `unreported` is how many attempts did not report all that they used.
CREATE TABLE slots (
    run                      TEXT    NOT NULL,
    slot                     INTEGER NOT NULL,
    labels                   TEXT    NOT NULL,
    tokens                   INTEGER NOT NULL,
    cost_usd_micros          INTEGER NOT NULL,
    reserved_tokens          INTEGER NOT NULL,
    reserved_cost_usd_micros INTEGER NOT NULL,
    unreported               INTEGER NOT NULL,
    PRIMARY KEY (run, slot)
) WITHOUT ROWID;
INSERT INTO slots SELECT ledger.run, ledger.day * 96 + 48, ledger.labels, ledger.tokens, ledger.cost_usd_micros,
    MIN(ledger.tokens, COALESCE(runs.reserved_tokens, 0)),
    MIN(ledger.cost_usd_micros, COALESCE(runs.reserved_cost_usd_micros, 0)),
    COALESCE(runs.reserved_tokens > 0 OR runs.reserved_cost_usd_micros > 0, 0)
    FROM ledger LEFT JOIN runs ON runs.id = ledger.run;
DROP TABLE ledger;
ALTER TABLE slots RENAME TO ledger;
CREATE INDEX ledger_slot ON ledger (slot);
